r"""An upper bound of delta over every dataset of users with different randomizers: theorem w of docs/theorems/weighted-labels.

The users other than the target are numbered i = 2, ..., n, and R_i is the distribution of user i's message. The target's message
has the distribution R_0 or R_1; d = R_0 - e^eps R_1. In the proof every message has a label, and the target takes label i with a
probability proportional to a weight v_i. The likelihood ratio is then a weighted mean, and with
:math:`X_i = (d/R_i)(Y), Y \sim R_i`, the main term of the bound is

.. math:: \max \frac1{V}\, \mathbb{E}\Bigl(\sum_i v_i X_i\Bigr)_+, \qquad V = \sum_i v_i.

The maximum is over the inputs of all users. The users of a group have the same randomizer and the same weight: the inverse of the
largest variance of their X at eps = 0. For bits with the flip probability q_i = 1 - p_i this weight is proportional to p_i q_i.
With exponents :math:`\alpha_i` of sum 1, Hoelder's inequality separates the users, so that each input is chosen by itself:

.. math:: \log \mathbb{E}(\textstyle\sum_i v_i X_i)_+ \le \sum_i \alpha_i \max_x \log \frac{D}{2\pi} \sum_m w_m \rho_m
    |\varphi_{i,x}(z_m)|^{1/\alpha_i}, \qquad z_m = \theta + i m D,
    \quad w_m = \frac{e^{\eta^2 (\theta^2 - m^2 D^2)/2}}{\theta^2 + m^2 D^2} .

phi_(i,x) is the moment generating function of :math:`v_i X_i` for the input x. The factor :math:`\rho_m` accounts for the users
whom the proof removes from the sum, and for the one user of whom it adds a second copy. The inequality is an equality if all
:math:`|\varphi_i|^{1/\alpha_i}` are proportional, which is nearly the case if alpha_i is proportional to the variance of the
exponentially tilted term.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import COMPUTED_ERROR, LOG_TINY, MANY
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _moments
from shufflebounds._core._binomial import binom_logpmf
from shufflebounds._engines.bits.record_tests import log_of_ones
from shufflebounds._engines.datasets.cases import FiniteCases
from shufflebounds._engines.datasets.largest_sum import NODES, SMOOTHING, SPREAD
from shufflebounds._losses.budget import log_odds

__all__ = ["Norms", "WeightedLabels"]

_GROUPS = 200
"""Largest number of different budgets. If there are more, budgets are rounded up, which can only increase delta. Raised: longer run
time, in proportion. Lowered: a larger bound, by about 0.2 % of eps for 100."""

_TILTS = np.exp(np.linspace(-3.0, 4.0, 48))
"""Values of theta (module docstring) that are tried, in inverse standard deviations of the sum; a finer grid around the best one
follows."""

_STEEPEST = 300.0
"""Largest product of theta and X. Every theta gives a valid bound; at the best theta the product is far smaller."""

_POWERS = 1.0, 0.75, 0.5, 0.25, 0.0
"""Powers of the weights that are tried until the number of pairs to draw is small enough. Every choice gives a valid bound."""

_FEWEST, _LARGEST = 16, 12.0
"""Smallest number of users, and largest budget and eps, for which the bound is evaluated; outside this range the bound is about
1."""

_MOST_PAIRS = 512
"""Largest number s of drawn pairs. Budgets of at most 2, 4 and 6 need s = 2, 6 and 18. Raised: a bound for larger budgets, too."""


class Norms(NamedTuple):
    """Norms in L^2(1/b), for a probability distribution b of messages with g_i b <= R_i for every user i (`WeightedLabels`).

    `distance` is the largest sum over a < j of pi_a pi_j |R_a - R_j|^2, over weights pi of sum 1; `square` is the squared norm of
    R_0 - b and of R_1 - b; and `product` is the scalar product of R_0 - b and R_1 - b.
    """

    distance: float
    square: float
    product: float


@dataclass(frozen=True, eq=False)
class WeightedLabels:
    """The bound for one target and every choice of the other users' inputs.

    Parameters
    ----------
    counts : ndarray
        Number of users of each group.
    cases : FiniteCases
        The distributions of X for the inputs of the first group, then of the second one, and so on.
    firsts : ndarray
        Index of the first distribution of each group.
    spread : ndarray
        For each pair of groups the largest (t - 1)^2/t over the likelihood ratios t of their messages.
    blanket : ndarray
        For each group a mass g_i with g_i b <= R_i, for one probability distribution b.
    norms : Norms
        Norms of the distributions of the messages.
    offered : bool
        Whether there are enough users and the bound is not 1.
    """

    counts: FloatArray
    cases: FiniteCases
    firsts: NDArray[np.intp]
    spread: FloatArray
    blanket: FloatArray
    norms: Norms
    offered: bool

    @classmethod
    def of_bits(cls, target: float, budgets: FloatArray, counts: FloatArray) -> WeightedLabels:
        """Return the bound for a target with the budget `target`; `counts` are the numbers of other users with each of `budgets`.

        The budgets increase, and no count is 0.
        """
        others = int(counts.sum())
        if budgets.size > _GROUPS:
            edges = np.linspace(budgets[0], budgets[-1], _GROUPS + 1)[1:]
            starts = np.append(0, np.searchsorted(budgets, edges[:-1], side="right"))
            held = np.diff(starts, append=budgets.size) > 0
            budgets, counts = edges[held], np.add.reduceat(counts, starts[held])
        flip, keep = np.exp(-budgets) / (1 + np.exp(-budgets)), 1 / (1 + np.exp(-budgets))
        lost, left = math.exp(-target) / (1 + math.exp(-target)), 1 / (1 + math.exp(-target))
        # The users' bits 0 and 1 and the two messages; b is uniform.
        logs = np.stack([-np.log1p(np.exp(-budgets)), -np.log1p(np.exp(-budgets)) - budgets], 1)
        logs = np.stack([logs, logs[:, ::-1]], 1).reshape(-1, 2)
        own = np.array([-math.log1p(math.exp(-target)), -math.log1p(math.exp(-target)) - target])
        cases = FiniteCases.widened(logs, own - logs, own[::-1] - logs, 4 * ULP)
        gap = left - lost
        return cls(
            counts, cases, 2 * np.arange(counts.size),
            np.outer(1 / keep, 1 / flip) * (keep[:, None] - flip) ** 2, 2 * flip,
            Norms((float(keep.max()) - float(flip.min())) ** 2, gap * gap, -gap * gap),
            others + 1 >= _FEWEST and math.exp(-_LARGEST) < min(lost, float(flip.min())) and lost < 0.5,
        )

    @classmethod
    def of_records(cls, others: int, fakes: int, bins: int, flip: float) -> WeightedLabels | None:
        """Return the bound if `others` users send records and `fakes` uniform dummies are added, or None if the bound is 1.

        A record has one bit for each bin, 1 in the bin of its value and 0 elsewhere, each flipped independently with probability
        `flip`. A dummy is the record of a uniform value. b is the distribution of a record whose bits are all 0 before the flips.
        """
        if not (others and fakes and others + fakes + 1 >= _FEWEST and bins <= MANY and math.exp(-_LARGEST / 2) < flip < 0.5):
            return None
        odds, rest = log_odds(flip).above, bins - 2

        # The three bins are the target's first bin, its second bin, and another bin; a, b and c are the bits of a record in them,
        # after the flips. `own` is the bit in the user's own bin. Relative to a record whose bits are all 0 before the flips, the
        # likelihood ratio of a user's record is (1 - q)/q if `own` is 1, and q/(1 - q) if it is 0, with q = `flip`.
        bits = np.array([0.0, 1.0])
        a, b, c = (x.ravel() for x in np.meshgrid(bits, bits, bits, indexing="ij"))
        parts = []
        for own in (a, b, c)[: 2 + (rest > 0)]:
            parts.append((log_of_ones(a + b + c, 3, flip) + (2 * own - 1) * odds, 2 * (a - own) * odds, 2 * (b - own) * odds))
        # A dummy is the record of a value in one of the d = `bins` bins, each with probability 1/d. If T bits of the flipped record
        # are 1, its likelihood ratio, relative to a record whose bits are all 0 before the flips, is (T (1 - q)/q + (d - T) q/(1 -
        # q))/d.
        a, b, t = (x.ravel() for x in np.meshgrid(bits, bits, np.arange(rest + 1.0), indexing="ij"))
        ones = a + b + t
        ratio = np.log((ones * math.exp(odds) + (bins - ones) * math.exp(-odds)) / bins)
        # Masses below TINY are raised to TINY, because subnormal numbers have no relative accuracy. As the tilt times X is at most
        # _STEEPEST, a raised mass adds at most TINY e^_STEEPEST to the moment generating function.
        log_mass = np.maximum(log_of_ones(a + b, 2, flip) + binom_logpmf(t, rest, flip) + ratio, LOG_TINY)
        parts.append((log_mass, (2 * a - 1) * odds - ratio, (2 * b - 1) * odds - ratio))
        mass, first, second = (np.concatenate([part[i] for part in parts])[None, :] for i in range(3))
        starts = np.concatenate([[0], np.cumsum([part[0].size for part in parts])])
        # The errors of the masses are those of sums of `bins` log probabilities.
        wide = FiniteCases.widened(mass, first, second, ULP * (64 + 8 * bins))
        cases = FiniteCases(wide.log_mass, wide.log_a, wide.log_b, starts, error=wide.error)
        # The likelihood ratio of two users, or of a user and a dummy, is largest where the bit in the user's own bin is 0 and all
        # others are 1.
        larger = math.expm1(2 * odds)
        users, mixed = (x * x / (1 + x) for x in (larger, larger * (bins - 1) / bins))
        norm = (1 - 2 * flip) ** 2 / (flip * (1 - flip))
        return cls(np.array([others, fakes], dtype=np.float64), cases, np.array([0, len(parts) - 1]),
                   np.array([[users, mixed], [mixed, 0.0]]), np.full(2, flip / (1 - flip)), Norms(norm, norm, 0.0), True)

    @property
    def _users(self) -> int:
        """Number of users, including the target."""
        return int(self.counts.sum()) + 1

    @cached_property
    def _weight(self) -> FloatArray:
        """The weight of each group, scaled so that the weights of all other users sum to their number."""
        laws = self.cases.laws(0.0, 0.0)
        hidden = 1 / np.maximum.reduceat(np.add.reduceat(laws.mass * laws.values**2, laws.starts[:-1]), self.firsts)
        candidates = []
        for power in _POWERS:
            weight = (hidden / hidden.max()) ** power
            candidates.append(np.asarray(weight * ((self._users - 1) / float(self.counts @ weight))))
            if self._drawn(candidates[-1]):
                return candidates[-1]
        return candidates[0]

    @cached_property
    def _total(self) -> float:
        """V, the sum of the weights of the other users."""
        return float(self.counts @ self._weight)

    def _left(self, pairs: int) -> float:
        """Return a lower bound of the sum of the weights of the users who remain if any 2 `pairs` users are removed."""
        return self._total - 2 * pairs * float(self._weight.max())

    def _drawn(self, weight: FloatArray) -> int:
        r"""Return the smallest number s >= 1 of drawn pairs for which the proof has no negative probability; 0 if s is too large.

        The condition is, for all users a and j, that beta_aj is at most t/(t - 1)^2, where t is the largest likelihood ratio of
        their messages and :math:`\beta_{aj} \le v_a v_j (n-1-2s)(n-2-2s)/(2 s V_-^2)`. Here v_a is the weight of user a, and V_-
        the sum of the weights of the users who remain (`_left`).
        """
        most = float((np.outer(weight, weight) * self.spread).max()) * (1 + COMPUTED_ERROR)
        total, largest = float(self.counts @ weight), float(weight.max())
        for pairs in range(1, _MOST_PAIRS + 1):
            left, others = total - 2 * pairs * largest, self._users - 1 - 2 * pairs
            if others < 3 or not left > 0:
                break
            if most * others * (others - 1) <= 2 * pairs * left * left:
                return pairs
        return 0

    @cached_property
    def _choices(self) -> tuple[int, ...]:
        """The values of s, the number of drawn pairs, for which the bound is evaluated."""
        return tuple(sorted({0, self._drawn(self._weight)}))

    def _log_error(self, eps: float, pairs: int) -> float:
        """Return the log of the error term for s = `pairs`, with 1/4 as the bound mu of the variance of the test."""
        n, more = self._users, math.expm1(eps)
        orders = np.arange(2, pairs + 2) if pairs else np.array([1])
        # The term of order k needs n >= 2k + 2 users, and the largest order is s + 1.
        if n - 2 * int(orders[-1]) - 1 < 1:
            return math.inf
        # g is a lower bound of the mean of the masses g_i (`blanket`) over the users who remain, if the 2k users with the largest
        # masses are removed, where k is the largest order.
        masses = np.repeat(self.blanket, np.minimum(self.counts, 2 * orders[-1]).astype(np.intp))
        removed = float(np.sort(masses)[::-1][: 2 * int(orders[-1])].sum())
        g = (float(self.counts @ self.blanket) - removed) / (n - 1 - 2 * int(orders[-1])) * (1 - COMPUTED_ERROR)
        if not g > 0:
            return math.inf
        # `norm` is the squared norm of R_0 - E R_1 + (E - 1) b in L^2(1/(g b)), with E = e^eps.
        norm = (self.norms.square * (1 + (1 + more) ** 2) - 2 * (1 + more) * self.norms.product) / g
        log_norm = math.log(norm) if norm > 0 else -math.inf
        ratio = (self._total / self._left(pairs)) ** 2 * self.norms.distance / g
        if not ratio > 0:
            return -math.inf
        # A_k, and the logs of the falling factorials (n)_(2k+1) and (n-1)_(2k).
        steps = np.arange(1.0, orders[-1] + 1)
        log_choices = np.cumsum(np.log(np.maximum(pairs + 1 - steps, 1.0) / steps))
        falling = np.cumsum(np.log(n - np.arange(2.0 * orders[-1] + 1)))[2 * orders]
        factorial = np.cumsum(np.log(np.arange(1.0, 2 * orders[-1] + 2)))
        k = orders.astype(np.float64)
        weights = np.zeros(k.size)
        if pairs:
            last = np.where(orders <= pairs, log_choices[np.minimum(orders, pairs) - 1] - k * math.log(pairs), -np.inf)
            weights = np.logaddexp(last, log_choices[orders - 2] - (k - 1) * math.log(pairs))
        first = factorial[2 * orders] + log_norm - falling
        second = factorial[2 * orders - 1] + 2 * (math.log(more) if more > 0 else -math.inf) - falling + math.log(n)
        terms = weights + k * math.log(ratio) - math.log(2) + 0.5 * np.logaddexp(first, second)
        # 1e-9 exceeds the rounding of the sums of logarithms.
        return float(np.logaddexp.reduce(terms)) + 1e-9

    def _log_main(self, eps: float) -> list[float]:
        """Return the log of the main term for each number of pairs."""
        laws, counts, blur = self.cases.laws(eps, 0.0), self.counts, self.cases.blur
        sizes = np.diff(np.append(self.firsts, laws.starts.size - 1))
        values = laws.values * np.repeat(np.repeat(self._weight, sizes), np.diff(laws.starts)) * (1 + 4 * ULP)
        squares = np.add.reduceat(laws.mass * values**2, laws.starts[:-1])
        variance = float(counts @ np.maximum.reduceat(squares, self.firsts))
        smoothing, step = SMOOTHING * variance, 2 * math.pi / (SPREAD * math.sqrt(variance))

        def moments(thetas: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
            return _moments.log_moments(values, laws.log_mass, laws.starts, thetas, step, nodes, blur)

        def tilted(thetas: FloatArray) -> float:
            real = np.maximum.reduceat(moments(thetas, 0)[0][:, :, 0], self.firsts)
            return float(thetas[np.argmin(counts @ real - 2 * np.log(thetas) + 0.5 * smoothing * thetas**2)])

        top = _STEEPEST / float(np.abs(values).max())
        theta = tilted(np.minimum(_TILTS / math.sqrt(variance), top))
        theta = tilted(np.minimum(theta * np.exp(np.linspace(-0.16, 0.16, 49)), top))
        logs, smallest = (np.ascontiguousarray(side[:, 0]) for side in moments(np.array([theta]), NODES))
        groups = np.split(logs, self.firsts[1:])
        fall = np.array([float(group[i, 0] - group[i, 1]) for group in groups for i in [int(group[:, 0].argmax())]])
        fall = np.maximum(fall, 1e-3 * float(fall.max()))
        alpha = fall / float(counts @ fall)
        terms = []
        for pairs in self._choices:
            # `moved` is the log of a bound of rho_m (module docstring): at node m the factors of 2s drawn users leave the product,
            # and the factor of one user occurs twice.
            moved = logs.max(0) - 2 * pairs * smallest.min(0) if pairs else logs.max(0)
            each = [float(_moments.log_contour(group, np.array([1 / share]), theta, step, smoothing, moved).max())
                    for group, share in zip(groups, alpha.tolist())]
            total = float(counts @ (alpha * np.array(each))) - math.log(self._left(pairs) + float(self._weight.min()))
            terms.append(total + COMPUTED_ERROR * (1 + abs(total)))
        return terms

    def log_delta(self, eps: float) -> float:
        """Return the upper bound of log delta at eps, at most 0; it is 0 unless every g_i (`blanket`) is positive."""
        if not self.offered or not 0 <= eps < _LARGEST or not (self.blanket > 0).all():
            return 0.0
        parts = [np.logaddexp(main, self._log_error(eps, pairs)) for main, pairs in zip(self._log_main(eps), self._choices)]
        # For few users a bound of a moment generating function may be 0, which makes the part of this number s NaN. Such an s is
        # skipped.
        return min([0.0, *(float(part) for part in parts if not math.isnan(part))])
