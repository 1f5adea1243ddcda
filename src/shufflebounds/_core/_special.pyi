import numpy as np

log1pmx: np.ufunc
log1mexp: np.ufunc
log_add_exp: np.ufunc
log_sub_exp: np.ufunc
stirling_error: np.ufunc
mills_ratio: np.ufunc
deviance: np.ufunc
