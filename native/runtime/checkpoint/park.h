/* Parking: all threads but one stand still while a checkpoint is taken: see park.c. */
#ifndef RUNTIME_PARK_H
#define RUNTIME_PARK_H

#include "runtime/process/thread.h"

extern volatile uint32_t checkpoint_phase ATOMIC;
void save_thread(struct thread *self, struct ucontext *frame);
void park(struct thread *self, struct ucontext *frame, uint32_t phase);
void release_others(uint32_t phase);
void gather_signals(struct thread *self) REQUIRES(one_thread);
void forget_parking(void) REQUIRES(one_thread);
void park_others(struct thread *self, uint32_t phase);

#endif
