/* SHA-256 (FIPS 180-4), with the processor's own instructions where it has them. */
#include "sha256.h"

#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

static const uint32_t round_words[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static inline uint32_t turned(uint32_t word, int bits)
{
    return word >> bits | word << (32 - bits);
}

static void add_blocks_plainly(uint32_t state[8], const uint8_t *at, size_t blocks)
{
    for (; blocks; blocks--, at += SHA256_BLOCK) {
        uint32_t w[64], s[8];
        for (int i = 0; i < 16; i++) {
            memcpy(&w[i], at + 4 * i, 4);
            w[i] = __builtin_bswap32(w[i]);
        }
        for (int i = 16; i < 64; i++)
            w[i] = w[i - 16] + (turned(w[i - 15], 7) ^ turned(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
                   (turned(w[i - 2], 17) ^ turned(w[i - 2], 19) ^ w[i - 2] >> 10);
        memcpy(s, state, sizeof s);
        for (int i = 0; i < 64; i++) {
            uint32_t one = s[7] + (turned(s[4], 6) ^ turned(s[4], 11) ^ turned(s[4], 25)) +
                           ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_words[i] + w[i];
            uint32_t two = (turned(s[0], 2) ^ turned(s[0], 13) ^ turned(s[0], 22)) +
                           ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            memmove(s + 1, s, 7 * sizeof *s);
            s[4] += one;
            s[0] = one + two;
        }
        for (int i = 0; i < 8; i++)
            state[i] += s[i];
    }
}

#ifdef __x86_64__
__attribute__((target("sha,sse4.1"))) static void add_blocks_quickly(uint32_t state[8], const uint8_t *at, size_t blocks)
{
    const __m128i swapped = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
    __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    __m128i high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
    for (; blocks; blocks--, at += SHA256_BLOCK) {
        __m128i w[4], before[2] = {abef, cdgh};
        for (int i = 0; i < 16; i++) {
            __m128i *here = &w[i & 3];
            if (i < 4)
                *here = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(at + 16 * i)), swapped);
            else
                *here = _mm_sha256msg2_epu32(
                    _mm_add_epi32(_mm_sha256msg1_epu32(*here, w[(i + 1) & 3]),
                                  _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4)), w[(i + 3) & 3]);
            __m128i sum = _mm_add_epi32(*here, _mm_loadu_si128((const __m128i *)(round_words + 4 * i)));
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
            abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        abef = _mm_add_epi32(abef, before[0]);
        cdgh = _mm_add_epi32(cdgh, before[1]);
    }
    low = _mm_shuffle_epi32(abef, 0x1b);
    high = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(low, high, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(high, low, 8));
}

static bool has_instructions(void)
{
    uint32_t a = 7, b, c = 0, d;
    __asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    return b >> 29 & 1 && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3");
}
#endif

static void add_blocks(struct sha256 *sum, const uint8_t *at, size_t blocks)
{
#ifdef __x86_64__
    if (sum->quick) {
        add_blocks_quickly(sum->state, at, blocks);
        return;
    }
#endif
    add_blocks_plainly(sum->state, at, blocks);
}

void sha256_begin(struct sha256 *sum)
{
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    *sum = (struct sha256){.size = 0};
#ifdef __x86_64__
    sum->quick = has_instructions(); /* asked once: a virtual machine answers slowly */
#endif
    memcpy(sum->state, first, sizeof first);
}

void sha256_add(struct sha256 *sum, const void *from, size_t size)
{
    const uint8_t *at = from;
    size_t have = sum->size % SHA256_BLOCK;
    sum->size += size;
    if (have) {
        size_t part = SHA256_BLOCK - have < size ? SHA256_BLOCK - have : size;
        memcpy(sum->rest + have, at, part);
        at += part;
        size -= part;
        if (have + part < SHA256_BLOCK)
            return;
        add_blocks(sum, sum->rest, 1);
    }
    add_blocks(sum, at, size / SHA256_BLOCK);
    memcpy(sum->rest, at + size / SHA256_BLOCK * SHA256_BLOCK, size % SHA256_BLOCK);
}

void sha256_end(struct sha256 *sum, uint8_t digest[LIBRARY_DIGEST])
{
    static const uint8_t padding[SHA256_BLOCK] = {0x80};
    uint64_t bits = __builtin_bswap64(sum->size * 8);
    size_t have = sum->size % SHA256_BLOCK, room = SHA256_BLOCK - sizeof bits;
    sha256_add(sum, padding, have < room ? room - have : room + SHA256_BLOCK - have);
    sha256_add(sum, &bits, sizeof bits);
    for (int i = 0; i < 8; i++) {
        uint32_t word = __builtin_bswap32(sum->state[i]);
        memcpy(digest + 4 * i, &word, sizeof word);
    }
}
