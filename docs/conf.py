import importlib
import inspect
import re
import sys
from importlib.metadata import metadata
from pathlib import Path

from docutils import nodes
from docutils.nodes import SkipNode, Text, literal_block
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.util.nodes import make_refnode

sys.path.insert(0, str(Path(__file__).parent))
import calculator

project = "shufflebounds"
author = "The shufflebounds developers"
project_copyright = "The shufflebounds developers"
about = metadata("shufflebounds")
version = release = about["Version"]

extensions = [
    "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.viewcode", "myst_parser", "numpydoc",
    "sphinx_copybutton", "sphinx_design",
]
# the copy button leaves prompts and printed lines out
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
exclude_patterns = ["_build"]
templates_path = ["_templates"]

myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

# With -n every reference must have a target. These have none, for the reason given.
nitpick_ignore = [
    # its methods are for the protocols of this package; the docstring of the module explains the random variable
    ("py:class", "shufflebounds._engines.excess.excess_law.ExcessLaw"),
]

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
add_module_names = False
toc_object_entries_show_parents = "hide"

# There are no links into the pages of other projects: intersphinx reads their lists of names from the network when the site is
# built, and no package brings these lists along. The site is built without a network.

# MathML needs neither a script nor a network.
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/favicon.svg"
myst_html_meta = {"description": about["Summary"]}
html_title = "shufflebounds"
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_nav_level": 1,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
# pages have a link to edit them where the repository has an address (docs/absolute_links.py writes it)
repository = next((url.split(", ")[1] for url in about.get_all("Project-URL", []) if url.startswith("Repository")), None)
if repository:
    owner, name = repository.rstrip("/").split("/")[-2:]
    html_context = {"github_user": owner, "github_repo": name, "github_version": "main", "doc_path": "docs"}
    html_theme_options["use_edit_page_button"] = True
    html_theme_options["secondary_sidebar_items"].append("edit-this-page")
# the first page has no section of its own to list beside it
html_sidebars = {"index": []}
html_show_sourcelink = False


def public_names():
    """Return every public name as the pages write it, with its subpackage or without, and its full name."""
    found = {}
    for subpackage in ("profile", "shuffle", "shuffle.samples", "mechanisms", "sampling", "composition", "selection", "histograms",
                 "tradeoff", "tails", "interop", "published"):
        module = importlib.import_module(f"shufflebounds.{subpackage}")
        for name in module.__all__:
            full = f"shufflebounds.{subpackage}.{name}"
            found[f"{subpackage}.{name}"] = full
            # what is a word of the language, or stands in two subpackages, is linked with its subpackage only
            if "_" in name or name[0].isupper():
                found[name] = None if name in found and subpackage != "mechanisms" else full
            for method in ("calibrate", "from_dp", "from_pmfs"):
                if isinstance(getattr(module, name), type) and hasattr(getattr(module, name), method):
                    found[f"{subpackage}.{name}.{method}"] = f"{full}.{method}"
    return found


PUBLIC = public_names()


def true_signature(app, what, name, obj, options, signature, return_annotation):
    """Name the arguments of a ufunc, which NumPy calls x1, x2, x3, and those of the formula behind a printed bound."""
    if type(obj).__name__ == "ufunc":
        return "(k, n, p, /, out=None, *, where=True, **kwargs)", None
    if type(obj).__name__ == "PrintedBound":
        return f"({', '.join(inspect.signature(obj.formula).parameters)})", None
    return None


def ufunc_docstring(app, what, name, obj, options, lines):
    """Take out the indentation that NumPy leaves in a ufunc's docstring."""
    if type(obj).__name__ == "ufunc":
        lines[:] = inspect.cleandoc("\n".join(lines)).split("\n")


def trim_blocks(app, doctree):
    """Drop the empty line that ends the expected output of a doctest."""
    for block in doctree.findall(literal_block):
        block.rawsource = block.astext().rstrip()
        block[:] = [Text(block.rawsource)]


def link_names(app, doctree):
    """Lead from a public name in running text to its page, where it is not linked by hand: `shuffle.Clones(...)`, `Clones`."""
    if app.env.docname in ("kernels", "c_library"):
        return          # C functions of the same names
    for literal in list(doctree.findall(nodes.literal)):
        above = literal.parent
        while above is not None and not isinstance(above, nodes.reference | addnodes.pending_xref | nodes.title):
            above = above.parent
        name = re.match(r"(?:shufflebounds\.)?((?:[a-z]\w*\.)?\w+(?:\.[a-z_]\w*)?)(?=\(|$)", literal.astext())
        full = above is None and name and PUBLIC.get(name[1])
        if full:
            target = addnodes.pending_xref("", refdomain="py", reftype="obj", reftarget=full, refdoc=app.env.docname, refwarn=False)
            literal.replace_self(target)
            target += literal


def narrow_figures(app, doctree, docname):
    """Show the narrow form of a figure on a phone: the browser chooses."""
    if app.builder.format != "html":
        return
    for image in list(doctree.findall(nodes.image)):
        name = Path(image["uri"]).name
        if (Path(app.srcdir) / "_static" / "figures" / "narrow" / name).exists():
            address = "../" * docname.count("/") + f"_static/figures/narrow/{name}"
            source = f'<picture><source media="(max-width: 720px)" srcset="{address}">'
            place, here = image.parent, image.parent.index(image)
            place[here : here + 1] = [nodes.raw("", source, format="html"), image, nodes.raw("", "</picture>", format="html")]


def mathml(tex, *, block):
    """Return tex as MathML with a thin space after log and other functions, and with double bars of the height of a letter."""
    before_bracket = r'(?!\s*<mo stretchy="false">[(\[])'
    found = re.sub("<mo>&ApplyFunction;</mo>" + before_bracket, '<mspace width="0.17em"/>', tex2mathml(tex, as_block=block))
    # a fence without a partner would grow to the height of the line
    return re.sub("<mo[^>]*>([\u2016\u2223\u2225])</mo>", r'<mo stretchy="false">\1</mo>', found)


def inherited(app, env, node, contnode):
    """Lead from a method of a class to the page of the class that defines it: inherited methods are described there only."""
    place, _, member = node.get("reftarget", "").rpartition(".")
    module, _, name = (place or f"{node.get('py:module')}.{node.get('py:class')}").rpartition(".")
    owner = getattr(sys.modules.get(module), name, None)
    if node.get("refdomain") != "py" or not isinstance(owner, type):
        return None
    for base in owner.__mro__[1:]:
        for home in {base.__module__, "shufflebounds.profile"}:
            found = env.domains["py"].find_obj(env, "", "", f"{home}.{base.__name__}.{member}", None, 0)
            if found:
                title, entry = found[0]
                return make_refnode(app.builder, node["refdoc"], entry.docname, entry.node_id, contnode, title)
    return None


def calculator_files(app, problem):
    """Write the scripts, the fields and the library of the page of the calculator."""
    if problem is None and app.builder.format == "html":
        calculator.write(Path(app.outdir) / "_static")


def visit_math(translator, node):
    translator.body.append(mathml(node.astext(), block=False))
    raise SkipNode


def visit_math_block(translator, node):
    translator.body.append(f'<div style="overflow-x: auto; margin-bottom: 1.15rem">{mathml(node.astext(), block=True)}</div>')
    raise SkipNode


def setup(app):
    app.connect("autodoc-process-signature", true_signature, priority=100)
    app.connect("autodoc-process-docstring", ufunc_docstring, priority=100)
    app.connect("missing-reference", inherited)
    app.connect("doctree-read", trim_blocks)
    app.connect("doctree-read", link_names)
    app.connect("doctree-resolved", narrow_figures)
    app.connect("build-finished", calculator_files)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
