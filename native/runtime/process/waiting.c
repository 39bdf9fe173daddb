/* Waiting for children: the kernel's, but for those that stop or go on, which is this runtime's; see stops.c. */
#include "family.h"
#include "groups.h"
#include "runtime/kinship/kinship.h"
#include "process.h"
#include "runtime/kinship/process_files.h"
#include "runtime/text.h"
#include "runtime/user.h"

enum { USAGE_WORDS = 18, SIGNAL_OF_STATUS = 0x7f, CHANGES = WUNTRACED | WCONTINUED };

/* Whom a wait is for, as wait4 names them. Returns 0 or -ECHILD. */
static long real_target(struct thread *self, int id, int *real)
{
    *real = ANY_CHILD;
    if (id > 0 && !(*real = real_child_id(id))) {
        find_orphans(self);
        *real = real_child_id(id);
    } else if (id > 0) {
        return 0;
    } else if (id == (int)0x80000000)
        return -ESRCH;
    else if (id != ANY_CHILD) {
        long group = real_group_of(self, -id);
        *real = group > 0 ? (int)-group : 0;
    }
    return *real ? 0 : -ECHILD;
}

/* A member that ends by itself is heard at home before it is gone; what one wrote that a signal ended may still
 * be on its way there. */
static void await_last_calls(struct thread *self, int real_id)
{
    struct request request = {.call = OP_MEMBER_GONE, .arguments = {real_id}};
    ask(self, &request, NULL, 0, NULL, 0, NULL);
}

/* Whether a child that a wait is for has ended, which counts for more than that it had stopped. */
static bool one_has_ended(int kind, int target)
{
    struct siginfo info;
    memset(&info, 0, sizeof info);
    return SYSTEM(__NR_waitid, kind, target, &info, WEXITED | WNOHANG | WNOWAIT, 0) || info._sifields._sigchld._pid;
}

/* A child that stopped or went on, of those that a wait for ID is for; 0: none. */
static int find_change(struct thread *self, int id, int kind, int target, unsigned long options, int *status)
{
    if (!(options & CHANGES) || !changes_may_be_untold())
        return 0;
    if ((options & WEXITED) && one_has_ended(kind, target))
        return 0;
    return told_change(self, id, options, options & WNOWAIT, status);
}

/* One call of the kernel's, for those that have ended. Who notes a change meanwhile interrupts it. Others than the family
 * may stop a member, which is nothing to the program. */
static long wait_for_end(struct trap *t, long number, long a[6])
{
    uint64_t mask = t->frame->uc_sigmask;
    return interruptible_system(number, a, &mask);
}

long do_wait4(struct trap *t)
{
    struct { long words[USAGE_WORDS]; } usage = {{0}};
    const int whom = (int)t->a[0];
    int status = 0, target;
    long nobody = real_target(t->self, whom, &target);
    if (nobody)
        return nobody;
    const int kind = target == ANY_CHILD ? P_ALL : target > 0 ? P_PID : P_PGID;
    t->self->awaits_changes = t->a[2] & CHANGES; /* said before looking */
    long id = find_change(t->self, whom, kind, target < 0 ? -target : target, (t->a[2] & ~WNOWAIT) | WEXITED, &status);
    const bool changed = id;
    long a[6] = {target, (long)&status, (long)t->a[2] & ~CHANGES, (long)&usage};
    if (!changed)
        id = wait_for_end(t, __NR_wait4, a);
    t->self->awaits_changes = false;
    if (id == 0 && whom > 0 && is_about_to_end(t->self, whom)) {
        a[2] &= ~WNOHANG;
        id = wait_for_end(t, __NR_wait4, a);
    }
    if (id == -EINTR)
        return -RESTART_ALWAYS;
    if (id <= 0)
        return id;
    if (!changed && (status & SIGNAL_OF_STATUS))
        await_last_calls(t->self, (int)id);
    if ((t->a[1] && copy_user((void *)t->a[1], &status, sizeof status)) ||
        (t->a[3] && copy_user((void *)t->a[3], &usage, sizeof usage)))
        return -EFAULT;
    return changed ? id : told_child(t->self, (int)id, true);
}

static void describe_change(struct siginfo *info, int id, int status)
{
    const bool goes_on = status == STATUS_CONTINUED;
    info->si_signo = SIGCHLD;
    info->si_code = goes_on ? CLD_CONTINUED : CLD_STOPPED;
    info->_sifields._sigchld._pid = id;
    info->_sifields._sigchld._uid = process.start.uid;
    info->_sifields._sigchld._status = goes_on ? SIGCONT : status >> STATUS_SHIFT;
}

/* What waitid is asked. */
struct wanted {
    int kind, id; /* P_... */
    long options;
    bool waits_not; /* the descriptor that it is asked by does not wait */
};

/* One that is named by a descriptor becomes one that is named by its number. Returns 0 or -errno. */
static long find_by_file(struct thread *self, struct wanted *w)
{
    struct process_told told;
    if (w->kind != WAIT_BY_FILE)
        return 0;
    long failed = w->id < 0 ? -EINVAL : process_of_file(self, w->id, &told);
    if (failed)
        return failed;
    w->kind = P_PID;
    w->id = told.virtual_pid;
    w->waits_not = told.wants_nonblocking && !(w->options & WNOHANG);
    if (w->waits_not)
        w->options |= WNOHANG;
    return 0;
}

/* The kernel's part of waitid. Returns 0 and INFO, as the program is told it, or -errno. */
static long wait_for_end_of(struct trap *t, const struct wanted *w, int target, struct siginfo *info)
{
    const bool ends = w->options & WEXITED; /* it must be for something */
    long a[6] = {w->kind, target, (long)info, ends ? w->options & ~CHANGES : w->options};
    long result = wait_for_end(t, __NR_waitid, a);
    if (!result && ends && (w->options & WNOHANG) && !info->_sifields._sigchld._pid && w->kind == P_PID &&
        is_about_to_end(t->self, w->id)) {
        a[3] &= ~WNOHANG;
        result = wait_for_end(t, __NR_waitid, a);
    }
    if (result < 0)
        return result;
    bool ended = info->si_code >= CLD_EXITED && info->si_code <= CLD_DUMPED && !(w->options & WNOWAIT);
    if (ended && info->si_code != CLD_EXITED)
        await_last_calls(t->self, info->_sifields._sigchld._pid);
    if (info->_sifields._sigchld._pid)
        info->_sifields._sigchld._pid = told_child(t->self, info->_sifields._sigchld._pid, ended);
    return 0;
}

long do_waitid(struct trap *t)
{
    struct siginfo info;
    memset(&info, 0, sizeof info);
    int target = ANY_CHILD, status = 0;
    struct wanted w = {(int)t->a[0], (int)t->a[1], (int)t->a[3], false};
    long result = find_by_file(t->self, &w);
    if (result)
        return result;
    if ((unsigned)w.kind > P_PGID || (w.kind == P_PID && w.id <= 0) || (w.kind == P_PGID && w.id < 0))
        return -EINVAL;
    const int whom = w.kind == P_ALL ? ANY_CHILD : w.kind == P_PID ? w.id : -w.id;
    if (w.kind != P_ALL && real_target(t->self, whom, &target))
        return -ECHILD;
    if (target < 0)
        target = -target;
    t->self->awaits_changes = w.options & CHANGES; /* said before looking */
    int changed = find_change(t->self, whom, w.kind, target, (unsigned long)w.options, &status);
    if (changed)
        describe_change(&info, changed, status);
    else
        result = wait_for_end_of(t, &w, target, &info);
    t->self->awaits_changes = false;
    if (result < 0)
        return result == -EINTR ? -RESTART_ALWAYS : result;
    if (w.waits_not && !info._sifields._sigchld._pid)
        return -EAGAIN;
    return t->a[2] && copy_user((void *)t->a[2], &info, sizeof info) ? -EFAULT : 0;
}
