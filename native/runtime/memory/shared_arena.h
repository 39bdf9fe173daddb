/* The memory that all members of a family have, for files that they map shared: see shared_arena.c. */
#ifndef RUNTIME_SHARED_ARENA_H
#define RUNTIME_SHARED_ARENA_H

#include "runtime/process/thread.h"

#define ARENA_PLACE KERNEL_PLACES /* where no image covers it, and no exec or restart unmaps it */

/* What a page is known by where the file has zeros, or has not got that far, and where it must be written whatever it is. */#define ARENA_MARKS_BYTES (ARENA_BYTES / PAGE * sizeof(uint64_t))
#define ARENA_WHOLE_BYTES (ARENA_BYTES + ARENA_MARKS_BYTES + PAGE)

enum { MARK_OF_ZEROS = 0, MARK_UNKNOWN = 1 };

/* A piece of a file that is there. */
struct arena_place {
    int64_t at;    /* in the arena; negative: it is elsewhere */
    int64_t place; /* as home calls the part that it belongs to */
    int64_t from;  /* of the file, where that part begins */
};

extern uint64_t arena_object GUARDED_BY(one_thread); /* the kernel's number of it */

bool arena_make(void);
bool arena_make_again(void) REQUIRES(one_thread);
long arena_find(struct thread *self, long handle, int64_t offset, size_t size, struct arena_place *to);
long arena_map(const struct arena_place *g, unsigned long at, size_t size);
long arena_claim(struct thread *self, long handle, int64_t offset, size_t size, const struct arena_place *g);
void arena_give_back(struct thread *self, long released);
uint64_t *arena_marks(const struct arena_place *g);
uint64_t arena_mark(const void *page);
void *arena_own_page(void);

#endif
