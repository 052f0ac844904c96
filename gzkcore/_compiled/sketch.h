/* Tensor sketches of LANES rows at once: lane i of every vector belongs to row i.
 *
 * m numbers of a row, m a power of two, are M = m / 2 complex ones, z[j] = x[2j] + i x[2j + 1], in the
 * order in which they are. Their Fourier transform is what is left of the polynomial sum z[j] t^j
 * modulo t - (each root of unity): modulo t^M - 1 = (t^(M/2) - 1) (t^(M/2) + 1) first, and so on,
 *
 *     block b of n numbers, modulo t^n - r^2:    (a, a') -> (a + r a', a - r a'),   r = roots[b],
 *
 * so that one root serves a whole block, and place q of the result belongs to the frequency that q
 * gives with its bits reversed. Products of spectra need no other order; the inverse takes the same
 * steps back. With v(q) = (bits of q, reversed, as a fraction), roots[q] = exp(i pi v(q)), which is
 * also what separates the transform of x from that of z: one table for all lengths and purposes.
 *
 * Measured on one thread with AVX-512 in float, rows of 1,024: see asv_bench/benchmarks/sketch.py.
 */
#ifndef GZK_SKETCH_H
#define GZK_SKETCH_H

#include "leaf.h"

#define OPS "sketch_ops.h"
#include "element_types.h"

#define gzk_count(x, ...) GZK_OF(gzk_count, x)(x, __VA_ARGS__)
#define gzk_fourier(z, ...) GZK_OF(gzk_fourier, z)(z, __VA_ARGS__)
#define gzk_fourier_back(z, ...) GZK_OF(gzk_fourier_back, z)(z, __VA_ARGS__)
#define gzk_multiply(z, ...) GZK_OF(gzk_multiply, z)(z, __VA_ARGS__)
#define gzk_ones(product, m) GZK_OF(gzk_ones, product)(product, m)
#define gzk_join(product, ...) GZK_OF(gzk_join, product)(product, __VA_ARGS__)
#define gzk_store_rows(x, ...) GZK_OF(gzk_store_rows, x)(x, __VA_ARGS__)

#endif
