/* Signals that the program sends: to itself, to a thread of its own, to other members, to groups. */
#include "runtime/process/family.h"
#include "runtime/process/groups.h"
#include "runtime/process/process.h"
#include "runtime/signals/signals.h"
#include "runtime/signals/stops.h"
#include "runtime/process/thread.h"
#include "runtime/user.h"

long do_kill(struct trap *t)
{
    long id = (int)t->a[0], number = (int)t->a[1];
    if (number < 0 || number > SIGNAL_COUNT)
        return -EINVAL;
    if (number == CHECKPOINT_SIGNAL)
        return 0;
    if (id == process.start.virtual_pid)
        return send_signal(process.real_id, (int)number, NULL);
    if (id <= 0)
        return id == INT32_MIN ? -ESRCH : signal_group(t->self, id == -1 ? -1 : (int)-id, (int)number);
    long result = signal_member((int)id, (int)number, NULL);
    return result == -ESRCH && id == 1 ? -EPERM : result;
}

static long send_to_thread(long id, long number)
{
    int real = real_thread_id((int)id);
    if (number < 0 || number > SIGNAL_COUNT || id <= 0)
        return -EINVAL;
    if (number == CHECKPOINT_SIGNAL) /* the C library's way to change ids in all threads: no handler */
        return -ESRCH;
    return real ? send_to_own_thread(real, (int)number, NULL) : -ESRCH;
}

long do_tgkill(struct trap *t)
{
    return (int)t->a[0] == process.start.virtual_pid ? send_to_thread((int)t->a[1], (int)t->a[2]) : -ESRCH;
}

long do_tkill(struct trap *t)
{
    return send_to_thread((int)t->a[0], (int)t->a[1]);
}

static long queue(int id, int number, const void *from)
{
    struct siginfo info;
    int real = real_thread_id(id);
    if (copy_user(&info, from, sizeof info))
        return -EFAULT;
    info.si_signo = number;
    return real ? send_to_own_thread(real, number, &info) : -ESRCH;
}

/* To a process: any of its threads may take it. */
long do_rt_sigqueueinfo(struct trap *t)
{
    int id = (int)t->a[0], number = (int)t->a[1];
    struct siginfo info;
    if (copy_user(&info, (void *)t->a[2], sizeof info))
        return -EFAULT;
    if ((info.si_code >= 0 || info.si_code == SI_TKILL) && id != t->self->virtual_id)
        return -EPERM; /* only the kernel says such things, and a process to itself */
    if (number < 0 || number > SIGNAL_COUNT)
        return -EINVAL;
    if (number == CHECKPOINT_SIGNAL)
        return 0;
    info.si_signo = number;
    if (id != process.start.virtual_pid)
        return id > 0 ? signal_member(id, number, &info) : -ESRCH;
    return send_signal(process.real_id, number, &info);
}

long do_rt_tgsigqueueinfo(struct trap *t)
{
    return (int)t->a[0] == process.start.virtual_pid ? queue((int)t->a[1], (int)t->a[2], (void *)t->a[3])
                                                     : -ESRCH;
}
