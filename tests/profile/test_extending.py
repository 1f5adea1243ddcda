"""The protocol of docs/extending.md, taken from the page: short, right on both sides, and answering everything."""

import math
import re
from pathlib import Path

import mpmath
import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def lines():
    block = PAGE.split("```pycon")[1].split("```")[0]
    return [line[4:] for line in block.splitlines() if line.startswith((">>>", "..."))]


@pytest.fixture(scope="module")
def protocol(lines):
    names = {"__name__": __name__}
    exec("\n".join(lines), names)
    return names["PoissonCount"]


def test_it_is_short(lines):
    written = [line for line in lines if line.strip()]
    assert len(written) < 40
    assert f"The whole protocol, {len(written)} lines" in PAGE


@pytest.mark.parametrize("rate", [0.25, 3.0, 40.0])
@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 2.5])
def test_sides_enclose_the_sum_over_all_outcomes(protocol, rate, eps):
    mp = mpmath.mp.clone()
    mp.dps = 40
    pmf = [mp.mpf(0), *(mp.exp(-mp.mpf(rate)) * mp.mpf(rate) ** k / mp.factorial(k) for k in range(400))]
    factor = mp.exp(mp.mpf(eps))
    sticks = [
        mp.fsum(max(mp.mpf(0), p - factor * q) for p, q in zip(first, second))
        for first, second in ((pmf, pmf[1:]), (pmf[1:], pmf))
    ]
    exact = mp.log(max(sticks))
    profile = protocol(rate)
    lower, upper = (profile.log_delta(eps, bound=side) for side in ("lower", "upper"))
    assert lower <= exact <= upper
    assert upper - lower < 1e-9 * (1 - lower)


def test_it_answers_everything(protocol):
    profile = protocol.calibrate(0.7, 1e-5)
    assert profile.delta(0.7) <= 1e-5
    assert 0.7 * (1 - 1e-6) < profile.epsilon(1e-5) <= 0.7
    assert profile == protocol(profile.rate)
    assert re.fullmatch(r"PoissonCount\(rate=[\d.]+\)", repr(profile))
    assert profile.tradeoff().beta(0.1) <= 0.9
    assert profile.rdp(2.0) == math.inf
    week = profile.self_compose(7)
    assert profile.epsilon(1e-6, bound="lower") <= week.epsilon(1e-6, bound="lower") <= week.epsilon(1e-6)
    with pytest.raises(ValueError, match="rate=-1 must be in"):
        protocol(-1.0)
