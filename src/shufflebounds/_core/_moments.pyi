import numpy as np
from numpy.typing import NDArray

def log_moments(
    values: NDArray[np.float64],
    log_mass: NDArray[np.float64],
    starts: NDArray[np.int64],
    thetas: NDArray[np.float64],
    step: float,
    nodes: int,
    blur: float = 0.0,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def log_contour(
    log_phi: NDArray[np.float64],
    counts: NDArray[np.float64],
    theta: float,
    step: float,
    smoothing: float,
    log_weight: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]: ...
def tilt(
    values: NDArray[np.float64],
    log_mass: NDArray[np.float64],
    starts: NDArray[np.int64],
    count: float,
    smoothing: float,
    start: float,
) -> tuple[float, list[int]]: ...
def largest(
    values: NDArray[np.float64],
    log_mass: NDArray[np.float64],
    starts: NDArray[np.int64],
    counts: NDArray[np.float64],
    thetas: NDArray[np.float64],
    step: float,
    smoothing: float,
    nodes: int,
    blur: float = 0.0,
    reached: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]: ...
def light_sums(
    values: NDArray[np.float64],
    log_mass: NDArray[np.float64],
    starts: NDArray[np.int64],
    counts: NDArray[np.float64],
    blur: float,
    smoothing: float,
    spread: float,
    nodes: int,
    limit: float,
) -> tuple[NDArray[np.float64] | None, float]: ...
def excess_values(log_a: NDArray[np.float64], log_b: NDArray[np.float64], eps: float) -> NDArray[np.float64]: ...
