"""The description of a privacy profile, and the methods that need only bounds of log delta.

These methods are delta(eps), eps(delta) and the tail of the privacy loss.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar, overload

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds._base.evidence import (
    CERTIFIED,
    ROUNDING,
    Evidence,
    Status,
    format_argument,
    format_bound,
    shown,
    weakest_first,
)
from shufflebounds._base.limits import CACHED_ANSWERS
from shufflebounds._base.progress import announced
from shufflebounds._base.types import (
    Bound,
    FloatArray,
    InconsistentBoundsError,
    IntervalArray,
    consistent,
    plain,
    probability,
    typed_as,
)
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds.answers.answering import Answering
from shufflebounds.tradeoff import Tradeoff

__all__ = ["BoundedProfile"]


@with_passages
@explained
class BoundedProfile(Answering):
    """A function delta(eps) given by bounds of its logarithm, with the methods delta, epsilon and loss_tail.

    The objects that `describe` and `closed_forms` return contain callables: functions of the parameters, or methods of an object
    that holds the parameters. They must not contain bound methods of the profile: the profile caches both objects, so that each
    bound method would cause a reference cycle.
    """

    theorem: ClassVar[str]
    lower_theorem: ClassVar[str]
    proof: ClassVar[str]
    neighbours: ClassVar[str]
    relation: ClassVar[str]
    _prepares: ClassVar[bool] = False
    """Whether the first value of delta needs tables that take long to compute; a notebook then shows values only on request."""

    @abstractmethod
    def tradeoff(self, *, bound: Bound = "lower") -> Tradeoff:
        """Return a bound of the trade-off function."""

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        """Return the claims on which one bound of delta rests.

        A class overrides this method if it needs more claims than its `theorem`.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, finite and >= 0.
        upper : bool
            Whether the claims of the upper bound are returned, or those of the lower bound.

        Returns
        -------
        iterable of Evidence
            By default `theorem` or `lower_theorem`, and the claim about rounding.
        """
        kind = type(self)
        claim = self.theorem if upper else self.lower_theorem or self.theorem
        stated = claim != "not stated"
        yield Evidence(claim if stated else "no proof is stated", Status.THEOREM if stated else Status.OPEN,
                       self.proof or f"{kind.__module__}.{kind.__qualname__}")
        yield ROUNDING

    def evidence(self, eps: float, *, bound: Bound = "upper") -> tuple[Evidence, ...]:
        """Return the claims on which a bound of delta rests, the weakest first.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, finite and >= 0.
        bound : {"upper", "lower"}
            The bound whose claims are returned.

        Returns
        -------
        tuple of Evidence
            Each has a claim, its status (OPEN, MEASURED, CHECKED or THEOREM) and the place where it is proved, checked or measured.
            After :meth:`certify` has proved the bound at this eps, a claim that it was certified replaces the claim about rounding.

        {raises: If `eps` is negative or not finite, or `bound` is another word.}

        Examples
        --------
        >>> from shufflebounds.shuffle import StrongerClones
        >>> for one in StrongerClones(10**6, 4.0).evidence(0.045):
        ...     print(one.status.name, one.where)
        MEASURED docs/numerics
        THEOREM docs/theorems/stronger-clones
        THEOREM tests/proofs/StrongerClones.v
        """
        eps, upper = _validate.real("eps", eps, 0), _validate.upper_side(bound)
        shown = (eps, upper) in self._certified
        return weakest_first(CERTIFIED if shown and one.arithmetic else one for one in self.claims(eps, upper=upper))

    @np.errstate(all="ignore")
    def explain(self, eps: float) -> str:
        """Describe how the bounds at one eps are computed, and the theorem or check on which each of them rests.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, finite and >= 0.

        Returns
        -------
        str
            Lines with the mechanism or the releases, the two bounds of log delta and the method; then, for each bound, whether it
            is proved and the claims on which it rests. If there are several methods for a bound, an indented line for each gives
            its log delta, or the reason why it was not computed.

        {raises: If `eps` is negative or not finite.}

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise, StrongerClones
        >>> print(StrongerClones(10**6, 4.0).explain(0.045).splitlines()[3])
        upper bound: proved, up to rounding, which is charged with a measured margin
        >>> print(BinomialNoise(10**4, 0.5).self_compose(100).explain(0.8).splitlines()[2])
        method: losses on a grid, composed by one tilted Fourier transform from above and one from below
        """
        eps = _validate.real("eps", eps, 0)
        lower, upper = (float(self.log_delta(eps, bound=bound)) for bound in ("lower", "upper"))
        factors = getattr(self, "factors", ())
        subject = f"releases: {', '.join(f'{times} x {part!r}' for part, times in factors)}" if factors else f"mechanism: {self!r}"
        interval = ", ".join(format_bound(value, upper=is_upper) for value, is_upper in ((lower, False), (upper, True)))
        lines = [subject, f"log delta({format_argument(eps)}) lies in [{interval}]", *self._method(eps)]
        for bound in ("upper", "lower"):
            lines += shown(bound, self.evidence(eps, bound=bound))
        return "\n".join(lines)

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        explained(cls)

    @cached_property
    def _given(self) -> dict[tuple[str, bool, float], float]:
        """Cache of the bounds that were returned. The key is (question, whether it is an upper bound, argument)."""
        return {}

    @cached_property
    def _certified(self) -> Kept[tuple[float, bool], bool]:
        """The pairs (eps, whether it is the upper bound) for which :meth:`certify` has proved the bound that this object states."""
        return Kept(CACHED_ANSWERS)

    def _compared(self, question: str, at: FloatArray, value: FloatArray, upper: bool) -> FloatArray:
        """Return `value`, the bounds of a quantity at these arguments, after a check that they do not contradict earlier bounds.

        Raises InconsistentBoundsError if a bound is NaN, or if it contradicts an opposite bound that was returned earlier. The
        check evaluates no further bounds.
        """
        for one in at[np.isnan(value)].tolist():
            raise InconsistentBoundsError(question.format(one), *((-math.inf, math.nan) if upper else (math.nan, math.inf)))
        earlier = self._given
        if len(earlier) > CACHED_ANSWERS:
            earlier.clear()
        for one, bound in zip(at[:CACHED_ANSWERS].tolist(), value.tolist()):
            earlier[question, upper, one] = bound
            given = earlier.get((question, not upper, one))
            if given is not None and (bound < given if upper else bound > given):
                lower, above = (given, bound) if upper else (bound, given)
                consistent(IntervalArray(np.array([lower]), np.array([above])), question, np.array([one]))
        return value

    @overload
    def log_delta(self, eps: float, *, bound: Bound = ...) -> float: ...
    @overload
    def log_delta(self, eps: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    @np.errstate(all="ignore")
    def log_delta(self, eps: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""Natural logarithm of :math:`\delta(\varepsilon)`, accurate also where delta itself underflows.

        Parameters
        ----------
        eps : float or array_like
            Privacy loss in nats, finite and >= 0.
        bound : {"upper", "lower"}
            "upper" is never below the exact value of the quantity that the class documents, and "lower" is never above this value.

        Returns
        -------
        float or ndarray
            The chosen bound of log delta, of the shape of `eps`; -inf where delta is 0.

        {raises: If `eps` is negative, not finite or empty, or `bound` is another word.}
        """
        upper = _validate.upper_side(bound)
        array = _validate.real_array("eps", eps, 0)
        with announced("delta"):
            value = self._known_side(array.ravel(), upper=upper)
        if type(self._closed).side is not ClosedForms.side:
            self._compared("log delta at eps={!r}", array.ravel(), value, upper)
        return plain(value.reshape(array.shape))

    @typed_as(log_delta)
    def delta(self, eps: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""The least :math:`\delta` for which the mechanism is (eps, delta)-differentially private.

        Parameters
        ----------
        eps : float or array_like
            Privacy loss in nats, finite and >= 0.
        bound : {"upper", "lower"}
            Whether the result is an upper or a lower bound of the exact value.

        Returns
        -------
        float or ndarray
            The chosen bound of delta in [0, 1], of the shape of `eps`. Where delta is positive but below the smallest double
            the upper bound is that double, never 0; use :meth:`log_delta` there.

        {raises: If `eps` is negative, not finite or empty, or `bound` is another word.}
        """
        value = probability(self.log_delta(eps, bound=bound), bound == "upper")
        # An eps of at most 1e-4 that is below delta is usually a delta passed by mistake. With a higher threshold, guarantees that
        # are possible with many users would cause a warning, too.
        if np.ndim(eps) == 0 and 0 < (one := float(eps)) <= 1e-4 and value > one:  # type: ignore[arg-type]
            _validate.warn(f"delta(eps={one:g}) = {value:.3g} exceeds eps: delta() takes the privacy loss eps in nats, such as 1. "
                           f"Did you mean epsilon(delta={one:g})?")
        return value

    @overload
    def epsilon(self, delta: float, *, bound: Bound = ...) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    @np.errstate(all="ignore")
    def epsilon(self, delta: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""The least :math:`\varepsilon` for which the mechanism is (eps, delta)-differentially private.

        Parameters
        ----------
        delta : float or array_like
            Failure probability in [0, 1]; 0 asks for pure differential privacy.
        bound : {"upper", "lower"}
            "upper": an eps at which the upper bound of delta is at most `delta`. It was evaluated at this eps or, for clone bounds,
            at a smaller eps, so rounding in the search does not matter. "lower": an eps at which the lower bound of delta is at
            least `delta`, so the mechanism is (eps, delta)-private for no smaller eps.

        Returns
        -------
        float or ndarray
            The chosen bound in nats, of the shape of `delta`; inf if no finite eps meets `delta` (for example delta = 0 without
            pure differential privacy).

        {raises: If `delta` lies outside [0, 1] or is empty, or `bound` is another word.}

        Notes
        -----
        A bracketing search finds the eps at which the bound of delta equals `delta`. It interpolates the square root of -log delta,
        which is nearly linear in eps. Steps in the conservative direction follow, until the evaluated bound of delta satisfies the
        inequality stated for `bound`. An entry of an array `delta` may have another result than in a call with this entry alone,
        within the tolerance of the search: a relative 1e-13, or more where the bounds have a gap (1e-4 times the `rtol` of a
        composition).
        """
        upper = _validate.upper_side(bound)
        try:
            array = _validate.real_array("delta", delta, 0, 1)
        except ValueError as problem:
            raise ValueError(f"{problem}; epsilon() takes the failure probability, such as 1e-9, and delta() takes eps") from None
        with announced("epsilon"):
            out = self._epsilons(array.ravel(), upper)
        out = self._compared("epsilon at delta={!r}", array.ravel(), out, upper).reshape(array.shape)
        if out.ndim == 0 and array > _validate.LARGE_DELTA and out < array:
            _validate.warn(f"epsilon(delta={array:g}) = {out:.3g} is below delta: epsilon() takes the failure probability delta, "
                           f"such as 1e-9. Did you mean delta(eps={array:g})?")
        return plain(out)

    @typed_as(log_delta)
    @np.errstate(all="ignore")
    def loss_tail(self, eps: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""The probability that the privacy loss of an outcome exceeds eps (also called probabilistic or pointwise privacy).

        .. math:: \Pr_{y \sim P}\Bigl[\ln\frac{P(y)}{Q(y)} > \varepsilon\Bigr]

        Parameters
        ----------
        eps : float or array_like
            Privacy loss in nats, finite and > 0.
        bound : {"upper", "lower"}
            "upper": at least the probability for every pair; "lower": at most the probability for some pair. The pairs are those of
            :meth:`pairs`: the worst pair alone if the mechanism has one, such as noise added to a value, and otherwise all pairs of
            neighbours.

        Returns
        -------
        float or ndarray
            The chosen bound, of the shape of `eps`. The probability is at least delta(eps), and usually several times larger. If
            the pairs are not enumerated, the upper bound is most often 2.5 to 5 times the lower one; see :doc:`/gaps`. If the loss
            takes few values, the upper bound may include the mass of losses equal to eps, and the lower bound may omit the mass at
            the smallest loss above eps.

        {raises: If `eps` is not positive, not finite or empty, or `bound` is another word.}

        Notes
        -----
        Let L be the privacy loss, :math:`\ln P(y)/Q(y)`. As a function of :math:`E = e^\varepsilon`, delta of a pair is convex and
        has the slope :math:`-Q(L > \varepsilon)`. So for every h > 0

        .. math:: \delta(\varepsilon) + \frac{\delta(\varepsilon) - \delta(\varepsilon + h)}{e^h - 1} \le \Pr[L > \varepsilon]
            \le \frac{\delta(\varepsilon - h) - e^{-h}\delta(\varepsilon)}{1 - e^{-h}}.

        If delta is a maximum over several pairs, the term :math:`-e^{-h}\delta(\varepsilon)` of the upper bound is omitted. Each
        bound is the tightest one among those for forty values of h. No upper bound below the minimum over h follows from values of
        delta: a pair whose loss is slightly above :math:`\varepsilon` with this probability, and otherwise not positive, has no
        larger delta at any eps. For randomized bits the distribution of the loss is known, and a search over datasets gives bounds
        within 11 % of each other.

        References
        ----------
        .. [1] Zhilyaev, M. "Shuffled bits and fake records", (2.2) and Proposition 2.1; the converse, Proposition 2.3, is false.
        .. [2] S. Das, "Differential privacy: ideas, concepts and advances", 2022, Definition 3.6.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> bits = shuffle.ShuffledBits(users=10**4, flip=0.05, ones=0)
        >>> lower, upper = bits.loss_tail(0.2, bound="lower"), bits.loss_tail(0.2)
        >>> print(f"{bits.delta(0.2):.2e} {lower:.2e} {upper:.2e}")
        2.87e-08 3.11e-06 3.11e-06
        """
        upper = _validate.upper_side(bound)
        array = _validate.real_array("eps", eps, 0, open_low=True)
        with announced("loss_tail"):
            question = "the tail of the loss above eps={!r}"
            out = consistent(self._loss_tail(array.ravel(), upper), question, array.ravel())[upper]
        return plain(self._compared(question, array.ravel(), out, upper).reshape(array.shape))
