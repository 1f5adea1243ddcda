"""Trade-off functions: the least error of the second kind of a test whose error of the first kind is given; divergences."""

from shufflebounds.tradeoff.curve import Tradeoff
from shufflebounds.tradeoff.divergences import hockey_stick, log_hockey_stick, max_divergence, renyi_divergence

__all__ = ["Tradeoff", "hockey_stick", "log_hockey_stick", "max_divergence", "renyi_divergence"]
