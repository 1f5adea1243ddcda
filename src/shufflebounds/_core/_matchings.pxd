# mass: outputs; tables: (outputs, outputs, 6, 4), see negative_part. Nonnegative; products of two entries do not overflow.
cdef double c_negative_part(const double *mass, Py_ssize_t outputs, const double *tables) noexcept nogil
