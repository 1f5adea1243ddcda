"""The grid of a sweep, as columns of parameters, and its results so far, as columns of numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shufflebounds.sweeps.batch import Array, Columns, Reply


@dataclass(frozen=True)
class Grid:
    """Named columns of equal length, or the axes of a Cartesian product, in which the last axis varies fastest."""

    columns: Columns
    product: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes of a product, or the common length of the columns."""
        sizes = tuple(column.size for column in self.columns.values())
        return sizes if self.product else sizes[:1]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return math.prod(self.shape)

    def take(self, rows: Array) -> list[Array]:
        """Return the columns of the given rows, without building the whole grid."""
        if not self.product:
            return [column[rows] for column in self.columns.values()]
        places = np.unravel_index(rows, self.shape)
        return [column[place] for column, place in zip(self.columns.values(), places)]


class Results:
    """Columns of results, as long as the grid, and a mask of the rows that are finished."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.done = np.zeros(grid.rows, dtype=np.bool_)
        self.columns: Columns | None = None

    def add(self, start: int, reply: Reply) -> None:
        """Store the results of one batch that starts at row `start`."""
        if not reply.rows:
            return
        if self.columns is None:
            taken = sorted(set(reply.columns) & set(self.grid.columns))
            if taken:
                raise ValueError(f"function returns {taken[0]!r}, which is a parameter of the grid: rename the field")
            self.columns = {name: np.zeros(self.grid.rows, column.dtype) for name, column in reply.columns.items()}
        if reply.columns.keys() != self.columns.keys():
            raise TypeError(f"function returned the fields {list(reply.columns)}, but {list(self.columns)} in another row")
        rows = slice(start, start + reply.rows)
        for name, column in reply.columns.items():
            kind = np.result_type(self.columns[name], column)
            if kind != self.columns[name].dtype:
                self.columns[name] = self.columns[name].astype(kind)
            self.columns[name][rows] = column
        self.done[rows] = True

    def rows(self, wanted: NDArray[np.bool_], *, answers: bool = True) -> Array:
        """Return the rows of the mask as a structured array, parameters first."""
        places = np.flatnonzero(wanted)
        kinds = [(name, column.dtype) for name, column in self.grid.columns.items()]
        answered = self.columns if answers and self.columns is not None else {}
        out = np.empty(places.size, dtype=kinds + [(name, column.dtype) for name, column in answered.items()])
        for name, column in zip(self.grid.columns, self.grid.take(places)):
            out[name] = column
        for name, column in answered.items():
            out[name] = column[places]
        return out


def _column(name: str, values: Any) -> Array:
    """Return one parameter's values as a 1-D array, without rounding integers or converting numbers to strings."""
    if isinstance(values, str | bytes) or not isinstance(values, Sequence | np.ndarray | range):
        raise ValueError(f"grid[{name!r}]={values!r} must be a sequence of values")
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty(0, dtype=object)
    mixed = array.dtype.kind in "US" and not all(isinstance(value, str | bytes) for value in values)
    if array.dtype.kind == "f" and not isinstance(values, np.ndarray):
        # An integer above 2**53 beside a float would be rounded.
        mixed = any(isinstance(value, int | np.integer) and int(value) != kept for value, kept in zip(values, array.tolist()))
    if mixed or array.ndim != 1 or array.dtype.kind == "O":
        if isinstance(values, np.ndarray) and array.ndim != 1:
            raise ValueError(f"grid[{name!r}] has shape {array.shape}: it must be 1-D")
        array = np.empty(len(values), dtype=object)
        array[:] = list(values)
    if array.size == 0:
        raise ValueError(f"grid[{name!r}] must not be empty: pass at least one value")
    return array


def checked_grid(grid: Any) -> Grid:
    """Return the grid as a Grid; raise ValueError if it is empty or malformed."""
    if hasattr(grid, "to_records") and not isinstance(grid, np.ndarray):
        # The grid is a DataFrame of pandas or of a similar library; each of its rows is a row of the sweep.
        grid = {str(name): grid[name].to_numpy() for name in grid.columns}
        if not grid or not len(next(iter(grid.values()))):
            raise ValueError("grid is a table without rows or columns: pass at least one of each")
        return Grid({name: _column(name, values) for name, values in grid.items()}, product=False)
    if isinstance(grid, np.ndarray) and grid.dtype.names:
        if grid.ndim != 1 or grid.size == 0:
            raise ValueError(f"grid has shape {grid.shape}: a structured array must be 1-D and not empty")
        return Grid({name: _column(name, np.asarray(grid[name])) for name in grid.dtype.names}, product=False)
    if isinstance(grid, Mapping):
        if not grid:
            raise ValueError("grid={} must name at least one parameter")
        _names(grid)
        return Grid({name: _column(name, values) for name, values in grid.items()}, product=True)
    if not isinstance(grid, Sequence) or isinstance(grid, str | bytes) or not grid or not isinstance(grid[0], Mapping):
        raise ValueError(
            f"grid={grid!r} must be a mapping of names to sequences, a structured array, or a non-empty sequence of mappings"
        )
    names = list(grid[0])
    _names(grid[0])
    for i, row in enumerate(grid):
        if not isinstance(row, Mapping) or set(row) != set(names):
            raise ValueError(f"grid[{i}]={row!r} must be a mapping with the names {', '.join(map(str, names))}, as in grid[0]")
    return Grid({name: _column(name, [row[name] for row in grid]) for name in names}, product=False)


def _names(row: Mapping[Any, Any]) -> None:
    for name in row:
        if not isinstance(name, str) or not name.isidentifier():
            raise ValueError(f"grid has the name {name!r}: every name must be one that function can take as a keyword")
    if not row:
        raise ValueError("grid[0]={} must name at least one parameter")


def spelled(grid: Grid, row: int) -> str:
    """Return the parameters of a row as text, for messages."""
    values = grid.take(np.array([row]))
    return ", ".join(f"{name}={value.tolist()[0]!r}" for name, value in zip(grid.columns, values))
