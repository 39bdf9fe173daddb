/* Shared writable mappings of files that are at home: see shared.c. */
#ifndef RUNTIME_SHARED_H
#define RUNTIME_SHARED_H

#include "shared_arena.h"
#include "runtime/process/thread.h"

extern struct lock views_lock;

long hold_file(struct thread *self, int fd, int how, int64_t end);
void release_file(struct thread *self, long handle);
long shared_add(struct thread *self, long handle, unsigned long at, size_t size, int64_t offset, const struct arena_place *g,
                bool reads);
long shared_write_back(struct thread *self, unsigned long from, unsigned long to);
long shared_write_all(struct thread *self);
long shared_leave(struct thread *self, unsigned long from, unsigned long to, bool *any, long *unwritten);
void shared_let_go(struct thread *self);
void shared_is_segment(long handle);
bool shared_segment_piece(unsigned long at, unsigned long *from, unsigned long *to);
bool shared_lies_in(unsigned long from, unsigned long to);
void shared_gone(struct thread *self, unsigned long from, unsigned long to);
long shared_take(struct thread *self, unsigned long from, unsigned long to, bool *any);
long shared_grow(struct thread *self, unsigned long old, size_t old_size, size_t size, unsigned long to);
long shared_moved(struct thread *self, unsigned long old, size_t old_size, unsigned long place, size_t size);
uint64_t shared_moment(void);
void shared_become_member(uint64_t moment) REQUIRES(one_thread);
void shared_restart(void) REQUIRES(one_thread);
bool shared_claim(struct thread *self) REQUIRES(one_thread);

#endif
