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
typedef BITS NAME(gzk_int); /* as wide as the element */
#undef BITS

#if defined(__GNUC__)
#define MASK(condition) (condition)
#else
#define MASK(condition) (-(condition))
#endif

#if defined(__AVX512F__) && IS_FLOAT
#define LIMITED(op) (VEC)_mm512_##op##_ps((__m512)x, _mm512_set1_ps(limit))
#elif defined(__AVX512F__)
#define LIMITED(op) (VEC)_mm512_##op##_pd((__m512d)x, _mm512_set1_pd(limit))
#elif defined(__AVX__) && IS_FLOAT
#define LIMITED(op) (VEC)_mm256_##op##_ps((__m256)x, _mm256_set1_ps(limit))
#elif defined(__AVX__)
#define LIMITED(op) (VEC)_mm256_##op##_pd((__m256d)x, _mm256_set1_pd(limit))
#elif defined(__SSE2__) && IS_FLOAT
#define LIMITED(op) (VEC)_mm_##op##_ps((__m128)x, _mm_set1_ps(limit))
#elif defined(__SSE2__)
#define LIMITED(op) (VEC)_mm_##op##_pd((__m128d)x, _mm_set1_pd(limit))
#endif

GZK_INLINE VEC NAME(gzk_at_least)(VEC x, REAL limit)
{
#if defined(LIMITED)
    return LIMITED(max);
#elif defined(__GNUC__)
    for (int i = 0; i < LANES; i++) x[i] = x[i] > limit ? x[i] : limit;
    return x;
#else
    return x > limit ? x : limit;
#endif
}

GZK_INLINE VEC NAME(gzk_at_most)(VEC x, REAL limit)
{
#if defined(LIMITED)
    return LIMITED(min);
#elif defined(__GNUC__)
    for (int i = 0; i < LANES; i++) x[i] = x[i] < limit ? x[i] : limit;
    return x;
#else
    return x < limit ? x : limit;
#endif
}
#undef LIMITED

/* 2^s, within 2 units in the last place, and 0 far below. With AVX-512 s - floor(s) is one operation,
 * and so is the power; else it is s - rint(s), and coefficients are those for an interval about 0. */
GZK_INLINE VEC NAME(gzk_exp2)(VEC s)
{
#if IS_FLOAT
    enum { DEGREE = 6 };
#if defined(__AVX512DQ__)
    static const REAL C[] = {1.0f, 0.693147182f, 0.240227208f, 0.0554960221f, 0.0096521955f,
                             0.00126921665f, 0.000208179146f};
#else
    static const REAL C[] = {1.0f, 0.693147182f, 0.240226507f, 0.0555035695f, 0.00961808302f,
                             0.00133908633f, 0.000154531634f};
#endif
#else
    enum { DEGREE = 11 };
#if defined(__AVX512DQ__)
    static const REAL C[] = {
        1.0, 0.69314718055994529, 0.24022650695909673, 0.055504108664980671, 0.0096181291051517567,
        0.001333355834393728, 0.00015403521219107733, 1.5252998899728418e-05, 1.3210583477765189e-06,
        1.0236023803275179e-07, 6.6344458662514139e-09, 6.1230929168263867e-10,
    };
#else
    static const REAL C[] = {
        1.0, 0.6931471805599453, 0.24022650695910097, 0.0555041086648216, 0.009618129107606888,
        0.0013333558146416936, 0.0001540353044173605, 1.525273382983612e-05, 1.321544258792169e-06,
        1.0178062445845774e-07, 7.072585949269223e-09, 4.4549605981865186e-10,
    };
#endif
#endif
#if defined(__AVX512DQ__) && IS_FLOAT
    VEC f = (VEC)_mm512_reduce_ps((__m512)s, _MM_FROUND_TO_NEG_INF), p;
#elif defined(__AVX512DQ__)
    VEC f = (VEC)_mm512_reduce_pd((__m512d)s, _MM_FROUND_TO_NEG_INF), p;
#else
    s = NAME(gzk_at_least)(s, CONSTANT(LEAST_EXPONENT));
    VEC shifted = s + CONSTANT(MAGIC), whole = shifted - CONSTANT(MAGIC);
    VEC f = s - whole, p;
#endif
    p = NAME(gzk_splat)(C[DEGREE]);
    GZK_UNROLL
    for (int k = DEGREE - 1; k >= 0; k--) p = p * f + C[k];
#if defined(__AVX512DQ__) && IS_FLOAT
    return (VEC)_mm512_scalef_ps((__m512)p, (__m512)s);
#elif defined(__AVX512DQ__)
    return (VEC)_mm512_scalef_pd((__m512d)p, (__m512d)s);
#else
    NAME(gzk_ints) bits, exponent;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << CONSTANT(MANTISSA_BITS);
    memcpy(&p, &bits, sizeof p);
    return p;
#endif
}

/* Minus the square root of q > 0. */
GZK_INLINE VEC NAME(gzk_minus_root)(VEC q)
{
#if defined(__AVX512F__) && IS_FLOAT /* an estimate and a Newton step: a third of the time of a root */
    VEC y = (VEC)_mm512_rsqrt14_ps((__m512)q), r = q * y;
    return (r * -0.5f) * (1.0f - r * y) - r;
#elif defined(__AVX512F__)
    VEC y = (VEC)_mm512_rsqrt14_pd((__m512d)q), r = q * y, h = y * 0.5, e = 0.5 - r * h;
    r += r * e;
    h += h * e;
    return -r * (0.5 - r * h) - r;
#elif defined(__AVX__) && IS_FLOAT
    return -(VEC)_mm256_sqrt_ps((__m256)q);
#elif defined(__AVX__)
    return -(VEC)_mm256_sqrt_pd((__m256d)q);
#elif defined(__SSE2__) && IS_FLOAT
    return -(VEC)_mm_sqrt_ps((__m128)q);
#elif defined(__SSE2__)
    return -(VEC)_mm_sqrt_pd((__m128d)q);
#elif defined(__GNUC__)
    for (int i = 0; i < LANES; i++) q[i] = -(REAL)sqrt((double)q[i]);
    return q;
#else
    return -(REAL)sqrt((double)q);
#endif
}

/* Horner's rule with coefficients from the constant on. */
GZK_INLINE VEC NAME(gzk_polynomial)(VEC t, const REAL *c, const ptrdiff_t degree)
{
    VEC s = NAME(gzk_splat)(c[degree]);
    for (ptrdiff_t k = degree - 1; k >= 0; k--) s = s * t + c[k];
    return s;
}

GZK_INLINE VEC NAME(gzk_gather)(const REAL *c, NAME(gzk_ints) at)
{
#if defined(__AVX512F__) && IS_FLOAT
    return (VEC)_mm512_i32gather_ps((__m512i)at, c, 4);
#elif defined(__AVX512F__)
    return (VEC)_mm512_i64gather_pd((__m512i)at, c, 8);
#elif defined(__AVX2__) && IS_FLOAT
    return (VEC)_mm256_i32gather_ps(c, (__m256i)at, 4);
#elif defined(__AVX2__)
    return (VEC)_mm256_i64gather_pd(c, (__m256i)at, 8);
#elif defined(__GNUC__)
    VEC found;
    for (int i = 0; i < LANES; i++) found[i] = c[at[i]];
    return found;
#else
    return c[at];
#endif
}

/* Horner's rule with the coefficients of the piece that t lies in. */
GZK_INLINE VEC NAME(gzk_piece)(VEC t, const gzk_factor *factor)
{
    const NAME(gzk_int) shift = (NAME(gzk_int))factor->shift, pieces = (NAME(gzk_int))factor->pieces;
    const NAME(gzk_int) within = ((NAME(gzk_int))1 << shift) - 1;
    const REAL middle = 1 + (REAL)(within + 1) / ((REAL)2 * ((NAME(gzk_int))1 << CONSTANT(MANTISSA_BITS)));
    const REAL *c = (const REAL *)factor->c;
    VEC rest = (REAL)factor->fold - t, place;
    NAME(gzk_ints) bits, at, beyond = MASK(rest < t), above;
    memcpy(&bits, &t, sizeof bits);
    memcpy(&at, &rest, sizeof at);
    bits = (bits & ~beyond) | (at & beyond);
    at = (bits >> shift) - (NAME(gzk_int))factor->base; /* below 0 where t is, from rounding */
    at &= ~MASK(at < 0);
    above = MASK(at >= pieces);
    at = (at & ~above) | ((pieces - 1) & above);
    at += beyond & pieces;
    bits = (bits & within) | CONSTANT(ONE_BITS);
    memcpy(&place, &bits, sizeof place);
    place -= middle;
    VEC value = NAME(gzk_gather)(c + factor->degree * 2 * factor->pieces, at);
    for (ptrdiff_t k = factor->degree - 1; k >= 0; k--)
        value = value * place + NAME(gzk_gather)(c + k * 2 * factor->pieces, at);
    return value;
}

/* A factor as a function of t; `profile` is a constant where this is inlined. */
GZK_INLINE VEC NAME(gzk_profile)(VEC t, const int profile, const gzk_factor *factor)
{
    if (profile == GZK_EXPONENTIAL) return NAME(gzk_exp2)(t);
    if (profile == GZK_POLYNOMIAL)
        return NAME(gzk_polynomial)(t, (const REAL *)factor->c, factor->degree);
    if (profile == GZK_TABLE) return NAME(gzk_piece)(t, factor);
    t = NAME(gzk_at_least)(t, CONSTANT(LEAST_SQUARE));
    if (profile == GZK_TABLE_SLOPE) return NAME(gzk_piece)(t, factor) / t;
    VEC minus_r = NAME(gzk_minus_root)(t);
    if (profile == GZK_SPHERICAL) {
        VEC rest = NAME(gzk_at_least)(1 + minus_r, 0);
        return rest * rest * (1 - minus_r * (REAL)0.5);
    }
    if (profile == GZK_COMPACT) {
        VEC rest = NAME(gzk_at_least)(1 + minus_r, 0), power = rest * rest;
        power *= power;
        return power * power * NAME(gzk_polynomial)(rest, (const REAL *)factor->c, factor->degree);
    }
    if (profile == GZK_SPHERICAL_SLOPE) return NAME(gzk_at_least)(1 - t, 0) * (REAL)-1.5 / minus_r;
    VEC decay = NAME(gzk_exp2)(minus_r * (REAL)1.4426950408889634);
    if (profile == GZK_MATERN_12) return decay;
    if (profile == GZK_STEEP) return -decay / minus_r;
    if (profile == GZK_MATERN_32) return decay - decay * minus_r;
    if (profile == GZK_MATERN_52) return decay * (t * (REAL)(1.0 / 3) + (1 - minus_r));
    return decay * NAME(gzk_polynomial)(-minus_r, (const REAL *)factor->c, factor->degree);
}

/* t, but for profiles with a root no more than is enough for them to be 0: an infinite t has none. */
GZK_INLINE VEC NAME(gzk_bounded)(VEC t, const int profile)
{
    if (profile == GZK_EXPONENTIAL || profile == GZK_POLYNOMIAL || profile == GZK_TABLE
        || profile == GZK_TABLE_SLOPE)
        return t;
    return NAME(gzk_at_most)(t, CONSTANT(MOST_SQUARE));
}

GZK_INLINE VEC NAME(gzk_magnitude)(VEC x)
{
    NAME(gzk_ints) bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= CONSTANT(MAGNITUDE_BITS);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Write a factor for GZK_STRIP rows and some columns of a tile: from `from` to before `end`, groups of
 * GZK_ABREAST * LANES. u, x (dim, GZK_TILE): coordinates by column; a, b (GZK_TILE); out (GZK_STRIP,
 * GZK_TILE). */
GZK_INLINE void NAME(gzk_strip)(const REAL *u, const REAL *a, const REAL *x, const REAL *b,
                                const gzk_factor *factor, const int metric, const int profile,
                                const ptrdiff_t from, const ptrdiff_t end, REAL *out)
{
    const ptrdiff_t dim = factor->dim;
    const REAL sign = profile == GZK_EXPONENTIAL ? -1 : 1;
    for (ptrdiff_t i = 0; i < GZK_STRIP; i += GZK_ROWS)
        for (ptrdiff_t j = from; j < end; j += GZK_ABREAST * LANES) {
            VEC t[GZK_ROWS][GZK_ABREAST], near[GZK_ABREAST];
            GZK_UNROLL
            for (int r = 0; r < GZK_ROWS; r++)
                GZK_UNROLL
                for (int v = 0; v < GZK_ABREAST; v++) {
                    t[r][v] = (VEC){0};
                    if (metric == GZK_PRODUCT) t[r][v] = a[i + r] + *(const MEM *)(b + j + v * LANES);
                }
            for (ptrdiff_t k = 0; k < dim; k++) {
                GZK_UNROLL
                for (int v = 0; v < GZK_ABREAST; v++)
                    near[v] = *(const MEM *)(x + k * GZK_TILE + j + v * LANES);
                GZK_UNROLL
                for (int r = 0; r < GZK_ROWS; r++) {
                    const REAL far = u[k * GZK_TILE + i + r];
                    GZK_UNROLL
                    for (int v = 0; v < GZK_ABREAST; v++) {
                        if (metric == GZK_PRODUCT) {
                            t[r][v] += far * near[v];
                        } else {
                            VEC apart = far - near[v];
                            if (metric == GZK_DIFFERENCE) t[r][v] += sign * apart * apart;
                            else t[r][v] += sign * NAME(gzk_magnitude)(apart);
                        }
                    }
                }
            }
            GZK_UNROLL
            for (int r = 0; r < GZK_ROWS; r++)
                GZK_UNROLL
                for (int v = 0; v < GZK_ABREAST; v++) {
                    if (metric != GZK_PRODUCT || profile == GZK_MATERN)
                        t[r][v] = NAME(gzk_bounded)(t[r][v], profile);
                    *(MEM *)(out + (i + r) * GZK_TILE + j + v * LANES)
                        = NAME(gzk_profile)(t[r][v], profile, factor);
                }
        }
}

/* wi[r, lane] += the parts of sum_j k[r, j] vj[j] by lane, and, if `both`, wj[j] += sum_r k[r, j] vi[r],
 * for columns from `from` to before `end`. */
GZK_INLINE void NAME(gzk_multiply)(const REAL *k, const REAL *vj, REAL *wi, const REAL *vi, REAL *wj,
                                   const int both, const ptrdiff_t from, const ptrdiff_t end)
{
    VEC s[GZK_STRIP];
    GZK_UNROLL
    for (int r = 0; r < GZK_STRIP; r++) s[r] = *(const MEM *)(wi + r * LANES);
    for (ptrdiff_t j = from; j < end; j += LANES) {
        VEC v = *(const MEM *)(vj + j), w = v;
        if (both) w = *(const MEM *)(wj + j);
        GZK_UNROLL
        for (int r = 0; r < GZK_STRIP; r++) {
            VEC row = *(const MEM *)(k + r * GZK_TILE + j);
            s[r] += row * v;
            if (both) w += vi[r] * row;
        }
        if (both) *(MEM *)(wj + j) = w;
    }
    GZK_UNROLL
    for (int r = 0; r < GZK_STRIP; r++) *(MEM *)(wi + r * LANES) = s[r];
}

/* The same for `width` vectors at once, a multiple of LANES: vi, wi (GZK_STRIP, width), vj, wj (GZK_TILE, width). */
GZK_INLINE void NAME(gzk_multiply_many)(const REAL *k, const REAL *vj, REAL *wi, const REAL *vi, REAL *wj,
                                        ptrdiff_t width, const int both, const ptrdiff_t from,
                                        const ptrdiff_t end)
{
    for (ptrdiff_t q = 0; q < width; q += LANES) {
        VEC s[GZK_STRIP], left[GZK_STRIP];
        GZK_UNROLL
        for (int r = 0; r < GZK_STRIP; r++) {
            s[r] = *(const MEM *)(wi + r * width + q);
            left[r] = s[r];
            if (both) left[r] = *(const MEM *)(vi + r * width + q);
        }
        for (ptrdiff_t j = from; j < end; j++) {
            VEC v = *(const MEM *)(vj + j * width + q), w = v;
            if (both) w = *(const MEM *)(wj + j * width + q);
            GZK_UNROLL
            for (int r = 0; r < GZK_STRIP; r++) {
                REAL value = k[r * GZK_TILE + j];
                s[r] += value * v;
                if (both) w += value * left[r];
            }
            if (both) *(MEM *)(wj + j * width + q) = w;
        }
        GZK_UNROLL
        for (int r = 0; r < GZK_STRIP; r++) *(MEM *)(wi + r * width + q) = s[r];
    }
}

#define GZK_STRIP_OF(metric, profile) \
    static void NAME(gzk_strip_##metric##profile)(const REAL *u, const REAL *a, const REAL *x, \
        const REAL *b, const gzk_factor *factor, REAL *out) \
    { NAME(gzk_strip)(u, a, x, b, factor, metric, profile, 0, GZK_TILE, out); }
GZK_STRIPS(GZK_STRIP_OF)
#undef GZK_STRIP_OF
typedef void (*NAME(gzk_strip_function))(const REAL *, const REAL *, const REAL *, const REAL *,
                                         const gzk_factor *, REAL *);

/* The function that writes strips of this metric and profile; NULL if there is none. */
static NAME(gzk_strip_function) NAME(gzk_strip_function_of)(int metric, int profile)
{
#define GZK_CASE(m, p) if (metric == m && profile == p) return NAME(gzk_strip_##m##p);
    GZK_STRIPS(GZK_CASE)
#undef GZK_CASE
    return NULL;
}

/* u = x + shift, for one coordinate of a tile. */
static void NAME(gzk_shift)(const REAL *x, REAL shift, REAL *u)
{
    for (ptrdiff_t i = 0; i < GZK_TILE; i += LANES) *(MEM *)(u + i) = *(const MEM *)(x + i) + shift;
}

/* Write what PRODUCT needs beside coordinates, for a tile of rows (u, which it changes) and one of
 * columns: a (GZK_TILE) and b (GZK_TILE). */
static void NAME(gzk_expand)(const gzk_factor *factor, REAL *u, REAL *a, const REAL *x, REAL *b)
{
    const REAL sign = factor->profile == GZK_EXPONENTIAL ? -1 : 1;
    for (ptrdiff_t i = 0; i < GZK_TILE; i += LANES) {
        VEC far = {0}, near = {0};
        if (!factor->of_distances) far += (REAL)factor->offset;
        for (ptrdiff_t k = 0; factor->of_distances && k < factor->dim; k++) {
            VEC v = *(const MEM *)(u + k * GZK_TILE + i), w = *(const MEM *)(x + k * GZK_TILE + i);
            far += sign * v * v;
            near += sign * w * w;
            *(MEM *)(u + k * GZK_TILE + i) = -2 * sign * v;
        }
        *(MEM *)(a + i) = far;
        *(MEM *)(b + i) = near;
    }
}

/* How many factors from here on are Matern kernels of one smoothness by differences; 1 if it is none. */
static ptrdiff_t NAME(gzk_alike)(const gzk_factor *factors, ptrdiff_t count)
{
    const int profile = factors->profile, metric = factors->metric;
    ptrdiff_t run = 1;
    if (metric == GZK_DIFFERENCE && (profile == GZK_MATERN_32 || profile == GZK_MATERN_52))
        while (run < count && factors[run].profile == profile && factors[run].metric == metric) run++;
    return run;
}

/* Write the product of such factors for a strip: of GZK_TOGETHER at a time one power, times the product
 * of their polynomials, which is less than e^(the sum of their r) and doesn't overflow. */
static void NAME(gzk_together)(const gzk_factor *factors, ptrdiff_t count, const REAL *u, const REAL *x,
                               REAL *out)
{
    const int smooth = factors->profile == GZK_MATERN_52;
    for (ptrdiff_t i = 0; i < GZK_STRIP; i++)
        for (ptrdiff_t j = 0; j < GZK_TILE; j += GZK_ABREAST * LANES) {
            VEC value[GZK_ABREAST], rest[GZK_ABREAST], sum[GZK_ABREAST];
            for (ptrdiff_t f = 0; f < count; f++) {
                const ptrdiff_t first = factors[f].first, end = first + factors[f].dim;
                const int begins = f % GZK_TOGETHER == 0;
                const int ends = f == count - 1 || f % GZK_TOGETHER == GZK_TOGETHER - 1;
                VEC t[GZK_ABREAST], r[GZK_ABREAST];
                memset(t, 0, sizeof t);
                for (ptrdiff_t k = first; k < end; k++)
                    GZK_UNROLL
                    for (int v = 0; v < GZK_ABREAST; v++) {
                        r[v] = u[k * GZK_TILE + i] - *(const MEM *)(x + k * GZK_TILE + j + v * LANES);
                        t[v] += r[v] * r[v];
                    }
                GZK_UNROLL
                for (int v = 0; v < GZK_ABREAST; v++) {
                    t[v] = NAME(gzk_at_most)(t[v], CONSTANT(MOST_SQUARE)); /* an infinite one has no root */
                    if (end - first == 1) r[v] = NAME(gzk_magnitude)(r[v]);
                    else r[v] = -NAME(gzk_minus_root)(NAME(gzk_at_least)(t[v], CONSTANT(LEAST_SQUARE)));
                    r[v] = NAME(gzk_at_most)(r[v], GZK_MOST_ROOT);
                    VEC own = 1 + r[v];
                    if (smooth) own += r[v] * r[v] * (REAL)(1.0 / 3);
                    sum[v] = begins ? r[v] : sum[v] + r[v];
                    rest[v] = begins ? own : rest[v] * own;
                    if (ends) {
                        own = rest[v] * NAME(gzk_exp2)(sum[v] * (REAL)-1.4426950408889634);
                        value[v] = f < GZK_TOGETHER ? own : value[v] * own;
                    }
                }
            }
            GZK_UNROLL
            for (int v = 0; v < GZK_ABREAST; v++) *(MEM *)(out + i * GZK_TILE + j + v * LANES) = value[v];
        }
}

/* Write the product of `count` factors for a strip of rows from row i on; u, x (all columns, GZK_TILE),
 * a, b (count, GZK_TILE). `spare` and out have room for a strip. */
static void NAME(gzk_values)(const gzk_factor *factors, ptrdiff_t count, ptrdiff_t i, const REAL *u,
                             const REAL *a, const REAL *x, const REAL *b, REAL *spare, REAL *out)
{
    for (ptrdiff_t f = 0, run; f < count; f += run) {
        const gzk_factor *factor = factors + f;
        const ptrdiff_t first = factor->first * GZK_TILE;
        REAL *here = f ? spare : out;
        run = NAME(gzk_alike)(factor, count - f);
        if (run == 1)
            NAME(gzk_strip_function_of)(factor->metric, factor->profile)(
                u + first + i, a + f * GZK_TILE + i, x + first, b + f * GZK_TILE, factor, here);
        else
            NAME(gzk_together)(factor, run, u + i, x, here);
        if (f)
            for (ptrdiff_t j = 0; j < GZK_STRIP * GZK_TILE; j++) out[j] *= spare[j];
    }
}

/* The least and the largest of some coordinates. */
GZK_INLINE void NAME(gzk_extent)(const REAL *x, const ptrdiff_t count, REAL *low, REAL *high)
{
    *low = *high = x[0];
    for (ptrdiff_t i = 1; i < count; i++) {
        *low = x[i] < *low ? x[i] : *low;
        *high = x[i] > *high ? x[i] : *high;
    }
}

/* Multiply one tile of a kernel that is 0 from r = 1 on: of each strip the columns that may be nearer. */
GZK_INLINE void NAME(gzk_compact_tile)(const gzk_factor *factor, const REAL *u, const REAL *x,
                                       const REAL *vj, REAL *wi, const REAL *vi, REAL *wj,
                                       ptrdiff_t width, const int both, ptrdiff_t rows, REAL *buffer)
{
    enum { GROUP = GZK_ABREAST * LANES, GROUPS = GZK_TILE / GROUP };
    REAL low[GZK_NEAR_COLUMNS][GROUPS], high[GZK_NEAR_COLUMNS][GROUPS], least, most;
    const ptrdiff_t dim = factor->dim < GZK_NEAR_COLUMNS ? factor->dim : GZK_NEAR_COLUMNS;
    for (ptrdiff_t k = 0; k < dim; k++)
        for (ptrdiff_t g = 0; g < GROUPS; g++)
            NAME(gzk_extent)(x + k * GZK_TILE + g * GROUP, GROUP, &low[k][g], &high[k][g]);
    for (ptrdiff_t i = 0; i < rows; i += GZK_STRIP) {
        REAL apart[GROUPS] = {0};
        ptrdiff_t from = GROUPS, end = 0;
        for (ptrdiff_t k = 0; k < dim; k++) {
            NAME(gzk_extent)(u + k * GZK_TILE + i, GZK_STRIP, &least, &most);
            for (ptrdiff_t g = 0; g < GROUPS; g++) {
                REAL above = low[k][g] - most, below = least - high[k][g], gap = above > below ? above : below;
                apart[g] += gap > 0 ? gap * gap : 0;
            }
        }
        for (ptrdiff_t g = 0; g < GROUPS; g++)
            if (apart[g] < 1) {
                from = g < from ? g : from;
                end = g + 1;
            }
        if (from >= end) continue;
        from *= GROUP, end *= GROUP;
        NAME(gzk_strip)(u + i, u, x, x, factor, GZK_DIFFERENCE, GZK_COMPACT, from, end, buffer);
        if (width == 1)
            NAME(gzk_multiply)(buffer, vj, wi + i * LANES, vi + (both ? i : 0), wj, both, from, end);
        else
            NAME(gzk_multiply_many)(buffer, vj, wi + i * width, vi + (both ? i * width : 0), wj, width, both,
                                    from, end);
    }
}

/* Multiply the first rows of one tile: with width 1, wi (GZK_TILE, LANES) parts by lane, else (GZK_TILE,
 * width). */
static void NAME(gzk_tile)(const gzk_factor *factors, ptrdiff_t count, const REAL *u, const REAL *a,
                           const REAL *x, const REAL *b, const REAL *vj, REAL *wi, const REAL *vi,
                           REAL *wj, ptrdiff_t width, int both, ptrdiff_t rows, REAL *buffer)
{
    if (count == 1 && factors->profile == GZK_COMPACT) {
        const ptrdiff_t first = factors->first * GZK_TILE;
        if (both)
            NAME(gzk_compact_tile)(factors, u + first, x + first, vj, wi, vi, wj, width, 1, rows, buffer);
        else
            NAME(gzk_compact_tile)(factors, u + first, x + first, vj, wi, vi, wj, width, 0, rows, buffer);
        return;
    }
    for (ptrdiff_t i = 0; i < rows; i += GZK_STRIP) {
        NAME(gzk_values)(factors, count, i, u, a, x, b, buffer + GZK_STRIP * GZK_TILE, buffer);
        if (width == 1 && both)
            NAME(gzk_multiply)(buffer, vj, wi + i * LANES, vi + i, wj, 1, 0, GZK_TILE);
        else if (width == 1)
            NAME(gzk_multiply)(buffer, vj, wi + i * LANES, vi, wj, 0, 0, GZK_TILE);
        else if (both)
            NAME(gzk_multiply_many)(buffer, vj, wi + i * width, vi + i * width, wj, width, 1, 0, GZK_TILE);
        else
            NAME(gzk_multiply_many)(buffer, vj, wi + i * width, vi, wj, width, 0, 0, GZK_TILE);
    }
}

/* sums[i] += the sum of the lanes of wi[i], in double. */
static void NAME(gzk_add_lanes)(const REAL *wi, double *sums)
{
    for (ptrdiff_t i = 0; i < GZK_TILE; i += LANES) {
        VEC v[LANES];
        REAL total[LANES];
        for (int l = 0; l < LANES; l++) v[l] = *(const MEM *)(wi + (i + l) * LANES);
        NAME(gzk_transpose)(v, 0);
        GZK_UNROLL
        for (int half = LANES / 2; half; half /= 2)
            GZK_UNROLL
            for (int l = 0; l < half; l++) v[l] += v[l + half];
        memcpy(total, v, sizeof total);
        for (int l = 0; l < LANES; l++) sums[i + l] += total[l];
    }
}

/* q[r, j] = <left[r], right[:, j]> for a strip: left (GZK_STRIP, width), right (width, GZK_TILE). */
GZK_INLINE void NAME(gzk_inner)(const REAL *left, const REAL *right, ptrdiff_t width, REAL *q)
{
    for (ptrdiff_t r = 0; r < GZK_STRIP; r++)
        for (ptrdiff_t j = 0; j < GZK_TILE; j += LANES) {
            VEC s = {0};
            for (ptrdiff_t p = 0; p < width; p++)
                s += left[r * width + p] * *(const MEM *)(right + p * GZK_TILE + j);
            *(MEM *)(q + r * GZK_TILE + j) = s;
        }
}

/* Add to sums (dim) of a factor what a strip of weights g, from row i on, times the derivative of t with
 * respect to the logarithm of each length comes to, as far as it is no part of g. */
static void NAME(gzk_add_slopes)(const gzk_factor *factor, ptrdiff_t i, const REAL *u, const REAL *x,
                                 const REAL *g, double *sums)
{
    for (ptrdiff_t k = 0; k < factor->dim; k++) {
        const REAL *far = u + (factor->first + k) * GZK_TILE + i;
        const REAL *near = x + (factor->first + k) * GZK_TILE;
        VEC s = {0};
        for (ptrdiff_t r = 0; r < GZK_STRIP; r++)
            for (ptrdiff_t j = 0; j < GZK_TILE; j += LANES) {
                VEC y = *(const MEM *)(near + j), w = *(const MEM *)(g + r * GZK_TILE + j);
                VEC apart = far[r] - y;
                if (factor->metric == GZK_PRODUCT) s += w * (far[r] * y);
                else if (factor->metric == GZK_DIFFERENCE) s += w * apart * apart;
                else s += w * NAME(gzk_magnitude)(apart);
            }
        REAL part[LANES];
        memcpy(part, &s, sizeof part);
        for (int l = 0; l < LANES; l++) sums[k] += part[l];
    }
}

/* The derivative, with respect to the logarithm of each length, of a tile's sum of <left, right> times
 * the kernel: `slopes` are the derivatives of `factors` by t. left (GZK_TILE, width), right
 * (width, GZK_TILE). Adds to sums (all columns); `buffer` has room for three strips. */
static void NAME(gzk_tile_slopes)(const gzk_factor *factors, const gzk_factor *slopes, ptrdiff_t count,
                                  const REAL *u, const REAL *a, const REAL *x, const REAL *b,
                                  const REAL *left, const REAL *right, ptrdiff_t width, double *sums,
                                  REAL *buffer)
{
    REAL *q = buffer, *values = q + GZK_STRIP * GZK_TILE;
    for (ptrdiff_t i = 0; i < GZK_TILE; i += GZK_STRIP)
        for (ptrdiff_t f = 0; f < count; f++) {
            NAME(gzk_inner)(left + i * width, right, width, q);
            for (ptrdiff_t g = 0; g < count; g++) {
                NAME(gzk_values)((g == f ? slopes : factors) + g, 1, i, u, a + g * GZK_TILE, x,
                                 b + g * GZK_TILE, NULL, values);
                for (ptrdiff_t j = 0; j < GZK_STRIP * GZK_TILE; j++) q[j] *= values[j];
            }
            NAME(gzk_add_slopes)(slopes + f, i, u, x, q, sums + slopes[f].first);
        }
}
#undef MASK
