/* Who the program is: see identity.c. */
#ifndef RUNTIME_IDENTITY_H
#define RUNTIME_IDENTITY_H

#include "runtime/text.h"
#include "thread.h"

extern struct lock identity_lock;
void tell_limits(struct thread *self);
void put_limits(struct text *text);

#endif
