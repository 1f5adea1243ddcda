"""The validator: which values it accepts and which it refuses, with a message that names argument, value and range."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile import DominatingPair, extend
from shufflebounds.shuffle import PersonalizedBits
from tests.strategies import thinned


@pytest.mark.parametrize("good", [3, np.int8(3), np.uint64(3), np.array(3)])
def test_integers_of_every_kind(good):
    answer = extend.integer("count", good)
    assert answer == 3
    assert type(answer) is int


@pytest.mark.parametrize(
    "bad",
    [
        -1,
        2**53 + 1,
        2**200,
        0.5,
        3.0,
        np.float32(3),
        Fraction(3),
        Decimal(3),
        math.nan,
        math.inf,
        "3",
        b"3",
        None,
        True,
        np.bool_(True),
        [3],
        np.array([3]),
        (),
        [[1], [2, 3]],
        3j,
        object(),
        {},
    ],
)
def test_integers_refused(bad):
    with pytest.raises(ValueError, match=r"^count=.* must be an integer in 0\.\.2\*\*53"):
        extend.integer("count", bad)


def test_integer_bounds_are_named():
    assert extend.integer("bins", 5, 1, 5) == 5
    with pytest.raises(ValueError, match=r"^bins=6 must be an integer in 1\.\.5; pass the number of bins, such as 100$"):
        extend.integer("bins", 6, 1, 5)
    assert extend.integer("n", 2**53) == 2**53


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_reals_stay_in_their_interval(value):
    inside = 0 < value <= 1
    if inside:
        assert extend.real("p", value, 0, 1, open_low=True) == value
    else:
        with pytest.raises(ValueError, match=r"^p=.* must be in \(0, 1\]$"):
            extend.real("p", value, 0, 1, open_low=True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, r"\[0, 1\]"),
        ({"open_low": True}, r"\(0, 1\]"),
        ({"open_high": True}, r"\[0, 1\)"),
        ({"open_low": True, "open_high": True}, r"\(0, 1\)"),
    ],
)
def test_intervals_are_printed(options, text):
    for end, is_open in ((0.0, options.get("open_low")), (1.0, options.get("open_high"))):
        if is_open:
            with pytest.raises(ValueError, match=f"must be in {text}$"):
                extend.real("p", end, 0, 1, **options)
        else:
            assert extend.real("p", end, 0, 1, **options) == end
    with pytest.raises(ValueError, match=rf"^p=2 must be in {text}$"):
        extend.real("p", 2, 0, 1, **options)


@pytest.mark.parametrize(
    ("low", "open_low", "text"),
    [(0, False, "finite and >= 0"), (0, True, "finite and > 0"), (-math.inf, False, "finite")],
)
def test_half_lines_are_printed(low, open_low, text):
    with pytest.raises(ValueError, match=f"^x=inf must be {text}$"):
        extend.real("x", math.inf, low, open_low=open_low)


@pytest.mark.parametrize(
    "bad",
    [
        "0.5",
        b"1",
        None,
        True,
        [True, False],
        object(),
        {},
        {1},
        1j,
        [0.5, None],
        [0.5, "a"],
        [[0.1], [0.2, 0.3]],
        np.array(["a"]),
        np.datetime64("2020-01-01"),
        10**400,
    ],
)
def test_not_numbers(bad):
    with pytest.raises(ValueError, match=r"^p\b.*in \[0, 1\]"):
        extend.real_array("p", bad, 0, 1)


def test_arrays():
    given_ = [[0, 1], [0.5, 0.25]]
    answer = extend.real_array("p", given_, 0, 1)
    assert answer.dtype == np.float64
    assert answer.tolist() == given_
    source = np.array([0.5])
    assert extend.real_array("p", source, 0, 1) is not source
    with pytest.raises(ValueError, match=r"^p holds 3: every entry must be in \[0, 1\]$"):
        extend.real_array("p", [0.5, 3, 4], 0, 1)
    with pytest.raises(ValueError, match=r"^p must not be empty"):
        extend.real_array("p", [], 0, 1)
    with pytest.raises(ValueError, match=r"^p must be a single number, got an array of shape \(1,\)"):
        extend.real("p", [0.5], 0, 1)
    # Integers of more than 64 bits are numbers, too.
    assert extend.real("x", 2**70) == 2.0**70


def test_choice():
    assert extend.choice("view", "sums", ("sums", "records")) == "sums"
    for bad in ("Sums", "", None, 3, ["sums"]):
        with pytest.raises(ValueError, match=r"^view=.* must be one of 'sums', 'records'; "):
            extend.choice("view", bad, ("sums", "records"))


def noise(rng):
    """Return a number that is drawn with the given generator or seed."""
    return GaussianMechanism(1.0).randomize(0.0, rng).item()


def test_generator():
    rng = np.random.default_rng(1)
    one, two = noise(rng), noise(rng)
    assert [one, two] == [noise(again) for again in [np.random.default_rng(1)] * 2]
    assert noise(1) == one != two
    for bad in ("a", -1, 1.5, object(), [0.5], [-1], [[1], [2, 3]], "12", np.float64(3)):
        with pytest.raises(ValueError, match=r"^rng=.* must be None, a seed .*; pass np.random.default_rng\(1\)$"):
            noise(bad)


@pytest.mark.parametrize("make", thinned([
    lambda: 7, lambda: np.uint64(7), lambda: 2**200, lambda: [1, 2], lambda: (3,), lambda: np.array([4, 5]), lambda: [2**70, 1],
    list, lambda: np.random.SeedSequence(5), lambda: np.random.SeedSequence(5).spawn(2)[1], lambda: np.random.PCG64(3), lambda:
    np.random.Philox(3), lambda: [[1, 2], [3, 4]], pytest.param(lambda: np.random.RandomState(3), marks=pytest.mark.skipif(
        np.lib.NumpyVersion(np.__version__) < "2.2.0", reason="NumPy takes a RandomState since 2.2")),
], 3))
def test_generator_takes_all_that_default_rng_takes(make):
    assert noise(make()) == noise(np.random.default_rng(make()))



class _Adversarial:
    def __repr__(self):
        raise RuntimeError("no repr")


def _unbounded_loss():
    nested = []
    nested.append(nested)
    return nested


@pytest.mark.parametrize(
    "value", [np.zeros((1, 2)).view(np.matrix), _unbounded_loss(), True, -1, 0.5, _Adversarial()],
    ids=lambda value: type(value).__name__,
)
def test_generator_takes_nothing_else(value):
    with pytest.raises(ValueError, match=r"^rng=.* must be None, a seed"):
        noise(value)


@pytest.mark.parametrize(
    "value", [10**5000, 10**400, "0.5", True, 1j, None, _unbounded_loss(), _Adversarial(), np.ma.masked_array([0.5], [True])],
    ids=lambda value: type(value).__name__,
)
def test_every_message_names_argument_and_range(value):
    for check in (lambda: extend.real("x", value, 0, 1), lambda: extend.integer("x", value, 0, 9),
                  lambda: DominatingPair.from_pmfs(value, value)):
        with pytest.raises(ValueError, match=r"^(x|log_p)\b.*must be") as caught:
            check()
        assert len(str(caught.value)) < 300


def test_views_of_nothing_are_not_copied():
    with pytest.raises(ValueError, match=r"^x has 1000000000000 entries"):
        extend.real_array("x", np.broadcast_to(0.5, (10**6, 10**6)), 0, 1)


def test_bits_may_be_booleans():
    for value in ([True, False, True], np.array([True, False, True])):
        one, other = (PersonalizedBits([1.0, 2.0, 3.0], bits=bits, target=0) for bits in (value, [1, 0, 1]))
        assert one == other
