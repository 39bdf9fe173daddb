/* Programs that start programs: see family.c. */
#ifndef RUNTIME_FAMILY_H
#define RUNTIME_FAMILY_H

#include "protocol.h"
#include "runtime/trap.h"

extern struct lock children_lock;
long start_member(struct trap *t, unsigned long flags);
int real_child_id(int virtual_id);
long list_children(struct lineage_child *list, uint32_t most) REQUIRES(one_thread);
bool adopt_child(int virtual_id, int real_id) REQUIRES(one_thread);
void forget_children(void) REQUIRES(one_thread);
long signal_member(int virtual_id, int number, const struct siginfo *info);
int virtual_sender(int real_id);

#endif
