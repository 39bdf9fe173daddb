/* Memory that members of a family share: see shared_memory.c. */
#ifndef RUNTIME_SHARED_MEMORY_H
#define RUNTIME_SHARED_MEMORY_H

#include "runtime/process/lineage.h"

bool shared_memory_make(struct revival *r) REQUIRES(one_thread);
bool shared_memory_again(const struct revival *r) REQUIRES(one_thread);
void shared_memory_drop(const struct revival *r) REQUIRES(one_thread);

#endif
