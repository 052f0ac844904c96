/* Kernel values in tiles, and their products with vectors, for `products`.
 *
 * A tile is GZK_TILE rows by GZK_TILE columns; GZK_STRIP of its rows are worked on at a time. First their
 * kernel values are written to a buffer that stays in the first-level cache, then they are multiplied
 * by one vector or by several, in both directions where the matrix is symmetric. With values and
 * products apart, one product serves every kernel; it costs 5 % over both in registers.
 *
 * The kernel is profile(t), where t is by the metric
 *
 *     GZK_PRODUCT     a_i + b_j + <u_i, x_j>: -|u - x|^2 / 2 where a = -|u|^2 / 2, b = -|x|^2 / 2
 *     GZK_DIFFERENCE  -|u_i - x_j|^2 / 2, by differences: twice the work, exact for neighbours
 *     GZK_ABSOLUTE    -sum_c |u_ic - x_jc|
 *
 * and the profile is, with r = sqrt(-2 t),
 *
 *     GZK_EXPONENTIAL  2^t
 *     GZK_MATERN_12    e^-r, and GZK_MATERN_32, GZK_MATERN_52, GZK_MATERN (a polynomial of r, times e^-r)
 *     GZK_SPHERICAL    (1 - r)^2 (1 + r / 2), 0 from r = 1 on
 *     GZK_POLYNOMIAL   a polynomial of t
 */
#ifndef GZK_PRODUCTS_H
#define GZK_PRODUCTS_H

#include <math.h>

#include "leaf.h"

enum { GZK_PRODUCT, GZK_DIFFERENCE, GZK_ABSOLUTE };
enum {
    GZK_EXPONENTIAL, GZK_MATERN_12, GZK_MATERN_32, GZK_MATERN_52, GZK_MATERN, GZK_SPHERICAL,
    GZK_POLYNOMIAL
};
#define GZK_STRIPS(X) \
    X(GZK_PRODUCT, GZK_EXPONENTIAL) X(GZK_PRODUCT, GZK_MATERN_32) X(GZK_PRODUCT, GZK_MATERN_52) \
    X(GZK_PRODUCT, GZK_MATERN) X(GZK_PRODUCT, GZK_POLYNOMIAL) X(GZK_DIFFERENCE, GZK_EXPONENTIAL) \
    X(GZK_DIFFERENCE, GZK_MATERN_12) X(GZK_DIFFERENCE, GZK_MATERN_32) X(GZK_DIFFERENCE, GZK_MATERN_52) \
    X(GZK_DIFFERENCE, GZK_MATERN) X(GZK_DIFFERENCE, GZK_SPHERICAL) X(GZK_ABSOLUTE, GZK_EXPONENTIAL)

#define GZK_TILE 256
#if GZK_BYTES == 64
#define GZK_STRIP 8
#define GZK_ABREAST 2
#else
#define GZK_STRIP 4
#define GZK_ABREAST 2
#endif

#define MAGIC_F32 12582912.0f /* 1.5 x 2^23 */
#define MAGIC_F64 6755399441055744.0 /* 1.5 x 2^52 */
#define MANTISSA_BITS_F32 23
#define MANTISSA_BITS_F64 52
#define MAGNITUDE_BITS_F32 0x7fffffff
#define MAGNITUDE_BITS_F64 0x7fffffffffffffff
#define LEAST_EXPONENT_F32 -125.0f
#define LEAST_EXPONENT_F64 -1021.0
#define LEAST_SQUARE_F32 1e-30f
#define LEAST_SQUARE_F64 1e-200

#define OPS "products_ops.h"
#include "element_types.h"

#endif
