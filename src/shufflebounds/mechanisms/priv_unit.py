"""PrivUnit: a random unit vector that is likely to be close to the user's unit vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPUTED_ERROR, LARGEST_EXPONENT
from shufflebounds._base.scipy_functions import betaincc, betainccinv, betaln
from shufflebounds._base.types import FloatArray
from shufflebounds.mechanisms._vectors import VectorRandomizer
from shufflebounds.mechanisms.oracles._two_level import Others, Shares, TwoLevel

__all__ = ["PrivUnit"]


@with_passages
@dataclass(frozen=True)
class PrivUnit(VectorRandomizer, TwoLevel):
    r"""A random unit vector whose density is :math:`e^{\varepsilon_0}` times larger on the cap around the user's vector.

    .. math:: R_x(y) = \frac{e^{\varepsilon_0 [\langle x, y\rangle \ge \tau]}}{1 + c\,(e^{\varepsilon_0}-1)}, \qquad
        c = \Pr[\langle x, U\rangle \ge \tau], \quad U \text{ uniform}

    The density is that with respect to the uniform distribution on the unit sphere of :math:`\mathbb{R}^d`. The cap is the set
    :math:`\langle x, y\rangle \ge \tau`, and :math:`\langle x, y\rangle` is the height of y.

    Parameters
    ----------
    dimension : int
        d, 2 to 2**20.
    local_eps : float
        Budget :math:`\varepsilon_0` in nats, in (0, 700].
    cap : float, optional
        Measure c of the cap, in [1e-300, 1/2]. The default has the smallest variance at this local budget; for a given guarantee
        after a shuffle a larger cap may be better.

    Notes
    -----
    Neighbours: the unit vector is replaced. Opposite vectors are the worst pair: their caps are disjoint, and an overlap of caps
    would make the variable X of :class:`~shufflebounds.shuffle.Shuffled` smaller in the convex order. :meth:`randomize` draws the
    height of a message by rejection from its exact distribution.

    **Floating point.** The outputs are doubles. As for all real-valued noise, their last bits may reveal more than
    :math:`\delta(\varepsilon)` allows (Mironov 2012, cited in :class:`GaussianMechanism`).

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
        _validate.local_budget_field(self, "local_eps", LARGEST_EXPONENT)
        cap = max(self._best_cap(), 1e-300) if self.cap is None else self.cap
        object.__setattr__(self, "cap", _validate.real("cap", cap, 1e-300, 0.5))

    def _measure(self, height: float) -> float:
        """Return the measure of the cap of vectors with at least this height."""
        return 0.5 * float(betaincc(0.5, (self.dimension - 1) / 2, height * height))

    def _moment(self, height: float) -> float:
        """Return the integral of <x, y> over the cap of the unit vectors y with <x, y> >= `height`."""
        d = self.dimension
        if height >= 1:
            # On the whole cap the height rounds to 1.
            return self._measure(height)
        return math.exp((d - 1) / 2 * math.log1p(-height * height) - float(betaln((d - 1) / 2, 0.5))) / (d - 1)

    def _best_cap(self) -> float:
        """Return the measure c of the cap with the smallest variance."""
        # The mean height of a message is largest at the root in tau of tau (1/(e^eps0 - 1) + c(tau)) - moment(tau), which increases
        # in tau; c(tau) is the measure of the cap, moment(tau) the result of `_moment`.
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
        r"""Smallest height :math:`\tau` in the cap."""
        return math.sqrt(float(betainccinv(0.5, (self.dimension - 1) / 2, 2 * self._c)))

    @property
    def _c(self) -> float:
        assert self.cap is not None
        return self.cap

    def _shares(self) -> Shares:
        return Shares(self._c, 0.0, 1 - 2 * self._c)

    def _others(self) -> tuple[Others, ...]:
        # Caps around orthogonal vectors are disjoint if tau > cos(45 degrees).
        if self.height <= math.sqrt(0.5) * (1 + 1e-12):
            return ()
        c = self._c
        return (Others("every other user has a vector at right angles", (0.0, 0.0, 0.0, c), (c, c, 0.0, 1 - 3 * c)),)

    def _kinds(self) -> tuple[Others, ...] | None:
        # Consider the measures of the intersections of another user's cap with the target's two caps. The distribution of X for
        # this user is an affine function of these two measures. They are nonnegative, and their sum is at most c and at least
        # 3c - 1, since the rest of the sphere has measure 1 - 2c. The kinds of users are the four corners of the set of such pairs.
        # For c <= 1/3 a cap that meets neither of the target's caps would be a kind, and the bound would equal that of the privacy
        # blanket.
        c, beyond = self._c, 1 - 2 * self._c
        # The difference 3c - 1 may cancel, so it is formed exactly.
        overlap = float(3 * Fraction(c) - 1)
        if overlap <= 0:
            return None
        return (
            *self._targets(),
            Others("the caps of the other users meet that of the target's first vector alone",
                   (overlap, 0.0, 0.0, beyond), (beyond, c, 0.0, 0.0)),
            Others("the caps of the other users meet that of the target's second vector alone",
                   (0.0, overlap, 0.0, beyond), (c, beyond, 0.0, 0.0)),
        )

    @property
    def scale(self) -> float:
        lifted = math.exp(self._log_base() + self.local_eps) * -math.expm1(-self.local_eps)
        # The mean height is clipped to [tau, 1], because if 1 - tau is tiny, the rounded quotient may lie outside.
        mean = min(max(self._moment(self.height) / self._c, self.height), 1.0)
        return lifted * self._c * mean

    @property
    def variance(self) -> float:
        r"""Mean squared error of one user's estimate of the vector, :math:`1/\mathrm{scale}^2 - 1`; divided by n for n users."""
        if self.scale < 1e-150:
            raise _validate.InfeasibleError(f"local_eps={self.local_eps:g} is so small that the error of an estimate overflows: "
                                            "choose a larger local budget")
        return max(1 / self.scale**2 - 1, 0.0)

    @property
    def _along(self) -> float:
        """Largest variance of one user's estimate along any direction."""
        d, tau = self.dimension, self.height
        lifted = math.exp(self._log_base() + self.local_eps) * -math.expm1(-self.local_eps)
        # `square` is the mean square of the height <x, y> of a message y: 1/d for a uniform vector, plus a term for the cap.
        square = math.exp(self._log_base()) / d + lifted * 0.5 * float(betaincc(1.5, (d - 1) / 2, tau * tau)) / d
        return max(square / self.scale**2 - 1, (1 - square) / ((d - 1) * self.scale**2), 0.0)

    def error_quantile(self, beta: float, *, users: int) -> float:
        r"""Return a bound that the distance of :meth:`estimate` from the users' mean vector exceeds with probability at most beta.

        .. math:: \min\left(\sqrt{2 v x_2 + (B x_2/3)^2} + \frac{B x_2}{3},\;
            \sqrt{v} + \sqrt{2 x_1 (w + 2 B \sqrt{v}) + (3 B x_1/2)^2} + \frac{3 B x_1}{2}\right), \qquad x_j = \ln\frac{j}{\beta}

        Here v is the mean squared value of this distance, w the largest variance of the estimate along a direction, and
        B = (1/:attr:`scale` + 1)/users.

        Parameters
        ----------
        beta : float
            Probability of a larger error, in (0, 1).
        users : int
            Number n of users, 1 to 2**53.

        Returns
        -------
        float
            An upper bound of the quantile for every dataset: the smaller one of Pinelis' and of Klein and Rio's bound.

        {raises}

        References
        ----------
        Pinelis, I. Optimum bounds for the distributions of martingales in Banach spaces, 1994, Theorem 3.4.

        Klein, T., Rio, E. Concentration around the mean for maxima of empirical processes, 2005, Theorem 1.1 (terms with different
        distributions).

        Examples
        --------
        >>> from shufflebounds.mechanisms import PrivUnit
        >>> print(f"{PrivUnit(dimension=3, local_eps=4.0).error_quantile(0.05, users=10**4):.5f}")
        0.02256
        """
        beta = _validate.failure(beta)
        users = _validate.integer("users", users, 1)
        # Both variances are computed as differences from 1; COMPUTED_ERROR bounds their rounding error.
        variance, largest = (self.variance + COMPUTED_ERROR) / users, (1 / self.scale + 1) / users
        both, one = math.log(2 / beta), math.log(1 / beta)
        pinelis = math.sqrt(2 * variance * both + (largest * both / 3) ** 2) + largest * both / 3
        weak = (self._along + COMPUTED_ERROR) / users + 2 * largest * math.sqrt(variance)
        far = 1.5 * largest * one
        around = math.sqrt(variance) + math.sqrt(2 * one * weak + far * far) + far
        return min(pinelis, around, 1 / self.scale + 1) * (1 + 1e-12)

    def _checked_values(self, values: ArrayLike) -> FloatArray:
        return self._unit_vectors("values", values)

    def _checked_messages(self, messages: ArrayLike) -> FloatArray:
        return self._unit_vectors("messages", messages)

    def _checked_counts(self, counts: ArrayLike, users: int | None) -> tuple[FloatArray, int]:
        sums, users = super()._checked_counts(counts, users)
        if math.hypot(*sums) > users * (1 + 1e-8):
            raise ValueError(f"counts has length {math.hypot(*sums):.6g}: it must be at most {users}, as the sum of users={users} "
                             "unit vectors")
        return sums, users

    def _messages(self, vectors: FloatArray, source: np.random.Generator) -> FloatArray:
        drawn = source.normal(size=vectors.shape)
        in_cap = source.random(len(vectors)) >= math.exp(self._log_base())
        height = self._heights(int(in_cap.sum()), source)
        own = vectors[in_cap]
        across = drawn[in_cap]
        across -= np.einsum("ij,ij->i", across, own)[:, None] * own
        across *= np.sqrt((1 - height) * (1 + height) / np.einsum("ij,ij->i", across, across))[:, None]
        drawn[in_cap] = across + height[:, None] * own
        return np.asarray(drawn / np.sqrt(np.einsum("ij,ij->i", drawn, drawn))[:, None])

    def _heights(self, count: int, source: np.random.Generator) -> FloatArray:
        """Return `count` heights of independent uniform vectors in the cap."""
        d, lowest = self.dimension, self.height
        out = np.empty(count)
        missing = np.arange(count)
        while missing.size:
            # If the cap has a small measure, few uniform vectors lie in it, so heights within the cap are drawn directly.
            if self._c >= 0.1:
                square = source.beta(0.5, (d - 1) / 2, size=missing.size)
                kept = square >= lowest * lowest
                tried = np.sqrt(square)
            else:
                # For the height t, u = 1 - t^2 has the density u^((d-3)/2)/t in the cap. Draw u from the power law and accept it
                # with probability tau/t.
                share = source.random(missing.size) ** (2 / (d - 1))
                tried = np.sqrt(1 - (1 - lowest) * (1 + lowest) * share)
                kept = source.random(missing.size) * tried < lowest
            out[missing[kept]] = tried[kept]
            missing = missing[~kept]
        return out
