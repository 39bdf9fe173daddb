/* What the parts of a checkpoint share: see checkpoint.c. */
#ifndef CONDOR_IMAGE_H
#define CONDOR_IMAGE_H

#include <linux/elf.h>

#include "../image_digest.h"
#include "checkpoint.h"

enum {
    MOST_SEGMENTS = 1100, HEADER_BYTES = 0x12000, NOTE_AT = 0x11000, NOTE_BYTES = 0x1000,
    MAPS_ROOM = 8 << 20, MOST_SAME = 1 << 20, MOST_RUNS = 1 << 20, BOUNCE_BYTES = 64 << 10, GENERATION_AT = 24, MOST_REGIONS = 60000,
    PAGEMAP_ENTRIES = 4096, LARGEST_WRITE = 4 << 20,
};

/* A mapping as /proc/self/maps shows it. */
struct mapping {
    unsigned long from, to, offset, inode;
    int protection;
    bool shared;
};

/* Pages that are as they were in the base: where they are to be, where they are there. */
struct same {
    uint64_t offset, base_offset, size;
};

enum kind { NOTHING, SAME, DATA };

/* What was found when places were given out: the program's memory does not change until it is written. */
struct run {
    unsigned long from, to;
    enum kind kind;
};

struct writer {
    uint64_t offset; /* of the region being written */
    uint64_t digest;
    long failed;
    bool increment;    /* only what changed since the base */
    bool cannot_scan;  /* the kernel has only the long way to tell about pages */
    bool too_many;     /* runs for the list */
    uint64_t *pagemap; /* PAGEMAP_ENTRIES */
    struct run *runs;  /* MOST_RUNS, in ascending order */
    size_t run_count;
    uint8_t *bounce;   /* BOUNCE_BYTES */
    uint8_t *header;   /* HEADER_BYTES */
    struct same *same; /* MOST_SAME */
    size_t same_count;
};

struct plan {
    struct elf64_phdr segments[MOST_SEGMENTS];
    size_t count;
    uint64_t end; /* of the file so far */
    size_t reserved; /* segments the runtime itself needs */
};

typedef void take_run(struct writer *w, const struct mapping *m, enum kind kind, unsigned long from, unsigned long to);

/* mappings.c */
long read_mappings(char *room, struct mapping *list);
void each_run(struct writer *w, const struct mapping *m, take_run *each) REQUIRES(one_thread);
bool is_runtimes(const struct mapping *m);
long plan_mapping(struct writer *w, struct plan *plan, const struct mapping *m) REQUIRES(one_thread);

/* image.c */
long write_image(struct writer *w, struct plan *plan, struct mapping *list, char *room, long *mappings)
    REQUIRES(one_thread);
uint64_t image_generation(void) REQUIRES(one_thread);

#endif
