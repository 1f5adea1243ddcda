"""Makes the ufuncs of this library: a kernel, the loop of loops.h around it, and a docstring assembled from common parts.

Layer: between the scalar kernels, which do not use Python, and the names that users import.
Measured error   none of its own: an element is the kernel's result, to the bit (tests/core/test_cython_tails.py).
"""

cimport numpy as cnp

cdef extern from "numpy/ufuncobject.h":
    int _import_umath() except -1

# loops.h uses the types of NumPy's headers, so it comes after them
cdef extern from "loops.h":
    object loops_make(void *kernel, int inputs, int outputs, int blocks, int slow, const char *name, const char *doc)

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
        Where to write the result; with `where` and the other keywords of a NumPy ufunc.

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
