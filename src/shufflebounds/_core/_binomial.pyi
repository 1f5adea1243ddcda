import numpy as np

binom_logpmf: np.ufunc
binom_logcdf: np.ufunc
binom_logsf: np.ufunc
shift_log_delta: np.ufunc
