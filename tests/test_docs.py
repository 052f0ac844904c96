"""Checks of the pages: each is in the menu, each link has a target, nothing public is missing.

They find from the text alone what `python3 run.py docs` would find in minutes. Each checker takes
the root of a tree and yields the faults there, see trees.py.
"""

import ast
import builtins
import importlib
import importlib.util
import inspect
import json
import pkgutil
import re
import shutil
import subprocess
from fnmatch import fnmatch

import pytest
from trees import ROOT, faults_of, needs_checkout, short, write_tree

import gzkcore

MADE = {"gallery/index"}  # pages that the build makes
MADE_FOLDERS = ("api/", "gallery/")  # and folders of such pages

# Public names without a page of their own in the API, and where they are instead.
ELSEWHERE = {
    "__version__": "a number",
    "reference": "its pages are apart",
    "cli.main.main": "the command, whose page is cli.md",
}
# Public modules, whose names are listed one by one.
LAYERS = {name for name in gzkcore.__all__ if inspect.ismodule(getattr(gzkcore, name))}


def pages(root):
    """Return the names of the pages that people write, as a menu has them."""
    folder = root / "docs"
    names = (path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md"))
    return {name for name in names if not name.startswith(MADE_FOLDERS)}


def entries(text):
    """Yield what the toctrees of a page name."""
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line and not line.startswith(":"):
                yield re.sub(r"^.*<(.*)>$", r"\1", line.strip()).removesuffix(".md")


def without_code(text):
    """Leave out blocks of code, and code in a line."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text):
    """Return the anchors of a page's headings, as code hosts and MyST make them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.strip().lower()).replace(" ", "-") for each in headings}


def check_menu(root):
    """Every page is in the menu, and everything in the menu is a page."""
    there, found, new = pages(root), set(), ["index"]
    while new:
        name = new.pop()
        if name in found or name in MADE:
            continue
        found.add(name)
        folder = name.rpartition("/")[0]
        for entry in entries((root / "docs" / f"{name}.md").read_text(encoding="utf-8")):
            full = f"{folder}/{entry}" if folder else entry
            matches = [page for page in sorted(there) if fnmatch(page, full)]
            if not matches and full not in MADE and "*" not in full:
                yield f"docs/{name}.md: the toctree names {entry}, which isn't there"
            new += matches
    for name in sorted(there - found):
        yield f"docs/{name}.md: in no toctree; add it to docs/index.md"


def check_links(root):
    """Every link to a file leads to one, and to a heading in it."""
    for path in sorted(
        [*root.glob("*.md"), *(root / "docs" / f"{name}.md" for name in pages(root))]
    ):
        text = without_code(path.read_text(encoding="utf-8"))
        for link in re.findall(r"\]\(([^)\s]+)[^)]*\)", text):
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = path.parent / name if name else path
            where = f"{path.relative_to(root).as_posix()}: the link {link}"
            if not target.exists():
                yield f"{where} leads nowhere"
            elif anchor and anchor not in anchors(target.read_text(encoding="utf-8")):
                yield f"{where} leads to no heading"


RIGHT = {
    "CONTRIBUTING.md": "## A part, with `code`\n",
    "README.md": "[pages](docs/index.md)",
    "docs/index.md": "[special](special.md)\n\n```{toctree}\n:hidden:\n\nspecial\nThe rest <more/*>\n```\n",
    "docs/special.md": "[part](../CONTRIBUTING.md#a-part-with-code) `[code](x)` [out](https://x.org)",
    "docs/more/one.md": "[up](../special.md)\n\n```{toctree}\ntwo\n```\n",
    "docs/more/two.md": "# Two\n\n[here](#two)",
    "docs/api/made.md": "in no menu",
}
CHECKERS = {
    check_menu: [
        ("docs/lost.md", "", "docs/lost.md: in no toctree"),
        (
            "docs/more/one.md",
            "```{toctree}\nthree\n```\n",
            "docs/more/one.md: the toctree names three",
        ),
        ("docs/special.md", None, "the toctree names special"),
    ],
    check_links: [
        ("docs/special.md", "[gone](gone.md)", "docs/special.md: the link gone.md leads nowhere"),
        ("docs/special.md", "[x](index.md#gone)", "the link index.md#gone leads to no heading"),
        ("docs/more/two.md", "[here](#two)", "the link #two leads to no heading"),
        ("README.md", "![map](map.png)", "README.md: the link map.png leads nowhere"),
    ],
}


@needs_checkout
@pytest.mark.parametrize("checker", CHECKERS, ids=short)
def test_the_pages_hang_together(checker):
    assert list(checker(ROOT)) == []


@pytest.mark.parametrize("checker", CHECKERS, ids=short)
def test_right_pages_pass(checker, tmp_path):
    assert list(checker(write_tree(tmp_path, RIGHT))) == []


@pytest.mark.parametrize(("checker", "path", "text", "fault"), faults_of(CHECKERS))
def test_a_fault_is_noticed(checker, path, text, fault, tmp_path):
    found = list(checker(write_tree(tmp_path, RIGHT | {path: text})))
    assert any(fault in line for line in found), found


# ---- the README's code


def check_snippets(text):
    """Each block of Python runs by itself, or says that it continues one above."""
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    ):
        names = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)]
        made = {name.id for name in names if isinstance(name.ctx, ast.Store)} | set(dir(builtins))
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                made |= {alias.asname or alias.name for alias in node.names}
        missing = sorted({name.id for name in names} - made)
        if missing and not code.startswith("# continues the example above\n"):
            yield f"block {number} needs {', '.join(missing)}"


@needs_checkout
def test_snippets():
    assert list(check_snippets((ROOT / "README.md").read_text(encoding="utf-8"))) == []
    wrong = "```python\nX = 1\n```\n```python\nprint(X, Y)\n```\n"
    assert list(check_snippets(wrong)) == ["block 1 needs X, Y"]


# ---- the landing page


@pytest.fixture
def cards():
    spec = importlib.util.spec_from_file_location("cards", ROOT / "docs" / "cards.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_checkout
def test_each_card_has_the_picture_of_an_example_that_was_drawn(cards, tmp_path):
    """And none where the gallery was not built: a page without a picture has no broken one."""
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    titles = re.findall(r"^<div>\n\n\*\*(.+)\*\*$", text.partition("gz-cards")[2], re.MULTILINE)
    assert sorted(titles) == sorted(cards.EXAMPLES)
    assert len(set(cards.EXAMPLES.values())) == len(titles)
    shutil.copytree(ROOT / "docs" / "examples", tmp_path / "examples")
    images = tmp_path / cards.IMAGES
    images.mkdir(parents=True)
    assert cards.with_pictures(text, tmp_path) == text
    for number, example in enumerate(cards.EXAMPLES.values(), 1):
        (images / f"sphx_glr_{example}_001.png").touch()
        made = cards.with_pictures(text, tmp_path)
        assert made.count("sphx_glr_") == number
        assert f"thumb/sphx_glr_{example}_thumb.png)](gallery/{example}.rst)" in made


# ---- the API


def test_pictures_of_the_gallery_say_what_they_show(cards):
    """Their texts were empty."""
    text = ".. image:: /gallery/images/thumb/sphx_glr_plot_globe_thumb.png\n    :alt:\n\nmore\n"
    named = cards.with_names(f"  {text}  {text}", ROOT / "docs")
    title = "Elevation of the Earth: regression on a globe"
    assert named.count(f"_thumb.png\n    :alt: {title}\n\nmore") == 2
    assert cards.with_names(named, ROOT / "docs") == named


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(("text", "plain"), [
    (r"It is \(\frac{1}{\sqrt{p}}\), or \(e^{-\gamma \lVert x - y \rVert^2}\).", "It is 1/(√p), or e^(-γ ‖ x - y ‖²)."),
    (r"\(s_\lambda = \mathrm{tr}\, K (K + \lambda I)^{-1}\)", "s_λ = tr K (K + λ I)⁻¹"),
    (r"\[\sum_{i=1}^{n} x_i y^\top \le \tfrac12 \log n\]", "∑_(i=1)ⁿ x_i yᵀ ≤ 1/2 log n"),
    (r"\(\{1, \ldots, n\}\), \(\mathbb{R}^d\)", "{1, …, n}, R^d"),
    ("f(x) costs $5", "f(x) costs $5"),
], ids=["fractions", "powers", "sums", "braces", "no formula"])  # fmt: skip
def test_results_of_a_search_have_no_tex(text, plain):
    script = json.dumps(str(ROOT / "docs" / "_static" / "plain_summaries.js"))
    code = f"process.stdout.write(require({script}).plainText({json.dumps(text)}))"
    done = subprocess.run(["node", "-e", code], capture_output=True, check=True, timeout=60)
    assert done.stdout.decode() == plain


def public_names():
    """Return every public name, by the shortest way that leads to it: gzkcore's, or its layer's."""
    names = set(gzkcore.__all__) - LAYERS
    for found in pkgutil.walk_packages(gzkcore.__path__, "gzkcore."):
        top = found.name.split(".")[1]
        if top in {"_compiled", "_util", "reference", "__main__"}:
            continue
        module = importlib.import_module(found.name)
        layer = importlib.import_module(f"gzkcore.{top}")
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            if inspect.ismodule(value) or getattr(gzkcore, name, None) is value:
                continue
            short = found.name if getattr(layer, name, None) is not value else layer.__name__
            names.add(f"{short.removeprefix('gzkcore.')}.{name}")
    return names


@needs_checkout
def test_every_public_name_is_in_the_api():
    listed = re.findall(
        r"^   ([\w.]+)$", (ROOT / "docs" / "api.md").read_text("utf-8"), re.MULTILINE
    )
    assert len(listed) == len(set(listed))
    assert set(listed) == public_names() - set(ELSEWHERE)


@needs_checkout
def test_formulas_go_on_in_the_next_line_unless_they_say_where_lines_end(monkeypatch):
    pytest.importorskip("sphinx", reason="what makes the pages is not installed")
    monkeypatch.syspath_prepend(ROOT / "docs")
    math = importlib.import_module("display_math")
    matrix = r"H = \begin{pmatrix} 1 & 1 \\ 1 & -1 \end{pmatrix}"
    assert math.formulas(rf"a = b \le c, \qquad {matrix}") == [
        ["a", "{}= b", r"{}\le c,"],
        ["H", "{}" + matrix.removeprefix("H ")],
    ]
    assert not math.stays_whole(matrix)
    assert math.stays_whole(r"a = b \\ c = d")
    assert math.stays_whole(r"\begin{aligned} a &= b \\ c &= d \end{aligned}")
