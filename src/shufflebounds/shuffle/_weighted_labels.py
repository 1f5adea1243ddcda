r"""An upper bound of delta over every dataset of bits with personal flip probabilities: theorem w of docs/theorems/weighted-labels.

The law of user i's message is R_i, and the target's message has the law R_0 or R_1; d = R_0 - e^eps R_1. Every message carries a
label, and the target takes the label of slot i with a probability proportional to a weight v_i. The likelihood ratio is then a
weighted mean, and with :math:`X_i = (d/R_i)(Y), Y \sim R_i`, the main term of the bound is

.. math:: \max \frac1{V}\, \mathbb{E}\Bigl(\sum_i v_i X_i\Bigr)_+, \qquad V = \sum_i v_i,

over the bits of all users. For bits with the flip probability q_i = 1 - p_i the weights are v_i = p_i q_i, for which all terms
contribute in proportion to the information that they hide.

For exponents :math:`\alpha_i` of sum 1, Hoelder's inequality separates the users, so that each bit is chosen by itself:

.. math:: \log \mathbb{E}(\textstyle\sum_i v_i X_i)_+ \le \sum_i \alpha_i \max_b \log \frac{D}{2\pi} \sum_m w_m \rho_m
    |\varphi_{i,b}(z_m)|^{1/\alpha_i}, \qquad z_m = \theta + i m D,
    \quad w_m = \frac{e^{\eta^2 (\theta^2 - m^2 D^2)/2}}{\theta^2 + m^2 D^2} .

phi_(i,b) is the moment generating function of :math:`v_i X_i` for the bit b, and :math:`\rho_m` stands for the users whom the proof
draws and the one whom it doubles. Nothing is lost if all :math:`|\varphi_i|^{1/\alpha_i}` are proportional, which nearly holds if
alpha_i is proportional to the variance of the tilted term.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shufflebounds._cached import cached_property
from shufflebounds._limits import COMPUTED_ERROR, LARGEST_EXPONENT
from shufflebounds._types import ULP, FloatArray

__all__ = ["WeightedLabels"]

_GROUPS = 200
"""Largest number of different budgets; others are rounded up, which is less private. Raised: longer run time, in proportion.
Lowered: a larger bound, by about 0.2 % of eps for 100."""

_SMOOTHING = 5e-4
"""Variance eta^2 of the smoothing, as a fraction of the variance of the sum. It raises eps by half this fraction. Lowered: more
terms of the sum over m are needed."""

_SPREAD = 6.5
"""Distance between the aliases of the sum, 2 pi/D, in standard deviations of the sum. Raised: more terms are needed. Lowered: the
aliases, which add to the bound, are larger."""

_NODES = 197
"""Number of terms of the sum over m > 0. The others add about 2e-5 of the bound. Lowered: they add more."""

_TILTS = np.exp(np.linspace(-3.0, 4.0, 48))
"""Values of theta that are tried, in inverse standard deviations of the sum; about as many again around the best one."""

_FEWEST, _LARGEST = 16, 12.0
"""Smallest number of users, and largest budget and eps, for which the bound is evaluated; beyond it is 1, or close."""

_MOST_PAIRS = 64
"""Largest number s of drawn pairs. The largest budgets of 2, 4 and 6 need 2, 6 and 18. Raised: a bound also for larger budgets."""


class WeightedLabels:
    """The bound for one target and every choice of the other users' bits.

    Parameters
    ----------
    target : float
        Budget of the target in nats.
    others : ndarray
        Budgets of the other users, at least one.
    """

    def __init__(self, target: float, others: FloatArray) -> None:
        budgets, counts = np.unique(others, return_counts=True)
        if budgets.size > _GROUPS:
            edges = np.linspace(budgets[0], budgets[-1], _GROUPS + 1)[1:]
            place = np.minimum(np.searchsorted(edges, others), _GROUPS - 1)
            number = np.bincount(place, minlength=_GROUPS)
            budgets, counts = edges[number > 0], number[number > 0]
        self._counts = counts.astype(np.float64)
        self._users = int(others.size) + 1
        self._flip = np.exp(-budgets) / (1 + np.exp(-budgets))
        self._keep = 1 / (1 + np.exp(-budgets))
        self._weight = self._flip * self._keep
        self._target = math.exp(-target) / (1 + math.exp(-target)), 1 / (1 + math.exp(-target))

    @property
    def offered(self) -> bool:
        """Whether there are enough users and no budget is so large that the bound is 1."""
        least = min(self._target[0], float(self._flip.min()))
        return self._users >= _FEWEST and math.exp(-_LARGEST) < least and self._target[0] < 0.5

    @cached_property
    def _total(self) -> float:
        """V, the sum of the weights of the other users."""
        return float(self._counts @ self._weight)

    def _left(self, pairs: int) -> float:
        """Return a lower bound of the sum of the weights if any 2 `pairs` users are left out."""
        return self._total - 2 * pairs * float(self._weight.max())

    @cached_property
    def _choices(self) -> tuple[int, ...]:
        r"""The numbers s of drawn pairs that are used: 0, and the least one for which no probability of the proof is negative.

        The condition is, for all users a and j, that beta_aj is at most R/(R - 1)^2, where R = p_a/q_j is the largest likelihood
        ratio of their laws and :math:`\beta_{aj} \le v_a v_j (n-1-2s)(n-2-2s)/(2 s V_-^2)`. Its left side divided by the right one
        is proportional to q_a p_j (p_a - q_j)^2.
        """
        p, q = self._keep, self._flip
        most = float((np.outer(q, p) * (p[:, None] - q) ** 2).max()) * (1 + COMPUTED_ERROR)
        for pairs in range(1, _MOST_PAIRS + 1):
            left, others = self._left(pairs), self._users - 1 - 2 * pairs
            if others < 3 or not left > 0:
                break
            if most * others * (others - 1) <= 2 * pairs * left * left:
                return 0, pairs
        return (0,)

    def _log_error(self, eps: float, pairs: int) -> float:
        """Return the log of the error term for s = `pairs`: mu = 1/4 bounds the variance of the test."""
        n, more = self._users, math.expm1(eps)
        orders = np.arange(2, pairs + 2) if pairs else np.array([1])
        if n - 2 * int(orders[-1]) - 1 < 1:
            return math.inf
        # g is the mean probability with which a user's bit can be drawn uniformly, without the users whom a term leaves out.
        masses = np.repeat(2 * self._flip, np.minimum(self._counts, 2 * orders[-1]).astype(np.intp))
        removed = float(np.sort(masses)[::-1][: 2 * int(orders[-1])].sum())
        g = (float(self._counts @ (2 * self._flip)) - removed) / (n - 1 - 2 * int(orders[-1])) * (1 - COMPUTED_ERROR)
        if not g > 0:
            return math.inf
        flip, keep = self._target
        part = 0.5 * (keep - flip) * (2 + more)
        # R_0 - E R_1 + (E - 1) b is `part` at one bit and -`part` at the other; b = 1/2 at both, and norms are relative to g b.
        log_norm = math.log(4 * part * part / g) if part > 0 else -math.inf
        ratio = (self._total / self._left(pairs)) ** 2 * (float(self._keep.max()) - float(self._flip.min())) ** 2 / g
        if not ratio > 0:
            return -math.inf
        found = []
        for k in orders.tolist():
            weight = math.comb(pairs, k) / pairs**k + math.comb(pairs, k - 1) / pairs ** (k - 1) if pairs else 1.0
            falls = [sum(math.log(n - first - i) for i in range(count)) for first, count in ((0, 2 * k + 1), (1, 2 * k))]
            first = math.lgamma(2 * k + 2) + log_norm - falls[0]
            second = math.lgamma(2 * k + 1) + 2 * (math.log(more) if more > 0 else -math.inf) - falls[1]
            found.append(math.log(weight) + k * math.log(ratio) - math.log(2) + 0.5 * float(np.logaddexp(first, second)))
        return float(np.logaddexp.reduce(found)) + COMPUTED_ERROR

    @staticmethod
    def _moments(values: FloatArray, mass: FloatArray, z: NDArray[Any]) -> FloatArray:
        """Return log|phi(z)| for the laws (groups, bits), shape (groups, bits, z.size)."""
        first, second = (mass[..., y, None] * np.expm1(values[..., y, None] * z) for y in range(2))
        less = first + second
        with np.errstate(divide="ignore"):
            return np.asarray(0.5 * np.log1p(np.maximum(2 * np.real(less) + np.abs(less) ** 2, -1.0)))

    def _log_main(self, eps: float) -> list[float]:
        """Return the log of the main term for each number of pairs."""
        flip, keep = self._target
        factor = math.exp(eps)
        first, second = keep - factor * flip, flip - factor * keep
        scale = (self._users - 1) / self._total
        p, q = self._keep, self._flip
        # v X for the users' bits 0 and 1 and the two messages; the probabilities of these messages.
        values = scale * np.stack([np.stack([first * q, second * p], -1), np.stack([first * p, second * q], -1)], 1)
        mass = np.stack([np.stack([p, q], -1), np.stack([q, p], -1)], 1)
        counts = self._counts
        variance = float(counts @ (mass * values**2).sum(-1).max(1))
        smoothing, step = _SMOOTHING * variance, 2 * math.pi / (_SPREAD * math.sqrt(variance))

        def tilted(thetas: FloatArray) -> float:
            real = self._moments(values, mass, thetas)
            return float(thetas[np.argmin(counts @ real.max(1) - 2 * np.log(thetas) + 0.5 * smoothing * thetas**2)])

        top = LARGEST_EXPONENT / float(np.abs(values).max())
        theta = tilted(np.minimum(_TILTS / math.sqrt(variance), top))
        theta = tilted(np.minimum(theta * np.exp(np.linspace(-0.16, 0.16, 49)), top))
        nodes = np.arange(_NODES + 1.0) * step
        logs = self._moments(values, mass, theta + 1j * nodes) + 16 * ULP * (1 + theta * float(np.abs(values).max()))
        base = 0.5 * smoothing * (theta**2 - nodes**2) - np.log(theta**2 + nodes**2)
        base[1:] += math.log(2)
        # Of the terms beyond the last node, |phi| is at most phi(theta), and the sum of the weights is at most this.
        beyond = 0.5 * smoothing * (theta**2 - nodes[-1] ** 2) + math.log(2 / (step * step * _NODES))
        fall = np.take_along_axis(logs[..., 0] - logs[..., 1], logs[..., 0].argmax(1)[:, None], 1)[:, 0]
        fall = np.maximum(fall, 1e-3 * float(fall.max()))
        alpha = fall / float(counts @ fall)
        found = []
        for pairs in self._choices:
            # At each node, the 2s drawn users divide the product of the others', and one user is doubled.
            moved = (logs.max((0, 1)) - 2 * pairs * logs.min((0, 1))) if pairs else logs.max((0, 1))
            terms = logs / alpha[:, None, None] + base + moved
            terms = np.append(terms, (logs[..., :1] / alpha[:, None, None] + beyond + moved[0]), axis=-1)
            each = np.logaddexp.reduce(terms, axis=-1).max(1)
            least = self._left(pairs) + float(self._weight.min())
            total = math.log(step / (2 * math.pi)) + float(counts @ (alpha * each)) - math.log(scale * least)
            found.append(total + COMPUTED_ERROR * (1 + abs(total)))
        return found

    def log_delta(self, eps: float) -> float:
        """Return the upper bound of log delta at eps, at most 0."""
        if not self.offered or not 0 <= eps < _LARGEST:
            return 0.0
        parts = [np.logaddexp(main, self._log_error(eps, pairs)) for main, pairs in zip(self._log_main(eps), self._choices)]
        # A value that is not a number would come from a moment generating function that vanishes, for few users.
        return min([0.0, *(float(part) for part in parts if not math.isnan(part))])
