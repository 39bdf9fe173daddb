/* Lists of a process's own mappings, for one that cannot open them: see broker.c. */
#ifndef RUNTIME_BROKER_H
#define RUNTIME_BROKER_H

#include "runtime/lock.h"

extern struct lock passed_fd_lock;
void broker_start(void) REQUIRES(one_thread);
volatile uint32_t *broker_keep(void);
void broker_again(volatile uint32_t *kept) REQUIRES(one_thread);
long broker_status(int real, char *to, size_t room);
bool broker_lists(void) REQUIRES(passed_fd_lock);

#endif
