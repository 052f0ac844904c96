"""Checks of the layout: imports go down, every idea has its files, the documents are correct.

Each checker takes the root of a tree and yields what is wrong there, one line each. It runs on this
checkout, where it must find nothing, and on small faulty trees, where it must find the fault.
"""

import ast
import functools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from trees import ROOT, faults_of, needs_checkout, short, write_tree

import gzkcore

# Modules of the package that bring all public names together: they may import from any layer.
PUBLIC_NAMES = {"__init__", "__main__"}

# Files that import modules by names worked out, or list names of higher layers, and why they may.
IMPORTS_BY_NAME = {
    "gzkcore/_compiled/dispatch.py": "a build of a kernel is chosen by the processor",
    "gzkcore/_util/model_io.py": "the list of classes that a file may hold; one is imported when it is loaded",
    "gzkcore/rows/dask.py": "Dask, without types",
}

# Which reference modules may import NumPy: where the paper itself writes a matrix.
NUMPY_IN_REFERENCE = {
    "adaptive": "leverage is a quadratic form of an inverse",
    "gegenbauer": "Eq 19 is a matrix of features",
    "gram": "Z^T Z is a product of matrices",
    "kernel_ridge": "the solution is an inverse times y",
    "learned": "the likelihood has the determinant and the inverse of a matrix",
    "losses": "a step of Newton's method is an inverse times slopes",
    "metrics": "Eq 1 orders matrices, Eq 21 has their traces",
    "near_rows": "the weights are an inverse times kernel values",
    "nystrom": "Algorithm 3 has inverses, and eigenvalues",
    "pca": "a covariance has eigenvectors",
    "centers": "the normal equations are an inverse",
    "cca": "covariances have roots and singular vectors",
    "preconditioners": "preconditioners are inverses",
    "ridge": "the normal equations are an inverse",
    "theory": "Eq 17 has an inverse, Lemma 18 norms of matrices",
}

# Files of more than FILE_LINES lines, and functions of more than FUNCTION_LINES, and why they are.
FILE_LINES, FUNCTION_LINES = 1000, 60
TOO_LONG = {
    "gzkcore/cli/commands_fit.py:fit": "the options of a command, with their help",
    "gzkcore/cli/commands_predict.py:predict": "the options of a command, with their help",
    "gzkcore/cli/commands_plan.py:compare": "the options of a command, with their help",
    "gzkcore/cli/commands_plan.py:plan": "the options of a command, with their help",
    "gzkcore/_compiled/gegenbauer.pyx:gegenbauer_features": "scratch buffers, taken and freed around one loop",
    "gzkcore/_compiled/harmonics.pyx:harmonic_features": "scratch buffers, taken and freed around one loop",
    "gzkcore/_compiled/products.pyx:kernel_product": "scratch buffers, taken and freed around one loop",
    "gzkcore/_compiled/neighbours.pyx:sparse_factor": "scratch buffers, taken and freed around one loop",
}

LIGHT = {
    "dask", "gzkcore._compiled", "matplotlib", "numpy", "scipy", "sklearn", "typer",
}  # what `import gzkcore` must leave alone  # fmt: skip


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
    """Return [(dotted name, path)] of all modules of the package; headers go by their modules' names."""
    paths = (root / "gzkcore").rglob("*")
    return [
        (".".join(path.relative_to(root).with_suffix("").parts), path)
        for path in sorted(paths)
        if path.suffix in {".py", ".pyx", ".pxd"}
    ]


def imports_of(name, path):
    """Yield (line, dotted name of a module, or of a name in one) of all imports, also in functions."""
    package = name.removesuffix(".__init__") if path.stem == "__init__" else name.rpartition(".")[0]
    read = _imports_of_python if path.suffix == ".py" else _imports_of_cython
    for line, dots, module, names in read(path.read_text(encoding="utf-8")):
        above = package.split(".")[: package.count(".") + 2 - len(dots)] if dots else []
        base = ".".join([*above, *([module] if module else [])])
        yield from ((line, f"{base}.{each}" if each else base) for each in names or [""])


def _imports_of_python(text):
    """Yield (line, dots, module, names) of the imports of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, "", alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [alias.name for alias in node.names]
            yield node.lineno, "." * node.level, node.module, names


def _imports_of_cython(text):
    """Yield (line, dots, module, names) of the imports of a Cython module, one to a line."""
    for line, code in enumerate(text.splitlines(), start=1):
        if found := re.match(r"\s*from (\.*)([\w.]*) c?import \(?(.*)", code):
            names = re.findall(r"(\w+)(?: as \w+)?", found[3].partition("#")[0])
            yield line, found[1], found[2], names
        elif found := re.match(r"\s*c?import ([\w., ]+)", code):
            for module in found[1].split(","):
                yield line, "", module.split()[0], []


def imports_by_name(path, where):
    """Yield (line, dotted name) of modules of gzkcore in texts, docstrings apart, which code may import.

    A name that is worked out could be any module's: it stands as gzkcore.*, which there is not.
    """
    if path.suffix != ".py" or where in IMPORTS_BY_NAME:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and isinstance(node.body[0] if node.body else None, ast.Expr)
    }
    named = re.compile(
        r"from (gzkcore\.[\w.]+) import|(?:^|[;\n])\s*import (gzkcore\.[\w.]+)"
        r"|^(gzkcore\.[\w.]+)(?::\w+)?$"
    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings:
                yield from ((node.lineno, "".join(name)) for name in named.findall(node.value))
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            is_text = isinstance(node.args[0], ast.Constant)
            if called in {"import_module", "__import__"} and not is_text:
                yield node.lineno, "gzkcore.*"


@functools.cache
def names_defined(text):
    """Return the names that a module itself defines, imported ones not among them."""
    found, todo = set(), list(ast.parse(text).body)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif not isinstance(node, (ast.Import, ast.ImportFrom)):
            todo += ast.iter_child_nodes(node)
    return found


def defines(path, name):
    """Tell whether a module defines a name; of compiled ones that is for the compiler to say."""
    return path.suffix != ".py" or name in names_defined(path.read_text(encoding="utf-8"))


def check_table(root):
    """Every folder and module of the package has its layer, and the list names nothing else."""
    layers = layers_of(root)
    there = {
        entry.stem
        for entry in (root / "gzkcore").iterdir()
        if not entry.name.startswith("__") and entry.suffix not in (".typed", ".build")
    }
    yield from (f"gzkcore/{name}: in no layer" for name in sorted(there - layers.keys()))
    yield from (f"CONTRIBUTING.md: no gzkcore/{name}" for name in sorted(layers.keys() - there))


def resolved(target, modules):
    """Return (module, the name in it or "") of what an import names."""
    if target in modules:
        return target, ""
    module, _, name = target.rpartition(".")
    return module, name


def check_layers(root):
    """Imports go to their own layer or down, name the module that defines, and make no circle."""
    layers = layers_of(root)
    files = [each for each in modules_in(root) if each[0].split(".")[1] not in PUBLIC_NAMES]
    modules = dict(files)
    arrows, sideways = {}, {}
    for name, path in files:
        where, own = path.relative_to(root).as_posix(), name.split(".")[1]
        for line, target in [*imports_of(name, path), *imports_by_name(path, where)]:
            if target.partition(".")[0] != "gzkcore" or target.startswith("gzkcore.reference"):
                continue
            module, attribute = resolved(target, modules)
            folder = f"{target}.".split(".")[1]
            if layers.get(folder, 0) > layers.get(own, 0):
                yield f"{where}:{line}: {folder} is a higher layer than {own}"
            elif module not in modules:
                yield f"{where}:{line}: {target} is no module; import from the one that defines it"
            elif attribute and not defines(modules[module], attribute):
                yield f"{where}:{line}: {module} does not define {attribute}"
            elif module != name:
                arrows.setdefault(name, set()).add(module)
                if folder != own and layers.get(folder) == layers.get(own):
                    sideways.setdefault(own, set()).add(folder)
    for circle in [*circles(arrows), *circles(sideways)]:
        yield f"circle: {' -> '.join(circle)}"


def check_programs(root):
    """What the benchmarks and examples import from the package is there."""
    modules = dict(modules_in(root))
    programs = [path for name in ("asv_bench", "docs") for path in (root / name).rglob("*.py")]
    for path in sorted(programs):
        for line, target in imports_of(path.stem, path):
            module, name = resolved(target, modules)
            where = f"{path.relative_to(root).as_posix()}:{line}"
            if not target.startswith("gzkcore.") or module in {"gzkcore", "gzkcore.reference"}:
                continue
            if f"{module}.__init__" in modules:  # its public names are in a stub
                continue
            if module not in modules:
                yield f"{where}: there is no {module}"
            elif not re.search(rf"\b{name}\b", modules[module].read_text(encoding="utf-8")):
                yield f"{where}: {module} has no {name}"


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


# ---- sizes


def function_sizes(path):
    """Yield (name, lines without the docstring) of all functions of a module."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[0]
                is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                docstring = first.end_lineno - first.lineno + 1 if is_docstring else 0
                yield node.name, node.end_lineno - node.lineno + 1 - docstring
        return
    # Cython's functions: up to the next line that is not indented further, a closing bracket apart.
    pattern = r"^( *)(?:cp?def|def) [^=\n]*?(\w+)\(.*\n(?:(?:\1 .*| *|\1\).*)\n)*"
    for found in re.finditer(pattern, text, re.MULTILINE):
        code = re.sub(r'"""(?:.|\n)*?"""', "", found[0], count=1)
        yield found[2], code.rstrip().count("\n") + 1


def check_sizes(root):
    """Files and functions are short, or stand in TOO_LONG with the reason."""
    long = set()
    for _, path in modules_in(root):
        where = path.relative_to(root).as_posix()
        if path.read_text(encoding="utf-8").count("\n") > FILE_LINES:
            long.add(where)
        long |= {f"{where}:{name}" for name, size in function_sizes(path) if size > FUNCTION_LINES}
    listed = TOO_LONG if root == ROOT else {}
    yield from (f"{where}: too long; divide it" for where in sorted(long - listed.keys()))
    yield from (f"TOO_LONG: {where} is short or gone" for where in sorted(listed.keys() - long))


def check_returns(root):
    """No test passes by returning before it has looked at anything."""
    for path in sorted((root / "tests").rglob("test_*.py")):
        for test in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(test, ast.FunctionDef) and test.name.startswith("test")):
                continue
            todo = list(test.body)
            while todo:
                node = todo.pop()
                if isinstance(node, ast.Return):
                    where = f"{path.relative_to(root).as_posix()}:{node.lineno}"
                    yield f"{where}: {test.name} returns; skip it, or leave the case out"
                elif not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    todo += ast.iter_child_nodes(node)


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


def check_named_files(root):
    """The files that documents name in backticks are there; links are for test_docs."""
    ours = re.compile(r".*\.(build|md|pxd|py|pyi|pyx|toml|yaml|yml)")
    for path, text in text_files(root):
        if not path.endswith(".md"):
            continue
        prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
        for name in re.findall(r"`([\w./-]+)`", prose):
            first, slash, _ = name.partition("/")
            is_path = ours.fullmatch(name) or (slash and first and (root / first).is_dir())
            beside = (root / path).parent / name
            if is_path and not (beside.exists() or (root / name).exists()):
                yield f"{path}: names {name}, which isn't there"


FILES = 9  # of a folder; of more, its docstring says what each is for


def check_contents(root):
    """The docstring of a folder with many modules names each of them, and nothing that is gone."""
    for folder in sorted(path for path in (root / "gzkcore").iterdir() if path.is_dir()):
        modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
        modules |= {path.parent.name for path in folder.glob("*/__init__.py")}
        if len(modules) <= FILES or folder.name == "_compiled":
            continue
        text = (folder / "__init__.py").read_text(encoding="utf-8")
        listed = re.findall(r"^- (.*)$", ast.get_docstring(ast.parse(text)) or "", re.MULTILINE)
        named = {name for line in listed for name in re.findall(r"`([a-z_]+)`", line)}
        where = f"gzkcore/{folder.name}/__init__.py"
        yield from (f"{where}: does not name {name}" for name in sorted(modules - named))
        yield from (f"{where}: names {name}, which is gone" for name in sorted(named - modules))


# ---- versions and workflows


def check_versions(root):
    """What is written in two places is the same in both."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    source = (root / "gzkcore" / "__init__.py").read_text(encoding="utf-8")
    ours = re.search(r'^__version__ = "([^"]+)"', source, re.MULTILINE)[1]
    for name, pattern in (
        ("CITATION.cff", r"^version: (.+)$"),
        ("packaging/conda/recipe.yaml", r"^  version: (.+)$"),
        ("README.md", r"^gzkcore is version ([\w.]+):"),
    ):
        path = root / name
        found = re.search(
            pattern, path.read_text(encoding="utf-8") if path.exists() else "", re.MULTILINE
        )
        if found and found[1] != ours:
            yield f"{name}: its version is {found[1]}, that of the package {ours}"

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
            if not re.fullmatch(r"\S+@[0-9a-f]{40} # v?[\d.]+", action):
                yield f"{path.name}: {action} is not pinned by commit with its version beside it"
    tests = (root / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    jobs = set(re.findall(r"^  ([\w-]+):$", tests.partition("\njobs:\n")[2], re.MULTILINE))
    needs = re.search(r"^  all-green:\n(?:    .*\n)*?    needs: \[(.*)\]", tests, re.MULTILINE)
    if waits := jobs - {"all-green"} - set(needs[1].split(", ") if needs else ()):
        yield f"tests.yml: all-green does not wait for {', '.join(sorted(waits))}"


# ---- a right tree, and wrong ones

TABLE = "| 1 | `_compiled/` | x |\n| 2 | `sphere/`, `rows/` | x |\n| 3 | `theory` | x |\n"
CONTENTS = '"""Rows.\n\n- `sources`, `files`, `short`, `' + "`, `".join("abcdefghij") + '`\n"""'
RIGHT = {
    "CONTRIBUTING.md": TABLE,
    "gzkcore/__init__.py": '__version__ = "1.0"\nfrom .theory import f',
    "gzkcore/theory.py": "from gzkcore.sphere.series import g",
    "gzkcore/sphere/__init__.py": "",
    "gzkcore/sphere/series.py": "import numpy\nfrom .special import f\ng: int = f",
    "gzkcore/sphere/special.py": "from gzkcore._compiled import special\ndef f(): pass",
    "gzkcore/rows/sources.py": "from gzkcore.sphere.special import f",
    "gzkcore/rows/files.py": "f = 1",
    "gzkcore/_compiled/special.pyx": "from .leaf cimport (\n    f\n)\nfrom libc.math cimport exp",
    "gzkcore/_compiled/leaf.pxd": "cimport numpy as np",
    "gzkcore/rows/short.py": 'def f():\n    """1\n2"""\n' + "    x = 1\n" * 59,
    "tests/test_x.py": "def test_x():\n    def f():\n        return 1\n",
    "gzkcore/rows/__init__.py": CONTENTS,
    **{f"gzkcore/rows/{name}.py": "" for name in "abcdefghij"},
    "reference/series.py": "import math\nfrom .special import f",
    "reference/special.py": "",
    "asv_bench/benchmarks/series.py": "",
    "asv_bench/benchmarks/special.py": "",
    "docs/series.md": "See `gzkcore/sphere/special.py`, [the page](special.md) and `alpha`.",
    "docs/special.md": "",
    "pyproject.toml": "[dependency-groups]\nlint = ['ruff==2.0']",
    ".pre-commit-config.yaml": "  - repo: x/y/ruff-pre-commit\n    rev: abc # frozen: v2.0\n",
    ".github/workflows/tests.yml": "\njobs:\n  lint:\n    x: y\n  all-green:\n    needs: [lint]\n",
}
CHECKERS = {
    check_table: [
        ("CONTRIBUTING.md", "", "gzkcore/rows: in no layer"),
        ("CONTRIBUTING.md", TABLE + "| 4 | `gone/` | x |\n", "no gzkcore/gone"),
        ("gzkcore/attic.py", "", "gzkcore/attic: in no layer"),
        ("gzkcore/attic/x.py", "", "gzkcore/attic: in no layer"),
    ],
    check_layers: [
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
        ("gzkcore/sphere/special.py", "from .. import theory", "theory is a higher layer"),
        ("gzkcore/sphere/__init__.py", "from ..theory import f", "theory is a higher layer"),
        ("gzkcore/sphere/special.py", "x = 'gzkcore.theory:f'", "theory is a higher layer"),
        ("gzkcore/sphere/special.py", "run('import gzkcore.theory')", "theory is a higher layer"),
        ("gzkcore/sphere/special.py", "import_module(name)", "gzkcore.* is no module"),
        ("gzkcore/_compiled/special.pyx", "from ..rows cimport f", "rows is a higher layer"),
        ("gzkcore/_compiled/leaf.pxd", "cimport gzkcore.rows.f", "rows is a higher layer"),
        ("gzkcore/_compiled/special.pyx", "from .gone cimport f", "gzkcore._compiled.gone.f is no"),
        ("gzkcore/theory.py", "from gzkcore import f", "gzkcore.f is no module"),
        ("gzkcore/theory.py", "from gzkcore.sphere import f", "gzkcore.sphere.f is no module"),
        ("gzkcore/theory.py", "from gzkcore.sphere.series import numpy", "does not define numpy"),
        (
            "gzkcore/sphere/special.py",
            "from .series import g\ndef f(): pass",
            "circle: gzkcore.sphere.special -> gzkcore.sphere.series -> ",
        ),
        (
            "gzkcore/sphere/special.py",
            "import gzkcore.rows.sources\ndef f(): pass",
            "circle: gzkcore.rows.sources -> ",
        ),
        ("gzkcore/sphere/points.py", "from gzkcore.rows.files import f", "circle: rows -> sphere"),
    ],
    check_programs: [
        ("asv_bench/x.py", "from gzkcore.gone import f", "x.py:1: there is no gzkcore.gone"),
        ("asv_bench/x.py", "from gzkcore.theory import gone", "gzkcore.theory has no gone"),
        ("docs/x.py", "import gzkcore.gone.far", "x.py:1: there is no gzkcore.gone"),
    ],
    check_reference: [
        ("reference/special.py", "import scipy.special", "the reference may not know scipy"),
        ("reference/special.py", "from .series import f", "circle: reference.series -> "),
    ],
    check_pages: [
        ("docs/special.md", None, "docs/special.md: missing"),
        ("asv_bench/benchmarks/series.py", None, "asv_bench/benchmarks/series.py: missing"),
    ],
    check_sizes: [
        ("gzkcore/sphere/long.py", "\n" * 1001, "gzkcore/sphere/long.py: too long"),
        (
            "gzkcore/sphere/long.py",
            'def f():\n    """1\n2"""\n' + "    x = 1\n" * 60,
            "gzkcore/sphere/long.py:f: too long",
        ),
        (
            "gzkcore/_compiled/long.pyx",
            "cdef inline int f(\n    int x,\n) noexcept nogil:\n" + "    x = 1\n\n" * 30,
            "gzkcore/_compiled/long.pyx:f: too long",
        ),
    ],
    check_returns: [("tests/test_x.py", "def test_x():\n    if x:\n        return\n", "test_x.py:3: test_x")],
    check_machine_traces: [
        ("docs/special.md", "in /ho" + "me/ann/gzkcore", "docs/special.md:1: /ho" + "me/ann"),
        (".ci/run", "pip install -i py" + "pi.org", ".ci/run:1: py" + "pi.org"),
    ],
    check_named_files: [
        ("docs/special.md", "See `gzkcore/gone.py`.", "docs/special.md: names gzkcore/gone.py"),
        ("docs/special.md", "See `gzkcore/gone`.", "docs/special.md: names gzkcore/gone"),
    ],
    check_contents: [
        ("gzkcore/rows/k.py", "", "gzkcore/rows/__init__.py: does not name k"),
        (
            "gzkcore/rows/__init__.py",
            CONTENTS.replace("`a`", "`a`, `gone`"),
            "gzkcore/rows/__init__.py: names gone, which is gone",
        ),
    ],
    check_versions: [
        ("README.md", "gzkcore is version 1.1: x\n", "README.md: its version is 1.1"),
        ("CITATION.cff", "version: 1.1\n", "CITATION.cff: its version is 1.1"),
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
}  # fmt: skip


@needs_checkout
@pytest.mark.parametrize("checker", CHECKERS, ids=short)
def test_the_layout_holds(checker):
    assert list(checker(ROOT)) == []


@pytest.mark.parametrize("checker", CHECKERS, ids=short)
def test_a_right_tree_passes(checker, tmp_path):
    assert list(checker(write_tree(tmp_path, RIGHT))) == []


@pytest.mark.parametrize(("checker", "path", "text", "fault"), faults_of(CHECKERS))
def test_a_wrong_tree_is_noticed(checker, path, text, fault, tmp_path):
    found = list(checker(write_tree(tmp_path, RIGHT | {path: text})))
    assert any(fault in line for line in found), found


@needs_checkout
def test_what_is_listed_as_long_must_be(monkeypatch):
    monkeypatch.setitem(TOO_LONG, "gzkcore/metrics.py:spectral_error", "it was")
    assert list(check_sizes(ROOT)) == [
        "TOO_LONG: gzkcore/metrics.py:spectral_error is short or gone"
    ]


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


@needs_checkout
def test_what_builds_wheels_is_pinned_with_hashes():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    requires = tomllib.loads(text)["build-system"]["requires"]
    listed = (ROOT / "packaging" / "build.in").read_text(encoding="utf-8").splitlines()
    assert set(requires) <= set(listed)
    pinned = (ROOT / "packaging" / "build.txt").read_text(encoding="utf-8")
    names = [re.match(r"[\w-]+", line)[0] for line in listed if not line.startswith("#")]
    for name in names:
        assert re.search(rf"^{name}==.*\\\n    --hash=sha256:", pinned, re.MULTILINE), name


def test_types_are_announced():
    assert (Path(gzkcore.__file__).parent / "py.typed").is_file()


def test_import_is_light(tmp_path):
    assert heavy_imports(tmp_path) == set()


@needs_checkout
def test_sources_say_that_they_are_not_compiled(tmp_path):
    folder = tmp_path / "gzkcore" / "_compiled"
    folder.mkdir(parents=True)
    for name in (
        "__init__.py",
        "_compiled/__init__.py",
        "_compiled/dispatch.py",
        "_compiled/meson.build",
    ):
        (tmp_path / "gzkcore" / name).write_bytes((ROOT / "gzkcore" / name).read_bytes())
    code = [sys.executable, "-S", "-c", "import gzkcore"]  # without any library
    done = subprocess.run(code, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("Traceback") == 1
    assert done.stderr.splitlines()[-1].startswith("ImportError: ")
    assert "which are not compiled" in done.stderr
    assert done.stderr.endswith("To install it: pip install .\n")


@pytest.mark.slow
def test_a_learner_brings_in_no_evaluation(tmp_path):
    found = imported_by("from gzkcore import RandomFeatureRidge", tmp_path)
    for folder in ("tabular", "evaluate", "cli"):
        assert not {name for name in found if name.startswith(f"gzkcore.{folder}")}


def test_the_public_names():
    for name in gzkcore.__all__:
        assert getattr(gzkcore, name) is not None
    assert {*gzkcore.__all__} <= set(dir(gzkcore))
    for name in ("nothing", "special.alpha", "_nothing"):
        with pytest.raises(AttributeError, match=f"'gzkcore' has no attribute '{name}'"):
            getattr(gzkcore, name)


def test_a_heavy_import_is_noticed(tmp_path):
    write_tree(tmp_path, {"gzkcore.py": "import dask", "dask.py": ""})
    assert heavy_imports(tmp_path) == {"dask"}
