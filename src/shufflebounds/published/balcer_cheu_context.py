"""Results of other papers that Balcer and Cheu 2020 quote: local privacy of a shuffled protocol, orders of growth in Table 1."""

from __future__ import annotations

import math
from typing import NamedTuple

from shufflebounds._base import validate as _validate
from shufflebounds.published._printed import At, printed
from shufflebounds.shuffle import ShuffledBits

__all__ = ["HistogramRow", "balcer_cheu_local_eps", "balcer_cheu_table"]

_PAPER = "Balcer and Cheu 2020"


def _local_eps(users: int, eps: float) -> float:
    """Return the local eps, at delta = 10^-6, of a flipped bit whose shuffled messages are calibrated to (eps, 10^-6)."""
    flip = ShuffledBits.calibrate(users=users, eps=eps, delta=1e-6).flip
    return math.log((1 - flip - 1e-6) / flip)


@printed(
    "proven", f"{_PAPER}, section 1.2, after Cheu et al. 2019",
    reason="the probability that any message is in a set is at least that for one message, and at most n times it if all are alike",
    comparison=At("n = 10^4, eps = 1, delta = 10^-6; exact: the flipped bit calibrated to it",
                  (10**4, 1.0), _local_eps, "local eps at delta"),
    returns="Upper bound of the eps of each user's randomizer, at the delta of the shuffled protocol.",
)
def balcer_cheu_local_eps(users: int, eps: float) -> float:
    r"""Published local privacy of an (eps, delta)-private shuffled protocol: :math:`(\varepsilon + \ln n, \delta)`.

    Each of n users sends one message. The local privacy is that of this message without the shuffler.

    >>> round(published.balcer_cheu_local_eps(10**4, 1.0), 6)
    10.21034
    """
    return eps + math.log(users)


class HistogramRow(NamedTuple):
    """A protocol with the orders of growth of its largest error of a frequency and of its number of messages per user."""

    protocol: str
    error: float
    messages: float


def balcer_cheu_table(users: int, bins: int, eps: float, delta: float) -> tuple[HistogramRow, ...]:
    r"""Return Table 1 of Balcer and Cheu with every constant set to 1: orders of growth, not bounds.

    With :math:`L = \ln(1/\delta)`, n = `users` and d = `bins`, the largest errors of a frequency are, in the order of the example,

    .. math:: \frac{\sqrt{\ln d}}{\varepsilon\sqrt n}, \quad \frac{\sqrt{L \ln d}}{\varepsilon n}, \quad
        \frac{\sqrt{\ln^3 d\, \ln(\ln d/\delta)}}{\varepsilon n}, \quad
        \frac{\ln d}{n} + \frac{\sqrt{\ln d\, \ln(1/(\varepsilon\delta))}}{\varepsilon n}, \quad \frac{L}{\varepsilon^2 n}, \quad
        \frac{\min(\ln d, L)}{\varepsilon n}

    Parameters
    ----------
    users : int
        Number n of users, 1 to 2**53.
    bins : int
        Number d of bins, 3 to 2**53.
    eps : float
        Privacy loss in nats, in [1e-150, 1].
    delta : float
        Failure probability, in (0, 1).

    Returns
    -------
    tuple of HistogramRow
        Each row is ``(protocol, error, messages)``. For the central model the number of messages is 0.

    Raises
    ------
    ValueError
        If an argument lies outside its range.

    References
    ----------
    .. [1] V. Balcer, A. Cheu, "Separating local and shuffled differential privacy via histograms", 2020, Table 1, which takes the
       second row from Cheu et al. 2019, and the third and the fourth from Ghazi et al. 2019.

    Examples
    --------
    >>> from shufflebounds import published
    >>> for row in published.balcer_cheu_table(10**5, 1000, 1.0, 1e-6):
    ...     print(f"{row.protocol:15} {row.error:.1e} {row.messages:6.0f}")
    local           8.3e-03      1
    shuffled bits   9.8e-05   1000
    private coins   7.2e-04   5191
    public coins    1.7e-04     14
    zsum            1.4e-04   1000
    central         6.9e-05      0
    """
    n = _validate.integer("users", users, 1)
    kinds = _validate.integer("bins", bins, 3)
    eps = _validate.real("eps", eps, 1e-150, 1)
    delta = _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)
    d, level = math.log(kinds), -math.log(delta)
    unit, squared = 1 / (eps * n), eps * eps
    both = level + math.log(d)
    return (
        HistogramRow("local", math.sqrt(d * n) * unit, 1.0),
        HistogramRow("shuffled bits", math.sqrt(d * level) * unit, float(kinds)),
        HistogramRow("private coins", math.sqrt(d**3 * both) * unit, d**3 * both / squared),
        HistogramRow("public coins", d / n + math.sqrt(d * (level - math.log(eps))) * unit, (level - math.log(eps)) / squared),
        HistogramRow("zsum", level / eps * unit, float(kinds)),
        HistogramRow("central", min(d, level) * unit, 0.0),
    )
