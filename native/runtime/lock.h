/* Locks between the program's threads while they are inside the runtime. */
#ifndef RUNTIME_LOCK_H
#define RUNTIME_LOCK_H

#include "abi.h"

/* Blocked while the runtime works: everything but the faults that copy_user turns into -EFAULT. */
#define RUNTIME_MASK (~(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS)))

struct CAPABILITY("lock") lock {
    volatile uint32_t word;
};

void lock(struct lock *l) ACQUIRE(*l);
void unlock(struct lock *l) RELEASE(*l);
bool try_lock(struct lock *l) TRY_ACQUIRE(true, *l);
void forget_lock(struct lock *l);
void wait_while(volatile uint32_t *word, uint32_t value);
void wait_a_moment_while(volatile uint32_t *word, uint32_t value);
void wake_all(volatile uint32_t *word);
long interruptible_system(long number, const long arguments[6], const uint64_t *mask);
bool in_interruptible_call(struct ucontext *frame);

/* Not a lock that is ever taken: where it is held, no other thread of the program runs, because there is none yet or any
 * more, or because all are parked. */
extern struct lock one_thread;
static inline void no_other_thread_runs(void) ASSERT_HELD(one_thread);
static inline void no_other_thread_runs(void)
{
}

#endif
