"""Pictures on the cards of the landing page, and what those of the gallery show: for docs/conf.py.

Each is the picture of an example, which the gallery has drawn. If an example was not run, since its
data are missing or by `-D plot_gallery=0`, its card has no picture. The page as plain Markdown has
none either.
"""

import re

IMAGES = "gallery/images"
EXAMPLES = {
    "Tables": "plot_uncertainty",
    "The globe": "plot_globe",
    "Genes and images": "plot_images",
    "Big files": "plot_streaming",
    "Teaching": "plot_kmeans",
    "Developers": "plot_dask",
    "From another library": "plot_digits",
    "Which method?": "plot_protein",
}


def title_of(example, docs):
    """Return the title of an example, the second line of its file."""
    return (docs / "examples" / f"{example}.py").read_text(encoding="utf-8").splitlines()[1]


def with_pictures(text, docs):
    """Return the landing page with a picture below the title of each card that has one."""
    for title, example in EXAMPLES.items():
        # A thumbnail is there in any case, of a figure or of nothing.
        if any((docs / IMAGES).glob(f"sphx_glr_{example}_0*.png")):
            thumb = f"{IMAGES}/thumb/sphx_glr_{example}_thumb.png"
            link = f"[![{title_of(example, docs)}]({thumb})](gallery/{example}.rst)"
            text = text.replace(f"<div>\n\n**{title}**\n", f"<div>\n\n**{title}**\n\n{link}\n", 1)
    return text


def with_names(text, docs):
    """Return a page of the gallery with the title of each example as the text of its picture.

    Sphinx-gallery leaves that text empty.
    """
    return re.sub(
        r"(sphx_glr_(plot_\w+)_thumb\.png\n +:alt:) *$",
        lambda found: f"{found[1]} {title_of(found[2], docs)}",
        text,
        flags=re.MULTILINE,
    )
