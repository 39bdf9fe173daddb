/* Memory that members of a family share: see commons.c. */
#ifndef RUNTIME_COMMONS_H
#define RUNTIME_COMMONS_H

#include "kin.h"

bool commons_make(struct revival *r) REQUIRES(one_thread);
bool commons_again(const struct revival *r) REQUIRES(one_thread);
void commons_drop(const struct revival *r) REQUIRES(one_thread);

#endif
