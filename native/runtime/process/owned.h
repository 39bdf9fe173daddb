/* Futexes whose word names the thread that has them: see owned.c. */
#ifndef RUNTIME_OWNED_H
#define RUNTIME_OWNED_H

#include "runtime/trap.h"

bool is_owned(long command);
long owned_futex(struct trap *t, long command);
void release_owned(struct thread *self);

#endif
