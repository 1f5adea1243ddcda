"""Code that every folder may import: types, validation, searches, caches, and constants that several modules share. Imports only
`_core`.

Start with `types` (what a bound is) and `evidence` (what it rests on), then `validate` (what is checked), `limits` (the shared
numbers) and `crossing` (from delta to eps). `search` finds roots and maxima, `convex_order` reduces distributions to fewer values,
and `quadrature` computes integrals. `caches`, `threads` and `progress` serve long computations. `calls` and `docs` serve public
functions, and `plotting` draws curves; `lazy` and `scipy_functions` keep the import fast.
"""

import os

# The version of the library; pyproject.toml, CITATION.cff and the recipe state the same one.
__version__ = "0.1.0"

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def get_include() -> str:
    """Return the folder of the C headers.

    ``shufflebounds.h`` declares the functions of the C library (:func:`get_library`), for programs without Python.
    ``shufflebounds_python.h`` declares the functions of ``cython_tails``, for extensions of Python in C. Such an extension need not
    be linked with a library.

    Returns
    -------
    str
        An absolute path. An extension in Cython needs no folder, because ``cimport`` finds the declarations.

    Examples
    --------
    >>> import os, shufflebounds
    >>> sorted(os.listdir(shufflebounds.get_include()))
    ['shufflebounds.h', 'shufflebounds_python.h']
    """
    return os.path.join(_PACKAGE, "include")


def get_library() -> str:
    """Return the folder of the C library, static and shared, and of its file for pkg-config (in ``pkgconfig``).

    ``python -m shufflebounds config --cflags --libs`` prints the flags of a compiler.

    Returns
    -------
    str
        An absolute path.

    See Also
    --------
    get_include : The folder of the headers.

    Examples
    --------
    >>> import os, shufflebounds
    >>> "pkgconfig" in os.listdir(shufflebounds.get_library())
    True
    """
    return os.path.join(_PACKAGE, "lib")
