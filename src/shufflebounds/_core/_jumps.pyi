import numpy as np
from numpy.typing import NDArray

def spread_sum(
    place: NDArray[np.float64],
    mass: NDArray[np.float64],
    jump: NDArray[np.float64],
    chance: NDArray[np.float64],
    nodes: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def merged_sum(
    place: NDArray[np.float64],
    mass: NDArray[np.float64],
    jump: NDArray[np.float64],
    chance: NDArray[np.float64],
    nodes: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
