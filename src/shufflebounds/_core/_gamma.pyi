import numpy as np

log_gammainc: np.ufunc
log_gammaincc: np.ufunc
poisson_logpmf: np.ufunc
poisson_logcdf: np.ufunc
poisson_logsf: np.ufunc
