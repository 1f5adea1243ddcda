import numpy as np

log_sign_contour: np.ufunc
