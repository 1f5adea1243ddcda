"""Reference values of the contour bound of docs/theorems/worst-dataset for Gaussian noise, by quadrature in interval arithmetic.

    python tests/reference/make_hoelder.py        a minute; writes hoelder.json

A case has the length l of the interval of inputs, eps, the number k of users, theta and a cut T. The output y of input x has the
distribution R_x = N(x, 1), and X = (R_a - e^eps R_b)/R_x at outputs y > -T, and 0 below, for inputs a, b and x listed in `LAWS`.

    v = e^(l^2) - 1,  eta^2 = 5e-4 k v,  D = 2 pi/(6.5 sqrt(k v)),  z_m = theta + i m D
    bound   log of (D/(2 pi k)) sum over |m| <= 197 of |phi(z_m)|^k |e^(eta^2 z_m^2/2)/z_m^2|
    phases  the same sum with phi(z_m)^k e^(eta^2 z_m^2/2)/z_m^2 itself
"""

import json
import sys
from fractions import Fraction
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from flint import acb, arb, ctx

from tests.reference.arbs import ball

ctx.prec = 160
NODES = 197
CASES = (("1", "0.046", 9954, "0.0272", "5.5"), ("0.5", "0.017", 9994, "0.073", "5.5"))
LAWS = {"A x=l": (0, 1, 1), "A x=0": (0, 1, 0), "A x=l/2": (0, 1, "1/2"), "B a=l/2": ("1/2", 1, 0), "C b=l/2": (0, "1/2", 1)}


def values(l, eps, k, theta, cut, law):
    """Return the logs of the bound, of the sum with phases, and of phi(theta), as intervals."""
    l, theta, cut, factor = ball(l), ball(theta), ball(cut), ball(eps).exp()
    a, b, x = (l * ball(Fraction(place)) for place in law)
    v = (l * l).exp() - 1
    smoothing, step = k * v * 5 / 10**4, 2 * arb.pi() / (ball("6.5") * (k * v).sqrt())
    scale = 1 / (2 * arb.pi()).sqrt()

    def phi(z):
        def integrand(y, _):
            gain = ((a - x) * y - (a * a - x * x) / 2).exp() - factor * ((b - x) * y - (b * b - x * x) / 2).exp()
            return ((z * gain).exp() - 1) * (-(y - x) * (y - x) / 2).exp() * scale

        return 1 + sum((acb.integral(integrand, -cut + j, -cut + j + 1) for j in range(16)), acb(0))

    absolute = phases = arb(0)
    first = phi(acb(theta))
    for m in range(NODES + 1):
        z = acb(theta, m * step)
        power = k * ((first if m == 0 else phi(z)) / first).log()
        term = (power + smoothing * z * z / 2).exp() / (z * z)
        absolute += (1 if m == 0 else 2) * abs(term)
        phases += (1 if m == 0 else 2) * term.real
    base = (step / (2 * arb.pi()) / k).log() + k * first.real.log()
    return absolute.log() + base, phases.log() + base, first.real.log()


def main():
    """Write the file."""
    out = []
    for l, eps, k, theta, cut in CASES:
        for name, law in LAWS.items():
            bound, phases, log_phi = (float(value.mid()) for value in values(l, eps, k, theta, cut, law))
            out.append({"l": float(l), "eps": float(eps), "users": k, "theta": float(theta), "cut": float(cut), "law": name,
                        "bound": bound, "phases": phases, "log_phi": log_phi})
            print(out[-1], flush=True)
    (Path(__file__).parent / "hoelder.json").write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
