"""The public C interface: its frozen signatures, and calls from an installed extension, from numba and from SciPy."""

import ctypes
import json
import math
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import shufflebounds
from shufflebounds import cython_tails, shuffle, tails
from tests.core.test_cython_abi import signatures

FILE = Path(__file__).parents[1] / "reference" / "cython_tails.json"
EXAMPLE = Path(__file__).parents[2] / "examples" / "kernels"
compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]


def test_interface_of_this_version_is_frozen():
    frozen = json.loads(FILE.read_text())
    assert frozen["version"] == cython_tails.version
    # A function that is added needs a new version of the interface, which freezes its signature.
    assert signatures(cython_tails) == frozen["functions"]


@pytest.fixture(scope="module")
def pricing(tmp_path_factory):
    if sys.platform != "win32" and shutil.which(compiler) is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("outside")
    for name in ("setup.py", "pricing.pyx", "tail.c"):
        shutil.copy(EXAMPLE / name, folder)
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps", "--no-index", "--target"]
    subprocess.run([*command, str(folder / "site"), str(folder)], check=True, capture_output=True, cwd=folder)
    sys.path.insert(0, str(folder / "site"))
    yield __import__("pricing")
    sys.path.remove(str(folder / "site"))


@pytest.mark.slow
def test_an_extension_installed_by_pip(pricing):
    k = 300.0
    parameters = {"binom": (1000, 0.25), "poisson": (250,), "nbinom": (250.5, 0.5), "hypergeom": (4000, 1000, 1000)}
    kinds = ("logpmf", "logcdf", "logsf")
    known = [getattr(tails, f"{law}_{kind}")(k, *held) for law, held in parameters.items() for kind in kinds]
    # The ufuncs use vector code (tails.h), whose last bits differ from those of the scalar kernels.
    assert pricing.laws(k) == pytest.approx(known, rel=1e-14, abs=0)
    known_incomplete = (
        tails.log_gammainc(k, 250), tails.log_gammaincc(k, 250), tails.log_betainc(k, 250, 0.25), tails.log_betaincc(k, 250, 0.25),
    )
    assert pricing.incomplete(k, 250.0, 0.25) == pytest.approx(known_incomplete, rel=1e-14, abs=0)
    assert pricing.mixed(0.25, k, 1000.0) == pytest.approx(np.exp(known[0::2][:2]), rel=1e-12)
    p = np.linspace(0.01, 0.99, 300)
    value, error = pricing.poisson_binom_logsf(p, 200.0)
    assert abs(value - tails.poisson_binom_logsf(200, p)) <= error + 1e-12
    assert pricing.poisson_binom_tails(p, 200.5) == pytest.approx(
        (tails.poisson_binom_logcdf(200.5, p), tails.poisson_binom_logsf(200.5, p)), rel=1e-11)
    weights = np.log(np.full(50, 0.02))
    assert pricing.compound_binom_logsf(weights, 30.0) == tails.compound_binom_logsf(30, 0, weights, 0.5)
    value, error = pricing.shift(1000.0, 0.25, 0.125)
    pair = shuffle.BinomialNoise(1000, 0.25).pairs()[0]
    assert pair.log_delta(0.125, bound="lower") <= value <= pair.log_delta(0.125)
    assert 0 < error < 1e-9
    stronger = shuffle.StrongerClones(10**6, 4.0)
    lower, upper, eps = pricing.clones(1e6, 4.0, 0.05, 1e-8)
    assert (lower, upper) == pytest.approx((stronger.log_delta(0.05, bound="lower"), stronger.log_delta(0.05)), rel=1e-12)
    assert eps == pytest.approx(stronger.epsilon(1e-8), rel=1e-9)
    # The expected value is E max(0, S) for 2 users, each with the value +1 or -1.
    lower, upper = pricing.excess(np.array([1.0, -1.0]), np.log([0.5, 0.5]), 2.0)
    assert lower <= math.log(0.5) <= upper
    # Arguments outside of the range give NaN and raise no exception.
    assert all(math.isnan(v) for v in pricing.clones(0.5, 4.0, 0.05, 1e-8))
    assert math.isnan(pricing.poisson_binom_logsf(np.array([1.5]), 0.0)[0])
    assert all(math.isnan(v) for v in pricing.laws(math.nan))


@pytest.mark.slow
def test_an_extension_in_c_calls_the_kernels_through_the_header(pricing):
    tail = __import__("tail")
    trials = tail.least_trials(-20.0)
    assert tails.binom_logsf(0.6 * trials, trials, 0.5) <= -20 < tails.binom_logsf(0.6 * (trials - 1), trials - 1, 0.5)
    value, error = tail.all_ones(0.25, 7)
    assert value == pytest.approx(-7 * math.log(4), rel=1e-14)
    assert 0 <= error < 1e-9


def test_the_c_header_declares_every_kernel():
    header = (Path(shufflebounds.__file__).parent / "include" / "shufflebounds_python.h").read_text()
    entries = dict(re.findall(r'^        \{"(\w+)", "(.*)", &sb_\1\},$', header, re.M))
    assert entries == signatures(cython_tails)
    assert set(re.findall(r"^static \w+ \(\*sb_(\w+)\)\(", header, re.M)) == set(entries)


def test_the_example_calls_every_kernel():
    source = (EXAMPLE / "pricing.pyx").read_text()
    assert {name for name in signatures(cython_tails) if f"kernels.{name}(" not in source} == set()


@pytest.mark.slow
def test_numba_calls_a_kernel():
    pytest.importorskip("numba")
    from numba.extending import get_cython_function_address

    address = get_cython_function_address("shufflebounds.cython_tails", "binom_logsf")
    logsf = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_double] * 3)(address)
    assert logsf(9000.0, 1e4, 0.5) == tails.binom_logsf(9000, 10**4, 0.5)


@pytest.mark.parametrize("k", [0, 3, 9, 10])
def test_scipy_integrates_a_kernel(k):
    from scipy import LowLevelCallable
    from scipy.integrate import quad

    # If p is uniform on [0, 1], every count 0..n has the same probability.
    sf = LowLevelCallable.from_cython(cython_tails, "quad_binom_sf")
    assert quad(sf, 0, 1, args=(k, 10.0))[0] == pytest.approx((10 - k) / 11, abs=1e-12)
    pmf = LowLevelCallable.from_cython(cython_tails, "quad_binom_pmf")
    assert quad(pmf, 0, 1, args=(k, 10.0))[0] == pytest.approx(1 / 11, rel=1e-12)


def c_function(name, *kinds):
    """Return a function of the C interface as a Python callable."""
    capsule = cython_tails.__pyx_capi__[name]
    call, words = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
    call.restype, call.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    words.restype, words.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return ctypes.CFUNCTYPE(ctypes.c_double, *kinds)(call(capsule, words(capsule)))


@pytest.mark.parametrize("kind", ["logcdf", "logsf"])
def test_poisson_binomial_tails_equal_those_of_python(kind):
    pointer = ctypes.POINTER(ctypes.c_double)
    inside = c_function(f"poisson_binom_{kind}", pointer, pointer, ctypes.c_ssize_t, ctypes.c_double)

    def value(k, p, counts=None):
        p, counts = np.asarray(p, float), None if counts is None else np.asarray(counts, float)
        return inside(p.ctypes.data_as(pointer), None if counts is None else counts.ctypes.data_as(pointer), p.size, k)

    python = getattr(tails, f"poisson_binom_{kind}")
    fair = [0.5] * 100
    # For fair bits, the probabilities are integers divided by 2**100.
    above = sum(math.comb(100, j) for j in range(61, 101))
    exact = math.log(above / 2**100) if kind == "logsf" else math.log1p(-above / 2**100)
    assert value(60, fair) == pytest.approx(exact, rel=1e-11)
    rng = np.random.default_rng(3)
    for counts in (None, rng.integers(0, 4, 40)):
        for p in (rng.random(40), np.where(rng.random(40) < 0.3, rng.integers(0, 2, 40), rng.random(40))):
            for k in (-math.inf, -1.0, 0.0, 7.0, 12.5, 19.0, 20.0, 33.0, 40.0, 500.0, math.inf):
                assert value(k, p, counts) == pytest.approx(python(k, p, counts), rel=1e-10, abs=1e-12)
    assert value(3.5, [0.25], [7]) == pytest.approx(python(3.5, [0.25], [7]), rel=1e-12)
    assert value(1.0, [1.0, 0.0, 1.0]) == python(1.0, [1.0, 0.0, 1.0])
    for k, p, counts in ((math.nan, [0.5], None), (1.0, [1.5], None), (1.0, [math.nan], None), (1.0, [0.5], [0.5]),
                         (1.0, [0.5], [-1])):
        assert math.isnan(value(k, p, counts))


if __name__ == "__main__":
    FILE.write_text(json.dumps({"version": cython_tails.version, "functions": signatures(cython_tails)}, indent=2) + "\n")
