/* Denormal numbers count as 0: arithmetic with them takes a hundred times as long. */
#ifndef GZK_DENORMALS_H
#define GZK_DENORMALS_H

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* They are 0 from here on; returns what `gzk_set_denormals` restores. */
static unsigned gzk_flush_denormals(void)
{
#if defined(__SSE2__)
    unsigned before = _mm_getcsr();
    _mm_setcsr(before | 0x8040);
    return before;
#else
    return 0;
#endif
}

static void gzk_set_denormals(unsigned before)
{
#if defined(__SSE2__)
    _mm_setcsr(before);
#else
    (void)before;
#endif
}

#endif
