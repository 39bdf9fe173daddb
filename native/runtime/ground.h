/* The memory that all members of a family have, for files that they map shared: see ground.c. */
#ifndef RUNTIME_GROUND_H
#define RUNTIME_GROUND_H

#include "thread.h"

#define GROUND_PLACE KERNEL_PLACES /* where no image covers it, and no exec or restart unmaps it */

/* A piece of a file that is there. */
struct ground {
    int64_t at;    /* in the ground; negative: it is elsewhere */
    int64_t place; /* as home calls the part that it belongs to */
    int64_t from;  /* of the file, where that part begins */
};

extern uint64_t ground_object GUARDED_BY(one_thread); /* the kernel's number of it */

bool ground_make(void);
bool ground_make_again(void) REQUIRES(one_thread);
long ground_find(struct thread *self, long handle, int64_t offset, size_t size, struct ground *to);
long ground_map(const struct ground *g, unsigned long at, size_t size);
long ground_claim(struct thread *self, long handle, int64_t offset, size_t size, const struct ground *g);
void ground_give_back(struct thread *self, long released);
uint64_t *ground_marks(const struct ground *g);
uint64_t ground_mark(const void *page);

#endif
