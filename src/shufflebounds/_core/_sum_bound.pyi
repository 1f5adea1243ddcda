from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

_Array: TypeAlias = NDArray[np.float64]
_Places: TypeAlias = NDArray[np.intp]

def tilt_below(
    values: _Array,
    mass: _Array,
    log_mass: _Array,
    starts: _Places,
    limit: float,
    count: float,
    smoothing: float,
    start: float,
) -> float: ...
@disjoint_base
class SumBound:
    def __init__(
        self,
        values: _Array,
        mass: _Array,
        log_mass: _Array,
        starts: _Places,
        *,
        counts: _Array,
        thetas: _Array,
        limit: float,
        smoothing: float,
        spread: float,
        nodes: int,
        jumps: int,
        pool: int,
        blur: float,
        error: float,
    ) -> None: ...
    def only(self, column: int) -> SumBound: ...
    def add(self, values: _Array, mass: _Array, log_mass: _Array, starts: _Places, most: float = ...) -> float: ...
    def spare(self, most: float) -> None: ...
    def undo(self) -> None: ...
    def log_sum(self, column: int) -> float: ...

def bin_atoms(
    tables: NDArray[np.float64], up: float, down: float, share: float, silent: float
) -> tuple[_Array, _Array, _Array, _Places]: ...
def product_masses(
    place: _Array,
    mass: _Array,
    first: _Array,
    second: _Array,
    weight: _Array,
    left_out: float,
    unit: float,
    step: float,
    charge: float,
) -> tuple[int, _Array, float]: ...
def mixed_atoms(
    first: int, masses: _Array, second: int, others: _Array, part: float, unit: float, step: float
) -> tuple[_Array, _Array]: ...
def with_tail(values: _Array, masses: _Array, place: _Array, tail: _Array, charge: float) -> tuple[_Array, _Array]: ...
