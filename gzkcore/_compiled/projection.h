/* Random projections by the Walsh-Hadamard transform, LANES rows at once: lane i of every vector is row i.
 *
 * All stages then are plain butterflies between vectors, outputs can be picked and added by whole vectors,
 * wherever they are, and the price is one transposition of the input, as much as the stages within a
 * vector would shuffle (hadamard.h).
 *
 * Measured with AVX-512, one core, D = 10,000: for 256 outputs 3.0 us a row in float and 6.0 in double, for
 * 1,000 outputs 3.9 and 7.9; with all n = 2^14 outputs transformed 6.3 to 6.6 and 13.7.
 */
#ifndef GZK_PROJECTION_H
#define GZK_PROJECTION_H

#include "hadamard.h"

#if defined(__GNUC__)
#define GZK_FETCH(p) __builtin_prefetch(p)
#define GZK_ODD(x) __builtin_parity((unsigned)(x))
#else
#define GZK_FETCH(p) ((void)0)
static int gzk_odd(uint32_t x)
{
    x ^= x >> 16;
    x ^= x >> 8;
    x ^= x >> 4;
    return (0x6996 >> (x & 15)) & 1;
}
#define GZK_ODD(x) gzk_odd((uint32_t)(x))
#endif

#define OPS "projection_ops.h"
#include "element_types.h"

#define gzk_load_signed(x, ...) GZK_OF(gzk_load_signed, x)(x, __VA_ARGS__)
#define gzk_hadamard_lanes(y, n) GZK_OF(gzk_hadamard_lanes, y)(y, n)
#define gzk_add_signed(y, ...) GZK_OF(gzk_add_signed, y)(y, __VA_ARGS__)
#define gzk_add_signed_row(y, ...) GZK_OF(gzk_add_signed_row, y)(y, __VA_ARGS__)
#define gzk_sparse_product(data, ...) GZK_OF(gzk_sparse_product, data)(data, __VA_ARGS__)

#endif
