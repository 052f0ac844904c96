"""The parts of this installation, for bug reports and for reading benchmarks."""

import platform
from importlib import import_module
from importlib.metadata import version
from typing import Any

from threadpoolctl import threadpool_info

from gzkcore._compiled import cpu, dispatch

from .nonuniform import has_finufft
from .threads import n_threads


def show_config() -> dict[str, Any]:
    """Return the build of the compiled code in use, with versions, threads and BLAS.

    Returns
    -------
    dict
        version, python, numpy, scipy and scikit-learn, their versions, and that of finufft or None;
        isa, the instruction set in use ("v2", "v3", "v4" of x86-64, or "plain"); built_isa, those
        that the kernels were compiled for; supported_isa, those of them that work here;
        compiler; openmp (its version as yyyymm, 0 for none); n_threads, what a kernel would use
        now; blas, a list of the BLAS libraries loaded with their threads.

    Examples
    --------
    >>> import gzkcore
    >>> config = gzkcore.show_config()
    >>> config["version"] == gzkcore.__version__, config["n_threads"] >= 1
    (True, True)
    """
    import_module("scipy.linalg")  # its BLAS, which the kernels call, is listed too
    blas = [
        {
            "library": library["internal_api"],
            "version": library["version"],
            "n_threads": library["num_threads"],
        }
        for library in threadpool_info()
        if library["user_api"] == "blas"
    ]
    return {
        "version": version("gzkcore"),
        "python": platform.python_version(),
        **{name: version(name) for name in ("numpy", "scipy", "scikit-learn")},
        "finufft": version("finufft") if has_finufft() else None,
        "isa": dispatch.ISA,
        "built_isa": dispatch.built_levels() or ["plain"],
        "supported_isa": dispatch.usable_levels() or ["plain"],
        **cpu.build_info(),
        "n_threads": n_threads(),
        "blas": blas,
    }
