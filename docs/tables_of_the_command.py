"""The table of the command's mechanisms and their options, read off the classes when the site is built."""

from pathlib import Path

from shufflebounds.cli.registry import MECHANISMS, Mechanism


def options(mechanism: Mechanism) -> str:
    """Return the options, each with its default or the words it takes."""
    said = []
    for name in mechanism.options:
        known = [" or ".join(mechanism.words[name])] if mechanism.words.get(name) and mechanism.required(name) else []
        if not mechanism.required(name) and mechanism.defaults[name] is not None:
            known = [f"default {mechanism.defaults[name]:g}" if isinstance(mechanism.defaults[name], float)
                     else f"default {mechanism.defaults[name]}"]
        elif not mechanism.required(name):
            known = ["optional"]
        said.append(f"`--{name.replace('_', '-')}`" + "".join(f" ({text})" for text in known))
    return ", ".join(said) + (", `--users`" if mechanism.shuffles else "") + ("; can be calibrated" if mechanism.calibrate else "")


def write(folder: Path) -> None:
    """Write the table for a page to include."""
    lines = ["| mechanism | options | class |", "|---|---|---|"]
    for name, mechanism in MECHANISMS.items():
        room, kind = mechanism.build.__module__.split(".")[1], mechanism.build.__name__
        lines.append(f"| `{name}` | {options(mechanism)} | {{class}}`~shufflebounds.{room}.{kind}` |")
    (folder / "mechanisms-of-the-command.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
