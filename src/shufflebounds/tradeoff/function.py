"""The methods of a trade-off function, whether it is given by a formula or by breakpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds import _validate, plotting
from shufflebounds._docs import with_passages
from shufflebounds._types import FloatArray, plain, typed_as
from shufflebounds.tradeoff.product import product
from shufflebounds.tradeoff.representation import Representation

__all__ = ["Function"]


def _shaped(method: Callable[[FloatArray], FloatArray], array: FloatArray) -> float | FloatArray:
    """Return the values of `method`, which takes a 1-D array, at all entries of `array`, in the shape of `array`."""
    return plain(method(array.ravel()).reshape(array.shape))


@with_passages
@dataclass(frozen=True, repr=False)
class Function:
    """Methods of a trade-off function that validate their arguments and call its representation."""

    _form: Representation

    def __repr__(self) -> str:
        text = repr(self._form)
        return f"Tradeoff({text})" if text.startswith("<") else f"Tradeoff.{text}"

    @property
    def knots(self) -> tuple[FloatArray, FloatArray]:
        r"""Natural logarithms of :math:`\alpha_i`, non-decreasing from -inf, and of :math:`\beta_i = f(\alpha_i)`, to -inf.

        Two read-only arrays of shape (knots,). Beyond the last :math:`\alpha_i` f is 0. Curves given by a formula, Gaussian and
        Laplace, have no breakpoints and raise AttributeError.
        """
        return self._form.knots()

    @overload
    def log_beta(self, log_alpha: float) -> float: ...
    @overload
    def log_beta(self, log_alpha: ArrayLike) -> float | FloatArray: ...
    def log_beta(self, log_alpha: ArrayLike) -> float | FloatArray:
        r"""Natural logarithm of :math:`f(\alpha)` at :math:`\alpha = e^{\text{log\_alpha}}`.

        Parameters
        ----------
        log_alpha : float or array_like
            Natural logarithm of the error of the first kind, <= 0; for -inf the result is log f(0).

        Returns
        -------
        float or ndarray
            Of the shape of `log_alpha`; -inf where f is 0.

        {raises: If `log_alpha` is positive, NaN or empty.}

        Notes
        -----
        Between breakpoints :math:`f = (1 - t) \beta_i + t \beta_{i+1}`. Both weights are computed by ``expm1`` of differences of
        logarithms of :math:`\alpha` or, above 1/2, of :math:`1 - \alpha`, and the terms are added in logarithms.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs([-1e5, 0.0], [0.0, -1e5])
        >>> f.log_beta(-1e5 - np.log(2)), f.log_beta(-1e5), f.log_beta(-1.0)
        (-0.6931471805615919, -100000.0, -100000.45867514539)
        """
        array = _validate.log_values("log_alpha", log_alpha)
        return _shaped(self._form.log_beta, array)

    @overload
    def beta(self, alpha: float) -> float: ...
    @overload
    def beta(self, alpha: ArrayLike) -> float | FloatArray: ...
    def beta(self, alpha: ArrayLike) -> float | FloatArray:
        r"""The least error of the second kind, :math:`f(\alpha)`.

        Parameters
        ----------
        alpha : float or array_like
            Error of the first kind, in [0, 1].

        Returns
        -------
        float or ndarray
            In [0, 1], of the shape of `alpha`. Below 1e-300 use :meth:`log_beta`.

        {raises: If `alpha` lies outside [0, 1] or is empty.}
        """
        array = _validate.real_array("alpha", alpha, 0, 1)
        with np.errstate(divide="ignore"):
            value = np.exp(self._form.log_beta(np.log(array.ravel()))).reshape(array.shape)
        return plain(value)

    @overload
    def log_delta(self, eps: float) -> float: ...
    @overload
    def log_delta(self, eps: ArrayLike) -> float | FloatArray: ...
    def log_delta(self, eps: ArrayLike) -> float | FloatArray:
        r"""Natural logarithm of the delta that belongs to the curve, :math:`\sup_\alpha 1 - f(\alpha) - e^\varepsilon \alpha`.

        Parameters
        ----------
        eps : float or array_like
            Privacy loss in nats, finite, of either sign.

        Returns
        -------
        float or ndarray
            Of the shape of `eps`; -inf where delta is 0. For :math:`f = T(P, Q)`, delta is
            :math:`\sum_y \max(0, Q(y) - e^\varepsilon P(y))`. If f is a lower bound of :math:`T(P, Q)`, delta is an upper bound of
            this sum.

        {raises: If `eps` is not finite or empty.}

        Notes
        -----
        Exact to rounding: a sum of positive terms :math:`\Delta\beta (1 - e^{\varepsilon - l})` over the segments of slope
        :math:`-e^l` with l > eps, in one sweep over segments and eps together. The error of log delta is a few ulp of the
        logarithms, divided by :math:`1 - e^{\varepsilon - l}` of the segments with the largest terms.

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs([-1e5, 0.0], [0.0, -1e5])
        >>> f.log_delta(1e5 - 2**-10)
        -6.931960047113024
        """
        array = _validate.real_array("eps", eps)
        return _shaped(self._form.log_delta, array)

    @typed_as(log_delta)
    def delta(self, eps: ArrayLike) -> float | FloatArray:
        """The delta that belongs to the curve, in [0, 1]: the exponential of :meth:`log_delta`. Below 1e-300 use :meth:`log_delta`.

        Parameters
        ----------
        eps : float or array_like
            As in :meth:`log_delta`, where exceptions are listed.

        Returns
        -------
        float or ndarray
        """
        return plain(np.exp(np.asarray(self.log_delta(eps))))

    @overload
    def epsilon(self, delta: float) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike) -> float | FloatArray: ...
    def epsilon(self, delta: ArrayLike) -> float | FloatArray:
        r"""The least :math:`\varepsilon \ge 0` with :math:`\delta(\varepsilon)` at most the given delta.

        Parameters
        ----------
        delta : float or array_like
            Failure probability in [0, 1].

        Returns
        -------
        float or ndarray
            Of the shape of `delta`, rounded up: an eps at which :meth:`log_delta` was evaluated and is at most log delta; inf
            if there is no finite one.

        {raises: If `delta` lies outside [0, 1] or is empty.}

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.randomized_response(1.0)
        >>> round(f.epsilon(0.0), 12), round(f.epsilon(0.1), 12), f.epsilon(0.5)
        (1.0, 0.852905101364, 0.0)
        """
        array = _validate.real_array("delta", delta, 0, 1)
        return _shaped(self._form.epsilon, array)

    def gdp_mu(self) -> float:
        r"""The smallest :math:`\mu` whose Gaussian curve lies below, :math:`G_\mu \le f`.

        .. math:: \mu = \max_i \Phi^{-1}(1 - \alpha_i) - \Phi^{-1}(\beta_i)

        Returns
        -------
        float
            Rounded up, by about 1e-15 times the normal quantiles of :math:`\alpha` and :math:`\beta`. **inf** if the supports of
            the distributions differ, that is, if f(0) < 1 or f is 0 at some :math:`\alpha < 1`: every Gaussian curve is 1 at
            :math:`\alpha = 0` and positive at every :math:`\alpha < 1`.

        Notes
        -----
        It suffices to compare at the breakpoints, because Gaussian curves are convex and f is linear between breakpoints. Both
        quantiles are computed from the smaller one of a probability and its complement, which are summed separately.

        {dong2022: definition 2.6}

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> print(f"{Tradeoff.randomized_response(1.0).gdp_mu():.9f}")
        1.232035385
        >>> Tradeoff.approximate(1.0, 1e-9).gdp_mu()
        inf
        """
        return self._form.gdp_mu()

    def advantage(self) -> float:
        r"""The largest advantage of a test over guessing, :math:`\max_\alpha 1 - \alpha - f(\alpha)`: the total variation distance.

        Returns
        -------
        float
            In [0, 1]; equal to delta at eps = 0. If the probabilities of P or Q sum to less than 1, the missing mass is added.
        """
        return self.delta(0.0)

    def inverse(self) -> Self:
        r"""Return the trade-off function of the pair in the other order, :math:`T(Q, P)`: the inverse function of f.

        Returns
        -------
        Tradeoff
            The same breakpoints with alpha and beta exchanged; a Gaussian or a Laplace curve is its own inverse.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs(np.log([0.9, 0.1]), np.log([0.25, 0.75]))
        >>> round(f.beta(0.1), 12), round(f.inverse().beta(0.25), 12)
        (0.25, 0.1)
        """
        return type(self)(self._form.inverse())

    def symmetrized(self) -> Self:
        r"""Return the greatest convex function below f and its inverse, :math:`\min(f, f^{-1})^{**}`.

        Returns
        -------
        Tradeoff
            Symmetric and convex, at or below T(P, Q) and T(Q, P). Its delta is the larger one of the deltas of (P, Q) and (Q, P).

        References
        ----------
        Dong, J., Roth, A., Su, W. J. Gaussian differential privacy, 2022, section 4 and appendix F. Let x be the least
        :math:`\alpha` at which f has the slope -1. The paper's Symm is this curve if :math:`x \le f(x)`; otherwise it is the
        maximum of f and its inverse.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs(np.log([0.9, 0.1]), np.log([0.25, 0.75])).symmetrized()
        >>> round(f.beta(0.1), 12), round(f.beta(0.25), 12)
        (0.25, 0.1)
        """
        return type(self)(self._form.symmetrized())

    def convex_hull(self) -> Self:
        r"""Return the greatest convex function at or below f.

        Returns
        -------
        Tradeoff
            f itself if it is known to be convex. Its breakpoints are breakpoints of f; it is above the exact hull
            by rounding at most.

        Notes
        -----
        One pass over the breakpoints. Slopes are compared as differences of logarithms. Each difference between breakpoints is
        computed from the probabilities or from their complements, whichever are smaller, so it is accurate near 0 and near 1.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> alpha, beta = np.log([1e-300, 0.2, 0.4, 1.0]), np.log([1.0, 0.7, 0.2])
        >>> f = Tradeoff.from_knots(alpha, np.append(beta, -np.inf))
        >>> round(f.beta(0.2), 12), round(f.convex_hull().beta(0.2), 12)
        (0.7, 0.6)
        """
        return type(self)(self._form.convex_hull())

    def tensor(self, other: Function) -> Self:
        r"""Return the trade-off function of a product of two pairs, :math:`T(P \times P', Q \times Q')`.

        Parameters
        ----------
        other : Tradeoff
            The trade-off function of the other pair, which is independent.

        Returns
        -------
        Tradeoff
            For two Gaussian curves :math:`G_{\sqrt{\mu^2 + \mu'^2}}`; for two piecewise linear curves that of all products of their
            segments, exact to rounding. Curves that are not convex are replaced by their convex hulls.

        Raises
        ------
        ValueError
            If `other` is not a Tradeoff, if only one curve is Gaussian or one is that of Laplace noise, or if there are more than
            4 million products. For such curves, compose the profiles by
            :meth:`~shufflebounds.profile.PrivacyProfile.compose`, which gives an upper and a lower bound.

        {dong2022: definition 3.1}

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> once = Tradeoff.randomized_response(1.0)
        >>> print(f"{once.tensor(once).delta(1.0):.12f}")
        0.337834712147
        >>> both = Tradeoff.gaussian(3.0).tensor(Tradeoff.gaussian(4.0))
        >>> print(f"{both.gdp_mu():.12f}")
        5.000000000000
        """
        if not isinstance(other, Function):
            raise ValueError(f"other={other!r} must be a Tradeoff")
        return type(self)(product(self._form, other._form))

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        r"""Draw the curve with the diagonal of perfect privacy and the advantage, the largest vertical distance from it.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        label : str, optional
            Text for the legend.

        {axes}

        Raises
        ------
        ImportError
            If matplotlib is not installed (extra ``plot``).

        See Also
        --------
        shufflebounds.compare : several curves in one figure.

        Examples
        --------
        >>> from shufflebounds import Tradeoff
        >>> ax = Tradeoff.gaussian(1.0).plot(label="Gaussian, mu = 1")
        >>> [text.get_text().partition("\n")[0] for text in ax.get_legend().get_texts()]
        ['perfect privacy, $1-\\alpha$', 'Gaussian, mu = 1']
        """
        ax = plotting.axes(ax)
        plotting.tradeoff_frame(ax, "Trade-off function")
        self._draw(ax, r"$f(\alpha)$" if label is None else label, shade=True)
        plotting.legend(ax)
        return ax

    def _draw(self, ax: Any, label: str, place: int = 0, *, shade: bool = False) -> None:
        """Draw the curve and its advantage, without the diagonal."""
        try:
            knots = self.knots[0]
        except AttributeError:
            knots = None
        alpha = plotting.alphas(knots)
        plotting.draw_tradeoff(ax, alpha, np.asarray(self.beta(alpha)), label=label, place=place, advantage=self.advantage(),
                               shade=shade)
