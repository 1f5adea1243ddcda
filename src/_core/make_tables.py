"""Write tables.h: every fitted or tabulated constant of the kernels, with its error.

Run as ``python src/_core/make_tables.py`` (mpmath; about ten seconds). tests/core/test_tables.py recomputes the entries.
"""

from fractions import Fraction
from math import factorial
from pathlib import Path

import mpmath

mpmath.mp.dps = 60

UNIFORM_ORDERS = (9, 15)
ATANH_TERMS = 12
LGAMMA_TERMS = 28
MILLS_PIECES, MILLS_DEGREE, MILLS_SCALE = 32, 8, 4
LOG_FIRST, LOG_STEP = 0.6875, 128
STIRLING_LAST = 15
STIRLING_NODES = (1, 2, 3, 4, 5, 6, 7, 9, 12, 20)
SMALL_MILLS_SCALE, SMALL_MILLS_DEGREE, SMALL_MILLS_MOST = 6, 18, 8


def log_table():
    """Return one row (c, hi, lo) for each cell of z: c is near 1/z in the cell, and hi + lo is -log(c) in double-double."""
    rows = []
    cells = int((1.4375 - LOG_FIRST) * LOG_STEP)
    for i in range(cells):
        centre = LOG_FIRST + (i + 0.5) / LOG_STEP
        c = round(512 / centre) / 512
        exact = -mpmath.log(mpmath.mpf(c))
        hi = float(exact)
        rows.append((c, hi, float(exact - mpmath.mpf(hi))))
    return rows


def stirling_error(n):
    """Return log(n!) - log(sqrt(2 pi n) (n/e)^n)."""
    n = mpmath.mpf(n)
    return mpmath.loggamma(n + 1) - (n + mpmath.mpf(1) / 2) * mpmath.log(n) + n - mpmath.log(2 * mpmath.pi) / 2


def stirling_table():
    """Return Stirling's error of n at the indices n = 1, ..., STIRLING_LAST. The entry at index 0 is 0."""
    return [0.0] + [float(stirling_error(n)) for n in range(1, STIRLING_LAST + 1)]


def stirling_ratio():
    """Return the coefficients of P and Q, low order first. P(n^2)/(n Q(n^2)) approximates Stirling's error of n.

    The approximation is exact at n in STIRLING_NODES and at infinity.

    As a function of 1/n^2, Stirling's error times n is a Stieltjes function. So every coefficient is positive, and the error of the
    approximation is small at integers between the nodes, too.
    """
    half = len(STIRLING_NODES) // 2
    points = [(mpmath.mpf(n) ** -2, n * stirling_error(n)) for n in STIRLING_NODES] + [(mpmath.mpf(0), mpmath.mpf(1) / 12)]
    matrix = mpmath.matrix([[w**d for d in range(half + 1)] + [-g * w**d for d in range(1, half + 1)] for w, g in points])
    solved = list(mpmath.lu_solve(matrix, mpmath.matrix([g for _, g in points])))
    top, bottom = solved[: half + 1], [mpmath.mpf(1), *solved[half + 1 :]]
    return [float(c) for c in top[::-1]], [float(c) for c in bottom[::-1]]


def small_mills():
    """Return coefficients, low order first, of Mills' ratio M(x), 0 <= x <= most, as a polynomial in u.

    Here u = scale (most - x)/(most (scale + x)), which lies in [0, 1].

    All coefficients that matter in double precision are positive, so that no terms cancel.
    """
    scale, most, nodes = SMALL_MILLS_SCALE, SMALL_MILLS_MOST, SMALL_MILLS_DEGREE + 1
    points = [(1 + mpmath.cos(mpmath.pi * (2 * j + 1) / (2 * nodes))) / 2 for j in range(nodes)]
    matrix = mpmath.matrix([[u**d for d in range(nodes)] for u in points])

    def mills(u):
        x = scale * most * (1 - u) / (scale + most * u)
        return mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(x * x / 2) * mpmath.erfc(x / mpmath.sqrt(2))

    return [float(c) for c in mpmath.lu_solve(matrix, mpmath.matrix([mills(u) for u in points]))]


def mills_value(y):
    """Return M(x)/y at y = MILLS_SCALE/(MILLS_SCALE + x), M the Mills ratio of the normal distribution."""
    if y == 0:
        return mpmath.mpf(1) / MILLS_SCALE
    x = MILLS_SCALE * (1 - y) / y
    if x > 300:                                   # the asymptotic series, with a relative error below 1e-100
        total = term = mpmath.mpf(1)
        for k in range(1, 40):
            term *= -(2 * k - 1) / x**2
            total += term
        return total / x / y
    return mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(x * x / 2) * mpmath.erfc(x / mpmath.sqrt(2)) / y


def mills_table():
    """Return for each piece the coefficients, low order first, in t = MILLS_PIECES*y - i - 1/2 (Chebyshev interpolation).

    Piece i is the part of the function `mills_value` with i <= MILLS_PIECES*y < i + 1.
    """
    rows = []
    nodes = MILLS_DEGREE + 1
    for i in range(MILLS_PIECES):
        points = [mpmath.cos(mpmath.pi * (2 * j + 1) / (2 * nodes)) / 2 for j in range(nodes)]
        matrix = mpmath.matrix([[t**d for d in range(nodes)] for t in points])
        values = mpmath.matrix([mills_value((i + mpmath.mpf(1) / 2 + t) / MILLS_PIECES) for t in points])
        rows.append([float(c) for c in mpmath.lu_solve(matrix, values)])
    return rows


def atanh_table():
    """Return the coefficients of (atanh(v)/v - 1)/v^2 in w = v^2, interpolated at Chebyshev nodes of [0, 1/9]."""
    nodes = [(1 - mpmath.cos(mpmath.pi * (2 * j + 1) / (2 * ATANH_TERMS))) / 18 for j in range(ATANH_TERMS)]
    matrix = mpmath.matrix([[w**d for d in range(ATANH_TERMS)] for w in nodes])
    values = mpmath.matrix([(mpmath.atanh(mpmath.sqrt(w)) / mpmath.sqrt(w) - 1) / w for w in nodes])
    return [float(c) for c in mpmath.lu_solve(matrix, values)]


def uniform_functions():
    """Return C functions that compute B(s) and the coefficient of M(s) without loops (see binom_uniform in binomial.h).

    With the polynomials e_m of `uniform_table` and h = 1/sigma, the functions compute f_m = e_m(gamma) h^m, and then f_(m-2) +=
    (m-1) f_m for decreasing m. B is the sum over m >= 1 of f_m s^(m-1), with even and odd m summed separately.
    """
    rows = uniform_table()
    out = []
    for order in UNIFORM_ORDERS:
        out.append(f"DD_INLINE double uniform_{order}(double gamma, double h, double s, double *leading) {{")
        out.append("    const double g = gamma * gamma, square = s * s, h2 = h * h;")
        for m in range(order + 1):
            text = f"{float(rows[m][-1]):.17g}"
            for c in rows[m][-2::-1]:
                text = f"({float(c):.17g} + g * {text})"
            power = ["1", "(gamma * h)", "h2"][m] if m < 3 else f"p{m - 2} * h2"
            out.append(f"    const double p{m} = {power};")
            out.append(f"    double f{m} = p{m} * {text};")
        for m in range(order, 1, -1):
            out.append(f"    f{m - 2} += {m - 1}.0 * f{m};")
        for parity in (1, 0):
            terms = list(range(parity or 2, order + 1, 2))
            text = f"f{terms[-1]}"
            for m in terms[-2::-1]:
                text = f"(f{m} + square * {text})"
            out.append(f"    const double {'odd' if parity else 'even'} = {text};")
        out.append("    *leading = f0;")
        out.append("    return odd + s * even;")
        out.append("}")
    return out


def cumulant_polynomials(order):
    """Return kappa_r/kappa_2 of a Bernoulli variable as polynomials in gamma = q - p, r = 2..order (exact).

    The cumulants of a Bernoulli variable satisfy kappa_{r+1} = p q d(kappa_r)/dp, where p q = (1 - gamma^2)/4 and d/dp = -2
    d/dgamma.
    """
    kappa = [Fraction(1, 4), Fraction(0), Fraction(-1, 4)]
    out = []
    for _ in range(2, order + 1):
        # divide by (1 - gamma^2)/4, exactly: synthetic division from the low end
        ratio, carry = [], list(kappa)
        for d in range(len(kappa) - 2):
            q = carry[d] * 4
            ratio.append(q)
            carry[d + 2] += q / 4
        out.append(ratio or [Fraction(1)])
        derivative = [c * (d + 1) for d, c in enumerate(kappa[1:])]
        product = [Fraction(0)] * (len(derivative) + 2)
        for d, c in enumerate(derivative):
            product[d] -= c / 2
            product[d + 2] += c / 2
        kappa = product
    return out


def poly_mul(a, b):
    """Return the product of two polynomials."""
    out = [Fraction(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return out


def poly_add(a, b, scale=Fraction(1)):
    """Return a + scale b."""
    out = [Fraction(0)] * max(len(a), len(b))
    for i, x in enumerate(a):
        out[i] += x
    for i, y in enumerate(b):
        out[i] += scale * y
    return out


def uniform_table():
    """Return the polynomials e_m(gamma), m = 0, ..., UNIFORM_ORDERS[-1], of the series dy/dt = sum e_m t^m, as exact rationals.

    y(t) solves K(y)/kappa_2 = t^2/2, where K is the cumulant generating function of a centered Bernoulli variable and kappa_2 its
    variance. The derivative of this equation is (K'(y)/kappa_2) y'(t) = t. It determines the coefficients a_i of y = sum a_i t^i
    one after another.
    """
    order = UNIFORM_ORDERS[-1] + 1
    kappa = cumulant_polynomials(order + 2)
    # K'(y)/kappa_2 = sum_{r>=2} (kappa_r/kappa_2) y^(r-1)/(r-1)!
    slope = [None] + [[c / factorial(r - 1) for c in kappa[r - 2]] for r in range(2, order + 3)]
    a = [None, [Fraction(1)]]

    def powers(length):
        base = [None] + a[1:]
        out = [[[Fraction(1)]] + [[Fraction(0)]] * length]
        for _ in range(length):
            last, new = out[-1], [[Fraction(0)] for _ in range(length + 1)]
            for i in range(length + 1):
                for j in range(1, min(len(base) - 1, length - i) + 1):
                    new[i + j] = poly_add(new[i + j], poly_mul(last[i], base[j]))
            out.append(new)
        return out

    for m in range(2, order + 1):
        # First compute the coefficient of t^m in K'(y) y' as if a_m were 0. The exact coefficient is larger by a_m (1 + m), and
        # this equation determines a_m.
        a.append([Fraction(0)])
        p = powers(m)
        composed = [[Fraction(0)] for _ in range(m + 1)]
        for r in range(1, m + 1):
            for i in range(m + 1):
                composed[i] = poly_add(composed[i], poly_mul(slope[r], p[r][i]))
        total = [Fraction(0)]
        for i in range(m + 1):
            j = m - i + 1
            if 1 <= j <= m:
                total = poly_add(total, poly_mul(composed[i], a[j]), Fraction(j))
        a[m] = [-c / (m + 1) for c in total]
    rows = []
    for m in range(UNIFORM_ORDERS[-1] + 1):
        e = [c * (m + 1) for c in a[m + 1]]
        e += [Fraction(0)] * (m + 1 - len(e))
        assert all(c == 0 for d, c in enumerate(e) if (d - m) % 2), "e_m has the parity of m"
        rows.append(e[m % 2 : m + 1 : 2])
    return rows


def lgamma_table():
    """Return the Taylor coefficients of log Gamma(2 + a).

    They are 1 - Euler's constant for a^1, and (-1)^k (zeta(k) - 1)/k for a^k, k >= 2.
    """
    coefficients = [1 - mpmath.euler] + [(-1) ** k * (mpmath.zeta(k) - 1) / k for k in range(2, LGAMMA_TERMS + 1)]
    return [float(c) for c in coefficients]


def render():
    """Return the header's text."""
    number = "{:.17g}".format
    out = [
        "/* Written by make_tables.py; do not edit.",
        " *",
        " * LOG_C, LOG_HI, LOG_LO  c ~ 1/z at the centre of a cell of z, and -log(c) in two doubles (106 bits).",
        " * STIRLING               log n! - log(sqrt(2 pi n)(n/e)^n), rounded to nearest; entry 0 is unused.",
        f" * MILLS                  M(x)/y on {MILLS_PIECES} cells of y = {MILLS_SCALE}/({MILLS_SCALE}+x), degree {MILLS_DEGREE},"
        " within 1e-16 relative, coefficients rounded.",
        f" * SMALL_MILLS            M(x), 0 <= x <= {SMALL_MILLS_MOST}, in"
        f" {SMALL_MILLS_SCALE} ({SMALL_MILLS_MOST} - x)/({SMALL_MILLS_MOST} ({SMALL_MILLS_SCALE} + x)), within 3e-17 relative.",
        " * STIRLING_P, _Q         Stirling's error of n as P(n^2)/(n Q(n^2)), n a positive integer, within 1e-20 before rounding.",
        " * ATANH                  (atanh(v)/v - 1)/v^2 as a polynomial in v^2 <= 1/9, within 2e-17 relative before rounding.",
        " * LGAMMA                 log Gamma(2 + a) = sum_k LGAMMA[k-1] a^k; the omitted terms at a = 1/2 sum to less than 1e-18.",
        " * uniform_9, _15        e_m(gamma), gamma = q - p, of the uniform expansion; exact rationals, rounded once.",
        " *                       Always inlined: clang vectorises no loop that calls a function.",
        " */",
        "#ifndef SHUFFLEBOUNDS_TABLES_H",
        "#define SHUFFLEBOUNDS_TABLES_H",
        '#include "dd.h"',
        f"#define LOG_FIRST {LOG_FIRST}",
        f"#define LOG_STEP {LOG_STEP}.0",
        f"#define LOG_CELLS {len(log_table())}",
        f"#define STIRLING_LAST {STIRLING_LAST}",
        f"#define MILLS_PIECES {MILLS_PIECES}",
        f"#define MILLS_DEGREE {MILLS_DEGREE}",
        f"#define MILLS_SCALE {MILLS_SCALE}.0",
        f"#define SMALL_MILLS_SCALE {SMALL_MILLS_SCALE}.0",
        f"#define SMALL_MILLS_DEGREE {SMALL_MILLS_DEGREE}",
        f"#define SMALL_MILLS_MOST {SMALL_MILLS_MOST}.0",
        f"#define ATANH_TERMS {ATANH_TERMS}",
        f"#define LGAMMA_TERMS {LGAMMA_TERMS}",
    ]

    def array(name, values):
        out.append(f"static const double {name}[{len(values)}] = {{")
        out.extend("    " + ", ".join(number(v) for v in values[i : i + 4]) + "," for i in range(0, len(values), 4))
        out.append("};")

    rows = log_table()
    array("LOG_C", [r[0] for r in rows])
    array("LOG_HI", [r[1] for r in rows])
    array("LOG_LO", [r[2] for r in rows])
    array("STIRLING", stirling_table())
    array("MILLS", [c for row in mills_table() for c in row])
    array("SMALL_MILLS", small_mills())
    for name, values in zip(("STIRLING_P", "STIRLING_Q"), stirling_ratio(), strict=True):
        array(name, values)
    array("ATANH", atanh_table())
    array("LGAMMA", lgamma_table())
    out.extend(uniform_functions())
    out.append("#endif")
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    Path(__file__).with_name("tables.h").write_text(render())
