r"""Bounds of Phi_n = (1/n) E(X_1 + ... + X_n)_+ for independent copies of a variable of finitely many values.

Let R_x be the output distribution of input x, and X = (R_0 - e^eps R_1)/m. If the measure m is at most every R_x, Phi_n is the
privacy blanket's upper bound of delta for every dataset. If all other users have one input x and m = R_x, Phi_n is delta of this
dataset, a lower bound of the largest delta.

Theorem. Let S = X_1 + ... + X_n, H(s) = E(s + eta Z)_+ for a standard normal Z, phi(z) = E e^(zX), z_j = theta + i j D, y = 2 pi/D.
For all theta, D, eta > 0, Poisson's summation formula gives

.. math:: T = \frac{D}{2\pi} \sum_j \phi(z_j)^n e^{\eta^2 z_j^2/2}/z_j^2 = \sum_j e^{-j\theta y}\, \mathbb{E} H(S + jy).

The transform of H is e^(eta^2 z^2/2)/z^2. All terms on the right are nonnegative, H(s) >= s_+, and H(0) = eta/sqrt(2 pi). So
T - eta/sqrt(2 pi) P(X_1 = ... = X_n = 0) >= E S_+. Three bounds limit the difference of T and E S_+:

- for j = 0, H(s) - s_+ <= eta/sqrt(2 pi) e^(-s^2/(2 eta^2)); the expectation of this at s = S is at most (eta^2 D/(2 pi)) sum_j
  phi(z_j)^n e^(eta^2 z_j^2/2), by the same formula for a normal density;
- for j > 0, H(s) <= |s| + eta and E|S| <= n E|X|;
- for j < 0, H(s) <= e^(ts + t^2 eta^2/2 - 1)/t for every t > theta.

T minus these three bounds is at most E S_+. In the sums over nodes, |phi(z_j)| <= phi(theta) bounds all terms beyond the last node.

The witness is (theta, t, D, eta, the number of nodes); :func:`contour` refuses one for which the theorem does not hold. If S has
few values, :func:`enumerated` sums over them instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from shufflebounds._base.validate import InfeasibleError
from shufflebounds._engines.witnesses import Witness, witness
from shufflebounds.certify.balls import Answer, Ball, Outputs, acb, arb, flint, pi
from shufflebounds.certify.by_definition import drawn, multisets, powers

TOLERANCE = 3e-5
"""Allowed distance of the ball from the stated bound in log delta. The second certificate reached 1e-5 for 1e5 users, the first
one for upper bounds. For 1e9 users, the lower end is farther from the stated bound."""

FEW_DIGITS, DIGITS = 6.0, 7.0
"""Digits of the smoothing term, for a first and a second certificate. Raised by 2: ten times more nodes. Lowered: a wider ball."""

PRECISION = 128
"""Bits of precision of the balls; the sums over nodes lose fewer than 40 of them."""

BLOCK = 256
"""Number of nodes that are evaluated together. Raised or lowered: more exponentials are computed."""

NEGLIGIBLE = 60
"""Terms below e^-NEGLIGIBLE of that of the node 0 are bounded by this number. Raised: more powers are computed."""

NODES = 600_000
"""Resource limit: largest number of nodes, 1 to 8 s for up to nine outputs. Raised: longer calls. Lowered: fewer certificates."""


def values_of(outputs: Outputs, factor: Ball) -> tuple[Ball, list[tuple[Ball, Ball]]]:
    """Return the contribution of outputs with m = 0, which reveal the target's message, and (X, m) of all others.

    Where m may be 0 or not, X is taken as 0, so the caller has this m in the probability of X = 0. By
    (s + x)_+ <= s_+ + x_+ and (s + x)_+ >= s_+ - x_- this changes Phi_n by at most R_0 - E R_1, which is added to the first ball.
    """
    revealed = [(a - factor * b, m) for a, b, m in outputs if not m > 0]
    alone = sum((excess.max(arb(0)) if m == 0 else excess.union(arb(0)) for excess, m in revealed), arb(0))
    return alone, [((a - factor * b) / m, m) for a, b, m in outputs if m > 0]


def phi_answers(kinds: int, users: int, value: Callable[..., Ball], times: int = 1, distance: float = 1e-9,
                digits: Sequence[float] = (FEW_DIGITS, DIGITS)) -> tuple[Answer, ...]:
    """Return how `value`, which contains Phi_n `times` times, is computed: by `phi=enumerated`, and then by `phi=contour`.

    `distance` is the allowed distance from the stated bound if Phi_n is exact.
    """
    # Five operations for each multiset of the outputs of all users, of one of the kinds or of the kind with X = 0, and those for
    # a typical number of nodes.
    return (Answer(5.0 * times * multisets(kinds + 1, users), partial(value, phi=enumerated), distance),
            *(Answer(times * 250 * 10 ** (one / 2) * (3 + kinds / 4), partial(value, phi=partial(contour, digits=one)),
                     max(distance, TOLERANCE), refined=False) for one in digits))


def contour(law: Sequence[tuple[Ball, Ball]], users: int, rest: Ball, given: Witness | None = None, digits: float = DIGITS,
            size: float | None = None) -> Ball:
    """Return a ball that contains Phi_n; `law` has the values of X with their probabilities, and `rest` is that of X = 0."""
    flint().ctx.prec = PRECISION
    above = sum((p * x.max(arb(0)) for x, p in law), arb(0))
    if not any(x > 0 for x, _ in law):
        # E(X_1 + ... + X_n)_+ <= n E X_+, which is 0 or so small that the sign of X is not known.
        return above.union(arb(0))
    try:
        given = given or witness(law, users, digits, size)
    except (ValueError, OverflowError):
        raise ArithmeticError("no witness was found: the values of X are too large") from None
    (theta, t, y, eta), last = map(arb, given[:4]), given.last
    if not (theta > 0 and t > theta and y > 0 and eta > 0 and last >= 1 and (rest >= 0 or rest.contains(0))):
        raise ArithmeticError(f"{given} is not a witness of this theorem")
    if last > NODES:
        raise InfeasibleError(f"the sum has {last} nodes: at most {NODES} are tried")
    step, half = 2 * pi() / y, eta * eta / 2
    mass = rest + sum((p for _, p in law), arb(0))

    def moment(at: Ball) -> Ball:
        return (mass + sum((p * (at * x).expm1() for x, p in law), arb(0))) ** users

    here, turned = moment(theta), eta * eta * theta / users
    # For z = theta + it, e^(eta^2 z^2/2) is a real number times e^(i eta^2 theta t), which is divided over the n factors phi(z).
    rows = [(rest, step * turned), *((p * (theta * x).exp(), step * (x + turned)) for x, p in law)]
    near = flint().acb_mat(len(rows), BLOCK, [acb(0, i * turn).exp() for _, turn in rows for i in range(BLOCK)])
    least = sum((p for p, _ in rows), arb(0)) * (-arb(NEGLIGIBLE) / users).exp()
    total, smooth, last = here / (theta * theta), here, last // BLOCK * BLOCK + BLOCK - 1
    for first in range(0, last, BLOCK):
        # Repeated multiplication by e^(iDx) would lose half a bit each time, so e^(ijDx) is a product of two exponentials.
        far = flint().acb_mat(1, len(rows), [p * acb(0, first * turn).exp() for p, turn in rows])
        for j, phi in enumerate((far * near).entries(), first):
            if j and not abs(phi) < least:
                z = acb(theta, j * step)
                term = phi**users * (-half * z.imag * z.imag).exp()
                total += 2 * (term / (z * z)).real
                smooth += 2 * term.real
    bound, left = here * (-half * ((last + 1) * step) ** 2).exp(), 2 * last * here * (-arb(NEGLIGIBLE)).exp()
    tail = (2 * bound / (step * step * last) + left / (theta * theta)).upper()
    later = (2 * bound / (1 - (-half * step * step * (2 * last + 3)).exp()) + left).upper()
    scale = step / (2 * pi()) * (half * theta * theta).exp()
    gap = eta * eta * scale * (smooth + later)
    d = (-theta * y).exp()
    spread = users * sum((p * abs(x) for x, p in law), arb(0)) * mass ** (users - 1) + eta * mass**users
    ahead = d / (1 - d) * (spread + mass**users * y / (1 - d))
    behind = moment(t) * (t * t * half).exp() / (t * arb(1).exp()) / ((t - theta) * y).expm1()
    upper, lower = scale * (total + tail) - eta / (2 * pi()).sqrt() * rest**users, scale * (total - tail) - gap - ahead - behind
    return (lower.lower().max(arb(0)) / users).union(upper.upper() / users)


def enumerated(law: Sequence[tuple[Ball, Ball]], users: int, rest: Ball) -> Ball:
    """Return Phi_n as the sum over all multisets of values."""
    # A ball of 0 and other numbers is neither equal nor unequal to 0.
    kinds = law if rest == 0 else [*law, (arb(0), rest)]
    tables = [[(c * x, weight) for c, weight in enumerate(powers(m, users))] for x, m in kinds]
    sums = drawn(tables, users, lambda one, other: (one[0] + other[0], one[1] * other[1]), (arb(0), arb(1)))
    return math.factorial(users) * sum((weight * x.max(arb(0)) for x, weight in sums), arb(0)) / users
