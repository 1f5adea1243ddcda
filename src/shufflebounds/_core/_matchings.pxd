# Shapes: mass (outputs), tables (outputs, outputs, 6, 4); see negative_part in _matchings.pyx. The caller has checked: entries are
# nonnegative, and products of two do not overflow.
cdef double c_negative_part(const double *mass, Py_ssize_t outputs, const double *tables) noexcept nogil
