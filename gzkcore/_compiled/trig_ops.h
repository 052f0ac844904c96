/* The operations of trig.h for one element type, see element_types.h. */

#if defined(__GNUC__)
typedef CONSTANT(GZK_BITS) NAME(gzk_bits) __attribute__((vector_size(LANES * sizeof(REAL)), may_alias));
#else
typedef CONSTANT(GZK_BITS) NAME(gzk_bits);
#endif

/* The nearest integers, ties to even, for any h. */
GZK_INLINE VEC NAME(gzk_rint)(VEC h)
{
#if defined(__AVX512F__) && IS_FLOAT
    return (VEC)_mm512_roundscale_ps((__m512)h, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__AVX512F__)
    return (VEC)_mm512_roundscale_pd((__m512d)h, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__AVX2__) && IS_FLOAT
    return (VEC)_mm256_round_ps((__m256)h, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__AVX2__)
    return (VEC)_mm256_round_pd((__m256d)h, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__SSE4_1__) && IS_FLOAT
    return (VEC)_mm_round_ps((__m128)h, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__SSE4_1__)
    return (VEC)_mm_round_pd((__m128d)h, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
#elif defined(__GNUC__)
    VEC k;
    for (int i = 0; i < LANES; i++) k[i] = IS_FLOAT ? (REAL)rintf((float)h[i]) : (REAL)rint((double)h[i]);
    return k;
#else
    return IS_FLOAT ? (REAL)rintf((float)h) : (REAL)rint((double)h);
#endif
}

/* r <- h - rint(h); returns an integer whose lowest bit is that of rint(h). */
GZK_INLINE NAME(gzk_bits) NAME(gzk_reduce)(VEC h, VEC *r)
{
#if defined(__AVX512DQ__) && IS_FLOAT /* a conversion out of range gives an even number: right */
    *r = h - NAME(gzk_rint)(h);
    return (NAME(gzk_bits))_mm512_cvtps_epi32((__m512)h);
#elif defined(__AVX512DQ__)
    *r = h - NAME(gzk_rint)(h);
    return (NAME(gzk_bits))_mm512_cvtpd_epi64((__m512d)h);
#else
    h -= 2 * NAME(gzk_rint)(h / 2); /* whole turns first: what is left is at most 1 */
    VEC shifted = h + CONSTANT(GZK_MAGIC);
    NAME(gzk_bits) k;
    memcpy(&k, &shifted, sizeof k);
    *r = h - (shifted - CONSTANT(GZK_MAGIC));
    return k;
#endif
}

/* cos and sin of `count` vectors at once, since each polynomial is a chain. */
GZK_INLINE void NAME(gzk_cos_sin_chains)(const REAL *h, REAL *cos_out, REAL *sin_out, VEC scale,
                                         const int stream, const int count)
{
#if IS_FLOAT
    static const REAL C[] = {-4.9347954f, 4.0584474f, -1.3320625f, 0.2200072f};
    static const REAL S[] = {3.1415927f, -5.167714f, 2.5501258f, -0.598517f, 0.07802041f};
#else
    static const REAL C[] = {
        -4.9348022005446775846, 4.0587121264165444278, -1.3352627688446643164,
        0.23533063014598448224, -0.025806888862656624007, 0.0019295568177841683418,
        -0.00010456780708941913979, 4.1507499109691353214e-6,
    };
    static const REAL S[] = {
        3.1415926535897901958, -5.1677127800493853332, 2.5501640398445717177,
        -0.59926452849585785892, 0.082145875596480183762, -0.0073703474691170201331,
        0.00046594206899784771822, -0.000021085689851608959146,
    };
#endif
    enum { NC = sizeof C / sizeof C[0], NS = sizeof S / sizeof S[0] };
    VEC r[4], s[4], c[4], q[4], factor[4];
    for (int v = 0; v < count; v++) {
        NAME(gzk_bits) sign, bits;
        sign = NAME(gzk_reduce)(*(const MEM *)(h + v * LANES), &r[v]) << CONSTANT(GZK_SIGN_SHIFT);
        memcpy(&bits, &scale, sizeof bits);
        bits ^= sign; /* the scale with the sign (-1)^k */
        memcpy(&factor[v], &bits, sizeof bits);
        s[v] = r[v] * r[v];
        c[v] = NAME(gzk_splat)(C[NC - 1]);
        q[v] = NAME(gzk_splat)(S[NS - 1]);
    }
    GZK_UNROLL
    for (int j = NC - 2; j >= 0; j--)
        for (int v = 0; v < count; v++) c[v] = C[j] + s[v] * c[v];
    GZK_UNROLL
    for (int j = NS - 2; j >= 0; j--)
        for (int v = 0; v < count; v++) q[v] = S[j] + s[v] * q[v];
    for (int v = 0; v < count; v++) {
        c[v] = 1 + s[v] * c[v];
        NAME(gzk_store)(cos_out + v * LANES, c[v] * factor[v], stream);
        NAME(gzk_store)(sin_out + v * LANES, q[v] * (r[v] * factor[v]), stream);
    }
}

/* The same of fewer vectors than fill the chains. */
GZK_INLINE void NAME(gzk_cos_sin_few)(const REAL *h, REAL *cos_out, REAL *sin_out, VEC scale,
                                      ptrdiff_t count)
{
    if (count == 1)
        NAME(gzk_cos_sin_chains)(h, cos_out, sin_out, scale, 0, 1);
    else if (count == 2)
        NAME(gzk_cos_sin_chains)(h, cos_out, sin_out, scale, 0, 2);
    else if (count == 3)
        NAME(gzk_cos_sin_chains)(h, cos_out, sin_out, scale, 0, 3);
}

/* cos_out[j] <- scale cos(pi half_turns[j]), sin_out[j] <- scale sin(pi half_turns[j]) for j < n; with
 * `stream` past the cache from j = head on, where both are on a vector's boundary. What is before
 * that and what is left behind full chains are computed together. */
GZK_INLINE void NAME(gzk_cos_sin_from)(const REAL *half_turns, REAL *cos_out, REAL *sin_out,
                                       ptrdiff_t n, REAL scale, const int stream, ptrdiff_t head)
{
    enum { WIDE = GZK_CHAINS / 2, STEP = WIDE * LANES };
    const VEC factor = NAME(gzk_splat)(scale);
    REAL h[2 * STEP], c[2 * STEP], s[2 * STEP];
    const ptrdiff_t end = head + (n - head) / STEP * STEP, ends = head + n - end;
    for (ptrdiff_t j = head; j < end; j += STEP)
        NAME(gzk_cos_sin_chains)(half_turns + j, cos_out + j, sin_out + j, factor, stream, WIDE);
    if (ends == 0) return;
    const size_t before = (size_t)head * sizeof(REAL), behind = (size_t)(n - end) * sizeof(REAL);
    memcpy(h, half_turns, before);
    memcpy(h + head, half_turns + end, behind);
    ptrdiff_t j = 0, whole = (ends + LANES - 1) / LANES;
    memset(h + ends, 0, (size_t)(whole * LANES - ends) * sizeof(REAL));
    for (; whole >= WIDE; whole -= WIDE, j += STEP)
        NAME(gzk_cos_sin_chains)(h + j, c + j, s + j, factor, 0, WIDE);
    NAME(gzk_cos_sin_few)(h + j, c + j, s + j, factor, whole);
    memcpy(cos_out, c, before);
    memcpy(sin_out, s, before);
    gzk_copy(cos_out + end, c + head, (ptrdiff_t)behind, stream);
    gzk_copy(sin_out + end, s + head, (ptrdiff_t)behind, stream);
}

/* The same for rows that may start anywhere: where cosines and sines come to a boundary one before the
 * other, they go past the cache by way of a buffer. */
static void NAME(gzk_cos_sin)(const REAL *half_turns, REAL *cos_out, REAL *sin_out, ptrdiff_t n,
                              REAL scale, int stream)
{
    enum { ROOM = 512 };
    const ptrdiff_t head = (ptrdiff_t)(-(uintptr_t)cos_out & (GZK_BYTES - 1)) / (ptrdiff_t)sizeof(REAL);
    if (!stream || n < head) {
        NAME(gzk_cos_sin_from)(half_turns, cos_out, sin_out, n, scale, 0, 0);
        return;
    }
    if (gzk_on_boundary(cos_out + head) && gzk_on_boundary(sin_out + head)) {
        NAME(gzk_cos_sin_from)(half_turns, cos_out, sin_out, n, scale, 1, head);
        return;
    }
    REAL c[ROOM], s[ROOM];
    for (ptrdiff_t j = 0; j < n; j += ROOM) {
        const ptrdiff_t count = n - j < ROOM ? n - j : ROOM;
        NAME(gzk_cos_sin_from)(half_turns + j, c, s, count, scale, 0, 0);
        gzk_copy(cos_out + j, c, count * (ptrdiff_t)sizeof(REAL), 1);
        gzk_copy(sin_out + j, s, count * (ptrdiff_t)sizeof(REAL), 1);
    }
}
