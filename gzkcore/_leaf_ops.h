/* The leaf operations for one element type; included by _leaf.h with REAL, VEC, LANES and NAME set. */

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
            for (int v = 0; v < WIDE; v++) wa[v] = *(const VEC *)(w + a * ldw + j + v * LANES);
            for (int r = 0; r < rows; r++)
                for (int v = 0; v < WIDE; v++) acc[r][v] += x[r * ldx + a] * wa[v];
        }
        for (int r = 0; r < rows; r++)
            for (int v = 0; v < WIDE; v++) *(VEC *)(t + r * ldt + j + v * LANES) = acc[r][v];
    }
    for (; j < m; j += LANES)
        for (int r = 0; r < rows; r++) {
            VEC acc = (VEC){0};
            for (ptrdiff_t a = 0; a < d; a++) acc += x[r * ldx + a] * *(const VEC *)(w + a * ldw + j);
            *(VEC *)(t + r * ldt + j) = acc;
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

/* t[j] <- sum_k c[k] p_k(t[j]),  p_0 = 1, p_1 = t, p_(k+1) = t p_k - b[k] p_(k-1)  (Clenshaw).
 * `chains` vectors of points are in flight, since each step waits for the one before.
 * Two fused operations per degree; the roles of the two accumulators alternate, so nothing moves. */
GZK_INLINE void NAME(gzk_clenshaw_chains)(REAL *t, const REAL *c, const REAL *b, ptrdiff_t degree,
                                          const int chains)
{
    VEC x[GZK_CHAINS], even[GZK_CHAINS], odd[GZK_CHAINS];
    ptrdiff_t k = degree;
    for (int v = 0; v < chains; v++) {
        x[v] = *(const VEC *)(t + v * LANES);
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
            *(VEC *)(t + v * LANES) = rest + x[v] * even[v];
        }
        return;
    }
    for (int v = 0; v < chains; v++) *(VEC *)(t + v * LANES) = even[v];
}

static void NAME(gzk_clenshaw)(REAL *t, ptrdiff_t m, const REAL *c, const REAL *b, ptrdiff_t degree)
{
    ptrdiff_t j = 0;
    for (; j + GZK_CHAINS * LANES <= m; j += GZK_CHAINS * LANES)
        NAME(gzk_clenshaw_chains)(t + j, c, b, degree, GZK_CHAINS);
    for (; j < m; j += LANES) NAME(gzk_clenshaw_chains)(t + j, c, b, degree, 1);
}

/* t[j] <- sum_k c[k] t[j]^k  (Horner): one fused operation per degree. */
GZK_INLINE void NAME(gzk_horner_chains)(REAL *t, const REAL *c, ptrdiff_t degree, const int chains)
{
    VEC x[GZK_CHAINS], sum[GZK_CHAINS];
    for (int v = 0; v < chains; v++) {
        x[v] = *(const VEC *)(t + v * LANES);
        sum[v] = NAME(gzk_splat)(c[degree]);
    }
    for (ptrdiff_t k = degree - 1; k >= 0; k--)
        for (int v = 0; v < chains; v++) sum[v] = c[k] + x[v] * sum[v];
    for (int v = 0; v < chains; v++) *(VEC *)(t + v * LANES) = sum[v];
}

static void NAME(gzk_horner)(REAL *t, ptrdiff_t m, const REAL *c, ptrdiff_t degree)
{
    ptrdiff_t j = 0;
    for (; j + GZK_CHAINS * LANES <= m; j += GZK_CHAINS * LANES)
        NAME(gzk_horner_chains)(t + j, c, degree, GZK_CHAINS);
    for (; j < m; j += LANES) NAME(gzk_horner_chains)(t + j, c, degree, 1);
}
