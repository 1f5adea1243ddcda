import numpy as np
from numpy.typing import NDArray

shuffled_bits_log_delta: np.ufunc

def bits_log_delta(
    p: NDArray[np.float64], q: NDArray[np.float64], counts: NDArray[np.float64] | None, flip: float, eps: float, gap: float
) -> tuple[float, float]: ...
def two_sums(
    p: NDArray[np.float64], q: NDArray[np.float64], order: NDArray[np.float64], p_below: NDArray[np.float64],
    q_below: NDArray[np.float64], more: float, error: float,
) -> tuple[float, float]: ...
def merged_losses(
    p: NDArray[np.float64], q: NDArray[np.float64], cells: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
