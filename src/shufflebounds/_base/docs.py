"""Passages that several docstrings share.

The decorator `with_passages` replaces a line ``{name}`` or ``{name: words}`` of a docstring by the passage of that name. The
given words, or the words of that name in `_WORDS`, replace the ``...`` in the passage.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["with_passages"]

_Documented = TypeVar("_Documented", bound=Callable[..., Any])

_LINE = re.compile(r"^( *)\{(\w+)(?:: (.*))?\}$", re.MULTILINE)

_TEXT = r"""
[axes]
Returns
-------
matplotlib.axes.Axes
    The figure is not shown.
[balcer2020]
References
----------
Balcer, V., Cheu, A. Separating local and shuffled differential privacy via histograms, 2020, ....
[balle2019]
References
----------
Balle, B., Bell, J., Gascon, A., Nissim, K. The Privacy Blanket of the Shuffle Model. CRYPTO 2019.
[chen_long]
References
----------
Chen, L., Long, Y. Distributed Gaussian differential privacy via shuffling, ....
[population]
users : int
    Number n of users, 1 to 2**53, the target included.
local_eps : float
    The randomizer's local budget :math:`\varepsilon_0` in nats, in (0, 700].
[deltas]
delta : float or array_like
    Failure probabilities in [0, 1]. The three arguments broadcast against each other.
[dong2022]
References
----------
Dong, J., Roth, A., Su, W. J. Gaussian differential privacy, 2022, ....
[log_probability]
Returns
-------
ndarray of the shape of k, or float
    Natural logarithm of the probability; -inf for zero.
[losses]
eps : float or array_like
    Privacy losses in nats, finite and >= 0. The three arguments broadcast against each other.
[noises]
trials : int or array_like
    Numbers of noise bits, 0 to 2**53.
prob : float or array_like
    Probabilities that a noise bit is 1, in (0, 1).
[oracle]
bins : int
    Number k of bins, 2 to ....
local_eps : float
    Budget :math:`\varepsilon_0` in nats, in (0, 700].
[participation]
participation : float
    Probability in [1e-12, 1] that a user sends a message.
[raises]
Raises
------
ValueError
    ...
[raises_of_claims]
Raises
------
TypeError
    If `claim` has another type.
ValueError
    If the claim is about another relation of neighbours than the attribute `relation`.
[raises_of_arrays]
Raises
------
ValueError
    If an argument lies outside its range or is empty, the shapes do not broadcast, or `bound` is another word.
[raises_of_randomizers]
Raises
------
TypeError
    If an entry of `randomizer` is not a randomizer.
ValueError
    If an argument lies outside its range or is empty, the shapes do not broadcast, or `bound` is another word.
[randomizers]
randomizer : Randomizer, or sequence or array of them
    The local randomizers of the deployments: mechanisms of :mod:`shufflebounds.mechanisms`.
users : int or array_like
    Numbers of users, 1 to 2**53, the target included.
[rng]
rng : None, int, sequence of int, SeedSequence, BitGenerator or Generator
    Source of randomness: anything that numpy.random.default_rng takes.
[side]
bound : {"upper", "lower"}
    Whether the result is an upper or a lower bound of the exact value.
[side_of_eps]
bound : {"upper", "lower"}
    "upper": an eps at which the upper bound of delta was evaluated and is at most `delta`. "lower": an eps at which the
    lower bound of delta is at least `delta`.
[method]
method : {"tightest", "blanket"}
    Upper bound: the smallest one that the library has, or that of the privacy blanket, which takes less time. Lower bounds do
    not depend on it.
[threads]
threads : int
    Number of threads of the computation, 1 by default. The result is the same for every number of threads.
[target]
eps : float
    Target privacy loss in nats, finite and >= 0.
delta : float
    Target failure probability, in (0, 1). A UserWarning explains a delta above 1e-3.
[releases]
releases : int
    Number of releases that meet the target together, 1 to 2**53. The result is the protocol of one release, with the largest eps,
    to a relative 1e-3, for which ``self_compose(releases)`` meets the target.
devices : int
    Largest number of messages of one person in a release, 1 to 2**20: ``for_group(devices)`` meets the target. Numbers of users
    are then numbers of messages. The collection must enforce the limit.
[absent]
colluding : int
    Number of other users who may reveal their messages to the analyst, >= 0.
missing : int
    Number of users whose messages may not arrive, >= 0, for reasons that do not depend on their values. The guarantee holds if at
    least users - missing messages arrive; pass the number that arrived to ``estimate(users=...)``.
[users]
users : int
    Number of users, 1 to 2**53.
"""
_PASSAGES: dict[str, str] = dict(re.findall(r"^\[(\w+)\]\n(.*?)\n(?=\[|\Z)", _TEXT, re.DOTALL | re.MULTILINE))
_WORDS = {"raises": "If an argument lies outside its range."}


def with_passages(documented: _Documented) -> _Documented:
    """Insert the passages into the docstring of a function, or of a class and its methods."""
    if isinstance(documented, type):
        for member in vars(documented).values():
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function):
                with_passages(function)
    # Most docstrings have no passage, and this test takes less time than the regular expression.
    if documented.__doc__ and "}\n" in documented.__doc__:
        documented.__doc__ = _LINE.sub(_passage, documented.__doc__)
    return documented


def _passage(match: re.Match[str]) -> str:
    indent, name, words = match.groups()
    return textwrap.indent(_PASSAGES[name].replace("...", words or _WORDS.get(name, "...")), indent)
