"""Gaussian noise: its privacy profile by Mills' ratio, with a small relative error at every eps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import search as _search
from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import FIRST_TAIL, LARGEST_EXPONENT, SQUARABLE
from shufflebounds._base.quadrature import log_normal_masses
from shufflebounds._base.scipy_functions import log_ndtr, ndtri_exp
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._core._gaussian import gaussian_epsilon, gaussian_log_delta
from shufflebounds._engines.allocation.ratios import Ratios, gaussian_ratios
from shufflebounds._engines.datasets.cases import Blocks, DatasetLaws
from shufflebounds._engines.excess.excess_law import PairLaws
from shufflebounds._engines.inputs.gaussian_blocks import FEWEST_LEFT, WIDEST, negative_mass, rough_negative_mass
from shufflebounds._engines.inputs.interval import BLUR, checked, interval_laws
from shufflebounds._engines.inputs.interval_cases import GaussianNoise, gaussian_ratio_tail, interval_datasets
from shufflebounds._engines.inputs.listed_inputs import gaussian_cells
from shufflebounds._engines.inputs.noise_outputs import NoiseOutputs, normal_outputs
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Releases
from shufflebounds.mechanisms._base import RealNoise, next_float, ratio, shift_by_error
from shufflebounds.profile.calibration import least_of_goal, least_parameter, meets
from shufflebounds.profile.goals import target_goal
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.closed_curves import GaussianCurve

if TYPE_CHECKING:
    from shufflebounds.profile import Composition

__all__ = ["GaussianMechanism"]


def _product(releases: Sequence[tuple[tuple[float, float], int]]) -> DominatingPairInfo:
    """Return the description of several releases, each given by its sigma, its sensitivity and its number."""
    # A composition of Gaussian releases equals one release. Its sigma is rounded up for the lower bound and down for the upper one.
    (sigma, sensitivity), times = releases[0]
    if len(releases) == 1:
        sigma /= math.sqrt(times)
    else:
        # The values of (sensitivity/sigma)^2 of all releases add up.
        sigma, sensitivity = 1 / math.sqrt(math.fsum(times * (shift / noise) ** 2 for (noise, shift), times in releases)), 1.0

    def hockey_stick(eps: FloatArray) -> IntervalArray:
        below, above = (gaussian_log_delta(sigma * (1 + side * 4 * ULP), sensitivity, eps) for side in (1, -1))
        return IntervalArray(np.where(eps > SQUARABLE, -np.inf, below[0] - below[1]), above[0] + above[1])

    def epsilon(delta: float, upper: bool) -> float:
        return gaussian_epsilon(sigma * (1 + (-4 if upper else 4) * ULP), sensitivity, delta, upper)

    return DominatingPairInfo(hockey_stick, attained=SINGLE, releases=Releases(gdp_adds=True, epsilon=epsilon))


class _Shift(ClosedForms):
    """Two normal distributions whose means differ by the sensitivity."""

    __slots__ = ("mean", "sensitivity", "sigma")

    def __init__(self, sigma: float, sensitivity: float, mean: float) -> None:
        self.sigma, self.sensitivity, self.mean = sigma, sensitivity, mean

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        value, error = gaussian_log_delta(self.sigma, self.sensitivity, eps)
        return IntervalArray(np.where(eps > SQUARABLE, -np.inf, value - error), value + error)

    @property
    def mu_in_tails(self) -> float:
        return self.mu(False)

    def epsilon(self, delta: float, upper: bool) -> float:
        return gaussian_epsilon(self.sigma, self.sensitivity, delta, upper)

    def mu(self, upper: bool) -> float:
        return math.nextafter(self.mean, math.inf if upper else 0.0)

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        with np.errstate(over="ignore"):
            value = shift_by_error(orders * (self.mean * self.mean / 2), 4 * ULP, upper)
        # Where the value overflows, the upper bound is infinite, and for finite orders the lower bound is the largest double.
        return value if upper else np.where(np.isfinite(orders), np.minimum(value, np.finfo(float).max), value)

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff:
        return Tradeoff(GaussianCurve(next_float(self.mean, upper), 1 if upper else -1))

    @property
    def eps_scale(self) -> float:
        return max(1.0, self.mean**2)


@with_passages
@dataclass(frozen=True)
class GaussianMechanism(RealNoise):
    r"""A real value, or vector, plus independent normal noise.

    .. math::
        \delta(\varepsilon) = \Phi(-x) - e^\varepsilon \Phi(-y) = \varphi(x)\,(M(x) - M(y)), \qquad
        x = \frac{\varepsilon}{\mu} - \frac{\mu}{2},\quad y = x + \mu, \quad \mu = \frac{\Delta}{\sigma}

    where :math:`M = (1 - \Phi)/\varphi` is Mills' ratio.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise in every coordinate, > 0.
    sensitivity : float
        :math:`\Delta` > 0, the largest Euclidean distance of neighbouring values; Delta/sigma must be in [1e-12, 1e6].

    Notes
    -----
    Neighbours: the value differs by at most `sensitivity`. The guarantee is exact: delta of the mechanism, however small, lies
    between the lower and the upper bound. The gap is a relative 1e-13 of delta, or a few ulp of log delta if that is larger.

    There is no pure budget. :meth:`shuffled` is for real values in an interval of length `sensitivity`, not for vectors. The
    messages keep the tails of the noise. Only the computation truncates them, and adds at most their probability to the upper bound
    of delta.

    **Floating point.** :meth:`randomize` adds doubles, whose last bits may reveal more than :math:`\delta(\varepsilon)` allows
    (Mironov 2012). Use it for simulations only. To release data use :class:`DiscreteGaussianMechanism` on whole numbers.

    References
    ----------
    Balle, B., Wang, Y.-X. Improving the Gaussian mechanism for differential privacy, 2018, Theorem 8 and Algorithm 1.

    Dong, J., Roth, A., Su, W. J. Gaussian differential privacy, 2022, section 2.

    Mironov, I. On significance of the least significant bits for differential privacy, 2012.

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> noise = GaussianMechanism.from_dp(eps=1.0, delta=1e-5)
    >>> print(f"{noise.sigma:.9f} {noise.mu:.9f}")
    3.730631635 0.268051123
    >>> noise.delta(1.0) <= 1e-5
    True
    >>> print(f"{GaussianMechanism(20.0).log_delta(2.0):.9f}")
    -810.294612741
    """

    sigma: float
    sensitivity: float = 1.0

    theorem: ClassVar[str] = "exact for Gaussian noise (Balle, Wang 2018, Theorem 8)"
    neighbours: ClassVar[str] = "the value differs by at most `sensitivity` in Euclidean distance"

    def __post_init__(self) -> None:
        _validate.real_field(self, "sigma", 0, open_low=True)
        _validate.real_field(self, "sensitivity", 0, open_low=True)
        ratio("sensitivity", "sigma", self.sensitivity, self.sigma)

    @property
    def mu(self) -> float:
        """The mu of Gaussian differential privacy, sensitivity / sigma."""
        return self.sensitivity / self.sigma

    @classmethod
    def from_dp(cls, *, eps: float, delta: float, sensitivity: float = 1.0) -> Self:
        """Return the mechanism with the smallest sigma that is (eps, delta)-differentially private.

        Parameters
        ----------
        eps : float
            Target privacy loss in nats, in [0, 1e6].
        delta : float
            Target failure probability, in (0, 1). Above 1e-3 a UserWarning says what such a delta means.
        sensitivity : float
            Largest distance of neighbouring values, > 0.

        Returns
        -------
        GaussianMechanism
            Its upper delta at `eps` has been evaluated and is at most `delta`; sigma is within a relative 1e-11 of the smallest
            for delta <= 0.99, and within 1e-12/(1 - delta) for larger delta, due to the rounding of log delta.

        {raises}
        InfeasibleError
            If no sensitivity/sigma in [1e-12, 1e6] meets the target (a ValueError).

        Notes
        -----
        Sigma is the root of the exact delta(eps) = delta. The closed form sqrt(2 ln(1.25/delta))/eps is larger for small eps, and
        invalid for large eps (at delta = 1e-5, for eps above 8.42).

        Examples
        --------
        >>> from shufflebounds.mechanisms import GaussianMechanism
        >>> print(f"{GaussianMechanism.from_dp(eps=8.0, delta=1e-5).sigma:.12f}")
        0.600229072199
        """
        eps, delta = _validate.target(eps, delta, most_eps=1e6)
        sensitivity = _validate.real("sensitivity", sensitivity, 0, open_low=True)
        smallest, largest = 1.000001e-6, 0.999999e12
        if not meets(cls(largest), eps, delta):
            raise _validate.InfeasibleError(
                f"delta={delta:g} cannot be met at eps={eps:g} with sensitivity/sigma >= 1e-12: "
                f"that gives {cls(largest).delta(eps):.3g}"
            )
        sigma = smallest if meets(cls(smallest), eps, delta) else least_parameter(cls, smallest, largest, eps, delta)
        sigma *= sensitivity
        sigma = _search.expand_bracket(sigma, lambda sigma: meets(cls(sigma, sensitivity), eps, delta), math.ulp(sigma), math.inf)
        return cls(sigma, sensitivity)

    @classmethod
    def from_training(
        cls, *, rate: float, steps: int, eps: float | None = None, delta: float | None = None, advantage: float | None = None,
        fpr: float | None = None, fnr: float | None = None,
    ) -> Self:
        r"""Return the noise of DP-SGD: the smallest sigma for which all steps on Poisson batches together meet a target.

        The training is ``mechanism.subsampled(rate).self_compose(steps)``; sigma is in units of the clipping norm.

        Parameters
        ----------
        rate : float
            Probability with which each record enters a batch, in [1e-6, 1].
        steps : int
            Number of batches over all epochs, 1 to 10**8.
        eps, delta : float
            Target privacy loss in nats, in [1e-3, 1e4], and failure probability, in (0, 1). Above 1e-3 a UserWarning says what such
            a delta means.
        advantage, fpr, fnr : float
            Targets in place of eps and delta: `advantage`, or `fpr` and `fnr`, as in
            :func:`~shufflebounds.composition.least_noise`.

        Returns
        -------
        GaussianMechanism
            The mechanism has sensitivity 1. The upper bound of delta of the training at `eps` is at most `delta`, and that of eps
            at `delta` is at most `eps`. For the other targets, the upper bound of delta at eps = 0, or the lower bound of the
            trade-off function, meets the target. If the gap of the composition is negligible, sigma is within a relative 3e-4 of
            the smallest.

        {raises}

        Notes
        -----
        Neighbours: add or remove one record. The search starts at the sigma of the central limit theorem for subsampled Gaussian
        noise. For other samplers see :func:`~shufflebounds.composition.least_noise`.

        References
        ----------
        Bu, Z., Dong, J., Long, Q., Su, W. J. Deep learning with Gaussian differential privacy. Harvard Data Science Review, 2020.

        Examples
        --------
        >>> from shufflebounds.mechanisms import GaussianMechanism
        >>> noise = GaussianMechanism.from_training(rate=0.1, steps=100, eps=0.1, delta=1e-5)
        >>> print(f"{noise.sigma:.2f}")
        30.89
        >>> print(f"{GaussianMechanism.from_training(rate=0.01, steps=1000, advantage=0.1).sigma:.3f}")
        1.422
        """
        rate = _validate.real("rate", rate, 1e-6, 1)
        steps = _validate.integer("steps", steps, 1, 10**8)
        if eps is not None:
            _validate.real("eps", eps, 1e-3, 1e4)
        goal = target_goal(eps, delta, advantage, fpr, fnr)

        def training(sigma: float) -> Composition:
            return cls(sigma).subsampled(rate).self_compose(steps)

        with _validate.quiet():
            one = least_of_goal(cls, goal, 1.0, 1e-4)
            start = 1 / math.sqrt(math.log1p((1 / (one * rate)) ** 2 / steps))
            # The starting value is that of the central limit theorem, with an error of 2 to 8 %. A smaller tolerance than 1e-4
            # would take two more compositions, 0.1 to 0.4 s each.
            return cls(least_of_goal(training, goal, start, 1e-4))

    @classmethod
    def from_rho(cls, rho: float, sensitivity: float = 1.0) -> Self:
        r"""Return the mechanism with the smallest sigma that is rho-zero-concentrated differentially private.

        .. math:: \sigma = \Delta / \sqrt{2 \rho}

        Parameters
        ----------
        rho : float
            Target :math:`\mu^2/2`, in [1e-24, 1e11].
        sensitivity : float
            Largest distance of neighbouring values, > 0.

        Returns
        -------
        GaussianMechanism
            Its sigma is rounded up, so that it meets the target in exact arithmetic.

        {raises}

        References
        ----------
        Bun, M., Steinke, T. Concentrated differential privacy, 2016, Proposition 1.6.

        Examples
        --------
        >>> from shufflebounds.mechanisms import GaussianMechanism
        >>> GaussianMechanism.from_rho(0.5)
        GaussianMechanism(sigma=1.0, sensitivity=1.0)
        """
        rho = _validate.real("rho", rho, 1e-24, 1e11)
        sensitivity = _validate.real("sensitivity", sensitivity, 0, open_low=True)
        sigma = sensitivity / math.sqrt(2 * rho)
        while Fraction(sensitivity) ** 2 > 2 * Fraction(rho) * Fraction(sigma) ** 2:
            sigma = math.nextafter(sigma, math.inf)
        return cls(sigma, sensitivity)

    def describe(self) -> DominatingPairInfo:
        releases = Releases(((self.sigma, self.sensitivity), _product), gdp_adds=True)
        return DominatingPairInfo(self.closed_forms().log_delta, attained=SINGLE, releases=releases)

    def closed_forms(self) -> _Shift:
        return _Shift(self.sigma, self.sensitivity, self.mu)

    @property
    def _normal_mu(self) -> float:
        return self.mu

    @property
    def _noise_outputs(self) -> NoiseOutputs:
        return normal_outputs(self.mu)

    @property
    def _ratios(self) -> Ratios:
        return gaussian_ratios(self.mu)

    @property
    def _deepest_cut(self) -> float:
        """The `log_cut` of `excess_laws` for upper bounds at very small delta; -inf if likelihood ratios would overflow."""
        s = self.sigma / self.sensitivity
        farthest = 0.5 + s * math.sqrt(2 * LARGEST_EXPONENT)
        return -LARGEST_EXPONENT if farthest < LARGEST_EXPONENT * s * s else -math.inf

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        cells, log_cut = checked(cells, log_cut)
        # The two ends of an interval of length `sensitivity` are the worst pair of inputs.
        s = self.sigma / self.sensitivity
        # `fine` has distances of the output from the middle of the interval, in units of the length of the interval.
        end = 0.5 + s * -float(ndtri_exp(min(log_cut, -1.0)))
        fine = np.linspace(0.0, end, 4097)
        # 80 % of the cells have a density proportional to the cube root of (mass times squared slope of the likelihood ratio), and
        # 20 % have equal widths.
        weight = np.exp(-((fine - 1.5) ** 2) / (6 * s * s))
        climb = np.concatenate([[0.0], np.cumsum(weight[1:] + weight[:-1])])
        share = 0.8 * climb / climb[-1] + 0.2 * fine / end if climb[-1] > 0 else fine / end
        t = np.interp(np.linspace(0.0, 1.0, max(1, cells // 2) + 1), share, fine)
        t[0], t[-1] = 0.0, end

        def mass(center: float) -> FloatArray:
            return np.append(log_normal_masses(t, center, s), log_ndtr((center - end) / s))

        edges = t / (s * s)
        low, high = np.append(edges[:-1], edges[-1]), np.append(edges[1:], np.inf)
        return interval_laws(mass(-0.5), mass(0.5), low, high, mass(0.0), unbounded_loss=True, loss_error=BLUR)

    def dataset_laws(self, inputs: tuple[float, ...] = ()) -> DatasetLaws | None:
        length = math.nextafter(self.mu, math.inf)
        (pair,) = self.excess_laws(cells=200)
        # The truncated outputs are farther than `end` sigma from the middle of the interval.
        end = 0.5 * length - float(ndtri_exp(np.asarray(pair.upper.log_cut)[0]))
        near, far, square = (float(log_ndtr(part * length - end)) for part in (0.5, -0.5, 1.5))
        # R_0^2/R_L is e^(L^2) times the density of normal noise around -L, with L = `length`.
        norm = 2 * (math.exp(min(length**2 + square, LARGEST_EXPONENT)) + math.exp(near) + math.exp(far))
        places = tuple((x - inputs[0]) / self.sigma for x in inputs)
        laws = interval_datasets(
            GaussianNoise(length), pair.upper, math.inf, partial(gaussian_ratio_tail, length), places, far, norm)
        if laws is None or length > WIDEST:
            return laws
        # Omitting messages is post-processing, so the blocks remain valid with any participation.
        return replace(laws, blocks=Blocks(partial(negative_mass, length, inputs=places), partial(rough_negative_mass, length),
                                           FEWEST_LEFT))

    def _cells(self, places: FloatArray) -> tuple[FloatArray, float]:
        return gaussian_cells(places / self.sigma), GaussianNoise(self.mu).error

    @property
    def variance(self) -> float:
        """Variance of the noise and of :meth:`estimate`, sigma**2."""
        return self.sigma * self.sigma

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
        return np.asarray(rng.normal(scale=self.sigma, size=shape))

    def _log_tail(self, t: float) -> float:
        return math.log(2) + float(log_ndtr(-t / self.sigma))

    def _near_quantile(self, log_prob: float) -> float:
        return -self.sigma * float(ndtri_exp(log_prob - math.log(2)))
