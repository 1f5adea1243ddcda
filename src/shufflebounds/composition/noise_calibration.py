"""The smallest noise whose guarantee meets a target: (eps, delta), an advantage, or the two error rates of an attack."""

from __future__ import annotations

from collections.abc import Callable

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.calibration import least_of_goal
from shufflebounds.profile.goals import target_goal

__all__ = ["least_noise"]


@with_passages
def least_noise(
    release: Callable[[float], PrivacyProfile], *, eps: float | None = None, delta: float | None = None,
    advantage: float | None = None, fpr: float | None = None, fnr: float | None = None, near: float = 1.0, rtol: float = 1e-6,
) -> float:
    r"""Return the smallest noise x > 0 whose profile ``release(x)`` meets a target.

    .. math:: x^* = \min \{x > 0 : \delta_x(\varepsilon) \le \delta\}, \quad \min \{x : \delta_x(0) \le \text{advantage}\}, \quad
        \text{or } \min \{x : f_x(\text{fpr}) \ge \text{fnr}\}

    Here :math:`\delta_x` is the upper bound of delta of ``release(x)``, and :math:`f_x` the lower bound of its trade-off function.

    Parameters
    ----------
    release : callable
        A function of x > 0 that returns a profile, which must be more private for larger x. For example, x is a standard deviation
        or a scale; if a mechanism has a budget, use the budget 1/x. For several mechanisms, use multiples of x:
        ``lambda x: GaussianMechanism(x).compose(LaplaceMechanism(3 * x))``.
    eps, delta : float
        Target privacy loss in nats, in (0, 1e4], and failure probability in (0, 1).
    advantage : float
        Target in place of eps and delta, in (0, 1): the largest difference of the probabilities of a test under the two neighbours,
        which is delta at eps = 0.
    fpr, fnr : float
        Target in place of eps and delta, in (0, 1), with fpr + fnr < 1: every test with a false-positive rate of at most `fpr`
        has a false-negative rate of at least `fnr`.
    near : float
        The x at which the search starts, > 0. A good guess saves evaluations.
    rtol : float
        Relative tolerance of x, in [1e-12, 0.1].

    Returns
    -------
    float
        An x whose profile was evaluated and meets the target; for (eps, delta) both ``delta(eps) <= delta`` and
        ``epsilon(delta) <= eps``. If delta does not increase in x, the returned x exceeds the smallest such x by about a relative
        `rtol`. The exact delta may meet the target at a smaller x, because upper bounds of delta are compared with the target.

    {raises}
        Also what `release` raises at `near` or above; below `near`, a ValueError counts as a missed target.
    TypeError
        If `release` is not callable, or returns no profile.

    Notes
    -----
    Gaussian, Laplace or double geometric noise of a larger scale is noise of a smaller scale plus independent noise. So a release
    with the larger noise is a post-processing of one with the smaller noise, also on a sample of the records, and delta does not
    increase in x. This is not proved for discrete Gaussian and bounded noise: the returned x is valid, but a smaller x might be
    valid as well.

    Examples
    --------
    >>> from shufflebounds.composition import least_noise
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> training = lambda x: GaussianMechanism(x).subsampled(0.1).self_compose(100)
    >>> sigma = least_noise(training, eps=0.1, delta=1e-5, near=30.0)
    >>> print(f"{sigma:.3f}")
    30.893
    >>> print(f"{least_noise(GaussianMechanism, advantage=0.1):.4f}")
    3.9789
    """
    near = _validate.real("near", near, 0, open_low=True)
    rtol = _validate.real("rtol", rtol, 1e-12, 0.1)
    goal = target_goal(eps, delta, advantage, fpr, fnr)
    if not callable(release):
        raise TypeError(f"release={_validate.short_repr(release)} must be a function of the noise x that returns a profile, such "
                        "as lambda x: GaussianMechanism(x).subsampled(0.01).self_compose(1000)")
    return least_of_goal(release, goal, near, rtol)
