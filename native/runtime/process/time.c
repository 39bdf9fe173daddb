/* Clocks, sleeps, timed futexes and timers.
 *
 * A wait that a checkpoint interrupts is done again with what is left of its time: its end is kept as a
 * moment of the program's monotonic clock, which goes on where it was when the program moves.
 */
#include "time.h"

#include "owned.h"
#include "process.h"
#include "runtime/signals/signals.h"
#include "runtime/text.h"
#include "runtime/user.h"

static int64_t nanoseconds(const struct __kernel_timespec *t)
{
    if (t->tv_sec > INT64_MAX / SECOND_NS - 1)
        return INT64_MAX;
    return t->tv_sec * SECOND_NS + t->tv_nsec;
}

static struct __kernel_timespec spec(int64_t ns)
{
    if (ns < 0)
        ns = 0;
    return (struct __kernel_timespec){ns / SECOND_NS, ns % SECOND_NS};
}

bool valid_time(const struct __kernel_timespec *t)
{
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < SECOND_NS;
}

static bool moves_with_program(long clock)
{
    return clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE || clock == CLOCK_BOOTTIME;
}

/* A moment of the program's monotonic clock on the one of this machine. */
struct __kernel_timespec this_machines(const struct __kernel_timespec *moment)
{
    return spec(nanoseconds(moment) - process.monotonic_offset_ns);
}

int64_t monotonic_ns(void)
{
    struct __kernel_timespec now;
    SYSTEM(__NR_clock_gettime, CLOCK_MONOTONIC, &now);
    return nanoseconds(&now) + process.monotonic_offset_ns;
}

long do_clock_gettime(struct trap *t)
{
    struct __kernel_timespec now;
    long failed = SYSTEM(__NR_clock_gettime, t->a[0], &now);
    if (failed)
        return failed;
    if (moves_with_program((long)t->a[0]))
        now = spec(nanoseconds(&now) + process.monotonic_offset_ns);
    return copy_user((void *)t->a[1], &now, sizeof now) ? -EFAULT : 0;
}

/* The end of a wait that lasts TIMEOUT from now, or of the interrupted one that this call continues. */
int64_t wait_end(struct trap *t, int64_t timeout_ns)
{
    if (t->self->resume.number == t->number)
        return t->self->resume.deadline_ns;
    int64_t now = monotonic_ns();
    return timeout_ns > INT64_MAX - now ? INT64_MAX : now + timeout_ns;
}

void remember_wait(struct trap *t, int64_t end_ns)
{
    t->self->resume.number = t->number;
    t->self->resume.rip = t->frame->uc_mcontext.rip;
    t->self->resume.rsp = t->frame->uc_mcontext.rsp;
    t->self->resume.deadline_ns = end_ns;
}

/* Makes of LIMIT, how long a wait lasts, what is left of it. Returns its end. */
int64_t wait_left(struct trap *t, struct __kernel_timespec *limit)
{
    int64_t end_ns = wait_end(t, nanoseconds(limit));
    *limit = spec(end_ns - monotonic_ns());
    return end_ns;
}

static long sleep_until(struct trap *t, long clock, int64_t end_ns, bool relative, void *left_to)
{
    struct __kernel_timespec until =
        spec(end_ns - (moves_with_program(clock) ? process.monotonic_offset_ns : 0));
    long a[6] = {clock, TIMER_ABSTIME, (long)&until, 0};
    uint64_t mask = t->frame->uc_sigmask;
    long result = interruptible_system(__NR_clock_nanosleep, a, &mask);
    if (result != -EINTR)
        return result;
    if (relative) {
        struct __kernel_timespec left = spec(end_ns - monotonic_ns());
        remember_wait(t, end_ns);
        if (left_to && copy_user(left_to, &left, sizeof left))
            return -EFAULT;
    }
    return -RESTART_UNHANDLED;
}

static long sleep_for(struct trap *t, const void *from, void *left_to)
{
    struct __kernel_timespec length;
    if (copy_user(&length, from, sizeof length))
        return -EFAULT;
    if (!valid_time(&length))
        return -EINVAL;
    return sleep_until(t, CLOCK_MONOTONIC, wait_end(t, nanoseconds(&length)), true, left_to);
}

long do_nanosleep(struct trap *t)
{
    return sleep_for(t, (void *)t->a[0], (void *)t->a[1]);
}

long do_clock_nanosleep(struct trap *t)
{
    struct __kernel_timespec until;
    long clock = (int)t->a[0];
    if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME && clock != CLOCK_TAI)
        return -EINVAL;
    if (!(t->a[1] & TIMER_ABSTIME))
        return sleep_for(t, (void *)t->a[2], (void *)t->a[3]);
    if (copy_user(&until, (void *)t->a[2], sizeof until))
        return -EFAULT;
    if (!valid_time(&until))
        return -EINVAL;
    return sleep_until(t, clock, nanoseconds(&until), false, NULL);
}

long do_futex(struct trap *t)
{
    struct __kernel_timespec limit;
    long command = (long)(t->a[1] & FUTEX_CMD_MASK);
    bool timed = (command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET) && t->a[3];
    long a[6] = {(long)t->a[0], (long)t->a[1], (long)(int)t->a[2], (long)t->a[3], (long)t->a[4],
                 (long)(int)t->a[5]};
    uint64_t mask = t->frame->uc_sigmask;
    if (is_owned(command))
        return owned_futex(t, command);
    if (!timed) /* the filter lets these pass; here only on the way through another table */
        return system6(__NR_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (copy_user(&limit, (void *)t->a[3], sizeof limit))
        return -EFAULT;
    if (!valid_time(&limit))
        return -EINVAL;
    int64_t end = 0;
    if (command == FUTEX_WAIT) {
        end = wait_left(t, &limit);
    } else if (!(t->a[1] & FUTEX_CLOCK_REALTIME)) {
        limit = this_machines(&limit);
    }
    a[3] = (long)&limit;
    long result = interruptible_system(__NR_futex, a, &mask);
    if (result != -EINTR)
        return result;
    if (command == FUTEX_WAIT)
        remember_wait(t, end);
    return -RESTART_UNHANDLED;
}

/* Interval timers are the kernel's; the checkpoint reads them and the restart sets them again. */
enum { HALF_SECOND_US = 500000 };

struct interval_timer {
    int64_t every_s, every_us, left_s, left_us;
};

long do_setitimer(struct trap *t)
{
    struct interval_timer fresh, old;
    if (t->a[1] && copy_user(&fresh, (void *)t->a[1], sizeof fresh))
        return -EFAULT;
    long result = SYSTEM(__NR_setitimer, t->a[0], t->a[1] ? &fresh : NULL, &old);
    if (!result && t->a[2] && copy_user((void *)t->a[2], &old, sizeof old))
        return -EFAULT;
    return result;
}

long do_getitimer(struct trap *t)
{
    struct interval_timer now;
    long result = SYSTEM(__NR_getitimer, t->a[0], &now);
    return !result && copy_user((void *)t->a[1], &now, sizeof now) ? -EFAULT : result;
}

long do_alarm(struct trap *t)
{
    struct interval_timer fresh = {.left_s = (int64_t)(uint32_t)t->a[0]}, old = {0};
    SYSTEM(__NR_setitimer, ITIMER_REAL, &fresh, &old);
    return old.left_s + (old.left_us >= HALF_SECOND_US || (old.left_us && !old.left_s));
}

/* POSIX timers: the program's number is the place in this table. */
struct timer_event {
    uint64_t value;
    int32_t signal, notify, thread;
    int32_t padding[11];
};
struct timer_setting {
    struct __kernel_timespec every, left;
};
enum { TIMERS = 64 };
struct lock timers_lock;
static struct timer {
    bool used;
    int clock, kernel_id;
    struct timer_event event;
    struct timer_setting saved;
} timers[TIMERS] GUARDED_BY(timers_lock);

static long create_in_kernel(struct timer *timer)
{
    struct timer_event event = timer->event;
    if (event.notify == SIGEV_THREAD_ID)
        event.thread = real_thread_id(event.thread);
    return SYSTEM(__NR_timer_create, timer->clock, &event, &timer->kernel_id);
}

/* Makes a timer in an unused place. Returns its number or -errno. */
static int create_timer(int clock, const struct timer_event *event)
{
    int number = -EAGAIN;
    lock(&timers_lock);
    for (int i = 0; i < TIMERS && number == -EAGAIN; i++) {
        struct timer *timer = &timers[i];
        if (timer->used)
            continue;
        *timer = (struct timer){.clock = clock, .event = {.value = (uint64_t)i, .signal = SIGALRM}};
        if (event)
            timer->event = *event;
        long failed = create_in_kernel(timer);
        timer->used = !failed;
        number = failed ? (int)failed : i;
    }
    unlock(&timers_lock);
    return number;
}

/* The timer of that number. NULL: there is none. */
static struct timer *timer_of(unsigned long number) REQUIRES(timers_lock);
static struct timer *timer_of(unsigned long number)
{
    return number < TIMERS && timers[number].used ? &timers[number] : NULL;
}

static long delete_timer(unsigned long number)
{
    long result = -EINVAL;
    lock(&timers_lock);
    struct timer *timer = timer_of(number);
    if (timer) {
        timer->used = false;
        result = SYSTEM(__NR_timer_delete, timer->kernel_id);
    }
    unlock(&timers_lock);
    return result;
}

long do_timer_create(struct trap *t)
{
    struct timer_event event;
    if (t->a[1] && copy_user(&event, (void *)t->a[1], sizeof event))
        return -EFAULT;
    int number = create_timer((int)t->a[0], t->a[1] ? &event : NULL);
    if (number < 0)
        return number;
    if (!copy_user((void *)t->a[2], &number, sizeof number))
        return 0;
    delete_timer((unsigned long)number);
    return -EFAULT;
}

long do_timer_settime(struct trap *t)
{
    struct timer_setting fresh, old;
    long result = -EINVAL;
    if (copy_user(&fresh, (void *)t->a[2], sizeof fresh))
        return -EFAULT;
    lock(&timers_lock);
    struct timer *timer = timer_of(t->a[0]);
    if (timer && (t->a[1] & TIMER_ABSTIME) && moves_with_program(timer->clock))
        fresh.left = spec(nanoseconds(&fresh.left) - process.monotonic_offset_ns);
    if (timer)
        result = SYSTEM(__NR_timer_settime, timer->kernel_id, t->a[1], &fresh, &old);
    unlock(&timers_lock);
    return !result && t->a[3] && copy_user((void *)t->a[3], &old, sizeof old) ? -EFAULT : result;
}

long do_timer_gettime(struct trap *t)
{
    struct timer_setting now;
    long result = -EINVAL;
    lock(&timers_lock);
    struct timer *timer = timer_of(t->a[0]);
    if (timer)
        result = SYSTEM(__NR_timer_gettime, timer->kernel_id, &now);
    unlock(&timers_lock);
    return !result && copy_user((void *)t->a[1], &now, sizeof now) ? -EFAULT : result;
}

long do_timer_getoverrun(struct trap *t)
{
    long result = -EINVAL;
    lock(&timers_lock);
    struct timer *timer = timer_of(t->a[0]);
    if (timer)
        result = SYSTEM(__NR_timer_getoverrun, timer->kernel_id);
    unlock(&timers_lock);
    return result;
}

long do_timer_delete(struct trap *t)
{
    return delete_timer(t->a[0]);
}

/* POSIX timers end with the program that made them, and are not a child's. */
void forget_timers(void)
{
    lock(&timers_lock);
    for (size_t i = 0; i < TIMERS; i++) {
        if (timers[i].used)
            SYSTEM(__NR_timer_delete, timers[i].kernel_id);
        timers[i].used = false;
    }
    unlock(&timers_lock);
}

/* For the checkpoint and the restart. */
enum { INTERVAL_TIMERS = 3 };
static struct interval_timer saved_intervals[INTERVAL_TIMERS] GUARDED_BY(one_thread);
static int64_t saved_at_ns GUARDED_BY(one_thread);

void save_timers(void)
{
    saved_at_ns = monotonic_ns();
    for (int i = 0; i < INTERVAL_TIMERS; i++) {
        struct interval_timer *timer = &saved_intervals[i];
        SYSTEM(__NR_getitimer, i, timer);
        if (!timer->left_s && !timer->left_us) { /* it rests until its signal, which waits, is taken */
            timer->left_s = timer->every_s;
            timer->left_us = timer->every_us;
        }
    }
    lock(&timers_lock);
    for (size_t i = 0; i < TIMERS; i++)
        if (timers[i].used)
            SYSTEM(__NR_timer_gettime, timers[i].kernel_id, &timers[i].saved);
    unlock(&timers_lock);
}

/* The program's clock goes on from the moment of the checkpoint. */
void restore_clock(void)
{
    process.monotonic_offset_ns = 0;
    process.monotonic_offset_ns = saved_at_ns - monotonic_ns();
}

void restore_timers(void)
{
    no_other_thread_runs(); /* all wait for the last one, which is this */
    for (int i = 0; i < INTERVAL_TIMERS; i++)
        if (saved_intervals[i].left_s || saved_intervals[i].left_us)
            SYSTEM(__NR_setitimer, i, &saved_intervals[i], 0);
    lock(&timers_lock);
    for (size_t i = 0; i < TIMERS; i++)
        if (timers[i].used && !create_in_kernel(&timers[i]))
            SYSTEM(__NR_timer_settime, timers[i].kernel_id, 0, &timers[i].saved, 0);
    unlock(&timers_lock);
}
