"""Piecewise linear trade-off functions; a breakpoint is stored as log alpha, log(1 - alpha), log beta and log(1 - beta)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property, uncached
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _tradeoff
from shufflebounds.tradeoff.representation import Representation, log1mexp, log_quantile, upward

__all__ = ["Piecewise", "ordered", "prune"]


@dataclass(frozen=True, eq=False, repr=False)
class Piecewise(Representation):
    """A piecewise linear trade-off function, given by its breakpoints in the order of alpha.

    The array `points` has the rows log alpha, log(1 - alpha), log beta and log(1 - beta), from alpha = 0 to beta = 0. The last row
    begins with the log mass of Q where P is 0; the second row ends with the log mass of P where Q is 0. If the curve is known to be
    convex, the pair `atoms` has the logarithms of the widths and of the heights of the segments; otherwise it is None. For `side`
    see `Representation`.
    """

    points: FloatArray
    atoms: tuple[FloatArray, FloatArray] | None
    label: str = ""
    side: int = 0

    def __post_init__(self) -> None:
        for array in (self.points, *(self.atoms or ())):
            array.setflags(write=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Piecewise) and np.array_equal(self.points, other.points)

    def __hash__(self) -> int:
        return hash(self.points.tobytes())

    def __repr__(self) -> str:
        return self.label or f"<{self.points.shape[1]} breakpoints>"

    @classmethod
    def of(cls, log_p: FloatArray, log_q: FloatArray, label: str = "") -> Piecewise:
        """Return the curve T(P, Q) of two checked lists of log probabilities, each of which may sum to less than 1."""
        atoms, lost_p, lost_q = ordered(log_p, log_q)
        knots = _tradeoff.tradeoff_knots(*atoms, lost_p, lost_q)
        return cls(np.minimum(knots, 0.0, out=knots), atoms, label)

    @classmethod
    def through(cls, log_alpha: FloatArray, log_beta: FloatArray) -> Piecewise:
        """Return the curve through checked points.

        The curve is constant to the left of the first point and 0 to the right of the last point.
        """
        if log_alpha[0] > -np.inf:
            log_alpha, log_beta = np.append(-np.inf, log_alpha), np.append(log_beta[0], log_beta)
        if log_beta[-1] > -np.inf:
            log_alpha, log_beta = np.append(log_alpha, log_alpha[-1]), np.append(log_beta, -np.inf)
        return cls(np.array([log_alpha, log1mexp(log_alpha), log_beta, log1mexp(log_beta)]), None)

    __getstate__ = uncached

    def knots(self) -> tuple[FloatArray, FloatArray]:
        return self.points[0], self.points[2]

    def log_beta(self, x: FloatArray) -> FloatArray:
        out = np.empty_like(x)
        if self.side:
            # The caller may have rounded alpha to e^x, so alpha is moved by more than this rounding error.
            x = np.where(x > -np.inf, x * (1 + self.side * 4 * ULP), x)
        high = x > -math.log(2)
        for chart, at in ((False, ~high), (True, high)):
            if at.any():
                out[at] = self._interpolate(x[at], chart)
        return out

    def _interpolate(self, x: FloatArray, by_rest: bool) -> FloatArray:
        """Return log beta at log alpha = x.

        The interpolation uses alpha or, if `by_rest` is true, 1 - alpha (for alpha > 1/2).
        """
        log_beta = self.points[2]
        size = log_beta.size
        if by_rest:
            x, grid = log1mexp(x), self.points[1]
            x = np.minimum(x + self.side * ULP * (4 + 4 * np.abs(np.maximum(x, -1e300))), 0.0)
            # The grid is in decreasing order, so the last breakpoint with grid >= x is found by a search in the reversed grid.
            left = size - 1 - np.searchsorted(grid[::-1], x, side="left")
        else:
            grid = self.points[0]
            left = np.searchsorted(grid, x, side="right") - 1
        left = np.maximum(left, 0)
        right = np.minimum(left + 1, size - 1)
        on_first, beyond = np.zeros(x.shape, bool) if by_rest else x == -np.inf, left == right
        inside = ~(on_first | beyond)
        out = np.where(on_first, log_beta[left], -np.inf)
        x, left, right = x[inside], left[inside], right[inside]
        # The weights are the distances of alpha (or 1 - alpha) from both breakpoints, relative to the larger one of the two.
        # Dividing them by `whole` makes their sum 1.
        first, last = grid[left], grid[right]
        if by_rest:
            to_right, from_left = np.exp(x - first) * -np.expm1(last - x), -np.expm1(np.minimum(x - first, 0.0))
        else:
            to_right, from_left = -np.expm1(x - last), np.exp(x - last) * -np.expm1(first - x)
        with np.errstate(divide="ignore"):
            to_right, from_left, whole = np.log(to_right), np.log(from_left), np.log(to_right + from_left)
        value = np.logaddexp(to_right + log_beta[left], from_left + log_beta[right]) - whole
        # Each weight has a relative error of a few ulp, and the logarithms are rounded to an ulp of their size.
        value += self.side * ULP * (32 + 8 * np.abs(np.maximum(value, -1e300)))
        # For beta > 1/2, 1 - beta is interpolated, which avoids cancellation.
        rest = self.points[3]
        near = rest[right] < -math.log(2)
        r = np.logaddexp(to_right[near] + rest[left[near]], from_left[near] + rest[right[near]]) - whole[near]
        r -= self.side * ULP * (32 + 8 * np.abs(np.maximum(r, -1e300)))
        value[near] = log1mexp(np.minimum(r, rest[right[near]])) * (1 - self.side * 4 * ULP)
        # Rounding may move the value outside of the segment by an ulp, so it is clipped to the segment.
        out[inside] = np.clip(value, log_beta[right], log_beta[left])
        return out

    @cached_property
    def hull(self) -> Piecewise:
        if self.atoms is not None:
            return self
        return prune(self.points, self.side)

    def log_delta(self, eps: FloatArray) -> FloatArray:
        hull = self.hull
        assert hull.atoms is not None
        log_p, log_q = hull.atoms
        if self.side:
            # delta of a lower curve is rounded up, that of an upper curve down.
            error = self.side * ULP * (16 + 4 * (np.abs(log_p) + np.abs(log_q)))
            log_p, log_q = log_p + error, log_q - error
            order = np.argsort(log_p - log_q, kind="stable")
            log_p, log_q = log_p[order], log_q[order]
        order = np.argsort(-eps)
        out = np.empty_like(eps)
        out[order] = _tradeoff.log_hockey_stick(log_q, log_p, eps[order])
        out = np.logaddexp(out, hull.points[3, 0])
        out -= self.side * ULP * (32 + 8 * np.abs(np.maximum(out, -1e300)))
        return np.asarray(np.minimum(out, 0.0))

    def epsilon(self, delta: FloatArray) -> FloatArray:
        hull = self.hull
        assert hull.atoms is not None
        log_p, log_q = hull.atoms
        loss = log_q - log_p
        # delta(eps) has vertices at the positive losses and at eps = 0.
        loss = np.append(loss[loss > 0], 0.0)
        height = self.log_delta(loss)
        steep = hull.points[0, : loss.size]
        with np.errstate(divide="ignore"):
            log_delta = np.log(delta)
        return np.array([self._solve(d, loss, height, steep) for d in log_delta.tolist()])

    def _solve(self, log_delta: float, loss: FloatArray, height: FloatArray, steep: FloatArray) -> float:
        """Return the eps >= 0 with delta(eps) = e^log_delta, rounded up.

        `loss` holds the eps of the breakpoints of delta(eps) in decreasing order, `height` has log delta at these eps, and `steep`
        has the log masses under P of all larger losses.
        """
        if log_delta == 0 or height[-1] <= log_delta:
            return 0.0
        target = log_delta * (1 + 4 * ULP) - 32 * ULP
        k = int(np.searchsorted(height, target, side="right"))
        if k == height.size:
            return upward(self, 0.0, log_delta)
        if k == 0:
            never = steep[0] == -np.inf and self.hull.points[3, 0] > log_delta  # the limit of log delta for large eps
            return math.inf if never else upward(self, float(loss[0]), log_delta)
        # Between loss_k and loss_(k-1), delta(eps) = e^height_k - e^steep_k (e^eps - e^loss_k). This equation is solved for eps.
        rise = height[k] + math.log(-math.expm1(target - height[k])) - steep[k] if target > -math.inf else height[k] - steep[k]
        eps = min(float(np.logaddexp(loss[k], rise)), float(loss[k - 1]))
        return upward(self, eps * (1 + 4 * ULP), log_delta)

    def gdp_mu(self) -> float:
        alpha, alpha_rest, beta, beta_rest = self.points
        # Several breakpoints may have alpha = 0 or beta = 0.
        if max(beta_rest[alpha == -np.inf].max(), alpha_rest[beta == -np.inf].max()) > -np.inf:
            return math.inf
        inside = (alpha > -np.inf) & (beta > -np.inf)
        if not inside.any():
            return 0.0
        z = log_quantile(alpha[inside], alpha_rest[inside]), log_quantile(beta[inside], beta_rest[inside])
        mu = -(z[0] + z[1])
        best = int(np.argmax(mu))
        loss_error = 4 * ULP * (2 + abs(z[0][best]) + abs(z[1][best]))
        return max(0.0, float(mu[best] + loss_error))

    def inverse(self) -> Piecewise:
        points = self.points[[2, 3, 0, 1], ::-1].copy()
        atoms = (self.atoms[1][::-1].copy(), self.atoms[0][::-1].copy()) if self.atoms is not None else None
        return Piecewise(points, atoms, self.label, self.side)

    def symmetrized(self) -> Piecewise:
        points = np.concatenate([self.points, self.inverse().points], axis=1)
        return prune(points[:, np.lexsort((points[2], -points[1], points[0]))], self.side)

    def convex_hull(self) -> Piecewise:
        return self.hull


def prune(points: FloatArray, side: int = 0) -> Piecewise:
    """Return the lower convex hull of points in the order of alpha."""
    points = np.ascontiguousarray(points)
    kept, across, down = _tradeoff.lower_hull(*points)
    if across.size and across[0] == -np.inf:
        # The curve has a vertical segment at alpha = 0, which has no finite slope and is omitted.
        kept, across, down = kept[1:], across[1:], down[1:]
    return Piecewise(points[:, kept], (across, down), side=side)


def ordered(log_p: FloatArray, log_q: FloatArray) -> tuple[tuple[FloatArray, FloatArray], float, float]:
    """Return the outcomes that are possible under P and Q in the order of decreasing Q/P, and two log masses of the others.

    These are the log mass under P of the outcomes that Q cannot produce, and the log mass under Q of the outcomes that P cannot
    produce.
    """
    shared = (log_p > -np.inf) & (log_q > -np.inf)
    whole = bool(shared.all())
    room = np.empty(log_p.shape)
    lost_p, lost_q = (_left_out(law, None if whole else ~shared, room) for law in (log_p, log_q))
    if not whole:
        log_p, log_q = log_p[shared], log_q[shared]
    # The arrays are copied, because the caller may change them later.
    atoms = (np.array(log_p, order="C"), np.array(log_q, order="C"))
    order = _tradeoff.ratio_order(*atoms)
    if order == -1:
        atoms = (atoms[0][::-1].copy(), atoms[1][::-1].copy())
    elif order == 0:
        place = _tradeoff.ratio_argsort(*atoms)
        atoms = (atoms[0][place], atoms[1][place])
    return atoms, lost_p, lost_q


def _left_out(law: FloatArray, dropped: NDArray[np.bool_] | None, room: FloatArray) -> float:
    """Return the log of the mass that a list of probabilities lacks, plus the mass of its dropped outcomes.

    A missing mass of the size of rounding errors counts as 0. `room`, an array of the size of the list, is overwritten.
    """
    missing = 1 - float(np.exp(law, out=room).sum())
    rest = math.log(missing) if missing > 1e-15 * law.size else -math.inf
    if dropped is None:
        return rest
    return float(np.logaddexp.reduce(np.append(law[dropped], rest)))
