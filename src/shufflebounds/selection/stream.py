"""The sparse vector technique, run: one query after the other, until so many have been found above the threshold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from shufflebounds import _validate
from shufflebounds._docs import with_passages
from shufflebounds.selection.sparse_vector import SVTScales

__all__ = ["SparseVector"]


@with_passages
class SparseVector:
    r"""Sparse vector on a stream of queries: AboveThreshold, Sparse, NumericSparse, and their generalisation to any scales.

    A query with answer q is reported above the threshold T where :math:`q + V \ge T + R`; V is drawn for every query, R at the
    start and, with `resample`, anew after each answer above. It halts after ``scales.cutoff`` answers above, or `max_queries`
    queries.

    Parameters
    ----------
    threshold : float
        The threshold T, public.
    scales : SVTScales
        Scales of the noise for queries of sensitivity 1, as :func:`svt_scales` returns them; with ``answer`` set, the value of a
        query above the threshold is released with noise of its own.
    noise : {"laplace", "gaussian"}
        Law of the noise; the scales of Gaussian noise are deviations.
    sensitivity : float
        Most by which one person changes any query, > 0; multiplies the scales.
    resample : bool
        Whether the threshold's noise is drawn anew after each answer above it.
    max_queries : int, optional
        Number of queries after which it halts in any case.
    rng : None, int or numpy.random.Generator
        Source of randomness.

    {raises}

    Notes
    -----
    What a run costs: :func:`svt_scales` for Laplace noise, with `resample`; :func:`svt_rdp` and :func:`svt_stages_epsilon` for
    any. AboveThreshold is ``svt_scales(eps)``, Sparse ``svt_scales(eps, delta, cutoff)``, NumericSparse the same with
    ``numeric=True``. The noise is that of doubles: the lowest bits of a released number may tell more than its law does.

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
        """Whether it has halted: no further query is answered."""
        return self._left == 0 or self._queries == 0

    def ask(self, value: float) -> bool | float:
        """Answer one query, which may depend on the answers so far.

        Parameters
        ----------
        value : float
            The query's exact answer on the data.

        Returns
        -------
        bool or float
            Whether it was found above the threshold; where numbers are released, the noisy value instead of True.

        Raises
        ------
        RuntimeError
            If it has halted: to go on would cost more than was promised.
        ValueError
            If `value` is not finite.
        """
        if self.halted:
            raise RuntimeError("sparse vector has halted: a further answer is not covered by its budget")
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
        """Answer one query after the other until it halts or there are no more.

        Parameters
        ----------
        values : iterable of float
            The queries' exact answers on the data.

        Returns
        -------
        list
            As :meth:`ask` answers; shorter than `values` where it has halted.

        Raises
        ------
        RuntimeError
            If it has halted before.
        """
        answers = []
        for value in values:
            answers.append(self.ask(value))
            if self.halted:
                break
        return answers
