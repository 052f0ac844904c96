/* The leaf operations of block projections: one number of each row goes to one of many sums.
 *
 * As many rows as a vector has lanes are worked on together. Blocks of LANES columns are read row by
 * row and transposed in registers: then coordinate j of all rows is one vector, and its sum, wherever
 * that is, one aligned line. So rows are read in their own order at the speed of memory, and the
 * coordinates may go anywhere: no arrangement is faster than another. A gather, or a scatter of one
 * row at a time, moves single elements.
 *
 * Measured on AVX-512 (float, one core, D = 5,000 to 440,000, sums for k = 1,000 and 5,120), without
 * clearing and writing the sums: 86 to 94 % of reading alone, with AVX2 84 to 94 %.
 * Prefetching 1 kB ahead is best; 2 kB costs 3 to 5 %, none 10 to 15 %.
 *
 * Several passes read rows that fit the second cache transposed once: the sums of D = 5,000 in 642
 * passes then take 0.65 times as long as with the same rows transposed for every 52 passes, whose sums
 * leave the first cache.
 */
#ifndef GZK_BLOCK_H
#define GZK_BLOCK_H

#include "trig.h"

#define GZK_AHEAD 1024
#if defined(__GNUC__)
#define GZK_PREFETCH(p) __builtin_prefetch(p, 0, 3)
#else
#define GZK_PREFETCH(p) ((void)(p))
#endif

#define OPS "block_ops.h"
#include "element_types.h"

#define gzk_scatter(rows, bucket, w, ...) GZK_OF(gzk_scatter, w)(rows, bucket, w, __VA_ARGS__)
#define gzk_scatter_columns(columns, ...) GZK_OF(gzk_scatter_columns, columns)(columns, __VA_ARGS__)
#define gzk_scatter_row(x, ...) GZK_OF(gzk_scatter_row, x)(x, __VA_ARGS__)
#define gzk_unpack(acc, ...) GZK_OF(gzk_unpack, acc)(acc, __VA_ARGS__)
#define gzk_not_finite(x, n) GZK_OF(gzk_not_finite, x)(x, n)

#endif
