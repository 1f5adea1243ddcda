r"""The bound of docs/theorems/worst-dataset in interval arithmetic, for randomizers whose outputs are finitely many classes.

The numbers that the proof leaves free (the pairs s of users, the weights, E', and theta, D and eta of each sum) are those of
`_engines.datasets.worst`. Everything that follows from them is computed here from the definitions: moment generating functions, the
sums of Lemma H, the error term, the probability of the best test, and that the weights are allowed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from shufflebounds._base.caches import cached_property
from shufflebounds._engines.datasets.largest_sum import SumChoices
from shufflebounds._engines.datasets.pair_weights import EXCEEDED, ORDERS, Weights
from shufflebounds._engines.datasets.worst import FACTORS, TILTS, Choices
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, flint, hockey_stick, larger
from shufflebounds.certify.families import Family, family_of

__all__ = ["worst_dataset"]

Law = list[tuple[Ball, Ball]]
"""A distribution as values and their probabilities; the remaining probability is at 0."""


# ------------------------------------------------------------------------------------------------------------------- Lemma H


def square(x: Ball) -> Ball:
    """Return x^2; a power of a ball that contains 0 is undefined."""
    return x * x


def _contours(laws: Sequence[Law], choices: SumChoices) -> Ball:
    """Return the largest B of Lemma H."""
    ball, complex_ball = flint().arb, flint().acb
    theta = ball(choices.theta)
    step, half, nodes = ball(choices.step), ball(choices.smoothing) / 2, choices.nodes
    if not (theta > 0 and step > 0 and half >= 0 and nodes >= 1):
        raise ArithmeticError(f"{choices} is not a witness of Lemma H")
    weights = [(half * (theta**2 - (m * step) ** 2)).exp() / (theta**2 + (m * step) ** 2) * (1 if m == 0 else 2)
               for m in range(nodes + 1)]
    # This adds a bound of the terms beyond the last node, in which |phi| is at most phi(theta).
    weights[0] += 2 * (half * (theta**2 - ((nodes + 1) * step) ** 2)).exp() / (step**2 * nodes)
    sizes = [1 + sum((p * (theta * x).expm1() for x, p in law), ball(0)) for law in laws]
    most, best, scale = sum(weights, ball(0)), ball(0), step / (2 * ball.pi())
    for i in sorted(range(len(laws)), key=lambda i: -float(sizes[i])):
        if scale * most * sizes[i] ** choices.users < best:
            continue
        points = [(p * (theta * x).exp(), step * x) for x, p in laws[i]]
        still, total = 1 - sum((p for _, p in laws[i]), ball(0)), weights[0] * sizes[i] ** choices.users
        for m in range(1, nodes + 1):
            # Powers of e^(iDx) by repeated multiplication would lose half a bit each.
            phi = sum((grown * complex_ball(0, m * turn).exp() for grown, turn in points), complex_ball(still))
            total += weights[m] * abs(phi) ** choices.users
        best = best.max(scale * total)
    return best


def largest_sum(laws: Sequence[Law], choices: SumChoices) -> Ball:
    """Return an upper bound of the largest E(X_1 + ... + X_k)_+/k over the distributions of the k = `choices.users` terms."""
    alone = larger(*(sum((p * x.max(flint().arb(0)) for x, p in law), flint().arb(0)) for law in laws))
    return alone if choices.theta == 0 else alone.min(_contours(laws, choices) / choices.users)


# ------------------------------------------------------------------------------------------------------------------ the theorem


class _Bound:
    """The bound for one family and number of users."""

    def __init__(self, family: Family, users: int) -> None:
        self._family, self._users = family, users
        if family.centre is None:
            raise NoCertificateError("the bound over every dataset is not certified for this randomizer")
        zero = flint().arb(0)
        self._mass = sum(family.least, zero)
        self._distance = larger(*(sum((square(p - c) / m for p, c, m in zip(row, family.centre, family.least, strict=True)), zero)
                                  for row in family.rows))

    def value(self, choices: Choices, factor: Ball) -> Ball:
        """Return the upper bound of delta at e^eps = `factor`, with the parameters in `choices`."""
        family, weights = self._family, choices.weights
        laws = [[((a - factor * b) / r, r) for a, b, r in zip(family.rows[i], family.rows[j], row, strict=True)]
                for i, j in family.pairs for row in family.rows]
        signed = self._signed(weights)
        main = (1 + 2 * signed) * largest_sum(laws, choices.sums) + signed * (factor - 1)
        # The local delta is an upper bound, because shuffled messages are a post-processing of messages with their senders' names.
        local = larger(*(hockey_stick(zip(family.rows[i], family.rows[j], strict=True), factor) for i, j in family.pairs))
        return (main + self._error(choices, factor)).min(local)

    def _signed(self, weights: Weights) -> Ball:
        """Return a bound of c_-, the mass of the negative part of W; raises ArithmeticError if the weights are not allowed."""
        ball, rows, pairs = flint().arb, self._family.rows, weights.pairs
        if pairs == 0:
            return ball(0)
        if weights.omegas is not None:
            ratios = [larger(*column) / -larger(*(-p for p in column)) for column in zip(*rows, strict=True)]
            most = larger(*ratios)
            if not ((most + 1 / most) / 2 - 1 <= weights.less and _nonnegative(weights.omegas, pairs, weights.less)):
                raise ArithmeticError("the weights of the worst-dataset bound are not allowed")
            return ball(0)
        height = 1 + pairs
        beyond = [larger(*(sum((p for p, q in zip(one, other, strict=True) if not p <= height * (1 + ball(w)) * q), ball(0))
                           for one, other in itertools.permutations(rows, 2))) for w in [0.0, *EXCEEDED.tolist()]]
        mass = [high - low for high, low in itertools.pairwise([*beyond, ball(0)])]
        least = (height - 1) * (height + 1) / ball(height) ** 2
        points = [ball(w) for w in EXCEEDED.tolist()]
        ends = [w / (1 + w) for w in points]
        table = [[((v * w - least) / ((1 + v) * (1 + w))).max(ball(0)) for w in points] + [end]
                 for v, end in zip(points, ends, strict=True)] + [[*ends, ball(1)]]
        mean = sum((p * q * share for p, row in zip(mass, table, strict=True) for q, share in zip(mass, row, strict=True)
                    if p * q != 0), ball(0))
        return ((1 + 2 * mean / pairs) ** pairs - 1) / 2

    def _error(self, choices: Choices, factor: Ball) -> Ball:
        """Return the error term."""
        ball, users, weights, distance = flint().arb, self._users, choices.weights, self._distance
        if weights.omegas is not None:
            omegas = [ball(1), *(ball(omega.numerator) / ball(omega.denominator) for omega in weights.omegas)]
        else:
            omegas = [ball(math.comb(weights.pairs, k)) / ball(weights.pairs) ** k if weights.pairs else ball(k == 0)
                      for k in range(min(weights.pairs, ORDERS) + 1)]
        steps = [(k, abs(one - other)) for k, (one, other) in enumerate(itertools.pairwise([*omegas, ball(0)]), 1) if k <= ORDERS]
        spread = self._spread(factor)
        probability = self._probability(choices, factor)
        total = ball(0)

        def root(k: int) -> Ball:
            """Return l_(2k+1) times r^2k, in the notation of docs/theorems/worst-dataset."""
            first, second = (ball(math.prod(range(n - q + 1, n + 1))) for n, q in ((users, 2 * k + 1), (users - 1, 2 * k)))
            return distance**k * (math.factorial(2 * k + 1) * spread / first
                                  + math.factorial(2 * k) * square(factor - 1) / second).sqrt()

        for k, step in steps:
            if step != 0:
                total += step * self._variance(probability, 2 * k + 1).sqrt() * root(k)
        if weights.omegas is None and weights.pairs >= ORDERS:
            ratio = ball(1 + 1 / (ball(ORDERS) ** 2 - 1)) * (2 * ORDERS + 3) / ORDERS * distance / (users - 2 * weights.pairs - 2)
            if not ratio < 1:
                raise ArithmeticError("the later orders of the worst-dataset bound do not converge")
            total += steps[-1][1] * root(ORDERS) / 2 * ratio / (1 - ratio)
        return total

    def _spread(self, factor: Ball) -> Ball:
        """Return V of the theorem, the largest over all pairs of the target's inputs."""
        family, shift = self._family, (factor - 1) / self._mass
        return larger(*(sum((square(a - factor * b + shift * m) / m for a, b, m in zip(family.rows[i], family.rows[j], family.least,
                                                                                  strict=True)), flint().arb(0))
                        for i, j in family.pairs))

    def _probability(self, choices: Choices, factor: Ball) -> Ball | None:
        """Return a bound of the probability of the best test at the given e^eps, or None."""
        if choices.blanket is None:
            return None
        ball, family = flint().arb, self._family
        before = ball(choices.before).exp()
        if not before < factor:
            return None
        laws = [[((a - before * b) / m, m) for a, b, m in zip(family.rows[i], family.rows[j], family.least, strict=True)]
                for i, j in family.pairs]
        bound = largest_sum(laws, choices.blanket)
        if choices.earlier is not None:
            bound = bound.min(self.value(choices.earlier, before))
        return bound / -(ball(choices.before) - factor.log()).expm1()

    def _variance(self, probability: Ball | None, changed: int) -> Ball:
        """Return mu_q of the theorem, a bound of p(1 - p), for q = `changed` messages drawn from b instead."""
        ball = flint().arb
        value = ball(0.5)
        if probability is not None:
            for log_f, most in self._changes:
                value = value.min(log_f.exp() ** changed * probability + (log_f * changed).expm1() / log_f.expm1() * most)
        return value * (1 - value)

    @cached_property
    def _changes(self) -> list[tuple[Ball, Ball]]:
        """Values of ln F, and for each a bound of the divergence at F if one message is drawn from b."""
        ball, family, users, found = flint().arb, self._family, self._users, []
        heights = [[(p / m, m) for p, m in zip(row, family.least, strict=True)] for row in family.rows]
        variance = larger(*(sum((m * square(1 - height) for height, m in law), ball(0)) for law in heights))
        deviation = math.sqrt(float(variance) / users)
        for step in (FACTORS * deviation).tolist():
            if not 0 < step < 3:
                continue
            factor, best = ball(step).exp(), None
            for theta in ((step / deviation**2 + TILTS / deviation) / users).tolist():
                sizes = [1 + sum((m * (theta * (1 / self._mass - factor * height)).expm1() for height, m in law), ball(0))
                         for law in heights]
                chernoff = larger(*sizes) ** users / (ball(theta) * users * ball(1).exp())
                best = chernoff if best is None else best.min(chernoff)
            found.append((ball(step), best))
        return found


def _nonnegative(omegas: Sequence[Fraction], pairs: int, less: float) -> bool:
    """Return whether the weighted sum W is nonnegative at every corner, for likelihood ratios with C - 1 = `less`.

    The elementary symmetric polynomials in W are computed in rational arithmetic.
    """
    library = flint()
    high = 2 * library.fmpq(*less.as_integer_ratio())
    low = -high / (1 + high / 2)
    for corner in range(pairs + 1):
        products = library.fmpq_poly([1, high]) ** corner * library.fmpq_poly([1, low]) ** (pairs - corner)
        total = library.fmpq(1)
        for k, omega in enumerate(omegas, 1):
            total += library.fmpq(*omega.as_integer_ratio()) * products[k] / math.comb(pairs, k) / (-2) ** k
        if total < 0:
            return False
    return True


def worst_dataset(protocol: Any) -> Answer:
    """Return the upper bound over all datasets; there is one if the engine has one."""
    datasets, (size, family) = protocol._bounds.upper.over_datasets, family_of(protocol.randomizer)
    if not datasets.listed:
        raise NoCertificateError("the inputs of the bound over every dataset are not enumerated")

    def value(factor: Ball) -> Ball:
        choices = datasets.choices(float(factor.log().mid()))
        return _Bound(family().thinned(protocol.participation), protocol.users).value(choices, factor)

    # The estimate is 200 operations for each pair, input and output, because `_contours` skips most distributions by their real
    # moment generating functions. Equal distributions are not skipped.
    return Answer(200.0 * size, value)
