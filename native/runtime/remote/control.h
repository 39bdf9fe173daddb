/* The starter, on a socket of its own: see control.c. */
#ifndef RUNTIME_CONTROL_H
#define RUNTIME_CONTROL_H

#include "protocol.h"
#include "runtime/lock.h"

/* Held by who asks the starter, or home, for something that comes with a descriptor. */
extern struct lock passed_fd_lock;

void tell_starter(int what, int64_t value);
void tell_starter_all(struct control said[], size_t count);
long ask_starter(int what, int64_t value) REQUIRES(passed_fd_lock);
extern int passed_control GUARDED_BY(passed_fd_lock);

#endif
