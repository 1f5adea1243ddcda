"""The protocols: each names its pair of output laws, and answers as a PrivacyProfile."""

from shufflebounds.shuffle.clones import Clones, StrongerClones
from shufflebounds.shuffle.noise import BinomialNoise
from shufflebounds.shuffle.personalized import PersonalizedClones

__all__ = ["BinomialNoise", "Clones", "PersonalizedClones", "StrongerClones"]
