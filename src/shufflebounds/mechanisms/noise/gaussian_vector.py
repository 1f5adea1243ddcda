"""Gaussian noise on vectors of a cube or of the unit sphere, as a local randomizer before a shuffle."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.convex_order import log_shares, log_spread, log_to_nodes
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPUTED_ERROR, FIRST_TAIL, LARGEST_EXPONENT, SQUARABLE
from shufflebounds._base.quadrature import log_normal_masses
from shufflebounds._base.scipy_functions import log_ndtr, ndtri_exp
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.datasets.cases import DatasetLaws, FiniteCases
from shufflebounds._engines.excess.excess_law import ExcessLaw, PairLaws
from shufflebounds._engines.inputs.interval import BLUR, checked
from shufflebounds._engines.inputs.interval_cases import GaussianNoise, gaussian_ratio_tail
from shufflebounds._engines.inputs.reduced_laws import chosen, product_law
from shufflebounds._engines.inputs.sphere_blanket import SphereBlanket
from shufflebounds._engines.inputs.vector_cases import LONGEST, VectorCases
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds.mechanisms._base import LocalRandomizer
from shufflebounds.mechanisms._vectors import VectorRandomizer
from shufflebounds.mechanisms.noise.gaussian import GaussianMechanism
from shufflebounds.profile.between import Between

__all__ = ["GaussianVector"]


@with_passages
@dataclass(frozen=True)
class GaussianVector(VectorRandomizer, LocalRandomizer):
    r"""A vector of the cube :math:`[0,1]^d`, or a unit vector, plus independent normal noise in every coordinate.

    The output distribution is :math:`R_x = N(x, \sigma^2 I)`. With the normal density :math:`\varphi` of one coordinate's noise,
    the privacy blanket is

    .. math:: \inf_x R_x(y) = \prod_j \min(\varphi(y_j), \varphi(y_j - 1)) \text{ for the cube}, \qquad
        \frac{e^{-(|y|+1)^2/2\sigma^2}}{(2\pi\sigma^2)^{d/2}} \text{ for the sphere.}

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise in every coordinate, in [0.1, 1e6].
    dimension : int
        d, 1 to 256 on the cube, 2 to 256 on the sphere.
    domain : {"cube", "sphere"}
        Set of the users' vectors: [0, 1]^d or the unit sphere.

    Notes
    -----
    Neighbours: the vector is replaced. Without a shuffle the guarantee is that of :class:`GaussianMechanism` with the
    sensitivity :math:`\sqrt d` (cube) or 2 (sphere), the distance of two opposite vectors.

    After a shuffle (:meth:`shuffled`) there are two upper bounds:

    - the bound of the privacy blanket (:class:`~shufflebounds.shuffle.Shuffled`), for which two opposite corners or unit vectors
      are the worst pair (proven in docs/theorems/interval-inputs). The mass of the blanket on the cube is
      :math:`(2\Phi(-1/2\sigma))^d`, so amplification needs a sigma of at least about the square root of the dimension.
    - the bound of docs/theorems/vectors, which covers every pair and every dataset. Its eps is within 1 % of the lower bound,
      unless delta is due to rare messages with a large likelihood ratio.

    The lower bound is delta of datasets in which all other users have the same vector, one of the target's two opposite ones. For
    vectors of the unit ball, which differ in length, no worst pair is known: map x to :math:`(x, \sqrt{1 - |x|^2})` on the sphere
    of one more dimension.

    **Floating point.** As for all real-valued noise, the last bits of the messages may reveal more than
    :math:`\delta(\varepsilon)` allows (Mironov 2012, cited in :class:`GaussianMechanism`).

    {balle2019}

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianVector
    >>> noise = GaussianVector(sigma=2.0, dimension=3)
    >>> noise.variance
    12.0
    >>> central = noise.shuffled(10**4)
    >>> central.epsilon(1e-6, bound="lower") < central.epsilon(1e-6) < noise.epsilon(1e-6) / 40
    True
    """

    sigma: float
    dimension: int
    domain: Literal["cube", "sphere"] = "cube"

    theorem: ClassVar[str] = "exact for Gaussian noise (Balle, Wang 2018, Theorem 8)"
    neighbours: ClassVar[str] = "replace the user's vector; the analyst sees the message"

    def __post_init__(self) -> None:
        _validate.real_field(self, "sigma", 0.1, 1e6)
        _validate.choice("domain", self.domain, ("cube", "sphere"))
        fewest = 1 if self.domain == "cube" else 2
        _validate.integer_field(self, "dimension", fewest, 256)

    @cached_property
    def _line(self) -> GaussianMechanism:
        """Noise on a number: the noise along the line through two opposite vectors, whose distance is rounded."""
        return GaussianMechanism(self.sigma, math.sqrt(self.dimension) if self.domain == "cube" else 2.0)

    @property
    def _twin(self) -> GaussianMechanism | GaussianVector:
        """The noise on a number if the vectors have one coordinate, because its bounds are closer; otherwise this randomizer."""
        return self._line if self.dimension == 1 else self

    @cached_property
    def _rounded(self) -> Between | None:
        """The noise along the line (`_line`) for the distance rounded down and up, or None if the distance is a double."""
        if self.domain == "sphere" or math.isqrt(self.dimension) ** 2 == self.dimension:
            return None
        nearer, farther = (math.nextafter(self._line.sensitivity, end) for end in (0.0, math.inf))
        return Between(GaussianMechanism(self.sigma, nearer), GaussianMechanism(self.sigma, farther), math.inf)

    def closed_forms(self) -> ClosedForms:
        return self._rounded or self._line.closed_forms()

    def describe(self) -> DominatingPairInfo:
        line = self._line.describe()
        return line if self._rounded is None else replace(line, hockey_stick=self._rounded.log_delta)

    @property
    def variance(self) -> float:
        """Mean squared distance of a message from the user's vector, dimension * sigma**2; of the mean of n messages, 1/n of it."""
        return self.dimension * self.sigma * self.sigma

    @property
    def scale(self) -> float:
        """The mean of a message divided by the user's vector: 1, because the noise has mean zero."""
        return 1.0

    def _checked_values(self, values: ArrayLike) -> FloatArray:
        if self.domain == "sphere":
            return self._unit_vectors("values", values)
        vectors = self._vectors("values", values)
        return _validate.real_array("values", vectors, 0, 1) if vectors.size else vectors

    def _messages(self, vectors: FloatArray, source: np.random.Generator) -> FloatArray:
        return np.asarray(vectors + source.normal(scale=self.sigma, size=vectors.shape))

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        # In the lower bounds all other users have a vector on the line through the worst pair.
        cells, log_cut = checked(cells, min(log_cut, FIRST_TAIL))
        (line,) = self._line.excess_laws(cells, log_cut)
        cube = self.domain == "cube"
        upper = self._blanket if log_cut == FIRST_TAIL else self._cube_law(log_cut) if cube else self._sphere(log_cut).law
        # The middle of two opposite unit vectors is not a unit vector, so no user can have it.
        lower = tuple((text.replace("end", "corner" if cube else "vector"), law) for text, law in line.lower
                      if cube or "middle" not in text)
        return (PairLaws("two opposite corners" if cube else "two opposite vectors", upper, lower, symmetric=True),)

    @cached_property
    def _blanket(self) -> ExcessLaw:
        """The distribution of X (`ExcessLaw`) for two opposite corners, or unit vectors, and the privacy blanket m."""
        # The truncated mass is divided among the coordinates. It is at most e^-60, because a larger mass could be the whole
        # distribution of a coordinate.
        return self._cube_law(FIRST_TAIL) if self.domain == "cube" else self._of_sphere.law

    @cached_property
    def _of_sphere(self) -> SphereBlanket:
        """The privacy blanket on the sphere of which `_blanket` is the distribution."""
        return self._sphere(FIRST_TAIL)

    def _sphere(self, log_cut: float) -> SphereBlanket:
        """Return the privacy blanket on the sphere; `log_cut` is the log of the largest mass that may be truncated."""
        blanket = SphereBlanket(self.sigma, self.dimension, log_cut)
        self._check_height(2 * blanket.end / self.sigma)
        return blanket

    def dataset_laws(self) -> DatasetLaws | None:
        """Return the distributions for the bound over all datasets (docs/theorems/vectors), or None if a tail is too heavy."""
        law, length, norm = self._blanket, math.nextafter(self._line.mu, math.inf), self._cut_norm
        if length > LONGEST:
            return None
        noise = GaussianNoise(length)
        blankets = FiniteCases.of([law], noise.error)
        mass = math.fsum(np.exp(blankets.log_mass))
        if mass < COMPUTED_ERROR or not norm < SQUARABLE:
            return None
        # The distance of R_x from b = m/mass is the same for all vectors of the sphere, and on the cube the largest for a corner.
        distance = (float(np.exp(blankets.log_mass) @ (np.exp(blankets.log_a) - 1 / mass) ** 2) + norm) * (1 + COMPUTED_ERROR)
        lowered = 2 * BLUR * (self.dimension if self.domain == "cube" else 1)
        ratios = FiniteCases(blankets.log_mass, np.zeros_like(blankets.log_a), blankets.log_a - lowered, blankets.starts,
                              ((np.asarray(law.log_cut), np.array([-np.inf])),), noise.error)
        return DatasetLaws(blankets, VectorCases(noise), ratios, math.log(mass), distance, math.inf,
                           partial(gaussian_ratio_tail, length), norm)

    @property
    def _cut_norm(self) -> float:
        """Upper bound of the integral of (R_0^2 + R_1^2)/m over the outputs that are truncated in `_blanket`; inf if unknown."""
        if self.domain == "sphere":
            return self._of_sphere.cut_norm
        # The integral of R_0^2/m over a set A is at most sqrt(R_0(A)) times the square root of the integral of R_0^3/m^2, which is
        # a product over the coordinates (Cauchy-Schwarz).
        s = self.sigma
        third = float(np.logaddexp(3 / s**2 + log_ndtr(2.5 / s), log_ndtr(-0.5 / s)))
        log_norm = 0.5 * (self.dimension * third + float(np.max(self._blanket.log_cut)))
        return 2 * math.exp(log_norm) if log_norm < LARGEST_EXPONENT else math.inf

    def _check_height(self, height: float) -> None:
        """Raise ValueError if the largest log likelihood ratio exceeds 600.

        Exponentials up to e^600 leave a margin before doubles overflow, at e^709.
        """
        highest = 600.0
        if height > highest:
            raise ValueError(f"sigma={self.sigma:g} with dimension={self.dimension} gives no amplification: "
                             f"likelihood ratios of e^{height:.0f}, at most e^{highest:g}; choose a larger sigma")

    def _cube_law(self, log_cut: float) -> ExcessLaw:
        """Return the distribution of X (`ExcessLaw`) on the cube, for the upper bound.

        For a message y and m = min(R_0, R_1) in each coordinate, a = R_0/m is the product of R_0/R_1 over the coordinates
        with y_j < 1/2, and b = R_1/m is the product of R_1/R_0 over the coordinates with y_j >= 1/2.
        """
        s, d = self.sigma, self.dimension
        # The truncated mass is counted once for every set of coordinates with y_j < 1/2, so it is chosen smaller for many
        # coordinates.
        log_cut -= math.lgamma(d + 1) - 2 * math.lgamma(d / 2 + 1)
        end = 0.5 + s * -float(ndtri_exp(min(log_cut, -1.0) - math.log(d)))
        # With more cells for the likelihood ratio of one coordinate, bounds are tighter and the run time is longer.
        cells = 512
        step = end / (s * s * cells)
        self._check_height(end / (s * s))
        edges = np.linspace(0.0, end, cells + 1)
        near, far = (log_normal_masses(edges, center, s) for center in (0.5, -0.5))
        fine = log_to_nodes(far, log_shares(near - far, edges[:-1] / (s * s), edges[1:] / (s * s)))
        # Masses under m are multiplied by the square root of R_0/m, so that neither masses under m nor masses under R_0 underflow.
        one = np.exp(fine + 0.5 * step * np.arange(cells + 1))
        sums, lost = [np.ones(1)], [0.0]
        beyond = math.exp(float(log_ndtr((0.5 - end) / s)))
        for _ in range(d):
            sums.append(np.convolve(sums[-1], one))
            height = np.exp(0.5 * step * np.arange(sums[-1].size))
            tail = np.cumsum((sums[-1] * height)[::-1])[::-1]
            # The probability that all coordinates are below 1/2 is small. At most a fraction 1e-3 of this probability is truncated,
            # because a truncation at e^log_cut could remove all of it.
            kept = int(np.count_nonzero(tail > min(math.exp(log_cut), 1e-3 * float(tail[0]))))
            lost.append(lost[-1] + beyond + (float(tail[kept]) if kept < tail.size else 0.0))
            sums[-1] = sums[-1][:kept]
            self._check_height(step * kept)
        longest = max(part.size for part in sums)
        levels = step * np.arange(float(longest))
        with np.errstate(divide="ignore"):
            logs = [np.log(np.pad(part, (0, longest - part.size))) - 0.5 * levels for part in sums]
        weight = [math.lgamma(d + 1) - math.lgamma(k + 1) - math.lgamma(d - k + 1) for k in range(d + 1)]
        mass = [float(np.exp(log).sum()) for log in logs]
        every = np.logaddexp.reduce([weight[k] + logs[k] + math.log(mass[d - k]) for k in range(d + 1)])
        nodes = chosen(levels, every)
        coarse = [log_spread(levels, log, nodes) for log in logs]
        # The truncated mass under R_0 is a sum over the number k of coordinates below 1/2: an output is truncated because of these
        # k coordinates, or of the other d - k.
        cut = sum(math.exp(weight[k]) * (lost[k] * mass[d - k] + lost[d - k]) for k in range(d + 1))
        cases = ((weight[k] + coarse[k], coarse[d - k]) for k in range(d + 1))
        # The mass of m is the product, over the coordinates, of the mass of min(R_0, R_1), which is 2 Phi(-1/(2 s)).
        rest = -math.expm1(d * (math.log(2) + float(log_ndtr(-0.5 / s)))) + cut + BLUR * d
        return product_law(cases, nodes, min(0.0, math.log(rest)), math.log(cut), BLUR * d)
