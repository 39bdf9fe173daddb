/* Signals that were sent and not taken yet, in checkpoints: see pending.c. */
#ifndef RUNTIME_PENDING_H
#define RUNTIME_PENDING_H

#include "runtime/process/thread.h"

void take_signals(struct thread *self, bool of_the_process);
void forget_signals(void);
bool all_signals_taken(void);
void give_back_signals(struct thread *self);
void name_sender(struct siginfo *info);

#endif
