/* Pseudo-terminals of the family's: see terminals.c. */
#ifndef RUNTIME_TERMINALS_H
#define RUNTIME_TERMINALS_H

#include "runtime/trap.h"

void send_terminal_signals(struct thread *self);
long settle_background(struct thread *self, int number);
long terminal_control(struct trap *t, bool *known);

#endif
