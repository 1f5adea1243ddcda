"""Profiles of the mechanisms by definition: sums over all outcomes in long arithmetic, erfc at many digits."""

from fractions import Fraction

import mpmath as mp

DIGITS = 40


def exponential(x):
    """Return e^x as a fraction good to 400 digits."""
    with mp.workdps(420):
        value = mp.exp(mp.mpf(x))
        sign, mantissa, exponent, _ = value._mpf_
        return Fraction(int(mantissa)) * Fraction(2) ** int(exponent)


def log(x):
    """Return the logarithm of a fraction as a decimal string; None for 0."""
    if x == 0:
        return None
    with mp.workdps(60):
        return mp.nstr(mp.log(mp.mpf(x.numerator)) - mp.log(mp.mpf(x.denominator)), DIGITS)


def stick(p, q, e):
    """Return sum (p - e q)_+ over dictionaries of fractions."""
    return sum((max(Fraction(0), mass - e * q.get(y, Fraction(0))) for y, mass in p.items()), Fraction(0))


def renyi(p, q, order):
    """Return the Renyi divergence of two dictionaries as a float, order a whole number above 1, 1 or inf."""
    with mp.workdps(60):
        pairs = [(mp.mpf(v.numerator) / v.denominator, mp.mpf(q[y].numerator) / q[y].denominator) for y, v in p.items()]
        if order == 1:
            return float(mp.fsum(a * mp.log(a / b) for a, b in pairs))
        if order == float("inf"):
            return float(max(mp.log(a / b) for a, b in pairs))
        return float(mp.log(mp.fsum(b * (a / b) ** mp.mpf(order) for a, b in pairs)) / (mp.mpf(order) - 1))


def shifted(law, by):
    """Return the law of a whole number plus `by`."""
    return {y + by: v for y, v in law.items()}


def geometric(rate, bound):
    """Return the double geometric law, its tails moved to -bound and bound."""
    q = exponential(-rate)
    law = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-bound + 1, bound)}
    return law | {bound: q**bound / (1 + q), -bound: q**bound / (1 + q)}


def gaussian_log_delta(sigma, sensitivity, eps):
    """Return log delta of Gaussian noise as an mpf, from its definition with erfc."""
    with mp.workdps(80):
        mu = mp.mpf(sensitivity) / mp.mpf(sigma)
        extra = 2 * max(0, int(-mp.log10(mu))) + 20
        with mp.workdps(80 + extra):
            x = mp.mpf(eps) / mu - mu / 2
            tail = [mp.erfc(t / mp.sqrt(2)) / 2 for t in (x, x + mu)]
            return mp.log(tail[0] - mp.exp(mp.mpf(eps)) * tail[1])


def discrete_gaussian(sigma, reach):
    """Return the discrete Gaussian law on -reach..reach as mpf, normalised over a window twice as wide."""
    with mp.workdps(60):
        s = mp.mpf(sigma)
        total = mp.fsum(mp.exp(-((k / s) ** 2) / 2) for k in map(mp.mpf, range(-2 * reach, 2 * reach + 1)))
        return {k: mp.exp(-((mp.mpf(k) / s) ** 2) / 2) / total for k in range(-reach, reach + 1)}
