"""Hits and scores of two samples: values of the specification, exact error probabilities by enumeration, extreme data."""

import itertools
import math
import pickle

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

from shufflebounds import Tradeoff, audit
from shufflebounds.mechanisms import GaussianMechanism, RandomizedResponse
from shufflebounds.profile import DominatingPair
from shufflebounds.shuffle import ShuffledBits
from tests.strategies import thinned

BOXES = [((95, 100, 5, 100), 2.0621052987), ((1000, 1000, 0, 1000), 5.6005875313), ((700, 1000, 300, 1000), 0.7106208086)]
PRODUCTS = [((95, 100, 5, 100), 2.0269381), ((1000, 1000, 0, 1000), 5.3499690), ((700, 1000, 300, 1000), 0.7346699)]


@pytest.mark.parametrize(("counts", "eps"), BOXES)
def test_boxes(counts, eps):
    found = audit.decisions(*counts)
    assert round(found.epsilon(), 10) == eps
    # eps is the end of the claims that are refuted, so that the p-value there is the level.
    assert math.isclose(found.p_value(Tradeoff.randomized_response(eps)), 0.05, rel_tol=1e-7)
    assert math.isclose(found.p_value(Tradeoff.gaussian(found.gdp_mu())), 0.05, rel_tol=1e-7)


@pytest.mark.parametrize(("counts", "eps"), thinned(PRODUCTS, 2))
def test_products(counts, eps):
    """The values are lower bounds from a grid, for claims about one order of the datasets. Claims about both allow fewer rates."""
    found = audit.decisions(*counts, test="product")
    one_order = found.p_value(Tradeoff.from_knots([-math.inf, -eps], [0.0, -math.inf]))
    assert found.p_value(Tradeoff.randomized_response(eps)) < one_order < 0.05
    assert math.isclose(found.p_value(Tradeoff.randomized_response(found.epsilon())), 0.05, rel_tol=1e-6)


@pytest.mark.parametrize(("counts", "mu"), [((20, 30, 11, 40), 0.8), ((9, 10, 0, 7), 1.5), ((30, 30, 9, 40), 2.5)])
def test_p_values_against_other_optimizers(counts, mu):
    x, n, y, m = counts

    def tails(alpha):
        hit = stats.norm.cdf(stats.norm.ppf(alpha) + mu)
        return stats.binom.logsf(x - 1, n, hit), stats.binom.logcdf(y, m, alpha)

    crossing = optimize.brentq(lambda alpha: np.subtract(*tails(alpha)), 1e-9, 1 - 1e-9, xtol=1e-15)
    claim = GaussianMechanism(1 / mu)
    assert math.isclose(audit.decisions(*counts).p_value(claim), min(1, 2 * math.exp(tails(crossing)[0])), rel_tol=1e-7)
    most = -optimize.minimize_scalar(lambda alpha: -sum(tails(alpha)), bounds=(1e-9, 1), method="bounded",
                                     options={"xatol": 1e-12}).fun
    product = audit.decisions(*counts, test="product").p_value(claim)
    assert math.isclose(product, min(1, math.exp(most) * (1 - most)), rel_tol=1e-7)


@pytest.mark.parametrize("log_alpha", [-1e-300, -1e-17, math.log1p(-1e-16), -1e5])
def test_error_probabilities_near_both_ends_of_their_range(log_alpha):
    # At confidence 0 each of the two limits fails with probability 1/2: l = (1/2)^(1/100) for 100 hits, and u = 1 - l for no hit.
    found = audit.decisions(100, 100, 0, 100, log_alpha=log_alpha)
    single = 0.5 ** 0.01
    assert math.isclose(found.epsilon(), math.log(single / (1 - single)), rel_tol=1e-9) if log_alpha > -1 else found.epsilon() == 0
    assert found.gdp_mu() >= 0
    assert audit.scores([1.0], [0.0], log_alpha=log_alpha).epsilon() >= 0


@pytest.mark.slow
@pytest.mark.parametrize("confidence", thinned([0.95, 0.01, 0.5], 3))
def test_a_product_refutes_its_largest_eps_and_mu_by_their_p_values(confidence):
    for counts in ((15, 15, 0, 3), (19, 19, 0, 22), (16, 52, 0, 23), (41, 49, 12, 60)):
        found = audit.decisions(*counts, confidence=confidence, test="product")
        for claim in (Tradeoff.approximate(found.epsilon(), 0.0), Tradeoff.gaussian(found.gdp_mu())):
            # At eps = 0 or mu = 0 nothing is refuted.
            assert found.log_p_value(claim) <= found.log_alpha or min(found.epsilon(), found.gdp_mu()) == 0


def outcomes(n, m):
    return itertools.product(range(n + 1), range(m + 1))


def weight(x, n, p, y, m, q):
    return math.comb(n, x) * p**x * (1 - p) ** (n - x) * math.comb(m, y) * q**y * (1 - q) ** (m - y)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["box", "product", "scores"])
@pytest.mark.parametrize(("alpha", "hit"), [(0.2, 0.6), (0.5, 0.5)])
def test_true_claims_on_the_boundary_are_refuted_at_most_at_the_level(kind, alpha, hit):
    """Every outcome is enumerated; the claims are those that the two rates attain."""
    n, m, level, wrong, wrong_mu, small = 7, 5, 0.3, 0.0, 0.0, 0.0
    eps, mu = max(math.log(hit / alpha), math.log((1 - alpha) / (1 - hit))), stats.norm.ppf(hit) - stats.norm.ppf(alpha)
    for x, y in outcomes(n, m):
        if kind == "scores":
            found = audit.scores([1.0] * x + [0.0] * (n - x), [1.0] * y + [0.0] * (m - y), confidence=1 - level)
        else:
            found = audit.decisions(x, n, y, m, confidence=1 - level, test=kind)
        mass = weight(x, n, hit, y, m, alpha)
        wrong += mass * (found.epsilon() > eps * (1 + 1e-12))
        wrong_mu += mass * (kind != "product" and found.gdp_mu() > mu * (1 + 1e-12))
        small += mass * (found.p_value(Tradeoff.randomized_response(eps)) <= level)
    assert max(wrong, wrong_mu, small) <= level
    assert small > 0 or kind != "product"


@pytest.mark.slow
def test_null_scores_in_every_order():
    """Without ties all orders of two equal samples have the same probability."""
    orders = list(itertools.combinations(range(8), 4))
    refuted = sum(audit.scores(one, sorted(set(range(8)) - set(one)), confidence=0.2).epsilon() > 0 for one in orders)
    assert 0 < refuted <= 0.8 * len(orders)


@pytest.mark.slow
def test_null_scores():
    rng = np.random.default_rng(4)
    refuted = sum(audit.scores(rng.normal(size=100), rng.normal(size=120)).epsilon() > 0 for _ in range(80))
    ranks = sum(audit.scores(rng.integers(0, 50, 3500), rng.integers(0, 50, 3100)).epsilon() > 0 for _ in range(20))
    # More than 18 of 100 has probability below 1e-6 at the level 0.05.
    assert refuted + ranks <= 18


@pytest.mark.slow
def test_scores_are_hits_at_every_threshold():
    rng = np.random.default_rng(8)
    inside, outside = rng.normal(size=60) + 2, rng.normal(size=80)
    found, level = audit.scores(inside, outside), audit.scores(inside, outside).together
    at = np.unique(np.concatenate([inside, outside]))
    eta = math.exp(level.log_eta(math.log(0.05)))
    best = 0.0
    for t in at:
        x, y = int((inside >= t).sum()), int((outside >= t).sum())
        low = stats.beta.ppf(eta, x, 61 - x) if x else 0.0
        high = stats.beta.isf(eta, y + 1, 80 - y) if y < 80 else 1.0
        best = max(best, math.log(max(low - 1e-3, 1e-300) / high), math.log(max((1 - high) - 1e-3, 1e-300) / (1 - low)))
    assert math.isclose(found.epsilon(1e-3), best, rel_tol=1e-8)
    assert found.p_value(Tradeoff.approximate(best * (1 + 1e-9), 1e-3)) >= 0.05
    assert found.p_value(Tradeoff.approximate(0.999 * best, 1e-3)) <= 0.05
    assert audit.scores(outside, inside).epsilon(1e-3) == pytest.approx(best, rel=1e-8)


def test_declared_thresholds_and_ranks():
    rng = np.random.default_rng(9)
    inside, outside = rng.normal(size=200) + 2, rng.normal(size=200)
    one = audit.scores(inside, outside, thresholds=[1.0])
    x, y = int((inside >= 1).sum()), int((outside >= 1).sum())
    # Four limits, where a test of one order, fixed beforehand, has two.
    assert one.epsilon() == pytest.approx(audit.decisions(x, 200, y, 200, confidence=0.975).epsilon(), rel=1e-9)
    assert one.method == "1 thresholds fixed beforehand"
    many = audit.scores(rng.normal(size=5000) + 2, rng.normal(size=4000))
    assert "ranks fixed beforehand" in many.method
    assert many.epsilon() > 3.0
    assert "1000 thresholds" in audit.scores(inside, outside, thresholds=rng.normal(size=3000)).method


@pytest.mark.parametrize(("inside", "outside"), thinned([
    ([1.0], [0.0]), ([0.0], [0.0]), ([2.0] * 9, [2.0] * 7), ([math.inf] * 20, [-math.inf] * 20),
    ([math.inf, -math.inf, 0.0], [0.0, math.inf]),
], 3))
def test_few_constant_and_infinite_scores(inside, outside):
    found = audit.scores(inside, outside)
    answers = [found.epsilon(), found.epsilon(1.0), found.gdp_mu(), found.p_value(RandomizedResponse(0.1))]
    assert not np.isnan(answers).any()
    assert answers[1] == 0.0
    assert (answers[0] > 0) == (len(inside) == 20)


def test_extreme_counts():
    for counts in itertools.product((0, 1), (1,), (0, 1), (1,)):
        found = audit.decisions(*counts)
        assert (found.epsilon(), found.gdp_mu(), found.p_value(Tradeoff.randomized_response(0.0))) == (0.0, 0.0, 1.0)
    # All right, at an error probability of 1e-300: both limits have closed forms.
    n, log_alpha = 10**6, -300 * math.log(10)
    found = audit.decisions(n, n, 0, n, log_alpha=log_alpha)
    with mpmath.workdps(40):
        low = mpmath.exp((mpmath.mpf(log_alpha) - mpmath.log(2)) / n)
        exact = mpmath.log(low / (1 - low))
    assert exact * (1 - 1e-10) <= found.epsilon() <= exact
    assert found.log_p_value(RandomizedResponse(1.0)) < log_alpha
    assert audit.decisions(600_000_000, 10**9, 300_000_000, 10**9, log_alpha=log_alpha).epsilon() == pytest.approx(0.6908, abs=1e-3)


def test_pairs_in_their_order():
    """A hit on D is likelier than on D' by at most P/Q; the pair (Q, P) says less about the same hits."""
    pair = DominatingPair.from_pmfs(np.log([0.5, 0.5]), np.log([0.05, 0.95]))
    found = audit.decisions(240, 500, 20, 500)
    assert found.p_value(pair) > 0.5
    assert found.p_value(pair.reverse()) < 1e-9


def test_what_is_refused():
    found = audit.decisions(9, 10, 1, 10, relation="add-remove")
    with pytest.raises(ValueError, match="replace-one"):
        found.p_value(ShuffledBits(10, 0.3))
    assert math.isclose(found.p_value(GaussianMechanism(1.0)), found.p_value(Tradeoff.gaussian(1.0)), rel_tol=1e-12)
    with pytest.raises(TypeError, match=r"claim=1\.0 must be a PrivacyProfile"):
        found.p_value(1.0)
    for call, text in [
        (lambda: audit.decisions(11, 10, 1, 10), "hits=11 must be at most trials=10"),
        (lambda: audit.decisions(1, 10, 2, 1), "false_hits=2 must be at most false_trials=1"),
        (lambda: audit.decisions(1, 0, 0, 1), "trials=0"),
        (lambda: audit.decisions(1, 2, 0, 1, confidence=1.0), r"confidence=1 must be in \(0, 1\)"),
        (lambda: audit.decisions(1, 2, 0, 1, log_alpha=0.0), "log_alpha=0"),
        (lambda: audit.decisions(1, 2, 0, 1, test="both"), "test='both'"),
        (lambda: audit.decisions(1, 2, 0, 1, relation="other"), "relation='other'"),
        (lambda: audit.scores([], [1.0]), "inside has shape"),
        (lambda: audit.scores([1.0], [[1.0]]), "outside has shape"),
        (lambda: audit.scores([math.nan], [1.0]), "inside holds nan"),
        (lambda: found.epsilon(1.5), "delta=1.5"),
    ]:
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.slow
def test_the_sentence_and_the_picture():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    for found in (audit.decisions(95, 100, 5, 100), audit.decisions(1, 2, 1, 2), audit.one_run(30, 30),
                  audit.one_run(0, 3, log_alpha=-99), audit.scores([1, 2, 3], [0, 0.5]),
                  audit.decisions(5, 100, 95, 100, test="product")):
        text = repr(found)
        assert "private" not in text
        assert ("every eps below" in text) == (found.epsilon() > 1e-6)
        ax = found.plot(Tradeoff.gaussian(1.0))
        assert ax.get_legend() is not None
        assert ax.get_title()
        pyplot.close(ax.figure)
        assert pickle.loads(pickle.dumps(found)).epsilon() == found.epsilon()
