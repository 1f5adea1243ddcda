"""Selection by noisy scores, and the sparse vector technique.

The functions compute the probability of each candidate and the error of the choice, and for the sparse vector technique the noise
scales, the error and the privacy.
"""

from shufflebounds.selection.probabilities import selection_error, selection_log_probs, selection_probs
from shufflebounds.selection.small_db import SmallDBError, small_db, small_db_error
from shufflebounds.selection.sparse_vector import SVTScales, svt_accuracy, svt_rdp, svt_scales
from shufflebounds.selection.stages import svt_log_moment, svt_stages_epsilon
from shufflebounds.selection.stream import SparseVector

__all__ = [
    "SVTScales",
    "SmallDBError",
    "SparseVector",
    "selection_error",
    "selection_log_probs",
    "selection_probs",
    "small_db",
    "small_db_error",
    "svt_accuracy",
    "svt_log_moment",
    "svt_rdp",
    "svt_scales",
    "svt_stages_epsilon",
]
