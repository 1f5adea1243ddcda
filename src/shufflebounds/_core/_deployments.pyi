import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

_Array = NDArray[np.float64]
_Places = NDArray[np.intp]

def noise_epsilon(trials: _Array, prob: _Array, delta: _Array, upper: bool, out: _Array) -> None: ...
def noise_log_delta(trials: _Array, prob: _Array, eps: _Array, upper: bool, out: _Array) -> None: ...

@disjoint_base
class LawTable:
    def __init__(
        self,
        log_mass: _Array,
        log_a: _Array,
        log_b: _Array,
        starts: _Places,
        log_cut: _Array,
        log_cut_b: _Array,
        cut_starts: _Places,
        slack: _Array,
        pure: _Array,
        sets: _Places,
    ) -> None: ...
    def run(
        self,
        places: _Places,
        users: _Array,
        at: _Array,
        epsilon: bool,
        upper: bool,
        out: _Array,
        rtol: float = 2e-7,
        work: float = 6e7,
    ) -> None: ...
    def near(self, users: float, eps: float, upper: bool = False) -> float: ...
