# Double-double arithmetic for the kernels of this package (dd.h, beside their sources; neither is installed).

cdef extern from "dd.h" nogil:
    ctypedef struct dd:
        double hi
        double lo
    dd dd_make(double hi, double lo)
    dd dd_fast_sum(double a, double b)
    dd dd_sum(double a, double b)
    void dd_accumulate(dd *total, double term)
    dd dd_prod(double a, double b)
    dd dd_add(dd a, dd b)
    dd dd_neg(dd a)
    dd dd_mul_d(dd a, double b)
    dd dd_mul(dd a, dd b)
    dd dd_div(dd a, dd b)
