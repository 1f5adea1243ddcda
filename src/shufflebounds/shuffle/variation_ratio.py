"""Privacy profile of all shuffled randomizers with given variation-ratio parameters p, beta and q."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._engines.excess.laws import ExcessLaw
from shufflebounds._engines.excess.packed import epsilons, packed
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds.profile import PrivacyProfile

__all__ = ["VariationRatio", "variation_ratio_law"]


def variation_ratio_law(p: float, beta: float, q: float, *, upper: bool = True) -> ExcessLaw:
    """Return the distribution of X that dominates that of every randomizer with these three parameters.

    Parameters
    ----------
    p, beta, q : float
        Largest ratio of the target's two output distributions, > 1; their total variation distance, at most (p-1)/(p+1); and the
        largest ratio of either to the output distribution of any input, >= 1 + beta.
    upper : bool
        Round the distribution for an upper bound; otherwise for a lower bound.

    Returns
    -------
    ExcessLaw
        Three atoms and the mass at X = 0, moved by more than their rounding errors.
    """
    ratio, distance = Fraction(p), Fraction(beta)
    share = distance / (ratio - 1)
    # The last two masses are differences that may cancel, so they are formed exactly.
    parts = ratio * share, 1 - (ratio + 1) * share, Fraction(q) - 1 - distance
    low = math.log(q) - math.log(p)
    with np.errstate(divide="ignore"):
        top, common, rest = np.log([max(float(part), 0.0) for part in parts]) - math.log(q)
    log_a, log_b = np.array([math.log(q), low, math.log(q)]), np.array([low, math.log(q), math.log(q)])
    return ExcessLaw(np.array([top, top, common]), log_a, log_b, rest).widened(upper=upper)


@dataclass(frozen=True)
class VariationRatio(PrivacyProfile):
    r"""Upper bound for all shuffled randomizers with three given parameters p, beta and q.

    .. math:: p = \sup \frac{R_0}{R_1}, \qquad \beta = \mathrm{TV}(R_0, R_1), \qquad q = \sup_x \frac{\max(R_0, R_1)}{R_x}

    :math:`R_0, R_1` are the output distributions of the target's two inputs, and :math:`R_x` that of input x of another user. The
    bound is :math:`\Phi_n(X) = \frac1n \mathbb{E}(X_1 + \cdots + X_n)_+` for independent copies of X, as in :class:`Shuffled`. X
    has the values :math:`q(p - e^\varepsilon)/p` and :math:`q(1 - p e^\varepsilon)/p` of mass :math:`p\alpha/q` each, :math:`\alpha
    = \beta/(p-1)`, :math:`q(1 - e^\varepsilon)` of mass :math:`(1 - (p+1)\alpha)/q`, and 0 with the rest of the mass.

    Parameters
    ----------
    users : int
        Number n of users, 1 to 2**53, including the target.
    p : float
        Largest ratio of the target's two output distributions, in either order; > 1. A larger p is permitted, too: the
        bound is then less tight. The same holds for beta and q.
    beta : float
        Total variation distance of these distributions, in (0, (p-1)/(p+1)].
    q : float
        Largest ratio of either distribution to the output distribution of another user's input, >= 1 + beta.

    Notes
    -----
    Proof: at outputs with :math:`R_0 \ge R_1` the pair is :math:`\lambda (p, 1) + \mu (1, 1)`, :math:`\lambda = (R_0 - R_1)/(p-1)`,
    :math:`\mu = (p R_1 - R_0)/(p-1)`, and max(R_0, R_1)/q is linear in :math:`\lambda` and :math:`\mu`. So X above is a
    mean-preserving spread of the X of the privacy blanket, and a larger beta spreads it further. This corrects the published bound,
    which is too small for some randomizers with three kinds of outputs. The value of the formula lies between the lower
    and the upper bound. A randomizer with four outputs attains it: the output probabilities are :math:`(p\alpha, \alpha,
    1-(p+1)\alpha, 0)` for the input 0 of the target, :math:`(\alpha, p\alpha, 1-(p+1)\alpha, 0)` for the input 1, and
    :math:`(p\alpha, p\alpha, 1-(p+1)\alpha, q-1-\beta)/q` for the input of all other users. So both bounds of a composition are
    those of the composition of this pair.

    References
    ----------
    Wang, S. et al. Privacy amplification via shuffling: unified, simplified, and tightened. VLDB 2024 (the three parameters; the
    bound published there is not valid).

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> e = 2.718281828459045
    >>> bound = shuffle.VariationRatio(users=10**4, p=e, beta=0.2, q=e)
    >>> print(f"{bound.epsilon(1e-6):.5f}")
    0.02752
    """

    users: int
    p: float
    beta: float
    q: float

    theorem: ClassVar[str] = (
        "upper bound, proven for every randomizer with these three parameters (mean-preserving spread of the privacy blanket)"
    )
    neighbours: ClassVar[str] = "replace one user's input; the analyst sees the shuffled messages"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "users", 1)
        p = _validate.real("p", self.p, 1, 1e300, open_low=True)
        object.__setattr__(self, "p", p)
        most = (p - 1) / (p + 1)
        _validate.real_field(self, "beta", 0, most * (1 + 4 * ULP), open_low=True)
        # max(R_0, R_1) has the total mass 1 + beta and R_x has mass 1, so q >= 1 + beta. Rounding q up only weakens the bound.
        q = _validate.real("q", self.q, (1 + self.beta) * (1 - 4 * ULP), 1e300)
        while math.fsum([q, -1.0, -self.beta]) < 0:
            q = math.nextafter(q, math.inf)
        object.__setattr__(self, "q", q)

    @cached_property
    def _laws(self) -> tuple[ExcessLaw, ...]:
        return tuple(variation_ratio_law(self.p, self.beta, self.q, upper=upper) for upper in (False, True))

    def _log_side(self, eps: FloatArray, *, upper: bool) -> FloatArray:
        inside, out = eps < self._pure_epsilon(), np.full(eps.size, -np.inf)
        out[inside] = np.minimum(self._laws[upper].log_phi(eps[inside], self.users)[upper], 0.0)
        return out

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        return IntervalArray(self._log_side(eps, upper=False), self._log_side(eps, upper=True))

    def _epsilon(self, delta: float, upper: bool) -> float:
        law = self._laws[upper]
        if law.expensive:
            return super()._epsilon(delta, upper)
        return min(float(epsilons(packed([[law]]), [0], [self.users], [delta], upper)[0]), self._pure_epsilon())

    def _pure_epsilon(self) -> float:
        return math.log(self.p) * (1 + 2 * ULP)

    def _pair_info(self) -> DominatingPairInfo:
        # The formula is the divergence of a symmetric pair, and one value takes about a millisecond.
        return replace(super()._pair_info(), single=True, spacing=0.2, effort=1e-3)
