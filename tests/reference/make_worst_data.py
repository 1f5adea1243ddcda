"""Exact delta over all datasets of small randomizers, for worst-data.json, by the distribution of the multiset of messages.

The cases (matrix, users, eps) are those in the file. `worst` is the largest delta over all datasets of the other users and all
ordered pairs of inputs, `all_equal` the largest where all other users have one input, `at` the dataset that attains `worst`.
Distributions are products of polynomials whose number of variables is the number of outputs minus one, in double precision. All
terms are positive, and the relative error is below 1e-12. The script does not use the library. Run it as
``python tests/reference/make_worst_data.py``; it takes about seven seconds.
"""

import itertools
import json
import math
from pathlib import Path

import numpy as np

FILE = Path(__file__).with_name("worst-data.json")


def times(law, row):
    """Return the distribution of the counts of all outputs except the first, after one more message."""
    out = np.zeros([size + 1 for size in law.shape])
    inner = tuple(slice(0, size) for size in law.shape)
    out[inner] += row[0] * law
    for axis, chance in enumerate(row[1:]):
        moved = tuple(slice(1, size + 1) if i == axis else slice(0, size) for i, size in enumerate(law.shape))
        out[moved] += chance * law
    return out


def answer(rows, users, eps):
    """Return the largest delta over all datasets, over those of equal inputs, and the dataset that attains the first."""
    laws = {(0,) * len(rows): np.ones((1,) * (len(rows[0]) - 1))}
    for _ in range(users - 1):
        grown = {}
        for key, law in laws.items():
            for x, row in enumerate(rows):
                more = (*key[:x], key[x] + 1, *key[x + 1:])
                if more not in grown:
                    grown[more] = times(law, row)
        laws = grown
    worst, alike, place = -1.0, -1.0, None
    for key, law in laws.items():
        ends = [times(law, row) for row in rows]
        for a, b in itertools.permutations(range(len(rows)), 2):
            value = float(np.maximum(ends[a] - math.exp(eps) * ends[b], 0).sum())
            if value > worst:
                worst, place = value, [list(key), a, b]
            if max(key) == users - 1:
                alike = max(alike, value)
    return worst, alike, place


if __name__ == "__main__":
    table = json.loads(FILE.read_text())
    for entry in table:
        worst, alike, at = answer(entry["matrix"], entry["users"], entry["eps"])
        assert math.isclose(worst, entry["worst"], rel_tol=1e-9), entry
        assert math.isclose(alike, entry["all_equal"], rel_tol=1e-9), entry
        entry.update(worst=worst, all_equal=alike, at=at)
    FILE.write_text(json.dumps(table, indent=0) + "\n")
