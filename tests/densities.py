"""Densities that tests share: two inputs tilt the uniform density on [0, 1]."""

from dataclasses import dataclass

from shufflebounds.mechanisms import DensityRandomizer


@dataclass(frozen=True)
class Tilted:
    """The functions of the densities p_x(y) = 1 + slope (x - 1/2) (2 y - 1), x = 0, 1."""

    slope: float

    def cdf(self, y, x):
        return y + self.slope * (x - 0.5) * y * (y - 1)

    def pdf(self, y, x):
        return 1 + self.slope * (x - 0.5) * (2 * y - 1)

    def sf(self, y, x):
        return (1 - y) * (1 + self.slope * (x - 0.5) * y)


def tilted(slope=1.0):
    """Return the randomizer with these densities, of local budget ln((1 + slope/2)/(1 - slope/2))."""
    one = Tilted(slope)
    return DensityRandomizer(one.cdf, one.pdf, (0, 1), (0, 1), sf=one.sf)
