/* Process groups and sessions: see groups.c. */
#ifndef RUNTIME_GROUPS_H
#define RUNTIME_GROUPS_H

#include "lineage.h"
#include "runtime/trap.h"

bool has_job_control(struct thread *self);
long group_of(struct thread *self, int id);
long signal_group(struct thread *self, int group, int number);
long real_group_of(struct thread *self, int group);
void groups_hold(struct revival *r) REQUIRES(one_thread);
void groups_again(struct revival *r) REQUIRES(one_thread);
void groups_release(void);
bool groups_note_ended(struct thread *self, const struct revival *r, const struct member_image *who) REQUIRES(one_thread);

#endif
