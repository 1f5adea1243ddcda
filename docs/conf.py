from importlib.metadata import version as installed_version

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml

project = "shufflebounds"
author = "The shufflebounds developers"
project_copyright = "The shufflebounds developers"
version = release = installed_version("shufflebounds")

extensions = ["sphinx.ext.autodoc", "sphinx.ext.autosummary", "myst_parser", "numpydoc"]
exclude_patterns = ["_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False

# MathML needs neither a script nor a network.
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = "shufflebounds"
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 2,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {name: [] for name in ("index", "tour", "choose", "concepts", "numerics", "cli")}
html_show_sourcelink = False


def ufunc_signature(app, what, name, obj, options, signature, return_annotation):
    """Give a ufunc the names of its arguments, which NumPy calls x1, x2, x3."""
    return ("(k, n, p, /, out=None, *, where=True, **kwargs)", None) if type(obj).__name__ == "ufunc" else None


def visit_math(translator, node):
    translator.body.append(tex2mathml(node.astext()))
    raise SkipNode


def visit_math_block(translator, node):
    translator.body.append(f'<div class="math">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise SkipNode


def setup(app):
    app.connect("autodoc-process-signature", ufunc_signature, priority=100)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
