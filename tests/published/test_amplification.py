"""Published amplification bounds: against independent evaluations, and against binary randomized response."""

import csv
import io
import math
import re

import mpmath as mp
import numpy as np
import pytest

from shufflebounds import __version__, mechanisms, published, shuffle
from tests.strategies import slow, thinned

GRID = [(1000, 0.1, 1e-3), (1000, 0.49, 1e-6), (10**4, 1.0, 1e-6), (10**6, 0.3, 1e-9), (10**6, 2.0, 1e-8), (10**8, 4.0, 1e-12)]
BOUNDS = ("lower", "upper")
NAMES = [bound.__name__ for bound in published.amplification_bounds()]


def attained(users, local_eps, delta):
    """Return a lower bound of the eps of binary randomized response."""
    return shuffle.ShuffledBits(users, 1 / (math.exp(local_eps) + 1), ones=0).epsilon(delta, bound="lower")


def test_the_bounds_of_every_paper_are_found():
    papers = " ".join(bound.reference for bound in published.amplification_bounds())
    for author in ("Balle", "Erlingsson", "Feldman", "Girgis", "Koskela"):
        assert author in papers


@pytest.mark.parametrize("case", GRID)
def test_no_published_bound_is_below_what_randomized_response_attains(case):
    table = published.compare(users=case[0], local_eps=case[1], delta=case[2])
    assert set(table.statuses.values()) == {"proven", "unproven"}
    assert {name: float(value[0]) for name, value in table.bounds.items() if value[0] < attained(*case)} == {}
    # For every bound that does not apply to this case (NaN) the table states the reason.
    assert {name for name, value in table.bounds.items() if math.isnan(value[0])} == set(table.refused)


@pytest.mark.parametrize("name", NAMES)
def test_every_published_bound_holds_somewhere_on_the_grid(name):
    assert getattr(published, name)(2000, 0.1, 1e-3) >= attained(2000, 0.1, 1e-3)


@pytest.mark.parametrize("case", [slow(GRID[2]), slow(GRID[3]), GRID[4]])
def test_the_blanket_bounds_at_their_eps_against_their_sums_term_by_term(case):
    users, local_eps, delta = case
    with mp.workdps(40):
        e0 = mp.mpf(local_eps)
        weight = mp.exp(-e0)
        for name in ("balle2019_hoeffding", "balle2019_bennett"):
            eps = mp.mpf(getattr(published, name)(*case))
            if eps == e0:
                continue
            a = mp.expm1(eps)
            low, high = -mp.exp(-e0) * mp.expm1(eps + 2 * e0), -mp.exp(e0) * mp.expm1(eps - 2 * e0)
            square = mp.exp(e0) * (mp.exp(2 * eps) + 1) - 2 * weight * mp.exp(eps - 2 * e0)

            def expected(m, name=name, a=a, low=low, high=high, square=square):
                # Return an upper bound of E[max(0, sum of m variables)].
                if name == "balle2019_hoeffding":
                    return (high - low) ** 2 / (4 * a) * mp.exp(-2 * m * a**2 / (high - low) ** 2)
                u = a * high / square
                return high / mp.log(1 + u) * mp.exp(-m * square / high**2 * ((1 + u) * mp.log(1 + u) - u))

            mean = users * weight
            width = 12 * mp.sqrt(mean)
            # The sum over m is restricted to a truncation range and computed by a Riemann sum with a small step.
            step = max(1, int(width / 300))
            total = mp.mpf(0)
            for m in range(max(1, int(mean - width)), int(min(mp.mpf(users), mean + width)) + 1, step):
                log_p = (mp.loggamma(users + 1) - mp.loggamma(m + 1) - mp.loggamma(users - m + 1)
                         + m * mp.log(weight) + (users - m) * mp.log1p(-weight))
                total += step * mp.exp(log_p) * expected(m)
            assert float(total / (weight * users)) == pytest.approx(delta, rel=1e-3)


@pytest.mark.parametrize(("users", "local_eps", "eps"), [(10, 1.0, 0.3), (30, 0.5, 0.1)])
def test_the_positive_part_of_a_sum_is_below_both_inequalities(users, local_eps, eps):
    # For randomized response the messages of the blanket are fair coins, so that X = (R_0 - e^eps R_1)/(1/2) has two `values`. The
    # blanket has the weight e^-eps0 of the published bounds.
    e0, e = math.exp(local_eps), math.exp(eps)
    p, q = e0 / (e0 + 1), 1 / (e0 + 1)
    values = np.array([(p - e * q), (q - e * p)]) * 2
    assert values.mean() == pytest.approx(1 - e)
    exact = 0.0
    for m in range(1, users + 1):
        ones = np.arange(m + 1)
        chance = np.array([math.comb(m, int(k)) for k in ones]) / 2.0**m
        part = float(chance @ np.maximum(ones * values[0] + (m - ones) * values[1], 0))
        weight = math.exp(-local_eps)
        exact += math.comb(users, m) * weight**m * (1 - weight) ** (users - m) * part / (weight * users)
    # The bounds decrease with eps, so they are at least the exact value at eps if they fall to it no earlier.
    assert published.balle2019_bennett(users, local_eps, exact) >= eps
    assert published.balle2019_hoeffding(users, local_eps, exact) >= eps


@pytest.mark.parametrize("order", [3, 40])
@pytest.mark.parametrize(("users", "local_eps"), thinned([(1000, 0.5), (10**4, 1.0), (10**6, 3.0)], 2))
def test_the_renyi_bound_term_by_term_and_above_what_is_attained(users, local_eps, order):
    with mp.workdps(30):
        e, a = mp.exp(mp.mpf(local_eps)), order
        groups = mp.floor((users - 1) / (2 * e)) + 1
        total = 1 + 4 * mp.binomial(a, 2) * (e - 1) ** 2 / (groups * e)
        for j in range(3, a + 1):
            total += mp.binomial(a, j) * j * mp.gamma(mp.mpf(j) / 2) * (2 * (e**2 - 1) ** 2 / (groups * e**2)) ** (mp.mpf(j) / 2)
        s = (e**2 - 1) / (2 * e)
        total += ((1 + s) ** a - 1 - a * s) * mp.exp(-(users - 1) / (8 * e))
        expected = min(mp.log(total) / (a - 1), local_eps)
    value = published.girgis2021_rdp(users, local_eps, order)
    assert value == pytest.approx(float(expected), rel=1e-10)
    assert value >= shuffle.ShuffledBits(users, 1 / (math.exp(local_eps) + 1), ones=0).rdp(order, bound="lower")


@pytest.mark.parametrize("case", [(100, 0.5, 1e-4), (1000, 1.0, 1e-6), (5000, 2.0, 1e-9)])
def test_the_truncated_clone_pair_is_just_above_the_clone_bound(case):
    clones, value = shuffle.Clones(*case[:2]), published.koskela2023_clones(*case)
    assert clones.epsilon(case[2], bound="lower") <= value <= clones.epsilon(0.985 * case[2])


def test_too_many_users_for_a_sum_are_refused():
    with pytest.raises(ValueError, match=r"users=1000000 needs .* terms.*shuffle\.Clones"):
        published.koskela2023_clones(10**6, 1.0, 1e-8)


@pytest.mark.slow
def test_arrays_give_the_numbers_of_single_calls():
    for bound in published.amplification_bounds():
        users, deltas = np.array([2000, 4000]), np.array([[1e-4], [1e-6]])
        values = bound(users, 0.25, deltas)
        assert values.shape == (2, 2)
        assert values.tolist() == [[bound(int(n), 0.25, float(d[0])) for n in users] for d in deltas]
    with pytest.raises(ValueError, match="local_eps=2"):
        published.erlingsson2019(1000, [0.1, 2.0], 1e-3)


class TestCompare:
    def table(self, **grid):
        own = {
            "half": lambda users, local_eps, delta: 0.5 * attained(users, local_eps, delta),
            "twice": lambda users, local_eps, delta: 2 * shuffle.StrongerClones(users, local_eps).epsilon(delta),
        }
        return published.compare(own, **{"users": [1000, 4000], "local_eps": 0.5, "delta": 1e-6, **grid})

    def test_every_column(self):
        table = self.table()
        assert table.users.tolist() == [1000, 4000]
        assert set(table.bounds) == {"half", "twice", *NAMES}
        for i, users in enumerate((1000, 4000)):
            strong = shuffle.StrongerClones(users, 0.5)
            assert (table.upper[i], table.lower[i]) == (strong.epsilon(1e-6), strong.epsilon(1e-6, bound="lower"))
            assert table.attained[i] == attained(users, 0.5, 1e-6)
            assert table.bounds["balle2019_bennett"][i] == published.balle2019_bennett(users, 0.5, 1e-6)
        assert np.isnan(table.bounds["erlingsson2019"]).all()
        assert list(table.refused["erlingsson2019"]) == [0, 1]
        assert "local_eps=0.5" in table.refused["erlingsson2019"][1]

    def test_a_false_bound_is_refuted_and_a_loose_one_is_not(self):
        table = self.table()
        assert {name: rows.tolist() for name, rows in table.refuted().items()} == {"half": [0, 1]}
        assert "half is below the eps of binary randomized response in 2 of 2 cases: not a bound for every randomizer" in str(table)

    def test_undecided_bounds_and_refusals_keep_their_rows(self):
        own = {"between": lambda users, local_eps, delta: 1.01 * attained(users, local_eps, delta)}
        table = published.compare(own, users=[1000, 4000], local_eps=[0.25, 1.0, 2.0, 4.0], delta=1e-6)
        assert table.undecided()["between"].tolist() == list(range(8))
        assert "between is between that eps and the stronger clone bound in 8 of 8 cases" in str(table)
        some = table.select(local_eps=4.0)
        assert some.undecided()["between"].tolist() == [0, 1]
        for one in (table, some):
            for name, column in one.bounds.items():
                assert list(one.refused.get(name, {})) == np.flatnonzero(np.isnan(column)).tolist()

    @pytest.mark.slow
    def test_a_bound_of_one_randomizer_is_judged_by_the_bounds_of_that_randomizer(self):
        matrix = np.random.default_rng(7).dirichlet(np.full(6, 2.0), size=6) * 0.7 + 0.05
        one = mechanisms.FiniteRandomizer(matrix)
        own = {
            "valid": lambda users, local_eps, delta: 1.03 * one.shuffled(users).epsilon(delta),
            "false": lambda users, local_eps, delta: 0.97 * one.shuffled(users).epsilon(delta, bound="lower"),
            "between": lambda users, local_eps, delta: np.mean([one.shuffled(users).epsilon(delta, bound=b) for b in BOUNDS]),
        }
        table = published.compare(own, users=[1000, 10**4], delta=1e-8, randomizer=one)
        assert table.local_eps.tolist() == [one.epsilon(0.0)] * 2
        for i, users in enumerate((1000, 10**4)):
            shuffled = one.shuffled(users)
            bounds = [shuffled.epsilon(1e-8, bound=b) for b in BOUNDS]
            assert [table.lower[i], table.upper[i], table.attained[i]] == [*bounds, bounds[0]]
        assert {name: rows.tolist() for name, rows in table.refuted().items()} == {"false": [0, 1]}
        assert list(table.undecided()) == ["between"]
        assert "false is below the eps of the shuffled randomizer in 2 of 2 cases: false there" in str(table)
        assert "between is between the bounds of that eps in 2 of 2 cases: undecided" in str(table)
        assert "binary" not in str(table)
        assert "attained" not in table.to_csv().splitlines()[0]
        assert table.select(users=1000).randomizer is one

    @pytest.mark.slow
    def test_without_the_randomizer_its_valid_bound_is_called_no_bound_for_every_randomizer(self):
        one = mechanisms.KaryResponse(50, 1.0)
        own = {"mine": lambda users, local_eps, delta: 1.03 * one.shuffled(users).epsilon(delta)}
        grid = {"users": [10**4, 10**5], "local_eps": 1.0, "delta": 1e-8}
        text = str(published.compare(own, **grid))
        assert "in 2 of 2 cases: not a bound for every randomizer" in text
        assert "false there" not in text
        assert "mine is" not in str(published.compare(own, randomizer=one, **grid))

    def test_a_family_of_randomizers_has_one_for_every_local_budget(self):
        table = published.compare(users=1000, local_eps=[0.5, 1.0], delta=1e-6, randomizer=lambda e: mechanisms.KaryResponse(4, e))
        assert table.upper.tolist() == [mechanisms.KaryResponse(4, e).shuffled(1000).epsilon(1e-6) for e in (0.5, 1.0)]
        assert table.refuted() == {}
        pure = published.compare(users=1000, local_eps=[0.5, 1.0], delta=1e-6, randomizer=mechanisms.PureLocal)
        assert pure.upper.tolist() == [mechanisms.PureLocal(e).shuffled(1000).epsilon(1e-6) for e in (0.5, 1.0)]

    @pytest.mark.parametrize(("grid", "error", "named"), [
        ({"local_eps": 0.5, "randomizer": mechanisms.KaryResponse(4, 1.0)}, ValueError, r"local_eps=0\.5 .*budget 1"),
        ({"randomizer": mechanisms.GaussianMechanism(1.0)}, ValueError, "randomizer=.*finite local budget"),
        ({"randomizer": 3.0}, TypeError, "randomizer=3.0"),
        ({"randomizer": lambda e: e, "local_eps": 1.0}, TypeError, "randomizer"),
        ({"randomizer": lambda e: mechanisms.KaryResponse(4, e)}, TypeError, "local_eps"),
        ({}, TypeError, "local_eps"),
    ])
    def test_what_randomizers_and_budgets_are_refused(self, grid, error, named):
        with pytest.raises(error, match=named):
            published.compare(users=10, delta=0.1, **grid)

    def test_bibtex_has_an_entry_for_the_paper_of_every_published_bound(self):
        text = self.table().bibtex()
        for bound in published.amplification_bounds():
            author = re.search("Balle|Erlingsson|Feldman|Girgis|Koskela", bound.reference)[0]
            year = re.search(r"\b20\d\d\b", bound.reference)[0]
            entries = [entry for entry in text.split("\n\n") if f"{{{year}}}" in entry]
            assert any(author in entry for entry in entries), bound.reference
        assert text.count("{") == text.count("}")
        assert f"version = {{{__version__}}}" in text

    def test_csv_reads_back(self):
        table = self.table(local_eps=[0.25, 0.5])
        rows = list(csv.DictReader(io.StringIO(table.to_csv())))
        assert len(rows) == 4
        assert [float(row["upper"]) for row in rows] == table.upper.tolist()
        assert [row["erlingsson2019"] == "" for row in rows] == [False, True, False, True]

    @pytest.mark.parametrize(("grid", "named"), [
        ({"users": 0}, "users"), ({"local_eps": -1.0}, "local_eps"), ({"delta": 1.0}, "delta"), ({"delta": []}, "delta"),
        ({"users": np.arange(1, 10**3), "local_eps": np.linspace(0.1, 1, 200)}, "rows"),
    ])
    def test_grids_out_of_range(self, grid, named):
        with pytest.raises(ValueError, match=named):
            self.table(**grid)

    def test_a_name_that_is_taken_and_a_bound_that_is_no_function(self):
        with pytest.raises(ValueError, match="erlingsson2019"):
            published.compare({"erlingsson2019": min}, users=10, local_eps=1.0, delta=0.1)
        with pytest.raises(TypeError, match="must be a function"):
            published.compare({"mine": 1.0}, users=10, local_eps=1.0, delta=0.1)

    @pytest.mark.slow
    def test_the_picture(self):
        pytest.importorskip("matplotlib").use("Agg")
        ax = self.table().plot()
        legend = [text.get_text() for text in ax.get_legend().get_texts()]
        assert any("half (yours)" in text for text in legend)
        assert "nats" in ax.get_ylabel()
        with pytest.raises(ValueError, match="users varies too"):
            self.table(local_eps=[0.1, 0.2]).plot(over="local_eps")
        ax = self.table(randomizer=mechanisms.KaryResponse(4, 0.5)).plot()
        assert "shuffled KaryResponse, upper bound" in [text.get_text() for text in ax.get_legend().get_texts()]
