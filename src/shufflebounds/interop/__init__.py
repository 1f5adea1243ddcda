r"""Profiles that come from other libraries.

The other way, :meth:`PrivacyProfile.to_dp_accounting <shufflebounds.PrivacyProfile.to_dp_accounting>` and
:meth:`PrivacyProfile.to_opendp <shufflebounds.PrivacyProfile.to_opendp>` give every profile of this library to them.
"""

from shufflebounds.interop.distributions import AccountingProfile, from_dp_accounting

__all__ = [
    "AccountingProfile",
    "from_dp_accounting",
]
