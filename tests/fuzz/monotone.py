"""Upper bounds that must not rise: with delta, with eps, and along a step to a mechanism that reveals less.

A step replaces a profile by one whose result is, for every pair of neighbours, a post-processing of the first one's result (or the
same with fewer inputs): more users, of whom each adds a message that does not depend on the target; a smaller participation or
sampling rate; more noise, flips, dummy reports or steps; merged outputs; fewer releases. The exact delta does not rise along a
step. An upper bound that rises may be valid, but the bound before the step is valid after it, too, and smaller.

A larger gamma of `ZeroSum` and `ShuffledHistogram` is no such step: a bit of a larger variance is not a sum of independent bits,
and the exact delta may rise, as from gamma = .4751858700197497 to .4754802195831485 for 100 users at eps = .00205.
"""

import contextlib
import math
import random
import traceback
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np

from shufflebounds import InfeasibleError, shuffle
from shufflebounds import mechanisms as m
from shufflebounds.profile import DominatingPair
from tests.densities import tilted
from tests.examples import EXAMPLES
from tests.fuzz.consistency import TimeIsOver

__all__ = ["STEPS", "SUBJECTS", "attack", "rises"]

TOLERANCE = 1e-9
"""Relative tolerance of eps and of delta."""

ROUNDED = 1e-15
"""Absolute tolerance of delta where outcomes of a pair are merged, because the merged masses are rounded: the exact delta of the
pair after the step may be larger by this rounding, which was up to a relative 1.4e-6 of delta = 1.6e-11."""

LEAST = 0.01
"""Smallest relative change of a parameter in one step, and of delta and eps of profiles whose values take long. Bounds by a search
and those of discretized densities have a gap of up to 1e-4 in log delta, and a smaller step may change the exact value by less."""


def _up(name):
    """Return a step to a larger integer parameter: one more, a little more, or several times as much."""
    def step(r, profile):
        now = getattr(profile, name)
        share = r.choice([LEAST, r.uniform(LEAST, 0.2), r.uniform(LEAST, 7)])
        return replace(profile, **{name: now + math.ceil(max(1, now) * share)})
    return step


def _less(name, least=0.0):
    """Return a step to a smaller parameter, which remains above `least`."""
    def step(r, profile):
        now = getattr(profile, name)
        return replace(profile, **{name: least + (now - least) * r.choice([r.uniform(0.9, 1 - LEAST), r.uniform(1e-3, 1 - LEAST)])})
    return step


def _more(name, most=math.inf):
    """Return a step to a larger parameter: towards `most`, or a multiple."""
    def step(r, profile):
        now, share = getattr(profile, name), r.choice([r.uniform(LEAST, 0.1), r.uniform(LEAST, 1)])
        return replace(profile, **{name: now + share * (most - now) if most < math.inf else now * (1 + share)})
    return step


def _one_less(name, least):
    """Return a step to an integer parameter that is smaller by one."""
    def step(r, profile):
        now = getattr(profile, name)
        return replace(profile, **{name: now - 1}) if now > least else None
    return step


def _within(name):
    """Return a step of the mechanism or the randomizer that a profile holds; values that are listed remain possible."""
    def step(r, profile):
        after = _step(r, getattr(profile, name))
        listed = getattr(profile, "inputs", None) is not None and after is not None and after.sensitivity < profile.inputs[-1]
        return None if after is None or listed else replace(profile, **{name: after})
    return step


def _matrix(r, profile):
    """Merge two outputs of a matrix, or replace messages by independent ones of the same distribution for every input."""
    rows = np.array(profile.matrix)
    if r.random() < 0.5 and rows.shape[1] > 2:
        kept, merged = r.sample(range(rows.shape[1]), 2)
        rows[:, kept] += rows[:, merged]
        rows = np.delete(rows, merged, axis=1)
    else:
        share = 2.0 ** -r.randint(1, 6)
        rows = (1 - share) * rows + share * rows[r.randrange(len(rows))]
    return replace(profile, matrix=tuple(map(tuple, rows.tolist())))


def _fewer_inputs(r, profile):
    rows = list(profile.matrix)
    del rows[r.randrange(len(rows))]
    return replace(profile, matrix=tuple(rows)) if len(rows) > 1 else None


def _noisy_bits(r, profile):
    """Flip every bit of unary encoding once more."""
    share = r.choice([r.uniform(LEAST, 0.05), r.uniform(LEAST, 0.45)])
    return replace(profile, p=profile.p + share * (1 - 2 * profile.p), q=profile.q + share * (1 - 2 * profile.q))


def _smaller_cap_budget(r, profile):
    return None if profile.cap is None else _less("local_eps")(r, profile)


def _geometric(r, profile):
    """More unbounded geometric noise, or the same noise for values closer together; for bounded noise neither holds."""
    if profile.bound is not None:
        return None
    after = r.randint(1, profile.sensitivity)
    same = replace(profile, eps=profile.eps * after / profile.sensitivity, sensitivity=after)
    return same if after < profile.sensitivity else _less("eps")(r, profile)


def _merged_outcomes(r, profile):
    log_p, log_q = (np.array(law) for law in (profile.log_p, profile.log_q))
    if log_p.size < 3:
        return None
    kept, merged = r.sample(range(log_p.size), 2)
    for law in (log_p, log_q):
        law[kept] = np.logaddexp(law[kept], law[merged])
    return DominatingPair.from_pmfs(np.delete(log_p, merged), np.delete(log_q, merged))


def _longer_sum(r, profile):
    """More users with the same probability of a flip."""
    users = _up("users")(r, replace(profile, lam=0.0)).users
    return replace(profile, users=users, lam=profile.lam / profile.users * users)


def _one_more_budget(r, profile):
    """One more user with the smallest budget, whose bit is that of the first user with this budget."""
    least = int(np.argmin(profile.local_eps))
    bits = None if profile.bits is None else np.append(profile.bits, profile.bits[least])
    return replace(profile, local_eps=np.append(profile.local_eps, profile.local_eps[least]), bits=bits)


def _one_more_clone(r, profile):
    counts = np.ones(np.size(profile.rates), dtype=int) if profile.counts is None else np.array(profile.counts)
    counts[r.randrange(counts.size)] += r.choice([1, 10])
    return replace(profile, counts=counts)


def _fewer_releases(r, profile):
    """Leave out one release of a composition."""
    factors = [list(one) for one in profile.factors]
    factors[r.randrange(len(factors))][1] -= 1
    left = tuple((one, count) for one, count in factors if count)
    return replace(profile, factors=left) if left else None


def _fewer_values(r, profile):
    """Leave out a possible value of the users, if the values are listed."""
    if profile.inputs is None or len(profile.inputs) < 3:
        return None
    inputs = list(profile.inputs)
    del inputs[r.randrange(len(inputs))]
    return replace(profile, inputs=tuple(inputs))


STEPS = {
    "interop.AccountingProfile": (),
    "mechanisms.DensityRandomizer": (lambda r, profile: tilted(profile.cdf.__self__.slope * r.uniform(0.1, 1 - LEAST)),),
    "mechanisms.DiscreteGaussianMechanism": (_one_less("sensitivity", 1),),
    "mechanisms.FiniteRandomizer": (_matrix, _matrix, _fewer_inputs),
    "mechanisms.GaussianMechanism": (_more("sigma"), _less("sensitivity")),
    "mechanisms.GaussianVector": (_more("sigma"), _one_less("dimension", 2)),
    "mechanisms.GeometricMechanism": (_geometric,),
    "mechanisms.HadamardResponse": (_less("local_eps"),),
    "mechanisms.KaryResponse": (_less("local_eps"),),
    "mechanisms.LaplaceMechanism": (_more("scale"), _less("sensitivity")),
    "mechanisms.LocalHashing": (lambda r, profile: _less("local_eps")(r, replace(profile, buckets=profile.buckets)),),
    "mechanisms.PrivUnit": (_smaller_cap_budget,),
    "mechanisms.PureLocal": (_less("local_eps"),),
    "mechanisms.RandomizedResponse": (_less("eps"),),
    "mechanisms.Rappor": (_more("f", 1.0),),
    "mechanisms.RatioBounded": (_less("beta"), lambda r, profile: _less("q", 1 + profile.beta)(r, profile)),
    "mechanisms.SubsetSelection": (lambda r, profile: _less("local_eps")(r, replace(profile, size=profile.size)),),
    "mechanisms.ThresholdedCount": (_up("threshold"),),
    "mechanisms.UnaryEncoding": (_noisy_bits,),
    "profile.Composition": (_fewer_releases,),
    "profile.DominatingPair": (_merged_outcomes,),
    "profile.Group": (_within("profile"),),
    "sampling.AllocationPair": (_up("steps"), _within("mechanism")),
    "sampling.RandomAllocation": (_up("steps"), _within("mechanism")),
    "sampling.ReplaceOne": (_within("profile"),),
    "sampling.ShuffledBatches": (_within("noise"),),
    "sampling.SampledPair": (_less("rate"), _within("mechanism")),
    "sampling.Subsampled": (_less("rate"), _within("mechanism")),
    "sampling.WithoutReplacement": (_up("records"), _one_less("batch", 1), _within("mechanism")),
    "shuffle.BinomialNoise": (_up("trials"),),
    "shuffle.ClearReports": (_up("fakes"),),
    "shuffle.Clones": (_up("users"), _less("local_eps")),
    "shuffle.FlippedReports": (_up("users"), _up("fakes"), _more("flip", 0.5)),
    "shuffle.GeometricDummies": (_less("keep"),),
    "shuffle.PersonalizedBits": (_one_more_budget,),
    "shuffle.PersonalizedClones": (_one_more_clone,),
    "shuffle.RealSum": (_longer_sum, lambda r, profile: _more("lam", profile.users)(r, profile)),
    "shuffle.Shuffled": (_up("users"), _up("users"), _less("participation"), _within("randomizer"), _fewer_values),
    "shuffle.ShuffledBits": (_up("users"), _up("fakes"), _more("flip", 0.5)),
    "shuffle.ShuffledHistogram": (_up("users"),),
    "shuffle.StrongerClones": (_up("users"), _less("local_eps")),
    "shuffle.ZeroSum": (_up("users"),),
}
"""For each public class functions of a random source and a profile that return a profile after one step, or None."""


def _step(r, profile):
    """Return a profile after a random step, or None if there is none for this profile."""
    kind = type(profile).__name__ if not hasattr(profile, "log_p") else "DominatingPair"
    steps = next((steps for name, steps in STEPS.items() if name.endswith(f".{kind}")), ())
    return r.choice(steps)(r, profile) if steps else None


def _log_whole(r, low, high):
    return round(math.exp(r.uniform(math.log(low), math.log(high))))


def _shuffled(name):
    """Return a function that draws a shuffled randomizer of a class, of up to a million users."""
    def draw(r):
        # The classes of noise draw sigma from 1/e on, and the others budgets down to 1e-6 and up to 12.
        users = r.choice([_log_whole(r, 1, 50), _log_whole(r, 1, 2000), _log_whole(r, 10, 10**6)])
        randomizer, inputs = EXAMPLES[name].draw(r), None
        if isinstance(randomizer, m.LaplaceMechanism | m.GaussianMechanism) and r.random() < 0.3:
            inputs = r.choice([(0.0, 1.0), (0.0, 0.3, 1.0)])
        return shuffle.Shuffled(randomizer, users, r.choice([1.0, 1.0, r.uniform(0.01, 1)]), inputs)
    return draw


def _whole_matrix(r):
    weights = np.full(r.choice([2, 3, 3, 4]), r.choice([0.3, 1.0, 3.0]))
    return m.FiniteRandomizer(np.random.default_rng(r.getrandbits(32)).dirichlet(weights, r.choice([2, 3, 4])))


SUBJECTS = {
    **{name: example.draw for name, example in EXAMPLES.items()},
    **{f"shuffle.Shuffled of {name}": _shuffled(name) for name in EXAMPLES
       if hasattr(getattr(m, name.removeprefix("mechanisms."), None), "shuffled")},
    "shuffle.Shuffled of matrices": lambda r: shuffle.Shuffled(
        _whole_matrix(r), _log_whole(r, 2, 3000), r.choice([1.0, 1.0, r.uniform(0.1, 1)])),
    "shuffle.ShuffledBits of many users": lambda r: shuffle.ShuffledBits(
        _log_whole(r, 1, 10**9), 10.0 ** r.uniform(-8, math.log10(0.5))),
    "shuffle.Clones of many users": lambda r: shuffle.Clones(_log_whole(r, 1, 10**12), r.uniform(0.1, 12)),
    "shuffle.StrongerClones of many users": lambda r: shuffle.StrongerClones(_log_whole(r, 1, 10**12), r.uniform(0.1, 12)),
}
"""Functions that draw a profile, by name: every public class, and large cases of those with users."""


def _above(small, large, what):
    """Return a line if the upper bound `small` is above `large`, and None otherwise; NaN in either is a violation."""
    if small <= large or small - large <= TOLERANCE * abs(large):
        return None
    return f"{what}: {small!r} > {large!r}, by {abs(small - large) / max(abs(large), 5e-324):.2g}"


def rises(profile, r, least=LEAST):
    """Return the number of comparisons of one profile, and a line for each upper bound that rises; exceptions count as such.

    `least` is the smallest relative change of delta and of eps.
    """
    lines, asked, after = [], 0, None

    def compare(small, large, what, logs=False):
        nonlocal asked
        asked += 1
        if logs:
            # The tolerance is relative to delta, and that of a logarithm in addition, which is rounded.
            large = large + TOLERANCE * max(1.0, 1e-3 * abs(large)) if large > -math.inf else large
            line = None if small <= large else f"{what}: log delta {small!r} > {large!r}, by {small - large:.2g}"
        else:
            line = _above(small, large, what)
        if line:
            lines.append(line)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            after = _step(r, profile)
            delta = math.exp(r.uniform(math.log(1e-12), math.log(0.3)))
            more = delta * r.choice([1 + least ** r.random(), 10.0 ** r.uniform(0.01, 3)])
            found = profile.epsilon(delta)
            if more < 1:
                compare(profile.epsilon(more), found, f"eps with delta from {delta!r} to {more!r}")
            top = found if 0 < found < math.inf else 1.0
            eps = min(top * r.choice([1.0, r.uniform(0, 1.5), 10.0 ** r.uniform(-6, 0)]), 1e5)
            log_delta = profile.log_delta(eps)
            later = eps * r.choice([1 + least ** r.random(), r.uniform(1.01, 2)])
            compare(profile.log_delta(later), log_delta, f"eps from {eps!r} to {later!r}", logs=True)
            if after is not None:
                rounded = ROUNDED if hasattr(profile, "log_p") else 0.0
                compare(after.epsilon(delta + rounded), found, f"eps at delta={delta!r} after the step to {after!r}")
                log_delta = math.log(math.exp(log_delta) + rounded) if rounded else log_delta
                compare(after.log_delta(eps), log_delta, f"eps={eps!r} after the step to {after!r}", logs=True)
    except InfeasibleError:
        pass
    except Exception:
        lines.append(f"step to {after!r}: {traceback.format_exc(limit=-3)}")
    return asked, [f"{profile!r}: {line}" for line in lines]


def attack(seed, questions, late=lambda: False, only=None):
    """Return the number of comparisons of each subject, and a line for each violation with the seed of its profile.

    Parameters
    ----------
    seed : int
    questions : int or None
        Ends after the profile that reaches this number of comparisons; None goes on until `late`.
    late : callable
        Tells whether the time is over; evaluated after every profile. An alarm may also raise `TimeIsOver`.
    only : str, optional
        Subjects whose name contains this.
    """
    r, counts, found = random.Random(seed), Counter(), []
    names = [name for name in SUBJECTS if not only or only in name]
    with contextlib.suppress(TimeIsOver):
        while True:
            for name in r.sample(names, len(names)):
                if late() or (questions is not None and counts.total() >= questions):
                    return counts, found
                state = r.getrandbits(32)
                source = random.Random(state)
                example = EXAMPLES.get(name)
                asked, lines = rises(SUBJECTS[name](source), source, 1e-9 if example and example.cheap else LEAST)
                counts[name] += asked
                found += [f"{name}, seed {state}: {line}" for line in lines]
    return counts, found
