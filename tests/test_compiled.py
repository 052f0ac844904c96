"""Kernels: every formula of the reference is computed by compiled code, and that code is called.

The table in tests/formulas.py names the compiled functions of each formula, or says why there are none.
A copy in Python doesn't pass: what is named must be a function of an extension module, the mirror must
reach a module that calls it, and where the mirror is a function the call is seen.
"""

import ast
import functools
import importlib
import importlib.util
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from types import SimpleNamespace

import formulas
import numpy as np
import pytest
from formulas import MODULES, Formula, mirrors_of, table
from hypothesis import HealthCheck, Phase, find, settings
from hypothesis.errors import NoSuchExample
from test_twins import VALUES, both, call, fast_gaussian

import gzkcore
from gzkcore import reference

PACKAGE = Path(gzkcore.__file__).parent
ROOT = Path(__file__).parents[1]

# What Cython makes of `def`, with and without fused types.
COMPILED_TYPES = {"cython_function_or_method", "fused_cython_function"}


def check_compiled(rows, modules):
    """Yield what is no function of an extension module, and what is neither compiled nor excused.

    `modules` gives the module of a name.
    """
    for where, row in rows.items():
        if bool(row.compiled) == bool(row.in_python):
            yield f"{where}: needs compiled functions or a reason, and not both"
        for kernel in row.compiled:
            module, _, name = kernel.partition(".")
            found = modules(module)
            function = getattr(found, name, None)
            if found is None or not found.__file__.endswith(tuple(EXTENSION_SUFFIXES)):
                yield f"{where}: {module} is no extension module"
            elif type(function).__name__ not in COMPILED_TYPES:
                yield f"{where}: {kernel} is no compiled function"


def compiled_module(name):
    """Return a module of kernels, None if there is none."""
    try:
        return importlib.import_module(f"gzkcore._compiled.{name}")
    except ModuleNotFoundError:
        return None


def test_every_formula_is_compiled():
    assert list(check_compiled(table(), compiled_module)) == []


def test_reasons_are_for_formulas_that_are_there():
    listed = [where for names in formulas.NOT_COMPILED.values() for where in names]
    assert len(listed) == len({*listed})
    assert {*listed, *formulas.COMPILED} <= table().keys()
    assert not formulas.COMPILED.keys() & {*listed, *formulas.WITHOUT_MIRROR}


COMPILED = SimpleNamespace(
    __file__=f"special{EXTENSION_SUFFIXES[0]}", f=compiled_module("special").mu
)
PYTHON = SimpleNamespace(__file__="special.py", f=compiled_module("special").mu)
COPY = SimpleNamespace(__file__=COMPILED.__file__, f=lambda t: t)


@pytest.mark.parametrize(("row", "module", "fault"), [
    (Formula("f", "", None, "", ("special.f",)), COMPILED, None),
    (Formula("f", "", None, "", ("special.f",)), PYTHON, "no extension module"),
    (Formula("f", "", None, "", ("special.f",)), COPY, "no compiled function"),
    (Formula("f", "", None, "", ("special.g",)), COMPILED, "no compiled function"),
    (Formula("f", "", None, "", ("gone.f",)), None, "no extension module"),
    (Formula("f", "", None, "", (), "an identity"), COMPILED, None),
    (Formula("f", "", None), COMPILED, "needs compiled functions or a reason"),
    (Formula("f", "", None, "", ("special.f",), "why"), COMPILED, "and not both"),
])  # fmt: skip
def test_the_checker_can_fail(row, module, fault):
    found = list(check_compiled({"idea.f": row}, lambda name: module))
    assert bool(found) == (fault is not None), found
    assert fault is None or fault in found[0], found


# ---- who calls them


@functools.cache
def sources():
    """Return {module: (modules of gzkcore that it imports, kernels that it calls)}."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ["gzkcore", *path.relative_to(PACKAGE).with_suffix("").parts]
        package = parts[:-1]
        name = ".".join(package if path.stem == "__init__" else parts)
        imports, kernels, aliases = set(), set(), {}
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            above = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                imports |= {module, f"{module}.{alias.name}"}
                if module == "gzkcore._compiled":
                    aliases[alias.asname or alias.name] = alias.name
        for node in ast.walk(tree):
            of = node.value if isinstance(node, ast.Attribute) else None
            if isinstance(of, ast.Name) and of.id in aliases:
                kernels.add(f"{aliases[of.id]}.{node.attr}")
        found[name] = imports, kernels
    return found


def kernels_below(modules):
    """Return the kernels that these modules call, or those that they import."""
    seen, todo, kernels = set(), [*modules], set()
    while todo:
        module = todo.pop()
        if module in seen or module not in sources():
            continue
        seen.add(module)
        todo += sources()[module][0]
        kernels |= sources()[module][1]
    return kernels


@pytest.mark.slow
@pytest.mark.parametrize("idea", reference.__all__)
def test_kernels_are_below_their_mirrors(idea):
    mirrors = mirrors_of(idea)
    for where, row in table().items():
        if where.partition(".")[0] == idea and row.mirror is not None:
            modules = {getattr(mirrors, row.mirror).__module__}
            modules |= {f"gzkcore.{module}" for module in MODULES[idea]}
            missing = {*row.compiled} - kernels_below(modules)
            assert not missing, f"{where}: {row.mirror} never comes to {missing}"


FUNCTIONS = [where for where, row in table().items() if row.test == "test_values" and row.compiled]


def watch(kernels, monkeypatch):
    """Return the set that will have those of the kernels that are called from now on."""
    seen = set()

    def watched(kernel, function):
        def call_it(*args, **kwargs):
            seen.add(kernel)
            return function(*args, **kwargs)

        return call_it

    for kernel in kernels:
        module, _, name = kernel.partition(".")
        module = compiled_module(module)
        monkeypatch.setattr(module, name, watched(kernel, getattr(module, name)))
    return seen


@pytest.mark.parametrize("where", FUNCTIONS)
def test_mirrors_call_their_kernels(where, monkeypatch):
    """The call is seen, for one of the arguments that the twins are compared on."""
    kernels = table()[where].compiled
    seen = watch(kernels, monkeypatch)
    _, mirror = both(where)

    def all_are_called(args):
        call(mirror, args, fast_gaussian)
        return seen >= {*kernels}

    if where in OTHER_ARGUMENTS:
        OTHER_ARGUMENTS[where](mirror)

    quick = settings(
        max_examples=100, phases=[Phase.generate], database=None, deadline=None,
        suppress_health_check=[*HealthCheck],
    )  # fmt: skip
    try:
        find(VALUES[where][0], all_are_called, settings=quick)
    except NoSuchExample:
        pytest.fail(f"{where}: of {kernels} only {seen} are called")


# Formula -> a call of its mirror that comes to kernels which no arguments in VALUES come to.
OTHER_ARGUMENTS = {
    "special.alpha": lambda alpha: alpha([0, 1, 2], 3),
    "series.gegenbauer_series": lambda series: series(None, 3, 2, derivatives=[1.0, 1.0]),
}


EXACT = [name for name in reference.kernels.__all__ if name.islower()]
MADE_WITH = {
    "DotProduct": ([1.0, 1.0],), "Exponential": (0.5,), "Gaussian": (0.5,), "Laplacian": (0.5,),
    "GeneralizedZonal": (lambda t: np.stack([np.ones_like(t), t], axis=1),),
    "SphereMatern": (2.5,), "Zonal": (None, [0.5, 0.5]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_exact_kernels_call_their_kernels(name, monkeypatch):
    """The call of an exact kernel is seen."""
    row = table()[f"kernels.{name}"]
    kernel = getattr(mirrors_of("kernels"), row.mirror)(*MADE_WITH.get(row.mirror, ()))
    seen = watch(row.compiled, monkeypatch)
    kernel(np.eye(3)[np.arange(130) % 3])
    assert seen == {*row.compiled}


# ---- the page


@pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="the tests run away from a checkout")
def test_the_page_is_up_to_date():
    path = ROOT / "docs" / "write_formulas.py"
    spec = importlib.util.spec_from_file_location("write_formulas", path)
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    page = (ROOT / "docs" / "formulas.md").read_text(encoding="utf-8")
    assert page == writer.page(), "run .venv/bin/python -P docs/write_formulas.py"
