"""How a profile finds each answer: first closed forms, then enumerated outcomes and pairs, then searches and samples of delta."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.calls import Explaining
from shufflebounds._base.crossing import CAP, Curve, eps_at, eps_at_each, last_positive
from shufflebounds._base.limits import CACHED_ANSWERS
from shufflebounds._base.types import FloatArray, IntervalArray, consistent, largest
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.curves import convex_hull
from shufflebounds._losses.loss_tail import loss_tail
from shufflebounds._losses.release import DominatingPairInfo, Reverse
from shufflebounds.answers.sampled_answers import Samples
from shufflebounds.tradeoff import Tradeoff

__all__ = ["Answering"]


class Answering(metaclass=Explaining):
    """The answers of a profile, computed from `describe()` and `closed_forms()`.

    For each method, the first known entry of its row is used:

    ==================  ==================  =============================  ==================================================
    private method      closed form         then                           else
    ==================  ==================  =============================  ==================================================
    `_log_delta`        `log_delta`         -                              `hockey_stick` of `describe()`
    `_log_side`         `side`              -                              one side of `_log_delta`; both cached if expensive
    `_epsilons`         `epsilons`          `epsilon` for each delta;      one search on `_log_side` for all other deltas,
                                            0: `pure` or `_last_positive`  from `rough`
    `_epsilon`          `epsilon`           as above                       a search on `_log_side` from `rough`
    `_last_positive`    `last_positive`     -                              a search on `_log_side`
    `_loss_tail`        `loss_tail`         largest of the pairs           secants of `_log_side`; `quicker` if expensive
    `_tradeoff`         `tradeoff`          outcomes; hull of pairs        samples; in stages if expensive
    `_gdp_mu`           `mu`                inf if unbounded; outcomes;    samples, at most `mu_limit`
                                            largest of the pairs
    `_rdp`              `renyi`, where it   inf if unbounded; outcomes;    samples up to `tail` or `known_upper`, at most
                        is not NaN          largest of the pairs;          `renyi_limit`; a lower bound is at least
                                            lower bound: attained pairs    `renyi_limit`
    ==================  ==================  =============================  ==================================================

    In the table, "outcomes" means exact results from the enumerated outcomes, and "pairs" means results of the profiles of the
    listed pairs. At delta = 0 the upper bound of eps is `pure` and the lower bound is `_last_positive`.

    By default `tail`, `renyi_limit` and `mu_limit` are computed from `mixture`; a class may define tighter bounds. The methods
    `mixture`, `mu_in_tails` and `eps_scale` are also called by other profiles.
    """

    @abstractmethod
    def reverse(self) -> Any:
        """Return the guarantee with both datasets exchanged."""

    @abstractmethod
    def _listed_pairs(self) -> tuple[Any, ...]:
        """Return the profiles of the pairs, or () if the pairs are not enumerated or the only pair is the profile itself."""

    @property
    @abstractmethod
    def _attained(self) -> tuple[Any, ...]:
        """Profiles of ordered pairs that neighbouring datasets attain, if the guarantee is not that of a single pair."""

    @abstractmethod
    def describe(self) -> DominatingPairInfo:
        """Return the description of the pair of distributions of this mechanism."""

    def closed_forms(self) -> ClosedForms:
        """Return the results that need neither a search nor samples of the divergence. By default there are none.

        Returns
        -------
        ClosedForms
        """
        return ClosedForms()

    @cached_property
    def _described(self) -> DominatingPairInfo:
        return self.describe()

    @cached_property
    def _closed(self) -> ClosedForms:
        return self.closed_forms()

    def _pair_info(self) -> DominatingPairInfo:
        """Return a new description with the divergence of (Q, P).

        A composition caches values of the pair in its own new description, so that they are freed together with the composition.
        """
        info, other = self.describe(), self.reverse()
        if info.reverse or other is self:
            return info
        back = other.describe()
        return replace(info, reverse=Reverse(back.hockey_stick, back.pure))

    def _adjacencies(self) -> tuple[Any, ...]:
        """Return the guarantees for a removed and for an added record, or an empty tuple if a single guarantee covers both.

        The two guarantees are composed separately, because the same one of the two neighbouring datasets has the record in all
        releases.
        """
        return self._described.profiles if self._described.attained.directed else ()

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return a lower and an upper bound of log delta at each eps >= 0 (1-D, finite, checked)."""
        closed = self._closed.log_delta(eps)
        return self._described.hockey_stick(eps) if closed is None else closed

    def _method(self, eps: float) -> list[str]:
        """Return lines of text that state how the bounds of log delta at the given eps are computed."""
        closed, name = type(self._closed), type(self).__name__
        if closed.log_delta is not ClosedForms.log_delta or closed.side is not ClosedForms.side:
            return self._closed.method(eps) or [f"method: the formulas of {name} (closed_forms)"]
        outcomes = self._samples.outcomes
        if outcomes is not None:
            return [f"method: the sum over all {outcomes.loss.size} outcomes of the pair"]
        pairs = self._listed_pairs()
        if pairs:
            return [f"method: the largest hockey-stick divergence of {len(pairs)} pairs (pairs)"]
        return [f"method: the hockey-stick divergence that {name} states (describe)"]

    def _log_side(self, eps: FloatArray, *, upper: bool) -> FloatArray:
        """Return the upper or the lower bound of log delta at each eps."""
        closed = self._closed.side(eps, upper)
        if closed is not None:
            return closed
        # Expensive bounds are cached, because the other bound is often requested next.
        kept = self._described.sampling.expensive
        sides = self._log_sides.of(eps.tobytes(), lambda: self._log_delta(eps)) if kept else self._log_delta(eps)
        return consistent(sides, "log delta at eps={!r}", eps)[upper].copy()

    @cached_property
    def _log_sides(self) -> Kept[bytes, IntervalArray]:
        """Cache of both bounds of log delta, for the last arrays of eps."""
        return Kept(CACHED_ANSWERS)

    def _log_side_at(self, eps: float, *, upper: bool) -> float:
        return float(self._log_side(np.array([eps]), upper=upper)[0])

    def _known_side(self, eps: FloatArray, *, upper: bool) -> FloatArray:
        """Return the upper or the lower bound of log delta at each eps, limited to at most 0.

        NaN, which a kernel returns outside of its domain, becomes the trivial bound 0 or -inf.
        """
        return self._within_range(eps, self._log_side(eps, upper=upper), upper=upper)

    def _within_range(self, eps: FloatArray, value: FloatArray, *, upper: bool) -> FloatArray:
        """Return a bound of log delta at each eps, limited to at most 0.

        The result is -inf for eps at or above the pure budget. NaN is replaced by the trivial bound.
        """
        value = np.where(np.isnan(value), 0.0 if upper else -np.inf, value)
        # By rounding, a bound of delta may be positive slightly above the pure budget, where delta is 0.
        return np.where(eps < self._pure_epsilon(), np.minimum(value, 0.0), -np.inf)

    def _pure_epsilon(self) -> float:
        """Return an upper bound of the smallest eps with delta(eps) = 0, or inf."""
        return self._described.pure

    def _eps_scale(self) -> float:
        """Return a typical size of eps, at least 1. The search for epsilon(delta) ends at a million times this size."""
        return self._closed.eps_scale

    def _rough(self, upper: bool) -> Curve | None:
        """Return an approximation of log delta that takes less time than the bounds, or None. The search for eps starts with it."""
        return self._closed.rough(upper)

    def _epsilons(self, deltas: FloatArray, upper: bool) -> FloatArray:
        """Return eps(delta) for each delta in [0, 1]."""
        answers = self._closed.epsilons(deltas, upper)
        if answers is not None:
            return answers
        if deltas.size == 1:
            return np.array([self._epsilon(float(deltas[0]), upper)])
        values, places = np.unique(deltas, return_inverse=True)
        direct = [self._direct_epsilon(delta, upper) for delta in values.tolist()]
        answers = np.array([np.nan if eps is None else eps for eps in direct])
        searched = np.array([eps is None for eps in direct])
        if searched.any():
            rough, cap = self._rough(upper), CAP * self._eps_scale()
            answers[searched] = eps_at_each(partial(self._log_side, upper=upper), values[searched], upper=upper, rough=rough,
                                            pure=self._pure_epsilon(), cap=cap)
        return np.asarray(answers[places])

    def _direct_epsilon(self, delta: float, upper: bool) -> float | None:
        """Return eps(delta) for one delta in [0, 1] if no search over values of delta is needed, otherwise None."""
        closed = self._closed.epsilon(delta, upper)
        if closed is None and delta == 0:
            pure = self._pure_epsilon()
            return pure if upper else self._last_positive(pure)
        return closed

    def _epsilon(self, delta: float, upper: bool) -> float:
        """Return eps(delta) for one delta in [0, 1]."""
        direct = self._direct_epsilon(delta, upper)
        if direct is not None:
            return direct
        return eps_at(partial(self._log_side_at, upper=upper), delta, upper=upper, rough=self._rough(upper),
                      pure=self._pure_epsilon(), cap=CAP * self._eps_scale())

    def _last_positive(self, pure: float) -> float:
        """Return the largest eps found, at most `pure`, with a positive lower bound of delta; inf if the search finds none."""
        closed = self._closed.last_positive(pure)
        return last_positive(partial(self._log_side_at, upper=False), pure, CAP * self._eps_scale()) if closed is None else closed

    @property
    def _of_one_pair(self) -> bool:
        """Whether one pair has the exact delta at every eps, and the bounds of delta are convex."""
        info = self._pair_info()
        return (info.attained.single or self._closed.of_one_pair) and info.sampling.convex

    def _loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray:
        closed = self._closed.loss_tail(eps, upper)
        if closed is not None:
            return closed
        if pairs := self._listed_pairs():
            return largest(pair._loss_tail(eps, upper) for pair in pairs)

        below, above = (partial(self._known_side, upper=side) for side in (False, True))
        info = self._pair_info()
        single = self._of_one_pair
        if not info.sampling.expensive:
            return loss_tail(below, above, eps, single)

        def roughly(at: FloatArray) -> FloatArray:
            return self._within_range(at, info.quicker(at).upper, upper=True)

        both = self._tails.of((eps.tobytes(), True), lambda: loss_tail(below, above, eps, single, roughly))
        # If delta underflows at every eps, all lower bounds of the tail are 0.
        if upper or not both.lower.any():
            return both
        return self._tails.of((eps.tobytes(), False), lambda: loss_tail(below, above, eps, single, roughly, both.upper))

    @cached_property
    def _tails(self) -> Kept[tuple[bytes, bool], IntervalArray]:
        """Cache of both bounds of the tail of the privacy loss, for the last arrays of eps."""
        return Kept(16)

    @cached_property
    def _samples(self) -> Samples:
        """Outcomes and samples of the divergences of the dominating pair of this profile."""
        return Samples(self._pair_info(), self._closed)

    def _tradeoff(self, upper: bool) -> Tradeoff:
        """Return an upper or a lower bound of the exact trade-off curve."""
        curve = self._closed.tradeoff(upper)
        if curve is not None:
            return curve
        curve = self._samples.exact_curve(upper)
        if curve is not None:
            return curve
        pairs = self._listed_pairs()
        info = self._samples.info
        if pairs and info.sampling.curve is None and info.losses.unmatched is None:
            return convex_hull([pair._tradeoff(upper) for pair in pairs])
        return self._samples.curve(upper)

    def _gdp_mu(self, upper: bool) -> float:
        """Return an upper or a lower bound of mu."""
        mu = self._closed.mu(upper)
        if mu is not None:
            return mu
        if self._pair_info().losses.unbounded or self.reverse()._pair_info().losses.unbounded:
            return math.inf
        mu = self._samples.exact_mu(upper)
        if mu is not None:
            return mu
        pairs = self._listed_pairs() if self._samples.info.losses.unmatched is None else ()
        return max(pair._gdp_mu(upper) for pair in pairs) if pairs else self._samples.mu(upper)

    def _rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return upper or lower bounds of the largest Renyi divergences over the pairs of neighbours, for orders in [1, inf]."""
        values = self._closed.renyi(orders, upper)
        missing = np.isnan(values) if values is not None else np.full(orders.size, True)
        if values is None or missing.all():
            values = self._sampled_rdp(orders, upper)
        elif missing.any():
            values[missing] = self._sampled_rdp(orders[missing], upper)
        if not upper and missing.any():
            values[missing] = np.maximum(values[missing], self._closed.renyi_limit(orders[missing], False))
        if not upper and (orders == np.inf).any():
            # The Renyi divergence of order inf and epsilon(0) both equal the largest loss.
            values = np.where(orders == np.inf, np.maximum(values, self._epsilon(0.0, False)), values)
        return values

    def _sampled_rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return the bounds of Renyi divergences (`_rdp`) that follow from outcomes, pairs and values of delta."""
        samples, atoms = self._samples, self._samples.outcomes
        if samples.info.losses.unbounded:
            return np.full(orders.size, np.inf)
        if atoms and (atoms.log_lost == -math.inf or not upper):
            value = atoms.renyi(orders, upper=upper)
            return np.minimum(value, self._pure_epsilon()) if upper else value
        pairs = self._listed_pairs()
        if pairs:
            return np.asarray(np.max([pair._rdp(orders, upper) for pair in pairs], axis=0))
        pure, finite = self._pure_epsilon(), orders < math.inf
        # The Renyi divergence of order inf is the largest loss. A lower bound of the largest loss needs a search, which is omitted
        # if all orders are finite.
        value = np.full(orders.size, pure if upper or finite.all() else self._last_positive(pure))
        if not upper and not samples.info.attained.single and self._attained:
            # delta of a profile that is not `single` is a maximum over pairs at each eps. The Renyi divergence that is computed
            # from this delta is at least that of every pair, and may be larger than all of them.
            attained = np.max([pair._rdp(orders, False) for pair in self._attained], axis=0)
            return np.asarray(np.where(finite, attained, np.maximum(attained, value)))
        if not finite.any():
            return value
        value[finite] = samples.renyi(orders[finite], upper)
        return np.minimum(value, self._closed.renyi_limit(orders, True)) if upper else value
