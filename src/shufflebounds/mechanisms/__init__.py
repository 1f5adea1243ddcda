"""The building blocks of private protocols, each with its exact privacy profile, its noise and its errors."""

from shufflebounds.mechanisms.discrete_gaussian import DiscreteGaussianMechanism
from shufflebounds.mechanisms.gaussian import GaussianMechanism
from shufflebounds.mechanisms.geometric import GeometricMechanism
from shufflebounds.mechanisms.laplace import LaplaceMechanism
from shufflebounds.mechanisms.randomized_response import RandomizedResponse
from shufflebounds.mechanisms.rappor import Rappor

__all__ = [
    "DiscreteGaussianMechanism",
    "GaussianMechanism",
    "GeometricMechanism",
    "LaplaceMechanism",
    "RandomizedResponse",
    "Rappor",
]
