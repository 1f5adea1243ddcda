"""Trade-off functions, made from lists of probabilities, from breakpoints, from delta or from a formula.

Operations such as `inverse` and `tensor` return other trade-off functions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.plotting import alphas, axes, draw_tradeoff, legend, tradeoff_frame
from shufflebounds._base.types import FloatArray
from shufflebounds.tradeoff.closed_curves import GaussianCurve, LaplaceCurve
from shufflebounds.tradeoff.envelope import envelope
from shufflebounds.tradeoff.piecewise import Piecewise
from shufflebounds.tradeoff.representation import Representation
from shufflebounds.tradeoff.tensor import tensor_product
from shufflebounds.tradeoff.values import CurveValues

__all__ = ["Tradeoff"]


@with_passages
@dataclass(frozen=True, repr=False)
class Tradeoff(CurveValues):
    r"""The trade-off function of two distributions: the least type II error probability for each type I error probability.

    .. math:: f(\alpha) = T(P, Q)(\alpha) = \min \{ 1 - \mathrm{E}_Q[\phi] : 0 \le \phi \le 1,\; \mathrm{E}_P[\phi] \le \alpha \}

    A test rejects P in favour of Q with the probability :math:`\phi(y)` if the outcome is y. The optimal tests reject the outcomes
    with the largest :math:`Q/P`. For distributions given as lists the curve is piecewise linear, with randomised tests between its
    breakpoints.

    Instances are made by :meth:`from_pmfs`, :meth:`from_knots` and :meth:`from_log_delta` (piecewise linear), by :meth:`gaussian`,
    :meth:`laplace`, :meth:`approximate` and :meth:`randomized_response`, or by
    :meth:`~shufflebounds.profile.DominatingPair.tradeoff`. Two curves are equal if they have the same breakpoints or the same
    parameters.

    References
    ----------
    Neyman, J., Pearson, E. S. On the problem of the most efficient tests of statistical hypotheses, 1933.

    Dong, J., Roth, A., Su, W. J. Gaussian differential privacy, 2022, section 2.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import Tradeoff
    >>> f = Tradeoff.from_pmfs(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
    >>> f.beta([0.0, 0.25, 0.5, 1.0]).round(12).tolist()
    [1.0, 0.25, 0.166666666667, 0.0]
    """

    _form: Representation

    def __repr__(self) -> str:
        text = repr(self._form)
        return f"Tradeoff({text})" if text.startswith("<") else f"Tradeoff.{text}"

    @staticmethod
    def from_pmfs(log_p: ArrayLike, log_q: ArrayLike) -> Tradeoff:
        r"""Return :math:`T(P, Q)` of two lists of log probabilities of the same outcomes.

        Parameters
        ----------
        log_p, log_q : array_like, shape (atoms,)
            Natural logarithms of the probabilities, -inf for an impossible outcome, in any order. The probabilities of each list
            sum to 1 within 1e-9. If a sum is below 1, the missing mass is omitted from alpha and beta, so the curve is never above
            the exact one. Missing mass below 1e-15 times the number of outcomes counts as rounding.

        Returns
        -------
        Tradeoff
            The curve from (0, 1 - q) to (1 - p, 0), where q is the mass of Q on outcomes impossible under P, and p that of P on
            outcomes impossible under Q.

        {raises: If the shapes differ, an entry is NaN or positive, or a list does not sum to 1.}

        Notes
        -----
        The run time is linear if the likelihood ratio is monotone along the outcomes; otherwise the outcomes are sorted once.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs(np.log([0.5, 0.5, 1e-300]), [-np.inf, np.log(0.5), np.log(0.5)])
        >>> f.beta(0.0), f.beta(0.25), f.beta(0.5)
        (1.0, 0.25, 0.0)
        """
        return Tradeoff._of(*_validate.log_pmfs(log_p, log_q))

    @staticmethod
    def _of(log_p: FloatArray, log_q: FloatArray) -> Tradeoff:
        """Return the curve T(P, Q) of two checked lists of log probabilities, each of which may sum to less than 1."""
        return Tradeoff(Piecewise.of(log_p, log_q))

    @staticmethod
    def from_knots(log_alpha: ArrayLike, log_beta: ArrayLike) -> Tradeoff:
        r"""Return the piecewise linear curve through given breakpoints, which need not be convex.

        Parameters
        ----------
        log_alpha : array_like, shape (knots,)
            Natural logarithms of the type I error probabilities :math:`\alpha`, non-decreasing, <= 0; -inf is :math:`\alpha = 0`.
        log_beta : array_like, shape (knots,)
            Natural logarithms of the type II error probabilities :math:`\beta`, non-increasing, <= 0; no breakpoint lies above the
            diagonal :math:`\beta = 1 - \alpha` by more than 1e-9.

        Returns
        -------
        Tradeoff
            The curve. It is constant to the left of the first breakpoint, 0 from the last breakpoint on, and has the lower value
            where two breakpoints have the same alpha. So it is at or below every trade-off function that is at or above the lines
            between the breakpoints. To prescribe other values outside of the breakpoints, add breakpoints at alpha = 0 and at beta
            = 0.

        {raises: If the shapes differ, an entry is NaN or positive, the order is wrong, or a breakpoint lies above the diagonal.}

        Notes
        -----
        A curve that is not convex, such as a minimum of several curves, is a valid pointwise bound. Its `delta`, `epsilon` and
        `advantage` equal those of its convex hull.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_knots(np.log([0.1, 0.5]), np.log([0.5, 0.1]))
        >>> f.beta([0.05, 0.3, 0.6]).round(12).tolist()
        [0.5, 0.3, 0.0]
        """
        return Tradeoff(Piecewise.through(*_validate.log_knots(log_alpha, log_beta)))

    @staticmethod
    def from_log_delta(eps: ArrayLike, log_delta: ArrayLike, log_delta_reverse: ArrayLike | None = None) -> Tradeoff:
        r"""Return the lower bound of the trade-off function that follows from delta at a grid of eps.

        .. math:: f(\alpha) = \max_i\, \{ 0, 1 - \delta_i - e^{\varepsilon_i} \alpha, e^{-\varepsilon_i} (1 - \delta'_i - \alpha) \}

        Parameters
        ----------
        eps : array_like, shape (grid,)
            Privacy losses in nats, finite and >= 0, in any order.
        log_delta : array_like, shape (grid,)
            Natural logarithm of :math:`\delta_i`, an upper bound of the hockey-stick divergence
            :math:`H_{e^{\varepsilon_i}}(Q \| P)`; -inf where :math:`\delta_i = 0`.
        log_delta_reverse : array_like, shape (grid,), optional
            The same for :math:`\delta'_i`, the divergence :math:`H_{e^{\varepsilon_i}}(P \| Q)` in the other order. The default is
            `log_delta`, because the profile of a mechanism holds for both orders.

        Returns
        -------
        Tradeoff
            A curve that is nowhere above :math:`T(P, Q)`, for every pair with these bounds of the divergence. It is also nowhere
            above the maximum of the lines.

        {raises: If the shapes differ, an entry is NaN or outside its range, or the arrays are empty.}

        Notes
        -----
        The breakpoints are the intersections of neighbouring lines. Each is rounded down, so that the piecewise linear curve is
        below the maximum of the lines.

        If delta is positive at the largest eps, then f(0) < 1, and no Gaussian trade-off function is below f.

        {dong2022: proposition 2.5}

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_log_delta([1.0], [-np.inf])
        >>> round(f.beta(0.1) / Tradeoff.randomized_response(1.0).beta(0.1), 12)
        1.0
        """
        grid = _validate.real_array("eps", eps, 0)
        sides = [_validate.log_values("log_delta", log_delta)]
        sides.append(sides[0] if log_delta_reverse is None else _validate.log_values("log_delta_reverse", log_delta_reverse))
        for name, side in zip(("log_delta", "log_delta_reverse"), sides):
            if grid.ndim != 1 or side.shape != grid.shape:
                raise ValueError(f"{name} has shape {side.shape}, eps {grid.shape}: both must be 1-D and agree")
        order = [np.lexsort((side, grid)) for side in sides]
        return Tradeoff(envelope(*(x[o] for o, side in zip(order, sides) for x in (grid, side)))[0])

    @staticmethod
    def gaussian(mu: float) -> Tradeoff:
        r"""Return :math:`G_\mu(\alpha) = \Phi(\Phi^{-1}(1 - \alpha) - \mu)`, the trade-off function of N(0, 1) against N(mu, 1).

        Parameters
        ----------
        mu : float
            Distance of the means in standard deviations, in [0, 1e6].

        Returns
        -------
        Tradeoff
            The curve, exact to rounding. `log_beta` and `log_delta` remain accurate if beta or delta underflows.

        {raises: If `mu` lies outside its range.}

        Notes
        -----
        With :math:`x = \varepsilon/\mu - \mu/2`, :math:`y = x + \mu` and Mills' ratio m, :math:`m(x) = \Phi(-x)/\varphi(x)`,
        :math:`\delta = \Phi(-x) (1 - m(y)/m(x))`.

        {dong2022: corollary 2.13}

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.gaussian(1.0)
        >>> deep = Tradeoff.gaussian(500.0).log_beta(-1e5)
        >>> print(f"{f.delta(1.0):.9f} {f.log_delta(1e3):.6g} {deep:.9g}")
        0.126936738 -499515 -1398.91706
        """
        return Tradeoff(GaussianCurve(_validate.real("mu", mu, 0, 1e6)))

    @staticmethod
    def laplace(eps: float) -> Tradeoff:
        r"""Return the trade-off function of the density :math:`e^{-|x|}/2` and its shift by eps.

        .. math::

            f(\alpha) = 1 - e^{\varepsilon} \alpha \;\; (\alpha < e^{-\varepsilon}/2), \qquad
            e^{-\varepsilon}/(4 \alpha) \;\; (\alpha \le 1/2), \qquad e^{-\varepsilon} (1 - \alpha) \;\; (\alpha > 1/2)

        Parameters
        ----------
        eps : float
            Sensitivity divided by the scale of the noise: the largest privacy loss in nats, finite and >= 0.

        Returns
        -------
        Tradeoff
            Exact to rounding.

        {raises: If `eps` is negative or not finite.}

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.laplace(2.0)
        >>> round(f.delta(1.0), 12), round(f.beta(0.25), 12)
        (0.393469340287, 0.135335283237)
        """
        return Tradeoff(LaplaceCurve(_validate.real("eps", eps, 0)))

    @staticmethod
    def approximate(eps: float, delta: float) -> Tradeoff:
        r"""Return the largest lower bound of the trade-off function of every (eps, delta)-differentially private mechanism.

        .. math:: f(\alpha) = \max \{ 0,\; 1 - \delta - e^{\varepsilon} \alpha,\; e^{-\varepsilon} (1 - \delta - \alpha) \}

        Parameters
        ----------
        eps : float
            Privacy loss in nats, finite and >= 0.
        delta : float
            Failure probability in [0, 1].

        Returns
        -------
        Tradeoff
            Piecewise linear; exact to rounding.

        {raises: If `eps` or `delta` lies outside its range.}

        References
        ----------
        Wasserman, L., Zhou, S. A statistical framework for differential privacy, 2010.

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.approximate(1.0, 1e-5)
        >>> f, round(f.beta(0.0), 12)
        (Tradeoff.approximate(1.0, 1e-05), 0.99999)
        """
        eps, delta = _validate.real("eps", eps, 0), _validate.real("delta", delta, 0, 1)
        kept = math.log1p(-delta) if delta < 1 else -math.inf
        lost = math.log(delta) if delta else -math.inf
        return Tradeoff(_three_lines(eps, kept, lost, f"approximate({eps}, {delta})"))

    @staticmethod
    def randomized_response(eps: float) -> Tradeoff:
        r"""Return the lowest trade-off function of an eps-differentially private mechanism, that of binary randomized response.

        .. math:: f(\alpha) = \max \{ 1 - e^{\varepsilon} \alpha,\; e^{-\varepsilon} (1 - \alpha) \}

        Parameters
        ----------
        eps : float
            Privacy loss in nats, finite and >= 0.

        Returns
        -------
        Tradeoff
            Piecewise linear; exact to rounding.

        {raises: If `eps` is negative or not finite.}

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> round(Tradeoff.randomized_response(1.0).advantage(), 12)
        0.46211715726
        """
        eps = _validate.real("eps", eps, 0)
        return Tradeoff(_three_lines(eps, 0.0, -math.inf, f"randomized_response({eps})"))

    def inverse(self) -> Tradeoff:
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
        return Tradeoff(self._form.inverse())

    def symmetrized(self) -> Tradeoff:
        r"""Return the greatest convex function at or below both f and its inverse :math:`f^{-1}`.

        Returns
        -------
        Tradeoff
            A symmetric and convex curve, at or below T(P, Q) and T(Q, P) if f is T(P, Q). At every eps >= 0 its delta is the larger
            one of delta of (P, Q) and delta of (Q, P).

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
        return Tradeoff(self._form.symmetrized())

    def convex_hull(self) -> Tradeoff:
        r"""Return the greatest convex function at or below f.

        Returns
        -------
        Tradeoff
            f itself if it is known to be convex. Otherwise the hull; its breakpoints are breakpoints of f, and only rounding may
            put it above the exact hull.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> alpha, beta = np.log([1e-300, 0.2, 0.4, 1.0]), np.log([1.0, 0.7, 0.2])
        >>> f = Tradeoff.from_knots(alpha, np.append(beta, -np.inf))
        >>> round(f.beta(0.2), 12), round(f.convex_hull().beta(0.2), 12)
        (0.7, 0.6)
        """
        return Tradeoff(self._form.convex_hull())

    def tensor(self, other: Tradeoff) -> Tradeoff:
        r"""Return the trade-off function of a product of two pairs, :math:`T(P \times P', Q \times Q')`.

        Parameters
        ----------
        other : Tradeoff
            The trade-off function T(P', Q') of the other, independent pair.

        Returns
        -------
        Tradeoff
            For two Gaussian curves this is :math:`G_{\sqrt{\mu^2 + \mu'^2}}`. For two piecewise linear curves it has one segment
            for each pair of their segments, and is exact up to rounding. Curves that are not convex are replaced by their convex
            hulls. If one curve is a bound, such as ``tradeoff`` of a profile, and the other curve is the same bound or exact, the
            result is this bound of the product, rounding included.

        Raises
        ------
        ValueError
            If `other` is not a Tradeoff, if only one curve is Gaussian, if a curve is that of Laplace noise, or if there are more
            than 4 million products of segments. For such curves, compose the profiles by
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
        if not isinstance(other, Tradeoff):
            raise ValueError(f"other={other!r} must be a Tradeoff")
        return Tradeoff(tensor_product(self._form, other._form))

    def plot(self, ax: Any = None, *, label: str | None = None) -> Any:
        r"""Draw the curve with the diagonal of perfect privacy, and the advantage: their largest vertical distance.

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
        ax = axes(ax)
        tradeoff_frame(ax, "Trade-off function")
        self._draw(ax, r"$f(\alpha)$" if label is None else label, shade=True)
        legend(ax)
        return ax

    def _draw(self, ax: Any, label: str, place: int = 0, *, shade: bool = False) -> None:
        """Draw the curve and its advantage, without the diagonal."""
        alpha = alphas(self.knots[0] if isinstance(self._form, Piecewise) else None)
        draw_tradeoff(ax, alpha, np.asarray(self.beta(alpha)), label=label, place=place, advantage=self.advantage(),
                      shade=shade)


def _three_lines(eps: float, log_kept: float, log_lost: float, label: str) -> Piecewise:
    """Return the curve of randomized response with budget eps that fails with the probability e^log_lost = 1 - e^log_kept.

    An outcome of the failure has mass e^log_lost under one of the two distributions and mass 0 under the other.
    """
    if log_kept == -math.inf:
        points, atoms = np.array([[-np.inf], [0.0], [-np.inf], [0.0]]), (np.empty(0), np.empty(0))
    else:
        big, small = log_kept - math.log1p(math.exp(-eps)), log_kept - eps - math.log1p(math.exp(-eps))
        rest = float(np.logaddexp(log_lost, big))
        points = np.array([
            [-np.inf, small, log_kept], [0.0, rest, log_lost], [log_kept, small, -np.inf], [log_lost, rest, 0.0],
        ])  # fmt: skip
        atoms = (np.array([small, big]), np.array([big, small]))
    return Piecewise(points, atoms, label)
