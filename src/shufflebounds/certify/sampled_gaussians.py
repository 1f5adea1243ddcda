r"""Bounds of delta of a composition of Gaussian mechanisms, each on all records or on a Poisson sample.

One release adds N(0, sigma^2) to a sum of sensitivity 1 over a Poisson sample of rate q. With Q = N(0, sigma^2), v = dP/dQ =
1 - q + q e^u, u = (x - 1/2)/sigma^2 and G(z) = E_Q v^z, the loss of removal is ln v under P, with the moment generating function
M(z) = G(z + 1), and the loss of addition is -ln v under Q, with M(z) = G(-z). For q = 1, G(z) = e^((z^2 - z)/(2 sigma^2)).

Theorem. For the sum S of the losses, g(s) = (1 - e^-s)_+, z_m = theta + i m h and y = 2 pi/h, Poisson's summation formula gives

.. math:: T = \frac{h}{2\pi} \sum_m \frac{e^{-z_m \varepsilon} \prod M(z_m)}{z_m (z_m + 1)} =
    \sum_j e^{-j \theta y}\, \mathbb{E}\, g(S - \varepsilon + j y).

On the right, the term j = 0 is delta, and all terms are nonnegative. So T is an upper bound for every theta > 0 and h > 0. The sums
of the other terms are

- for j > 0, at most 1/(e^(theta y) - 1), because g <= 1;
- for j < 0 and every t > theta, at most e^(-t eps) prod M(t)/(e^((t - theta) y) - 1), because g(s) <= e^(t s).

Size. On the real line, v^a <= 2^(a - 1)_+ ((1 - q)^a + (q e^u)^a) if a > 0, and v^a <= (1 - q)^a if a < 0. N times these powers are
multiples of normal densities around 0 and a. Their sum bounds |G|(a) = int N(x) v(x)^a dx, and also the sum over the nodes beyond
the last ones, where the densities decrease. For q = 1, v^a is (e^u)^a.

Quadrature. G(a + it) = int N(x + ib) v(x + ib)^(a + it) dx for every shift 0 <= b <= pi sigma^2/4. For t >= 0 and Im x between 0
and 2b, |v| <= v(Re x), Re v >= 1 - q and arg v >= 0. So the trapezoidal rule on the line Im x = b has an error of at most
(1 + e^(2 b^2/sigma^2)) |G|(a)/(e^(2 pi b/step) - 1).

Large t. |G(a + it)| <= e^(b^2/(2 sigma^2)) int N(x) |v(x + ib)|^a e^(-t arg v(x + ib)) dx. This bound decreases in t, so its value
at one t bounds all later nodes. The integrand is N v(x + ib)^((a + it)/2) v(x - ib)^((a - it)/2), which is analytic in x; in a
strip of half-width c <= 2 B - b, where Im x = B is the line of the quadrature, the integrand is at most e^(c^2/(2 sigma^2)) times
that of |G|(a), because arg v(x + iw) increases with w.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from shufflebounds._base.validate import InfeasibleError
from shufflebounds._engines.witnesses import sampled_tilt
from shufflebounds.certify.balls import Ball, acb, arb, flint, normal_tail, pi, smaller
from shufflebounds.certify.noise import normal_delta

DIGITS = 9
"""Digits of the smallest terms. Raised: more nodes. Lowered: a wider ball."""

SAMPLED_TOLERANCE = 1e-8
"""Allowed width of the ball in log delta."""

NODES = 512
"""Resource limit: largest number of nodes; few releases of rare samples need more. Raised: longer calls. Lowered: wider balls."""

SAMPLED_OPERATIONS = 3e6
"""Predicted number of operations in interval arithmetic of a release on a sample. The prediction does not depend on delta.
Measured: .03 to 1.4 s for delta above e^-60, 5 s at e^-190 and 15 s at e^-430."""


MOST_BITS = 1200
"""Resource limit: largest precision, for delta down to about e^-700. Raised: longer calls."""


class Part(NamedTuple):
    """`times` releases of noise `sigma` (for sensitivity 1) on samples of rate `rate`; rate 1 is every record."""

    sigma: float
    sensitivity: float
    rate: float
    times: int


class _Sampled:
    """G of a release on a sample, on the line Re z = a; values that do not depend on t are computed once."""

    def __init__(self, part: Part, a: Ball, bits: float) -> None:
        self.sigma, self.q, self.a = arb(part.sigma) / part.sensitivity, arb(part.rate), a
        self.near = sigma = part.sigma / part.sensitivity
        more = (a - 1).max(arb(0))
        shift, bits = min(0.78 * sigma**2, 3.0 * sigma), bits + float(more)
        self.b, self.step = arb(shift), arb(2 * math.pi * shift / (0.7 * bits + 2 * (shift / sigma) ** 2))
        far, step = sigma * math.sqrt(1.4 * bits + (shift / sigma) ** 2), float(self.step)
        bumps = [] if part.rate == 1 else [((1 - self.q) ** a, 0 * a)]
        if part.rate == 1 or a > 0:
            bumps.append((self.q**a * ((a * a - a) / (2 * self.sigma**2)).exp(), a))
        centres = [float(at) for _, at in bumps]
        self.nodes = range(math.floor((min(centres) - far) / step), math.ceil((max(centres) + far) / step) + 1)
        low, high = self.nodes[0] * self.step, self.nodes[-1] * self.step
        if not (self.b > 0 and 4 * self.b <= pi() * self.sigma**2 and all(low < at < high for _, at in bumps)):
            raise ArithmeticError("the shift or the nodes of the quadrature are outside of their range")
        self.absolute = 2**more * sum(size for size, _ in bumps)
        self.tails = 2**more * sum(size * (normal_tail((at - low) / self.sigma) + normal_tail((high - at) / self.sigma))
                                   for size, at in bumps)
        rate, grown = 1 / (2 * pi() * self.b / self.step).expm1(), (self.b**2 / (2 * self.sigma**2)).exp()
        self.error = ((1 + grown**4) * rate * self.absolute + grown * self.tails).upper()
        scale, logs = self.step / (self.sigma * (2 * pi()).sqrt()), [self._log_v(acb(j * self.step, self.b)) for j in self.nodes]
        self.points = [(scale * (self.a * log_v - acb(j * self.step, self.b) ** 2 / (2 * self.sigma**2)).exp(), log_v)
                       for j, log_v in zip(self.nodes, logs, strict=True)]

    def _log_v(self, x: Ball) -> Ball:
        return (1 - self.q + self.q * ((x - arb(0.5)) / self.sigma**2).exp()).log()

    def value(self, t: Ball) -> Ball:
        """Return G(a + it) (module docstring), t >= 0."""
        error = arb(0, self.error)
        return sum((weight * acb(-t * log_v.imag, t * log_v.real).exp() for weight, log_v in self.points), acb(error, error))

    def beyond(self, t: Ball) -> Ball:
        """Return a bound of |G(a + is)| for all s >= t. Every shift is valid; the one that is used is near the best."""
        bounds, scale = [], self.sigma * (2 * pi()).sqrt() / self.step
        weights = [(float(abs(weight)), float(log_v.imag)) for weight, log_v in self.points]
        slope = math.fsum(w * turn for w, turn in weights) / math.fsum(w for w, _ in weights) / float(self.b)
        for share in (1.0, 0.5):
            half = arb(min(float(self.b) / 2, self.near**2 * slope * float(t) * share))
            width, logs = 2 * self.b - half, [(j * self.step, self._log_v(acb(j * self.step, half))) for j in self.nodes]
            total = sum((self.a * v.real - t * v.imag - x**2 / (2 * self.sigma**2)).exp() for x, v in logs) / scale + self.tails
            total += 2 * (width**2 / (2 * self.sigma**2)).exp() * self.absolute / (2 * pi() * width / self.step).expm1()
            bounds.append(total * (half**2 / (2 * self.sigma**2)).exp())
        return smaller(*bounds).upper()


def delta(parts: Sequence[Part], factor: Ball, removed: bool, witness: tuple[float, float, float] | None = None) -> Ball:
    """Return delta of the composition for a record that is removed or added; `witness` has the form of the result of
    :func:`sampled_tilt`.
    """
    if all(part.rate == 1 for part in parts):
        # The losses are normal, and so is their sum.
        return normal_delta(sum(part.times * (arb(part.sensitivity) / part.sigma) ** 2 for part in parts).sqrt(), factor)
    loss, eps = factor.log(), float(factor.log())
    if not removed and all(part.rate < 1 for part in parts):
        # v >= 1 - q, so the loss of addition is at most -ln(1 - q) in each release.
        most = -sum((part.times * (1 - arb(part.rate)).log() for part in parts), arb(0))
        if most <= loss:
            return arb(0)
    small = math.log(10) * DIGITS + 5
    theta, log_size, more = witness or sampled_tilt(parts, eps, removed, small)
    bits = math.ceil(1.5 * (small - min(log_size, 0)) + 40)
    if bits > MOST_BITS:
        raise InfeasibleError(f"the precision would be {bits} bits: at most {MOST_BITS} are tried")
    flint().ctx.prec = bits + 40
    at, t_more = arb(theta), arb(more)

    def lines(z: Ball) -> list[tuple[_Sampled, int]]:
        return [(_Sampled(part, z + 1 if removed else -z, bits), part.times) for part in parts]

    def product(factors: list[tuple[_Sampled, int]], t: Ball) -> Ball:
        return math.prod((line.value(t) ** times for line, times in factors), start=acb(1))

    base = lines(at)
    peak = product(base, arb(0)).real * (-at * loss).exp()
    above = product(lines(t_more), arb(0)).real * (-t_more * loss).exp()
    y = arb(max((small - log_size) / theta, (small + float(above.log()) - log_size) / (more - theta)))
    if not (at > 0 and t_more > at and y > 0):
        raise ArithmeticError(f"theta={theta!r}, t={more!r} is not a witness of this theorem")
    h, m = 2 * pi() / y, 0
    total = peak / (at * (at + 1)) / 2
    while True:
        m += 1
        t = m * h
        z, grown = acb(at, t), product(base, t)
        total += ((grown if removed else grown.conjugate()) * (-z * loss).exp() / (z * (z + 1))).real
        if m >= 8 and m & (m - 1) == 0:
            rest = math.prod((line.beyond(t) ** times for line, times in base), start=arb(1)) * (-at * loss).exp() / (h * t)
            if m >= NODES or rest.log() < log_size - small:
                break
    upper = (total + arb(0, rest.upper())) * h / pi()
    alias = 1 / (at * y).expm1() + above / ((t_more - at) * y).expm1()
    return (upper - alias).lower().max(arb(0)).union(upper.upper())
