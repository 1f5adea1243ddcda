"""The protocols: each names its pair of output laws, and answers as a PrivacyProfile."""

from shufflebounds.shuffle.bits import ShuffledBits
from shufflebounds.shuffle.clones import Clones, StrongerClones
from shufflebounds.shuffle.noise import BinomialNoise
from shufflebounds.shuffle.personalized import PersonalizedClones
from shufflebounds.shuffle.personalized_bits import PersonalizedBits

__all__ = ["BinomialNoise", "Clones", "PersonalizedBits", "PersonalizedClones", "ShuffledBits", "StrongerClones"]
