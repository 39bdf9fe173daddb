/* Processes as descriptors (pidfd): home knows which process one is of, and whether that has ended; signals and waiting are
 * the kernel's here.  Home hears of an end a moment before the kernel has done it: a wait that need not wait does so then. */
#include "process_files.h"

#include "runtime/process/family.h"
#include "runtime/process/process.h"
#include "runtime/remote/remote.h"
#include "runtime/signals/signals.h"
#include "runtime/signals/stops.h"
#include "runtime/user.h"

enum { TO_WHOLE_PROCESS = 2 /* PIDFD_SIGNAL_THREAD_GROUP */ };

static volatile bool had_one ATOMIC; /* this process has made such a descriptor */

static long ask_process(struct thread *self, int what, int64_t a, int64_t b, int64_t c)
{
    const struct request request = {.call = OP_PROCESS, .arguments = {what, a, b, c}};
    return ask(self, &request, NULL, 0, NULL, 0, NULL);
}

/* Whom FD is of. Returns 0 or -errno. */
long process_of_file(struct thread *self, int fd, struct process_told *told)
{
    const struct request request = {.call = OP_PROCESS, .arguments = {PROCESS_OF, fd}};
    struct vector out = {told, sizeof *told};
    return ask(self, &request, NULL, 0, &out, 1, NULL);
}

/* A child that has said so at home, of which a descriptor may have told the program already. */
bool is_about_to_end(struct thread *self, int virtual_id)
{
    return had_one && virtual_id > 0 && ask_process(self, PROCESS_ENDS, 0, virtual_id, 0) == 1;
}

long new_process_file(struct thread *self, int flags)
{
    had_one = true;
    return ask_process(self, PROCESS_FILE, flags, 0, 0);
}

/* CHILD: it was not waited for, and may have ended. */
long name_process_file(struct thread *self, long fd, int virtual_id, bool child)
{
    return ask_process(self, PROCESS_NAME, fd, virtual_id, child);
}

long do_pidfd_open(struct trap *t)
{
    const int id = (int)t->a[0];
    const unsigned flags = (unsigned)t->a[1];
    if (id <= 0 || (flags & ~O_NONBLOCK))
        return -EINVAL;
    if (id != process.start.virtual_pid && real_thread_id(id))
        return -ENOENT;
    long fd = new_process_file(t->self, (int)flags);
    if (fd < 0)
        return fd;
    long failed = name_process_file(t->self, fd, id, id == process.start.virtual_pid || real_child_id(id));
    if (failed)
        call_home(t->self, __NR_close, fd, 0, 0, 0, 0, 0);
    return failed ? failed : fd;
}

/* INFO: what the program says beside NUMBER. Returns 0 or -errno. */
static long read_info(const void *from, int number, bool own, struct siginfo *info)
{
    if (copy_user(info, from, sizeof *info))
        return -EFAULT;
    if (info->si_signo != number)
        return -EINVAL;
    return !own && (info->si_code >= 0 || info->si_code == SI_TKILL) ? -EPERM : 0;
}

long do_pidfd_send_signal(struct trap *t)
{
    const int number = (int)t->a[1];
    const unsigned flags = (unsigned)t->a[3];
    struct process_told told;
    struct siginfo info;
    if (flags & ~TO_WHOLE_PROCESS)
        return -EINVAL;
    long failed = process_of_file(t->self, (int)t->a[0], &told);
    const bool own = !failed && told.virtual_pid == process.start.virtual_pid;
    if (!failed && t->a[2])
        failed = read_info((void *)t->a[2], number, own, &info);
    if (failed)
        return failed;
    if (number < 0 || number > SIGNAL_COUNT)
        return -EINVAL;
    if (told.has_ended) /* its number may be another's */
        return real_child_id(told.virtual_pid) ? 0 : -ESRCH;
    if (number == CHECKPOINT_SIGNAL)
        return 0;
    const struct siginfo *beside = t->a[2] ? &info : NULL;
    return own ? send_signal(process.real_id, number, beside) : signal_member(told.virtual_pid, number, beside);
}

/* With CLONE_PIDFD a descriptor of it, which is there before it is. */
long start_member(struct trap *t, unsigned long flags)
{
    if (!(flags & CLONE_PIDFD))
        return begin_birth(t, flags);
    if (!process.family)
        return -EAGAIN;
    long file = new_process_file(t->self, 0);
    const int fd = (int)file;
    if (file < 0)
        return file;
    long result = copy_user((void *)t->a[2], &fd, sizeof fd) ? -EFAULT : begin_birth(t, flags);
    if (result > 0)
        name_process_file(t->self, file, (int)result, true);
    else if (result < 0)
        call_home(t->self, __NR_close, file, 0, 0, 0, 0, 0);
    return result;
}
