"""Shuffled batches: the privacy profile of an epoch that shuffles all records and cuts them into batches of fixed size."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.crossing import CAP, Curve, eps_at
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import Evidence, bound_lines
from shufflebounds._base.limits import SAME_LOG
from shufflebounds._base.types import FloatArray, IntervalArray
from shufflebounds._engines.amplification.attained_pairs import both_orders
from shufflebounds._engines.batches.dominating_law import all_opposite
from shufflebounds._engines.batches.epoch import Epoch
from shufflebounds._engines.excess.evaluation import BLUR
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import Attained, DominatingPairInfo, Sampling
from shufflebounds.mechanisms.noise.gaussian import GaussianMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.sampling._of_mechanism import OfMechanismForms

__all__ = ["ShuffledBatches"]

_CLOSE = 1e-4
"""Relative tolerance of a search for eps on the curve of approximations, and of one for the lower bound. Lowered: more evaluations,
of 20 ms each. Raised: less accurate eps."""

_LARGEST_MU = 10.0
"""Largest mu = sensitivity/sigma for which the lower bound is computed; values of X overflow from about 14 on. The lower bound for
a smaller mu is valid for every larger one, because noise can be added to the outputs."""

_EFFORT, _SPACING = 0.02, 0.5
"""`Sampling.effort` and `spacing`. Lowered: more values of delta for a composition or a curve, smaller gaps
and a longer run time."""

_GAP = 0.03
"""`Sampling.refined_gap`: interpolation between values of the upper bound raises a Renyi divergence by about half of this fraction.
Lowered: tighter Renyi divergences and a longer run time."""


class _Forms(OfMechanismForms):
    """Computes each bound of delta without the other one, and approximations of both."""

    def __init__(self, noise: GaussianMechanism, batches: int, batch_size: int) -> None:
        # If the step that has the record is known, all outputs are a post-processing of the output of that step.
        super().__init__(noise, (noise,))
        self.noise, self.batches, self.epoch = noise, batches, Epoch(noise.mu, batches, batch_size)

    @cached_property
    def law(self) -> ExcessLaw:
        """The distribution of X (`ExcessLaw`) if all other vectors are opposite to the target's."""
        return all_opposite(min(self.noise.mu, _LARGEST_MU))

    @cached_property
    def below(self) -> tuple[DominatingPairInfo, ...]:
        """The pair of the lower bound in both directions, (P, Q) and (Q, P)."""
        # `all_opposite` changes log a and log b (`ExcessLaw`) by less than 4 BLUR.
        return tuple(both_orders(self.law, self.batches, _SPACING, 4 * BLUR))

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        if upper:
            return np.array([self.epoch.log_delta(at) for at in eps.tolist()])
        return np.asarray(np.max([pair.hockey_stick(eps).lower for pair in self.below], axis=0))

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return IntervalArray(self.side(eps, False), self.side(eps, True))

    def above(self, eps: FloatArray) -> IntervalArray:
        """Return an upper bound of log delta at each eps, twice: evaluated at eps itself, unlike that of `log_delta`."""
        high = np.array([self.epoch.alone(at) for at in eps.tolist()])
        return IntervalArray(high, high)

    def method(self, eps: float) -> list[str]:
        alone, bound = self.noise._log_side_at(eps, upper=True), self.epoch.log_delta(eps)
        theorem = "the theorem of docs/theorems/shuffled-batches"
        smaller = bound < alone - SAME_LOG
        above = {"one step that uses the record": alone, **({theorem: bound} if smaller else {})}
        low = float(self.side(np.array([eps]), False)[0])
        opposite = "the dataset in which all other vectors are opposite to the target's"
        return [f"method: above by {min(above, key=above.__getitem__)}; below by {opposite}",
                *bound_lines(above, upper=True, omitted={} if smaller else {theorem: "whose bound is not below that of one step"}),
                *bound_lines({opposite: low}, upper=False)]

    def epsilon(self, delta: float, upper: bool) -> float | None:
        if not upper or not 0 < delta < 1:
            return None
        searched = eps_at(self.epoch.log_delta, delta, upper=True, rough=self.rough(True), pure=math.inf, cap=CAP * self.eps_scale)
        # The search has a tolerance, so that it may end above the exact eps of one step.
        return min(searched, self.noise._epsilon(delta, True))

    def last_positive(self, pure: float) -> float | None:
        # If the outputs of all steps lie far enough in the direction of the target's vector, the likelihood ratio exceeds every
        # bound.
        return pure

    def rough(self, upper: bool) -> Curve | None:
        if upper:
            return Curve(self.epoch.approximate, rtol=_CLOSE)
        law, steps = self.law, self.batches
        return Curve(lambda eps: min(0.0, law.approximate_log_phi(eps, steps, True)), rtol=1e-2, settles=_CLOSE, jumps=False)


@with_passages
@dataclass(frozen=True)
class ShuffledBatches(PrivacyProfile):
    r"""An epoch of DP-SGD on shuffled batches: the records are shuffled and cut into T batches of B, as most data loaders do.

    .. math:: \delta(\varepsilon) \le \min_{c \ge 1}\; \frac1N\, \mathbb{E} \Bigl(\sum_{i=1}^N X^*_i\Bigr)_+
        + (h + e^\varepsilon - 1)\, D(c, B), \qquad N = \lfloor T/c \rfloor

    Each step publishes the sum of the vectors of its batch, each at most `noise.sensitivity` long, plus Gaussian noise. The
    *target* is the record in which the two datasets differ. The *weight* of a batch is the mean, over its B records, of the
    likelihood ratio of the output of the target's step if this record were in the target's place. The proof replaces weights above
    c by c. In the bound:

    - h is delta of one step at eps.
    - The variables :math:`X^*_i` are independent copies of a variable that is larger in the convex order than
      :math:`(R_a - e^\varepsilon R_0)/R_w` under :math:`R_w = N(w, \sigma^2 I)`, for every vector a of the target and every vector
      w of another record.
    - D(c, B) bounds the mean excess of a weight over c; it decreases in c.

    For large T a second bound is smaller: part (ii) of the theorem of :doc:`/theorems/shuffled-batches`, which has the proofs.

    Parameters
    ----------
    noise : GaussianMechanism
        One step: ``GaussianMechanism(sigma)`` for DP-SGD with the noise multiplier sigma.
    batches : int
        Number T of batches of an epoch, 1 to 2**53.
    batch_size : int
        Number B of records of each batch, 1 to 2**53. The bound for B = 1, the default, is the largest; it is valid for every B.

    Notes
    -----
    Adjacency: the record is present, or **zeroed** (its vector counts as 0, but it keeps its place in a batch). The upper bound
    holds for every dataset, every dimension and both directions, and for **adaptive** vectors: each may depend on its record and on
    all earlier outputs, but on no other record. So the bound covers gradients that are clipped one by one, but not batch
    normalisation. All batches are full. ``self_compose(k)`` stands for k epochs with independent shuffles; batches that stay the
    same in every epoch are not covered.

    The lower bound is delta of a dataset in which the vectors of all other records are opposite to the target's vector (Chua et al.
    2024), with outputs rounded to 500 cells. In nine cases the rounding lowered log delta by at most 0.015. For sensitivity/sigma
    above 10 the lower bound is that for 10.

    For given T, the ratio of the upper to the lower bound of eps is smallest for large B. For T from 1e4 to 1e6, B = 1e4 and
    delta = 1e-5 this ratio is 1.2 to 1.3 for sigma = 2 and 4. As T increases to infinity and delta falls faster than 1/sqrt(T),
    eps tends to 0, and the ratio to at most 1.12 for every sigma. For sigma = 1 the upper bound is below that of one step only
    for large T; for sigma = 0.6 it is not below that of one step for any T up to 1e6.

    One eps takes 0.5 s for a new sigma and 0.1 s afterwards; a composition of epochs takes 1 to 10 s.

    References
    ----------
    Chua, L., Ghazi, B., Kamath, P., Kumar, R., Manurangsi, P., Sinha, A., Zhang, C. How private are DP-SGD implementations?
    arXiv 2403.17673, ICML 2024, section 4: the pair of the lower bound.

    Chua, L. et al. Scalable DP-SGD: shuffling vs. Poisson subsampling. arXiv 2411.04205, NeurIPS 2024.

    Feldman, V., McMillan, A., Talwar, K. Hiding among the clones. arXiv 2012.12803, FOCS 2021: an upper bound for adaptive local
    randomizers, which covers B = 1.

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> from shufflebounds.sampling import ShuffledBatches
    >>> epoch = ShuffledBatches(GaussianMechanism(4.0), batches=10**4, batch_size=1000)
    >>> print(f"{epoch.epsilon(1e-5, bound='lower'):.4f} {epoch.epsilon(1e-5):.4f}")
    0.0067 0.0086
    """

    noise: GaussianMechanism
    batches: int
    batch_size: int = 1

    theorem: ClassVar[str] = (
        "upper bound, proven for every dataset, every dimension and adaptive gradients (docs/theorems/shuffled-batches)"
    )
    lower_theorem: ClassVar[str] = ("delta of one dataset: the vectors of all other records are opposite to the target's "
                                    "(Chua et al. 2024)")
    proof: ClassVar[str] = "docs/theorems/shuffled-batches"
    neighbours: ClassVar[str] = (
        "one record is present, or its gradient counts as zero and its place in a batch stays (each gradient depends on its own "
        "record and on earlier outputs alone)"
    )
    relation: ClassVar[str] = "zeroed"

    def __post_init__(self) -> None:
        if not isinstance(self.noise, GaussianMechanism):
            raise TypeError(f"noise={_validate.short_repr(self.noise)} must be Gaussian noise: pass GaussianMechanism(sigma)")
        _validate.integer_field(self, "batches", 1)
        _validate.integer_field(self, "batch_size", 1)

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield from super().claims(eps, upper=upper)
        if upper or self.batches == 1:
            # The upper bound uses delta of one step, and is at most this delta.
            yield from self.noise.claims(eps, upper=upper)

    def closed_forms(self) -> ClosedForms:
        # In one batch of all records, the target's vector is shifted by the sum of all other vectors, which is known.
        return _Forms(self.noise, self.batches, self.batch_size) if self.batches > 1 else self.noise.closed_forms()

    def describe(self) -> DominatingPairInfo:
        forms = self._closed
        if not isinstance(forms, _Forms):
            return self.noise.describe()
        sampling = Sampling(_EFFORT, _SPACING, refined_gap=_GAP, convex=False, above=forms.above)
        return DominatingPairInfo(forms.log_delta, sampling=sampling, attained=Attained(pairs=forms.below))
