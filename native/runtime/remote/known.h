/* What is known of the program's open files; read_ahead.c keeps it, open_ahead.c learns it as files are opened. */
#ifndef RUNTIME_KNOWN_H
#define RUNTIME_KNOWN_H

#include "read_ahead.h"
#include "runtime/lock.h"
#include "streams.h"

/* What is known of one of the program's descriptors. Nothing is, of one that is all zeros. */
struct known {
    struct lock lock;
    uint32_t generation; /* changes whenever what is being learned just now would be old */
    uint32_t changing;   /* threads that are about to change what the number means, or where its position is */
    bool learned, reads, writes;
    uint64_t identity; /* of the file; 0 unknown */
    int64_t position;  /* -1: home's matter. Else this descriptor's alone, and the file's size matters */
    int64_t size;
    uint32_t unsettled; /* bytes written since home last answered for this file */
};
extern struct known known[KNOWN_FILES];

/* What a file is known by, as home tells of it. */
uint64_t identity_of(const struct stat *status);
/* NULL beyond the table. */
struct known *known_file(int fd);
/* Whatever was read ahead of this file is old. */
void spoil(uint64_t identity);
void note_facts(struct known *k, const struct stat *status, uint64_t hints, int64_t position) REQUIRES(k->lock);
void forget_file(int fd);

#endif
