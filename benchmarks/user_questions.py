"""Questions that users ask, beside other programs: ``python benchmarks/user_questions.py [--record] [words]``.

Every question runs in a process of its own, so that its memory is known: the peak of the first call beyond that of the imported
programs. Calls of both programs alternate, each with new objects; a row has the medians of the CPU time of one thread. With words,
only the questions that contain one of them are asked; --record then keeps the newest rows of the others, with their dates.
"""

import json
import math
import resource
import statistics
import subprocess
import sys
import time
from datetime import UTC, datetime

import numpy as np
from compared.counts import noise_laws
from compared.peers import PoiBin, gaussian_allocation_epsilon_range, privacy_loss_distribution, two_laws
from keeping import RESULTS, keep
from measuring import duration

from shufflebounds import mechanisms, sampling, shuffle, tails

SECONDS = 3.0
"""CPU time in seconds that the calls of one question may take, after the first call."""

SEED = 20261125
"""Seed of random budgets and probabilities."""

DELTA = 1e-6


def both(profile, delta=DELTA):
    """Return both bounds of eps."""
    return profile.epsilon(delta, bound="lower"), profile.epsilon(delta)


def clones(number):
    """Return eps of a composition of different clone bounds."""
    first, *others = (shuffle.StrongerClones(10**8 + i, 1.0) for i in range(number))
    return first.compose(*others).epsilon(DELTA)


def budgets(number):
    """Return eps of users with random budgets of randomized response."""
    draws = np.random.default_rng(SEED).uniform(0.1, 4.0, number)
    return shuffle.PersonalizedClones.randomized_response(draws, 100).epsilon(DELTA)


def binomial_peer():
    """Return eps of ten releases of binomial noise by dp-accounting."""
    return two_laws(*noise_laws(10**4), 1e-4).self_compose(10).get_epsilon_for_delta(DELTA)


def allocation_peer():
    """Return bounds of eps of random allocation by PLD_accounting."""
    return gaussian_allocation_epsilon_range(delta=DELTA, sigma=0.5, num_steps=10**4, num_selected=1, num_epochs=1)


def matrix(size):
    """Return eps of a shuffled randomizer with a random matrix."""
    rows = np.random.default_rng(SEED).uniform(0.5, 1.5, (size, size))
    return mechanisms.FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True)).shuffled(10**6).epsilon(DELTA)


def clone_rows(number):
    """Return the sum of eps over rows of the clone bound with mixed users and local budgets."""
    r = np.random.default_rng(SEED)
    users = np.round(np.exp(r.uniform(math.log(1e3), math.log(1e9), number)))
    return shuffle.clones_epsilons(users, r.uniform(0.5, 4.0, number), DELTA).sum()


def rows_of(randomizer, least, most, number):
    """Return the sum of eps over rows of a shuffled randomizer with numbers of users between two limits."""
    users = np.round(np.geomspace(least, most, number))
    return shuffle.shuffled_epsilons(randomizer, users, DELTA).sum()


PROBS = np.random.default_rng(SEED).uniform(0.0, 1.0, 1000)
STEP = mechanisms.GaussianMechanism(1.0)

QUESTIONS = {
    "k-ary response, 1e6 users, eps": (lambda: mechanisms.KaryResponse(10, 2.0).shuffled(10**6).epsilon(1e-8), None),
    "binary response, 1e6 users, eps": (lambda: mechanisms.RandomizedResponse(2.0).shuffled(10**6).epsilon(1e-8), None),
    "1e4 mixed rows of the clone bound, eps": (lambda: clone_rows(10**4), None),
    "100 rows of binary response, 1e6 users, eps": (
        lambda: rows_of(mechanisms.RandomizedResponse(2.0), 10**6, 2 * 10**6, 100), None),
    "100 rows of k-ary response, 100 to 300 users, eps": (lambda: rows_of(mechanisms.KaryResponse(10, 2.0), 100, 300, 100), None),
    "k-ary response, 1e6 users, eps at 200 deltas": (
        lambda: mechanisms.KaryResponse(10, 2.0).shuffled(10**6).epsilon(np.geomspace(1e-12, 1e-4, 200)).sum(), None),
    "1000 steps of DP-SGD, both bounds": (lambda: both(STEP.subsampled(0.01).self_compose(1000)), None),
    "1000 steps of DP-SGD, eps at 200 deltas": (
        lambda: STEP.subsampled(0.01).self_compose(1000).epsilon(np.geomspace(1e-12, 1e-4, 200)).sum(), None),
    "two different Gaussians, both bounds": (
        lambda: both(mechanisms.GaussianMechanism(5.0).compose(mechanisms.GaussianMechanism(6.0))), None),
    "10 different stronger clones composed": (lambda: clones(10), None),
    "100 different stronger clones composed": (lambda: clones(100), None),
    "1000 different stronger clones composed": (lambda: clones(1000), None),
    "binomial noise x 10, both bounds": (
        lambda: both(shuffle.BinomialNoise(10**4, 0.5).self_compose(10)), binomial_peer if privacy_loss_distribution else None),
    "histogram x 10, both bounds": (lambda: both(shuffle.ShuffledHistogram(10**4, 10, 0.0043).self_compose(10)), None),
    "allocation to 1 of 1e4 steps, sigma 1/2, both bounds": (
        lambda: both(sampling.RandomAllocation(mechanisms.GaussianMechanism(0.5), 10**4)),
        allocation_peer if gaussian_allocation_epsilon_range else None),
    "ten epochs of 1000 steps, both bounds": (lambda: both(sampling.RandomAllocation(STEP, 1000).self_compose(10)), None),
    "k-ary response, 7.9e9 users, mu": (lambda: mechanisms.KaryResponse(116, 0.16538).shuffled(7899977145).gdp_mu(), None),
    "Gaussian noise, 100 users, eps": (lambda: STEP.shuffled(100).epsilon(DELTA), None),
    "Gaussian noise, 100 users, rdp of order 8": (lambda: STEP.shuffled(100).rdp(8.0), None),
    "Gaussian noise, 1e6 users, eps": (lambda: STEP.shuffled(10**6).epsilon(DELTA), None),
    "30 x 30 matrix, 1e6 users, eps": (lambda: matrix(30), None),
    "60 x 60 matrix, 1e6 users, eps": (lambda: matrix(60), None),
    "1e6 personalized budgets, eps": (lambda: budgets(10**6), None),
    "1e7 personalized budgets, eps": (lambda: budgets(10**7), None),
    "Poisson-binomial window of 1000 p": (
        lambda: tails.poisson_binom_window(PROBS)[0], (lambda: PoiBin(PROBS).pmf.size) if PoiBin else None),
}
"""Each question: what is asked, and the same with another program if it is installed."""


def measured(name):
    """Return the first answers and the medians of the seconds of both programs, and the memory of this library in MB."""
    jobs = [job for job in QUESTIONS[name] if job]
    answers, taken = [], [[] for _ in jobs]
    peak, memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, None
    while not answers or (sum(map(sum, taken)) < SECONDS and len(taken[0]) < 200):
        for job, times in zip(jobs, taken):
            start = time.thread_time()
            answers.append(np.asarray(job(), dtype=np.float64).ravel().tolist())
            times.append(time.thread_time() - start)
            if memory is None:
                memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) // 1024
    # The first call imports modules.
    seconds = [statistics.median(times[1:] or times) for times in taken]
    return {"answers": answers[: len(jobs)], "seconds": seconds, "MB": memory}


def kept_rows():
    """Return the newest recorded row of each question."""
    found = {}
    for path in sorted(RESULTS.glob("questions-*.json")):
        file = json.loads(path.read_text())
        for row in file["tables"]["questions"]["rows"]:
            found[row[0]] = [*row[:6], *(row[6:] or [file["date"][:10]])]
    return found


def main(arguments):
    """Print the table, and store it with --record."""
    if "--one" in arguments:
        print(json.dumps(measured(arguments[-1])))
        return
    words = [word for word in arguments if not word.startswith("-")]
    rows = []
    for name in (name for name in QUESTIONS if not words or any(word in name for word in words)):
        command = [sys.executable, __file__, "--one", name]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        shown = [" .. ".join(f"{value:.6g}" for value in answer) for answer in found["answers"]]
        times = [duration(seconds) for seconds in found["seconds"]]
        rows.append([name, shown[0], times[0], *(("", "") if len(times) < 2 else (shown[1], times[1])), str(found["MB"])])
        print(f"{name:<53} {shown[0]:<20} {times[0]:>8}  {' '.join(rows[-1][3:5]):<20} {found['MB']:>4} MB", flush=True)
    if "--record" in arguments:
        header = ["question", "answer", "CPU time", "other program", "its time", "memory, MB", "measured on"]
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        known = {**kept_rows(), **{row[0]: [*row, today] for row in rows}}
        listed = [known[name] for name in QUESTIONS if name in known]
        keep("questions", {"tables": {"questions": {"header": header, "rows": listed}}, "seed": SEED})


if __name__ == "__main__":
    main(sys.argv[1:])
