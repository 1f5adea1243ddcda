r"""Bounds of delta of random allocation to one of t steps with Gaussian noise.

The record is in one uniformly random step of t; every step adds N(0, sigma^2) to a sum of sensitivity 1. With mu = 1/sigma,
standard normal g_i, L_i = e^(mu g_i - mu^2/2) (so E L_i = 1), S = L_1 + ... + L_t, w = e^eps and F(c) = E (c - S)_+,

- a record is added: delta = E (1 - w S/t)_+ = (w/t) F(t/w);
- a record is removed: delta = E (S/t - w)_+ = F(t w)/t + 1 - w, because x_+ = (-x)_+ + x.

Theorem. With lambda(z) = E e^(-z (L_1 - 1)), z_m = theta + i m h and y = 2 pi/h, Poisson's summation formula gives

.. math:: \frac{h}{2\pi} \sum_m e^{z_m (c - t)} \lambda(z_m)^t / z_m^2 = \sum_j e^{-j \theta y}\, \mathbb{E} (c + j y - S)_+.

On the right, the term j = 0 is F(c), and all terms are nonnegative. The terms j > 0 are at most e^(-j theta y) (c + j y). The terms
j < 0 are 0 if y >= c, as S >= 0. Otherwise, as x_+ <= e^(k x)/(e k) for k > theta, their sum is at most
e^(k (c - t)) lambda(k)^t/(e k (e^((k - theta) y) - 1)).

Quadrature. With the normal density N and a shift s, lambda(z) = int N(x - i s) exp(z - z e^(mu (x - i s) - mu^2/2)) dx. Where
|arg z - mu s'| <= pi/2 for all s' from s - a to s + a, the integrand is analytic and bounded in the strip of half-width a around
this line. With w = Re(z e^(-i mu s')), its modulus on the line s' is N(x) e^(s'^2/2 + Re z - w e^(mu x - mu^2/2)), where e^(mu x)
is at least 0 and at least 1 + mu x. So with b = e^(-mu^2/2) the integral of the modulus is at most
B(s') = e^(s'^2/2 + Re z - w + min(w, w (1 - b) + (w b mu)^2/2)), and the trapezoidal rule has an error of at most
(B(s - a) + B(s + a))/(e^(2 pi a/step) - 1). On the line s the modulus is at most B(s) N(x - x_0), where x_0 is 0 for the first
number of the minimum and -w b mu for the second one: this bounds the omitted terms on both sides of x_0.

Large m. At a shift s with mu s <= pi/2, Re(z e^(-i mu s)) = Re z cos(mu s) + Im z sin(mu s). So for all z with Re z = theta and
Im z >= T, |lambda(z)| <= e^(s^2/2 + theta - x) lambda(x) for x = theta cos(mu s) + T sin(mu s), a real number.
"""

from __future__ import annotations

import math
from functools import partial

from shufflebounds._base.validate import InfeasibleError
from shufflebounds.certify.balls import Ball, acb, arb, flint, pi, smaller

NODES = 8192
"""Resource limit: largest number of nodes. Raised: longer calls. Lowered: fewer certificates."""

SHIFT = 4.0
"""Smallest shift of the quadrature, if z is not almost real. Raised: terms of alternating signs lose more digits. Lowered: a
narrower strip, and more terms."""

Witness = tuple[float, float] | None
"""theta and y, or None if they are chosen here."""


def _transform(mu: Ball, digits: float, z: Ball) -> Ball:
    """Return lambda(z) of the module docstring for Re z > 0 and Im z >= 0, with an absolute error of about e^-digits."""
    m, angle, less = float(mu), float(z.arg()), (-(mu**2) / 2).exp()
    shift = min(angle / m, max(float(z.imag) * m, SHIFT))
    s, a = arb(shift), arb(0.999 * min((math.pi / 2 - angle) / m + shift, (math.pi / 2 + angle) / m - shift, math.sqrt(2 * digits)))
    if not (abs(z.arg() - mu * (s - a)) <= pi() / 2 and abs(z.arg() - mu * (s + a)) <= pi() / 2):
        raise ArithmeticError("the strip is too wide")

    def line(at: Ball) -> tuple[Ball, Ball]:
        """Return ln B at the shift `at`, and the centre of the nodes."""
        x = z.real * (mu * at).cos() + z.imag * (mu * at).sin()
        near = x * (1 - less) + (x * less * mu) ** 2 / 2
        best, centre = (near, -x * less * mu) if near < x else (x, arb(0))
        return at**2 / 2 + z.real - x + best, centre

    (size, centre), edge = line(s), line(s - a)[0].max(line(s + a)[0])
    step = arb(2 * math.pi * float(a) / (digits + max(float(edge), 0.0)))
    last = math.ceil(math.sqrt(2 * (digits + max(float(size), 0.0))) / float(step))
    nodes, factor = [centre + j * step for j in range(-last, last + 1)], -z * (acb(0, -1) * mu * s).exp() * less
    total = sum(((z + factor * (mu * x).exp() - acb(x, -s) ** 2 / 2).exp() for x in nodes), acb(0))
    error = arb(0, (2 * edge.exp() / (2 * pi() * a / step).expm1() + size.exp() * (last * step / arb(2).sqrt()).erfc()).upper())
    return total * step / (2 * pi()).sqrt() + acb(error, error)


def _put(noise: tuple[float, float], steps: int, c: Ball, digits: float, near: Witness) -> Ball:
    """Return E (c - S)_+ (module docstring) with an absolute error of about 10^-digits."""
    (sigma, sensitivity), above = noise, c - steps
    depth, variance = math.log(10) * digits + math.log(steps) + 5, steps * math.expm1((sensitivity / sigma) ** 2)
    # S is below c - y with probability e^-(2 depth), if it is almost normal. A larger y has more nodes.
    tilt, period = near or (depth / (y := min(2.5 * float(c), max(float(above), 0.0) + 2 * math.sqrt(depth * variance))), y)
    if not min(tilt, period) > 0:
        raise ArithmeticError("theta and y are not a witness of this theorem")
    lost = depth + max(tilt * (float(above) + min(tilt * variance / 2, steps)), 0.0) + math.log(steps) + 5
    # The terms of lambda are larger than lambda by up to e^(s^2), where the shift s is about sqrt(2 lost/steps) at last.
    flint().ctx.prec = 64 + math.ceil(1.45 * (lost + max(SHIFT**2, 2 * lost / steps)) + 1.45 * math.log1p(tilt))
    mu, theta, y, last = arb(sensitivity) / sigma, arb(tilt), arb(period), 8
    value, h, start = partial(_transform, mu, lost), 2 * pi() / y, (theta * above).exp()

    def beyond(t: Ball) -> Ball:
        """Return a bound of |lambda(z)|^steps for Im z >= t."""
        ends = [(s := (t * mu * x).min(0.7 / mu), theta * (mu * s).cos() + t * (mu * s).sin()) for x in (1.0, 0.6, 0.3)]
        return (smaller(*((s * s / 2 + theta - x).exp() * value(acb(x)).real for s, x in ends)) ** steps).upper()

    while not (rest := beyond(last * h) / (h * h * last) * start) * h < arb(10) ** -int(digits):
        if last > NODES:
            raise InfeasibleError(f"the sum has more than {NODES} terms")
        last += last // 4
    total = start * value(acb(theta)).real ** steps / theta**2 / 2 + arb(0, rest.upper())
    nodes = (acb(theta, m * h) for m in range(1, last + 1))
    upper = h / pi() * sum(((value(z) ** steps / (z * z) * (z * above).exp()).real for z in nodes), total)
    k, alias = theta + max(float(y - above) / variance - tilt, 1e-3), (c + y / -(-theta * y).expm1()) / (theta * y).expm1()
    alias += 0 if y >= c else (k * above).exp() * value(acb(k)).real ** steps / (arb(1).exp() * k * ((k - theta) * y).expm1())
    return (upper - alias).lower().max(arb(0)).union(upper.upper())


def delta(sigma: float, sensitivity: float, steps: int, factor: Ball, removed: bool, log_size: float, near: Witness = None) -> Ball:
    """Return delta; `log_size` is a guess of log delta, by which the number of digits is chosen."""
    eps, digits = float(factor.log()), 10 + max(0.0, -log_size) / math.log(10)
    flint().ctx.prec = 200 + math.ceil(4 * digits)
    noise, loss = (sigma, sensitivity), arb(eps).exp()
    if not loss.overlaps(factor):
        raise ArithmeticError("e^eps is not that of a double eps")
    if removed:
        return (_put(noise, steps, steps * loss, digits, near) / steps + 1 - loss).max(arb(0))
    return loss / steps * _put(noise, steps, steps / loss, digits, near)
