"""Comparison of protocols and frequency oracles for histograms at equal central privacy: their errors and message sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from shufflebounds import _validate
from shufflebounds._calls import explained
from shufflebounds._docs import with_passages
from shufflebounds._limits import COMPUTED_ERROR, LARGEST_EXPONENT
from shufflebounds._search import expand_bracket, root
from shufflebounds.mechanisms import HadamardResponse, KaryResponse, LocalHashing, SubsetSelection, UnaryEncoding
from shufflebounds.mechanisms._counts import FrequencyOracle
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle._accuracy import ErrorLaw
from shufflebounds.shuffle.clear_reports import ClearReports
from shufflebounds.shuffle.flipped_reports import FlippedReports
from shufflebounds.shuffle.histogram import ShuffledHistogram
from shufflebounds.shuffle.shuffled import Shuffled

__all__ = ["Comparison", "ComparisonRow", "compare_at"]

SHUFFLER = "shuffler"
DUMMIES = "shuffler and whoever adds the dummy reports"


@dataclass(frozen=True)
class ComparisonRow:
    """One protocol or oracle for a histogram, calibrated to the target.

    Parameters
    ----------
    name : str
        Name of the protocol or oracle.
    profile : PrivacyProfile
        The calibrated protocol; its upper delta at the target eps was evaluated and is at most the target delta.
    trusted : str
        Who must be honest for the central guarantee to hold.
    local_eps : float
        The guarantee of one user against the shuffler itself, in nats; inf if a message shows the user's value as plain text.
    rmse : float
        Root of the mean squared error of a bin, in users, where the mean is over all bins; it is the same for every dataset.
    error_one_bin, error_any_bin : float
        Error that one bin chosen beforehand, or any bin, exceeds with probability at most 0.05, for every dataset.
    error_any_bin_even : float
        The same as `error_any_bin` for the dataset with the users spread evenly over the bins; other datasets may have larger
        errors.
    messages : float
        Number of messages per user, including the dummy reports.
    bits : float
        Number of bits sent per user.
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


@dataclass(frozen=True)
class Comparison:
    """Rows sorted by `error_any_bin`, and the protocols that cannot meet the target.

    Parameters
    ----------
    rows : tuple of ComparisonRow
        The most accurate first.
    left_out : tuple of (str, str)
        Names of the protocols that cannot meet the target, and the reasons.
    """

    rows: tuple[ComparisonRow, ...]
    left_out: tuple[tuple[str, str], ...] = ()

    def __iter__(self) -> Iterator[ComparisonRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries, such as a DataFrame takes.

        Returns
        -------
        list of dict
            The fields of :class:`ComparisonRow`, the protocol by its `repr`.
        """
        return [{**{name: value for name, value in row.__dict__.items() if name != "profile"}, "protocol": repr(row.profile)}
                for row in self.rows]

    def __str__(self) -> str:
        head = (f"{'':26}{'any bin':>10}{'even data':>10}{'one bin':>10}{'rmse':>10}"
                f"{'messages':>11}{'bits':>11}{'local eps':>11}  trusted")
        lines = [f"{row.name:26}{row.error_any_bin:10.4g}{row.error_any_bin_even:10.4g}{row.error_one_bin:10.4g}{row.rmse:10.4g}"
                 f"{row.messages:11.4g}{row.bits:11.4g}{row.local_eps:11.4g}  {row.trusted}" for row in self.rows]
        caption = ("The first three columns are errors in users that are exceeded with probability 0.05, for every dataset or "
                   "(even data) for one\nwhose users are spread evenly over the bins. Messages and bits are those of one user.")
        return "\n".join([head, *lines, caption, *(f"{name}: {reason}" for name, reason in self.left_out)])


@explained
@with_passages
def compare_at(*, users: int, bins: int, eps: float, delta: float) -> Comparison:
    r"""Return protocols and frequency oracles for a histogram, all calibrated to one central guarantee.

    Parameters
    ----------
    {users}
    bins : int
        Number of bins, 2 to 2**16.
    eps : float
        Privacy loss in nats, in [1e-12, 690]: the guarantee of the shuffled messages, one user's bin replaced.
    delta : float
        Failure probability, in (0, 1).

    Returns
    -------
    Comparison
        Sorted by the error of any bin that holds for every dataset.

    {raises}

    Notes
    -----
    Each oracle has the largest local budget that the upper bound of :class:`~shufflebounds.shuffle.Shuffled` allows. Sizes of
    subsets and numbers of buckets are those with the smallest error at the budget that the privacy blanket alone allows, which is
    smaller and faster to compute. The search finds them to within 1, or to within a 32nd of the size.

    The messages of dummy reports are shared evenly among the users. The protocols of many messages need shufflers that keep all
    messages of a user apart; clear reports also need trust in whoever adds the dummy reports. The run time is a few seconds, most
    of it for the flipped reports.

    `users` is the number of users who take part. With fewer users the guarantee is weaker, except for clear reports: give the
    least number that is sure to take part. If every user sends a message with a known probability only, calibrate
    :class:`~shufflebounds.shuffle.Shuffled` with its parameter `participation`.

    The order may differ if the same users send several histograms: calibrate each protocol for all releases together with
    :func:`~shufflebounds.composition.calibrate_releases` then.

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

    target = _Target(eps, delta, users)

    def oracle(build: Callable[[float], FrequencyOracle]) -> Callable[[], ComparisonRow]:
        return lambda: _oracle_row(target.largest(build), users)

    def sized(build: Callable[[int], Callable[[float], FrequencyOracle]], start: int, least: int, most: int
              ) -> Callable[[], ComparisonRow]:
        def row() -> ComparisonRow:
            size, budget = _best_size(build, target, start, least, most)
            return _oracle_row(target.largest(build(size), budget), users)

        return row

    def flipped(view: Literal["sums", "records"]) -> Callable[[], ComparisonRow]:
        return lambda: _flipped_row(FlippedReports.calibrate(users=users, bins=bins, eps=eps, delta=delta, view=view))

    # The search for sizes starts at the best size for `guess`, a local budget near the one that amplification allows.
    guess = max(eps, math.log1p(users * min(eps, 1.0) ** 2 / (16 * -math.log(delta))))
    ways: dict[str, Callable[[], ComparisonRow]] = {
        "k-ary response": oracle(lambda budget: KaryResponse(bins, budget)),
        "subset selection": sized(lambda size: lambda budget: SubsetSelection(bins, budget, size),
                                  SubsetSelection(bins, max(guess, 1e-3))._d, 1, bins - 1),
        "local hashing": sized(lambda size: lambda budget: LocalHashing(bins, budget, size),
                               LocalHashing(bins, max(guess, 1e-3))._g, 2, 2**30),
        "Hadamard response": oracle(lambda budget: HadamardResponse(bins, budget)),
        # UnaryEncoding.symmetric accepts at most 72 nats: above, the probability p of its reports rounds to 1.
        "unary encoding, symmetric": oracle(lambda budget: UnaryEncoding.symmetric(bins, min(budget, 72.0))),
        "unary encoding, optimized": oracle(lambda budget: UnaryEncoding.optimized(bins, budget)),
        "clear reports": lambda: _clear_row(ClearReports.calibrate(bins=bins, eps=eps, delta=delta), users),
        "flipped reports, records": flipped("records"),
        "flipped reports, sums": flipped("sums"),
        "histogram": lambda: _histogram_row(ShuffledHistogram.calibrate(users=users, bins=bins, eps=eps, delta=delta)),
    }
    rows, left_out = [], []
    for name, row in ways.items():
        try:
            with _validate.quiet():
                rows.append(replace(row(), name=name))
        except ValueError as problem:
            # The arguments were checked, so this protocol cannot meet the target, or its error would not be finite.
            left_out.append((name, str(problem)))
    return Comparison(tuple(sorted(rows, key=lambda row: row.error_any_bin)), tuple(left_out))


@dataclass(frozen=True)
class _Target:
    """The central guarantee that all oracles meet."""

    eps: float
    delta: float
    users: int

    def budget(self, build: Callable[[float], FrequencyOracle], rtol: float, near: float = 0.0,
               excess_of: Callable[[FrequencyOracle], float] | None = None) -> float:
        """Return the largest local budget that meets the target, with relative error `rtol`.

        Parameters
        ----------
        build : callable
            Makes the oracle of a local budget.
        rtol : float
            Relative width of the last interval of the search.
        near : float
            A budget at which the search starts; 0 if none is known.
        excess_of : callable, optional
            Returns log delta of an oracle at the target's eps, minus the target's log delta; by default that of the blanket.
        """
        tried: dict[float, float] = {}
        measure = excess_of or self._blanket_excess

        def excess(budget: float) -> float:
            if budget not in tried:
                tried[budget] = measure(build(budget)) if budget > self.eps else -math.inf
            return tried[budget]

        least = min(self.eps * (1 + rtol), LARGEST_EXPONENT)
        at = min(max(near or 1.0, min(1.5 * least, least + 1)), LARGEST_EXPONENT)
        # The budget that is sought is close to `at` and above eps. So the first step is a fraction of at - least, the part of the
        # budget that amplification adds to eps.
        step = max(0.02 * (at - least), rtol * at) if near else 1.0
        if excess(at) <= 0:
            end = expand_bracket(at, lambda budget: excess(budget) > 0, step, LARGEST_EXPONENT, 3.0)
            if excess(end) <= 0:
                return end
        elif excess(expand_bracket(at, lambda budget: excess(budget) <= 0, -step, least, 3.0)) > 0:
            # A budget slightly below eps meets the target without a shuffle; the margin covers the rounding of the budget.
            return self.eps * (1 - COMPUTED_ERROR)
        # The last step crossed the target, so the root lies between the last two budgets.
        low, high = sorted([*tried][-2:])
        found = root(excess, low, high, tried[low], tried[high], rtol=rtol)
        return expand_bracket(found, lambda budget: excess(budget) <= 0, -rtol * found, self.eps * (1 - COMPUTED_ERROR))

    def _blanket_excess(self, oracle: FrequencyOracle) -> float:
        """Return log delta of the oracle after the shuffle, by the privacy blanket, minus the target log delta."""
        sides = [pair.upper.log_phi([self.eps], self.users) for pair in oracle.excess_laws()]
        return max(float(upper[0]) for _, upper in sides) - math.log(self.delta)

    def _excess(self, oracle: FrequencyOracle) -> float:
        """Return log delta of the oracle after the shuffle, by the upper bound of `Shuffled`, minus the target log delta."""
        return float(Shuffled(oracle, self.users).log_delta(self.eps)) - math.log(self.delta)

    def largest(self, build: Callable[[float], FrequencyOracle], near: float = 0.0) -> Shuffled:
        """Return the shuffled oracle with the largest local budget, after checking that its upper delta meets the target.

        `build` returns the oracle for a local budget, and `near` is a budget where the search starts.
        """
        # The upper bound is at most that of the privacy blanket, so the budget that the blanket allows is allowed here, too.
        blanket = self.budget(build, 1e-6, near)
        # The search stops at this tolerance even where the upper bound of delta jumps: the search over datasets has a tolerance of
        # 3e-3 in log delta.
        shuffled = Shuffled(build(self.budget(build, 1e-7, blanket, self._excess)), self.users)
        if not shuffled.delta(self.eps) <= self.delta * (1 + 1e-9):
            raise _validate.InfeasibleError(f"delta={self.delta:g} cannot be met at eps={self.eps:g}: {shuffled.randomizer!r} has "
                                            f"{shuffled.delta(self.eps):.3g}")
        return shuffled


def _best_size(
    build: Callable[[int], Callable[[float], FrequencyOracle]], target: _Target, start: int, least: int, most: int
) -> tuple[int, float]:
    """Return the size with the smallest error, and its local budget to a relative 1e-4.

    The size is multiplied or divided by a factor, which shrinks until a step changes the size by a 32nd.
    """
    known: dict[int, tuple[float, float]] = {}
    last = 0.0

    def error(size: int) -> float:
        nonlocal last
        if size not in known:
            last = target.budget(build(size), 1e-4, last)
            known[size] = build(size)(last).rmse(target.users), last
        return known[size][0]

    best, factor = min(max(start, least), most), 4.0
    while True:
        up, down = max(best + 1, round(best * factor)), min(best - 1, round(best / factor))
        tried = min((size for size in (down, best, up) if least <= size <= most), key=error)
        # An improvement of the error by less than 0.05 % is not worth a longer search.
        if error(tried) < error(best) * (1 - 5e-4):
            best = tried
        elif best * (factor - 1) <= max(1, best // 32):
            return best, known[best][1]
        else:
            factor = math.sqrt(factor)


def _oracle_row(shuffled: Shuffled, users: int) -> ComparisonRow:
    oracle = shuffled.randomizer
    assert isinstance(oracle, FrequencyOracle)
    law = oracle.errors(users)
    return ComparisonRow("", shuffled, SHUFFLER, oracle.local_eps, oracle.rmse(users), *_errors(law), 1.0, oracle.message_bits)


def _errors(law: ErrorLaw) -> tuple[float, float, float]:
    """Return three errors that are exceeded with the customary probability of 5 %.

    The errors are that of one bin and the largest of all bins, both for the worst dataset, and the largest of all bins if the users
    are spread evenly over them.
    """
    beta = 0.05
    return (law.error_quantile(beta), law.error_quantile(beta, of="any"), law._even_quantile(beta))


def _clear_row(protocol: ClearReports, users: int) -> ComparisonRow:
    messages = protocol.messages_per_user(users)
    return ComparisonRow("", protocol, DUMMIES, math.inf, math.sqrt(protocol.variance), *_errors(protocol), messages,
                         messages * math.log2(protocol.bins))


def _flipped_row(protocol: FlippedReports) -> ComparisonRow:
    messages = protocol.messages_per_user()
    # For view="sums" every bit is a separate message, which contains the number of its bin.
    bits = messages * (protocol.bins if protocol.view == "records" else 1 + math.log2(protocol.bins))
    local = 2 * (math.log1p(-protocol.flip) - math.log(protocol.flip)) if protocol.flip else math.inf
    return ComparisonRow("", protocol, SHUFFLER, local, math.sqrt(protocol.variance), *_errors(protocol), messages, bits)


def _histogram_row(protocol: ShuffledHistogram) -> ComparisonRow:
    messages = protocol.messages_per_user()
    return ComparisonRow("", protocol, SHUFFLER, math.inf, math.sqrt(protocol.variance), *_errors(protocol), messages,
                         messages * math.log2(protocol.bins))
