"""Numbers in the sentences of the pages are computed and compared."""

import importlib
import json
import math
import re
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from shufflebounds import composition, mechanisms, published, sampling, shuffle, tails

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def stated(page, pattern):
    """Return the numbers in a sentence of the page; the pattern has a group for each, and spaces match any white space."""
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    found = re.search(pattern, text)
    assert found, f"{page} no longer says {pattern!r}"
    return [float(number) for number in found.groups()]


@pytest.mark.slow
def test_standard_error_of_printed_flips():
    low, high = stated("published.md", r"1e-9, the published flip probability gives ([\d.]+) to ([\d.]+) times the standard error")
    ratios = []
    for users, eps in ((10**4, 0.1), (10**6, 0.1), (10**6, 0.5), (10**6, 1.0), (10**6, 2.0)):
        for delta in (1e-6, 1e-9):
            flip = published.zhilyaev_flip(users, eps, delta)
            if flip < 0.5:
                ratios.append(math.sqrt(flip / shuffle.ShuffledBits.calibrate(users=users, eps=eps, delta=delta).flip))
    assert round(min(ratios), 1) == low
    assert round(max(ratios), 1) == high


@pytest.mark.slow
def test_the_printed_histogram_against_the_calibrated_one():
    low, high = stated("published.md", r"the same protocol is (\d+) to (\d+) times more accurate")
    printed = 10**5 * published.balcer_cheu_histogram_error(10**5, 0.5, 5e-7, 0.05)
    bins = (2, 10**5)
    exact = [shuffle.ShuffledHistogram.calibrate(users=10**5, bins=d, eps=1.0, delta=1e-6).error_quantile(0.05, of="any")
             for d in bins]
    ratios = [printed / error for error in exact]
    assert [round(ratio) for ratio in ratios] == [high, low]


def test_the_printed_noise_of_zsum():
    low, high = stated("published.md", r"is (\d+) to (\d+) times too large\.")
    ratios = [
        published.balcer_cheu_gamma(users, eps, delta) / shuffle.ZeroSum.calibrate(users=users, eps=eps, delta=delta).gamma
        for users, eps, delta in ((10**4, 1.0, 1e-9), (10**6, 0.5, 1e-6), (10**8, 0.1, 1e-6))
    ]
    assert round(min(ratios)) == low
    assert math.ceil(max(ratios)) == high


def test_the_classical_gaussian_noise():
    ratio, end = stated(
        "randomizers.md",
        r"gives ([\d.]+) times the necessary noise at \$\(1, 10\^\{-5\}\)\$, and is false above \$\\varepsilon = ([\d.]+)\$",
    )
    sigma = mechanisms.GaussianMechanism.from_dp(eps=1.0, delta=1e-5).sigma
    assert round(published.das2022_gaussian_sigma(1.0, 1e-5) / sigma, 1) == ratio
    for eps, met in ((end - 0.01, True), (end + 0.01, False)):
        noise = mechanisms.GaussianMechanism(published.das2022_gaussian_sigma(eps, 1e-5))
        assert (noise.delta(eps) <= 1e-5) == met


def test_what_the_rules_of_composition_cost():
    basic, advanced, zero, curve = stated(
        "composition.md",
        r"at forty it is (\d+) % larger\. At a hundred, eps exceeds the optimal one by (\d+) % for the advanced rule with the "
        r"exact mean, by (\d+) % for the zero-concentrated rule at its best Renyi order, and by (\d+) % for the Renyi curve of "
        r"randomized response",
    )
    eps, delta = 0.1, 1e-6

    def cost(total, many):
        return 100 * (total / composition.compose_dp(eps, 0.0, delta, k=many).eps - 1)

    assert round(cost(40 * eps, 40)) == basic
    assert cost(15 * eps, 15) < 2
    assert round(cost(composition.compose_dp(eps, 0.0, delta, k=100, method="advanced").eps, 100)) == advanced
    assert round(cost(composition.zcdp_to_dp(100 * eps**2 / 2, delta=delta)[0], 100)) == zero
    orders = 1 + np.geomspace(0.01, 1000, 400)
    for noise in (mechanisms.LaplaceMechanism(1 / eps), mechanisms.RandomizedResponse(eps)):
        total = composition.rdp_to_dp(orders, 100 * np.asarray(noise.rdp(orders)), delta=delta)[0]
        assert round(100 * (total / noise.self_compose(100).epsilon(delta) - 1)) == curve


def test_the_factor_of_the_published_histogram():
    thousands, rest = stated("protocols/histogram.md", r"this bound is (\d+),(\d+) times the exact value")
    histogram = shuffle.ShuffledHistogram.calibrate(users=10**6, bins=50, eps=1.0, delta=1e-9)
    exact = histogram.delta(1.0)
    assert round(2 * shuffle.ZeroSum(10**6, histogram.gamma).delta(0.5) / exact, -2) == 1000 * thousands + rest
    assert published.balcer_cheu_histogram_delta(10**6, histogram.gamma, 1.0) > 1


def test_the_table_of_the_rules_of_composition():
    """Every eps of the table, by another function or by the formula of its row."""
    text = (DOCS / "composition.md").read_text(encoding="utf-8")
    shown = {row[0].strip(): float(row[1]) for row in re.findall(r"^\| (.+?) \|.*\| \**([\d.]+)\** \|$", text, flags=re.M)}
    eps, k, delta = 0.1, 100, 1e-6
    rho, orders = k * eps**2 / 2, np.geomspace(1.5, 200, 400)
    laplace, response = mechanisms.LaplaceMechanism(1 / eps), mechanisms.RandomizedResponse(eps)

    def of_curve(mechanism):
        return composition.rdp_to_dp(orders, k * mechanism.rdp(orders), delta=delta)[0]

    spread = math.sqrt(2 * k * math.log(1 / delta))
    rules = {
        "basic": k * eps,
        "advanced, as published": eps * spread + k * eps * math.expm1(eps),
        "advanced, with": eps * spread + k * eps * math.tanh(eps / 2),
        "zero-concentrated, $": rho + 2 * math.sqrt(rho * math.log(1 / delta)),
        "zero-concentrated, best": composition.zcdp_to_dp(rho, delta=delta)[0],
        "Renyi curve of randomized": of_curve(response),
        "**optimal": response.self_compose(k).epsilon(delta),
        "Renyi curve of Laplace": of_curve(laplace),
        "**the mechanism": laplace.self_compose(k).epsilon(delta),
    }
    assert len(shown) == len(rules)
    for name, total in rules.items():
        (row,) = (row for row in shown if row.startswith(name))
        assert round(float(total), 3) == shown[row], name


def test_the_noise_that_the_printed_row_has():
    printed, ratio = stated("errata.md", r"sigma_i = ([\d.]+)/eps_i, about ([\d.]+) times less noise")
    assert round(published.das2022_gaussian_sigma(1.0, 1e-10) / printed, 1) == ratio


def test_the_number_of_published_bounds():
    for page in ("../README.md", "published.md"):
        (count,) = stated(page, r"(\d+) (?:published )?bounds")
        assert count == len(published.bounds()), page


def test_what_is_false_in_published_bounds():
    kinds = Counter(bound.fault for bound in published.bounds())
    for page in ("../README.md", "published.md"):
        numbers = stated(page, r"(\d+) privacy bounds(?: and|,) (\d+) bounds of errors and tails"
                               r"(?: are false in at least one case)?, (\d+)(?: are)? misprints,(?: and)? (\d+) ")
        assert numbers == [kinds[fault] for fault in ("privacy", "accuracy", "misprint", "extraction")], page


def test_the_median_time_and_the_other_program_of_the_readme(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    tables = importlib.import_module("measured_costs").kept(("derived_answers",))[-1]["tables"]
    row = dict(zip(tables["derived"]["header"], next(row for row in tables["derived"]["rows"] if row[0] == "epsilon")))
    median, most = stated("../README.md", r"time for both bounds of eps is ([\d.]+) ms; nine in ten take less than (\d+) ms")
    assert 1e3 * float(row["median, s"]) == median
    assert 1e3 * float(row["90 %, s"]) < most <= 1.05e3 * float(row["90 %, s"])
    rows = json.loads((ROOT / "benchmarks/results/peer-wang2024.json").read_text(encoding="utf-8"))["rows"]
    (other,) = stated("../README.md", r"for every randomizer \(Wang.*?\| ([\d.]+) \|")
    assert next(round(row[3], 4) for row in rows if row[:3] == [1e6, 4.0, 1e-8]) == other


@pytest.mark.slow
def test_the_error_of_the_worst_bin_against_that_of_one_bin():
    bins, low, high = stated("randomizers.md", r"worst bin, for (\d+) bins ([\d.]+) to ([\d.]+) times as large\. Both")
    bins = int(bins)
    oracles = [
        mechanisms.KaryResponse(bins, 2.0), mechanisms.SubsetSelection(bins, 2.0), mechanisms.LocalHashing(bins, 2.0),
        mechanisms.HadamardResponse(bins, 2.0), mechanisms.UnaryEncoding.symmetric(bins, 2.0),
        mechanisms.UnaryEncoding.optimized(bins, 2.0),
    ]
    ratios = [one.error_quantile(0.05, users=10**5, of="any") / one.error_quantile(0.05, users=10**5) for one in oracles]
    assert [round(min(ratios), 1), round(max(ratios), 1)] == [low, high]


def test_from_how_many_values_on_gaussian_noise_has_the_smaller_error():
    numbers = {"six": 6}
    text = (DOCS / "randomizers.md").read_text(encoding="utf-8")
    pattern = r"If one person changes (\w+) values or more, Gaussian noise has the smallest error at \$\(1, 10\^\{-6\}\)\$"
    (word,) = re.findall(pattern, text)

    def gaussian_is_better(k):
        laplace = mechanisms.LaplaceMechanism(float(k)).error_quantile(0.05, k)
        return mechanisms.GaussianMechanism.from_dp(eps=1.0, delta=1e-6, sensitivity=math.sqrt(k)).error_quantile(0.05, k) < laplace

    assert [gaussian_is_better(k) for k in (numbers[word] - 1, numbers[word])] == [False, True]


def test_the_methods_of_frozen_distributions_that_scipy_has_too():
    stats = pytest.importorskip("scipy.stats")
    for name, values in (("binom", (10, 0.5)), ("poisson_binom", ([0.1, 0.2],))):
        own, other = (getattr(module, name)(*values) for module in (tails, stats))
        public = {name for name in dir(other) if not name.startswith("_") and callable(getattr(other, name))}
        assert public - set(dir(own)) == {"dist", "entropy", "moment", "stats"}
    for word in ("entropy", "moment", "stats"):
        assert f"``{word}``" in tails.binom.__doc__


@pytest.mark.slow
def test_whether_records_or_k_ary_response_are_more_accurate_depends_on_the_data():
    """docs/protocols/flipped-reports.md says that k-ary response is better for even data, and not for every dataset."""
    users, bins, target = 2 * 10**6, 500, {"eps": 0.126, "delta": 1e-8}
    records = shuffle.FlippedReports.calibrate(users=users, bins=bins, view="records", **target)
    response = shuffle.Shuffled.calibrate(lambda eps0: mechanisms.KaryResponse(bins, eps0), users=users, **target).randomizer
    assert response.error_quantile(0.05, users=users, of="any") > 1.5 * records.error_quantile(0.05, of="any")
    even = users // bins
    assert response.error_quantile(0.05, even, users=users, of="any") < 0.5 * records.error_quantile(0.05, even, of="any")


MADE = {"_build", "generated"}
# These times are limits or waiting times by design, and no measurements.
DESIGNED = (
    r"more than (five|two|10) seconds|beyond some 10 s|more than 10 s|10 s or|1 GB or 10 s|given two seconds|lasts 0\.2 s"
    # This sentence of the README is compared with the record, above.
    r"|both bounds of eps is [\d.]+ ms; nine in ten take less than \d+ ms"
    r"|within a second|intervals down to 10 microseconds|--seconds \d+|longer than 10 s|some 10 s at|40 s at"
)


PAGES = [ROOT / "README.md", *(page for page in sorted(DOCS.rglob("*.md")) if not MADE & set(page.parts))]
TIME = r"[^.|]{0,60}(?<![\w.^])\d[\d.]*\s*(?:ms|µs|us|ns|s|seconds|minutes|milliseconds?|microseconds?)\b[^.|]{0,30}"


@pytest.mark.slow
def test_no_time_is_typed():
    """Times come from benchmarks/results: docs/tables.py writes them into the pages; those in the README are compared above."""
    for page in [str(page.relative_to(ROOT)) for page in PAGES]:
        text = re.sub(r"<!-- begin (\S+): .*?<!-- end \1 -->", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.S)
        # In formulas, "s" is a number of pairs and does not mean seconds.
        text = re.sub(r"^```.*?^```|`[^`\n]*`|\]\([^)]*\)|\$\$.*?\$\$|\$[^$]*\$", "", text, flags=re.S | re.M)
        text = re.sub(DESIGNED, "", " ".join(text.split()))
        assert re.findall(TIME, text) == [], page


def test_fake_zeros_do_not_help():
    users, without, among, fakes = stated("errata.md", r"(\d+) users, \(1, 1e-6\), ([\d.]+) without and ([\d.]+) with (\d+) fakes")
    for number, deviation in ((0, without), (int(fakes), among)):
        bits = shuffle.ShuffledBits.calibrate(users=int(users), eps=1.0, delta=1e-6, fakes=number)
        assert round(math.sqrt(bits.variance), 2) == deviation


@pytest.mark.slow
def test_batches_of_fixed_size():
    printed, attained, lower, upper = stated(
        "errata.md", r"gives \$\\varepsilon = ([\d.]+)\$.* \$\\varepsilon\$ is ([\d.]+): that.*is between ([\d.]+) and ([\d.]+)\.")
    noise, delta = mechanisms.GaussianMechanism(1, 2.0), 1e-5
    batches = sampling.WithoutReplacement(noise, 1000, 10).self_compose(100)
    assert (round(batches.epsilon(delta, bound="lower"), 4), round(batches.epsilon(delta), 4)) == (lower, upper)
    pair = sampling.SampledPair(noise, 0.01).self_compose(100)
    assert round(pair.epsilon(delta, bound="lower"), 4) == round(pair.epsilon(delta), 4) == attained
    # The losses of 100 steps by a discrete Fourier transform; the distances of the grid and of the outputs give an error of 1e-3.
    y = np.linspace(-12, 14, 40_001)
    mass = (0.99 * np.exp(-y * y / 2) + 0.01 * np.exp(-((y - 2) ** 2) / 2)) * (y[1] - y[0]) / math.sqrt(2 * math.pi)
    size, step = 2**17, 1e-3
    places = np.round(np.log(0.99 + 0.01 * np.exp(2 * y - 2)) / step).astype(int)
    total = np.fft.irfft(np.fft.rfft(np.bincount(places % size, mass, size)) ** 100, size)
    loss = (np.arange(size) - size * (np.arange(size) > 3 * size / 4)) * step
    found = [float(total @ np.maximum(-np.expm1(eps - loss), 0)) for eps in (attained - 5e-3, attained + 5e-3)]
    assert found[0] > delta > found[1]
    accounting, rdp = pytest.importorskip("dp_accounting"), pytest.importorskip("dp_accounting.rdp")
    accountant = rdp.RdpAccountant(neighboring_relation=accounting.NeighboringRelation.REPLACE_ONE)
    accountant.compose(accounting.SampledWithoutReplacementDpEvent(1000, 10, accounting.GaussianDpEvent(1.0)), 100)
    # A later version may be right.
    assert round(accountant.get_epsilon(delta), 4) == printed or accountant.get_epsilon(delta) > attained


def test_the_ternary_response_that_refutes_the_variation_ratio():
    over, under, printed, again = stated("errata.md", r"the exact \$\\delta\$ is (\d+)/(\d+) and the published bound (\d+)/(\d+)")
    eps = math.log(1.3)
    # There is one other user, with the second value: the histogram of two messages is enumerated.
    p, q = (3 / 7, 2 / 7, 2 / 7), (2 / 7, 3 / 7, 2 / 7)
    laws = []
    for target in (p, q):
        law = {}
        for i, x in enumerate(target):
            for j, y in enumerate(q):
                cell = tuple(sorted((i, j)))
                law[cell] = law.get(cell, 0.0) + x * y
        laws.append(law)
    exact = sum(max(laws[1][cell] - math.exp(eps) * laws[0][cell], 0.0) for cell in laws[0])
    assert exact == pytest.approx(over / under)
    assert printed / again < over / under


def test_where_the_printed_claim_speaks():
    low, last = stated("published.md", r"Claim C\.1 is for \$([\d.]+) \\le \\varepsilon < \\ln (\d)\$")
    assert round(published.cheu2019_fixed_set(50, 1 - 1e-12), 3) == low
    # The range of validity ends at 50 > 8 ln(4/delta).
    assert 1 + math.sqrt(32 / 8) == last


def test_disjoint_outputs_are_not_hidden():
    delta, clones = stated("personalized.md", r"delta\(ln 2\) = 1/(\d), while the clone bound .*? says ([\d.]+)")
    assert mechanisms.RandomizedResponse(math.log(3.0)).delta(math.log(2.0)) == pytest.approx(1 / delta)
    assert round(shuffle.StrongerClones(5, math.log(3.0)).delta(math.log(2.0)), 4) == clones


@pytest.mark.slow
def test_the_rows_of_the_survey():
    rows = stated("end_to_end.md", r"real data: (\d+) (\d+) rows of the RAND")
    data = pytest.importorskip("statsmodels.datasets").randhie.load_pandas().data
    assert int(f"{rows[0]:.0f}{rows[1]:03.0f}") == len(data)


def test_the_title_of_the_headline():
    """The title of the figure states a range; the figure is drawn for these numbers of users."""
    users = np.geomspace(1e4, 1e9, 11).round().astype(int)
    ratios = [published.stronger_clones_closed_form(n, 4.0, 1e-8) / shuffle.StrongerClones(n, 4.0).epsilon(1e-8) for n in users]
    assert (round(min(ratios)), round(max(ratios))) == (2, 5)
    assert "more private than the formula says" in (DOCS / "make_figures.py").read_text(encoding="utf-8")


def test_what_no_shuffler_costs_a_count():
    for number, users in zip(stated("protocols/index.md", r"from (\d+) to (\d+) users in a count"), (10**4, 10**8)):
        local = shuffle.ShuffledBits(users, 1 / (math.e + 1))
        assert round(local.error_quantile(0.05, users // 10)) == number


@pytest.mark.slow
def test_the_table_of_the_paper_beside_sound_bounds():
    """The numbers are those of rows of docs/errata.md, for the budgets of its first block."""
    eps = np.append(0.5 + 1.5 * (np.arange(9999) + 0.5) / 9999, 2.0)
    clones = shuffle.PersonalizedClones
    rows = {
        r"stronger clones at eps = 2 \(2 to 40 % below the printed row; not a valid bound here\)":
            shuffle.StrongerClones(10**4, 2.0),
        r"\*\*valid:\*\* Gaussian, sigma = 6\.82/eps": clones.gaussian(6.82 / eps, target=9999),
        r"\*\*valid:\*\* Gaussian, sigma = 2/eps": clones.gaussian(2.0 / eps, target=9999),
        r"\*\*valid:\*\* Laplace": clones.laplace(eps, target=9999),
        r"\*\*valid:\*\* bits": clones.randomized_response(eps, 2, target=9999),
    }
    for name, profile in rows.items():
        printed = stated("errata.md", rf"\| {name}" + r" \| ([\d.e-]+)" * 5 + r" \|")
        assert [float(f"{profile.delta(e):.2e}") for e in (0.01, 0.03, 0.05, 0.08, 0.1)] == printed
    papers = (0.0083, 0.0029, 0.0008, 6e-5, 1e-5)
    below = [100 * (1 - rows[next(iter(rows))].delta(e) / p) for e, p in zip((0.01, 0.03, 0.05, 0.08, 0.1), papers)]
    assert [round(min(below)), round(max(below))] == [2, 40]
    for sigma in (6.82, 2.03):
        name = rf"\| printed p_i, sigma = {sigma}/eps, Theorem 2 from i = 0"
        printed = stated("errata.md", name + r" \| ([\d.e-]+)" * 5 + r" \|")
        rates = [published.liu2024_gaussian_rate(sigma / e, sigma / 2.0) for e in eps[:-1]]
        weight = published.liu2024_weight_gaussian(sigma / 2.0)
        found = [published.liu2024_delta(e, weight, rates, first=0) for e in (0.01, 0.03, 0.05, 0.08, 0.1)]
        assert found == pytest.approx(printed, rel=0.01)


def test_how_far_binary_response_stays_below_the_clone_bound():
    exact = shuffle.ShuffledBits(10**6, 1 / (1 + math.exp(4.0))).epsilon(1e-8)
    share = round(100 * (1 - exact / shuffle.StrongerClones(10**6, 4.0).epsilon(1e-8)))
    assert f"{share} % below" in (DOCS / "protocols/clones.md").read_text(encoding="utf-8")


def test_pure_privacy_of_four_bits_per_user():
    """R-gap by enumeration: a user with 0 sends four fair bits, a user with 1 four bits that are not two ones and two zeros."""
    ratios = r"(\d)/(\d), (\d+)/(\d+), (\d)/(\d) and (\d)/(\d)"
    row = stated("protocols/shuffled-bits.md", rf"for one user, and {ratios} for 2 to 5 users")
    zero = [Fraction(c, 16) for c in (1, 4, 6, 4, 1)]
    one = [Fraction(c, 10) for c in (1, 4, 0, 4, 1)]

    def total(users, ones):
        """Return the distribution of the number of ones among the bits of all users."""
        masses = [Fraction(1)]
        for user in [one] * ones + [zero] * (users - ones):
            masses = [sum(masses[i] * user[k - i] for i in range(len(masses)) if 0 <= k - i <= 4) for k in range(len(masses) + 4)]
        return masses

    for users, over, under in zip((2, 3, 4, 5), row[::2], row[1::2]):
        pairs = [(total(users, m), total(users, m + 1)) for m in range(users)]
        assert max(max(x / y, y / x) for p, q in pairs for x, y in zip(p, q)) == Fraction(int(over), int(under))
