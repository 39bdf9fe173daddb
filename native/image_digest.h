/* The digest of an image: the sum of what each page with data contributes, by its place in the file.
 *
 * It finds damage, not malice.  Pages of zeros count nothing, so holes need not be read; the order of writing does
 * not matter.  Each step is one-to-one, so any change within one 8-byte word changes the page's contribution. */
#ifndef CONDOR_IMAGE_DIGEST_H
#define CONDOR_IMAGE_DIGEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DIGEST_PAGE = 4096, DIGEST_AT = 0x10ff0, DIGEST_BYTES = 16 };
#define DIGEST_MAGIC 0x3174736567696443ull /* "Cdigest1", then the digest */

static inline uint64_t digest_mix(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * 0x9e3779b97f4a7c15ull;
    return lane << 27 | lane >> 37;
}

static inline uint64_t digest_page(const uint64_t *page, uint64_t offset)
{
    uint64_t a = offset + 1, b = ~offset, c = offset * 3 + 7, d = offset * 5 + 11;
    for (size_t i = 0; i < DIGEST_PAGE / 8; i += 4) {
        a = digest_mix(a, page[i]);
        b = digest_mix(b, page[i + 1]);
        c = digest_mix(c, page[i + 2]);
        d = digest_mix(d, page[i + 3]);
    }
    return digest_mix(digest_mix(digest_mix(a, b), c), d);
}

static inline bool digest_is_zero(const uint64_t *page)
{
    for (size_t i = 0; i < DIGEST_PAGE / 8; i += 4)
        if (page[i] | page[i + 1] | page[i + 2] | page[i + 3])
            return false;
    return true;
}

#endif
