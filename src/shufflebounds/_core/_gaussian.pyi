import numpy as np

gaussian_log_delta: np.ufunc

def gaussian_epsilon(sigma: float, sensitivity: float, delta: float, upper: bool) -> float: ...
