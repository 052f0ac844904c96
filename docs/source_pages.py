"""Show source code as pages of the site, each definition with an anchor: a part of docs/conf.py.

A link of a page such as [`special.alpha`](../reference/special.py) leads to the definition of
`alpha` in source/reference/special.html, and so do the links [source] of the API.
"""

import ast
import importlib
import inspect
import re
from functools import cache
from html import escape
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename

ROOT = Path(__file__).resolve().parents[1]
LINK = re.compile(r"\[`([^`]+)`\]\(\.\./((?:gzkcore|reference|tests)/[\w/]+\.pyx?)\)")
CYTHON = re.compile(r"^(?:cdef|cpdef|def|class)\b[^=\n]*?\b(\w+)\s*(?:\(|:$)", re.MULTILINE)


@cache
def definitions(path):
    """Return {name: line} of what a file defines: functions, classes, methods and variables."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".pyx"):
        found = [
            (match[1], text.count("\n", 0, match.start()) + 1) for match in CYTHON.finditer(text)
        ]
        return dict(reversed(found))
    return dict(_names(ast.parse(text).body, ""))


def _names(body, prefix):
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name, node.lineno
        if isinstance(node, ast.ClassDef):
            yield from _names(node.body, f"{prefix}{node.name}.")
        if isinstance(node, ast.Assign | ast.AnnAssign):
            for target in getattr(node, "targets", None) or [node.target]:
                if isinstance(target, ast.Name):
                    yield prefix + target.id, node.lineno


def address(path, name=""):
    """Return the page of a file, at the definition of a name if that is there."""
    known = definitions(path)
    parts = name.split(".")
    names = (".".join(parts[start:]) for start in range(len(parts)))
    anchor = next((f"#{each}" for each in names if each in known), "")
    return f"source/{path.rpartition('.')[0]}.html{anchor}"


def breakable(name):
    """Return a name as HTML that may break after a dot, a slash or _."""
    return re.sub(r"(?<=\w)([./_]+)(?=[^\W\d_])", r"\1<wbr>", escape(name))


def link(text):
    """Let the links of a page to source files lead to pages of the site."""

    def html(match):
        name, path = match.groups()
        return f'<a href="{address(path, name)}"><code>{breakable(name)}</code></a>'

    return LINK.sub(html, text)


def of_the_api(_domain, info):
    """Return the page of the source of an object, for sphinx.ext.linkcode."""
    thing = importlib.import_module(info["module"])
    for part in info["fullname"].split("."):
        thing = getattr(thing, part, None)
    thing = inspect.unwrap(getattr(thing, "fget", None) or thing) if thing is not None else None
    path = f"{(getattr(thing, '__module__', None) or '').replace('.', '/')}.py"
    path = path.removeprefix("gzkcore/") if path.startswith("gzkcore/reference/") else path
    if not (ROOT / path).is_file():
        return None
    return f"../{address(path, thing.__qualname__)}"


def _files(app):
    """Return the source files of the package, and those of the tests that pages link to."""
    linked = {
        match[2]
        for page in Path(app.srcdir).glob("*.md")
        for match in LINK.finditer(page.read_text(encoding="utf-8"))
    }
    package = {
        str(file.relative_to(ROOT))
        for folder in ("gzkcore", "reference")
        for file in (ROOT / folder).rglob("*.py*")
        if file.suffix in {".py", ".pyx"}
    }
    return sorted(linked | package)


def pages(app):
    """Yield a page for each file."""
    for path in _files(app):
        text = (ROOT / path).read_text(encoding="utf-8")
        # Empty lines at the beginning would be dropped, and all others be counted wrongly.
        lexer = get_lexer_for_filename(path, stripnl=False)
        lines = highlight(text, lexer, HtmlFormatter(nowrap=True)).splitlines()
        for name, number in definitions(path).items():
            lines[number - 1] = (
                f'<span class="gz-definition" id="{name}">{lines[number - 1]}</span>'
            )
        body = "\n".join(lines)
        code = f'<div class="highlight"><pre>{body}\n</pre></div>'
        context = {
            "parents": [{"link": "../" * (path.count("/") + 1) + "api.html", "title": "API"}],
            "title": path,
            "sidebars": [],  # room for the code, and quick
            "body": f"<h1>{path}</h1>\n{code}",
        }
        yield f"source/{path.rpartition('.')[0]}", context, "page.html"


def setup(app):
    """Add the pages."""
    app.connect("html-collect-pages", pages)
    return {"parallel_read_safe": True}
