/* Signals of the program.
 *
 * The kernel delivers every handled signal to on_signal on the runtime's stack.  If the program was
 * running, its frame is copied to the stack it wants (its own alternate one included), with the whole
 * extended state, and the kernel's return leads into the program's handler; the handler's rt_sigreturn
 * is trapped and copies the frame back.  If the runtime was at work (only in interruptible_system), the
 * signal is sent again and comes when the call has ended.
 */
#include "runtime.h"

enum {
    NO_CHILD_STOP = 1, NO_CHILD_WAIT = 2, WITH_INFO = 4, ON_STACK = 0x08000000, RESTARTS = 0x10000000,
    NO_DEFER = 0x40000000, ONE_SHOT = (int)0x80000000, RESTORER = 0x04000000,
    STACK_DISABLED = 2, STACK_ON = 1, RED_ZONE = 128,
    EXTENDED_MAGIC = 0x46505853,
};

#define DEFAULT ((void *)0)
#define IGNORE ((void *)1)

struct action actions[SIGNAL_COUNT + 1];
struct lock actions_lock;

extern void restorer(void);
__asm__(".text\n.globl restorer\nrestorer:\n    mov $15, %eax\n    syscall\n");

struct program_frame {
    void *restorer;
    struct ucontext context;
    struct siginfo info;
};

static bool always_ours(int number)
{
    return number == SIGSYS || number == SIGSEGV || number == SIGBUS || number == CHECKPOINT_SIGNAL;
}

static void set_kernel_action(int number, void *function, uint64_t flags)
{
    struct action a = {function, flags | ON_STACK | WITH_INFO | RESTORER, restorer, RUNTIME_MASK};
    SYSTEM(__NR_rt_sigaction, number, &a, 0, 8);
}

/* Tells the kernel what the program wants of signal NUMBER. */
static void apply(int number)
{
    const struct action *a = &actions[number];
    if (number == SIGSYS)
        set_kernel_action(number, on_trap, 0);
    else if (always_ours(number))
        set_kernel_action(number, on_signal, RESTARTS);
    else if (a->function == DEFAULT || a->function == IGNORE)
        set_kernel_action(number, a->function, a->flags & (NO_CHILD_STOP | NO_CHILD_WAIT));
    else
        set_kernel_action(number, on_signal, a->flags & (RESTARTS | NO_CHILD_STOP | NO_CHILD_WAIT));
}

void install_actions(void)
{
    for (int number = 1; number <= SIGNAL_COUNT; number++)
        if (number != SIGKILL && number != SIGSTOP)
            apply(number);
}

void reset_actions_for_exec(void)
{
    for (int number = 1; number <= SIGNAL_COUNT; number++) {
        void *kept = actions[number].function == IGNORE ? IGNORE : DEFAULT;
        actions[number] = (struct action){.function = kept};
    }
    install_actions();
}

uint64_t program_mask(struct thread *self)
{
    return self->frame->uc_sigmask | self->hidden_mask;
}

void set_program_mask(struct thread *self, uint64_t mask)
{
    mask &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
    self->hidden_mask = mask & RESERVED_SIGNALS;
    self->frame->uc_sigmask = mask & ~RESERVED_SIGNALS;
}

static size_t extended_size(const struct ucontext *frame)
{
    const struct _fpstate *state = (const void *)frame->uc_mcontext.fpstate;
    if (!state)
        return 0;
    return state->sw_reserved.magic1 == EXTENDED_MAGIC ? state->sw_reserved.extended_size : 512;
}

static bool on_programs_stack(const struct thread *self, unsigned long sp)
{
    unsigned long base = (unsigned long)self->alternate.ss_sp;
    return sp > base && sp - base <= self->alternate.ss_size;
}

/* The program cannot take the signal: it dies of it, as it would have in the kernel's hands. */
static void kill_by(int number)
{
    struct action a = {DEFAULT, RESTORER, restorer, 0};
    SYSTEM(__NR_rt_sigaction, number, &a, 0, 8);
    SYSTEM(__NR_tgkill, process.real_id, current_thread()->real_id, number);
}

static void deliver(struct thread *self, int number, const struct siginfo *info, struct ucontext *frame)
{
    struct sigcontext *c = &frame->uc_mcontext;
    lock(&actions_lock);
    struct action a = actions[number];
    if (a.flags & (unsigned)ONE_SHOT)
        actions[number].function = DEFAULT;
    unlock(&actions_lock);

    size_t extended = extended_size(frame);
    unsigned long sp = c->rsp - RED_ZONE;
    bool has_alternate = self->alternate.ss_size && !(self->alternate.ss_flags & STACK_DISABLED);
    if ((a.flags & ON_STACK) && has_alternate && !on_programs_stack(self, c->rsp))
        sp = (unsigned long)self->alternate.ss_sp + self->alternate.ss_size;
    unsigned long state = (sp - extended) & ~63ul;
    unsigned long at = ((state - sizeof(struct program_frame)) & ~15ul) - 8;

    struct program_frame copy = {.restorer = a.restorer, .context = *frame, .info = *info};
    uint64_t before = frame->uc_sigmask | self->hidden_mask;
    copy.context.uc_sigmask = self->restore_mask ? self->mask_to_restore : before;
    self->restore_mask = false;
    copy.context.uc_stack.ss_sp = self->alternate.ss_sp;
    copy.context.uc_stack.ss_size = self->alternate.ss_size;
    copy.context.uc_stack.ss_flags =
        !has_alternate ? STACK_DISABLED : on_programs_stack(self, c->rsp) ? STACK_ON : 0;
    copy.context.uc_mcontext.fpstate = (void *)(extended ? state : 0);
    if (copy_user((void *)state, c->fpstate, extended) || copy_user((void *)at, &copy, sizeof copy)) {
        kill_by(SIGSEGV);
        return;
    }
    struct program_frame *there = (void *)at;
    c->rip = (unsigned long)a.function;
    c->rsp = at;
    c->rdi = (unsigned long)number;
    c->rsi = (unsigned long)&there->info;
    c->rdx = (unsigned long)&there->context;
    c->rax = 0;
    c->eflags &= ~0x10500ul; /* direction, trap, resume */
    struct ucontext *old = self->frame;
    self->frame = frame;
    set_program_mask(self, before | a.mask | (a.flags & NO_DEFER ? 0 : SIGNAL_BIT(number)));
    self->frame = old;
}

static void fault_in_runtime(const struct ucontext *frame)
{
    trace("fault in the runtime at", -1, (long)frame->uc_mcontext.rip);
    (void)frame;
    die(EXIT_RUNTIME_FAULT);
}

/* A signal found the runtime at work: it comes again when the work is done. */
static void postpone(struct thread *self, int number, struct siginfo *info, struct ucontext *frame)
{
    if (!in_interruptible_call(frame))
        fault_in_runtime(frame);
    if (number == CHECKPOINT_SIGNAL)
        self->signalled |= SIGNALLED_CHECKPOINT;
    else
        self->signalled |= actions[number].flags & RESTARTS ? SIGNALLED_RESTART : SIGNALLED_PLAIN;
    SYSTEM(__NR_rt_tgsigqueueinfo, process.real_id, self->real_id, number, info);
}

void on_signal(int number, struct siginfo *info, void *context)
{
    struct ucontext *frame = context;
    struct thread *self = current_thread();
    unsigned long rip = frame->uc_mcontext.rip;
    bool in_runtime = rip >= (unsigned long)runtime_text_start && rip < (unsigned long)runtime_text_end;
    if ((number == SIGSEGV || number == SIGBUS) && in_runtime && info->si_code > 0) {
        if (!fix_fault(frame))
            fault_in_runtime(frame);
        return;
    }
    if (in_runtime) {
        postpone(self, number, info, frame);
        return;
    }
    if (number == CHECKPOINT_SIGNAL) {
        if (must_leave())
            leave(self, 0);
        if (process.helper)
            return;
        take_checkpoint(self, frame, info);
        return;
    }
    void *function = actions[number].function;
    if (function == IGNORE && info->si_code <= 0)
        return;
    if (function == DEFAULT || function == IGNORE || (self->hidden_mask & SIGNAL_BIT(number))) {
        if (info->si_code <= 0 && (self->hidden_mask & SIGNAL_BIT(number)))
            return; /* sent while the program has it blocked; it is not kept */
        trace("fatal signal at", -1, (long)rip);
        trace("address", -1, (long)info->_sifields._sigfault._addr);
        kill_by(number);
        return;
    }
    if (info->si_code <= 0 && info->_sifields._kill._pid != process.real_id)
        note_news();
    deliver(self, number, info, frame);
}

long do_rt_sigreturn(struct trap *t)
{
    struct thread *self = t->self;
    struct ucontext from, *to = t->frame;
    struct sigcontext kept = to->uc_mcontext, *c = &to->uc_mcontext;
    if (copy_user(&from, (void *)c->rsp, sizeof from)) {
        kill_by(SIGSEGV);
        return -EFAULT;
    }
    *c = from.uc_mcontext;
    c->cs = kept.cs;
    c->ss = kept.ss;
    c->gs = kept.gs;
    c->fs = kept.fs;
    c->fpstate = kept.fpstate;
    c->eflags = (c->eflags & 0x50dd5ul) | 0x202;
    if (from.uc_mcontext.fpstate && kept.fpstate) {
        struct _fpstate *state = (void *)kept.fpstate;
        struct _fpx_sw_bytes ours = state->sw_reserved, theirs;
        size_t size = extended_size(to);
        if (copy_user(&theirs, &((struct _fpstate *)from.uc_mcontext.fpstate)->sw_reserved, sizeof theirs) ||
            theirs.magic1 != EXTENDED_MAGIC || theirs.extended_size != ours.extended_size)
            size = 512;
        else
            ours.xfeatures = theirs.xfeatures;
        copy_user(state, (void *)from.uc_mcontext.fpstate, size > 512 ? size - 4 : size);
        state->sw_reserved = ours;
    }
    set_program_mask(self, from.uc_sigmask);
    if (!on_programs_stack(self, c->rsp) || (from.uc_stack.ss_flags & STACK_ON))
        self->alternate = (struct sigaltstack){.ss_sp = from.uc_stack.ss_sp,
                                               .ss_flags = from.uc_stack.ss_flags & STACK_DISABLED,
                                               .ss_size = from.uc_stack.ss_size};
    t->frame_is_new = true;
    return 0;
}

long do_rt_sigaction(struct trap *t)
{
    int number = (int)t->a[0];
    struct action fresh, *a = &actions[number > 0 && number <= SIGNAL_COUNT ? number : 0];
    if (number < 1 || number > SIGNAL_COUNT || t->a[3] != 8)
        return -EINVAL;
    if (t->a[1] && (number == SIGKILL || number == SIGSTOP))
        return -EINVAL;
    if (t->a[1] && copy_user(&fresh, (void *)t->a[1], sizeof fresh))
        return -EFAULT;
    struct action old = *a;
    if (t->a[1]) {
        lock(&actions_lock);
        *a = fresh;
        a->mask &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
        apply(number);
        unlock(&actions_lock);
    }
    if (t->a[2] && copy_user((void *)t->a[2], &old, sizeof old))
        return -EFAULT;
    return 0;
}

long do_rt_sigprocmask(struct trap *t)
{
    uint64_t old = program_mask(t->self), set = 0, mask = old;
    if (t->a[3] != 8)
        return -EINVAL;
    if (t->a[1]) {
        if (copy_user(&set, (void *)t->a[1], 8))
            return -EFAULT;
        switch (t->a[0]) {
        case 0: mask |= set; break;
        case 1: mask &= ~set; break;
        case 2: mask = set; break;
        default: return -EINVAL;
        }
        set_program_mask(t->self, mask);
    }
    if (t->a[2] && copy_user((void *)t->a[2], &old, 8))
        return -EFAULT;
    return 0;
}

long do_sigaltstack(struct trap *t)
{
    struct thread *self = t->self;
    bool on = self->alternate.ss_size && on_programs_stack(self, t->frame->uc_mcontext.rsp);
    struct sigaltstack fresh, old = self->alternate;
    old.ss_flags = !old.ss_size ? STACK_DISABLED : on ? STACK_ON : old.ss_flags;
    if (t->a[0]) {
        if (copy_user(&fresh, (void *)t->a[0], sizeof fresh))
            return -EFAULT;
        if (on)
            return -EPERM;
        if (fresh.ss_flags & STACK_DISABLED)
            fresh = (struct sigaltstack){0};
        else if (fresh.ss_size < 2048)
            return -ENOMEM;
        fresh.ss_flags = 0;
        self->alternate = fresh;
    }
    if (t->a[1] && copy_user((void *)t->a[1], &old, sizeof old))
        return -EFAULT;
    return 0;
}

long do_rt_sigpending(struct trap *t)
{
    uint64_t pending = 0;
    if (t->a[1] > 8)
        return -EINVAL;
    SYSTEM(__NR_rt_sigpending, &pending, 8);
    pending &= ~RESERVED_SIGNALS;
    return copy_user((void *)t->a[0], &pending, t->a[1]) ? -EFAULT : 0;
}

/* Reads a mask that holds during one call. Until a handler has run, the old one is to come back. */
long wait_mask(struct trap *t, const void *user_mask, size_t size, uint64_t *mask)
{
    *mask = t->frame->uc_sigmask;
    if (!user_mask)
        return 0;
    if (size != 8)
        return -EINVAL;
    if (copy_user(mask, user_mask, 8))
        return -EFAULT;
    *mask &= ~(RESERVED_SIGNALS | SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
    return 0;
}

/* After an interrupted wait with its own mask: the handler runs under that mask, then the old one holds. */
void adopt_wait_mask(struct trap *t, uint64_t mask)
{
    if (!(t->self->signalled & (SIGNALLED_PLAIN | SIGNALLED_RESTART)))
        return;
    t->self->mask_to_restore = program_mask(t->self);
    t->self->restore_mask = true;
    t->frame->uc_sigmask = mask;
}

static long suspend(struct trap *t, uint64_t mask)
{
    long a[6] = {(long)&mask, 8};
    interruptible_system(__NR_rt_sigsuspend, a, &mask);
    adopt_wait_mask(t, mask);
    return -RESTART_UNHANDLED;
}

long do_rt_sigsuspend(struct trap *t)
{
    uint64_t mask;
    long failed = wait_mask(t, (void *)t->a[0], t->a[1], &mask);
    return failed ? failed : suspend(t, mask);
}

long do_pause(struct trap *t)
{
    return suspend(t, t->frame->uc_sigmask);
}

long do_rt_sigtimedwait(struct trap *t)
{
    uint64_t set, mask = t->frame->uc_sigmask;
    struct __kernel_timespec limit;
    struct siginfo info;
    if (t->a[3] != 8)
        return -EINVAL;
    if (copy_user(&set, (void *)t->a[0], 8) || (t->a[2] && copy_user(&limit, (void *)t->a[2], sizeof limit)))
        return -EFAULT;
    set &= ~RESERVED_SIGNALS;
    long a[6] = {(long)&set, (long)&info, (long)(t->a[2] ? &limit : NULL), 8};
    mask |= set; /* taken here, not by a handler */
    long result = interruptible_system(__NR_rt_sigtimedwait, a, &mask);
    if (result == -EINTR)
        return -RESTART_UNHANDLED;
    if (result > 0 && t->a[1] && copy_user((void *)t->a[1], &info, sizeof info))
        return -EFAULT;
    return result;
}

/* Whom a pid names: the program itself, or nobody that it may signal. */
static bool means_self(long id)
{
    return id == process.start.virtual_pid || id == 0 || id == -process.start.group;
}

long do_kill(struct trap *t)
{
    long id = (int)t->a[0], number = (int)t->a[1];
    if (number < 0 || number > SIGNAL_COUNT)
        return -EINVAL;
    if (!means_self(id)) {
        long result = number == CHECKPOINT_SIGNAL ? 0 : signal_member((int)(id < 0 ? -id : id), (int)number);
        return result == -ESRCH && id == 1 ? -EPERM : result;
    }
    return number == CHECKPOINT_SIGNAL ? 0 : SYSTEM(__NR_kill, process.real_id, number);
}

static long send_to_thread(long id, long number)
{
    int real = real_thread_id((int)id);
    if (number < 0 || number > SIGNAL_COUNT || id <= 0)
        return -EINVAL;
    if (number == CHECKPOINT_SIGNAL) /* the C library's way to change ids in all threads: nobody listens */
        return -ESRCH;
    return real ? SYSTEM(__NR_tgkill, process.real_id, real, number) : -ESRCH;
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
    return real ? SYSTEM(__NR_rt_tgsigqueueinfo, process.real_id, real, number, &info) : -ESRCH;
}

long do_rt_sigqueueinfo(struct trap *t)
{
    return means_self((int)t->a[0]) ? queue((int)t->a[0], (int)t->a[1], (void *)t->a[2]) : -ESRCH;
}

long do_rt_tgsigqueueinfo(struct trap *t)
{
    return (int)t->a[0] == process.start.virtual_pid ? queue((int)t->a[1], (int)t->a[2], (void *)t->a[3])
                                                     : -ESRCH;
}
