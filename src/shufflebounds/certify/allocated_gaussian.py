r"""Bounds of delta of random allocation to one of t steps with Gaussian noise.

The record is in one uniformly random step of t; every step adds N(0, sigma^2) to a sum of sensitivity 1. With mu = 1/sigma,
standard normal g_i, L_i = e^(mu g_i - mu^2/2) (so E L_i = 1), S = L_1 + ... + L_t, w = e^eps and F(c) = E (c - S)_+,

- a record is added: delta = E (1 - w S/t)_+ = (w/t) F(t/w);
- a record is removed: delta = E (S/t - w)_+ = F(t w)/t + 1 - w, because x_+ = (-x)_+ + x.

Theorem. With lambda(z) = E e^(-z L_1), z_m = theta + i m h and y = 2 pi/h >= c, Poisson's summation formula gives

.. math:: \frac{h}{2\pi} \sum_m e^{z_m c} \lambda(z_m)^t / z_m^2 = \sum_j e^{-j \theta y}\, \mathbb{E} (c + j y - S)_+.

On the right, the term j = 0 is F(c). The terms j < 0 are 0, as S >= 0 and y >= c. The terms j > 0 are nonnegative and at most
e^(-j theta y) (c + j y).

Quadrature. With the normal density N and the shift s = arg(z)/mu, lambda(z) = int N(x - i s) exp(-z e^(mu (x - i s) - mu^2/2)) dx.
In the strip of half-width a = pi/(2 mu) around this line, the exponential is at most 1 in modulus: the trapezoidal rule has an
error of at most 2 e^((s + a)^2/2)/(e^(2 pi a/step) - 1).

Large m. At a shift s <= pi/(4 mu), Re(z e^(-i mu s)) >= Im z sin(mu s) for all z in the first quadrant. So for all Im z >= T,
|lambda(z)| <= e^(s^2/2) lambda(T sin(mu s)), a real number that decreases in T.
"""

from __future__ import annotations

import math

from shufflebounds.certify.balls import Ball, acb, arb, flint, pi, smaller

NODES = 8192
"""Resource limit: largest number of nodes. Raised: longer calls. Lowered: wider balls."""


class _Transform:
    """The function lambda of the module docstring, at the precision of the quadrature."""

    def __init__(self, mu: Ball, bits: int) -> None:
        self.mu, self.a = mu, pi() / (2 * mu)
        wide = (math.pi / float(mu)) ** 2 / 2  # the largest (s + a)^2/2
        self.step = 2 * pi() * self.a / arb(0.7 * bits + wide)
        self.last = math.ceil(math.sqrt(1.4 * bits + 2 * wide) / float(self.step))

    def value(self, z: Ball) -> Ball:
        """Return lambda(z) for Re z > 0 and Im z >= 0."""
        s = z.arg() / self.mu
        total, factor = acb(0), -z * (acb(0, -1) * self.mu * s - self.mu**2 / 2).exp()
        for j in range(-self.last, self.last + 1):
            x = j * self.step
            total += (factor * (self.mu * x).exp() - acb(x, -s) ** 2 / 2).exp()
        cut = ((s * s) / 2).exp() * (self.last * self.step / arb(2).sqrt()).erfc()
        edge = abs(s) + self.a
        error = arb(0, (2 * (edge * edge / 2).exp() / (2 * pi() * self.a / self.step).expm1() + cut).upper())
        return total * self.step / (2 * pi()).sqrt() + acb(error, error)

    def beyond(self, t: Ball, steps: int) -> Ball:
        """Return a bound of |lambda(z)|^steps for Im z >= t."""
        shifts = (arb(min(float(t * self.mu) * scale, math.pi / 4 / float(self.mu) * 0.9999)) for scale in (1.0, 0.6, 0.3))
        bounds = (((s * s / 2).exp() * self.value(acb(t * (self.mu * s).sin())).real) ** steps for s in shifts)
        return smaller(arb(1), *bounds).upper()


def _put(mu: Ball, steps: int, c: Ball, digits: float, near: tuple[float, float] | None) -> Ball:
    """Return E (c - S)_+ (module docstring) with an absolute error of about 10^-digits; `near` is (theta, y)."""
    depth = math.log(10) * digits + math.log(steps) + 5
    bits = math.ceil(2.6 * depth + 20 + 1.45 * math.log2(steps))
    flint().ctx.prec = math.ceil(bits + 40 + 0.75 * (math.pi / float(mu)) ** 2)
    transform, most = _Transform(mu, bits), float(c.upper())
    # theta (y - c) is `depth`, so that the term j = 1 is negligible. A larger y has more nodes, a larger theta c loses digits.
    theta, y = (arb(x) for x in near or (depth / (1.4 * most), 2.5 * most))
    if not (theta > 0 and y >= c):
        raise ArithmeticError("theta and y are not a witness of this theorem")
    h = 2 * pi() / y
    total, m, wanted = (theta * c).exp() * transform.value(acb(theta)).real ** steps / theta**2 / 2, 0, arb(10) ** -int(digits)
    while True:
        m += 1
        z = acb(theta, m * h)
        total += (transform.value(z) ** steps / (z * z) * (z * c).exp()).real
        if m >= 8 and m & (m - 1) == 0:
            rest = transform.beyond(m * h, steps) / (h * h * m) * (theta * c).exp()
            if rest < wanted or m >= NODES:
                break
    upper = h / pi() * (total + arb(0, rest.upper()))
    decay = (-theta * y).exp()
    alias = decay * (c + y / (1 - decay)) / (1 - decay)
    return (upper - alias).lower().max(arb(0)).union(upper.upper())


def delta(sigma: float, sensitivity: float, steps: int, factor: Ball, removed: bool, log_size: float,
          near: tuple[float, float] | None = None) -> Ball:
    """Return delta; `log_size` is a guess of log delta, by which the number of digits is chosen."""
    eps, digits = float(factor.log()), 10 + max(0.0, -log_size) / math.log(10)
    flint().ctx.prec = 200 + math.ceil(4 * digits)
    mu, loss = arb(sensitivity) / sigma, arb(eps).exp()
    if not loss.overlaps(factor):
        raise ArithmeticError("e^eps is not that of a double eps")
    if removed:
        return (_put(mu, steps, steps * loss, digits, near) / steps + 1 - loss).max(arb(0))
    return loss / steps * _put(mu, steps, steps / loss, digits, near)
