/* The operations of neighbours.h for one element type; included there. */

/* sums[v] = the sum of the lanes of x[v], for LANES vectors at once, which are overwritten: two by two
 * they are interleaved, and halves added, until one vector is left. */
GZK_INLINE void NAME(gzk_sums_of_lanes)(VEC *x, REAL *sums)
{
#if GZK_CAN_SHUFFLE
    GZK_UNROLL
    for (int count = LANES; count > 1; count /= 2)
        GZK_UNROLL
        for (int v = 0; v < count / 2; v++) {
            VEC a = x[v], b = x[v + count / 2];
            x[v] = __builtin_shufflevector(a, b, CONSTANT(GZK_LO)) +
                   __builtin_shufflevector(a, b, CONSTANT(GZK_HI));
        }
    *(MEM *)sums = x[0];
#else
    for (int v = 0; v < LANES; v++) {
        REAL part[LANES];
        memcpy(part, x + v, sizeof part);
        sums[v] = 0;
        for (int l = 0; l < LANES; l++) sums[v] += part[l];
    }
#endif
}

/* S[j, l] = k(x_j, x_l) for l >= j: over terms, whose factors follow one another, the sum of w_j w_l
 * times the product of the factors. u (d + n_terms, width): coordinates by column, and w of each term;
 * S (count, width). */
static void NAME(gzk_kernel_of_few)(const gzk_factor *factors, ptrdiff_t n_factors, const REAL *u,
                                    ptrdiff_t d, ptrdiff_t count, ptrdiff_t width, REAL *S)
{
    for (ptrdiff_t j = 0; j < count; j++)
        for (ptrdiff_t l = j / LANES * LANES; l < width; l += LANES) {
            VEC sum = {0}, value = sum;
            for (ptrdiff_t f = 0; f < n_factors; f++) {
                const gzk_factor *factor = factors + f;
                if (f == 0 || factor->term != factor[-1].term) {
                    const REAL *w = u + (d + factor->term) * width;
                    sum += value;
                    value = w[j] * *(const MEM *)(w + l);
                }
                const REAL sign = factor->profile == GZK_EXPONENTIAL ? -1 : 1;
                VEC t = (VEC){0};
                if (!factor->of_distances) t += (REAL)factor->offset;
                const ptrdiff_t codes = factor->first + factor->dim - factor->coded;
                for (ptrdiff_t k = factor->first; k < factor->first + factor->dim; k++) {
                    REAL own = u[k * width + j];
                    VEC other = *(const MEM *)(u + k * width + l), apart = own - other;
                    if (k >= codes)
                        t += sign * ((const REAL *)factor->gaps)[k - codes]
                             * NAME(gzk_at_most)(apart * apart, 1);
                    else if (!factor->of_distances) t += own * other;
                    else if (factor->metric == GZK_ABSOLUTE) t += sign * NAME(gzk_magnitude)(apart);
                    else t += sign * apart * apart;
                }
                t = NAME(gzk_bounded)(t, factor->profile);
                value *= NAME(gzk_profile)(t, factor->profile, factor);
            }
            *(MEM *)(S + j * width + l) = sum + value;
        }
}

/* S[j, l] -= z_j . z_l for l >= j. z: pointers to rows of p numbers, as many as whole blocks need. */
static void NAME(gzk_subtract_features)(const REAL **z, ptrdiff_t p, ptrdiff_t count, ptrdiff_t width,
                                        REAL *S)
{
    for (ptrdiff_t j = 0; j < count; j += GZK_TALL)
        for (ptrdiff_t l = j / GZK_WIDE * GZK_WIDE; l < count; l += GZK_WIDE) {
            enum { COUNT = GZK_TALL * GZK_WIDE > LANES ? GZK_TALL * GZK_WIDE : LANES };
            VEC acc[COUNT];
            REAL sums[COUNT];
            GZK_UNROLL
            for (int v = 0; v < COUNT; v++) acc[v] = (VEC){0};
            for (ptrdiff_t k = 0; k < p; k += LANES) {
                VEC own[GZK_TALL];
                GZK_UNROLL
                for (int r = 0; r < GZK_TALL; r++) own[r] = *(const MEM *)(z[j + r] + k);
                GZK_UNROLL
                for (int q = 0; q < GZK_WIDE; q++) {
                    VEC other = *(const MEM *)(z[l + q] + k);
                    GZK_UNROLL
                    for (int r = 0; r < GZK_TALL; r++) acc[r * GZK_WIDE + q] += own[r] * other;
                }
            }
            GZK_UNROLL
            for (int v = 0; v < COUNT; v += LANES)
                NAME(gzk_sums_of_lanes)(acc + v, sums + v);
            for (ptrdiff_t r = 0; r < GZK_TALL && j + r < count; r++)
                for (ptrdiff_t q = 0; q < GZK_WIDE && l + q < width; q++)
                    S[(j + r) * width + l + q] -= sums[r * GZK_WIDE + q];
        }
}

/* Subtract from `tall` rows of S from row j on, in `wide` vectors from column l on, what the rows of U
 * from `first` to before `last` tell. */
GZK_INLINE void NAME(gzk_subtract_rows)(REAL *S, ptrdiff_t j, ptrdiff_t l, ptrdiff_t width, ptrdiff_t first,
                                        ptrdiff_t last, const int tall, const int wide)
{
    VEC sums[GZK_TALL * GZK_WIDE], other[GZK_WIDE];
    REAL *own = S + j * width + l;
    GZK_UNROLL
    for (int v = 0; v < tall * wide; v++)
        sums[v] = *(const MEM *)(own + v / wide * width + v % wide * LANES);
    for (ptrdiff_t k = first; k < last; k++) {
        const REAL *above = S + k * width;
        GZK_UNROLL
        for (int v = 0; v < wide; v++) other[v] = *(const MEM *)(above + l + v * LANES);
        GZK_UNROLL
        for (int v = 0; v < tall * wide; v++) sums[v] -= above[j + v / wide] * other[v % wide];
    }
    GZK_UNROLL
    for (int v = 0; v < tall * wide; v++)
        *(MEM *)(own + v / wide * width + v % wide * LANES) = sums[v];
}

/* gzk_subtract_rows in all columns from row j's own on. */
GZK_INLINE void NAME(gzk_subtract_above)(REAL *S, ptrdiff_t j, ptrdiff_t width, ptrdiff_t first,
                                         ptrdiff_t last, const int tall)
{
    ptrdiff_t l = j / LANES * LANES;
    for (; l + GZK_WIDE * LANES <= width; l += GZK_WIDE * LANES)
        NAME(gzk_subtract_rows)(S, j, l, width, first, last, tall, GZK_WIDE);
    for (; l < width; l += LANES) NAME(gzk_subtract_rows)(S, j, l, width, first, last, tall, 1);
}

/* g = U^-1 e for S = U^T U, which overwrites S; e the last unit vector. A row's pivot is what the rows
 * before it leave of it, and where R is positive semidefinite its own noise at least: a neighbour of
 * which not even that is left, by rounding or since features are off, tells nothing and is left out. */
static void NAME(gzk_last_of_inverse_factor)(REAL *S, ptrdiff_t count, ptrdiff_t width,
                                             const REAL *noise, REAL *g)
{
    for (ptrdiff_t first = 0; first < count; first += GZK_TALL) {
        const ptrdiff_t end = first + GZK_TALL < count ? first + GZK_TALL : count;
        if (end - first == GZK_TALL) NAME(gzk_subtract_above)(S, first, width, 0, first, GZK_TALL);
        else
            for (ptrdiff_t j = first; j < end; j++) NAME(gzk_subtract_above)(S, j, width, 0, first, 1);
        for (ptrdiff_t j = first; j < end; j++) {
            NAME(gzk_subtract_above)(S, j, width, first, j, 1);
            REAL *row = S + j * width;
            int told = row[j] >= noise[j];
            REAL scale = 1 / (REAL)sqrt((double)(told ? row[j] : noise[j]));
            const ptrdiff_t start = j / LANES * LANES;
            for (ptrdiff_t l = start; l < width; l += LANES) *(MEM *)(row + l) *= told ? scale : 0;
            /* What follows sums whole vectors: here may be inf, which no 0 makes finite. */
            memset(row + start, 0, (j - start) * sizeof(REAL));
            row[j] = scale;
        }
    }
    for (ptrdiff_t l = 0; l < width; l++) g[l] = 0;
    g[count - 1] = S[(count - 1) * width + count - 1];
    for (ptrdiff_t j = count - 2; j >= 0; j--) {
        REAL sum = 0, part[LANES], *row = S + j * width;
        VEC sums = {0};
        for (ptrdiff_t l = j / LANES * LANES; l < width; l += LANES)
            sums += *(const MEM *)(row + l) * *(const MEM *)(g + l);
        memcpy(part, &sums, sizeof part);
        for (int l = 0; l < LANES; l++) sum += part[l];
        g[j] = -sum * row[j];
    }
}
