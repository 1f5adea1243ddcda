"""Tails at infinite and degenerate arguments, batches of distributions, and confidence limits of a proportion."""

import math

import mpmath as mp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from shufflebounds import tails
from tests.strategies import thinned

INF = math.inf
ARGUMENTS = [0.0, 0.5, 1.0, 3.0, INF]


@pytest.mark.parametrize("law", [
    lambda kind, k: getattr(tails, f"binom_{kind}")(k, 5, 0.5),
    lambda kind, k: getattr(tails, f"poisson_{kind}")(k, 2.0),
    lambda kind, k: getattr(tails, f"poisson_{kind}")(k, 0.0),
    lambda kind, k: getattr(tails, f"nbinom_{kind}")(k, 2.0, 0.5),
    lambda kind, k: getattr(tails, f"hypergeom_{kind}")(k, 10, 5, 3),
    lambda kind, k: getattr(tails, f"poisson_binom_{kind}")(k, [0.5, 0.25]),
    lambda kind, k: getattr(tails, f"compound_binom_{kind}")(k, 0, np.log([0.5, 0.5]), 0.5),
])
def test_every_law_has_its_limits_at_infinite_k(law):
    assert [float(law(kind, INF)) for kind in ("logpmf", "logcdf", "logsf")] == [-INF, 0, -INF]
    assert [float(law(kind, -INF)) for kind in ("logpmf", "logcdf", "logsf")] == [-INF, -INF, 0]


def test_success_probability_zero_gives_infinitely_many_failures():
    assert [float(getattr(tails, f"nbinom_{kind}")(INF, 2.0, 0.0)) for kind in ("logpmf", "logcdf", "logsf")] == [-INF, -INF, 0]


@pytest.mark.parametrize("k", [2.0**53 + 2, 1e300, math.nan])
def test_counts_that_are_no_exact_doubles_are_refused(k):
    assert np.isnan(tails.poisson_logcdf(k, 1.0))
    assert np.isnan(tails.nbinom_logcdf(k, 1.0, 0.5))


@pytest.mark.parametrize("a", thinned(ARGUMENTS, 2))
@pytest.mark.parametrize("x", ARGUMENTS)
def test_incomplete_gamma_has_the_limits_of_scipy(a, x):
    if a == x == 0:
        # SciPy returns NaN here. The value is Pr[Poisson(0) > -1], as for the Poisson tails.
        assert (tails.log_gammainc(a, x), tails.log_gammaincc(a, x)) == (-INF, 0)
        return
    for ours, theirs in ((tails.log_gammainc, scipy.special.gammainc), (tails.log_gammaincc, scipy.special.gammaincc)):
        assert np.exp(ours(a, x)) == pytest.approx(theirs(a, x), rel=1e-13, nan_ok=True)


@pytest.mark.parametrize("a", ARGUMENTS)
@pytest.mark.parametrize("b", thinned(ARGUMENTS, 2))
@pytest.mark.parametrize("x", [0.0, 0.25, 1.0])
def test_incomplete_beta_has_the_limits_of_scipy(a, b, x):
    for ours, theirs in ((tails.log_betainc, scipy.special.betainc), (tails.log_betaincc, scipy.special.betaincc)):
        assert np.exp(ours(a, b, x)) == pytest.approx(theirs(a, b, x), rel=1e-13, nan_ok=True)


class TestBatches:
    P = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 1.0]])

    @pytest.mark.parametrize("name", ["poisson_binom_logpmf", "poisson_binom_logcdf", "poisson_binom_logsf"])
    def test_each_row_is_one_distribution(self, name):
        function, k = getattr(tails, name), np.array([[0], [1], [2], [3]])
        together = function(k, self.P)
        assert together.shape == (4, 2)
        for i, row in enumerate(self.P):
            assert together[:, i].tolist() == function(k[:, 0], row).tolist()
        assert function(1, self.P).tolist() == together[1].tolist()
        assert function([1, 2], self.P).tolist() == [together[1, 0], together[2, 1]]

    def test_more_dimensions(self):
        cube = np.stack([self.P, self.P[::-1]])
        together = tails.poisson_binom_logsf(1, cube)
        assert together.shape == (2, 2)
        assert together[1].tolist() == together[0, ::-1].tolist()

    def test_rows_of_different_lengths_with_counts(self):
        p, counts = [[0.5], [0.25, 0.5], []], [[3], [1, 2], []]
        together = tails.poisson_binom_logpmf(2, p, counts)
        # The three sums are Bin(3, 1/2), one bit with probability 1/4 and two with 1/2, and the constant 0.
        assert np.exp(together) == pytest.approx([3 / 8, 0.75 / 4 + 0.25 / 2, 0.0], rel=1e-13)

    def test_no_trials_at_all(self):
        assert tails.poisson_binom_logpmf([0, 1], []).tolist() == [0, -INF]
        assert tails.poisson_binom_logsf(0, []) == -INF
        assert tails.poisson_binom([]).mean() == 0
        first, window = tails.poisson_binom_window([])
        assert (first, np.exp(window).tolist()) == (0, [1.0])

    @pytest.mark.parametrize(("arguments", "named"), [
        (([1, 2, 3], [[0.5], [0.5, 0.5]]), r"k has shape|broadcast"),
        ((1, [[0.5, 2.0], [0.1, 0.1]]), "p holds 2"),
        ((1, [[0.5], [0.5, 0.1]], [[1]]), "counts holds"),
        ((np.ones((2, 1)), [[0.5], [0.5, 0.1], [0.5]], [[1], [1, 1]]), "counts holds 2 distributions"),
    ])
    def test_shapes_that_do_not_fit(self, arguments, named):
        with pytest.raises(ValueError, match=named):
            tails.poisson_binom_logpmf(*arguments)


class TestClopperPearson:
    @pytest.mark.parametrize(("k", "n", "alpha"), [
        (3, 100, 0.05), (50, 100, 0.05), (97, 100, 0.01), (1, 2, 0.5), (5, 10**6, 1e-9), (999995, 10**6, 1e-9), (0, 10, 0.05),
        (10, 10, 0.05),
    ])
    def test_against_quantiles_of_the_beta_distribution(self, k, n, alpha):
        low, high = tails.clopper_pearson(k, n, log_alpha=math.log(alpha))
        assert low == pytest.approx(scipy.stats.beta.ppf(alpha / 2, k, n - k + 1) if k else 0.0, rel=1e-10)
        assert high == pytest.approx(scipy.stats.beta.isf(alpha / 2, k + 1, n - k) if k < n else 1.0, rel=1e-10)
        # If the upper limit is close to 1, its complement has a small relative error, too.
        assert 1 - high == pytest.approx(scipy.stats.beta.ppf(alpha / 2, n - k, k + 1) if k < n else 0.0, rel=1e-9, abs=3e-16)

    @pytest.mark.parametrize(("k", "n", "log_alpha"), [(3, 100, -1000.0), (1, 5, -40.0), (30, 60, -200.0), (59, 60, -90.0)])
    def test_limits_are_conservative_and_tight(self, k, n, log_alpha):
        low, high = tails.clopper_pearson(k, n, log_alpha=log_alpha)
        with mp.workdps(60):
            level = mp.exp(mp.mpf(log_alpha)) / 2

            def at_least(p):
                return mp.fsum(mp.binomial(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))

            def at_most(p):
                return mp.fsum(mp.binomial(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))

            assert at_least(mp.mpf(low)) <= level < at_least(mp.mpf(low) * (1 + mp.mpf(1e-11)))
            assert at_most(mp.mpf(high)) <= level
            assert at_most(mp.mpf(high) - mp.mpf(4e-16) - (1 - mp.mpf(high)) * mp.mpf(1e-11)) > level

    def test_limits_below_the_smallest_double(self):
        assert tails.clopper_pearson(3, 100, log_alpha=-1e5) == (0.0, 1.0)

    def test_arrays_broadcast(self):
        low, high = tails.clopper_pearson([[0], [5]], [10, 20], log_alpha=math.log(0.1))
        assert low.shape == high.shape == (2, 2)
        assert (low[1, 1], high[1, 1]) == tails.clopper_pearson(5, 20, log_alpha=math.log(0.1))

    @pytest.mark.parametrize(("arguments", "log_alpha", "named"), [
        ((5, 4), -1.0, "successes holds 5"), ((-1, 4), -1.0, "successes"), ((1, 0), -1.0, "trials"), ((1, 4), 0.0, "log_alpha"),
        ((1, 4), math.nan, "log_alpha"),
    ])
    def test_arguments_out_of_range(self, arguments, log_alpha, named):
        with pytest.raises(ValueError, match=named):
            tails.clopper_pearson(*arguments, log_alpha=log_alpha)
