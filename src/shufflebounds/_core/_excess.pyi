from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

def log_excess(
    values: NDArray[np.float64],
    log_mass: NDArray[np.float64],
    starts: NDArray[np.int64],
    counts: NDArray[np.float64],
    rtol: float = 2e-7,
    work: float = 6e7,
) -> tuple[float, float]: ...
def rough_excess(
    values: NDArray[np.float64], log_mass: NDArray[np.float64], starts: NDArray[np.int64], counts: NDArray[np.float64]
) -> float: ...
def log_cell(moments: NDArray[np.float64], theta: float, low: Sequence[int], high: Sequence[int], users: float) -> float: ...
