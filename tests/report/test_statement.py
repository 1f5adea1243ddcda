"""Statements for every public class: numbers rounded conservatively, as text, Markdown and a web page."""

import itertools
import json
import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from shufflebounds import mechanisms, sampling, shuffle
from shufflebounds.cli import main
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.profile.extend import DominatingPairInfo
from tests.examples import EXAMPLES
from tests.strategies import slow

GAUSSIAN = mechanisms.GaussianMechanism(1.0)
BITS = mechanisms.KaryResponse(3, 1.0)
SLOW = {"sampling.ShuffledBatches", "profile.Group", "shuffle.FlippedReports"}


@pytest.mark.parametrize("name", [slow(name) if name in SLOW else name for name in EXAMPLES])
def test_every_class_has_a_statement(name):
    profile = EXAMPLES[name].profiles()[0]
    stated = profile.statement(delta=1e-3)
    assert len(stated.sentences) == 5
    text = str(stated)
    for part in ("not stated", "None", "nan", "…"):
        assert part not in text.split("Proof and version")[0]
    assert (stated.epsilon, stated.epsilon_lower) == (profile.epsilon(1e-3), profile.epsilon(1e-3, bound="lower"))
    if stated.epsilon == math.inf:
        assert "promises nothing" in text
    else:
        high = re.search(r"epsilon is at most ([\d.e+-]+)\. ", text)[1]
        low = re.search(r"lies between ([\d.e+-]+) and", text)[1]
        assert stated.epsilon <= float(high) <= stated.epsilon * (1 + 1e-5)
        assert stated.epsilon_lower * (1 - 1e-5) <= float(low) <= stated.epsilon_lower
    page = stated.html()
    # The page has one plot, closed tags, and no file from elsewhere.
    HTMLParser().feed(page)
    assert not re.search(r"(src|href)=", page)
    picture = ElementTree.fromstring(re.search(r"<svg.*</svg>", page, re.S)[0])
    upper = next(line for line in picture.iter("polyline") if line.get("class") == "upper")
    places = [tuple(map(float, place.split(","))) for place in upper.get("points").split()]
    assert len(places) >= 2 or profile._pure_epsilon() < math.inf
    # Delta does not increase with epsilon, and all points are inside of the plot.
    assert all(b[0] > a[0] and b[1] >= a[1] - 0.2 for a, b in itertools.pairwise(places))
    assert all(0 <= x <= 640 and 0 <= y <= 360 for x, y in places)
    for head in ("What is protected", "From whom", "The guarantee", "Assumptions", "Proof and version"):
        assert f"**{head}.**" in stated.markdown()


@pytest.mark.parametrize("profile", [shuffle.StrongerClones(10**6, 4.0), GAUSSIAN, BITS], ids=lambda one: type(one).__name__)
def test_the_sentence_about_a_test_is_no_more_than_the_trade_off_curve_says(profile):
    text = profile.statement(delta=1e-6).sentences[2]
    level, miss = (float(value) for value in re.search(r"at most (\d+)% .* at least ([\d.]+)%", text).groups())
    assert 0 < miss / 100 <= profile.tradeoff(bound="upper").beta(level / 100)
    factor = float(re.search(r"at most ([\d.e+]+) times", text)[1])
    assert math.exp(profile.epsilon(1e-6)) <= factor <= math.exp(profile.epsilon(1e-6)) * (1 + 1e-5)


def test_the_statement_of_an_ordered_pair_is_about_its_order():
    # P = (1, 0) and Q = (1/2, 1/2): outcome 1 is possible only under Q, so no factor bounds Q by P, and a test that reports Q at
    # outcome 1 never errs under P and overlooks half of the cases of Q.
    pair = DominatingPair.from_pmfs([0.0, -math.inf], [math.log(0.5)] * 2)
    for profile, releases in ((pair, 1), (pair.self_compose(2), 2)):
        text = profile.statement(delta=0.0).sentences[2]
        assert "one of the two situations as in the other" not in text
        factor = re.search(r"at most (\S+) times as likely in the first of the two situations as in the second", text)[1]
        assert 2**releases <= float(factor) <= 2**releases * 1.0001
        assert float(re.search(r"overlooks it in at least ([\d.]+)%", text)[1]) <= 100 * 0.5**releases


def test_the_stated_delta_is_the_delta_for_which_epsilon_was_computed():
    # Near eps = 0 a change of delta by its seventh digit changes eps by 5 in its fourth digit.
    protocol = shuffle.BinomialNoise(1000, 0.5)
    for delta in (protocol.delta(1e-3) * (1 - 1e-6 * k) for k in range(4)):
        stated = protocol.statement(delta=delta)
        shown, high = re.search(r"With delta = ([\d.e+-]+), .*? at most ([\d.e+-]+)\. ", stated.sentences[2]).groups()
        assert protocol.epsilon(float(shown), bound="lower") <= float(high)
        assert float(stated.sentences[4].rpartition("epsilon(")[2].rstrip(")")) == delta


@pytest.mark.parametrize("profile", [GAUSSIAN, shuffle.StrongerClones(10**5, 2.0), BITS.shuffled(100), GAUSSIAN.self_compose(3),
                                     mechanisms.LaplaceMechanism(2.0).self_compose(3)], ids=repr)
def test_every_printed_bound_is_rounded_conservatively(profile):
    for eps in (0.05, 0.123456789, 0.3):
        lines = profile.explain(eps).splitlines()
        at, *stated = map(float, re.search(r"log delta\((.*)\) lies in \[(.*), (.*)\]", lines[1]).groups())
        lower, upper = profile.log_delta(eps, bound="lower"), profile.log_delta(eps)
        assert at == eps
        assert stated[0] <= lower <= upper <= stated[1]
        for line in lines[2:]:
            if found := re.match(r"  at (most|least) (-[\d.]+) ", line):
                assert float(found[2]) >= lower if found[1] == "most" else float(found[2]) <= upper
    for delta, low, high in re.findall(r"&delta; = (.*?)</td>.*?>(\S*) &le; &epsilon; &le; (\S*)</td>", profile._repr_html_()):
        assert float(low) <= profile.epsilon(float(delta), bound="lower") <= profile.epsilon(float(delta)) <= float(high)


@pytest.mark.parametrize("profile", [
    shuffle.ClearReports(20, 3), slow(BITS.shuffled(100).compose(GAUSSIAN)), GAUSSIAN.subsampled(0.1),
], ids=lambda one: type(one).__name__)
def test_the_line_that_computes_the_number_again_runs_as_it_stands(profile):
    stated = profile.statement(delta=1e-6)
    *imports, call = stated.sentences[4].partition("To recompute in Python: ")[2].split("; ")
    names = {}
    for line in imports:
        exec(line, names)
    assert eval(call, names) == stated.epsilon


@pytest.mark.slow
def test_the_exact_epsilon_of_the_mechanism_is_between_the_bounds_only_where_they_are_bounds_of_one_mechanism():
    # Binary randomized response is one of the mechanisms of the clone bound, and its eps is below the lower bound of that bound.
    clones, eps = shuffle.StrongerClones(10**4, 2.0), math.log(3)
    assert shuffle.ShuffledBits(10**4, 1 / (1 + math.exp(2.0))).epsilon(1e-6) < clones.epsilon(1e-6, bound="lower")
    many = (clones, clones.compose(GAUSSIAN), sampling.Subsampled(mechanisms.PureLocal(eps), 0.1),
            mechanisms.PureLocal(eps).shuffled(100), sampling.WithoutReplacement(GAUSSIAN, 100, 10).self_compose(3),
            shuffle.PersonalizedClones(0.2, [0.1] * 50))
    for profile in many:
        assert "its epsilon lies between" in profile.statement(delta=1e-6).sentences[2], profile
    one = (GAUSSIAN, GAUSSIAN.subsampled(0.1).self_compose(3), GAUSSIAN.shuffled(10**3), shuffle.ClearReports(2000, 10))
    for profile in one:
        text = profile.statement(delta=1e-6).sentences[2]
        assert "The epsilon of the mechanism lies between" in text, profile
    assert "proof would give" not in text


def test_without_a_finite_epsilon_nothing_is_promised():
    assert shuffle.BinomialNoise(5, 0.5).epsilon(1e-6) == math.inf
    stated = shuffle.BinomialNoise(5, 0.5).statement(delta=1e-6)
    assert "no finite epsilon" in stated.sentences[2]
    assert "<circle" not in stated.html()


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan, "x"])
def test_a_delta_out_of_range_is_refused(delta):
    with pytest.raises(ValueError, match="delta="):
        GAUSSIAN.statement(delta=delta)


def test_a_class_of_a_user_and_markup_in_its_words():
    class Own(PrivacyProfile):
        neighbours = "a < b & *c*; the analyst sees <b>everything</b>"

        def describe(self):
            return DominatingPairInfo(self.bounds)

        def bounds(self, eps):
            return GAUSSIAN._log_delta(eps)

    stated = Own().statement(delta=1e-3)
    assert stated.sentences[4].startswith("The upper bound is not proved: no proof is stated")
    assert "<b>" not in stated.html()
    assert "&lt;b&gt;everything" in stated.html()
    assert r"\*c\*" in stated.markdown()


def run(capsys, *words):
    try:
        code = main(["statement", "zero-sum", "--users", "1e4", "--gamma", "0.25", "--delta", "1e-6", *words])
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


def test_the_command_prints_and_writes_every_form(capsys, tmp_path):
    stated = shuffle.ZeroSum(10**4, 0.25).statement(delta=1e-6)
    assert run(capsys) == (0, f"{stated}\n", "")
    assert run(capsys, "--form", "markdown") == (0, stated.markdown(), "")
    file = tmp_path / "page.html"
    assert run(capsys, "--out", str(file)) == (0, f"wrote {file}\n", "")
    assert file.read_text("utf-8") == stated.html()
    printed = json.loads(run(capsys, "--json")[1])
    assert printed["sentences"] == list(stated.sentences)
    assert printed["epsilon"] == {"upper": stated.epsilon, "lower": stated.epsilon_lower}
    code, _, err = run(capsys, "--out", "page.pdf")
    assert code == 2
    assert "must end in" in err
    assert run(capsys, "--out", str(tmp_path / "no" / "page.md"))[0] == 1


@pytest.mark.slow
def test_the_statement_names_what_the_analyst_sees_and_no_other_view():
    for view, seen, other in (("sums", "sums of the flipped bits", "records"), ("records", "shuffled records", "sums")):
        text = str(shuffle.FlippedReports(100, 0, 2, 0.1, view=view).statement(delta=1e-6).sentences[1])
        assert seen in text
        assert other not in text
    total, columns = (shuffle.RealSum(1000, 60.0, 4, view=view).neighbours for view in ("total", "columns"))
    assert "column" not in total
    assert "every column" in columns
    assert "exactly 5 of the other users" in shuffle.ShuffledBits(100, 0.1, ones=5).statement(delta=1e-6).sentences[0]


def test_the_statement_names_the_one_target_and_the_one_dataset():
    budgets, bits = [1.0, 2.0, 1.5], [0, 1, 0]
    ary = shuffle.PersonalizedClones.randomized_response
    cases = {
        "the target's bit where the other users have the given bits": shuffle.PersonalizedBits(budgets, bits=bits, target=0),
        "one user's bit where the other users have the given bits": shuffle.PersonalizedBits(budgets, bits=bits),
        "the target's bit": shuffle.PersonalizedBits(budgets, target=0),
        "one user's bit": shuffle.PersonalizedBits(budgets),
        "the target's input, every user keeping budget and randomizer": ary(budgets, 3, target=0),
        "one user's input, every user keeping budget and randomizer": ary(budgets, 3),
    }
    for changes, profile in cases.items():
        assert f": replace {changes}." in str(profile.statement(delta=1e-3))


def test_the_statement_of_several_releases_covers_a_contribution_to_each():
    text = str(shuffle.ClearReports(fakes=4000, bins=64).self_compose(52).statement(delta=1e-7))
    assert "one contribution of a person to each of these releases" in text
    assert "differ in one way in every release" in text
    assert "not yet reviewed" in text


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e-323])
@pytest.mark.parametrize("eps", [5e-324, 1e-310, 1e-300, 1e-280])
def test_a_budget_near_the_smallest_double(eps, delta):
    page = mechanisms.RandomizedResponse(eps).statement(delta=delta).html()
    assert "nan" not in page.split("<svg")[1]


@pytest.mark.parametrize("eps", [5e-324, 1e-310, 1e-300])
@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-300, 1e-9])
def test_epsilon_of_such_budgets(eps, delta):
    one = mechanisms.RandomizedResponse(eps)
    lower, upper = (one.epsilon(delta, bound=side) for side in ("lower", "upper"))
    assert 0 <= lower <= upper <= eps
    assert one.delta(upper) <= delta
