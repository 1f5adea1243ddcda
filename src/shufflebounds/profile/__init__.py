"""Privacy profiles, the common interface of all mechanisms: delta(eps), epsilon(delta) and more, as upper or lower bounds."""

# This package imports only rows below it in the diagram of docs/architecture.md. Start with `profile` (the base class). `product`
# has compositions, and docs/extending.md has an example of a class.

from typing import TYPE_CHECKING

from shufflebounds._base.evidence import Evidence, Status
from shufflebounds._base.lazy import lazily
from shufflebounds._base.types import Bound, FloatArray
from shufflebounds.profile.profile import DominatingPair, PrivacyProfile

if TYPE_CHECKING:
    from shufflebounds.profile.profile import Composition, Group
    from shufflebounds.report.pictures import compare
    from shufflebounds.report.statement import Statement

__all__ = [
    "Bound", "Composition", "DominatingPair", "Evidence", "FloatArray", "Group", "PrivacyProfile", "Statement", "Status", "compare",
]

# These modules are imported at the first use of a name, because evaluating delta of a mechanism needs none of them.
_HOMES = {
    "Composition": "shufflebounds.profile.profile",
    "Group": "shufflebounds.profile.profile",
    "Statement": "shufflebounds.report.statement",
    "compare": "shufflebounds.report.pictures",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
