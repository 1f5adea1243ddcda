import numpy as np
from numpy.typing import NDArray

log_sign_ahead: np.ufunc
log_sign_excess: np.ufunc
log_sign_sweep: np.ufunc

def log_weighted_excess(first: float, log_weights: NDArray[np.float64], u: float, v: float) -> tuple[float, float]: ...
def compound_binom(
    kind: int,
    k: NDArray[np.float64],
    first: float,
    log_weights: NDArray[np.float64],
    p: float,
    out: NDArray[np.float64],
) -> None: ...
