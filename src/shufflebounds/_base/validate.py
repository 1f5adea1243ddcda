"""One validator for every public argument: it names the argument, its value and the valid range."""

from __future__ import annotations

import math
import operator
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

MAX_COUNT = 2**53
"""Largest count. Doubles represent all integers up to this one."""


LARGE_DELTA = 1e-3
"""For a delta above this value a UserWarning is issued. A higher threshold would let more swapped arguments pass; a lower one
would warn of deltas that small surveys use."""

_quiet: ContextVar[bool] = ContextVar("shufflebounds_quiet", default=False)


class InfeasibleError(ValueError):
    """No parameters in range meet the target, or a computation would need too much time or memory; the message states the limit."""

    # Errors and pickles show the public name.
    __module__ = "shufflebounds"


class CertificateGap(ValueError):
    """A certificate does not reach the stated bound; the message has both numbers.

    Attributes
    ----------
    certified, stated : float
        The bounds of log delta that the certificate proves and that the library states.
    """

    __module__ = "shufflebounds"

    def __init__(self, message: str, certified: float = math.nan, stated: float = math.nan) -> None:
        super().__init__(message, certified, stated)
        self.certified, self.stated = certified, stated

    def __str__(self) -> str:
        return str(self.args[0])


ADVICE = {
    "alpha": "a probability of a false alarm, such as 0.05",
    "beta": "a probability, such as 0.05",
    "bins": "the number of bins, such as 100",
    "bound": '"upper" for a guarantee or "lower" for the other bound',
    "confidence": "a probability, such as 0.95",
    "delta": "the probability with which the bound eps may fail, such as 1e-9",
    "eps": "a privacy loss in nats, such as 1.0",
    "fakes": "the number of dummy reports, such as 1000; calibrate(...) finds it",
    "flip": "a flip probability, such as 0.1; calibrate(...) finds it",
    "gamma": "a probability of zero noise, such as 0.01; calibrate(...) finds it",
    "lam": "the expected number of flipped users, such as 100; calibrate(...) finds it",
    "local_eps": "a local budget in nats, such as 2.0",
    "order": "an order of the Renyi divergence, such as 2.0",
    "participation": "the probability that a user sends a message, such as 1.0",
    "prob": "a probability of a one, such as 0.5",
    "rate": "a sampling probability, such as 0.01",
    "rtol": "a relative tolerance, such as 1e-5",
    "sensitivity": "the largest change by one user, such as 1.0",
    "sigma": "a standard deviation, such as 1.0",
    "steps": "a number of steps, such as 1000",
    "times": "a number of releases, such as 52",
    "users": "the number of users, such as 10**6",
    "BinomialNoise.trials": "the number of noise bits, such as 1000; calibrate(...) finds it",
    "GaussianMechanism.sigma": "a standard deviation, such as 1.0; from_dp(...) finds it",
    "GeometricMechanism.bound": "the largest noise, such as 100, or None for noise without a limit",
    "Group.size": "a number of people, such as 5",
    "LaplaceMechanism.scale": "a noise scale in units of the values, such as 1.0",
    "Rappor.bits": "the length of the Bloom filter, such as 128",
    "RatioBounded.beta": "a total variation distance of two inputs, at most (p - 1)/(p + 1)",
    "RealSum.bits": "the number of bits of a user, such as 8",
    "SubsetSelection.size": "the number of bins of a message, such as 2",
}
"""Advice for common arguments, appended to error messages. The key "Class.name" is for a field of one class, in place of "name"."""


OTHER_NAMES = {
    "b": "scale", "budget": "local_eps", "d": "bins", "domain": "bins", "dummies": "fakes", "eps0": "local_eps", "epsilon": "eps",
    "epsilon0": "local_eps", "k": "bins", "n": "users", "noise": "sigma", "noise_multiplier": "sigma", "q": "rate",
    "sigma2": "sigma", "std": "sigma",
}
"""Names of arguments in papers and other programs, with the names here. They are suggested, not accepted."""


def _advice(name: str, owner: object = None) -> str:
    """Return the advice for an argument, or for a field of `owner`, with a semicolon before it; empty if there is none."""
    advice = ADVICE.get(f"{type(owner).__name__}.{name}") or ADVICE.get(name)
    return f"; pass {advice}" if advice else ""


def short_repr(value: Any, most: int = 100) -> str:
    """Return the repr of any object, with its middle omitted if it is longer than `most` characters."""
    try:
        text = repr(value)
    except Exception:
        # The repr of an integer with thousands of digits raises an exception, and so may the repr of a user's object.
        text = f"<{type(value).__name__}>"
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: 3 * most // 5]}...{text[-most // 5 :]}"


def format_value(value: float) -> str:
    """Return the shortest decimal representation that identifies the value."""
    short = f"{value:g}"
    return short if float(short) == value else repr(float(value))


def _interval(low: float, high: float, open_low: bool, open_high: bool) -> str:
    if high == math.inf:
        return f"finite and {'>' if open_low else '>='} {low:g}" if low > -math.inf else "finite"
    left, right = "(" if open_low else "[", ")" if open_high else "]"
    return f"in {left}{low:g}, {high:g}{right}"


def _array(name: str, value: Any, text: str) -> NDArray[Any]:
    """Return value as an array of any kind; raise ValueError for ragged sequences, masked arrays and huge broadcast views."""
    # A masked array exists only if numpy.ma is imported; importing it here would take long. Another thread may be importing it.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    if masked is not None and isinstance(value, masked):
        raise ValueError(f"{name} must be {text}, got a masked array: what its mask means is for you to say, as by filled()")
    try:
        array = np.asarray(value)
    # Self-referential sequences, and objects that pretend to be arrays, raise exceptions of various types.
    except Exception:
        raise ValueError(f"{name}={short_repr(value)} must be {text}") from None
    most = 2**24
    if array.size > most and 0 in array.strides:
        # A copy of a broadcast array would allocate memory that the caller never used.
        raise ValueError(f"{name} has {array.size} entries, most of them views of the same: it must hold at most {most} such")
    return array


def _plainly_inside(value: Any, low: float, high: float, open_low: bool, open_high: bool) -> bool:
    """Return whether value is a float or an int inside of the interval; making an array would take ten times as long."""
    if type(value) is not float and (type(value) is not int or abs(value) > MAX_COUNT):
        return False
    inside = (low < value if open_low else low <= value) and (value < high if open_high else value <= high)
    return inside and math.isfinite(value)


def real(
    name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, open_high: bool = False,
    owner: object = None,
) -> float:
    """Return value as a float in the given interval, or raise ValueError; `owner` is the object that has the field `name`."""
    if _plainly_inside(value, low, high, open_low, open_high):
        return float(value)
    array = real_array(name, value, low, high, open_low=open_low, open_high=open_high, owner=owner)
    if array.ndim:
        raise ValueError(f"{name} must be a single number, got an array of shape {array.shape}")
    return float(array)


def real_field(
    owner: object, name: str, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, open_high: bool = False
) -> None:
    """Check a field of a frozen dataclass as :func:`real` does, and keep it as a float."""
    value = real(name, getattr(owner, name), low, high, open_low=open_low, open_high=open_high, owner=owner)
    object.__setattr__(owner, name, value)


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the warnings of this module during a search, which tries parameters that the caller did not choose.

    The flag that silences them belongs to the running thread or task, unlike the filters of :mod:`warnings`.
    """
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


def warn(message: str) -> None:
    """Issue a UserWarning that points to the calling line outside of this package, unless a search runs."""
    if _quiet.get():
        return
    level, frame = 1, sys._getframe(0)
    # Skip the frames of decorators of numpy and contextlib.
    inside = ("shufflebounds", "numpy", "contextlib")
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in inside:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def failure(beta: Any) -> float:
    """Return beta, the probability that an error is exceeded, as a float in (0, 1), or raise ValueError; warn above 1/2."""
    value = real("beta", beta, 0, 1, open_low=True, open_high=True)
    if value > 0.5:
        warn(f"beta={value:g} is above 0.5: beta is the probability of a larger error. For the error that is exceeded with "
             f"probability {format_value(float(f'{1 - value:.12g}'))}, pass that number")
    return value


def target(eps: Any, delta: Any, *, open_eps: bool = False, most_eps: float = math.inf) -> tuple[float, float]:
    """Return eps and delta of a privacy target as floats, or raise ValueError; warn if one of them is large.

    `eps` must lie in [0, most_eps], or in (0, most_eps] if `open_eps`; `delta` must lie in (0, 1).
    """
    eps = real("eps", eps, 0, most_eps, open_low=open_eps)
    delta = real("delta", delta, 0, 1, open_low=True, open_high=True)
    if delta > LARGE_DELTA:
        warn(f"delta={delta:g} is above {LARGE_DELTA:g}: with a probability of up to delta a user has no protection at all. "
             "Choose delta far below 1/users, such as 1e-9. Are eps and delta swapped?")
    if eps > 20:
        warn(f"eps={eps:g} is above 20 nats: likelihood ratios up to e^20 = 5e8 are no protection. Choose eps of at most about 10")
    return eps, delta


def _warn_of_large_budget(name: str, largest: float) -> None:
    """Warn of a local budget above 20 nats."""
    # e^20 is 4.9e8. With a higher threshold, more swapped arguments would get no warning. With a lower one, budgets that shuffling
    # can still amplify would get a warning.
    if largest > 20:
        warn(f"{name}={largest:g} is above 20 nats: the message of a user is almost surely the user's value, so "
             "that the randomizer protects nobody. Choose a budget of at most about 10. Are two arguments swapped?")


def local_budgets(name: str, value: ArrayLike, low: float, high: float, *, open_low: bool = False) -> NDArray[np.float64]:
    """Return local budgets as a float array within the given interval, or raise ValueError; warn if one is large."""
    budgets = real_array(name, value, low, high, open_low=open_low)
    _warn_of_large_budget(name, float(budgets.max()))
    return budgets


def local_budget_field(owner: object, name: str, high: float) -> None:
    """Check one local budget in (0, high], a field of a frozen dataclass; warn if it is large."""
    real_field(owner, name, 0, high, open_low=True)
    _warn_of_large_budget(name, getattr(owner, name))


def integer_field(owner: object, name: str, low: int = 0, high: int = MAX_COUNT) -> None:
    """Check a field of a frozen dataclass as :func:`integer` does, and keep it as an int."""
    object.__setattr__(owner, name, integer(name, getattr(owner, name), low, high, owner=owner))


def floats(name: str, value: ArrayLike, text: str, *, copy: bool = False, owner: object = None) -> NDArray[np.float64]:
    """Return value as a C-contiguous float array (not a copy if it is one already), or raise ValueError; `text` describes it."""
    array = _array(name, value, f"{text}, or a rectangular array of them")
    # Python integers beyond 64 bits arrive as objects.
    try:
        # NumPy would convert None to NaN, so None raises an error.
        if array.dtype.kind not in "iufO" or value is None:
            raise TypeError
        return np.array(array, dtype=np.float64, order="C", copy=True if copy else None)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"{name}={short_repr(value)} must be {text}, got a {type(value).__name__}{_advice(name, owner)}") from None


def real_array(
    name: str, value: ArrayLike, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False, open_high: bool = False,
    owner: object = None,
) -> NDArray[np.float64]:
    """Return value as a non-empty float array within the given interval, or raise ValueError."""
    if _plainly_inside(value, low, high, open_low, open_high):
        return np.array(value, dtype=np.float64)
    valid = _interval(low, high, open_low, open_high)
    array = floats(name, value, f"a number {valid}", copy=True, owner=owner)
    if array.size == 0:
        raise ValueError(f"{name} must not be empty: give at least one number {valid}")
    inside = np.isfinite(array) & (array >= low) & (array <= high)
    if open_low:
        inside &= array != low
    if open_high:
        inside &= array != high
    if array.ndim == 0 and not inside:
        raise ValueError(f"{name}={format_value(float(array))} must be {valid}{_advice(name, owner)}")
    every_entry(name, array, inside, valid + _advice(name, owner))
    return array


def every_entry(name: str, array: NDArray[Any], valid: Any, text: str) -> None:
    """Raise ValueError, with the first invalid entry, unless every entry is valid; `text` describes valid entries."""
    if not valid.all():
        raise ValueError(f"{name} holds {format_value(float(array[~valid].flat[0]))}: every entry must be {text}")


def orders(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return value as a non-empty array of Renyi orders in [1, inf], or raise ValueError."""
    array = floats(name, value, "a number >= 1, or inf", copy=True)
    unlimited = array == math.inf
    real_array(name, np.where(unlimited, 1.0, array), 1)
    return array


def log_values(name: str, value: ArrayLike) -> NDArray[np.float64]:
    """Return value as a non-empty float array of logarithms of probabilities, <= 0 or -inf, or raise ValueError."""
    given = _array(name, value, "a number <= 0")
    if given.dtype.kind != "f":
        return real_array(name, value, -math.inf, 0)
    # -inf is allowed, which the check for finite numbers would refuse.
    return np.where(given == -np.inf, -np.inf, real_array(name, np.where(given == -np.inf, -1.0, given), -math.inf, 0))


def log_knots(log_alpha: ArrayLike, log_beta: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logs of the breakpoints of a trade-off function, or raise ValueError.

    alpha must not decrease and beta must not increase.
    """
    alpha, beta = log_values("log_alpha", log_alpha), log_values("log_beta", log_beta)
    if alpha.ndim != 1 or beta.shape != alpha.shape:
        raise ValueError(f"log_beta has shape {beta.shape}, log_alpha {alpha.shape}: both must be 1-D and agree")
    for name, array, back, word in (("log_alpha", alpha, alpha[1:] < alpha[:-1], "falls"),
                                    ("log_beta", beta, beta[1:] > beta[:-1], "rises")):
        if back.any():
            at = int(np.argmax(back))
            before, after = format_value(float(array[at])), format_value(float(array[at + 1]))
            raise ValueError(f"{name} {word} from {before} to {after} at entry {at + 1}: "
                             f"it must be {'non-decreasing' if word == 'falls' else 'non-increasing'}")
    above = np.exp(alpha) + np.exp(beta) > 1 + 1e-9
    if above.any():
        at = int(np.argmax(above))
        raise ValueError(f"log_beta holds {format_value(float(beta[at]))} where log_alpha is {format_value(float(alpha[at]))}: "
                         "alpha + beta must be <= 1")
    return alpha, beta


def integer(name: str, value: Any, low: int = 0, high: int = MAX_COUNT, *, owner: object = None) -> int:
    """Return value as an int in low..high, or raise ValueError.

    A float is refused, because it may be a budget passed in place of a count.
    """
    if type(value) is int and low <= value <= high:
        # converting the value to an array would take ten times as long as this test
        return value
    text = f"an integer in {low}..{'2**53' if high == MAX_COUNT else high}"
    array = _array(name, value, text)
    if array.ndim:
        raise ValueError(f"{name}={short_repr(value)} must be {text}, got an array: pass one number")
    if isinstance(value, str | bytes):
        raise ValueError(f"{name}={short_repr(value)} must be {text}, got a {type(value).__name__}: pass a number, such as 10**6")
    if array.dtype.kind == "f":
        whole = np.isfinite(array) and array == np.floor(array) and low <= array <= high
        # A small whole number with a decimal point may be a budget or a scale.
        advice = ("it is too large" if np.isfinite(array) and array > high and high == MAX_COUNT else
                  f"pass {int(array)}, without a decimal point or an exponent" if whole else
                  "pass a whole number, or check the order of the arguments")
        if whole and array < 1000:
            advice += ", or check the order of the arguments"
        raise ValueError(f"{name}={short_repr(value)} must be {text}, got a float: {advice}")
    try:
        if array.dtype.kind not in "iuO":
            raise TypeError
        number = operator.index(value.item() if isinstance(value, np.generic | np.ndarray) else value)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={short_repr(value)} must be {text}{_advice(name, owner)}") from None
    if not low <= number <= high:
        raise ValueError(f"{name}={short_repr(value)} must be {text}{_advice(name, owner)}")
    return number


def whole_array(name: str, value: ArrayLike, low: int = -MAX_COUNT, high: int = MAX_COUNT) -> NDArray[np.int64]:
    """Return value as a non-empty array of integers in low..high (floats such as 1e6 are allowed), or raise ValueError."""
    array = real_array(name, value, low, high)
    every_entry(name, array, array == np.floor(array), "a whole number")
    return array.astype(np.int64)


def bits(name: str, value: ArrayLike, most: int = 1) -> NDArray[np.int8]:
    """Return value as an array of whole numbers 0..most (at most 127) of any shape, also an empty one, or raise ValueError.

    False and True are 0 and 1.
    """
    text = "0 or 1" if most == 1 else f"a whole number in 0..{most}"
    array = _array(name, value, text)
    if array.dtype.kind == "b":
        return array.view(np.int8)
    if array.dtype.kind not in "iu" and array.size:
        array = real_array(name, value, 0, most)
    if array.ndim == 0 and array not in range(most + 1):
        raise ValueError(f"{name}={short_repr(value)} must be {text}")
    every_entry(name, array, (array >= 0) & (array <= most) & (array == np.floor(array)), text)
    return array.astype(np.int8)


def labels(name: str, value: ArrayLike, count: int) -> NDArray[np.int64]:
    """Return value as a 1-D integer array with entries 0..count-1, also an empty one, or raise ValueError.

    False and True are 0 and 1 if there are two labels.
    """
    array = _array(name, value, "whole numbers, one bin an entry")
    if array.dtype.kind == "b" and count == 2:
        array = array.view(np.int8)
    if array.ndim == 1 and array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu":
        array = real_array(name, value, 0, count - 1)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: it must be one-dimensional, one bin an entry")
    if array.dtype.kind == "f":
        every_entry(name, array, array == np.floor(array), "a whole number")
    low, high = array.min(), array.max()
    if low < 0 or high >= count:
        advice = "; counts go to estimate(counts=...)" if name == "messages" else ""
        raise ValueError(f"{name} holds {low if low < 0 else high}: every entry must be a bin in 0..{count - 1}; "
                         f"pass one bin an entry, not one count a bin{advice}")
    if name == "values" and array.size == count > 2:
        warn(f"values has as many entries as there are bins, {count}: pass the bin of each user, not one count for each bin; "
             f"np.repeat(np.arange({count}), counts) has the bins of all users")
    return array.astype(np.int64)


def counts(name: str, value: ArrayLike, high: int, bins: int) -> NDArray[np.float64]:
    """Return value as an array of integers 0..high, one per bin, or raise ValueError."""
    array = real_array(name, value, 0, high)
    if array.shape != (bins,):
        raise ValueError(f"{name} has shape {array.shape}: it must be ({bins},), one count a bin")
    every_entry(name, array, array == np.floor(array), "a whole number")
    return array


MOST_ENTRIES = 2**27
"""Largest number of doubles in one array, a gigabyte. A larger one would let a single call use up the memory of a small machine."""


def affordable(what: str, entries: float) -> None:
    """Raise InfeasibleError if this number of doubles would take more than a gigabyte."""
    if entries > MOST_ENTRIES:
        raise InfeasibleError(f"{what} would hold {entries:.3g} numbers, {8 * entries / 1e9:.3g} GB: at most 2**27 are made")


def choice(name: str, value: Any, options: tuple[str, ...]) -> str:
    """Return value if it is one of options, or raise ValueError."""
    if not isinstance(value, str) or value not in options:
        near = [word for word in options if isinstance(value, str) and value[:2].lower() == word[:2]]
        advice = f"; did you mean {near[0]!r}?" if near else f"; pass one of these words, such as {name}={options[-1]!r}"
        raise ValueError(f"{name}={short_repr(value)} must be one of {', '.join(map(repr, options))}{advice}")
    return value


def upper_side(bound: Any) -> bool:
    """Return True for "upper" and False for "lower", the bool that internal functions take, or raise ValueError."""
    return choice("bound", bound, ("lower", "upper")) == "upper"


def generator(rng: Any) -> np.random.Generator:
    """Return a generator made of anything that numpy.random.default_rng takes (SPEC 7); a Generator is returned itself.

    Raises ValueError for any other rng, and for True and False, which may be a swapped argument.
    """
    if isinstance(rng, np.random.Generator):
        return rng
    seed = rng
    random = np.random.SeedSequence | np.random.BitGenerator | np.random.RandomState
    try:
        if not (rng is None or isinstance(rng, random) or (isinstance(rng, int | np.integer) and not isinstance(rng, bool))):
            # Some sequences crash NumPy, such as a list that contains itself, so sequences are read as arrays first.
            array = _array("rng", rng, "a seed")
            if array.ndim == 0 or (array.dtype.kind not in "iuO" and array.size):
                raise TypeError
            seed = [operator.index(entry) for entry in array.ravel().tolist()]
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise ValueError(f"rng={short_repr(rng)} must be None, a seed (an integer >= 0, or several), or a Generator, BitGenerator "
                         "or SeedSequence of numpy.random; pass np.random.default_rng(1)") from None


def log_pmfs(log_p: ArrayLike, log_q: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two lists of log probabilities on the same atoms, each of total 1 within 1e-9, or raise ValueError."""
    laws = []
    for name, value in (("log_p", log_p), ("log_q", log_q)):
        array = floats(name, value, "a number <= 0")
        if array.ndim != 1 or array.size == 0:
            raise ValueError(f"{name} must be a non-empty 1-D array, got shape {array.shape}")
        if not (array <= 1e-9).all():
            raise ValueError(f"{name} holds {array[~(array <= 1e-9)][0]:.17g}: every entry must be <= 0: pass np.log(p)")
        total = float(np.exp(array).sum())
        if abs(total - 1) > 1e-9:
            raise ValueError(f"{name} sums to {total:.17g}: the probabilities must sum to 1 within 1e-9: pass np.log(p / p.sum())")
        laws.append(array)
    if laws[0].shape != laws[1].shape:
        raise ValueError(f"log_q has shape {laws[1].shape}, log_p {laws[0].shape}: they must agree")
    return laws[0], laws[1]
