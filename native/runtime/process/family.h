/* Programs that start programs: see family.c. */
#ifndef RUNTIME_FAMILY_H
#define RUNTIME_FAMILY_H

#include "protocol.h"
#include "runtime/trap.h"

enum { ANY_CHILD = -1, STATUS_SHIFT = 8, STATUS_STOPPED = 0x7f /* and above it the signal */,
       STATUS_CONTINUED = 0xffff };

extern struct lock children_lock;
long begin_birth(struct trap *t, unsigned long flags);
int real_child_id(int virtual_id);
int virtual_child_id(int real_id, bool forget); /* 0: there is none */
void note_orphan(int virtual_id, int real_id);
void note_change(struct thread *self, int real_id, int code, int number, int64_t at_ns);
void note_going_on(int real_id, int64_t at_ns);
bool changes_may_be_untold(void);
int told_change(struct thread *self, int id, unsigned long options, bool keep, int *status);

long list_children(struct lineage_child *list, uint32_t most) REQUIRES(one_thread);
bool adopt_child(int virtual_id, int real_id) REQUIRES(one_thread);
void forget_children(void) REQUIRES(one_thread);
long signal_member(int virtual_id, int number, const struct siginfo *info);
int virtual_sender(int real_id);

#endif
