import numpy as np
from numpy.typing import NDArray

def cell_sums(
    place: NDArray[np.float64],
    mass: NDArray[np.float64],
    jump: NDArray[np.float64],
    chance: NDArray[np.float64],
    nodes: NDArray[np.float64],
    upper: bool,
    factor: NDArray[np.float64] | None = None,
    used: NDArray[np.intp] | None = None,
    cut: float = ...,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def wide_sums(
    place: NDArray[np.float64],
    mass: NDArray[np.float64],
    jump: NDArray[np.float64],
    chance: NDArray[np.float64],
    nodes: NDArray[np.float64],
    upper: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
