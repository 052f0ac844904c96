"""The gallery: each example has its form, is named in its README, and runs in under a minute.

A minute on two processors, that is; all but one take less than one of a single processor.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "docs" / "examples"
NAMES = [
    "plot_globe", "plot_whole", "plot_slopes", "plot_climate", "plot_protein", "plot_digits",
    "plot_genes", "plot_images", "plot_kmeans", "plot_uncertainty", "plot_streaming", "plot_dask",
]  # fmt: skip
# The file in $GZKCORE_DATA without which an example would have to fetch its data, or can't run.
DATA = {
    "plot_globe": "elevation_1deg", "plot_whole": "elevation_1deg",
    "plot_slopes": "elevation_1deg", "plot_climate": "climate_ncep_2p5deg",
    "plot_protein": "protein_casp", "plot_genes": "gene_chowdary", "plot_kmeans": "pendigits_train",
}  # fmt: skip
SECONDS = {"plot_whole": 160}  # of processors, 130 with AVX2; and of all others:
MOST_SECONDS = 60

pytestmark = pytest.mark.skipif(
    not FOLDER.is_dir(), reason="the tests of a wheel run without the documentation"
)


def test_the_readme_names_the_examples():
    text = (FOLDER / "README.rst").read_text(encoding="utf-8")
    assert re.findall(r"^- ``(\w+)\.py``", text, re.MULTILINE) == NAMES
    assert sorted(path.stem for path in FOLDER.glob("*.py")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_example_has_a_title_and_compiles(name):
    text = (FOLDER / f"{name}.py").read_text(encoding="utf-8")
    compile(text, name, "exec")
    docstring = ast.get_docstring(ast.parse(text))
    title, underline, empty, *about = docstring.splitlines()
    assert underline == "=" * len(title)
    assert not empty
    assert len(" ".join(about)) > 100  # what it shows, and why
    assert text.count("\n# %%\n") >= 3
    assert text.endswith("plt.show()\n")


@pytest.mark.weekly
@pytest.mark.parametrize("name", NAMES)
def test_example_runs_in_under_a_minute(name, tmp_path):
    if name in DATA and not Path(os.environ.get("GZKCORE_DATA", ""), f"{DATA[name]}.npz").is_file():
        pytest.skip(f"needs {DATA[name]}.npz in the folder that GZKCORE_DATA names")
    # A window can't be shown without a display, which is no news here.
    command = [sys.executable, "-W", "error", "-W", "ignore:FigureCanvasAgg is non-interactive"]
    start = sum(os.times()[2:4])
    done = subprocess.run(
        [*command, FOLDER / f"{name}.py"],
        cwd=tmp_path, env=os.environ | {"MPLBACKEND": "Agg", "OMP_WAIT_POLICY": "passive"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    # Of processors, in this process's children: other work on the machine doesn't count.
    seconds = sum(os.times()[2:4]) - start
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir())  # it leaves nothing behind
    assert seconds < SECONDS.get(name, MOST_SECONDS)
