import numpy as np
from numpy.typing import NDArray

def ratio_order(log_p: NDArray[np.float64], log_q: NDArray[np.float64]) -> int: ...
def tradeoff_knots(
    log_p: NDArray[np.float64], log_q: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
