/* The operations of sketch.h for one element type, see element_types.h. */

/* acc[place + the sum of hashes, modulo m] += value times the product of signed x, over all tuples of
 * `factors` columns: `factors` CountSketches of d vectors each, convolved. */
static void NAME(gzk_convolve)(const REAL *x, const int32_t *hashes, const int8_t *signs, ptrdiff_t d,
                               ptrdiff_t factors, ptrdiff_t m, ptrdiff_t place, const VEC *value,
                               REAL *acc)
{
    const VEC outer = *value;
    for (ptrdiff_t j = 0; j < d; j++) {
        const VEC product = outer * ((REAL)signs[j] * *(const MEM *)(x + j * LANES));
        const ptrdiff_t at = (place + hashes[j]) & (m - 1);
        if (factors == 1)
            *(MEM *)(acc + at * LANES) += product;
        else
            NAME(gzk_convolve)(x, hashes + d, signs + d, d, factors - 1, m, at, &product, acc);
    }
}

static void NAME(gzk_count)(const REAL *x, const int32_t *hashes, const int8_t *signs, ptrdiff_t d,
                            ptrdiff_t factors, ptrdiff_t m, REAL *acc)
{
    const VEC zero = {0}, one = zero + (REAL)1;
    NAME(gzk_convolve)(x, hashes, signs, d, factors, m, 0, &one, acc);
}

/* The transform of block b, of n complex numbers. */
static void NAME(gzk_fourier)(REAL *z, ptrdiff_t n, ptrdiff_t b, const REAL *roots)
{
    MEM *a = (MEM *)z;
    if (n < 2) return;
    const REAL rr = roots[2 * b], ri = roots[2 * b + 1];
    if (n == 2) {
        const VEC re = rr * a[2] - ri * a[3], im = rr * a[3] + ri * a[2];
        a[2] = a[0] - re, a[3] = a[1] - im;
        a[0] += re, a[1] += im;
        return;
    }
    const REAL sr = roots[4 * b], si = roots[4 * b + 1];
    const ptrdiff_t h = n / 4;
    MEM *a1 = a + 2 * h, *a2 = a + 4 * h, *a3 = a + 6 * h;
    for (ptrdiff_t j = 0; j < 2 * h; j += 2) {
        const VEC r2 = rr * a2[j] - ri * a2[j + 1], i2 = rr * a2[j + 1] + ri * a2[j];
        const VEC r3 = rr * a3[j] - ri * a3[j + 1], i3 = rr * a3[j + 1] + ri * a3[j];
        const VEC ur = a[j] + r2, ui = a[j + 1] + i2, vr = a[j] - r2, vi = a[j + 1] - i2;
        const VEC xr = a1[j] + r3, xi = a1[j + 1] + i3, yr = a1[j] - r3, yi = a1[j + 1] - i3;
        const VEC sxr = sr * xr - si * xi, sxi = sr * xi + si * xr;
        const VEC syr = sr * yr - si * yi, syi = sr * yi + si * yr;
        a[j] = ur + sxr, a[j + 1] = ui + sxi;
        a1[j] = ur - sxr, a1[j + 1] = ui - sxi;
        a2[j] = vr - syi, a2[j + 1] = vi + syr; /* the root of an odd block is i times its neighbour's */
        a3[j] = vr + syi, a3[j + 1] = vi - syr;
    }
    if (h > 1)
        for (int i = 0; i < 4; i++) NAME(gzk_fourier)(z + 2 * i * h * LANES, h, 4 * b + i, roots);
}

/* n times its inverse. */
static void NAME(gzk_fourier_back)(REAL *z, ptrdiff_t n, ptrdiff_t b, const REAL *roots)
{
    MEM *a = (MEM *)z;
    if (n < 2) return;
    const REAL rr = roots[2 * b], ri = roots[2 * b + 1];
    if (n == 2) {
        const VEC re = a[0] - a[2], im = a[1] - a[3];
        a[0] += a[2], a[1] += a[3];
        a[2] = rr * re + ri * im, a[3] = rr * im - ri * re;
        return;
    }
    const REAL sr = roots[4 * b], si = roots[4 * b + 1];
    const ptrdiff_t h = n / 4;
    if (h > 1)
        for (int i = 0; i < 4; i++)
            NAME(gzk_fourier_back)(z + 2 * i * h * LANES, h, 4 * b + i, roots);
    MEM *a1 = a + 2 * h, *a2 = a + 4 * h, *a3 = a + 6 * h;
    for (ptrdiff_t j = 0; j < 2 * h; j += 2) {
        const VEC ur = a[j] + a1[j], ui = a[j + 1] + a1[j + 1];
        const VEC pr = a[j] - a1[j], pi = a[j + 1] - a1[j + 1];
        const VEC vr = a2[j] + a3[j], vi = a2[j + 1] + a3[j + 1];
        const VEC qr = a2[j + 1] - a3[j + 1], qi = a3[j] - a2[j];
        const VEC xr = sr * pr + si * pi, xi = sr * pi - si * pr;
        const VEC yr = sr * qr + si * qi, yi = sr * qi - si * qr;
        const VEC dr = ur - vr, di = ui - vi, er = xr - yr, ei = xi - yi;
        a[j] = ur + vr, a[j + 1] = ui + vi;
        a1[j] = xr + yr, a1[j + 1] = xi + yi;
        a2[j] = rr * dr + ri * di, a2[j + 1] = rr * di - ri * dr;
        a3[j] = rr * er + ri * ei, a3[j + 1] = rr * ei - ri * er;
    }
}

GZK_INLINE void NAME(gzk_times)(MEM *p, VEC re, VEC im)
{
    const VEC a = p[0], b = p[1];
    p[0] = a * re - b * im;
    p[1] = a * im + b * re;
}

/* product <- the transform of (1, 0, ..., 0), m numbers. */
static void NAME(gzk_ones)(REAL *product, ptrdiff_t m)
{
    const VEC zero = {0}, one = zero + (REAL)1;
    MEM *p = (MEM *)product;
    for (ptrdiff_t q = 0; q < m; q++) p[q] = q % 2 == 0 || q == 1 ? one : zero;
}

/* product *= the transform of the m real numbers whose M complex ones have the transform z. Place 0
 * has the two real values, at frequencies 0 and M. */
static void NAME(gzk_multiply)(const REAL *z, ptrdiff_t m, const REAL *roots, REAL *product)
{
    const MEM *a = (const MEM *)z;
    MEM *p = (MEM *)product;
    if (m == 1) {
        p[0] *= a[0];
        return;
    }
    p[0] *= a[0] + a[1];
    p[1] *= a[0] - a[1];
    if (m > 2) NAME(gzk_times)(p + 2, a[2], a[3]);
    for (ptrdiff_t block = 2; block < m / 2; block *= 2)
        for (ptrdiff_t q = block; q < block + block / 2; q++) {
            const ptrdiff_t at = 2 * q, to = 2 * (3 * block - 1 - q); /* the frequencies k and M - k */
            const REAL rr = (REAL)0.5 * roots[at], ri = (REAL)0.5 * roots[at + 1];
            const VEC er = (REAL)0.5 * (a[at] + a[to]), ei = (REAL)0.5 * (a[at + 1] - a[to + 1]);
            const VEC hr = a[at + 1] + a[to + 1], hi = a[to] - a[at];
            const VEC tr = rr * hr - ri * hi, ti = rr * hi + ri * hr;
            NAME(gzk_times)(p + at, er + tr, ei + ti);
            NAME(gzk_times)(p + to, er - tr, ti - ei);
        }
}

/* From the transform of m real numbers to twice that of their M complex ones, in place. */
static void NAME(gzk_join)(REAL *product, ptrdiff_t m, const REAL *roots)
{
    MEM *p = (MEM *)product;
    if (m == 1) return;
    const VEC sum = p[0] + p[1], difference = p[0] - p[1];
    p[0] = sum, p[1] = difference;
    if (m > 2) p[2] += p[2], p[3] += p[3];
    for (ptrdiff_t block = 2; block < m / 2; block *= 2)
        for (ptrdiff_t q = block; q < block + block / 2; q++) {
            const ptrdiff_t at = 2 * q, to = 2 * (3 * block - 1 - q);
            const REAL rr = roots[at], ri = roots[at + 1];
            const VEC er = p[at] + p[to], ei = p[at + 1] - p[to + 1];
            const VEC dr = p[at] - p[to], di = p[at + 1] + p[to + 1];
            const VEC hr = rr * dr + ri * di, hi = rr * di - ri * dr;
            p[at] = er - hi, p[at + 1] = ei + hr;
            p[to] = er + hi, p[to + 1] = hr - ei;
        }
}

/* out (count, m) <- scale times the transpose of x (m, LANES). */
static void NAME(gzk_store_rows)(const REAL *x, ptrdiff_t m, REAL scale, REAL *out, ptrdiff_t ldo,
                                 int count, int stream)
{
    ptrdiff_t c = 0;
    for (; c + LANES <= m; c += LANES) {
        VEC v[LANES];
        for (int i = 0; i < LANES; i++) v[i] = scale * *(const MEM *)(x + (c + i) * LANES);
        NAME(gzk_transpose)(v, 0);
        for (int i = 0; i < count; i++) NAME(gzk_store)(out + i * ldo + c, v[i], stream);
    }
    for (; c < m; c++)
        for (int i = 0; i < count; i++) out[i * ldo + c] = scale * x[c * LANES + i];
}
