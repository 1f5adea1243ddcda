import numpy as np
from numpy.typing import NDArray

def sandwich() -> tuple[list[float], list[float], list[float]]: ...
def tilted_nodes(
    values: NDArray[np.float64],
    log_mass: NDArray[np.float64],
    count: float,
    theta: float,
    step: float,
    last: float,
    most: int,
) -> tuple[NDArray[np.float64], float, float, float]: ...
def turned_sums(
    y: NDArray[np.float64], t: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]: ...
