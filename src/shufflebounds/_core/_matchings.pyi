import numpy as np
from numpy.typing import NDArray

def negative_part(mass: NDArray[np.float64], tables: NDArray[np.float64]) -> float: ...
