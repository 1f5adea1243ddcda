"""The exact bits of about 1100 results of all public classes, which show the results that a change of the code affects.

Record them before a change that is meant to keep results, and compare after it::

    python -m tests.regression.bits record          # writes bits.json, about three CPU minutes
    python -m tests.regression.bits compare         # lists the results that changed, about a minute
    SHUFFLEBOUNDS_BITS=1 pytest tests/regression/test_bits.py

The results depend on the C library and the processor, so compare them on the machine that recorded them. A changed result is not
necessarily wrong: the author of the change states why it changed, and checks that it is inside the old bounds if these were valid.
"""

import argparse
import copy
import json
import signal
import time
from pathlib import Path

import numpy as np

from shufflebounds import mechanisms as m
from shufflebounds import sampling as sa
from shufflebounds import shuffle as s
from shufflebounds.profile import DominatingPair

RECORDED = Path(__file__).with_name("bits.json")
EXPENSIVE = Path(__file__).with_name("expensive.json")

LIMIT = 0.4
"""Limit of the CPU time in seconds of one result when it is recorded. Raised: slower results are included, and the comparison takes
longer."""

QUICK = 0.025
"""CPU time in seconds. A result that took longer when it was recorded is listed in expensive.json, and only slow tests compute it.
Raised: the default tests take longer. Lowered: they notice fewer changes."""

QUESTIONS = {
    "delta(0.3)": ("delta", 0.3), "log_delta(0)": ("log_delta", 0.0), "log_delta(1.7)": ("log_delta", 1.7),
    "epsilon(1e-6)": ("epsilon", 1e-6), "epsilon(1e-12)": ("epsilon", 1e-12), "epsilon(0)": ("epsilon", 0.0),
    "rdp(1)": ("rdp", 1.0), "rdp(2)": ("rdp", 2.0), "rdp(inf)": ("rdp", np.inf), "gdp_mu()": ("gdp_mu",),
    "loss_tail(0.4)": ("loss_tail", 0.4), "tradeoff.beta(0.05)": ("tradeoff", "beta", 0.05),
    "tradeoff.delta(0.3)": ("tradeoff", "delta", 0.3), "5 releases epsilon(1e-6)": ("self_compose", 5, "epsilon", 1e-6),
    "3 releases log_delta(1)": ("self_compose", 3, "log_delta", 1.0),
}
"""Results by name: a method and its arguments. For curves and compositions, the method of the curve or composition follows."""


def subjects():
    """Return the profiles whose results are recorded, by public class; every call creates new objects."""
    gaussian, laplace = m.GaussianMechanism, m.LaplaceMechanism
    matrix = ((0.5, 0.3, 0.2), (0.2, 0.5, 0.3), (0.3, 0.2, 0.5))
    with_zeros = ((0.5, 0.5, 0.0), (0.0, 0.25, 0.75))
    ratio = (5.0, 0.3, 5.0)
    shuffled = [
        m.KaryResponse(10, 2.0), m.KaryResponse(3, 1.0), m.SubsetSelection(20, 1.5), m.LocalHashing(100, 2.0),
        m.HadamardResponse(30, 1.0), m.UnaryEncoding.optimized(8, 2.0), m.PrivUnit(16, 3.0), m.PureLocal(1.0),
        m.RatioBounded(*ratio), m.Rappor(0.5, 0.75, 0.25, 2), gaussian(1.0), laplace(1.0), m.GeometricMechanism(1.0, 3),
        m.DiscreteGaussianMechanism(2.0, 3), m.RandomizedResponse(1.0), m.FiniteRandomizer(matrix), m.GaussianVector(2.0, 3),
    ]
    return {
        "shuffle.ShuffledBits": [s.ShuffledBits(100, 0.29), s.ShuffledBits(5000, 0.05), s.ShuffledBits(10**5, 0.3, ones=7),
                                 s.ShuffledBits(300, 0.2, fakes=50)],
        "shuffle.BinomialNoise": [s.BinomialNoise(1000, 0.5), s.BinomialNoise(40, 0.3)],
        "shuffle.ClearReports": [s.ClearReports(2000, 10), s.ClearReports(30, 2)],
        "shuffle.FlippedReports": [s.FlippedReports(300, 0, 3, 0.1, view="sums"), s.FlippedReports(20, 3, 2, 0.2, view="records"),
                                   s.FlippedReports(500, 40, 5, 0.1, view="records"),
                                   s.FlippedReports(40, 5, 3, 0.2, view="sums", fake="uniform")],
        "shuffle.ShuffledHistogram": [s.ShuffledHistogram(2000, 10, 0.1), s.ShuffledHistogram(5, 2, 0.4)],
        "shuffle.ZeroSum": [s.ZeroSum(5000, 0.05), s.ZeroSum(20, 0.4)],
        "shuffle.RealSum": [s.RealSum(500, 60.0, 3), s.RealSum(500, 60.0, 3, view="columns"), s.RealSum(300, 20.0, 1)],
        "shuffle.Clones": [s.Clones(10**4, 1.5), s.Clones(50, 0.3)],
        "shuffle.StrongerClones": [s.StrongerClones(10**6, 4.0), s.StrongerClones(200, 0.7)],
        "shuffle.PersonalizedBits": [s.PersonalizedBits(np.linspace(0.2, 2, 30)),
                                     s.PersonalizedBits([0.5, 1, 2.0] * 9, bits=[0, 1, 1] * 9),
                                     s.PersonalizedBits([0.5, 1, 2.0] * 9, bits=[0, 1, 1] * 9, target=3)],
        "shuffle.PersonalizedClones": [s.PersonalizedClones.laplace([0.5, 1.0, 2.0] * 20),
                                       s.PersonalizedClones.gaussian([1.0, 2.0], counts=[30, 30]),
                                       s.PersonalizedClones.randomized_response([0.5, 1.0, 2.0] * 20, 4),
                                       s.PersonalizedClones(0.2, [0.1, 0.2, 0.3], counts=[30, 20, 10])],
        "shuffle.VariationRatio": [s.VariationRatio(1000, *ratio), s.VariationRatio(5, 3.0, 0.5, 3.0)],
        "shuffle.Shuffled": [*(one.shuffled(1000) for one in shuffled), m.KaryResponse(10, 2.0).shuffled(5000, 0.3),
                             m.FiniteRandomizer(with_zeros).shuffled(3)],
        "mechanisms.KaryResponse": [m.KaryResponse(10, 2.0)],
        "mechanisms.SubsetSelection": [m.SubsetSelection(20, 1.5)],
        "mechanisms.LocalHashing": [m.LocalHashing(100, 2.0)],
        "mechanisms.HadamardResponse": [m.HadamardResponse(30, 1.0)],
        "mechanisms.UnaryEncoding": [m.UnaryEncoding.optimized(8, 2.0), m.UnaryEncoding(4, 0.8, 0.1)],
        "mechanisms.PrivUnit": [m.PrivUnit(16, 3.0)],
        "mechanisms.PureLocal": [m.PureLocal(1.0)],
        "mechanisms.RatioBounded": [m.RatioBounded(*ratio)],
        "mechanisms.Rappor": [m.Rappor(0.5, 0.75, 0.25, 2)],
        "mechanisms.GaussianMechanism": [gaussian(1.0), gaussian(0.3)],
        "mechanisms.LaplaceMechanism": [laplace(1.0)],
        "mechanisms.GeometricMechanism": [m.GeometricMechanism(1.0, 3), m.GeometricMechanism(1.0, 2, 20)],
        "mechanisms.DiscreteGaussianMechanism": [m.DiscreteGaussianMechanism(2.0, 3)],
        "mechanisms.RandomizedResponse": [m.RandomizedResponse(1.0), m.RandomizedResponse(0.5, upper=4.0)],
        "mechanisms.FiniteRandomizer": [m.FiniteRandomizer(matrix), m.FiniteRandomizer(with_zeros)],
        "mechanisms.GaussianVector": [m.GaussianVector(2.0, 3), m.GaussianVector(2.0, 3, "cube")],
        "sampling.Subsampled": [gaussian(1.0).subsampled(0.01), laplace(1.0).subsampled(0.1),
                                m.KaryResponse(5, 1.0).subsampled(0.2)],
        "sampling.SampledPair": [sa.SampledPair(gaussian(2.0), 0.05, False), sa.SampledPair(m.KaryResponse(5, 1.0), 0.2)],
        "sampling.WithoutReplacement": [sa.WithoutReplacement(gaussian(1.0), 1000, 50),
                                        sa.WithoutReplacement(m.KaryResponse(5, 1.0), 10, 3)],
        "sampling.ReplaceOne": [sa.ReplaceOne(gaussian(1.0).subsampled(0.01)),
                                sa.ReplaceOne(m.KaryResponse(5, 1.0).subsampled(0.2))],
        "sampling.RandomAllocation": [sa.RandomAllocation(gaussian(1.0), 100), sa.RandomAllocation(laplace(1.0), 50),
                                      sa.RandomAllocation(m.KaryResponse(3, 1.0), 20),
                                      sa.RandomAllocation(gaussian(1.0), 100, chosen=3)],
        "sampling.AllocationPair": [sa.AllocationPair(gaussian(0.5), 1000, False), sa.AllocationPair(m.KaryResponse(3, 1.0), 4)],
        "profile.Composition": [s.StrongerClones(10**4, 2.0).compose(gaussian(3.0)),
                                s.BinomialNoise(400, 0.5).compose(s.ShuffledBits(200, 0.2), laplace(4.0)),
                                s.ShuffledBits(200, 0.2).compose(s.ClearReports(2000, 10)),
                                gaussian(1.0).subsampled(0.01).self_compose(100), m.KaryResponse(3, 0.5).compose(m.Rappor(0.5))],
        "profile.DominatingPair": [DominatingPair.from_pmfs(np.log([0.6, 0.3, 0.1]), np.log([0.1, 0.3, 0.6])),
                                   s.ShuffledBits(50, 0.2).pair(3), sa.RandomAllocation(m.KaryResponse(3, 1.0), 4).pairs()[0]],
    }


LEFT_OUT = {"interop.AccountingProfile": "its numbers are those of another library, whose versions differ"}
"""Public classes without recorded results, with the reason."""


def answer(profile, question):
    """Return the lower and the upper bound in hexadecimal, or the name of the exception if the method does not support it."""
    method, *arguments = QUESTIONS[question]
    profile = copy.deepcopy(profile)  # The answer is that of a copy, so that caches filled by earlier calls have no effect.

    def one(bound):
        if method == "tradeoff":
            return getattr(profile.tradeoff(bound=bound), arguments[0])(*arguments[1:])
        if method == "self_compose":
            return getattr(profile.self_compose(arguments[0]), arguments[1])(*arguments[2:], bound=bound)
        return getattr(profile, method)(*arguments, bound=bound)

    try:
        return " ".join(float(one(bound)).hex() for bound in ("lower", "upper"))
    except (ArithmeticError, IndexError, TypeError, ValueError) as problem:
        return type(problem).__name__


def recorded():
    """Return the recorded results as {class: {profile: {name of the result: bounds}}}."""
    return json.loads(RECORDED.read_text())


def weakened(name, *, slow):
    """Return one line for each result of a public class whose bounds are wider than recorded, or disjoint from those recorded.

    `slow` chooses the results that are in expensive.json; otherwise the others are chosen. A gap may be a quarter larger than
    recorded, plus a relative 1e-9 for rounding, which differs between machines.
    """
    found = []
    rows, expensive = recorded().get(name, {}), json.loads(EXPENSIVE.read_text()).get(name, {})
    for profile in subjects()[name]:
        for question, before in rows.get(repr(profile), {}).items():
            if (question in expensive.get(repr(profile), ())) != slow:
                continue
            now = answer(profile, question)
            if "x" not in before or "x" not in now:
                same = before == now
            else:
                # The delta of the lower trade-off curve is the larger one.
                (low, high), (old_low, old_high) = (sorted(map(float.fromhex, words.split())) for words in (now, before))
                size = 1e-9 * max((abs(x) for x in (old_low, old_high) if abs(x) < np.inf), default=0.0)
                wide = high - low > 1.25 * (old_high - old_low) + size if high > low else False
                same = not wide and low <= old_high + size and old_low <= high + size
            if not same:
                found.append(f"{profile!r} {question}: was {_decimal(before)}, is {_decimal(now)}")
    return found


def moved(name):
    """Return one line for each result of a public class that differs from the recorded one."""
    found = []
    rows = recorded().get(name, {})
    for profile in subjects()[name]:
        for question, before in rows.get(repr(profile), {}).items():
            now = answer(profile, question)
            if now != before:
                found.append(f"{profile!r} {question}: was {_decimal(before)}, is {_decimal(now)}")
    return found


def _decimal(words):
    return " ".join(repr(float.fromhex(word)) if "x" in word or word == "inf" else word for word in words.split())


class TooSlow(Exception):
    """Raised if a result takes longer than `LIMIT`."""


def record():
    """Compute every result that takes less than `LIMIT`, and write them to bits.json."""
    def late(*_):
        raise TooSlow

    signal.signal(signal.SIGPROF, late)
    out, expensive, dropped = {}, {}, 0
    before = json.loads(RECORDED.read_text())
    for name, profiles in subjects().items():
        for profile in profiles:
            known = before.get(name, {}).get(repr(profile), {})
            row = out.setdefault(name, {}).setdefault(repr(profile), {})
            for question in QUESTIONS:
                # A result that was recorded before may take four times the limit, so that a slower machine does not drop it.
                signal.setitimer(signal.ITIMER_PROF, 4 * LIMIT if question in known else LIMIT)
                start = time.process_time()
                try:
                    row[question] = answer(profile, question)
                    if time.process_time() - start > QUICK:
                        expensive.setdefault(name, {}).setdefault(repr(profile), []).append(question)
                except TooSlow:
                    dropped += 1
                finally:
                    signal.setitimer(signal.ITIMER_PROF, 0)
    for path, table in ((RECORDED, out), (EXPENSIVE, expensive)):
        path.write_text(json.dumps(table, indent=0, separators=(",", ":")) + "\n")
    count = sum(len(row) for rows in out.values() for row in rows.values())
    print(f"{count} answers recorded; {dropped} questions left out as slow")


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.regression.bits", description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["record", "compare"])
    parser.add_argument("--only", default="", help="classes whose name contains this (compare)")
    options = parser.parse_args()
    start = time.process_time()
    if options.what == "record":
        record()
    else:
        for name in subjects():
            if options.only in name:
                print("\n".join(moved(name)) or f"{name}: nothing moved")
    print(f"{time.process_time() - start:.0f} CPU s")


if __name__ == "__main__":
    main()
