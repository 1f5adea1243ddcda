"""Shuffled bits and fake records (Zhilyaev, section 5) as printed: clear reports, then fake records with flipped bits."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds import _validate
from shufflebounds.published._printed import Comparison, Counterexample, printed
from shufflebounds.shuffle import ClearReports, ShuffledBits
from shufflebounds.tails import binom_logpmf

__all__ = ["zhilyaev_fakes_per_bin", "zhilyaev_flip_fakes", "zhilyaev_flip_records", "zhilyaev_flip_sums"]

_PAPER = "Zhilyaev"


def _target(eps: float, delta: float) -> tuple[float, float]:
    """Return eps and 3 ln(4/delta)."""
    return (
        _validate.real("eps", eps, 0, 700, open_low=True),
        3 * (math.log(4) - math.log(_validate.real("delta", delta, 0, 1, open_low=True))),
    )


def _fakes_compared() -> Comparison:
    setting = "d = 100, eps = 1, delta = 10^-6"
    return Comparison(setting, "m/d", zhilyaev_fakes_per_bin(1.0, 1e-6), ClearReports.calibrate(100, 1.0, 1e-6).fakes / 100)


@printed(
    verdict="unproven",
    reason="(5.6) drops a term on the unsafe side; no violation found; 4 to 7 times the fakes that are needed",
    reference=f"{_PAPER}, (5.10)",
    comparison=_fakes_compared,
)
def zhilyaev_fakes_per_bin(eps: float, delta: float) -> float:
    r"""Printed number of fake records a bin that hides a report sent in the clear.

    .. math:: \frac md = 3 \ln\frac4\delta \Bigl(\frac{e^\varepsilon + 1}{e^\varepsilon - 1}\Bigr)^2

    Parameters
    ----------
    eps : float
        Target privacy loss in nats, in (0, 700].
    delta : float
        Target failure probability, in (0, 1].

    Returns
    -------
    float
        The printed number of fake records, over the number of bins.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from shufflebounds import published
    >>> round(published.zhilyaev_fakes_per_bin(1.0, 1e-6), 6)
    213.556219
    """
    eps, level = _target(eps, delta)
    return level / math.tanh(eps / 2) ** 2


def _two_bins(reports: int, flip: float, eps: float, crowded: bool) -> float:
    """Return delta of the sums in two bins, listed but for their far tails, when one report moves from the first to the second.

    The other reports all hold neither bin, or all the first where crowded is set. A bin of ones is a bin of zeros with the signs
    exchanged, so crowded bins tell the same way, empty ones opposite ways.
    """
    mean, spread = reports * flip, 9 * math.sqrt(reports * flip) + 12
    s = np.arange(max(0, math.floor(mean - spread)), min(reports, math.ceil(mean + spread)) + 1)
    others = np.exp(binom_logpmf(np.append(s[0] - 1, s), reports - 1, flip))
    zero, one = ((1 - q) * others[1:] + q * others[:-1] for q in (flip, 1 - flip))
    first, second = (np.outer(*pair) for pair in (((zero, zero), (one, one)) if crowded else ((one, zero), (zero, one))))
    return max(float(np.maximum(p - math.exp(eps) * q, 0).sum()) for p, q in ((first, second), (second, first)))


def _least_flip(reports: int, eps: float, delta: float, enough: float, crowded: bool) -> float:
    low, high = 0.0, enough
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if _two_bins(reports, middle, eps, crowded) <= delta else (middle, high)
    return high


_CASE = (10**6, 1.0, 1e-6)
_SETTING = "n + m = 10^6 reports, eps = 1, delta = 10^-6; exact: the others all in the first bin"


def _sums_compared() -> Comparison:
    claim = zhilyaev_flip_sums(*_CASE)
    return Comparison(_SETTING, "flip", claim, _least_flip(*_CASE, enough=claim, crowded=True))


def _proposition(reports: int, eps: float, delta: float) -> float:
    reports = _validate.integer("reports", reports, 1)
    eps, level = _target(eps, delta)
    half = -math.expm1(-eps / 2)
    return level / (reports * half * half) + 4 / (reports * half)


@printed(
    verdict="unproven",
    reason="rests on (4.48), and on the sums of bins alone being seen; no violation found there",
    reference=f"{_PAPER}, Proposition 5.1, (5.12) and (5.16), where only the sum of each bin is seen",
    comparison=_sums_compared,
)
def zhilyaev_flip_sums(reports: int, eps: float, delta: float) -> float:
    r"""Printed flipping frequency of the bits of n reports and m fake ones, where the analyst sees the sum of each bin.

    .. math:: q = \frac{3 \ln(4/\delta)}{(n+m) B^2} + \frac{4}{(n+m) B}, \quad B = 1 - e^{-\varepsilon/2}

    Parameters
    ----------
    reports : int
        Number n + m of reports, fake ones included, 1 to 2**53.
    eps : float
        Target privacy loss in nats, in (0, 700].
    delta : float
        Target failure probability, in (0, 1].

    Returns
    -------
    float
        The printed frequency; above 1/2 no flip meets the printed condition.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from shufflebounds import published
    >>> round(10**6 * published.zhilyaev_flip_sums(10**6, 1.0, 1e-6), 6)
    304.740114
    """
    return _proposition(reports, eps, delta)


def _records_delta(reports: int, flip: float, eps: float) -> float:
    """Return a lower bound of delta of shuffled two-bit records, the others all in the first bin.

    Only records with one bit set say anything: K of them, the target's among them with chance K/n, and then they are K bits that
    flip when both bits of a record do. Leaving out unlikely K leaves a lower bound.
    """
    plain = (1 - flip) ** 2 + flip**2
    both = flip**2 / plain
    mean, spread = reports * plain, 8 * math.sqrt(reports * plain * (1 - plain)) + 1
    big, total = math.exp(eps), 0.0
    for seen in range(max(1, math.floor(mean - spread)), min(reports, math.ceil(mean + spread)) + 1):
        share = seen / reports
        kept = 1 - big * (1 - share)
        if kept > 0:
            bits = ShuffledBits(seen, both).pair(0).delta(math.log(big * share / kept), bound="lower")
            total += math.exp(binom_logpmf(seen, reports, plain)) * kept * bits
    return total


def _records_counterexample() -> Counterexample:
    reports, eps, delta = 10**4, 1.0, 1e-6
    truth = _records_delta(reports, zhilyaev_flip_records(reports, eps, delta), eps)
    case = "delta(1) of 10^4 shuffled two-bit records at the flip printed for delta = 10^-6, all others in the first bin"
    return Counterexample(delta, truth, case)


@printed(
    verdict="false",
    reason="a shuffled record keeps its bits together, and hiding one takes two flips at once: shuffle bits, not records",
    reference=f"{_PAPER}, Proposition 5.1, (5.12) and (5.16), where the shuffled records are seen",
    counterexample=_records_counterexample,
)
def zhilyaev_flip_records(reports: int, eps: float, delta: float) -> float:
    r"""Printed flipping frequency of the bits of shuffled records, the same as :func:`zhilyaev_flip_sums`.

    .. math:: q = \frac{3 \ln(4/\delta)}{(n+m) B^2} + \frac{4}{(n+m) B}, \quad B = 1 - e^{-\varepsilon/2}

    Parameters
    ----------
    reports : int
        Number n + m of reports, fake ones included, 1 to 2**53.
    eps : float
        Target privacy loss in nats, in (0, 700].
    delta : float
        Target failure probability, in (0, 1].

    Returns
    -------
    float
        The printed frequency; above 1/2 no flip meets the printed condition.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from shufflebounds import published
    >>> round(published.zhilyaev_flip_records(10**4, 1.0, 1e-6), 8)
    0.03047401
    """
    return _proposition(reports, eps, delta)


def _fakes_flip_compared() -> Comparison:
    setting = "m = 10^6 fakes, one user, eps = 1, delta = 10^-6; exact: bins otherwise empty"
    claim = zhilyaev_flip_fakes(*_CASE)
    return Comparison(setting, "flip", claim, _least_flip(*_CASE, enough=claim, crowded=False))


@printed(
    verdict="unproven",
    reason="for sums, many more bins than fakes, and bins that are otherwise empty; (4.36) and its mirror image, both unproven",
    reference=f"{_PAPER}, (5.26)",
    comparison=_fakes_flip_compared,
)
def zhilyaev_flip_fakes(fakes: int, eps: float, delta: float) -> float:
    r"""Printed flipping frequency of the bits where m fake records among many more bins hide a single one.

    .. math:: q = \frac{3}{m} \ln\frac4\delta \Bigl(\frac{e^\varepsilon + 1}{e^\varepsilon - 1}\Bigr)^2

    Parameters
    ----------
    fakes : int
        Number m of fake records, 1 to 2**53.
    eps : float
        Target privacy loss in nats, in (0, 700].
    delta : float
        Target failure probability, in (0, 1].

    Returns
    -------
    float
        The printed frequency; above 1/2 no flip meets the printed condition.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    Examples
    --------
    >>> from shufflebounds import published
    >>> round(10**6 * published.zhilyaev_flip_fakes(10**6, 1.0, 1e-6), 6)
    213.556219
    """
    return zhilyaev_fakes_per_bin(eps, delta) / _validate.integer("fakes", fakes, 1)
