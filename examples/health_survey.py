"""Calibrates and runs every protocol on one real health survey, and compares its error with the stated quantiles of the error.

The data are those of the RAND Health Insurance Experiment, 20 190 person-years, which statsmodels contains
(``pip install 'shufflebounds[examples]'``). Every row is taken as one user. Each protocol is calibrated to the same (eps, delta),
run once with a seeded generator, and answers one question of the survey::

    python examples/health_survey.py
    python examples/health_survey.py --eps 0.5 --delta 1e-8 --seed 7

The last three columns are the error of this run, the error that a run on these data exceeds with probability at most 5 %, and the
error that a run on any data exceeds with probability at most 5 %. The second can be computed only by somebody who knows the data,
the third before the first user has answered.
"""

import argparse
import sys
from dataclasses import dataclass

import numpy as np

from shufflebounds import InfeasibleError, shuffle

HEALTH = ("excellent", "good", "fair", "poor")
GOOD, POOR = HEALTH.index("good"), HEALTH.index("poor")


@dataclass(frozen=True)
class Survey:
    """The columns of the survey that the protocols use, with one entry for each user."""

    limited: np.ndarray
    """Whether a physical condition limits the user: 0 or 1."""
    health: np.ndarray
    """Self-rated health, 0 (excellent) to 3 (poor)."""
    visits: np.ndarray
    """Outpatient visits in the year, from 0."""
    diseases: np.ndarray
    """Index of chronic diseases divided by its largest value, in [0, 1]."""


@dataclass(frozen=True)
class Line:
    """The result of one protocol's run: exact values, estimates, and messages per user."""

    protocol: object
    question: str
    truth: np.ndarray
    estimate: np.ndarray
    messages: float
    known: object = None
    """What `error_quantile` needs to know about the data; None if the distribution of the error is the same for every dataset."""

    @property
    def worst(self):
        """Return the index of the largest absolute error."""
        return int(np.argmax(np.abs(self.estimate - self.truth)))

    @property
    def error(self):
        """Return estimate minus exact value at that index."""
        return float((self.estimate - self.truth)[self.worst])


def survey():
    """Return the columns of the survey."""
    try:
        from statsmodels.datasets import randhie
    except ImportError as problem:
        raise SystemExit("this example needs statsmodels: pip install 'shufflebounds[examples]'") from problem
    table = randhie.load_pandas().data
    health = np.select([table["hlthg"] == 1, table["hlthf"] == 1, table["hlthp"] == 1], [1, 2, 3], 0)
    return Survey(
        limited=(table["physlm"].to_numpy() > 0.5).astype(np.int64),
        health=health.astype(np.int64),
        visits=table["mdvis"].to_numpy().astype(np.int64),
        diseases=table["disea"].to_numpy() / table["disea"].max(),
    )


def line(protocol, question, truth, estimate, messages, known=None):
    """Return the line of a protocol that estimates one number, or an array of several."""
    return Line(protocol, question, np.atleast_1d(truth), np.atleast_1d(estimate), messages, known)


def shuffled_bits(data, eps, delta, rng):
    """Count limited users by shuffled randomized response on one bit."""
    truth = int(data.limited.sum())
    protocol = shuffle.ShuffledBits.calibrate(users=data.limited.size, eps=eps, delta=delta)
    estimate = protocol.estimate(counts=protocol.simulate(data.limited, rng=rng))
    return line(protocol, "users limited", truth, estimate, protocol.messages_per_user(), truth)


def binomial_noise(data, eps, delta, rng):
    """Count limited users whose bits are sent unrandomized among dummy bits, which are fair coins."""
    truth = int(data.limited.sum())
    protocol = shuffle.BinomialNoise.calibrate(eps=eps, delta=delta)
    estimate = protocol.estimate(protocol.randomize(truth, rng=rng))
    return line(protocol, "users limited", truth, estimate, 1 + protocol.trials / data.limited.size)


def zero_sum(data, eps, delta, rng):
    """Count the rarest answer by a protocol whose estimate is exactly 0 if nobody gives this answer."""
    poor = (data.health == POOR).astype(np.int64)
    truth = int(poor.sum())
    protocol = shuffle.ZeroSum.calibrate(users=poor.size, eps=eps, delta=delta)
    estimate = protocol.estimate(counts=protocol.simulate(poor, rng=rng))
    return line(protocol, "users in poor health", truth, estimate, protocol.messages_per_user(), truth)


def real_sum(data, eps, delta, rng):
    """Add up numbers in [0, 1], each encoded with eight bits."""
    protocol = shuffle.RealSum.calibrate(users=data.diseases.size, bits=8, eps=eps, delta=delta)
    estimate = protocol.estimate(counts=protocol.simulate(data.diseases, rng=rng))
    truth = data.diseases.sum()
    return line(protocol, "sum of disease indices", truth, estimate, protocol.messages_per_user(), data.diseases)


def clear_reports(data, eps, delta, rng):
    """Estimate a histogram from unrandomized reports among dummy reports; the table shows one bin."""
    truth = int((data.health == GOOD).sum())
    protocol = shuffle.ClearReports.calibrate(bins=len(HEALTH), eps=eps, delta=delta)
    counts = protocol.estimate(counts=protocol.simulate(data.health, rng=rng))
    return line(protocol, "users in good health", truth, counts[GOOD], protocol.messages_per_user(data.health.size))


def flipped_reports(data, eps, delta, rng):
    """Estimate a histogram from one-hot reports with flipped bits, of which only the sum of each bin is seen; one bin is shown."""
    truth = int((data.health == GOOD).sum())
    protocol = shuffle.FlippedReports.calibrate(users=data.health.size, bins=len(HEALTH), eps=eps, delta=delta, view="sums")
    counts = protocol.estimate(counts=protocol.simulate(data.health, rng=rng))
    return line(protocol, "users in good health", truth, counts[GOOD], protocol.messages_per_user(), truth)


def histogram(data, eps, delta, rng):
    """Estimate a histogram that is exactly 0 in empty bins; the table shows the bin with the largest error."""
    bins = 128
    truth = np.bincount(data.visits, minlength=bins)
    protocol = shuffle.ShuffledHistogram.calibrate(users=data.visits.size, bins=bins, eps=eps, delta=delta)
    counts = protocol.estimate(counts=protocol.simulate(data.visits, rng=rng))
    return line(protocol, "users by visits", truth, counts, protocol.messages_per_user(), truth)


PROTOCOLS = (shuffled_bits, binomial_noise, zero_sum, real_sum, clear_reports, flipped_reports, histogram)


def run(eps, delta, seed):
    """Run every protocol and return its lines; print the name of a protocol that cannot meet the target, and leave it out."""
    data, rng = survey(), np.random.default_rng(seed)
    lines = []
    for protocol in PROTOCOLS:
        try:
            lines.append(protocol(data, eps, delta, rng))
        except InfeasibleError as problem:
            print(f"{protocol.__name__}: {problem}")
    return lines


def main(argv=None):
    """Print the table."""
    parser = argparse.ArgumentParser(description="Run every protocol on one health survey; compare errors with their quantiles.")
    parser.add_argument("--eps", type=float, default=1.0, help="privacy loss in nats (default 1)")
    parser.add_argument("--delta", type=float, default=1e-6, help="failure probability (default 1e-6)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the generator (default 0)")
    arguments = parser.parse_args(argv)
    rows = [("protocol", "question", "delta", "messages", "truth", "estimate", "error", "95 %, these data", "95 %, any data")]
    for told in run(arguments.eps, arguments.delta, arguments.seed):
        # For a whole histogram the quantile is that of the largest error of any bin.
        of = "any" if told.estimate.size > 1 else "bin"
        rows.append((
            type(told.protocol).__name__,
            told.question,
            f"{told.protocol.delta(arguments.eps):.2e}",
            f"{told.messages:.2f}",
            f"{told.truth[told.worst]:.1f}",
            f"{told.estimate[told.worst]:.1f}",
            f"{told.error:+.1f}",
            f"{told.protocol.error_quantile(0.05, told.known, of=of):.1f}",
            f"{told.protocol.error_quantile(0.05, of=of):.1f}",
        ))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        text = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths))]
        print("  ".join(text).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
