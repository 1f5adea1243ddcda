# Makes ufuncs of kernels; loops.h documents the arguments of a kernel and the handling of signals, the lock and flags. A docstring
# begins with the call, name(arguments).

# For a kernel of 1 to 4 doubles that returns one.
cdef object ufunc(void *kernel, str doc)

# For a kernel (const double *in, double *out) with two results an element, which may take long.
cdef object ufunc_of_pairs(void *kernel, str doc)

# For a kernel that evaluates count elements, at most 256, in one call: (int level, const double *const *in, double *out,
# Py_ssize_t count). vectors.h documents the level.
cdef object ufunc_of_blocks(void *kernel, str doc)

# The docstring of a public ufunc. arguments: name -> description; example: an expression inside an f-string; answer: its output.
cdef str document(str call, str summary, dict arguments, str see, str example, str answer, str notes=*)
