"""Trade-off functions of two distributions, and divergences between them.

A trade-off function maps the probability of a type I error to the least possible probability of a type II error.
"""

from shufflebounds.tradeoff.curve import Tradeoff
from shufflebounds.tradeoff.divergences import hockey_stick, log_hockey_stick, max_divergence, renyi_divergence
from shufflebounds.tradeoff.losses import loss_tail, privacy_losses

__all__ = [
    "Tradeoff", "hockey_stick", "log_hockey_stick", "loss_tail", "max_divergence", "privacy_losses", "renyi_divergence",
]
