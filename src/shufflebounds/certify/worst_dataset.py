r"""The theorem of docs/theorems/worst-dataset in interval arithmetic, for a randomizer whose constants and distributions are known.

With n users, s pairs of them, n' = n - 2s and E = e^eps, for every dataset

.. math:: \delta \le (1 + 2 c_-)\,\Gamma_{n'} + c_-(E - 1) + \sum_k |\omega_{k-1} - \omega_k|\, r^{2k} \sqrt{\mu_{2k+1}}\, l_{2k+1},
    \qquad l_{2k+1}^2 = \frac{(2k+1)!\, V}{(n)_{2k+1}} + \frac{(2k)!\, (E-1)^2}{(n-1)_{2k}}.

`EveryDataset` has Gamma, c_-, V, r, the mass g of the measure m below all R_x, and distributions for the probability of the best
test, for outputs of finitely many classes; `interval_noise` has them for Gaussian noise. Of the numbers that the proof leaves free,
E' is that of `_engines.datasets.worst`. The others (s, the weights omega, and theta, D and eta of each sum) are those of the engine
or of the subclass: each choice is valid.

**Lemma H**, for upper bounds of E(X_1 + ... + X_k)_+/k over all distributions of the independent terms X_i from a set.

Theorem (docs/theorems/worst-dataset). For all theta, D > 0 and eta >= 0, with phi_x(z) = E e^(zX) for the distribution x,

.. math:: \mathbb{E}(X_1 + \cdots + X_k)_+ \le \max_x B_x, \qquad B_x = \frac{D}{2\pi} \sum_m w_m |\phi_x(\theta + imD)|^k, \qquad
    w_m = \frac{e^{\eta^2 (\theta^2 - m^2 D^2)/2}}{\theta^2 + m^2 D^2}.

As |phi_x(theta + it)| <= phi_x(theta), the terms beyond the node M add at most
2 phi_x(theta)^k e^(eta^2 (theta^2 - M^2 D^2)/2)/(D^2 M) to the sum. With weights q = p e^(theta x), |phi(theta + it)|^2 is the sum
of q q' cos(t(x - x')) over all pairs of values x and x', and cos u is at most 1 - u^2/2 + u^4/24. So the moments
M_r = sum of q (x - c)^r around any c give the bound

.. math:: |\phi|^2 \le M_0^2 - t^2 (M_0 M_2 - M_1^2) + t^4 (2 M_0 M_4 - 8 M_1 M_3 + 6 M_2^2)/24.

This bound is used for terms that are so small that a less tight bound suffices.

The witness is (k, theta, D, eta^2, the number of nodes), `SumChoices`; every witness gives valid bounds.

:func:`worst_dataset` is the bound for randomizers whose outputs are finitely many classes. From the witness and the definitions it
computes the distributions of X and the constants of the theorem, and checks that the weights are allowed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from shufflebounds._base.caches import cached_property
from shufflebounds._engines.datasets.largest_sum import SumChoices
from shufflebounds._engines.datasets.pair_weights import EXCEEDED, ORDERS, Weights
from shufflebounds._engines.datasets.worst import FACTORS, TILTS, Choices
from shufflebounds.certify._dispatch import kinds_of
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, acb, arb, flint, larger, pi, smaller
from shufflebounds.certify.families import Family, family_of

Law = list[tuple[Ball, Ball]]
"""A distribution as values and their probabilities; the remaining probability is at 0."""


class LemmaH:
    """The numbers B_x for one witness."""

    def __init__(self, choices: SumChoices) -> None:
        self._users, self._nodes = choices.users, choices.nodes
        self._theta, self._step, half = arb(choices.theta), arb(choices.step), arb(choices.smoothing) / 2
        if not (self._users >= 1 and self._theta > 0 and self._step > 0 and half >= 0 and self._nodes >= 1):
            raise ArithmeticError(f"{choices} is not a witness of Lemma H")

        def smoothed(m: int) -> Ball:
            return (half * (self._theta**2 - (m * self._step) ** 2)).exp()

        self._weights = [smoothed(m) * (2 if m else 1) / (self._theta**2 + (m * self._step) ** 2) for m in range(self._nodes + 1)]
        # This adds a bound of the terms beyond the last node.
        self._weights[0] += 2 * smoothed(self._nodes + 1) / (self._step**2 * self._nodes)
        self._scale = self._step / (2 * pi())

    def value(self, law: Law, enough: Ball | float = 0, accuracy: float = 1e-12) -> Ball:
        """Return a bound of B_x. It is below `enough`, or close to B_x to the relative `accuracy`."""
        still = 1 - sum((p for _, p in law), arb(0))
        points = [(p * (self._theta * x).exp(), x) for x, p in law]
        size = 1 + sum((p * (self._theta * x).expm1() for x, p in law), arb(0))
        centre = arb(float(sum((q * x for q, x in points), arb(0)) / size))
        parts, moments = [(still, -centre), *((q, x - centre) for q, x in points)], []
        for _ in range(5):
            moments.append(sum((q for q, _ in parts), arb(0)))
            parts = [(q * gap, gap) for q, gap in parts]
        spread = moments[0] * moments[2] - moments[1] * moments[1]
        fourth = (2 * moments[0] * moments[4] - 8 * moments[1] * moments[3] + 6 * moments[2] * moments[2]) / 24
        whole, bounds = size * size, []
        for m in range(1, self._nodes + 1):
            t = (m * self._step) * (m * self._step)
            square = (whole - spread * t + fourth * t * t).min(whole)
            bounds.append((self._weights[m] * self._power(square.upper().sqrt()), m))
        bounds.sort(key=lambda one: float(one[0]))
        left = list(itertools.accumulate((term for term, _ in bounds), initial=arb(0)))
        total = self._weights[0] * self._power(size)
        # The largest bounds are replaced by the absolute values themselves.
        while bounds and not (self._scale * (total + left[-1]) < enough or left[-1] < accuracy * total):
            _, m = bounds.pop()
            left.pop()
            # Powers of e^(iDx) by repeated multiplication would lose half a bit each.
            phi = sum((q * acb(0, m * self._step * x).exp() for q, x in points), acb(still))
            total += self._weights[m] * self._power(abs(phi))
        return self._scale * (total + left[-1])

    def _power(self, x: Ball) -> Ball:
        """Return x^k, or a bound of it: a power of a ball that contains 0 is undefined."""
        return x**self._users if x > 0 else x.upper() ** self._users


def largest_sum(laws: Sequence[Law], choices: SumChoices) -> Ball:
    """Return an upper bound of the largest E(X_1 + ... + X_k)_+/k over the distributions of the k = `choices.users` terms."""
    alone = larger(*(sum((p * x.max(arb(0)) for x, p in law), arb(0)) for law in laws))
    if choices.theta == 0:
        return alone
    lemma, best = LemmaH(choices), arb(0)
    for law in laws:
        best = best.max(lemma.value(law, best))
    return alone.min(best / choices.users)


def square(x: Ball) -> Ball:
    """Return x^2; a power of a ball that contains 0 is undefined."""
    return x * x


def negative_mass(beyond: Callable[[Ball], Ball], pairs: int) -> Ball:
    """Return a bound of c_- if W is a product of s = `pairs` >= 1 factors (docs/theorems/worst-dataset).

    `beyond` returns an upper bound of R_a{R_a/R_j > t} for all inputs a and j.
    """
    ratio = 1 + pairs
    points = [arb(w) for w in EXCEEDED.tolist()]
    # The likelihood ratio is ratio (1 + w), and w is rounded up to the next of the points, or to infinity.
    tails = [beyond(ratio * (1 + w)) for w in [arb(0), *points]]
    mass = [high - low for high, low in itertools.pairwise([*tails, arb(0)])]
    smallest = (ratio - 1) * (ratio + 1) / arb(ratio) ** 2
    ends = [w / (1 + w) for w in points]
    table = [[((v * w - smallest) / ((1 + v) * (1 + w))).max(arb(0)) for w in points] + [end]
             for v, end in zip(points, ends, strict=True)] + [[*ends, arb(1)]]
    mean = sum((p * q * share for p, row in zip(mass, table, strict=True) for q, share in zip(mass, row, strict=True)), arb(0))
    return ((1 + 2 * mean / pairs) ** pairs - 1) / 2


class EveryDataset:
    """The bound for the randomizer of one family and a number of users."""

    def __init__(self, family: Family, users: int) -> None:
        if family.centre is None:
            raise NoCertificateError("the bound over every dataset is not certified for this randomizer")
        self._family, self._users, self._mass = family, users, sum(family.blanket)
        self._distance = larger(*(sum(square(p - c) / m for p, c, m in zip(row, family.centre, family.blanket, strict=True))
                                  for row in family.rows))

    def weights(self, given: Weights, factor: Ball, probability: Ball | None) -> Weights:
        """Return the weights that are used: those of the engine."""
        return given

    def value(self, choices: Choices, factor: Ball) -> Ball:
        """Return the upper bound of delta at e^eps = `factor`, with the parameters in `choices`."""
        probability = self.probability(choices, factor)
        weights = self.weights(choices.weights, factor, probability)
        if not 0 <= 2 * weights.pairs < self._users:
            raise ArithmeticError(f"{weights.pairs} pairs of {self._users} users are not a witness of this theorem")
        signed, sums = self.signed(weights), choices.sums._replace(users=self._users - 2 * weights.pairs)
        return (1 + 2 * signed) * self.main(factor, sums) + signed * (factor - 1) + self.error(weights, factor, probability)

    def error(self, weights: Weights, factor: Ball, probability: Ball | None) -> Ball:
        """Return the error term; `probability` is a bound of the acceptance probability of the best test, or None."""
        users, distance, pairs, omegas = self._users, self._distance, weights.pairs, weights.omegas
        if omegas is None:
            omegas = tuple(Fraction(math.comb(pairs, k), pairs**k) for k in range(1, min(pairs, ORDERS) + 1))
        gaps = (abs(one - other) for one, other in itertools.pairwise([Fraction(1), *omegas, Fraction(0)]))
        steps = [(k, arb(gap.numerator) / arb(gap.denominator)) for k, gap in enumerate(gaps, 1) if weights.omegas or k <= ORDERS]
        spread, less = self.spread(factor), square(factor - 1)

        def root(k: int) -> Ball:
            """Return l_(2k+1) times r^2k, in the notation of docs/theorems/worst-dataset."""
            first, second = (arb(math.prod(range(n - q + 1, n + 1))) for n, q in ((users, 2 * k + 1), (users - 1, 2 * k)))
            return distance**k * (math.factorial(2 * k + 1) * spread / first + math.factorial(2 * k) * less / second).sqrt()

        total = sum((step * self._variance(probability, 2 * k + 1).sqrt() * root(k) for k, step in steps), arb(0))
        if weights.omegas is None and pairs >= ORDERS:
            ratio = arb(1 + 1 / (arb(ORDERS) ** 2 - 1)) * (2 * ORDERS + 3) / ORDERS * distance / (users - 2 * pairs - 2)
            if not ratio < 1:
                raise ArithmeticError("the later orders of the worst-dataset bound do not converge")
            total += steps[-1][1] * root(ORDERS) / 2 * ratio / (1 - ratio)
        return total

    def probability(self, choices: Choices, factor: Ball) -> Ball | None:
        """Return a bound of the probability of the best test at the given e^eps, or None."""
        before = arb(choices.before).exp()
        if choices.blanket is None or not before < factor:
            return None
        bound = self.blanket(before, choices.blanket._replace(users=self._users))
        if choices.earlier is not None:
            bound = bound.min(self.value(choices.earlier, before))
        return bound / -(arb(choices.before) - factor.log()).expm1()

    def _variance(self, probability: Ball | None, changed: int) -> Ball:
        """Return mu_q of the theorem, a bound of p (1 - p) for the best test's probability p with q = `changed` messages from b."""
        value = arb(0.5)
        if probability is not None:
            for log_f, most in self._changes:
                value = value.min(log_f.exp() ** changed * probability + (log_f * changed).expm1() / log_f.expm1() * most)
        return value * (1 - value)

    @cached_property
    def _changes(self) -> list[tuple[Ball, Ball]]:
        """Values of ln F, and for each a bound of the divergence at F if one message is drawn from b = m/g."""
        users, changes, ratios = self._users, list[tuple[Ball, Ball]](), self.ratios()
        variance = larger(*(sum((m * square(1 - ratio) for ratio, m in law), arb(0)) for law in ratios))
        deviation = math.sqrt(float(variance) / users)
        for step in (one for one in (FACTORS * deviation).tolist() if 0 < one < 3):
            factor, bounds = arb(step).exp(), []
            for theta in ((step / deviation**2 + TILTS / deviation) / users).tolist():
                sizes = [1 + sum(m * (theta * (1 / self._mass - factor * ratio)).expm1() for ratio, m in law) for law in ratios]
                bounds.append(larger(*sizes) ** users / (arb(theta) * users * arb(1).exp()))
            changes.append((arb(step), smaller(*bounds)))
        return changes

    def _sum(self, factor: Ball, sums: SumChoices, measures: list[list[Ball]]) -> Ball:
        """Return the largest E(X_1 + ... + X_k)_+/k for X = (R_i - E R_j)/r under r, over the target's inputs and measures r."""
        rows = self._family.rows
        return largest_sum([[((a - factor * b) / r, r) for a, b, r in zip(rows[i], rows[j], measure, strict=True)]
                            for i, j in self._family.pairs for measure in measures], sums)

    def main(self, factor: Ball, sums: SumChoices) -> Ball:
        """Return an upper bound of Gamma for `sums.users` users."""
        return self._sum(factor, sums, self._family.rows)

    def signed(self, weights: Weights) -> Ball:
        """Return a bound of c_-, the mass of the negative part of W (docs/theorems/worst-dataset).

        Raises ArithmeticError if the weights are not allowed.
        """
        rows, pairs = self._family.rows, weights.pairs
        if pairs == 0:
            return arb(0)
        if weights.omegas is not None:
            most = larger(*(larger(*column) / smaller(*column) for column in zip(*rows, strict=True)))
            if not ((most + 1 / most) / 2 - 1 <= weights.less and _nonnegative(weights.omegas, pairs, weights.less)):
                raise ArithmeticError("the weights of the worst-dataset bound are not allowed")
            return arb(0)

        def beyond(ratio: Ball) -> Ball:
            return larger(*(sum((p for p, q in zip(one, other, strict=True) if not p <= ratio * q), arb(0))
                            for one, other in itertools.permutations(rows, 2)))

        return negative_mass(beyond, pairs)

    def spread(self, factor: Ball) -> Ball:
        """Return V, the largest over all pairs of the target's inputs."""
        family, shift = self._family, (factor - 1) / self._mass
        both = (zip(family.rows[i], family.rows[j], family.blanket, strict=True) for i, j in family.pairs)
        return larger(*(sum(square(a - factor * b + shift * m) / m for a, b, m in outputs) for outputs in both))

    def blanket(self, factor: Ball, sums: SumChoices) -> Ball:
        """Return an upper bound of delta by the privacy blanket."""
        return self._sum(factor, sums, [self._family.blanket])

    def ratios(self) -> list[Law]:
        """Return the distributions of R_x/m under m, each of mass g, for the inputs x with the largest ones."""
        return [[(p / m, m) for p, m in zip(row, self._family.blanket, strict=True)] for row in self._family.rows]


def _nonnegative(omegas: Sequence[Fraction], pairs: int, less: float) -> bool:
    """Return whether W (docs/theorems/worst-dataset) is nonnegative at all corners of the t_i, for C = cosh eps0 = 1 + `less`.

    The elementary symmetric polynomials in W are computed in rational arithmetic.
    """
    library = flint()
    high = 2 * library.fmpq(*less.as_integer_ratio())
    low = -high / (1 + high / 2)
    weights = [library.fmpq(*omega.as_integer_ratio()) / math.comb(pairs, k) / (-2) ** k for k, omega in enumerate(omegas, 1)]

    def at(corner: int) -> Any:
        products = library.fmpq_poly([1, high]) ** corner * library.fmpq_poly([1, low]) ** (pairs - corner)
        return 1 + sum(weight * products[k] for k, weight in enumerate(weights, 1))

    return all(at(corner) >= 0 for corner in range(pairs + 1))


def worst_dataset(protocol: Any) -> Answer:
    """Return the upper bound over all datasets; there is one if the engine has one."""
    datasets, (size, family) = protocol._bounds.upper.over_datasets, family_of(protocol.randomizer)
    # The engine has cells for integer noise; here all inputs are enumerated, and the weights of its bound are tried.
    if not datasets.listed and "GeometricMechanism" not in kinds_of(protocol.randomizer):
        raise NoCertificateError("the inputs of the bound over every dataset are not enumerated")

    def value(factor: Ball) -> Ball:
        choices = datasets.choices(float(factor.log().mid()))
        return EveryDataset(family().thinned(protocol.participation), protocol.users).value(choices, factor)

    # The estimate is 200 operations for each pair, input and output, because `LemmaH.value` bounds most terms by moments. Equal
    # distributions are not skipped.
    return Answer(200.0 * size, value)
