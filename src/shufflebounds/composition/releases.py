"""Calibration of the protocol of one release such that several releases together meet a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.calibration import one_of_releases

__all__ = ["calibrate_releases"]

Protocol = TypeVar("Protocol", bound=PrivacyProfile)


@with_passages
def calibrate_releases(calibrate: Callable[..., Protocol], releases: int, *, eps: float, delta: float) -> Protocol:
    """Return the protocol for each of several releases that are (eps, delta)-private together.

    One release is calibrated to (eps', delta/releases). Here eps' is, to a relative 1e-3, the largest value for which the
    composition ``calibrate(eps=eps', delta=delta/releases).self_compose(releases)`` meets (eps, delta). If even eps' = eps meets
    the target, as for an eps that is small in comparison with delta, one release is calibrated to (eps, delta') with the largest
    delta' that meets it.

    Parameters
    ----------
    calibrate : callable
        A function of the keyword arguments `eps` and `delta` that returns a protocol whose single release is (eps, delta)-private.
        A larger eps must not make the protocol more private.
    releases : int
        Number of releases, 1 to 2**53. Their noise is independent. The input of each release may depend on the results of earlier
        releases; its protocol, and the number of releases, must not.
    eps : float
        Privacy loss in nats of all releases together, > 0.
    delta : float
        Failure probability of all releases together, in (0, 1).

    Returns
    -------
    PrivacyProfile
        The protocol of one release. The upper bounds of its composition were evaluated and meet the target.

    {raises}
        Also what `calibrate` raises, for example :exc:`~shufflebounds.InfeasibleError`.

    Examples
    --------
    A year of monthly histograms of 200,000 people. For protocols of this library,
    ``ClearReports.calibrate(bins=20, releases=12, eps=1.0, delta=1e-9)`` is shorter; this function is also for calibrations of your
    own.

    >>> from functools import partial
    >>> from shufflebounds import composition, shuffle
    >>> month = composition.calibrate_releases(
    ...     partial(shuffle.ClearReports.calibrate, bins=20), 12, eps=1.0, delta=1e-9)
    >>> month.self_compose(12).epsilon(1e-9) <= 1.0
    True
    """
    eps, delta = _validate.target(eps, delta, open_eps=True)
    if not callable(calibrate):
        raise TypeError(f"calibrate={_validate.short_repr(calibrate)} must be a function of eps and delta that returns a protocol, "
                        "such as lambda eps, delta: ShuffledBits.calibrate(eps=eps, delta=delta, users=1000)")
    return one_of_releases(calibrate, releases, eps=eps, delta=delta)
