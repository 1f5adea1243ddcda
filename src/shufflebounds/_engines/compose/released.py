"""The releases of a composition: the distributions that are composed for the upper bound, and those for the lower bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

from shufflebounds._base.caches import cached_property
from shufflebounds._engines.compose.adaptive import AdaptiveChoice
from shufflebounds._engines.compose.composer import Composer
from shufflebounds._losses.release import DominatingPairInfo, groups_alike

__all__ = ["Released", "matched"]

ALIKE = 0.25
"""Pairs of one family that differ only in a number (`Releases.ordered`), such as the number of users, share their bounds if these
numbers differ by at most a relative ALIKE * rtol. Different numbers of users change eps by about half of this relative difference.
Raised: larger gaps. Lowered: longer run time."""

Pairs = tuple[tuple[DominatingPairInfo, int], ...]


class Released:
    """The releases of several mechanisms on the same data.

    Parameters
    ----------
    factors : sequence of (DominatingPairInfo, int)
        The pair of each mechanism, with its number of releases.
    rtol : float
        The relative gap between the bounds of eps that the composition accepts. Pairs of one family whose parameters differ by at
        most ALIKE * rtol are replaced by one pair.
    """

    def __init__(self, factors: Sequence[tuple[DominatingPairInfo, int]], rtol: float) -> None:
        self._factors, self._rtol = factors, rtol

    @cached_property
    def pairs(self) -> tuple[tuple[DominatingPairInfo, Pairs], ...]:
        """For each mechanism (factor): its pair, and the pairs composed in place of its releases, each with its number."""
        pairs = [one for one, _ in self._factors]
        releases = [one.times(number) for one, number in self._factors]
        powers = [one.releases.power for one in pairs]
        for product in dict.fromkeys(power[1] for power in powers if power):
            # All factors whose releases `product` can compose in one step are combined. The result replaces the releases of the
            # first of these factors; the others have none.
            alike = [(i, power[0]) for i, power in enumerate(powers) if power and power[1] is product]
            if len(alike) > 1:
                for i, _ in alike:
                    releases[i] = ()
                releases[alike[0][0]] = ((product([(parameter, self._factors[i][1]) for i, parameter in alike]), 1),)
        for places in groups_alike(pairs, ALIKE * self._rtol):
            # The releases of these factors have about the same distribution, so one distribution is composed for all of them.
            for i in places:
                releases[i] = ()
            releases[places[0]] = ((pairs[places[0]].to(pairs[places[-1]]), sum(self._factors[i][1] for i in places)),)
        return tuple(zip(pairs, releases))

    @property
    def above(self) -> Pairs:
        """The distributions of the upper bound."""
        return tuple(pair for _, releases in self.pairs for pair in releases)

    def composer(self, rtol: float, *, with_choice: bool, deepest: float = -math.inf) -> Composer:
        """Return the composer of all releases; the arguments are those of :class:`Composer`.

        Without `with_choice`, the adversary does not choose another pair of datasets in each release.
        """
        below = [self._below(i) for i in matched([len(pair.below) for pair, _ in self.pairs])]
        # The lower bound by a repeated test needs many values of delta for each factor. These values take too long for a factor
        # whose releases are products of several parts, so such factors are not tested.
        tested = [(pair, times) for pair, times in self._factors if not pair.releases.parts]
        return Composer(self.above, below, rtol, self._free(bool(below)) if with_choice else None, tested, deepest)

    def _below(self, entry: int, left_out: int | None = None) -> list[tuple[DominatingPairInfo, int]]:
        """Return the distributions of a lower bound in which each factor takes the entry with index `entry` of its list of pairs.

        The factor with index `left_out` is omitted.
        """
        side: list[tuple[DominatingPairInfo, int]] = []
        for i, ((_, times), (own, releases)) in enumerate(zip(self._factors, self.pairs)):
            pairs = own.below
            pair = pairs[entry] if len(pairs) > 1 else pairs[0]
            # If the lower bound uses the same pair as the upper bound, it also uses the same objects, so that their values are
            # computed once.
            side += [] if i == left_out else releases if pair is own else pair.times(times)
        return side

    def _free(self, has_below: bool) -> AdaptiveChoice | None:
        """Return the mechanism for which the adversary may choose another pair of datasets in each release, or None.

        If several mechanisms have several pairs, the one with most releases is returned.
        """
        above = self.above
        places = [i for i, (info, _) in enumerate(above) if info.choices]
        if not places or sum(times for _, times in above) == 1:
            return None
        place = max(places, key=lambda i: above[i][1])
        # AdaptiveChoice needs the factor that is composed of above[place] alone. If above[place] is only a part of each release,
        # there is no such factor, and no adaptive lower bound: all parts of one release have the same pair of datasets.
        factor = next((i for i, (_, releases) in enumerate(self.pairs) if releases == (above[place],)), None)
        if factor is None or not has_below:
            return AdaptiveChoice(place, 0, (), ())
        pairs = [pair.times(1) for pair in self.pairs[factor][0].below]
        return AdaptiveChoice(place, self._factors[factor][1], pairs if len(pairs) > 1 else (), self._below(0, factor))


def matched(counts: list[int]) -> range:
    """Return the indices of the lower bounds: lower bound i uses entry i of each factor's list of pairs.

    `counts` are the lengths of the lists. If a list has a single pair, every lower bound uses this pair.
    """
    return range(0 if 0 in counts else min((count for count in counts if count > 1), default=1))
