/* The leaf operations for one element type, see element_types.h. */

GZK_INLINE VEC NAME(gzk_splat)(REAL x) { return x - (VEC){0}; }

/* t[r, j] = sum_a x[r, a] w[a, j] for `rows` (1 to 4) rows at once.
 * x (rows, d) with row stride ldx, w (d, m), t (rows, m); m is a multiple of LANES.
 * Four rows share each load of w. */
GZK_INLINE void NAME(gzk_dots_rows)(const REAL *x, ptrdiff_t ldx, const REAL *w, ptrdiff_t ldw,
                                    REAL *t, ptrdiff_t ldt, ptrdiff_t d, ptrdiff_t m, const int rows)
{
    enum { WIDE = GZK_CHAINS / 2 };
    ptrdiff_t j = 0;
    for (; j + WIDE * LANES <= m; j += WIDE * LANES) {
        VEC acc[4][WIDE];
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < WIDE; v++) acc[r][v] = (VEC){0};
        for (ptrdiff_t a = 0; a < d; a++) {
            VEC wa[WIDE];
            for (int v = 0; v < WIDE; v++) wa[v] = *(const MEM *)(w + a * ldw + j + v * LANES);
            for (int r = 0; r < rows; r++)
                for (int v = 0; v < WIDE; v++) acc[r][v] += x[r * ldx + a] * wa[v];
        }
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < WIDE; v++) *(MEM *)(t + r * ldt + j + v * LANES) = acc[r][v];
    }
    for (; j < m; j += LANES)
        for (int r = 0; r < rows; r++) {
            VEC acc = (VEC){0};
            for (ptrdiff_t a = 0; a < d; a++) acc += x[r * ldx + a] * *(const MEM *)(w + a * ldw + j);
            *(MEM *)(t + r * ldt + j) = acc;
        }
}

static void NAME(gzk_dots)(const REAL *x, ptrdiff_t ldx, const REAL *w, ptrdiff_t ldw, REAL *t,
                           ptrdiff_t ldt, ptrdiff_t d, ptrdiff_t m, int rows)
{
    if (rows == 4) {
        NAME(gzk_dots_rows)(x, ldx, w, ldw, t, ldt, d, m, 4);
        return;
    }
    for (int r = 0; r < rows; r++)
        NAME(gzk_dots_rows)(x + r * ldx, ldx, w, ldw, t + r * ldt, ldt, d, m, 1);
}

/* Store a vector; with `stream` past the cache, and then dst must be on a vector's boundary. */
GZK_INLINE void NAME(gzk_store)(REAL *dst, VEC v, const int stream)
{
#if GZK_CAN_STREAM
    if (stream) {
        GZK_STREAM(dst, &v);
        return;
    }
#endif
    *(MEM *)dst = v;
}

/* out[j] <- sum_k c[k] p_k(t[j]),  p_0 = 1, p_1 = t, p_(k+1) = t p_k - b[k] p_(k-1)  (Clenshaw).
 * `chains` vectors of points are in flight, since each step waits for the one before.
 * Two fused operations per degree; the roles of the two accumulators alternate, so nothing moves. */
GZK_INLINE void NAME(gzk_clenshaw_chains)(const REAL *t, const REAL *c, const REAL *b,
                                          ptrdiff_t degree, REAL *out, const int stream,
                                          const int chains)
{
    VEC x[GZK_CHAINS], even[GZK_CHAINS], odd[GZK_CHAINS];
    ptrdiff_t k = degree;
    for (int v = 0; v < chains; v++) {
        x[v] = *(const MEM *)(t + v * LANES);
        even[v] = NAME(gzk_splat)(c[degree]);
        odd[v] = (VEC){0};
    }
    for (; k >= 2; k -= 2) {
        for (int v = 0; v < chains; v++) {
            VEC rest = c[k - 1] - b[k] * odd[v];
            odd[v] = rest + x[v] * even[v];
        }
        for (int v = 0; v < chains; v++) {
            VEC rest = c[k - 2] - b[k - 1] * even[v];
            even[v] = rest + x[v] * odd[v];
        }
    }
    if (k == 1) {
        for (int v = 0; v < chains; v++) {
            VEC rest = c[0] - b[1] * odd[v];
            NAME(gzk_store)(out + v * LANES, rest + x[v] * even[v], stream);
        }
        return;
    }
    for (int v = 0; v < chains; v++) NAME(gzk_store)(out + v * LANES, even[v], stream);
}

static void NAME(gzk_clenshaw)(const REAL *t, ptrdiff_t m, const REAL *c, const REAL *b,
                               ptrdiff_t degree, REAL *out, int stream)
{
    ptrdiff_t j = 0;
    if (stream)
        for (; j + GZK_CHAINS * LANES <= m; j += GZK_CHAINS * LANES)
            NAME(gzk_clenshaw_chains)(t + j, c, b, degree, out + j, 1, GZK_CHAINS);
    for (; j + GZK_CHAINS * LANES <= m; j += GZK_CHAINS * LANES)
        NAME(gzk_clenshaw_chains)(t + j, c, b, degree, out + j, 0, GZK_CHAINS);
    for (; j < m; j += LANES) NAME(gzk_clenshaw_chains)(t + j, c, b, degree, out + j, 0, 1);
}

/* out[r, j] = sum_k c[r, k] t^k at t = sum_a x[r, a] w[a, j]  (Horner), for `rows` (1 to 4) rows and
 * `chains` vectors of each at once: one fused operation per degree. Cosines stay in registers, and
 * stores come evenly between the arithmetic. As two loops, over cosines and then over powers, the
 * bursts of stores filled the write buffers: at d = 9 to memory it took up to 1.5 times as long. */
GZK_INLINE void NAME(gzk_horner_chains)(const REAL *x, ptrdiff_t ldx, const REAL *w, ptrdiff_t ldw,
                                        ptrdiff_t d, const REAL *c, ptrdiff_t ldc, ptrdiff_t degree,
                                        REAL *out, ptrdiff_t ldo, const int stream, const int rows,
                                        const int chains)
{
    VEC t[4][GZK_CHAINS], sum[4][GZK_CHAINS];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < chains; v++) t[r][v] = (VEC){0};
    for (ptrdiff_t a = 0; a < d; a++)
        for (int v = 0; v < chains; v++) {
            VEC wa = *(const MEM *)(w + a * ldw + v * LANES);
            for (int r = 0; r < rows; r++) t[r][v] += x[r * ldx + a] * wa;
        }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < chains; v++) sum[r][v] = NAME(gzk_splat)(c[r * ldc + degree]);
    for (ptrdiff_t k = degree - 1; k >= 0; k--)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < chains; v++) sum[r][v] = c[r * ldc + k] + t[r][v] * sum[r][v];
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < chains; v++)
            NAME(gzk_store)(out + r * ldo + v * LANES, sum[r][v], stream);
}

GZK_INLINE void NAME(gzk_horner_rows)(const REAL *x, ptrdiff_t ldx, const REAL *w, ptrdiff_t ldw,
                                      ptrdiff_t d, ptrdiff_t m, const REAL *c, ptrdiff_t ldc,
                                      ptrdiff_t degree, REAL *out, ptrdiff_t ldo, const int stream,
                                      const int rows)
{
    enum { WIDE = GZK_CHAINS / 4 };
    ptrdiff_t j = 0;
    for (; j + WIDE * LANES <= m; j += WIDE * LANES)
        NAME(gzk_horner_chains)(x, ldx, w + j, ldw, d, c, ldc, degree, out + j, ldo, stream, rows,
                                WIDE);
    for (; j < m; j += LANES)
        NAME(gzk_horner_chains)(x, ldx, w + j, ldw, d, c, ldc, degree, out + j, ldo, stream, rows, 1);
}

static void NAME(gzk_horner)(const REAL *x, ptrdiff_t ldx, const REAL *w, ptrdiff_t ldw, ptrdiff_t d,
                             ptrdiff_t m, const REAL *c, ptrdiff_t ldc, ptrdiff_t degree, REAL *out,
                             ptrdiff_t ldo, int stream, int rows)
{
    if (rows == 4 && stream) {
        NAME(gzk_horner_rows)(x, ldx, w, ldw, d, m, c, ldc, degree, out, ldo, 1, 4);
        return;
    }
    if (rows == 4) {
        NAME(gzk_horner_rows)(x, ldx, w, ldw, d, m, c, ldc, degree, out, ldo, 0, 4);
        return;
    }
    for (int r = 0; r < rows; r++)
        NAME(gzk_horner_rows)(x + r * ldx, ldx, w, ldw, d, m, c + r * ldc, ldc, degree, out + r * ldo,
                              ldo, 0, 1);
}

/* out[r, j] = sum_k c[r, k] t^(k mod 2) u^(k div 2) at t = sum_a x[r, a] w[a, j], u = 2 t^2 - 1: even
 * and odd powers each by Horner's rule in u. Half the degree, so that the loss of digits is the root
 * of that in powers of t, at the price of three operations. */
GZK_INLINE void NAME(gzk_halves_chains)(const REAL *x, ptrdiff_t ldx, const REAL *w, ptrdiff_t ldw,
                                        ptrdiff_t d, const REAL *c, ptrdiff_t ldc, ptrdiff_t degree,
                                        REAL *out, ptrdiff_t ldo, const int stream, const int rows,
                                        const int chains)
{
    VEC t[4][2], u[4][2], even[4][2], odd[4][2];
    const ptrdiff_t top = degree / 2;
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < chains; v++) t[r][v] = (VEC){0};
    for (ptrdiff_t a = 0; a < d; a++)
        for (int v = 0; v < chains; v++) {
            VEC wa = *(const MEM *)(w + a * ldw + v * LANES);
            for (int r = 0; r < rows; r++) t[r][v] += x[r * ldx + a] * wa;
        }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < chains; v++) {
            u[r][v] = (t[r][v] + t[r][v]) * t[r][v] - (REAL)1;
            even[r][v] = NAME(gzk_splat)(c[r * ldc + 2 * top]);
            odd[r][v] = NAME(gzk_splat)(2 * top < degree ? c[r * ldc + degree] : (REAL)0);
        }
    for (ptrdiff_t k = 2 * top - 2; k >= 0; k -= 2)
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < chains; v++) {
                even[r][v] = c[r * ldc + k] + u[r][v] * even[r][v];
                odd[r][v] = c[r * ldc + k + 1] + u[r][v] * odd[r][v];
            }
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < chains; v++)
            NAME(gzk_store)(out + r * ldo + v * LANES, even[r][v] + t[r][v] * odd[r][v], stream);
}

GZK_INLINE void NAME(gzk_halves_rows)(const REAL *x, ptrdiff_t ldx, const REAL *w, ptrdiff_t ldw,
                                      ptrdiff_t d, ptrdiff_t m, const REAL *c, ptrdiff_t ldc,
                                      ptrdiff_t degree, REAL *out, ptrdiff_t ldo, const int stream,
                                      const int rows)
{
    enum { WIDE = GZK_CHAINS == 8 ? 2 : 1 };
    ptrdiff_t j = 0;
    for (; j + WIDE * LANES <= m; j += WIDE * LANES)
        NAME(gzk_halves_chains)(x, ldx, w + j, ldw, d, c, ldc, degree, out + j, ldo, stream, rows,
                                WIDE);
    for (; j < m; j += LANES)
        NAME(gzk_halves_chains)(x, ldx, w + j, ldw, d, c, ldc, degree, out + j, ldo, stream, rows, 1);
}

static void NAME(gzk_halves)(const REAL *x, ptrdiff_t ldx, const REAL *w, ptrdiff_t ldw, ptrdiff_t d,
                             ptrdiff_t m, const REAL *c, ptrdiff_t ldc, ptrdiff_t degree, REAL *out,
                             ptrdiff_t ldo, int stream, int rows)
{
    if (rows == 4 && stream) {
        NAME(gzk_halves_rows)(x, ldx, w, ldw, d, m, c, ldc, degree, out, ldo, 1, 4);
        return;
    }
    if (rows == 4) {
        NAME(gzk_halves_rows)(x, ldx, w, ldw, d, m, c, ldc, degree, out, ldo, 0, 4);
        return;
    }
    for (int r = 0; r < rows; r++)
        NAME(gzk_halves_rows)(x + r * ldx, ldx, w, ldw, d, m, c + r * ldc, ldc, degree, out + r * ldo,
                              ldo, 0, 1);
}

/* Spherical harmonics of LANES points at once, one point a lane. x, rho2 are (d, LANES): the
 * coordinates and the sums of squares up to each; factor, node are (count, LANES). */

/* x <- the points' coordinates transposed; rho2[a] <- x_0^2 + ... + x_a^2. Missing points are 0. */
static void NAME(gzk_load_points)(const REAL *points, ptrdiff_t ld, int count, ptrdiff_t d, REAL *x,
                                  REAL *rho2)
{
    VEC sum = (VEC){0};
    for (ptrdiff_t a = 0; a < d; a++) {
        for (int r = 0; r < LANES; r++) x[a * LANES + r] = r < count ? points[r * ld + a] : (REAL)0;
        VEC xa = *(const MEM *)(x + a * LANES);
        sum += xa * xa;
        *(MEM *)(rho2 + a * LANES) = sum;
    }
}

/* power[2k], power[2k+1] <- Re, Im (x_0 + i x_1)^k for k = 0..degree. */
static void NAME(gzk_powers)(const REAL *x, const REAL *y, REAL *power, ptrdiff_t degree)
{
    VEC a = *(const MEM *)x, b = {0};
    if (y) b = *(const MEM *)y;
    VEC re = NAME(gzk_splat)(1), im = (VEC){0};
    for (ptrdiff_t k = 0; k <= degree; k++) {
        *(MEM *)(power + 2 * k * LANES) = re;
        *(MEM *)(power + (2 * k + 1) * LANES) = im;
        VEC next = re * a - im * b;
        im = re * b + im * a;
        re = next;
    }
}

/* factor[0] <- 1, factor[n] <- up[n] x factor[n-1] - down[n] rho2 factor[n-2] for n = 1..degree;
 * up and down are the columns of steps. */
static void NAME(gzk_factors)(const REAL *x, const REAL *rho2, const REAL *steps, REAL *factor,
                              ptrdiff_t degree)
{
    VEC t = *(const MEM *)x, r = *(const MEM *)rho2;
    VEC before = (VEC){0}, value = NAME(gzk_splat)(1);
    *(MEM *)factor = value;
    for (ptrdiff_t n = 1; n <= degree; n++) {
        VEC next = steps[2 * n] * t * value - steps[2 * n + 1] * r * before;
        before = value;
        value = next;
        *(MEM *)(factor + n * LANES) = value;
    }
}

/* node[i] <- scale[i] power[tree[i, 0]] for the first `powers` nodes, which start every product, then
 * node[i] <- scale[i] factor[tree[i, 0]] node[tree[i, 1]]. */
static void NAME(gzk_nodes)(const REAL *power, const REAL *factor, const ptrdiff_t *tree,
                            const REAL *scale, REAL *node, ptrdiff_t powers, ptrdiff_t count)
{
    for (ptrdiff_t i = 0; i < powers; i++)
        *(MEM *)(node + i * LANES) = scale[i] * *(const MEM *)(power + tree[2 * i] * LANES);
    for (ptrdiff_t i = powers; i < count; i++)
        *(MEM *)(node + i * LANES) = scale[i] * *(const MEM *)(factor + tree[2 * i] * LANES)
                                     * *(const MEM *)(node + tree[2 * i + 1] * LANES);
}

/* v <- the transpose of the LANES x LANES matrix v: log2(LANES) rounds of interleaving. With
 * `paired` the first round is done: v[2i], v[2i+1] interleave rows i and i + LANES/2. */
GZK_INLINE void NAME(gzk_transpose)(VEC *v, const int paired)
{
#if GZK_CAN_SHUFFLE
    for (int step = paired ? 2 : 1; step < LANES; step *= 2) {
        VEC w[LANES];
        for (int i = 0; i < LANES / 2; i++) {
            w[2 * i] = __builtin_shufflevector(v[i], v[i + LANES / 2], CONSTANT(GZK_LO));
            w[2 * i + 1] = __builtin_shufflevector(v[i], v[i + LANES / 2], CONSTANT(GZK_HI));
        }
        for (int i = 0; i < LANES; i++) v[i] = w[i];
    }
#elif LANES > 1
    (void)paired;
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < i; j++) {
            REAL swap = v[i][j];
            v[i][j] = v[j][i];
            v[j][i] = swap;
        }
#else
    (void)v, (void)paired;
#endif
}

/* One column: scale factor node radial, for LANES points; `at` holds where, in elements. */
GZK_INLINE VEC NAME(gzk_column)(const REAL *factor, const REAL *node, const REAL *radial,
                                const int32_t *at, REAL scale)
{
    return scale * *(const MEM *)(radial + at[2])
           * (*(const MEM *)(factor + at[0]) * *(const MEM *)(node + at[1]));
}

/* v[i] <- LANES columns of point i, transposed in registers. */
GZK_INLINE void NAME(gzk_block)(const REAL *factor, const REAL *node, const REAL *radial,
                                const int32_t *at, const REAL *scale, VEC *v)
{
#if GZK_CAN_SHUFFLE
    GZK_UNROLL
    for (int i = 0; i < LANES / 2; i++) {
        const int j = i + LANES / 2;
        VEC a = NAME(gzk_column)(factor, node, radial, at + 3 * i, scale[i]);
        VEC b = NAME(gzk_column)(factor, node, radial, at + 3 * j, scale[j]);
        v[2 * i] = __builtin_shufflevector(a, b, CONSTANT(GZK_LO));
        v[2 * i + 1] = __builtin_shufflevector(a, b, CONSTANT(GZK_HI));
    }
#else
    for (int i = 0; i < LANES; i++)
        v[i] = NAME(gzk_column)(factor, node, radial, at + 3 * i, scale[i]);
#endif
    NAME(gzk_transpose)(v, GZK_CAN_SHUFFLE);
}

/* out (LANES, count) <- the columns of a point beside each other. count is a multiple of LANES. */
static void NAME(gzk_columns_near)(const REAL *factor, const REAL *node, const REAL *radial,
                                   const int32_t *column, const REAL *scale, REAL *out,
                                   ptrdiff_t ldo, ptrdiff_t count)
{
    for (ptrdiff_t c = 0; c < count; c += LANES) {
        VEC v[LANES];
        NAME(gzk_block)(factor, node, radial, column + 3 * c, scale + c, v);
        for (int i = 0; i < LANES; i++) *(MEM *)(out + i * ldo + c) = v[i];
    }
}

/* The same; with `stream` past the cache, two lines of a point at a time, all but their last vectors by
 * way of `near`: stores of one line, each on a page of its own, took 1.4 times as long, and of half a
 * line (AVX2) 4 times. */
static void NAME(gzk_columns)(const REAL *factor, const REAL *node, const REAL *radial,
                              const int32_t *column, const REAL *scale, REAL *out, ptrdiff_t ldo,
                              ptrdiff_t count, int stream)
{
    enum { LAST = 128 / sizeof(VEC) - 1 };
    VEC near[LANES][LAST], v[LANES];
    ptrdiff_t c = 0;
    for (; stream && c + (LAST + 1) * LANES <= count; c += LANES) {
        NAME(gzk_columns_near)(factor, node, radial, column + 3 * c, scale + c, (REAL *)near,
                               LAST * LANES, LAST * LANES);
        REAL *row = out + c;
        c += LAST * LANES;
        NAME(gzk_block)(factor, node, radial, column + 3 * c, scale + c, v);
        for (int i = 0; i < LANES; i++, row += ldo) {
            for (int w = 0; w < LAST; w++) NAME(gzk_store)(row + w * LANES, near[i][w], 1);
            NAME(gzk_store)(row + LAST * LANES, v[i], 1);
        }
    }
    NAME(gzk_columns_near)(factor, node, radial, column + 3 * c, scale + c, out + c, ldo, count - c);
}

/* out (columns, LANES) <- the transpose of rows (count, columns), missing rows 0; ld 0 repeats one row. */
static void NAME(gzk_load_radial)(const REAL *rows, ptrdiff_t ld, int count, ptrdiff_t columns,
                                  REAL *out)
{
    ptrdiff_t c = 0;
#if LANES > 1
    for (; c + LANES <= columns && count == LANES; c += LANES) {
        VEC v[LANES];
        for (int i = 0; i < LANES; i++) v[i] = *(const MEM *)(rows + i * ld + c);
        NAME(gzk_transpose)(v, 0);
        for (int i = 0; i < LANES; i++) *(MEM *)(out + (c + i) * LANES) = v[i];
    }
#endif
    for (; c < columns; c++)
        for (int r = 0; r < LANES; r++) out[c * LANES + r] = r < count ? rows[r * ld + c] : (REAL)0;
}

/* out[j] <- sum_p table[p, j] s^p for p = 0..top and `wide` vectors of columns, in double (Horner). */
GZK_INLINE void NAME(gzk_polynomials_of)(const double *table, double s, ptrdiff_t top, ptrdiff_t ld,
                                         REAL *out, const int wide)
{
    gzk_vec_f64 sum[4];
    for (int w = 0; w < wide; w++)
        sum[w] = *(const gzk_mem_f64 *)(table + top * ld + w * GZK_LANES_F64);
    for (ptrdiff_t p = top - 1; p >= 0; p--)
        for (int w = 0; w < wide; w++)
            sum[w] = sum[w] * s + *(const gzk_mem_f64 *)(table + p * ld + w * GZK_LANES_F64);
    double values[4 * GZK_LANES_F64];
    memcpy(values, sum, wide * sizeof(sum[0]));
    for (int i = 0; i < wide * GZK_LANES_F64; i++) out[i] = (REAL)values[i];
}

/* The same of `count` columns, the last vector with some again. Sums stay in registers: in memory, each
 * step waits for a store. */
static void NAME(gzk_polynomials)(const double *table, double s, ptrdiff_t top, ptrdiff_t count,
                                  REAL *out)
{
    ptrdiff_t j = 0;
    for (; j + 4 * GZK_LANES_F64 <= count; j += 4 * GZK_LANES_F64)
        NAME(gzk_polynomials_of)(table + j, s, top, count, out + j, 4);
    for (; j < count && GZK_LANES_F64 <= count; j += GZK_LANES_F64) {
        if (j + GZK_LANES_F64 > count) j = count - GZK_LANES_F64;
        NAME(gzk_polynomials_of)(table + j, s, top, count, out + j, 1);
    }
    for (; j < count; j++) {
        double value = table[top * count + j];
        for (ptrdiff_t p = top - 1; p >= 0; p--) value = value * s + table[p * count + j];
        out[j] = (REAL)value;
    }
}
