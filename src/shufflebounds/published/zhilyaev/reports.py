"""Section 5 of Zhilyaev, shuffled bits and dummy records, as published.

First reports sent without randomization are hidden among dummy records; then the bits of reports and dummy records are flipped.
"""
from __future__ import annotations

import math
from functools import cache, partial

from shufflebounds.published._glossary import CLOSED
from shufflebounds.published._printed import At, Counterexample, printed
from shufflebounds.published.zhilyaev.flip_probabilities import CASE
from shufflebounds.shuffle import ClearReports, FlippedReports

__all__ = ["zhilyaev_fakes_per_bin", "zhilyaev_flip_fakes", "zhilyaev_flip_records", "zhilyaev_flip_sums"]

_PAPER = "Zhilyaev"
_FLIP = {"delta": CLOSED}
_frequency = partial(printed, returns="The published flip probability; above 1/2: no flip probability is enough.", where=_FLIP)


def _chernoff_level(delta: float) -> float:
    """Return 3 ln(4/delta), which occurs in all formulas of this module."""
    return 3 * (math.log(4) - math.log(delta))


@printed(
    "unproven", f"{_PAPER}, (5.10)",
    reason="(5.6) drops a term in the wrong direction; no violation found; several times the necessary number of dummy records",
    comparison=At("d = 100, eps = 1, delta = 10^-6", (1.0, 1e-6),
                  lambda eps, delta: ClearReports.calibrate(bins=100, eps=eps, delta=delta).fakes / 100, "m/d"),
    returns="The published number of dummy records, divided by the number of bins.",
    where=_FLIP,
)
def zhilyaev_fakes_per_bin(eps: float, delta: float) -> float:
    r"""Published number of dummy records per bin that makes reports (eps, delta)-private without randomization.

    A report is the user's bin; m dummy records in random bins of d are shuffled with the reports.

    .. math:: \frac md = 3 \ln\frac4\delta \Bigl(\frac{e^\varepsilon + 1}{e^\varepsilon - 1}\Bigr)^2

    >>> round(published.zhilyaev_fakes_per_bin(1.0, 1e-6), 6)
    213.556219
    """
    return _chernoff_level(delta) / math.tanh(eps / 2) ** 2


@cache
def _flip_found(users: int, bins: int, fakes: int) -> float:
    """Return the smallest flip probability that meets eps = 1, delta = 10^-6 if only the sum of the bits of each bin is seen."""
    return FlippedReports.calibrate(users=users, bins=bins, eps=1.0, delta=1e-6, fakes=fakes, view="sums").flip


@_frequency(
    "unproven", f"{_PAPER}, Proposition 5.1, (5.12) and (5.16), where only the sum of each bin is seen",
    reason="depends on (4.48), and on seeing the sums of bins only; no violation found there",
    comparison=At("10^6 reports, no dummy reports, eps = 1, delta = 10^-6", CASE, lambda n, *_: _flip_found(n, 2, 0), "flip"),
)
def zhilyaev_flip_sums(reports: int, eps: float, delta: float) -> float:
    r"""Published flip probability for (eps, delta)-privacy of a histogram, if the analyst sees only the sum of each bin.

    A report has one bit for each bin: 1 for the user's bin, else 0. Every bit of n reports and m dummy reports is flipped with
    probability q.

    .. math:: q = \frac{3 \ln(4/\delta)}{(n+m) B^2} + \frac{4}{(n+m) B}, \quad B = 1 - e^{-\varepsilon/2}

    >>> round(10**6 * published.zhilyaev_flip_sums(10**6, 1.0, 1e-6), 6)
    304.740114
    """
    half = -math.expm1(-eps / 2)
    return _chernoff_level(delta) / (reports * half * half) + 4 / (reports * half)


def _records_counterexample() -> Counterexample:
    reports, eps, delta = 10**4, 1.0, 1e-6
    records = FlippedReports(reports, 0, 2, zhilyaev_flip_records(reports, eps, delta), view="records")
    case = "delta(1) of 10^4 shuffled two-bit records at the flip probability published for delta = 10^-6"
    return Counterexample(delta, records.delta(eps, bound="lower"), case)


@_frequency(
    "false", f"{_PAPER}, Proposition 5.1, (5.12) and (5.16), where the shuffled records are seen",
    fault="privacy",
    reason="a shuffled record keeps its bits together, and hiding one needs two flips at once: shuffle bits, not records",
    counterexample=_records_counterexample,
)
def zhilyaev_flip_records(reports: int, eps: float, delta: float) -> float:
    r"""Published flip probability for (eps, delta)-privacy of a histogram, if the analyst sees the shuffled reports.

    It is that of :func:`zhilyaev_flip_sums`, which also describes the reports.

    .. math:: q = \frac{3 \ln(4/\delta)}{(n+m) B^2} + \frac{4}{(n+m) B}, \quad B = 1 - e^{-\varepsilon/2}

    >>> round(published.zhilyaev_flip_records(10**4, 1.0, 1e-6), 8)
    0.03047401
    """
    return zhilyaev_flip_sums.formula(reports, eps, delta)


@_frequency(
    "unproven", f"{_PAPER}, (5.26)",
    reason="for sums, many more bins than dummy records, and bins otherwise empty; uses (4.36) and its mirror image, both unproven",
    comparison=At("one user among m = 10^6 dummy records, d = 10^9 bins, eps = 1, delta = 10^-6", CASE,
                  lambda fakes, *_: _flip_found(1, 10**9, fakes), "flip"),
)
def zhilyaev_flip_fakes(fakes: int, eps: float, delta: float) -> float:
    r"""Published flip probability for (eps, delta)-privacy of one report among m dummy records, in many more bins than m.

    Every bit of the report and of the dummy records is flipped with probability q (:func:`zhilyaev_flip_sums`).

    .. math:: q = \frac{3}{m} \ln\frac4\delta \Bigl(\frac{e^\varepsilon + 1}{e^\varepsilon - 1}\Bigr)^2

    >>> round(10**6 * published.zhilyaev_flip_fakes(10**6, 1.0, 1e-6), 6)
    213.556219
    """
    return float(zhilyaev_fakes_per_bin(eps, delta) / fakes)
