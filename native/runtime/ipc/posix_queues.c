/* POSIX message queues are at home (shadow/ipc/posix_queues.c); here times become durations, and who is to be told of a message
 * gets its signal from the process that has sent it. */
#include "runtime/process/family.h"
#include "runtime/process/process.h"
#include "runtime/process/time.h"
#include "runtime/remote/remote.h"
#include "runtime/signals/signals.h"
#include "runtime/signals/stops.h"
#include "runtime/text.h"
#include "runtime/user.h"

enum { PRIORITIES = 32768, EVENT_BYTES = 64, FROM_QUEUE = -3 /* SI_MESGQ */ };

/* As home tells it. */
struct notice {
    int32_t pid, number;
    int64_t value;
};

/* How long a call may take whose end is at AT; *LEFT_NS -1: there is none. Returns 0 or -errno. */
static long time_left(const void *at, int64_t *left_ns)
{
    struct __kernel_timespec end, now;
    *left_ns = -1;
    if (!at)
        return 0;
    if (copy_user(&end, at, sizeof end))
        return -EFAULT;
    if (!valid_time(&end))
        return -EINVAL;
    SYSTEM(__NR_clock_gettime, CLOCK_REALTIME, &now);
    const int64_t seconds = end.tv_sec - now.tv_sec;
    *left_ns = seconds > INT32_MAX ? INT64_MAX / 2 : seconds * SECOND_NS + end.tv_nsec - now.tv_nsec;
    if (*left_ns < 0)
        *left_ns = 0;
    return 0;
}

static void give_notice(const struct notice *notice)
{
    struct siginfo info;
    if (notice->number <= 0 || notice->number > SIGNAL_COUNT)
        return;
    memset(&info, 0, sizeof info);
    info.si_signo = notice->number;
    info.si_code = FROM_QUEUE;
    info._sifields._rt._pid = process.start.virtual_pid;
    info._sifields._rt._uid = process.start.uid;
    info._sifields._rt._sigval.sival_ptr = (void *)notice->value;
    if (notice->pid == process.start.virtual_pid)
        send_signal(process.real_id, notice->number, &info);
    else
        signal_member(notice->pid, notice->number, &info);
}

long do_mq_timedsend(struct trap *t)
{
    struct notice notice = {0};
    int64_t left_ns;
    if ((unsigned)t->a[3] >= PRIORITIES)
        return -EINVAL;
    const long failed = time_left((void *)t->a[4], &left_ns);
    if (failed)
        return failed;
    struct request request = {.call = __NR_mq_timedsend, .arguments = {(int)t->a[0], (unsigned)t->a[3], (int64_t)t->a[2], left_ns}};
    const bool fits = t->a[2] <= MAX_PAYLOAD; /* else home says what is wrong */
    const struct vector in = {(void *)t->a[1], t->a[2]}, out = {&notice, sizeof notice};
    const long result = ask_waiting(t, &request, &in, fits, &out, 1, NULL);
    if (result > 0)
        give_notice(&notice);
    return result > 0 ? 0 : result;
}

long do_mq_timedreceive(struct trap *t)
{
    uint32_t priority = 0;
    int64_t left_ns;
    const long failed = time_left((void *)t->a[4], &left_ns);
    if (failed)
        return failed;
    const size_t room = t->a[2] > MAX_PAYLOAD ? MAX_PAYLOAD : t->a[2];
    struct request request = {.call = __NR_mq_timedreceive, .arguments = {(int)t->a[0], 0, (int64_t)room, left_ns}};
    const struct vector out[] = {{&priority, sizeof priority}, {(void *)t->a[1], room}};
    const long result = ask_waiting(t, &request, NULL, 0, out, 2, NULL);
    if (result >= 0 && t->a[3] && copy_user((void *)t->a[3], &priority, sizeof priority))
        return -EFAULT;
    return result;
}

long do_mq_notify(struct trap *t)
{
    const bool wanted = t->a[1];
    const struct request request = {.call = __NR_mq_notify, .arguments = {(int)t->a[0], wanted}};
    const struct vector in = {(void *)t->a[1], EVENT_BYTES};
    return ask(t->self, &request, &in, wanted, NULL, 0, NULL);
}
