"""The bounds of shuffled randomizers against every other bound that the library has for the same messages.

The upper bound of eps is at most that of the privacy blanket, of the clones of the local budget, and of one message. The lower
bound of delta is at least that of every dataset that the randomizer lists. The randomizers are those of tests/examples.py, among 10
to 1e15 users.
"""

import math
import random
import warnings
from collections import Counter

from shufflebounds import mechanisms
from shufflebounds._base.limits import SEARCH_GAP
from shufflebounds._engines.excess.evaluation import Effort
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle import Clones, StrongerClones, shuffled_epsilons
from tests.examples import EXAMPLES

__all__ = ["KINDS", "attack", "compared"]

KINDS = [name for name in EXAMPLES if hasattr(getattr(mechanisms, name.rpartition(".")[2], None), "shuffled")]
"""The classes of randomizers that can be shuffled."""

SAME, ROUNDED = 1e-8, 1e-6
"""Relative tolerances of eps: of a search, and of a kernel with other roundings, which grow with the root of n up to 1e-6."""


def others(randomizer, users, delta):
    """Yield upper bounds of eps that hold for the shuffled messages: a name, the bound, and the tolerance."""
    yield "blanket", float(shuffled_epsilons(randomizer, users, delta, method="blanket")), SAME
    if isinstance(randomizer, PrivacyProfile):
        yield "one message", randomizer.epsilon(delta), SAME
    # The ratios of `RatioBounded` to the messages of other users may exceed its pure budget.
    bounded = isinstance(randomizer, mechanisms.RatioBounded)
    pure = math.inf if bounded else randomizer.shuffled(1).epsilon(0)
    if 0 < pure < 30:
        for clones in (Clones, StrongerClones):
            yield clones.__name__, clones(users, pure).epsilon(delta), ROUNDED


def searched(shuffled, delta, upper, bound):
    """Return whether delta at `bound`, below `upper`, is small enough, so that only the tolerance of the search is between them."""
    return shuffled.log_delta(bound) <= math.log(delta) <= shuffled.log_delta(upper) + SEARCH_GAP


def compared(randomizer, users, delta):
    """Return a list of the bounds that are better than those of the shuffled randomizer, in words."""
    with warnings.catch_warnings():
        # Random arguments may look like a user's mistake.
        warnings.simplefilter("ignore", UserWarning)
        return _compared(randomizer, users, delta)


def _compared(randomizer, users, delta):
    found, shuffled = [], randomizer.shuffled(users)
    lower, upper = (shuffled.epsilon(delta, bound=bound) for bound in ("lower", "upper"))
    name = f"{randomizer!r} {users} users, delta={delta!r}"
    if not lower <= upper:
        found.append(f"{name}: bounds {lower!r} and {upper!r} in the wrong order")
    for kind, bound, tolerance in others(randomizer, users, delta):
        if not upper <= bound * (1 + tolerance) and not searched(shuffled, delta, upper, bound * (1 + tolerance)):
            found.append(f"{name}: upper bound {upper!r}, {kind} {bound!r}")
    if shuffled._exact is None and 0 < lower < math.inf:
        value = shuffled.log_delta(lower, bound="lower")
        for _, text, law in shuffled._bounds._laws.below:
            dataset = law.log_phi_side(lower, users, upper=False, effort=Effort.FINE)
            if not value >= dataset - 1e-6 * (1 + abs(dataset)):
                found.append(f"{name}: log delta {value!r} at eps={lower!r}, but {dataset!r} if {text}")
    return found


def attack(seed, cases=None, late=lambda: False, only=None):
    """Compare random questions; return the numbers of comparisons by class, and the findings."""
    r, counts, found = random.Random(seed), Counter(), []
    kinds = [name for name in KINDS if only is None or only.lower() in name.lower()]
    while not late() and (cases is None or counts.total() < cases):
        name = r.choice(kinds)
        randomizer = EXAMPLES[name].draw(r) if r.random() < 0.5 else r.choice(EXAMPLES[name].profiles())
        users = round(10 ** r.uniform(1, 15))
        delta = r.choice([1e-6, 1e-8, 10.0 ** r.uniform(-12, -0.5)])
        counts[name.rpartition(".")[2]] += 1
        found += compared(randomizer, users, delta)
    return counts, found
