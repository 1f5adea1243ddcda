import numpy as np
from numpy.typing import NDArray

shuffled_bits_log_delta: np.ufunc

def bits_log_delta(
    p: NDArray[np.float64], q: NDArray[np.float64], counts: NDArray[np.float64] | None, flip: float, eps: float, gap: float
) -> tuple[float, float]: ...
def bits_log_tails(
    ones: NDArray[np.float64], zeros: NDArray[np.float64], zero: tuple[float, float], one: tuple[float, float], eps: float,
    gap: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
def least_log_deltas(
    ones: NDArray[np.float64], zeros: NDArray[np.float64], zero: tuple[float, float], one: tuple[float, float], eps: float,
    gap: float,
) -> NDArray[np.float64]: ...
def two_sums(
    first: NDArray[np.float64], second: NDArray[np.float64], ratio: NDArray[np.float64], below: NDArray[np.float64], flip: float,
    eps: float, half: float, gap: float, error: float,
) -> tuple[float, float]: ...
def merged_losses(
    p: NDArray[np.float64], q: NDArray[np.float64], cells: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
