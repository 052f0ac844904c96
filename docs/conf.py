"""How Sphinx makes the pages: `python3 run.py docs` builds them into build/docs.

The pages are Markdown that reads well on a code host too. The examples are run, and the pages of
the API are made from the docstrings of the installed package.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

import gzkcore
from gzkcore.datasets import load

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))
source_pages = importlib.import_module("source_pages")
cards = importlib.import_module("cards")

project = "gzkcore"
author = "the gzkcore developers"
project_copyright = author
version = release = gzkcore.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax lies beside the pages: formulas need no network
    "sphinx.ext.linkcode",
    "source_pages",
    "display_math",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
exclude_patterns = ["_templates", "examples"]
templates_path = ["_templates"]
default_role = "py:obj"  # `name` is a link where there is such a name, and else stays code

# ---- Markdown

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# ---- source code

linkcode_resolve = source_pages.of_the_api

# ---- docstrings

autodoc_typehints = "none"  # numpydoc's parameters have them, with shapes
autodoc_default_options = {"members": True, "inherited-members": True}
autosummary_generate = True
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # autodoc shows them, those that we wrote

# ---- examples

# What they load. Where it is not in the folder of the data and can't be fetched they are shown,
# but not run.
DATA = {
    "plot_globe": ("elevation_1deg", "elevation"),
    "plot_whole": ("elevation_1deg", "elevation"),
    "plot_slopes": ("elevation_1deg", "elevation"),
    "plot_climate": ("climate_ncep_2p5deg",),
    "plot_protein": ("protein",),
    "plot_genes": ("gene_chowdary",),
    "plot_kmeans": ("pendigits",),
}


def can_load(name):
    """Say whether a data set is there, now that it was tried; if not, print why."""
    try:
        load(name)
    except (ImportError, OSError) as error:
        print(error)
        return False
    return True


missing = [example for example, names in DATA.items() if not any(map(can_load, names))]

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "gallery",
    "filename_pattern": f"{os.sep}(?!{'|'.join([*missing, '_'])})plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", "gallery_style.use"),
    "image_srcset": ["2x"],
    "thumbnail_size": (400, 280),
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "write_computation_times": False,
}

# ---- pages

html_theme = "pydata_sphinx_theme"
html_title = f"gzkcore {version}"
html_static_path = ["_static"]
html_css_files = ["custom.css"]
html_favicon = "_static/favicon.svg"
html_sidebars = {"**": ["all-pages.html"]}
html_copy_source = False
html_context = {"default_mode": "auto"}  # light or dark, as the system is
html_theme_options = {
    "navbar_center": ["main-links.html"],  # all pages are in the sidebar
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},  # room for the columns there
    "show_prev_next": True,
    "footer_start": ["copyright", "last-updated"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

# ---- links to other places: python3 run.py docs --check

linkcheck_anchors = False
linkcheck_timeout = 30
linkcheck_retries = 2


# ---- rules

FROM_THE_ROOT = {
    "contributing": "CONTRIBUTING.md",
    "changes": "CHANGELOG.md",
    "security": "SECURITY.md",
    "conduct": "CODE_OF_CONDUCT.md",
}


def read_page(app, docname, source):
    """Fill the pages that stand for files of the root, and keep links within the site."""
    text = source[0]
    if docname.startswith("gallery/"):  # |x| is a norm in what examples say, too
        text = re.sub(r"^\S.*$", lambda line: line[0].replace("|", r"\|"), text, flags=re.MULTILINE)
        text = cards.with_names(text, ROOT / "docs")
    if docname in FROM_THE_ROOT:
        text = (ROOT / FROM_THE_ROOT[docname]).read_text(encoding="utf-8").replace("](docs/", "](")
    if docname == "index":  # a comment, so that the menu is not seen where the file is read as text
        menu = re.compile(r"<!-- The menu of the site.*?$(.*)^-->", re.MULTILINE | re.DOTALL)
        text = cards.with_pictures(menu.sub(r"\1", text), ROOT / "docs")
    # The empty line that ends a doctest is not to be seen.
    text = re.sub(r"^(```pycon\n(?:.*\n)*?)\n```$", r"\1```", text, flags=re.MULTILINE)
    for page, name in FROM_THE_ROOT.items():
        text = re.sub(rf"\]\((\.\./)?{re.escape(name)}", f"]({page}.md", text)
    source[0] = source_pages.link(text)


def skip_what_others_wrote(app, what, name, thing, skip, options):
    """Leave out what comes from scikit-learn: it is the same for every estimator."""
    thing = getattr(thing, "fget", None) or getattr(thing, "__func__", thing)
    home = getattr(thing, "__module__", None) or "gzkcore"
    return None if home.startswith("gzkcore") else True


def keep_formulas(app, what, name, thing, options, lines):
    """Let |x| be a norm and dim_ a name, which reStructuredText takes for references."""
    example = False
    for number, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        if not example:
            lines[number] = re.sub(r"\||(?<=\w)_(?=[\s,.;)])", r"\\\g<0>", line)


class NameEquations(SphinxTransform):
    """Give each row of the index an anchor, and let the search find it as "Eq 13" or "Lemma 7"."""

    default_priority = 400

    def apply(self, **_):
        """Add an entry of the index to each row.

        Its name is short, since the search finds entries of at most twice the length of the query.
        """
        if self.env.docname != "equations":
            return
        for section in self.document.findall(nodes.section):
            paper = section.next_node(nodes.title).astext()
            for table in section.findall(nodes.table):
                table["classes"].append("gz-index")
            for row in section.findall(nodes.row):
                cell = row[0]
                number = cell.astext()
                head = isinstance(row.parent, nodes.thead)
                if head or row.parent.parent.parent.parent is not section:
                    continue
                place = nodes.make_id(f"eq-{number}-{paper}")
                called = f"Eq {number}" if number[:1].isdigit() else number
                name = f"{called} [{paper.removeprefix('The ')[:1].upper()}]"
                entry = addnodes.index(entries=[("single", name, place, "main", None)])
                cell.insert(0, entry)
                row["ids"].append(place)  # the search quotes what is there
                self.document.note_explicit_target(row)


class BreakNamesInTables(SphinxPostTransform):
    """Let long names in the cells of tables go on in the next line after a dot, slash or _."""

    default_priority = 400
    formats = ("html",)

    def run(self, **_):
        """Put the code of cells as HTML, with places where it may break."""
        for entry in self.document.findall(nodes.entry):
            for code in list(entry.findall(nodes.literal)):
                html = f"<code>{source_pages.breakable(code.astext())}</code>"
                code.replace_self(nodes.raw("", html, format="html"))


def always_read(app, env, added, changed, removed):
    """Read the index of equations again: Sphinx forgets entries of pages that it does not write."""
    return {"equations"} - added - changed


def days_of_change():
    """Return the day on which each file was changed last, by git if that knows."""
    log = ("git", "log", "--format=%cs", "--name-only")
    try:
        lines = subprocess.run(log, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {}
    days, day = {}, ""
    for line in lines.splitlines():
        if re.fullmatch(r"\d{4}-\d\d-\d\d", line):
            day = line
        elif line:
            days.setdefault(line, day)
    return days


DAYS = days_of_change()


def tell_the_day(app, pagename, templatename, context, doctree):
    """Say at the foot of a page when it was changed last."""
    folder, _, rest = pagename.partition("/")
    sources = {
        "gallery": [f"docs/examples/{rest}.py"],
        "source": [f"{rest}.py", f"{rest}.pyx"],
    }.get(folder, [FROM_THE_ROOT.get(pagename, f"docs/{pagename}.md")])
    context["last_updated"] = next((DAYS[each] for each in sources if each in DAYS), None)


def read_formulas_in_results(app, pagename, templatename, context, doctree):
    """Let the results of a search have no TeX."""
    if pagename == "search":
        app.add_js_file("plain_summaries.js")


def setup(app):
    """Register the rules above."""
    app.add_transform(NameEquations)
    app.add_post_transform(BreakNamesInTables)
    app.connect("env-get-outdated", always_read)
    app.connect("html-page-context", tell_the_day)
    app.connect("html-page-context", read_formulas_in_results)
    app.connect("autodoc-process-docstring", keep_formulas, priority=600)  # after numpydoc
    app.connect("source-read", read_page)
    app.connect("autodoc-skip-member", skip_what_others_wrote)
