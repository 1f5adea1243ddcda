"""The C library: its frozen interface, the bits of its answers beside those of Python, its examples and its builds.

After a function is added, run ``python -m tests.core.test_library``, which rewrites the frozen interface, and check the difference.
"""

import ctypes
import functools
import json
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import shufflebounds
from shufflebounds import cython_tails, tails
from shufflebounds._core import _gaussian
from tests.core.test_cython_abi import signatures
from tests.core.test_hostile import adversarial

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests" / "reference" / "library_abi.json"
HEADER = Path(shufflebounds.get_include()) / "shufflebounds.h"
FOLDER = Path(shufflebounds.get_library())
EXAMPLE = ROOT / "examples" / "library"
CALLS = Path(__file__).with_name("library_calls.c")
COMPILER = (sysconfig.get_config_var("CC") or "cc").split()[0]
NAMES = [
    "binom_logpmf", "binom_logcdf", "binom_logsf", "poisson_logpmf", "poisson_logcdf", "poisson_logsf", "nbinom_logpmf",
    "nbinom_logcdf", "nbinom_logsf", "hypergeom_logpmf", "hypergeom_logcdf", "hypergeom_logsf", "log_gammainc", "log_gammaincc",
    "log_betainc", "log_betaincc",
]
DOUBLES = ctypes.POINTER(ctypes.c_double)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the names of the library's files on other systems differ")
compiled = pytest.mark.skipif(
    shutil.which(COMPILER) is None or "LD_PRELOAD" in os.environ, reason="no C compiler, or a library with sanitizers"
)


def interface():
    """Return SB_ABI of the header, and {name: signature} of its functions without the names of the parameters."""
    text = re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)
    abi = int(re.search(r"#define SB_ABI (\d+)", text)[1])
    functions = {}
    for kind, name, inside in re.findall(r"^SB_API (\w+) (sb_\w+)\(([^)]*)\);", text, re.M):
        types = [re.sub(r"\w+$", "", " ".join(argument.split())).strip() for argument in inside.split(",")]
        functions[name] = f"{kind} ({', '.join(types) or 'void'})"
    return abi, functions


def library():
    """Return the shared library, with the types of its functions."""
    loaded = ctypes.CDLL(str(FOLDER / f"libshufflebounds.so.{interface()[0]}"))
    kinds = {
        "double": ctypes.c_double, "int": ctypes.c_int, "size_t": ctypes.c_size_t, "void": None,
        "const double *const *": ctypes.POINTER(DOUBLES),
    }
    for name, signature in interface()[1].items():
        kind, inside = re.fullmatch(r"(\w+) \((.*)\)", signature).groups()
        function = getattr(loaded, name)
        function.restype = kinds[kind]
        function.argtypes = [kinds.get(t, DOUBLES) for t in inside.split(", ") if t != "void"]
    return loaded


LIBRARY = library() if sys.platform == "linux" else None


def pointer(values):
    return values.ctypes.data_as(DOUBLES) if values is not None else None


def array(function, *columns):
    """Return the results of sb_array for columns of one length."""
    columns = [np.ascontiguousarray(c, float) for c in columns]
    out = np.full(len(columns[0]), 7.0)
    LIBRARY.sb_array(function, out.size, (DOUBLES * len(columns))(*map(pointer, columns)), pointer(out))
    return out


def capsule(name):
    """Return a function of cython_tails."""
    found = cython_tails.__pyx_capi__[name]
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    kind, inside = re.fullmatch(r"(\w+) \((.*)\)", signatures(cython_tails)[name]).groups()
    kinds = {"double": ctypes.c_double, "int": ctypes.c_int, "Py_ssize_t": ctypes.c_ssize_t, "void": None}
    types = [kinds.get(t, DOUBLES) for t in inside.split(", ")]
    return ctypes.CFUNCTYPE(kinds[kind], *types)(address(found, signatures(cython_tails)[name].encode()))


def bits(values):
    values = np.array(values, float)
    values[np.isnan(values)] = np.nan
    return values.view(np.int64).tolist()


def test_functions_keep_their_signatures_within_one_abi_number():
    frozen = json.loads(FILE.read_text())
    abi, functions = interface()
    assert abi == frozen["abi"] == LIBRARY.sb_abi(), "after a new SB_ABI run python -m tests.core.test_library"
    changed = {name: (known, functions.get(name)) for name, known in frozen["functions"].items() if functions.get(name) != known}
    assert not changed, f"raise SB_ABI in shufflebounds.h: frozen and now are {changed}"
    assert functions == frozen["functions"], "functions were added: run python -m tests.core.test_library"


def test_the_order_of_the_functions_of_arrays_is_frozen():
    listed = re.search(r"enum sb_function \{(.*?)\}", HEADER.read_text(), re.S)[1]
    assert re.findall(r"SB_\w+", listed) == [f"SB_{name.upper()}" for name in NAMES]


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_the_library_exports_the_declared_functions_and_needs_the_c_library_only():
    path = FOLDER / f"libshufflebounds.so.{interface()[0]}"
    listed = subprocess.run(["nm", "-D", str(path)], check=True, capture_output=True, text=True).stdout
    assert set(re.findall(r" T (\w+)$", listed, re.M)) == set(interface()[1])
    wanted = {name.split("@")[0] for name in re.findall(r" U (\S+)$", listed, re.M)}
    assert not {name for name in wanted if re.match(r"Py|_Py|malloc|calloc|realloc|free$", name)}


@pytest.mark.parametrize("name", NAMES)
def test_arrays_have_the_bits_of_the_ufuncs(name):
    ufunc = getattr(tails, name)
    rng = np.random.default_rng(NAMES.index(name))
    columns = [adversarial(rng, 3000) for _ in range(ufunc.nin)]
    n, p = np.floor(10 ** rng.uniform(0, 15.9, 2000)), rng.random(2000) ** rng.integers(1, 9, 2000)
    near = np.floor(n * p + np.sqrt(n * p) * rng.uniform(-8, 8, 2000))
    plain = {2: (near, n * p), 3: (near, n, p), 4: (np.floor(near * p), n, np.floor(n * p), np.floor(n * p))}[ufunc.nin]
    columns = [np.concatenate(pair) for pair in zip(columns, plain, strict=True)]
    assert bits(array(NAMES.index(name), *columns)) == bits(ufunc(*columns))


@pytest.mark.parametrize("name", NAMES)
def test_single_calls_have_the_bits_of_cython_tails(name):
    known, function = capsule(name), getattr(LIBRARY, f"sb_{name}")
    rng = np.random.default_rng(50 + NAMES.index(name))
    points = np.transpose([adversarial(rng, 1500) for _ in function.argtypes]).tolist()
    points += [(float(k), 30.0, 0.25, 11.0)[: len(function.argtypes)] for k in range(-1, 32)]
    assert bits([function(*point) for point in points]) == bits([known(*point) for point in points])


def test_an_unknown_function_gives_nan():
    column = np.ones(300)
    for function in (-1, len(NAMES), 2**31 - 1):
        assert np.isnan(array(function, column, column, column, column)).all()


@pytest.mark.parametrize("n", [1, 7, 40])
def test_tails_against_exact_fractions(n):
    p = Fraction(3, 8)
    masses = [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]
    for k in range(n):
        above = sum(masses[k + 1 :])
        assert LIBRARY.sb_binom_logsf(k, n, 0.375) == pytest.approx(math.log(above), rel=1e-13, abs=3e-14)
        one = np.full(n, 0.375)
        work, error = np.empty(2 * n), ctypes.c_double()
        value = LIBRARY.sb_poisson_binom_logsf(pointer(one), None, n, k, pointer(work), error)
        assert abs(value - math.log(above)) <= error.value + 4e-16 * (1 + abs(value))


@pytest.mark.parametrize("kind", ["logcdf", "logsf"])
def test_poisson_binomial_tails_have_the_bits_of_cython_tails(kind):
    known, function = capsule(f"poisson_binom_{kind}"), getattr(LIBRARY, f"sb_poisson_binom_{kind}")
    rng = np.random.default_rng(9)
    for groups in [1, 2, 5, 24, 25, 80, 700] * 6:
        p = np.where(rng.random(groups) < 0.1, rng.integers(0, 2, groups), rng.random(groups) ** rng.integers(1, 9))
        counts = np.floor(10 ** rng.uniform(-0.5, rng.uniform(0.5, 6), groups))
        spread = np.sqrt((counts * p * (1 - p)).sum())
        for k in np.floor((counts * p).sum() + spread * rng.uniform(-9, 9, 4)):
            work, error = np.full(2 * groups + 1, 7.0), ctypes.c_double(-1)
            value = function(pointer(p), pointer(counts), groups, k, pointer(work), error)
            assert bits([value]) == bits([known(pointer(p), pointer(counts), groups, k)])
            assert 0 <= error.value < 1e-6
            assert work[-1] == 7.0
    bad = np.array([0.5, np.nan])
    assert math.isnan(function(pointer(bad), None, 2, 1.0, pointer(np.empty(4)), None))
    assert math.isnan(function(pointer(bad), None, 0, 1.0, pointer(np.empty(4)), None))


def budgets(rng, size):
    """Return users, local eps, eps and delta, a third of them adversarial."""
    columns = [np.floor(10 ** rng.uniform(0, 9, size)), 10 ** rng.uniform(-1, 1, size), 10 ** rng.uniform(-3, 0, size),
               10 ** rng.uniform(-60, 0, size)]
    return np.transpose([np.where(rng.random(size) < 0.1, adversarial(rng, size), column) for column in columns]).tolist()


def test_clone_bounds_have_the_bits_of_cython_tails():
    deltas, found = capsule("clones_log_delta"), capsule("clones_epsilon")
    low, high, one, two = (ctypes.c_double() for _ in range(4))
    for i, (users, local, eps, delta) in enumerate(budgets(np.random.default_rng(1), 600)):
        deltas(users, local, eps, i % 2, low, high)
        LIBRARY.sb_clones_log_delta(users, local, eps, i % 2, one, two)
        assert bits([low.value, high.value]) == bits([one.value, two.value])
        for upper in (0, 1):
            got = LIBRARY.sb_clones_epsilon(users, local, delta, i % 2, upper)
            assert bits([got]) == bits([found(users, local, delta, i % 2, upper)])
        inside = users == users and 1 <= users <= 2**53 and users % 1 == 0 and 0 < local <= 700
        assert math.isnan(one.value) == math.isnan(two.value) == (not (inside and 0 <= eps < math.inf))
        assert math.isnan(got) == (not (inside and 0 < delta <= 1))


@pytest.mark.parametrize("local", [701.0, 746.0, 1e5, 1.7e308, math.inf, math.nan])
def test_budgets_of_which_the_probability_of_a_clone_underflows_are_refused(local):
    """The sum over the clones would take years for a probability of 0."""
    low, high = ctypes.c_double(), ctypes.c_double()
    for function in (LIBRARY.sb_clones_log_delta, capsule("clones_log_delta")):
        function(2e8, local, 0.5, 1, low, high)
        assert np.isnan([low.value, high.value]).all()
    assert math.isnan(LIBRARY.sb_clones_epsilon(2e8, local, 1e-6, 1, 1))


def test_gaussian_bounds_have_the_bits_of_the_kernel_and_hold_the_exact_value():
    flint = pytest.importorskip("flint")
    low, high = ctypes.c_double(), ctypes.c_double()
    for i, (_, sigma, eps, delta) in enumerate(budgets(np.random.default_rng(2), 400)):
        LIBRARY.sb_gaussian_log_delta(sigma, 1.0, eps, low, high)
        inside = 1e-6 <= sigma <= 1e12
        assert math.isnan(low.value) == math.isnan(high.value) == (not (inside and 0 <= eps < math.inf))
        if inside and 0 < delta <= 1:
            got = LIBRARY.sb_gaussian_epsilon(sigma, 1.0, delta, i % 2)
            assert bits([got]) == bits([_gaussian.gaussian_epsilon(sigma, 1.0, delta, i % 2)])
        if inside and 0 <= eps < 100:
            value, error = _gaussian.gaussian_log_delta(sigma, 1.0, eps)
            assert bits([low.value, high.value]) == bits([min(0, value - error), min(0, value + error)])
            if i % 8 == 0:
                with flint.ctx.workprec(600):
                    s, e = flint.arb(sigma), flint.arb(eps)
                    first, second = ((e * s + sign / (2 * s)) / flint.arb(2).sqrt() for sign in (-1, 1))
                    exact = ((first.erfc() - e.exp() * second.erfc()) / 2).log()
                assert low.value <= exact
                assert exact <= high.value


def test_an_eps_too_large_to_square_keeps_both_bounds():
    low, high = ctypes.c_double(), ctypes.c_double()
    LIBRARY.sb_gaussian_log_delta(1.0, 1.0, 1e141, low, high)
    assert low.value == -math.inf < high.value < -1e100


@functools.cache
def config(*options):
    done = subprocess.run([sys.executable, "-m", "shufflebounds", "config", *options], check=True, capture_output=True, text=True)
    return done.stdout.split()


def test_config_without_an_option_names_the_options(capsys):
    from shufflebounds.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["config"])
    assert ended.value.code == 2
    assert "--cflags" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config")
def test_pkg_config_finds_the_library():
    environment = {**os.environ, "PKG_CONFIG_PATH": config("--pkgconfigdir")[0]}
    command = ["pkg-config", "--cflags", "--libs", "--static", "shufflebounds"]
    flags = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout.split()
    assert {"-lshufflebounds", "-lm"} <= set(flags)
    for flag, file in (("-I", "shufflebounds.h"), ("-L", "libshufflebounds.a")):
        assert any(Path(word[2:], file).is_file() for word in flags if word.startswith(flag))


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("options", [("--libs",), ("--static",)])
def test_the_calculator_agrees_with_python(tmp_path, options):
    from shufflebounds import shuffle

    program = tmp_path / "calculator"
    flags = ["-Wall", "-Wextra", "-Werror", *config("--cflags", *options)]
    subprocess.run([COMPILER, str(EXAMPLE / "calculator.c"), *flags, "-o", str(program)], check=True)

    def answer(*words):
        done = subprocess.run([program, *words], check=True, capture_output=True, text=True)
        return [float(word) for word in done.stdout.split()]

    known = shuffle.StrongerClones(10**6, 4.0)
    assert answer("eps", "1000000", "4", "1e-8") == [known.epsilon(1e-8, bound="lower"), known.epsilon(1e-8)]
    assert answer("users", "0.5", "4", "1e-8") == [shuffle.StrongerClones.calibrate(eps=0.5, delta=1e-8, local_eps=4.0).users]
    assert subprocess.run([program, "eps"], capture_output=True).returncode == 2


@pytest.mark.slow
@compiled
@pytest.mark.skipif(shutil.which("c++") is None, reason="no C++ compiler")
def test_the_header_is_one_of_c_plus_plus(tmp_path):
    source = tmp_path / "one.cpp"
    source.write_text("#include <shufflebounds.h>\nint main() { return !(sb_binom_logsf(60, 100, 0.5) < -4); }\n")
    program = tmp_path / "one"
    flags = ["-Wall", "-Wextra", "-Werror", *config("--cflags", "--libs")]
    subprocess.run(["c++", str(source), *flags, "-o", str(program)], check=True)
    assert subprocess.run([program]).returncode == 0


@compiled
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="no cargo")
def test_the_example_in_rust(tmp_path):
    from shufflebounds import shuffle

    folder = tmp_path / "rust"
    shutil.copytree(EXAMPLE / "rust", folder, ignore=shutil.ignore_patterns("target"))
    # cargo runs the build script in the folder of the package, in which a relative path leads nowhere
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": str(FOLDER.parents[1])}
    command = ["cargo", "run", "--quiet", "--offline", "--", "1000000", "4", "1e-8"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder, env=environment)
    known = shuffle.StrongerClones(10**6, 4.0)
    assert [float(word) for word in done.stdout.split()] == [known.epsilon(1e-8, bound="lower"), known.epsilon(1e-8)]


@compiled
@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / "src" / "_core").is_dir(), reason="needs the sources")
@pytest.mark.parametrize("build", ["clang", "O1"])
def test_other_builds_have_the_same_bits(tmp_path, build):
    """Random and adversarial calls of every function (library_calls.c) end, and have the same results.

    The sanitizers see the other tests of this file, which .ci/run repeats with a library that they watch.
    """
    compiler, flags = {"clang": ("clang", ["-O2"]), "O1": (COMPILER, ["-O1"])}[build]
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    core = ROOT / "src" / "_core"
    plain, other = tmp_path / "plain", tmp_path / "other"
    subprocess.run([COMPILER, "-O2", str(CALLS), *config("--cflags", "--libs"), "-o", str(plain)], check=True)
    sources = [str(CALLS), str(core / "shufflebounds.c"), f"-I{core}", "-ffp-contract=off", "-fno-math-errno", "-w"]
    subprocess.run([compiler, *flags, *sources, "-o", str(other), "-lm"], check=True)
    outputs = [subprocess.run([program, "3000"], check=True, capture_output=True, text=True).stdout for program in (plain, other)]
    assert outputs[0] == outputs[1]


if __name__ == "__main__":
    abi, functions = interface()
    FILE.write_text(json.dumps({"abi": abi, "functions": functions}, indent=2) + "\n")
