"""The tables of docs/audit_peers: our column is computed, and the recorded answers of other programs are compared with it."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from shufflebounds import Tradeoff, audit
from shufflebounds.mechanisms import GaussianMechanism

PAGE = (Path(__file__).parents[2] / "docs" / "audit_peers.md").read_text(encoding="utf-8")


def rows(header):
    """Return the cells of the table whose header begins so."""
    lines = itertools.takewhile(lambda line: line[:1] == "|", PAGE[PAGE.index(header):].splitlines()[2:])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.slow
def test_two_samples():
    def scores(seed, size, mean, order=1):
        rng = np.random.default_rng(seed)
        return audit.scores(*(rng.normal(size=size) + mean, rng.normal(size=size))[::order])

    shift = scores(1, 1000, 3.0)
    ours = [audit.decisions(95, 100, 5, 100).epsilon(), *2 * [scores(0, 1000, 0.0).epsilon(1e-5)], shift.epsilon(1e-5)]
    ours += [GaussianMechanism(1 / shift.gdp_mu()).epsilon(1e-5)]
    ours += [found.epsilon(1e-5) for found in (scores(1, 1000, 3.0, -1), scores(2, 300, 1.0))]
    recorded = [2.0621052987078743, 0.0, 0.9197770639790644, 3.941142736957479, 13.818115846855628, 0.0, 0.9981283968554777]
    assert [(row[2], row[4]) for row in rows("| data | program")] == [(f"{a:.4f}", f"{b:.4f}") for a, b in zip(recorded, ours)]


def published_p(right, guesses, canaries, eps, delta):
    """Return the bound of 2305.08846, Theorem 5.2, as its appendix evaluates it."""
    tail = stats.binom.sf(np.arange(right, -1, -1) - 1.0, guesses, 1 / (1 + math.exp(-eps)))
    return min(1.0, tail[0] + 2 * canaries * delta * max((tail[1:] - tail[0]) / np.arange(1, right + 1)))


def test_one_run():
    recorded = [0.7022140201783839, 0.6994669106155617, 0.672984729773335, 2.6758509126062022, 3.8713168489111034]
    table = rows("| right, guesses, canaries, delta")
    for (case, theirs, printed, verdict, ours), eps in zip(table, recorded, strict=True):
        right, guesses, canaries, delta = (float(number) for number in case.split(","))
        found = audit.one_run(int(right), int(guesses), canaries=int(canaries)).epsilon(delta)
        assert (theirs, ours) == (f"{eps:.4f}", f"{found:.4f}")
        assert math.isclose(published_p(int(right), int(guesses), int(canaries), eps, delta), 0.05, rel_tol=1e-4)
        assert abs(eps - float(printed)) < 2e-3
        assert verdict == ("the same" if abs(found - eps) < 1e-5 else "not tight")
        assert found > eps - 1e-5


def test_where_the_published_bound_is_below_the_exact_value():
    below, above = [], []
    for guesses, eps, delta in itertools.product((2, 5, 20), (0.0, 1.0, 3.0), (1e-6, 1e-3, 0.05)):
        for right in range(1, guesses + 1):
            exact = math.exp(audit.one_run(right, guesses)._log_success(np.array([eps]), np.array([math.log(delta)]))[0])
            published = published_p(right, guesses, guesses, eps, delta)
            (below if published < exact * (1 - 1e-9) else above).append(published)
    assert len(below) > 10
    assert min(below) > 0.87
    assert min(above) < 1e-5


@pytest.mark.slow
def test_gaussian_claims_of_one_run():
    recorded = [0.5761115930899776, 0.36716748436410657, 0.5306890660834477, 0.7079590053949018, 1.0698333769912978]
    for (case, theirs, verdict, ours), mu in zip(rows("| right, guesses = canaries"), recorded, strict=True):
        right, guesses = (int(number) for number in case.split(","))
        found, shown = audit.one_run(right, guesses), float(ours)
        assert theirs == f"{mu:.4f}"
        # The number shown is refuted, and one slightly larger is not.
        assert found.p_value(Tradeoff.gaussian(shown - 1e-4)) <= 0.05 < found.p_value(Tradeoff.gaussian(shown + 4e-4))
        assert verdict == ("the same" if abs(shown - mu) < 3e-4 else "not tight")
