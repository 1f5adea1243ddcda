"""PrivUnit: a random direction near the user's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds import _validate
from shufflebounds._docs import with_passages
from shufflebounds._scipy import betaincc, betainccinv, betaln
from shufflebounds._types import FloatArray
from shufflebounds.mechanisms._two_level import Others, Shares, TwoLevel
from shufflebounds.mechanisms._vectors import VectorRandomizer
from shufflebounds.shuffle.clones import MAX_LOCAL_EPS

__all__ = ["PrivUnit"]

_WIDE = 0.1
"""Caps of a larger measure are hit by uniform draws, smaller ones need draws of their own."""

_LOST = 1e-12
"""More than the rounding of a variance that is a difference from 1."""


@with_passages
@dataclass(frozen=True)
class PrivUnit(VectorRandomizer, TwoLevel):
    r"""A unit vector, uniform on the sphere but for the cap around the user's own, likelier by :math:`e^{\varepsilon_0}`.

    .. math:: R_x(y) = \frac{e^{\varepsilon_0 [\langle x, y\rangle \ge \tau]}}{1 + c\,(e^{\varepsilon_0}-1)}, \qquad
        c = \Pr[\langle x, U\rangle \ge \tau], \quad U \text{ uniform}

    with respect to the uniform law on the sphere of :math:`\mathbb{R}^d`.

    Parameters
    ----------
    dimension : int
        d, 2 to 2**20.
    local_eps : float
        Budget :math:`\varepsilon_0` in nats, in (0, 700].
    cap : float, optional
        Measure c of the cap, in [1e-300, 1/2]. By default the c of least variance at this local budget; after a
        shuffle a larger one may be better.

    Notes
    -----
    Neighbours: the unit vector is replaced. Opposite vectors are the worst pair: their caps are disjoint, and where caps meet that
    makes the law of X smaller in the convex order. Drawn by rejection from the exact law of the height :math:`\langle x, y\rangle`.

    **Floating point.** The outputs are doubles; as for all real noise, whoever sees their last bits may tell more.

    References
    ----------
    Bhowmick, A., Duchi, J., Freudiger, J., Kapoor, G., Rogers, R. Protection against reconstruction and its applications in private
    federated learning, 2018, section 4.1.

    Asi, H., Feldman, V., Talwar, K. Optimal algorithms for mean estimation under local differential privacy, 2022 (the best cap).

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds.mechanisms import PrivUnit
    >>> unit = PrivUnit(dimension=3, local_eps=4.0)
    >>> print(f"{unit.cap:.6f} {unit.variance:.6f}")
    0.119203 0.724062
    >>> messages = unit.randomize(np.tile([0.0, 0.0, 1.0], (4000, 1)), rng=1)
    >>> bool(np.abs(unit.estimate(messages) - [0.0, 0.0, 1.0]).max() < 0.05)
    True
    """

    dimension: int
    local_eps: float
    cap: float | None = None

    theorem: ClassVar[str] = "exact for PrivUnit: two opposite caps"
    neighbours: ClassVar[str] = "replace the user's unit vector; the analyst sees the message"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "dimension", 2, 2**20)
        _validate.local_budget_field(self, "local_eps", MAX_LOCAL_EPS)
        cap = max(self._best_cap(), 1e-300) if self.cap is None else self.cap
        object.__setattr__(self, "cap", _validate.real("cap", cap, 1e-300, 0.5))

    def _measure(self, height: float) -> float:
        return 0.5 * float(betaincc(0.5, (self.dimension - 1) / 2, height * height))

    def _moment(self, height: float) -> float:
        """Return the integral of the height over the cap."""
        d = self.dimension
        if height >= 1:
            # the whole cap is a point to doubles
            return self._measure(height)
        return math.exp((d - 1) / 2 * math.log1p(-height * height) - float(betaln((d - 1) / 2, 0.5))) / (d - 1)

    def _best_cap(self) -> float:
        # the mean of the height is largest where tau (1/(E0 - 1) + c) meets the moment; the difference rises in tau
        rest = math.exp(-self.local_eps) / -math.expm1(-self.local_eps)
        low, high = 0.0, 1.0
        for _ in range(80):
            middle = 0.5 * (low + high)
            if middle * (rest + self._measure(middle)) < self._moment(middle):
                low = middle
            else:
                high = middle
        return min(self._measure(low), 0.5)

    @property
    def height(self) -> float:
        r"""Least height :math:`\tau` of the cap."""
        return math.sqrt(float(betainccinv(0.5, (self.dimension - 1) / 2, 2 * self._c)))

    @property
    def _c(self) -> float:
        assert self.cap is not None
        return self.cap

    def _shares(self) -> Shares:
        return Shares(self._c, 0.0, 1 - 2 * self._c)

    def _others(self) -> tuple[Others, ...]:
        # at right angles two caps are disjoint where they are narrower than 45 degrees
        if self.height <= math.sqrt(0.5) * (1 + 1e-12):
            return ()
        c = self._c
        return (Others("all others hold a vector at right angles", (0.0, 0.0, 0.0, c), (c, c, 0.0, 1 - 3 * c)),)

    @property
    def scale(self) -> float:
        lifted = math.exp(self._log_base() + self.local_eps) * -math.expm1(-self.local_eps)
        # a mean height is at least the least and at most 1, which is sharper where 1 - height is mostly rounding
        mean = min(max(self._moment(self.height) / self._c, self.height), 1.0)
        return lifted * self._c * mean

    @property
    def variance(self) -> float:
        r"""Mean squared distance of one user's estimate from the vector, :math:`1/\mathrm{scale}^2 - 1`; 1/n of it for n users."""
        if self.scale < 1e-150:
            raise _validate.InfeasibleError(f"local_eps={self.local_eps:g}: the messages say next to nothing, and the error of an "
                                            "estimate leaves the numbers there are")
        return max(1 / self.scale**2 - 1, 0.0)

    @property
    def _along(self) -> float:
        """Largest variance of one user's estimate along any direction."""
        d, tau = self.dimension, self.height
        lifted = math.exp(self._log_base() + self.local_eps) * -math.expm1(-self.local_eps)
        # mean square of the height: of all vectors 1/d, and what the cap adds
        square = math.exp(self._log_base()) / d + lifted * 0.5 * float(betaincc(1.5, (d - 1) / 2, tau * tau)) / d
        return max(square / self.scale**2 - 1, (1 - square) / ((d - 1) * self.scale**2), 0.0)

    def error_quantile(self, beta: float, users: int) -> float:
        r"""Bound of the distance of :meth:`estimate` from the mean of the users' vectors, exceeded with chance at most `beta`.

        .. math:: \min\left(\sqrt{2 v x_2 + (B x_2/3)^2} + \frac{B x_2}{3},\;
            \sqrt{v} + \sqrt{2 x_1 (w + 2 B \sqrt{v}) + (3 B x_1/2)^2} + \frac{3 B x_1}{2}\right), \qquad x_j = \ln\frac{j}{\beta}

        with the variance v of the estimate, its largest variance w along a direction, and B = (1/scale + 1)/users.

        Parameters
        ----------
        {rare_error}

        Returns
        -------
        float
            An upper bound of the quantile for all data: the lesser of Pinelis' and Klein and Rio's; no lower one is claimed.

        {raises}

        References
        ----------
        Pinelis, I. Optimum bounds for the distributions of martingales in Banach spaces, 1994, Theorem 3.4.

        Klein, T., Rio, E. Concentration around the mean for maxima of empirical processes, 2005, Theorem 1.1 (users may differ).

        Examples
        --------
        >>> from shufflebounds.mechanisms import PrivUnit
        >>> print(f"{PrivUnit(dimension=3, local_eps=4.0).error_quantile(0.05, users=10**4):.5f}")
        0.02256
        """
        beta = _validate.real("beta", beta, 0, 1, open_low=True, open_high=True)
        users = _validate.integer("users", users, 1)
        # differences from 1, charged with what they lost of it
        variance, largest = (self.variance + _LOST) / users, (1 / self.scale + 1) / users
        both, one = math.log(2 / beta), math.log(1 / beta)
        pinelis = math.sqrt(2 * variance * both + (largest * both / 3) ** 2) + largest * both / 3
        weak = (self._along + _LOST) / users + 2 * largest * math.sqrt(variance)
        far = 1.5 * largest * one
        around = math.sqrt(variance) + math.sqrt(2 * one * weak + far * far) + far
        return min(pinelis, around, 1 / self.scale + 1) * (1 + 1e-12)

    def _held(self, values: ArrayLike) -> FloatArray:
        return self._unit_vectors("values", values)

    def _said(self, messages: ArrayLike) -> FloatArray:
        return self._unit_vectors("messages", messages)

    def _messages(self, held: FloatArray, source: np.random.Generator) -> FloatArray:
        drawn = source.normal(size=held.shape)
        speaks = source.random(len(held)) >= math.exp(self._log_base())
        height = self._heights(int(speaks.sum()), source)
        own = held[speaks]
        across = drawn[speaks]
        across -= np.einsum("ij,ij->i", across, own)[:, None] * own
        across *= np.sqrt((1 - height) * (1 + height) / np.einsum("ij,ij->i", across, across))[:, None]
        drawn[speaks] = across + height[:, None] * own
        return np.asarray(drawn / np.sqrt(np.einsum("ij,ij->i", drawn, drawn))[:, None])

    def _heights(self, count: int, source: np.random.Generator) -> FloatArray:
        """Return that many heights of uniform vectors in the cap."""
        d, least = self.dimension, self.height
        out = np.empty(count)
        missing = np.arange(count)
        while missing.size:
            if self._c >= _WIDE:
                square = source.beta(0.5, (d - 1) / 2, size=missing.size)
                kept = square >= least * least
                tried = np.sqrt(square)
            else:
                # 1 - t^2 has nearly a power law in the cap, but for the factor 1/t
                share = source.random(missing.size) ** (2 / (d - 1))
                tried = np.sqrt(1 - (1 - least) * (1 + least) * share)
                kept = source.random(missing.size) * tried < least
            out[missing[kept]] = tried[kept]
            missing = missing[~kept]
        return out
