"""Bounds as the papers print them, each with its verdict: for comparison and plots only, nothing else imports this package.

Each name is a :class:`PrintedBound`: call it with the paper's parameters to get the printed number; ``verdict`` says whether
that number may be relied on, ``reason`` why, ``reference`` where it is printed, ``side`` which side of the truth it claims.
``counterexample()`` gives the printed number and the truth side by side where the formula is false, ``comparison()`` in a setting
that somebody might use. :func:`bounds` lists them all.
"""

from shufflebounds._lazy import missing
from shufflebounds.published import (
    amplification,
    balcer_cheu,
    balcer_cheu_context,
    chen_long,
    cheu,
    clones,
    personalized,
    personalized_curve,
    survey,
    survey_basics,
    survey_histograms,
    zhilyaev,
    zhilyaev_reports,
    zhilyaev_sums,
)
from shufflebounds.published._printed import Comparison, Counterexample, PrintedBound, bounds
from shufflebounds.published.amplification import *  # noqa: F403
from shufflebounds.published.balcer_cheu import *  # noqa: F403
from shufflebounds.published.balcer_cheu_context import *  # noqa: F403
from shufflebounds.published.chen_long import *  # noqa: F403
from shufflebounds.published.cheu import *  # noqa: F403
from shufflebounds.published.clones import *  # noqa: F403
from shufflebounds.published.comparing import AmplificationTable, amplification_bounds, compare
from shufflebounds.published.personalized import *  # noqa: F403
from shufflebounds.published.personalized_curve import *  # noqa: F403
from shufflebounds.published.survey import *  # noqa: F403
from shufflebounds.published.survey_basics import *  # noqa: F403
from shufflebounds.published.survey_histograms import *  # noqa: F403
from shufflebounds.published.zhilyaev import *  # noqa: F403
from shufflebounds.published.zhilyaev_reports import *  # noqa: F403
from shufflebounds.published.zhilyaev_sums import *  # noqa: F403

_PARTS = (
    amplification, balcer_cheu, balcer_cheu_context, chen_long, cheu, clones, personalized, personalized_curve,
    survey, survey_basics, survey_histograms, zhilyaev, zhilyaev_reports, zhilyaev_sums,
)
__all__ = ["AmplificationTable", "Comparison", "Counterexample", "PrintedBound", "amplification_bounds", "bounds", "compare"]
__all__ += [name for part in _PARTS for name in part.__all__]


def __getattr__(name: str) -> object:
    raise AttributeError(missing(__name__, name, __all__))
