/* Parents that change: see kinship.c. */
#ifndef RUNTIME_KINSHIP_H
#define RUNTIME_KINSHIP_H

#include "runtime/process/thread.h"

int parent_now(struct thread *self);
long set_death_signal(struct thread *self, unsigned long number);
long set_reaper(bool reaps);
void kinship_begin(struct thread *self);
void death_signal_again(struct thread *self);
void reaper_again(void);
void find_orphans(struct thread *self);
int told_child(struct thread *self, int real_id, bool forget);

#endif
