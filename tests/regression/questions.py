"""Questions of the regression test: how an object is created, and which of its methods is called with which arguments.

A question is plain JSON, ``{"build": [path, arguments], "ask": method, "arguments": [...], "sided": bool}``, so that the results of
an older version can be stored with it. ``sided`` states whether the method has a `bound` argument.
"""

import json
import math
import random
from operator import attrgetter
from pathlib import Path

import shufflebounds

RECORDED = Path(__file__).with_name("recorded.json")

MANY = 27
"""Number of questions for each row of `SUBJECTS`; record.py drops the slow ones."""


def _eps(r):
    return float(f"{r.uniform(0, 3):.3g}")


def _log_uniform(r, low, high):
    return float(f"{math.exp(r.uniform(math.log(low), math.log(high))):.4g}")


def _whole(r, low, high):
    return round(_log_uniform(r, low, high))


def _ones(r, users):
    return r.choice(["worst", r.randrange(users), 0])


def _bits(r):
    users = _whole(r, 2, 10**5)
    return {"users": users, "flip": _log_uniform(r, min(0.3, 5 / users), 0.45), "ones": _ones(r, users)}


def _reports(r):
    bins = r.choice([2, 2, 3, 10])
    view = "records" if bins == 2 else r.choice(["sums", "records"])
    return {
        "users": _whole(r, 2, 60 if bins > 2 else 2000),
        "fakes": r.choice([0, 0, 3]),
        "bins": bins,
        "flip": _log_uniform(r, 0.05, 0.45),
        "view": view,
    }


def _budgets(r):
    return [float(f"{r.uniform(0.2, 3):.3g}") for _ in range(r.choice([3, 20, 60]))]


def _masses(r):
    p, q = ([r.randint(1, 64) for _ in range(8)] for _ in range(2))
    return {"log_p": [math.log(x / sum(p)) for x in p], "log_q": [math.log(x / sum(q)) for x in q]}


SUBJECTS = {
    "shuffle.ShuffledBits": _bits,
    "shuffle.BinomialNoise": lambda r: {"trials": _whole(r, 1, 10**6), "prob": r.choice([0.5, 0.125, 0.9])},
    "shuffle.ClearReports": lambda r: {"fakes": _whole(r, 1, 10**5), "bins": r.choice([2, 10, 1000])},
    "shuffle.Clones": lambda r: {"users": _whole(r, 2, 10**6), "local_eps": _log_uniform(r, 0.1, 6)},
    "shuffle.StrongerClones": lambda r: {"users": _whole(r, 2, 10**6), "local_eps": _log_uniform(r, 0.1, 6)},
    "shuffle.FlippedReports": _reports,
    "shuffle.ShuffledHistogram": lambda r: {
        "users": (users := _whole(r, 10, 10**5)),
        "bins": r.choice([2, 10, 100]),
        "gamma": _log_uniform(r, min(0.4, 20 / users), 0.5),
    },
    "shuffle.ZeroSum": lambda r: {"users": (users := _whole(r, 10, 10**6)), "gamma": _log_uniform(r, min(0.4, 20 / users), 0.5)},
    "shuffle.RealSum": lambda r: {
        "users": (users := _whole(r, 20, 3000)),
        "lam": _log_uniform(r, 10, users / 2),
        "bits": r.choice([1, 3, 10]),
        "view": r.choice(["total", "columns"]),
    },
    "shuffle.PersonalizedBits": lambda r: {"local_eps": _budgets(r)},
    "shuffle.PersonalizedClones.laplace": lambda r: {"eps": _budgets(r)},
    "shuffle.PersonalizedClones.gaussian": lambda r: {"sigma": [max(b, 0.5) for b in _budgets(r)]},
    "shuffle.PersonalizedClones.randomized_response": lambda r: {"eps": _budgets(r), "categories": r.choice([2, 5])},
    "profile.DominatingPair.from_pmfs": _masses,
    "mechanisms.LaplaceMechanism": lambda r: {"scale": _log_uniform(r, 0.3, 10)},
    "mechanisms.GaussianMechanism": lambda r: {"sigma": _log_uniform(r, 0.3, 10)},
    "mechanisms.GeometricMechanism": lambda r: {
        "eps": _log_uniform(r, 0.1, 3), "sensitivity": r.choice([1, 2, 5]), "bound": r.choice([None, 10, 50])
    },
    "mechanisms.DiscreteGaussianMechanism": lambda r: {"sigma": _log_uniform(r, 0.3, 10), "sensitivity": r.choice([1, 2, 5])},
    "mechanisms.RandomizedResponse": lambda r: {"eps": _log_uniform(r, 0.1, 3), "upper": r.choice([1.0, 2.0])},
    "mechanisms.Rappor": lambda r: {"f": r.choice([0.25, 0.5]), "p": 0.75, "q": 0.25, "hashes": r.choice([1, 2])},
}

CALIBRATED = {
    "shuffle.ShuffledBits.calibrate": lambda r: {"users": _whole(r, 10, 10**5)},
    "shuffle.BinomialNoise.calibrate": lambda r: {"prob": r.choice([0.5, 0.125])},
    "shuffle.ClearReports.calibrate": lambda r: {"bins": r.choice([2, 10, 100])},
    "shuffle.FlippedReports.calibrate": lambda r: {"users": _whole(r, 10, 300), "bins": 2, "view": "records"},
    "shuffle.ShuffledHistogram.calibrate": lambda r: {"users": _whole(r, 1000, 10**5), "bins": r.choice([2, 10])},
    "shuffle.ZeroSum.calibrate": lambda r: {"users": _whole(r, 1000, 10**6)},
    "shuffle.RealSum.calibrate": lambda r: {"users": _whole(r, 1000, 10**5), "bits": r.choice([1, 5])},
    "mechanisms.GaussianMechanism.from_dp": lambda r: {},
    "mechanisms.GeometricMechanism.from_dp": lambda r: {},
    "mechanisms.LaplaceMechanism.from_eps": lambda r: {},
}


def _asked(r):
    """Return a random method, its arguments, and whether it has a `bound` argument."""
    delta, order = 10.0 ** -r.randint(2, 12), r.choice([1.0, 1.5, 2.0, 8.0, 64.0])
    return r.choice(
        [
            ["delta", [_eps(r)]],
            ["log_delta", [_eps(r)]],
            ["log_delta", [0.0]],
            ["epsilon", [delta]],
            ["epsilon", [delta]],
            ["tradeoff", [r.choice([0.01, 0.05, 0.5])]],
            ["gdp_mu", []],
            ["rdp", [order]],
            ["self_compose.delta", [r.choice([2, 10]), _eps(r)]],
            ["self_compose.epsilon", [r.choice([2, 10]), 1e-6]],
        ]
    )


def questions(seed=1):
    """Return the questions, which are determined by the seed."""
    r = random.Random(seed)
    asked = []
    for path, draw in SUBJECTS.items():
        for _ in range(MANY):
            method, arguments = _asked(r)
            asked.append({"build": [path, draw(r)], "ask": method, "arguments": arguments})
    for path, draw in CALIBRATED.items():
        for _ in range(4):
            target = {"eps": float(f"{r.uniform(0.2, 2):.3g}"), "delta": 10.0 ** -r.randint(3, 9)}
            asked.append({"build": [path, draw(r) | target], "ask": "calibrated", "arguments": list(target.values())})
    return asked


def built(question):
    """Return a new object with the class and the parameters of the question."""
    path, arguments = question["build"]
    return attrgetter(path)(shufflebounds)(**arguments)


def parameter(profile):
    """Return the calibrated parameter, whose name depends on the class."""
    return next(float(getattr(profile, name)) for name in ("flip", "gamma", "lam", "trials", "fakes", "sigma", "scale", "bound")
                if hasattr(profile, name))


def answer(question):
    """Return the lower and the upper bound; for a calibrated object, twice its parameter."""
    subject, method, arguments = built(question), question["ask"], question["arguments"]
    if method == "calibrated":
        return [parameter(subject)] * 2
    if method.startswith("self_compose."):
        subject, method, arguments = subject.self_compose(arguments[0]), method.removeprefix("self_compose."), arguments[1:]
    if method == "tradeoff":
        return [float(subject.tradeoff(bound=side).beta(*arguments)) for side in ("lower", "upper")]
    return [float(getattr(subject, method)(*arguments, bound=side)) for side in ("lower", "upper")]


def key(question):
    """Return a readable name of a question."""
    path, arguments = question["build"]
    shown = json.dumps(arguments)
    return f"{path}({shown}).{question['ask']}({json.dumps(question['arguments'])})"


def recorded():
    """Return the recorded questions with their results."""
    return json.loads(RECORDED.read_text())


def _gap(lower, upper):
    return 0.0 if lower == upper else upper - lower


def problem(row, now):
    """Return a description if the new bounds contradict the recorded ones or have a larger gap, otherwise an empty text."""
    (lower, upper), (least, most) = (row["lower"], row["upper"]), now
    if row["ask"] == "calibrated":
        # A calibrated parameter is determined up to the tolerance of its search.
        close = abs(least - lower) <= (1e-3 if "Flipped" in row["build"][0] else 1e-4) * abs(lower)
        return "" if close else f"chose {lower!r}, now {least!r}"
    if math.isnan(least) or math.isnan(most):
        return "not a number"
    if not (lower <= most and least <= upper):
        return f"was in [{lower!r}, {upper!r}], now in [{least!r}, {most!r}]"
    size = abs(upper) if math.isfinite(upper) else 0.0
    # Searches over users or datasets end at a relative 1e-9 for each of the two bounds.
    if _gap(least, most) > _gap(lower, upper) + 2.5e-9 * size:
        return f"[{lower!r}, {upper!r}] is now as wide as [{least!r}, {most!r}]"
    return ""
