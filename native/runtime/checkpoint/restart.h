/* Going on from an image: see restart.c. */
#ifndef RUNTIME_RESTART_H
#define RUNTIME_RESTART_H

#include "runtime/process/lineage.h"

__attribute__((noreturn)) void revive(struct revival *r) REQUIRES(one_thread);

#endif
