r"""Upper bounds of E(X_1 + ... + X_k)_+/k over all distributions of the independent terms X_i from a set: Lemma H.

Theorem (docs/theorems/worst-dataset). For all theta, D > 0 and eta >= 0, with phi_x(z) = E e^(zX) for the distribution x,

.. math:: \mathbb{E}(X_1 + \cdots + X_k)_+ \le \max_x B_x, \qquad B_x = \frac{D}{2\pi} \sum_m w_m |\phi_x(\theta + imD)|^k, \qquad
    w_m = \frac{e^{\eta^2 (\theta^2 - m^2 D^2)/2}}{\theta^2 + m^2 D^2}.

As |phi_x(theta + it)| <= phi_x(theta), the terms beyond the node M add at most
2 phi_x(theta)^k e^(eta^2 (theta^2 - M^2 D^2)/2)/(D^2 M) to the sum. With weights q = p e^(theta x), the squared absolute value is
the sum of q q' cos(t(x - x')), and cos u is at most 1 - u^2/2 + u^4/24. So for every c, M_r = sum of q (x - c)^r gives the bound

.. math:: |\phi|^2 \le M_0^2 - t^2 (M_0 M_2 - M_1^2) + t^4 (2 M_0 M_4 - 8 M_1 M_3 + 6 M_2^2)/24,

which is used where the term is so small that a less tight bound suffices.

The witness is (k, theta, D, eta^2, the number of nodes), `SumChoices`; every witness gives valid bounds.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from shufflebounds._engines.datasets.largest_sum import SumChoices
from shufflebounds.certify.balls import Ball, flint, larger

__all__ = ["Law", "LemmaH", "largest_sum"]

Law = list[tuple[Ball, Ball]]
"""A distribution as values and their probabilities; the remaining probability is at 0."""


class LemmaH:
    """The numbers B_x for one witness."""

    def __init__(self, choices: SumChoices) -> None:
        ball = flint().arb
        self._users, self._nodes = choices.users, choices.nodes
        self._theta, self._step, half = ball(choices.theta), ball(choices.step), ball(choices.smoothing) / 2
        if not (self._users >= 1 and self._theta > 0 and self._step > 0 and half >= 0 and self._nodes >= 1):
            raise ArithmeticError(f"{choices} is not a witness of Lemma H")

        def smoothed(m: int) -> Ball:
            return (half * (self._theta**2 - (m * self._step) ** 2)).exp()

        self._weights = [smoothed(m) / (self._theta**2 + (m * self._step) ** 2) * (1 if m == 0 else 2)
                         for m in range(self._nodes + 1)]
        # This adds a bound of the terms beyond the last node.
        self._weights[0] += 2 * smoothed(self._nodes + 1) / (self._step**2 * self._nodes)
        self._scale = self._step / (2 * ball.pi())

    def value(self, law: Law, enough: Ball | float = 0, accuracy: float = 1e-12) -> Ball:
        """Return a bound of B_x. It is below `enough`, or close to B_x to the relative `accuracy`."""
        ball, complex_ball = flint().arb, flint().acb
        still = 1 - sum((p for _, p in law), ball(0))
        points = [(p * (self._theta * x).exp(), x) for x, p in law]
        size = 1 + sum((p * (self._theta * x).expm1() for x, p in law), ball(0))
        centre = ball(float(sum((q * x for q, x in points), ball(0)) / size))
        parts, moments = [(still, -centre), *((q, x - centre) for q, x in points)], []
        for _ in range(5):
            moments.append(sum((q for q, _ in parts), ball(0)))
            parts = [(q * gap, gap) for q, gap in parts]
        spread = moments[0] * moments[2] - moments[1] * moments[1]
        fourth = (2 * moments[0] * moments[4] - 8 * moments[1] * moments[3] + 6 * moments[2] * moments[2]) / 24
        whole, bounds = size * size, []
        for m in range(1, self._nodes + 1):
            t = (m * self._step) * (m * self._step)
            square = (whole - spread * t + fourth * t * t).min(whole)
            bounds.append((self._weights[m] * self._power(square.upper().sqrt()), m))
        bounds.sort(key=lambda one: float(one[0]))
        left = list(itertools.accumulate((term for term, _ in bounds), initial=ball(0)))
        total = self._weights[0] * self._power(size)
        # The largest bounds are replaced by the absolute values themselves.
        while bounds and not (self._scale * (total + left[-1]) < enough or left[-1] < accuracy * total):
            _, m = bounds.pop()
            left.pop()
            # Powers of e^(iDx) by repeated multiplication would lose half a bit each.
            phi = sum((q * complex_ball(0, m * self._step * x).exp() for q, x in points), complex_ball(still))
            total += self._weights[m] * self._power(abs(phi))
        return self._scale * (total + left[-1])

    def _power(self, x: Ball) -> Ball:
        """Return x^k, or a bound of it: a power of a ball that contains 0 is undefined."""
        return x**self._users if x > 0 else x.upper() ** self._users


def largest_sum(laws: Sequence[Law], choices: SumChoices) -> Ball:
    """Return an upper bound of the largest E(X_1 + ... + X_k)_+/k over the distributions of the k = `choices.users` terms."""
    zero = flint().arb(0)
    alone = larger(*(sum((p * x.max(zero) for x, p in law), zero) for law in laws))
    if choices.theta == 0:
        return alone
    lemma, best = LemmaH(choices), zero
    for law in laws:
        best = best.max(lemma.value(law, best))
    return alone.min(best / choices.users)
