"""Bounds for every randomizer with a given local budget, or with three given parameters (two ratios and a distance)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.limits import FIRST_TAIL, LARGEST_EXPONENT
from shufflebounds._base.types import ULP
from shufflebounds._engines.excess.excess_law import ExcessLaw, PairLaws
from shufflebounds.mechanisms.oracles._two_level import Shares, TwoLevel
from shufflebounds.mechanisms.oracles.kary_response import KaryResponse

__all__ = ["PureLocal", "RatioBounded"]


def _distribution(p: float, beta: float, q: float, *, upper: bool = True) -> ExcessLaw:
    """Return the largest distribution of X (`ExcessLaw`), in the convex order, of all randomizers with these three parameters.

    Parameters
    ----------
    p, beta, q : float
        Largest ratio p > 1 of the target's two output distributions; their total variation distance beta, at most (p-1)/(p+1); and
        the largest ratio q >= 1 + beta of either of them to the output distribution of another user's input.
    upper : bool
        Round the distribution for an upper bound; otherwise for a lower bound.

    Returns
    -------
    ExcessLaw
        Three atoms and the mass at X = 0, rounded by more than their errors.
    """
    ratio, distance = Fraction(p), Fraction(beta)
    share = distance / (ratio - 1)
    # The last two masses are differences that may cancel, so they are computed exactly.
    parts = ratio * share, 1 - (ratio + 1) * share, Fraction(q) - 1 - distance
    low = math.log(q) - math.log(p)
    with np.errstate(divide="ignore"):
        top, common, rest = np.log([max(float(part), 0.0) for part in parts]) - math.log(q)
    log_a, log_b = np.array([math.log(q), low, math.log(q)]), np.array([low, math.log(q), math.log(q)])
    return ExcessLaw(np.array([top, top, common]), log_a, log_b, rest).widened(upper=upper)


@dataclass(frozen=True)
class RatioBounded(TwoLevel):
    r"""All randomizers with given variation-ratio parameters p, beta and q of the target's two inputs.

    .. math:: p \ge \sup_y \max\Bigl(\frac{R_0(y)}{R_1(y)}, \frac{R_1(y)}{R_0(y)}\Bigr), \quad \beta \ge \mathrm{TV}(R_0, R_1),
        \quad q \ge \sup_{x, y} \frac{\max(R_0(y), R_1(y))}{R_x(y)}

    Parameters
    ----------
    p : float
        Largest ratio of the target's two output distributions, R_0/R_1 or R_1/R_0, in (1, e^700].
    beta : float
        Largest total variation distance of these two distributions, in (0, (p-1)/(p+1)].
    q : float
        Largest ratio of either of these two distributions to the output distribution of another user's input, in [1 + beta, e^700].
        If other users may have the target's inputs, q is at least p.

    Notes
    -----
    Neighbours: the input is replaced, and p, beta and q are valid for the target's two inputs. The upper bound holds for every such
    randomizer.

    After a shuffle the upper bound is :math:`\frac1n \mathbb{E}(X_1 + \cdots + X_n)_+` for independent copies of X. With
    :math:`\alpha = \beta/(p-1)`, X has the values :math:`q(p - e^\varepsilon)/p` and :math:`q(1 - p e^\varepsilon)/p` with
    mass :math:`p\alpha/q` each, the value :math:`q(1 - e^\varepsilon)` with mass :math:`(1 - (p+1)\alpha)/q`, and 0 with the
    rest of the mass.

    Proof: this X is at least that of the privacy blanket max(R_0, R_1)/q in the convex order. An output with :math:`R_0 \ge R_1`
    has :math:`(R_0, R_1) = \lambda (p, 1) + \mu (1, 1)` with :math:`\lambda = (R_0 - R_1)/(p-1)` and :math:`\mu = (p R_1 -
    R_0)/(p-1)`. Replace this output by two, with the probabilities :math:`\lambda (p, 1)` and :math:`\mu (1, 1)`. This keeps
    max(R_0, R_1)/q and the mean of X, so X becomes a mean-preserving spread. The numbers :math:`\lambda` of all these outputs add
    up to at most :math:`\alpha`; outputs with :math:`R_0 < R_1` are treated in the same way. A larger beta makes X larger in the
    convex order.

    A randomizer with four outputs attains this upper bound, and its delta is the lower bound after a shuffle. The output
    probabilities are :math:`(p\alpha, \alpha, 1-(p+1)\alpha, 0)` for the input 0 of the target,
    :math:`(\alpha, p\alpha, 1-(p+1)\alpha, 0)` for the input 1, and :math:`(p\alpha, p\alpha, 1-(p+1)\alpha, q-1-\beta)/q` for the
    input of all other users.

    The bound corrects that of Wang et al. The published bound may be false if another input has small probabilities where R_0 and
    R_1 overlap: for ternary response of two users with p = q = 3/2, beta = 1/7 and e^eps = 13/10, delta is 6/245 and the published
    bound 4/245.

    References
    ----------
    Wang, S. et al. Privacy amplification via shuffling: unified, simplified, and tightened. VLDB 2024, Theorem 4.7, without its
    invalid step.

    Examples
    --------
    >>> from shufflebounds.mechanisms import RatioBounded
    >>> known = RatioBounded(p=2.0, beta=0.25, q=2.0)
    >>> round(known.delta(0.0), 12), round(known.epsilon(0.0), 12)
    (0.25, 0.69314718056)
    >>> print(f"{known.shuffled(10**4).epsilon(1e-6):.5f}")
    0.02316
    """

    p: float
    beta: float
    q: float

    theorem: ClassVar[str] = "upper bound for every randomizer with these ratios: a mean-preserving spread of its distributions"
    lower_theorem: ClassVar[str] = "delta of a randomizer with four outputs and these ratios; another may have a smaller delta"
    _covers_many: ClassVar[bool] = True
    neighbours: ClassVar[str] = "replace the user's input; the analyst sees the message"

    def __post_init__(self) -> None:
        most = math.exp(LARGEST_EXPONENT)
        _validate.real_field(self, "p", 1, most, open_low=True)
        largest = (self.p - 1) / (self.p + 1)
        _validate.real_field(self, "beta", 0, largest * (1 + 1e-15), open_low=True)
        object.__setattr__(self, "beta", min(self.beta, largest))
        # max(R_0, R_1) has the total mass 1 + beta and R_x has mass 1, so q >= 1 + beta. Rounding q up only weakens the bound.
        q = _validate.real("q", self.q, (1 + self.beta) * (1 - 4 * ULP), most)
        while math.fsum([q, -1.0, -self.beta]) < 0:
            q = math.nextafter(q, math.inf)
        object.__setattr__(self, "q", q)

    @property
    def local_eps(self) -> float:  # type: ignore[override]
        """Budget in nats, ln p."""
        return math.log(self.p)

    def _loss_error(self) -> float:
        # The only error is the rounding error of the logarithm of p.
        return 4 * ULP * self.local_eps

    def _log_masses(self) -> tuple[float, float, float]:
        # The losses -eps0, 0 and eps0 have the masses beta/(p-1), `rest` and beta p/(p-1). The last mass is not computed from
        # `_shares`: a share may be as small as 1/p, and the mass would then be inaccurate.
        p, beta = self.p, self.beta
        # The difference may cancel, so it is computed in rational arithmetic.
        rest = float(1 - Fraction(beta) * (Fraction(p) + 1) / (Fraction(p) - 1))
        top = math.log(beta * (p / (p - 1)))
        return top - self.local_eps, math.log(rest) if rest > 0 else -math.inf, top

    def _shares(self) -> Shares:
        # The target's two output distributions have the masses (p a, a, rest) and (a, p a, rest). The base distribution B
        # (`_two_level`) is proportional to (a, a, rest).
        a = self.beta / (self.p - 1)
        rest = max(0.0, 1 - (self.p + 1) * a)
        return Shares(a / (2 * a + rest), 0.0, rest / (2 * a + rest))

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        # X has the values q(p-E)/p and q(1-pE)/p with mass pa/q each, and q(1-E), where E = e^eps and a = beta/(p-1).
        upper, lower = (_distribution(self.p, self.beta, self.q, upper=side) for side in (True, False))
        text = "of four outputs, every other user has a third input"
        return (PairLaws("the two inputs", upper, ((text, lower),), symmetric=True, attained=True),)


@dataclass(frozen=True)
class PureLocal(TwoLevel):
    r"""All randomizers with a given pure local budget, if nothing else is known of them.

    .. math:: R_x(y) \le e^{\varepsilon_0} R_{x'}(y) \quad \text{for all } x, x', y

    Parameters
    ----------
    local_eps : float
        Budget :math:`\varepsilon_0` in nats, in (0, 700].

    Notes
    -----
    Neighbours: the input is replaced. Without a shuffle the bound is that of randomized response, the least private randomizer.
    After a shuffle the upper bound is that of :class:`~shufflebounds.shuffle.StrongerClones`, proven for all randomizers of this
    budget. The lower bound is the larger delta of 2-ary and 3-ary randomized response: some randomizer has at least this delta.

    References
    ----------
    Kairouz, P., Oh, S., Viswanath, P. The composition theorem for differential privacy, 2015, Theorem 3.3.

    Examples
    --------
    >>> from shufflebounds.mechanisms import PureLocal, RandomizedResponse
    >>> abs(PureLocal(1.0).delta(0.5) - RandomizedResponse(1.0).delta(0.5)) < 1e-13
    True
    """

    local_eps: float

    theorem: ClassVar[str] = "upper bound for every pure local randomizer of this budget (Kairouz, Oh, Viswanath 2015)"
    lower_theorem: ClassVar[str] = "delta of randomized response; another randomizer of this budget may have a smaller delta"
    _covers_many: ClassVar[bool] = True
    neighbours: ClassVar[str] = "replace the user's input; the analyst sees the message"

    def __post_init__(self) -> None:
        _validate.local_budget_field(self, "local_eps", LARGEST_EXPONENT)

    @property
    def _clones_budget(self) -> float:
        return self.local_eps

    def _shares(self) -> Shares:
        return Shares(0.5, 0.0, 0.0)

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        # For the upper bound X has the values e^eps0 - e^eps and 1 - e^(eps + eps0) with mass 1/(e^eps0 + 1) each. The lower bound
        # is that of 2-ary or 3-ary randomized response.
        eps0 = self.local_eps
        log_mass = np.full(2, -eps0 - math.log1p(math.exp(-eps0)))
        upper = ExcessLaw(log_mass, np.array([eps0, 0.0]), np.array([0.0, eps0]), self._log_rest())
        examples = {k: KaryResponse(k, eps0).excess_laws()[0].lower for k in (2, 3)}
        lower = tuple((f"{k}-ary response, {text}", law) for k, laws in examples.items() for text, law in laws)
        return (PairLaws("two different inputs", upper, lower, symmetric=True),)
