/* Processes of a program, and how they come back: see lineage.c. */
#ifndef RUNTIME_LINEAGE_H
#define RUNTIME_LINEAGE_H

#include "runtime/remote/channel.h"

struct image_room;
struct thread;

/* How a process comes back from its part of an image. It lies where no image does. */
struct revival {
    const struct family_image *family; /* NULL: it is alone */
    const struct member_image *members;
    struct object_image *objects;
    const struct group_image *groups; /* of the members; NULL: an older image does not tell */
    int32_t real_groups[MOST_MEMBERS]; /* the same for the kernel */
    int32_t real_group;               /* of this process */
    long places[MOST_SHARED_PIECES]; /* of the objects */
    uint64_t base;             /* of its part */
    long parent_pid;           /* where it runs; 0: of the first */
    int control;
    bool direct;
    void *secret;
    volatile uint32_t *broker;
    int64_t clock_offset_ns; /* of the first */
};

long lineage_list(struct image_room *m) REQUIRES(one_thread);
bool lineage_has(int virtual_id);
struct revival *lineage_load(void) REQUIRES(one_thread);
void lineage_start(struct revival *r, struct thread *self) REQUIRES(one_thread);

#endif
