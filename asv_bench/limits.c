/* What this machine can do at most: memory bandwidth and fused multiply-adds.
 *
 * benchmarks/common.py compiles this file with the machine's C compiler, for the instruction set that
 * gzkcore uses, and calls it through ctypes, in the same run as the kernels it judges.
 *
 * Bandwidth   Every thread has one contiguous part of the buffer, as the kernels give their threads
 *             contiguous rows. Writes: plain stores, and stores past the cache. Reads: four streams
 *             a thread, since one does not keep the memory busy.
 * Arithmetic  CHAINS independent accumulators a thread, all in registers: a fused multiply-add takes
 *             about four cycles and two can start in each. Without FMA (x86-64-v2) the compiler makes
 *             a product and a sum of it, and the figure is the peak of those.
 * Every function works on whole vectors; a buffer's remainder of less than 4 vectors a thread is
 * left out and not counted: each returns how many bytes or operations it really did.
 */
#include <stddef.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(_OPENMP)
#include <omp.h>
#else
#define omp_get_thread_num() 0
#define omp_get_num_threads() 1
#endif

#define CHAINS 12 /* with the two constants they fit into 16 registers */

typedef float v32 __attribute__((vector_size(BYTES), may_alias));
typedef double v64 __attribute__((vector_size(BYTES), may_alias));

static inline void store_past_cache(v32 *p, v32 v)
{
#if BYTES == 64
    _mm512_stream_ps((float *)p, (__m512)v);
#elif BYTES == 32
    _mm256_stream_ps((float *)p, (__m256)v);
#elif defined(__SSE2__)
    _mm_stream_ps((float *)p, (__m128)v);
#else
    *p = v; /* see has_nontemporal */
#endif
}

int has_nontemporal(void)
{
#if defined(__SSE2__)
    return 1;
#else
    return 0;
#endif
}

int vector_bytes(void) { return BYTES; }

int has_openmp(void)
{
#if defined(_OPENMP)
    return 1;
#else
    return 0;
#endif
}

/* Vectors of one thread, in groups of four. */
static inline ptrdiff_t share(size_t bytes, int threads)
{
    return (ptrdiff_t)(bytes / BYTES / (size_t)threads / 4 * 4);
}

/* The buffer starts on a boundary of 64 bytes. */
size_t write_plain(void *buffer, size_t bytes, int threads)
{
    size_t done = 0;
#pragma omp parallel num_threads(threads) reduction(+ : done)
    {
        ptrdiff_t n = share(bytes, omp_get_num_threads());
        v32 *p = (v32 *)buffer + n * omp_get_thread_num();
        v32 value = (v32){0} + 1.25f;
        for (ptrdiff_t i = 0; i < n; i++) p[i] = value;
        done = (size_t)n * BYTES;
    }
    return done;
}

size_t write_nontemporal(void *buffer, size_t bytes, int threads)
{
    size_t done = 0;
#pragma omp parallel num_threads(threads) reduction(+ : done)
    {
        ptrdiff_t n = share(bytes, omp_get_num_threads());
        v32 *p = (v32 *)buffer + n * omp_get_thread_num();
        v32 value = (v32){0} + 1.25f;
        for (ptrdiff_t i = 0; i < n; i++) store_past_cache(p + i, value);
#if defined(__SSE2__)
        _mm_sfence();
#endif
        done = (size_t)n * BYTES;
    }
    return done;
}

size_t read_streams(const void *buffer, size_t bytes, int threads, double *sink)
{
    size_t done = 0;
    double total = 0;
#pragma omp parallel num_threads(threads) reduction(+ : done, total)
    {
        ptrdiff_t n = share(bytes, omp_get_num_threads()), quarter = n / 4;
        const v32 *p = (const v32 *)buffer + n * omp_get_thread_num();
        v32 a = {0}, b = {0}, c = {0}, d = {0};
        for (ptrdiff_t i = 0; i < quarter; i++) {
            a += p[i];
            b += p[i + quarter];
            c += p[i + 2 * quarter];
            d += p[i + 3 * quarter];
        }
        a += b + c + d;
        total = a[0];
        done = (size_t)n * BYTES;
    }
    *sink = total;
    return done;
}

#if defined(__x86_64__)
#define REGISTER "+v"
#elif defined(__aarch64__)
#define REGISTER "+w"
#else
#define REGISTER "+m"
#endif

/* Twelve names and not an array, which would live in memory: 12 = CHAINS. */
#define EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#define STEP(c) acc##c = acc##c * x + y;
#define SUM(c) total += (double)acc##c[0];

/* acc <- acc x + y, `rounds` times in each accumulator: two operations a lane. The empty asm makes
 * the compiler carry out every round. */
#define FMA(NAME, REAL, VEC)                                                                      \
    double NAME(long rounds, int threads, double *sink)                                           \
    {                                                                                             \
        double operations = 0, total = 0;                                                         \
        _Pragma("omp parallel num_threads(threads) reduction(+ : operations, total)")             \
        {                                                                                         \
            VEC x = (VEC){0} + (REAL)0.999, y = (VEC){0} + (REAL)0.001, one = (VEC){0} + (REAL)1; \
            VEC acc0 = one, acc1 = one, acc2 = one, acc3 = one, acc4 = one, acc5 = one;           \
            VEC acc6 = one, acc7 = one, acc8 = one, acc9 = one, acc10 = one, acc11 = one;         \
            for (long i = 0; i < rounds; i++) {                                                   \
                __asm__("" : REGISTER(acc0), REGISTER(acc1), REGISTER(acc2), REGISTER(acc3),      \
                             REGISTER(acc4), REGISTER(acc5), REGISTER(acc6), REGISTER(acc7),      \
                             REGISTER(acc8), REGISTER(acc9), REGISTER(acc10), REGISTER(acc11));   \
                EACH(STEP)                                                                        \
            }                                                                                     \
            EACH(SUM)                                                                             \
            operations = 2.0 * CHAINS * (BYTES / sizeof(REAL)) * (double)rounds;                  \
        }                                                                                         \
        *sink = total;                                                                            \
        return operations;                                                                        \
    }

FMA(fma_f32, float, v32)
FMA(fma_f64, double, v64)
