"""The layout holds: imports go down, every idea has its files, the documents tell the truth.

Each checker takes the root of a tree and yields what is wrong there, one line each. It runs on this
checkout, where it must find nothing, and on small wrong trees, where it must find the fault.
"""

import ast
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

import gzkcore

ROOT = Path(__file__).resolve().parents[1]
needs_checkout = pytest.mark.skipif(
    not (ROOT / "meson.build").is_file(),
    reason="the tests run away from a checkout, so there is no tree to look at",
)

# Files that name modules of higher layers in texts, and why that is no import.
NAMES_HIGHER_MODULES = {
    "gzkcore/_util/model_io.py": "the list of classes that a file may hold; a class is imported when one is loaded",
}

# Which reference modules may import NumPy: where the paper itself writes a matrix.
NUMPY_IN_REFERENCE = {
    "adaptive": "leverage is a quadratic form of an inverse",
    "gegenbauer": "Eq 19 is a matrix of features",
    "gram": "Z^T Z is a product of matrices",
    "metrics": "Eq 1 orders matrices, Eq 21 has their traces",
    "nystrom": "Algorithm 3 has inverses, and eigenvalues",
    "pca": "a covariance has eigenvectors",
    "cca": "covariances have roots and singular vectors",
    "ridge": "the normal equations are an inverse",
    "theory": "Eq 17 has an inverse, Lemma 18 norms of matrices",
}

LIGHT = {
    "dask",
    "gzkcore._compiled",
    "matplotlib",
    "numpy",
    "scipy",
    "sklearn",
    "typer",
}  # what `import gzkcore` must leave alone


# ---- the layers


def layers_of(root):
    """Return {folder or module: layer} from the ordered list in CONTRIBUTING.md."""
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ((?:`[\w.]+/?`(?:, )?)+) \|", text, re.MULTILINE)
    return {
        name.removesuffix("/").removesuffix(".py"): int(layer)
        for layer, names in rows
        for name in re.findall(r"`([\w./]+)`", names)
    }


def modules_in(root):
    """Return {dotted name: path} of all modules of the package."""
    package = root / "gzkcore"
    return {
        ".".join(path.relative_to(root).with_suffix("").parts): path
        for suffix in ("py", "pyx")
        for path in sorted(package.rglob(f"*.{suffix}"))
    }


def imports_of(name, path):
    """Yield (line, dotted name of a module, or of a name in one) of all imports, also in functions."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".pyx":
        for number, line in enumerate(text.splitlines(), start=1):
            if found := re.match(r"\s*from (gzkcore[\w.]*) c?import", line):
                yield number, found[1]
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = name if path.stem == "__init__" else name.rpartition(".")[0]
            parts = package.removesuffix(".__init__").split(".")
            start = parts[: len(parts) + 1 - node.level] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def texts_naming_modules(path):
    """Yield (line, dotted name) of the modules of gzkcore that texts name, but for docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            for name in re.findall(
                r"(?<![\w.])from (gzkcore\.[\w.]+) import|^(gzkcore\.[\w.]+)$", node.value
            ):
                yield node.lineno, "".join(name)


def check_layers(root):
    """Imports go to their own layer or down, name the module that defines, and make no circle."""
    layers, modules = layers_of(root), modules_in(root)
    if not layers:
        yield "CONTRIBUTING.md: no list of layers"
    for entry in sorted((root / "gzkcore").iterdir()):
        known = entry.name.startswith("__") or entry.suffix in (".typed", ".build")
        if not known and entry.stem not in layers:
            yield f"gzkcore/{entry.name}: in no layer"
    arrows = {}
    for name, path in modules.items():
        parts, where = name.split("."), path.relative_to(root).as_posix()
        if parts[1] in ("__init__", "__main__"):
            continue  # the front door: it may name everything
        own = layers.get(parts[1], 0)
        found = list(imports_of(name, path))
        if path.suffix == ".py" and where not in NAMES_HIGHER_MODULES:
            found += texts_naming_modules(path)
        for line, target in found:
            if target.partition(".")[0] != "gzkcore":
                continue
            module = next((m for m in (target, target.rpartition(".")[0]) if m in modules), None)
            folder = target.split(".")[1] if "." in target else ""
            if layers.get(folder, 0) > own:
                yield f"{where}:{line}: {folder} is a higher layer than {parts[1]}"
            elif folder not in layers or module is None:
                yield f"{where}:{line}: {target} is no module; import from the one that defines it"
            elif module != name:
                arrows.setdefault(name, set()).add(module)
    yield from (f"circle: {' -> '.join(circle)}" for circle in circles(arrows))


def circles(arrows):
    """Yield one circle for each arrow that closes one, found depth first."""
    done, under_way = set(), []

    def visit(name):
        if name in under_way:
            yield [*under_way[under_way.index(name) :], name]
        elif name not in done:
            under_way.append(name)
            for target in sorted(arrows.get(name, ())):
                yield from visit(target)
            done.add(under_way.pop())

    for name in sorted(arrows):
        yield from visit(name)


def check_reference(root):
    """The formulas know each other, without circles, and the standard library."""
    arrows = {}
    for path in sorted((root / "reference").glob("*.py")):
        name = f"reference.{path.stem}"
        for line, target in imports_of(name, path):
            top = target.partition(".")[0]
            if top == "reference" and path.stem != "__init__":
                arrows.setdefault(name, set()).add(".".join(target.split(".")[:2]))
            elif top not in {"reference", *sys.stdlib_module_names} and not (
                top == "numpy" and path.stem in NUMPY_IN_REFERENCE
            ):
                yield f"reference/{path.name}:{line}: the reference may not know {top}"
    yield from (f"circle: {' -> '.join(circle)}" for circle in circles(arrows))


def check_pages(root):
    """Every formula module has its page and its benchmark."""
    for path in sorted((root / "reference").glob("[!_]*.py")):
        for place in (f"docs/{path.stem}.md", f"asv_bench/benchmarks/{path.stem}.py"):
            if not (root / place).is_file():
                yield f"{place}: missing, though there is {path.relative_to(root).as_posix()}"


def check_stubs(root):
    """Every kernel has its stub, every stub its kernel, and the types are announced."""
    package = root / "gzkcore" / "_compiled"
    for path in sorted(package.glob("*.pyx")):
        if not path.with_suffix(".pyi").is_file():
            yield f"gzkcore/_compiled/{path.name}: no stub beside it"
    for path in sorted(package.glob("*.pyi")):
        if not path.with_suffix(".pyx").is_file():
            yield f"gzkcore/_compiled/{path.name}: a stub of nothing"
    if not (root / "gzkcore" / "py.typed").is_file():
        yield "gzkcore/py.typed: missing, so nobody sees the types"


# ---- text


def text_files(root):
    """Yield the files that people write, as (path, text)."""
    suffixes = {".build", ".md", ".pxd", ".py", ".pyi", ".pyx", ".toml", ".yaml", ".yml"}
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = sorted(
            name
            for name in subfolders
            if name in {".ci", ".github"} or not name.startswith((".", "build", "__pycache__"))
        )
        for name in sorted(names):
            path = Path(folder, name)
            if path.suffix in suffixes or path.parent.name == ".ci":
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def check_machine_traces(root):
    """No path of somebody's machine and no host of a package registry."""
    trace = re.compile(
        r"(?<![\w.])/(?:home|Users|root|work|tmp)/\w+|(?:pypi|pythonhosted|npmjs)\.org\b"
    )
    for path, text in text_files(root):
        for number, line in enumerate(text.splitlines(), start=1):
            if match := trace.search(line):
                yield f"{path}:{number}: {match[0]} is of one machine or one registry"


def named_files(text):
    """Yield (file, is_link): what a document names in backticks or links to."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for name in re.findall(r"`([\w./-]+)`", text):
        yield name, False
    for name in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
        if not re.match(r"[a-z]+:", name):
            yield name, True


def check_named_files(root):
    """The files that documents name are there."""
    ours = re.compile(r".*\.(build|md|pxd|py|pyi|pyx|toml|yaml|yml)")
    for path, text in text_files(root):
        if not path.endswith(".md"):
            continue
        for name, is_link in named_files(text):
            first, slash, _ = name.partition("/")
            is_path = ours.fullmatch(name) or (slash and first and (root / first).is_dir())
            beside = (root / path).parent / name
            if (is_link or is_path) and not (beside.exists() or (root / name).exists()):
                yield f"{path}: names {name}, which isn't there"


# ---- versions and workflows


def check_versions(root):
    """What is written in two places is the same in both."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    ours = project["project"]["version"]
    built = re.search(
        r"version\s*:\s*'([^']+)'", (root / "meson.build").read_text(encoding="utf-8")
    )
    if not built or built[1] != ours:
        yield f"meson.build: its version is {built and built[1]}, that of pyproject.toml {ours}"

    hooks = (root / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    for name, version in (
        requirement.split("==")
        for requirement in project["dependency-groups"]["lint"]
        if "==" in requirement
    ):
        frozen = re.search(rf"repo: \S+/{name}(?:-pre-commit)?\n.*# frozen: v(\S+)", hooks)
        if frozen and frozen[1] != version:
            yield f".pre-commit-config.yaml: {name} {frozen[1]}, in pyproject.toml {version}"


def check_workflows(root):
    """Actions are pinned by commit, and the last job of the tests waits for all others."""
    for path in sorted((root / ".github" / "workflows").glob("*.yml")):
        for action in re.findall(r"uses: (.*)", path.read_text(encoding="utf-8")):
            if not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", action):
                yield f"{path.name}: {action} is not pinned by commit with its version beside it"
    tests = (root / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    jobs = set(re.findall(r"^  ([\w-]+):$", tests.partition("\njobs:\n")[2], re.MULTILINE))
    needs = re.search(r"^  all-green:\n(?:    .*\n)*?    needs: \[(.*)\]", tests, re.MULTILINE)
    if waits := jobs - {"all-green"} - set(needs[1].split(", ") if needs else ()):
        yield f"tests.yml: all-green does not wait for {', '.join(sorted(waits))}"


# ---- a right tree, and wrong ones

TABLE = "| 1 | `_compiled/` | x |\n| 2 | `sphere/`, `rows/` | x |\n| 3 | `theory` | x |\n"
RIGHT = {
    "CONTRIBUTING.md": TABLE,
    "gzkcore/__init__.py": "from .theory import f",
    "gzkcore/theory.py": "from gzkcore.sphere.series import f",
    "gzkcore/sphere/__init__.py": "",
    "gzkcore/sphere/series.py": "import numpy\nfrom .special import f",
    "gzkcore/sphere/special.py": "from gzkcore._compiled import special",
    "gzkcore/rows/sources.py": "from gzkcore.sphere.special import f",
    "gzkcore/_compiled/special.pyx": "",
    "gzkcore/_compiled/special.pyi": "",
    "gzkcore/py.typed": "",
    "reference/series.py": "import math\nfrom .special import f",
    "reference/special.py": "",
    "asv_bench/benchmarks/series.py": "",
    "asv_bench/benchmarks/special.py": "",
    "docs/series.md": "See `gzkcore/sphere/special.py`, [the page](special.md) and `alpha`.",
    "docs/special.md": "",
    "pyproject.toml": "[project]\nversion = '1.0'\n[dependency-groups]\nlint = ['ruff==2.0']",
    "meson.build": "project('gzkcore', version: '1.0')",
    ".pre-commit-config.yaml": "  - repo: x/y/ruff-pre-commit\n    rev: abc # frozen: v2.0\n",
    ".github/workflows/tests.yml": "\njobs:\n  lint:\n    x: y\n  all-green:\n    needs: [lint]\n",
}
CHECKERS = {
    check_layers: [
        ("CONTRIBUTING.md", "", "no list of layers"),
        ("gzkcore/attic.py", "", "gzkcore/attic.py: in no layer"),
        ("gzkcore/attic/x.py", "", "gzkcore/attic: in no layer"),
        ("gzkcore/sphere/special.py", "from gzkcore.theory import f", "theory is a higher layer"),
        (
            "gzkcore/sphere/special.py",
            "def f():\n    import gzkcore.theory",
            "theory is a higher layer",
        ),
        ("gzkcore/sphere/_private.py", "from gzkcore.theory import f", "theory is a higher layer"),
        (
            "gzkcore/sphere/special.py",
            "import_module('gzkcore.theory')",
            "theory is a higher layer",
        ),
        (
            "gzkcore/sphere/special.py",
            "run('from gzkcore.theory import f')",
            "theory is a higher layer",
        ),
        (
            "gzkcore/_compiled/special.pyx",
            "from gzkcore.sphere.series import f",
            "sphere is a higher layer",
        ),
        ("gzkcore/sphere/special.py", "from ..theory import f", "theory is a higher layer"),
        ("gzkcore/theory.py", "from gzkcore import f", "gzkcore.f is no module"),
        ("gzkcore/theory.py", "from gzkcore.sphere import f", "gzkcore.sphere.f is no module"),
        (
            "gzkcore/sphere/special.py",
            "from .series import f",
            "circle: gzkcore.sphere.special -> gzkcore.sphere.series -> ",
        ),
        (
            "gzkcore/sphere/special.py",
            "from gzkcore.rows.sources import f",
            "circle: gzkcore.rows.sources -> ",
        ),
    ],
    check_reference: [
        ("reference/special.py", "import scipy.special", "the reference may not know scipy"),
        ("reference/special.py", "from .series import f", "circle: reference.series -> "),
    ],
    check_pages: [
        ("docs/special.md", None, "docs/special.md: missing"),
        ("asv_bench/benchmarks/series.py", None, "asv_bench/benchmarks/series.py: missing"),
    ],
    check_stubs: [
        ("gzkcore/_compiled/special.pyi", None, "gzkcore/_compiled/special.pyx: no stub"),
        ("gzkcore/_compiled/other.pyi", "", "gzkcore/_compiled/other.pyi: a stub of nothing"),
        ("gzkcore/py.typed", None, "gzkcore/py.typed: missing"),
    ],
    check_machine_traces: [
        ("docs/special.md", "in /ho" + "me/ann/gzkcore", "docs/special.md:1: /ho" + "me/ann"),
        (".ci/run", "pip install -i py" + "pi.org", ".ci/run:1: py" + "pi.org"),
    ],
    check_named_files: [
        ("docs/special.md", "See `gzkcore/gone.py`.", "docs/special.md: names gzkcore/gone.py"),
        ("docs/special.md", "See `gzkcore/gone`.", "docs/special.md: names gzkcore/gone"),
        ("docs/special.md", "![map](map.png)", "docs/special.md: names map.png"),
    ],
    check_versions: [
        ("meson.build", "project('gzkcore', version: '1.1')", "its version is 1.1"),
        (
            ".pre-commit-config.yaml",
            "  - repo: x/y/ruff-pre-commit\n    rev: abc # frozen: v1.9\n",
            "ruff 1.9, in pyproject.toml 2.0",
        ),
    ],
    check_workflows: [
        (
            ".github/workflows/tests.yml",
            "\njobs:\n  lint:\n    x: y\n  slow:\n    x: y\n  all-green:\n    needs: [lint]\n",
            "all-green does not wait for slow",
        ),
        (".github/workflows/wheels.yml", "uses: actions/checkout@v7", "is not pinned"),
    ],
}


def write_tree(root, files):
    """Write {path: text} under a root; None leaves a file out."""
    for path, text in files.items():
        if text is not None:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
    return root


def short(checker):
    """Name a checker in a test's id."""
    return checker.__name__.removeprefix("check_")


@needs_checkout
@pytest.mark.parametrize("checker", CHECKERS, ids=short)
def test_the_layout_holds(checker):
    assert list(checker(ROOT)) == []


@pytest.mark.parametrize("checker", CHECKERS, ids=short)
def test_a_right_tree_passes(checker, tmp_path):
    assert list(checker(write_tree(tmp_path, RIGHT))) == []


@pytest.mark.parametrize(
    ("checker", "path", "text", "fault"),
    [
        pytest.param(checker, *wrong, id=f"{short(checker)}-{number}")
        for checker, faults in CHECKERS.items()
        for number, wrong in enumerate(faults)
    ],
)
def test_a_wrong_tree_is_noticed(checker, path, text, fault, tmp_path):
    found = list(checker(write_tree(tmp_path, RIGHT | {path: text})))
    assert any(fault in line for line in found), found


# ---- the installed package


def imported_by(code, folder):
    """Return the names of the modules that this code brings in, with a folder first on the path."""
    code += "; import sys; print(*sorted(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, check=True, capture_output=True, text=True
    )
    return set(done.stdout.split())


def heavy_imports(folder):
    """Return which of LIGHT `import gzkcore` brings in."""
    return {name for name in imported_by("import gzkcore", folder) if name in LIGHT}


def test_import_is_light(tmp_path):
    assert heavy_imports(tmp_path) == set()


def test_a_learner_brings_in_no_evaluation(tmp_path):
    found = imported_by("from gzkcore import RandomFeatureRidge", tmp_path)
    for folder in ("evaluate", "papers", "cli"):
        assert not {name for name in found if name.startswith(f"gzkcore.{folder}")}


def test_the_public_names():
    for name in gzkcore.__all__:
        assert getattr(gzkcore, name) is not None
    assert {*gzkcore.__all__} <= set(dir(gzkcore))
    for name in ("nothing", "special.alpha", "_nothing"):
        with pytest.raises(AttributeError, match=f"No gzkcore attribute {name}"):
            getattr(gzkcore, name)


def test_a_heavy_import_is_noticed(tmp_path):
    write_tree(tmp_path, {"gzkcore.py": "import dask", "dask.py": ""})
    assert heavy_imports(tmp_path) == {"dask"}


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_stubtest_notices_a_wrong_stub(wrong, tmp_path):
    """Of a module that it can't find stubtest says nothing: this shows that it looks at ours."""
    pytest.importorskip("mypy", reason="mypy is in the dependency group test")
    package = Path(find_spec("gzkcore").origin).parent / "_compiled"
    stubs = sorted(package.glob("*.pyi"))
    assert stubs, f"no stub is installed in {package}"

    folder = tmp_path / "stubs" / "gzkcore" / "_compiled"
    folder.mkdir(parents=True)
    for package in (folder, folder.parent):
        (package / "__init__.pyi").touch()
    text = stubs[0].read_text(encoding="utf-8") + "\ndef not_there() -> None: ...\n" * wrong
    (folder / stubs[0].name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", f"gzkcore._compiled.{stubs[0].stem}"],
        cwd=tmp_path,  # stubtest puts the working directory on the path
        env=os.environ | {"MYPYPATH": str(tmp_path / "stubs")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode != 0) == wrong, done.stdout + done.stderr
    assert ("not_there" in done.stdout) == wrong, done.stdout + done.stderr
