"""The calculator in a browser: of the command with a server, and of the site with the C library as WebAssembly and no server."""

import functools
import http.server
import importlib
import json
import shutil
import threading
import time
import urllib.parse
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from shufflebounds import mechanisms, shuffle, tails
from shufflebounds.cli.browser.server import Calculator
from tests.browser import CHROMIUM, page

DOCS = Path(__file__).parents[2] / "docs"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")]

LINK = """
// the browser ignores a change of the address after 200 of them in ten seconds
for (location.hash = words; decodeURIComponent(location.hash.slice(1)) !== decodeURIComponent(words); location.hash = words)
  await new Promise((resolve) => setTimeout(resolve, 50));
dispatchEvent(new HashChangeEvent("hashchange"));
"""
TYPED = """
const query = Object.fromEntries(new URLSearchParams(words)), changed = new Event("change", {bubbles: true});
const radio = document.querySelector(`[name=question][value=${query.question}]`);
if (!radio.checked) { radio.checked = true; radio.dispatchEvent(changed); }
const mechanism = document.querySelector("select");
if (mechanism.value !== query.mechanism) { mechanism.value = query.mechanism; mechanism.dispatchEvent(changed); }
for (const input of document.querySelectorAll("form input[type=text]")) input.value = query[input.name] ?? "";
document.querySelector("form").requestSubmit();
"""
SHOWN = """
for (;;) {
  const result = document.querySelector(".result"), state = result.dataset.state;
  const code = [...result.querySelectorAll("code")].map((one) => one.textContent);
  const rows = [...result.querySelectorAll("tbody tr")].map((row) => [...row.children].map((cell) => cell.textContent));
  if (state !== "busy")
    return {state, rows: Object.fromEntries(rows), head: result.querySelector("output").textContent, code,
            wrong: [...document.querySelectorAll("[aria-invalid]")].map((one) => one.name)};
  await new Promise((resolve) => setTimeout(resolve, 5));
}
"""


def opened(tab, address):
    """Open a page, and wait until the calculator has answered its first question."""
    tab.send("Page.navigate", url=address)
    while not tab.run("return document.querySelector('.result[data-state=answered], .result[data-state=unanswered]') !== null"):
        time.sleep(0.05)


@contextmanager
def served(server):
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def local():
    server = Calculator()
    with served(server), page() as tab:
        opened(tab, server.address)
        yield tab
        assert tab.errors == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    static = folder / "_static"
    static.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        importlib.import_module("calculator").write(static)
    shutil.copy(DOCS / "_static" / "calculator_library.js", static)
    raw = (DOCS / "calculator.md").read_text(encoding="utf-8").partition("```{raw} html\n")[2].partition("```")[0]
    text = f"<!doctype html><meta charset='utf-8'><body><section id='calculator'>{raw}"
    (folder / "index.html").write_text(text, encoding="utf-8")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    with served(server), page() as tab:
        opened(tab, f"http://127.0.0.1:{server.server_address[1]}/")
        yield tab, static
        assert tab.errors == []


def ask(tab, query, how=LINK):
    """Return what the page shows for a query: for the link that holds it, or after it was typed into the form."""
    return tab.run(f"const words = {json.dumps(urllib.parse.urlencode(query))}; {how} {SHOWN}")


def printed(line):
    """Return the number that a line of Python prints."""
    with redirect_stdout(StringIO()) as out:
        exec(line, {})
    return float(out.getvalue())


PROFILES = {
    "stronger-clones": lambda q: shuffle.StrongerClones(q["users"], q["local_eps"]),
    "clones": lambda q: shuffle.Clones(q["users"], q["local_eps"]),
    "gaussian": lambda q: mechanisms.GaussianMechanism(q["sigma"]).self_compose(q["times"]),
    "laplace": lambda q: mechanisms.LaplaceMechanism(q["sigma"]),
    "randomized-response": lambda q: mechanisms.RandomizedResponse(q["local_eps"]).shuffled(q["users"]),
    "binomial-noise": lambda q: shuffle.BinomialNoise(q["users"], 0.5),
}
OPTIONS = {
    "gaussian": {"sigma": "sigma", "times": "times"}, "laplace": {"scale": "sigma"}, "binomial-noise": {"trials": "users"},
    "randomized-response": {"budget": "local_eps", "users": "users"},
}


def questions(rng, names, count):
    """Yield a query, the line of the table that shows its number, and both bounds of the answer by the classes of Python."""
    for i in range(count):
        part = 2 * len(names) * i // count
        name, kind = names[part // 2], ("epsilon", "delta")[part % 2]
        q = {"users": int(10 ** rng.uniform(1, 6)), "local_eps": float(rng.uniform(0.1, 8)),
             "sigma": float(10 ** rng.uniform(0, 1)), "times": int(rng.integers(1, 9))}
        given = OPTIONS.get(name, {"users": "users", "local_eps": "local_eps"})
        target = float(10 ** rng.uniform(-12, -3)) if kind == "epsilon" else float(10 ** rng.uniform(-2, 0))
        query = {"question": kind, "mechanism": name, **{option: str(q[value]) for option, value in given.items()},
                 "delta" if kind == "epsilon" else "eps": repr(target)}
        profile = PROFILES[name](q)
        yield query, "ε" if kind == "epsilon" else "δ", [getattr(profile, kind)(target, bound=side) for side in ("upper", "lower")]


def distributions(rng, count):
    """Yield the query of a log tail, and its value by the ufunc."""
    for i in range(count):
        n, p = int(10 ** rng.uniform(0, 12)), float(rng.random())
        k = int(n * p + 6 * np.sqrt(n * p) * rng.uniform(-1, 1))
        name, values = [
            ("binom_logsf", {"k": k, "n": n, "p": p}), ("poisson_logcdf", {"k": k, "mu": n * p}),
            ("hypergeom_logsf", {"k": int(n * p / 3), "M": n, "n": int(n * p), "N": n // 3}),
            ("log_betainc", {"a": n * p + 0.5, "b": n - n * p + 1.0, "x": p}), ("nbinom_logpmf", {"k": k, "r": n * p + 1, "p": p}),
        ][i % 5]
        texts = {key: repr(value) for key, value in values.items()}
        yield {"question": "tail", "mechanism": name, **texts}, getattr(tails, name)(*values.values())


def check(tab, rng, names, rtol):
    """Compare 200 answers of the page with those of Python, and the number that the line of Python of each prints."""
    for query, symbol, bounds in questions(rng, names, 150):
        shown = ask(tab, query, TYPED)
        assert shown["state"] == "answered", (query, shown)
        for side, value in zip(("upper", "lower"), bounds):
            assert float(shown["rows"][f"{symbol}, {side} bound"]) == pytest.approx(value, rel=rtol, abs=0), (query, side)
        assert printed(shown["code"][0]) == bounds[0], query
    for query, value in distributions(rng, 50):
        shown = ask(tab, query, TYPED)
        assert float(shown["head"].partition(" = ")[2].replace("Infinity", "inf")) == pytest.approx(value, rel=rtol, abs=0), query
        assert printed(shown["code"][0]) == value


def test_answers_of_the_server_are_those_of_python(local):
    check(local, np.random.default_rng(1), list(PROFILES), 0)


def test_answers_without_a_server_are_those_of_python(site):
    tab, static = site
    if not (static / "shufflebounds.wasm").exists():
        pytest.skip("no compiler for WebAssembly")
    assert (static / "shufflebounds.wasm").stat().st_size < 250_000
    check(tab, np.random.default_rng(2), ["stronger-clones", "clones"], 1e-12)


SEARCH = {"question": "users", "mechanism": "stronger-clones", "local_eps": "4", "eps": "0.5", "delta": "1e-8"}


def test_the_number_of_users_for_a_target(local, site):
    known = shuffle.StrongerClones.calibrate(eps=0.5, delta=1e-8, local_eps=4.0).users
    for tab in (local, site[0]):
        shown = ask(tab, SEARCH)
        assert printed(shown["code"][0]) == known
        if tab is local or (site[1] / "shufflebounds.wasm").exists():
            assert shown["head"] == f"{known:,} users"


def test_parameters_that_a_calibration_finds(local):
    query = {"question": "calibrate", "mechanism": "pure-local", "users": "1e5", "eps": "1", "delta": "1e-8"}
    shown = ask(local, query)
    known = shuffle.Shuffled.calibrate(mechanisms.PureLocal, users=10**5, eps=1.0, delta=1e-8)
    assert float(shown["rows"]["local eps"]) == known.randomizer.local_eps
    assert printed(shown["code"][0]) == float(shown["rows"]["ε, upper bound"]) == known.epsilon(1e-8)


def test_bad_input_shows_the_text_of_the_library(local, site):
    query = {"question": "epsilon", "mechanism": "stronger-clones", "users": "1000", "local_eps": "4", "delta": "1e-8"}
    for wrong in ({"local_eps": "-4"}, {"users": "0"}, {"delta": "2"}):
        (name,), asked = wrong, {**query, **wrong}
        with pytest.raises(ValueError) as refused:
            shuffle.StrongerClones(int(asked["users"]), float(asked["local_eps"])).epsilon(float(asked["delta"]))
        shown = ask(local, asked)
        assert (shown["state"], shown["head"], shown["wrong"]) == ("refused", str(refused.value), [name])
        if (site[1] / "shufflebounds.wasm").exists():
            shown = ask(site[0], asked)
            assert str(refused.value).startswith(shown["head"])
            assert (shown["state"], shown["wrong"]) == ("refused", [name])
    shown = ask(local, {name: text for name, text in query.items() if name != "users"})
    assert (shown["state"], shown["head"], shown["code"]) == ("incomplete", "Fill in users.", [])
    shown = ask(local, {**query, "users": "<img src=x onerror=alert(1)>"})
    assert shown["head"] == "users: '<img src=x onerror=alert(1)>' is not a number"
    assert local.run("return document.querySelectorAll('img').length") == 0


def test_without_an_answer_the_page_shows_the_line_of_python(site):
    query = {"question": "epsilon", "mechanism": "kary-response", "bins": "5", "local_eps": "2", "users": "100", "delta": "1e-6"}
    shown = ask(site[0], query)
    assert (shown["state"], shown["rows"]) == ("unanswered", {})
    assert printed(shown["code"][0]) == mechanisms.KaryResponse(5, 2.0).shuffled(100).epsilon(1e-6)


def test_narrow_windows_and_labels(local):
    local.send("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    for query in (SEARCH, {"question": "epsilon", "mechanism": "clones", "users": "1e9", "local_eps": "2", "delta": "1e-9"}):
        ask(local, query)
        told = local.run("""
          const root = document.documentElement, inputs = [...document.querySelectorAll("input, select")];
          return {over: root.scrollWidth - root.clientWidth, live: document.querySelectorAll("output").length,
                  bare: inputs.filter((one) => !one.labels.length).map((one) => one.name)};""")
        assert told == {"over": 0, "live": 1, "bare": []}


def test_numbers_as_people_type_them_and_a_budget_that_stays(local):
    """A budget is kept for another mechanism, a changed field marks the answer as old, and commas of thousands are read."""
    query = {"question": "epsilon", "mechanism": "stronger-clones", "users": "50,000", "local_eps": "2", "delta": "1e-6"}
    first = ask(local, query)
    assert first["state"] == "answered"
    assert first["head"].startswith("ε ≤")
    assert "StrongerClones(users=50000, local_eps=2)" in first["code"][0]
    second = local.run(f"""
const changed = new Event("change", {{bubbles: true}}), select = document.querySelector("select");
select.value = "randomized-response";
select.dispatchEvent(changed);
if (select !== document.querySelector("select")) throw new Error("the list of mechanisms is a new one");
{SHOWN}""")
    assert "RandomizedResponse(eps=2).shuffled(50000)" in second["code"][0]
    marked = local.run("""
const users = document.querySelector("#field-users"), result = document.querySelector(".result");
users.value = "10**5";
users.dispatchEvent(new Event("input", {bubbles: true}));
const before = result.classList.contains("edited");
users.dispatchEvent(new Event("change", {bubbles: true}));
return [before, result.classList.contains("edited")];""")
    assert marked == [True, False]
    assert "shuffled(100000)" in local.run(SHOWN)["code"][0]
    assert ask(local, {**query, "users": "1,234"})["state"] == "refused"
