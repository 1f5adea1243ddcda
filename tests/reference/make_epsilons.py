"""Writes epsilons.json: eps at one delta, by the blanket bound and for the worst known dataset, of 32 shuffled randomizers.

The distributions are defined here, and eps is found by the trapezoidal rule for a Fourier integral with all nodes, without
splitting off heavy tails and without error bounds. The sum is smoothed with 4e-4 standard deviations (1e-3 for densities), which
changes eps by less than the recorded digits. Two-level randomizers have four atoms; densities are divided into 800 cells, each
replaced by its mean, which lowers eps by an amount proportional to the square of the cell width. Run the script as
``python tests/reference/make_epsilons.py``; it takes one minute.
"""

import json
import math
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr


def two_level(eps0, one, both, all_):
    """Return R_0, R_1 and m on four classes of outputs: in the lifted set of input 0 only, of input 1 only, of both, of neither.

    The lifted set of an input contains the outputs whose probability is e^eps0 times the base probability m for this input.
    """
    top = math.exp(eps0)
    base = np.array([one, one, both, all_ - 2 * one - both])
    return base * [top, 1, top, 1], base * [1, top, top, 1], base


def kary(k, eps0):
    small = 1 / (math.exp(eps0) + k - 1)
    return two_level(eps0, small, 0.0, k * small)


def clones(eps0):
    small = 1 / (math.exp(eps0) + 1)
    return two_level(eps0, small, 0.0, 2 * small)


def hashing(g, eps0):
    small = 1 / (math.exp(eps0) + g - 1)
    return two_level(eps0, (1 - 1 / g) * small, small / g, g * small)


def hadamard(eps0):
    small = 1 / (math.exp(eps0) + 1)
    return two_level(eps0, small / 2, small / 2, 2 * small)


def at_third(laws, eps0, inside):
    """Return the same distributions, with m the output distribution of another user's input.

    The lifted set of this input (see `two_level`) has the mass `inside` of each class.
    """
    first, second, base = laws
    inside = np.minimum(inside, base)
    split = np.concatenate([inside, base - inside])
    ratios = [np.tile(np.divide(r, base, out=np.zeros(4), where=base > 0), 2) for r in (first, second)]
    return ratios[0] * split, ratios[1] * split, split * np.repeat([math.exp(eps0), 1.0], 4)


def cells(edges, law):
    """Return the masses of the cells under input 0 and under input 1, and the smaller of both; 1/2 must be an edge."""
    first, second = (np.diff(law(edges - x)) for x in (0.0, 1.0))
    return first, second, np.minimum(first, second)


def laplace(scale):
    edges = np.concatenate([[-1e3], np.linspace(0, 1, 801), [1e3]])

    def law(y):
        return np.where(y < 0, 0.5 * np.exp(np.minimum(y, 0) / scale), 1 - 0.5 * np.exp(-np.maximum(y, 0) / scale))

    return cells(edges, law)


def gaussian(sigma):
    half = np.linspace(0, 0.5 + 6.5 * sigma, 401)
    edges = np.concatenate([0.5 - half[::-1], 0.5 + half[1:]])
    first, second, _ = cells(edges, lambda y: ndtr(y / sigma))
    # The masses of the second half follow by symmetry, because differences of a distribution function close to 1 cancel.
    first[400:], second[400:] = second[399::-1], first[399::-1]
    return first, second, np.minimum(first, second)


def log_delta(laws, users, eps, smooth):
    """Return log (E(X_1 + ... + X_n)_+/n) by the trapezoidal rule."""
    first, second, base = (part[laws[2] > 0] for part in laws)
    x = (first - math.exp(eps) * second) / base
    values, index = np.unique(x, return_inverse=True)
    mass = np.bincount(index.ravel(), base)
    low, high = 1e-12, 1e-3
    if values.max() <= 0:
        return -math.inf

    def tilted(theta):
        grown = mass * np.exp(theta * values)
        total = 1 + float(mass @ np.expm1(theta * values))
        mean = float(grown @ values) / total
        return total, mean, float(grown @ values**2) / total - mean**2

    while tilted(high)[1] * users < 2 / high:
        high *= 2
        if high * values.max() > 600:
            return -math.inf
    for _ in range(200):
        theta = math.sqrt(low * high)
        low, high = (theta, high) if tilted(theta)[1] * users < 2 / theta else (low, theta)
    total, _, var = tilted(theta)
    tau = smooth * math.sqrt(users * var)
    step = 2 * math.pi * theta / 45
    out = 0.0
    for start in range(0, math.ceil(8.5 / tau / step), 4096):
        t = step * np.arange(start, start + 4096)
        # For densities the sum ends after the central peak at t = 0, because the integrand has no secondary maxima.
        if values.size > 8 and start and t[0] * math.sqrt(users * var) > 60:
            break
        phi = 1 + ((np.exp(1j * np.multiply.outer(t, values)) - 1) @ (mass * np.exp(theta * values))) / total
        s = theta + 1j * t
        terms = np.exp(users * np.log(phi) + 0.5 * tau**2 * s**2) / s**2
        out += float(terms.real.sum()) - (0.5 * float(terms[0].real) if start == 0 else 0.0)
    return users * math.log(total) + math.log(out * step / math.pi) - math.log(users)


def epsilon(laws, users, delta, smooth):
    def depth(eps):
        value = log_delta(laws, users, eps, smooth)
        return (math.sqrt(-value) if -math.inf < value < 0 else 0.0 if value >= 0 else 1e3) - math.sqrt(-math.log(delta))

    return brentq(depth, 1e-5, 0.7, rtol=1e-9)


def listed():
    """Yield the name, the parameters, the distributions for the upper bound and for the worst known dataset, and the smoothing."""
    for eps0 in (1.0, 4.0):
        yield "stronger-clones", [eps0], clones(eps0), None, 4e-4
        for k in (3, 10, 100):
            small = 1 / (math.exp(eps0) + k - 1)
            laws = kary(k, eps0)
            yield "kary", [k, eps0], laws, at_third(laws, eps0, np.array([0, 0, 0, small])), 4e-4
        g = 4 if eps0 == 1 else 56
        laws, small = hashing(g, eps0), 1 / (math.exp(eps0) + g - 1)
        yield "hashing", [g, eps0], laws, at_third(laws, eps0, laws[2] / g), 4e-4
        laws = hadamard(eps0)
        # The parity of the third input is the sum of the target's two parities, so its lifted set is where these two differ.
        yield "hadamard", [eps0], laws, at_third(laws, eps0, laws[2] * [0, 0, 1, 1]), 4e-4
        first, second, base = laplace(1 / eps0)
        yield "laplace", [1 / eps0], (first, second, base), (first, second, second), 1e-3
    for sigma in (1.0, 2.0):
        first, second, base = gaussian(sigma)
        yield "gaussian", [sigma], (first, second, base), (first, second, second), 1e-3


def main():
    out = []
    for users, delta in ((10**4, 1e-6), (10**6, 1e-8)):
        for name, parameters, upper, lower, smooth in listed():
            eps = epsilon(upper, users, delta, smooth)
            below = epsilon(lower, users, delta, smooth) if lower is not None else None
            out.append({"name": name, "parameters": parameters, "users": users, "delta": delta,
                        "upper": f"{eps:.8g}", "lower": below and f"{below:.8g}"})
            print(out[-1], flush=True)
    Path(__file__).with_name("epsilons.json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
