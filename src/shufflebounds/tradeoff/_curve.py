"""The trade-off function of two listed laws, piecewise linear between knots in logarithms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds import _validate
from shufflebounds._core import _tradeoff

__all__ = ["Tradeoff"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff:
    r"""The trade-off function of two laws, piecewise linear between knots in logarithms.

    .. math:: f(\alpha) = T(P, Q)(\alpha) = \min \{ 1 - \mathrm{E}_Q[\phi] : 0 \le \phi \le 1,\; \mathrm{E}_P[\phi] \le \alpha \}

    over the tests :math:`\phi` that reject P in favour of Q. The best tests reject the atoms with the largest
    :math:`Q/P`; the straight lines between the knots are randomised tests. Made by :meth:`from_pmfs` or
    :meth:`~shufflebounds.DominatingPair.tradeoff`.

    Attributes
    ----------
    knots : tuple of two ndarrays, shape (knots,), read-only
        Natural logarithms of :math:`\alpha_i`, non-decreasing from -inf, and of :math:`\beta_i = f(\alpha_i)`, non-increasing
        to -inf. Beyond the last :math:`\alpha_i` f is 0.

    See Also
    --------
    shufflebounds.profile.DominatingPair.tradeoff : the curve of a pair.

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

    knots: tuple[FloatArray, FloatArray]
    _atoms: tuple[FloatArray, FloatArray]
    _lost: tuple[float, float]

    def __repr__(self) -> str:
        return f"Tradeoff(<{self.knots[0].size} knots>)"

    @classmethod
    def from_pmfs(cls, log_p: ArrayLike, log_q: ArrayLike) -> Self:
        r"""Return :math:`T(P, Q)` of two listed laws on the same atoms.

        Parameters
        ----------
        log_p, log_q : array_like, shape (atoms,)
            Natural logarithms of the probabilities, -inf for an impossible atom, in any order. Each law sums to 1 within 1e-9;
            mass that is missing is left out of alpha and of beta, so the curve is never above that of the whole laws.

        Returns
        -------
        Tradeoff
            Its first knot is (0, 1 - Q(P = 0)), its last :math:`\alpha` is 1 - P(Q = 0).

        Raises
        ------
        ValueError
            If the shapes differ, an entry is NaN or positive, or a law does not sum to 1.

        Notes
        -----
        O(atoms) where the likelihood ratio is monotone along the atoms, one sort otherwise.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs(np.log([0.5, 0.5, 1e-300]), [-np.inf, np.log(0.5), np.log(0.5)])
        >>> f.beta(0.0), f.beta(0.25), f.beta(0.5)
        (1.0, 0.25, 0.0)
        """
        return cls._of(*_validate.log_pmfs(log_p, log_q))

    @classmethod
    def _of(cls, log_p: FloatArray, log_q: FloatArray) -> Self:
        """Return the curve of two checked lists, either of which may lack mass."""
        shared = (log_p > -np.inf) & (log_q > -np.inf)
        lost = (_left_out(log_p, ~shared), _left_out(log_q, ~shared))
        if not shared.all():
            log_p, log_q = log_p[shared], log_q[shared]
        # copies: the caller's arrays may change
        atoms = (np.array(log_p, order="C"), np.array(log_q, order="C"))
        order = _tradeoff.ratio_order(*atoms)
        if order == -1:
            atoms = (atoms[0][::-1].copy(), atoms[1][::-1].copy())
        elif order == 0:
            place = _tradeoff.ratio_argsort(*atoms)
            atoms = (atoms[0][place], atoms[1][place])
        log_alpha, log_beta = (np.minimum(knots, 0.0, out=knots) for knots in _tradeoff.tradeoff_knots(*atoms))
        return cls._frozen((log_alpha, log_beta), atoms, lost)

    @classmethod
    def _frozen(
        cls, knots: tuple[FloatArray, FloatArray], atoms: tuple[FloatArray, FloatArray], lost: tuple[float, float]
    ) -> Self:
        for array in (*knots, *atoms):
            array.setflags(write=False)
        return cls(knots, atoms, lost)

    @overload
    def log_beta(self, log_alpha: float) -> float: ...
    @overload
    def log_beta(self, log_alpha: ArrayLike) -> float | FloatArray: ...
    def log_beta(self, log_alpha: ArrayLike) -> float | FloatArray:
        r"""Natural logarithm of :math:`f(\alpha)` at :math:`\alpha = e^{\text{log\_alpha}}`.

        Parameters
        ----------
        log_alpha : float or array_like
            Natural logarithm of the error of the first kind, <= 0; -inf asks for f(0).

        Returns
        -------
        float or ndarray
            Of the shape of `log_alpha`; -inf where f is 0.

        Raises
        ------
        ValueError
            If `log_alpha` is positive, NaN or empty.

        Notes
        -----
        Between knots :math:`f = (1 - t) \beta_i + t \beta_{i+1}` with both weights formed directly, by ``expm1`` of differences of
        logarithms, and added as logarithms.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs([-1e5, 0.0], [0.0, -1e5])
        >>> f.log_beta(-1e5 - np.log(2)), f.log_beta(-1e5), f.log_beta(-1.0)
        (-0.6931471805615919, -100000.0, -100000.45867514539)
        """
        given = np.asarray(log_alpha)
        if given.dtype.kind == "f":
            # -inf is welcome, which the check of finite numbers would refuse
            array = _validate.real_array("log_alpha", np.where(given == -np.inf, -1.0, given), -np.inf, 0)
            array = np.where(given == -np.inf, -np.inf, array)
        else:
            array = _validate.real_array("log_alpha", log_alpha, -np.inf, 0)
        value = self._interpolate(array.ravel()).reshape(array.shape)
        return value if value.ndim else float(value)

    def _interpolate(self, x: FloatArray) -> FloatArray:
        log_alpha, log_beta = self.knots
        left = np.searchsorted(log_alpha, x, side="right") - 1
        right = np.minimum(left + 1, log_alpha.size - 1)
        on_first, beyond = x == -np.inf, left == right
        inside = ~(on_first | beyond)
        out = np.where(on_first, log_beta[left], -np.inf)
        x, left, right = x[inside], left[inside], right[inside]
        # (alpha_right - alpha) and (alpha - alpha_left), both over alpha_right
        to_right = -np.expm1(x - log_alpha[right])
        from_left = np.exp(x - log_alpha[right]) * -np.expm1(log_alpha[left] - x)
        with np.errstate(divide="ignore"):
            value = np.logaddexp(np.log(to_right) + log_beta[left], np.log(from_left) + log_beta[right])
        # rounding leaves the segment by an ulp at most
        out[inside] = np.clip(value - np.log(to_right + from_left), log_beta[right], log_beta[left])
        return out

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

        Raises
        ------
        ValueError
            If `alpha` lies outside [0, 1] or is empty.
        """
        array = _validate.real_array("alpha", alpha, 0, 1)
        with np.errstate(divide="ignore"):
            value = np.exp(self._interpolate(np.log(array.ravel()))).reshape(array.shape)
        return value if value.ndim else float(value)

    def advantage(self) -> float:
        r"""The most a test gains over guessing, :math:`\max_\alpha 1 - \alpha - f(\alpha)`: the total variation distance.

        Returns
        -------
        float
            In [0, 1]; :math:`\sum_y \max(0, Q(y) - P(y))`, a sum of positive terms. Mass that the curve left out counts in full.
        """
        log_p, log_q = self._atoms
        gains = log_q > log_p
        total = float((np.exp(log_q[gains]) * -np.expm1(log_p[gains] - log_q[gains])).sum())
        return min(1.0, self._lost[1] + total)

    def inverse(self) -> Self:
        r"""Return the trade-off function of the pair in the other order, :math:`T(Q, P)`: the inverse function of f.

        Returns
        -------
        Tradeoff
            The same knots with alpha and beta exchanged.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.tradeoff import Tradeoff
        >>> f = Tradeoff.from_pmfs(np.log([0.9, 0.1]), np.log([0.25, 0.75]))
        >>> round(f.beta(0.1), 12), round(f.inverse().beta(0.25), 12)
        (0.25, 0.1)
        """
        (log_alpha, log_beta), (log_p, log_q) = self.knots, self._atoms
        return self._frozen(
            (log_beta[::-1].copy(), log_alpha[::-1].copy()), (log_q[::-1].copy(), log_p[::-1].copy()), self._lost[::-1]
        )


def _left_out(law: FloatArray, dropped: NDArray[np.bool_]) -> float:
    """Return the mass of the dropped atoms and what the law lacks of 1, where rounding does not explain it."""
    missing = 1 - float(np.exp(law).sum())
    return float(np.exp(law[dropped]).sum()) + (missing if missing > 1e-15 * law.size else 0.0)
