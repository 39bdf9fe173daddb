/* The journal's format and what its two halves share: see journal.c. */
#ifndef CONDOR_JOURNAL_H
#define CONDOR_JOURNAL_H

#include "shadow/session.h"

#include <sys/types.h>

enum { BLOCK = 64 << 10, JOURNAL_MAGIC = 0x4f444e55, BUCKETS = 256 };

enum record_kind {
    RECORD_SIZE = 1, /* number: the size it had */
    RECORD_BLOCK,    /* number: offset; data: content */
    RECORD_MADE,     /* it was not there: remove it */
    RECORD_REMOVED,  /* other: the copy's name, or a link's target */
    RECORD_MOVED,    /* other: where it went */
    RECORD_STATUS,   /* mode, owner, times */
};

struct record {
    uint32_t kind, path_size, other_size, mode;
    uint64_t number, data_size;
    uint32_t uid, gid;
    int64_t times[4];
};

struct header {
    uint32_t magic, version;
    uint64_t generation;
};

/* What is known of a file since the last checkpoint. */
struct known {
    struct known *next;
    dev_t device;
    ino_t inode;
    bool made; /* since then: nothing of it need be saved */
    uint64_t size;
    uint8_t saved[]; /* a bit per block */
};

struct journal {
    pthread_mutex_t lock;
    int directory, file;
    uint64_t generation, copies;
    struct known *known[BUCKETS];
};

/* journal.c */
bool copy_content(int from, int to);
void forget_known(struct journal *j);

#endif
