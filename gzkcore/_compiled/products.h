/* Kernel values in tiles, and their products with vectors, for `products`.
 *
 * A tile is GZK_TILE rows by GZK_TILE columns; GZK_STRIP of its rows are worked on at a time. First their
 * kernel values are written to a buffer that stays in the first-level cache, then they are multiplied
 * by one vector or by several, in both directions where the matrix is symmetric. With values and
 * products apart, one product serves every kernel, and kernels multiply; it costs 7 % over both in
 * registers (float, 3 columns, AVX-512).
 *
 * A kernel is a product of factors profile(t), each on columns of its own, where t is by the metric
 *
 *     GZK_PRODUCT     a_i + b_j + <u_i, x_j>: also |u - x|^2, where a = |u|^2, b = |x|^2 and u is -2 u
 *     GZK_DIFFERENCE  |u_i - x_j|^2, by differences: twice the work, exact for neighbours
 *     GZK_ABSOLUTE    sum_c |u_ic - x_jc|
 *
 * and the profile is, with r = sqrt(t),
 *
 *     GZK_EXPONENTIAL  2^t; distances are taken with a minus
 *     GZK_MATERN_12    e^-r, and GZK_MATERN_32, GZK_MATERN_52, GZK_MATERN (a polynomial of r, times e^-r)
 *     GZK_SPHERICAL    (1 - r)^2 (1 + r / 2), 0 from r = 1 on
 *     GZK_POLYNOMIAL   a polynomial of t
 *     GZK_TABLE        piecewise polynomials of t, for everything else
 *     GZK_STEEP        e^-r / r, GZK_SPHERICAL_SLOPE, 3/2 (1 - r^2) / r, and GZK_TABLE_SLOPE, a table over
 *                      t: -f'(r) / r where this has a pole at 0
 *     GZK_COMPACT      (1 - r)^8 times a polynomial of 1 - r, 0 from r = 1 on
 */
#ifndef GZK_PRODUCTS_H
#define GZK_PRODUCTS_H

#include <math.h>

#include "denormals.h"
#include "leaf.h"

enum { GZK_PRODUCT, GZK_DIFFERENCE, GZK_ABSOLUTE };
enum {
    GZK_EXPONENTIAL, GZK_MATERN_12, GZK_MATERN_32, GZK_MATERN_52, GZK_MATERN, GZK_SPHERICAL,
    GZK_POLYNOMIAL, GZK_TABLE, GZK_STEEP, GZK_SPHERICAL_SLOPE, GZK_TABLE_SLOPE, GZK_COMPACT
};
#define GZK_STRIPS(X) \
    X(GZK_PRODUCT, GZK_EXPONENTIAL) X(GZK_PRODUCT, GZK_MATERN_32) X(GZK_PRODUCT, GZK_MATERN_52) \
    X(GZK_PRODUCT, GZK_MATERN) X(GZK_PRODUCT, GZK_POLYNOMIAL) X(GZK_PRODUCT, GZK_TABLE) \
    X(GZK_DIFFERENCE, GZK_EXPONENTIAL) X(GZK_DIFFERENCE, GZK_MATERN_12) \
    X(GZK_DIFFERENCE, GZK_MATERN_32) X(GZK_DIFFERENCE, GZK_MATERN_52) X(GZK_DIFFERENCE, GZK_MATERN) \
    X(GZK_DIFFERENCE, GZK_SPHERICAL) X(GZK_DIFFERENCE, GZK_TABLE) X(GZK_DIFFERENCE, GZK_STEEP) \
    X(GZK_DIFFERENCE, GZK_SPHERICAL_SLOPE) X(GZK_DIFFERENCE, GZK_TABLE_SLOPE) X(GZK_DIFFERENCE, GZK_COMPACT) \
    X(GZK_ABSOLUTE, GZK_EXPONENTIAL)

/* A factor of a kernel. A table has `pieces` for every half of it, the first for t below those that
 * `base` counts, the last for t above; t and fold - t, where that is less, share the leading bits that
 * number the piece, and the others are the place in it. Its c is (degree + 1, 2 pieces). */
typedef struct {
    int metric, profile, of_distances, term; /* terms are added, the factors of a term multiplied */
    ptrdiff_t first, dim; /* columns */
    const void *c;        /* coefficients, from the constant on */
    ptrdiff_t degree, shift, base, pieces;
    double fold, offset;
    ptrdiff_t coded;      /* so many of the columns, the last, are codes, and where two differ */
    const void *gaps;     /* their gap is added to t */
} gzk_factor;

#define GZK_TILE 256
#define GZK_NEAR_COLUMNS 3 /* by which columns of a tile are left out; more are not needed */
#if GZK_BYTES == 64
#define GZK_STRIP 8
#define GZK_ROWS 4
#define GZK_ABREAST 4
#else
#define GZK_STRIP 4
#define GZK_ROWS 4
#define GZK_ABREAST 2
#endif

#define GZK_TOGETHER 10       /* Matern factors of which exponentials are taken together, */
#define GZK_MOST_ROOT 100     /* with r up to this: e^-100 is 0 beside 1, (1 + r + r^2 / 3)^10 a float */

#define MAGIC_F32 12582912.0f /* 1.5 x 2^23 */
#define MAGIC_F64 6755399441055744.0 /* 1.5 x 2^52 */
#define MANTISSA_BITS_F32 23
#define MANTISSA_BITS_F64 52
#define MAGNITUDE_BITS_F32 0x7fffffff
#define MAGNITUDE_BITS_F64 0x7fffffffffffffff
#define ONE_BITS_F32 0x3f800000
#define ONE_BITS_F64 0x3ff0000000000000
#define LEAST_EXPONENT_F32 -125.0f
#define LEAST_EXPONENT_F64 -1021.0
#define LEAST_SQUARE_F32 1e-30f
#define LEAST_SQUARE_F64 1e-200
#define MOST_SQUARE_F32 1e6f /* e^-1000 is 0, and no power of 1000 that is met is infinite */
#define MOST_SQUARE_F64 1e6

#define OPS "products_ops.h"
#include "element_types.h"

#define gzk_shift(x, ...) GZK_OF(gzk_shift, x)(x, __VA_ARGS__)
#define gzk_expand(factor, u, ...) GZK_OF(gzk_expand, u)(factor, u, __VA_ARGS__)
#define gzk_values(factors, count, i, u, ...) GZK_OF(gzk_values, u)(factors, count, i, u, __VA_ARGS__)
#define gzk_tile(factors, count, u, ...) GZK_OF(gzk_tile, u)(factors, count, u, __VA_ARGS__)
#define gzk_add_lanes(wi, sums) GZK_OF(gzk_add_lanes, wi)(wi, sums)
#define gzk_has_strips(c, metric, profile) (GZK_OF(gzk_strip_function_of, c)(metric, profile) != NULL)

#endif
