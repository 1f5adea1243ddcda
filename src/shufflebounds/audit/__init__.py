"""Auditing: which privacy claims the results of attacks on a program refute, at a stated confidence.

The results of an attack refute (eps, delta) for some eps and delta, and give a p-value of any claimed profile. No guarantee follows
from an attack.
"""

# This package imports only modules of its row in docs/architecture.md and of the rows below.
# Start with `refuted`, then `two_samples`.

from shufflebounds.audit.guesses import canaries, one_run
from shufflebounds.audit.programs import program
from shufflebounds.audit.refuted import Refuted
from shufflebounds.audit.two_samples import decisions, scores

__all__ = ["Refuted", "canaries", "decisions", "one_run", "program", "scores"]
