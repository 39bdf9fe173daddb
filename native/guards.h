/* Which lock guards what.
 *
 * Every variable that outlives a call and can change says here how its threads share it, in one of four ways:
 *
 *     static struct timer timers[64] GUARDED_BY(timers_lock);     the lock is held whenever it is touched
 *     static struct region late[4096] GUARDED_BY(one_thread);     touched only while no other thread runs
 *     static volatile uint32_t parked_count ATOMIC;               one word, changed by atomic instructions
 *     static struct call *table UNGUARDED("why none is needed");
 *
 * A function that is called with a lock held says REQUIRES(lock).  tests/native/test_guards.py reads all this and
 * compares it with what the compiler put into writable sections; where there is clang, its analysis of locks checks
 * each path through each function (make guards).
 */
#ifndef CONDOR_GUARDS_H
#define CONDOR_GUARDS_H

#ifdef __clang__
#define CAPABILITY(kind) __attribute__((capability(kind)))
#define GUARDED_BY(lock) __attribute__((guarded_by(lock)))
#define REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define TRY_ACQUIRE(...) __attribute__((try_acquire_capability(__VA_ARGS__)))
#define RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define ASSERT_HELD(lock) __attribute__((assert_capability(lock)))
#define UNCHECKED_LOCKS __attribute__((no_thread_safety_analysis))
#else
#define CAPABILITY(kind)
#define GUARDED_BY(lock)
#define REQUIRES(...)
#define ACQUIRE(...)
#define TRY_ACQUIRE(...)
#define RELEASE(...)
#define ASSERT_HELD(lock)
#define UNCHECKED_LOCKS
#endif

#define ATOMIC
#define UNGUARDED(why)

#endif
