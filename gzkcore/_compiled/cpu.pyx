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

    /* The levels of the x86-64 psABI, by the features that tell them apart. */
    static int gzk_supports(int level) {
    #if defined(__x86_64__) && defined(__GNUC__)
        __builtin_cpu_init();
        int v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
        int v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                 && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
        int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
                 && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq")
                 && __builtin_cpu_supports("avx512vl");
        return level == 2 ? v2 : level == 3 ? v3 : level == 4 ? v4 : 0;
    #else
        return 0;
    #endif
    }
    """
    int gzk_supports(int level) nogil
    int GZK_MAX_THREADS() nogil
    int GZK_OPENMP
    const char* GZK_COMPILER


def supported_levels():
    """Levels of x86-64 ('v2', 'v3', 'v4') that this processor runs, plainest first."""
    return [f"v{level}" for level in (2, 3, 4) if gzk_supports(level)]


def openmp_max_threads():
    """Threads OpenMP would use now, 1 without it; follows OMP_NUM_THREADS and threadpoolctl."""
    return GZK_MAX_THREADS()


def build_info():
    """Compiler and OpenMP version (yyyymm, 0 for none) of this build."""
    return {"compiler": GZK_COMPILER.decode(), "openmp": GZK_OPENMP}
