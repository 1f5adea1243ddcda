"""The protocols: each names its pair of output laws, and answers as a PrivacyProfile."""

from shufflebounds.shuffle.bits import ShuffledBits
from shufflebounds.shuffle.clones import Clones, StrongerClones
from shufflebounds.shuffle.noise import BinomialNoise

__all__ = ["BinomialNoise", "Clones", "ShuffledBits", "StrongerClones"]
