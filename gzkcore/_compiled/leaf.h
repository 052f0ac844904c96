/* Leaf operations of the kernels: what a compiler does not vectorise well by itself.
 *
 * One text serves float and double and every instruction set: `element_types.h` includes `leaf_ops.h`
 * twice, and a vector is as wide as the target's registers (64 bytes with AVX-512, 32 with AVX2, else
 * 16). The vectors are GCC's and Clang's portable ones, no intrinsics; a compiler without them gets
 * vectors of one element, which is plain C.
 *
 * Measured on AVX-512 (float, degree 15, in cache, one thread): 84 % of the FMA peak against 57 % for
 * the same loops in Cython left to the compiler. `asv_bench/benchmarks/gegenbauer.py` prints it.
 */
#ifndef GZK_LEAF_H
#define GZK_LEAF_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define GZK_BYTES 64
#define GZK_CHAINS 8 /* vectors in flight: 32 registers */
#elif defined(__AVX2__)
#define GZK_BYTES 32
#define GZK_CHAINS 4 /* 16 registers */
#else
#define GZK_BYTES 16
#define GZK_CHAINS 4
#endif

#if defined(__clang__)
#define GZK_UNROLL _Pragma("unroll")
#elif defined(__GNUC__)
#define GZK_UNROLL _Pragma("GCC unroll 16")
#else
#define GZK_UNROLL
#endif

#if defined(__GNUC__)
#define GZK_INLINE static inline __attribute__((always_inline))
typedef float gzk_vec_f32 __attribute__((vector_size(GZK_BYTES)));
typedef double gzk_vec_f64 __attribute__((vector_size(GZK_BYTES)));
/* The same in memory, aligned only to the element, so that loads and stores may be anywhere. Never an
 * argument: for one of such a type gcc 14 on arm64 ends in an internal error. */
typedef gzk_vec_f32 gzk_mem_f32 __attribute__((aligned(4), may_alias));
typedef gzk_vec_f64 gzk_mem_f64 __attribute__((aligned(8), may_alias));
#define GZK_LANES_F32 (GZK_BYTES / 4)
#define GZK_LANES_F64 (GZK_BYTES / 8)
#else
#define GZK_INLINE static inline
typedef float gzk_vec_f32;
typedef double gzk_vec_f64;
typedef float gzk_mem_f32;
typedef double gzk_mem_f64;
#define GZK_LANES_F32 1
#define GZK_LANES_F64 1
#endif

/* Interleaving the first and the second halves of two vectors: the steps of a transposition. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define GZK_CAN_SHUFFLE 1
#define GZK_LO16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define GZK_HI16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define GZK_LO8 0, 8, 1, 9, 2, 10, 3, 11
#define GZK_HI8 4, 12, 5, 13, 6, 14, 7, 15
#define GZK_LO4 0, 4, 1, 5
#define GZK_HI4 2, 6, 3, 7
#define GZK_LO2 0, 2
#define GZK_HI2 1, 3
#if GZK_BYTES == 64
#define GZK_LO_F32 GZK_LO16
#define GZK_HI_F32 GZK_HI16
#define GZK_LO_F64 GZK_LO8
#define GZK_HI_F64 GZK_HI8
#elif GZK_BYTES == 32
#define GZK_LO_F32 GZK_LO8
#define GZK_HI_F32 GZK_HI8
#define GZK_LO_F64 GZK_LO4
#define GZK_HI_F64 GZK_HI4
#else
#define GZK_LO_F32 GZK_LO4
#define GZK_HI_F32 GZK_HI4
#define GZK_LO_F64 GZK_LO2
#define GZK_HI_F64 GZK_HI2
#endif
#endif
#endif
#ifndef GZK_CAN_SHUFFLE
#define GZK_CAN_SHUFFLE 0
#endif

/* Streaming stores leave the cache alone and save reading a line before it is overwritten. */
#if defined(__AVX512F__) || defined(__AVX2__) || defined(__SSE2__)
#include <immintrin.h>
#define GZK_CAN_STREAM 1
#if defined(__AVX512F__)
#define GZK_STREAM(dst, src) _mm512_stream_si512((void *)(dst), _mm512_loadu_si512(src))
#elif defined(__AVX2__)
#define GZK_STREAM(dst, src) \
    _mm256_stream_si256((__m256i *)(dst), _mm256_loadu_si256((const __m256i *)(src)))
#else
#define GZK_STREAM(dst, src) \
    _mm_stream_si128((__m128i *)(dst), _mm_loadu_si128((const __m128i *)(src)))
#endif
#define GZK_FENCE() _mm_sfence()
#else
#define GZK_CAN_STREAM 0
#define GZK_FENCE() ((void)0)
#endif

/* Scratch memory on cache-line boundaries, so that no vector straddles two lines; NULL on failure. */
#if defined(_WIN32) /* whose C library has no aligned_alloc */
#include <malloc.h>
static void *gzk_alloc(size_t bytes) { return _aligned_malloc(bytes + 64, 64); }
static void gzk_free(void *p) { _aligned_free(p); }
#else
#include <stdlib.h>
static void *gzk_alloc(size_t bytes) { return aligned_alloc(64, (bytes + 127) / 64 * 64); }
static void gzk_free(void *p) { free(p); }
#endif

/* Whether rows of whole vectors at p can be streamed vector by vector. */
GZK_INLINE int gzk_on_boundary(const void *p) { return ((uintptr_t)p & (GZK_BYTES - 1)) == 0; }

/* Whether a cache line begins at p. */
GZK_INLINE int gzk_on_line(const void *p) { return ((uintptr_t)p & 63) == 0; }

/* Copy n bytes; with `stream`, past the cache for the part that fills whole aligned vectors. */
GZK_INLINE void gzk_copy(void *dst, const void *src, ptrdiff_t n, int stream)
{
#if GZK_CAN_STREAM
    if (stream) {
        char *d = (char *)dst;
        const char *s = (const char *)src;
        ptrdiff_t head = (ptrdiff_t)(-(uintptr_t)d & (GZK_BYTES - 1));
        if (head > n) head = n;
        memcpy(d, s, (size_t)head);
        ptrdiff_t i = head;
        for (; i + GZK_BYTES <= n; i += GZK_BYTES) GZK_STREAM(d + i, s + i);
        memcpy(d + i, s + i, (size_t)(n - i));
        return;
    }
#endif
    memcpy(dst, src, (size_t)n);
}

#define OPS "leaf_ops.h"
#include "element_types.h"

/* Each operation under one name for both types: f_f32 or f_f64, by what the pointer x points to. */
#define GZK_OF(f, x) _Generic(*(x), float: f##_f32, double: f##_f64)
#define gzk_dots(x, ...) GZK_OF(gzk_dots, x)(x, __VA_ARGS__)
#define gzk_clenshaw(t, ...) GZK_OF(gzk_clenshaw, t)(t, __VA_ARGS__)
#define gzk_horner(x, ...) GZK_OF(gzk_horner, x)(x, __VA_ARGS__)
#define gzk_halves(x, ...) GZK_OF(gzk_halves, x)(x, __VA_ARGS__)
#define gzk_load_points(points, ...) GZK_OF(gzk_load_points, points)(points, __VA_ARGS__)
#define gzk_powers(x, ...) GZK_OF(gzk_powers, x)(x, __VA_ARGS__)
#define gzk_factors(x, ...) GZK_OF(gzk_factors, x)(x, __VA_ARGS__)
#define gzk_nodes(power, ...) GZK_OF(gzk_nodes, power)(power, __VA_ARGS__)
#define gzk_load_radial(rows, ...) GZK_OF(gzk_load_radial, rows)(rows, __VA_ARGS__)
#define gzk_columns(factor, ...) GZK_OF(gzk_columns, factor)(factor, __VA_ARGS__)
#define gzk_polynomials(table, s, top, count, out) GZK_OF(gzk_polynomials, out)(table, s, top, count, out)

#endif
