/* SHA-256, by which contents are known. */
#ifndef CONDOR_SHA256_H
#define CONDOR_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

enum { SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t size;
    bool quick; /* by the processor's own instructions */
    uint8_t rest[SHA256_BLOCK];
};

void sha256_begin(struct sha256 *sum);
void sha256_add(struct sha256 *sum, const void *from, size_t size);
void sha256_end(struct sha256 *sum, uint8_t digest[LIBRARY_DIGEST]);

#endif
