/* The operations of projection.h for one element type, see element_types.h. */

/* y (columns, LANES) <- the transpose of x (count, columns) times signs; missing rows repeat the last. */
static void NAME(gzk_load_signed)(const REAL *x, ptrdiff_t ldx, int count, const REAL *sign,
                                  ptrdiff_t columns, REAL *y)
{
    const REAL *row[LANES];
    for (int i = 0; i < LANES; i++) row[i] = x + (i < count ? i : count - 1) * ldx;
    ptrdiff_t c = 0;
#if LANES > 1
    for (; c + LANES <= columns; c += LANES) {
        VEC v[LANES];
        for (int i = 0; i < LANES; i++) {
            v[i] = *(const MEM *)(sign + c) * *(const MEM *)(row[i] + c);
            GZK_FETCH((const char *)(row[i] + c) + 512);
        }
        NAME(gzk_transpose)(v, 0);
        for (int i = 0; i < LANES; i++) *(MEM *)(y + (c + i) * LANES) = v[i];
    }
#endif
    for (; c < columns; c++)
        for (int i = 0; i < LANES; i++) y[c * LANES + i] = sign[c] * row[i][c];
}

GZK_INLINE void NAME(gzk_lanes_block)(REAL *y, const int count)
{
    VEC v[GZK_BLOCK];
    GZK_UNROLL
    for (int i = 0; i < count; i++) v[i] = *(const MEM *)(y + i * LANES);
    NAME(gzk_butterflies)(v, count);
    GZK_UNROLL
    for (int i = 0; i < count; i++) *(MEM *)(y + i * LANES) = v[i];
}

/* y (n, LANES) <- H y for n a power of two: gzk_hadamard without its stages within a vector. */
static void NAME(gzk_hadamard_lanes)(REAL *y, ptrdiff_t n)
{
    switch (n) {
    case 1: return;
    case 2: NAME(gzk_lanes_block)(y, 2); return;
    case 4: NAME(gzk_lanes_block)(y, 4); return;
    case 8: NAME(gzk_lanes_block)(y, 8); return;
#if GZK_CHAINS == 8
    case 16: NAME(gzk_lanes_block)(y, 16); return;
#endif
    }
    int left = 0;
    while ((ptrdiff_t)GZK_BLOCK << left < n) left++;
    const int passes = (left + 2) / 3, stages = (left + passes - 1) / passes;
    const ptrdiff_t h = n >> stages;
    if (stages == 1)
        NAME(gzk_hadamard_outer)(y, y, h * LANES, 2);
    else if (stages == 2)
        NAME(gzk_hadamard_outer)(y, y, h * LANES, 4);
    else
        NAME(gzk_hadamard_outer)(y, y, h * LANES, 8);
    for (ptrdiff_t i = 0; i < n; i += h) NAME(gzk_hadamard_lanes)(y + i * LANES, h);
}

/* The last stages for the outputs in `rows` alone: of piece `piece` of 2^bits numbers, transformed,
 * acc[i] += (-1)^popcount((rows[i] >> bits) & piece) y[rows[i] mod 2^bits]. */
static void NAME(gzk_add_signed)(const REAL *y, const int32_t *rows, ptrdiff_t count, int bits,
                                 ptrdiff_t piece, REAL *acc)
{
    const int32_t mask = ((int32_t)1 << bits) - 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        const VEC v = *(const MEM *)(y + (ptrdiff_t)(rows[i] & mask) * LANES);
        const REAL sign = GZK_ODD((rows[i] >> bits) & (int32_t)piece) ? -1 : 1;
        *(MEM *)(acc + i * LANES) += sign * v;
    }
}

/* The same for one row, whose numbers adjoin. */
static void NAME(gzk_add_signed_row)(const REAL *y, const int32_t *rows, ptrdiff_t count, int bits,
                                     ptrdiff_t piece, REAL *acc)
{
    const int32_t mask = ((int32_t)1 << bits) - 1;
    for (ptrdiff_t i = 0; i < count; i++) {
        const REAL v = y[rows[i] & mask];
        acc[i] += GZK_ODD((rows[i] >> bits) & (int32_t)piece) ? -v : v;
    }
}

/* acc (count, LANES) <- P y for P (count, n) in CSR. Four sums, or each would wait for the one before. */
static void NAME(gzk_sparse_product)(const REAL *data, const int32_t *columns, const int64_t *indptr,
                                     ptrdiff_t count, const REAL *y, REAL *acc)
{
    for (ptrdiff_t i = 0; i < count; i++) {
        VEC sum[4] = {(VEC){0}, (VEC){0}, (VEC){0}, (VEC){0}};
        ptrdiff_t e = (ptrdiff_t)indptr[i];
        const ptrdiff_t end = (ptrdiff_t)indptr[i + 1];
        for (; e + 4 <= end; e += 4)
            GZK_UNROLL
            for (int j = 0; j < 4; j++)
                sum[j] += data[e + j] * *(const MEM *)(y + (ptrdiff_t)columns[e + j] * LANES);
        for (; e < end; e++) sum[0] += data[e] * *(const MEM *)(y + (ptrdiff_t)columns[e] * LANES);
        *(MEM *)(acc + i * LANES) = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    }
}
