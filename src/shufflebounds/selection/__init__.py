"""Selection by noisy scores, and the sparse vector technique.

Which candidate comes out, with what chance, and how far from the best it can be; which noise finds the queries above a threshold,
how far its answers may be off, and what it costs.
"""

from shufflebounds.selection.probabilities import selection_error, selection_log_probs, selection_probs
from shufflebounds.selection.sparse_vector import SVTScales, svt_accuracy, svt_rdp, svt_scales

__all__ = [
    "SVTScales",
    "selection_error",
    "selection_log_probs",
    "selection_probs",
    "svt_accuracy",
    "svt_rdp",
    "svt_scales",
]
