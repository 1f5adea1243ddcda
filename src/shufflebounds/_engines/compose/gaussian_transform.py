r"""Moment generating function of the privacy loss L of Gaussian noise on a Poisson sample, at complex arguments.

Let q be the sampling rate, mu the sensitivity over sigma, phi the standard normal density, and
g(x) = 1 - q + q e^(mu x - mu^2/2) the likelihood ratio of the outputs with and without the record at x. Then

.. math:: A(w) = \int \varphi(x)\, g(x)^w\, dx, \qquad \mathrm{E} e^{z L} = A(z + 1) \text{ (remove)}, \quad A(-z) \text{ (add)}.

The integrand is analytic for \|Im x\| < pi/mu. It is integrated by the trapezoidal rule with step h along the line Im x = y >= 0 of
the complex plane.

1. *The error of the rule.* For any d, d' > 0 such that y + d and y - d' lie in the strip of analyticity, it is at most

   .. math:: \frac{N(y + d)}{e^{2 \pi d / h} - 1} + \frac{N(y - d')}{e^{2 \pi d' / h} - 1}, \qquad
       N(v) = \int |\varphi g^w|(x + i v)\, dx.

2. *A bound of N(v)*, for w = a + i t with t >= 0 and 0 <= b = mu v < pi. The ratio satisfies
   g(x) cos(b/2) <= \|g(x + i v)\| <= g(x). Its argument is at least 0, so the factor e^(-t arg g) is at most 1. Hence
   N(v) <= A(a) e^(v^2/2) for a >= 0, and N(v) <= A(a) e^(v^2/2)/cos(b/2)^\|a\| for a < 0.

3. *A bound of \|A(a + i t')\| for all t' >= t* is the integral of the absolute value of the integrand of A(a + i t) along a line
   Im x = y > 0. This integral decreases in t, because arg g >= 0 on the line.

4. *The error of the rule for the integral of step 3.* Continued analytically from x to x + i v, its integrand has the absolute
   value

   .. math:: |\varphi(x + i v)|\, e^{y^2/2}\, |g(x + i(y + v))\, g(x + i(y - v))|^{a/2}\,
       e^{-t (\arg g(x + i(y + v)) + \arg g(x + i(y - v)))/2}.

   The argument of g(x + i v) is odd in v and increases in v for \|mu v\| <= pi/2. So for mu (y + \|v\|) <= pi/2 the last factor is
   at most 1, and steps 1 and 2 bound the error.

References
----------
Trefethen, L. N., Weideman, J. A. C. The exponentially convergent trapezoidal rule. SIAM Review 56, 2014, Theorem 5.1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import LARGEST_EXPONENT, TABLE_SIZE
from shufflebounds._base.quadrature import capped_exp
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.budget import mixed_losses
from shufflebounds._losses.transform import Cumulants, Spectrum

__all__ = ["SampledGaussian"]

LINES = np.array([0.9, 0.7, 0.5, 0.35, 0.25, 0.15, 0.08, 0.04, 0.01, 1e-3])
"""Trial heights y of the line of integration (module docstring), as fractions of the largest allowed one. If the real part a of the
exponent of g is at least 0, the first height allows the longest step h. With fewer heights the steps for a < 0 would be shorter."""

MOST_HEIGHT = 1.2
"""Largest height y of the line of integration. The integral of the absolute value of the integrand is e^(y^2/2) times the integral,
and rounding errors grow by the same factor. Raised: larger rounding errors. Lowered: shorter steps, and longer run time."""

ANALYTIC = 0.97
"""Largest height of a line, as a fraction of the height of the first singularity. The bound of the integrand grows like the inverse
of the distance to it. Raised: larger bounds of the integrand. Lowered: shorter steps."""

LEAST_THETA = 1e-3
"""Radius r of the circle |theta| = r on which the error of the trapezoidal rule is bounded: the largest error there, divided by r,
bounds the error of Renyi divergences of order theta + 1 near 1 (`TiltedGaussian.renyi`). Raised: a larger error on the circle.
Lowered: a larger quotient."""

BLOCK = 64
"""Largest number of columns of the table of frequencies t in `TiltedGaussian.spectrum`, where the phase e^(i t s) is the product of
a factor for the row and one for the column. Raised: a larger bound of the rounding errors. Lowered: more rows."""


@dataclass(frozen=True)
class SampledGaussian:
    """The privacy loss of one Gaussian mechanism on a Poisson sample, for a removed or for an added record.

    Parameters
    ----------
    mu : float
        Sensitivity over sigma, with a relative error of at most one ulp.
    rate : float
        The probability q that the record is sampled, in (0, 1].
    removed : bool
        True if P is the mixture (1 - q) N(0, 1) + q N(mu, 1) and Q is N(0, 1); False for the reverse.
    """

    mu: float
    rate: float
    removed: bool

    def renyi(self, order: float, *, upper: bool) -> float | None:
        """Return a bound of the Renyi divergence of an order in [1, inf), or None if too many quadrature points are needed."""
        tilted = TiltedGaussian(self, order - 1, 90.0)
        return tilted.renyi(upper=upper) if tilted.error < math.inf else None

    def cumulants(self, theta: FloatArray) -> Cumulants:
        """Return the cumulant generating function at increasing theta > 0; its error is inf if too many points are needed."""
        # The trapezoidal rule for the largest theta is accurate for every smaller theta. If the product of its points and the
        # number of theta is too large for one table, the two halves of the array theta are evaluated separately.
        tilted = TiltedGaussian(self, float(theta[-1]))
        if theta.size == 1 or theta.size * tilted.range_size <= TABLE_SIZE // 4:
            return tilted.cumulants(theta)
        parts = [self.cumulants(part) for part in np.array_split(theta, 2)]
        return Cumulants(*(np.concatenate(arrays) for arrays in zip(*parts)))

    def tilted(self, theta: float) -> TiltedGaussian | None:
        """Return the moment generating function at complex z with Re z = theta, or None if too many points are needed."""
        tilted = TiltedGaussian(self, theta)
        return tilted if tilted.error < math.inf else None


class _Ratios(NamedTuple):
    """Points x of the trapezoidal rule, with values of g and bounds of their errors (symbols as in the module docstring).

    At each point, `loss` is log g(x), `shifted` is q e^(mu x - mu^2/2)/g(x), and `unshifted` is (1 - q)/g(x). `blur` bounds the
    error of log g(x + i y) for all y.
    """

    x: FloatArray
    loss: FloatArray
    shifted: FloatArray
    unshifted: FloatArray
    blur: FloatArray


class _Points(NamedTuple):
    """The points of the rule for several exponents a of g; symbols as in the module docstring.

    `log_normal` is the log of h phi(x). `log_weight` is the log of h phi(x) g(x)^a, with a row for every a. `top` is the log of the
    largest term for every a. The terms of the omitted points sum to at most `dropped` e^`top`.
    """

    at: _Ratios
    log_normal: FloatArray
    log_weight: FloatArray
    top: FloatArray
    dropped: float


def _excess(at: _Ratios, log_normal: FloatArray, order: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return A(a) - 1 and a bound of its rounding error, for several orders a.

    Because the mean of g is 1, A(a) - 1 = E (g^a - 1 - a (g - 1)), a sum of terms of one sign.

    `log_normal` is the log of h phi(x), with the step h and the normal density phi. The bound of the rounding error is proportional
    to the means of |a (g - 1)| and |g^a - 1|, so it is small if the privacy losses are small.
    """
    a, size = order[:, None], np.abs(order)
    power = np.multiply.outer(order, at.loss)
    normal, mixed, raised = np.exp(log_normal), np.exp(log_normal + at.loss), np.exp(log_normal + power)
    near = np.abs(at.loss) * np.maximum(1.0, size)[:, None] < 1
    grown, lost = np.expm1(np.where(near, power, 0.0)), np.expm1(np.where(np.abs(at.loss) < 1, at.loss, 0.0))
    terms = np.where(near, normal * (grown - a * lost), raised - normal - a * (mixed - normal))
    first = np.where(near, normal * np.abs(lost), mixed + normal)
    second = np.where(near, normal * np.abs(grown), raised + normal)
    exponent = np.where(near, 0.0, np.abs(power) + np.abs(at.loss)) + 16
    rounding = ULP * ((size[:, None] * first + second) * exponent).sum(axis=1) + size * ((mixed + raised) @ at.blur)
    rounding += ULP * (np.abs(terms) @ (at.x**2 / 2 + 16 + at.x.size))
    return terms.sum(axis=1), rounding


class TiltedGaussian:
    """The function E e^(z L) at complex z with Re z = theta, for the privacy loss L of a :class:`SampledGaussian`.

    The class implements :class:`~shufflebounds._losses.transform.TiltedTransform`.
    """

    def __init__(self, kind: SampledGaussian, theta: float, accuracy: float = 50.0) -> None:
        self._kind, self._theta, self._accuracy = kind, theta, accuracy
        self._order = theta + 1 if kind.removed else -theta
        # For real arguments of A the line of integration is the real axis, and the strip extends from -height to height. Heights
        # above 4 are not used, because the normal density grows by the factor e^(height^2/2).
        heights = min(self._most, 4.0) * self._lines
        self._real_step, self._real_height = max((self._step(y, y), y) for y in heights.tolist())

    @property
    def _lines(self) -> FloatArray:
        """The heights above the real axis (LINES) that are tried for the line of integration; for an order >= 0 only the first,
        which gives the longest step.
        """
        return LINES if self._order < 0 else LINES[:1]

    @property
    def range_size(self) -> float:
        """Number of nodes of the longer of the two trapezoidal rules: on the real axis, or on the first line above it."""
        first, last = self._range
        return (last - first) / min(self._real_step, self._line[0])

    @cached_property
    def _own(self) -> tuple[float, float]:
        own = self.cumulants(np.array([self._theta]))
        return float(own.value[0]), float(own.error[0])

    @property
    def scale(self) -> float:
        """The cumulant generating function at theta."""
        return self._own[0]

    @property
    def error(self) -> float:
        """Bound of the error of `scale`, the cumulant generating function at theta; infinite if the rule needs too many points."""
        return self._own[1]

    def cumulants(self, theta: FloatArray) -> Cumulants:
        """Return the cumulant generating function at real numbers between 0 and this object's theta, from the same quadrature
        points.

        The error of the rule increases with theta, so the step for the largest theta is small enough for every theta.
        """
        if not self.range_size <= TABLE_SIZE // 8:
            # There are too many points; `SampledGaussian.tilted` returns None in this case.
            return Cumulants(np.zeros(theta.size), np.full(theta.size, np.inf), np.zeros(theta.size), np.zeros(theta.size))
        step, height, removed = self._real_step, self._real_height, self._kind.removed
        order = theta + 1 if removed else -theta
        at, log_normal, log_weight, largest, dropped = self._points(step, order)
        top = log_weight.max(axis=1)
        weight = np.exp(log_weight - top[:, None])
        total = weight.sum(axis=1)
        loss = at.loss if removed else -at.loss
        mean = weight @ loss / total
        var = (weight * (loss - mean[:, None]) ** 2).sum(axis=1) / total
        value = top + np.log(total)
        size = np.abs(order)
        rounding = (weight @ (ULP * (16 + at.x**2 / 2)) + size * (weight @ (3 * ULP * np.abs(at.loss) + at.blur))) / total
        rounding += ULP * (3 * np.abs(largest) + at.x.size + 8 + np.abs(value))
        near = np.abs(value) < 0.5
        if near.any():
            # Where A(a) is near 1, the log of the computed A(a) has a large relative error. There A(a) - 1 is computed directly.
            excess, rounding[near] = _excess(at, log_normal, order[near])
            value[near] = np.log1p(excess)
        outside = dropped * np.exp(np.minimum(largest - value, LARGEST_EXPONENT))
        growth = self._log_growths(height, order)
        rule = np.exp(growth - 2 * math.pi * height / step + 1e-9) / -math.expm1(-2 * math.pi * height / step)
        error = rounding + (outside + 2 * rule) * 2 * (1 + size)
        error = np.where(error < 1e-3, error * (1 + 1e-6) + 4 * ULP * np.abs(value), np.inf)
        return Cumulants(value, error, mean, var)

    @property
    def _most(self) -> float:
        """The largest height y of a line. The integrand is analytic up to pi/mu."""
        return ANALYTIC * math.pi / self._kind.mu

    def _log_growth(self, height: float) -> float:
        """Return the logarithm of an upper bound of N(height)/A(a), with N and A as in the module docstring."""
        return float(self._log_growths(height, self._order))

    def _log_growths(self, height: float, order: Any) -> Any:
        """Return the bound of `_log_growth` for one order a or an array of them, all with the sign of the order of this object."""
        if self._order >= 0:
            return height * height / 2 + 0 * order
        return height * height / 2 + order * (math.log(math.cos(self._kind.mu * height / 2)) * (1 + 1e-9))

    def _step(self, width: float, height: float) -> float:
        """Return a step of 7 binary digits for which the rule is accurate, if the integrand is analytic on a strip.

        The strip extends `width` above and below the line of integration; `height` is the imaginary part of its upper end.
        """
        fraction, exponent = math.frexp(2 * math.pi * width / (self._accuracy + self._log_growth(height)))
        return math.ldexp(math.floor(128 * fraction), exponent - 7)

    def _rule_error(self, width: float, height: float, step: float) -> float:
        """Return a bound, relative to A(a), of the part of the error of the trapezoidal rule that belongs to one end of its strip.

        `width` is the distance d (or d') of that end from the line of integration, and `height` its imaginary part.
        """
        exponent = self._log_growth(height) - 2 * math.pi * width / step
        return capped_exp(exponent + 1e-9) / -math.expm1(-2 * math.pi * width / step)

    @property
    def _dropped(self) -> float:
        """A number x > 0: terms of the rule below e^-x times the largest term are dropped, and this product bounds each error.

        These errors are far below the error of the trapezoidal rule.
        """
        return self._accuracy + 4

    @property
    def _reach(self) -> float:
        """The distance from 0 at which a normal density is e^-x times its largest value, with x = `_dropped`."""
        return math.sqrt(2 * self._dropped)

    @property
    def _range(self) -> tuple[float, float]:
        """The first and the last x of the rule; terms beyond them are negligible."""
        mu, q, a = self._kind.mu, self._kind.rate, self._order
        # The derivative of log(phi g^a) is a mu p - x, where p = q e^(mu x - mu^2/2)/g is in (0, 1) and increases with x. So for
        # x > `last` the product phi g^a falls at least as fast as phi does beyond `_reach`, and for x < `first` it rises at least
        # as fast.
        p_zero = 1 / (1 + (1 - q) / q * capped_exp(mu * mu / 2))
        first, last = -self._reach + min(a, 0.0) * mu * p_zero, self._reach + max(a, 1.0) * mu
        return first, last

    def _points(self, step: float, order: FloatArray | None = None) -> _Points:
        """Return the points of the trapezoidal rule with this step.

        `order` may have several orders, of the sign of this object's order and at most as large in absolute value.
        """
        mu, q = self._kind.mu, self._kind.rate
        first, last = self._range
        # The products x and x^2 have no rounding error, because the step has 7 binary digits.
        x = step * np.arange(math.floor(first / step), math.ceil(last / step) + 1, dtype=np.float64)
        own = mu * x - mu * mu / 2
        loss = mixed_losses(own, q)
        log_normal = (math.log(step) - 0.5 * math.log(2 * math.pi)) - x**2 / 2
        log_weight = np.multiply.outer(np.array([self._order]) if order is None else order, loss) + log_normal
        # A point is kept if its term is not negligible in the integral of phi, of phi g or of phi g^a, which all use these
        # points.
        others = log_normal + np.maximum(loss, 0.0)
        top = np.maximum(log_weight.max(axis=1), others.max())
        smallest = top - self._dropped
        kept = (log_weight > smallest[:, None]).any(axis=0) | (others > smallest.min())
        # Each omitted point within the range has a term of at most e^-`_dropped` times the largest one. Beyond either end of the
        # range the terms fall at least as fast as a normal density beyond `_reach`, so they sum to at most 1 + 1/(reach step) times
        # the first of them.
        dropped = math.exp(-self._dropped) * (2 * (1 + 1 / (self._reach * step)) + np.count_nonzero(~kept))
        x, own, loss, log_normal, log_weight = x[kept], own[kept], loss[kept], log_normal[kept], log_weight[:, kept]
        rest = math.log1p(-q) if q < 1 else -math.inf
        shifted, unshifted = np.exp(np.minimum(math.log(q) + own - loss, 0.0)), np.exp(np.minimum(rest - loss, 0.0))
        size = np.abs(mu * x) + mu * mu + abs(math.log(q)) + np.abs(loss)
        blur = ULP * (16 * np.abs(loss) + shifted * (16 + 8 * size) * (2 + np.pi))
        return _Points(_Ratios(x, loss, shifted, unshifted, blur), log_normal, log_weight, top, dropped)

    def _rounding(self, points: _Points, height: float) -> FloatArray:
        """Return a bound of the relative rounding error of each term of the rule at frequency 0, on the line at this height."""
        at = points.at
        exponent = at.x**2 / 2 + 3 * np.abs(self._order * at.loss) + 3 * abs(float(points.top[0])) + np.abs(at.x) * height
        return np.asarray(ULP * (16 + exponent) + abs(self._order) * at.blur)

    def _complex_loss(self, at: _Ratios, height: float | FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return real and imaginary part of log g(x + i height)."""
        turn = self._kind.mu * height
        shrink = 4 * at.shifted * at.unshifted * np.sin(turn / 2) ** 2
        angle = np.arctan2(at.shifted * np.sin(turn), at.unshifted + at.shifted * np.cos(turn))
        return at.loss + 0.5 * np.log1p(-np.minimum(shrink, 1.0)), angle

    def renyi(self, *, upper: bool) -> float:
        r"""Return a bound of the Renyi divergence of order theta + 1 >= 1.

        The points of the rule are the outcomes of a pair of distributions, whose divergence is a sum of positive terms. The error
        of the rule is an analytic function of theta, and 0 at theta = 0. By the lemma of Schwarz this error is at most \|theta\|/r
        times its largest value on the circle \|theta\| = r, with r = LEAST_THETA. On this circle the absolute value of the moment
        generating function is at most e^(r (1 + r) mu^2/2 + pi r); the term pi r is due to arg g, which is at most pi.
        """
        points, forward = self._points(self._real_step), self._kind.removed
        at = points.at
        log_normal = points.log_normal
        log_p, loss, blur = log_normal + at.loss if forward else log_normal, at.loss, at.blur
        if not forward:
            log_p, loss, blur = log_p[::-1], -loss[::-1], blur[::-1]
        slack = ULP * (24 + 4 * float(np.abs(log_p).max()))
        outcomes = LossAtoms(log_p, loss, -math.inf, -math.inf, -math.inf, slack, blur)
        value = float(outcomes.renyi(np.array([self._theta + 1]), upper=upper)[0])
        outside = points.dropped * capped_exp(float(points.top[0]) - self.scale)
        rule = 2 * self._rule_error(self._real_height, self._real_height, self._real_step)
        error = (outside + rule) * 2 * (1 + abs(self._order)) / max(self._theta, LEAST_THETA)
        if self._theta < LEAST_THETA:
            error *= 1.01 * capped_exp(LEAST_THETA * (1 + LEAST_THETA) * self._kind.mu**2 / 2)
        return value + error if upper else max(value - error, 0.0)

    @cached_property
    def _line(self) -> tuple[float, float]:
        """The step of the trapezoidal rule at complex arguments, and the height y of its line above the real axis.

        The strip of the error bound extends from the real axis to 2 y.
        """
        heights = min(self._most / 2, MOST_HEIGHT) * self._lines
        return max((self._step(y, 2 * y), y) for y in heights.tolist())

    @cached_property
    def _terms(self) -> tuple[NDArray[np.complex128], NDArray[np.complex128], tuple[float, float, float, float]]:
        """The terms of the rule at t = 0, the complex losses, and four numbers e0, e1, e2, e3 for the error of the spectrum.

        At frequency t this error is at most e0 + e1 t + min(e2, e3 t).
        """
        step, height = self._line
        points = self._points(step)
        at = points.at
        real, angle = self._complex_loss(at, height)
        loss = real + 1j * angle
        exponent = points.log_weight[0] + self._order * (loss - at.loss) + (height * height / 2 - self.scale)
        terms = np.exp(exponent - 1j * height * at.x)
        size = np.abs(terms)
        relative = size * (self._rounding(points, height) + 2 * ULP * (at.x.size + BLOCK))
        rule = self._rule_error(height, 2 * height, step) + self._rule_error(height, 0.0, step)
        # The spectrum is the difference of the values of the rule at z and at theta, so the error of the rule counts twice. The sum
        # of the absolute values of the integrand on the line at this height is at most e^`_log_growth(height)` times that on the
        # real axis.
        error = self.error + 2 * rule * math.exp(min(self.error, 1.0))
        error += 2 * points.dropped * capped_exp(float(points.top[0]) - self.scale + self._log_growth(height))
        growth = float(size @ (at.blur + 8 * ULP * np.abs(loss)))
        # The last two numbers follow from |e^(i t s) - 1| <= min(2, t |s|) for the loss s of a term.
        return terms, loss, (error, growth, 2 * float(relative.sum()), float(relative @ np.abs(loss)))

    @property
    def points(self) -> int:
        """The number of quadrature points."""
        return int(self._terms[0].size)

    def spectrum(self, spacing: float, count: int) -> Spectrum:
        """Return E e^((theta + i t) L)/e^scale - 1 at the frequencies t = 0, spacing, ..., (count - 1) spacing."""
        terms, loss, (error, growth, most, relative) = self._terms
        # Because Im log g >= 0 for the likelihood ratio g, no factor e^(i t log g) exceeds 1 in absolute value.
        width = min(BLOCK, math.ceil(math.sqrt(count)))
        inner = _exp_minus_one(np.outer(np.arange(width), (1j * spacing) * loss))
        out = np.empty((-(-count // width), width), dtype=np.complex128)
        rows = max(1, 2**18 // terms.size)
        for first in range(0, out.shape[0], rows):
            places = np.arange(first, min(first + rows, out.shape[0]))
            outer = _exp_minus_one(np.outer(places, (1j * spacing * width) * loss))
            # The spectrum has terms e^(x + y) - 1 = e^x (e^y - 1) + (e^x - 1). einsum is used because BLAS would start threads,
            # which take longer than these short sums.
            block = np.einsum("ri,ki->rk", terms * (1 + outer), inner)
            out[places] = block + np.einsum("ri,i->r", outer, terms)[:, None]
        differences, frequency = out.ravel()[:count], spacing * np.arange(count)
        return Spectrum(
            differences if self._kind.removed else differences.conj(),
            error + growth * frequency + np.minimum(most, relative * frequency),
        )

    @cached_property
    def _absolute(self) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """(logs, angles, log_error, rounding) for :meth:`decay`.

        `logs` are the logs of the absolute values of the terms of the rule at t = 0, and `angles` is arg g at its nodes, with one
        row for each line above the real axis. `log_error` bounds the log of the error of the rule, for each line.
        """
        mu = self._kind.mu
        heights = np.asarray(min(0.6 * math.pi / (2 * mu), MOST_HEIGHT) * 2.0 ** -np.arange(12), dtype=np.float64)
        points = self._points(self._line[0])
        real, angle = self._complex_loss(points.at, heights[:, None])
        logs = points.log_weight[0] + self._order * (real - points.at.loss) + (heights * heights / 2 - self.scale)[:, None]
        error = np.empty(heights.size)
        for i, y in enumerate(heights.tolist()):
            width = min(0.999 * math.pi / (2 * mu) - y, 3.0)
            growth = (y * y + width * width) / 2
            if self._order < 0:
                growth += self._order * math.log(math.cos(mu * (y + width) / 2)) * (1 + 1e-9)
            exponent = growth - 2 * math.pi * width / self._line[0]
            rule = 2 * capped_exp(exponent) / -math.expm1(-2 * math.pi * width / self._line[0])
            outside = points.dropped * capped_exp(float(points.top[0]) - self.scale + self._log_growth(y))
            error[i] = math.log(rule * math.exp(min(self.error, 1.0)) + outside)
        rounding = 2 * float(np.max(self._rounding(points, MOST_HEIGHT))) + 2 * ULP * points.at.x.size
        return logs, angle, error, rounding

    def decay(self, frequency: float) -> float:
        """Return an upper bound of log |E e^((theta + i t) L)| - scale for all t >= frequency."""
        logs, angle, error, rounding = self._absolute
        # The factor 1 - 1e-9 covers the relative error of the angles, which is smaller except at losses with negligible terms.
        sums = np.log(np.exp(logs - (frequency * (1 - 1e-9)) * angle).sum(axis=1)) + rounding
        return float(min(np.logaddexp(sums, error).min(), self.error))


def _exp_minus_one(z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return e^z - 1 with a small relative error near 0."""
    out = np.empty_like(z)
    half = np.sin(z.imag / 2)
    out.real = np.expm1(z.real) * np.cos(z.imag) - 2 * half * half
    out.imag = np.exp(z.real) * np.sin(z.imag)
    return out
