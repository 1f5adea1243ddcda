r"""Renyi divergences of the privacy blanket of noise on an interval, for whole orders, by a sum of positive terms.

Let :math:`a = R_0/m` and :math:`b = R_1/m` at the message of one user under the measure m (`excess_law`; with the remaining
probability both are 0). Let A and B be the sums of a and of b over n independent users. The bound
:math:`\mathbb{E}(A - e^\varepsilon B)_+/n` of delta holds for (R_0, R_1) and (R_1, R_0) and for every eps. This implies the same
inequality for every f-divergence. For the Renyi divergence of order k,

.. math:: e^{(k-1) D_k} \le \frac1n\, \mathbb{E}\, A^k B^{1-k} = \frac1{n\,\Gamma(k-1)} \int_0^\infty s^{k-2} F_k(s)\, ds, \qquad
    F_k(s) = \mathbb{E}\, A^k e^{-s B} = k!\, [x^k] \Bigl(\sum_j \frac{M_j(s)}{j!} x^j\Bigr)^n,

with :math:`M_j(s) = \mathbb{E}\, a^j e^{-s b}`. R_0 and R_1 are the distributions of the messages for the two ends of the interval,
and m is the smaller of both: where R_0 is larger, m = R_1 and b = 1; elsewhere m = R_0 and a = 1. So
:math:`M_j(s) = e^{-s} T_j + \mathbb{E}[e^{-s b}; a = 1]` for j >= 1, with :math:`T_j = \mathbb{E}[a^j; a > 1]`. This :math:`T_j` is
at most the moment of one message, :math:`e^{(j-1) D_j(R_0 \| R_1)}`, even if a > 1 has a tiny probability. This is why large orders
need no values of delta.

The n-th power of the series follows from the recurrence of Euler (J. C. P. Miller), whose terms are positive for k <= n + 1. The
logarithm of F_k is convex in s, so between two nodes it is at most its chord. With the chord in place of log F_k, the logarithm of
the integrand is concave in :math:`u = \log s`, so it is at most its tangents. For s beyond the last node F_k decreases at least as
fast as e^-s, because B >= 1 where A > 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import COMPUTED_ERROR, LARGEST_EXPONENT
from shufflebounds._base.quadrature import log_sums
from shufflebounds._base.types import SLACK, ULP, FloatArray
from shufflebounds._engines.allocation.moments import LARGEST_ORDER
from shufflebounds._engines.excess.evaluation import BLUR, Effort
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._losses.renyi import mixture_tail

__all__ = ["BlanketRenyi"]

_RATIO, _PARTS = 0.125, 8
"""Distance in log s of two nodes, and number of tangents between them. The chords and tangents add about n s^2 _RATIO^2 Var(b)/8
and k (_RATIO/_PARTS)^2/24 to the log of the moment of order k. Larger distance, fewer parts: less tight bounds. Smaller distance,
more parts: longer run time."""

_FALL = 0.1
"""Largest fall of log Phi of the blanket over an interval whose part of the integral is bounded by one value of Phi. This loses
about a fraction _FALL^2/24 of the integral. Raised: less tight. Lowered: longer run time."""

_ATOMS = 200
"""Number N of atoms: for lower bounds, neighbouring atoms are merged to between N and 2 N atoms. Raised: longer run time, in
proportion. Lowered: less tight."""

_FIRST = 1e-4
"""The first node in units of 1/n. Below it the integrand is not tilted, which adds a relative _FIRST^2. Lowered: more nodes."""

_STRETCHES = 2.0 ** np.arange(1, 11)
"""Lengths of the chords beyond the largest whole order, in units of the distance from this order. More entries: tighter bounds, and
longer run time."""


class BlanketRenyi:
    """Upper bounds of the Renyi divergences of every order.

    Parameters
    ----------
    law : ExcessLaw
        X for an upper bound, for the two ends of the interval: every atom has a = 1 or b = 1, and both are at least 1.
    users : int
        Number n of users, at least 1.
    local : callable
        Returns upper bounds of the Renyi divergences of one message for the given orders. Where a > 1, the likelihood ratio of the
        two ends is a.
    """

    def __init__(self, law: ExcessLaw, users: int, local: Callable[[FloatArray], FloatArray]) -> None:
        self._local, self._law, self._users = local, law, users
        self._orders = np.arange(1.0, min(users + 1, LARGEST_ORDER) + 1)
        self._whole = np.append(0.0, _whole_orders(law, users, self._rises(self._orders), self._orders))

    def _rises(self, orders: FloatArray) -> FloatArray:
        """Return (k - 1) D_k for finite orders k >= 1, with the Renyi divergence D_k of one message."""
        return np.where(orders > 1, (orders - 1) * self._local(orders), 0.0)

    def divergences(self, orders: FloatArray) -> FloatArray:
        """Return the bounds for the orders, at least 1."""
        # (k - 1) D_k is convex in the order k, and 0 at k = 1, so between two orders it is at most its chord. Above the largest
        # integer order that is evaluated, the chord ends at a larger order, with the value of (k - 1) D_k for one message.
        last = self._orders[-1]
        bound = self._local(orders)
        rises = np.interp(orders, self._orders, (self._orders - 1) * self._whole)
        inside, outside = (orders > 1) & (orders <= last), (orders > last) & (orders < math.inf)
        bound[inside] = np.minimum(bound[inside], rises[inside] / (orders[inside] - 1) * (1 + SLACK))
        # The log of the Mellin transform of the hockey-stick divergences, (e^((k-1) D_k) - 1)/(k (k-1)), is convex in k, too. It
        # also gives a bound.
        with np.errstate(all="ignore"):
            whole, above = self._orders[1:], inside & (orders >= 2)
            logs = np.log(np.expm1((whole - 1) * self._whole[1:]) / (whole * (whole - 1)))
            grown = np.log1p(orders * (orders - 1) * np.exp(np.interp(orders, whole, logs))) / (orders - 1)
        bound[above] = np.fmin(bound[above], (grown * (1 + COMPUTED_ERROR))[above])
        # D_1 has no such chord: it is at most D_2.
        bound[orders == 1] = np.minimum(bound[orders == 1], self._whole[1])
        for stretch in _STRETCHES:
            ends = last + stretch * (orders[outside] - last)
            chord = rises[outside] + (self._rises(ends) - rises[outside]) / stretch
            bound[outside] = np.minimum(bound[outside], chord / (orders[outside] - 1) * (1 + SLACK))
        return bound

    def tail(self, power: float, start: float) -> float:
        """Return an upper bound of the log of the integral of e^(power t) delta(t) over t > start (`mixture_tail`)."""
        return mixture_tail(power, start, self._orders[1:], self._whole[1:], 1.0)

    @cached_property
    def _merged(self) -> ExcessLaw:
        """A distribution of X for a lower bound at every eps: neighbouring atoms are merged to one atom with their mean a and b."""
        order = np.argsort(self._law.log_a - self._law.log_b)
        mass, log_a, log_b = self._law.log_mass, self._law.log_a, self._law.log_b
        mass, a, b = np.exp([mass, mass + log_a, mass + log_b])[:, order]
        mass, a, b = np.add.reduceat([mass, a, b], np.arange(0, order.size, max(1, order.size // _ATOMS)), axis=1)
        return ExcessLaw.of(a, b, mass, math.exp(self._law.log_rest)).widened(upper=False, error=COMPUTED_ERROR)

    def level(self, order: float, eps: float) -> float:
        """Return a lower bound of log Phi of the atoms at eps, or -inf if :meth:`log_rest` is not valid for this order and eps."""
        if order not in self._orders[1:] or max((order - 1) * self._whole[int(order) - 1], order * eps) > LARGEST_EXPONENT / 2:
            return -math.inf
        return self._merged.log_phi_side(eps, self._users, upper=False, effort=Effort.SAMPLED)

    def log_rest(self, order: int, start: float) -> float:
        r"""Return an upper bound of the log of the integral of :math:`w \Phi` over t > start.

        Here :math:`\Phi(t)` is the bound of delta at eps = t. The result is the whole integral, which follows from a moment, minus
        a lower bound of its part up to `start` > 0; :meth:`level` must be finite there. With the same :math:`\Phi` for (R_0, R_1)
        and (R_1, R_0), the moment of order k >= 2 is

        .. math:: \frac1n\, \mathbb{E}\, A^k B^{1-k} = 1 + k (k - 1) \int_0^\infty w(t)\, \Phi(t)\, dt, \qquad
            w(t) = e^{(k-1)t} + e^{-kt}.

        :math:`\Phi` is convex in e^t, so its mean over an interval, with the weights w, is at least its value at the mean of e^t.
        The moment and :math:`\Phi` must belong to the same distribution, that of the atoms. (The messages from which the atoms were
        made have a smaller moment and a smaller :math:`\Phi`.)
        """
        bound = _whole_orders(self._law, self._users, self._rises(self._orders), self._orders[:order], _RATIO / 4, capped=False)[-1]
        # The formula for the moment needs E A = E B = n; the added term covers the rounding of these two means.
        whole = (math.expm1((order - 1) * bound) + 2 * order * COMPUTED_ERROR) / (order * (order - 1))
        parts = 1 + math.ceil((self.level(order, 0.0) - self.level(order, start)) / _FALL)
        ends, step = np.linspace(0.0, start, parts, endpoint=False, retstep=True)
        # The integrals of w and of w e^t over each interval.
        weights, first = (np.exp(rise * ends) * np.expm1(rise * step) / rise - np.exp(-fall * ends) * np.expm1(-fall * step) / fall
                          for rise, fall in ((order - 1, order), (order, order - 1)))
        # Truncated outputs change Phi(t) by at most (1 + e^t) times their masses under R_0 and R_1. Because masses, a and b are
        # rounded, Phi of (R_0, R_1) differs from Phi of (R_1, R_0).
        lost = 2 * math.exp(float(np.logaddexp.reduce(self._law.log_cut))) + 4 * BLUR
        for weight, mean in zip(weights.tolist(), (first / weights).tolist()):
            value = math.exp(self.level(order, math.log(mean) + COMPUTED_ERROR)) - (1 + mean) * lost
            whole -= weight * (1 - COMPUTED_ERROR) * max(value, 0.0)
        return math.log(whole) if whole > 0 else -math.inf


def _whole_orders(law: ExcessLaw, users: int, whole: FloatArray, orders: FloatArray, ratio: float = _RATIO, *,
                  capped: bool = True) -> FloatArray:
    """Return bounds of D_2, D_3, ... of all messages; `orders` is 1, 2, 3, ..., and `whole` has (k - 1) D_k of one message.

    The moments T_j (module docstring) are bounded by those of the atoms and by those of one message. Without `capped`, only the
    moments of the atoms are used.
    """
    right = law.log_a > 0
    assert not law.log_b[right].any()
    assert not law.log_a[~right].any()
    # T_j (module docstring) is the sum over the atoms plus E[a^j; a > A], the part of the messages beyond the largest ratio A of an
    # atom. By Markov's inequality this part is at most A^(j-k) E a^k for every k >= j.
    farthest = float(law.log_a.max()) - COMPUTED_ERROR
    powers = np.arange(1.0, whole.size + 1)
    beyond = (powers * farthest + np.minimum.accumulate((whole - powers * farthest)[::-1])[::-1])[: orders.size]
    cut = float(np.logaddexp.reduce(law.log_cut))
    beyond[0] = min(beyond[0], cut)
    beyond = beyond if cut > -math.inf else np.full(orders.size, -math.inf)
    atoms = np.logaddexp.reduce(law.log_mass[right] + orders[:, None] * law.log_a[right], axis=1)
    # The truncated messages with a = 1 have at most the mass e^cut.
    moments = np.logaddexp(atoms, beyond)
    most = np.logaddexp(np.minimum(moments, whole) if capped else moments, cut)
    log_factorial = np.cumsum(np.log(orders))
    # `s` has the nodes. For each node, `series` has the logs of the coefficients of the series in x, divided by the coefficient of
    # order 0.
    last = 2.0 * LARGEST_ORDER + 50
    s = np.append(0.0, np.exp(np.arange(math.log(_FIRST / users), math.log(last) + ratio, ratio)))
    log_tilted = law.log_mass[:, None] - s * np.exp(np.minimum(law.log_b, LARGEST_EXPONENT))[:, None]
    less = np.exp(law.log_mass) @ np.expm1(log_tilted - law.log_mass[:, None])
    log_first = np.logaddexp(np.logaddexp.reduce(log_tilted), law.log_rest) + COMPUTED_ERROR
    log_first = np.where(less > -0.5, np.log1p(np.maximum(less, -0.5) * (1 - COMPUTED_ERROR)), log_first)
    series = np.logaddexp(most[:, None] - s, np.logaddexp.reduce(log_tilted[~right])) - log_factorial[:, None] - log_first
    power = np.zeros((orders.size + 1, s.size))
    for place, order in enumerate(orders.tolist(), 1):
        with np.errstate(divide="ignore"):
            rates = np.log((orders[:place] * (users + 1) - order) / order)
        power[place] = log_sums((rates[:, None] + series[:place] + power[place - 1::-1]).T)
    # `log_f` has an error for each of up to k factors of a term: the error of a moment, and rounding errors of logarithms below
    # `size`.
    size = float(np.abs(power).max() + np.abs(series).max() + np.abs(most).max()) + users * float(-log_first[-1]) + last
    log_f = power[2:] + users * log_first + log_factorial[1:, None] + orders[1:, None] * (2 * COMPUTED_ERROR + 8 * ULP * size)
    # The integral over every interval between two nodes, beginning with s = 0.
    powers = orders[1:, None] - 1
    fall = -np.diff(log_f) / np.diff(s)
    log_s = np.log(s[1:])
    middle = np.add.outer(log_s[:-1], ratio / _PARTS * (np.arange(_PARTS) + 0.5)).ravel()
    start, slope = (np.repeat(part, _PARTS, axis=-1) for part in (log_f[:, 1:-1] + fall[:, 1:] * s[1:-1], fall[:, 1:]))
    steep = np.abs(powers - slope * np.exp(middle)) * (0.5 * ratio / _PARTS)
    with np.errstate(divide="ignore", invalid="ignore"):
        grown = np.where(steep > 1e-4, steep + np.log(-np.expm1(-2 * steep) / (2 * steep)), steep**2 / 6)
    parts = [
        log_f[:, :1] + powers * log_s[0] - np.log(powers),
        start - slope * np.exp(middle) + powers * middle + grown + math.log(ratio / _PARTS),
        log_f[:, -1:] + (powers - 1) * log_s[-1] - np.log1p(-(powers - 1) / s[-1]),
    ]
    log_gamma = np.append(0.0, log_factorial[:-2])
    total = log_sums(np.concatenate(parts, axis=1)) - log_gamma - math.log(users)
    return np.asarray((total + 16 * ULP * (size + log_gamma)) / powers[:, 0])
