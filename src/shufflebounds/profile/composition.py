"""Compositions: the privacy profile of several mechanisms that are released on the same data, with both bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.calls import class_given
from shufflebounds._base.docs import with_passages
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds.profile.product import Product, flattened
from shufflebounds.profile.profile import PrivacyProfile

__all__ = ["Composition"]


@with_passages
@dataclass(frozen=True)
class Composition(PrivacyProfile):
    r"""Several mechanisms released on the same data, each with fresh randomness.

    .. math:: \delta(\varepsilon) = H_{e^\varepsilon}\left( \prod_j P_j^{r_j} \,\|\, \prod_j Q_j^{r_j} \right)

    Made by :meth:`PrivacyProfile.compose` and :meth:`PrivacyProfile.self_compose`.

    Parameters
    ----------
    factors : sequence of (PrivacyProfile, int)
        The mechanisms, each with its number of releases. Compositions among them are expanded, and equal mechanisms are combined.
    rtol : float
        The grid is refined until the relative gap of eps is at most rtol, or it has about 2**20 points, or a finer grid does not
        reduce the gap; in [1e-12, 0.1]. A smaller rtol does not give wider bounds.

    Notes
    -----
    Pairs. A :class:`DominatingPair` is composed in the order given. Mechanisms with add/remove adjacency are composed for the added
    and for the removed record, and the larger delta counts. Any other profile is a maximum over several pairs, at least both orders
    of its neighbours, and an adversary may choose the pair of each release after seeing earlier results. If the pairs are
    enumerated and there are at most a few hundred releases, the bounds are those of the best such strategy. For flipped bits, whose
    datasets are too many to enumerate, the upper bound chooses among blocks of datasets and the lower bound among two datasets.
    In all other cases the upper bound uses, for every release, the maximum of delta over the pairs at each eps, and the lower bound
    the same entry of ``pairs()`` in all releases. If no pairs are known, the lower bound repeats one test in every release; the
    slope of delta at eps gives its probabilities.

    Method. See :doc:`/composition`: losses on a grid, exponentially tilted to eps and convolved by FFT. Errors are relative to
    delta, however small it is. Losses on a common lattice, such as those of randomized response, are exact, and so are compositions
    of Gaussian noise alone. A mechanism with expensive delta is evaluated at a few hundred eps, placed where they matter most. For
    too many pure releases, about 1e10, the upper bound uses the Gaussian guarantees of the releases and the lower bound a single
    release. Gaussian noise on Poisson samples needs no grid: its moment generating function is inverted along a contour in the
    complex plane. Where this fails because records are rarely sampled, and where a grid would be too long, sums over all pairs of
    outcomes are reduced to losses whose distance is proportional to the loss. Clone bounds of one budget whose numbers of users
    differ by a relative rtol/4 or less share one distribution: that of the fewest users for the upper bound, of the most users for
    the lower one.

    For an rtol below 1e-6 the gap is that of the finest grid. Measured at delta = 1e-6, it is 1e-9 to 1e-7 for Laplace noise and
    for samples of noise, 1e-6 for counts, and 1e-5 where records are rarely sampled. Where delta of a factor has a larger gap, as
    for random allocation and most shuffled randomizers, this gap remains.

    Trade-off functions have breakpoints down to delta = e**-338, on a coarser grid. If smaller delta decides mu, its upper bound is
    the root of the sum of the squares of the factors' mu.

    References
    ----------
    Doroshenko, V. et al. Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions. PoPETs 2022.

    Koskela, A., Jälkö, J., Honkela, A. Computing Tight Differential Privacy Guarantees Using FFT. AISTATS 2020.

    Examples
    --------
    >>> from shufflebounds.shuffle import BinomialNoise
    >>> BinomialNoise(10**4, 0.5).self_compose(3).compose(BinomialNoise(10**4, 0.5))
    Composition(factors=((BinomialNoise(trials=10000, prob=0.5), 4),), rtol=1e-05)
    """

    factors: tuple[tuple[PrivacyProfile, int], ...]
    rtol: float = 1e-5

    _prepares: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _validate.real_field(self, "rtol", 1e-12, 0.1)
        checked: list[tuple[PrivacyProfile, int]] = []
        for profile, times in self.factors:
            count = _validate.integer("times", times, 1)
            if not isinstance(profile, PrivacyProfile):
                advice = ("; pass several profiles as arguments, compose(p, q)" if isinstance(profile, list | tuple) else
                          class_given(profile))
                raise TypeError(f"{_validate.short_repr(profile)} must be a PrivacyProfile to be composed{advice}")
            checked.append((profile, count))
        if not checked:
            raise ValueError("factors must not be empty: give at least one mechanism")
        object.__setattr__(self, "factors", flattened(checked))
        self._check_relations()

    def _check_relations(self) -> None:
        """Raise ValueError if the factors have different neighbouring relations."""
        kinds: dict[str, PrivacyProfile] = {}
        for profile, _ in self.factors:
            kinds.setdefault(profile.relation, profile)
        if "add-remove" in kinds and "replace-one" in kinds:
            raise ValueError(
                f"the guarantee of {kinds['add-remove']!r} is for datasets with or without a record, that of "
                f"{kinds['replace-one']!r} for a record replaced by another: no composition holds for both. Convert the first by "
                "sampling.ReplaceOne(...), which replaces by removing and adding, or give both for the same neighbours"
            )
        loose = next((p for p, _ in self.factors if p.reverse() is not p and p._pair_info().attained.single), None)
        two_ways = next((p for p, _ in self.factors if p._adjacencies()), None)
        if loose is not None and two_ways is not None:
            raise ValueError(f"{loose!r} is one ordered pair, {two_ways!r} stands for both orders: compose the pair with one entry "
                             "of the pairs() of the other, in the same order")

    @property
    def theorem(self) -> str:  # type: ignore[override]
        """What is proven about the composition, and about each factor."""
        parts = dict.fromkeys(profile.theorem for profile, _ in self.factors)
        return ("composition: each release is represented by a pair of distributions that dominates all of its neighbouring data, "
                "and these pairs are multiplied. The releases: " + "; ".join(parts))

    @property
    def neighbours(self) -> str:  # type: ignore[override]
        """The neighbouring relations of the factors."""
        return "; ".join(dict.fromkeys(profile.neighbours for profile, _ in self.factors)) + " (all on the same data)"

    @property
    def relation(self) -> str:  # type: ignore[override]
        """The neighbouring relation that all factors share."""
        return next((profile.relation for profile, _ in self.factors if profile.relation != "either"), "either")

    @classmethod
    def _of(cls, product: Product) -> Composition:
        """Return the composition of these factors, which shares the caches of the product."""
        made = cls(product.factors, product.rtol)
        object.__setattr__(made, "_product", product)
        return made

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # Cached distributions are not pickled.
        return type(self), (self.factors, self.rtol)

    def describe(self) -> DominatingPairInfo:
        return self._product.describe()

    def closed_forms(self) -> Product:
        return self._product

    @cached_property
    def _product(self) -> Product:
        return Product(self.factors, self.rtol)

    @cached_property
    def _by_adjacency(self) -> tuple[Composition, ...]:
        """The compositions for a removed and for an added record, or () if no factor distinguishes them."""
        return tuple(map(self._of, self._product.ways))

    def reverse(self) -> Composition:
        return self._reversed

    @cached_property
    def _reversed(self) -> Composition:
        """The composition of the pairs in the other order, which is this one if all of them are symmetric."""
        return self if self._product.reverse is self._product else self._of(self._product.reverse)

    @np.errstate(all="ignore")
    def explain(self, eps: float) -> str:
        """Describe in a few lines how the bounds at one eps are computed.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, finite and >= 0.

        Returns
        -------
        str
            The factors, the two bounds of log delta, the method, the grid of losses and the truncation.

        {raises: If `eps` is negative or not finite.}

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise
        >>> print(BinomialNoise(10**4, 0.5).self_compose(100).explain(0.8).splitlines()[2])
        method: losses on a grid, composed by one tilted Fourier transform from above and one from below
        """
        eps = _validate.real("eps", eps, 0)
        lower, upper = (float(self.log_delta(eps, bound=bound)) for bound in ("lower", "upper"))
        releases = ", ".join(f"{times} x {profile!r}" for profile, times in self.factors)
        lines = [f"releases: {releases}", f"log delta({eps:g}) lies in [{lower:.12g}, {upper:.12g}]"]
        return "\n".join([*lines, *self._product.method(eps)])
