/* /proc/self and its like: see own_proc.c. */
#ifndef RUNTIME_OWN_PROC_H
#define RUNTIME_OWN_PROC_H

#include "runtime/trap.h"

extern struct lock proc_lock; /* of the kernel's list of mappings: who reads it in pieces is alone */
long own_proc_open(struct trap *t, const char *path, int flags);
long own_proc_link(struct trap *t, const char *path, char *to, size_t size);
const char *own_proc_name(const char *path);
const char *member_proc_name(struct thread *self, const char *path);
bool is_told_of_members(const char *name);

#endif
