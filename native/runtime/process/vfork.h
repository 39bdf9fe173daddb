/* What a child made by vfork or posix_spawn shows its parent: see vfork.c. */
#ifndef RUNTIME_VFORK_H
#define RUNTIME_VFORK_H

#include "runtime/trap.h"

struct loan;

struct loan *loan_make(const struct trap *t);
void loan_await(struct loan *l, int real_id);
void loan_drop(struct loan *l);
void borrow(struct loan *l);
bool parks_later(const struct siginfo *info);
void give_back(struct thread *self);

#endif
