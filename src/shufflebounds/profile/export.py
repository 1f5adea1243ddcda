"""Methods of a profile that export it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT, TABLE_SIZE
from shufflebounds._base.types import Bound, FloatArray, IntervalArray
from shufflebounds._losses.interpolation import connect_the_dots
from shufflebounds._losses.sampled_profile import HockeyStickBounds
from shufflebounds.answers.bounded_profile import BoundedProfile
from shufflebounds.profile.saving import from_dict as read
from shufflebounds.profile.saving import to_dict as written

if TYPE_CHECKING:
    from shufflebounds.report.statement import Statement

__all__ = ["ExportMixin"]

_MARGIN = 1e-13
"""Relative margin for the rounding of the masses (a few ulp) and of the sums that dp-accounting computes from them. Raised: the
exported delta exceeds the upper bound by more than the 1e-13 that :meth:`ExportMixin.to_dp_accounting` states. Lowered: it could be
below the upper bound."""

@with_passages
class ExportMixin(BoundedProfile):
    """Methods of a profile that export it: distributions, figures, certified digits, saved data, a table for notebooks."""

    @np.errstate(all="ignore")
    def to_dp_accounting(self, interval: float = 1e-4, *, log_tail: float = -50.0) -> Any:
        r"""Return a privacy loss distribution of dp-accounting whose delta is an upper bound.

        Parameters
        ----------
        interval : float
            Spacing of the losses, in (0, 10]; distributions to be composed need the same spacing.
        log_tail : float
            In [-700, -1]. The grid of losses ends at the eps at which log delta falls below `log_tail`; larger losses count as
            infinite.

        Returns
        -------
        dp_accounting.pld.privacy_loss_distribution.PrivacyLossDistribution
            At each multiple of `interval`, delta of this distribution is the upper bound of :meth:`delta`, rounded up by about
            1e-13. Between two multiples it is linear in e^eps, and larger than the upper bound, because delta is convex in e^eps.
            For a mechanism the distribution is symmetric: it covers every pair of neighbours as (P, Q) and as (Q, P), also if the
            order differs from release to release. For a :class:`~shufflebounds.profile.DominatingPair` the result has separate
            distributions for (P, Q) and for (Q, P), which is tighter if all releases have the same order.

        {raises: If an argument lies outside its range, or the grid would need more than 2**20 points.}
        ImportError
            If dp-accounting is not installed (extra ``interop``).

        Notes
        -----
        The method is Connect the Dots: the result is the distribution of losses of the pair whose hockey-stick divergence is
        piecewise linear in :math:`e^\varepsilon` between the grid points. dp-accounting stores probabilities, not logarithms: for
        delta below 1e-300 use :meth:`log_delta`.

        References
        ----------
        Doroshenko, V., Ghazi, B., Kamath, P., Kumar, R., Manurangsi, P. Connect the Dots: tighter discrete approximations of
        privacy loss distributions. PoPETs 2022, Algorithm 1.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> noise = shuffle.BinomialNoise(trials=10**4, prob=0.5)
        >>> pld = noise.to_dp_accounting(interval=1e-3)
        >>> print(f"{noise.delta(0.05):.9e} {pld.get_delta_for_epsilon(0.05):.9e}")
        4.114890085e-05 4.114890085e-05
        """
        interval = _validate.real("interval", interval, 0, 10, open_low=True)
        log_tail = _validate.real("log_tail", log_tail, -LARGEST_EXPONENT, -1)
        try:
            from dp_accounting.pld import privacy_loss_distribution as pld
        except ImportError as problem:
            raise ImportError("to_dp_accounting needs dp-accounting: pip install 'shufflebounds[interop]'") from problem
        opposite = self.reverse()
        sides = [self] if opposite is self else [self, opposite]
        tops = [_top(side, interval, log_tail) for side in sides]
        sticks = [side._log_delta for side in sides]
        if self._described.losses.unmatched is not None:
            top = max(float(side._known_side(np.zeros(1), upper=True)[0]) for side in sides)
            sticks = [partial(_raised, stick, top) for stick in sticks]
        laws, rests = [], []
        for i in range(len(sides)):
            index = np.arange(-tops[-1 - i], tops[i] + 1, dtype=np.float64)
            atoms = connect_the_dots(interval * index, sticks[i], sticks[-1 - i])
            masses = np.minimum(np.exp(atoms.log_p + atoms.slack) * (1 + _MARGIN), 1.0)
            laws.append(dict(zip(np.rint(atoms.loss / interval).astype(int).tolist(), masses.tolist())))
            rests.append(min(1.0, math.exp(atoms.log_rest + atoms.slack) * (1 + _MARGIN)))
        if len(sides) == 1:
            return pld.PrivacyLossDistribution.create_from_rounded_probability(laws[0], rests[0], interval)
        return pld.PrivacyLossDistribution.create_from_rounded_probability(
            laws[0], rests[0], interval, True, laws[1], rests[1], symmetric=False
        )

    def to_opendp(self) -> Any:
        """Return the upper bound of delta as a privacy profile of OpenDP.

        Returns
        -------
        opendp.PrivacyProfile
            Its ``delta(epsilon)`` is :meth:`delta`; OpenDP computes ``epsilon(delta)`` from it.

        Raises
        ------
        ImportError
            If opendp is not installed (extra ``interop``).
        OpenDPException
            If its features ``contrib`` and ``honest-but-curious`` are not enabled.

        Examples
        --------
        >>> import opendp.prelude as dp
        >>> dp.enable_features("contrib", "honest-but-curious")
        >>> from shufflebounds import shuffle
        >>> noise = shuffle.BinomialNoise(trials=10**4, prob=0.5)
        >>> noise.to_opendp().delta(epsilon=0.05) == noise.delta(0.05)
        True
        """
        try:
            from opendp.measures import new_privacy_profile
        except ImportError as problem:
            raise ImportError("to_opendp needs opendp: pip install 'shufflebounds[interop]'") from problem
        pure = self.epsilon(0.0)

        # OpenDP, not the user, chooses the eps at which it calls this function, so no warning is printed.
        @_validate.quiet()
        def delta(eps: float) -> float:
            return 0.0 if eps >= pure else self.delta(min(eps, LARGEST_EXPONENT))

        return new_privacy_profile(delta)

    def to_dict(self) -> dict[str, Any]:
        """Return this profile as plain data for JSON, as :func:`~shufflebounds.composition.to_dict` does.

        Returns
        -------
        dict
            The name of the class and its parameters, as strings, numbers and lists.

        Examples
        --------
        >>> from shufflebounds import PrivacyProfile
        >>> from shufflebounds.mechanisms import GaussianMechanism
        >>> twice = GaussianMechanism(2.0).self_compose(2)
        >>> PrivacyProfile.from_dict(twice.to_dict()) == twice
        True
        """
        return written(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the profile saved by :meth:`to_dict`, as :func:`~shufflebounds.composition.from_dict` does.

        Parameters
        ----------
        data : mapping
            The result of :meth:`to_dict`, possibly converted to JSON and back.

        Returns
        -------
        PrivacyProfile
            A profile of this class that equals the one that was saved.

        {raises: If `data` is not valid, or of another class; ``PrivacyProfile.from_dict`` accepts every class.}
        """
        profile = read(data)
        if not isinstance(profile, cls):
            raise ValueError(f"profile={data['profile']!r} is no {cls.__name__}")
        return profile

    def plot(self, ax: Any = None, *, eps: ArrayLike | None = None, label: str | None = None) -> Any:
        r"""Draw :math:`\delta(\varepsilon)` on a logarithmic axis: both bounds, with the area between them shaded.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        eps : array_like, optional
            Privacy losses in nats, finite and >= 0; by default from 0 to the eps at which delta falls below 1e-15 or stays
            constant.
        label : str, optional
            Text for the legend; by default the profile's `repr`.

        Returns
        -------
        matplotlib.axes.Axes
            The Axes with the curve; call ``matplotlib.pyplot.show`` to display it. The y values are log10 of delta, so that
            arbitrarily small delta can be drawn; the tick labels show delta.

        {raises: If `eps` lies outside its range.}
        ImportError
            If matplotlib is not installed (extra ``plot``).

        See Also
        --------
        shufflebounds.compare : several profiles in one plot.
        shufflebounds.tradeoff.Tradeoff.plot : the trade-off function, as in ``profile.tradeoff().plot()``.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> ax = shuffle.BinomialNoise(trials=1000, prob=0.5).plot()
        >>> ax.get_xlabel()
        'privacy loss $\\varepsilon$ (nats)'
        """
        from shufflebounds.report.pictures import plot_profile

        return plot_profile(self, ax, eps, label)

    def statement(self, *, delta: float) -> Statement:
        """Return the guarantee in five plain paragraphs, for a report or a privacy review.

        The paragraphs state what is protected and from whom, the guarantee with both bounds, the assumptions with the neighbouring
        relation, and the proof with the version of the library.

        Parameters
        ----------
        delta : float
            Failure probability in [0, 1).

        Returns
        -------
        Statement
            ``str()`` returns text, ``.markdown()`` Markdown, and ``.html()`` a web page with the curve of delta as a function of
            epsilon.

        {raises: If `delta` lies outside its range.}

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> statement = shuffle.StrongerClones(users=10**6, local_eps=4.0).statement(delta=1e-8)
        >>> statement.epsilon <= 0.0450730
        True
        >>> print(statement.sentences[0])
        What one user contributes. The guarantee compares two situations that differ in one way: replace one user's input.
        """
        from shufflebounds.report.statement import statement

        profile: Any = self
        return statement(profile, delta)

    def certify(self, eps: float, *, bound: Bound | None = None, digits: int = 15, seconds: float = 10.0) -> Any:
        r"""Return :math:`\delta(\varepsilon)`, or a stated bound of it, recomputed in interval arithmetic.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, in [0, 700].
        bound : {"upper", "lower"}, optional
            Which bound of :meth:`delta` is certified; None for delta itself, if the class computes it exactly.
        digits : int
            Significant decimal digits, 1 to 1000. Bounds that are computed by Fourier inversion have about 6 digits, whatever
            `digits` is.
        seconds : float
            Largest predicted run time, > 0.

        Returns
        -------
        flint.arb
            Without `bound`, a ball (an interval) that contains the exact delta of the stored parameters. For "upper", the upper end
            of the ball is at least delta of every dataset. It exceeds the upper bound of :meth:`delta` by at most the accuracy of
            the certificate: 1e-9 in log delta, or 3e-5 for the privacy blanket. For "lower", the lower end of the ball is at most
            the largest delta of a dataset. It is below the lower bound of :meth:`delta` by at most the same accuracy. A ball that
            contains 0 does not show that delta is positive.

        {raises}
        CertificateGap
            If the certificate does not reach the stated bound; the message has both numbers (a ValueError).
        InfeasibleError
            If the certificate would take longer than `seconds` or have too many terms, or if no certificate is found for extreme
            parameters; the message states the predicted time, the limit or the reason (a ValueError).
        TypeError
            If the class has no certificate. The table in docs/trust lists all classes.
        ImportError
            If python-flint is not installed (extra ``certify``).

        Notes
        -----
        The sums over all outcomes are evaluated in ball arithmetic, and the precision is doubled until the requested digits are
        reached. The code is independent of that of :meth:`delta`. Only numbers that may be chosen freely in the proof, such as the
        exponential tilt of a sum or the dataset of a lower bound, are taken from :meth:`delta`, and the conditions on them are
        verified. To certify an answer of :meth:`epsilon`, certify delta at this eps, and compare the upper end of the ball with the
        delta given to :meth:`epsilon`.

        References
        ----------
        Johansson, F. Arb: efficient arbitrary-precision midpoint-radius interval arithmetic. IEEE Trans. Computers, 2017.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> ball = shuffle.StrongerClones(users=100, local_eps=1.0).certify(0.2)
        >>> print(ball.str(12, radius=False))
        0.00338278421502
        """
        eps = _validate.real("eps", eps, 0, LARGEST_EXPONENT)
        digits = _validate.integer("digits", digits, 1, 1000)
        seconds = _validate.real("seconds", seconds, 0, open_low=True)
        if bound is not None:
            _validate.upper_side(bound)
        from shufflebounds.certify import certify, confirms

        profile: Any = self
        ball = certify(profile, eps, bound, digits, seconds)
        if bound is not None and confirms(ball, profile.log_delta(eps, bound=bound), bound):
            profile._certified.of((eps, bound == "upper"), lambda: True)
        return ball

    def _repr_html_(self) -> str:
        # The notebook shows only a table, because drawing a figure takes too long for the output of a cell.
        from shufflebounds.report.pictures import table

        return table(self)


def _raised(stick: HockeyStickBounds, top: float, eps: FloatArray) -> IntervalArray:
    """Return bounds of an unmatched divergence, with the upper bound raised until the divergences of both orders join.

    `top` is the log of the larger divergence d at E = e^eps = 1. Both are raised to at least the line d - (E - 1) (1 - d)/2, so
    that their joint function of E is convex at 1.
    """
    lower, upper = stick(eps)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        line = top + np.log1p(-np.expm1(eps) * (-np.expm1(top) / 2 * np.exp(-top)))
    return IntervalArray(lower, np.fmax(upper, line))


@_validate.quiet()
def _top(profile: BoundedProfile, interval: float, log_tail: float) -> int:
    """Return the index of the grid point beyond which delta is 0, is below e^log_tail, or is nearly constant."""
    cap = TABLE_SIZE * interval
    tail = max(math.exp(log_tail), 5e-324)
    eps = profile.epsilon(tail)
    if eps == math.inf:
        # Some outcomes have infinite loss, and delta at large eps is the mass of these outcomes. The grid ends where delta is close
        # to this mass.
        eps = profile.epsilon(min(1.0, profile.delta(min(cap, LARGEST_EXPONENT)) * (1 + 1e-9) + tail))
    if eps > min(cap, LARGEST_EXPONENT):
        if cap < LARGEST_EXPONENT:
            raise ValueError(
                f"interval={interval:g} must be >= {min(eps, LARGEST_EXPONENT) / TABLE_SIZE:.2g}: the losses reach {eps:.6g}, "
                f"and the grid may have {TABLE_SIZE} points on a side"
            )
        eps = LARGEST_EXPONENT
    return max(1, math.ceil(float(eps) / interval))
