/* What each call means for answers given ahead: see invalidation.c. */
#ifndef RUNTIME_INVALIDATION_H
#define RUNTIME_INVALIDATION_H

#include "runtime/trap.h"

enum meaning { MEANS_NOTHING, MEANS_OWN_CHANGE, MEANS_INVALIDATION };

enum meaning note_call(const struct trap *t);
void note_call_done(enum meaning meaning, const struct trap *t, const unsigned long a[6]);
void note_invalidation(void);
void note_own_change(void);
uint32_t world_now(void);
extern volatile uint32_t invalidations ATOMIC;

#endif
