"""RAPPOR: the bits of a Bloom filter, with permanent noise and fresh noise in every report."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.convex_order import log_spread
from shufflebounds._base.limits import COMPUTED_ERROR, FIRST_TAIL, MANY, SQUARABLE, TABLE_SIZE
from shufflebounds._base.types import SLACK, ULP, FloatArray, IntervalArray
from shufflebounds._core._binomial import binom_logpmf
from shufflebounds._engines.datasets.cases import DatasetLaws, FiniteCases
from shufflebounds._engines.errors.count_errors import SupportProbabilities
from shufflebounds._engines.errors.counted import message_rows
from shufflebounds._engines.excess.excess_law import ExcessLaw, PairLaws
from shufflebounds._engines.inputs.few_outputs import FewOutputs
from shufflebounds._engines.inputs.reduced_laws import chosen, product_law
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses
from shufflebounds.mechanisms._base import LocalRandomizer
from shufflebounds.mechanisms.oracles._counts import CountEstimate

__all__ = ["Rappor"]

_NODES = 72
"""If R_0/m (`ExcessLaw`) has more values than this, they are reduced to this number of nodes, and so are those of R_1/m; X then has
_NODES**2 atoms. Raised: longer run time. Lowered: a larger gap."""


_CELLS = 128
"""Largest number of entries (values times reports) of the matrix of a filter for which the bounds of shuffled reports use this
matrix. Raised: longer run time."""


class _Losses:
    """The privacy losses (Z - d) `unit` of one report for two values that differ in 2d bits; Z is defined in `Rappor`."""

    def __init__(self, differ: int, unit: float, probabilities: SupportProbabilities) -> None:
        self.differ, self.unit, self._probabilities = differ, unit, probabilities

    @cached_property
    def log_masses(self) -> FloatArray:
        """The log probabilities of Z = 0..2d under a value; under its neighbour this list is reversed."""
        one, lost, other, rest, _ = self._probabilities
        d = self.differ
        first, second = _binomial(d, one, lost), _binomial(d, rest, other)
        # Each mass is a sum of positive terms over the two binomials whose sum is Z.
        return np.array([np.logaddexp.reduce(first[max(0, z - d) : z + 1] + second[max(0, z - d) : z + 1][::-1])
                         for z in range(2 * d + 1)])

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta at each eps."""
        d, unit = self.differ, self.unit
        steps = np.arange(1.0, d + 1)
        log_mass = self.log_masses[d + 1 :]
        # The probabilities have relative errors of a few ulp, and a mass is a product of 2d probabilities.
        error = ULP * (64 * d + 8 * np.abs(log_mass))
        sides = []
        for side in (-1, 1):
            gap = steps * unit * (1 + side * 16 * ULP) - eps[:, None]
            with np.errstate(divide="ignore"):
                terms = log_mass + side * error + np.log(-np.expm1(-np.maximum(gap, 0.0)))
            value = np.logaddexp.reduce(terms, axis=1)
            sides.append(value + side * ULP * np.where(value > -np.inf, 16 + 4 * np.abs(value), 0.0))
        return IntervalArray(*sides)

    def atoms(self, log_tail: float) -> LossAtoms:
        """Return all outcomes; `log_tail` is ignored, because no outcome is truncated."""
        d, unit = self.differ, self.unit
        # The error of a mass is that in `log_delta`.
        slack, loss_error = ULP * (64 * d + 8 * float(np.abs(self.log_masses).max())), 20 * ULP * d * unit
        return LossAtoms(self.log_masses, unit * np.arange(-d, d + 1.0), -math.inf, -math.inf, -math.inf, slack, loss_error)


@dataclass(frozen=True)
class Rappor(CountEstimate, LocalRandomizer):
    r"""One report of a value that sets `hashes` distinct bits of a Bloom filter.

    Each bit is first replaced, permanently, by 1 with probability f/2 and by 0 with probability f/2. Each bit of a report is then 1
    with probability p if the permanent bit is 1, and with probability q if it is 0. So a bit of a report is 1 with probability

    .. math:: p^* = p - f (p - q)/2 \text{ (bit set)}, \qquad q^* = q + f (p - q)/2 \text{ (bit not set)}.

    Parameters
    ----------
    f : float
        Probability that a bit is replaced permanently, in [0, 1); f = 0 requires 0 < q and p < 1.
    p, q : float
        Probabilities of a one in a report if the permanent bit is 1 or 0, 0 <= q < p <= 1. By default a report consists of the
        permanent bits.
    hashes : int
        Number h of bits that a value sets, 1 to 512.
    bits : int, optional
        Number k of bits of the filter, above `hashes`. With k < 2h two values differ in at most 2 (k - h) bits. Without `bits`,
        k >= 3h is assumed, so that three values can have disjoint sets of bits.

    Notes
    -----
    The values of :meth:`randomize` are bits of filters, 0 and 1, of any shape, and so are the reports, int64. For an estimate,
    values and messages are rows of the bits of one filter, and a message supports the bits that are 1. The argument `counts` of
    :meth:`estimate` is how many messages support each bit, the sums of the columns.

    Neighbours: the value is replaced. The profile is exact for **one report**. Two values differ in at most 2d bits, d = min(h, k -
    h). If they differ in 2d bits, the privacy loss is

    .. math:: \text{loss} = (Z - d) \ln \frac{p^* (1 - q^*)}{q^* (1 - p^*)}, \qquad
        Z \sim \mathrm{Bin}(d, p^*) + \mathrm{Bin}(d, 1 - q^*),

    The pure budget is :attr:`eps_instantaneous`. All reports of one value are a post-processing of its permanent bits, whose
    profile is ``Rappor(f, hashes=h)``, with the budget :attr:`eps_permanent`. The two steps can be drawn separately, as
    ``Rappor(0, p, q).randomize(Rappor(f).randomize(bits))``, where the inner bits are stored.

    For :meth:`shuffled` the target's two values differ in as many bits as possible. The privacy blanket is
    :math:`((1-p^*)/(1-q^*))^h` times the distribution of a report if no bit is set, because a set bit changes the probability of a
    report by a factor of at least :math:`(1-p^*)/(1-q^*)`. A filter of k < 2h bits is the complement of a filter with k - h hashes
    and p* and 1 - q* exchanged, so the bounds of the latter are used. For up to 26 hashes, or k - h <= 26, the bound over all
    datasets is available; it holds for values with common bits, too (docs/theorems/worst-dataset).

    The lower bound of :meth:`shuffled` is the largest delta of a few datasets. In each, all other users have the same value: one of
    the target's two values; a value with as few bits as possible in common with both; or a value with as few as possible in common
    with one of them.

    References
    ----------
    Erlingsson, U., Pihur, V., Korolova, A. RAPPOR: randomized aggregatable privacy-preserving ordinal response, 2014, Theorems 1
    and 2 (where p and q are exchanged).

    Examples
    --------
    >>> from shufflebounds.mechanisms import Rappor
    >>> report = Rappor(f=0.5, p=0.75, q=0.5, hashes=2)
    >>> print(f"{report.eps_permanent:.9f} {report.eps_instantaneous:.9f}")
    4.394449155 1.074285864
    >>> print(f"{report.delta(0.5):.9f}")
    0.051006483
    """

    f: float
    p: float = 1.0
    q: float = 0.0
    hashes: int = 1
    bits: int | None = None

    theorem: ClassVar[str] = "exact for one RAPPOR report (Erlingsson, Pihur, Korolova 2014, section 3, evaluated in full)"
    neighbours: ClassVar[str] = "replace the user's value; the analyst sees one report"

    def __post_init__(self) -> None:
        _validate.real_field(self, "f", 0, 1, open_high=True)
        _validate.real_field(self, "p", 0, 1, open_low=True)
        if _validate.real("q", self.q, 0, 1) >= self.p:
            raise ValueError(f"q={self.q:g} must be in [0, {self.p:g}), below p={self.p:g}: p is the probability of a one for a "
                             "set bit, q for the others; where these letters are exchanged, as in Google's files, exchange "
                             "the values")
        _validate.real_field(self, "q", 0, self.p, open_high=True)
        _validate.integer_field(self, "hashes", 1, 512)
        f, p, q = self.f, self.p, self.q
        if f == 0 and (p == 1 or q == 0):
            raise ValueError(f"f=0 needs 0 < q and p < 1, got q={q:g}, p={p:g}: a certain bit reveals the value")
        if min(self._support_probabilities()[:4]) < 1e-305:
            raise ValueError(f"f={f:g} with p={p:g}, q={q:g}: every probability of a bit must be at least 1e-305")
        if self.bits is not None:
            _validate.integer_field(self, "bits", self.hashes + 1)

    @property
    def _differ(self) -> int:
        """Half of the largest number of bits in which the filters of two values differ (d of the class docstring)."""
        return self.hashes if self.bits is None else min(self.hashes, self.bits - self.hashes)

    def _support_probabilities(self) -> SupportProbabilities:
        """Return p*, 1 - p*, q*, 1 - q* and p* - q*; the first four are sums of positive terms, without cancellation."""
        half, f, p, q = self.f / 2, self.f, self.p, self.q
        kept = (1 - f) + half
        return SupportProbabilities(p * kept + q * half, (1 - p) * kept + (1 - q) * half,
                                    q * kept + p * half, (1 - q) * kept + (1 - p) * half, (1 - f) * (p - q))

    def _unit(self) -> float:
        """Return ln(p* (1 - q*)/(q* (1 - p*))).

        Take two bits of the filter, of which a value sets the first and its neighbour the second. The result is the privacy loss if
        both bits of the report agree with the value.
        """
        _, lost, other, _, gap = self._support_probabilities()
        # A quotient above 1 may overflow, so its log1p is replaced by a difference of logarithms.
        return sum(math.log1p(gap / base) if base > gap else math.log(base + gap) - math.log(base) for base in (other, lost))

    @property
    def eps_instantaneous(self) -> float:
        r"""Budget of one report, :math:`d \ln\frac{p^*(1-q^*)}{q^*(1-p^*)}` with d = min(h, k - h), rounded up."""
        return self._differ * self._unit() * (1 + 16 * ULP)

    @property
    def eps_permanent(self) -> float:
        r"""Budget of any number of reports, :math:`2 d \ln\frac{1 - f/2}{f/2}` with d = min(h, k - h), rounded up; inf at f = 0."""
        if self.f == 0:
            return math.inf
        return 2 * self._differ * math.log1p(2 * (1 - self.f) / self.f) * (1 + 16 * ULP)

    @property
    def _one(self) -> _Losses:
        return _Losses(self._differ, self._unit(), self._support_probabilities())

    def describe(self) -> DominatingPairInfo:
        one = self._one
        losses = Losses(one.atoms, (0.0, one.unit), on_lattice=True)
        return DominatingPairInfo(one.log_delta, self.eps_instantaneous, losses=losses, attained=SINGLE)

    def _report(self) -> SupportProbabilities:
        """Return :meth:`_support_probabilities` of a filter with :attr:`_differ` hashes that is equivalent after a shuffle.

        If the filter has fewer than 2h bits, zeros and ones are exchanged: the complement sets the k - h bits that a value does not
        set, and these bits are ones with probability 1 - q*.
        """
        one, lost, other, rest, gap = self._support_probabilities()
        return SupportProbabilities(one, lost, other, rest, gap) if self._differ == self.hashes else SupportProbabilities(
            rest, other, lost, one, gap)

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        # The target's two values differ in as many bits as possible. For the upper bound, m(y) is (lost/rest)^hashes times the
        # probability of message y for a value that sets no bit; this is at most the probability of y for every value. For more than
        # about 30 hashes R_0/m and R_1/m are reduced to few values (nodes), which makes X larger in the convex order.
        d, unit = self._differ, self._unit()
        _, lost, other, rest, _ = self._report()
        log_p, log_rest = self._one.log_masses, self._log_rest()
        # The error of the loss of a bit is used to decrease X for a lower bound, and to increase it for an upper bound.
        loss = np.arange(-d, d + 1.0)
        loss = unit * (loss - SLACK * np.abs(loss))
        lower = [("every other user has the target's first value", ExcessLaw(log_p, np.zeros_like(loss), -loss, -math.inf)),
                 ("every other user has the target's second value", ExcessLaw(log_p[::-1], loss, np.zeros_like(loss), -math.inf))]
        if (d + 1) ** 2 <= MANY:
            # Let another value set i bits of the target's first value and j of the second. The second moment of X is a convex
            # function of i on i = 0..d - j, and of j. So it is largest at an end of these ranges: at one of the target's values, or
            # at a value with `fewest` bits of one of them and none of the other.
            fewest = 0 if self.bits is None else max(0, 3 * d - self.bits)
            lower += [(f"every other user has {i} bits of the target's first value and {j} of the second",
                       self._of_kind(i, j, upper=False)) for i, j in sorted({(fewest, 0), (0, fewest)}) if fewest < d]
            # The upper bound has an atom for each pair of numbers: the ones among the bits that only the first value sets, and the
            # ones among those that only the second sets.
            own, steps = _binomial(d, other, rest), unit * np.arange(d + 1.0)
            upper = ExcessLaw((own[:, None] + own).ravel() + d * math.log(lost / rest), np.repeat(steps * (1 + SLACK), d + 1),
                              np.tile(steps * (1 - SLACK), d + 1), log_rest)
        else:
            ones, levels = _binomial(d, other, rest), unit * np.arange(d + 1.0)
            nodes = chosen(levels, ones, _NODES if d <= 128 else _NODES // 2)
            each = log_spread(levels, ones + d * math.log(lost / rest) / 2, nodes)
            spread = product_law([(each, each)], nodes, log_rest)
            upper = replace(spread, log_a=spread.log_a * (1 + SLACK), log_b=spread.log_b * (1 - SLACK))
        return (PairLaws("two values farthest apart", upper, tuple(lower), symmetric=True),)

    def _log_rest(self) -> float:
        """Return an upper bound of log(1 - ((1 - p*)/(1 - q*))^d), the log of 1 minus the mass of the blanket m."""
        _, lost, _, rest, gap = self._report()
        share = math.log1p(-gap / rest) if 2 * gap < rest else math.log(lost / rest)
        value = math.log(-math.expm1(self._differ * share))
        return min(0.0, value + ULP * (64 + 8 * abs(value)))

    def dataset_laws(self) -> DatasetLaws | None:
        h, unit = self._differ, self._unit()
        _, lost, other, rest, gap = self._report()
        base = h * math.log(lost / rest)
        # There is no bound over all datasets in two cases: if the mass of the blanket is small, because the error term is
        # proportional to the inverse of this mass; and if the 2h^4 atoms of all kinds do not fit into a table.
        if base < math.log(COMPUTED_ERROR) or 2 * h**4 > TABLE_SIZE:
            return None
        # Another value sets h - i - j bits that neither of the target's two values sets. The target's values have at most h - 1
        # bits in common, so at most bits - h - 1 bits are set by neither of them.
        fewest = 0 if self.bits is None else max(0, 2 * h + 1 - self.bits)
        others = [self._of_kind(i, total - i, upper=True) for total in range(h, fewest - 1, -1) for i in range(total, -1, -1)]
        height = ExcessLaw(_binomial(h, other, rest) + base, np.zeros(h + 1), unit * (1 - SLACK) * np.arange(h + 1.0),
                           self._log_rest())
        # `distance` is the squared norm of R_x - B in L^2(1/m), where B is the distribution of a report if no bit is set.
        distance = math.expm1(h * math.log1p(gap / other * (gap / rest))) * math.exp(-base)
        return DatasetLaws(FiniteCases.of([self.excess_laws()[0].upper]), FiniteCases.of(others, 8 * ULP * h),
                           FiniteCases.of([height.widened(upper=True)]), base,
                           distance * (1 + 256 * ULP * (h + abs(base))), self.eps_instantaneous, self._ratio_tail)

    def _of_kind(self, i: int, j: int, *, upper: bool) -> ExcessLaw:
        """Return the distribution of X (`ExcessLaw`) if another value sets i bits of the target's first value and j of the second.

        The likelihood ratios are rounded up for an upper bound, and down for a lower bound.
        """
        h, unit = self._differ, self._unit()
        one, lost, other, rest, _ = self._report()
        # Let u, v be the target's two values and x the other user's value. log a is unit * (A - B), where A is the number of ones
        # among the h - i bits that u sets and x does not, and B that among the h - i bits that x sets and u does not (j of them are
        # bits of v). log b is the same with u and v exchanged.
        first = _difference(_binomial(h - i, other, rest), _binomial(j, one, lost))
        second = _difference(_binomial(h - j, other, rest), _binomial(i, one, lost))
        neither = _binomial(h - i - j, one, lost)
        log_mass = np.full((first.size + neither.size - 1, second.size + neither.size - 1), -np.inf)
        for less, log_p in enumerate(neither[::-1].tolist()):
            part = log_mass[less : less + first.size, less : less + second.size]
            np.logaddexp(part, first[:, None] + second + log_p, out=part)
        log_a, log_b = (unit * (steps + (way if upper else -way) * SLACK * np.abs(steps)) for steps, way in
                        ((np.arange(i - h, h - i + 1.0)[:, None], 1), (np.arange(j - h, h - j + 1.0), -1)))
        seen = log_mass > -np.inf
        log_a, log_b = (np.broadcast_to(steps, log_mass.shape)[seen] for steps in (log_a, log_b))
        return ExcessLaw(log_mass[seen], log_a, log_b, -math.inf).widened(upper=upper)

    @cached_property
    def _twin(self) -> Rappor | FewOutputs:
        """The matrix of the probabilities of all reports if the filter is small, for tighter bounds; otherwise `self`."""
        if self.bits is None or math.comb(self.bits, self.hashes) << self.bits > _CELLS:
            return self
        if min(self._report()[:4]) < SQUARABLE**-0.5:
            return self
        # The products of probabilities are exact rationals, because in doubles each probability of a bit has an error of a few ulp,
        # and these errors add up.
        f, p, q = (Fraction(x) for x in (self.f, self.p, self.q))
        one, other = p - f * (p - q) / 2, q + f * (p - q) / 2
        each = one, 1 - one, other, 1 - other
        reports = list(product((1, 0), repeat=self.bits))
        return FewOutputs(np.array([[float(math.prod(each[2 * (j not in value) + 1 - bit] for j, bit in enumerate(report)))
                                     for report in reports] for value in combinations(range(self.bits), self.hashes)]), ULP)

    def _ratio_tail(self, t: FloatArray) -> FloatArray:
        """Return the largest probability, over two values, of a likelihood ratio above t."""
        unit, largest = self._unit() * (1 + SLACK), np.zeros(t.shape)
        for differ in range(1, self._differ + 1):
            log_p = replace(self, hashes=differ, bits=None)._one.log_masses
            above = np.append(np.cumsum(np.exp(log_p)[::-1])[::-1], 0.0)
            place = np.searchsorted(unit * np.arange(-differ, differ + 1.0), np.log(t) - 4 * ULP, "right")
            largest = np.maximum(largest, above[place])
        return np.asarray(largest * (1 + 256 * ULP * self._differ))

    @property
    def _count_shape(self) -> tuple[int, ...] | None:
        return None if self.bits is None else (self.bits,)

    def _checked_values(self, values: ArrayLike) -> NDArray[np.int8]:
        return _validate.bits("values", values) if np.size(values) else np.empty((0, self._values()), dtype=np.int8)

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        one, _, other, _, _ = self._support_probabilities()
        return (source.random(values.shape) < np.where(values == 1, one, other)).astype(np.int64)

    def _checked_messages(self, messages: ArrayLike) -> NDArray[np.int8]:
        width = np.shape(messages)[-1] if self.bits is None and np.ndim(messages) == 2 else self.bits or 1
        return _validate.bits("messages", message_rows(messages, width, "report"))

    def _added(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        return np.asarray(messages.sum(axis=0, dtype=np.int64))

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        ones = values.sum(axis=0, dtype=np.int64)
        one, _, other, _, _ = self._support_probabilities()
        return np.asarray(source.binomial(ones, one) + source.binomial(len(values) - ones, other))

    def _values(self) -> int:
        return self.bits or 1

    def _values_of_one(self) -> int:
        return self.hashes if self.bits else 1


def _binomial(trials: int, hit: float, miss: float) -> FloatArray:
    """Return the log masses of 0..trials hits.

    The masses are computed from the smaller of the probabilities of a hit and of a miss; the larger one may round to 1.
    """
    k = np.arange(trials + 1.0)
    return np.asarray(binom_logpmf(k, trials, hit) if hit <= miss else binom_logpmf(trials - k, trials, miss))


def _difference(log_p: FloatArray, log_q: FloatArray) -> FloatArray:
    """Return the log masses of the difference of independent variables with log masses `log_p` and `log_q`, by value."""
    out = np.full(log_p.size + log_q.size - 1, -np.inf)
    for less, mass in enumerate(log_q[::-1].tolist()):
        np.logaddexp(out[less : less + log_p.size], log_p + mass, out=out[less : less + log_p.size])
    return out
