/* What features leave of a kernel between a row and its neighbours, and its factor, for `neighbours`.
 *
 * For one row: the matrix S = R + alpha N of count rows, the row itself last, R(x, y) = k(x, y) - z(x).z(y),
 * and g = S^-1 e / sqrt(e^T S^-1 e) for e the last unit vector. With S = U^T U, U upper triangular,
 * g = U^-1 e: one back substitution. Only the upper triangle is computed, in rows of whole vectors;
 * what lies left of the diagonal and beyond count is finite, and multiplied by 0.
 */
#ifndef GZK_NEIGHBOURS_H
#define GZK_NEIGHBOURS_H

#include "products.h"

#define GZK_TALL 4 /* so many rows of S are in registers together, */
#define GZK_WIDE (GZK_CHAINS / 2) /* in so many columns, or vectors of columns */

#define OPS "neighbours_ops.h"
#include "element_types.h"

#define gzk_kernel_of_few(factors, count, u, ...) \
    GZK_OF(gzk_kernel_of_few, u)(factors, count, u, __VA_ARGS__)
#define gzk_subtract_features(z, p, count, width, S) \
    GZK_OF(gzk_subtract_features, S)(z, p, count, width, S)
#define gzk_last_of_inverse_factor(S, ...) GZK_OF(gzk_last_of_inverse_factor, S)(S, __VA_ARGS__)

#endif
