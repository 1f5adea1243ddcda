"""Requirements: the set-up of a newcomer, the oldest dependencies in CI, wheels of every platform, the build of the site."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
WORKFLOWS = ROOT / ".github" / "workflows"

pytestmark = pytest.mark.skipif(not WORKFLOWS.is_dir(), reason="needs the source tree")


def name(requirement):
    return re.match(r"[\w-]+", requirement)[0].lower()


def test_the_first_line_of_the_set_up_installs_what_the_build_requires():
    """The second line builds with the installed setuptools; in a new environment it would be too old without the first line."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^pip install (?!--no-build-isolation)(.*setuptools.*)$", text, re.M)
    assert set(re.findall(r'[^\s"]+', line)) == set(PROJECT["build-system"]["requires"])


def test_ci_runs_the_tests_with_the_oldest_numpy_and_scipy():
    oldest = dict(re.findall(r'"(\w+)==([\d.]+)\.\*"', (WORKFLOWS / "ci.yml").read_text(encoding="utf-8")))
    assert {f"{package}>={version}" for package, version in oldest.items()} == set(PROJECT["project"]["dependencies"])
    for place in (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8"), " ".join(EXTRAS["dev"]):
        assert re.search(rf"scipy(-stubs)? ?>={oldest['scipy']}\b", place)


def test_wheels_for_musl_are_tested_without_python_flint():
    """There are no wheels of python-flint for musl, and its sources need a library that the images do not have."""
    assert "python-flint" not in map(name, EXTRAS["core-test"])
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert wheels["test-extras"] == ["core-test", "certify"]
    (musl,) = (one for one in wheels["overrides"] if "musllinux" in one["select"])
    assert musl["test-extras"] == ["core-test"]


@pytest.mark.slow
def test_the_tests_of_the_wheels_run_without_python_flint():
    code = "import sys; sys.modules['flint'] = None; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--collect-only", "-q", "-p", "no:cacheprovider", "tests/core", "tests/tails"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert int(re.search(r"(\d+)(?:/\d+)? tests collected", done.stdout)[1]) > 500


def test_the_extra_bench_names_the_package_that_has_the_code_of_opake():
    assert "opake-accounting" in map(name, EXTRAS["bench"])
    assert "opake" not in map(name, EXTRAS["bench"])


def test_the_site_is_built_with_every_reference_checked():
    for place in (".ci/run", "CONTRIBUTING.md"):
        (line,) = re.findall(r"^ *sphinx-build .*html.*$", (ROOT / place).read_text(encoding="utf-8"), re.M)
        assert {"-n", "-W"} <= set(line.split()), place


def test_every_directive_of_a_page_stands_in_a_fence_that_sphinx_reads():
    """Outside of an eval-rst fence, Markdown shows `.. autofunction::` as text, and the function has no reference."""
    read = re.compile(r"^```\{eval-rst\}\n.*?^```$", re.M | re.S)
    for page in (ROOT / "docs").rglob("*.md"):
        if not {"_build", "generated"} & set(page.parts):
            assert ".. auto" not in read.sub("", page.read_text(encoding="utf-8")), page


def test_actions_are_pinned_by_commit():
    """The owner of an action can move a tag. A commit cannot be moved; the comment names its version."""
    for workflow in WORKFLOWS.glob("*.yml"):
        used = re.findall(r"uses: (.*)", workflow.read_text(encoding="utf-8"))
        assert used
        for action in used:
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}  # v[\d.]+", action), f"{workflow.name}: {action}"


def test_wheels_are_built_for_the_versions_of_python_that_are_classified():
    named = re.findall(r"Python :: 3\.(\d+)", " ".join(PROJECT["project"]["classifiers"]))
    built = re.findall(r"cp3(\d+)-", PROJECT["tool"]["cibuildwheel"]["build"])
    assert set(named) - {"11"} <= set(built)
    assert "freethreading" not in str(PROJECT["tool"]["cibuildwheel"])
