"""The number of modules that are imported at the start; seconds are not compared, because they depend on the machine.

Subpackages and SciPy are imported on first use.
"""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

HEAVY = ("scipy.optimize", "scipy.stats", "scipy.fft", "scipy.special", "scipy.linalg", "matplotlib", "importlib.metadata", "tqdm")


def imported(code):
    """Return the modules that a fresh interpreter has after running the code."""
    code += "; import sys; print(*sys.modules, file=sys.stderr)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr.split()


def heavy(modules):
    return [m for m in modules if any(m == h or m.startswith(h + ".") for h in HEAVY)]


def test_plain_import_is_few_files():
    modules = imported("import shufflebounds")
    own = {m for m in modules if m.startswith("shufflebounds")}
    assert own == {"shufflebounds", "shufflebounds._base", "shufflebounds._base.lazy"}
    assert not heavy(modules)
    assert "numpy" not in modules


@pytest.mark.parametrize("subpackage", ["tails", "tradeoff", "profile", "shuffle", "mechanisms", "sampling"])
def test_rooms_come_without_scipy(subpackage):
    modules = imported(f"import shufflebounds; shufflebounds.{subpackage}")
    assert f"shufflebounds.{subpackage}" in modules
    assert not heavy(modules)
    assert "shufflebounds.published" not in modules


def test_the_version_comes_without_numpy():
    modules = imported("import sys; from shufflebounds.__main__ import main; sys.argv = ['shufflebounds', '--version']; main()")
    assert "shufflebounds.__main__" in modules
    assert "numpy" not in modules


def test_one_answer_of_the_command():
    words = ["epsilon", "stronger-clones", "--users", "1e6", "--local-eps", "4", "--delta", "1e-8"]
    modules = imported(f"from shufflebounds.cli import main; main({words})")
    assert not heavy(modules)
    assert not {"shufflebounds.published", "shufflebounds.cli.curve_command"} & set(modules)


def test_a_first_answer_of_shuffled_noise_comes_without_optimizers():
    modules = imported("from shufflebounds.mechanisms import LaplaceMechanism; LaplaceMechanism(1.0).shuffled(1000).epsilon(1e-6)")
    assert "shufflebounds._engines.datasets.pair_weights" in modules
    assert not heavy(modules)


@pytest.mark.parametrize("asked", [None, "2"])
def test_the_command_keeps_no_threads_for_matrices(asked):
    code = ("import os, sys; from shufflebounds.__main__ import main; sys.argv = ['shufflebounds', '--help']\n"
            "try: main()\n"
            "except SystemExit: pass\n"
            "print(os.environ['OPENBLAS_NUM_THREADS'])")
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    environment |= {"OPENBLAS_NUM_THREADS": asked} if asked else {}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split()[-1] == (asked or "1")


def test_every_public_name_can_be_had():
    import shufflebounds

    assert set(shufflebounds.__all__) <= set(dir(shufflebounds))
    for name in shufflebounds.__all__:
        assert getattr(shufflebounds, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = shufflebounds.absent


def test_interrupted_while_it_is_imported():
    # The signal handler is installed before the library is imported.
    code = ("import signal, sys, importlib.abc\n"
            "class Hook(importlib.abc.MetaPathFinder):\n"
            "    def find_spec(self, name, path, target=None):\n"
            "        if name == 'shufflebounds.cli': signal.raise_signal(signal.SIGINT)\n"
            "sys.meta_path.insert(0, Hook())\n"
            "from shufflebounds.__main__ import main\n"
            "main()\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "shufflebounds: interrupted\n")
