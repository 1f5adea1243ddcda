"""The version of the library; pyproject.toml, CITATION.cff and the recipe state the same one."""

__version__ = "0.1.0"
