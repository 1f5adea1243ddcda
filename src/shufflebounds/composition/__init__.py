"""Rules of composition: what several guarantees give together, and how one kind of guarantee becomes another.

Every number is an upper bound: what is returned holds. Only :func:`composition_delta` and :func:`composition_log_delta` have a
lower side too, since there the exact value is known to lie between the two.
"""

from shufflebounds.composition.conversions import rdp_to_dp, zcdp_to_dp
from shufflebounds.composition.ledger import BudgetExceededError, Ledger, LedgerError
from shufflebounds.composition.rules import Guarantee, compose_dp, composition_delta, composition_log_delta, group_privacy
from shufflebounds.profile._saving import from_dict, to_dict

__all__ = [
    "BudgetExceededError",
    "Guarantee",
    "Ledger",
    "LedgerError",
    "compose_dp",
    "composition_delta",
    "composition_log_delta",
    "from_dict",
    "group_privacy",
    "rdp_to_dp",
    "to_dict",
    "zcdp_to_dp",
]
