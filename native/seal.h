/* ChaCha20-Poly1305 (RFC 8439) for the channel, shared by the runtime, which has no library, and the shadow.
 *
 * A record is its length (4 bytes, little-endian, authenticated), as many bytes of ciphertext, and a tag of 16.
 * Each direction counts its records; the count and the direction are the nonce, so none is ever used twice with
 * a key, which is one run's.  Four blocks are computed at once, in the vector registers every x86-64 has. */
#ifndef CONDOR_SEAL_H
#define CONDOR_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEAL_KEY_BYTES = 32, SEAL_TAG_BYTES = 16, SEAL_HEAD_BYTES = 4, SEAL_MOST = 64 << 10 };
enum { SEAL_TO_HOME = 1, SEAL_FROM_HOME = 2, SEAL_FOR_MEMBER = 3 };

struct seal {
    uint32_t key[8];
    uint32_t direction;
    uint64_t count;
};

typedef uint32_t seal_lanes __attribute__((vector_size(16)));

#define SEAL_ROTATE(v, n) ((v) << (n) | (v) >> (32 - (n)))
#define SEAL_QUARTER(a, b, c, d) \
    a += b, d ^= a, d = SEAL_ROTATE(d, 16), c += d, b ^= c, b = SEAL_ROTATE(b, 12), \
    a += b, d ^= a, d = SEAL_ROTATE(d, 8), c += d, b ^= c, b = SEAL_ROTATE(b, 7)

/* Blocks COUNTER to COUNTER + 3 of the key stream. */
static inline void seal_blocks(const struct seal *s, uint32_t counter, uint8_t out[256])
{
    const uint32_t words[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, s->key[0], s->key[1],
                                s->key[2],  s->key[3],  s->key[4],  s->key[5],  s->key[6], s->key[7],
                                counter,    s->direction, (uint32_t)s->count, (uint32_t)(s->count >> 32)};
    seal_lanes first[16], x[16];
    for (int i = 0; i < 16; i++)
        first[i] = (seal_lanes){words[i], words[i], words[i], words[i]};
    first[12] += (seal_lanes){0, 1, 2, 3};
    for (int i = 0; i < 16; i++)
        x[i] = first[i];
    for (int round = 0; round < 10; round++) {
        SEAL_QUARTER(x[0], x[4], x[8], x[12]);
        SEAL_QUARTER(x[1], x[5], x[9], x[13]);
        SEAL_QUARTER(x[2], x[6], x[10], x[14]);
        SEAL_QUARTER(x[3], x[7], x[11], x[15]);
        SEAL_QUARTER(x[0], x[5], x[10], x[15]);
        SEAL_QUARTER(x[1], x[6], x[11], x[12]);
        SEAL_QUARTER(x[2], x[7], x[8], x[13]);
        SEAL_QUARTER(x[3], x[4], x[9], x[14]);
    }
    for (int i = 0; i < 16; i += 4) { /* lane k of the words is block k */
        seal_lanes a = x[i] + first[i], b = x[i + 1] + first[i + 1], c = x[i + 2] + first[i + 2],
                   d = x[i + 3] + first[i + 3];
        seal_lanes ab = __builtin_shuffle(a, b, (seal_lanes){0, 4, 1, 5}), cd = __builtin_shuffle(c, d, (seal_lanes){0, 4, 1, 5});
        seal_lanes AB = __builtin_shuffle(a, b, (seal_lanes){2, 6, 3, 7}), CD = __builtin_shuffle(c, d, (seal_lanes){2, 6, 3, 7});
        seal_lanes rows[4] = {__builtin_shuffle(ab, cd, (seal_lanes){0, 1, 4, 5}),
                              __builtin_shuffle(ab, cd, (seal_lanes){2, 3, 6, 7}),
                              __builtin_shuffle(AB, CD, (seal_lanes){0, 1, 4, 5}),
                              __builtin_shuffle(AB, CD, (seal_lanes){2, 3, 6, 7})};
        for (int block = 0; block < 4; block++)
            __builtin_memcpy(out + block * 64 + i * 4, &rows[block], 16);
    }
}

/* OUT = IN xor the key stream of blocks 1 and on; the first 32 bytes of block 0 are the tag's key. */
static inline void seal_stream(const struct seal *s, const uint8_t *in, uint8_t *out, size_t size, uint8_t tag_key[32])
{
    uint8_t stream[256];
    size_t done = 0;
    for (uint32_t counter = 0; counter == 0 || done < size; counter += 4) {
        seal_blocks(s, counter, stream);
        size_t at = 0;
        if (counter == 0) {
            __builtin_memcpy(tag_key, stream, 32);
            at = 64;
        }
        for (; at + 16 <= 256 && done + 16 <= size; at += 16, done += 16) {
            seal_lanes text, mask;
            __builtin_memcpy(&text, in + done, 16);
            __builtin_memcpy(&mask, stream + at, 16);
            text ^= mask;
            __builtin_memcpy(out + done, &text, 16);
        }
        for (; at < 256 && done < size; at++, done++)
            out[done] = in[done] ^ stream[at];
    }
}

/* Poly1305 with three limbs of 44, 44 and 42 bits. */
struct seal_tag {
    uint64_t r[3], s[2], h[3];
};

static inline uint64_t seal_load(const uint8_t *from)
{
    uint64_t value;
    __builtin_memcpy(&value, from, 8);
    return value;
}

static inline void seal_tag_begin(struct seal_tag *t, const uint8_t key[32])
{
    uint64_t low = seal_load(key), high = seal_load(key + 8);
    t->r[0] = low & 0xffc0fffffff;
    t->r[1] = (low >> 44 | high << 20) & 0xfffffc0ffff;
    t->r[2] = high >> 24 & 0x00ffffffc0f;
    t->s[0] = t->r[1] * 20;
    t->s[1] = t->r[2] * 20;
    t->h[0] = t->h[1] = t->h[2] = 0;
}

static inline void seal_tag_blocks(struct seal_tag *t, const uint8_t *at, size_t blocks)
{
    const uint64_t m44 = 0xfffffffffff, m42 = 0x3ffffffffff;
    uint64_t h0 = t->h[0], h1 = t->h[1], h2 = t->h[2];
    for (; blocks; blocks--, at += 16) {
        uint64_t low = seal_load(at), high = seal_load(at + 8);
        h0 += low & m44;
        h1 += (low >> 44 | high << 20) & m44;
        h2 += (high >> 24 & m42) | 1ull << 40;
        unsigned __int128 d0 = (unsigned __int128)h0 * t->r[0] + (unsigned __int128)h1 * t->s[1] +
                               (unsigned __int128)h2 * t->s[0];
        unsigned __int128 d1 = (unsigned __int128)h0 * t->r[1] + (unsigned __int128)h1 * t->r[0] +
                               (unsigned __int128)h2 * t->s[1];
        unsigned __int128 d2 = (unsigned __int128)h0 * t->r[2] + (unsigned __int128)h1 * t->r[1] +
                               (unsigned __int128)h2 * t->r[0];
        uint64_t carry = (uint64_t)(d0 >> 44);
        h0 = (uint64_t)d0 & m44;
        d1 += carry;
        carry = (uint64_t)(d1 >> 44);
        h1 = (uint64_t)d1 & m44;
        d2 += carry;
        carry = (uint64_t)(d2 >> 42);
        h2 = (uint64_t)d2 & m42;
        h0 += carry * 5;
        h1 += h0 >> 44;
        h0 &= m44;
    }
    t->h[0] = h0, t->h[1] = h1, t->h[2] = h2;
}

static inline void seal_tag_bytes(struct seal_tag *t, const uint8_t *at, size_t size)
{
    uint8_t last[16] = {0};
    seal_tag_blocks(t, at, size / 16);
    if (size % 16) {
        __builtin_memcpy(last, at + size / 16 * 16, size % 16);
        seal_tag_blocks(t, last, 1);
    }
}

static inline void seal_tag_end(struct seal_tag *t, const uint8_t key[32], uint8_t tag[16])
{
    const uint64_t m44 = 0xfffffffffff, m42 = 0x3ffffffffff;
    uint64_t h0 = t->h[0], h1 = t->h[1], h2 = t->h[2];
    for (int round = 0; round < 2; round++) {
        h2 += h1 >> 44, h1 &= m44;
        h0 += (h2 >> 42) * 5, h2 &= m42;
        h1 += h0 >> 44, h0 &= m44;
    }
    uint64_t g0 = h0 + 5, g1 = h1 + (g0 >> 44), g2 = h2 + (g1 >> 44) - (1ull << 42);
    uint64_t keep = (g2 >> 63) - 1; /* all ones if h >= p */
    h0 = (h0 & ~keep) | (g0 & m44 & keep);
    h1 = (h1 & ~keep) | (g1 & m44 & keep);
    h2 = (h2 & ~keep) | (g2 & m42 & keep);
    unsigned __int128 sum = (unsigned __int128)(h0 | h1 << 44) + seal_load(key + 16);
    uint64_t low = (uint64_t)sum, high = (h1 >> 20 | h2 << 24) + seal_load(key + 24) + (uint64_t)(sum >> 64);
    __builtin_memcpy(tag, &low, 8);
    __builtin_memcpy(tag + 8, &high, 8);
}

static inline void seal_authenticate(const uint8_t key[32], const uint8_t *head, size_t head_size, const uint8_t *text,
                                     size_t size, uint8_t tag[16])
{
    struct seal_tag t;
    uint64_t sizes[2] = {head_size, size};
    seal_tag_begin(&t, key);
    seal_tag_bytes(&t, head, head_size);
    seal_tag_bytes(&t, text, size);
    seal_tag_blocks(&t, (const uint8_t *)sizes, 1);
    seal_tag_end(&t, key, tag);
}

/* Writes a record with SIZE bytes of IN (at most SEAL_MOST) to OUT; IN may be OUT + SEAL_HEAD_BYTES. */
static inline size_t seal_record(struct seal *s, const uint8_t *in, size_t size, uint8_t *out)
{
    uint8_t key[32];
    uint32_t head = (uint32_t)size;
    __builtin_memcpy(out, &head, SEAL_HEAD_BYTES);
    seal_stream(s, in, out + SEAL_HEAD_BYTES, size, key);
    seal_authenticate(key, out, SEAL_HEAD_BYTES, out + SEAL_HEAD_BYTES, size, out + SEAL_HEAD_BYTES + size);
    s->count++;
    return SEAL_HEAD_BYTES + size + SEAL_TAG_BYTES;
}

/* Opens the whole record at RECORD to OUT (which may be its own text). False: it was not written so. */
static inline bool seal_open(struct seal *s, const uint8_t *record, size_t size, uint8_t *out)
{
    uint8_t key[32], tag[16], stream[256], differs = 0;
    seal_blocks(s, 0, stream);
    __builtin_memcpy(key, stream, 32);
    seal_authenticate(key, record, SEAL_HEAD_BYTES, record + SEAL_HEAD_BYTES, size, tag);
    for (int i = 0; i < SEAL_TAG_BYTES; i++)
        differs |= tag[i] ^ record[SEAL_HEAD_BYTES + size + (size_t)i];
    if (differs)
        return false;
    seal_stream(s, record + SEAL_HEAD_BYTES, out, size, key);
    s->count++;
    return true;
}

static inline struct seal seal_make(const uint32_t key[8], uint32_t direction)
{
    struct seal s = {.direction = direction};
    __builtin_memcpy(s.key, key, SEAL_KEY_BYTES);
    return s;
}

/* The key of the NUMBERth helper that a session with KEY was asked for. */
static inline void seal_member_key(uint32_t key[8], uint64_t number)
{
    uint8_t stream[256];
    struct seal s = seal_make(key, SEAL_FOR_MEMBER);
    s.count = number;
    seal_blocks(&s, 0, stream);
    __builtin_memcpy(key, stream, SEAL_KEY_BYTES);
}

#endif
