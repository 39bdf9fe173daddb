/* What the parts of a checkpoint share: see checkpoint.c. */
#ifndef CONDOR_IMAGE_H
#define CONDOR_IMAGE_H

#include <linux/elf.h>

#include "image_digest.h"
#include "checkpoint.h"

enum {
    MOST_SEGMENTS = 1100, HEADER_BYTES = 0x12000, NOTE_AT = 0x11000, NOTE_BYTES = 0x1000,
    MAPS_ROOM = 8 << 20, MOST_SAME = 1 << 20, MOST_RUNS = 1 << 20, BOUNCE_BYTES = 64 << 10, GENERATION_AT = 24, MOST_REGIONS = 60000,
    PAGEMAP_ENTRIES = 4096, TABLE_BYTES = 64 << 10, LARGEST_WRITE = 4 << 20,
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
    uint64_t base;   /* of this part in the file; 0: it begins with it */
    uint64_t end;    /* of the file */
    uint32_t processes;
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
long read_mappings(char *room, struct mapping *list) REQUIRES(one_thread);
void each_run(struct writer *w, const struct mapping *m, take_run *each) REQUIRES(one_thread);
bool is_runtimes(const struct mapping *m);
long plan_mapping(struct writer *w, struct plan *plan, const struct mapping *m) REQUIRES(one_thread);

/* Memory for writing an image. */
struct image_room {
    struct writer writer;
    struct plan plan;
    uint64_t pagemap[PAGEMAP_ENTRIES];
    uint8_t bounce[BOUNCE_BYTES], header[HEADER_BYTES], table[TABLE_BYTES];
    struct mapping list[MOST_REGIONS];
    char room[MAPS_ROOM];
    struct same same[MOST_SAME];
    struct run runs[MOST_RUNS];
    struct shared_piece pieces[MOST_SHARED_PIECES];
    uint8_t writes[MOST_SHARED_PIECES];
    struct lineage lineage;
    struct lineage_child children[MOST_MEMBERS];
};

/* image.c */
struct image_room *image_room(bool increment);
long plan_image(struct image_room *m, struct thread *family, long *mappings) REQUIRES(one_thread);
void move_plan(struct image_room *m, uint64_t base) REQUIRES(one_thread);
long write_part(struct image_room *m, long mappings) REQUIRES(one_thread);
long write_table(struct image_room *m, size_t size, uint64_t offset, uint64_t digest, uint32_t processes)
    REQUIRES(one_thread);
long finish_image(struct image_room *m) REQUIRES(one_thread);

/* shared_memory.c */
long shared_memory_note(struct image_room *m, struct thread *family, long mappings) REQUIRES(one_thread);
const struct shared_region *shared_memory_elsewhere(unsigned long from) REQUIRES(one_thread);

/* family_checkpoint.c */
long gather_family(struct thread *self) REQUIRES(one_thread);
void write_with_family(struct thread *self, bool first) REQUIRES(one_thread);

/* checkpoint.c */
long describe_files(struct thread *self) REQUIRES(one_thread);
uint64_t image_generation(void) REQUIRES(one_thread);

#endif
