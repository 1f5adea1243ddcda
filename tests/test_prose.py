"""Numbers that stand in the pages' sentences, outside the blocks that are run: each is found there, computed and compared."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from shufflebounds import composition, mechanisms, published, shuffle

DOCS = Path(__file__).parents[1] / "docs"


def told(page, pattern):
    """Return the numbers that a sentence of the page tells; the pattern has a group for each, and any white space between words."""
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    found = re.search(pattern, text)
    assert found, f"{page} no longer says {pattern!r}"
    return [float(number) for number in found.groups()]


@pytest.mark.slow
def test_standard_error_of_printed_flips():
    low, high = told("figures.md", r"standard error of the estimate grows with \$\\sqrt\{q\}\$: ([\d.]+) to ([\d.]+) times")
    ratios = []
    for users, eps in ((10**4, 0.1), (10**6, 0.1), (10**6, 0.5), (10**6, 1.0), (10**6, 2.0)):
        for delta in (1e-6, 1e-9):
            flip = published.zhilyaev_flip(users, eps, delta)
            if flip < 0.5:
                ratios.append(math.sqrt(flip / shuffle.ShuffledBits.calibrate(users, eps, delta).flip))
    assert round(min(ratios), 1) == low
    assert round(max(ratios), 1) == high


@pytest.mark.slow
def test_the_printed_histogram_against_the_calibrated_one():
    low, high = told("figures.md", r"the same protocol is (\d+) to (\d+) times more accurate")
    printed = 10**5 * published.balcer_cheu_histogram_error(10**5, 0.5, 5e-7, 0.05)
    bins = (2, 10**5)
    ratios = [printed / shuffle.ShuffledHistogram.calibrate(10**5, d, 1.0, 1e-6).error_quantile(0.05, of="any") for d in bins]
    assert [round(ratio) for ratio in ratios] == [high, low]


def test_the_printed_noise_of_zsum():
    low, high = told("protocols/histogram.md", r"a noise some (\d+) to (\d+) times too large")
    ratios = [
        published.balcer_cheu_gamma(users, eps, delta) / shuffle.ZeroSum.calibrate(users, eps, delta).gamma
        for users, eps, delta in ((10**4, 1.0, 1e-9), (10**6, 0.5, 1e-6), (10**8, 0.1, 1e-6))
    ]
    assert round(min(ratios)) == low
    assert math.ceil(max(ratios)) == high


def test_the_classical_gaussian_noise():
    ratio, end = told(
        "mechanisms.md",
        r"asks for ([\d.]+) times the noise at \$\(1, 10\^\{-5\}\)\$, and is false above \$\\varepsilon = ([\d.]+)\$",
    )
    assert round(published.das2022_gaussian_sigma(1.0, 1e-5) / mechanisms.GaussianMechanism.from_dp(1.0, 1e-5).sigma, 1) == ratio
    for eps, met in ((end - 0.01, True), (end + 0.01, False)):
        noise = mechanisms.GaussianMechanism(published.das2022_gaussian_sigma(eps, 1e-5))
        assert (noise.delta(eps) <= 1e-5) == met


def test_what_the_rules_of_composition_cost():
    basic, advanced, zero, low, high = told(
        "rules.md",
        r"at forty it costs (\d+) % more\. At a hundred the advanced rule costs (\d+) %, the zero-concentrated one (\d+) %, "
        r"a Renyi curve (\d+) to (\d+) %",
    )
    eps, delta = 0.1, 1e-6

    def cost(total, many):
        return 100 * (total / composition.compose_dp(eps, 0.0, delta, k=many).eps - 1)

    assert round(cost(40 * eps, 40)) == basic
    assert cost(15 * eps, 15) < 2
    assert round(cost(composition.compose_dp(eps, 0.0, delta, k=100, method="advanced").eps, 100)) == advanced
    assert round(cost(composition.zcdp_to_dp(100 * eps**2 / 2, delta=delta)[0], 100)) == zero
    orders = 1 + np.geomspace(0.01, 1000, 400)
    for noise, percent in ((mechanisms.LaplaceMechanism(1 / eps), low), (mechanisms.RandomizedResponse(eps), high)):
        total = composition.rdp_to_dp(orders, 100 * np.asarray(noise.rdp(orders)), delta=delta)[0]
        assert round(cost(total, 100)) == percent


def test_the_noise_that_the_printed_row_has():
    printed, ratio = told("personalized.md", r"sigma_i = ([\d.]+)/eps_i, about ([\d.]+) times less noise")
    assert round(published.das2022_gaussian_sigma(1.0, 1e-10) / printed, 1) == ratio
