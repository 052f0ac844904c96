"""The house holds: every idea has its rooms, nobody climbs upwards, the documents tell the truth.

Each checker takes the root of a tree and yields what is wrong there, one line each. It runs on this
checkout, where it must find nothing, and on small wrong trees, where it must find the fault.
"""

import ast
import importlib
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
    reason="the tests run away from a checkout, so there is no house to look at",
)

# Who may import a front that is not on a lower floor, and why.
IMPORT_EXCEPTIONS: dict[tuple[str, str], str] = {
    ("_compare", "ridge"): "compare measures predictions, too; imported when it is called",
    ("_maps", "kernels"): "every feature map takes a kernel, or the alias of one",
    ("_maps", "dask"): "transform of a Dask collection is lazy; imported for one only",
    ("_sources", "dask"): "a Dask collection is a source too; imported for one only",
    ("_sources", "kernels"): "gamma='scale' of an alias, from all rows; imported when needed",
    ("_maps", "model_io"): "features have save() as learners do; imported when it is called",
    ("block", "model_io"): "MeanNormalizer has save() too; imported when it is called",
    (
        "kernels",
        "series",
    ): "the coefficients of Zonal(function) are its series; imported when needed",
    ("series", "kernels"): "angular_energy is that of the Gaussian; imported when it is called",
}

# Private modules that are rooms of an idea: they know what it may know.
ROOMS_OF = {
    "_compare": "auto",
    "_demo": "cli",
    "_fitting": "cli",
    "_learners": "ridge",
    "_methods": "auto",
    "_pictures": "cli",
    "_streams": "ridge",
    "_papers_block": "papers",
    "_papers_data": "papers",
    "_papers_gegenbauer": "papers",
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
    "matplotlib",
    "numpy",
    "scipy",
    "sklearn",
    "typer",
}  # what `import gzkcore` must leave alone


# ---- the table in CONTRIBUTING.md


def house_table(root):
    """Return {idea: {"floor": int, "reference": "yes", "kernel": "-", "asv": "may"}}."""
    text = (root / "CONTRIBUTING.md").read_text(encoding="utf-8")
    row = re.compile(
        r"^\| (?P<floor>\d+) \| (?P<idea>\w+) \|.*"
        r"\| (?P<reference>yes|may|-) \| (?P<kernel>yes|may|-) \| (?P<asv>yes|may|-) \|$",
        re.MULTILINE,
    )
    rows = [match.groupdict() for match in row.finditer(text)]
    return {r.pop("idea"): r | {"floor": int(r["floor"])} for r in rows}


def rooms(idea, wings):
    """Yield each place where an idea may live, and whether it must: yes, may or -."""
    yield f"gzkcore/{idea}.py", "yes"
    yield f"tests/test_{idea}.py", "yes"
    yield f"docs/{idea}.md", "yes"
    yield f"reference/{idea}.py", wings["reference"]
    yield f"gzkcore/_{idea}.pyx", wings["kernel"]
    yield f"asv_bench/benchmarks/{idea}.py", wings["asv"]


def check_rooms(root):
    """Every idea has its rooms, and every front and formula belongs to an idea."""
    table = house_table(root)
    if not table:
        yield "CONTRIBUTING.md: no table of ideas"
    for idea, wings in table.items():
        for path, wanted in rooms(idea, wings):
            exists = (root / path).is_file()
            if wanted == "yes" and not exists:
                yield f"{path}: missing, though the table has the idea {idea}"
            if wanted == "-" and exists:
                yield f"{path}: there, though the table says that {idea} has none"
    for wing in ("gzkcore", "reference"):
        for path in sorted((root / wing).glob("[!_]*.py")):
            if path.stem not in table:
                yield f"{wing}/{path.name}: no such idea in the table"


# ---- who may know whom


def imported_modules(path):
    """Yield (line, module) of every import, inside functions too; `.special` is a sibling."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level and not node.module:
            for alias in node.names:  # from . import special, _threads
                yield node.lineno, f".{alias.name}"
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def check_imports(root):
    """Fronts and formulas import only from lower floors; private modules know no front."""
    floors = {idea: wings["floor"] for idea, wings in house_table(root).items()}
    for path in sorted([*(root / "gzkcore").glob("*.py"), *(root / "reference").glob("*.py")]):
        importer, wing = path.stem, path.parent.name
        if importer.startswith("__"):
            continue  # the front door knows every room
        floor = floors.get(ROOMS_OF.get(importer, importer), 0)
        for line, module in imported_modules(path):
            where = f"{wing}/{path.name}:{line}"
            top, _, sibling = module.partition(".")
            if top == "gzkcore":
                yield f"{where}: write {module} as a relative import"
            elif top == "numpy" and importer in NUMPY_IN_REFERENCE:
                continue
            elif top and wing == "reference" and top not in sys.stdlib_module_names:
                yield f"{where}: the reference may not know {top}"
            elif top or sibling.startswith("_") or (importer, sibling) in IMPORT_EXCEPTIONS:
                continue
            elif sibling not in floors:
                yield f"{where}: {sibling} is no idea of this house"
            elif floors[sibling] >= floor:
                yield f"{where}: {importer} may not know {sibling}, which is not on a lower floor"


def check_stubs(root):
    """Every kernel has its stub, every stub its kernel, and the types are announced."""
    package = root / "gzkcore"
    for path in sorted(package.glob("*.pyx")):
        if not path.with_suffix(".pyi").is_file():
            yield f"gzkcore/{path.name}: no stub beside it"
    for path in sorted(package.glob("*.pyi")):
        if not path.with_suffix(".pyx").is_file():
            yield f"gzkcore/{path.name}: a stub of nothing"
    if not (package / "py.typed").is_file():
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


# ---- a right house, and wrong ones

TABLE = "| 2 | series | x | - | - | - |\n| 1 | special | x | - | yes | - |\n"
RIGHT = {
    "CONTRIBUTING.md": TABLE,
    "gzkcore/__init__.py": "from .series import f",
    "gzkcore/series.py": "from .special import f",
    "gzkcore/special.py": "from ._special import f",
    "gzkcore/_special.pyx": "",
    "gzkcore/_special.pyi": "",
    "gzkcore/py.typed": "",
    "docs/series.md": "See `gzkcore/special.py`, [the page](special.md) and `alpha`.",
    "docs/special.md": "",
    "tests/test_series.py": "",
    "tests/test_special.py": "",
    "pyproject.toml": "[project]\nversion = '1.0'\n[dependency-groups]\nlint = ['ruff==2.0']",
    "meson.build": "project('gzkcore', version: '1.0')",
    ".pre-commit-config.yaml": "  - repo: x/y/ruff-pre-commit\n    rev: abc # frozen: v2.0\n",
    ".github/workflows/tests.yml": "\njobs:\n  lint:\n    x: y\n  all-green:\n    needs: [lint]\n",
}
CHECKERS = {
    check_rooms: [
        ("docs/special.md", None, "docs/special.md: missing"),
        ("gzkcore/_special.pyx", None, "gzkcore/_special.pyx: missing"),
        ("reference/special.py", "", "reference/special.py: there"),
        ("gzkcore/attic.py", "", "gzkcore/attic.py: no such idea"),
        ("CONTRIBUTING.md", "", "no table of ideas"),
    ],
    check_imports: [
        ("gzkcore/special.py", "from .series import f", "special may not know series"),
        ("gzkcore/special.py", "def f():\n    from . import series", "special may not know series"),
        ("gzkcore/series.py", "import gzkcore.special", "write gzkcore.special as a relative"),
        ("gzkcore/series.py", "from gzkcore import special", "write gzkcore as a relative"),
        ("gzkcore/series.py", "from .reference import special", "reference is no idea"),
        ("gzkcore/_threads.py", "from .special import f", "_threads may not know special"),
        ("reference/special.py", "import scipy.special", "the reference may not know scipy"),
        ("reference/special.py", "from .series import f", "special may not know series"),
    ],
    check_stubs: [
        ("gzkcore/_special.pyi", None, "gzkcore/_special.pyx: no stub"),
        ("gzkcore/_other.pyi", "", "gzkcore/_other.pyi: a stub of nothing"),
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
def test_the_house_holds(checker):
    assert list(checker(ROOT)) == []


@pytest.mark.parametrize("checker", CHECKERS, ids=short)
def test_a_right_house_passes(checker, tmp_path):
    assert list(checker(write_tree(tmp_path, RIGHT))) == []


@pytest.mark.parametrize(
    ("checker", "path", "text", "fault"),
    [
        pytest.param(checker, *wrong, id=f"{short(checker)}-{number}")
        for checker, faults in CHECKERS.items()
        for number, wrong in enumerate(faults)
    ],
)
def test_a_wrong_house_is_noticed(checker, path, text, fault, tmp_path):
    found = list(checker(write_tree(tmp_path, RIGHT | {path: text})))
    assert any(fault in line for line in found), found


# ---- the installed package


def heavy_imports(folder):
    """Return which of LIGHT `import gzkcore` brings in, with this folder first on the path."""
    code = "import gzkcore, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return LIGHT & set(done.stdout.split())


def test_import_is_light(tmp_path):
    assert heavy_imports(tmp_path) == set()


def check_front_door(text):
    """What is exported, for programs and for those who check types, is the same."""
    found = {"types": {}}
    for node in ast.parse(text).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                found["types"] |= {alias.name: line.module for alias in line.names}
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"__all__", "_HOMES"}:
            found[ast.unparse(node.targets[0])] = ast.literal_eval(node.value)
        elif isinstance(node, ast.FunctionDef) and node.name == "__getattr__":
            yield "__getattr__: for types any name is there; write it under `not TYPE_CHECKING`"
    for name in sorted(found["types"].items() ^ found["_HOMES"].items()):
        yield f"{name}: imported for types or in _HOMES, not both alike"
    for name in sorted(set(found["__all__"]) ^ {*found["_HOMES"], "__version__", "reference"}):
        yield f"{name}: in __all__ or _HOMES, not in both"


def test_the_front_door():
    text = Path(find_spec("gzkcore").origin).read_text(encoding="utf-8")
    assert list(check_front_door(text)) == []
    for wrong in (
        text.replace("import KernelFeatures, compare, plan", "import KernelFeatures, compare"),
        text.replace('    "plan": "auto",\n', ""),
        text.replace('    "plan",\n', ""),
        text + "\n\ndef __getattr__(name): ...\n",
    ):
        assert list(check_front_door(wrong)), "a wrong front door is not noticed"
    for name in gzkcore.__all__:
        assert getattr(gzkcore, name) is not None
    assert {*gzkcore.__all__, "__doc__"} <= set(dir(gzkcore))
    assert gzkcore.special.alpha is importlib.import_module("gzkcore.special").alpha
    for name in ("nothing", "special.alpha", "no.thing", "_nothing", ""):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'"):
            getattr(gzkcore, name)


def test_a_heavy_import_is_noticed(tmp_path):
    write_tree(tmp_path, {"gzkcore.py": "import dask", "dask.py": ""})
    assert heavy_imports(tmp_path) == {"dask"}


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
def test_stubtest_notices_a_wrong_stub(wrong, tmp_path):
    """Of a module that it can't find stubtest says nothing: this shows that it looks at ours."""
    pytest.importorskip("mypy", reason="mypy is in the dependency group test")
    package = Path(find_spec("gzkcore").origin).parent
    stubs = sorted(package.glob("_*.pyi"))
    assert stubs, f"no stub is installed in {package}"

    (tmp_path / "stubs" / "gzkcore").mkdir(parents=True)
    (tmp_path / "stubs" / "gzkcore" / "__init__.pyi").touch()
    text = stubs[0].read_text(encoding="utf-8") + "\ndef not_there() -> None: ...\n" * wrong
    (tmp_path / "stubs" / "gzkcore" / stubs[0].name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", f"gzkcore.{stubs[0].stem}"],
        cwd=tmp_path,  # stubtest puts the working directory on the path
        env=os.environ | {"MYPYPATH": str(tmp_path / "stubs")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert (done.returncode != 0) == wrong, done.stdout + done.stderr
    assert ("not_there" in done.stdout) == wrong, done.stdout + done.stderr
