r"""The theorem of docs/theorems/worst-dataset in interval arithmetic, for a randomizer whose constants and distributions are known.

With n users, n' = n - 2s and E = e^eps, for every dataset

.. math:: \delta \le (1 + 2 c_-)\,\Gamma_{n'} + c_-(E - 1) + \sum_k |\omega_{k-1} - \omega_k|\, r^{2k} \sqrt{\mu_{2k+1}}\, l_{2k+1},
    \qquad l_{2k+1}^2 = \frac{(2k+1)!\, V}{(n)_{2k+1}} + \frac{(2k)!\, (E-1)^2}{(n-1)_{2k}}.

A subclass has Gamma, c_-, V, r, the mass g of the measure m below all R_x, and distributions for the probability of the best test.
Of the numbers that the proof leaves free, E' is that of `_engines.datasets.worst`. A subclass chooses the others (s, the weights
omega, and theta, D and eta of each sum) itself or takes those of the engine: each choice is valid.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable

from shufflebounds._base.caches import cached_property
from shufflebounds._engines.datasets.largest_sum import SumChoices
from shufflebounds._engines.datasets.pair_weights import EXCEEDED, ORDERS, Weights
from shufflebounds._engines.datasets.worst import FACTORS, TILTS, Choices
from shufflebounds.certify.balls import Ball, flint, larger
from shufflebounds.certify.lemma_h import Law

__all__ = ["EveryDataset", "negative_mass", "square"]


def square(x: Ball) -> Ball:
    """Return x^2; a power of a ball that contains 0 is undefined."""
    return x * x


def negative_mass(beyond: Callable[[Ball], Ball], pairs: int) -> Ball:
    """Return a bound of c_- if W is a product of s = `pairs` >= 1 factors (docs/theorems/worst-dataset).

    `beyond` returns an upper bound of R_a{R_a/R_j > t} for all inputs a and j.
    """
    ball, ratio = flint().arb, 1 + pairs
    points = [ball(w) for w in EXCEEDED.tolist()]
    # The likelihood ratio is ratio (1 + w), and w is rounded up to the next of the points, or to infinity.
    tails = [beyond(ratio * (1 + w)) for w in [ball(0), *points]]
    mass = [high - low for high, low in itertools.pairwise([*tails, ball(0)])]
    smallest = (ratio - 1) * (ratio + 1) / ball(ratio) ** 2
    ends = [w / (1 + w) for w in points]
    table = [[((v * w - smallest) / ((1 + v) * (1 + w))).max(ball(0)) for w in points] + [end]
             for v, end in zip(points, ends, strict=True)] + [[*ends, ball(1)]]
    mean = sum((p * q * share for p, row in zip(mass, table, strict=True) for q, share in zip(mass, row, strict=True)
                if p * q != 0), ball(0))
    return ((1 + 2 * mean / pairs) ** pairs - 1) / 2


class EveryDataset(ABC):
    """The bound for one randomizer and number of users.

    Parameters
    ----------
    users : int
        The number n of users.
    mass : Ball
        The mass g of the measure m.
    distance : Ball
        r^2.
    """

    def __init__(self, users: int, mass: Ball, distance: Ball) -> None:
        self._users, self._mass, self._distance = users, mass, distance

    @abstractmethod
    def main(self, factor: Ball, sums: SumChoices) -> Ball:
        """Return an upper bound of Gamma for `sums.users` users."""

    @abstractmethod
    def signed(self, weights: Weights) -> Ball:
        """Return a bound of c_-, the mass of the negative part of W (docs/theorems/worst-dataset).

        Raises ArithmeticError if the weights are not allowed.
        """

    @abstractmethod
    def spread(self, factor: Ball) -> Ball:
        """Return V, the largest over all pairs of the target's inputs."""

    @abstractmethod
    def blanket(self, factor: Ball, sums: SumChoices) -> Ball:
        """Return an upper bound of delta by the privacy blanket."""

    @abstractmethod
    def ratios(self) -> list[Law]:
        """Return the distributions of R_x/m under m, each of mass g, for the inputs x with the largest ones."""

    def value(self, choices: Choices, factor: Ball) -> Ball:
        """Return the upper bound of delta at e^eps = `factor`, with the parameters in `choices`."""
        return self.total(choices.weights, choices.sums, factor, self.probability(choices, factor))

    def total(self, weights: Weights, sums: SumChoices, factor: Ball, probability: Ball | None) -> Ball:
        """Return the bound for the given weights; `probability` is a bound of the acceptance probability of the best test, or
        None.
        """
        signed = self.signed(weights)
        return (1 + 2 * signed) * self.main(factor, sums) + signed * (factor - 1) + self.error(weights, factor, probability)

    def error(self, weights: Weights, factor: Ball, probability: Ball | None) -> Ball:
        """Return the error term."""
        ball, users, distance = flint().arb, self._users, self._distance
        if weights.omegas is not None:
            omegas = [ball(1), *(ball(omega.numerator) / ball(omega.denominator) for omega in weights.omegas)]
        else:
            omegas = [ball(math.comb(weights.pairs, k)) / ball(weights.pairs) ** k if weights.pairs else ball(k == 0)
                      for k in range(min(weights.pairs, ORDERS) + 1)]
        steps = [(k, abs(one - other)) for k, (one, other) in enumerate(itertools.pairwise([*omegas, ball(0)]), 1) if k <= ORDERS]
        spread, total = self.spread(factor), ball(0)

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

    def probability(self, choices: Choices, factor: Ball) -> Ball | None:
        """Return a bound of the probability of the best test at the given e^eps, or None."""
        if choices.blanket is None:
            return None
        ball = flint().arb
        before = ball(choices.before).exp()
        if not before < factor:
            return None
        bound = self.blanket(before, choices.blanket)
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
        """Values of ln F, and for each a bound of the divergence at F if one message is drawn from b = m/g."""
        ball, users, changes, ratios = flint().arb, self._users, list[tuple[Ball, Ball]](), self.ratios()
        variance = larger(*(sum((m * square(1 - ratio) for ratio, m in law), ball(0)) for law in ratios))
        deviation = math.sqrt(float(variance) / users)
        for step in (FACTORS * deviation).tolist():
            if not 0 < step < 3:
                continue
            factor, best = ball(step).exp(), None
            for theta in ((step / deviation**2 + TILTS / deviation) / users).tolist():
                sizes = [1 + sum((m * (theta * (1 / self._mass - factor * ratio)).expm1() for ratio, m in law), ball(0))
                         for law in ratios]
                chernoff = larger(*sizes) ** users / (ball(theta) * users * ball(1).exp())
                best = chernoff if best is None else best.min(chernoff)
            changes.append((ball(step), best))
        return changes
