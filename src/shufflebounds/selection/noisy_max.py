"""Log probabilities of each candidate of noisy arg-max, by quadrature of positive terms, for `selection.selection_probs`.

The mechanisms are permute-and-flip (exponential noise) and report noisy max (Laplace noise).
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from shufflebounds._base.limits import LARGEST_EXPONENT, NEGLIGIBLE, TABLE_SIZE
from shufflebounds._base.quadrature import STEEPEST, gauss_legendre, log_sums
from shufflebounds._base.types import FloatArray

__all__ = ["log_flip_and_permute", "log_noisy_max"]


_NODES, _WEIGHTS = gauss_legendre(20)
_LOG_WEIGHTS = np.log(_WEIGHTS)


def log_flip_and_permute(log_s: FloatArray, counts: FloatArray) -> FloatArray:
    r"""Return log int_0^1 prod_j (1 - s_j t)^(counts_j - [j = i]) dt for each level i of equal scores.

    Times s_i, the integral is the probability that permute-and-flip chooses a given candidate of level i. `log_s` <= 0 has log s_j
    in descending order, and `counts` the number of candidates of each level.

    Method  Gauss-Legendre on panels [a, b]. At t = a + tau in a panel the product is its value at a times
            prod_j (1 - sigma_j tau)^c_j, with sigma_j = s_j/(1 - s_j a). Let A = sum_j c_j sigma_j. With b - a = 8/A, twenty nodes
            have an error of e^12.5 4^-40 = 2e-19 of the value at a (the Bernstein ellipse of parameter 4). The product falls by a
            factor of at least e^8 from panel to panel, and the part below e^-45/k is omitted (k candidates): at most
            (45 + log k)/8 + 1 panels.
    Error   a few units of roundoff times (log k + 45), which bounds the logarithm of the product at a node.
    """
    s = np.exp(log_s)
    stop = -NEGLIGIBLE - math.log(counts.sum())
    edges = [0.0]
    while edges[-1] < 1 and float((counts * np.log1p(-s * edges[-1])).sum()) > stop:
        rate = float((counts * s / (1 - s * edges[-1])).sum())
        edges.append(min(1.0, edges[-1] + STEEPEST / rate))
    t, log_w = _panels(edges)
    out = np.full(s.size, -np.inf)
    product = np.zeros(t.size)
    for part in _row_blocks(s.size, t.size):
        product += counts[part] @ np.log1p(-np.outer(s[part], t))
    for part in _row_blocks(s.size, t.size):
        out[part] = log_sums(log_w + product - np.log1p(-np.outer(s[part], t)))
    return out


def log_noisy_max(y: FloatArray, counts: FloatArray) -> FloatArray:
    r"""Return log Pr[y_i + Laplace(1) noise is the largest] for one candidate of each level of equal scores.

    `y` has the scores of the levels in units of the noise scale, strictly descending from y[0] = 0, and `counts` the number c_j of
    candidates of each level.

    Definition  int w_i(x) prod_j F(x - y_j)^c_j dx with f and F the Laplace density and distribution function and w_i = f/F at
                x - y_i, which is 1 below y_i and 1/(2 e^(x - y_i) - 1) above.
    Method      Above the largest score, the substitution u = e^-x gives the integral of `log_flip_and_permute` at s_j/2. Below it,
                between two neighbouring scores, the logarithm of the product is analytic, and its slope A = sum_j c_j f/F decreases
                in x. Let m be the number of candidates with scores above x, and k that of all candidates. If all scores below x
                are at least 45 + log k lower, the integral is the closed form of int e^((m-1) x) or e^(m x); otherwise quadrature
                uses panels of width min(1, 8/(A + 2)). The range ends where e^-x prod F, which is log-concave and proportional to
                a bound of every integrand, is e^-(45 + log k) of its maximum.
    Error       relative error of about 1e-14 (measured in the tests), and the roundoff of the logarithm.
    """
    far = NEGLIGIBLE + math.log(counts.sum())
    levels = np.cumsum(counts)
    weighted = np.cumsum(counts * y)
    # Above the largest score, x = -log u. The product is over all candidates except one of level i.
    out = y - math.log(2) + log_flip_and_permute(y - math.log(2), counts)
    best, edge = -math.inf, 0.0
    for index in range(y.size):
        # Consider the interval between y[index + 1] and y[index]; m candidates have scores above it, and `lift` is the sum of
        # these scores.
        m, lift = float(levels[index]), float(weighted[index])
        low = float(y[index + 1]) if index + 1 < y.size else -math.inf
        height = _log_product(y, counts, np.array([edge]))[0] - edge
        best = max(best, height)
        if height < best - far and float(_slope(y, counts, edge)) > 1:
            break
        if low == -math.inf:
            # No scores are below this interval, so the integrand is prod_j e^(x - y_j)/2 for every candidate.
            out = np.logaddexp(out, m * (edge - math.log(2)) - lift - math.log(m))
            break
        flat = min(edge, low + far)
        if flat < edge:
            # The distribution functions at lower scores are 1 here, up to rounding; the product of all is e^(m x - lift)/2^m.
            head = -m * math.log(2) - lift
            out[: index + 1] = np.logaddexp(out[: index + 1], head + _log_exponential(m, flat, edge))
            tail = y[index + 1 :] - math.log(2) + head + _log_exponential(m - 1, flat, edge)
            out[index + 1 :] = np.logaddexp(out[index + 1 :], tail)
        edges = [low]
        while edges[-1] < flat:
            edges.append(min(flat, edges[-1] + min(1.0, STEEPEST / (2 + float(_slope(y, counts, edges[-1]))))))
        _add_panels(out, y, counts, *_panels(edges), index + 1)
        edge = low
    return out


def _panels(edges: list[float]) -> tuple[FloatArray, FloatArray]:
    """Return the quadrature nodes of the panels between neighbouring edges, and the logs of their weights."""
    panels = list(pairwise(edges))
    nodes = np.concatenate([a + (b - a) * _NODES for a, b in panels])
    return nodes, np.concatenate([math.log(b - a) + _LOG_WEIGHTS for a, b in panels])


def _add_panels(out: FloatArray, y: FloatArray, counts: FloatArray, x: FloatArray, log_w: FloatArray, above: int) -> None:
    """Add the logs of the integrals over the quadrature nodes x, which lie between y[above] and y[above - 1], to `out`.

    `log_w` has the logs of the quadrature weights.
    """
    base = log_w + _log_product(y, counts, x)
    out[:above] = np.logaddexp(out[:above], log_sums(base[None])[0])
    for part in _row_blocks(y.size - above, x.size):
        at = slice(part.start + above, part.stop + above)
        gap = x - y[at, None]
        out[at] = np.logaddexp(out[at], log_sums(base - gap - np.log(2 - np.exp(-gap))))


def _log_product(y: FloatArray, counts: FloatArray, x: FloatArray) -> FloatArray:
    """Return log prod_j F(x - y_j)^c_j at every x, with F the Laplace distribution function."""
    out = np.zeros(x.size)
    for part in _row_blocks(y.size, x.size):
        gap = x - y[part, None]
        with np.errstate(over="ignore"):
            out += counts[part] @ np.where(gap < 0, gap - math.log(2), np.log1p(-np.exp(-np.maximum(gap, 0)) / 2))
    return out


def _slope(y: FloatArray, counts: FloatArray, x: float) -> float:
    """Return the derivative of `_log_product` at x."""
    gap = np.maximum(x - y, 0)
    return float((counts / (2 * np.exp(np.minimum(gap, LARGEST_EXPONENT)) - 1)).sum())


def _log_exponential(m: float, a: float, b: float) -> float:
    """Return log int_a^b e^(m x) dx, m >= 0."""
    return m * b + (math.log(-math.expm1(m * (a - b)) / m) if m else math.log(b - a))


def _row_blocks(rows: int, columns: int) -> list[slice]:
    """Return slices of the rows, such that a table of the rows of one slice has at most TABLE_SIZE entries."""
    step = max(1, TABLE_SIZE // columns)
    return [slice(i, min(i + step, rows)) for i in range(0, rows, step)]
