"""Reports that are drawn once and repeated: what two shuffled releases reveal, and what the pages say about it."""

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from shufflebounds.mechanisms import KaryResponse

DOCS = Path(__file__).parents[1] / "docs"
USERS, BINS, LOCAL_EPS, MONTHS = 200_000, 20, 7.937, 12


def test_two_shuffled_histograms_name_the_new_region_of_a_person_who_moves():
    """The reports of all others are the same in both months, so that the difference is the old and the new report of one person."""
    device, runs = KaryResponse(BINS, LOCAL_EPS), 200
    regions = np.random.default_rng(0).integers(0, BINS, USERS)
    first = device.randomize(regions, rng=1)
    histogram = np.bincount(first, minlength=BINS)
    named = 0
    for run in range(runs):
        new = int(regions[0] + 1 + run % (BINS - 1)) % BINS
        second = first.copy()
        second[0] = device.randomize([new], rng=run)[0]
        change = np.bincount(second, minlength=BINS) - histogram
        named += (int(change.argmax()) if change.any() else int(first[0])) == new
    truthful = math.exp(LOCAL_EPS) / (math.exp(LOCAL_EPS) + BINS - 1)
    # The number of truthful reports has a standard deviation of 1.2.
    assert named == pytest.approx(runs * truthful, abs=6)


def test_a_person_who_never_moves_is_not_protected_as_by_one_release():
    """All others move to other regions each month and draw new reports; the test sums the count of one region over a year.

    The target's report is in that region in all months or in none. The other users add Binomial(12 (n - 1), q) reports.
    """
    p, q = (math.exp(eps) / (math.exp(LOCAL_EPS) + BINS - 1) for eps in (LOCAL_EPS, 0.0))
    others = MONTHS * (USERS - 1)
    total = np.arange(round(others * q + 60 * math.sqrt(others * q)))
    absent, present = binom.pmf(total, others, q), binom.pmf(total - MONTHS, others, q)
    held, not_held = p * present + (1 - p) * absent, q * present + (1 - q) * absent
    assert np.maximum(held - math.e * not_held, 0).sum() > 1.2e-3


def test_secret_times_of_change_are_revealed_by_a_repeated_answer():
    """A user whose value never changes repeats one answer; after one change the answer differs with probability p^2 + q^2."""
    p = math.e / (1 + math.e)
    different = np.array([[p * (1 - p), p * p], [(1 - p) ** 2, p * (1 - p)]])      # first answer 0 or 1, second answer 0 or 1
    delta = different[0, 1] + different[1, 0]
    assert delta == pytest.approx(p * p + (1 - p) ** 2)
    text = " ".join((DOCS / "composition.md").read_text(encoding="utf-8").split())
    (stated,) = re.findall(r"delta of at least ([\d.]+) at every eps", text)
    assert float(stated) == math.floor(1000 * delta) / 1000


@pytest.mark.parametrize("page", ["tutorial/protocol.md", "composition.md", "limits.md"])
def test_the_pages_warn_of_repeated_reports_in_a_shuffled_protocol(page):
    text = " ".join((DOCS / page).read_text(encoding="utf-8").split())
    assert re.search(r"[Rr]epeat[^.]*not covered", text)
    assert re.search(r"differences? of two (releases|histograms)[^.]*reveals? [^.]*reports that changed", text)


def test_no_page_advises_to_repeat_a_report():
    for page in DOCS.rglob("*.md"):
        assert not re.search(r"repeats it every month keeps", " ".join(page.read_text(encoding="utf-8").split())), page
