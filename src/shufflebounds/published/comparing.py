"""Comparison of amplification bounds, published or defined by users, with bounds of the exact eps over a grid of parameters."""

from __future__ import annotations

import csv
import inspect
import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import plotting
from shufflebounds._base import validate as _validate
from shufflebounds._base.limits import MOST_ROWS
from shufflebounds._base.progress import announced, tick
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.excess.excess_law import Randomizer, is_randomizer
from shufflebounds.published._papers import PAPERS, THIS_LIBRARY
from shufflebounds.published._printed import PrintedBound, bounds
from shufflebounds.shuffle.bits import ShuffledBits
from shufflebounds.shuffle.clones import StrongerClones
from shufflebounds.shuffle.shuffled import Shuffled

__all__ = ["AmplificationTable", "amplification_bounds", "compare"]

_PARAMETERS = ("users", "local_eps", "delta")


def amplification_bounds() -> tuple[PrintedBound[Any], ...]:
    """Return the published bounds of eps whose parameters are a number of users, a local budget and a delta.

    Returns
    -------
    tuple of PrintedBound

    Examples
    --------
    >>> from shufflebounds import published
    >>> [bound.__name__ for bound in published.amplification_bounds() if "Balle" in bound.reference]
    ['balle2019_bennett', 'balle2019_hoeffding']
    """
    matching = (bound for bound in bounds() if tuple(bound._signature.parameters) == _PARAMETERS)
    return tuple(sorted(matching, key=lambda bound: bound.__name__))


@dataclass(frozen=True)
class AmplificationTable:
    """Bounds of eps over a grid of users, local budgets and deltas; made by :func:`compare`.

    ``print()`` shows the table, :meth:`to_csv` exports it, :meth:`plot` draws it.

    Attributes
    ----------
    users, local_eps, delta : ndarray
        The grid, one element per row.
    upper, lower : ndarray
        With a randomizer: bounds of the eps of its shuffled messages. Without: bounds of the eps of the stronger clone bound, which
        holds for every pure local randomizer with this budget.
    attained : ndarray
        The least eps that a valid bound may have. With a randomizer, `attained` is `lower`. Without, it is a lower bound of the
        eps of binary randomized response with this budget if all other users have value 0: a bound that is valid for every pure
        randomizer is not smaller.
    bounds : dict of ndarray
        eps of every bound by its name; NaN where the bound does not apply to the row.
    statuses : dict of str
        "proven", "unproven" or "false" for the published bounds, "yours" for those passed to :func:`compare`.
    refused : dict of dict
        For each bound that has no value in some rows, a dict with the indices of these rows and the messages of the errors.
    randomizer : Randomizer, callable or None
        The randomizer, or the function of the local budget, that was passed to :func:`compare`.
    """

    users: FloatArray
    local_eps: FloatArray
    delta: FloatArray
    upper: FloatArray
    lower: FloatArray
    attained: FloatArray
    bounds: Mapping[str, FloatArray]
    statuses: Mapping[str, str]
    refused: Mapping[str, Mapping[int, str]] = field(default_factory=dict, repr=False)
    randomizer: Randomizer | Callable[[float], Randomizer] | None = None

    def refuted(self) -> dict[str, NDArray[np.intp]]:
        """Return the rows in which a bound is smaller than `attained`.

        If a randomizer was passed to :func:`compare`, such a bound is false for this randomizer. Otherwise the bound is false for
        binary randomized response, and may hold for other randomizers.

        Returns
        -------
        dict of ndarray
            For each bound that is smaller than `attained` in some rows: its name and the indices of these rows.
        """
        return self._where(lambda values: values < self.attained)

    def undecided(self) -> dict[str, NDArray[np.intp]]:
        """Return the rows in which a bound is at least `attained` and below `upper`.

        The exact eps (of the randomizer, or of the worst randomizer) also lies between `attained` and `upper`. So these rows do not
        show whether the bound is valid.

        Returns
        -------
        dict of ndarray
            For each bound with such rows: its name and the indices of these rows.
        """
        return self._where(lambda values: (values >= self.attained) & (values < self.upper))

    def _where(self, condition: Callable[[FloatArray], NDArray[np.bool_]]) -> dict[str, NDArray[np.intp]]:
        places = {name: np.flatnonzero(condition(values)) for name, values in self.bounds.items()}
        return {name: rows for name, rows in places.items() if rows.size}

    def bibtex(self) -> str:
        """Return BibTeX entries of the papers whose bounds are in the table, and of this library.

        Returns
        -------
        str
            One entry after the other, separated by empty lines.

        Examples
        --------
        >>> from shufflebounds import published
        >>> table = published.compare({}, users=1000, local_eps=1.0, delta=1e-6)
        >>> [line for line in table.bibtex().splitlines() if "feldman2023" in line]
        ['@inproceedings{feldman2023stronger,']
        """
        papers = [paper.bibtex for names, paper in PAPERS.items() if any(name in self.bounds for name in names)]
        return "\n\n".join([*papers, THIS_LIBRARY])

    def select(self, **values: float) -> Self:
        """Return the rows in which the given parameters have the given values.

        Parameters
        ----------
        **values : float
            One or more of users, local_eps and delta, each a value of the grid.

        Returns
        -------
        AmplificationTable
            A table of the selected rows.

        Raises
        ------
        TypeError
            If a name is not one of the three.
        ValueError
            If no row has these values.

        Examples
        --------
        >>> from shufflebounds import published
        >>> table = published.compare({}, users=[10**4, 10**5], local_eps=[1.0, 2.0], delta=1e-6)
        >>> table.select(local_eps=2.0).users.tolist()
        [10000.0, 100000.0]
        """
        kept = np.ones(self.users.size, dtype=bool)
        for name, value in values.items():
            if name not in _PARAMETERS:
                raise TypeError(f"select() got {name!r}: the parameters of the grid are {', '.join(_PARAMETERS)}")
            kept &= getattr(self, name) == value
        if not kept.any():
            asked = ", ".join(f"{name}={value!r}" for name, value in values.items())
            first = ", ".join(f"{name}={getattr(self, name)[0]:g}" for name in values)
            raise ValueError(f"select({asked}) finds no row: give values of the grid, such as {first}")
        columns = {name: getattr(self, name)[kept] for name in (*_PARAMETERS, "upper", "lower", "attained")}
        places = {old: new for new, old in enumerate(np.flatnonzero(kept).tolist())}
        refused = {name: {places[row]: text for row, text in rows.items() if row in places} for name, rows in self.refused.items()}
        return replace(self, **columns, bounds={name: column[kept] for name, column in self.bounds.items()},
                       refused={name: rows for name, rows in refused.items() if rows})

    def _columns(self) -> dict[str, FloatArray]:
        exact = ("attained", "lower", "upper") if self.randomizer is None else ("lower", "upper")
        return {**{name: getattr(self, name) for name in (*_PARAMETERS, *exact)}, **self.bounds}

    def to_csv(self) -> str:
        """Return the table as CSV, with all digits, and an empty cell where a bound does not apply.

        Returns
        -------
        str
            A line of names, and a line for every row.
        """
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        columns = self._columns()
        writer.writerow(columns)
        for row in zip(*(column.tolist() for column in columns.values())):
            writer.writerow("" if math.isnan(value) else value for value in row)
        return stream.getvalue()

    def __str__(self) -> str:
        columns = self._columns()
        heads = [f"{name} ({self.statuses[name]})" if name in self.statuses else name for name in columns]
        rows = [["-" if math.isnan(value) else f"{value:.6g}" for value in row]
                for row in zip(*(column.tolist() for column in columns.values()))]
        # Names of bounds are long, so the text has a line for each bound and a column for each row of the grid. A grid of many rows
        # is shown as several tables whose lines are short enough for most windows.
        parts = [[[head, *cells] for head, cells in zip(heads, zip(*rows[first : first + 6]))] for first in range(0, len(rows), 6)]
        widths = [max(len(line[i]) for lines in parts for line in lines if i < len(line)) for i in range(len(parts[0][0]))]
        text = "\n\n".join(
            "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines) for lines in parts
        )
        below, between = (
            "below the eps of the shuffled randomizer in {}: false there", "between the bounds of that eps in {}: undecided",
        ) if self.randomizer is not None else (
            "below the eps of binary randomized response in {}: not a bound for every randomizer",
            "between that eps and the stronger clone bound in {}: undecided",
        )
        for listed, meaning in ((self.refuted(), below), (self.undecided(), between)):
            for name, where in listed.items():
                text += f"\n{name} is " + meaning.format(f"{where.size} of {self.users.size} cases")
        return text

    def plot(self, ax: Any = None, *, over: str = "users") -> Any:
        """Plot every bound as a function of one parameter of the grid, with the bounds of the exact eps.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw in; a new figure by default.
        over : {"users", "local_eps", "delta"}
            The parameter on the horizontal axis; the other two must be constant in the table.

        Returns
        -------
        matplotlib.axes.Axes
            The axes; the figure is not shown.

        Raises
        ------
        ValueError
            If `over` is not one of the three names, or another parameter varies.
        ImportError
            If matplotlib is not installed (extra ``plot``).
        """
        _validate.choice("over", over, _PARAMETERS)
        others = [name for name in _PARAMETERS if name != over]
        for name in others:
            if np.unique(getattr(self, name)).size > 1:
                raise ValueError(f"over={over!r} must be the only parameter that varies, but {name} varies too: "
                                 f"draw rows of one value, such as table.select({name}={getattr(self, name)[0]:g}).plot()")
        ax = plotting.axes(ax, wide=True)
        order = np.argsort(getattr(self, over), kind="stable")
        x = getattr(self, over)[order]
        if self.randomizer is None:
            band, line = "randomized response to stronger clones", "stronger clones, upper bound"
        else:
            name = type(_with_budget(self.randomizer, float(self.local_eps[0]))).__name__
            band, line = "lower to upper bound", f"shuffled {name}, upper bound"
        ax.fill_between(x, self.attained[order], self.upper[order], color="#999999", alpha=0.25, linewidth=0, label=band)
        ax.plot(x, self.upper[order], color="#000000", linewidth=2.2, label=line)
        shown = {name: values for name, values in self.bounds.items() if not np.isnan(values).all()}
        for place, (name, values) in enumerate(shown.items()):
            ax.plot(x, values[order], label=f"{name} ({self.statuses[name]})", marker="o", markersize=3, linewidth=1.4,
                    **plotting.style(place, besides="#000000"))
        told = ", ".join(f"{name} = {plotting.number(float(getattr(self, name)[0]))}" for name in others)
        units = {"users": "users n", "local_eps": r"local budget $\varepsilon_0$ (nats)", "delta": r"$\delta$ (probability)"}
        ax.set(xlabel=units[over], ylabel=r"privacy loss $\varepsilon$ (nats)", title=f"Amplification bounds: {told}", yscale="log")
        if over != "local_eps":
            ax.set_xscale("log")
        plotting.plain_axes(ax)
        plotting.legend(ax, outside=True)
        return ax


def _with_budget(randomizer: Any, budget: float) -> Any:
    """Return the randomizer itself, or what it returns for the local budget if it is a function of the budget."""
    return randomizer if is_randomizer(randomizer) else randomizer(budget)


def _local_budget(randomizer: Randomizer, local_eps: ArrayLike | None) -> ArrayLike:
    """Return local_eps if it is at least the smallest budget of the randomizer, or this budget if local_eps is not given."""
    local = Shuffled(randomizer, 1)
    budget = float(local.epsilon(0.0))
    if math.isinf(budget):
        raise ValueError(f"randomizer={randomizer!r} must have a finite local budget: the published bounds need one")
    if local_eps is None:
        return budget
    smallest = float(local.epsilon(0.0, bound="lower"))
    for value in np.atleast_1d(_validate.real_array("local_eps", local_eps, 0, 700, open_low=True)).ravel().tolist():
        if value < smallest:
            raise ValueError(f"local_eps={value:g} is below the local budget {budget:g} of randomizer={randomizer!r}: "
                             "leave local_eps out")
    return local_eps


def _takes_three(bound: Callable[..., float]) -> bool:
    """Whether the function can be called with three arguments. The result is True if the signature is not known."""
    try:
        inspect.signature(bound).bind(10**4, 1.0, 1e-6)
    except ValueError:
        return True
    except TypeError:
        return False
    return True


def compare(
    mine: Mapping[str, Callable[[int, float, float], float]] | None = None,
    *,
    users: ArrayLike,
    delta: ArrayLike,
    local_eps: ArrayLike | None = None,
    randomizer: Randomizer | Callable[[float], Randomizer] | None = None,
) -> AmplificationTable:
    r"""Compare user-defined amplification bounds with the published bounds and with bounds of the exact eps, over a grid.

    The exact eps is that of the given randomizer or, without one, that of the worst randomizer with the local budget.

    Parameters
    ----------
    mine : dict of callables, optional
        Bounds by name. Each is called with the number of users (an int), the local budget and delta (floats), and returns eps. It
        may raise ValueError where it does not apply.
    users : int or array_like
        Numbers of users, 1 to 2**53.
    delta : float or array_like
        Failure probabilities, in (0, 1).
    local_eps : float or array_like, optional
        Local budgets in nats, in (0, 700]; by default the local budget of a single randomizer.
    randomizer : Randomizer or callable, optional
        If the bounds in `mine` have to hold for a single randomizer only: this randomizer, or a function that returns it for a
        local budget, such as ``lambda eps0: KaryResponse(10, eps0)``. Its local budget must be at most local_eps. Both bounds of
        the eps of its shuffled messages are computed for every row.

    Returns
    -------
    AmplificationTable
        One row for every combination of users, local_eps and delta.

    Raises
    ------
    ValueError
        If an argument is outside its range, the grid has more than 10**5 rows, a name in `mine` is that of a published bound, or
        the local budget of the randomizer is infinite or above local_eps.
    TypeError
        If a value of `mine` is not callable, `randomizer` is neither a randomizer nor a function that returns one, or local_eps is
        missing.

    Notes
    -----
    If a randomizer is given, a bound below its eps is false. Otherwise the table compares with binary randomized response: a bound
    below its eps does not hold for every pure randomizer, but may be valid for the randomizers for which it was proved. The table
    does not show whether a bound between that eps and `upper` is valid.

    Examples
    --------
    >>> from math import log, sqrt
    >>> from shufflebounds import published
    >>> def mine(users, local_eps, delta):
    ...     return local_eps * sqrt(log(1 / delta) / users)
    >>> table = published.compare({"mine": mine}, users=[10**4, 10**5], local_eps=1.0, delta=1e-6)
    >>> table.refuted()
    {}
    >>> print(table.bounds["mine"].round(5), table.upper.round(5))
    [0.03717 0.01175] [0.04321 0.01243]

    The same formula is false for ten-ary randomized response with a larger budget:

    >>> from shufflebounds.mechanisms import KaryResponse
    >>> one = KaryResponse(10, 5.0)
    >>> published.compare({"mine": mine}, users=[10**4, 10**5], delta=1e-6, randomizer=one).refuted()
    {'mine': array([0, 1])}
    """
    mine = dict(mine or {})
    published = amplification_bounds()
    names = {bound.__name__ for bound in published}
    for name, bound in mine.items():
        if not callable(bound):
            raise TypeError(f"mine[{name!r}]={bound!r} must be a function of (users, local_eps, delta)")
        if not _takes_three(bound):
            raise TypeError(f"mine[{name!r}] takes {inspect.signature(bound)}: it must be a function of (users, local_eps, delta)")
        if name in names:
            raise ValueError(f"mine={name!r} is the name of a published bound: use another name")
    if is_randomizer(randomizer):
        local_eps = _local_budget(randomizer, local_eps)
    elif randomizer is not None and not callable(randomizer):
        raise TypeError(f"randomizer={randomizer!r} must be a local randomizer such as KaryResponse(10, 2.0), or a function that "
                        "returns one for a local budget")
    if local_eps is None:
        raise TypeError("local_eps is missing: pass local budgets, or a single randomizer, whose budget is used")
    grids: tuple[FloatArray, ...] = (
        np.atleast_1d(_validate.whole_array("users", users, 1)).ravel().astype(np.float64),
        np.atleast_1d(_validate.real_array("local_eps", local_eps, 0, 700, open_low=True)).ravel(),
        np.atleast_1d(_validate.real_array("delta", delta, 0, 1, open_low=True, open_high=True)).ravel(),
    )
    size = math.prod(grid.size for grid in grids)
    if size > MOST_ROWS:
        raise ValueError(f"users, local_eps and delta make {size} rows, which must be at most {MOST_ROWS}: pass fewer values")
    n, budgets, deltas = (np.asarray(grid, dtype=np.float64).ravel() for grid in np.meshgrid(*grids, indexing="ij"))
    rows = [(int(a), b, c) for a, b, c in zip(n.tolist(), budgets.tolist(), deltas.tolist())]
    refused: dict[str, dict[int, str]] = {}

    def used(budget: float) -> Randomizer:
        one = _with_budget(randomizer, budget)
        if not is_randomizer(one):
            raise TypeError(f"randomizer({budget:g}) returns {one!r}: it must be a local randomizer such as KaryResponse(10, 2.0)")
        if one is not randomizer:
            _local_budget(one, budget)
        return one

    def values(name: str, bound: Callable[[int, float, float], float]) -> FloatArray:
        column = np.full(size, np.nan)
        for i, row in enumerate(rows):
            try:
                column[i] = float(bound(*row))
            except ValueError as problem:
                refused.setdefault(name, {})[i] = str(problem)
            tick()
        return column

    with _validate.quiet(), announced("compare"):
        # Warnings are silenced here, because the grid may contain arguments for which a single profile would print one.
        exact = [StrongerClones(a, b) if randomizer is None else Shuffled(used(b), a) for a, b, _ in rows]
        upper, lower = np.empty(size), np.empty(size)
        for i, (profile, (_, _, c)) in enumerate(zip(exact, rows)):
            upper[i], lower[i] = profile.epsilon(c), profile.epsilon(c, bound="lower")
            tick()
        attained = lower if randomizer is not None else np.array(
            [ShuffledBits(a, 1 / (math.exp(b) + 1), ones=0).epsilon(c, bound="lower") for a, b, c in rows]
        )
        table = {name: values(name, bound) for name, bound in mine.items()}
        table |= {bound.__name__: values(bound.__name__, bound) for bound in published}
    statuses = dict.fromkeys(mine, "yours") | {bound.__name__: bound.verdict for bound in published}
    return AmplificationTable(n, budgets, deltas, upper, lower, attained, table, statuses, refused, randomizer)
