"""Composition rules for guarantees, and conversions between kinds of guarantees.

Every guarantee that is returned is an upper bound; noise and protocols that are calibrated meet their target. The functions
:func:`composition_delta` and :func:`composition_log_delta` also have a lower bound.
"""

from shufflebounds.composition.conversions import rdp_to_dp, zcdp_to_dp
from shufflebounds.composition.ledger import BudgetExceededError, Ledger, LedgerError
from shufflebounds.composition.noise_calibration import least_noise
from shufflebounds.composition.releases import calibrate_releases
from shufflebounds.composition.rules import Guarantee, compose_dp, composition_delta, composition_log_delta, group_privacy
from shufflebounds.profile.saving import from_dict, to_dict

__all__ = [
    "BudgetExceededError",
    "Guarantee",
    "Ledger",
    "LedgerError",
    "calibrate_releases",
    "compose_dp",
    "composition_delta",
    "composition_log_delta",
    "from_dict",
    "group_privacy",
    "least_noise",
    "rdp_to_dp",
    "to_dict",
    "zcdp_to_dp",
]
