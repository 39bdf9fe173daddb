/* Clocks, sleeps, timed futexes and timers.
 *
 * A wait that a checkpoint interrupts is done again with what is left of its time: its end is kept as a
 * moment of the program's monotonic clock, which goes on where it was when the program moves.
 */
#include "runtime.h"

enum { REALTIME = 0, MONOTONIC = 1, MONOTONIC_RAW = 4, COARSE = 6, BOOTTIME = 7, ABSOLUTE = 1 };

#define SECOND 1000000000l

static int64_t nanoseconds(const struct __kernel_timespec *t)
{
    if (t->tv_sec > INT64_MAX / SECOND - 1)
        return INT64_MAX;
    return t->tv_sec * SECOND + t->tv_nsec;
}

static struct __kernel_timespec spec(int64_t ns)
{
    if (ns < 0)
        ns = 0;
    return (struct __kernel_timespec){ns / SECOND, ns % SECOND};
}

static bool valid(const struct __kernel_timespec *t)
{
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < SECOND;
}

static bool moves_with_program(long clock)
{
    return clock == MONOTONIC || clock == MONOTONIC_RAW || clock == COARSE || clock == BOOTTIME;
}

int64_t monotonic_ns(void)
{
    struct __kernel_timespec now;
    SYSTEM(__NR_clock_gettime, MONOTONIC, &now);
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

static long sleep_until(struct trap *t, long clock, int64_t end_ns, bool relative, void *left_to)
{
    struct __kernel_timespec until =
        spec(end_ns - (moves_with_program(clock) ? process.monotonic_offset_ns : 0));
    long a[6] = {clock, ABSOLUTE, (long)&until, 0};
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
    if (!valid(&length))
        return -EINVAL;
    return sleep_until(t, MONOTONIC, wait_end(t, nanoseconds(&length)), true, left_to);
}

long do_nanosleep(struct trap *t)
{
    return sleep_for(t, (void *)t->a[0], (void *)t->a[1]);
}

long do_clock_nanosleep(struct trap *t)
{
    struct __kernel_timespec until;
    long clock = (int)t->a[0];
    if (clock != REALTIME && clock != MONOTONIC && clock != BOOTTIME && clock != 11)
        return -EINVAL;
    if (!(t->a[1] & ABSOLUTE))
        return sleep_for(t, (void *)t->a[2], (void *)t->a[3]);
    if (copy_user(&until, (void *)t->a[2], sizeof until))
        return -EFAULT;
    if (!valid(&until))
        return -EINVAL;
    return sleep_until(t, clock, nanoseconds(&until), false, NULL);
}

long do_futex(struct trap *t)
{
    enum { WAIT = 0, CLOCK_IS_REALTIME = 256 };
    struct __kernel_timespec limit;
    long command = (long)(t->a[1] & 0x7f);
    bool timed = (command == WAIT || command == 6 || command == 9 || command == 11 || command == 13) && t->a[3];
    long a[6] = {(long)t->a[0], (long)t->a[1], (long)(int)t->a[2], (long)t->a[3], (long)t->a[4],
                 (long)(int)t->a[5]};
    uint64_t mask = t->frame->uc_sigmask;
    if (!timed) /* the filter lets these pass; here only on the way through another table */
        return system6(__NR_futex, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (copy_user(&limit, (void *)t->a[3], sizeof limit))
        return -EFAULT;
    if (!valid(&limit))
        return -EINVAL;
    int64_t end = 0;
    if (command == WAIT) {
        end = wait_end(t, nanoseconds(&limit));
        limit = spec(end - monotonic_ns());
    } else if (!(t->a[1] & CLOCK_IS_REALTIME) && command != 6) {
        limit = spec(nanoseconds(&limit) - process.monotonic_offset_ns);
    }
    a[3] = (long)&limit;
    long result = interruptible_system(__NR_futex, a, &mask);
    if (result != -EINTR)
        return result;
    if (command == WAIT)
        remember_wait(t, end);
    return -RESTART_UNHANDLED;
}

/* Interval timers are the kernel's; the checkpoint reads them and the restart sets them again. */
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
    SYSTEM(__NR_setitimer, 0, &fresh, &old);
    return old.left_s + (old.left_us >= 500000 || (old.left_us && !old.left_s));
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
static struct timer {
    bool used;
    int clock, kernel_id;
    struct timer_event event;
    struct timer_setting saved;
} timers[64];

static long create_in_kernel(struct timer *timer)
{
    struct timer_event event = timer->event;
    if (event.notify == 4) /* SIGEV_THREAD_ID */
        event.thread = real_thread_id(event.thread);
    return SYSTEM(__NR_timer_create, timer->clock, &event, &timer->kernel_id);
}

long do_timer_create(struct trap *t)
{
    for (int i = 0; i < (int)COUNT(timers); i++) {
        struct timer *timer = &timers[i];
        if (timer->used)
            continue;
        *timer = (struct timer){.clock = (int)t->a[0], .event = {.value = (uint64_t)i, .signal = SIGALRM}};
        if (t->a[1] && copy_user(&timer->event, (void *)t->a[1], sizeof timer->event))
            return -EFAULT;
        long failed = create_in_kernel(timer);
        if (failed)
            return failed;
        timer->used = true;
        return copy_user((void *)t->a[2], &i, sizeof i) ? -EFAULT : 0;
    }
    return -EAGAIN;
}

static struct timer *timer_of(const struct trap *t)
{
    return t->a[0] < COUNT(timers) && timers[t->a[0]].used ? &timers[t->a[0]] : NULL;
}

long do_timer_settime(struct trap *t)
{
    struct timer *timer = timer_of(t);
    struct timer_setting fresh, old;
    if (!timer)
        return -EINVAL;
    if (copy_user(&fresh, (void *)t->a[2], sizeof fresh))
        return -EFAULT;
    if ((t->a[1] & ABSOLUTE) && moves_with_program(timer->clock))
        fresh.left = spec(nanoseconds(&fresh.left) - process.monotonic_offset_ns);
    long result = SYSTEM(__NR_timer_settime, timer->kernel_id, t->a[1], &fresh, &old);
    return !result && t->a[3] && copy_user((void *)t->a[3], &old, sizeof old) ? -EFAULT : result;
}

long do_timer_gettime(struct trap *t)
{
    struct timer *timer = timer_of(t);
    struct timer_setting now;
    if (!timer)
        return -EINVAL;
    long result = SYSTEM(__NR_timer_gettime, timer->kernel_id, &now);
    return !result && copy_user((void *)t->a[1], &now, sizeof now) ? -EFAULT : result;
}

long do_timer_getoverrun(struct trap *t)
{
    struct timer *timer = timer_of(t);
    return timer ? SYSTEM(__NR_timer_getoverrun, timer->kernel_id) : -EINVAL;
}

long do_timer_delete(struct trap *t)
{
    struct timer *timer = timer_of(t);
    if (!timer)
        return -EINVAL;
    timer->used = false;
    return SYSTEM(__NR_timer_delete, timer->kernel_id);
}

/* POSIX timers end with the program that made them, and are not a child's. */
void forget_timers(void)
{
    for (size_t i = 0; i < COUNT(timers); i++) {
        if (timers[i].used)
            SYSTEM(__NR_timer_delete, timers[i].kernel_id);
        timers[i].used = false;
    }
}

/* For the checkpoint and the restart. */
static struct interval_timer saved_intervals[3];
static int64_t saved_at_ns;

void save_timers(void)
{
    saved_at_ns = monotonic_ns();
    for (int i = 0; i < 3; i++)
        SYSTEM(__NR_getitimer, i, &saved_intervals[i]);
    for (size_t i = 0; i < COUNT(timers); i++)
        if (timers[i].used)
            SYSTEM(__NR_timer_gettime, timers[i].kernel_id, &timers[i].saved);
}

/* The program's clock goes on from the moment of the checkpoint. */
void restore_clock(void)
{
    process.monotonic_offset_ns = 0;
    process.monotonic_offset_ns = saved_at_ns - monotonic_ns();
}

void restore_timers(void)
{
    for (int i = 0; i < 3; i++)
        if (saved_intervals[i].left_s || saved_intervals[i].left_us)
            SYSTEM(__NR_setitimer, i, &saved_intervals[i], 0);
    for (size_t i = 0; i < COUNT(timers); i++)
        if (timers[i].used && !create_in_kernel(&timers[i]))
            SYSTEM(__NR_timer_settime, timers[i].kernel_id, 0, &timers[i].saved, 0);
}
