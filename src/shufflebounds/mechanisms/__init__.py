"""Mechanisms and local randomizers, each with its exact privacy profile, its noise and its errors."""

from typing import TYPE_CHECKING

from shufflebounds._base.lazy import lazily, module_name

if TYPE_CHECKING:
    from shufflebounds.mechanisms.density_randomizer import DensityRandomizer
    from shufflebounds.mechanisms.noise.discrete_gaussian import DiscreteGaussianMechanism
    from shufflebounds.mechanisms.finite_randomizer import FiniteRandomizer
    from shufflebounds.mechanisms.noise.gaussian import GaussianMechanism
    from shufflebounds.mechanisms.noise.gaussian_vector import GaussianVector
    from shufflebounds.mechanisms.noise.geometric import GeometricMechanism
    from shufflebounds.mechanisms.oracles.hadamard_response import HadamardResponse
    from shufflebounds.mechanisms.oracles.kary_response import KaryResponse
    from shufflebounds.mechanisms.noise.laplace import LaplaceMechanism
    from shufflebounds.mechanisms.oracles.local_hashing import LocalHashing
    from shufflebounds.mechanisms.priv_unit import PrivUnit
    from shufflebounds.mechanisms.randomized_response import RandomizedResponse
    from shufflebounds.mechanisms.oracles.rappor import Rappor
    from shufflebounds.mechanisms.ratio_bounded import PureLocal, RatioBounded
    from shufflebounds.mechanisms.oracles.subset_selection import SubsetSelection
    from shufflebounds.mechanisms.oracles.unary_encoding import UnaryEncoding

__all__ = [
    "DensityRandomizer",
    "DiscreteGaussianMechanism",
    "FiniteRandomizer",
    "GaussianMechanism",
    "GaussianVector",
    "GeometricMechanism",
    "HadamardResponse",
    "KaryResponse",
    "LaplaceMechanism",
    "LocalHashing",
    "PrivUnit",
    "PureLocal",
    "RandomizedResponse",
    "Rappor",
    "RatioBounded",
    "SubsetSelection",
    "UnaryEncoding",
]

_HOMES = {name: f"{__name__}.{module_name(name)}" for name in __all__} | {"PureLocal": f"{__name__}.ratio_bounded"}
__getattr__, __dir__ = lazily(__name__, _HOMES)
