"""An accountant for dp-accounting that answers with this library's numbers. Importing it needs dp-accounting (extra `interop`)."""

from __future__ import annotations

import math
from typing import Any

import attr
from dp_accounting import dp_event, privacy_accountant

from shufflebounds._types import Bound
from shufflebounds.mechanisms import GaussianMechanism, GeometricMechanism, KaryResponse, LaplaceMechanism
from shufflebounds.profile import Composition, DominatingPair, PrivacyProfile
from shufflebounds.sampling import RandomAllocation, Subsampled, WithoutReplacement
from shufflebounds.shuffle import StrongerClones

__all__ = ["ProfileDpEvent", "RandomAllocationDpEvent", "ShuffleAccountant", "ShuffledDpEvent"]

Relation = privacy_accountant.NeighboringRelation
Problem = privacy_accountant.PrivacyAccountant.CompositionErrorDetails


@attr.s(frozen=True, slots=True, auto_attribs=True)
class RandomAllocationDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """Random allocation: a record enters `chosen` of `steps` applications of the event, drawn uniformly."""

    event: dp_event.DpEvent
    steps: int
    chosen: int = 1


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ShuffledDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """The shuffled messages of users who run one randomizer with a pure local budget."""

    local_epsilon: float
    users: int


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ProfileDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """Any profile of this library."""

    profile: PrivacyProfile


class ShuffleAccountant(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]
    """A dp-accounting accountant with two sides, for the events of that library and three of this one.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation
        Add or remove a record (the default), replace it, or replace it by a special one, which counts as removing it.
    bound : {"upper", "lower"}
        The side of the exact value on which :meth:`get_epsilon` and :meth:`get_delta` answer.
    rtol : float
        The relative distance allowed between the sides of eps, in [1e-12, 0.1].

    Notes
    -----
    Events: Gaussian, Laplace, DiscreteLaplace, RandomizedResponse, PoissonSampled and SampledWithoutReplacement of one of them,
    SelfComposed, Composed, NoOp and NonPrivate; :class:`RandomAllocationDpEvent`, :class:`ShuffledDpEvent` and
    :class:`ProfileDpEvent`. An event whose guarantee is for other neighbours is refused. A noise multiplier is relative to the
    sensitivity to adding a record; replacing one is twice that.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    >>> from shufflebounds.interop.dp_accountant import ShuffleAccountant
    >>> step = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))
    >>> accountant = ShuffleAccountant().compose(step, 100)
    >>> lower, upper = accountant.get_epsilon(1e-5, bound="lower"), accountant.get_epsilon(1e-5)
    >>> print(f"{lower:.4f} {upper:.4f}")
    0.7180 0.7180
    """

    def __init__(
        self, neighboring_relation: Any = Relation.ADD_OR_REMOVE_ONE, *, bound: Bound = "upper", rtol: float = 1e-5
    ) -> None:
        super().__init__(neighboring_relation)
        self._bound, self._rtol = bound, rtol
        self._factors: list[tuple[PrivacyProfile, int]] = []
        self._whole: Composition | None = None
        self._lost = False

    @property
    def profile(self) -> Composition | None:
        """What has been composed so far; None before anything has."""
        if self._whole is None and self._factors:
            self._whole = Composition(tuple(self._factors), self._rtol)
            self._factors = list(self._whole.factors)
        return self._whole

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, dp_event.SelfComposedDpEvent):
            return self._maybe_compose(event.event, event.count * count, do_compose)
        if isinstance(event, dp_event.ComposedDpEvent):
            results = (self._maybe_compose(part, count, do_compose) for part in event.events)
            return next((problem for problem in results if problem is not None), None)
        try:
            profile = self._profile_of(event)
        except (TypeError, ValueError) as problem:
            return Problem(invalid_event=event, error_message=str(problem))
        if do_compose and count > 0:
            if profile is None:
                self._lost = True
            elif profile is not _NOTHING:
                self._factors.append((profile, count))
                self._whole = None
        return None

    def _profile_of(self, event: Any) -> Any:
        """Return the profile of one event, _NOTHING if it shows nothing, None if it shows all."""
        if isinstance(event, dp_event.NoOpDpEvent):
            return _NOTHING
        if isinstance(event, dp_event.NonPrivateDpEvent):
            return None
        profile = self._release_of(event)
        wrong = "add-remove" if self._neighboring_relation == Relation.REPLACE_ONE else "replace-one"
        if profile is not None and profile is not _NOTHING and profile.relation == wrong:
            raise ValueError(f"its neighbours are {profile.neighbours!r}, those of the accountant {self._neighboring_relation}")
        return profile

    def _release_of(self, event: Any) -> Any:
        if isinstance(event, ProfileDpEvent):
            return event.profile
        if isinstance(event, ShuffledDpEvent):
            return StrongerClones(event.users, event.local_epsilon)
        if isinstance(event, RandomAllocationDpEvent):
            inner = self._noise_of(event.event)
            return inner if inner in (None, _NOTHING) else RandomAllocation(inner, event.steps, event.chosen)
        if isinstance(event, dp_event.PoissonSampledDpEvent):
            inner = self._noise_of(event.event)
            if event.sampling_probability == 0 or inner in (None, _NOTHING):
                return _NOTHING if event.sampling_probability == 0 else inner
            return Subsampled(inner, event.sampling_probability)
        if isinstance(event, dp_event.SampledWithoutReplacementDpEvent):
            inner = self._noise_of(event.event)
            if event.sample_size == 0 or inner in (None, _NOTHING):
                return _NOTHING if event.sample_size == 0 else inner
            return WithoutReplacement(inner, event.source_dataset_size, event.sample_size)
        noise = self._noise_of(event)
        # a pair has one order, a record may be removed or added
        return Subsampled(noise, 1.0) if isinstance(noise, DominatingPair) else noise

    def _noise_of(self, event: Any) -> Any:
        far = 2.0 if self._neighboring_relation == Relation.REPLACE_ONE else 1.0
        if isinstance(event, dp_event.GaussianDpEvent | dp_event.LaplaceDpEvent):
            kind = GaussianMechanism if isinstance(event, dp_event.GaussianDpEvent) else LaplaceMechanism
            return kind(event.noise_multiplier, far) if event.noise_multiplier > 0 else None
        if isinstance(event, dp_event.DiscreteLaplaceDpEvent):
            reach = event.sensitivity * int(far)
            return GeometricMechanism(event.noise_parameter * reach, sensitivity=reach)
        if isinstance(event, dp_event.RandomizedResponseDpEvent):
            if self._neighboring_relation == Relation.ADD_OR_REMOVE_ONE:
                raise ValueError("a randomized response needs a value: choose REPLACE_ONE or REPLACE_SPECIAL")
            noise, bins = event.noise_parameter, event.num_buckets
            if noise == 1 or bins == 1:
                return _NOTHING
            if noise == 0:
                return None
            if self._neighboring_relation == Relation.REPLACE_ONE:
                return KaryResponse(bins, math.log1p((1 - noise) * bins / noise))
            # the special value is answered at random
            wrong = noise * (bins - 1) / bins
            return DominatingPair.from_pmfs([math.log1p(-wrong), math.log(wrong)], [-math.log(bins), math.log1p(-1 / bins)])
        raise TypeError(f"{type(event).__name__} has no profile here")

    def get_epsilon(self, target_delta: float, *, bound: Bound | None = None) -> float:
        """Return eps at a delta, on the named side.

        Parameters
        ----------
        target_delta : float
            In [0, 1].
        bound : {"upper", "lower"}, optional
            That of the accountant by default.

        Returns
        -------
        float
            In nats, inf where no eps serves.
        """
        if self._lost:
            return math.inf
        whole = self.profile
        return 0.0 if whole is None else whole.epsilon(target_delta, bound=bound or self._bound)

    def get_delta(self, target_epsilon: float, *, bound: Bound | None = None) -> float:
        """Return delta at an eps, on the named side.

        Parameters
        ----------
        target_epsilon : float
            >= 0 or inf.
        bound : {"upper", "lower"}, optional
            That of the accountant by default.

        Returns
        -------
        float
            In [0, 1].
        """
        if self._lost:
            return 1.0
        whole = self.profile
        if whole is None or target_epsilon == math.inf:
            # delta at infinity is the mass of infinite loss: nothing, or what delta is at a very large eps
            return 0.0 if whole is None else whole.delta(1e6, bound=bound or self._bound)
        return whole.delta(target_epsilon, bound=bound or self._bound)


_NOTHING: Any = object()
"""What an event shows that shows nothing."""
