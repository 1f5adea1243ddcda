"""Certificates of shuffled RAPPOR reports against an enumeration of all reports of all users."""

import itertools
import math

import numpy as np
import pytest

from shufflebounds.certify.families import family_of, matrix_of
from shufflebounds.mechanisms import Rappor
from tests.strategies import slow, thinned

pytest.importorskip("flint")


def rows(report):
    """Return the distribution of the report of every value of a filter with few bits, by the two steps of RAPPOR."""
    out = []
    for value in itertools.combinations(range(report.bits), report.hashes):
        law = []
        for bits in itertools.product((0, 1), repeat=report.bits):
            mass = 1.0
            for j, bit in enumerate(bits):
                kept = 1 - report.f + report.f / 2 if j in value else report.f / 2
                one = report.p * kept + report.q * (1 - kept)
                mass *= one if bit else 1 - one
            law.append(mass)
        out.append(law)
    return np.array(out)


def largest(laws, users, share, eps):
    """Return the largest delta over all datasets of one or two other users, by all outcomes of messages in order."""
    laws = np.hstack([share * laws, np.full((len(laws), 1), 1 - share)])
    best = 0.0
    for others in itertools.combinations_with_replacement(range(len(laws)), users - 1):
        seen = []
        for target in range(len(laws)):
            cells = {}
            joint = laws[target]
            for x in others:
                joint = np.multiply.outer(joint, laws[x])
            for place, mass in np.ndenumerate(joint):
                key = tuple(sorted(place))
                cells[key] = cells.get(key, 0.0) + mass
            seen.append(np.array([cells[key] for key in sorted(cells)]))
        best = max(best, *(float(np.maximum(p - math.exp(eps) * q, 0).sum()) for p, q in itertools.permutations(seen, 2)))
    return best


CASES = [(Rappor(0.5, bits=2), 3, 1.0), (Rappor(0.6, bits=3), 2, 0.7), (Rappor(0.5, 0.75, 0.25, 2, bits=3), 2, 1.0)]


@pytest.mark.parametrize(("report", "users", "share"), CASES)
@pytest.mark.parametrize("eps", [slow(0.05), 0.4])
def test_both_bounds_are_those_of_all_datasets(report, users, share, eps):
    protocol, exact = report.shuffled(users, share), largest(rows(report), users, share, eps)
    for bound, way in (("upper", 1), ("lower", -1)):
        ball = protocol.certify(eps, bound=bound)
        assert way * (float(ball.upper() if way == 1 else ball.lower()) - exact) >= -1e-13
        assert abs(float(ball.log()) - protocol.log_delta(eps, bound=bound)) < 1e-4


@pytest.mark.parametrize("report", thinned(
    [Rappor(0.5, bits=5), Rappor(0.5, 0.8, 0.25, 2, bits=7), Rappor(0.5, 0.8, 0.25, 3, bits=5),
                                    Rappor(0.5, 0.8, 0.25, 3, bits=8)], 2))
def test_the_family_covers_all_values(report):
    _, family = family_of(report)
    laws, every = family(), rows(report)
    listed, blanket, centre = (np.array([[float(x) for x in row] for row in table]) for table in
                               (laws.rows, [laws.blanket], [laws.centre]))
    # The mass and the distance from the centre are those of all reports of the filter.
    one, other = report.p - report.f * (report.p - report.q) / 2, report.q + report.f * (report.p - report.q) / 2
    zeros = report.bits - report.hashes < report.hashes
    if zeros:
        one, other = 1 - other, 1 - one
    bits = np.array(list(itertools.product((1, 0) if zeros else (0, 1), repeat=report.bits))).sum(axis=1)
    none = other**bits * (1 - other) ** (report.bits - bits)
    least = ((1 - one) / (1 - other)) ** min(report.hashes, report.bits - report.hashes) * none
    assert (least <= every.min(axis=0) * (1 + 1e-12)).all()
    assert float(blanket.sum()) == pytest.approx(least.sum())
    distances = ((every - none) ** 2 / least).sum(axis=1)
    assert ((listed - centre) ** 2 / blanket).sum(axis=1) == pytest.approx(np.full(len(listed), distances[0]))


    def moments(table, pair, others):
        return sorted(float(((table[pair[0]] - 1.2 * table[pair[1]]) ** 2 / table[x]).sum()) for x in others)

    # Second moments of X = (R_0 - 1.2 R_1)/R_x depend on all three distributions.
    far = max(itertools.combinations(range(len(every)), 2), key=lambda pair: np.abs(every[pair[0]] - every[pair[1]]).sum())
    wanted = moments(every, far, range(len(every)))
    found = moments(listed, (0, 1), range(len(listed)))
    assert all(min(abs(x - y) for y in found) < 1e-9 * x for x in wanted)
    assert all(min(abs(x - y) for y in wanted) < 1e-9 * x for x in found)
    assert matrix_of(report)[:2] == every.shape
    assert np.array([[float(x) for x in row] for row in matrix_of(report)[2]()]) == pytest.approx(every)


def test_many_users_and_too_many_hashes():
    protocol = Rappor(0.5).shuffled(1000)
    eps = protocol.epsilon(1e-6)
    assert float(protocol.certify(eps, bound="upper").upper()) <= 1e-6 * (1 + 1e-8)
    with pytest.raises(TypeError, match="at most three hashes"):
        Rappor(0.5, hashes=4).shuffled(1000).certify(0.1, bound="upper")
