/* The operations of products.h for one element type; included there. */

#if IS_FLOAT
#define BITS int32_t
#else
#define BITS int64_t
#endif
#if defined(__GNUC__)
typedef BITS NAME(gzk_ints) __attribute__((vector_size(LANES * sizeof(REAL)), may_alias));
#else
typedef BITS NAME(gzk_ints);
#endif
#undef BITS

GZK_INLINE VEC NAME(gzk_at_least)(VEC x, REAL least)
{
#if defined(__AVX512F__) && IS_FLOAT
    return (VEC)_mm512_max_ps((__m512)x, _mm512_set1_ps(least));
#elif defined(__AVX512F__)
    return (VEC)_mm512_max_pd((__m512d)x, _mm512_set1_pd(least));
#elif defined(__AVX__) && IS_FLOAT
    return (VEC)_mm256_max_ps((__m256)x, _mm256_set1_ps(least));
#elif defined(__AVX__)
    return (VEC)_mm256_max_pd((__m256d)x, _mm256_set1_pd(least));
#elif defined(__SSE2__) && IS_FLOAT
    return (VEC)_mm_max_ps((__m128)x, _mm_set1_ps(least));
#elif defined(__SSE2__)
    return (VEC)_mm_max_pd((__m128d)x, _mm_set1_pd(least));
#elif defined(__GNUC__)
    for (int i = 0; i < LANES; i++) x[i] = x[i] > least ? x[i] : least;
    return x;
#else
    return x > least ? x : least;
#endif
}

/* 2^s, within 2 units in the last place; 0, or nearly, far below: a minimax polynomial of 2^(s - rint(s)). */
GZK_INLINE VEC NAME(gzk_exp2)(VEC s)
{
#if IS_FLOAT
    enum { DEGREE = 6 };
    static const REAL C[] = {1.0f, 0.693147182f, 0.240226462f, 0.0555032287f, 0.00961870057f,
                             0.00134089959f, 0.000154711993f};
#else
    enum { DEGREE = 11 };
    static const REAL C[] = {
        1.0, 0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888,
        0.0013333558146416936, 0.0001540353044173605, 1.525273382983612e-05, 1.321544258792169e-06,
        1.0178062445845774e-07, 7.072585949269223e-09, 4.4549605981865186e-10,
    };
#endif
    s = NAME(gzk_at_least)(s, CONSTANT(LEAST_EXPONENT)); /* a denormal would take a hundred times as long */
#if defined(__AVX512F__) && IS_FLOAT
    VEC whole = (VEC)_mm512_roundscale_ps((__m512)s, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__AVX512F__)
    VEC whole = (VEC)_mm512_roundscale_pd((__m512d)s, _MM_FROUND_TO_NEAREST_INT);
#else
    VEC shifted = s + CONSTANT(MAGIC), whole = shifted - CONSTANT(MAGIC);
#endif
    VEC f = s - whole, p;
    p = NAME(gzk_splat)(C[DEGREE]);
    GZK_UNROLL
    for (int k = DEGREE - 1; k >= 0; k--) p = p * f + C[k];
#if defined(__AVX512F__) && IS_FLOAT
    return (VEC)_mm512_scalef_ps((__m512)p, (__m512)whole);
#elif defined(__AVX512F__)
    return (VEC)_mm512_scalef_pd((__m512d)p, (__m512d)whole);
#else
    NAME(gzk_ints) bits, exponent;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << CONSTANT(MANTISSA_BITS);
    memcpy(&p, &bits, sizeof p);
    return p;
#endif
}

/* The square root of q > 0. */
GZK_INLINE VEC NAME(gzk_root)(VEC q)
{
#if defined(__AVX512F__) && IS_FLOAT /* an estimate and a Newton step: a third of the time of a root */
    VEC y = (VEC)_mm512_rsqrt14_ps((__m512)q), r = q * y;
    return r + (r * 0.5f) * (1.0f - r * y);
#elif defined(__AVX512F__)
    VEC y = (VEC)_mm512_rsqrt14_pd((__m512d)q), r = q * y, h = y * 0.5, e = 0.5 - r * h;
    r += r * e;
    h += h * e;
    return r + r * (0.5 - r * h);
#elif defined(__AVX__) && IS_FLOAT
    return (VEC)_mm256_sqrt_ps((__m256)q);
#elif defined(__AVX__)
    return (VEC)_mm256_sqrt_pd((__m256d)q);
#elif defined(__SSE2__) && IS_FLOAT
    return (VEC)_mm_sqrt_ps((__m128)q);
#elif defined(__SSE2__)
    return (VEC)_mm_sqrt_pd((__m128d)q);
#elif defined(__GNUC__)
    for (int i = 0; i < LANES; i++) q[i] = (REAL)sqrt((double)q[i]);
    return q;
#else
    return (REAL)sqrt((double)q);
#endif
}

/* Horner's rule with coefficients from the constant on. */
GZK_INLINE VEC NAME(gzk_polynomial)(VEC t, const REAL *c, const ptrdiff_t degree)
{
    VEC s = NAME(gzk_splat)(c[degree]);
    for (ptrdiff_t k = degree - 1; k >= 0; k--) s = s * t + c[k];
    return s;
}

/* The kernel as a function of t; `profile` is a constant where this is inlined. */
GZK_INLINE VEC NAME(gzk_profile)(VEC t, const int profile, const REAL *c, const ptrdiff_t degree)
{
    if (profile == GZK_EXPONENTIAL) return NAME(gzk_exp2)(t);
    if (profile == GZK_POLYNOMIAL) return NAME(gzk_polynomial)(t, c, degree);
    VEC q = NAME(gzk_at_least)(t * (REAL)-2, CONSTANT(LEAST_SQUARE)), r = NAME(gzk_root)(q);
    if (profile == GZK_SPHERICAL) {
        VEC rest = NAME(gzk_at_least)(1 - r, 0);
        return rest * rest * (r * (REAL)0.5 + 1);
    }
    VEC decay = NAME(gzk_exp2)(r * (REAL)-1.4426950408889634);
    if (profile == GZK_MATERN_12) return decay;
    if (profile == GZK_MATERN_32) return decay * r + decay;
    if (profile == GZK_MATERN_52) return decay * (q * (REAL)(1.0 / 3) + (r + 1));
    return decay * NAME(gzk_polynomial)(r, c, degree);
}

GZK_INLINE VEC NAME(gzk_magnitude)(VEC x)
{
    NAME(gzk_ints) bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= CONSTANT(MAGNITUDE_BITS);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Write the kernel of GZK_STRIP rows with all columns of a tile.
 * u, x (d, GZK_TILE): coordinates by column; a, b (GZK_TILE); out (GZK_STRIP, GZK_TILE). */
GZK_INLINE void NAME(gzk_strip)(const REAL *u, const REAL *a, const REAL *x, const REAL *b, ptrdiff_t d,
                                const int metric, const int profile, const REAL *c, ptrdiff_t degree,
                                REAL *out)
{
    for (ptrdiff_t j = 0; j < GZK_TILE; j += GZK_ABREAST * LANES) {
        VEC t[GZK_STRIP][GZK_ABREAST], near[GZK_ABREAST];
        GZK_UNROLL
        for (int r = 0; r < GZK_STRIP; r++)
            GZK_UNROLL
            for (int v = 0; v < GZK_ABREAST; v++)
            {
                t[r][v] = (VEC){0};
                if (metric == GZK_PRODUCT) t[r][v] = a[r] + *(const VEC *)(b + j + v * LANES);
            }
        for (ptrdiff_t k = 0; k < d; k++) {
            GZK_UNROLL
            for (int v = 0; v < GZK_ABREAST; v++) near[v] = *(const VEC *)(x + k * GZK_TILE + j + v * LANES);
            GZK_UNROLL
            for (int r = 0; r < GZK_STRIP; r++)
                GZK_UNROLL
                for (int v = 0; v < GZK_ABREAST; v++) {
                    if (metric == GZK_PRODUCT) {
                        t[r][v] += u[k * GZK_TILE + r] * near[v];
                    } else {
                        VEC apart = u[k * GZK_TILE + r] - near[v];
                        if (metric == GZK_DIFFERENCE) t[r][v] -= apart * apart;
                        else t[r][v] -= NAME(gzk_magnitude)(apart);
                    }
                }
        }
        GZK_UNROLL
        for (int r = 0; r < GZK_STRIP; r++)
            GZK_UNROLL
            for (int v = 0; v < GZK_ABREAST; v++) {
                if (metric == GZK_DIFFERENCE) t[r][v] *= (REAL)0.5;
                *(VEC *)(out + r * GZK_TILE + j + v * LANES) = NAME(gzk_profile)(t[r][v], profile, c, degree);
            }
    }
}

/* wi[r, lane] += the parts of sum_j k[r, j] vj[j] by lane, and, if `both`, wj[j] += sum_r k[r, j] vi[r]. */
GZK_INLINE void NAME(gzk_multiply)(const REAL *k, const REAL *vj, REAL *wi, const REAL *vi, REAL *wj,
                                   const int both)
{
    VEC s[GZK_STRIP];
    GZK_UNROLL
    for (int r = 0; r < GZK_STRIP; r++) s[r] = *(const VEC *)(wi + r * LANES);
    for (ptrdiff_t j = 0; j < GZK_TILE; j += LANES) {
        VEC v = *(const VEC *)(vj + j), w = v;
        if (both) w = *(const VEC *)(wj + j);
        GZK_UNROLL
        for (int r = 0; r < GZK_STRIP; r++) {
            VEC row = *(const VEC *)(k + r * GZK_TILE + j);
            s[r] += row * v;
            if (both) w += vi[r] * row;
        }
        if (both) *(VEC *)(wj + j) = w;
    }
    GZK_UNROLL
    for (int r = 0; r < GZK_STRIP; r++) *(VEC *)(wi + r * LANES) = s[r];
}

/* The same for `width` vectors at once, a multiple of LANES: vi, wi (GZK_STRIP, width), vj, wj (GZK_TILE, width). */
GZK_INLINE void NAME(gzk_multiply_many)(const REAL *k, const REAL *vj, REAL *wi, const REAL *vi, REAL *wj,
                                        ptrdiff_t width, const int both)
{
    for (ptrdiff_t q = 0; q < width; q += LANES) {
        VEC s[GZK_STRIP], left[GZK_STRIP];
        GZK_UNROLL
        for (int r = 0; r < GZK_STRIP; r++) {
            s[r] = *(const VEC *)(wi + r * width + q);
            left[r] = s[r];
            if (both) left[r] = *(const VEC *)(vi + r * width + q);
        }
        for (ptrdiff_t j = 0; j < GZK_TILE; j++) {
            VEC v = *(const VEC *)(vj + j * width + q), w = v;
            if (both) w = *(const VEC *)(wj + j * width + q);
            GZK_UNROLL
            for (int r = 0; r < GZK_STRIP; r++) {
                REAL value = k[r * GZK_TILE + j];
                s[r] += value * v;
                if (both) w += value * left[r];
            }
            if (both) *(VEC *)(wj + j * width + q) = w;
        }
        GZK_UNROLL
        for (int r = 0; r < GZK_STRIP; r++) *(VEC *)(wi + r * width + q) = s[r];
    }
}

#define GZK_STRIP_OF(metric, profile) \
    static void NAME(gzk_strip_##metric##profile)(const REAL *u, const REAL *a, const REAL *x, \
        const REAL *b, ptrdiff_t d, const REAL *c, ptrdiff_t degree, REAL *out) \
    { NAME(gzk_strip)(u, a, x, b, d, metric, profile, c, degree, out); }
GZK_STRIPS(GZK_STRIP_OF)
#undef GZK_STRIP_OF
typedef void (*NAME(gzk_strip_function))(const REAL *, const REAL *, const REAL *, const REAL *, ptrdiff_t,
                                         const REAL *, ptrdiff_t, REAL *);

/* The function that writes strips of this metric and profile; NULL if there is none. */
static NAME(gzk_strip_function) NAME(gzk_strip_function_of)(int metric, int profile)
{
#define GZK_CASE(m, p) if (metric == m && profile == p) return NAME(gzk_strip_##m##p);
    GZK_STRIPS(GZK_CASE)
#undef GZK_CASE
    return NULL;
}

/* One tile: with width 1, wi (GZK_TILE, LANES) parts by lane, else (GZK_TILE, width). */
static void NAME(gzk_tile)(NAME(gzk_strip_function) strip, const REAL *u, const REAL *a, const REAL *x,
                           const REAL *b, ptrdiff_t d, const REAL *c, ptrdiff_t degree, const REAL *vj,
                           REAL *wi, const REAL *vi, REAL *wj, ptrdiff_t width, int both, REAL *buffer)
{
    for (ptrdiff_t i = 0; i < GZK_TILE; i += GZK_STRIP) {
        strip(u + i, a + i, x, b, d, c, degree, buffer);
        if (width == 1 && both)
            NAME(gzk_multiply)(buffer, vj, wi + i * LANES, vi + i, wj, 1);
        else if (width == 1)
            NAME(gzk_multiply)(buffer, vj, wi + i * LANES, vi, wj, 0);
        else if (both)
            NAME(gzk_multiply_many)(buffer, vj, wi + i * width, vi + i * width, wj, width, 1);
        else
            NAME(gzk_multiply_many)(buffer, vj, wi + i * width, vi, wj, width, 0);
    }
}

/* acc[i] += the sum of the lanes of wi[i], in double. */
static void NAME(gzk_add_lanes)(const REAL *wi, double *acc)
{
    for (ptrdiff_t i = 0; i < GZK_TILE; i++) {
        REAL part[LANES];
        memcpy(part, wi + i * LANES, sizeof part);
        GZK_UNROLL
        for (int half = LANES / 2; half; half /= 2)
            for (int l = 0; l < half; l++) part[l] += part[l + half];
        acc[i] += part[0];
    }
}
