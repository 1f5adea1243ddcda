"""Laplace noise: its exact privacy profile, its error, and its distributions for a shuffle of values in an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import search as _search
from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import FIRST_TAIL, SAFE_EXPONENT
from shufflebounds._base.types import SLACK, ULP, FloatArray, IntervalArray
from shufflebounds._engines.allocation.ratios import Ratios, laplace_ratios
from shufflebounds._engines.datasets.cases import DatasetLaws
from shufflebounds._engines.excess.excess_law import PairLaws
from shufflebounds._engines.inputs.interval import BLUR, checked, interval_laws
from shufflebounds._engines.inputs.interval_cases import LaplaceNoise, interval_datasets
from shufflebounds._engines.inputs.listed_inputs import laplace_cells
from shufflebounds._engines.inputs.noise_outputs import NoiseOutputs, laplace_outputs
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses
from shufflebounds.mechanisms._base import RealNoise, exp_remainder, next_float, ratio, shift_by_error
from shufflebounds.profile.calibration import meets
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.closed_curves import LaplaceCurve

__all__ = ["LaplaceMechanism"]


class _Shift(ClosedForms):
    """Two Laplace distributions whose means differ by the double-double budget + rest, in units of the scale."""

    __slots__ = ("budget", "rest")

    def __init__(self, budget: float, rest: float) -> None:
        self.budget, self.rest = budget, rest

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        gap = (eps - self.budget) - self.rest
        below = gap < 0
        half = np.where(below, gap, -1.0) / 2
        # log(1 - e^half) is computed without cancellation. For delta > 1/2 its error is relative to log delta, which may be near 0.
        far = half < -math.log(2)
        value = np.where(far, np.log1p(-np.exp(np.minimum(half, -math.log(2)))), np.log(-np.expm1(half)))
        error = np.where(far, ULP * np.abs(value) * (8 - 2 * half) + 1e-322, 6 * ULP * (1 + np.abs(value)))
        return IntervalArray(np.where(below, value - error, -np.inf), np.where(below, value + error, -np.inf))

    def around(self, anchor: float, step: float) -> LossAtoms:
        """Return the two atoms of the loss and, for every grid point, an atom for the losses within half a step of it.

        The atoms at eps0 and -eps0 have the masses 1/2 and e^-eps0/2 under P. Losses l between them have the densities
        e^((l - eps0)/2)/4 under P and e^(-(l + eps0)/2)/4 under Q, so the loss of an interval is exactly its middle.
        """
        high = math.nextafter(self.budget, 0.0)
        # Losses below `low` are omitted; their total mass is below e^-150.
        low = max(-high, high - 300.0)
        index = np.arange(math.floor((low - anchor) / step) - 1, math.ceil((high - anchor) / step) + 1)
        inner = anchor + step * (index + 0.5)
        edges = np.concatenate([[low], inner[(inner > low) & (inner < high)], [high]])
        left, right = edges[:-1], edges[1:]
        log_p = np.log(-np.expm1((left - right) / 2)) + (right - self.budget) / 2
        loss = (left + right) / 2
        if low == -high:
            log_p, loss = np.append(-self.budget, log_p), np.append(-self.budget, loss)
        log_p, loss = np.append(log_p, 0.0) - math.log(2), np.append(loss, self.budget)
        slack = ULP * (32 + 4 * float(np.abs(log_p).max()))
        return LossAtoms(log_p, loss, -math.inf, -math.inf, -math.inf, slack, 4 * ULP * self.budget)

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        a, step, e0 = orders, orders - 1, self.budget
        with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
            # The linear terms of the two exponentials cancel exactly, which leaves a sum of positive terms.
            grown = step * e0
            part = a / (2 * a - 1)
            excess = part * e0 * e0 * (step * exp_remainder(np.minimum(grown, SAFE_EXPONENT)) + a * exp_remainder(-a * e0))
            near = np.where(step == 0, excess, np.log1p(step * excess) / step)
            far = e0 + np.log(np.where(a == np.inf, 0.5, part)) / step
            value = np.where(grown < SAFE_EXPONENT, near, far)
        return shift_by_error(value, 64 * ULP, upper)

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff:
        return Tradeoff(LaplaceCurve(next_float(self.budget, upper), 1 if upper else -1))

    def mu(self, upper: bool) -> float:
        # The supremum that defines mu is at alpha = beta. On the middle piece of the trade-off function alpha beta is constant, and
        # the normal quantile of 1 - alpha is a concave function of log alpha: its slope, -1 over the hazard rate, decreases.
        mu = self.tradeoff(not upper).gdp_mu()
        return mu if upper else mu * (1 - 3 * SLACK)


@with_passages
@dataclass(frozen=True)
class LaplaceMechanism(RealNoise):
    r"""A real value plus noise of density :math:`e^{-|y|/b}/(2b)`.

    .. math::
        \delta(\varepsilon) = 1 - e^{(\varepsilon - \varepsilon_0)/2} \quad (\varepsilon < \varepsilon_0), \qquad
        \varepsilon_0 = \Delta/b

    Parameters
    ----------
    scale : float
        Scale b of the noise, > 0.
    sensitivity : float
        :math:`\Delta` > 0, the largest difference of neighbouring values; Delta/b must be in [1e-12, 1e6].

    Notes
    -----
    Neighbours: the value differs by at most `sensitivity`. The guarantee is exact: delta of the mechanism lies between the lower
    and the upper bound. As a local randomizer (:meth:`shuffled`) the mechanism is for values in an interval of length
    `sensitivity`.

    **Floating point.** :meth:`randomize` adds doubles, whose last bits may reveal more than :math:`\delta(\varepsilon)` allows
    (Mironov 2012). Use it for simulations only. To release data use :class:`GeometricMechanism` on whole numbers.

    References
    ----------
    Dwork, C., McSherry, F., Nissim, K., Smith, A. Calibrating noise to sensitivity in private data analysis, 2006.

    Balle, B., Barthe, G., Gaboardi, M. Privacy amplification by subsampling, 2018, Theorem 3 (the profile).

    Mironov, I. Renyi differential privacy, 2017, Proposition 6.

    Mironov, I. On significance of the least significant bits for differential privacy, 2012.

    Examples
    --------
    >>> from shufflebounds.mechanisms import LaplaceMechanism
    >>> noise = LaplaceMechanism.from_eps(eps=1.0)
    >>> print(f"{noise.delta(0.5):.12f} {noise.variance}")
    0.221199216929 2.0
    >>> print(f"{noise.error_quantile(0.05, k=10):.9f}")
    5.275343911
    """

    scale: float
    sensitivity: float = 1.0

    theorem: ClassVar[str] = "exact for Laplace noise on a real value (Balle, Barthe, Gaboardi 2018, Theorem 3)"
    neighbours: ClassVar[str] = "the value differs by at most `sensitivity`"

    def __post_init__(self) -> None:
        _validate.real_field(self, "scale", 0, open_low=True)
        _validate.real_field(self, "sensitivity", 0, open_low=True)
        budget = self._budget()[0]
        # A budget above 5 is a weak guarantee, and a small scale often means that a budget was passed as the scale.
        if budget > 5:
            _validate.warn(f"scale={self.scale:g} with sensitivity={self.sensitivity:g} has the local budget {budget:g}: scale is "
                           f"the size of the noise. LaplaceMechanism.from_eps(eps={self.scale:g}) makes the noise of a budget")

    @property
    def _noise_outputs(self) -> NoiseOutputs:
        return laplace_outputs(self._budget()[0])

    @property
    def _ratios(self) -> Ratios:
        return laplace_ratios(self._budget()[0])

    def _budget(self) -> tuple[float, float]:
        """Delta/b as a double-double, because rounding the budget would change delta at eps close to it."""
        return ratio("sensitivity", "scale", self.sensitivity, self.scale)

    @classmethod
    def from_eps(cls, *, eps: float, sensitivity: float = 1.0, delta: float = 0.0) -> Self:
        r"""Return the mechanism with the smallest scale that is (eps, delta)-differentially private.

        .. math:: b = \frac{\Delta}{\varepsilon - 2 \ln(1 - \delta)}

        Parameters
        ----------
        eps : float
            Target privacy loss in nats, in [0, 1e6]; positive if `delta` is 0.
        sensitivity : float
            Largest difference of neighbouring values, > 0.
        delta : float
            Target failure probability in [0, 1). Above 1e-3 a UserWarning says what such a delta means.

        Returns
        -------
        LaplaceMechanism
            Its scale is rounded up, so that it meets the target in exact arithmetic.

        {raises: If an argument lies outside its range, or both targets are 0.}

        Examples
        --------
        >>> from shufflebounds.mechanisms import LaplaceMechanism
        >>> LaplaceMechanism.from_eps(eps=0.5)
        LaplaceMechanism(scale=2.0, sensitivity=1.0)
        """
        eps = _validate.real("eps", eps, 0, 1e6)
        sensitivity = _validate.real("sensitivity", sensitivity, 0, open_low=True)
        if delta != 0:
            eps, delta = _validate.target(eps, delta, most_eps=1e6)
        if eps == delta == 0:
            raise ValueError("eps=0 must be > 0 where delta=0: no scale gives perfect privacy")
        scale = sensitivity / (eps - 2 * math.log1p(-delta))
        meets = lambda scale: cls(scale, sensitivity)._meets(eps, delta)  # noqa: E731
        with _validate.quiet():
            high = _search.expand_bracket(scale, meets, math.ulp(scale), math.inf, 8.0)
            if high > scale:
                # The steps of the search grow, so the first scale that meets the target may be far above the smallest one.
                high = _search.bracket(meets, scale, high, rtol=0.0)[1]
            return cls(high, sensitivity)

    def _meets(self, eps: float, delta: float) -> bool:
        if delta == 0:
            return Fraction(self.sensitivity) <= Fraction(eps) * Fraction(self.scale) and self.epsilon(0.0) <= eps
        return meets(self, eps, delta)

    def describe(self) -> DominatingPairInfo:
        head, rest = self._budget()
        pair, pure = _Shift(head, rest), math.nextafter(head, math.inf) if rest > 0 else head
        # The loss has two atoms, which are on the lattice, and a density between them.
        losses = Losses(lattice=(head, 2 * head), density=pair.around)
        return DominatingPairInfo(pair.log_delta, pure, losses=losses, attained=SINGLE)

    def closed_forms(self) -> _Shift:
        return _Shift(*self._budget())

    @property
    def variance(self) -> float:
        """Variance of the noise and of :meth:`estimate`, 2 scale**2."""
        return 2 * self.scale * self.scale

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
        return np.asarray(rng.laplace(scale=self.scale, size=shape))

    def _log_tail(self, t: float) -> float:
        return -t / self.scale

    def _near_quantile(self, log_prob: float) -> float:
        return -log_prob * self.scale

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        cells, log_cut = checked(cells, log_cut)
        # The two ends of an interval of length `sensitivity` are the worst pair of inputs. Beyond them the likelihood ratio is
        # constant, which gives atoms.
        eps0 = self._local_budget()
        # The edges u are distances from the first end, in units of the length of the interval. Each edge is the mean of an edge of
        # equally wide cells and an edge of cells whose density is proportional to exp(-eps0 u), the cube root of (mass times
        # squared slope of the likelihood ratio).
        v = np.linspace(0.0, 1.0, max(1, cells // 2) + 1)
        u = 0.25 * v
        u[1:-1] -= 0.5 * np.log1p(v[1:-1] * math.expm1(-eps0 / 2)) / eps0
        u[-1] = 0.5
        left, right = u[:-1], u[1:]
        width = eps0 * (right - left)
        log_far = np.append(-eps0, eps0 * (right - 1) + np.log(-np.expm1(-width))) - math.log(2)
        log_near = np.append(0.0, -eps0 * left + np.log(-np.expm1(-width))) - math.log(2)
        log_middle = np.append(-eps0 / 2, eps0 * (right - 0.5) + np.log(-np.expm1(-width))) - math.log(2)
        low = np.append(eps0, eps0 * (1 - 2 * right))
        high = np.append(eps0, eps0 * (1 - 2 * left))
        return interval_laws(log_far, log_near, low, high, log_middle, loss_error=BLUR)

    def dataset_laws(self, inputs: tuple[float, ...] = ()) -> DatasetLaws | None:
        length = self._pure_epsilon()

        def ratio_tail(t: FloatArray) -> FloatArray:
            # Under input 0, the ratio R_0/R_L, L = `length`, exceeds t at outputs to the left of (L - log t)/2.
            left = 0.5 * (length - np.log(t * (1 - 4 * ULP))) + 4 * ULP
            return np.where(left > 0, 1 - 0.5 * np.exp(-left), 0.0) * (1 + 8 * ULP)

        (pair,) = self.excess_laws(cells=200)
        places = [(x - inputs[0]) / self.scale for x in inputs]
        return interval_datasets(LaplaceNoise(length), pair.upper, length, ratio_tail, places)

    def _cells(self, places: FloatArray) -> tuple[FloatArray, float]:
        return laplace_cells(places / self.scale), LaplaceNoise(self._pure_epsilon()).error
