"""Break formulas into several lines if the page is narrow: a part of docs/conf.py.

MathJax 3 does not break lines. So a formula becomes several, one after another: each begins with a
relation, or follows a wide space. Matrices, cases and parts in brackets are not broken.
"""

import re
from html import escape

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

SIGN = re.compile(r"\\[A-Za-z]+|\\.|.", re.DOTALL)
RELATIONS = {"=", "<", ">"} | {
    rf"\{name}"
    for name in ("le", "ge", "leq", "geq", "ne", "approx", "propto", "preceq", "succeq", "sim")
}
OPEN = {"{", "(", "[", r"\{", r"\left", r"\begin", r"\langle", r"\lfloor", r"\lceil"}
CLOSE = {"}", ")", "]", r"\}", r"\right", r"\end", r"\rangle", r"\rfloor", r"\rceil"}
LONG = 25  # a sum goes on in the next line after as many characters
SPACES = {r"\qquad", r"\quad"}


def formulas(tex):
    """Return the formulas of a display, each as the parts that may stand in lines of their own."""
    out, depth = [[""]], 0
    for sign in SIGN.findall(tex):
        depth += (sign in OPEN) - (sign in CLOSE)
        last = out[-1][-1].strip()
        if not depth and sign in SPACES:
            out.append([""])
            continue
        if not depth and last and (sign in RELATIONS or (sign == "+" and len(last) > LONG)):
            out[-1].append("{}")
        out[-1][-1] += sign
    return [[part.strip() for part in formula] for formula in out if formula != [""]]


def stays_whole(tex):
    """Say whether a formula says itself where lines end, outside of its matrices."""
    depth = 0
    for sign in SIGN.findall(tex):
        depth += (sign in OPEN) - (sign in CLOSE)
        if sign == r"\\" and not depth:
            return True
    return tex.lstrip().startswith(r"\begin")


def html(formula, style=""):
    """Return the parts of a formula as HTML for MathJax, which may end a line after each."""
    return "<wbr>".join(rf"<span>\({style}{escape(part)}\)</span>" for part in formula)


class BreakFormulas(SphinxPostTransform):
    """Write formulas as their parts, but for those that say themselves where lines end."""

    default_priority = 400
    formats = ("html",)

    def run(self, **_):
        """Replace displays, and what is long within a line."""
        for node in list(
            self.document.findall(lambda n: isinstance(n, nodes.math | nodes.math_block))
        ):
            tex, inside = node.astext(), isinstance(node, nodes.math)
            if stays_whole(tex) or (inside and len(tex) < LONG):
                continue
            if inside:
                found = " ".join(map(html, formulas(tex)))
                text = f'<span class="math notranslate nohighlight">{found}</span>'
            else:
                found = [html(formula, r"\displaystyle ") for formula in formulas(tex)]
                spans = " ".join(f"<span>{formula}</span>" for formula in found)
                text = f'<div class="math notranslate nohighlight gz-display">{spans}</div>'
            node.replace_self(nodes.raw("", text, format="html"))


def setup(app):
    """Register the rule."""
    app.add_post_transform(BreakFormulas)
    return {"parallel_read_safe": True}
