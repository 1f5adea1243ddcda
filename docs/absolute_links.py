"""Set the project's public address, once it has one: ``python docs/absolute_links.py https://host/owner/shufflebounds``.

Links in README.md, which a package index cannot follow as they stand, become absolute; pyproject.toml gets
[project.urls], CITATION.cff repository-code, and the conda recipe home.
Run it on the commit that is released; without an address neither would be true.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def absolute(text: str, url: str) -> str:
    """Return a page with its links into the project made absolute: pictures to the raw file, the rest to the page of it."""
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?://|#)([^)\s]+)\)", rf"\g<1>{url}/raw/main/\g<2>)", text)
    return re.sub(r"(\]\()(?!https?://|#)([^)\s]+)\)", rf"\g<1>{url}/blob/main/\g<2>)", text)


def with_urls(settings: str, url: str) -> str:
    """Return pyproject.toml with [project.urls] before its optional dependencies."""
    places = {"Repository": url, "Documentation": f"{url}/tree/main/docs", "Changelog": f"{url}/blob/main/CHANGELOG.md"}
    block = "[project.urls]\n" + "".join(f'{name} = "{place}"\n' for name, place in places.items())
    settings = re.sub(r"\[project\.urls\]\n(?:[^\[\n].*\n)*\n", "", settings)
    return settings.replace("[project.optional-dependencies]\n", f"{block}\n[project.optional-dependencies]\n", 1)


def with_repository(citation: str, url: str) -> str:
    """Return CITATION.cff with the repository after the license."""
    citation = re.sub(r"^repository-code: .*\n", "", citation, flags=re.M)
    return re.sub(r"^(license: .*\n)", rf'\g<1>repository-code: "{url}"\n', citation, count=1, flags=re.M)


def with_home(recipe: str, url: str) -> str:
    """Return the conda recipe with the address in its section about."""
    recipe = re.sub(r"^  home: .*\n", "", recipe, flags=re.M)
    return recipe.replace("about:\n", f"about:\n  home: {url}\n", 1)


def main() -> None:
    """Rewrite the four files."""
    if len(sys.argv) != 2 or not sys.argv[1].startswith("https://"):
        sys.exit("usage: python docs/absolute_links.py https://host/owner/shufflebounds")
    url = sys.argv[1].rstrip("/")
    changes = {"README.md": absolute, "pyproject.toml": with_urls, "CITATION.cff": with_repository, "recipe/meta.yaml": with_home}
    for name, change in changes.items():
        path = ROOT / name
        path.write_text(change(path.read_text(encoding="utf-8"), url), encoding="utf-8")


if __name__ == "__main__":
    main()
