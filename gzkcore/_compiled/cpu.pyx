"""What this processor and this build can do: instruction sets, OpenMP, compiler."""

cdef extern from *:
    """
    #if defined(_OPENMP)
    #include <omp.h>
    #define GZK_MAX_THREADS() omp_get_max_threads()
    #define GZK_OPENMP _OPENMP
    #else
    #define GZK_MAX_THREADS() 1
    #define GZK_OPENMP 0
    #endif

    #if defined(__clang__)
    #define GZK_COMPILER __VERSION__
    #elif defined(__GNUC__)
    #define GZK_COMPILER "gcc " __VERSION__
    #else
    #define GZK_COMPILER "unknown"
    #endif
    """
    int GZK_MAX_THREADS() nogil
    int GZK_OPENMP
    const char* GZK_COMPILER

cdef extern from "levels.h":
    int gzk_supports(int level) nogil


def supported_levels():
    """Levels of x86-64 ('v2', 'v3', 'v4') that this processor runs, plainest first."""
    return [f"v{level}" for level in (2, 3, 4) if gzk_supports(level)]


def openmp_max_threads():
    """Threads OpenMP would use now, 1 without it; follows OMP_NUM_THREADS and threadpoolctl."""
    return GZK_MAX_THREADS()


def build_info():
    """Compiler and OpenMP version (yyyymm, 0 for none) of this build."""
    return {"compiler": GZK_COMPILER.decode(), "openmp": GZK_OPENMP}
