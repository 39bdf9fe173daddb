/* Which level of the architecture the program may have built upon: libraries choose their code by what the
 * processor offers when they are loaded, so an image needs at least the best machine it has been on. */
#include "runtime.h"

#include <cpuid.h>

struct leaf {
    unsigned a, b, c, d;
};

static struct leaf leaf(unsigned number)
{
    struct leaf l = {0, 0, 0, 0};
    __get_cpuid_count(number, 0, &l.a, &l.b, &l.c, &l.d);
    return l;
}

static bool has(unsigned have, unsigned needed)
{
    return (have & needed) == needed;
}

/* 1 to 4, as the processor supplement of the ABI counts. The kernel's part is the saved state's features. */
int cpu_level(void)
{
    struct leaf basic = leaf(1), more = leaf(7), extended = leaf(0x80000001);
    if (!has(basic.c, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B) ||
        !has(extended.c, bit_LAHF_LM))
        return 1;
    if (!has(basic.c, bit_AVX | bit_F16C | bit_FMA | bit_MOVBE | bit_OSXSAVE) ||
        !has(more.b, bit_AVX2 | bit_BMI | bit_BMI2) || !has(extended.c, bit_LZCNT) || !has(cpu_state(), 6))
        return 2;
    if (!has(more.b, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL) ||
        !has(cpu_state(), 0xe6))
        return 3;
    return 4;
}

/* The extended state that the kernel saves in frames (XCR0). */
unsigned cpu_state(void)
{
    unsigned low, high;
    if (!has(leaf(1).c, bit_OSXSAVE))
        return 3;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
