/* Programs that start programs.
 *
 * fork, vfork and posix_spawn make a real child process with a copy of the memory and a channel of its
 * own, which the shadow hands over beside its answer.  The child's descriptors are a copy of the parent's
 * table at home, so pipes between the two work.  Waiting is the kernel's: helpers are real children.
 * How a checkpoint is taken of all of them is in family_checkpoint.c, how they come back in lineage.c.
 */
#include "family.h"

#include "runtime/checkpoint/park.h"
#include "runtime/remote/read_ahead.h"
#include "runtime/remote/control.h"
#include "runtime/memory/dirty.h"
#include "runtime/memory/shared_arena.h"
#include "groups.h"
#include "identity.h"
#include "runtime/kinship/kinship.h"
#include "lineage.h"
#include "runtime/memory/memory.h"
#include "runtime/proc/own_proc.h"
#include "runtime/remote/plan.h"
#include "process.h"
#include "runtime/remote/secret.h"
#include "runtime/memory/shared.h"
#include "runtime/signals/signals.h"
#include "runtime/signals/stops.h"
#include "runtime/text.h"
#include "time.h"
#include "runtime/user.h"
#include "vfork.h"

enum { CHILDREN = 1024, CHILDREN_GONE = 64, ROBUST_HEAD_BYTES = 3 * sizeof(long),
       COMES_BACK = -1 /* after a move: it is about to be started */ };

struct lock children_lock;
static struct child {
    int virtual_id, real_id; /* 0: unused, or COMES_BACK */
    int untold;              /* it has stopped or gone on: the status, of which no wait has told yet */
    int64_t changed_ns;      /* when it was told to, or this process told it to go on: what was before is not told any more */
} children[CHILDREN] GUARDED_BY(children_lock), gone[CHILDREN_GONE] GUARDED_BY(children_lock);
static unsigned gone_next GUARDED_BY(children_lock);
static volatile bool some_untold ATOMIC; /* perhaps, of some child */

static struct child *child_of(int virtual_id) REQUIRES(children_lock);
static struct child *child_of(int virtual_id)
{
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id && children[i].virtual_id == virtual_id)
            return &children[i];
    return NULL;
}

int real_child_id(int virtual_id)
{
    lock(&children_lock);
    const struct child *child = child_of(virtual_id);
    int found = child ? child->real_id : 0;
    unlock(&children_lock);
    return found;
}

/* A place for one more child.  Those that the kernel reaps by itself, because the program ignores
 * SIGCHLD, leave theirs unannounced. NULL: there are as many as can be. */
static struct child *free_child(void) REQUIRES(children_lock);
static struct child *free_child(void)
{
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < CHILDREN; i++) {
            struct child *child = &children[i];
            if (round && child->real_id && SYSTEM(__NR_kill, child->real_id, 0) == -ESRCH)
                child->real_id = 0;
            if (!child->real_id)
                return child;
        }
    return NULL;
}

/* The kernel's number, unless a process of before a move has it. Parent and child find the same one, each in
 * its copy of the table. */
static int new_virtual_id(int real_id) REQUIRES(children_lock);
static int new_virtual_id(int real_id)
{
    while (child_of(real_id) || real_id == process.start.virtual_pid || lineage_has(real_id))
        real_id += VIRTUAL_STEP;
    return real_id;
}

/* A child's status as wait4 would tell it. */
static int status_of(const struct siginfo *info)
{
    enum { DUMPED = 0x80 };
    int status = info->_sifields._sigchld._status;
    if (info->si_code == CLD_EXITED)
        return status << STATUS_SHIFT;
    return info->si_code == CLD_DUMPED ? status | DUMPED : status;
}

/* What there is of children: each lives, or has ended and was not waited for. What a wait has to tell of those that live is
 * in this process's memory. Returns their number or -errno. */
long list_children(struct lineage_child *list, uint32_t most)
{
    uint32_t count = 0;
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++) {
        struct siginfo info;
        memset(&info, 0, sizeof info);
        if (!children[i].real_id)
            continue;
        if (SYSTEM(__NR_waitid, P_PID, children[i].real_id, &info, WEXITED | WNOHANG | WNOWAIT, 0) < 0) {
            children[i].real_id = 0; /* the kernel has reaped it */
            continue;
        }
        if (count == most)
            break;
        bool ended = info._sifields._sigchld._pid;
        list[count++] = (struct lineage_child){children[i].virtual_id, ended, ended ? status_of(&info) : 0, 0};
    }
    unlock(&children_lock);
    return count < most ? (long)count : -E2BIG;
}

/* This process has told one, perhaps a child, to go on: no wait tells of its stop any more. */
void note_going_on(int real_id, int64_t at_ns)
{
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id) {
            children[i].changed_ns = at_ns;
            if (children[i].untold != STATUS_CONTINUED)
                children[i].untold = 0;
        }
    unlock(&children_lock);
}

/* A child, by its number where it runs, says that it has stopped by a signal, or has gone on. */
void note_change(struct thread *self, int real_id, int code, int number, int64_t at_ns)
{
    struct siginfo info;
    bool mine = false;
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id) {
            if (at_ns >= children[i].changed_ns) { /* else it comes late */
                children[i].changed_ns = at_ns;
                children[i].untold = code == CLD_STOPPED ? STATUS_STOPPED | number << STATUS_SHIFT : STATUS_CONTINUED;
            }
            mine = true;
        }
    unlock(&children_lock);
    if (!mine)
        return;
    __atomic_store_n(&some_untold, true, __ATOMIC_SEQ_CST);
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++)
        if (thread_at(slot) != self && thread_at(slot)->awaits_changes && thread_at(slot)->state != THREAD_FREE)
            SYSTEM(__NR_tgkill, process.real_id, thread_at(slot)->real_id, CHECKPOINT_SIGNAL); /* it looks again */
    if (!wants_signals_of_stops())
        return;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGCHLD;
    info.si_code = code;
    info._sifields._sigchld._pid = real_id;
    info._sifields._sigchld._uid = process.start.uid;
    info._sifields._sigchld._status = number;
    if (SYSTEM(__NR_rt_sigqueueinfo, process.real_id, SIGCHLD, &info) == -EPERM) /* it is not the first thread that asks */
        SYSTEM(__NR_rt_tgsigqueueinfo, process.real_id, self->real_id, SIGCHLD, &info);
}

bool changes_may_be_untold(void)
{
    return __atomic_load_n(&some_untold, __ATOMIC_SEQ_CST);
}

static bool is_meant(struct thread *self, int id, const struct child *child)
{
    if (id == ANY_CHILD || id > 0)
        return id == ANY_CHILD || child->virtual_id == id;
    return group_of(self, child->virtual_id) == (id ? -id : group_of(self, 0));
}

/* What a wait for ID, as wait4 names children, is told of one that stopped or went on, if OPTIONS want that. Returns the
 * child's number, 0: there is nothing. KEEP: it is told again. */
int told_change(struct thread *self, int id, unsigned long options, bool keep, int *status)
{
    bool more = false;
    __atomic_store_n(&some_untold, false, __ATOMIC_SEQ_CST);
    for (size_t i = 0; i < CHILDREN; i++) {
        lock(&children_lock);
        const struct child child = children[i];
        unlock(&children_lock);
        if (!child.real_id || !child.untold)
            continue;
        bool wanted = options & (child.untold == STATUS_CONTINUED ? WCONTINUED : WUNTRACED);
        if (wanted && is_meant(self, id, &child)) {
            lock(&children_lock);
            bool still = children[i].real_id == child.real_id && children[i].untold == child.untold;
            if (still && !keep)
                children[i].untold = 0;
            unlock(&children_lock);
            __atomic_store_n(&some_untold, true, __ATOMIC_SEQ_CST);
            if (!still)
                continue;
            *status = child.untold;
            return child.virtual_id;
        }
        more = true;
    }
    if (more)
        __atomic_store_n(&some_untold, true, __ATOMIC_SEQ_CST);
    return 0;
}

bool adopt_child(int virtual_id, int real_id)
{
    lock(&children_lock);
    struct child *child = NULL;
    for (size_t i = 0; i < CHILDREN && !child; i++)
        if (children[i].real_id == COMES_BACK && children[i].virtual_id == virtual_id)
            child = &children[i];
    if (!child && (child = free_child()))
        *child = (struct child){.virtual_id = virtual_id};
    if (child)
        child->real_id = real_id;
    unlock(&children_lock);
    return child;
}

/* A child of another process, which has become this one's. */
void note_orphan(int virtual_id, int real_id)
{
    lock(&children_lock);
    bool known = false;
    for (size_t i = 0; i < CHILDREN && !known; i++)
        known = children[i].real_id == real_id;
    struct child *child = known ? NULL : free_child();
    if (child)
        *child = (struct child){.virtual_id = virtual_id, .real_id = real_id};
    unlock(&children_lock);
}

/* Their numbers are those of another machine; what no wait has told of them is still to be told. */
void forget_children(void)
{
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id) {
            children[i].real_id = COMES_BACK;
            children[i].changed_ns = 0;
        }
    memset(gone, 0, sizeof gone);
    unlock(&children_lock);
}

int virtual_child_id(int real_id, bool forget)
{
    int found = 0;
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id) {
            found = children[i].virtual_id;
            if (!forget)
                continue;
            gone[gone_next++ % CHILDREN_GONE] = children[i];
            children[i].real_id = 0;
        }
    unlock(&children_lock);
    return found;
}

/* A child, or one that was waited for just now: its signal may come after that. 0: none. */
static int virtual_kin_id(int real_id)
{
    int found = 0;
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN_GONE; i++)
        if (gone[i].real_id == real_id)
            found = gone[i].virtual_id;
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id)
            found = children[i].virtual_id;
    unlock(&children_lock);
    return found;
}

/* Who sent a signal, as the program knows the process. */
int virtual_sender(int real_id)
{
    if (!process.restarted || real_id <= 1) /* the numbers are the kernel's */
        return real_id;
    if (real_id == process.real_id)
        return process.start.virtual_pid;
    int found = virtual_kin_id(real_id);
    if (!found && process.helper && real_id == process.parent_real_id)
        found = process.start.parent_pid;
    struct request request = {.call = OP_REAL_PID, .arguments = {real_id, REAL_PID_BACK}};
    if (!found)
        found = (int)ask(current_thread(), &request, NULL, 0, NULL, 0, NULL);
    return found > 0 ? found : real_id;
}

/* What a fork holds, so that no other thread is in the middle of what the child gets a copy of. */
static void lock_for_fork(void)
    ACQUIRE(views_lock, memory_lock, timers_lock, actions_lock, identity_lock, threads_lock, children_lock);
static void lock_for_fork(void)
{
    lock(&views_lock);
    lock(&memory_lock);
    lock(&timers_lock);
    lock(&actions_lock);
    lock(&identity_lock);
    lock(&threads_lock);
    lock(&children_lock);
}

static void unlock_after_fork(void)
    RELEASE(views_lock, memory_lock, timers_lock, actions_lock, identity_lock, threads_lock, children_lock);
static void unlock_after_fork(void)
{
    unlock(&children_lock);
    unlock(&threads_lock);
    unlock(&identity_lock);
    unlock(&actions_lock);
    unlock(&timers_lock);
    unlock(&memory_lock);
    unlock(&views_lock);
}

/* What home and the starter said of a new member. */
struct birth {
    long number;
    bool straight;        /* its channel goes straight home */
    uint64_t views_until; /* see shared_become_member */
    struct loan *loan;    /* of a parent that waits for it; NULL: it does not */
    int real_id;          /* of the child, when it is there */
};

/* The child is alone: of its parent's threads only the one that forked is here. */
static void begin_member(struct thread *self, unsigned long flags, const unsigned long a[6], const struct birth *birth)
    REQUIRES(one_thread, passed_fd_lock);
static void begin_member(struct thread *self, unsigned long flags, const unsigned long a[6], const struct birth *birth)
{
    int parent = process.start.virtual_pid;
    SYSTEM(__NR_dup3, PASSED_FD, CHANNEL_FD, 0);
    SYSTEM(__NR_close, PASSED_FD);
    channel_reset();
    if (process.direct) {
        SYSTEM(__NR_close, process.control);
        process.control = passed_control;
        if (!birth->straight) /* the starter's relay, which has to see them, brings this one's calls home */
            secret_forget();
    }
    process.direct = birth->straight;
    secret_become_member(birth->number);
    forget_lock(&proc_lock);
    read_ahead_reset(true);
    plan_reset();
    dirty_forget();
    forget_stop();
    forget_other_threads(self);
    forget_parking();
    shared_become_member(birth->views_until);
    forget_timers();
    lock(&children_lock);
    int id = new_virtual_id((int)SYSTEM(__NR_getpid));
    memset(children, 0, sizeof children);
    memset(gone, 0, sizeof gone);
    unlock(&children_lock);
    process.helper = true;
    process.executed = false;
    borrow(birth->loan);
    process.own_lists = false;
    if (!(flags & CLONE_PARENT)) {
        process.parent_real_id = process.real_id;
        process.start.parent_pid = parent;
    }
    process.real_id = (int)SYSTEM(__NR_getpid);
    self->real_id = process.real_id;
    self->virtual_id = process.start.virtual_pid = id;
    kinship_begin(self);
    if (flags & CLONE_SETTLS)
        SYSTEM(__NR_arch_prctl, ARCH_SET_FS, a[4]);
    self->clear_at_exit = flags & CLONE_CHILD_CLEARTID ? (int *)a[3] : NULL;
    SYSTEM(__NR_set_tid_address, self->clear_at_exit);
    self->robust_list = NULL;
    SYSTEM(__NR_set_robust_list, NULL, ROBUST_HEAD_BYTES);
    if (flags & CLONE_CHILD_SETTID)
        copy_user((void *)a[3], &self->virtual_id, sizeof(int));
    struct hello hello = {.version = PROTOCOL_VERSION, .kind = HELLO_MEMBER,
                          .real_pid = (uint32_t)process.real_id,
                          .virtual_pid = (uint32_t)process.start.virtual_pid};
    struct start start;
    struct request request = {.call = OP_HELLO};
    struct vector in = {&hello, sizeof hello}, out = {&start, sizeof start};
    if (ask(self, &request, &in, 1, &out, 1, NULL) < 0)
        die(EXIT_CHANNEL_LOST);
}

/* The child returns from here a second time, alone. */
static long fork_member(struct trap *t, unsigned long flags, struct birth *birth) REQUIRES(passed_fd_lock);
static long fork_member(struct trap *t, unsigned long flags, struct birth *birth)
{
    lock_for_fork();
    struct child *child = free_child();
    const unsigned long sibling = flags & CLONE_PARENT;
    long result = child ? SYSTEM(__NR_clone, SIGCHLD | sibling, 0, 0, 0, 0) : -EAGAIN;
    int id = 0;
    if (result > 0) {
        birth->real_id = (int)result;
        id = new_virtual_id((int)result);
        if (!sibling) /* else its parent learns of it; see kinship.c */
            *child = (struct child){.virtual_id = id, .real_id = (int)result};
    }
    unlock_after_fork(); /* in the child, too: it has its copies of them */
    if (result == 0 && child) {
        no_other_thread_runs();
        begin_member(t->self, flags, t->a, birth);
        if (t->a[1])
            t->frame->uc_mcontext.rsp = t->a[1];
        return 0;
    }
    SYSTEM(__NR_close, PASSED_FD);
    if (birth->straight)
        SYSTEM(__NR_close, passed_control);
    if (id && (flags & CLONE_PARENT_SETTID))
        copy_user((void *)t->a[2], &id, sizeof id);
    return id ? id : result;
}

long begin_birth(struct trap *t, unsigned long flags)
{
    struct thread *self = t->self;
    struct request request = {.call = OP_FORK, .arguments = {process.direct, 0, (flags & CLONE_PARENT) != 0}};
    if (!process.family)
        return -EAGAIN;
    arena_make();
    lock(&passed_fd_lock); /* the channel for the child has one number */
    share_positions();
    process.forked = true;
    struct birth birth = {.views_until = shared_moment(), .loan = flags & CLONE_VFORK ? loan_make(t) : NULL};
    long result = ask(self, &request, NULL, 0, NULL, 0, NULL);
    if (result == -EINPROGRESS) { /* a checkpoint of the family is about to reach this process */
        unlock(&passed_fd_lock);
        loan_drop(birth.loan);
        return -RESTART_ALWAYS;
    }
    share_positions(); /* what another thread has learned meanwhile may be of before */
    long way = result < 0 ? result : ask_starter(CONTROL_MEMBER, result);
    birth.number = result;
    birth.straight = way == 1 && (passed_control == CONTROL_FD || passed_control == OTHER_CONTROL_FD);
    if (way < 0 || (way == 1 && !birth.straight))
        result = -EAGAIN;
    if (result >= 0)
        result = fork_member(t, flags, &birth);
    unlock(&passed_fd_lock);
    if (result > 0 && birth.loan)
        loan_await(birth.loan, birth.real_id);
    else if (result < 0)
        loan_drop(birth.loan);
    return result;
}

long do_fork(struct trap *t)
{
    t->a[1] = 0;
    return begin_birth(t, 0);
}

long do_vfork(struct trap *t)
{
    t->a[1] = 0;
    return begin_birth(t, CLONE_VM | CLONE_VFORK);
}

/* A signal to another member, with INFO, or NULL: its parent knows it, and so may its children; else home does. */
long signal_member(int virtual_id, int number, const struct siginfo *info)
{
    if (!process.family || virtual_id <= 1)
        return -ESRCH;
    int real = real_child_id(virtual_id);
    if (!real && process.helper && virtual_id == process.start.parent_pid)
        real = process.parent_real_id;
    struct request request = {.call = OP_REAL_PID, .arguments = {virtual_id}};
    if (!real)
        real = (int)ask(current_thread(), &request, NULL, 0, NULL, 0, NULL);
    if (real <= 1)
        return -ESRCH;
    settle_writes(current_thread());
    return send_signal(real, number, info);
}
