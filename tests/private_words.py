"""Counts words that readers from the field do not know, in each file.

A test compares the counts with the largest allowed ones, in private_words.json; `python -m tests.private_words` lowers those to the
present counts.

The prose of a file is its comments and strings (Python, Cython), its comments (C), or its text without code (Markdown). A word in
backticks is a name and is not counted.
"""

import io
import json
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_suffix(".json")
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".h", ".md"}
SKIPPED = {"_build", "_generated", "generated", "__pycache__"}

REPLACEMENTS = {
    r"dear(?:er|est|ly)?": "expensive; run time",
    r"mend(?:s|ed|ing)?": "fix, fixed",
    r"crowds?": "population, users",
    r"everybody|everyone|nobody|somebody|anybody|whoever": "name the users: every user, no user, the target user",
    r"riddles?": "name what is not clear",
    r"so many|so much|as much as that": "name the variable: n, k, s",
    r"asked of": "evaluated at",
    r"far out": "in the extreme tail; at small delta",
    r"left[- ]out mass": "truncated mass",
    r"knots?": "breakpoint",
    r"houses?|rooms?": "module, subpackage, memory, number of elements",
    r"of one's own": "personalized; user-defined",
    r"hardly|seldom|nearly nothing|next to nothing": "state the number and the condition",
    r"whatever the data": "for every dataset",
    r"revivals?": "secondary maximum",
    r"referees?": "reference implementation",
    r"hostile": "adversarial",
    r"kin|twins?": "name the quantity",
    r"outwards?": "rounded conservatively",
    r"taken off": "subtracted from the lower bound",
    r"clear reports": "reports sent without randomization",
    r"digits (?:eaten|lost)|eats? digits": "cancellation",
}
WORDS = {word: re.compile(rf"\b(?:{word})\b", re.I) for word in REPLACEMENTS}


def python_prose(text):
    """Return the comments and strings of a Python source."""
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join(token.string for token in tokens if token.type in kinds)


def prose(path):
    """Return the prose of a file, with names in backticks removed and white space folded."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in {".py", ".pyi"}:
        text = python_prose(text)
    elif path.suffix in {".pyx", ".pxd"}:
        text = "\n".join(re.findall(r'""".*?"""|"[^"\n]*"|#[^\n]*', text, re.S))
    elif path.suffix == ".h":
        text = "\n".join(re.findall(r"/\*.*?\*/|//[^\n]*", text, re.S))
    else:
        text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    # A mark that continues a comment may stand between two words of one sentence.
    text = re.sub(r"\n\s*(?:#|//|\*)? ?", "\n", text)
    return " ".join(re.sub(r"`[^`\n]*`", "", text).split())


def files():
    """Return the files whose prose is counted."""
    found = (path for top in ("src", "docs", "tests", "benchmarks") for path in sorted((ROOT / top).rglob("*")))
    own = {Path(__file__), RECORD}
    return [path for path in found if path.suffix in SUFFIXES and path not in own and not SKIPPED & set(path.parts)]


def count():
    """Return the number of uses in each file that has any, as {path: number}."""
    totals = {str(path.relative_to(ROOT)): len(uses(path)) for path in files()}
    return {path: total for path, total in totals.items() if total}


def uses(path):
    """Return every use of such a word in a file, as (the text around it, the word to write instead)."""
    text = prose(path)
    return [
        (text[max(found.start() - 30, 0) : found.end() + 20], REPLACEMENTS[word])
        for word, rule in WORDS.items()
        for found in rule.finditer(text)
    ]


def recorded():
    """Return the largest number of uses allowed in each file; a file that is not listed is allowed none."""
    return json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}


def main():
    """Lower the recorded counts to the present ones; no count is raised, except if there is no record."""
    present, before = count(), recorded()
    lowered = {path: min(total, before.get(path, 0)) for path, total in present.items()} if before else present
    RECORD.write_text(json.dumps({path: total for path, total in lowered.items() if total}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
