/* Members that the program has stopped: see stops.c. */
#ifndef RUNTIME_STOPS_H
#define RUNTIME_STOPS_H

#include "runtime/process/thread.h"

extern struct lock stops_lock;
bool is_order(const struct siginfo *info);
void take_order(struct thread *self, const struct siginfo *info);
void take_orders(struct thread *self);
void pass_stop_on(void);
bool is_terminal_stop(int number);
void stop_by_terminal(struct thread *self, int number);
bool is_to_stop(void);
bool has_stopped(void) REQUIRES(one_thread);
bool stand_still(struct thread *self) REQUIRES(one_thread);
void forget_orders(void);
void forget_stop(void) REQUIRES(one_thread);
long send_signal(int real_id, int number, const struct siginfo *info);
long send_to_own_thread(int real_thread, int number, const struct siginfo *info);

#endif
