"""Constants that several modules share: the range of doubles, negligible fractions, limits of memory and run time."""

from __future__ import annotations

import math

__all__ = [
    "ALL_OUTCOMES", "BLOCK", "CACHED_ANSWERS", "CACHED_BYTES", "CACHED_TABLES", "CALM_SECONDS", "COMPARED", "COMPUTED_ERROR",
    "DEEPER", "DEEPEST", "FEW", "FIRST_TAIL", "LARGEST", "LARGEST_EXPONENT", "LARGE_TABLE_SIZE", "LOG_TINY", "LOOSE", "MANY",
    "MOST_ENUMERATED", "MOST_ITEMS", "MOST_PEOPLE", "MOST_ROUNDS", "MOST_ROWS", "NEGLIGIBLE", "NEGLIGIBLE_ROUGHLY", "ON_GRID",
    "SAFE_EXPONENT", "SAME_LOG", "SEARCH_GAP", "SQUARABLE", "TABLE_SIZE", "TINY", "UNDERFLOW_EXPONENT", "UPDATE_SECONDS",
]

LARGEST_EXPONENT = 700.0
"""Largest x for which e^x is formed. e^709.8 overflows; the margin of e^9.8 covers factors and sums of a few thousand."""

MOST_PEOPLE = 2**20
"""Largest number of people of a group. Raised: the rounding errors of the sums over its members exceed their bound."""

SAFE_EXPONENT = 600.0
"""Largest absolute x for which e^x is a factor of a product. e^600 = 4e260 and e^-600 = 3e-261, so that other factors from 1e-46 to
1e47 neither overflow nor lose digits by underflow. Raised: smaller range of these factors. Lowered: weaker bounds at the ends."""

LARGEST = 1e300
"""Largest absolute value of a number that is added to others. Raised: sums could overflow. Lowered: valid arguments would raise
ValueError."""

SQUARABLE = 1e140
"""Largest eps in formulas that square eps, or divide eps by a standard deviation and square the result. delta is non-increasing, so
its upper bound at this eps is valid for larger eps. Raised above 1e154: overflow. Lowered: less tight bounds at larger eps."""

TINY = 1e-290
"""Smallest number that is computed with full relative accuracy. Its product with a factor of at least 1e-18 is a normal double (at
least 2.2e-308), and a sum of 2**20 products that underflow has an error far below TINY. Raised: weaker bounds for smaller numbers.
Lowered: products lose digits by underflow."""

LOG_TINY = math.log(TINY)
"""The logarithm of TINY, about -668. Masses below TINY are added in logarithms, separately from larger ones."""

UNDERFLOW_EXPONENT = 746.0
"""e^-746 is 0 in doubles. Raised: terms that are 0 are computed. Lowered below 745.2: terms that are not 0 are truncated."""

NEGLIGIBLE = 45.0
"""A part of a sum below e^-45 = 3e-20 of the sum is bounded instead of computed: it is far below the rounding error of the sum,
1e-16.

Raised: more terms, which do not change the result in double precision. Lowered to 36 or less: the gap of a sum grows.
"""

NEGLIGIBLE_ROUGHLY = 30.0
"""A part below e^-30 = 1e-13 of a result is bounded instead of computed, if computing it is expensive and the gap of the result is
larger than 1e-13. Raised: longer run time. Lowered: a larger gap."""

FIRST_TAIL = -60.0
"""Log of the mass that the first pass may truncate. If delta is below e^(FIRST_TAIL + NEGLIGIBLE), a second pass truncates less.

Raised: the second pass is needed at larger delta. Lowered: longer tables for every result.
"""

DEEPER = 2.5
"""Factor by which the log of the truncated mass is multiplied for the next pass if the mass is too large for the given delta.

The second pass truncates e^-150, the third e^-375. Raised: fewer passes, but more outcomes are enumerated than necessary.
"""

DEEPEST = -1e5
"""Log of the smallest mass of an enumerated outcome; a smaller delta is bounded by the truncated mass. Logarithms of
smaller masses have rounding errors above 1e-11, which would enlarge the error bound of all other outcomes."""

ALL_OUTCOMES = -1e6
"""Log of the mass that an enumeration may truncate if it must omit no outcome: e^-1e6 is 0 in double precision."""

COMPUTED_ERROR = 1e-12
"""Assumed relative error of a probability, moment or quadrature that takes many operations; measured errors are below 1e-13.

Raised: bounds that include this error are less tight. Lowered: a less accurate C library could make a bound invalid.
"""

ON_GRID = 1e-8
"""Largest distance from a grid point, in steps, at which a number counts as that point. Raised: values that are not on the grid
are moved to it, and bounds that allow for this become less tight. Lowered: rounding errors move values that are on the grid."""

LOOSE = 1e-3
"""Relative accuracy of eps for the upper bound if there is no lower bound, and for the composition with which a search starts.

Lowered: longer run time for an upper bound that is smaller by less than a relative 1e-3. Raised: a larger upper bound.
"""

SAME_LOG = 1e-9
"""Difference of two values of log delta below which they count as equal: a smaller gap, error or improvement ends a search.

Raised: gaps up to that size remain. Lowered: longer searches, for digits that are below the rounding error of large sums.
"""

SEARCH_GAP = 1e-3
"""Gap in log delta at which a search ends that looks for the worst dataset, target user or composition of inputs.

Raised: bounds that hold for every dataset are less tight. Lowered: longer run time, about in proportion to the
inverse of the gap or to a higher power of it.
"""

FEW = 8
"""Number of kinds of users, inputs or budgets up to which each is treated separately.

Raised: longer run time, in proportion or to a power of this number. Lowered: less tight bounds, since kinds are merged or bounded
together.
"""

MANY = 2**10
"""Number of users, or of values of a distribution, from which on methods with a quadratic run time are not used.

Raised: longer run time. Lowered: less tight bounds, since values are merged and datasets bounded together.
"""

COMPARED = 64
"""Number of points, datasets or thresholds that one step of a search compares. Raised: longer run time. Lowered: a search may miss
the worst dataset, or take more steps."""

BLOCK = 2**14
"""Number of doubles (128 kB) that are processed at a time, so that they fit into the processor's cache.

Raised: memory accesses take longer. Lowered: a loop in Python has more rounds.
"""

TABLE_SIZE = 2**20
"""Resource limit: number of doubles (8 MB) of one of several tables that are computed or kept for one result.

Raised: more memory and run time. Lowered: a class gives weaker bounds, or raises ValueError, for smaller inputs.
"""

LARGE_TABLE_SIZE = 2**22
"""Resource limit: number of doubles (32 MB) or outcomes in a table, for a result that needs only one. A table takes up to a second.

Raised: more memory and run time. Lowered: a class gives weaker bounds, or raises ValueError, for smaller inputs.
"""

MOST_ITEMS = 10**7
"""Resource limit: largest number of steps, users, values or table entries that a caller may ask for where each is enumerated; it
takes 80 MB, and a few seconds.

Raised: more memory and run time. Lowered: ValueError for smaller inputs.
"""

MOST_ROWS = 10**5
"""Resource limit: largest number of rows of an output, some megabytes of text, or of values that take milliseconds each. Raised:
longer run time. Lowered: ValueError for smaller inputs."""

MOST_ENUMERATED = 2**14
"""Largest number of outcomes that are enumerated where a grid or rounding is an alternative.

Raised: longer run time than the grid takes. Lowered: less tight bounds, since enumerated outcomes are exact.
"""

MOST_ROUNDS = 8
"""Largest number of refinements of one result. Each at least halves the step, so that eight divide an error that is proportional to
the square of the step by 65,000.

Lowered: bounds that need more refinements are less tight. Raised: longer run time if the gap cannot be reduced.
"""

CACHED_ANSWERS = 256
"""Number of results, each at one eps, tilt or truncated mass, that an object caches, each of at most a few kilobytes.

Raised: more memory. Lowered: a search that uses an eps again computes the result again.
"""

CACHED_TABLES = 3
"""Number of tables, up to TABLE_SIZE doubles each, that an object keeps: a search for eps uses one or two. Raised: more memory."""

CACHED_BYTES = 2**26
"""Bytes of the tables that an object keeps for other values of eps. Raised: more memory. Lowered: tables are computed again."""

CALM_SECONDS = 2.0
"""Seconds after which a computation shows a line on the terminal. Raised: users wait without information. Lowered: short
computations show a line, too."""

UPDATE_SECONDS = 0.2
"""Seconds between two updates of a progress line. Raised: the clock advances irregularly. Lowered: more time for the terminal."""
