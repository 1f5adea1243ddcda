# Exponential tilting of the distribution of a sum over independent users, each with finitely many values (atoms).
# Method and roundings: the header of _tilted.pyx.

from shufflebounds._core._constants cimport EXCESS_LANES

# One group with its values scaled and, at the current theta, its tilted law; the last atom is the rest of the mass, at 0.
cdef struct Group:
    double *log_w
    double *x
    double *w
    double *p
    double *y
    Py_ssize_t all         # number of atoms of the distribution as passed
    Py_ssize_t atoms       # number of atoms in use: the first `atoms` ones
    Py_ssize_t seen        # atoms of the tilted law, the rest among them
    double count
    double rest
    double log_rest
    double above           # mass of the jumps, often far below an ulp of the rest
    double sd
    double reach

# At one theta, over all users: K, K', K'' of the sum, and what an ulp in every value and mass does to K(s) for each unit of |s|.
cdef struct Cumulant:
    double value
    double slope
    double var
    double blur

# Doubles for the arrays of a group, the tilted law in whole vectors with the rest of the mass.
cdef inline Py_ssize_t room_of(Py_ssize_t atoms) noexcept nogil:
    return 5 * atoms + 2 * EXCESS_LANES

# The arrays of a group of so many atoms, laid out in `room`, which has room_of(atoms) doubles.
cdef void c_lay_out(Group *group, Py_ssize_t atoms, double count, double *room) noexcept nogil

# w and the rest of the mass from log_w.
cdef void c_masses(Group *group) noexcept nogil

# K(theta), theta >= 0, and its derivatives; tilt: the tilted laws p, y as well. Infinite where a term overflows.
cdef void c_cumulant(Group *groups, Py_ssize_t number, double theta, bint tilt, Cumulant *out) noexcept nogil

# The theta > 0 with K'(theta) = 2/theta. Checked by the caller: some value is above 0.
cdef double c_saddle(Group *groups, Py_ssize_t number, bint tilt, Cumulant *at) noexcept nogil
