import numpy as np
from numpy.typing import NDArray

def law_hockey_stick(loss: NDArray[np.float64], log_p: NDArray[np.float64], log_rest: float) -> NDArray[np.float64]: ...
def split(
    log_p: NDArray[np.float64], loss: NDArray[np.float64], anchor: float, step: float, first: int, size: int
) -> NDArray[np.float64]: ...
def merge(
    log_p: NDArray[np.float64], loss: NDArray[np.float64], anchor: float, step: float, first: int, size: int
) -> NDArray[np.float64]: ...
def multiplied(
    spectra: NDArray[np.complex128], times: NDArray[np.int64], stage: float
) -> tuple[float, float, float]: ...
def tilted_moments(
    logs: NDArray[np.float64], place: NDArray[np.float64], rate: float
) -> tuple[float, float, float]: ...
def balanced(
    mass: NDArray[np.float64],
    near: NDArray[np.float64],
    far: NDArray[np.float64],
    free: NDArray[np.uint8],
    last: int,
) -> NDArray[np.float64]: ...
def tilted_excess(
    g: NDArray[np.float64],
    theta: float,
    step: float,
    discount: float,
    turn: int = 0,
    first: int = 0,
    stop: int = -1,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def read_excess(
    level: NDArray[np.float64],
    tail: NDArray[np.float64],
    excess: NDArray[np.float64],
    first: int,
    size: int,
    origin: float,
    step: float,
    theta: float,
    discount: float,
    error: float,
    outside: float,
    upper: bool,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]: ...
