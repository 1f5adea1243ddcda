"""Plots: the drawn values are those of the profiles, axes have labels and units, and no window opens."""

import html
import itertools
import math
import re

import numpy as np
import pytest

from shufflebounds import Tradeoff, compare, mechanisms, profile, published, sampling, shuffle

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

NOISE = shuffle.BinomialNoise(1000, 0.5)
PURE = shuffle.StrongerClones(1000, 2.0)


@pytest.fixture(autouse=True)
def plt():
    # Imported here, because a parallel run collects this file in every process and runs its tests in one or two.
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def lines(ax):
    return {line.get_label(): line for line in ax.get_lines() if not line.get_label().startswith("_")}


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.slow
def test_profile(tmp_path):
    ax = NOISE.plot()
    line = lines(ax)[repr(NOISE)]
    eps, shown = line.get_data()
    np.testing.assert_allclose(shown * math.log(10), NOISE.log_delta(eps), rtol=1e-15)
    other = next(item for item in ax.get_lines() if item.get_linestyle() == "--")
    np.testing.assert_allclose(other.get_ydata() * math.log(10), NOISE.log_delta(eps, bound="lower"), rtol=1e-15)
    assert eps[0] == 0
    assert NOISE.delta(eps[-1]) == pytest.approx(1e-15, rel=1e-6)
    assert len(ax.collections) == 1
    assert "nats" in ax.get_xlabel()
    assert r"\delta" in ax.get_ylabel()
    assert "probability" in ax.get_ylabel()
    assert ax.get_title()
    assert ax.get_ylim()[1] < 1
    ax.figure.savefig(tmp_path / "profile.png")
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_deltas_far_below_the_doubles_have_their_place():
    protocol = shuffle.StrongerClones(10**6, 4.0)
    ax = protocol.plot(eps=[0.0, 1.0, 3.0, 4.0], label="deep")
    shown = lines(ax)["deep"].get_ydata()
    # In the reference file, log delta at eps = 3 is -15485.896 (10**-6725.4). At eps = local_eps delta is 0, and the line ends.
    assert shown[2] == pytest.approx(-15485.895977 / math.log(10), abs=1e-6)
    assert np.isnan(shown[3])
    ax.figure.canvas.draw()
    ticks = [text.get_text() for text in ax.get_yticklabels()]
    assert any("10^{-6000}" in tick for tick in ticks)


def test_range_where_delta_never_falls():
    ax = shuffle.BinomialNoise(10, 0.5).plot()
    eps, shown = next(iter(lines(ax).values())).get_data()
    # The count 0 has probability 2**-10 and infinite loss, because the shifted count is at least 1.
    assert shown[-1] == pytest.approx(-10 * math.log10(2), abs=0.01)
    assert 0 < eps[-1] < 10


@pytest.mark.parametrize("kind", ["tradeoff", "profile"])
def test_compare(kind):
    protocols = [shuffle.StrongerClones(n, 2.0) for n in (100, 1000, 10**4)]
    ax = compare(*protocols, kind=kind)
    words = [text for text in legend_of(ax) if "perfect" not in text]
    assert [word.partition("\n")[0].replace("\u2009", "") for word in words] == ["users = 100", "users = 1000", "users = 10000"]
    assert ax.get_title().endswith(": StrongerClones, local_eps = 2")
    drawn = list(lines(ax).values())
    if kind == "tradeoff":
        diagonal, *drawn = drawn
        assert diagonal.get_label().startswith("perfect privacy")
        assert np.add(*diagonal.get_data()).tolist() == [1, 1]
    for line, protocol in zip(drawn, protocols):
        x, y = line.get_data()
        if kind == "tradeoff":
            np.testing.assert_array_equal(y, protocol.tradeoff().beta(x))
            assert f"advantage {protocol.tradeoff().advantage():.3g}" in line.get_label()
        else:
            pure = protocol.log_delta(x) == -np.inf
            np.testing.assert_allclose(y[~pure] * math.log(10), np.asarray(protocol.log_delta(x))[~pure], rtol=1e-15)
    assert len({line.get_color() for line in drawn}) == 3


def test_tradeoff_with_its_advantage():
    curve = Tradeoff.from_pmfs(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
    ax = curve.plot(label="flipped coin")
    line = lines(ax)["flipped coin\nadvantage 0.5"]
    alpha, beta = line.get_data()
    np.testing.assert_array_equal(beta, curve.beta(alpha))
    mark = next(item for item in ax.get_lines() if item.get_label().startswith("_"))
    # The largest distance from the diagonal is at the corner (1/4, 1/4).
    np.testing.assert_allclose(mark.get_data(), [[0.25, 0.25], [0.25, 0.75]], atol=1e-12)
    assert ax.get_xlabel() == r"error of the first kind $\alpha$ (probability)"
    assert "second kind" in ax.get_ylabel()
    smooth = Tradeoff.gaussian(1.0).plot()
    assert any("0.383" in text for text in legend_of(smooth))


def test_axes_are_taken_and_returned(plt):
    _, ax = plt.subplots()
    assert NOISE.plot(ax) is ax
    assert compare(NOISE, PURE, ax=ax) is ax
    assert NOISE.tradeoff().plot(ax=ax) is ax


def test_labels():
    assert compare(NOISE).get_title().endswith(type(NOISE).__name__)
    unlike = compare(NOISE, PURE, kind="profile")
    assert [word.partition(":")[0] for word in legend_of(unlike)] == ["BinomialNoise", "StrongerClones"]
    assert legend_of(compare(NOISE, NOISE, kind="profile", labels=["a", "b"])) == ["a", "b"]
    many = compare(*(shuffle.BinomialNoise(n, 0.5) for n in range(50, 60)), kind="profile")
    looks = {(line.get_color(), line.get_linestyle()) for line in lines(many).values()}
    assert len(looks) == 10
    long = shuffle.PersonalizedBits([0.5 + i / 1000 for i in range(100)], bits=[0] * 100, target=0)
    assert max(map(len, legend_of(long.plot(eps=[0.0, 0.1]))[0].splitlines())) <= 40


def test_colours_can_be_told_apart():
    drawn = compare(*(mechanisms.GaussianMechanism(1.0 + k) for k in range(12)), kind="profile", eps=[0.0, 1.0])
    colors = {line.get_color(): linear(line.get_color()) for line in lines(drawn).values()}
    assert len(colors) == 10
    # Rows of the matrices of Machado, Oliveira, Fernandes (2009) for full protanopia, deuteranopia and tritanopia.
    kinds = [np.eye(3), [[.152286, 1.052583, -.204868], [.114503, .786281, .099216], [-.003882, -.048116, 1.051998]],
             [[.367322, .860646, -.227968], [.280085, .672501, .047413], [-.011820, .042940, .968881]],
             [[1.255528, -.076749, -.178779], [-.078411, .930809, .147602], [.004733, .691367, .303900]]]
    seen = [[cielab(np.asarray(kind) @ color) for color in colors.values()] for kind in kinds]
    for found in seen:
        assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(found, 2)) > 16


def linear(color):
    """Return the linear red, green and blue of a colour such as "#0072B2"."""
    part = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def cielab(light):
    """Return the CIELAB coordinates of linear red, green and blue."""
    white = np.array([[.4124, .3576, .1805], [.2126, .7152, .0722], [.0193, .1192, .9505]])
    part = white @ np.clip(light, 0, 1) / white.sum(axis=1)
    part = np.where(part > 0.008856, np.cbrt(part), 7.787 * part + 16 / 116)
    return np.array([116 * part[1] - 16, 500 * (part[0] - part[1]), 200 * (part[1] - part[2])])


@pytest.mark.slow
def test_published_bounds_and_a_new_one_have_colours_of_their_own():
    table = published.compare({"mine": lambda users, local_eps, delta: 1.0}, users=[10**4, 10**5], local_eps=1.0, delta=1e-6)
    drawn = table.plot().get_lines()
    assert len(drawn) >= 9
    assert len({line.get_color() for line in drawn}) == len(drawn)


def test_a_profile_is_evaluated_where_the_axes_show_it():
    evaluated = []

    class Counted(mechanisms.GaussianMechanism):
        def log_delta(self, eps, *, bound="upper"):
            if np.ndim(eps):
                evaluated.append((self.sigma, np.asarray(eps)))
            return super().log_delta(eps, bound=bound)

    ax = compare(Counted(1.0), Counted(20.0), kind="profile")
    for sigma, eps in evaluated:
        end = mechanisms.GaussianMechanism(sigma).epsilon(1e-15)
        assert eps[-2] < end <= eps[-1] * (1 + 1e-12), sigma
    assert {sigma for sigma, _ in evaluated} == {1.0, 20.0}
    low = ax.get_ylim()[0]
    for line in lines(ax).values():
        assert line.get_ydata()[-1] <= low + 1e-6


@pytest.mark.parametrize("profiles", [
    [mechanisms.KaryResponse(10, 1.0).shuffled(1000), shuffle.StrongerClones(1000, 1.0)],
    [mechanisms.FiniteRandomizer(np.full((4, 4), 0.25)).shuffled(n) for n in (10, 20)],
    [shuffle.FlippedReports(10**6, 0, 100, 1e-5, view=view) for view in ("records", "sums")],
    [NOISE, NOISE],
], ids=["kinds", "matrices", "words", "equal"])
def test_labels_of_a_legend_are_short_and_differ(profiles):
    found = legend_of(compare(*profiles, kind="profile", eps=[0.0, 0.1]))
    assert max(map(len, found)) <= 40
    assert len(set(found)) == len(found)
    assert not any("…" in label for label in found)


def test_bad_pictures(plt):
    with pytest.raises(ValueError, match="at least one profile"):
        compare()
    with pytest.raises(ValueError, match="kind='pie'"):
        compare(NOISE, kind="pie")
    with pytest.raises(ValueError, match="labels"):
        compare(NOISE, PURE, labels=["one"])
    with pytest.raises(ValueError, match="eps"):
        NOISE.plot(eps=[-1.0])
    assert plt.get_fignums() == []


def test_a_missing_matplotlib_names_the_extra(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for call in (NOISE.plot, lambda: compare(NOISE), Tradeoff.gaussian(1.0).plot):
        with pytest.raises(ImportError, match=r"shufflebounds\[plot\]"):
            call()


SLOW_PROFILE = {
    "atoms": lambda: profile.DominatingPair.from_pmfs([-np.log(1e5)] * 10**5, [-np.log(1e5)] * 10**5),
    "budgets": lambda: shuffle.PersonalizedBits(np.full(10**5, 1.0), bits=np.zeros(10**5), target=0),
    "a transform": lambda: sampling.RandomAllocation(mechanisms.GaussianMechanism(1.0), 1000),
    "a search over it": lambda: sampling.ReplaceOne(sampling.RandomAllocation(mechanisms.GaussianMechanism(1.0), 1000)),
    "columns": lambda: shuffle.RealSum(10**6, 100.0, 20),
    "a blanket": lambda: mechanisms.GaussianVector(5.0, 50).shuffled(1000),
    "a composition": lambda: shuffle.ShuffledHistogram(10**9, 500, 1e-6).self_compose(30),
}


@pytest.mark.parametrize("name", SLOW_PROFILE)
def test_no_table_prepares_what_is_dear(name):
    expensive = SLOW_PROFILE[name]()
    before = set(vars(expensive))
    assert expensive._repr_html_().count("takes longer") == 3
    # Cached values that are None, such as the absent pair of opposite contributions, numbers, and the object itself took no time
    # and are allowed. So is the object that holds the parameters of the answers, if it holds no more than a new one.
    made = {name for name, value in vars(expensive).items() if value is not None and value is not expensive}
    assert {name for name in made if not isinstance(vars(expensive)[name], float)} - {"_closed"} <= before
    held, new = (getattr(forms, "__dict__", {}) for forms in (expensive._closed, expensive.closed_forms()))
    assert held.keys() <= new.keys()


def test_table_for_notebooks():
    text = NOISE._repr_html_()
    assert text.startswith("<table>")
    assert len(text) < 2000
    assert "trials" in text
    assert NOISE.neighbours in text
    low, high = map(float, re.search(r"= 1e-06</td>.*?>(\S+) &le; &epsilon; &le; (\S+?)</td>", text).groups())
    assert 0.24414 <= low <= NOISE.epsilon(1e-6, bound="lower") <= NOISE.epsilon(1e-6) <= high <= 0.24415
    deep = shuffle.StrongerClones(10**6, 4.0)._repr_html_()
    assert html.escape(shuffle.StrongerClones.theorem) in deep
    clones = shuffle.PersonalizedClones(0.25, [0.1, 0.2])
    assert "&gt;=" in html.escape(clones.theorem)
    assert html.escape(clones.theorem) in clones._repr_html_()
    assert "1.49999 &le; &epsilon; &le; 1.5<" in shuffle.Clones(100, 1.5)._repr_html_()
    # A value that takes longer than a moment is not computed for the table.
    assert "takes longer" in NOISE.self_compose(5)._repr_html_()
    assert "atoms" not in profile.DominatingPair.from_pmfs([0.0], [0.0])._repr_html_()
