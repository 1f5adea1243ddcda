"""The class that runs the sparse vector technique on queries, one by one, until `cutoff` of them are found above the threshold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds.selection.sparse_vector import SVTScales

__all__ = ["SparseVector"]


@explained
@with_passages
class SparseVector:
    r"""Sparse vector on a stream of queries: AboveThreshold, Sparse, NumericSparse, with arbitrary noise scales.

    A query with the exact answer q is reported above the threshold T if :math:`q + V \ge T + R`, otherwise below. The noise V is
    drawn for every query. The noise R is drawn at the start and, with `resample`, again after each query reported above. The run
    halts after ``scales.cutoff`` queries reported above, or after `max_queries` queries.

    Parameters
    ----------
    threshold : float
        The threshold T, public.
    scales : SVTScales
        Scales of the noise for queries of sensitivity 1, as :func:`svt_scales` returns them. If ``answer`` is set, the value of a
        query above the threshold is released with independent noise of that scale.
    noise : {"laplace", "gaussian"}
        Distribution of the noise; the scales of Gaussian noise are standard deviations.
    sensitivity : float
        Largest change of the answer of any query by one person, > 0. The scales of the noise are multiplied by it.
    resample : bool
        Whether the threshold's noise is drawn again after each answer above it.
    max_queries : int, optional
        Number of queries after which the run halts in any case.
    {rng}

    {raises}

    Notes
    -----
    With the scales of :func:`svt_scales`, Laplace noise and `resample`, a run is (eps, delta)-private for the arguments of that
    function: ``svt_scales(eps)`` is for AboveThreshold, ``svt_scales(eps, delta, cutoff)`` for Sparse, and the same with
    ``numeric=True`` for NumericSparse. For other scales or noise, :func:`svt_rdp` and :func:`svt_stages_epsilon` bound the privacy
    loss. The noise is computed in floating-point arithmetic: the lowest bits of a released number may reveal more than the
    continuous distribution does.

    References
    ----------
    .. [1] C. Dwork, A. Roth, "The algorithmic foundations of differential privacy", 2014, Algorithms 1 to 3.
    .. [2] Y. Zhu, Y.-X. Wang, "Improving sparse vector technique with Renyi differential privacy", NeurIPS 2020, Algorithm 2.

    Examples
    --------
    >>> from shufflebounds.selection import SparseVector, svt_scales
    >>> stream = SparseVector(500.0, svt_scales(1.0, cutoff=2), rng=1)
    >>> stream.run([100, 900, 200, 150, 1200, 800]), stream.halted
    ([False, True, False, False, True], True)
    """

    def __init__(
        self,
        threshold: float,
        scales: SVTScales,
        *,
        noise: Literal["laplace", "gaussian"] = "laplace",
        sensitivity: float = 1.0,
        resample: bool = True,
        max_queries: int | None = None,
        rng: Any = None,
    ) -> None:
        if not isinstance(scales, SVTScales):
            raise ValueError(f"scales={scales!r} must be SVTScales, as svt_scales returns")
        sensitivity = _validate.real("sensitivity", sensitivity, 0, open_low=True)
        self._threshold = _validate.real("threshold", threshold)
        _validate.choice("noise", noise, ("laplace", "gaussian"))
        names = ("threshold", "query", "answer") if scales.answer is not None else ("threshold", "query")
        self._scales = {
            name: sensitivity * _validate.real(f"scales.{name}", getattr(scales, name), 0, open_low=True) for name in names
        }
        self._left = _validate.integer("scales.cutoff", scales.cutoff, 1)
        self._resample = bool(resample)
        self._queries = None if max_queries is None else _validate.integer("max_queries", max_queries, 1)
        source = _validate.generator(rng)
        self._draw = source.laplace if noise == "laplace" else source.normal
        self._level = self._noisy(self._threshold, "threshold")

    def _noisy(self, value: float, name: str) -> float:
        return float(value + self._draw(scale=self._scales[name]))

    @property
    def halted(self) -> bool:
        """Whether the run has halted: no further query is answered."""
        return self._left == 0 or self._queries == 0

    def ask(self, value: float) -> bool | float:
        """Answer one query, which may depend on the answers before.

        Parameters
        ----------
        value : float
            The query's exact answer on the dataset.

        Returns
        -------
        bool or float
            Whether the query was found above the threshold. If ``scales.answer`` is set, the noisy value is returned instead of
            True.

        Raises
        ------
        RuntimeError
            If the run has halted: a further answer would exceed the budget.
        ValueError
            If `value` is not finite.
        """
        if self.halted:
            raise RuntimeError("sparse vector has halted, and its budget covers no further answer: start a new SparseVector")
        value = _validate.real("value", value)
        if self._queries is not None:
            self._queries -= 1
        if not self._noisy(value, "query") >= self._level:
            return False
        self._left -= 1
        if self._resample and self._left:
            self._level = self._noisy(self._threshold, "threshold")
        return self._noisy(value, "answer") if "answer" in self._scales else True

    def run(self, values: Iterable[float]) -> list[bool | float]:
        """Answer the queries one by one, until the run halts or there are no more queries.

        Parameters
        ----------
        values : iterable of float
            The queries' exact answers on the dataset.

        Returns
        -------
        list
            The answers of :meth:`ask`, fewer than `values` if the run has halted.

        Raises
        ------
        RuntimeError
            If the run has halted before.
        """
        answers = []
        for value in values:
            answers.append(self.ask(value))
            if self.halted:
                break
        return answers
