"""Makes the ufuncs of this library from a kernel, the loop of loops.h that calls it, and a docstring of common parts.

Measured error   none of its own: an element is the kernel's result, to the bit (tests/core/test_cython_tails.py).
"""

import numpy as np

cimport numpy as cnp

cdef extern from "numpy/ufuncobject.h":
    int _import_umath() except -1

# loops.h uses the types of NumPy's headers, so it comes after them
cdef extern from "loops.h":
    object loops_make(void *kernel, int inputs, int outputs, int blocks, int slow, const char *name, const char *doc)
    bint loops_on_level(object ufunc, int level, const double *const *inputs, double *out, Py_ssize_t count)

cnp._import_array()
_import_umath()

KEPT = []           # keeps the names and docstrings alive, since a ufunc only points to them


cdef object made(void *kernel, int outputs, bint blocks, bint slow, str doc):
    cdef str call = doc.split(")")[0]
    cdef bytes name = call.split("(")[0].encode(), text = doc.encode()
    KEPT.append((name, text))
    return loops_make(kernel, call.count(",") + 1, outputs, blocks, slow, name, text)


cdef object ufunc(void *kernel, str doc):
    return made(kernel, 1, False, False, doc)


cdef object ufunc_of_pairs(void *kernel, str doc):
    return made(kernel, 2, False, True, doc)


cdef object ufunc_of_blocks(void *kernel, str doc):
    return made(kernel, 1, True, False, doc)


def on_level(function, int level, *arguments):
    """Return the values of a ufunc whose kernel works on blocks of elements. Used by tests.

    `level` is the instruction set (vectors.h), or the widest one below it that the processor has.
    """
    cdef const double *pointers[4]
    cdef const double[::1] view
    cdef double[::1] out = np.empty(len(arguments[0]))
    cdef int i
    held = [np.ascontiguousarray(x, np.float64) for x in arguments]
    if len(held) != function.nin or {x.shape for x in held} != {(out.size,)}:
        raise ValueError(f"{function.__name__} takes {function.nin} arrays of one length, not {[x.shape for x in held]}")
    for i in range(len(held)):
        view = held[i]
        pointers[i] = &view[0]
    if not loops_on_level(function, level, pointers, &out[0], out.size):
        raise TypeError(f"{function.__name__} has no block kernel")
    return np.asarray(out)


cdef str document(str call, str summary, dict arguments, str see, str example, str answer, str notes=""):
    listed = "\n    ".join(f"{name} : array_like\n        {text}" for name, text in arguments.items())
    name = call.split("(")[0]
    noted = f"\n    Notes\n    -----\n    {notes}\n" if notes else ""
    return f"""{call}

    {summary}

    Parameters
    ----------
    {listed}
    out : ndarray, optional
        Array for the result. `where` and the other keywords of a NumPy ufunc are accepted.

    Returns
    -------
    ndarray or float
        Natural logarithm, -inf for zero; NaN where an argument lies outside its domain.

    See Also
    --------
    {see}
{noted}
    Examples
    --------
    >>> from shufflebounds.tails import {name}
    >>> print(f"{{{example}}}")
    {answer}
    """
