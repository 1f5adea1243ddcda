r"""Profiles made from objects of other libraries.

For the opposite direction, :meth:`PrivacyProfile.to_dp_accounting <shufflebounds.profile.PrivacyProfile.to_dp_accounting>` and
:meth:`PrivacyProfile.to_opendp <shufflebounds.profile.PrivacyProfile.to_opendp>` export a profile of this library.
"""

from shufflebounds.interop.distributions import AccountingProfile, from_dp_accounting

__all__ = [
    "AccountingProfile",
    "from_dp_accounting",
]
