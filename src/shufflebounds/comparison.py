"""Comparison of protocols and frequency oracles for histograms at equal central privacy: their errors and message sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPUTED_ERROR, LARGEST_EXPONENT, MOST_PEOPLE
from shufflebounds._base.progress import announced
from shufflebounds._base.search import expand_bracket, narrowed, root
from shufflebounds._engines.errors.accuracy import ErrorLaw
from shufflebounds._engines.errors.count_errors import CountErrors, SupportProbabilities
from shufflebounds.mechanisms import HadamardResponse, KaryResponse, LocalHashing, SubsetSelection, UnaryEncoding
from shufflebounds.mechanisms.oracles._counts import FrequencyOracle
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.calibration import one_of_releases, parts_of_releases
from shufflebounds.shuffle.clear_reports import ClearReports
from shufflebounds.shuffle.clones import StrongerClones
from shufflebounds.shuffle.flipped_reports import FlippedReports
from shufflebounds.shuffle.geometric_dummies import GeometricDummies
from shufflebounds.shuffle.histogram import ShuffledHistogram
from shufflebounds.shuffle.shuffled import Shuffled

__all__ = ["ORACLES", "Comparison", "ComparisonRow", "calibrated_oracle", "compare_at"]

SHUFFLER = "shuffler"
DUMMIES = "shuffler and sender of dummies"

ORACLES: dict[type[FrequencyOracle], tuple[str, ...]] = {
    KaryResponse: ("k-ary response",),
    SubsetSelection: ("subset selection",),
    LocalHashing: ("local hashing",),
    HadamardResponse: ("Hadamard response",),
    UnaryEncoding: ("unary encoding, symmetric", "unary encoding, optimized"),
}
"""The frequency oracles of the comparison, with the names of their rows."""


@dataclass(frozen=True)
class ComparisonRow:
    """One protocol or oracle for a histogram, calibrated to the target.

    Parameters
    ----------
    name : str
        Name of the protocol or oracle.
    profile : PrivacyProfile
        The calibrated protocol of one release. The upper bound of delta of all releases together, evaluated at the target eps, is
        at most the target delta.
    trusted : str
        Who must be honest for the central guarantee to hold.
    local_eps : float
        The guarantee of one user against the shuffler itself in one release, in nats; inf if a message shows the user's value as
        plain text. The guarantees of several releases of the same value add up.
    rmse : float
        Root mean squared error of the counts, in users; the mean is over all bins. It is the same for every dataset, except for
        `ShuffledHistogram`, whose estimate is 0 for small counts. For this class, `rmse` is an upper bound for every histogram: the
        value if the number of users in every bin were that at which the error is largest.
    error_one_bin, error_any_bin : float
        Error that one bin chosen beforehand, or any bin, exceeds with probability at most 0.05, for every dataset.
    error_any_bin_even : float
        The same as `error_any_bin` for the dataset with the users spread evenly over the bins; other datasets may have larger
        errors.
    messages : float
        Number of messages per user in one release, including the dummy reports.
    bits : float
        Number of bits sent per user in one release.
    rmse_even : float
        The same as `rmse` for the dataset with the users spread evenly over the bins.
    error_any_bin_truth, rmse_truth : float, optional
        The same as `error_any_bin` and `rmse` for the caller's histogram; None if none was given.
    """

    name: str
    profile: PrivacyProfile
    trusted: str
    local_eps: float
    rmse: float
    error_one_bin: float
    error_any_bin: float
    error_any_bin_even: float
    messages: float
    bits: float
    rmse_even: float
    error_any_bin_truth: float | None = None
    rmse_truth: float | None = None

    @property
    def error_of_data(self) -> float:
        """The value of `error_any_bin` for the caller's histogram if one was given, otherwise for evenly spread users."""
        return self.error_any_bin_even if self.error_any_bin_truth is None else self.error_any_bin_truth


@dataclass(frozen=True)
class Comparison:
    """Rows sorted by `error_any_bin`, and the protocols that cannot meet the target.

    Parameters
    ----------
    rows : tuple of ComparisonRow
        The most accurate first.
    left_out : tuple of (str, str)
        Names of the protocols that cannot meet the target, and the reasons.
    releases : int
        Number of releases that together meet the target. Errors, messages and bits are those of one release.
    devices, colluding, missing : int
        What the target covers, as in :func:`~shufflebounds.shuffle.compare_at`.
    """

    rows: tuple[ComparisonRow, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    releases: int = 1
    devices: int = 1
    colluding: int = 0
    missing: int = 0

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def covers(self) -> list[str]:
        """Return sentences that state how many messages of one person, colluding users and missing users the target covers.

        Returns
        -------
        list of str
            Empty if `devices` is 1, and `colluding` and `missing` are 0.
        """
        sentences = [f"The target is met for a person who holds up to {self.devices} of the messages."] if self.devices > 1 else []
        if self.colluding or self.missing:
            sentences.append(f"The target is met if up to {self.colluding} of the other users reveal their messages, and up to "
                             f"{self.missing} users are missing.")
        return sentences

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries, such as a DataFrame takes.

        Returns
        -------
        list of dict
            The fields of :class:`ComparisonRow`, with the `repr` of the protocol.
        """
        return [{**{name: value for name, value in row.__dict__.items() if name != "profile"}, "protocol": repr(row.profile)}
                for row in self.rows]

    def __str__(self) -> str:
        given = any(row.error_any_bin_truth is not None for row in self.rows)
        head = (f"{'':26}{'any bin':>10}{'your data' if given else 'even data':>10}{'one bin':>10}{'rmse':>10}"
                f"{'messages':>11}{'bits':>11}{'local eps':>11}  trusted")
        lines = [f"{row.name:26}{row.error_any_bin:10.4g}{row.error_of_data:10.4g}{row.error_one_bin:10.4g}{row.rmse:10.4g}"
                 f"{row.messages:11.4g}{row.bits:11.4g}{row.local_eps:11.4g}  {row.trusted}" for row in self.rows]
        data = "(your data)\nfor the histogram given" if given else "(even data) for one\nwhose users are evenly spread"
        caption = ("The first three columns are errors in users that are exceeded with probability 0.05, for every dataset or "
                   f"{data}. Messages and bits are those of one user.")
        if self.releases > 1:
            caption += f"\nAll columns are those of one release; {self.releases} releases meet the target together."
        caption += "".join(f"\n{sentence}" for sentence in self.covers())
        return "\n".join([head, *lines, caption, *(f"{name}: {reason}" for name, reason in self.left_out)])


@explained
@with_passages
def compare_at(
    *, users: int, bins: int, eps: float, delta: float, releases: int = 1, truth: ArrayLike | None = None, devices: int = 1,
    colluding: int = 0, missing: int = 0
) -> Comparison:
    r"""Return protocols and frequency oracles for a histogram, all calibrated to one central guarantee.

    Parameters
    ----------
    {users}
    bins : int
        Number of bins, 2 to 2**16.
    eps : float
        Privacy loss in nats, in [1e-12, 690], of the shuffled messages; neighbouring datasets differ in the bin of one user.
    delta : float
        Failure probability, in (0, 1).
    releases : int
        Number of releases that meet (eps, delta) together, 1 to 2**53: each row is the protocol of one release.
    truth : array_like of int, shape (bins,), optional
        Numbers of users in the bins, which sum to `users`. The columns `error_any_bin_truth` and `rmse_truth` of the result are the
        errors for this histogram; the calibration does not depend on it. If `truth` comes from private data, a protocol must not be
        chosen by these errors, because the choice would depend on the data.
    devices : int
        Largest number of messages of one person in a release, 1 to 2**20; `users` then counts messages.
    {absent}

    Returns
    -------
    Comparison
        One row for each protocol or oracle, sorted by the column `error_any_bin`: for every dataset, some bin has a larger error
        with probability at most 0.05.

    {raises}

    Notes
    -----
    Each frequency oracle has the largest local budget that the upper bound of :class:`~shufflebounds.shuffle.Shuffled` allows. Its
    size of subsets or number of buckets is chosen for the smallest error, at the local budget that the privacy blanket alone
    allows. This budget is smaller than the final one, and takes less time to compute. The search finds the best size to within 1,
    or to within 1/32 of the size.

    The messages of dummy reports are shared evenly among the users. The protocols with several messages per user need shufflers
    that do not reveal which messages come from the same user. `ClearReports` and `GeometricDummies` also need a trusted party that
    adds the dummy reports. The run time is a few seconds, most of it for `FlippedReports`, about half a minute for several
    releases, and minutes for several devices with delta below 1e-230.

    With fewer participants than `users` the guarantee is weaker, except for `ClearReports` and `GeometricDummies`: pass the number
    of users that may be missing as `missing`. Errors are those if all users take part. If every user takes part only with a known
    probability, calibrate :class:`~shufflebounds.shuffle.Shuffled` with its parameter `participation`.

    With several releases the budget of each release is found as in :func:`~shufflebounds.composition.calibrate_releases`.

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> table = shuffle.compare_at(eps=1.0, delta=1e-4, users=1000, bins=2)  # doctest: +SKIP
    >>> table.rows[0].name  # doctest: +SKIP
    'clear reports'
    """
    _validate.real("eps", eps, 1e-12, LARGEST_EXPONENT)
    eps, delta = _validate.target(eps, delta)
    users = _validate.integer("users", users, 1)
    bins = _validate.integer("bins", bins, 2, 2**16)

    releases = _validate.integer("releases", releases, 1)
    # The class validates both numbers.
    hiding = StrongerClones(users, 1.0, colluding=colluding, missing=missing)
    devices = _validate.integer("devices", devices, 1, min(MOST_PEOPLE, hiding._hiding))
    absent: dict[str, Any] = {"colluding": hiding.colluding, "missing": hiding.missing}
    if truth is not None:
        # The histogram is checked before anything is computed.
        CountErrors(SupportProbabilities(0.75, 0.25, 0.25, 0.75, 0.5), users, bins)._checked_truth(truth)
        if np.ndim(truth) == 0:
            raise ValueError(f"truth={truth} must be None or a histogram of shape ({bins},), the numbers of users in the bins")
    rows, left_out, near = [], [], None
    with announced("compare_at"):
        for name, calibrate in _ways(users, bins, releases, absent).items():
            try:
                with _validate.quiet():
                    profile, near = parts_of_releases(calibrate, releases, eps, delta, near, devices)
                    rows.append(_row(name, profile, users, truth))
            except ValueError as problem:
                # The arguments have been checked, so a ValueError means that this protocol cannot meet the target, or that its
                # error would not be finite.
                left_out.append((name, str(problem)))
    return Comparison(tuple(sorted(rows, key=lambda row: row.error_any_bin)), tuple(left_out), releases, devices, **absent)


Calibration = Callable[..., PrivacyProfile]


def _ways(users: int, bins: int, releases: int, absent: dict[str, Any]) -> dict[str, Calibration]:
    """Return, for each protocol by name, a function that calibrates it to a target (eps, delta) of one of the releases."""

    def oracle(build: Callable[[float], FrequencyOracle]) -> Calibration:
        return lambda *, eps, delta: _Target(eps, delta, users, absent).largest(build)

    def sized(family: Callable[..., FrequencyOracle], size_of: Callable[[Any], int], smallest: int, largest: int) -> Calibration:
        def calibrated(*, eps: float, delta: float) -> PrivacyProfile:
            target = _Target(eps, delta, users, absent)
            # The search for sizes starts at the size that is best for a guess of the local budget that amplification allows.
            guess = max(eps, math.log1p(users * min(eps, 1.0) ** 2 / (16 * -math.log(delta))), 1e-3)

            def build(size: int) -> Callable[[float], FrequencyOracle]:
                return lambda budget: family(bins, budget, size)

            size, budget = _best_size(build, target, size_of(family(bins, guess)), smallest, largest)
            return target.largest(build(size), budget)

        return calibrated

    def flipped(view: Any) -> Calibration:
        return partial(FlippedReports.calibrate, users=users, bins=bins, view=view, **absent)

    return {
        "clear reports": partial(ClearReports.calibrate, bins=bins),
        "histogram": partial(ShuffledHistogram.calibrate, users=users, bins=bins, **absent),
        "k-ary response": oracle(lambda budget: KaryResponse(bins, budget)),
        "subset selection": sized(SubsetSelection, lambda oracle: oracle._d, 1, bins - 1),
        "local hashing": sized(LocalHashing, lambda oracle: oracle._g, 2, 2**30),
        "Hadamard response": oracle(lambda budget: HadamardResponse(bins, budget)),
        # UnaryEncoding.symmetric accepts budgets up to 72 nats: above, the probability p of its reports rounds to 1.
        "unary encoding, symmetric": oracle(lambda budget: UnaryEncoding.symmetric(bins, min(budget, 72.0))),
        "unary encoding, optimized": oracle(lambda budget: UnaryEncoding.optimized(bins, budget)),
        **{f"flipped reports, {view}": flipped(view) for view in ("records", "sums")},
        "geometric dummies": partial(GeometricDummies.calibrate if releases == 1 else GeometricDummies._one_of_several, bins=bins),
    }


def calibrated_oracle(
    kind: type[FrequencyOracle], *, users: int, bins: int, eps: float, delta: float, releases: int = 1, devices: int = 1
) -> Shuffled:
    """Return the shuffled oracle of a class in `ORACLES` as :func:`compare_at` calibrates it.

    If the comparison has several rows for the class, the result is the row with the smallest error of any bin.
    """
    if kind not in ORACLES:
        raise ValueError(f"kind={_validate.short_repr(kind)} must be one of {', '.join(one.__name__ for one in ORACLES)}")
    ways = _ways(_validate.integer("users", users, 1), _validate.integer("bins", bins, 2, 2**16), releases, {})
    oracles: list[Any] = [_of_both(ways[name], releases, devices, eps, delta) for name in ORACLES[kind]]
    best: Shuffled = min(oracles, key=lambda one: one.randomizer.errors(users).error_quantile(0.05, of="any"))
    return best


def _of_both(calibrate: Calibration, releases: int, devices: int, eps: float, delta: float) -> PrivacyProfile:
    """Return a calibrated protocol with delta(eps) <= delta and with epsilon(delta) <= eps.

    Rounding may make one of these conditions fail although the other one holds.
    """
    goal = eps
    while True:
        one = one_of_releases(calibrate, releases, devices, eps=goal, delta=delta)
        # epsilon(delta) may exceed eps by the tolerance of its search. For several releases, or several messages of one person,
        # `one_of_releases` accounts for this tolerance.
        reached = one.epsilon(delta) if releases == devices == 1 else 0.0
        if reached <= eps:
            return one
        # Where delta is almost constant in eps, epsilon(delta) may be many times eps.
        goal *= 1 - min(2 * (reached / eps - 1), 0.1)


@dataclass(frozen=True)
class _Target:
    """The central guarantee that all oracles meet."""

    eps: float
    delta: float
    users: int
    absent: dict[str, Any] = field(default_factory=dict)

    def budget(self, build: Callable[[float], FrequencyOracle], rtol: float, near: float = 0.0,
               excess_of: Callable[[FrequencyOracle], float] | None = None) -> float:
        """Return the largest local budget that meets the target, to a relative error of `rtol`.

        Parameters
        ----------
        build : callable
            Returns the oracle for a local budget.
        rtol : float
            Relative width of the last interval of the search.
        near : float
            A budget at which the search starts; 0 if none is known.
        excess_of : callable, optional
            Returns log delta of an oracle at the target's eps, minus the target's log delta; by default as bounded by the privacy
            blanket.
        """
        tried: dict[float, float] = {}
        measure = excess_of or self._blanket_excess

        def excess(budget: float) -> float:
            if budget not in tried:
                tried[budget] = measure(build(budget)) if budget > self.eps else -math.inf
            return tried[budget]

        lowest = min(self.eps * (1 + rtol), LARGEST_EXPONENT)
        at = min(max(near, lowest) if near else max(1.0, min(1.5 * lowest, lowest + 1)), LARGEST_EXPONENT)
        # The largest budget is close to `at` and above eps. So the first step is a fraction of at - lowest, the amount by which
        # amplification raises the local budget above eps.
        step = max(0.02 * (at - lowest), rtol * at) if near else 1.0
        if excess(at) <= 0:
            end = expand_bracket(at, lambda budget: excess(budget) > 0, step, LARGEST_EXPONENT, 3.0)
            if excess(end) <= 0:
                return end
        elif excess(expand_bracket(at, lambda budget: excess(budget) <= 0, -step, lowest, 3.0)) > 0:
            # A budget slightly below eps meets the target even without a shuffle; the factor 1 - COMPUTED_ERROR covers the rounding
            # of the budget.
            return self.eps * (1 - COMPUTED_ERROR)
        # The last step of the search crossed the target, so the root lies between the last two budgets.
        low, high = sorted([*tried][-2:])
        largest = root(excess, low, high, tried[low], tried[high], rtol=rtol)
        return expand_bracket(largest, lambda budget: excess(budget) <= 0, -rtol * largest, self.eps * (1 - COMPUTED_ERROR))

    def _blanket_excess(self, oracle: FrequencyOracle) -> float:
        """Return log delta of the shuffled oracle at the target eps, by the privacy blanket, minus the target log delta."""
        hiding = self.users - sum(self.absent.values())
        sides = [pair.upper.log_phi([self.eps], hiding) for pair in oracle.excess_laws()]
        return max(float(upper[0]) for _, upper in sides) - math.log(self.delta)

    def _shuffled(self, oracle: FrequencyOracle) -> Shuffled:
        return Shuffled(oracle, self.users, **self.absent)

    def _excess(self, oracle: FrequencyOracle) -> float:
        """Return the upper bound of log delta of the shuffled oracle at the target eps, minus the target log delta."""
        return float(self._shuffled(oracle).log_delta(self.eps)) - math.log(self.delta)

    def largest(self, build: Callable[[float], FrequencyOracle], near: float = 0.0) -> Shuffled:
        """Return the shuffled oracle with the largest local budget that meets the target, after a check of its upper delta.

        `build` returns the oracle for a local budget. The search starts at the budget `near`.
        """
        # The upper bound of `Shuffled` is at most that of the privacy blanket, so a budget that the blanket allows also meets the
        # target here.
        blanket = self.budget(build, 1e-6, near)
        # The upper bound of delta may jump as a function of the budget, because the search over datasets has a tolerance of 3e-3 in
        # log delta. With the relative tolerance 1e-7 the search ends even at such a jump.
        shuffled = self._shuffled(build(self.budget(build, 1e-7, blanket, self._excess)))
        if not shuffled.delta(self.eps) <= self.delta * (1 + 1e-9):
            raise _validate.InfeasibleError(f"delta={self.delta:g} cannot be met at eps={self.eps:g}: {shuffled.randomizer!r} has "
                                            f"{shuffled.delta(self.eps):.3g}")
        return shuffled


def _best_size(
    build: Callable[[int], Callable[[float], FrequencyOracle]], target: _Target, start: int, smallest: int, largest: int
) -> tuple[int, float]:
    """Return the size of the subsets, or number of buckets, with the smallest error, and its local budget to a relative 1e-4."""

    def log_rmse(size: int, budget: float) -> float:
        return math.log(build(size)(budget).rmse(target.users))

    def improved(size: int, most: float) -> float | None:
        """Return a local budget of this size that meets the target and has log rmse <= `most`, or None if there is none."""
        # The error decreases in the budget, and the smallest budget with an error below `most` meets the target if any does. So
        # most sizes take one evaluation of delta instead of a search for the largest budget.
        low, high = target.eps * (1 - COMPUTED_ERROR), LARGEST_EXPONENT
        excess = [log_rmse(size, at) - most for at in (low, high)]
        if excess[0] > 0:
            if excess[1] > 0:
                return None
            _, low, _, _ = narrowed(lambda at: log_rmse(size, at) - most, low, high, *excess, rtol=1e-6)
        return low if low <= target.eps or target._blanket_excess(build(size)(low)) <= 0 else None

    best, factor = min(max(start, smallest), largest), 4.0
    budget, tried = target.budget(build(best), 1e-4), {best}
    while True:
        moved = False
        for size in min(best - 1, round(best / factor)), max(best + 1, round(best * factor)):
            if smallest <= size <= largest and size not in tried:
                tried.add(size)
                # If a step improves the error by less than 0.05 %, a longer search is not worth its time.
                near = improved(size, log_rmse(best, budget) + math.log1p(-5e-4))
                if near is not None:
                    best, budget, moved = size, target.budget(build(size), 1e-4, near), True
                    break
        if not moved:
            if best * (factor - 1) <= max(1, best // 32):
                return best, budget
            factor = math.sqrt(factor)


def _row(name: str, profile: PrivacyProfile, users: int, truth: ArrayLike | None) -> ComparisonRow:
    """Return the row of a calibrated protocol. Errors are exceeded with the customary probability of 5 %."""
    with_dummies = ClearReports | GeometricDummies
    if isinstance(profile, Shuffled):
        oracle = profile.randomizer
        assert isinstance(oracle, FrequencyOracle)
        law: ErrorLaw = oracle.errors(users)
        local, messages, bits = oracle.local_eps, 1.0, oracle.message_bits
    else:
        assert isinstance(profile, ClearReports | FlippedReports | GeometricDummies | ShuffledHistogram)
        law, local = profile, math.inf
        messages = profile.messages_per_user(users) if isinstance(profile, with_dummies) else profile.messages_per_user()
        bits = messages * math.log2(profile.bins)
        if isinstance(profile, FlippedReports):
            # For view="sums" every bit is sent as a separate message that also contains the number of its bin.
            bits = messages * (profile.bins if profile.view == "records" else 1 + math.log2(profile.bins))
            local = 2 * (math.log1p(-profile.flip) - math.log(profile.flip)) if profile.flip else math.inf
    beta = 0.05
    trusted = DUMMIES if isinstance(profile, with_dummies) else SHUFFLER
    errors = law.error_quantile(beta), law.error_quantile(beta, of="any"), law._even_quantile(beta)
    rmse, even = (math.sqrt(law._mean_square(data)) for data in (None, law._even()))
    given = (None, None) if truth is None else (law.error_quantile(beta, truth, of="any"), math.sqrt(law.mean_squared_error(truth)))
    return ComparisonRow(name, profile, trusted, local, rmse, *errors, messages, bits, even, *given)
