/* What clang lacks of gcc's built-in functions; included before everything when the fuzzer is built. */
#include <stdint.h>

typedef uint32_t four_lanes __attribute__((vector_size(16)));

static inline four_lanes shuffle_two(four_lanes a, four_lanes b, four_lanes from)
{
    uint32_t all[8] = {a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]};
    return (four_lanes){all[from[0] & 7], all[from[1] & 7], all[from[2] & 7], all[from[3] & 7]};
}

#define __builtin_shuffle(a, b, ...) shuffle_two(a, b, __VA_ARGS__)
