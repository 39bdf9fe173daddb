/* Signals of the program.
 *
 * The kernel delivers every handled signal to on_signal on the runtime's stack.  If the program was
 * running, its frame is copied to the stack it wants (its own alternate one included), with the whole
 * extended state, and the kernel's return leads into the program's handler; the handler's rt_sigreturn
 * is trapped and copies the frame back.  If the runtime was at work (only in interruptible_system), the
 * signal is sent again and comes when the call has ended.
 */
#include "signals.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/process/groups.h"
#include "runtime/remote/invalidation.h"
#include "runtime/process/owned.h"
#include "pending.h"
#include "runtime/process/process.h"
#include "signal_reads.h"
#include "stops.h"
#include "runtime/text.h"
#include "runtime/process/time.h"
#include "runtime/user.h"

enum {
    RED_ZONE = 128,
    STATE_ALIGNMENT = 64,
    SMALLEST_STACK = 2048, /* MINSIGSTKSZ */
    FLAGS_CLEARED = 0x10500,     /* direction, trap, resume: what a handler begins without */
    FLAGS_RETURNED = 0x50dd5,    /* those that a handler's return may set */
    INTERRUPTS_ENABLED = 0x202,
    MAGIC_BYTES = 4,             /* of the second magic behind the extended state */
};

#define DEFAULT ((void *)0)
#define IGNORE ((void *)1)

/* As the kernel has it. */
struct action {
    void *function;
    uint64_t flags;
    void *restorer;
    uint64_t mask;
};

struct lock actions_lock;
static struct action actions[SIGNAL_COUNT + 1] GUARDED_BY(actions_lock);

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
    struct action a = {function, flags | SA_ONSTACK | SA_SIGINFO | SA_RESTORER, restorer, RUNTIME_MASK};
    SYSTEM(__NR_rt_sigaction, number, &a, 0, MASK_BYTES);
}

/* Tells the kernel what the program wants of signal NUMBER. */
static void apply(int number) REQUIRES(actions_lock);
static void apply(int number)
{
    const struct action *a = &actions[number];
    if (number == SIGSYS)
        set_kernel_action(number, on_trap, 0);
    else if (always_ours(number))
        set_kernel_action(number, on_signal, SA_RESTART);
    else if (a->function == DEFAULT && is_terminal_stop(number))
        set_kernel_action(number, on_signal, SA_RESTART);
    else if (is_watched(number) && !(a->function == IGNORE && number == SIGCHLD)) /* which then reaps children */
        set_kernel_action(number, on_signal, a->flags & (SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT));
    else if (a->function == DEFAULT || a->function == IGNORE)
        set_kernel_action(number, a->function, a->flags & (SA_NOCLDSTOP | SA_NOCLDWAIT));
    else
        set_kernel_action(number, on_signal, a->flags & (SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT));
}

void install_actions(void)
{
    lock(&actions_lock);
    for (int number = 1; number <= SIGNAL_COUNT; number++)
        if (number != SIGKILL && number != SIGSTOP)
            apply(number);
    unlock(&actions_lock);
}

/* There are descriptors of more signals than before. */
void watch_actions(void)
{
    lock(&actions_lock);
    for (int number = 1; number <= SIGNAL_COUNT; number++)
        if (is_watched(number))
            apply(number);
    unlock(&actions_lock);
}

void reset_actions_for_exec(void)
{
    lock(&actions_lock);
    for (int number = 1; number <= SIGNAL_COUNT; number++) {
        void *kept = actions[number].function == IGNORE ? IGNORE : DEFAULT;
        actions[number] = (struct action){.function = kept};
    }
    unlock(&actions_lock);
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

size_t extended_state_size(const struct ucontext *frame)
{
    const struct _fpstate *state = (const void *)frame->uc_mcontext.fpstate;
    if (!state)
        return 0;
    return state->sw_reserved.magic1 == FP_XSTATE_MAGIC1 ? state->sw_reserved.extended_size : FX_STATE_BYTES;
}

static bool on_programs_stack(const struct thread *self, unsigned long sp)
{
    unsigned long base = (unsigned long)self->alternate.ss_sp;
    return sp > base && sp - base <= self->alternate.ss_size;
}

/* The program cannot take the signal: it dies of it, as it would have in the kernel's hands. */
void die_of(int number)
{
    struct action a = {DEFAULT, SA_RESTORER, restorer, 0};
    release_owned(current_thread());
    SYSTEM(__NR_rt_sigaction, number, &a, 0, MASK_BYTES);
    SYSTEM(__NR_tgkill, process.real_id, current_thread()->real_id, number);
}

/* What the program wants done with signal NUMBER, which is about to be done: once, if it said so. */
static struct action take_action(int number)
{
    lock(&actions_lock);
    struct action a = actions[number];
    if ((a.flags & SA_RESETHAND) && a.function != IGNORE)
        actions[number].function = DEFAULT;
    unlock(&actions_lock);
    return a;
}

static struct action action_of(int number)
{
    lock(&actions_lock);
    struct action a = actions[number];
    unlock(&actions_lock);
    return a;
}

bool wants_signals_of_stops(void)
{
    return !(action_of(SIGCHLD).flags & SA_NOCLDSTOP);
}

/* Whether the program ignores signal NUMBER, or blocks it. */
bool turns_away(struct thread *self, int number)
{
    return (program_mask(self) & SIGNAL_BIT(number)) || action_of(number).function == IGNORE;
}

static void deliver(struct thread *self, int number, const struct action *action, const struct siginfo *info,
                    struct ucontext *frame)
{
    struct sigcontext *c = &frame->uc_mcontext;
    struct action a = *action;
    size_t extended = extended_state_size(frame);
    unsigned long sp = c->rsp - RED_ZONE;
    bool has_alternate = self->alternate.ss_size && !(self->alternate.ss_flags & SS_DISABLED);
    if ((a.flags & SA_ONSTACK) && has_alternate && !on_programs_stack(self, c->rsp))
        sp = (unsigned long)self->alternate.ss_sp + self->alternate.ss_size;
    unsigned long state = (sp - extended) & ~(STATE_ALIGNMENT - 1ul);
    unsigned long at = ((state - sizeof(struct program_frame)) & ~15ul) - 8;

    struct program_frame copy = {.restorer = a.restorer, .context = *frame, .info = *info};
    uint64_t before = frame->uc_sigmask | self->hidden_mask;
    copy.context.uc_sigmask = self->restore_mask ? self->mask_to_restore : before;
    self->restore_mask = false;
    copy.context.uc_stack.ss_sp = self->alternate.ss_sp;
    copy.context.uc_stack.ss_size = self->alternate.ss_size;
    copy.context.uc_stack.ss_flags =
        !has_alternate ? SS_DISABLED : on_programs_stack(self, c->rsp) ? SS_IN_USE : 0;
    copy.context.uc_mcontext.fpstate = (void *)(extended ? state : 0);
    if (copy_user((void *)state, c->fpstate, extended) || copy_user((void *)at, &copy, sizeof copy)) {
        die_of(SIGSEGV);
        return;
    }
    struct program_frame *there = (void *)at;
    c->rip = (unsigned long)a.function;
    c->rsp = at;
    c->rdi = (unsigned long)number;
    c->rsi = (unsigned long)&there->info;
    c->rdx = (unsigned long)&there->context;
    c->rax = 0;
    c->eflags &= ~(unsigned long)FLAGS_CLEARED;
    struct ucontext *old = self->frame;
    self->frame = frame;
    set_program_mask(self, before | a.mask | (a.flags & SA_NODEFER ? 0 : SIGNAL_BIT(number)));
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
    struct action action = action_of(number);
    const bool watches = self->let_through & SIGNAL_BIT(number); /* the call is done again, and knows of it then */
    if (watches || number == CHECKPOINT_SIGNAL || action.function == DEFAULT) /* nothing that the program has to do with */
        self->signalled |= SIGNALLED_CHECKPOINT;
    else
        self->signalled |= action.flags & SA_RESTART ? SIGNALLED_RESTART : SIGNALLED_PLAIN;
    if (!watches || SYSTEM(__NR_rt_sigqueueinfo, process.real_id, number, info) < 0) /* else for any thread, as before */
        SYSTEM(__NR_rt_tgsigqueueinfo, process.real_id, self->real_id, number, info);
}

static bool ends_nobody(int number)
{
    return number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH;
}

/* A handler is about to run where a call is to be done again that a checkpoint or a stop has interrupted: to the program,
 * the handler has interrupted it. */
static void end_call(struct thread *self, const struct action *action, struct ucontext *frame)
{
    struct sigcontext *c = &frame->uc_mcontext;
    bool waits = self->again.rip && self->again.rip == c->rip && self->again.rsp == c->rsp;
    if (waits && (self->again.ends || !(action->flags & SA_RESTART))) {
        c->rip += CALL_BYTES;
        c->rax = (unsigned long)-EINTR;
        self->resume.number = -1;
    }
    self->again.rip = 0;
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
        take_checkpoint(self, frame, info);
        return;
    }
    bool sent_while_blocked = info->si_code <= 0 && (self->hidden_mask & SIGNAL_BIT(number));
    struct action action = sent_while_blocked ? action_of(number) : take_action(number);
    void *function = action.function;
    if ((function == IGNORE && (info->si_code <= 0 || is_watched(number))) || (function == DEFAULT && ends_nobody(number)))
        return;
    if (function == DEFAULT && is_terminal_stop(number)) {
        if (has_job_control(self)) {
            stop_by_terminal(self, number);
            take_stop(self, frame);
        }
        return;
    }
    if (function == DEFAULT || function == IGNORE || (self->hidden_mask & SIGNAL_BIT(number))) {
        if (sent_while_blocked)
            return; /* it is not kept */
        trace("fatal signal at", -1, (long)rip);
        trace("address", -1, (long)info->_sifields._sigfault._addr);
        die_of(number);
        return;
    }
    if (info->si_code <= 0 && info->_sifields._kill._pid != process.real_id)
        note_invalidation();
    name_sender(info);
    end_call(self, &action, frame);
    deliver(self, number, &action, info, frame);
}

long do_rt_sigreturn(struct trap *t)
{
    struct thread *self = t->self;
    struct ucontext from, *to = t->frame;
    struct sigcontext kept = to->uc_mcontext, *c = &to->uc_mcontext;
    if (copy_user(&from, (void *)c->rsp, sizeof from)) {
        die_of(SIGSEGV);
        return -EFAULT;
    }
    *c = from.uc_mcontext;
    c->cs = kept.cs;
    c->ss = kept.ss;
    c->gs = kept.gs;
    c->fs = kept.fs;
    c->fpstate = kept.fpstate;
    c->eflags = (c->eflags & FLAGS_RETURNED) | INTERRUPTS_ENABLED;
    if (from.uc_mcontext.fpstate && kept.fpstate) {
        struct _fpstate *state = (void *)kept.fpstate;
        struct _fpx_sw_bytes ours = state->sw_reserved, theirs;
        size_t size = extended_state_size(to);
        if (copy_user(&theirs, &((struct _fpstate *)from.uc_mcontext.fpstate)->sw_reserved, sizeof theirs) ||
            theirs.magic1 != FP_XSTATE_MAGIC1 || theirs.extended_size != ours.extended_size)
            size = FX_STATE_BYTES;
        else
            ours.xfeatures = theirs.xfeatures;
        copy_user(state, (void *)from.uc_mcontext.fpstate, size > FX_STATE_BYTES ? size - MAGIC_BYTES : size);
        state->sw_reserved = ours;
    }
    set_program_mask(self, from.uc_sigmask);
    if (!on_programs_stack(self, c->rsp) || (from.uc_stack.ss_flags & SS_IN_USE))
        self->alternate = (struct sigaltstack){.ss_sp = from.uc_stack.ss_sp,
                                               .ss_flags = from.uc_stack.ss_flags & SS_DISABLED,
                                               .ss_size = from.uc_stack.ss_size};
    t->frame_is_new = true;
    return 0;
}

long do_rt_sigaction(struct trap *t)
{
    int number = (int)t->a[0];
    struct action fresh;
    if (number < 1 || number > SIGNAL_COUNT || t->a[3] != MASK_BYTES)
        return -EINVAL;
    if (t->a[1] && (number == SIGKILL || number == SIGSTOP))
        return -EINVAL;
    if (t->a[1] && copy_user(&fresh, (void *)t->a[1], sizeof fresh))
        return -EFAULT;
    lock(&actions_lock);
    struct action old = actions[number];
    if (t->a[1]) {
        fresh.mask &= ~(SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
        actions[number] = fresh;
        apply(number);
    }
    unlock(&actions_lock);
    if (t->a[2] && copy_user((void *)t->a[2], &old, sizeof old))
        return -EFAULT;
    return 0;
}

long do_rt_sigprocmask(struct trap *t)
{
    uint64_t old = program_mask(t->self), set = 0, mask = old;
    if (t->a[3] != MASK_BYTES)
        return -EINVAL;
    if (t->a[1]) {
        if (copy_user(&set, (void *)t->a[1], MASK_BYTES))
            return -EFAULT;
        switch (t->a[0]) {
        case SIG_BLOCK: mask |= set; break;
        case SIG_UNBLOCK: mask &= ~set; break;
        case SIG_SETMASK: mask = set; break;
        default: return -EINVAL;
        }
        set_program_mask(t->self, mask);
    }
    if (t->a[2] && copy_user((void *)t->a[2], &old, MASK_BYTES))
        return -EFAULT;
    return 0;
}

long do_sigaltstack(struct trap *t)
{
    struct thread *self = t->self;
    bool on = self->alternate.ss_size && on_programs_stack(self, t->frame->uc_mcontext.rsp);
    struct sigaltstack fresh, old = self->alternate;
    old.ss_flags = !old.ss_size ? SS_DISABLED : on ? SS_IN_USE : old.ss_flags;
    if (t->a[0]) {
        if (copy_user(&fresh, (void *)t->a[0], sizeof fresh))
            return -EFAULT;
        if (on)
            return -EPERM;
        if (fresh.ss_flags & SS_DISABLED)
            fresh = (struct sigaltstack){0};
        else if (fresh.ss_size < SMALLEST_STACK)
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
    if (t->a[1] > MASK_BYTES)
        return -EINVAL;
    SYSTEM(__NR_rt_sigpending, &pending, MASK_BYTES);
    pending &= ~RESERVED_SIGNALS;
    return copy_user((void *)t->a[0], &pending, t->a[1]) ? -EFAULT : 0;
}

/* Reads a mask that holds during one call. Until a handler has run, the old one is to come back. */
long wait_mask(struct trap *t, const void *user_mask, size_t size, uint64_t *mask)
{
    *mask = t->frame->uc_sigmask;
    if (!user_mask)
        return 0;
    if (size != MASK_BYTES)
        return -EINVAL;
    if (copy_user(mask, user_mask, MASK_BYTES))
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
    long a[6] = {(long)&mask, MASK_BYTES};
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
    if (t->a[3] != MASK_BYTES)
        return -EINVAL;
    if (copy_user(&set, (void *)t->a[0], MASK_BYTES) || (t->a[2] && copy_user(&limit, (void *)t->a[2], sizeof limit)))
        return -EFAULT;
    if (t->a[2] && !valid_time(&limit))
        return -EINVAL;
    int64_t end = t->a[2] ? wait_left(t, &limit) : 0;
    set &= ~RESERVED_SIGNALS;
    long a[6] = {(long)&set, (long)&info, (long)(t->a[2] ? &limit : NULL), MASK_BYTES};
    mask |= set; /* taken here, not by a handler */
    long result = interruptible_system(__NR_rt_sigtimedwait, a, &mask);
    if (result == -EINTR && t->a[2])
        remember_wait(t, end);
    if (result == -EINTR)
        return -RESTART_UNHANDLED;
    if (result > 0)
        name_sender(&info);
    if (result > 0 && t->a[1] && copy_user((void *)t->a[1], &info, sizeof info))
        return -EFAULT;
    return result;
}
