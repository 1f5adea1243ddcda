"""The functions of SciPy that the library uses, each imported at its first call.

Importing scipy.special, scipy.fft and scipy.linalg takes longer than a typical computation of this library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__all__ = [
    "betaincc", "betainccinv", "betaln", "erf", "erfcx", "erfinv", "exprel", "fft", "gammainc", "gammaincc", "gammaincinv",
    "gammaln", "ive", "linprog", "log_ndtr", "logsumexp", "ndtr", "ndtri", "ndtri_exp", "toeplitz",
]

if TYPE_CHECKING:
    from scipy import fft
    from scipy.linalg import toeplitz
    from scipy.optimize import linprog
    from scipy.special import (
        betaincc,
        betainccinv,
        betaln,
        erf,
        erfcx,
        erfinv,
        exprel,
        gammainc,
        gammaincc,
        gammaincinv,
        gammaln,
        ive,
        log_ndtr,
        logsumexp,
        ndtr,
        ndtri,
        ndtri_exp,
    )
else:

    class _Later:
        """A module, or a function of one, that is imported when it is first used."""

        def __init__(self, module: str, name: str = "") -> None:
            self._module, self._name, self._found = module, name, None

        def _get(self) -> Any:
            if self._found is None:
                module = importlib.import_module(self._module)
                self._found = getattr(module, self._name) if self._name else module
            return self._found

        def __call__(self, *args: Any, **options: Any) -> Any:
            return self._get()(*args, **options)

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return getattr(self._get(), name)

    fft = _Later("scipy.fft")
    toeplitz = _Later("scipy.linalg", "toeplitz")
    linprog = _Later("scipy.optimize", "linprog")
    globals().update({name: _Later("scipy.special", name) for name in __all__ if name not in ("fft", "linprog", "toeplitz")})
