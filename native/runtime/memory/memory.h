/* The program's address space: which parts of the arena are taken (space.c), mapping and unmapping (memory.c),
 * what came from an image (madvise.c). */
#ifndef RUNTIME_MEMORY_H
#define RUNTIME_MEMORY_H

enum { GUARD_INSTALL = 102 /* MADV_GUARD_INSTALL, which no older kernel has */ };

#include "intervals.h"
#include "runtime/layout.h"
#include "runtime/lock.h"

struct thread;
struct trap;
extern struct lock memory_lock;

/* space.c */
bool space_is_full(void) REQUIRES(memory_lock);
void space_forget(void) REQUIRES(memory_lock);
void space_take(unsigned long from, unsigned long to) REQUIRES(memory_lock);
void space_give(unsigned long from, unsigned long to) REQUIRES(memory_lock);
unsigned long space_find(unsigned long size) REQUIRES(memory_lock);

/* memory.c */
bool is_programs_range(unsigned long at, size_t size);
long do_munmap(struct trap *t);
long map_segment(struct thread *self, long handle, unsigned long at, size_t size, int protection, int flags);
long map_anonymous(unsigned long at, size_t size, int protection, int flags);
void unmap(unsigned long at, size_t size);
void drop_program_memory(struct thread *self) REQUIRES(one_thread);
long map(unsigned long at, size_t size, int protection, int flags);

/* madvise.c */
int protection_of(unsigned long at, unsigned long *to) REQUIRES(memory_lock);
void leave_zeros(unsigned long from, unsigned long to) REQUIRES(memory_lock);
int memory_protection(unsigned long at, unsigned long *to);
extern struct intervals image_code GUARDED_BY(memory_lock); /* what of it was executable when it was written */
extern struct intervals from_image GUARDED_BY(memory_lock); /* mappings of the image's file, not to be seen as such */

#endif
