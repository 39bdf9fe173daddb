/* Signals of the program: see signals.c. */
#ifndef RUNTIME_SIGNALS_H
#define RUNTIME_SIGNALS_H

#include "runtime/trap.h"

/* Never really blocked: the trap itself, the checkpoint, and the faults of copy_user. */
#define RESERVED_SIGNALS \
    (SIGNAL_BIT(SIGSYS) | SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(CHECKPOINT_SIGNAL))

extern struct lock actions_lock;
void on_signal(int number, struct siginfo *info, void *frame);
void die_of(int number);
void watch_actions(void);
bool wants_signals_of_stops(void);
bool turns_away(struct thread *self, int number);
void install_actions(void) REQUIRES(one_thread);
void reset_actions_for_exec(void) REQUIRES(one_thread);
long wait_mask(struct trap *t, const void *user_mask, size_t size, uint64_t *mask);
void adopt_wait_mask(struct trap *t, uint64_t mask);
uint64_t program_mask(struct thread *self);
void set_program_mask(struct thread *self, uint64_t mask);
size_t extended_state_size(const struct ucontext *frame);

#endif
