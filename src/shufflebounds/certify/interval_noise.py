r"""Bounds of delta for shuffled Laplace, Gaussian and discrete Gaussian noise, every user's input in an interval of length d.

R_x is the distribution of a message of input x, and E = e^eps. If users have one of finitely many values (`inputs`), the interval
is that from the first to the last one; inputs are distances from the first.

**The privacy blanket, and one dataset** (:func:`interval_outputs`). The outputs are divided into cells: both outer
half-lines, and between them short intervals, or single numbers of discrete Gaussian noise.

Upper bound: the privacy blanket m = min(R_0, R_d), whose worst pair of inputs is (0, d) (docs/theorems/interval-inputs). On a cell
X = (R_0 - E R_d)/m is between two numbers; two atoms at these numbers with the same mass and mean are larger in the convex order.
The outer half-lines add at most their probability under R_0, as (s + x)_+ <= s_+ + x_+. For Laplace noise X is constant on them.

Lower bound: delta if all other users have one input x, or each has one of several inputs with equal probabilities, and the analyst
sees only cells. The target's inputs are 0 and d, or the two listed values that the engine names.

Both bounds are Phi_n of :mod:`.blanket`. The engine gives the dataset, and the stated bound, which determines the number of cells.

**Every dataset**, for Gaussian noise (:func:`interval_every_dataset`). The unit is the standard deviation of the
noise, and the interval is [0, L]. A distribution of X is replaced by one of finitely many values: on a bin of outputs X is between
two numbers low <= X <= high, and its mass p and the integral of X are known. Two atoms at `low` and `high` with the same mass and
mean are larger in the convex order. `high` alone is larger in the increasing convex order, which is enough. Outputs beyond the bins
are truncated; they add at most R_a{beyond}, as (s + x)_+ <= s_+ + x_+.

The theorem is that of docs/theorems/worst-dataset with s pairs of users. Its Lemma G has three families of distributions of
X = (R_a - E R_b)/R_x under R_x, each with one parameter in [0, L]. The range of this parameter is divided into cells [g, g + h]:

- A, a = 0, b = L: R_x is at least a mixture of w R_g and w R_(g+h), with w = e^(-h^2 u^2/8) and u = y - (g + h/2). So the
  distribution of (R_0 - E R_L)/(w R_g) under w R_g is used for every end g, with the smaller w of the two cells at g. If the
  inputs x are listed, they are the ends g, and h = 0.
- B, b = L, x = 0: f(a) = R_a(y)/R_0(y) is at most a mean of f(g), f(g) + (h/3) f'(g), f(g + h) - (h/3) f'(g + h) and f(g + h),
  plus h^4/384 times the largest He_4(y - a)_+ f(a) in the cell, where f'(a) = (y - a) f(a) and He_4(z) = z^4 - 6 z^2 + 3. The
  weights of the mean do not depend on y.
- C, a = 0, x = L: the same for f(b) = R_b(y)/R_L(y), minus h^4/384 times the largest He_4(y - b)_- f(b).

With m and r^2 = |R_0 - R_L|^2/4 (Lemma R), all constants of the theorem are integrals of exponentials.

The engine gives E' (for the probability of the best test) and the stated bound. This module itself chooses s, the bins and the
cells. Unlike in the engine, the users are in pairs for c_-, not in blocks of four, and large values of X are not split off: where
these differences matter, the certificate misses the stated bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

from shufflebounds._engines.datasets.largest_sum import SumChoices
from shufflebounds._engines.datasets.pair_weights import Weights
from shufflebounds._engines.witnesses import chosen
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, arb, larger, largest, normal_tail, pi, smaller
from shufflebounds.certify.blanket import phi_answers, values_of
from shufflebounds.certify.noise import masses, noise_of
from shufflebounds.certify.worst_dataset import EveryDataset, Law, LemmaH, negative_mass

TOLERANCE = 0.02
"""Allowed distance from the stated bound in log delta: bins and cells are wider than those of the library."""

WIDTH = 0.06
"""Width of the bins of outputs. Raised: a larger distance from the stated bound. Lowered: longer run time."""

SLACK = 1e-3
"""A cell is not divided if it raises the bound by less than this fraction."""

CELLS, FINEST = 12, 100
"""Numbers of cells: at first, and if all are divided as often as allowed."""

PAIRS = (0, *range(1, 9), 10, 12, 14, 17, 20, 24, 28, 34, 40, 48, 58, 70, 85, 100, 120, 150, 200, 300, 500, 1000, 3000, 10000)
"""Numbers s of pairs of users that are tried."""


def ratio(g: Ball, x: Ball, y: Ball) -> Ball:
    """Return R_g(y)/R_x(y)."""
    return ((g - x) * (y - (g + x) / 2)).exp()


def thinned(law: Law, share: Ball, factor: Ball) -> Law:
    """Return the distribution of X if a message is sent with probability `share`: "no message" has X = 1 - E."""
    return [(x, share * p) for x, p in law] + ([(1 - factor, 1 - share)] if share < 1 else [])


def two_atoms(low: Ball, high: Ball, mass: Ball, integral: Ball) -> Law:
    """Return the atoms at `low` and `high` with this mass and integral of X; one ball if they may be equal."""
    if not high > low:
        return [(low.union(high), mass)]
    up = (integral - low * mass) / (high - low)
    return [(high, up), (low, mass - up)]


class IntervalBound(EveryDataset):
    """The theorem of docs/theorems/worst-dataset for Gaussian noise with inputs in [0, `length`].

    The bins are those of outputs up to `depth` beyond both ends. `near` is the logarithm of a guess of the bound, by which s is
    chosen. `listed` has the inputs that users may have; it is empty if these are all inputs.
    """

    def __init__(self, length: Ball, depth: float, share: float, users: int, near: float, listed: Sequence[Ball] = ()) -> None:
        self.length, self.share, self.zero, self.listed, self._users, self._near = length, arb(share), arb(0), listed, users, near
        self.middle = math.ceil((depth + float(length) / 2) / WIDTH)
        # The middle of the interval is an edge, because m = min(R_0, R_L) changes there.
        self.edges = [length / 2 + WIDTH * i for i in range(-self.middle, self.middle + 1)]
        self.bins = [y.union(z) for y, z in pairwise(self.edges)]
        self.ends = self.bin_masses(self.zero), self.bin_masses(length)
        # The largest probability of outputs to the left of all bins is that of input 0, and to the right that of L.
        self.beyond = self.share * (normal_tail(-self.edges[0]) + normal_tail(self.edges[-1] - length))
        self._overlap = 2 * normal_tail(length / 2)
        # Left of L/2, the integrand R_0^2/m is e^(L^2) times the density of normal noise around -L.
        self._square = (length * length).exp() * normal_tail(-3 * length / 2) + normal_tail(length / 2)
        self._mass = 1 - self.share + self.share * self._overlap
        self._distance = self.share * (self._square - (2 - self._overlap)) / 2

    def bin_masses(self, x: Ball) -> list[Ball]:
        """Return the probabilities of the bins."""
        return masses(normal_tail, self.edges, x)[1:-1]

    def atoms(self, mass: list[Ball], integral: list[Ball], value: Callable[[int, Ball], Ball],
               slope: Callable[[int, Ball], Ball]) -> Law:
        """Return two atoms for each bin.

        `mass` and `integral` have the probabilities of the bins and the integrals of X, `value`(i, y) is X at y in the bin i, and
        `slope`(i, y) contains its derivative at all points of a ball y. If X decreases, it may be any negative number.
        """
        out = []
        for i, (p, whole) in enumerate(zip(mass, integral, strict=True)):
            y, z, inside = self.edges[i], self.edges[i + 1], self.bins[i]
            turn = slope(i, inside)
            found = [value(i, y), value(i, z)] if turn > 0 or turn < 0 else [value(i, y) + turn * (inside - y)]
            out += two_atoms(smaller(*found).lower(), larger(*found).upper(), p, whole)
        return out

    # ------------------------------------------------------------------------------------------------------- the three families

    def law_a(self, g: Ball, h: Ball, factor: Ball) -> Law:
        """Return the distribution of family A for the cells of width h on both sides of g."""
        far = [(y - g).abs_upper().max((z - g).abs_upper()) + h / 2 for y, z in pairwise(self.edges)]
        w = [(-(h * u) * (h * u) / 8).exp().lower() for u in far]

        def value(i: int, y: Ball) -> Ball:
            return (ratio(self.zero, g, y) - factor * ratio(self.length, g, y)) / w[i]

        # R_0/R_g does not increase with y, and R_L/R_g does not decrease.
        integral = [a - factor * b for a, b in zip(*self.ends, strict=True)]
        return self.atoms([v * p for v, p in zip(w, self.bin_masses(g), strict=True)], integral, value, lambda i, y: arb(-1))

    def cell(self, g: Ball, h: Ball, factor: Ball, *, first: bool) -> Iterator[Law]:
        """Yield the four distributions of family B (`first`) or C for the cell [g, g + h]."""
        x, other = (self.zero, self.length) if first else (self.length, self.zero)
        # X = many (f + extra) + more R_other/R_x, with a polynomial f of the inputs, and extra >= 0 if many > 0, else <= 0.
        many, more = (1 + self.zero, -factor) if first else (-factor, 1 + self.zero)
        inside, extra = g.union(g + h), []
        for y in self.bins:
            z = (y - inside) * (y - inside)
            fourth = (z * z - 6 * z + 3).union(self.zero)
            size = (h * h) * (h * h) / 384 * ratio(inside, x, y).upper()
            extra.append(size * (fourth.upper() if first else fourth.lower()))
        mass, against = self.ends if first else self.ends[::-1]
        for place, tilt in ((g, self.zero), (g, h / 3), (g + h, -h / 3), (g + h, self.zero)):

            def value(i: int, y: Ball, place: Ball = place, tilt: Ball = tilt) -> Ball:
                return many * (ratio(place, x, y) * (1 + tilt * (y - place)) + extra[i]) + more * ratio(other, x, y)

            def slope(i: int, y: Ball, place: Ball = place, tilt: Ball = tilt) -> Ball:
                # With the common factor R_other/R_x, the ball of the rest is narrow where its two terms cancel.
                rise = (place - x) * (1 + tilt * (y - place)) + tilt
                return ratio(other, x, y) * (many * ratio(place, other, y) * rise + more * (other - x))

            # The integral of (y - g) R_g over a bin is the difference of the densities at its ends.
            ends = [(-(y - place) * (y - place) / 2).exp() / (2 * pi()).sqrt() for y in self.edges]
            integral = [many * (p + tilt * (one - two) + e * q) + more * r for p, one, two, e, q, r in
                        zip(self.bin_masses(place), ends, ends[1:], extra, mass, against, strict=False)]
            yield self.atoms(mass, integral, value, slope)

    # ------------------------------------------------------------------------------------------------------------ the constants

    def spread(self, factor: Ball) -> Ball:
        share, less = self.share, (factor - 1) * (factor - 1)
        # The integral of R_0 R_L/m is that of max(R_0, R_L).
        both = (1 + factor * factor) * self._square - 2 * factor * (2 - self._overlap)
        return share * both + (1 - share) * less - less / self._mass

    def signed(self, weights: Weights) -> Ball:
        length = self.length
        # ln R_0/R_L under R_0 is normal with the mean L^2/2 and the variance L^2; inputs at a smaller
        # distance have smaller tails.
        return negative_mass(lambda t: normal_tail(t.log() / length - length / 2), weights.pairs) if weights.pairs else self.zero

    def blanket(self, factor: Ball, sums: SumChoices) -> Ball:
        ratios = [ratio(self.zero, self.length, y) for y in self.edges]
        cells = zip(*self.ends, self.ends[0], pairwise(ratios), strict=True)
        law = thinned(_blanket(list(cells), factor), self.share, factor)
        return LemmaH(chosen([law], self._users)._replace(users=self._users)).value(law) / self._users + self.beyond

    def ratios(self) -> list[Law]:
        first, second = self.ends
        # R_0/m is R_0/R_L to the left of L/2, and 1 to the right. To the left of all bins R_0/m is replaced by 0. This is allowed,
        # because the exponential moments in the bound decrease in R_0/m.
        law = self.atoms(second[: self.middle], first[: self.middle], lambda i, y: ratio(self.zero, self.length, y),
                         lambda i, y: arb(-1))
        right = normal_tail(self.edges[self.middle])
        law += [(arb(1), right), (self.zero, normal_tail(self.length - self.edges[0]))]
        return [thinned(law, self.share, self.zero)]

    def main(self, factor: Ball, sums: SumChoices) -> Ball:
        length = self.length
        narrow = 0 * length if self.listed else length / (4 * CELLS)
        ends = [thinned(self.law_a(g, narrow, factor), self.share, factor) for g in (self.zero, length / 2, length)]
        lemma = LemmaH(chosen(ends, sums.users)._replace(users=sums.users))

        def raised(known: Ball, laws: Iterable[Law]) -> Ball:
            """Return `known`, or if a law exceeds it, slightly more than the largest B_x of the laws."""
            for law in laws:
                value = lemma.value(thinned(law, self.share, factor), known, SLACK)
                known = known if value < known else (1 + SLACK) * value
            return known

        def cell(low: float, high: float, known: Ball, *, first: bool) -> Ball:
            return raised(known, self.cell(length * low, length * (high - low), factor, first=first))

        # The ends come first: one of them often has the largest B_x.
        places = [self.zero, length, *(self.listed or [narrow * i for i in range(1, 4 * CELLS)])]
        most = raised(self.zero, (self.law_a(g, narrow, factor) for g in places))
        for first in (True, False):
            most = largest(partial(cell, first=first), most, parts=CELLS, finest=1 / FINEST)
        return most / sums.users + self.beyond

    def weights(self, given: Weights, factor: Ball, probability: Ball | None) -> Weights:
        # s is not taken from the library, which computes c_- for blocks of four users: c_- for pairs, which is used here, may be
        # larger.
        def estimate(weights: Weights) -> float:
            try:
                signed, error = float(self.signed(weights)), float(self.error(weights, factor, probability))
            except ArithmeticError:
                return math.inf
            main = math.exp(self._near) * (1 + 2 * signed) * (1 + 2 * weights.pairs * (1 - self._near) / self._users)
            return main + signed * (float(factor) - 1) + error

        numbers = (pairs for pairs in PAIRS if self._users - 2 * pairs >= max(self._users / 2, 3))
        return min((Weights(pairs, 0.0, given.log_steps) for pairs in numbers), key=estimate)


def within(protocol: Any) -> Any:
    """Return the noise on the interval of the inputs: its sensitivity is the distance of the first and the last listed input."""
    inputs, noise = protocol.inputs, protocol.randomizer
    return noise if inputs is None else replace(noise, sensitivity=math.nextafter(inputs[-1] - inputs[0], math.inf))


def interval_every_dataset(protocol: Any, eps: float) -> Answer:
    """Return the upper bound over all datasets, at eps."""
    stated, choices = protocol.log_delta(eps), protocol._bounds.upper.over_datasets.choices(eps)
    depth, mechanism, inputs = math.sqrt(2 * (9 - max(stated, -1e4))), within(protocol), list(protocol.inputs or ())

    def value(factor: Ball) -> Ball:
        sigma = arb(mechanism.sigma)
        bound = IntervalBound(arb(mechanism.sensitivity) / sigma, depth, protocol.participation, protocol.users, stated,
                              [(arb(x) - inputs[0]) / sigma for x in inputs])
        return bound.value(choices, factor)

    # The number of operations is proportional to the number of bins, and to the number of bounds over all datasets.
    far, bounds = depth + 0.5 * mechanism.sensitivity / mechanism.sigma, 2 if choices.earlier else 1
    return Answer(7e6 * bounds * far / 7.5, value, TOLERANCE, refined=False)


NUMBER = 120
"""Number of short intervals for Laplace noise. Raised: closer to the stated bound, and longer run time."""

NARROW = 0.04
"""Width of the short intervals for Gaussian noise, in standard deviations. Raised or lowered: as for NUMBER."""

DIGITS = 4, 5
"""Digits of the smoothing term that are tried."""

DATASETS = {"the first end": (0.0,), "the second end": (1.0,), "the middle": (0.5,), "either end": (0.0, 1.0)}
"""The datasets that the library names, as inputs of other users, which are fractions of d. Each other user has one of them, all
with equal probabilities."""


Cells = list[tuple[Ball, Ball, Ball, tuple[Ball, Ball]]]
"""Each cell's probabilities for the target's two inputs and for the dataset, and R_0/R_d at both ends of the cell."""


def cells_of(noise: Any, edges: list[Ball], target: Sequence[Ball], others: Sequence[Ball]) -> Cells:
    """Return both outer half-lines, and the intervals between the edges; whole numbers are in the interval to their right.

    `target` has the target's two inputs. Each other user has one of the inputs `others`, all with equal probabilities.
    """
    first, last, *rest = (masses(noise.tail, edges, x, noise.whole) for x in (*target, *others))
    other = [sum(column, arb(0)) / len(others) for column in zip(*rest, strict=True)]
    # R_0/R_d is the reciprocal of R_d/R_0.
    ratios = [(-noise.log_ratio(y)).exp() for y in (edges[0], *edges, edges[-1])]
    both = zip(ratios, ratios) if noise.whole else pairwise(ratios)
    return list(zip(first, last, other, both))


def _blanket(cells: Cells, factor: Ball) -> Law:
    """Return the distribution of X for the privacy blanket; half of the cells are to the left of the middle."""
    law = []
    for i, (first, last, _, ratios) in enumerate(cells):
        left = 2 * i + 1 < len(cells)
        low, high = ((r - factor if left else 1 - factor / r) for r in ratios[::-1])
        law += two_atoms(low, high, last if left else first, first - factor * last)
    return law


def dataset(text: str, inputs: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    """Return other users' inputs and the target's two, from the words of the library; see `DATASETS` if `inputs` is empty."""
    words, _, pair = text.partition("; target between inputs ")
    names = {f"input {x:g}": (x,) for x in inputs} | {"evenly over the inputs": inputs} if inputs else DATASETS
    others = next((places for name, places in names.items() if words.endswith(name)), ())
    if not others:
        raise NoCertificateError("the dataset of its lower bound is not known")
    return others, [names[f"input {x}"][0] for x in pair.split(" and ")] if pair else (inputs[0], inputs[-1]) if inputs else (0, 1)


def interval_outputs(protocol: Any, eps: float, upper: bool) -> Iterator[Answer]:
    """Yield the certificates of the privacy blanket, or of the dataset that the library names."""
    mechanism, users, share = within(protocol), protocol.users, protocol.participation
    stated = protocol.log_delta(eps, bound="upper" if upper else "lower")
    inputs = () if upper else protocol.inputs or ()
    others, target = dataset("the first end" if upper else protocol.data(eps), inputs)
    depth, sigma, d = math.sqrt(2 * (12 - max(stated, -1e4))), getattr(mechanism, "sigma", 0.0), mechanism.sensitivity
    whole = noise_of(mechanism).whole
    number = math.ceil(sigma * depth) if whole else math.ceil((depth + d / 2 / sigma) / NARROW) if sigma else NUMBER // 2

    def value(factor: Ball, *, phi: Callable[..., Ball]) -> Ball:
        noise = noise_of(mechanism)
        half = noise.sensitivity / 2 + arb(sigma * depth)
        places = [arb(x) - inputs[0] if inputs else noise.sensitivity * x for x in (*target, *others)]
        places = [x.floor() for x in places] if whole else places
        cells = cells_of(noise, [arb(k) for k in range(-number, d + number + 2)] if whole else
                       [noise.sensitivity / 2 + half * i / number for i in range(-number, number + 1)], places[:2], places[2:])
        beyond = cells[0][0] + cells[-1][0] if upper and sigma else arb(0)
        laws = [cell[:3] for cell in cells]
        alone, law = (arb(0), _blanket(cells[1:-1] if sigma else cells, factor)) if upper else values_of(laws, factor)
        law = thinned(law, arb(share), factor)
        rest = (1 - sum((m for _, m in law), arb(0))).max(arb(0))
        return phi(law, users, rest) + share * (alone + beyond)

    yield from phi_answers(4 * number + 2 * (d if whole else 0), users, value, distance=TOLERANCE, digits=DIGITS)
