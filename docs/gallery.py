"""The gallery: every figure of the pages, with the page that explains it and the code that draws it."""

import ast
import re
from pathlib import Path

DOCS = Path(__file__).parent
IMAGE = re.compile(r"!\[([^\]]+)\]\([^)]*_static/figures/([\w-]+)\.svg\)")


def drawing() -> dict[str, tuple[str, str]]:
    """Return the file and the function that draw each figure, read from the tables FIGURES and IDEAS."""
    places = {path.stem: ("figures_of_ideas.py", "protocol") for path in (DOCS / "_static/figures").glob("protocol-*.svg")}
    for module in ("make_figures", "figures_of_ideas"):
        for node in ast.walk(ast.parse((DOCS / f"{module}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
                        places[key.value] = (f"{value.value.id}.py", value.attr)
                    elif isinstance(key, ast.Constant) and isinstance(value, ast.Name):
                        places[key.value] = (f"{module}.py", value.id)
    return places


def page() -> str:
    """Return the gallery as Markdown, in the order of the names."""
    shown = {}
    for path in sorted(DOCS.rglob("*.md")):
        where = path.relative_to(DOCS)
        if where.name != "gallery.md" and not {"_build", "generated"} & set(where.parts):
            for alt, name in IMAGE.findall(path.read_text(encoding="utf-8")):
                shown.setdefault(name, (alt, where.as_posix()))
    code = drawing()
    parts = []
    for name, (alt, where) in sorted(shown.items()):
        file, function = code[name]
        parts.append(f"## {name.replace('_', ' ').replace('-', ' ').capitalize()}\n\n![{alt}](_static/figures/{name}.svg)\n\n"
                     f"From [{where}]({where}); `python docs/make_figures.py {name}` draws it.\n\n"
                     f"````{{dropdown}} Code\n```{{literalinclude}} {file}\n:pyobject: {function}\n```\n````")
    return "\n\n".join(parts)
