"""The build of the kernels is chosen at import: the best one, or the one asked for, or an error."""

import os
import subprocess
import sys

import pytest

from gzkcore import show_config
from gzkcore._compiled import cpu as _cpu
from gzkcore._compiled import dispatch as _isa

several = pytest.mark.skipif(len(_isa.built_levels()) < 3, reason="here is one build, so no choice")


def test_show_config():
    config = show_config()
    assert config["isa"] in config["supported_isa"]
    assert set(config) == {
        "version", "python", "numpy", "scipy", "scikit-learn", "finufft", "isa", "built_isa",
        "supported_isa", "compiler", "openmp", "n_threads", "blas",
    }  # fmt: skip


@several
@pytest.mark.parametrize(("supported", "forced", "chosen"), [
    (["v2", "v3", "v4"], "", "v4"), (["v2", "v3"], "", "v3"), (["v2"], "", "v2"),
    (["v2", "v3", "v4"], "v2", "v2"),
])  # fmt: skip
def test_choice(monkeypatch, supported, forced, chosen):
    monkeypatch.setattr(_cpu, "supported_levels", lambda: supported)
    monkeypatch.setenv("GZKCORE_ISA", forced)
    assert _isa._choose() == chosen


@several
@pytest.mark.parametrize(("supported", "forced", "message"), [
    (["v2", "v3"], "v4", r"GZKCORE_ISA='v4' is not available .* use one of \['v2', 'v3'\]"),
    (["v2", "v3"], "avx2", r"GZKCORE_ISA='avx2' is not available"),
    ([], "", r"was compiled for x86-64 processors of level v2 and v3 and v4; this is a lesser"),
])  # fmt: skip
def test_no_choice(monkeypatch, supported, forced, message):
    monkeypatch.setattr(_cpu, "supported_levels", lambda: supported)
    monkeypatch.setenv("GZKCORE_ISA", forced)
    with pytest.raises(ImportError, match=message):
        _isa._choose()


@pytest.mark.parametrize(("built", "supported", "chosen"), [
    (["v3"], ["v2", "v3", "v4"], "v3"), (["v4"], ["v2", "v3", "v4"], "v4"), ([], ["v2"], "plain"),
])  # fmt: skip
def test_what_was_built_for_one_machine_is_used_on_better_ones(
    monkeypatch, built, supported, chosen
):
    monkeypatch.delenv("GZKCORE_ISA", raising=False)
    monkeypatch.setattr(_isa, "_has_build", lambda module, level, path: level in built)
    monkeypatch.setattr(_cpu, "supported_levels", lambda: supported)
    assert _isa._choose() == chosen


def test_what_was_built_for_a_better_machine_says_how_to_compile_for_all(monkeypatch):
    monkeypatch.setattr(_isa, "_has_build", lambda module, level, path: level == "v4")
    monkeypatch.setattr(_cpu, "supported_levels", lambda: ["v2", "v3"])
    with pytest.raises(ImportError, match=r"of level v4; this is a lesser.*-Dlevels=all"):
        _isa._choose()


@pytest.mark.parametrize(("given", "within"), [
    ({}, {"GOMP_SPINCOUNT": "1000", "KMP_BLOCKTIME": "0"}),
    ({"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"}),
    ({"GOMP_SPINCOUNT": "7"}, {"GOMP_SPINCOUNT": "7"}),
])  # fmt: skip
def test_waiting_threads_sleep_unless_told_otherwise(monkeypatch, given, within):
    monkeypatch.setattr("os.environ", {**given})
    with _isa._waiting():
        assert os.environ == within
    assert os.environ == given


@several
def test_an_unknown_one_is_an_import_error(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "import gzkcore._compiled"],
        cwd=tmp_path,
        env=os.environ | {"GZKCORE_ISA": "v9"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "ImportError: GZKCORE_ISA='v9' is not available on this processor" in done.stderr


@pytest.mark.parametrize(("said", "error"), [
    ("x.so: failed to map segment from shared object", MemoryError),
    ("x.so: cannot create shared object descriptor: Cannot allocate memory", MemoryError),
    ("x.so: undefined symbol: y", ImportError),
])  # fmt: skip
def test_a_kernel_without_room_is_a_memory_error(monkeypatch, said, error):
    """The system says so where an address space has a limit (`ulimit -v`)."""

    def create_module(*_):
        raise ImportError(said)

    monkeypatch.setattr(_isa.ExtensionFileLoader, "create_module", create_module)
    loader = _isa._finder.find_spec("gzkcore._compiled.cpu", sys.modules[_isa.PACKAGE].__path__)
    with pytest.raises(error, match=r"x\.so"):
        loader.loader.create_module(loader)
