r"""An upper bound of delta that is valid for every dataset of a shuffled randomizer, of any number of inputs.

Its main term is the value of the worst dataset of fewer users, if the analyst knows which users have which input; an error term is
added. The proof is in docs/theorems/worst-dataset. The proof draws s pairs of other users at random and replaces their messages by
messages from the average distribution of the dataset. The number s >= 0 is free, and n' = n - 2s users remain. With E = e^eps and n
users, for every dataset

.. math:: \delta \le (1 + 2 c_-)\,\Gamma_{n'} + c_-(E - 1) + \sum_k a_k\, r^{2k} \sqrt{\mu_{2k+1}}\, l_{2k+1}, \qquad
    l_{2k+1}^2 = \frac{(2k+1)!\, V}{(n)_{2k+1}} + \frac{(2k)!\, (E-1)^2}{(n-1)_{2k}}

:math:`\Gamma_{n'}` is the largest :math:`\mathbb{E}(X_1 + \cdots + X_{n'})_+/n'` over the numbers of users with each input
(`_compositions`). The target's message has the distribution R_0 or R_1, and R_x that of a user with input x; m is the pointwise
minimum of all R_x, g its total mass (the privacy blanket), and b = m/g. V is the squared norm of :math:`R_0 - E R_1 + (E-1) b` in
L^2(1/m), and r is the radius of a ball that contains all R_x. The number c_- is the negative mass of a signed measure in the proof
(the signed part). There are three choices of the weights a_k (`_Choice`):

    one error term   s = 0, a_1 = 1, for every randomizer; of order n^(-3/2)
    product          a_k = C(s, k-1)/s^(k-1) - C(s, k)/s^k for k = 2, ..., s + 1, where cosh(eps0) <= 1 + s; of order n^(-5/2)
    second order     a_3 = 1, where (s - 1 + q)^2 <= 4 s (s - 1 - q) with q = (cosh(eps0) - 1)^2/cosh(eps0); of order n^(-7/2)

Under these conditions c_- = 0. With a smaller s, or without a local budget, c_- is positive. It is small if few messages have a
likelihood ratio above 1 + s (for the product), or above A = 1 + a with (s - 2 + a)^2 = 4 s (s - 1 - a) (for the second order).

:math:`\mu_q` is a bound of the variance of the best test f if q users send a message drawn from b instead of their own. It follows
from a bound of the probability of f. Without exchanged messages this is :math:`P_0(f) \le \Delta(E')/(1 - E'/E)` with E' < E and
any bound :math:`\Delta` over all datasets. If one more message is exchanged, the probability rises from P'(f) to at most
:math:`P(f) \le F P'(f) + H_F(b \| R_x)`, F >= 1. Every s, E' and F gives a valid bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shufflebounds._cached import cached_property
from shufflebounds._limits import CACHED_ANSWERS, CACHED_TABLES, SAME_LOG, SEARCH_GAP, SQUARABLE, TABLE_SIZE
from shufflebounds._types import ULP, FloatArray
from shufflebounds.composing.kept import Kept
from shufflebounds.shuffle._compositions import Compositions, without_rare_gains
from shufflebounds.shuffle._excess import excesses
from shufflebounds.shuffle.dataset_laws import DatasetLaws
from shufflebounds.shuffle.laws import ExcessLaw

__all__ = ["FEWEST_USERS", "WorstDataset", "WorstPair"]

FEWEST_USERS = 8
"""Smallest number of users for which the bound is used. The proof draws pairs of users, and from fewer users too few would
remain."""

_PADDING = 1e-9
"""Relative increase of the error term, more than the rounding of its sums."""

_ROUGH_TOLERANCE = 0.2
"""Tolerance, in log delta, of a search whose bound is used only for the probability of a test. The square root of this probability
enters the error term. Raised: a larger error term. Lowered: longer run time."""

_LITTLE = 1e-4
"""If the error term is below this fraction of the main term, only s = 0 is tried, because s > 0 reduces only the error term. Rare
outputs with a large X are added separately if they contribute less than this fraction."""

_RATIO = 0.08
"""Step, in log eps, of the grid of eps = ln E' at which the bound Delta(E') of the module docstring is computed. A step twice as
large adds about 20 % to the error term."""

_EXCEEDED = np.geomspace(1 / 32, 32.0, 81)
"""Values of w at which Pr[likelihood ratio > A (1 + w)] is bounded, to bound c_-. Twice as many values reduce c_- by 6 to 8 %."""

_PAIRS = (*range(1, 9), *range(10, 21, 2), 23, 27, 31, 35, 40, 45, 52, 60, 70, 80, 95, 110, 130, 150, 200, 300, 450, 700, 1000)
"""Numbers s of drawn pairs that are tried with a signed part, c_- > 0."""

_Listed = tuple[list[tuple[FloatArray, FloatArray]], list[float], float]


def _grid(place: int) -> float:
    """Return the eps of the grid point with index `place`; the grid is even in log eps."""
    return math.exp(place * _RATIO)


@dataclass(frozen=True, eq=False)
class _Choice:
    """A choice of the free quantities: s drawn pairs, the mass c_-, and the orders k and the logs of the weights a_k.

    If `ratio` is positive, more orders follow, whose terms fall at least by this ratio each, if mu is replaced by 1/4.
    """

    pairs: int
    signed: float
    orders: NDArray[np.intp]
    log_weights: FloatArray
    ratio: float = 0.0


def _product(pairs: int, signed: float, ratio: float = 0.0) -> _Choice:
    """Return the choice "product" of the weights a_k (module docstring) with s = `pairs`, with at most 64 orders if `ratio` > 0."""
    s, last = pairs, min(pairs, 64) if ratio else pairs
    k, i = np.arange(2, last + 2), np.arange(1.0, last + 1)
    # a_k = C(s, k-1)/s^(k-1) (1 - (s - k + 1)/(k s)), where the last factor is (k - 1)(s + 1)/(k s).
    log_choices = np.cumsum(np.log1p((1 - i) / s) - np.log(i))
    return _Choice(s, signed, k, np.asarray(log_choices + np.log((k - 1) * (s + 1) / (k * s))), ratio if last < s else 0.0)


def _second_order(pairs: int, signed: float) -> _Choice:
    """Return the choice "second order" of the weights a_k (module docstring) with s = `pairs`."""
    return _Choice(pairs, signed, np.array([3]), np.zeros(1))


class WorstDataset:
    """The upper bound over all datasets for one ordered pair of the target's inputs.

    Parameters
    ----------
    data : DatasetLaws
        The distributions of the randomizer for all inputs of the other users.
    users : int
        Number n of users, including the target.
    """

    def __init__(self, data: DatasetLaws, users: int) -> None:
        self._blanket, self._data, self._users = data.blanket, data, users
        self._known: Kept[tuple[float, float, bool], float] = Kept(CACHED_ANSWERS)
        self._blanket_sides: Kept[float, float] = Kept(CACHED_ANSWERS)
        self._table: Kept[int, float] = Kept(math.inf)
        self._alike: Kept[tuple[float, int], float] = Kept(CACHED_ANSWERS)
        self._widest_kinds: Kept[float, tuple[int, float]] = Kept(CACHED_ANSWERS)
        self._listed: Kept[float, _Listed] = Kept(CACHED_TABLES)

    # ------------------------------------------------------------------------------------------------ the randomizer's constants

    @cached_property
    def _choices(self) -> tuple[_Choice, ...]:
        """The choices of s, c_- and a_k for which the bound is evaluated, by increasing s."""
        # The term of order k needs 2k + 1 users.
        most = (self._users - 3) // 2
        if most < 0:
            return ()
        pure = self._pure_pairs
        out = [_Choice(0, 0.0, np.array([1]), np.zeros(1))]
        if pure[0] <= most:
            # The ratio of the terms of orders k + 1 and k > 64, with mu = 1/4, is at most a_(k+1)/a_k r^2 times the root of
            # (2k+3) (2k+2)/((n-2k-1) (n-2k-2)), and a_(k+1)/a_k is at most (1 + 1/(k^2-1))/k. As k <= s, the denominator is at
            # least (n-2s-2)^2, and the root of (2k+3) (2k+2) is at most 2.04 k.
            ratio = 2.1 * self._data.distance / (self._users - 2 * int(pure[0]) - 2)
            # With a larger ratio and more orders than a table has, the choice is not tried. Every set of choices is valid.
            if ratio <= 0.5 or pure[0] <= TABLE_SIZE:
                out.append(_product(int(pure[0]), 0.0, ratio if ratio <= 0.5 else 0.0))
        if pure[1] <= most:
            out.append(_second_order(int(pure[1]), 0.0))
        for pairs in _PAIRS:
            if pairs > most:
                break
            # c_- (E - 1) is added to delta, so numbers of pairs with a larger c_- are rarely the best.
            for made, least, signed_part in zip((_product, _second_order), pure, (self._signed_product, self._signed_second)):
                if pairs < least and (signed := signed_part(pairs)) < 0.1:
                    out.append(made(pairs, signed))
        return tuple(sorted(out, key=lambda choice: choice.pairs))

    @cached_property
    def _pure_pairs(self) -> tuple[float, float]:
        """The smallest s with c_- = 0, for the choices "product" and "second order" of the weights; inf if there is none."""
        if not self._data.local_eps < 36:
            return math.inf, math.inf
        half = math.sinh(0.5 * self._data.local_eps * (1 + 8 * ULP))
        less = 2 * half * half * (1 + 16 * ULP)
        q = less * less / (1 + less)
        return max(1, math.ceil(less)), max(2, 1 + math.ceil((3 * q - 2 + 2 * math.sqrt(3 * q * q + 1)) / 3 * (1 + 16 * ULP)))

    def _signed_product(self, pairs: int) -> float:
        """Return an upper bound of c_- for the choice "product" with `pairs` drawn pairs."""
        # The negative part of the measure of one drawn pair has at most the mass nu = F/s, F as in `_both_large`, and
        # c_- = ((1 + 2 nu)^s - 1)/2.
        return 0.5 * math.expm1(pairs * math.log1p(2 * self._both_large(1.0 + pairs)[1] / pairs)) * (1 + _PADDING)

    def _signed_second(self, pairs: int) -> float:
        """Return an upper bound of c_- for the choice "second order" with `pairs` drawn pairs."""
        s = pairs
        height = 1 - (3 * s - 2) + math.sqrt(12.0 * s * (s - 1))
        if height <= 1:
            return math.inf
        height *= 1 - 1e-12
        # An upper bound of 2 Q sum over k = 1, 2 of gamma^k (k u^(k-1) + (s - k) u^k/A), as gamma < 1/2 and u <= 4; Q as in
        # `_both_large`.
        both = self._both_large(height)[0]
        return 2 * both * (0.5 * (1 + 4 * (s - 1) / height) + 0.25 * (8 + 16 * (s - 2) / height)) * (1 + _PADDING)

    def _both_large(self, height: float) -> tuple[float, float]:
        r"""Return upper bounds of two quantities Q and F from which c_- is bounded; `height` is A.

        Two independent messages of users with one input a have the likelihood ratios r = A (1 + w) and r' = A (1 + w') of R_a to
        R_j, the distribution for another input j. Q is the probability that w and w' are positive and :math:`w w' > 1 - 1/A^2`. F
        is the expectation of the positive part of :math:`(w w' - 1 + 1/A^2)/((1 + w)(1 + w'))` for positive w and w'. Both
        functions increase in w and w'. So an upper bound is their expectation for two independent variables W with
        :math:`\Pr[W > w]` equal to the bound `ratio_tail` at A (1 + w), with W rounded up to the next number of _EXCEEDED.
        """
        beyond = self._data.ratio_tail(height * (1 + np.concatenate([[0.0], _EXCEEDED])))
        mass = -np.diff(beyond, append=0.0)
        least = (height - 1) * (height + 1) / height**2 * (1 - 8 * ULP)
        w = np.append(_EXCEEDED, np.inf)[:, None]
        with np.errstate(invalid="ignore"):
            excess = w * w.T - least
            # The entry for w = w' = inf is NaN here and replaced by its limit 1 below.
            share = excess / ((1 + w) * (1 + w.T)) + 8 * ULP
        # The entries with w = inf or w' = inf are replaced by their limits.
        share[-1, :-1] = share[:-1, -1] = _EXCEEDED / (1 + _EXCEEDED)
        share[-1, -1] = 1.0
        # The second term covers rounding errors of the thresholds, and of `excess` where it is close to 0.
        mass = np.maximum(mass, 0.0) + 4 * ULP * beyond[0]
        tables = (excess > 0).astype(np.float64), np.where(excess > 0, share, 0.0)
        probability, expectation = (float(mass @ table @ mass) * (1 + _PADDING) for table in tables)
        return probability, expectation

    @cached_property
    def _atoms(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The masses under m and the logarithms of R_0/m and R_1/m, without outputs at which R_0 and R_1 are both 0."""
        log_mass, log_a, log_b = self._blanket._distinct
        seen = (log_a > -np.inf) | (log_b > -np.inf)
        return np.exp(log_mass[seen]), log_a[seen], log_b[seen]

    def _log_norm(self, eps: float) -> float:
        """Return an upper bound of log V, with V as in the module docstring."""
        mass, log_a, log_b = self._atoms
        shift = math.expm1(eps) * math.exp(-self._data.log_minorant)
        values = excesses(log_a, log_b, eps)
        size = math.sqrt(float(mass @ (np.abs(values) + shift) ** 2))
        # The second term covers the rounding errors where `values` and `shift` cancel.
        norm = math.sqrt(float(mass @ (values + shift) ** 2)) + 1e-13 * size
        return 2 * math.log(norm) + _PADDING if norm > 0 else -math.inf

    @cached_property
    def _exchanges(self) -> tuple[FloatArray, FloatArray]:
        """Trial values of ln F, and for each the largest log H_F(b || R_x) over the inputs x (module docstring).

        As R_x is at least `share` times a mixture M of the kinds, H_F(b || R_x) is at most H_G(b || M), G = F times `share`.
        """
        log_g, users = self._data.log_minorant, self._users
        laws = [
            replace(law, log_a=law.log_a - log_g, log_cut=law.log_cut - log_g).widened(upper=True)
            for law in self._data.heights
        ]
        variance = max(law.spread(0.0) for law in laws)
        # The trial values of ln F are multiples of half the standard deviation of the mean of 1/g - R_x/m over n users.
        steps = np.arange(1.0, 13.0) * 0.5 * math.sqrt(variance / users)
        steps = steps[(steps > 0) & (steps < 3)]
        values = [max(law.rough_log_phi(f, users).upper for law in laws) for f in steps.tolist()]
        return steps - math.log(self._data.share), np.array(values)

    # ---------------------------------------------------------------------------------------------------------- the error term

    def _log_mu(self, log_prob: float, orders: NDArray[np.intp]) -> FloatArray:
        """Return log mu_q for each number q of exchanged messages.

        `log_prob` is the log of an upper bound of the probability of the best test.
        """
        log_f, log_h = self._exchanges
        if not log_f.size:
            return np.full(orders.shape, -math.log(4))
        # 1 + F + ... + F^(q-1) = F^q (1 - F^-q)/(F - 1)
        grown = log_f[:, None] * orders
        sums = log_h[:, None] + np.log(-np.expm1(-grown)) - np.log(np.expm1(log_f))[:, None]
        values = np.minimum((grown + np.logaddexp(log_prob, sums)).min(axis=0) + _PADDING, -math.log(2))
        return np.asarray(values + np.log1p(-np.exp(values)) + _PADDING)

    def _log_error(self, eps: float, choice: _Choice, log_prob: float) -> float:
        """Return the log of the error term, the sum over k in the module docstring.

        `log_prob` is the log of an upper bound of the probability of the best test.
        """
        if not self._data.distance > 0:
            return -math.inf
        k, n = choice.orders, self._users
        most = 2 * int(k[-1]) + 2
        factorial = np.cumsum(np.log(np.maximum(np.arange(float(most)), 1.0)))
        # There are enough users for all orders, so factors that are clipped to 1 here are not used.
        falling = np.cumsum(np.log(np.maximum(n - np.arange(float(most)), 1.0)))
        less = math.log(math.expm1(eps)) if eps > 0 else -math.inf
        first = factorial[2 * k + 1] + self._log_norm(eps) - falling[2 * k]
        # (n - 1)_(2k) = (n)_(2k+1)/n
        second = factorial[2 * k] + 2 * less - (falling[2 * k] - math.log(n))
        norms, factors = np.logaddexp(first, second), choice.log_weights + k * math.log(self._data.distance)
        total = float(np.logaddexp.reduce(factors + 0.5 * (self._log_mu(log_prob, 2 * k + 1) + norms)))
        if choice.ratio:
            rest = factors[-1] + 0.5 * norms[-1] + math.log(0.5 * choice.ratio / (1 - choice.ratio))
            total = float(np.logaddexp(total, rest))
        return total + _PADDING

    def _log_probability(self, eps: float) -> float:
        """Return an upper bound of the log probability of the best test at eps, from the blanket at one smaller eps."""
        if eps < 1 / SQUARABLE:
            return 0.0
        # Any eps' < eps gives a valid bound. The choice eps - `less` nearly minimizes it if delta decreases as for Gaussian noise.
        less = eps / max(-2 * self.rough_blanket(eps), 1.5)
        return min(0.0, self.rough_blanket(eps - less) - math.log(-math.expm1(-less)) + 4 * ULP)

    def _tabled_probability(self, eps: float, above: int) -> float:
        """Return an upper bound of the log probability of the best test at eps, from the bounds at grid values below `above`."""
        best = 0.0
        # At most 40 grid values are compared.
        for place in range(above - 1, above - 1 - 40, -1):
            point = _grid(place)
            log_delta = self._tabled(place)
            value = log_delta - math.log(-math.expm1(point - eps)) + 4 * ULP
            best = min(best, value)
            # Every grid value gives a valid bound. The bounds decrease to a minimum and then increase, apart from variations below
            # 0.1 that come from the tolerance of the searches. So the minimum is found once a bound exceeds it by 0.1.
            if log_delta >= self._start or value > best + 0.1:
                break
        return best

    @cached_property
    def _start(self) -> float:
        """The log delta above which the bound by the privacy blanket is used; for smaller delta the grid values are computed."""
        # For delta above e^-3 the bound of this module is no smaller than that by the privacy blanket.
        return min(-3.0, self.rough_blanket(0.0) - 1.0)

    def _tabled(self, place: int) -> float:
        """Return the bound of log delta at one value of the grid.

        The probability of the test is bounded by the privacy blanket if the error term is small with this bound, otherwise by the
        bounds at smaller values of the grid.
        """
        first = place
        # The table is filled from small to large eps, so that the calls do not nest.
        while first not in self._table and not self._begins(first):
            first -= 1
        for at in range(first, place + 1):
            if at not in self._table:
                point = _grid(at)
                self._table[at] = self._formed_bound(point, self._tabled_probability(point, at), _ROUGH_TOLERANCE)
        return self._table[place]

    def _begins(self, place: int) -> bool:
        """Return whether the bound at this grid point does not depend on bounds at smaller eps; if so, store it in the table."""
        point = _grid(place)
        value = self.rough_blanket(point)
        if value < self._start:
            log_prob = self._log_probability(point)
            choice, alike, error = self._best_choice(point, log_prob)
            if error > self._gamma(point, choice, alike) + math.log(_ROUGH_TOLERANCE):
                return False
            value = self._formed_bound(point, log_prob, _ROUGH_TOLERANCE)
        self._table[place] = value
        return True

    def rough_blanket(self, eps: float) -> float:
        """Return the upper bound of log delta by the privacy blanket."""
        return self._blanket_sides.of(eps, lambda: min(0.0, self._blanket.rough_log_phi(eps, self._users).upper))

    # --------------------------------------------------------------------------------------------------------------- the bound

    def _sums(self, eps: float, pairs: int) -> tuple[Compositions, float]:
        """Return the sums over n' = n - 2 `pairs` users, and the log of the contribution of truncated outputs to delta."""
        laws, gains, cut = self._listed.of(eps, lambda: self._formed(eps))
        return Compositions(laws[:-1], laws[-1], gains, self._users - 2 * pairs, self._slack), cut

    @cached_property
    def _laws(self) -> tuple[ExcessLaw, ...]:
        # R_x of an input that is not one of the kinds is at least `share` times a mixture of the R_j of the kinds (`DatasetLaws`).
        # So the bound is valid for these inputs if X is computed with `share` times R_j and `share` times m.
        return tuple(law.lowered(self._data.share) for law in (*(law for _, law in self._data.others), self._blanket))

    @cached_property
    def _slack(self) -> float:
        return max(law._slack for law in self._laws)

    def _formed(self, eps: float) -> _Listed:
        """Return the values and log masses of X for each kind and for the blanket, and what the omitted outputs contribute.

        The contributions are log E X_+ over the rare outputs dropped from each distribution, and the log of the contribution of
        truncated outputs to delta.
        """
        atoms = [law._distinct for law in self._laws]
        laws = [(excesses(log_a, log_b, eps), log_mass) for log_mass, log_a, log_b in atoms]
        cuts = [(np.asarray(law.log_cut), np.asarray(law.log_cut_b)) for law in self._laws[:-1]]
        gain = max(float(np.maximum(excesses(*cut, eps), 0.0).sum()) for cut in cuts) * (1 + 8 * ULP)
        gains = [-math.inf] * len(laws)
        largest = [float(values.max()) for values, _ in laws]
        # Large values take the kernel long. The largest are dropped while they contribute less than _LITTLE of the answer to E X_+;
        # their E X_+ is added to the bound.
        if max(largest) > 100.0:
            # The kind with the smallest largest value gives an estimate of the answer in short time.
            light = Compositions([laws[int(np.argmin(largest[:-1]))]], laws[-1], gains, self._users, self._slack).alike(0)
            parts = [without_rare_gains(*law, light + math.log(_LITTLE) - math.log(self._users)) for law in laws]
            laws, gains = [law for law, _ in parts], [part for _, part in parts]
        return laws, gains, math.log(gain) if gain > 0 else -math.inf

    def log_delta(self, eps: float, ceiling: float = math.inf, *, enough: float = -math.inf, search: bool = True) -> float:
        """Return an upper bound of log delta for every dataset: that of this module or that of the blanket, whichever is smaller.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.
        ceiling : float
            Another upper bound of log delta at eps. If the bound of this module cannot be smaller, that of the blanket is returned.
        enough : float
            The largest bound of other pairs of inputs. The search ends when this bound is reached: a smaller one is not needed.
        search : bool
            False for the value without the search over compositions. It is an approximation, not a bound, and takes less time.

        Returns
        -------
        float
        """
        return self._known.of((eps, enough, search), lambda: self._with_lost(eps, self._log_delta(eps, ceiling, enough, search)))

    def _with_lost(self, eps: float, log_delta: float) -> float:
        """Return the bound for the exact randomizer, given `log_delta` of the randomizer that was computed.

        The distributions of a message of the two randomizers differ by at most `lost` in total variation, for instance by a
        truncated tail.
        """
        lost = self._data.lost * self._users
        if lost > 0:
            log_delta = float(np.logaddexp(log_delta, math.log(lost) + math.log1p(math.exp(eps)))) + 8 * ULP
        return min(0.0, log_delta)

    def _log_delta(self, eps: float, ceiling: float, enough: float, search: bool) -> float:
        blanket = self.rough_blanket(eps)
        if self._users < FEWEST_USERS or not self._choices or blanket == -math.inf or self._attains(eps, min(blanket, ceiling)):
            return blanket
        log_prob = self._log_probability(eps)
        choice, alike, error = self._best_choice(eps, log_prob)
        if self._gamma(eps, choice, alike) >= min(blanket, ceiling):
            return blanket
        if eps >= 1 / SQUARABLE and error > self._gamma(eps, choice, alike) + math.log(3 * SEARCH_GAP):
            above = math.ceil(math.log(eps) / _RATIO)
            log_prob = min(log_prob, self._tabled_probability(eps, above - (_grid(above - 1) >= eps)))
        return self._formed_bound(eps, log_prob, 3 * SEARCH_GAP, enough, search)

    def _formed_bound(self, eps: float, log_prob: float, tolerance: float, enough: float = -math.inf, search: bool = True) -> float:
        """Return the bound of the module docstring for log delta, given an upper bound `log_prob` of the log probability of the
        test.

        The search over the numbers of users with each input ends if its bound exceeds the largest known value by at most
        `tolerance`, or is at most `enough`.
        """
        blanket = self.rough_blanket(eps)
        choice, alike, error = self._best_choice(eps, log_prob)
        known = float(np.logaddexp(self._gamma(eps, choice, alike), error))
        if known >= blanket:
            return blanket
        # The error term and the drawn pairs leave a gap to the largest delta. A search with a tolerance below 3 % of this gap would
        # take longer and lower the bound by less than 3 % of the gap.
        without_pairs = self._choices[0]
        tolerance = max(tolerance, 0.03 * (known - self._gamma(eps, without_pairs, self._all_alike(eps, without_pairs.pairs))))
        if enough > known:
            # The bound remains at most `enough` if log Gamma rises by this much, because its other terms do not rise with Gamma.
            tolerance = max(tolerance, enough + math.log1p(-math.exp(error - enough)) - self._gamma(eps, choice, alike))
        # One search evaluates at most 3000 compositions.
        largest = self._sums(eps, choice.pairs)[0].largest(alike, tolerance, 3000) if search else alike + tolerance
        return min(blanket, float(np.logaddexp(self._gamma(eps, choice, largest), error)) + 8 * ULP)

    def _gamma(self, eps: float, choice: _Choice, log_sum: float) -> float:
        """Return log((1 + 2 c_-) Gamma + c_- (E - 1)), where `log_sum` is the log of n' Gamma without the truncated outputs."""
        left = self._users - 2 * choice.pairs
        cut = self._listed.of(eps, lambda: self._formed(eps))[2]
        value = float(np.logaddexp(log_sum - math.log(left) * (1 - 4 * ULP), cut)) + 8 * ULP
        if choice.signed > 0:
            value = float(np.logaddexp(value + math.log1p(2 * choice.signed), math.log(choice.signed * math.expm1(eps) + 1e-300)))
        return value + 8 * ULP * (1 + abs(value))

    def _best_choice(self, eps: float, log_prob: float) -> tuple[_Choice, float, float]:
        """Return the entry of `_choices` that is used, and for it the log of n' Gamma and the log of the error term.

        It is the entry with the smallest bound for the dataset in which all users have the same input. For the selection, log Gamma
        is assumed to be linear in the number of pairs; the returned values are computed without this assumption.
        """
        none, most = self._choices[0], self._choices[-1]
        first = self._all_alike(eps, none.pairs)
        error = self._log_error(eps, none, log_prob)
        if len(self._choices) == 1 or error < self._gamma(eps, none, first) + math.log(_LITTLE):
            return none, first, error
        slope = (self._all_alike(eps, most.pairs) - first) / most.pairs
        best = float(np.logaddexp(self._gamma(eps, none, first), error)), none, error
        for choice in self._choices[1:]:
            gamma = self._gamma(eps, choice, first + slope * choice.pairs)
            if gamma >= best[0]:
                continue
            error = self._log_error(eps, choice, log_prob)
            total = float(np.logaddexp(gamma, error))
            if total < best[0]:
                best = total, choice, error
        _, choice, error = best
        return choice, self._all_alike(eps, choice.pairs), error

    def _all_alike(self, eps: float, pairs: int) -> float:
        """Return log(n' Gamma) for the dataset in which all users have one input, that of `_widest`."""
        kind, value = self._widest(eps)
        return self._alike.of((eps, pairs), lambda: self._sums(eps, pairs)[0].alike(kind)) if pairs else value

    def _widest(self, eps: float) -> tuple[int, float]:
        """Return the index of the input (kind) for which E S_+ is largest if all n users have it, and then log(n Gamma)."""
        return self._widest_kinds.of(eps, lambda: self._sums(eps, 0)[0].widest())

    def _attains(self, eps: float, log_delta: float) -> bool:
        """Return whether one dataset of equal users alone makes the bound of this module at least `log_delta`.

        Then neither the error term nor a search is computed. This only decides which bound is returned, so it need not be exact.
        """
        return self._gamma(eps, self._choices[0], self._widest(eps)[1]) >= log_delta - SAME_LOG


class WorstPair:
    """The largest upper bound over all datasets of several ordered pairs of the target's inputs.

    Parameters
    ----------
    data : DatasetLaws
        The data of one pair, with those of the other pairs as its `rivals`.
    users : int
        Number of users, including the target.
    """

    def __init__(self, data: DatasetLaws, users: int) -> None:
        self._pairs = [WorstDataset(one, users) for one in (data, *data.rivals)]

    def rough_blanket(self, eps: float) -> float:
        """Return the largest upper bound of log delta by the privacy blanket."""
        return max(pair.rough_blanket(eps) for pair in self._pairs)

    def log_delta(self, eps: float, ceiling: float = math.inf, *, enough: float = -math.inf, search: bool = True) -> float:
        """Return an upper bound of log delta for every dataset and pair; the arguments are those of :class:`WorstDataset`."""
        # A pair whose blanket bound is at most the bound of another pair cannot increase the maximum.
        largest = -math.inf
        for blanket, pair in sorted(((pair.rough_blanket(eps), pair) for pair in self._pairs), key=lambda one: -one[0]):
            if pair._with_lost(eps, blanket) <= largest:
                break
            largest = max(largest, pair.log_delta(eps, ceiling, enough=max(enough, largest), search=search))
        return largest
