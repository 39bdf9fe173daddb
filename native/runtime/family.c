/* Programs that start programs.
 *
 * fork, vfork and posix_spawn make a real child process with a copy of the memory and a channel of its
 * own, which the shadow hands over beside its answer.  The child's descriptors are a copy of the parent's
 * table at home, so pipes between the two work.  Waiting is the kernel's: helpers are real children.
 * A checkpoint has to wait until the family is one process again; the shadow, who knows all members,
 * refuses it until then.
 */
#include "runtime.h"

enum { SIGNAL_AT_END = 0xff, CHILD_SETS = 0x1000000, CHILD_CLEARS = 0x200000, PARENT_SETS = 0x100000,
       SET_TLS = 0x80000, SET_FS = 0x1002, NO_HANG = 1 };

static struct child {
    int virtual_id, real_id; /* 0: unused */
} children[1024];
static struct lock children_lock;

static void remember_child(int virtual_id, int real_id)
{
    for (size_t i = 0; i < COUNT(children); i++)
        if (!children[i].real_id) {
            children[i] = (struct child){virtual_id, real_id};
            break;
        }
}

int real_child_id(int virtual_id)
{
    for (size_t i = 0; i < COUNT(children); i++)
        if (children[i].real_id && children[i].virtual_id == virtual_id)
            return children[i].real_id;
    return 0;
}

/* The kernel's number, unless somebody of before a move has it. Parent and child find the same one, each in
 * its copy of the table. */
static int new_virtual_id(int real_id)
{
    while (real_child_id(real_id) || real_id == process.start.virtual_pid)
        real_id += VIRTUAL_STEP;
    return real_id;
}

static int virtual_child_id(int real_id, bool forget)
{
    int found = real_id;
    lock(&children_lock);
    for (size_t i = 0; i < COUNT(children); i++)
        if (children[i].real_id == real_id) {
            found = children[i].virtual_id;
            if (forget)
                children[i].real_id = 0;
        }
    unlock(&children_lock);
    return found;
}

/* The child is alone: of its parent's threads only the one that forked is here. */
static void begin_member(struct thread *self, unsigned long flags, const unsigned long a[6], long number, bool straight)
{
    int parent = process.start.virtual_pid;
    SYSTEM(__NR_dup3, GIFT_FD, CHANNEL_FD, 0);
    SYSTEM(__NR_close, GIFT_FD);
    channel_reset();
    if (process.direct) {
        SYSTEM(__NR_close, process.control);
        process.control = given_control;
        if (!straight) /* the starter's relay, which has to see them, brings this one's calls home */
            secret_forget();
    }
    process.direct = straight;
    secret_become_member(number);
    ahead_reset(true);
    plan_reset();
    dirty_forget();
    forget_other_threads(self);
    int id = new_virtual_id((int)SYSTEM(__NR_getpid));
    memset(children, 0, sizeof children);
    children_lock.word = memory_lock.word = threads_lock.word = actions_lock.word = proc_lock.word = 0;
    forget_timers();
    process.helper = true;
    process.parent_real_id = process.real_id;
    process.real_id = (int)SYSTEM(__NR_getpid);
    self->real_id = process.real_id;
    self->virtual_id = process.start.virtual_pid = id;
    process.start.parent_pid = parent;
    if (flags & SET_TLS)
        SYSTEM(__NR_arch_prctl, SET_FS, a[4]);
    self->clear_at_exit = flags & CHILD_CLEARS ? (int *)a[3] : NULL;
    SYSTEM(__NR_set_tid_address, self->clear_at_exit);
    SYSTEM(__NR_set_robust_list, NULL, sizeof(long) * 3);
    if (flags & CHILD_SETS)
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

long start_member(struct trap *t, unsigned long flags)
{
    struct thread *self = t->self;
    struct request request = {.call = OP_FORK, .arguments = {process.direct}};
    if (!process.family)
        return -EAGAIN;
    static struct lock one_at_a_time; /* the channel for the child has one number */
    lock(&one_at_a_time);
    share_positions();
    process.forked = true;
    long result = ask(self, &request, NULL, 0, NULL, 0, NULL);
    long way = result < 0 ? result : ask_starter(CONTROL_MEMBER, result);
    bool straight = way == 1 && (given_control == CONTROL_FD || given_control == OTHER_CONTROL_FD);
    if (way < 0 || (way == 1 && !straight))
        result = -EAGAIN;
    if (result >= 0) {
        lock(&memory_lock); /* so that no other thread is in the middle of what the child gets a copy of */
        lock(&actions_lock);
        lock(&children_lock);
        long number = result;
        result = SYSTEM(__NR_clone, 17 /* SIGCHLD */, 0, 0, 0, 0);
        if (result == 0) {
            one_at_a_time.word = 0;
            begin_member(self, flags, t->a, number, straight);
            if (t->a[1])
                t->frame->uc_mcontext.rsp = t->a[1];
            return 0;
        }
        int id = result > 0 ? new_virtual_id((int)result) : 0;
        if (result > 0) {
            remember_child(id, (int)result);
            result = id;
        }
        unlock(&children_lock);
        unlock(&actions_lock);
        unlock(&memory_lock);
        SYSTEM(__NR_close, GIFT_FD);
        if (straight)
            SYSTEM(__NR_close, given_control);
        if (id && (flags & PARENT_SETS))
            copy_user((void *)t->a[2], &id, sizeof id);
    }
    unlock(&one_at_a_time);
    return result;
}

long do_fork(struct trap *t)
{
    t->a[1] = 0;
    return start_member(t, 0);
}

long do_vfork(struct trap *t)
{
    t->a[1] = 0;
    return start_member(t, 0);
}

static int real_target(long id)
{
    if (id <= 0)
        return -1;
    int real = real_child_id((int)id);
    return real ? real : -2;
}

/* A member that ends by itself is heard at home before it is gone; what one wrote that a signal ended may still
 * be on its way there. */
static void await_last_calls(struct thread *self, int real_id)
{
    struct request request = {.call = OP_MEMBER_GONE, .arguments = {real_id}};
    ask(self, &request, NULL, 0, NULL, 0, NULL);
}

long do_wait4(struct trap *t)
{
    struct { long words[18]; } usage;
    int status = 0, target = real_target((int)t->a[0]);
    if (target == -2)
        return -ECHILD;
    long a[6] = {target, (long)&status, (long)t->a[2], (long)&usage};
    uint64_t mask = t->frame->uc_sigmask;
    long id = interruptible_system(__NR_wait4, a, &mask);
    if (id == -EINTR)
        return -RESTART_ALWAYS;
    if (id <= 0)
        return id;
    bool ended = (status & 0xff) != 0x7f && status != 0xffff;
    if (ended && (status & 0x7f))
        await_last_calls(t->self, (int)id);
    if ((t->a[1] && copy_user((void *)t->a[1], &status, sizeof status)) ||
        (t->a[3] && copy_user((void *)t->a[3], &usage, sizeof usage)))
        return -EFAULT;
    return virtual_child_id((int)id, ended);
}

long do_waitid(struct trap *t)
{
    enum { ANYBODY = 0, ONE = 1, KEEP = 0x01000000 };
    struct siginfo info;
    memset(&info, 0, sizeof info);
    int target = t->a[0] == ONE ? real_target((int)t->a[1]) : 0;
    if (t->a[0] > 2)
        return -EINVAL;
    if (target == -2)
        return -ECHILD;
    long a[6] = {t->a[0] == ONE ? ONE : ANYBODY, target, (long)&info, (long)t->a[3], 0};
    uint64_t mask = t->frame->uc_sigmask;
    long result = interruptible_system(__NR_waitid, a, &mask);
    if (result == -EINTR)
        return -RESTART_ALWAYS;
    if (result < 0)
        return result;
    bool ended = info.si_code >= 1 && info.si_code <= 3 && !(t->a[3] & KEEP);
    if (ended && info.si_code > 1)
        await_last_calls(t->self, info._sifields._sigchld._pid);
    if (info._sifields._sigchld._pid)
        info._sifields._sigchld._pid = virtual_child_id(info._sifields._sigchld._pid, ended);
    return t->a[2] && copy_user((void *)t->a[2], &info, sizeof info) ? -EFAULT : 0;
}

/* A signal to another member: its parent knows it, and so may its children. */
long signal_member(int virtual_id, int number)
{
    if (!process.family || virtual_id <= 1)
        return -ESRCH;
    int real = real_child_id(virtual_id);
    if (!real && process.helper && virtual_id == process.start.parent_pid)
        real = process.parent_real_id;
    if (!real)
        return -ESRCH;
    settle_writes(current_thread());
    return SYSTEM(__NR_kill, real, number);
}
