"""The numbers that follow from a trade-off function: its values, delta and eps, mu and the advantage."""

from __future__ import annotations

from collections.abc import Callable
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import FloatArray, plain, typed_as
from shufflebounds.tradeoff.representation import Representation

__all__ = ["CurveValues"]


@with_passages
class CurveValues:
    """A trade-off function in one of its representations.

    The methods check their arguments and return results in the shape of the arguments.
    """

    _form: Representation

    @property
    def knots(self) -> tuple[FloatArray, FloatArray]:
        r"""Natural logarithms of :math:`\alpha_i` and of :math:`\beta_i = f(\alpha_i)` at the breakpoints.

        Two read-only arrays of shape (knots,). The first is non-decreasing from -inf on, the second non-increasing down to -inf.
        Beyond the last :math:`\alpha_i`, f is 0. Gaussian and Laplace curves have no breakpoints: AttributeError is raised.
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
            Natural logarithm of the type I error probability, <= 0; for -inf the result is log f(0).

        Returns
        -------
        float or ndarray
            The logarithm, of the shape of `log_alpha`; -inf where f is 0.

        {raises: If `log_alpha` is positive, NaN or empty.}

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs([-1e5, 0.0], [0.0, -1e5])
        >>> f.log_beta(-1e5 - np.log(2)), f.log_beta(-1e5), f.log_beta(-1.0)
        (-0.6931471805615919, -100000.0, -100000.45867514539)
        """
        return _shaped(self._form.log_beta, _validate.log_values("log_alpha", log_alpha))

    @overload
    def beta(self, alpha: float) -> float: ...
    @overload
    def beta(self, alpha: ArrayLike) -> float | FloatArray: ...
    def beta(self, alpha: ArrayLike) -> float | FloatArray:
        r"""The least type II error probability, :math:`f(\alpha)`.

        Parameters
        ----------
        alpha : float or array_like
            Type I error probability, in [0, 1].

        Returns
        -------
        float or ndarray
            The probability in [0, 1], of the shape of `alpha`. For values below 1e-300 use :meth:`log_beta`.

        {raises: If `alpha` lies outside [0, 1] or is empty.}
        """
        array = _validate.real_array("alpha", alpha, 0, 1)
        with np.errstate(divide="ignore"):
            logs = self._form.log_beta(np.log(array.ravel()))
        value = np.exp(logs)
        if self._form.side:
            # For logarithms near 0, rounding may put the exponential on the wrong side of the exact value, so it is moved by an
            # ulp.
            value = np.where((logs < 0) & (logs > -np.inf), np.nextafter(value, 1 if self._form.side > 0 else 0), value)
        return plain(value.reshape(array.shape))

    @overload
    def log_delta(self, eps: float) -> float: ...
    @overload
    def log_delta(self, eps: ArrayLike) -> float | FloatArray: ...
    def log_delta(self, eps: ArrayLike) -> float | FloatArray:
        r"""Natural logarithm of :math:`\delta(\varepsilon) = \sup_\alpha 1 - f(\alpha) - e^\varepsilon \alpha` of the curve f.

        Parameters
        ----------
        eps : float or array_like
            Privacy loss in nats, finite, of either sign.

        Returns
        -------
        float or ndarray
            The logarithm, of the shape of `eps`; -inf where delta is 0. For :math:`f = T(P, Q)`, delta is
            :math:`\sum_y \max(0, Q(y) - e^\varepsilon P(y))`. If f is a lower bound of :math:`T(P, Q)`, delta is an upper bound of
            this sum.

        {raises: If `eps` is not finite or empty.}

        Notes
        -----
        For piecewise linear curves, delta is exact up to rounding: it is a sum of positive terms
        :math:`\Delta\beta (1 - e^{\varepsilon - l})` over the segments of slope :math:`-e^l` with l > eps. The error of log delta
        is a few ulp of the logarithms, divided by :math:`1 - e^{\varepsilon - l}` for the largest terms of the sum.

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs([-1e5, 0.0], [0.0, -1e5])
        >>> f.log_delta(1e5 - 2**-10)
        -6.931960047113024
        """
        return _shaped(self._form.log_delta, _validate.real_array("eps", eps))

    @typed_as(log_delta)
    def delta(self, eps: ArrayLike) -> float | FloatArray:
        """Delta of the curve, in [0, 1]: the exponential of :meth:`log_delta`, which is accurate also below 1e-300.

        Parameters
        ----------
        eps : float or array_like
            As in :meth:`log_delta`, which also lists the exceptions.

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
            The eps, of the shape of `delta`. It is rounded up: :meth:`log_delta` was evaluated at this eps and is at most log
            delta. The result is inf if there is no such eps.

        {raises: If `delta` lies outside [0, 1] or is empty.}

        Examples
        --------
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.randomized_response(1.0)
        >>> round(f.epsilon(0.0), 12), round(f.epsilon(0.1), 12), f.epsilon(0.5)
        (1.0, 0.852905101364, 0.0)
        """
        return _shaped(self._form.epsilon, _validate.real_array("delta", delta, 0, 1))

    def gdp_mu(self) -> float:
        r"""The smallest :math:`\mu` whose Gaussian curve :math:`G_\mu` (:meth:`gaussian`) is nowhere above f.

        .. math:: \mu = \max_i \Phi^{-1}(1 - \alpha_i) - \Phi^{-1}(\beta_i)

        Returns
        -------
        float
            The parameter mu, rounded up by about 1e-15 times the normal quantiles of :math:`\alpha` and :math:`\beta`. It is
            **inf** if the supports of the distributions differ, that is, if f(0) < 1 or f is 0 at some :math:`\alpha < 1`: every
            Gaussian curve is 1 at :math:`\alpha = 0` and positive at every :math:`\alpha < 1`.

        Notes
        -----
        It suffices to compare f with Gaussian curves at the breakpoints, because Gaussian curves are convex and f is linear between
        breakpoints.

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
            The advantage in [0, 1]; it equals delta at eps = 0. If the probabilities of P or Q sum to less than 1, the missing mass
            is added.
        """
        return self.delta(0.0)


def _shaped(method: Callable[[FloatArray], FloatArray], array: FloatArray) -> float | FloatArray:
    """Return the values of `method` at all entries of `array`, in the shape of `array`; `method` takes a 1-D array."""
    return plain(method(array.ravel()).reshape(array.shape))
