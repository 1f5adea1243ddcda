r"""The privacy blanket of Gaussian noise on the unit sphere, and the distribution of X for two opposite vectors e and -e.

The unit of length is the standard deviation sigma, and tau = 1/sigma is the radius of the sphere. For an output y with the length s
let :math:`U^2 = s + \langle y, e \rangle/|e|` and :math:`V^2 = s - \langle y, e \rangle/|e|`, so :math:`s = (U^2 + V^2)/2`. Then
a = :math:`R_e/m = e^{\tau U^2}`, b = :math:`R_{-e}/m = e^{\tau V^2}`, and the density of m in U and V is smooth:

.. math:: \frac{2 \cdot 2^{-d/2}}{\sqrt\pi\, \Gamma(\frac{d-1}{2})}\, (U V)^{d-2}\, 2 s\, e^{-(s + \tau)^2/2}

The masses of the cells of U and V are computed by Gauss quadrature with the error bound of docs/theorems/vectors ("Masses on the
sphere").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property
from shufflebounds._base.convex_order import log_shares
from shufflebounds._base.limits import COMPUTED_ERROR, LARGEST_EXPONENT
from shufflebounds._base.scipy_functions import gammainc, gammaincc, gammaincinv
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._engines.inputs.interval import BLUR
from shufflebounds._engines.inputs.reduced_laws import chosen, law_at_nodes

__all__ = ["SphereBlanket"]

_RULE = np.polynomial.legendre.leggauss(14)
"""Nodes and weights of the rule of one panel, on [-1, 1]."""

_LOG_ERROR = -56 * math.log(2)
"""Log of the largest relative error of the rule of one panel. The error of a mass is about twice as large, 2^-55, which is below
that of one rounding, 2^-53. Raised: the masses have an error in addition to rounding. Lowered: more panels."""

_RHO = np.array([6.0, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512])[:, None]
"""Sums of the semi-axes of the ellipses for which the error of a rule is bounded. Any value > 1 gives a valid bound."""

_FROM_ZERO = 10
"""Largest dimension for which the first panel begins at 0. Raised: first panels become narrow, because U^(d - 2) approaches a
polynomial of degree 27, the largest for which the rule is exact. Lowered: more panels for small dimensions."""


@dataclass(frozen=True, eq=False)
class SphereBlanket:
    """The privacy blanket of Gaussian noise on the unit sphere.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in units of the radius.
    dimension : int
        d, >= 2.
    log_cut : float
        Log of the mass under R_e that may be truncated. The truncated mass may exceed it by a relative 1e-3.
    """

    sigma: float
    dimension: int
    log_cut: float

    @cached_property
    def end(self) -> float:
        """The length s beyond which outputs are truncated."""
        return 1 / self.sigma + math.sqrt(self.dimension) + math.sqrt(-2 * min(self.log_cut, -1.0))

    @cached_property
    def _beyond(self) -> float:
        """An upper bound of the mass, for the input e, of outputs longer than `end`: that of a chi distribution above end -
        1/sigma.
        """
        return float(gammaincc(self.dimension / 2, 0.5 * (self.end - 1 / self.sigma) ** 2)) * (1 + COMPUTED_ERROR)

    @cached_property
    def _start(self) -> float:
        """The number below which U and V are truncated."""
        if self.dimension <= _FROM_ZERO:
            return 0.0
        mass = max(1e-3 * self._beyond, math.exp(-LARGEST_EXPONENT))
        return math.sqrt(float(gammaincinv((self.dimension - 1) / 2, mass)) / self.end)

    @cached_property
    def _before(self) -> float:
        """An upper bound of the mass under R_e, or R_-e, of outputs with U or V below `_start` and a length of at most `end`.

        Let y be the output. Its squared distance from the line through e and -e is U^2 V^2, here at most 2 `end` `_start`^2. Under
        R_e this squared distance is chi-squared with d - 1 degrees of freedom.
        """
        return float(gammainc((self.dimension - 1) / 2, self.end * self._start**2)) * (1 + COMPUTED_ERROR)

    @cached_property
    def cut_norm(self) -> float:
        """Upper bound of the integral of (R_e^2 + R_-e^2)/m over the outputs that are truncated; inf if not known."""
        d, x, tau = self.dimension, self.end, 1 / self.sigma
        # At the length s, R_e^2/m is at most e^(4 tau^2) e^(-(s - 3 tau)^2/2)/(2 pi)^(d/2). Beyond `end`, s^(d-1) times this bound
        # falls at least at the rate `fall`.
        fall = x - 3 * tau - (d - 1) / x
        if fall <= 0:
            return math.inf
        log_norm = (1 - d / 2) * math.log(2) - math.lgamma(d / 2) + (d - 1) * math.log(x) - 0.5 * (x - 3 * tau) ** 2
        log_norm -= math.log(fall)
        if self._before > 0:
            # This term is for the outputs with U or V below `_start`. If V is below `_start`, R_e^2/m is e^(4 tau^2 + tau V^2)
            # times the density of N(3 e, I). If U is below `_start`, R_e^2/m is at most e^(tau U^2) R_e. The bound `_before` of the
            # mass of these outputs holds under R_e and under N(3 e, I).
            log_norm = float(np.logaddexp(log_norm, math.log(2 * self._before) + tau * self._start**2))
        log_norm += 4 * tau * tau
        return 2 * math.exp(log_norm) if log_norm < LARGEST_EXPONENT else math.inf

    @cached_property
    def law(self) -> ExcessLaw:
        """The distribution of X (`ExcessLaw`) for the inputs e and -e."""
        nodes = self._nodes
        logs = self._log_masses(nodes)
        cut = max(self._beyond + self._before, math.exp(-LARGEST_EXPONENT))
        return law_at_nodes(logs, nodes, min(0.0, math.log(self._rest + cut + BLUR)), math.log(cut), BLUR)

    @property
    def _rest(self) -> float:
        """The probability 1 minus the mass of m, which is 1 - E e^(-tau s - tau^2/2) for s with a chi distribution.

        The expectation and the integral of the density of s are computed by the same rule, and divided. So the constant factor of
        the density is not needed.
        """
        # s is within 12 of sqrt(d) up to a probability below 1e-28.
        points, weights = np.polynomial.legendre.leggauss(200)
        root, power = math.sqrt(self.dimension), self.dimension - 1
        start = max(root - 12.0, 0.0)
        s = start + 0.5 * (root + 12.0 - start) * (1 + points)
        mass = weights * np.exp(0.5 * power * np.log(s * s / power) - 0.5 * (s * s - power))
        loss = (s + 0.5 / self.sigma) / self.sigma
        return float(mass @ -np.expm1(-loss) / mass.sum()) + 1e-28

    def _log_density(self, u: FloatArray, v: FloatArray) -> FloatArray:
        """Return the log of the density of m times sqrt(a b) = e^(tau s), without the factors 2 s and `_log_constant`."""
        power = self.dimension - 2
        square = 0.5 * (u * u + v * v)
        return np.asarray(self._log_power(u) + self._log_power(v) + 0.5 * (power - square * square))

    def _log_power(self, u: FloatArray) -> FloatArray:
        """Return (d - 2) log(u/c) with c^4 = d - 2. The density is largest near u = v = c, where this logarithm is small."""
        power = self.dimension - 2
        return power * np.log(u / power**0.25) if power else np.zeros_like(u)

    @property
    def _log_constant(self) -> float:
        """The log of the constant that `_log_density` omits."""
        # With x = (d - 2)/2 the constant is (x/e)^x/(sqrt(pi) Gamma(x + 1/2)). It is computed as a product with one quotient for
        # each factor of Gamma(x + 1/2).
        x = (self.dimension - 2) / 2
        factors = x / (math.e * np.arange(x - 0.5, 0.0, -1.0))
        last = math.log(x / math.e) / 2 if self.dimension % 2 else -math.log(math.pi) / 2
        return math.log(float(np.prod(factors))) + last - 0.5 * math.log(math.pi) - 0.5 / self.sigma**2

    @cached_property
    def _nodes(self) -> FloatArray:
        """The levels log a and log b of the atoms."""
        fine = np.linspace(0.0, math.sqrt(2 * self.end), 801)
        middle = 0.5 * (fine[1:] + fine[:-1])
        u, v = middle[:, None], middle[None, :]
        logs = self._log_density(u, v) - (u * u + v * v) / (2 * self.sigma)
        top = logs.max(axis=1)
        marginal = np.log(((u * u + v * v) * np.exp(logs - top[:, None])).sum(axis=1)) + top - np.log(2 * middle)
        levels = fine * fine / self.sigma
        return chosen(levels, np.append(marginal, marginal[-1]) + np.log(np.append(np.diff(levels), levels[-1] - levels[-2])))

    def _log_masses(self, nodes: FloatArray) -> FloatArray:
        """Return the log masses under m of the pairs of nodes of log a (rows) and log b (columns)."""
        points, weights = _RULE
        cells = np.sqrt(nodes * self.sigma)
        edges = self._panels(cells)
        half = 0.5 * np.diff(edges)[:, None]
        at = edges[:-1, None] + half * (1 + points)
        cell = np.clip(np.searchsorted(cells, edges[:-1], side="right") - 1, 0, nodes.size - 2)
        low, high, levels = nodes[cell, None], nodes[cell + 1, None], at * at / self.sigma
        up = log_shares(levels, low, high)
        # Masses are multiplied by sqrt(a b), and divided by it at the nodes: then they underflow neither under m nor under R_e.
        parts = np.stack([half * weights * (1 - up) * np.exp(0.5 * (low - levels)),
                          half * weights * up * np.exp(0.5 * (high - levels))], axis=1)
        flat, ends = at.ravel(), _RULE[0].size * self._last(edges)
        rows = np.full((nodes.size, flat.size), -np.inf)
        for i, count in enumerate(ends.tolist()):
            u, v = at[i, :, None], flat[None, :count]
            both = _log_sums(self._log_density(u, v), u * u + v * v, parts[i])
            rows[cell[i]:cell[i] + 2, :count] = np.logaddexp(rows[cell[i]:cell[i] + 2, :count], both)
        out = np.full((nodes.size, nodes.size), -np.inf)
        for i in range(cell.size):
            block = rows[:, i * points.size:(i + 1) * points.size].T
            out[cell[i]:cell[i] + 2] = np.logaddexp(out[cell[i]:cell[i] + 2], _log_sums(block, 1.0, parts[i]))
        return np.asarray(out.T + self._log_constant - 0.5 * (nodes[:, None] + nodes[None, :]))

    def _last(self, edges: FloatArray) -> NDArray[np.intp]:
        """Return for each panel of U the number of panels of V where some output is at most `end` long."""
        reach = np.sqrt(np.maximum(2 * self.end - edges[:-1] ** 2, 0.0))
        return np.searchsorted(edges[:-1], reach)

    def _panels(self, edges: FloatArray) -> FloatArray:
        """Return the edges of panels on which quadrature has a small error; they include the given edges from `_start` on."""
        if self._start > 0:
            edges = np.append(self._start, edges[edges > self._start])
        while (coarse := self._log_errors(edges) > _LOG_ERROR).any():
            edges = np.sort(np.append(edges, 0.5 * (edges[1:] + edges[:-1])[coarse]))
        return edges

    def _log_errors(self, edges: FloatArray) -> FloatArray:
        """Return for each panel of U the log of a bound of the relative error of quadrature over the panels of V that `_last`
        counts.

        The integrand is the density, times 1 or times the share of a mass that moves to one of the ends of its cell.
        """
        tau, power = 1 / self.sigma, self.dimension - 2
        center, width = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
        first, ratio = edges[:-1] == 0, width / center
        farthest = edges[np.minimum(self._last(edges), edges.size - 1)]
        least, largest = (tau + 0.5 * (center**2 + v**2) for v in (edges[0], farthest))
        # `slopes` has bounds of the derivative of the log of the density with respect to U. The factor 2 s is omitted and, in the
        # first panel, the power of U.
        slopes = [np.where(first, 0.0, power / center) - center * s for s in (least - 2 * tau, largest)]
        slope = width * np.maximum(np.abs(slopes[0]), np.abs(slopes[1]))

        def change(axis: FloatArray | float) -> FloatArray:
            step = 2 * center * width * axis + (width * axis) ** 2
            return np.asarray(slope * axis + 0.5 * largest * (width * axis) ** 2 + step**2 / 8)

        axis = 0.5 * (_RHO + 1 / _RHO)
        from_zero = (power + 4) * np.log((1 + axis) / 2) + math.log((power + 3) * (power + 5))
        with np.errstate(divide="ignore", invalid="ignore"):
            other = power * ((ratio * axis) ** 2 / 2 - np.log1p(-ratio) - ratio) + 2 * (np.log1p(ratio * axis) - np.log1p(-ratio))
        other += math.log(0.75) + 2 * np.log1p(axis)
        logs = change(axis) + change(1.0) + 4 * tau * center * width + np.where(first, from_zero, other)
        logs += math.log(2.01) - 2 * _RULE[0].size * np.log(_RHO) - np.log1p(-(_RHO**-2))
        return np.asarray(logs.min(axis=0))


def _log_sums(logs: FloatArray, factor: FloatArray | float, parts: FloatArray) -> FloatArray:
    """Return the logs of parts @ (factor * e^logs)."""
    top = logs.max(axis=0)
    top = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(parts @ (factor * np.exp(logs - top))) + top)
