/* The starter, on a socket of its own: see control.c. */
#ifndef RUNTIME_CONTROL_H
#define RUNTIME_CONTROL_H

#include "lock.h"

/* Held by who asks the starter, or home, for something that comes with a descriptor. */
extern struct lock gift_lock;

void tell_starter(int what, int64_t value);
long ask_starter(int what, int64_t value) REQUIRES(gift_lock);
extern int given_control GUARDED_BY(gift_lock);

#endif
