/* Programs that start programs: see family.c. */
#ifndef RUNTIME_FAMILY_H
#define RUNTIME_FAMILY_H

#include "trap.h"

extern struct lock children_lock;
long start_member(struct trap *t, unsigned long flags);
int real_child_id(int virtual_id);
long signal_member(int virtual_id, int number);

#endif
