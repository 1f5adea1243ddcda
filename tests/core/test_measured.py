"""The headers of the kernels state measured errors: in a short run of the measurement no error exceeds the stated maximum."""

import random
import re
from pathlib import Path

import pytest

pytest.importorskip("flint")

from tests.reference.measure_errors import KERNELS
from tests.reference.measure_routines import ROUTINES
from tests.strategies import thinned

CORE = Path(__file__).parents[2] / "src" / "_core"
if not CORE.exists():
    pytest.skip("the headers of the kernels are in the sources, which an installed library has not", allow_module_level=True)


def header(kernel):
    """Return the kernel's header with its white space folded."""
    source = (CORE / f"_{kernel}.pyx").read_text(encoding="utf-8")
    return " ".join(source.split('"""')[1].split())


def stated(kernel, row, column):
    """Return the number that the header states in this row, in a column of the table or after the word "peak"."""
    after = [header(kernel)[found.end() :] for found in re.finditer(re.escape(row), header(kernel))]
    if column == "peak":
        return float(re.search(r"peak ([\d.e+-]*\d)", ("peak" * row.endswith("peak") + after[0]))[1])
    numbers = next(rest for rest in after if re.match(r" [~\d]", rest))
    return float(re.findall(r"~?(\d[\d.e+-]*)", numbers)[column])


@pytest.mark.slow
@pytest.mark.parametrize("kernel", [kernel for kernel, (_, quick, _) in KERNELS.items() if quick])
def test_a_quick_run_stays_within_the_header(kernel):
    rows, quick, _ = KERNELS[kernel]
    for row, column, errors in rows(random.Random(1), quick):
        assert errors
        assert max(errors) <= stated(kernel, row, column), row


@pytest.mark.parametrize("kernel", thinned([kernel for kernel in KERNELS if kernel != "outside"], 2))
def test_every_row_is_in_its_header(kernel):
    # The names of the rows are read from the source of the measuring functions, so that nothing is measured here.
    code = (Path(__file__).parents[1] / "reference" / "measure_errors.py").read_text() + (
        Path(__file__).parents[1] / "reference" / "measure_sums.py"
    ).read_text()
    function = re.search(rf"\ndef {kernel}\(rng, trials\):\n(.*?)(?=\n\n\n|\Z)", code, re.S)[1]
    for row, column in re.findall(r'yield "([^"]+)", ("peak"|\d)', function):
        assert stated(kernel, row, column.strip('"') if '"' in column else int(column)) >= 0


def on_the_page(sentence):
    """Return the largest error that docs/numerics.md states in this sentence."""
    page = " ".join((CORE.parents[1] / "docs" / "numerics.md").read_text(encoding="utf-8").split())
    most = re.search(sentence, page)
    assert most, f"docs/numerics.md no longer says {sentence!r}"
    return float(most[1])


@pytest.mark.parametrize("routine", ROUTINES, ids=lambda routine: routine.__name__)
def test_the_page_states_an_error_of_every_routine(routine):
    """These routines are not kernels; docs/numerics.md states their errors."""
    assert 0 < on_the_page(ROUTINES[routine][0]) < 1e-8


@pytest.mark.slow
@pytest.mark.parametrize("routine", ROUTINES, ids=lambda routine: routine.__name__)
def test_a_quick_run_stays_within_the_page(routine):
    sentence, quick, _ = ROUTINES[routine]
    errors = list(routine(random.Random(2), quick))
    assert errors
    assert max(errors) <= on_the_page(sentence)
