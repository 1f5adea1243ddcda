import numpy as np

log_betainc: np.ufunc
log_betaincc: np.ufunc
nbinom_logpmf: np.ufunc
nbinom_logcdf: np.ufunc
nbinom_logsf: np.ufunc
