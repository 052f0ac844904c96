/* The operations of hadamard.h for one element type, see element_types.h. */

/* The stages across `count` vectors, a power of two. */
GZK_INLINE void NAME(gzk_butterflies)(VEC *v, const int count)
{
    GZK_UNROLL
    for (int h = count / 2; h >= 1; h /= 2)
        GZK_UNROLL
        for (int i = 0; i < count; i++)
            if (!(i & h)) {
                VEC a = v[i], b = v[i + h];
                v[i] = a + b;
                v[i + h] = a - b;
            }
}

/* The stages within a vector. */
GZK_INLINE VEC NAME(gzk_lanes)(VEC x)
{
#if GZK_CAN_SHUFFLE
#if LANES >= 16
    x = __builtin_shufflevector(x, x, CONSTANT(GZK_SWAP)(8)) + (VEC){CONSTANT(GZK_SIGN)(8)} * x;
#endif
#if LANES >= 8
    x = __builtin_shufflevector(x, x, CONSTANT(GZK_SWAP)(4)) + (VEC){CONSTANT(GZK_SIGN)(4)} * x;
#endif
#if LANES >= 4
    x = __builtin_shufflevector(x, x, CONSTANT(GZK_SWAP)(2)) + (VEC){CONSTANT(GZK_SIGN)(2)} * x;
#endif
    x = __builtin_shufflevector(x, x, CONSTANT(GZK_SWAP)(1)) + (VEC){CONSTANT(GZK_SIGN)(1)} * x;
#elif LANES > 1
    for (int h = 1; h < LANES; h *= 2)
        for (int i = 0; i < LANES; i++)
            if (!(i & h)) {
                REAL a = x[i], b = x[i + h];
                x[i] = a + b;
                x[i + h] = a - b;
            }
#endif
    return x;
}

/* y <- H x for `count` whole vectors. */
GZK_INLINE void NAME(gzk_hadamard_block)(const REAL *x, REAL *y, const int count)
{
    VEC v[GZK_BLOCK];
    GZK_UNROLL
    for (int i = 0; i < count; i++) v[i] = *(const MEM *)(x + i * LANES);
    NAME(gzk_butterflies)(v, count);
    GZK_UNROLL
    for (int i = 0; i < count; i++) *(MEM *)(y + i * LANES) = NAME(gzk_lanes)(v[i]);
}

/* The outermost log2(radix) stages of a row of radix * h elements, h a multiple of LANES. */
GZK_INLINE void NAME(gzk_hadamard_outer)(const REAL *x, REAL *y, ptrdiff_t h, const int radix)
{
    for (ptrdiff_t j = 0; j < h; j += LANES) {
        VEC v[GZK_BLOCK];
        GZK_UNROLL
        for (int i = 0; i < radix; i++) v[i] = *(const MEM *)(x + i * h + j);
        NAME(gzk_butterflies)(v, radix);
        GZK_UNROLL
        for (int i = 0; i < radix; i++) *(MEM *)(y + i * h + j) = v[i];
    }
}

/* y <- H x for a row of n elements, n a power of two; y is x or does not overlap it. */
static void NAME(gzk_hadamard)(const REAL *x, REAL *y, ptrdiff_t n)
{
    if (n < LANES) {
        if (y != x) memcpy(y, x, (size_t)n * sizeof(REAL));
        for (ptrdiff_t h = n / 2; h >= 1; h /= 2)
            for (ptrdiff_t i = 0; i < n; i++)
                if (!(i & h)) {
                    REAL a = y[i], b = y[i + h];
                    y[i] = a + b;
                    y[i + h] = a - b;
                }
        return;
    }
    switch (n / LANES) {
    case 1: NAME(gzk_hadamard_block)(x, y, 1); return;
    case 2: NAME(gzk_hadamard_block)(x, y, 2); return;
    case 4: NAME(gzk_hadamard_block)(x, y, 4); return;
    case 8: NAME(gzk_hadamard_block)(x, y, 8); return;
#if GZK_CHAINS == 8
    case 16: NAME(gzk_hadamard_block)(x, y, 16); return;
#endif
    }
    /* See the head of hadamard.h. */
    if (y != x && (size_t)n * sizeof(REAL) >= 8 * GZK_PAGE && gzk_alias(x, y)) {
        memcpy(y, x, (size_t)n * sizeof(REAL));
        x = y;
    }
    /* Share the stages that are left evenly among as few passes as can be. */
    int left = 0;
    while ((ptrdiff_t)(LANES * GZK_BLOCK) << left < n) left++;
    const int passes = (left + 2) / 3, stages = (left + passes - 1) / passes;
    const ptrdiff_t h = n >> stages;
    if (stages == 1)
        NAME(gzk_hadamard_outer)(x, y, h, 2);
    else if (stages == 2)
        NAME(gzk_hadamard_outer)(x, y, h, 4);
    else
        NAME(gzk_hadamard_outer)(x, y, h, 8);
    for (ptrdiff_t i = 0; i < n; i += h) NAME(gzk_hadamard)(y + i, y + i, h);
}

/* y[j] <- factor[j] x[order[j]]; n is a multiple of LANES. By the gather instructions of AVX-512, which
 * compilers leave aside: a third of Fastfood's time otherwise. */
static void NAME(gzk_permute)(const REAL *x, const int32_t *order, const REAL *factor, REAL *y,
                              ptrdiff_t n)
{
    for (ptrdiff_t j = 0; j < n; j += LANES) {
#if defined(__AVX512F__) && LANES == 16
        VEC v = (VEC)_mm512_i32gather_ps(_mm512_loadu_si512(order + j), x, 4);
#elif defined(__AVX512F__)
        VEC v = (VEC)_mm512_i32gather_pd(_mm256_loadu_si256((const __m256i *)(order + j)), x, 8);
#else
        REAL lanes[LANES];
        for (int i = 0; i < LANES; i++) lanes[i] = x[order[j + i]];
        VEC v = *(const MEM *)lanes;
#endif
        *(MEM *)(y + j) = *(const MEM *)(factor + j) * v;
    }
}
