/* Calls that happen at home: see remote.c. */
#ifndef RUNTIME_REMOTE_H
#define RUNTIME_REMOTE_H

#include "runtime/trap.h"

long remote(struct trap *t, const struct call *call);
long call_home(struct thread *self, long number, long a, long b, long c, long d, long e, long f);
long read_home(struct thread *self, int fd, void *to, size_t size, int64_t offset);
long write_home(struct thread *self, int fd, const void *from, size_t size, int64_t offset);

#endif
