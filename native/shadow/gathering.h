/* A checkpoint of a family that is being taken: see gather.c, how all are parked, and family.c, the rest. */
#ifndef CONDOR_GATHERING_H
#define CONDOR_GATHERING_H

#include "serve.h"

enum { MEMBER_RUNS, MEMBER_SIGNALLED, MEMBER_PARKED, MEMBER_SIZED, MEMBER_WRITTEN };

/* A checkpoint that is being taken. */
struct gathering {
    int64_t until_ns;
    bool looks;  /* the first process can find out who is stopped */
    bool looked; /* it was asked to, after all had parked */
    bool parked; /* all are */
    bool sized;  /* the first process has its file */
    long failed;
    uint64_t next_base, digest;
    struct object_image objects[MOST_SHARED_PIECES];
    struct shared_piece written[MOST_SHARED_PIECES];
    uint32_t object_count, written_count;
    struct member_image members[MOST_MEMBERS];
    struct group_image groups[MOST_MEMBERS]; /* of those */
    uint32_t member_count, living;
    int32_t claimed[MOST_MEMBERS]; /* children that are said to live */
    int32_t claimed_status[MOST_MEMBERS]; /* KIN_... */
    uint32_t claimed_count;
};

/* The family's sessions, the first process's first. */
#define EACH_MEMBER(s, root) (struct session *s = (root); s; s = s->next_member)

void ring(struct session *s);
void ring_all(struct session *root) REQUIRES(table_lock);

#endif
