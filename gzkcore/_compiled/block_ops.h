/* The operations of block.h for one element type, see element_types.h. */

/* acc[bucket[q, j], r] += w[q, j] rows[r][j] for all j < d, q < passes and r < LANES.
 * bucket and w are (passes, d) with row stride d; acc is (n_blocks, LANES). Each accumulator takes
 * its coordinates in the order of the row. */
static void NAME(gzk_scatter)(const REAL *const *rows, const int32_t *bucket, const REAL *w,
                              ptrdiff_t d, ptrdiff_t passes, REAL *acc)
{
    ptrdiff_t j = 0;
    for (; j + LANES <= d; j += LANES) {
        VEC v[LANES];
        for (int r = 0; r < LANES; r++) {
            v[r] = *(const MEM *)(rows[r] + j);
            GZK_PREFETCH((const char *)(rows[r] + j) + GZK_AHEAD);
        }
        NAME(gzk_transpose)(v, 0);
        for (ptrdiff_t q = 0; q < passes; q++) {
            const int32_t *to = bucket + q * d + j;
            const REAL *by = w + q * d + j;
            GZK_UNROLL
            for (int c = 0; c < LANES; c++) {
                MEM *sum = (MEM *)(acc + (ptrdiff_t)to[c] * LANES);
                *sum += by[c] * v[c];
            }
        }
    }
    for (; j < d; j++) {
        REAL x[LANES];
        for (int r = 0; r < LANES; r++) x[r] = rows[r][j];
        for (ptrdiff_t q = 0; q < passes; q++) {
            MEM *sum = (MEM *)(acc + (ptrdiff_t)bucket[q * d + j] * LANES);
            *sum += w[q * d + j] * *(const MEM *)x;
        }
    }
}

/* The same for one pass and columns that are transposed already, (d, LANES). */
static void NAME(gzk_scatter_columns)(const REAL *columns, const int32_t *bucket, const REAL *w,
                                      ptrdiff_t d, REAL *acc)
{
    for (ptrdiff_t j = 0; j < d; j++) {
        MEM *sum = (MEM *)(acc + (ptrdiff_t)bucket[j] * LANES);
        *sum += w[j] * *(const MEM *)(columns + j * LANES);
    }
}

/* The same for one row, whose sums adjoin: out[bucket[j]] += w[j] x[j]. */
static void NAME(gzk_scatter_row)(const REAL *x, const int32_t *bucket, const REAL *w, ptrdiff_t d,
                                  REAL *out)
{
    for (ptrdiff_t j = 0; j < d; j++) out[bucket[j]] += w[j] * x[j];
}

/* out (count, n) <- the transpose of acc (n, LANES), for the first `count` of its columns. */
static void NAME(gzk_unpack)(const REAL *acc, ptrdiff_t n, int count, REAL *out, ptrdiff_t ldo)
{
    ptrdiff_t j = 0;
    for (; j + LANES <= n; j += LANES) {
        VEC v[LANES];
        for (int c = 0; c < LANES; c++) v[c] = *(const MEM *)(acc + (j + c) * LANES);
        NAME(gzk_transpose)(v, 0);
        for (int r = 0; r < count; r++) *(MEM *)(out + r * ldo + j) = v[r];
    }
    for (; j < n; j++)
        for (int r = 0; r < count; r++) out[r * ldo + j] = acc[j * LANES + r];
}

/* Whether a number is infinite or NaN: 0 times it is NaN, and stays so in a sum. */
static int NAME(gzk_not_finite)(const REAL *x, ptrdiff_t n)
{
    VEC zero[4];
    for (int c = 0; c < 4; c++) zero[c] = NAME(gzk_splat)(0);
    ptrdiff_t j = 0;
    for (; j + 4 * LANES <= n; j += 4 * LANES)
        for (int c = 0; c < 4; c++) zero[c] += 0 * *(const MEM *)(x + j + c * LANES);
    const VEC all = (zero[0] + zero[1]) + (zero[2] + zero[3]);
    REAL rest = 0;
    for (int c = 0; c < LANES; c++) rest += ((const REAL *)&all)[c];
    for (; j < n; j++) rest += 0 * x[j];
    return rest != 0;
}
