"""Mechanisms and local randomizers, each with its exact privacy profile, its noise and its errors."""

# This package imports only modules of its own row and of lower rows in the diagram of docs/architecture.md. Start with `_base` (the
# base classes) and `randomized_response` (an example).

from typing import TYPE_CHECKING

from shufflebounds._base.lazy import lazily

if TYPE_CHECKING:
    # The repetition of each name after "as" tells type checkers that the name is public.
    from shufflebounds.mechanisms.density_randomizer import DensityRandomizer as DensityRandomizer
    from shufflebounds.mechanisms.finite_randomizer import FiniteRandomizer as FiniteRandomizer
    from shufflebounds.mechanisms.noise.discrete_gaussian import DiscreteGaussianMechanism as DiscreteGaussianMechanism
    from shufflebounds.mechanisms.noise.gaussian import GaussianMechanism as GaussianMechanism
    from shufflebounds.mechanisms.noise.gaussian_vector import GaussianVector as GaussianVector
    from shufflebounds.mechanisms.noise.geometric import GeometricMechanism as GeometricMechanism
    from shufflebounds.mechanisms.noise.laplace import LaplaceMechanism as LaplaceMechanism
    from shufflebounds.mechanisms.noise.thresholded import ThresholdedCount as ThresholdedCount
    from shufflebounds.mechanisms.oracles.hadamard_response import HadamardResponse as HadamardResponse
    from shufflebounds.mechanisms.oracles.kary_response import KaryResponse as KaryResponse
    from shufflebounds.mechanisms.oracles.local_hashing import LocalHashing as LocalHashing
    from shufflebounds.mechanisms.oracles.rappor import Rappor as Rappor
    from shufflebounds.mechanisms.oracles.subset_selection import SubsetSelection as SubsetSelection
    from shufflebounds.mechanisms.oracles.unary_encoding import UnaryEncoding as UnaryEncoding
    from shufflebounds.mechanisms.priv_unit import PrivUnit as PrivUnit
    from shufflebounds.mechanisms.randomized_response import RandomizedResponse as RandomizedResponse
    from shufflebounds.mechanisms.ratio_bounded import PureLocal as PureLocal
    from shufflebounds.mechanisms.ratio_bounded import RatioBounded as RatioBounded

_HOMES = {name: f"{__name__}.{home}" for name, home in {
    "DensityRandomizer": "density_randomizer",
    "DiscreteGaussianMechanism": "noise.discrete_gaussian",
    "FiniteRandomizer": "finite_randomizer",
    "GaussianMechanism": "noise.gaussian",
    "GaussianVector": "noise.gaussian_vector",
    "GeometricMechanism": "noise.geometric",
    "HadamardResponse": "oracles.hadamard_response",
    "KaryResponse": "oracles.kary_response",
    "LaplaceMechanism": "noise.laplace",
    "LocalHashing": "oracles.local_hashing",
    "PrivUnit": "priv_unit",
    "PureLocal": "ratio_bounded",
    "RandomizedResponse": "randomized_response",
    "Rappor": "oracles.rappor",
    "RatioBounded": "ratio_bounded",
    "SubsetSelection": "oracles.subset_selection",
    "ThresholdedCount": "noise.thresholded",
    "UnaryEncoding": "oracles.unary_encoding",
}.items()}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazily(__name__, _HOMES)
