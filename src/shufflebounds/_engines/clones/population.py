"""Clone bounds of log delta for users with personalized budgets: for one target user, and for the worst target user.

The search is a branch and bound over blocks of targets: ranges i..j of positions among the sorted distinct budgets. One bound of
log delta holds for all targets of a block. For many users, the budgets of the other users are grouped into bins. Level 0 of the
search has the fewest bins, each further level has more, and the last level has every budget. A bound comes from one of the
decompositions in `clone_families`. A window decomposition restricts the target's distributions to a set of outputs (the window);
the mass outside this set is a free parameter, for which the best value is searched.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from shufflebounds._base.caches import Kept, cached_property, uncached
from shufflebounds._base.crossing import Curve
from shufflebounds._base.limits import BLOCK, CACHED_BYTES, COMPARED, FEW, MOST_ENUMERATED, NEGLIGIBLE, SEARCH_GAP, TABLE_SIZE
from shufflebounds._base.search import IntRange, halves, maximum
from shufflebounds._base.types import FloatArray, Interval
from shufflebounds._core import _clones
from shufflebounds._engines.clones.bins import BudgetBins
from shufflebounds._engines.clones.blanket_table import blanket_shares, table_cells
from shufflebounds._engines.clones.clone_families import Family, RandomizedResponseFamily, Terms
from shufflebounds._engines.clones.kary_blanket import log_blanket_delta, log_rounded_blanket, too_large
from shufflebounds._engines.clones.law import CloneLaw, log_clone_delta
from shufflebounds._losses.budget import Budget

__all__ = ["Population", "SearchBox"]

BINS = (2**9, 2**11, 2**13)
"""Numbers of bins of budgets on the levels of the search over targets; on one further level, the last, every distinct budget is
separate.

With fewer bins a level is faster and its bounds are less tight.
"""

LAST_BINS = 2**16
"""Number of bins on the last level if there are more than TABLE_SIZE distinct budgets. Raised: longer run time. Lowered: a larger
gap of the bounds."""

GROWTH = 1.6
"""Ratio of consecutive entries of FAR, the distances of trial values of the log mass from the largest one. Raised: the trial values
are farther apart, and the best log mass may be missed."""

INNER: FloatArray = np.array([k / 7 for k in range(1, 7)])
FAR: FloatArray = np.array([0.125 * GROWTH**k for k in range(10)])
NEARBY = np.array([1.8, 1.3, 1.0, 0.8, 0.6])
"""Trial values INNER, FAR and NEARBY of the search for the best window, that is for the best log mass outside a window.

The first trial values are a known good log mass times the factors in NEARBY or, if none is known, the largest log mass minus the
entries of FAR, which grow by the ratio GROWTH. Then the interval around the best value is divided at the fractions INNER. More
values: longer run time. Fewer: the search may miss the best window, and the bound is less tight, but still valid.
"""

CLOSE = 0.125
"""Tolerance of the search for the log mass outside a window. The search also ends if log delta changes by less than SEARCH_GAP.

Raised: the chosen windows are farther from the best, so bounds are less tight. Lowered: more estimates are evaluated.
"""

LIKELY = 0.1
"""Assumed error of an estimate of log delta. Raised: bounds are evaluated for more targets. Lowered: the search may find the worst
target later."""


class SearchBox(NamedTuple):
    """How a bound of log delta for all targets of `block` is computed: by the decomposition `kind`, with the bins of level `level`.

    If `kind` is "", no single decomposition gives the bound: it is not computed yet, or it is the local delta, the privacy blanket,
    or, for a single target, the smallest of several bounds. `log_mass` is the log mass outside the window of the decomposition. If
    the block is halved, the search for the windows of the halves starts from `nearby`. If `common` is true, `log_mass` and `nearby`
    are replaced at each eps by the log mass outside the window of the worst target.
    """

    block: IntRange
    level: int
    kind: str
    log_mass: float
    nearby: float
    common: bool = False


@dataclass
class Population:
    """All users: the distinct budgets in increasing order, the number of users of each budget, and the family of randomizers."""

    family: Family
    budgets: FloatArray
    counts: FloatArray
    laws: Kept[Any, CloneLaw] = field(default_factory=lambda: Kept(CACHED_BYTES // 8, _size))

    def __post_init__(self) -> None:
        size = self.budgets.size
        windowed = self.family.windowed
        last = [LAST_BINS] if size > TABLE_SIZE else []
        sizes = [*(number for number in BINS if size > 2 * number), *last, min(COMPARED, size)]
        *self.bins, self.sketch = BudgetBins.of(self.budgets, self.counts, sizes, windowed=windowed)
        # `exact` is the last level of the search: level len(self.bins), on which every budget is separate, or the level before it
        # for more than TABLE_SIZE budgets.
        self.exact = len(self.bins) - len(last)

    __getstate__ = uncached

    def _clones(self, kind: str, terms: Terms, level: int, i: int, j: int, upper: bool) -> CloneLaw:
        """Return the distribution of the number of clones that the other users send, for a target with a budget in i..j.

        `i` and `j` are indices of distinct budgets. On a level with bins the rates are rounded down for an upper bound of delta,
        and up for a lower bound.
        """
        low, high = float(self.budgets[i]), float(self.budgets[j])

        def rates(budgets: FloatArray) -> FloatArray:
            if kind == "window":
                return self.family.window_rates(terms.reach, low, high, budgets)
            return self.family.rates(kind, low, high, budgets)

        if level == len(self.bins):
            own = rates(self.budgets)
            # The target is not one of the other users. If the user with the largest rate is omitted, the bound is valid for all
            # targets i..j.
            place = i + int(np.argmax(own[i : j + 1]))
            return CloneLaw(*self.without(place, own))
        bins = self.bins[level]
        if self.family.ends and kind != "window":
            bins, j = bins.upto(i, self.budgets, self.counts), i
        if not upper:
            return bins.rounded_up(rates, i, low)
        return bins.rounded_down(rates, i, j, low if i == j else None)

    def without(self, place: int, values: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """Return `values`, one for each distinct budget (by default the budgets), and the numbers of users, without one user.

        This user has the distinct budget with index `place`.
        """
        values = self.budgets if values is None else values
        if self.counts[place] == 1:
            if place == 0:
                return values[1:], self.counts[1:]
            return np.delete(values, place), np.delete(self.counts, place)
        counts = self.counts.copy()
        counts[place] -= 1
        return values, counts

    def _law(self, kind: str, terms: Terms, level: int, i: int, j: int, upper: bool) -> CloneLaw:
        """Return the result of `_clones`, which does not depend on eps, from a cache."""
        key = (kind, terms.reach, level, i, j, upper or level == len(self.bins))
        return self.laws.of(key, lambda: self._clones(kind, terms, level, i, j, upper))

    def _terms(self, kind: str, eps: float, i: int, j: int, log_mass: float) -> Terms:
        """Return local eps, scale and tail of a decomposition for the targets i..j; only window decompositions use `log_mass`."""
        low, high = float(self.budgets[i]), float(self.budgets[j])
        terms = self.family.window(log_mass, low, high, eps) if kind == "window" else self.family.terms(kind, low, high)
        return Terms(*map(float, terms))

    def value(
        self, kind: str, eps: float, level: int, i: int, j: int, log_mass: float = 0.0, *, both: bool = True
    ) -> Interval:
        """Return bounds of the log delta of one decomposition, valid for every target in i..j.

        The lower bound is meaningful only for i = j. On a level with bins it is -inf unless `both`.
        """
        terms = self._terms(kind, eps, i, j, log_mass)
        budget = Budget(float(terms.local_eps))
        lower, upper = log_clone_delta(self._law(kind, terms, level, i, j, True), budget, eps)
        if level < len(self.bins):
            lower = log_clone_delta(self._law(kind, terms, level, i, j, False), budget, eps)[0] if both and i == j else -math.inf
        return Interval(min(_total(lower, terms), 0.0), min(_total(upper, terms), 0.0))

    def estimate(self, kind: str, eps: float, i: int, j: int, log_mass: float = 0.0) -> float:
        """Return an approximation of `value`, which is not a bound, to choose among decompositions."""
        if kind == "window":
            return float(self._of_windows(eps, i, j, np.array([log_mass]))[0])
        low, high = float(self.budgets[i]), float(self.budgets[j])
        terms = self.family.terms(kind, low, high)
        return float(self._estimates(self.family.rates(kind, low, high, self.sketch.middle)[None], terms, eps, i, j)[0])

    def _of_windows(self, eps: float, i: int, j: int, masses: FloatArray) -> FloatArray:
        """Return the array of estimates of log delta (see `estimate`) for windows with these log masses outside the window."""
        low, high = float(self.budgets[i]), float(self.budgets[j])
        terms = self.family.window(masses, low, high, eps)
        rates = self.family.window_rates(np.reshape(terms.reach, (-1, 1)), low, high, self.sketch.middle)
        return self._estimates(rates, terms, eps, i, j)

    def _estimates(self, rates: FloatArray, terms: Terms, eps: float, i: int, j: int) -> FloatArray:
        """Return estimates of log delta of the targets i..j, one for each row of rates.

        A row has one rate for each bin of `sketch`, a set of bins that is used for estimates only.
        """
        taken = rates[:, self.sketch.place(i) : self.sketch.place(j) + 1].max(axis=1)
        local = np.full(taken.shape, terms.local_eps)
        estimates = _clones.log_estimates(rates, self.sketch.counts, taken, local, eps)
        return np.logaddexp(estimates + terms.log_scale, terms.log_tail)

    def _about(self, eps: float, i: int, nearby: float | None) -> float:
        """Return the smallest estimate of log delta of target i over the decompositions."""
        guesses = [self.estimate(kind, eps, i, i) for kind in self.family.kinds]
        if self.family.windowed:
            guesses.append(self.estimate("window", eps, i, i, self._log_mass(eps, i, i, nearby, rough=True)))
        return min(guesses)

    def _log_mass(self, eps: float, i: int, j: int, start: float | None = None, *, rough: bool = False) -> float:
        """Return a log mass outside the window that approximately minimizes the estimate of log delta for the targets i..j.

        Every mass gives a valid bound. If `rough`, the best of the first trial values is returned without refinement.
        """
        low, masses, values = float(self.budgets[i]), np.empty(0), np.empty(0)
        # With few distinct budgets there are no bins and an evaluation is fast, so the search has a smaller tolerance.
        alike = SEARCH_GAP if self.exact else SEARCH_GAP / 1000

        def evaluate(more: FloatArray) -> None:
            nonlocal masses, values
            more = more[more < -0.7]
            masses, values = np.append(masses, more), np.append(values, self._of_windows(eps, i, j, more))
            order = np.argsort(masses)
            masses, values = masses[order], values[order]

        if start is not None:
            evaluate(start * NEARBY)
        # The minimum is bracketed if the best trial value is neither the first nor the last one.
        most, further = self.family.most_outside(low, eps), FAR
        bracketed = masses.size > 2 and 0 < int(np.argmin(values)) < masses.size - 1
        while not bracketed:
            evaluate(most - further)
            further = further * (FAR[-1] / FAR[0] * GROWTH)
            smallest = float(values.min())
            # The search ends if the smallest mass is not the best one, or if a still smaller mass would change the log of the
            # bound, scale * delta + tail, by at most 1e-9.
            bracketed = values[0] > smallest + 1e-9 or masses[0] < max(2 * smallest - 20, -1e6)
        while True:
            best = int(np.flatnonzero(values <= values.min() + 1e-9)[-1])
            left, right = masses[max(best - 1, 0)], masses[min(best + 1, masses.size - 1)]
            beside = max(values[max(best - 1, 0)], values[min(best + 1, masses.size - 1)])
            inner = float(left) + float(right - left) * INNER
            inner = inner[(inner > left) & (inner < right) & (inner != masses[best])]
            # The search ends if no new trial value is left: at a log mass of -1e14 two neighbouring doubles are further apart than
            # CLOSE.
            if rough or right - left < CLOSE or beside <= values[best] + alike or not inner.size:
                # The log mass is rounded to a multiple of CLOSE, so that cached distributions of clones can be used for other eps.
                return min(round(float(masses[best]) / CLOSE) * CLOSE, -0.7)
            evaluate(inner)

    def candidates(self, eps: float, i: int) -> list[tuple[str, float]]:
        """Return the decompositions that may give the smallest bound for target i, as (kind, log mass outside the window)."""
        kinds: list[tuple[str, float]] = [(kind, 0.0) for kind in self.family.kinds]
        # In a family of pure budgets, windows improve the bound only if other users have larger budgets than the target.
        pure = self.family.pure_epsilon(float(self.budgets[i])) < math.inf
        if self.family.windowed and not (pure and i == self.budgets.size - 1):
            kinds.append(("window", self._log_mass(eps, i, i)))
        if not self.exact or len(kinds) == 1:
            return kinds
        # Decompositions whose estimate of log delta exceeds the smallest estimate by more than 1 are not evaluated.
        guesses = [self.estimate(kind, eps, i, i, mass) for kind, mass in kinds]
        near = min(guesses) + 1.0
        kinds = [kind for kind, guess in zip(kinds, guesses) if guess <= near]
        if len(kinds) == 1:
            return kinds
        values = [self.value(kind, eps, 0, i, i, mass, both=False)[1] for kind, mass in kinds]
        near = min(values)
        near = near + 0.02 * max(1.0, -near / 10) if near > -math.inf else near
        return [kind for kind, value in zip(kinds, values) if value <= near]

    def rough_single(self, i: int) -> Curve:
        """Return a rough curve of log delta of target i, with the other users' budgets in the fewest bins."""

        def log_delta(eps: float) -> float:
            local = self.family.log_local(float(self.budgets[i]), eps).upper
            return min(local, *(self.value(kind, eps, 0, i, i, mass, both=False)[1] for kind, mass in self.candidates(eps, i)))

        # The curve omits the bound by the privacy blanket, which may be smaller by orders of magnitude.
        return Curve(log_delta, rtol=1e-4, jumps=not self._blanketed)

    def single(self, eps: float, i: int, apart: float = 0.0) -> Interval:
        """Return bounds of the smallest upper bound of log delta of target i by any decomposition or by the privacy blanket.

        If `apart` > 0, the level with the fewest bins is used among those whose bounds have a gap of at most `apart` in log delta.
        """
        if self._alone(i):
            return self.family.log_local(float(self.budgets[i]), eps)
        candidates = self.candidates(eps, i)
        for level in range(0 if apart else self.exact, self.exact + 1):
            sides = [self.value(kind, eps, level, i, i, mass) for kind, mass in candidates]
            if max((upper - lower for lower, upper in sides if upper > -math.inf), default=0.0) <= apart:
                break
        blanket = self._blanket(eps, i, i, min(upper for _, upper in sides))
        last = self.budgets.size - 1
        if blanket is None and i < last and isinstance(self.family, RandomizedResponseFamily) and self.family.categories > 2:
            # The blanket's table for this target is too large; the table for a target with the largest budget is smaller. The bound
            # for that target is valid for target i, too, because the positive parts in the bound increase with the target's budget.
            clones = (self.value(kind, eps, 0, last, last, mass, both=False)[1] for kind, mass in self.candidates(eps, last))
            blanket = self._blanket(eps, i, last, min(clones))
        sides += [blanket] if blanket else []
        return min([*sides, self.family.log_local(float(self.budgets[i]), eps)], key=lambda pair: pair[1])

    def compared(self, eps: float, i: int) -> tuple[dict[str, float], list[str]]:
        """Return the upper bounds of log delta of target i that :meth:`single` compares, and the decompositions that it omits."""
        local = self.family.log_local(float(self.budgets[i]), eps).upper
        computed, omitted = {"one message alone": local} if local < 0 else {}, {*self.family.kinds, "window"}
        for kind, mass in [] if self._alone(i) else self.candidates(eps, i):
            computed[f"the clone decomposition {kind}"] = self.value(kind, eps, self.exact, i, i, mass).upper
            omitted.remove(kind)
        blanket = None if self._alone(i) else self._blanket(eps, i, i, min(computed.values()))
        if blanket is not None:
            computed["privacy blanket"] = blanket.upper
        return computed, sorted(omitted if self.family.windowed else omitted - {"window"})

    def _alone(self, i: int) -> bool:
        """Return whether target i is the only user and has no finite pure budget."""
        return float(self.counts.sum()) == 1 and self.family.pure_epsilon(float(self.budgets[i])) == math.inf

    def _blanket(self, eps: float, i: int, j: int, best: float, enough: float = -math.inf) -> Interval | None:
        """Return bounds of log delta of the blanket for the targets i..j, or None if there is no blanket or it takes too long.

        `best` is an upper bound of log delta that is already known; the truncated mass is chosen for it. An upper bound of at most
        `enough` is not refined.
        """
        if not self._blanketed:
            return None
        assert isinstance(self.family, RandomizedResponseFamily)
        g, distinct = float(blanket_shares(self.budgets[i : i + 1], self.family.categories)[0][0]), self.budgets.size
        mean, square = self._share_sums
        if eps < self.budgets[j] and too_large(distinct - int(self.counts[i] == 1), mean - g, square - g * g):
            return None
        log_others = self._log_others
        log_none = float(log_others.sum() - log_others[i] / self.counts[i])
        # e^log_none is the probability that no other user sends a data-independent message. The local delta is an upper bound, and
        # the local delta times this probability a lower bound. These two are returned if their gap in log delta is at most 1e-6.
        if log_none > -1e-6:
            lower, upper = self.family.log_local(float(self.budgets[j]), eps)
            return Interval(lower + log_none - 1e-12, upper)
        counts = self.counts.copy()
        counts[i] -= 1
        return log_blanket_delta(self.budgets, counts, self.family.categories, float(self.budgets[j]), eps, best, enough)

    @cached_property
    def rounds(self) -> bool:
        """Whether there is a privacy blanket whose budgets are rounded up because there are too many different budgets."""
        return self._blanketed and too_large(self.budgets.size, *self._share_sums)

    @property
    def _blanketed(self) -> bool:
        """Whether the randomizers have a privacy blanket that is not one of the clone decompositions."""
        return isinstance(self.family, RandomizedResponseFamily) and self.family.categories > 2

    def rounded_blanket(self, eps: float, place: int | None) -> float:
        """Return an upper bound of log delta by the blanket with rounded budgets: of target `place`, or, if None, of all targets.

        If `place` is None, the user with the smallest budget is omitted instead of the target. This is valid for any target,
        because the k-th smallest budget of the other users is at most the (k + 1)-th smallest budget of all users.
        """
        assert isinstance(self.family, RandomizedResponseFamily)
        budget = float(self.budgets[-1 if place is None else place])
        return log_rounded_blanket(*self.without(place or 0), self.family.categories, budget, eps)

    @cached_property
    def _share_sums(self) -> tuple[float, float]:
        """The sums over all users of the probability of a data-independent message, and of its square."""
        assert isinstance(self.family, RandomizedResponseFamily)
        sums = np.zeros(2)
        for first in range(0, self.budgets.size, BLOCK):
            part = slice(first, first + BLOCK)
            shares = blanket_shares(self.budgets[part], self.family.categories)[0]
            # The operator `@` is not used: threads of BLAS would wait for each other in a loop, which takes ten times the CPU time
            # on a busy machine.
            weighted = shares * self.counts[part]
            sums += weighted.sum(), (weighted * shares).sum()
        return float(sums[0]), float(sums[1])

    @cached_property
    def _log_others(self) -> FloatArray:
        """For each budget the log of the probability that no user with this budget sends a data-independent message."""
        assert isinstance(self.family, RandomizedResponseFamily)
        shares, missed = blanket_shares(self.budgets, self.family.categories)
        return self.counts * np.where(shares < 0.5, np.log1p(-np.minimum(shares, 0.5)), np.log(missed))

    @cached_property
    def blanket_cells(self) -> float:
        """Estimated number of cells of the table of the privacy blanket at moderate delta; 0 if no table is used."""
        if not self._blanketed:
            return 0.0
        return 0.0 if too_large(self.budgets.size, *self._share_sums) else table_cells(*self._share_sums, -NEGLIGIBLE)

    def _bound(
        self, eps: float, level: int, i: int, j: int, log_mass: float, enough: float, hint: float = 0.0
    ) -> tuple[float, SearchBox]:
        """Return an upper bound of log delta that is valid for every target in i..j, and the decomposition that gives it.

        Decompositions are tried until the bound is at most `enough`. `hint` is the log mass outside the window of the worst target,
        or 0.
        """
        leaf = i == j and level == self.exact
        if leaf and not self.exact:
            return self.single(eps, i)[1], SearchBox((i, j), level, "", 0.0, log_mass)
        best, first = (self.family.log_local(float(self.budgets[j]), eps).upper, ("", 0.0)), True
        # The windows of a neighbouring block and of the worst target are tried first. The best window is searched for only if these
        # bounds exceed `enough`.
        masses = [mass for mass in dict.fromkeys((log_mass, hint)) if self.family.windowed and mass < 0]
        while best[0] > enough:
            kinds = [(kind, 0.0) for kind in self.family.kinds if first] + [("window", mass) for mass in masses]
            guesses = [self.estimate(kind, eps, i, j, mass) for kind, mass in kinds] if len(kinds) > 1 else [0.0]
            near = min(guesses) + 1.0
            for guess, (kind, tried) in sorted(zip(guesses, kinds)):
                if best[0] > enough and guess <= near:
                    best = min(best, (self.value(kind, eps, level, i, j, tried, both=False)[1], (kind, tried)))
            # The best window of a single target is searched for by `single` below.
            if not (first and self.family.windowed) or leaf:
                break
            first, own = False, self._log_mass(eps, i, j, log_mass)
            if own in masses:
                break
            masses = [own]
        if best[0] > enough and leaf:
            return self.single(eps, i)[1], SearchBox((i, j), level, "", 0.0, log_mass)
        if best[0] > enough:
            blanket = self._blanket(eps, i, j, best[0], enough)
            best = min(best, (blanket[1], ("", 0.0))) if blanket else best
        chosen = best[1][1] if best[1][0] == "window" else masses[0] if masses else log_mass
        return best[0], SearchBox((i, j), level, *best[1], chosen, chosen == hint)

    def likely(self, eps: float) -> int:
        """Return the position of a target whose estimate of log delta is among the largest; it need not be the worst."""
        last = self.budgets.size - 1
        step = max(1, last * 2 // COMPARED)
        guesses: dict[int, float] = {}

        def best_of(targets: set[int]) -> int:
            for i in targets - guesses.keys():
                if 0 <= i <= last:
                    guesses[i] = min(self._about(eps, i, None), self.family.log_local(float(self.budgets[i]), eps).upper)
            return max(guesses, key=lambda i: guesses[i])

        best = best_of({*range(0, last, step), last})
        while step > 1:
            step = (step + 1) // 2
            best = best_of({best - step, best + step})
        return best

    def every(
        self, eps: float, guess: int, tolerance: float = SEARCH_GAP, frontier: list[SearchBox] | None = None, *,
        coarse: bool = False,
    ) -> tuple[float, float, int]:
        """Return bounds of the largest log delta over all targets, and the position of a target that attains the lower bound.

        Blocks whose bound on one level is above the bound of the worst target are searched on the next level, with more bins.

        Parameters
        ----------
        guess : position of the target that is evaluated first.
        tolerance : the gap of the bounds in log delta is at most tolerance * max(1, -log delta / 20).
        frontier : blocks that together cover all targets, with the decompositions that bounded them at another eps; or an empty
            list. The list is replaced in place by the blocks and decompositions of this eps.
        coarse : evaluate single targets with bins, too, as far as the tolerance permits.
        """
        if self.budgets.size <= FEW:
            sides = [self.single(eps, i) for i in range(self.budgets.size)]
            best = max(range(len(sides)), key=lambda i: sides[i].lower)
            return sides[best].lower, max(upper for _, upper in sides), best
        own = tolerance / 4 if coarse else 0.0
        best, (lower, upper) = guess, self.single(eps, guess, own)
        if self._alone(guess):
            return lower, upper, guess

        def compare(target: int) -> None:
            """Make the target the best one if its lower bound is larger."""
            nonlocal best, lower, upper
            if self._about(eps, target, None) < lower - 10 * LIKELY:
                return
            if self.single(eps, target, tolerance / 4)[1] > lower:
                sides = self.single(eps, target, own)
                if sides[0] > lower:
                    best, (lower, upper) = target, sides

        for end in {0, self.budgets.size - 1} - {guess}:
            compare(end)
        frontier = [] if frontier is None else frontier
        hint, hinted = dict(self.candidates(eps, best)).get("window", 0.0), best
        frontier[:] = [box._replace(log_mass=hint, nearby=hint) if box.common else box for box in frontier]
        # Blocks with a bound of at most `enough` are not divided. With few distinct budgets there are no bins (`exact` is 0) and
        # evaluations are fast, so `enough` does not include half of the tolerance.
        enough = upper + (tolerance / 2 * max(1.0, -lower / 20) if self.exact else 0.0)
        pruned, boxes, blocks = self._start(eps, enough, frontier, hint)
        left, top = MOST_ENUMERATED // 2, -math.inf

        def split(block: IntRange) -> list[IntRange]:
            pieces = halves(block)
            boxes.update((piece, boxes[block]._replace(block=piece)) for piece in pieces)
            return pieces

        for level in range(self.exact + 1 if blocks else 0):
            slack = tolerance * max(1.0, -lower / 20) if lower > -math.inf else 0.0
            margin = slack if level == self.exact else slack / 2
            if best != hinted:
                # The level before found a target with a larger delta: the search continues from the window of this target.
                hint, hinted = dict(self.candidates(eps, best)).get("window", 0.0), best
            reached = self._bound(eps, level, best, best, boxes[blocks[0]].nearby, -math.inf, hint)[0]
            likely = self._about(eps, best, boxes[blocks[0]].nearby) - LIKELY
            measure = partial(self._measured, eps, level, boxes, likely, hint)
            # With the bins of this level the target `best` has the bound `reached`, which exceeds its bound `upper` without bins. A
            # block that contains this target has a bound of at least `reached`. So the tolerance is at least reached - upper.
            near = margin if level == self.exact else max(margin, reached - upper)
            # Smaller blocks do not reduce the part of the gap that is due to the bins. So after a few hundred blocks the search
            # continues on the next level, with more bins.
            most = left if level == self.exact else min(left, 4 * COMPARED)
            result = maximum(blocks, measure, split, tolerance=partial(_same, near), reached=reached, most=most)
            left -= result.measured
            if result.best is not None:
                compare(sum(result.best) // 2)
            top = max([bound for bound, _ in result.left])
            if top <= upper + slack or left <= 0:
                frontier += [boxes[block] for _, block in result.left]
                break
            low = [(bound, block) for bound, block in result.left if bound <= upper + margin]
            frontier += [boxes[block] for _, block in low]
            pruned = max([pruned, *(bound for bound, _ in low)])
            blocks = [block for bound, block in result.left if bound > upper + margin]
        else:
            frontier += [boxes[block] for block in blocks]
        return lower, max(upper, pruned, top), best

    def _start(
        self, eps: float, enough: float, frontier: list[SearchBox], hint: float
    ) -> tuple[float, dict[IntRange, SearchBox], list[IntRange]]:
        """Return the largest bound of the blocks that need no search, and the blocks to search first: their boxes and their list.

        `frontier` has the boxes of an earlier search. Those with a bound of at most `enough` at this eps need no search; only they
        stay in `frontier`. If `frontier` is empty, the search starts from up to eight blocks, which cover all targets.
        """
        if frontier:
            # A block is bounded by the decomposition that gave its bound at another eps, if a single one did.
            bounds = [self.value(box.kind, eps, box.level, *box.block, box.log_mass, both=False)[1] if box.kind
                      else self._bound(eps, box.level, *box.block, box.nearby, enough, hint)[0] for box in frontier]
            failing = [box for bound, box in zip(bounds, frontier) if bound > enough]
            frontier[:] = [box for bound, box in zip(bounds, frontier) if bound <= enough]
            return max([bound for bound in bounds if bound <= enough], default=-math.inf), *_by_block(failing)
        edges = np.unique(np.linspace(0, self.budgets.size, min(self.budgets.size, 8) + 1).astype(int))
        return -math.inf, *_by_block([SearchBox((int(a), int(b) - 1), 0, "", hint, hint) for a, b in pairwise(edges)])

    def _measured(
        self, eps: float, level: int, boxes: dict[IntRange, SearchBox], likely: float, hint: float, blocks: Sequence[IntRange],
        enough: float,
    ) -> list[tuple[float, float, float]]:
        """Return for each block (value, value, bound), the triples that `maximum` expects.

        `bound` is an upper bound of log delta for all targets of the block, and `value` is log delta of its middle target, or -inf.
        The value is evaluated in blocks of a single target with a bound above `enough`, and in the block with the largest bound if
        the estimate for the middle target is at least `likely`.
        """
        bounds = []
        for block in blocks:
            bound, boxes[block] = self._bound(eps, level, *block, boxes[block].nearby, enough, hint)
            bounds.append(bound)
        # If a bound is at most `enough`, the remaining decompositions were not tried, so it may exceed the smallest bound for its
        # target user. Therefore it is not used as the value of log delta.
        values = [bound if i == j and bound > enough else -math.inf for bound, (i, j) in zip(bounds, blocks)]
        place = int(np.argmax(bounds))
        i, j = blocks[place]
        if i < j and bounds[place] > enough:
            middle = (i + j) // 2
            if self._about(eps, middle, boxes[i, j].nearby) >= likely:
                single = self._bound(eps, level, middle, middle, boxes[i, j].nearby, enough, hint)[0]
                values[place] = single if single > enough or level < self.exact else -math.inf
        return list(zip(values, values, bounds))


def _size(law: CloneLaw) -> int:
    """Return the number of floats that a distribution takes in the cache: its rates, and about 1000 for its other fields."""
    return law.rates.size + 1000


def _by_block(boxes: list[SearchBox]) -> tuple[dict[IntRange, SearchBox], list[IntRange]]:
    """Return a dictionary from each block of targets to its `SearchBox`, and the list of blocks."""
    return {box.block: box for box in boxes}, [box.block for box in boxes]


def _same(margin: float, best: float) -> float:
    """Return `margin`, a constant tolerance; `maximum` calls a tolerance with the best value as its argument."""
    return margin


def _total(log_delta: float, terms: Terms) -> float:
    """Return log(scale * delta + tail), the bound of a decomposition, from log delta of the clone sum."""
    return float(np.logaddexp(log_delta + terms.log_scale, terms.log_tail))
