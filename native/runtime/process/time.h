/* Clocks, sleeps and timers: see time.c. */
#ifndef RUNTIME_TIME_H
#define RUNTIME_TIME_H

#include "runtime/trap.h"

extern struct lock timers_lock;
int64_t monotonic_ns(void);
bool valid_time(const struct __kernel_timespec *time);
struct __kernel_timespec this_machines(const struct __kernel_timespec *moment);
int64_t wait_end(struct trap *t, int64_t timeout_ns);
int64_t wait_left(struct trap *t, struct __kernel_timespec *limit);
void remember_wait(struct trap *t, int64_t end_ns);
void forget_timers(void);
void save_timers(void) REQUIRES(one_thread);
void restore_clock(void) REQUIRES(one_thread);
void restore_timers(void);

#endif
