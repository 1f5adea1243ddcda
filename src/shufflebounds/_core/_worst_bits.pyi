import numpy as np
from numpy.typing import NDArray

def worst_log_delta(
    others: float, fakes: float, width: float, flip: float, eps: NDArray[np.float64], gap: NDArray[np.float64], loose: float = 0.0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def worst_epsilon(
    others: float, fakes: float, flip: float, head: float, rest: float, pure: float, delta: float, upper: bool
) -> float: ...
def sum_log_delta(
    ones: float, zeros: float, width: float, flip: float, eps: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
