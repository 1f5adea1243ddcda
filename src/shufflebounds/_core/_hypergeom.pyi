import numpy as np

hypergeom_logpmf: np.ufunc
hypergeom_logcdf: np.ufunc
hypergeom_logsf: np.ufunc
