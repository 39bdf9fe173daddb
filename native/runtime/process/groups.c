/* Process groups and sessions of a family.
 *
 * The ids are the program's; home knows who is where and what is allowed (shadow/groups.c).  The kernel is told of each
 * group, so that it can wait for one; to it, all are of one session, and it is never asked to signal a group: others than
 * the family may be in its groups.
 *
 * A group outlives its leader.  So at a restart the first process makes the kernel's groups: it leads that of its own, and
 * each other one is led by a child that ends at once, and is kept unwaited for until all are back.
 */
#include "groups.h"

#include "runtime/remote/read_ahead.h"
#include "family.h"
#include "identity.h"
#include "process.h"
#include "runtime/remote/remote.h"
#include "runtime/signals/stops.h"
#include "runtime/text.h"

enum { OTHERS_CHILDREN = (int)0x80000000 /* __WCLONE */, ALL_CHILDREN = 0x40000000 /* __WALL */ };

static long ask_group(struct thread *self, int what, int pid, int group)
{
    bool child = pid && real_child_id(pid); /* it may have ended, but it was not waited for */
    struct request request = {.call = OP_GROUP, .arguments = {what, pid, group, child}};
    return ask(self, &request, NULL, 0, NULL, 0, NULL);
}

/* There is nobody else, and never was. */
static bool is_alone(void)
{
    return !process.family || (!process.helper && !process.forked);
}

static bool own(int id)
{
    return id == 0 || id == process.start.virtual_pid;
}

static int own_group(void)
{
    lock(&identity_lock);
    int group = process.start.group;
    unlock(&identity_lock);
    return group;
}

/* Only a helper's parent may change its group besides itself. */
long group_of(struct thread *self, int id)
{
    if (!is_alone() && (process.helper || !own(id)))
        return ask_group(self, GROUP_OF, own(id) ? 0 : id, 0);
    return own(id) ? own_group() : -ESRCH;
}

long do_getpgrp(struct trap *t)
{
    return group_of(t->self, 0);
}

long do_getpgid(struct trap *t)
{
    int id = (int)t->a[0];
    return id < 0 ? -ESRCH : group_of(t->self, id);
}

long do_getsid(struct trap *t)
{
    int id = (int)t->a[0];
    if (own(id)) {
        lock(&identity_lock);
        int session = process.start.session;
        unlock(&identity_lock);
        return session;
    }
    return id < 0 || is_alone() ? -ESRCH : ask_group(t->self, GROUP_SESSION, id, 0);
}

static long put_into(struct thread *self, int pid, int group)
{
    int real = own(pid) ? process.real_id : real_child_id(pid);
    long where = real ? ask_group(self, GROUP_FIND, own(pid) ? 0 : pid, group) : -ESRCH;
    if (where <= 0)
        return where;
    long failed = SYSTEM(__NR_setpgid, real, where); /* home may know a group whose last process was waited for */
    if (!failed)
        failed = ask_group(self, GROUP_SET, own(pid) ? 0 : pid, group);
    if (!failed && own(pid)) {
        lock(&identity_lock);
        process.start.group = group ? group : process.start.virtual_pid;
        unlock(&identity_lock);
    }
    return failed;
}

long do_setpgid(struct trap *t)
{
    int pid = (int)t->a[0], group = (int)t->a[1];
    if (group < 0)
        return -EINVAL;
    if (!is_alone())
        return put_into(t->self, pid, group);
    if (!own(pid))
        return -ESRCH;
    return own(group) || group == own_group() ? 0 : -EPERM; /* it leads its group, and there is no other */
}

long do_setsid(struct trap *t)
{
    long session = is_alone() ? -EPERM : ask_group(t->self, GROUP_LEAD, 0, 0); /* alone, it leads its group */
    if (session < 0)
        return session;
    SYSTEM(__NR_setpgid, 0, 0);
    lock(&identity_lock);
    process.start.group = process.start.session = process.start.virtual_pid;
    unlock(&identity_lock);
    return session;
}

/* The kernel's number of GROUP, 0: the own one; or -ECHILD. */
long real_group_of(struct thread *self, int group)
{
    if (!is_alone())
        return ask_group(self, GROUP_REAL, 0, group);
    return -ECHILD;
}

/* Whether a terminal's signals stop this process: another process of its session, but of another group, must be there to let it
 * go on. */
bool has_job_control(struct thread *self)
{
    return !is_alone() && ask_group(self, GROUP_CONTROLLED, 0, 0) == 1;
}

/* A signal to all in GROUP; 0: the own one; -1: all members but this one. */
long signal_group(struct thread *self, int group, int number)
{
    int32_t pids[MOST_GATHERED];
    if (is_alone())
        return group == 0 || group == own_group() ? send_signal(process.real_id, number, NULL) : -ESRCH;
    struct request request = {.call = OP_GROUP, .arguments = {GROUP_MEMBERS, 0, group}};
    struct vector out = {pids, sizeof pids};
    settle_writes(self);
    long count = ask(self, &request, NULL, 0, &out, 1, NULL), result = -ESRCH;
    bool me = false;
    if (count < 0 || count > MOST_GATHERED)
        return count < 0 ? count : -ESRCH;
    for (long i = 0; i < count; i++) {
        me |= pids[i] == process.real_id;
        if (pids[i] > 1 && pids[i] != process.real_id && !send_signal(pids[i], number, NULL))
            result = 0;
    }
    return me ? send_signal(process.real_id, number, NULL) : result; /* it may be the end of this one */
}

/* ---- coming back */

static void await_end(long id)
{
    struct siginfo info;
    while (SYSTEM(__NR_waitid, P_PID, id, &info, WEXITED | WNOWAIT | ALL_CHILDREN, 0) == -EINTR)
        ;
}

/* A new group of the kernel's, led by nobody that lives. Its leader's end signals nothing. */
static long new_group(void)
{
    long id = SYSTEM(__NR_clone, 0, 0, 0, 0, 0);
    if (id == 0) {
        SYSTEM(__NR_setpgid, 0, 0);
        die(0);
    }
    if (id > 0)
        await_end(id);
    return id;
}

/* In the first process: groups for all that come back. */
void groups_hold(struct revival *r)
{
    SYSTEM(__NR_setpgid, 0, 0);
    for (uint32_t i = 0; r->groups && i < r->family->members; i++) {
        long real = r->groups[i].group == r->members[0].virtual_pid ? process.real_id : 0;
        for (uint32_t k = 0; k < i && !real; k++)
            if (r->groups[k].group == r->groups[i].group)
                real = r->real_groups[k];
        if (!real)
            real = new_group();
        if (real < 0)
            die(EXIT_CANNOT_START);
        r->real_groups[i] = (int32_t)real;
    }
}

/* In each process that comes back: it is where it was. */
void groups_again(struct revival *r)
{
    for (uint32_t i = 0; r->groups && i < r->family->members; i++) {
        if (r->members[i].has_ended || r->members[i].virtual_pid != process.start.virtual_pid)
            continue;
        process.start.group = r->groups[i].group;
        process.start.session = r->groups[i].session;
        r->real_group = r->real_groups[i];
        SYSTEM(__NR_setpgid, 0, r->real_group);
        return;
    }
    if (!process.helper)
        r->real_group = process.real_id;
}

/* Home hears of a child that has ended, which is started to end again. */
bool groups_note_ended(struct thread *self, const struct revival *r, const struct member_image *who)
{
    if (!r->groups)
        return true;
    size_t at = (size_t)(who - r->members);
    struct request request = {.call = OP_GROUP, .arguments = {GROUP_ENDED, who->virtual_pid, r->groups[at].group,
                                                              r->groups[at].session, r->real_groups[at]}};
    return ask(self, &request, NULL, 0, NULL, 0, NULL) == 0;
}

/* All are back: those that led the groups are not needed any more. */
void groups_release(void)
{
    while (SYSTEM(__NR_wait4, -1, 0, WNOHANG | OTHERS_CHILDREN, 0) > 0)
        ;
}
