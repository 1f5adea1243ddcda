"""Random objects of every class at random eps: both stated bounds against their certificates in interval arithmetic.

The certificate of a class with one exact value must meet the stated interval. That of an upper bound must not be below the stated
lower bound, and that of a lower bound not above the stated upper one, without tolerance; a certificate that misses by less than
1e-3 the bound that it should reach is a violation, too. A certificate is then computed at a perturbed witness, which may be wider,
but must not contradict the stated bounds: this tests the checker.
Violations found earlier are in found.json, which runs first.

Objects are drawn by tests/examples.py, every class for about the same time (`WEIGHTS`), and eps where the upper delta is between
1e-300 and 1, at 0, and within four ulp of the pure budget. A certificate that would take longer than `SECONDS`, or does not exist,
is counted, but is not a violation. ``--record`` adds the counts of each class to certified.json, which docs/trust.md shows.
"""

import collections
import contextlib
import dataclasses
import itertools
import json
import math
import pathlib
import random
import signal
import time

from shufflebounds import CertificateGap, InfeasibleError, mechanisms, sampling, shuffle
from shufflebounds.certify import bounds_of
from shufflebounds.certify.balls import certified
from shufflebounds.profile import Composition
from tests.examples import EXAMPLES, class_of

FOUND, CERTIFIED = (pathlib.Path(__file__).with_name(name) for name in ("found.json", "certified.json"))
"""The violations found earlier, and the recorded counts of each class."""

SECONDS = 2.5
"""Largest predicted run time of a certificate. Raised: fewer draws in the same time, and more classes with certificates."""

SPENT = "CPU seconds"
"""The kind of the counts that are run times: of each entry of `DRAWS` instead of each class."""

SHRINKING = 60.0
"""Seconds in which simpler parameters with the same kind of violation are sought."""

SLOW = {"sampled Gaussian": 10.0, "allocated noise": 5.0, "sampling.RandomAllocation": 10.0,
        "shuffled batches": 10.0, "sampling.ShuffledBatches": 10.0,
        "several steps": 10.0, "listed inputs": 15.0, "noise on an interval": 15.0,
        "shuffled RAPPOR": 5.0}
"""The same for draws whose certificates take longer."""

WEIGHTS = {"shuffle.Shuffled": 15, "many users": 7, "shuffled noise": 3}
"""Multiples of the time of a class for draws of several randomizers, whose counts are kept apart."""


def stop(number, frame):
    raise TimeoutError


def _many_clones(r):
    return r.choice([shuffle.Clones, shuffle.StrongerClones])(round(10 ** r.uniform(4, 7)), r.uniform(0.1, 6))


def _blankets(r):
    users, share = round(10 ** r.uniform(1.5, 5)), r.choice([1.0, r.uniform(0.1, 1)])
    eps0 = r.uniform(0.1, 4)
    one = r.choice([
        lambda: mechanisms.KaryResponse(r.randint(2, 20), eps0), lambda: mechanisms.LocalHashing(100, eps0),
        lambda: mechanisms.SubsetSelection(20, eps0), lambda: mechanisms.HadamardResponse(30, eps0),
        lambda: mechanisms.UnaryEncoding.optimized(8, eps0), lambda: mechanisms.PureLocal(eps0),
        lambda: mechanisms.RatioBounded(p := math.exp(eps0), r.uniform(0.1, 1) * (p - 1) / (p + 1), p),
    ])()
    return one.shuffled(users, share)


def _sampled(r):
    noise = mechanisms.GaussianMechanism(r.uniform(0.6, 4), r.choice([1.0, r.uniform(0.5, 2)]))
    return noise.subsampled(10 ** r.uniform(-3, -0.5)).self_compose(round(10 ** r.uniform(0.5, 3.5)))


def _allocated(r):
    noise = r.choice([mechanisms.GaussianMechanism(r.uniform(0.7, 4)), mechanisms.LaplaceMechanism(10 ** r.uniform(-0.7, 0.7))])
    return sampling.AllocationPair(noise, r.randint(1, 300), r.random() < 0.5)


def _several_steps(r):
    steps = r.randint(2, 60)
    noise = r.choice([mechanisms.GaussianMechanism(r.uniform(0.8, 4)), mechanisms.LaplaceMechanism(r.uniform(0.5, 3))])
    return sampling.RandomAllocation(noise, steps, r.randint(2, min(steps, 6)))


def _epochs(r):
    steps = r.randint(2, 12)
    noise = r.choice([mechanisms.KaryResponse(2, r.uniform(0.3, 2)), mechanisms.LaplaceMechanism(r.uniform(1, 3))])
    return sampling.RandomAllocation(noise, steps, r.randint(1, min(steps, 4))).self_compose(r.randint(2, 3))


def _listed_inputs(r):
    noise = r.choice([mechanisms.GaussianMechanism(r.uniform(1, 4)), mechanisms.LaplaceMechanism(r.uniform(0.5, 4))])
    inputs = [r.choice([0.25, 1.0, r.uniform(0, 0.9)]) for _ in range(r.randint(0, 2))]
    return noise.shuffled(r.choice([2, 3, round(10 ** r.uniform(1, 5))]), r.choice([1.0, r.uniform(0.1, 1)]),
                          inputs=[0.0, 0.5, *inputs])


def _interval(r):
    noise = mechanisms.GaussianMechanism(10 ** r.uniform(0, 0.8), r.choice([1.0, r.uniform(0.5, 2)]))
    return noise.shuffled(round(10 ** r.uniform(2, 6)), r.choice([1.0, r.uniform(0.1, 1)]))


def _shuffled_noise(r):
    noise = r.choice([
        lambda: mechanisms.LaplaceMechanism(10 ** r.uniform(-0.7, 0.7)),
        lambda: mechanisms.GeometricMechanism(r.uniform(0.2, 3), r.randint(1, 4), r.choice([None, None, 1, 3])),
        lambda: mechanisms.DiscreteGaussianMechanism(r.uniform(0.8, 3), r.randint(1, 3)),
    ])()
    return noise.shuffled(r.choice([2, 3, r.randint(4, 30)]), r.choice([1.0, r.uniform(0.1, 1)]))


def _rappor(r):
    hashes, chances = r.choice([1, 1, 2]), r.choice([(), (0.75, 0.25)])
    report = mechanisms.Rappor(r.uniform(0.1, 0.95), *chances, hashes=hashes, bits=r.choice([None, None, hashes + 1, 5]))
    return report.shuffled(r.choice([2, 5, round(10 ** r.uniform(1, 5))]), r.choice([1.0, r.uniform(0.1, 1)]))


def _batches(r):
    noise = mechanisms.GaussianMechanism(math.exp(r.uniform(-1, 3)), r.choice([1.0, r.uniform(0.5, 2)]))
    return sampling.ShuffledBatches(noise, r.choice([2, 3, round(10 ** r.uniform(0.5, 8))]), round(10 ** r.uniform(0, 6)))


def _composed(r):
    parts = [r.choice([
        lambda: r.choice([shuffle.Clones, shuffle.StrongerClones])(round(10 ** r.uniform(0, 4)), r.uniform(0.1, 4)),
        lambda: shuffle.BinomialNoise(r.choice([3, 30, 1000]), r.choice([0.5, r.uniform(0.05, 0.95)])),
        lambda: shuffle.ShuffledBits(r.choice([2, 5, 40]), r.uniform(0.05, 0.45)),
        lambda: mechanisms.LaplaceMechanism(r.uniform(0.5, 5)), lambda: mechanisms.GaussianMechanism(r.uniform(0.5, 5)),
        lambda: mechanisms.LaplaceMechanism(1.0).subsampled(r.uniform(0.05, 1)),
        lambda: mechanisms.KaryResponse(5, r.uniform(0.1, 2)),
    ])() for _ in range(r.randint(1, 3))]
    parts = [part for part in parts if part.relation in ("either", parts[0].relation)]
    return Composition(tuple((part, r.choice([1, 2, r.randint(3, 20)])) for part in parts))


DRAWS = {
    **{name: example.draw for name, example in EXAMPLES.items()},
    "many clones": _many_clones, "many users": _blankets, "sampled Gaussian": _sampled, "allocated noise": _allocated,
    "several steps": _several_steps, "several epochs": _epochs, "shuffled batches": _batches, "listed inputs": _listed_inputs,
    "noise on an interval": _interval, "shuffled noise": _shuffled_noise, "shuffled RAPPOR": _rappor, "compositions": _composed,
}
"""Functions of a random generator: one for each class, and one for each family of certificates of many users or releases."""


def points(r, profile):
    """Return a random eps, at most 700, the largest eps of `certify`."""
    return min(_points(r, profile), 700.0)


def _points(r, profile):
    pure = profile.epsilon(0.0)
    kind = r.random()
    if kind < 0.1:
        return 0.0
    if kind < 0.25 and 0 < pure < 700:
        for _ in range(r.randint(0, 4)):
            pure = math.nextafter(pure, 0)
        return pure
    delta = 10.0 ** (r.uniform(-12, 0) if kind < 0.8 else r.uniform(-300, -12))
    return profile.epsilon(delta)


def violation(profile, eps, seconds=SECONDS):
    """Return (what was certified, a line about a contradiction or None)."""
    import flint

    proved, sides = [], {bound: profile.log_delta(eps, bound=bound) for bound in ("lower", "upper")}
    for bound in sides:
        try:
            ball = profile.certify(eps, bound=bound, seconds=seconds)
        except CertificateGap as gap:
            # A ball around the stated bound is wide, and proves nothing.
            proved.append("wide")
            # If a closer certificate was refused by its run time, a farther one may miss the stated bound.
            if "was not tried" not in str(gap) and just_missed(profile, eps, bound, gap.stated, seconds):
                return proved, f"{profile!r}.certify({eps!r}, bound={bound!r}): {gap}"
            continue
        except (TypeError, InfeasibleError, ArithmeticError):
            proved.append("none")
            continue
        proved.append(bound)
        other, end = ("lower", ball.upper()) if bound == "upper" else ("upper", ball.lower())
        number = end.log() if end > 0 else flint.arb(-math.inf)
        if bound == "upper" and sides[other] > -math.inf and number < sides[other]:
            return proved, f"{profile!r}: lower log_delta({eps!r}) {sides[other]!r} > {number}"
        if bound == "lower" and end > 0 and (sides[other] == -math.inf or number > sides[other]):
            return proved, f"{profile!r}: upper log_delta({eps!r}) {sides[other]!r} < {number}"
    return proved, exact_violation(profile, eps, sides, seconds)


def just_missed(profile, eps, bound, stated, seconds=SECONDS):
    """Return whether a whole ball is on the wrong side of the stated bound of log delta, by less than 1e-3."""
    for answer in bounds_of(profile)(eps, bound == "upper"):
        try:
            ball = certified(answer, eps, 15, seconds)
        except (TypeError, ValueError, ArithmeticError):
            continue
        near = ball.lower() if bound == "upper" else ball.upper()
        miss = (float(near.log()) - stated) * (1 if bound == "upper" else -1) if near > 0 else -math.inf
        if answer.tolerance < miss < 1e-3:
            return True
    return False


def exact_violation(profile, eps, sides, seconds=SECONDS):
    """Return a line if the ball of the exact value is beside the stated interval."""
    import flint

    try:
        ball = profile.certify(eps, seconds=seconds)
    except (TypeError, InfeasibleError, ArithmeticError):
        return None
    if sides["lower"] > -math.inf and (ball <= 0 or ball.log() < sides["lower"]):
        return f"{profile!r}: lower log_delta({eps!r}) {sides['lower']!r} > exact {ball.log() if ball > 0 else 0}"
    # Listed masses may sum to slightly more than 1, and then delta of the list may be above 1, too.
    if ball > 0 and sides["upper"] < 0 and (sides["upper"] == -math.inf or ball.log() > flint.arb(sides["upper"])):
        return f"{profile!r}: upper log_delta({eps!r}) {sides['upper']!r} < exact {ball.log()}"
    return None


@contextlib.contextmanager
def perturbed(r):
    """Multiply the free numbers of every witness by random factors."""
    from shufflebounds._engines.batches.epoch import Epoch
    from shufflebounds.certify import (
        _allocation,
        blanket,
        clones_window,
        compositions,
        interval_noise,
        personalized,
        sampled_gaussians,
    )
    from shufflebounds.sampling._several import AdditiveBound

    kept = blanket.witness, clones_window.clone_window, sampled_gaussians.sampled_tilt, interval_noise.chosen
    reach, intervals = personalized._reach, personalized.intervals
    tolerance, fine, dataset = compositions.TOLERANCE, _allocation.FINE, interval_noise.dataset
    witnesses, interval = Epoch.witnesses, AdditiveBound.interval
    factors = [r.choice([0.7, 0.9, 1.1, 1.3]) for _ in range(4)]

    def of_blanket(law, users, *given):
        found = kept[0](law, users, *given)
        return found._replace(theta=found.theta * factors[0], y=found.y * factors[1], eta=found.eta * 10 * factors[2],
                              last=max(1, found.last // 10))

    def of_dataset(text, inputs):
        others, target = dataset(text, inputs)
        return others[:1], r.sample(inputs, 2) if inputs else target

    def of_window(n, p, share, bits):
        depth, low, high = kept[1](n, p, share, bits)
        return depth * factors[0], max(0, low + round((high - low) * (1 - factors[1]) / 4)), high

    def of_tilt(parts, eps, removed, small):
        theta, size, more = kept[2](parts, eps, removed, small)
        return theta * factors[0], size, more * factors[1]

    def of_interval(laws, users):
        found = kept[3](laws, users)
        return found._replace(theta=found.theta * factors[0], step=found.step * factors[1], nodes=found.nodes // 2)

    def of_epoch(epoch, eps):
        for found in witnesses(epoch, eps):
            yield found._replace(eps=eps * min(factors[0], 1), terms=max(1, round(found.terms * factors[1])),
                                 cut=max(1.0, found.cut * factors[2]), pivots=round(found.pivots * factors[3]),
                                 level=1 + (found.level - 1) * factors[0], chosen=max(1, round(found.chosen * factors[1])))

    Epoch.witnesses = of_epoch
    AdditiveBound.interval = lambda *given: [end * factor for end, factor in zip(interval(*given), factors, strict=False)]
    blanket.witness, clones_window.clone_window, sampled_gaussians.sampled_tilt = of_blanket, of_window, of_tilt
    interval_noise.chosen, compositions.TOLERANCE = of_interval, tolerance * 20 * factors[2]
    _allocation.FINE, interval_noise.dataset = tuple(4 * factors[3] * x for x in fine), of_dataset
    _allocation._lattice.cache_clear()
    personalized._reach = lambda *given: reach(*given) * factors[0]
    personalized.intervals = lambda *given: [tuple(sorted((start * factors[1], end * factors[2])))
                                             for start, end in intervals(*given)]
    try:
        yield
    finally:
        Epoch.witnesses, AdditiveBound.interval = witnesses, interval
        blanket.witness, clones_window.clone_window, sampled_gaussians.sampled_tilt, interval_noise.chosen = kept
        compositions.TOLERANCE, personalized._reach, personalized.intervals = tolerance, reach, intervals
        _allocation.FINE, interval_noise.dataset = fine, dataset
        _allocation._lattice.cache_clear()


def contradiction(profile, eps, seconds=SECONDS):
    """Return the number of certificates at a perturbed witness, and a line if one is on the wrong side of a stated bound."""
    number = 0
    for bound in ("upper", "lower"):
        other = profile.log_delta(eps, bound="lower" if bound == "upper" else "upper")
        try:
            answers = [answer for answer in bounds_of(profile)(eps, bound == "upper") if answer.operations < 1.6e6 * seconds]
            balls = [certified(answer, eps, 15, seconds) for answer in answers[:2]]
        except (TypeError, ValueError, ArithmeticError):
            continue
        for ball in balls:
            if not ball.is_finite():
                continue
            number += 1
            end = ball.upper() if bound == "upper" else ball.lower()
            if bound == "upper" and other > -math.inf and (end <= 0 or end.log() < other):
                return number, f"{profile!r} at {eps!r}: perturbed: the upper end {end} is below the lower bound e^{other!r}"
            if bound == "lower" and end > 0 and end.log() > other:
                return number, f"{profile!r} at {eps!r}: perturbed: the lower end {end} is above the upper bound e^{other!r}"
    return number, None


def smaller(value):
    """Yield simpler values in place of a parameter: fewer users, fewer digits, an object with one simpler parameter."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield from (one for one in (value // 10, value // 2, value - 1) if one > 0)
    elif isinstance(value, float):
        yield from (one for digits in (1, 2, 4, 8) if (one := float(f"{value:.{digits}g}")) != value)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            for one in smaller(getattr(value, field.name)) if field.init else ():
                with contextlib.suppress(Exception):
                    yield dataclasses.replace(value, **{field.name: one})


def shrunk(profile, eps, line_of, most=60):
    """Return the simplest (profile, eps) found for which `line_of` returns a line, too; at most `most` are tried."""
    while True:
        tried = itertools.chain(((one, eps) for one in smaller(profile)), ((profile, one) for one in smaller(eps)))
        for one, at in itertools.islice(tried, max(most, 0)):
            most -= 1
            try:
                line = line_of(one, at)
            except TimeoutError:
                return profile, eps
            except Exception:
                continue
            if line is not None:
                profile, eps = one, at
                break
        else:
            return profile, eps


def earlier():
    """Return the violations of found.json that still occur; each entry has an expression and an eps."""
    found = []
    for entry in json.loads(FOUND.read_text()):
        profile = eval(entry["profile"], {"mechanisms": mechanisms, "sampling": sampling, "shuffle": shuffle})
        line = violation(profile, entry["eps"])[1]
        if line is not None:
            found.append(line)
    return found


def attack(seed, cases=None, late=lambda: False, only=None):
    """Return the numbers of bounds by (class, kind of answer), with the CPU time of each draw, and the violations."""
    counts, found = collections.Counter(), earlier()
    names = [name for name in DRAWS if only is None or only in name]
    drawn, spent = collections.Counter(), dict.fromkeys(names, 0.0)
    signal.signal(signal.SIGALRM, stop)
    while drawn.total() != cases and not late():
        # Every class has a turn, then the class that has taken the least time; a given number of cases is drawn in turns.
        name = min(names, key=lambda name: drawn[name] if cases is not None else (
            min(drawn[name], 1), spent[name] / WEIGHTS.get(name, 1)))
        start, begun, r = time.monotonic(), time.process_time(), random.Random(f"{seed} {name} {drawn[name]}")
        drawn[name] += 1
        profile, seconds = DRAWS[name](r), SLOW.get(name, SECONDS)
        title, eps = class_of(profile), 0.0
        try:
            signal.setitimer(signal.ITIMER_REAL, 4 * seconds)
            eps = points(r, profile)
            if not 0 <= eps <= 700:
                continue
            counts[title, "asked"] += 2
            proved, line = violation(profile, eps, seconds)
            for kind in proved:
                counts[title, kind] += 1
            if line is None and r.random() < 0.3:
                with perturbed(r):
                    number, line = contradiction(profile, eps, seconds)
                counts[title, "perturbed"] += number
        except TimeoutError:
            counts[title, "slow"] += 1
            continue
        except Exception as error:
            line = f"{profile!r}: {type(error).__name__} {error}"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            spent[name] += time.monotonic() - start
            counts[name, SPENT] += time.process_time() - begun
        if line is not None:
            signal.setitimer(signal.ITIMER_REAL, SHRINKING)
            simple = profile, eps
            with contextlib.suppress(TimeoutError):
                simple = shrunk(profile, eps, lambda one, at, seconds=seconds: violation(one, at, seconds)[1])
            signal.setitimer(signal.ITIMER_REAL, 0)
            found.append(f"{line}; the simplest found: {simple[0]!r} at {simple[1]!r}")
    return counts, found


def record(counts, seed, seconds):
    """Add the counts of a run without violations to certified.json."""
    kept = json.loads(CERTIFIED.read_text()) if CERTIFIED.exists() else {"runs": [], "classes": {}, "draws": {}}
    kept["runs"].append({"seed": seed, "seconds": seconds})
    for (title, kind), many in sorted(counts.items()):
        numbers = kept["draws" if kind == SPENT else "classes"].setdefault(title, {})
        numbers[kind] = round(numbers.get(kind, 0) + many)
    CERTIFIED.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
