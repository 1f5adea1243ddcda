"""The table of the command's mechanisms and their options, read off the classes."""

from shufflebounds.cli.registry import MECHANISMS, Mechanism


def options(mechanism: Mechanism) -> str:
    """Return the options, each with its default or the words it takes."""
    texts = []
    for name in mechanism.options:
        known = [" or ".join(mechanism.words[name])] if mechanism.words.get(name) and mechanism.required(name) else []
        if not mechanism.required(name) and mechanism.defaults[name] is not None:
            known = [f"default {mechanism.defaults[name]:g}" if isinstance(mechanism.defaults[name], float)
                     else f"default {mechanism.defaults[name]}"]
        elif not mechanism.required(name):
            known = ["optional"]
        texts.append(f"`--{name.replace('_', '-')}`" + "".join(f" ({text})" for text in known))
    return ", ".join(texts) + (", `--users`" if mechanism.shuffles else "") + ("; can be calibrated" if mechanism.calibrate else "")


def table() -> str:
    """Return the table of the mechanisms."""
    lines = ["| mechanism | options | class |", "|---|---|---|"]
    for name, mechanism in MECHANISMS.items():
        subpackage, kind = mechanism.build.__module__.split(".")[1], mechanism.build.__name__
        lines.append(f"| `{name}` | {options(mechanism)} | `{subpackage}.{kind}` |")
    return "\n".join(lines) + "\n"
