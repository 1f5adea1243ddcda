import numpy as np

log_sign_contour: np.ufunc

def secondary_constants() -> tuple[float, float, float]: ...
