"""Published bounds and formulas, each with a verdict. They are for comparison and plots: no other subpackage imports this one.

Every bound is a :class:`PrintedBound`. Call it with the paper's parameters to get the published number. The attribute ``verdict``
states whether the number is a proven bound, and ``reason`` states why. ``reference`` states where the formula was published, and
``side`` which kind of bound it claims to be. ``counterexample()`` returns the published and the exact number in a case in which a
false formula fails; ``comparison()`` returns both numbers in a realistic setting. :func:`bounds` lists all bounds.
"""

from shufflebounds._base.lazy import missing
from shufflebounds.published._printed import BoundComparison, Counterexample, PrintedBound, bounds
from shufflebounds.published.amplification import *  # noqa: F403
from shufflebounds.published.balcer_cheu import *  # noqa: F403
from shufflebounds.published.balcer_cheu_context import *  # noqa: F403
from shufflebounds.published.chen_long import *  # noqa: F403
from shufflebounds.published.cheu import *  # noqa: F403
from shufflebounds.published.comparing import AmplificationTable, amplification_bounds, compare
from shufflebounds.published.feldman import *  # noqa: F403
from shufflebounds.published.liu import *  # noqa: F403
from shufflebounds.published.liu_curve import *  # noqa: F403
from shufflebounds.published.survey.basics import *  # noqa: F403
from shufflebounds.published.survey.formulas import *  # noqa: F403
from shufflebounds.published.survey.histogram_formulas import *  # noqa: F403
from shufflebounds.published.zhilyaev.flip_probabilities import *  # noqa: F403
from shufflebounds.published.zhilyaev.reports import *  # noqa: F403
from shufflebounds.published.zhilyaev.tails_of_sums import *  # noqa: F403

__all__ = ["AmplificationTable", "BoundComparison", "Counterexample", "PrintedBound", "amplification_bounds", "bounds", "compare"]
__all__ += ["HistogramRow", "balcer_cheu_table"]  # noqa: F405
__all__ += [bound.__name__ for bound in bounds()]


def __getattr__(name: str) -> object:
    raise AttributeError(missing(__name__, name, __all__))
