/* Which level of the architecture the program may have built upon: libraries choose their code by what the
 * processor offers when they are loaded, so an image needs at least the best machine it has been on. */
#include "cpu.h"

#include "abi.h"

#include <cpuid.h>

enum { BASIC_LEAF = 1, FEATURE_LEAF = 7 };
#define EXTENDED_LEAF 0x80000001u

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

/* Parts of the extended state (XCR0). */
enum { STATE_X87 = 1, STATE_SSE = 2, STATE_AVX = 4, STATE_MASKS = 0x20, STATE_UPPER = 0x40, STATE_MORE = 0x80 };

/* 1 to 4, as the processor supplement of the ABI counts. The kernel's part is the saved state's features. */
int cpu_level(void)
{
    struct leaf basic = leaf(BASIC_LEAF), more = leaf(FEATURE_LEAF), extended = leaf(EXTENDED_LEAF);
    if (!has(basic.c, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | bit_CMPXCHG16B) ||
        !has(extended.c, bit_LAHF_LM))
        return 1;
    if (!has(basic.c, bit_AVX | bit_F16C | bit_FMA | bit_MOVBE | bit_OSXSAVE) ||
        !has(more.b, bit_AVX2 | bit_BMI | bit_BMI2) || !has(extended.c, bit_LZCNT) || !has(cpu_state(), STATE_SSE | STATE_AVX))
        return 2;
    if (!has(more.b, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL) ||
        !has(cpu_state(), STATE_SSE | STATE_AVX | STATE_MASKS | STATE_UPPER | STATE_MORE))
        return 3;
    return 4;
}

/* The extended state that the kernel saves in frames (XCR0). */
unsigned cpu_state(void)
{
    unsigned low, high;
    if (!has(leaf(BASIC_LEAF).c, bit_OSXSAVE))
        return STATE_X87 | STATE_SSE;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}
