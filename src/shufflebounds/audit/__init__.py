"""Auditing: what the results of attacks on a program refute, with exact confidence.

Results become refutations, "not (eps, delta)-differentially private", and p-values of any claimed profile. No guarantee follows
from an attack.
"""

# Imports its row of docs/architecture.md and below. Start with `refuted`, then `two_samples`.

from shufflebounds._base.lazy import TYPE_CHECKING, lazily

if TYPE_CHECKING:
    # Each name is repeated after "as", by which type checkers know that it is public.
    from shufflebounds.audit.guesses import canaries as canaries
    from shufflebounds.audit.guesses import one_run as one_run
    from shufflebounds.audit.programs import program as program
    from shufflebounds.audit.refuted import Refuted as Refuted
    from shufflebounds.audit.two_samples import decisions as decisions
    from shufflebounds.audit.two_samples import scores as scores

_HOMES = {
    **dict.fromkeys(("canaries", "one_run"), "shufflebounds.audit.guesses"),
    "program": "shufflebounds.audit.programs",
    "Refuted": "shufflebounds.audit.refuted",
    **dict.fromkeys(("decisions", "scores"), "shufflebounds.audit.two_samples"),
}
__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazily(__name__, _HOMES)
