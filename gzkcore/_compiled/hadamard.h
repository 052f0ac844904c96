/* The fast Walsh-Hadamard transform of one row, y = H x with H[i, j] = (-1)^popcount(i & j).
 *
 * log2(n) stages, each of n / 2 butterflies (a, b) -> (a + b, a - b), in any order. All stages within
 * a block of 16 vectors (8 where there are 16 registers) are done in registers, with one load and one
 * store for each element: across vectors by plain butterflies, within a vector by
 * x <- swapped + sign x, where `swapped` exchanges the lanes i and i ^ h. Longer rows first take the
 * outermost stages, up to three at once in registers, and then their parts, depth first, so that each
 * level of the cache is passed as rarely as can be. (Four at once read 16 lines that are a power of
 * two apart, more than the first level of the cache can hold: 1.4 times slower from 2^18 on.)
 *
 * A load that follows a store to an address equal to its own modulo 4,096 waits for it, and lines of
 * such addresses share a set of the cache. So where a long row and its result begin within 512 bytes
 * modulo 4,096, the row is copied first: 1.0 to 1.2 times the time of the best distance, not up to 2.3.
 *
 * Stages run from the outermost down; every bit of the result depends on n alone.
 *
 * Measured on one thread against FFHT, rows of 2^8 to 2^19: with AVX-512 1.5 to 2.7 times as fast in
 * float and 1.2 to 2.5 times in double, with AVX2 1.2 to 1.8 and 0.9 to 1.6 times by processor.
 */
#ifndef GZK_HADAMARD_H
#define GZK_HADAMARD_H

#include "leaf.h"

/* Vectors of a block: all of them and a few temporaries are in registers. */
#define GZK_BLOCK (GZK_CHAINS == 8 ? 16 : 8)

/* Of each lane i: the lane i ^ h, and the sign that lane i has in stage h. */
#define GZK_SWAP2(h) 0 ^ (h), 1 ^ (h)
#define GZK_SWAP4(h) GZK_SWAP2(h), 2 ^ (h), 3 ^ (h)
#define GZK_SWAP8(h) GZK_SWAP4(h), 4 ^ (h), 5 ^ (h), 6 ^ (h), 7 ^ (h)
#define GZK_SWAP16(h) \
    GZK_SWAP8(h), 8 ^ (h), 9 ^ (h), 10 ^ (h), 11 ^ (h), 12 ^ (h), 13 ^ (h), 14 ^ (h), 15 ^ (h)
#define GZK_SIGN(i, h) ((i) & (h) ? -1 : 1)
#define GZK_SIGN2(h) GZK_SIGN(0, h), GZK_SIGN(1, h)
#define GZK_SIGN4(h) GZK_SIGN2(h), GZK_SIGN(2, h), GZK_SIGN(3, h)
#define GZK_SIGN8(h) \
    GZK_SIGN4(h), GZK_SIGN(4, h), GZK_SIGN(5, h), GZK_SIGN(6, h), GZK_SIGN(7, h)
#define GZK_SIGN16(h)                                                                         \
    GZK_SIGN8(h), GZK_SIGN(8, h), GZK_SIGN(9, h), GZK_SIGN(10, h), GZK_SIGN(11, h),           \
        GZK_SIGN(12, h), GZK_SIGN(13, h), GZK_SIGN(14, h), GZK_SIGN(15, h)
#if GZK_BYTES == 64
#define GZK_SWAP_F32 GZK_SWAP16
#define GZK_SIGN_F32 GZK_SIGN16
#define GZK_SWAP_F64 GZK_SWAP8
#define GZK_SIGN_F64 GZK_SIGN8
#elif GZK_BYTES == 32
#define GZK_SWAP_F32 GZK_SWAP8
#define GZK_SIGN_F32 GZK_SIGN8
#define GZK_SWAP_F64 GZK_SWAP4
#define GZK_SIGN_F64 GZK_SIGN4
#else
#define GZK_SWAP_F32 GZK_SWAP4
#define GZK_SIGN_F32 GZK_SIGN4
#define GZK_SWAP_F64 GZK_SWAP2
#define GZK_SIGN_F64 GZK_SIGN2
#endif

#define GZK_PAGE 4096 /* bytes: of how addresses are compared, not of memory */
#define GZK_NEAR 512

/* Whether two rows begin within GZK_NEAR bytes modulo GZK_PAGE. */
GZK_INLINE int gzk_alias(const void *x, const void *y)
{
    return ((uintptr_t)y - (uintptr_t)x + GZK_NEAR) % GZK_PAGE < 2 * GZK_NEAR;
}

#define OPS "hadamard_ops.h"
#include "element_types.h"

#define gzk_hadamard(x, ...) GZK_OF(gzk_hadamard, x)(x, __VA_ARGS__)
#define gzk_permute(x, ...) GZK_OF(gzk_permute, x)(x, __VA_ARGS__)

#endif
