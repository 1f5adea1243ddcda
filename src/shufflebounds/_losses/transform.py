"""The moment generating function of the privacy loss of one release, in a form that compositions by Fourier inversion can use."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.types import FloatArray

__all__ = ["Cumulants", "LossTransform", "Spectrum", "TiltedTransform"]


class Spectrum(NamedTuple):
    """Values of E e^(z L) e^-scale - 1 for the privacy loss L at z = theta + i spacing j, j = 0, 1, ..., with error bounds.

    The difference from 1 is stored because its relative error stays small for releases with small losses. Such releases are
    repeated most often.
    """

    differences: NDArray[np.complex128]
    error: FloatArray


class Cumulants(NamedTuple):
    """The cumulant generating function of the loss of one release at several tilts theta, with bounds of its errors.

    An error bound is inf if too many quadrature points would be needed. `mean` and `var` are approximations of the first two
    derivatives with respect to theta.
    """

    value: FloatArray
    error: FloatArray
    mean: FloatArray
    var: FloatArray


class TiltedTransform(Protocol):
    """The moment generating function E e^(z L) of the loss L of one release on the line Re z = theta."""

    @property
    def scale(self) -> float:
        """The cumulant generating function at theta."""

    @property
    def points(self) -> int:
        """The number of quadrature points. One value of the spectrum takes about 5 ns for each point."""

    def spectrum(self, spacing: float, count: int) -> Spectrum:
        """Return the values of the moment generating function at z = theta + i t for t = 0, spacing, ..., (count - 1) spacing."""

    def decay(self, frequency: float) -> float:
        """Return an upper bound of log |E e^((theta + i t) L)| - scale that holds for all t >= frequency; L is the loss."""


class LossTransform(Protocol):
    """The moment generating function of the loss of one release."""

    def cumulants(self, theta: FloatArray) -> Cumulants:
        """Return the cumulant generating function at increasing real numbers theta > 0."""

    def tilted(self, theta: float) -> TiltedTransform | None:
        """Return E e^(z L) on the line Re z = theta > 0 of the complex plane, or None if it needs too many quadrature points.

        If the result is None for one theta, it is None for all larger theta.
        """
