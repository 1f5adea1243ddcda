"""Errors of routines that are not kernels, measured against sums and integrals in multiple precision.

    python tests/reference/measure_routines.py            every routine, a few minutes
    python tests/reference/measure_routines.py arg_max    one of them

docs/numerics.md states the largest error of each; tests/core/test_measured.py compares the page with a quick run. Each function
yields errors in the unit used in the page.
"""

import itertools
import math
import random
import sys

import mpmath
import numpy as np
from flint import arb, ctx
from scipy.special import ndtri_exp

from shufflebounds import composition, selection
from shufflebounds.tradeoff import Tradeoff

BITS = 400


def log_uniform(rng, low, high):
    """Return a random number whose logarithm is uniform."""
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def normal_below(x):
    """Return the probability that a normal variable is below x."""
    return (-x / arb(2).sqrt()).erfc() / 2


def gaussian_delta(rng, trials):
    """Yield errors of log delta over max(1, |log delta|) for mu in 1e-6 .. 100, down to log delta = -2e6."""
    ctx.prec = BITS
    for _ in range(trials):
        mu = log_uniform(rng, 1e-6, 100.0)
        eps = mu * max(log_uniform(rng, 1e-3, 2000.0) * rng.choice((-1, 1, 1, 1)) + mu / 2, 0.0)
        x = arb(eps) / arb(mu) - arb(mu) / 2
        exact = (normal_below(-x) - arb(eps).exp() * normal_below(-x - arb(mu))).log()
        yield float(abs(arb(Tradeoff.gaussian(mu).log_delta(eps)) - exact)) / max(1.0, abs(float(exact)))


def gaussian_beta(rng, trials):
    """Yield errors of log beta over max(1, |log beta|) for log alpha in -1e5 .. -1e-20 and mu up to 300."""
    ctx.prec = BITS
    for _ in range(trials):
        mu, log_alpha = log_uniform(rng, 1e-3, 300.0), -log_uniform(rng, 1e-20, 1e5)
        z = arb(-float(ndtri_exp(log_alpha)))
        for _ in range(6):  # Newton's method starts with at most thirteen correct digits.
            tail = normal_below(-z)
            z = arb((z + (tail.log() - arb(log_alpha)) * tail * (z * z / 2).exp() * (2 * arb.pi()).sqrt()).mid())
        exact = normal_below(z - arb(mu)).log()
        yield float(abs(arb(Tradeoff.gaussian(mu).log_beta(log_alpha)) - exact)) / max(1.0, abs(float(exact)))


def optimal_composition(rng, trials):
    """Yield gaps of the bounds, relative to the logarithm if that is above 1; the exact sum must be between the bounds."""
    mp = mpmath.mp.clone()
    mp.dps = 50
    for _ in range(trials):
        groups = [(log_uniform(rng, 1e-4, 10.0), rng.randint(1, 8)) for _ in range(rng.randint(1, 3))]
        eps, counts = zip(*groups)
        total = rng.uniform(0.0, 0.95) * sum(e * k for e, k in groups)
        exact = mp.mpf(0)
        for ones in itertools.product(*(range(k + 1) for k in counts)):
            loss = mp.fsum((2 * j - k) * mp.mpf(e) for j, k, e in zip(ones, counts, eps))
            if loss > total:
                mass = mp.mpf(1)
                for j, k, e in zip(ones, counts, eps):
                    mass *= math.comb(k, j) * mp.exp(j * mp.mpf(e)) / (1 + mp.exp(mp.mpf(e))) ** k
                exact -= mass * mp.expm1(total - loss)
        lower, upper = (composition.composition_log_delta(eps, 0.0, total, k=counts, bound=side) for side in ("lower", "upper"))
        assert lower <= mp.log(exact) <= upper
        yield (upper - lower) / max(1.0, abs(upper))


def one_sided_arg_max(rng, trials):
    """Yield relative errors of the probabilities of 2 to 7 candidates, against the term-by-term integral of a polynomial."""
    mp = mpmath.mp.clone()
    mp.dps = 60
    for _ in range(trials):
        scores = [rng.uniform(0.0, 40.0) for _ in range(rng.randint(2, 7))]
        found = selection.selection_probs(scores, 2.0, noise="exponential")
        weights = [mp.exp(mp.mpf(score) - max(scores)) for score in scores]
        for i, chance in enumerate(found):
            product = [mp.mpf(1)]
            for weight in weights[:i] + weights[i + 1 :]:
                product = [a - weight * b for a, b in zip([*product, 0], [0, *product])]
            exact = weights[i] * mp.fsum(c / (power + 1) for power, c in enumerate(product))
            yield float(abs(chance / exact - 1))


def far_behind(rng, trials):
    """Yield relative errors of the probability of a candidate whose score is 600 to 700 noise scales below the best.

    There are 2 to 7 candidates.
    """
    mp = mpmath.mp.clone()
    mp.dps = 60
    for _ in range(trials):
        scores = [-rng.uniform(600.0, 700.0), 0.0, *(rng.uniform(-40.0, 0.0) for _ in range(rng.randint(0, 5)))]
        product = [mp.mpf(1)]
        for weight in (mp.exp(mp.mpf(score)) for score in scores[1:]):
            product = [a - weight * b for a, b in zip([*product, 0], [0, *product])]
        exact = mp.mpf(scores[0]) + mp.log(mp.fsum(c / (power + 1) for power, c in enumerate(product)))
        yield float(abs(selection.selection_log_probs(scores, 2.0, noise="exponential")[0] - exact))


def laplace_arg_max(rng, trials):
    """Yield relative errors of the probabilities of 2 to 4 candidates, against quadrature with 40 digits."""
    mp = mpmath.mp.clone()
    mp.dps = 40
    for _ in range(trials):
        scores = sorted(rng.uniform(0.0, 8.0) for _ in range(rng.randint(2, 4)))
        found = selection.selection_probs(scores, 2.0, noise="laplace")

        def below(x):
            return mp.exp(x) / 2 if x < 0 else 1 - mp.exp(-x) / 2

        for i, chance in enumerate(found):
            rest = scores[:i] + scores[i + 1 :]
            exact = mp.quad(
                lambda y, i=i, rest=rest, scores=scores: mp.exp(-abs(y - scores[i])) / 2 * mp.fprod(below(y - s) for s in rest),
                [-110, -30, *scores, scores[-1] + 12, scores[-1] + 110])
            yield float(abs(chance / exact - 1))


# For each routine, the pattern of its sentence in the page, and the numbers of trials of a quick and of a full run.
ROUTINES = {
    gaussian_delta: (r"\\cdot10\^6\$ \| ([\d.e-]+) of", 60, 3000),
    gaussian_beta: (r"-10\^\{-20\}\$ \| ([\d.e-]*\d) \|", 60, 2000),
    optimal_composition: (r"Their gap was at most ([\d.e-]+), absolute", 12, 2000),
    one_sided_arg_max: (r"With exponential noise and two to seven candidates the largest relative error is ([\d.e-]+)", 40, 2000),
    far_behind: (r"([\d.e-]+) for a probability of \$e\^\{-700\}\$", 40, 2000),
    laplace_arg_max: (r"With Laplace noise and two to four candidates the largest relative error is ([\d.e-]*\d), compared", 1, 60),
}


def main():
    """Print the largest error and the root mean square error of each routine."""
    for routine, (_, _, whole) in ROUTINES.items():
        if routine.__name__ in sys.argv[1:] or len(sys.argv) == 1:
            errors = np.fromiter(routine(random.Random(1), whole), float)
            print(f"{routine.__name__}: {whole} trials, peak {errors.max():.2e}, rms {np.sqrt(np.mean(errors**2)):.2e}", flush=True)


if __name__ == "__main__":
    main()
