/* What the kernel lets the process do: see filter.c. */
#ifndef RUNTIME_FILTER_H
#define RUNTIME_FILTER_H

#include "lock.h"

void install_filter(void) REQUIRES(one_thread);

#endif
