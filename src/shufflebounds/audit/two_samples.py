"""Claims refuted by the hits of an attack in runs on a dataset and in runs on its neighbour, at one or at several thresholds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import plotting
from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property, uncached
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.progress import announced, tick
from shufflebounds._base.types import SLACK, ULP, FloatArray
from shufflebounds.audit.refuted import Claim, Refuted, largest_refuted, level_of, rounded_up
from shufflebounds.audit.simultaneous_limits import MOST_SCORES, Together
from shufflebounds.tails import binom_logcdf, clopper_pearson
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.representation import log_quantile

__all__ = ["Counts", "TwoSamples", "decisions", "relation_given", "scores"]

DECLARED = 1000
"""Largest number of thresholds that are declared beforehand. Raised: each threshold has a smaller error probability. Lowered: the
best threshold is farther from a declared one."""

_LEAST_ALPHA = 1e-30
"""Least positive rate of false hits that is distinguished from 0. At this rate the expected number of false hits in 2**53 trials,
the largest number, is far below 1. Lowered: longer searches that do not change the result."""

_ZOOMS = 12
"""Number of times that the search for the largest product divides its interval by 8, to a relative width of 1e-11.
Lowered: larger p-values."""

_SHIFT = 64 * ULP
"""Relative increase of a rate, before a claimed trade-off function is evaluated at it, for the rounding of its logarithm."""

Test = Literal["box", "product"]


class Counts(NamedTuple):
    """Numbers of hits of several tests: x of n runs on one dataset and y of m runs on the other, where hits are less likely."""

    x: NDArray[np.int64]
    n: int
    y: NDArray[np.int64]
    m: int

    def log_tails(self, curve: Tradeoff, alpha: FloatArray, at: Any = slice(None)) -> tuple[FloatArray, FloatArray]:
        """Return two tails for a claimed trade-off function f: log Pr[Bin(n, 1 - f(alpha)) >= x], rounded up, and
        log Pr[Bin(m, alpha) <= y].
        """
        with np.errstate(divide="ignore"):
            log_beta = np.asarray(curve.log_beta(np.minimum(np.log(alpha) + _SHIFT, 0.0)))
        missed = np.exp(np.minimum(log_beta, 0.0)) * (1 - SLACK)
        hits = np.asarray(binom_logcdf((self.n - self.x[at]).astype(float), float(self.n), missed))
        return hits, np.asarray(binom_logcdf(self.y[at].astype(float), float(self.m), alpha))

    def log_minimum(self, curve: Tradeoff) -> float:
        r"""Return the least, over the tests, of the maximum over alpha of the smaller tail of `log_tails`, rounded up."""
        low, high = np.full(self.x.shape, _LEAST_ALPHA), np.ones(self.x.shape)
        for _ in range(64):
            middle = np.sqrt(low * high)
            hits, false = self.log_tails(curve, middle)
            low, high = np.where(hits < false, middle, low), np.where(hits < false, high, middle)
            tick()
        hits, false = self.log_tails(curve, high)[0], self.log_tails(curve, low)[1]
        # If the first tail exceeds the second one already at the smallest alpha, where the second one is nearly 1, the result is 1.
        return float(np.where(low > _LEAST_ALPHA, np.minimum(hits, false), 0.0).min())

    def log_product(self, curve: Tradeoff) -> float:
        r"""Return the least, over the tests, of the maximum over alpha of the product of both tails of `log_tails`, rounded up.

        Each tail is a log-concave function (a beta distribution function) of alpha or of 1 - f(alpha). If f is convex, the
        logarithm of the product is therefore concave in alpha. Its maximum lies in an interval next to the grid point with the
        largest value; the line through two grid points on one side of this interval is an upper bound. At a kink of f another
        bound, from the monotone tails, is smaller: the first tail at the right end of the interval times the second tail at the
        left end.
        """
        tiny, small, large = np.geomspace(_LEAST_ALPHA, 1e-9, 8), np.geomspace(1e-8, 0.5, 40), np.geomspace(0.5, 1e-9, 24)
        alpha = np.concatenate([[0.0], tiny, small, 1 - large[1:], [1.0]]) + np.zeros((self.x.size, 1))
        tests = np.arange(self.x.size)[:, None]
        for last in (False,) * _ZOOMS + (True,):
            hits, false = self.log_tails(curve, alpha, tests + np.zeros(alpha.shape, dtype=np.int64))
            value = hits + false
            best = np.clip(value.argmax(axis=1)[:, None], 1, alpha.shape[1] - 2)
            place = [np.take_along_axis(alpha, best + k, axis=1) for k in (-1, 0, 1)]
            if not last:
                alpha = place[0] + (place[2] - place[0]) * np.linspace(0, 1, 17)
            tick()
        left, middle, right = (np.take_along_axis(value, best + k, axis=1) for k in (-1, 0, 1))
        tails = [np.take_along_axis(hits, best + k, axis=1) + np.take_along_axis(false, best + k - 1, axis=1) for k in (0, 1)]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (place[1] - place[0]) / (place[2] - place[1])
            lines = middle - (right - middle) * share, middle + (middle - left) / share
        # A difference of two infinities gives no line.
        return min(0.0, float(np.max([middle, *np.fmin(lines, tails)], axis=0).min()))


@dataclass(frozen=True, eq=False, repr=False)
class TwoSamples(Refuted):
    """Claims refuted by two samples: `counts` has tests of D against D', and of D' against D if both directions were tested."""

    counts: tuple[Counts, ...]
    together: Together
    log_alpha: float
    relation: str | None
    method: str
    test: Test = "box"

    __getstate__ = uncached

    @cached_property
    def _limits(self) -> list[tuple[FloatArray, FloatArray, FloatArray, FloatArray]]:
        """For each direction: lower hit and upper miss limits for D, lower miss and upper hit limits for D'."""
        # The sum may round to 0, which would be a two-sided limit that always fails.
        level = min(self.together.log_eta(self.log_alpha) + math.log(2), -ULP)
        by_size: dict[tuple[int, bytes], list[FloatArray]] = {}

        def both(counts: NDArray[np.int64], size: int) -> list[FloatArray]:
            """Return the lower and the upper limits, computed once for both directions."""
            if (size, counts.tobytes()) not in by_size:
                own, place = np.unique(counts, return_inverse=True)
                limits = clopper_pearson(own, size, log_alpha=level)
                by_size[size, counts.tobytes()] = [np.asarray(one)[place] for one in limits]
            return by_size[size, counts.tobytes()]

        return [(both(x, n)[0], both(n - x, n)[1], both(m - y, m)[0], both(y, m)[1]) for x, n, y, m in self.counts]

    def _refutes(self, claim: Tradeoff) -> bool:
        return rounded_up(self._log_p(claim)) <= self.log_alpha

    def _epsilon(self, delta: float) -> float:
        if self.test == "product":
            return largest_refuted(lambda eps: self._refutes(Tradeoff.approximate(eps, delta)), LARGEST_EXPONENT)
        best = 0.0
        for hit, miss, reject, false in self._limits:
            # The second pair of limits is that of the opposite decision, "no hit", which is likelier on D'.
            for more, less in ((hit, false), (reject, miss)):
                with np.errstate(divide="ignore", invalid="ignore"):
                    gain = np.log((more - delta) * (1 - 4 * ULP) / less)
                best = max(best, float(np.where(more > delta, gain - SLACK * np.abs(gain), 0.0).max()))
        return min(best, LARGEST_EXPONENT)

    def _gdp_mu(self) -> float:
        if self.test == "product":
            return largest_refuted(lambda mu: self._refutes(Tradeoff.gaussian(mu)), 1e3)
        best = 0.0
        for hit, miss, reject, false in self._limits:
            with np.errstate(divide="ignore"):
                first, second, third, fourth = (np.log(one) for one in (hit, miss, reject, false))
                pair = log_quantile(first, second), -log_quantile(fourth, third)
            positive = (hit > 0) & (reject > 0)
            mu = np.where(positive, pair[0], 0.0) + np.where(positive, pair[1], 0.0)
            best = max(best, float((mu - SLACK * (1 + np.abs(pair[0]) + np.abs(pair[1])))[positive].max(initial=0.0)))
        return best

    def _log_p(self, claim: Claim) -> float:
        # An error of the first kind is a hit on D'. So the first trade-off function is T(D', D), and the second is T(D, D').
        curves = (claim, claim) if isinstance(claim, Tradeoff) else (claim.reverse().tradeoff(), claim.tradeoff())
        if self.test == "product":
            # `log_product` needs a convex curve. A claimed curve that is not convex implies the claim of its convex hull.
            own = min(counts.log_product(curve.convex_hull()) for counts, curve in zip(self.counts, curves))
            # s (1 - log s) is the probability that the product of two uniform numbers is at most s.
            return math.log(sum(counts.x.size for counts in self.counts)) + min(own + math.log1p(-own), 0.0)
        return self.together.log_total(min(counts.log_minimum(curve) for counts, curve in zip(self.counts, curves)))

    def _draw(self, ax: Any, claim: Claim | None) -> None:
        plotting.tradeoff_frame(ax, f"Refuted claims, confidence {self.confidence:.6g}")
        # The direction in which more is refuted.
        gains = [float((hit - false).max()) for hit, _, _, false in self._limits]
        order = int(np.argmax(gains))
        counts, (_, miss, _, false) = self.counts[order], self._limits[order]
        alpha = np.concatenate([[0.0], np.sort(false), [1.0]])
        beta = np.concatenate([[1.0], np.minimum.accumulate(miss[np.argsort(false)]), [0.0]])
        ax.fill_between(alpha, np.minimum(beta, 1 - alpha), 1 - alpha, step="post", alpha=0.15, linewidth=0,
                        color=plotting.COLORS[1], label="a claimed curve that enters here is refuted" if self.test == "box" else
                        "outside of the limits of each error rate")
        ax.plot(counts.y / counts.m, 1 - counts.x / counts.n, marker="." if counts.x.size <= 50 else "none", linewidth=1.0,
                color=plotting.COLORS[6], label="observed error rates")
        if claim is not None:
            curve = claim if isinstance(claim, Tradeoff) else (claim.reverse() if order == 0 else claim).tradeoff()
            at = plotting.alphas()
            ax.plot(at, np.asarray(curve.beta(at)), label="the claim", linewidth=1.8, **plotting.style(0))
        plotting.legend(ax)


def relation_given(relation: str | None) -> str | None:
    """Return the relation of neighbours, or raise ValueError."""
    return relation if relation is None else _validate.choice("relation", relation, ("replace-one", "add-remove"))


@explained
@with_passages
def decisions(
    hits: int, trials: int, false_hits: int, false_trials: int, *, confidence: float = 0.95, log_alpha: float | None = None,
    test: Test = "box", relation: str | None = None,
) -> Refuted:
    r"""Return the claims that an attack refutes if it hit x of n times on a dataset D, and y of m times on its neighbour D'.

    .. math:: \varepsilon = \max\Bigl\{\log\frac{l - \delta}{u},\; \log\frac{1 - u - \delta}{1 - l}\Bigr\}, \qquad
        \mu = \Phi^{-1}(l) - \Phi^{-1}(u)

    Every smaller eps, and every smaller mu, is refuted. Here l is the lower confidence limit of the rate of hits on D, and u the
    upper confidence limit of the rate of hits on D'. Each limit has half of the error probability 1 - confidence. The second
    logarithm is the first one for misses instead of hits: their rate is at least 1 - u on D', and at most 1 - l on D.

    Parameters
    ----------
    hits, trials : int
        Numbers x of hits and n of independent runs on D, n from 1 to 2**53.
    false_hits, false_trials : int
        Numbers y of hits and m of independent runs on D'.
    confidence : float
        Probability in (0, 1) that no true claim is refuted.
    log_alpha : float, optional
        In place of `confidence`, for error probabilities below 1e-16: the natural logarithm of 1 - confidence, in [-1e5, 0).
    test : {"box", "product"}
        The test, which must be chosen before the data are seen. "box": the confidence limits l and u. "product": let s be the
        product of the p-values of x and of y, maximized over the pairs of hit rates on D and on D' that the claim allows; the
        p-value of the claim is :math:`s (1 - \log s)`. Neither test is always the stronger one; "product" is stronger at high
        confidence.
    relation : {"replace-one", "add-remove"}, optional
        How D' differs from D. If stated, claims about the other relation raise ValueError.

    Returns
    -------
    Refuted
        The refuted claims. The rule of the attack, and which dataset is D, must be fixed before the runs; :func:`scores` allows all
        thresholds.

    {raises: If hits exceed trials, or an argument lies outside its range.}

    References
    ----------
    Jagielski, M., Ullman, J., Oprea, A. Auditing differentially private machine learning. NeurIPS 2020.

    Examples
    --------
    >>> from shufflebounds import audit
    >>> found = audit.decisions(95, 100, 5, 100)
    >>> found
    <At confidence 0.95 the data refute every eps below 2.062105 at delta = 0 and show no guarantee (one test fixed beforehand).>
    >>> from shufflebounds.mechanisms import RandomizedResponse
    >>> print(f"{found.gdp_mu():.6f} {found.p_value(RandomizedResponse(2.0)):.6f}")
    2.423178 0.032204
    """
    n, m = _validate.integer("trials", trials, 1), _validate.integer("false_trials", false_trials, 1)
    x, y = _validate.integer("hits", hits), _validate.integer("false_hits", false_hits)
    for name, many, of, runs in (("hits", x, "trials", n), ("false_hits", y, "false_trials", m)):
        if many > runs:
            raise ValueError(f"{name}={many} must be at most {of}={runs}")
    counts = Counts(np.array([x]), n, np.array([y]), m)
    return TwoSamples((counts,), Together(2), level_of(confidence, log_alpha), relation_given(relation),
                      "one test fixed beforehand", _validate.choice("test", test, ("box", "product")))  # type: ignore[arg-type]


@explained
@with_passages
def scores(
    inside: ArrayLike, outside: ArrayLike, *, confidence: float = 0.95, thresholds: ArrayLike | None = None,
    log_alpha: float | None = None, relation: str | None = None,
) -> Refuted:
    """Return the claims that an attack refutes by its scores in runs on a dataset and in runs on its neighbour.

    Every threshold t makes a decision as in :func:`decisions`: a run is a hit if its score is at least t. The confidence limits
    hold together for all thresholds, for hits and for misses, and for both orders, (D, D') and (D', D). So the result is the
    largest eps.

    Parameters
    ----------
    inside, outside : array_like of float, 1-D
        Scores of independent runs on D and on D', in any sequence; they may be infinite.
    confidence : float
        Probability in (0, 1) that no true claim is refuted.
    thresholds : array_like of float, optional
        Thresholds chosen without these scores. If there are more than 1000, such as the scores of an earlier experiment, 1000
        quantiles of them are used.
        By default all thresholds are used if both samples have at most 3000 scores. Otherwise the thresholds are the scores of
        `inside` at 1000 ranks fixed beforehand.
    log_alpha, relation
        As for :func:`decisions`.

    Returns
    -------
    Refuted
        The refuted claims; the attribute `method` states which thresholds were used.

    {raises: If a sample is empty, a score is NaN, or an argument lies outside its range.}

    Notes
    -----
    Each of the two samples has a lower and an upper limit at every threshold. With T chosen thresholds, the error probability of a
    single limit is (1 - confidence)/(4T). If all thresholds are used, the error probability of a single limit is the largest one
    for which all limits hold together with the stated confidence. Its computation takes up to 3 s for 3000 scores.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import audit
    >>> rng = np.random.default_rng(1)
    >>> audit.scores(rng.normal(size=100) + 3, rng.normal(size=100))
    <At confidence 0.95 the data refute every eps below 1.944902 at delta = 0 and show no guarantee (all thresholds together).>
    """
    first, second = (_scores_of(name, value) for name, value in (("inside", inside), ("outside", outside)))
    n, m, level = first.size, second.size, level_of(confidence, log_alpha)
    samples = (n, m) if max(n, m) <= MOST_SCORES else ()
    if thresholds is None and not samples:
        # Ranks from both ends in geometric steps, and evenly spaced ones.
        steps = np.geomspace(1, n, DECLARED // 4)
        places = np.rint(np.concatenate([steps, n + 1 - steps, np.linspace(1, n, DECLARED // 2)]))
        rank = np.unique(np.clip(places, 1, n).astype(np.int64))
        at = first[n - rank]
        above, beyond = m - np.searchsorted(second, at), m - np.searchsorted(second, at, "right")
        # If scores are equal, more than `rank` scores reach the threshold t. So `rank` is used for a lower limit of
        # Pr[score >= t], and for an upper limit of Pr[score > t].
        counts = Counts(rank, n, above, m), Counts(beyond, m, rank - 1, n)
        count, method = 4 * rank.size, f"{rank.size} thresholds at ranks fixed beforehand"
    else:
        if thresholds is None:
            at, method, count = np.unique(np.concatenate([first, second])), "all thresholds together", 2 * (n + m)
        else:
            at = np.unique(_scores_of("thresholds", thresholds))
            if at.size > DECLARED:
                at = np.unique(np.quantile(at, np.linspace(0, 1, DECLARED), method="inverted_cdf"))
            count = min(4 * at.size, 2 * (n + m) if samples else 4 * at.size)
            method = f"{at.size} thresholds fixed beforehand"
        x, y = n - np.searchsorted(first, at), m - np.searchsorted(second, at)
        counts = Counts(x, n, y, m), Counts(y, m, x, n)
    refuted = TwoSamples(counts, Together(count, samples), level, relation_given(relation), method)
    with announced("audit.scores"):
        refuted._limits  # noqa: B018  (computed here, so that the answers take no time)
    return refuted


def _scores_of(name: str, value: ArrayLike) -> FloatArray:
    """Return the scores in increasing order, or raise ValueError."""
    array = _validate.floats(name, value, "a number")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}: it must be one-dimensional and not empty, one score a run")
    if np.isnan(array).any():
        raise ValueError(f"{name} holds nan: every score must be a number or an infinity; decide about failed runs beforehand")
    return np.sort(array)
