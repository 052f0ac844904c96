/* Which levels of the x86-64 psABI this processor runs, by the features that tell them apart. Used
   where kernels are chosen (cpu.pyx), and where they are compiled for this machine (meson.build). */
#ifndef GZK_LEVELS_H
#define GZK_LEVELS_H

static int gzk_supports(int level) {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    int v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    int v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
             && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    int v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
             && __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq")
             && __builtin_cpu_supports("avx512vl");
    return level == 2 ? v2 : level == 3 ? v3 : level == 4 ? v4 : 0;
#else
    return 0;
#endif
}

#endif
