"""Test suites of other projects, run with our accountant instead of theirs: ``python -m tests.interop.peer_suites``.

A test counts as "refused" if our accountant does not support its event for its adjacency relation, and as "theirs" if it uses
private attributes, orders or options of their accountant. Every other test that does not pass counts as "differs" and is printed.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import io
import sys
import unittest
from collections import Counter
from unittest import mock

from dp_accounting import privacy_accountant, privacy_accountant_test

from shufflebounds.interop.dp_accountant import Relation, ShuffleAccountant

SUITES = {
    "dp-accounting PrivacyAccountantTest": None,
    "dp-accounting pld_privacy_accountant_test": (
        "dp_accounting.pld.pld_privacy_accountant_test", "pld_privacy_accountant", "PLDAccountant"),
    "dp-accounting rdp_privacy_accountant_test": (
        "dp_accounting.rdp.rdp_privacy_accountant_test", "rdp_privacy_accountant", "RdpAccountant"),
}
"""Name of a suite -> its module, and the module and name of the class that is replaced; None for the abstract test."""


class AccountantTest(privacy_accountant_test.PrivacyAccountantTest):
    """The abstract test of accountants of dp-accounting, run with this library's accountant."""

    def _make_test_accountants(self):
        return [ShuffleAccountant(relation, bound=bound) for relation in Relation for bound in ("upper", "lower")]


class Replacement(ShuffleAccountant):
    """This library's accountant with the interface of dp-accounting's; options for grids and orders are ignored."""

    def __init__(self, first=None, second=None, *, neighboring_relation=Relation.ADD_OR_REMOVE_ONE, **_):
        given = [value for value in (first, second, neighboring_relation) if isinstance(value, Relation)]
        super().__init__(given[0])


def outcome(error):
    """Return the category of a test that did not pass, from its exception."""
    kind = error[0]
    if issubclass(kind, privacy_accountant.UnsupportedEventError):
        return "refused"
    if issubclass(kind, NotImplementedError | AttributeError | TypeError):
        return "theirs"
    return "differs"


class Counting(unittest.TestResult):
    """The outcome of each test; for a test with several failing parts, the worst outcome."""

    def __init__(self):
        super().__init__()
        self.outcomes = {}

    def _count(self, test, error):
        ranks = ("theirs", "refused", "differs")
        name, found = test.id(), outcome(error)
        self.outcomes[name] = max(found, self.outcomes.get(name, found), key=ranks.index)

    def addError(self, test, err):
        self._count(test, err)

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self._count(test, err)


def run(name):
    """Return the number of tests, and the outcomes of those that did not pass."""
    place = SUITES[name]
    loader, result = unittest.defaultTestLoader, Counting()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        if place is None:
            suite = loader.loadTestsFromTestCase(AccountantTest)
        else:
            module = importlib.import_module(place[0])
            stack.enter_context(mock.patch.object(getattr(module, place[1]), place[2], Replacement))
            suite = loader.loadTestsFromModule(module)
        suite.run(result)
    return result.testsRun, result.outcomes


def row(name, ran, outcomes):
    """Return the line of the table for one suite."""
    counts = Counter(outcomes.values())
    cells = [name, importlib.metadata.version(name.split()[0]), f"{ran - len(outcomes)} of {ran}"]
    return "| " + " | ".join([*cells, *(str(counts[kind]) for kind in ("refused", "theirs", "differs"))]) + " |"


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="name every test that does not pass")
    arguments = parser.parse_args(argv)
    print("| suite | version | passed | refused by design | uses private internals | differs |")
    print("|---|---|---|---|---|---|")
    for name in SUITES:
        ran, outcomes = run(name)
        print(row(name, ran, outcomes))
        for test, kind in outcomes.items() if arguments.list else ():
            print(f"  {kind}: {test}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
