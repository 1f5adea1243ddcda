# Exponential tilting of the distribution of a sum over independent users, each with finitely many values (atoms).
# Method and roundings: the header of _tilted.pyx.

from shufflebounds._core._constants cimport EXCESS_LANES

# One group of users: its scaled values and, at the current theta, its tilted distribution, whose last atom is that at 0.
cdef struct Group:
    double *log_w          # log w
    double *x              # values of the atoms, without those at 0
    double *w              # probabilities of the atoms
    double *p              # tilted probabilities
    double *y              # values minus the tilted mean
    Py_ssize_t all         # number of atoms of the distribution as passed that are not at 0
    Py_ssize_t atoms       # number of atoms in use: the first `atoms` ones
    Py_ssize_t seen        # number of atoms of the tilted distribution, including the one at 0
    double count
    double rest            # the mass at 0, including the mass of the values that _heavy_tails.pyx moves to 0
    double log_rest        # log of the mass at 0 of the distribution as passed
    double above           # mass of the values that _heavy_tails.pyx splits off, which can be far below an ulp of the rest
    double sd              # standard deviation of the tilted distribution p, y
    double reach           # largest |y|

# At one theta, over all users: K, K', K'' of the sum, and the change of K(s) per unit of |s| if every value and mass has an error
# of one ulp.
cdef struct Cumulant:
    double value
    double slope
    double var
    double blur

# Number of doubles for the arrays of a group; the tilted distribution is padded to whole vectors.
cdef inline Py_ssize_t room_of(Py_ssize_t atoms) noexcept nogil:
    return 5 * atoms + 2 * EXCESS_LANES

# Places the arrays of a group in the buffer `room`, which has room_of(atoms) doubles, and writes its atoms, with values divided by
# 2^power. Returns the sum of the masses.
cdef double c_lay_out(Group *group, const double *x, const double *log_w, Py_ssize_t atoms, int power, double count,
                      double *room) noexcept nogil

# Computes w from log_w, and the mass at 0, to which values of mass `moved` are moved. Returns the sum of the masses.
cdef double c_masses(Group *group, double moved) noexcept nogil

# K(theta), theta >= 0, and its derivatives; if tilt, also the tilted distribution p, y of each group. Infinite if a term overflows.
cdef void c_cumulant(Group *groups, Py_ssize_t number, double theta, bint tilt, Cumulant *out) noexcept nogil

# The theta > 0 with K'(theta) = 2/theta. The caller has checked: some value is above 0.
cdef double c_saddle(Group *groups, Py_ssize_t number, bint tilt, Cumulant *at) noexcept nogil
