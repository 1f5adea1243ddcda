r"""An upper bound of delta that is valid for every dataset of a shuffled randomizer, of any number of inputs.

The bound is a main term plus an error term; the proof is in docs/theorems/worst-dataset. The main term is the value of the worst
dataset of n' <= n users, for an analyst who knows which users have which input. The proof draws s pairs of other users at random
and replaces their messages by messages from the average distribution of the dataset. The number s >= 0 is free, and n' = n - 2s
users remain. With E = e^eps and n users, for every dataset

.. math:: \delta \le (1 + 2 c_-)\,\Gamma_{n'} + c_-(E - 1) + \sum_k a_k\, r^{2k} \sqrt{\mu_{2k+1}}\, l_{2k+1}, \qquad
    l_{2k+1}^2 = \frac{(2k+1)!\, V}{(n)_{2k+1}} + \frac{(2k)!\, (E-1)^2}{(n-1)_{2k}}

:math:`\Gamma_{n'}` is the largest :math:`\mathbb{E}(X_1 + \cdots + X_{n'})_+/n'` over the inputs of all users (`largest_sum`).
The target's message has the distribution R_0 or R_1, and R_x that of a user with input x; m is a measure below all R_x, g its total
mass (the privacy blanket), and b = m/g. V is the squared norm of :math:`R_0 - E R_1 + (E-1) b` in L^2(1/m), and r is the radius of
a ball that contains all R_x. The number c_- and the weights a_k follow from s (`pair_weights`).

:math:`\mu_q` is an upper bound of the variance of f, the test that attains delta, if q users send a message drawn from b instead of
their own (an exchanged message). This bound follows from a bound of the probability that f accepts. Without exchanged messages this
probability is :math:`P_0(f) \le \Delta(E')/(1 - E'/E)`, with E' < E and any bound :math:`\Delta` of delta for all datasets. One
more exchanged message raises the probability from P'(f) to at most :math:`P(f) \le F P'(f) + H_F(b \| R_x)`, F >= 1, with the
hockey-stick divergence H_F. Every E' and F gives a valid bound.

The table lists what is rounded or omitted, and which term of the bound covers it. The constants g, r^2 and the tail of the ratios
come from the randomizer, which rounds them up or down (`DatasetLaws`; `matrix` for matrices). Every s, theta, D, eta and limit of
large values gives a valid bound.

===========================================  ========================================  =======================================
rounded or omitted                           charged                                   where
===========================================  ========================================  =======================================
eps above .9 ln SQUARABLE                    the bound at that eps                     `_bound`
outputs that are not among the atoms         their E X_+, added to Gamma (`log_cut`)   `FiniteCases.laws`, `LargestSums.bound`
X whose square overflows, counted as 0       its mean, added to `log_cut`              `largest_sum._squarable`
a, b and the masses of the atoms             `blur`, in all moments; or a up, b down   `FiniteCases.blur`, `widened`
terms of the sum of Lemma H after NODES      phi(theta) for each                       kernel _moments
logarithms of phi                            a bound of their errors                   kernel _moments
X moved up to grid points, merged values     nothing: larger in the convex order       kernel _sum_bound
sums over one or more large X                COMPUTED_ERROR                            kernel _sum_bound
cells that are not divided further           _SLACK of log Gamma, more by _DIVISIONS   `LargestSums.bound`, `_Sum.covered`
pairs without `cases`                        the bound by the privacy blanket          `_computed`, of `others`
distance of the stated from the true R_x     n (1 + E) `lost`                          `_computed`
c_-                                          each number rounded up, 1e-9 for sums     `pair_weights._negative_mass`
a_k, from exact fractions                    8 ulp of the log                          `pair_weights._steps`
orders above ORDERS                          a geometric series, `later`               `_chosen`, `_log_errors`
V                                            1e-13 of both norms, _PADDING of the log  `_log_norm`
V of outputs that are not among the atoms    `cut_norm`                                `_log_norm`
H_F of outputs that are not among the atoms  their E X_+                               `_exchanges`
H_F                                          1e-12 of the log                          `_exchanges`
mu_q                                         _PADDING of the log, twice                `_log_mu`
Delta(E')/(1 - E'/E)                         4 ulp; Delta has its own charges          `_computed`
sum of the error terms                       _PADDING of the log                       `_log_errors`
main term, and its sum with the error terms  8 ulp of the log                          `_log_main`, `_computed`
===========================================  ========================================  =======================================
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.limits import CACHED_ANSWERS, LARGEST_EXPONENT, SQUARABLE
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _moments
from shufflebounds._engines.datasets.cases import DatasetLaws
from shufflebounds._engines.datasets.largest_sum import LargestSums, SumChoices
from shufflebounds._engines.datasets.pair_weights import BLOCK_PAIRS, ORDERS, Weights, bounded_choices, signed_product

__all__ = ["FACTORS", "FEWEST_USERS", "TILTS", "Choices", "WorstDataset"]

FEWEST_USERS = 8
"""Smallest number of users for which the bound is used. For fewer users, too few users remain after the pairs are removed (module
docstring). Raised: less tight bounds of few users. Lowered: longer run time, without a smaller bound."""

_PADDING = 1e-9
"""Relative increase of the error term, which exceeds the rounding error of its sums."""

_LITTLE = math.log(1e-6)
"""Log of the fraction of the main term below which the error term is accepted without a bound of the probability of the test.
Raised: a larger bound. Lowered: longer run time."""

_SMALLER, _GAIN = 3.0, 2e-3
"""If error terms that are smaller by a factor e^_SMALLER would reduce the bound of log delta by more than _GAIN, the probability of
the test is bounded not only by the privacy blanket, but also by the bound at a smaller eps. _GAIN raised: a larger bound. Lowered:
longer run time."""

_TIMES = np.arange(3.0, 2 * ORDERS + 2, 2)
"""The number 2k + 1 of exchanged messages for each order k."""

_NEAR = -20.0
"""First estimate of log delta, from which the truncated mass of the noise follows. Every value gives a valid bound."""

FACTORS = 0.75 * np.arange(1.0, 9.0)
"""Values of ln F that are tried, in units of the standard deviation of the mean of 1/g - R_x/m over n users."""

TILTS = np.array([0.25, 0.5, 1.0])
"""Numbers t. For ln F equal to z standard deviations of the mean (FACTORS), theta = z + t is tried, in inverse standard deviations
of the sum over all users."""


class _Chosen(NamedTuple):
    """Choices of the number s of pairs and of the weights.

    Attributes
    ----------
    places : ndarray
        Index of s in `WorstDataset._pairs`.
    signed : ndarray
        The mass c_- of the negative part of W (`pair_weights`).
    log_steps : ndarray
        Logs of the weights a_k of the error term.
    later : ndarray
        Bound of the sum of the error terms of orders above ORDERS, divided by the term of order ORDERS, both with mu = 1/4.
    """

    places: NDArray[np.intp]
    signed: FloatArray
    log_steps: FloatArray
    later: FloatArray
    weights: tuple[Weights, ...]


class _Found(NamedTuple):
    """An upper bound of log delta, and the choices that gave it: the weights, the index of s in `WorstDataset._pairs`, and E'.

    The probability that the best test accepts is bounded by means of an upper bound Delta(E') of the divergence at an E' in [1,
    e^eps) (docs/theorems/worst-dataset). `before` is ln E', or NaN if this probability is not bounded. If `twice`, Delta is the
    smaller of the privacy blanket and the bound over all datasets, otherwise Delta is the privacy blanket.
    """

    log_delta: float
    weights: Weights
    place: int
    before: float
    twice: bool


class Choices(NamedTuple):
    """The choices on which the bound at one eps depends: `weights`, and `sums` for Lemma H. Other choices give valid bounds, too.

    `before` is ln E', as in `_Found`. Delta(E') is a bound by the privacy blanket, with the choices `blanket`, or the bound over
    all datasets, with the choices `earlier` (None if that bound is not used).
    """

    eps: float
    weights: Weights
    sums: SumChoices
    before: float
    blanket: SumChoices | None
    earlier: Choices | None


class WorstDataset:
    """The upper bound over all datasets and all pairs of the target's inputs.

    The number n = `users` includes the target.
    """

    def __init__(self, data: DatasetLaws, users: int) -> None:
        self._data, self._users = data, users
        self._known: Kept[tuple[float, bool, bool, bool, float], _Found] = Kept(CACHED_ANSWERS)
        self._blanket_known: Kept[float, float] = Kept(CACHED_ANSWERS)
        self._chosen_known: Kept[tuple[int, ...], _Chosen] = Kept(CACHED_ANSWERS)
        self._sums_known: Kept[tuple[float, bool], LargestSums] = Kept(2)

    # ------------------------------------------------------------------------------------------------ the randomizer's constants

    @cached_property
    def _choices(self) -> tuple[Weights, ...]:
        """The choices of s, c_- and the weights that are evaluated at every eps; the first has s = 0."""
        most = (self._users - 3) // 2  # the term of order k needs 2k + 1 users
        first = np.full(ORDERS, -np.inf)
        first[0] = 0.0
        out = [Weights(0, 0.0, first), *bounded_choices(self._data.local_eps, most)]
        fewest = out[1].pairs if len(out) > 1 else math.inf
        if fewest > 1:
            out += [signed_product(pairs, signed) for pairs, signed in self._data.signed if pairs <= most and pairs < fewest]
        return tuple(self._convergent(out))

    def _convergent(self, choices: list[Weights]) -> list[Weights]:
        """Return the choices for which a geometric series of ratio at most 1/2 bounds the error terms of orders above ORDERS."""
        return [choice for choice in choices if 2 * choice.later * self._data.distance <= self._users - 2 * choice.pairs - 2]

    @cached_property
    def _blocks(self) -> tuple[int, ...]:
        """The numbers s of drawn pairs for which the proof may match the drawn users in blocks of four."""
        if self._data.blocks is None:
            return ()
        return tuple(pairs for pairs in BLOCK_PAIRS if self._users - 2 * pairs >= max(self._data.blocks.fewest, 3 + 2 * ORDERS))

    @cached_property
    def _pairs(self) -> tuple[int, ...]:
        """All numbers s of pairs, increasing from 0."""
        return tuple(sorted({*(choice.pairs for choice in self._choices), *self._blocks}))

    def _blocks_near(self, eps: float, log_gamma: float) -> tuple[int, ...]:
        """Return the s of `_blocks` that probably give the smallest bounds: those with c_- (E - 1) near 40 Gamma_n/n."""
        blocks = self._data.blocks
        if blocks is None or not self._blocks:
            return ()
        log_most = math.log(40 / self._users) + log_gamma - (math.log(math.expm1(eps)) if eps > 0 else -math.inf)
        most = math.exp(min(log_most, 0.0))
        place = bisect_left(self._blocks, -most, key=lambda pairs: -blocks.rough(pairs))
        return self._blocks[max(place - 1, 0) : place + 2]

    def _chosen(self, blocks: tuple[int, ...]) -> _Chosen:
        """Return the choices of `_choices`, and for each s in `blocks` the choice that matches users in blocks of four."""

        def made() -> _Chosen:
            assert self._data.blocks is not None or not blocks
            choices = [*self._choices]
            if self._data.blocks is not None:
                choices += self._convergent([signed_product(pairs, self._data.blocks.bound(pairs)) for pairs in blocks])
            pairs = np.array([choice.pairs for choice in choices])
            ratios = np.array([choice.later for choice in choices]) * self._data.distance / (self._users - 2 * pairs - 2)
            return _Chosen(np.searchsorted(self._pairs, pairs), np.array([choice.signed for choice in choices]),
                           np.array([choice.log_steps for choice in choices]), ratios / (1 - ratios), tuple(choices))

        return self._chosen_known.of(blocks, made)

    def _log_norm(self, eps: float) -> float:
        """Return an upper bound of log V, the log of the squared norm of R_0 - E R_1 + (E - 1) b in L^2(1/m) (module docstring)."""
        shift = math.expm1(eps) * math.exp(-self._data.log_minorant)
        laws = self._data.blankets.laws(eps, -math.inf)
        both = laws.mass * np.stack([laws.values + shift, np.abs(laws.values) + shift]) ** 2
        norms, sizes = np.add.reduceat(both, laws.starts[:-1], axis=1)
        # The second term covers the rounding errors where the two parts cancel.
        largest = float((np.sqrt(norms) + 1e-13 * np.sqrt(sizes)).max())
        # `cut_norm` bounds the integral of (R_0^2 + R_1^2)/m over the truncated outputs. At these outputs |R_0 - E R_1| is at most
        # E (R_0^2 + R_1^2)^(1/2), and (E - 1) b = (E - 1) m/g with m <= R_0.
        if self._data.cut_norm > 0:
            largest += math.sqrt(self._data.cut_norm) * (math.exp(eps) + shift)
        return 2 * math.log(largest) + _PADDING if largest > 0 else -math.inf

    @cached_property
    def _exchanges(self) -> tuple[FloatArray, FloatArray]:
        """Trial values of ln F, and for each an upper bound of log H_F(b || R_x) for every input x (module docstring).

        H_F is at most E S_+/n, where S is the sum of the X of n users, with a distribution of `DatasetLaws.ratios` at eps = ln F.
        Chernoff's bound E S_+ <= E e^(theta S)/(e theta) is used at the best of a few theta.
        """
        users, ratios, move = self._users, self._data.ratios, 4 * ULP - self._data.log_minorant
        cases = replace(ratios, log_a=ratios.log_a + move, cuts=tuple((cut + move, cut_b) for cut, cut_b in ratios.cuts))
        deviation = math.sqrt(self._data.ratios.variance / users)
        steps = FACTORS * deviation
        steps, bounds = steps[(steps > 0) & (steps < 3)], []
        for step in steps.tolist():
            laws, thetas = cases.laws(step, 0.0), (step / deviation**2 + TILTS / deviation) / users
            logs = _moments.log_moments(laws.values, laws.log_mass, laws.starts, thetas, 1.0, 0, cases.blur)[0][:, :, 0]
            chernoff = float((users * logs - np.log(thetas)).min(axis=1).max()) - 1 - math.log(users)
            bounds.append(float(np.logaddexp(chernoff, laws.log_cut)) + 1e-12 * (1 + abs(chernoff)))
        return steps, np.array(bounds)

    # ---------------------------------------------------------------------------------------------------------- the error term

    def _log_mu(self, log_prob: float, orders: FloatArray) -> FloatArray:
        """Return log mu_q for each number q of exchanged messages.

        `log_prob` is the log of an upper bound of the probability that the best test accepts; if it is inf, mu_q = 1/4 is used.
        """
        log_f, log_h = self._exchanges if log_prob < 0 else (np.empty(0), np.empty(0))
        if not log_f.size:
            return np.full(orders.shape, -math.log(4))
        # In the module docstring, q exchanged messages give the bound F^q P_0(f) + (1 + F + ... + F^(q-1)) H_F. The factor of H_F
        # is F^q (1 - F^-q)/(F - 1).
        grown = log_f[:, None] * orders
        sums = log_h[:, None] + np.log(-np.expm1(-grown)) - np.log(np.expm1(log_f))[:, None]
        values = np.minimum((grown + np.logaddexp(log_prob, sums)).min(axis=0) + _PADDING, -math.log(2))
        return np.asarray(values + np.log1p(-np.exp(values)) + _PADDING)

    @cached_property
    def _log_factors(self) -> tuple[FloatArray, FloatArray]:
        """Logs of the factors of V and of (E - 1)^2 in r^4k l_(2k+1)^2 (module docstring), k = 1..ORDERS; inf for too few users."""
        k, terms = np.arange(1, ORDERS + 1), np.arange(2.0 * ORDERS + 2)
        with np.errstate(divide="ignore"):
            factorial, falling = (np.cumsum(np.log(x)) for x in (np.maximum(terms, 1.0), np.maximum(self._users - terms, 0.0)))
            radii = 2 * k * np.log(self._data.distance)
        # (n)_j is the falling factorial n (n - 1) ... (n - j + 1), so that (n - 1)_(2k) = (n)_(2k+1)/n.
        return radii + factorial[2 * k + 1] - falling[2 * k], radii + factorial[2 * k] - falling[2 * k] + math.log(self._users)

    def _log_norms(self, eps: float) -> FloatArray:
        """Return the logs of r^2k l_(2k+1) (module docstring) for k = 1..ORDERS; inf for orders that need more users."""
        first, second = self._log_factors
        less = math.log(math.expm1(eps)) if eps > 1e-300 else -690.0
        return np.asarray(0.5 * np.logaddexp(first + self._log_norm(eps), second + 2 * less))

    def _log_errors(self, chosen: _Chosen, log_norms: FloatArray, log_prob: float) -> FloatArray:
        """Return the log of the error term for each of the choices.

        `log_prob` is the log of an upper bound of the probability that the best test accepts.
        """
        steps, later = chosen.log_steps, chosen.later
        orders = 0.5 * self._log_mu(log_prob, _TIMES) + log_norms
        with np.errstate(invalid="ignore"):
            parts = np.where(steps > -np.inf, steps + orders, -np.inf)
        if later.any():
            # The error term of order k is |omega_(k-1) - omega_k| r^2k sqrt(mu) l_(2k+1). With mu = 1/4, the term of order k + 1 is
            # at most the term of order k times two factors: `later`/(2k + 3) bounds the ratio of the two |omega_(k-1) - omega_k|,
            # and (2k + 3) r^2/(n - 2k - 2) the ratio of the two r^2k l_(2k+1).
            last = np.where(later > 0, steps[:, -1] + log_norms[-1] + np.log(0.5 * later + 1e-300), -np.inf)
            parts = np.append(parts, last[:, None], axis=1)
        return np.asarray(np.logaddexp.reduce(parts, axis=1) + _PADDING)

    def _less(self, eps: float, log_delta: float, shared: bool) -> float:
        """Return eps - eps' > 0 for the eps' where an upper bound of delta gives one of the probability that the best test accepts.

        If `shared`, eps' is rounded, so that neighbouring eps have the same eps'.
        """
        # Any eps' < eps gives a valid bound. The choice eps - `less` nearly minimizes the bound if delta decreases as for Gaussian
        # noise.
        fall = self.approximate_log_delta(0.0) - max(log_delta, -LARGEST_EXPONENT)
        less = eps / max(2 * fall, 1.5)
        if shared:
            # eps' is rounded down to a multiple of a power of two between less/4 and less/2, so `less` grows by at most one half.
            grid = 2.0 ** (math.floor(math.log2(less)) - 1)
            less = max(eps - grid * math.floor((eps - less) / grid), less)
        return less

    def log_blanket(self, eps: float) -> float:
        """Return an upper bound of log delta by the privacy blanket."""
        eps = min(eps, 0.9 * math.log(SQUARABLE))
        return self._blanket_known.of(eps, lambda: min(0.0, self._blanket_sums(eps).bound()))

    def _blanket_sums(self, eps: float) -> LargestSums:
        return LargestSums(self._data.blankets, eps, [self._users], _NEAR)

    # --------------------------------------------------------------------------------------------------------------- the bound

    def log_delta(self, eps: float, *, every: bool = True, shared: bool = False, ceiling: float = 0.0) -> float:
        """Return an upper bound of log delta for every dataset and every pair of the target's inputs.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.
        every : bool
            False for the value without the pairs and inputs that are rarely the worst (`Cases.cells`). This value is an
            approximation, not a bound, and takes less time.
        shared : bool
            True if the bound is evaluated at many neighbouring eps. Parts of the computation are then shared, which makes the bound
            slightly larger.
        ceiling : float
            An upper bound from elsewhere. The result may be 0, in less time, if it would not be smaller than this bound.

        Returns
        -------
        float
            At most 0.
        """
        return 0.0 if self._users < FEWEST_USERS else self._bound(eps, every or not self.has_cells, True, shared, ceiling)

    def least_log_delta(self, eps: float, near: float, enough: float) -> float:
        """Return about the smallest value that :meth:`log_delta` may have; `near` is an estimate of log delta.

        The probability that the best test accepts is replaced by the smallest value that its bound could have. If the result is at
        most `enough`, some choices that would decrease the result further may be omitted.
        """
        eps = min(eps, 0.9 * math.log(SQUARABLE))
        gamma, log_prob, norms = self._least_gamma(eps, near), -math.inf, self._log_norms(eps)
        if eps >= 1 / SQUARABLE:
            less = self._less(eps, gamma, False)
            log_prob = min(0.0, self._least_gamma(eps - less, near) - math.log(-math.expm1(-less)))

        def smallest(blocks: tuple[int, ...]) -> float:
            chosen = self._chosen(blocks)
            main = self._log_main(eps, np.full(chosen.places.shape, gamma), chosen)
            return float(np.logaddexp(main, self._log_errors(chosen, norms, log_prob)).min())

        value = smallest(())
        return value if value <= enough else smallest(self._blocks_near(eps, gamma))

    def _least_gamma(self, eps: float, near: float) -> float:
        r"""Return a lower bound of log Gamma_n (module docstring), or -inf; `near` is an estimate of log delta.

        The lower bound is close to the bound by the privacy blanket where a single rare message dominates delta. For every c, the
        events that X_i > c for user i and X_j <= c for all other users j are disjoint. So by Jensen's inequality

        .. math:: \frac{\mathbb{E} S_+}{n} \ge (1 - p)^{n-1}\,
            \mathbb{E}\bigl[(X + (n - 1)\,\mathbb{E}[X \mid X \le c])_+;\ X > c\bigr], \qquad p = \Pr[X > c].
        """
        laws, others = self._data.cases.laws(eps, near - 12), self._users - 1
        starts, sizes, first = laws.starts[:-1], np.diff(laws.starts), laws.mass * laws.values
        means = np.add.reduceat(first, starts)
        large = laws.values > np.repeat(np.maximum(-others * means, 0.0), sizes)
        rare, gain = (np.add.reduceat(np.where(large, one, 0.0), starts) for one in (laws.mass, first))
        rare = np.minimum(rare, 1 - 1e-9)
        parts = np.maximum(laws.values + np.repeat(others * (means - gain) / (1 - rare), sizes), 0.0)
        with np.errstate(divide="ignore"):
            lower = np.log(np.add.reduceat(np.where(large, laws.mass * parts, 0.0), starts)) + others * np.log1p(-rare)
        return float(lower.max())

    def approximate_log_delta(self, eps: float) -> float:
        """Return an approximation of :meth:`log_delta`, in a few microseconds, as if the sum of the X were normal."""
        deviation = math.sqrt(self._users * self._data.cases.variance)
        z = self._users * math.expm1(min(eps, LARGEST_EXPONENT)) / deviation
        # For a standard normal Z, E(Z - z)_+ is approximated by the density at z divided by 1 + 1.25 z + z^2. The exact value is 1
        # to 1.19 times this approximation.
        return min(0.0, math.log(deviation / self._users) - 0.5 * z * z - math.log(math.sqrt(2 * math.pi) * (1 + 1.25 * z + z * z)))

    @cached_property
    def has_cells(self) -> bool:
        """Whether some pairs and inputs are bounded in cells, so that one value may take a second."""
        return bool(self._data.cases.cells())

    @property
    def listed(self) -> bool:
        """Whether the bound follows from distributions with finitely many atoms and from :meth:`choices`."""
        data = self._data
        return not self.has_cells and data.blocks is None and data.others is None and data.lost == 0 and data.cut_norm == 0

    def _bound(self, eps: float, every: bool, refined: bool, shared: bool, ceiling: float) -> float:
        """Return the upper bound of log delta.

        The probability that the best test accepts is bounded by the privacy blanket at a smaller eps. If `refined`, it is also
        bounded by :meth:`_bound` at the smaller eps, with `refined` = False.
        """
        # At larger eps, squares of X would overflow. Since delta does not increase with eps, the bound at 0.9 log(SQUARABLE) is
        # valid for all larger eps.
        eps = min(eps, 0.9 * math.log(SQUARABLE))
        return self._found(eps, every, refined, shared, ceiling).log_delta

    def _found(self, eps: float, every: bool, refined: bool, shared: bool, ceiling: float = 0.0) -> _Found:
        # `ceiling`, a bound that is already known, only saves time in the search over cells.
        ceiling = ceiling if every and self.has_cells else 0.0
        key = eps, every, refined, shared, ceiling
        return self._known.of(key, lambda: self._computed(*key))

    def _sums(self, eps: float, coarse: bool) -> LargestSums:
        def made() -> LargestSums:
            return LargestSums(self._data.cases, eps, [self._users - 2 * s for s in self._pairs], _NEAR, coarse)

        # With cells, the bound (`every`) and the approximation without cells use the same `LargestSums`.
        return self._sums_known.of((eps, coarse), made) if self.has_cells else made()

    def choices(self, eps: float, refined: bool = True) -> Choices:
        """Return the bound and the choices of :meth:`log_delta` at one eps, for distributions without cells.

        Without `refined`, the probability that the best test accepts is bounded by the privacy blanket only.
        """
        answer = self._found(min(eps, 0.9 * math.log(SQUARABLE)), True, refined, False)
        before, blanket, earlier = answer.before, None, None
        if before >= 0:
            blanket = self._blanket_sums(before).choices()
            earlier = self.choices(before, False) if answer.twice else None
        return Choices(eps, answer.weights, self._sums(eps, not refined).choices(answer.place), before, blanket, earlier)

    def _computed(self, eps: float, every: bool, refined: bool, shared: bool, ceiling: float) -> _Found:
        users, sums = self._users, self._sums(eps, shared or not refined)
        logs = sums.approximations()
        chosen = self._chosen(self._blocks_near(eps, float(logs[0])))
        gammas = self._log_main(eps, logs[chosen.places], chosen)
        log_gamma, norms = float(gammas[0]), self._log_norms(eps)
        errors = self._log_errors(chosen, norms, math.inf)
        before, twice = math.nan, False
        if errors[0] > log_gamma + _LITTLE and eps > 0:
            log_prob = 0.0
            if eps >= 1 / SQUARABLE:
                less = self._less(eps, log_gamma, shared)
                before, rise = eps - less, math.log(-math.expm1(-less))
                blanket = self.log_blanket(before)
                log_prob = min(0.0, blanket - rise + 4 * ULP)
            errors = self._log_errors(chosen, norms, log_prob)
            more, less_error = (float(np.logaddexp(gammas, errors - fall).min()) for fall in (0.0, _SMALLER))
            if refined and before >= 0 and more - less_error > _GAIN:
                twice = True
                log_prob = min(log_prob, self._bound(before, every, False, shared, blanket) - rise + 4 * ULP)
                errors = np.minimum(errors, self._log_errors(chosen, norms, log_prob))
        best = int(np.logaddexp(gammas, errors).argmin())
        place = int(chosen.places[best])

        def whole(gamma: float) -> float:
            return float(np.logaddexp(self._log_main(eps, np.full(gammas.shape, gamma), chosen)[best], errors[best])) + 8 * ULP

        total = whole(sums.bound(place, every=every, rest=whole(-math.inf), most=ceiling))
        if self._data.others is not None:
            total = max(total, LargestSums(self._data.others, eps, [users], _NEAR).bound())
        if self._data.lost > 0:
            more = math.log(users * self._data.lost) + float(np.logaddexp(0.0, eps))
            total = float(np.logaddexp(total, more)) + 8 * ULP * (1 + abs(more))
        return _Found(min(0.0, total), chosen.weights[best], place, before, twice)

    def _log_main(self, eps: float, log_gammas: FloatArray, chosen: _Chosen) -> FloatArray:
        """Return the log of the main term (1 + 2 c_-) Gamma + c_- (E - 1) (module docstring) for each choice."""
        with np.errstate(divide="ignore"):
            value = np.logaddexp(log_gammas + np.log1p(2 * chosen.signed), np.log(chosen.signed * math.expm1(eps)))
        return np.where(value > -np.inf, value + 8 * ULP * (1 + np.abs(np.maximum(value, -SQUARABLE))), value)
