"""One-hot reports of users and uniform dummy reports, in which every bit is flipped at random."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import Kept, cached_property, kept
from shufflebounds._base.crossing import Curve
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import Evidence, bound_lines
from shufflebounds._base.limits import CACHED_ANSWERS, CACHED_BYTES, MANY, SEARCH_GAP, SQUARABLE
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, at_each, consistent
from shufflebounds._engines.bits import records as _record_pair
from shufflebounds._engines.bits import two_bins as _bin_pair
from shufflebounds._engines.bits import two_counts as _worst_data
from shufflebounds._engines.bits.record_tests import scored_pair
from shufflebounds._engines.clones.law import CloneLaw
from shufflebounds._engines.datasets.weighted_labels import WeightedLabels
from shufflebounds._engines.errors.accuracy import CountErrorLaw, bits_exceeded
from shufflebounds._engines.errors.counted import CountsOfColumns, bernoulli
from shufflebounds._engines.errors.intervals import CountIntervals, CountLaw, tail_of_bits
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.budget import log_odds
from shufflebounds._losses.release import SINGLE, Attained, CurveBounds, DominatingPairInfo, Losses, Releases, Sampling
from shufflebounds.mechanisms.oracles.rappor import Rappor
from shufflebounds.profile.between import Between
from shufflebounds.profile.calibration import least_parameter, meets, one_of_releases
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.shuffle.absent import AbsentUsers
from shufflebounds.shuffle.bits import (
    ComposedSums,
    FlippedProtocol,
    IndependentSums,
    ShuffledBits,
    group_of_columns,
    repeated,
)
from shufflebounds.shuffle.clear_reports import ClearReports
from shufflebounds.shuffle.shuffled import Shuffled

__all__ = ["FlippedReports"]

DEEPEST, WIDEST = -540.0, 9000.0
"""Smallest log delta, and largest number of flipped bits in a bin, for which all datasets of both bins are searched by tables.

For a smaller delta the probabilities in a table would underflow; for more flipped bits the search ends with a gap of 1 % of eps
or more. In both cases the composition of two releases of one bin's sum gives a tighter bound in less time.
"""

SEARCHED = 128
"""Largest number of reports for which all datasets with uniform dummy reports are searched; with more than two bins, an eighth of
this number. Raised: longer run time. Lowered: less tight bounds."""

_EVERY, _KNOWN = "a search over all datasets", "the sums of two bins whose other reports the analyst may know"
_FEWER, _NAMED = "a search over all datasets of fewer reports", "records of dummies whose bins the analyst may know"
_LABELS, _SCORES = "weighted labels", "tests by sums of scores of the records"
"""Names of bounds in the lines of `explain`."""

_CLAIMS = {
    ("sums", False): ("the divergence of the sums of two bins: the maximum over all datasets, or each sum with its worst dataset",
                      "delta of one dataset, that with the largest divergence of the sums of two bins that the search evaluates"),
    ("sums", True): ("the smaller of the bounds for known dummies and for clear reports, or the maximum over all datasets of few "
                     "of the reports in two bins", "the divergence of the sums of the target's two bins in one dataset"),
    ("records", False): ("the smaller of the bounds of shuffled RAPPOR reports of one hash and of one record",
                         "delta of shuffled RAPPOR reports of one hash in one dataset"),
    ("records", True): ("the smallest of one record, clear reports, known dummies, weighted labels and a privacy blanket, or the "
                        "maximum over all datasets of few of the reports in two bins (Zhilyaev's Proposition 5.1 is false for "
                        "records)",
                        "tests of the records in one dataset"),
}
"""What the upper and the lower bound rest on, by what the analyst sees and by whether there are dummy reports in unknown bins."""


class _OfRappor(Between):
    """Bounds for shuffled records, each a report of `Rappor` with one hash; `rappor` is the protocol of these reports."""

    def __init__(self, rappor: Shuffled, flip: float) -> None:
        super().__init__(rappor, rappor, log_odds(flip).times(2).above)
        self.rappor, self.flip = rappor, flip

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        # Just below the pure budget the local guarantee is more accurate than the bounds of `Shuffled`.
        local = np.array([_record_pair.local(self.flip, e) for e in eps.tolist()])
        return np.asarray(np.minimum(super().side(eps, upper), local))


class _Reports(IndependentSums):
    """Bounds by searches over datasets, with tables that are used for several eps; the fields are those of the protocol.

    `uniform` states whether there are dummy reports whose bins the analyst does not know.
    """

    def __init__(self, protocol: FlippedReports) -> None:
        self.users, self.fakes, self.bins, self.flip = protocol.users, protocol.fakes, protocol.bins, protocol.flip
        self.view, self.fake, self.clear = protocol.view, protocol.fake, protocol.clear
        self.uniform = protocol._uniform
        # Number of reports other than the target's: those of the other users and the dummies.
        self._others = self.users - 1 + self.fakes
        # Only the sums of the target's two bins depend on the target. If m of the other users are in the bin that the target
        # leaves, and all others in the bin that the target enters, the second sum is distributed as the first with 0 and 1
        # exchanged in all bits.
        column = None if self.view == "records" or not 0 < self.flip < 0.5 else ShuffledBits(self.users + self.fakes, self.flip)
        super().__init__(column, 2, not self.uniform, log_odds(self.flip).times(2).above)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return at_each(self._at, eps)

    def side(self, eps: FloatArray, upper: bool) -> FloatArray | None:
        # With tables, one search over datasets gives both bounds. Where delta is too small for tables, each bound has a composition
        # of its own.
        if self.one is None or self.uniform:
            return None
        small = np.array([at < min(self.pure, 700.0) and self._without_tables(at) for at in eps.tolist()], dtype=np.bool_)
        if not small.any():
            return None
        alone = np.array([_record_pair.local(self.flip, at) for at in eps[small].tolist()])
        out = np.empty(eps.size)
        out[small] = np.minimum(np.minimum(self._twice.side(eps[small], upper), alone), 0.0)
        out[~small] = self.log_delta(eps[~small])[upper]
        return out

    @kept(CACHED_ANSWERS)
    def _without_tables(self, eps: float) -> bool:
        return self._tables(eps) is None

    def roughly(self, eps: FloatArray) -> IntervalArray:
        """Return bounds with a gap of about .03 in log delta, in less time than `log_delta`, because a curve takes many eps."""
        return at_each(partial(self._at, rough=True), eps)

    def _at(self, eps: float, *, rough: bool = False) -> Interval:
        if eps >= self.pure:
            return Interval(-math.inf, -math.inf)
        if self.flip == 0:
            if self.fake == "uniform":
                return self.clear._log_delta(np.array([eps])).alone()
            return Interval(0.0, 0.0)
        if eps > 700:
            # e^eps would overflow. delta decreases in eps, so the upper bound at eps = 700 is valid.
            return Interval(-math.inf, min(self._at(700.0, rough=rough).upper, _record_pair.local(self.flip, eps)))
        below, above = self._by_name(eps, rough)
        bounds = IntervalArray(np.array([max(below.values())]), np.array([min(0.0, *above.values())]))
        return consistent(bounds, "log delta at eps={!r}", np.array([eps])).alone()

    def method(self, eps: float) -> list[str]:
        if self.flip == 0 or not eps < min(self.pure, 700.0):
            return []
        below, above = self._by_name(eps)
        optional = {} if self.view == "sums" or not self.uniform or self.enumerated else {
            _LABELS: "which need at most 1024 bins and a bound below 1", _SCORES: "because there are too many records"}
        return [f"method: above by {min(above, key=above.__getitem__)}; below by {max(below, key=below.__getitem__)}",
                *bound_lines(above, upper=True, omitted={
                    name: reason for name, reason in optional.items() if name not in (*above, *below)}),
                *bound_lines(below, upper=False)]

    def _by_name(self, eps: float, rough: bool = False) -> tuple[dict[str, float], dict[str, float]]:
        """Return the lower and the upper bounds of log delta by name, for eps below the pure budget and a positive flip."""
        above = {"one record alone": _record_pair.local(self.flip, eps)}
        if self.uniform:
            above["clear reports"] = self.clear._log_side_at(eps, upper=True)
        most = min(0.0, *above.values())
        below, further = self._records(eps) if self.view == "records" else self._sums(eps, rough, most)
        return below, {**above, **further}

    def _records(self, eps: float) -> tuple[dict[str, float], dict[str, float]]:
        """Return the lower and the upper bounds of log delta by name for ``view="records"``."""
        if not self.uniform:
            # Here q is below 1/SQUARABLE. More flips are post-processing, so the lower bound for q = 1/SQUARABLE is valid.
            more = FlippedReports(self.users, self.fakes, self.bins, 1 / SQUARABLE, view="records", fake=self.fake)
            return {f"a flip probability of {1 / SQUARABLE:g}": more._log_side_at(eps, upper=False)}, {}
        if self.enumerated:
            low, high = _record_pair.enumerated(self.users - 1, self.fakes, self.flip, eps)
            return {_EVERY: low}, {_EVERY: high}
        below = {"bits of the target's two bins": _record_pair.projected(self.users - 1, self.fakes, self.bins, self.flip, eps)}
        above = {"a privacy blanket": _record_pair.blanket_bound(self._blanket, self.flip, eps)}
        if self.bins == 2:
            fewer = self.fewer(_record_pair.ENUMERATED)
            above[_FEWER] = _record_pair.enumerated(fewer.users - 1, fewer.fakes, self.flip, eps).upper
        if self._tested is not None:
            below[_SCORES] = float(self._tested.log_delta(np.array([eps])).lower[0])
        if self._labels is not None:
            above[_LABELS] = self._labels.log_delta(eps)
        # For fewer reports this is a search over datasets, which takes too long for the many eps of a curve.
        if self._others > SEARCHED:
            above[_NAMED] = self._named._log_side_at(eps, upper=True)
        return below, above

    @cached_property
    def _named(self) -> FlippedReports:
        """The protocol whose dummies may have any bins: delta of uniform dummies is at most a mean over their bins."""
        return FlippedReports(self.users, self.fakes, self.bins, self.flip, view="records", fake="known")

    def fewer(self, reports: int) -> FlippedReports:
        """Return the protocol with fewer reports, `reports` in all, of which as many as possible are uniform dummies.

        A report that does not depend on the target is post-processing, so an upper bound for fewer reports is valid for more. With
        a dummy report in place of a user, delta is at most a mean over the user's values, so dummies are kept rather than users.
        """
        fakes = min(self.fakes, reports - 1)
        return FlippedReports(reports - fakes, fakes, self.bins, self.flip, view=self.view)

    @property
    def enumerated(self) -> bool:
        """Whether the distributions of records among uniform dummies are enumerated for all datasets."""
        return self.view == "records" and self.uniform and self.bins == 2 and self._others < _record_pair.ENUMERATED

    @cached_property
    def _tested(self) -> LossAtoms | None:
        """A pair whose divergences are lower bounds, from tests of sums over the records. The result is None if there are too
        many records.
        """
        return scored_pair(self.users - 1, self.fakes, self.bins, self.flip)

    @cached_property
    def _labels(self) -> WeightedLabels | None:
        """The bound for records among uniform dummies by weighted labels, if it may be below 1."""
        return WeightedLabels.of_records(self.users - 1, self.fakes, self.bins, self.flip)

    @cached_property
    def _blanket(self) -> CloneLaw:
        """The number of clones in the privacy blanket of records, with tables that are used for several eps."""
        return _record_pair.blanket(self.users - 1, self.fakes, self.bins, self.flip)

    @property
    def _counted(self) -> tuple[int, int, int]:
        """Numbers of other reports whose bins the analyst may know, of uniform dummies, and of bins (2 if no dummy is uniform)."""
        return (self.users - 1, self.fakes, self.bins) if self.uniform else (self._others, 0, 2)

    def _sums(self, eps: float, rough: bool, most: float) -> tuple[dict[str, float], dict[str, float]]:
        """Return the lower and the upper bounds of log delta by name for ``view="sums"``.

        `most` is another upper bound of log delta. A returned upper bound may be 0, which is trivial, if the search finds none
        below `most`.
        """
        below, above = {}, {}
        if not self.uniform:
            below[_KNOWN], above[_KNOWN] = self._known_sums(eps, rough, most)
            return below, above
        if self.users + self.fakes <= (SEARCHED if self.bins == 2 else SEARCHED // 8):
            low, high = self._searched_sums(eps)
            below[_EVERY] = low
            # The sums of the other bins reveal how many dummies are not in the target's two bins, so delta of the two sums alone is
            # only a lower bound if there are other bins.
            if self.bins == 2:
                above[_EVERY] = high
                # For flip probabilities near 1/2, delta may be below the rounding errors of the tables of dummies.
                if high - low < 1:
                    return below, above
        else:
            below["all other users in the target's bin"] = self._uniform_at_worst(eps)
        above[_KNOWN] = self._known_sums(eps, rough, most).upper
        if self.bins == 2 and self.users + self.fakes > SEARCHED and not rough:
            # Without this bound, delta would be larger than for fewer reports, which are searched.
            fewer = self._fewest
            if fewer._uniform_at_worst(eps) < min(most, above[_KNOWN]):
                above[_FEWER] = fewer._searched_sums(eps).upper
        return below, above

    @cached_property
    def _fewest(self) -> _Reports:
        """The bounds of the largest number of reports whose datasets are searched."""
        return _Reports(self.fewer(SEARCHED))

    @cached_property
    def fake_table(self) -> _bin_pair.FakeTable:
        return _bin_pair.FakeTable(self.fakes, self.bins, self.flip)

    def _uniform_at_worst(self, eps: float) -> float:
        """Return a lower bound of log delta with uniform dummies: that of the dataset with all other users in the target's bin."""
        others = self.users - 1
        sides = self.fake_table.log_delta((others, 0), (0, others), eps)
        return sides[0] if sides else _record_pair.one_bin(others, self.fakes, self.bins, self.flip, eps)

    @cached_property
    def _bin_tables(self) -> _bin_pair.BinTables:
        """Distributions of the sum of one bin, which several eps share. Their values do not depend on earlier calls."""
        return Kept(CACHED_BYTES, lambda law: 3 * law.masses.nbytes)

    @cached_property
    def _twice(self) -> ComposedSums:
        """The sums of the target's two bins, as two columns. With 0 and 1 exchanged in the second column, the target's bit changes
        in the same direction in both.
        """
        return ComposedSums(ShuffledBits(self._others + 1, self.flip), 2, self.pure)

    def _tables(self, eps: float) -> tuple[Interval, _bin_pair.TwoBins] | None:
        """Return bounds of log delta with all other users in the target's bin, and tables for the search over datasets.

        None is returned if log delta is below DEEPEST or the sums are too wide.
        """
        if self._others * self.flip > WIDEST:
            return None
        ends = (0, self._others), (0, self._others)
        log_tail = -60.0
        while True:
            tables = _bin_pair.TwoBins(self.flip, eps, log_tail, self._bin_tables)
            near = tables.log_delta(*ends)
            # The lower bound may be far below delta, even 0. The truncated mass is at most e^-45 times a guess of delta: the lower
            # bound, or the upper bound to the power 2.2, whichever is larger.
            wanted = min(-60.0, max(near.lower, 2.2 * near.upper) - 45)
            # The log of the truncated mass is rounded to -60 times a power of 1.2, so that several eps share tables.
            wanted = -60 * 1.2 ** math.ceil(math.log(wanted / -60) / math.log(1.2))
            if near.upper < DEEPEST:
                return None
            if wanted >= log_tail or tables.log_tail > log_tail:
                return near, tables
            log_tail = wanted
            if near.upper - near.lower < 1:
                return near, _bin_pair.TwoBins(self.flip, eps, log_tail, self._bin_tables)

    def _known_sums(self, eps: float, rough: bool, most: float) -> Interval:
        """Return bounds of log delta for sums, over all datasets, if the analyst may know the bins of all other reports.

        `most` is as for `_sums`.
        """
        worst = self._tables(eps)
        if worst is None:
            return self._twice.log_delta(np.array([eps])).alone()
        others, (near, tables) = self._others, worst
        if near.lower >= most:
            return Interval(near.lower, 0.0)
        # The gap of the search is at most the fraction `rtol` of delta. The run time grows with the inverse square of `rtol`.
        rtol = 30 * SEARCH_GAP if rough else None

        # Let i of the other users not be in the first bin, and j be in the second; b users are removed from the sum of the first
        # bin, and c users from the sum of the second.
        def bounds_at(i: int, j: int, b: int, c: int) -> Interval:
            return tables.log_delta((i, others - b - i), (j, others - c - j))

        width = 1 + min(others, 20 * math.sqrt(others * self.flip))
        evaluations = int(min(20_000, max(12, 5e6 / width)))
        return _worst_data.maximize_over_two_counts(bounds_at, others + 1, self.bins == 2, evaluations, rtol)

    def _searched_sums(self, eps: float) -> Interval:
        """Return bounds of log delta for sums with uniform dummies, over all datasets of the other users.

        In a dataset, i of the other users are not in the first bin, and j are in the second.
        """
        others = self.users - 1

        def bounds_at(i: int, j: int, b: int, c: int) -> Interval:
            sides = self.fake_table.log_delta((others - b - i, i), (j, others - c - j), eps)
            assert sides is not None
            return sides

        return _worst_data.maximize_over_two_counts(bounds_at, others + 1, self.bins == 2, 20_000)

    def rough(self, upper: bool) -> Curve | None:
        # For many reports with known bins, the dataset with all other users in the target's bin is close to the worst one.
        if self.view == "records" or self._others < SEARCHED or not 0 < self.flip < 0.5:
            return None

        def log_delta(eps: float) -> float:
            if eps >= min(700.0, self.pure):
                return -math.inf
            if not upper and self.uniform:
                return self._uniform_at_worst(eps)
            worst = self._tables(eps)
            ends = (0, self._others), (0, self._others)
            near = worst[1].log_delta(*ends)[upper] if worst else float(self._twice.side(np.array([eps]), upper)[0])
            return min(0.0, near)

        return Curve(log_delta, settles=1e-9)

    @cached_property
    def listed_below(self) -> tuple[DominatingPairInfo, ...]:
        """Enumerated pairs whose compositions are lower bounds: for records, or for sums with uniform dummies."""
        if self.view == "records":
            atoms = self._tested
            if atoms is None:
                pair = _record_pair.projected_pair(self.users - 1, self.fakes, self.bins, self.flip)
                return (pair,) if pair else ()
            return (DominatingPairInfo(atoms.log_delta, losses=Losses(lambda log_tail: atoms), attained=SINGLE),)
        return _bin_pair.both_bins(*self._counted, self.flip) or _record_pair.one_bin_pairs(*self._counted, self.flip)


@with_passages
@dataclass(frozen=True, repr=False)
class FlippedReports(CountIntervals, CountsOfColumns, FlippedProtocol[NDArray[np.int64], FloatArray], CountErrorLaw, AbsentUsers):
    r"""Users and m dummies report one-hot vectors of d bits, in which each bit is flipped independently with probability q.

    The guarantees depend on what the analyst sees, so `view` has no default:

    - ``view="sums"``: the number of ones in every bin, as when the bits of each bin are shuffled separately.
    - ``view="records"``: the shuffled records of d bits each, as in the protocol of Zhilyaev (References).

    .. warning::
       Zhilyaev's Proposition 5.1 states a flip probability q for a target (eps, delta). It is **false for records**: the record of
       one bin becomes that of another bin only if two given bits are flipped, which has probability q**2.

    Let the target user move from one bin to another, and let these two bins have :math:`M_1` and :math:`M_2` of the other n - 1 + m
    reports. :math:`P_b^M` is the distribution of the number of ones in a bin with M other reports, if the target's bit is b before
    its flip. For sums, without uniform dummies, delta is the largest hockey-stick divergence

    .. math:: \delta(\varepsilon) = \max_{M_1, M_2}
        H_{e^\varepsilon}(P_1^{M_1} \times P_0^{M_2} \,\|\, P_0^{M_1} \times P_1^{M_2}).

    Parameters
    ----------
    users : int
        Number n of users, 1 to 2**53.
    fakes : int
        Number m of dummy reports, 0 to 2**53; users + fakes is at most 2**53.
    bins : int
        Number d of bins, 2 to 2**53.
    flip : float
        Probability q of flipping a bit, in [0, 1/2].
    view : {"sums", "records"}
        What the analyst sees.
    fake : {"uniform", "known"}
        "uniform": the bins of the dummies are drawn uniformly and the analyst does not know them. "known": the analyst knows them,
        and any bins are permitted; privacy then relies on their flipped bits only.
    {absent}

    Notes
    -----
    Neighbours: one user's bin is replaced.

    **Sums, no dummies or known ones**: a search by branch and bound over M_1 and M_2 gives the two bounds of the maximum. Their gap
    is a relative 1e-2 in delta (1e-9 up to 32 reports). In the worst dataset all or most other users are in the target's first bin,
    the one of M_1: at n = 10**6, q = 4.26e-5, eps = 1 delta is then 4.7 times that of a dataset without other reports in the two
    bins.

    For more than 9000 flipped bits in a bin, or if log delta is below -540, the two sums are treated as two releases and composed.
    For the upper bound each sum has its worst dataset, for the lower bound all other users are in the target's first bin.

    As the two sums are independent, Renyi divergences are twice those of one sum, ``ShuffledBits(users + fakes, flip)``, and
    :meth:`gdp_mu` is at most sqrt(2) times that of one sum.

    **Sums, uniform dummies**: with two bins and up to 128 reports the gap is as small as without dummies. For more bins or reports:

    - The upper bound is the smaller of the bound for known dummies and the bound of :class:`ClearReports` (flipping is
      post-processing). For two bins delta of 128 of the reports, with as many dummies as possible, is a third bound.
    - The lower bound is the divergence of the sums in the target's two bins: for up to 16 reports that of the worst dataset,
      for more reports that of the dataset with all other users in the target's first bin. Only the sum of one bin is used if the
      table of both sums would be too large. The sums of the other bins, which reveal how many dummies are not in the target's
      two bins, are ignored.

    The gap is small if m/d is much smaller than (n + m) q or much larger than n q; for m/d between these numbers, the bounds of
    delta differ by a factor of about 10.

    **Records, no dummies or known ones**: a record is a report of :class:`~shufflebounds.mechanisms.Rappor` with one hash,
    ``Rappor(2 * flip, bits=bins)``, which flips a bit with half of its parameter f. The bounds are those of :class:`Shuffled` for
    n + m users. The lower bound is delta if all other users are in a bin other than the target's two; from 1e4 users on, the two
    bounds of eps differ by less than 0.2 % at delta = 1e-6.

    **Records, uniform dummies**: for two bins and at most 24 reports, delta over all datasets is computed exactly. Otherwise the
    upper bound is the smallest of six, with p = 1 - q:

    - the local guarantee :math:`(p^2 - e^\varepsilon q^2)_+`;
    - the bound of :class:`ClearReports`;
    - for more than 129 reports the bound for ``fake="known"``, because delta of uniform dummies is at most a mean over their bins;
    - for two bins, delta of 24 of the reports, with as many dummies as possible (reports that do not depend on the target are
      post-processing);
    - for up to 1024 bins, a bound by weighted labels (theorem w of docs/theorems/weighted-labels);
    - a privacy blanket of records that have the bits 10 or 01 in the target's two bins, with equal probabilities, and in all
      other bins bits distributed as those of the target's record. The distribution of a user's record contains the blanket
      with the weight :math:`2q^2`, that of a dummy with the weight :math:`2((p^2+q^2)/d + (1-2/d) q^2)`.

    The lower bound is that of tests of the dataset in which all other users are in a third bin (with two bins: in the target's
    first bin). Such a test gives each record a score, and compares the sum of the scores with a threshold. For 1e4 users, q = 1/4,
    10 bins and 1e3 to 1e5 dummies, the two bounds of eps differ by 2 to 5 % at delta = 1e-6. With fewer users or smaller q the
    error term of weighted labels dominates, and the two bounds of eps may differ by a factor of 2.

    The users' values are bins 0..d - 1, and messages are rows of d bits, int8, for either view. The argument `counts` of
    :meth:`estimate` is the number of ones in each bin, the sums of the columns. With s ones in a bin the estimate is :math:`(s -
    (n+m) q)/(1-2q) - m/d`. Its error depends on the number of users in the bin, which :meth:`error_tail` takes as `truth`; over all
    datasets the error is bounded as in :class:`ShuffledBits`. With ``of="any"`` the bound is the union bound over bins, each for
    its worst dataset.

    References
    ----------
    Zhilyaev, M. Shuffled bits and fake records, section 5.2: (5.20) for the estimate; Proposition 5.1, which is unproven for sums.

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> sums = shuffle.FlippedReports(10**4, 0, 2, 0.0305, view="sums")
    >>> records = shuffle.FlippedReports(10**4, 0, 2, 0.0305, view="records")
    >>> sums.delta(1.0) < 1e-20, records.delta(1.0, bound="lower") > 1.8e-3
    (True, True)
    """

    users: int
    fakes: int
    bins: int
    flip: float
    view: Literal["sums", "records"] = field(kw_only=True)
    fake: Literal["uniform", "known"] = field(default="uniform", kw_only=True)

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """The statement that is proven for the upper bound."""
        return _CLAIMS[self.view, self._uniform][0]

    @property
    def lower_theorem(self) -> str:  # type: ignore[override]
        """The statement that is proven for the lower bound."""
        return _CLAIMS[self.view, self._uniform][1]

    @property
    def _uniform(self) -> bool:
        """Whether there are dummy reports whose bins the analyst does not know."""
        return self.fake == "uniform" and self.fakes > 0

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield from super().claims(eps, upper=upper)
        if isinstance(self._closed, _OfRappor):
            yield from self._closed.rappor.claims(eps, upper=upper)

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """The relation of neighbours, and what the analyst sees; the guarantee of one view does not hold for the other."""
        seen = "the sums of the flipped bits of each bin" if self.view == "sums" else "the shuffled records"
        return f"replace one user's bin; the analyst sees {seen}"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        _validate.integer_field(self, "fakes")
        _validate.integer_field(self, "bins", 2)
        _validate.real_field(self, "flip", 0, 0.5)
        _validate.choice("view", self.view, ("sums", "records"))
        _validate.choice("fake", self.fake, ("uniform", "known"))
        if self.users + self.fakes > _validate.MAX_COUNT:
            raise ValueError(f"users={self.users} plus fakes={self.fakes} must be at most 2**53")
        self._check_absent(self.users)

    @cached_property
    def clear(self) -> ClearReports:
        """The protocol without flips. With uniform dummies, the protocol with flips is a post-processing of the one without."""
        with _validate.quiet():
            return ClearReports(self.fakes, self.bins)

    def describe(self) -> DominatingPairInfo:
        forms = self._closed
        if isinstance(forms, _OfRappor):
            return replace(forms.rappor.describe(), pure=forms.pure)
        if isinstance(forms, ComposedSums):
            return DominatingPairInfo(forms.log_delta, forms.pure, sampling=Sampling(0.5, 0.6), releases=forms.releases(),
                                      attained=forms.attained())
        assert isinstance(forms, _Reports)
        if self.view == "records":
            # Unless all datasets are enumerated, the gap between the two bounds of delta is large, so fewer eps are evaluated.
            sampling = Sampling(2e-3 + 2e-5 * min(self.bins, MANY), 0.05 if forms.enumerated else 0.1)
            attained = Attained(pairs=forms.listed_below if 0 < self.flip < 0.5 else ())
            return DominatingPairInfo(forms.log_delta, forms.pure, sampling=sampling, attained=attained)
        # For sums, each value of delta is the result of a search over datasets, so compositions use a coarse grid of eps.
        info = DominatingPairInfo(forms.log_delta, forms.pure, sampling=Sampling(1.0, 0.6, curve=CurveBounds(forms.roughly)))
        if forms.one is None:
            return info
        # The pair that neighbours attain is that of the dataset with all other users in the target's bin.
        pairs = forms.listed_below if forms.uniform else repeated(ShuffledBits(self._reports, self.flip).pair(0), 2)
        info = replace(info, attained=Attained(pairs=pairs))
        if forms.uniform and self.clear.variance > self.users * self.flip:
            return info
        # The sums of the two bins are composed, each with its worst dataset. With uniform dummies this composition gives an upper
        # bound only, because it assumes that the analyst knows the dummy reports.
        return replace(info, releases=Releases(parts=((forms.one._pair_info(), 2),)))

    def closed_forms(self) -> _Reports | _OfRappor | ComposedSums:
        forms = _Reports(self)
        # With many flipped bits the tables of the two bins would be long. The sums are then composed, each with its worst dataset.
        if self.view == "sums" and not forms.uniform and forms.one is not None and forms._others * self.flip > WIDEST:
            return forms._twice
        # Records without uniform dummies are RAPPOR messages. For smaller flip probabilities q, q^2 may underflow.
        if self.view == "sums" or forms.uniform or not 1 / SQUARABLE <= self.flip < 0.5:
            return forms
        return _OfRappor(Shuffled(Rappor(2 * self.flip, bits=self.bins), self.users + self.fakes), self.flip)

    def describe_group(self, size: int) -> GroupInfo:
        forms = self._closed
        if isinstance(forms, _OfRappor):
            return forms.rappor.describe_group(size)
        if isinstance(forms, _Reports) and (self.view == "records" or forms.uniform):
            return GroupInfo()
        # All messages of the group move from one bin to another, and all other messages are in the first of these bins.
        return group_of_columns(self._reports - size, size, self.flip, 2)

    @classmethod
    def calibrate(
        cls,
        *,
        users: int,
        bins: int,
        eps: float,
        delta: float,
        fakes: int = 0,
        view: Literal["sums", "records"],
        fake: Literal["uniform", "known"] = "uniform",
        releases: int = 1, devices: int = 1,
        colluding: int = 0,
        missing: int = 0,
    ) -> Self:
        """Return the mechanism with the smallest flip probability found whose upper delta at `eps` is at most `delta`.

        Parameters
        ----------
        users, bins : int
            As in the class.
        {target}
        fakes : int
            Number of dummy reports.
        view, fake : str
            As in the class.
        {releases}
        {absent}

        Returns
        -------
        FlippedReports
            Its upper delta at `eps`, over all datasets, was evaluated and is at most `delta`; flip = 0 if the dummies alone
            meet the target.

        {raises}

        Notes
        -----
        More flipping is post-processing, and for large flip probabilities the local guarantee alone meets the target. So every
        target can be met.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> protocol = shuffle.FlippedReports.calibrate(
        ...     users=10**6, bins=1000, eps=1.0, delta=1e-6, view="sums")
        >>> protocol.delta(1.0) <= 1e-6, round(protocol.users * protocol.flip)
        (True, 50)
        """
        if (releases, devices) != (1, 1):
            return one_of_releases(partial(cls.calibrate,
                users=users, bins=bins, fakes=fakes, view=view, fake=fake, colluding=colluding, missing=missing), releases, devices,
                eps=eps, delta=delta)
        eps, delta = _validate.target(eps, delta)
        build = partial(cls, users, fakes, bins, view=view, fake=fake, colluding=colluding, missing=missing)
        clear = build(0.0)
        if meets(clear, eps, delta):
            return clear
        high = min(0.5, (1 + 1e-12) / (1 + math.exp(min(eps / 2, 350.0))))
        low = -math.expm1(math.log(delta) / 2) / (clear.users + clear.fakes)
        low = math.sqrt(low) if view == "records" else low
        return build(least_parameter(build, min(low, high / 2), high, eps, delta, 1e-4))

    @property
    def _dummies(self) -> int:
        return self.fakes

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int8]:
        records = bernoulli(source, (values.size, self.bins), self.flip).view(np.int8)
        records[np.arange(values.size), values] ^= 1
        return records

    def _dummy_messages(self, number: int, source: np.random.Generator) -> NDArray[np.int8]:
        return self._messages(source.integers(0, self.bins, size=number), source)

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        held = np.bincount(values, minlength=self.bins) + source.multinomial(self.fakes, np.full(self.bins, 1 / self.bins))
        return source.binomial(held, 1 - self.flip) + source.binomial(self.users + self.fakes - held, self.flip)

    def _estimated(self, counts: NDArray[np.int64], users: int) -> FloatArray:
        self._informative()
        return np.asarray((counts - (users + self.fakes) * self.flip) / (1 - 2 * self.flip) - self.fakes / self.bins)

    @property
    def variance(self) -> float:
        """Variance of the estimate of one bin, for every dataset: (n + m) q (1-q)/(1-2q)**2 + (m/d)(1 - 1/d).

        Here n is `users`, m is `fakes`, q is `flip` and d is `bins`.
        """
        self._informative()
        flips = (self.users + self.fakes) * self.flip * (1 - self.flip) / (1 - 2 * self.flip) ** 2
        return flips + self.clear.variance

    def messages_per_user(self) -> float:
        """Return the number of messages per user: records, or single bits (d for each record)."""
        reports = 1 + self.fakes / self.users
        return reports if self.view == "records" else reports * self.bins

    @property
    def _reports(self) -> int:
        return self.users + self.fakes

    def _count_law(self, users: int) -> CountLaw:
        one, zero = (1 - self.flip, self.flip), (self.flip, 1 - self.flip)
        chance = self._dummy_bit
        tail = tail_of_bits(users, one, zero, (float(chance), float(1 - chance), self.fakes), ULP if self.fakes else 0.0)
        return CountLaw(tail, self._scale(), users)

    @property
    def _dummy_bit(self) -> Fraction:
        """Probability that a bit of a dummy report is 1."""
        q, share = Fraction(self.flip), Fraction(1, self.bins)
        return share * (1 - q) + (1 - share) * q

    def _one_error(self, a: Fraction, held: int | None, most: int | None = None) -> Interval:
        self._informative()
        exact = self._dummy_bit
        extra = float(exact), float(1 - exact), self.fakes, exact
        rounding, width = ULP if self.fakes else 0.0, a * (1 - 2 * Fraction(self.flip))
        return bits_exceeded(self.users, self.flip, width, held, extra, rounding=rounding, most=most)

    def _largest_error(self, a: Fraction, largest: int | None) -> Interval:
        lower, high = self._one_error(a, None, largest)
        lower = lower if largest is None else self._one_error(a, largest).lower
        return Interval(lower, min(0.0, high + math.log(self.bins) * (1 + ULP)))
