"""A guarantee in plain sentences, as text, Markdown or a web page, for a report or a privacy review."""

from __future__ import annotations

import html
import math
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shufflebounds._base import __version__, plotting
from shufflebounds._base import validate as _validate
from shufflebounds._base.evidence import Status, format_argument, format_bound, verdict
from shufflebounds._base.limits import CALM_SECONDS, TINY
from shufflebounds._base.quadrature import capped_exp
from shufflebounds._base.types import Bound, FloatArray
from shufflebounds.answers.bounded_profile import BoundedProfile
from shufflebounds.report.pictures import effort, name_of, parameters

__all__ = ["Statement", "statement"]

_ACCUSED = 0.05
"""Rate of false accusations in the sentence about tests. 0.05 is customary in statistics; another rate would be less familiar and
would not change the guarantee."""
_HEADINGS = ("What is protected", "From whom", "The guarantee", "Assumptions", "Proof and version")
_SUBJECT = {
    "replace-one": "What one user contributes",
    "add-remove": "Whether one record is part of the data, and its content",
    "zeroed": "What one record contributes",
    "either": "One change of the input",
}
_INSIDER = {
    "shuffle": "anyone who sees the messages before they are shuffled, and anyone who knows the random choices that hide them: "
               "those of the other users, or the dummy reports and noise bits where there are any",
    "sampling": "anyone who knows which records were drawn",
}
_ACTING = {
    "shuffle": "The users, the shuffler, and the party that adds dummy reports or noise bits act as specified",
    "mechanisms": "The party that holds the value adds the randomness as specified",
    "sampling": "The party that draws the records and adds the noise does so as specified",
}
_ANYBODY_ACTING = "Everyone who takes part acts as specified"
_PLACES = tuple(f"shufflebounds.{name}" for name in ("shuffle", "mechanisms", "sampling", "selection", "histograms", "profile"))
"""Modules whose public classes a statement may name."""
_ANY_INSIDER = "anyone who sees the data before the randomness is added"


@dataclass(frozen=True)
class Statement:
    """A guarantee in five plain paragraphs; made by ``profile.statement(delta=...)``.

    ``str()`` returns plain text, :meth:`markdown` and :meth:`html` return these formats. A notebook shows the HTML.

    Attributes
    ----------
    sentences : tuple of str
        The paragraphs: what is protected; from whom; the guarantee with both bounds; the assumptions; proof and version.
    delta : float
        The failure probability.
    epsilon, epsilon_lower : float
        Upper and lower bound of epsilon at delta, in nats.
    """

    title: str
    sentences: tuple[str, ...]
    delta: float
    epsilon: float
    epsilon_lower: float
    _profile: BoundedProfile = field(repr=False, compare=False)

    def __str__(self) -> str:
        return "\n\n".join(f"{head}. {text}" for head, text in zip(_HEADINGS, self.sentences))

    def markdown(self) -> str:
        """Return the statement as Markdown.

        Returns
        -------
        str
            A heading and five paragraphs.
        """
        # Characters that Markdown reads as markup are escaped.
        plain = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>|"})
        parts = [f"**{head}.** {text.translate(plain)}" for head, text in zip(_HEADINGS, self.sentences)]
        return "\n\n".join([f"# Privacy statement: {self.title.translate(plain)}", *parts]) + "\n"

    def html(self) -> str:
        """Return the statement as a web page with the curve of delta over epsilon.

        Returns
        -------
        str
            A page that needs no other file, and that is readable on a light and on a dark background.
        """
        title = f"Privacy statement: {html.escape(self.title)}"
        head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>'
        return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{self._repr_html_()}</body></html>\n'

    def _repr_html_(self) -> str:
        rows = "".join(f"<dt>{head}</dt><dd>{html.escape(text)}</dd>" for head, text in zip(_HEADINGS, self.sentences))
        return (
            f'<style>{_STYLE}</style><article class="privacy-statement"><h1>Privacy statement: {html.escape(self.title)}</h1>'
            f"<dl>{rows}</dl>{self._figure()}</article>"
        )

    def _figure(self) -> str:
        """Return the curve as inline SVG with a caption."""
        eps, low, high = _curve(self._profile, self.delta, self.epsilon)
        caption = (
            "Upper bound (line) and lower bound (dashes) of delta over epsilon. Every point on the line is a guarantee; "
            "the dot is the one that is stated above."
        )
        point = (self.epsilon, math.log10(self.delta)) if self.delta > 0 and self.epsilon <= eps[-1] else None
        return f"<figure>{_svg(eps, low, high, point)}<figcaption>{caption}</figcaption></figure>"


def statement(profile: BoundedProfile, delta: float) -> Statement:
    """Return the statement of a profile at a delta in [0, 1)."""
    delta = _validate.real("delta", delta, 0, 1, open_high=True)
    upper, lower = profile.epsilon(delta), profile.epsilon(delta, bound="lower")
    parts = tuple(part for part, _ in _factors(profile))
    changes = _joined((part.neighbours.partition("; the analyst sees ")[0] for part in parts), "; or: ")
    views = _joined((part.neighbours.partition("; the analyst sees ")[2] or "the output" for part in parts), ", and ")
    insiders = _joined((_INSIDER.get(_subpackage(part), _ANY_INSIDER) for part in parts), ", or ")
    everywhere = " in every release" if _several(profile) else ""
    ways = "one way" if _people(profile) == 1 else f"up to {_people(profile)} changes of one kind"
    sentences = (
        f"{_SUBJECT[profile.relation]}. The guarantee compares two situations that differ in {ways}{everywhere}: {changes}.",
        f"From anyone who learns only {views}, whatever else they know about the rest of the data, and with any amount of "
        f"computing power. Not covered: {insiders}.",
        _guarantee_sentence(profile, delta, upper, lower),
        _assumptions(profile),
        _proof(profile, delta, upper, lower),
    )
    return Statement(name_of(profile), sentences, delta, upper, lower, profile)


def _covers_many(profile: BoundedProfile) -> bool:
    """Return whether the profile, or a profile in it, is a guarantee for many mechanisms."""
    parts = (*(part for part, _ in getattr(profile, "factors", ())), *parameters(profile).values())
    return getattr(profile, "_covers_many", False) or any(_covers_many(part) for part in parts if isinstance(part, BoundedProfile))


def _factors(profile: BoundedProfile) -> tuple[tuple[BoundedProfile, int], ...]:
    """Return the releases with their numbers; for a group those of one record."""
    inner = getattr(profile, "profile", profile) if _people(profile) > 1 else profile
    factors: tuple[tuple[BoundedProfile, int], ...] = getattr(inner, "factors", ((inner, 1),))
    return factors


def _people(profile: BoundedProfile) -> int:
    """Return the number of records that may differ between neighbouring datasets."""
    people: int = getattr(profile, "_people", 1)
    return people


def _several(profile: BoundedProfile) -> bool:
    """Return whether the profile is that of several releases."""
    return sum(times for _, times in _factors(profile)) > 1


def _subpackage(profile: BoundedProfile) -> str:
    """Return the subpackage of this library that defines the class of a profile; "" if none does."""
    package, _, module = type(profile).__module__.partition(".")
    return module.partition(".")[0] if package == "shufflebounds" else ""


def _joined(texts: Iterable[str], between: str) -> str:
    """Return the texts without repetitions, joined by `between`."""
    return between.join(dict.fromkeys(texts))


def _guarantee_sentence(profile: BoundedProfile, delta: float, upper: float, lower: float) -> str:
    """Return the sentence on the guarantee: both bounds of epsilon, and what they mean for probabilities and for a test."""
    shown = format_argument(delta)
    if upper == math.inf:
        return (
            f"For delta = {shown} no finite epsilon is guaranteed: this mechanism needs a larger delta, "
            "and this statement promises nothing."
        )
    high, low = format_bound(upper, upper=True, digits=6), format_bound(lower, upper=False, digits=6)
    text = f"With delta = {shown}, the privacy loss epsilon is at most {high}. "
    text += (
        f"The guarantee covers many mechanisms: its epsilon lies between {low} and {high}, and that of one of the mechanisms "
        "may be smaller. " if _covers_many(profile) else f"The epsilon of the mechanism lies between {low} and {high}. "
    )
    shift = f" plus {shown}" if delta else ""
    # The guarantee of an ordered pair is for one order of the two situations.
    both_orders = profile.reverse() is profile or profile.reverse() == profile
    compared = "one of the two situations as in the other" if both_orders else "the first of the two situations as in the second"
    if upper < 20:
        factor = format_bound(math.exp(upper) * (1 + 1e-12), upper=True, digits=6)
        text += (
            f"Any set of results is at most {factor} times as likely in {compared}{shift}; "
            "a factor of 1 would be perfect protection. "
        )
    miss = math.exp(-upper) * (1 - delta - _ACCUSED)
    if both_orders:
        miss = max(miss, 1 - delta - capped_exp(upper) * _ACCUSED)
    # A trade-off function takes about 200 values of delta.
    if 200 * effort(profile) < CALM_SECONDS:
        miss = max(miss, float(profile.tradeoff().beta(_ACCUSED)))
    miss -= 1e-12
    if miss >= 1e-4:
        text += (
            f"Someone who tells the two situations apart by the results, and wrongly reports the second in at most {_ACCUSED:.0%} "
            f"of the cases, overlooks it in at least {format_bound(100 * miss, upper=False, digits=4)}% of the cases where it is "
            f"true; guessing without the results overlooks it in {1 - _ACCUSED:.0%}."
        )
    else:
        text += "For a test of one user's contribution this promises nothing of use."
    return text.strip()


def _assumptions(profile: BoundedProfile) -> str:
    factors = _factors(profile)
    listed = [
        f"{f'{plotting.number(times)} releases of ' if times > 1 else ''}{_class_and_parameters(part)}" for part, times in factors
    ]
    shown = "; ".join(listed[:8]) + (f"; and {len(listed) - 8} more" if len(listed) > 8 else "")
    acting = _joined((_ACTING.get(_subpackage(part), _ANYBODY_ACTING) for part, _ in factors), ". ")
    text = f"The mechanism is {shown}. {acting}. The random numbers are new and unrelated to anyone else's. "
    for part, _ in factors:
        colluding, missing = (getattr(part, name, 0) for name in ("colluding", "missing"))
        if colluding or missing:
            text += (f"The guarantee of {type(part).__name__} holds if up to {colluding} of the other users reveal their messages, "
                     f"and up to {missing} users are missing for reasons that do not depend on their values. ")
    people = _people(profile)
    if people > 1:
        several = "Every further release weakens" if _several(profile) else (
            "The results are released once. Every further release from the same data weakens")
        return (f"{text}{several} the guarantee. It covers a person who contributes up to {people} times to each release, and up "
                f"to {people} people at once. The collection must enforce this limit: a person with more contributions is less "
                "protected.")
    if _several(profile):
        return (
            f"{text}Every further release weakens the guarantee. It covers one contribution of a person to each of these releases; "
            "the contributions may differ from release to release. A person who contributes several times to one release has "
            "weaker protection."
        )
    text += "The results are released once. Every further release from the same data weakens the guarantee. "
    return text + "It covers one contribution: a person who contributes several times has weaker protection."


def _class_and_parameters(profile: BoundedProfile) -> str:
    """Return the class of a profile and its parameters."""
    described = ", ".join(_parameter(name, value) for name, value in parameters(profile).items() if _is_given(value))
    name = type(profile).__name__.lstrip("_")
    return f"{name} with {described}" if described else name


def _is_given(value: Any) -> bool:
    """Return whether a parameter is not None and no tuple of None."""
    return any(part is not None for part in value) if isinstance(value, tuple) and value else value is not None


def _parameter(name: str, value: Any) -> str:
    """Return a parameter in words: another profile with its own parameters, a long list by its size."""
    if isinstance(value, BoundedProfile):
        return f"{name} = ({_class_and_parameters(value)})"
    if callable(value):
        return f"{name} = (a function of the user)"
    shown = plotting.number(value)
    return f"{name} = {shown}" if shown != "…" or not np.ndim(value) else f"{name} of shape {np.shape(value)}"


def _proof(profile: BoundedProfile, delta: float, upper: float, lower: float) -> str:
    bounds: tuple[tuple[Bound, float], ...] = ("upper", upper), ("lower", lower)
    text = ""
    for bound, eps in bounds:
        # If no finite eps is known, the claims are those at eps = 0.
        claims = profile.evidence(eps if eps < math.inf else 0.0, bound=bound)
        stated = "; ".join(f"{one.claim} ({one.where})" for one in claims if one.status is Status.THEOREM)
        text += f"The {bound} bound is {verdict(claims)}. " + (f"It rests on: {stated}. " if stated else "")
    call = repr(profile)
    # Long arguments, such as a matrix, are abbreviated in angle brackets, and the call is then not valid Python.
    repeat = f"{call if len(call) <= 200 and '<' not in call else 'profile'}.epsilon({format_argument(delta)})"
    text += f"Computed by shufflebounds {__version__}, which was not yet reviewed outside of its project. "
    text += "Both bounds include the errors of rounding and truncation. "
    return f"{text}To recompute in Python: {''.join(f'{line}; ' for line in _imports(repeat))}{repeat}"


def _imports(expression: str) -> list[str]:
    """Return the import statements for the classes of this library that an expression names."""
    by_module: dict[str, list[str]] = {}
    for name in sorted(set(re.findall(r"\b[A-Z]\w*(?=\()", expression))):
        place = next((place for place in _PLACES if name in getattr(sys.modules.get(place), "__all__", ())), None)
        if place is not None:
            by_module.setdefault(place, []).append(name)
    return [f"from {place} import {', '.join(names)}" for place, names in by_module.items()]


def _curve(profile: BoundedProfile, delta: float, epsilon: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return values of epsilon with the lower and upper bound of log10 delta.

    The curve extends to where delta has fallen to a thousandth of the target, or, if a value takes long, to 1.5 times `epsilon`. It
    has 9 to 49 points, so that it takes about CALM_SECONDS; more points make no visible difference at a width of 540 pixels.
    """
    fewest, most = 9, 49
    seconds = effort(profile)
    points = int(min(max(CALM_SECONDS / (2 * seconds), fewest), most))
    end = profile.epsilon(1e-3 * delta) if delta > 0 and seconds * most < CALM_SECONDS else math.inf
    # The axis is divided into steps, so its length must not be a subnormal number.
    if not TINY < end < math.inf:
        end = 1.5 * epsilon if TINY < epsilon < math.inf else 1.0
    eps = np.linspace(0.0, end, points)
    low, high = (np.asarray(profile.log_delta(eps, bound=side)) / math.log(10) for side in ("lower", "upper"))
    return eps, low, high


_STYLE = """
.privacy-statement { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; max-width: 44em; margin: 2em auto;
  padding: 1em; color: #1a1a1a; background: #ffffff; }
.privacy-statement h1 { font-size: 1.3em; overflow-wrap: anywhere; }
.privacy-statement dt { font-weight: 600; margin-top: 1em; }
.privacy-statement dd { margin: 0; overflow-wrap: anywhere; }
.privacy-statement svg { width: 100%; height: auto; margin-top: 1em; }
.privacy-statement .upper { stroke: #0072b2; fill: none; stroke-width: 2; }
.privacy-statement .lower { stroke: #0072b2; fill: none; stroke-width: 1.2; stroke-dasharray: 6 4; }
.privacy-statement .dot { fill: #d55e00; }
.privacy-statement .frame { stroke: currentColor; stroke-width: 1; fill: none; opacity: 0.5; }
.privacy-statement text { fill: currentColor; font-size: 13px; }
@media (prefers-color-scheme: dark) {
  .privacy-statement { color: #e8e8e8; background: #161616; }
  .privacy-statement .upper, .privacy-statement .lower { stroke: #56b4e9; }
  .privacy-statement .dot { fill: #e69f00; }
}
"""


def _svg(eps: FloatArray, low: FloatArray, high: FloatArray, point: tuple[float, float] | None) -> str:
    """Return the curve as SVG: epsilon to the right, log10 of delta upwards."""
    # The size of the plot and the four edges of its frame, in the units of the SVG.
    width, height, left, right, upper_edge, lower_edge = 640, 360, 80, 620, 16, 304
    finite = np.concatenate([low[np.isfinite(low)], high[np.isfinite(high)]])
    # The scale follows the upper bound, because the last value of a lower bound may be far smaller.
    floor = float(high[np.isfinite(high)].min()) if np.isfinite(high).any() else -1.0
    bottom = min(math.floor(min(floor, point[1] if point else 0.0)), -1)
    top = max(0.0, float(finite.max())) if finite.size else 0.0

    def across(value: float) -> float:
        return left + (right - left) * value / float(eps[-1])

    def down(value: float) -> float:
        return upper_edge + (lower_edge - upper_edge) * (top - max(value, bottom)) / (top - bottom)

    def line(values: FloatArray, kind: str) -> str:
        seen = np.isfinite(values)
        places = " ".join(f"{across(x):.1f},{down(y):.1f}" for x, y in zip(eps[seen].tolist(), values[seen].tolist()))
        return f'<polyline class="{kind}" points="{places}"/>'

    step = 10.0 ** math.floor(math.log10(eps[-1] / 2))
    step *= next(m for m in (1, 2, 5) if eps[-1] / (m * step) <= 10 or m == 5)
    ticks = [
        f'<text x="{across(i * step):.1f}" y="{lower_edge + 18}" text-anchor="middle">{i * step:.4g}</text>'
        for i in range(int(eps[-1] / step) + 1)
    ]
    jump = max(1, math.ceil(-bottom / 6))
    ticks += [
        f'<text x="{left - 8}" y="{down(-i) + 4:.1f}" text-anchor="end">{"1" if i == 0 else f"1e-{i}"}</text>'
        for i in range(0, -bottom + 1, jump)
    ]
    dot = f'<circle class="dot" cx="{across(point[0]):.1f}" cy="{down(point[1]):.1f}" r="5"/>' if point else ""
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="delta over epsilon, upper and lower bound">'
        f'<rect class="frame" x="{left}" y="{upper_edge}" '
        f'width="{right - left}" height="{lower_edge - upper_edge}"/>'
        f'{"".join(ticks)}{line(low, "lower")}{line(high, "upper")}{dot}'
        f'<text x="{(left + right) / 2:.0f}" y="{height - 12}" text-anchor="middle">'
        'privacy loss epsilon (nats)</text>'
        f'<text transform="translate(18 {(upper_edge + lower_edge) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        'delta (probability)</text>'
        "</svg>"
    )
