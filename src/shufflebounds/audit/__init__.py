"""Auditing: which privacy claims the results of attacks on a program refute, at a stated confidence.

No guarantee follows from an attack.
"""

# This package imports only modules of its own row and of lower rows in the diagram of docs/architecture.md. Start with `refuted`,
# then `two_samples`.

from shufflebounds.audit.guesses import canaries, one_run
from shufflebounds.audit.programs import program
from shufflebounds.audit.refuted import Refuted
from shufflebounds.audit.two_samples import decisions, scores

__all__ = ["Refuted", "canaries", "decisions", "one_run", "program", "scores"]
