"""Adversarial inputs for every public function: all names of `__all__` in every subpackage.

A call may return a value, or raise ValueError or TypeError. It must not raise another exception, warn, return NaN, return a lower
bound above the upper one, or take longer than the alarm.
"""

import contextlib
import importlib
import inspect
import math
import pkgutil
import random
import signal
import warnings
from collections import Counter
from enum import Enum

import numpy as np
from scipy import special, stats

import shufflebounds
from shufflebounds import mechanisms
from shufflebounds import profile as room_of_profiles

__all__ = ["LEFT_OUT", "campaign", "subjects"]

INTERNAL = {"cli"}
"""Subpackages that are not tested: the command line."""

LEFT_OUT = {
    "to_opendp": "raises what OpenDP raises", "plot": "takes what matplotlib gives", "plot_profile": "likewise",
    "compare": "likewise",
    "Comparison": "made by compare_at", "Statement": "made by profile.statement", "AmplificationTable": "made by published.compare",
    "AccountingProfile": "made by from_dp_accounting", "knots": "an AttributeError is documented",
    "main": "ends the process", "Tradeoff": "made by its class methods, which are called", "ExcessLaw": "likewise",
    "sweep": "starts processes and writes files", "evaluate": "starts processes", "resume": "reads files",
}
"""Public names that are not called, with the reason."""

EXTREMES = [
    0, 1, -1, 2, 0.0, -0.0, 0.5, 1.0, 1e-300, 5e-324, 1e300, 1.7e308, math.inf, -math.inf, math.nan, 2**53, 2**53 + 1, 2**63,
    2**64, 10**400, True, None, "x", "worst", "", b"1", 1j, [], [[]], {}, (), object(), np.float32(0.1), np.int8(-1),
    np.array(0.5), np.array([0.5]), np.array([]), np.array([np.nan]), np.array([[0.5, 0.5]]), np.ma.masked_array([0.5], [True]),
    [0.1, [0.2]], np.array(["a"]), range(3), 0.5 - 2.0**-53, 1 - 2.0**-53, 1 + 2.0**-52, 700.0, 709.8, 1e-17, 36.7,
]
"""Values that have caused failures; each is tried for every argument."""

COUNTS = [1, 2, 3, 10, 100, 1000, 10**6, 10**9, 2**53]
CHANCES = [5e-324, 1e-300, 1e-20, 1e-9, 1e-3, 0.1, 0.25, 0.49999, 0.5 - 1e-16, 0.5]
BUDGETS = [1e-300, 1e-12, 1e-3, 0.1, 1.0, 4.0, 12.0, 40.0, 300.0, 699.9, 700.0]
GUIDES = {
    "users": COUNTS, "fakes": [0, *COUNTS], "bins": [2, *COUNTS[2:]], "categories": [2, 3, 100, 10**6], "bits": [1, 2, 8, None],
    "trials": [0, *COUNTS], "times": [1, 2, 100, 10**6], "users_per_group": COUNTS, "n_queries": COUNTS, "cutoff": [1, 2, 10],
    "flip": CHANCES, "prob": CHANCES, "p": CHANCES, "q": CHANCES, "gamma": CHANCES, "rate": CHANCES, "weight": CHANCES,
    "scale": [1.0, 0.1],
    "lam": [1e-300, 0.1, 1.0], "sigma": [0.03, 0.5, 1.0, 30.0], "sensitivity": [1, 1.0], "participation": [1.0, 0.1],
    "eps": [0.0, *BUDGETS, 1e6, 1e300], "local_eps": BUDGETS, "delta": [0, 1e-300, 1e-9, 0.1, 1.0], "order": [1, 1.5, 2, 100,
    math.inf],
    "orders": [[1, 2, 8]], "bound": ["upper", "lower"], "view": ["sums", "records", "total", "columns"], "fake": ["uniform",
    "known"],
    "rng": [None, 1], "method": ["exact", "union"], "alpha": [0.0, 1e-9, 0.05, 0.5, 1.0], "log_alpha": [-1e5, -3.0, 0.0],
    "beta": [1e-9, 0.05], "k": [0, 1, 5, 10**6], "n": [0, 1, 10, 10**9], "rates": [[0.0], [0.1] * 10], "counts": [None],
    "log_p": [[math.log(0.75), math.log(0.25)]], "log_q": [[math.log(0.25), math.log(0.75)]], "ones": ["worst", 0],
    "target": [None, 0],
    "noise": [mechanisms.GeometricMechanism(1.0), mechanisms.GaussianMechanism(2.0)], "shift": [1, 20, 2**20], "keep": [1.0, 0.5],
    "mechanism": [], "randomizer": [], "profile": [], "mu": [0.1, 1.0, 30.0], "times_": [1, 3],
}
ARRAYS = {"eps", "delta", "order", "alpha", "local_eps", "p", "k", "sigma"}

SLOW = {"tradeoff", "gdp_mu", "rdp", "calibrate", "plot", "to_dp_accounting", "to_opendp", "ascend",
        "compose",
        "self_compose", "error_quantile",
        "certify", "symmetrized"}
"""Methods that are called for small parameters only, because they take long for large ones."""


def subjects():
    """Return {name: object} for every public name of every subpackage; new names are included automatically."""
    found = {}
    modules = [module.name for module in pkgutil.iter_modules(shufflebounds.__path__) if not module.name.startswith("_")]
    for name in modules:
        if name in INTERNAL:
            continue
        module = importlib.import_module(f"shufflebounds.{name}")
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            known = inspect.isclass(thing) and issubclass(thing, BaseException | tuple | Enum)
            wanted = callable(thing) and not known and (name not in LEFT_OUT or inspect.isclass(thing))
            if wanted and not inspect.isabstract(thing) and not hasattr(thing, "__origin__"):
                found[f"{module.__name__}.{name}"] = thing
    return dict(sorted(found.items()))


class Alarm(BaseException):
    """Raised when a call takes too long."""


@contextlib.contextmanager
def limited(seconds):
    """Raise Alarm after `seconds` if the platform has such alarms."""
    if not hasattr(signal, "setitimer") or not seconds:
        yield
        return

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Campaign:
    """The number of calls, and one line for every kind of failure."""

    def __init__(self, seed, seconds=10.0, most=10**6):
        self.r = random.Random(seed)
        self.seconds, self.most = seconds, most
        self.calls, self.found = Counter(), {}

    def value(self, name, default=inspect.Parameter.empty):
        r = self.r
        if r.random() < 0.15:
            return r.choice(EXTREMES)
        if default is not inspect.Parameter.empty and r.random() < 0.5:
            return default
        guide = GUIDES.get(name)
        if guide is None:
            guide = COUNTS[:5] if name.startswith(("n_", "max_")) else [*BUDGETS[:6], *COUNTS[:4]]
        guide = [v for v in guide if not isinstance(v, int) or v <= self.most] or [1]
        value = r.choice(guide)
        if isinstance(value, float) and name in ARRAYS and r.random() < 0.3:
            return np.full(r.choice([1, 2, 5]), value)
        return value

    def arguments(self, thing):
        try:
            parameters = inspect.signature(thing).parameters.values()
        except (TypeError, ValueError):
            return [self.value("k"), self.value("n"), self.value("p")], {}
        given, named = [], {}
        for parameter in parameters:
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = self.value(parameter.name, parameter.default)
            else:
                given.append(self.value(parameter.name, parameter.default))
        return given, named

    def call(self, label, thing, given, named):
        """Return the result, or None if the call raised or failed."""
        self.calls["calls"] += 1
        words = f"{label}({', '.join([*map(_short, given), *(f'{k}={_short(v)}' for k, v in named.items())])})"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # Extreme arguments are expected to raise these warnings.
            swapped = "((delta|local_eps|eps|beta|fakes|scale|shift)=|(delta|epsilon).(eps|delta)=)"
            warnings.filterwarnings("ignore", swapped, UserWarning)
            try:
                with limited(self.seconds), np.errstate(over="warn", invalid="warn", divide="warn"):
                    answer = thing(*given, **named)
            except (ValueError, TypeError) as refusal:
                self.calls["refusals"] += 1
                said = str(refusal)
                if not said or said.startswith(("math ", "zero-size", "cannot convert")) or "NaN to int" in said:
                    self.harm(label, f"{type(refusal).__name__}: {said[:60]}", words)
                return None
            except ImportError:
                return None
            except Alarm:
                self.harm(label, f"longer than {self.seconds} s", words)
                return None
            except BaseException as harm:
                if isinstance(harm, KeyboardInterrupt | SystemExit):
                    raise
                self.harm(label, f"{type(harm).__name__}: {str(harm)[:60]}", words)
                return None
        self.calls["answers"] += 1
        return answer

    def harm(self, label, kind, words):
        self.found.setdefault((label, kind), words)

    def object(self, name, thing):
        """Construct an object and call its methods."""
        own = vars(thing) if inspect.isclass(thing) else {}
        makers = [m for m in own if not m.startswith("_") and isinstance(own[m], classmethod | staticmethod)]
        if makers and (name.rpartition(".")[2] in LEFT_OUT or self.r.random() < 0.2):
            maker = self.r.choice(makers)
            name, thing = f"{name}.{maker}", getattr(thing, maker)
        elif name.rpartition(".")[2] in LEFT_OUT:
            return
        given, named = self.arguments(thing)
        built = self.call(name, thing, given, named)
        if isinstance(thing, np.ufunc) and outside(thing.__name__, given):
            return
        if built is None or not inspect.isclass(type(built)):
            return
        if isinstance(built, room_of_profiles.PrivacyProfile):
            self.sides(name, built)
        elif not type(built).__module__.startswith("shufflebounds"):
            self.number(name, built)
            return
        size = max((v for v in vars(built).values() if isinstance(v, int)), default=0) if hasattr(built, "__dict__") else 0
        methods = [m for m in dir(type(built)) if not m.startswith("_") and callable(getattr(type(built), m, None))]
        for method in self.r.sample(methods, min(3, len(methods))):
            if method in LEFT_OUT or (method in SLOW and size > 200):
                continue
            bound = getattr(built, method)
            label = f"{name}.{method}"
            self.number(label, self.call(label, bound, *self.arguments(bound)))

    def sides(self, name, built):
        eps = self.r.choice([0.0, 1e-9, 0.1, 1.0, 10.0, 1e3, 1e300])
        pair = [self.call(f"{name}.log_delta", built.log_delta, [eps], {"bound": side}) for side in ("lower", "upper")]
        if None not in pair and not pair[0] <= pair[1]:
            self.harm(f"{name}.log_delta", "sides the wrong way round", f"{built!r} at {eps}: {pair}")
        delta = self.r.choice([0.0, 1e-300, 1e-9, 0.1])
        pair = [self.call(f"{name}.epsilon", built.epsilon, [delta], {"bound": side}) for side in ("lower", "upper")]
        if None not in pair and not pair[0] <= pair[1]:
            self.harm(f"{name}.epsilon", "sides the wrong way round", f"{built!r} at {delta}: {pair}")

    def number(self, label, answer):
        if isinstance(answer, float | np.floating) and math.isnan(answer):
            self.harm(label, "NaN", label)


def outside(name, given):
    """Return whether the arguments are outside the function's domain: SciPy's function of that name returns NaN for them, too."""
    law, _, side = name.rpartition("_")
    try:
        function = getattr(special, side) if law == "log" else getattr(getattr(stats, law), side)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return bool(np.isnan(function(*given)).any())
    except (TypeError, ValueError, OverflowError):
        return False


def _short(value):
    text = repr(value) if not isinstance(value, int) or value < 10**30 else "10**400"
    return text if len(text) < 60 else f"{text[:57]}..."


def campaign(seed, cases=None, until=None, seconds=10.0, most=10**6, only=None):
    """Return the counts, and one line for each kind of failure, after `cases` cases or when until() is true."""
    run, every = Campaign(seed, seconds, most), subjects()
    names = [name for name in every if only is None or only in name]
    done = 0
    while (cases is None or done < cases) and not (until and until()):
        name = run.r.choice(names)
        run.object(name, every[name])
        done += 1
    return run.calls, run.found
