/* Threads: each has a slot, which holds its state and its stack inside the runtime. */
#include "thread.h"

#include "runtime/remote/control.h"
#include "runtime/remote/plan.h"
#include "family.h"
#include "runtime/kinship/process_files.h"
#include "runtime/ipc/terminals.h"
#include "lineage.h"
#include "runtime/memory/memory.h"
#include "owned.h"
#include "runtime/checkpoint/park.h"
#include "process.h"
#include "runtime/memory/shared.h"
#include "runtime/signals/signals.h"
#include "runtime/text.h"
#include "runtime/user.h"
#include "vfork.h"

enum { EXIT_STATUS_BITS = 0xff, ARCH_FIRST = ARCH_SET_GS, ARCH_LAST = ARCH_GET_GS };
#define NEEDED (CLONE_VM | CLONE_SIGHAND | CLONE_THREAD)
#define SHARED (CLONE_FILES | CLONE_FS | CLONE_SIGHAND)
#define NAMESPACES (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP)

struct lock threads_lock;
volatile uint32_t threads_live ATOMIC;
static volatile bool slot_mapped[MAX_THREADS]
    UNGUARDED("set under threads_lock, once, when the memory is there");

enum { EXEC_NONE, EXEC_CLAIMED, EXEC_BEGUN };
static volatile uint32_t exec_phase ATOMIC;

struct thread *new_thread_slot(void)
{
    struct thread *found = NULL;
    lock(&threads_lock);
    for (int slot = 0; slot < MAX_THREADS && !found; slot++) {
        struct thread *t = thread_at(slot);
        if (slot_mapped[slot] && t->state != THREAD_FREE)
            continue;
        if (!slot_mapped[slot]) {
            long got = SYSTEM(__NR_mmap, t, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_FRESH | MAP_FIXED_NOREPLACE, -1, 0);
            if (got != (long)t)
                break;
            unsigned long guard = page_up((unsigned long)(t + 1));
            SYSTEM(__NR_mprotect, guard, PAGE, 0);
            slot_mapped[slot] = true;
        }
        memset(t, 0, sizeof *t);
        t->slot = slot;
        t->state = THREAD_STARTING;
        t->resume.number = -1;
        found = t;
    }
    unlock(&threads_lock);
    return found;
}

bool thread_slot_exists(int slot)
{
    return slot_mapped[slot];
}

void set_alternate_stack(struct thread *self)
{
    unsigned long low = page_up((unsigned long)(self + 1)) + PAGE;
    struct sigaltstack stack = {.ss_sp = (void *)low, .ss_size = (unsigned long)self + SLOT_BYTES - low};
    SYSTEM(__NR_sigaltstack, &stack, 0);
}

int real_thread_id(int virtual_id)
{
    for (int slot = 0; slot < MAX_THREADS && slot_mapped[slot]; slot++) {
        struct thread *t = thread_at(slot);
        if (t->state != THREAD_FREE && t->virtual_id == virtual_id)
            return t->real_id;
    }
    return 0;
}

/* What the new thread must do before it is the program's. */
struct birth {
    struct thread *self;
    unsigned long tls;
    bool sets_tls;
    int virtual_id;
    int *child_id, *parent_id; /* where its number goes; before it runs, because it may be gone soon after */
    struct ucontext *frame;
};

__asm__(".text\n"
        ".globl clone_thread\n"
        "clone_thread:\n" /* (flags, stack, function, argument) */
        "    sub $16, %rsi\n"
        "    mov %rdx, 0(%rsi)\n"
        "    mov %rcx, 8(%rsi)\n"
        "    xor %edx, %edx\n"
        "    xor %r10d, %r10d\n"
        "    xor %r8d, %r8d\n"
        "    mov $56, %eax\n"
        "    syscall\n"
        "    test %rax, %rax\n"
        "    jz 1f\n"
        "    ret\n"
        "1:  xor %ebp, %ebp\n"
        "    pop %rax\n"
        "    pop %rdi\n"
        "    call *%rax\n"
        "    ud2\n");

/* The kernel's number, and above it how often the program has moved: so no other member has it, which may have got it on
 * another machine, and locks that members share may name their owners. */
static void choose_virtual_id(struct thread *self)
{
    lock(&threads_lock);
    int id = (self->real_id + (int)(process.moves * VIRTUAL_STEP)) & FUTEX_TID_MASK;
    while (real_thread_id(id) || id == process.start.virtual_pid || lineage_has(id))
        id = (id + VIRTUAL_STEP) & FUTEX_TID_MASK;
    self->virtual_id = id;
    unlock(&threads_lock);
}

static void born(void *argument)
{
    struct birth *birth = argument;
    struct thread *self = birth->self;
    self->real_id = (int)SYSTEM(__NR_gettid);
    choose_virtual_id(self);
    set_alternate_stack(self);
    if (birth->sets_tls)
        SYSTEM(__NR_arch_prctl, ARCH_SET_FS, birth->tls);
    if (self->clear_at_exit)
        SYSTEM(__NR_set_tid_address, self->clear_at_exit);
    if (birth->child_id)
        copy_user(birth->child_id, &self->virtual_id, sizeof(int));
    if (birth->parent_id)
        copy_user(birth->parent_id, &self->virtual_id, sizeof(int));
    birth->virtual_id = self->virtual_id;
    self->frame = birth->frame;
    __atomic_store_n(&self->state, THREAD_LIVE, __ATOMIC_RELEASE); /* from here on BIRTH may be gone */
    wake_all(&self->state);
    enter_frame(self->frame);
}

/* The child returns from a copy of the parent's frame, which lies at the top of its slot. */
static struct ucontext *copy_frame(struct thread *child, const struct ucontext *frame, unsigned long *stack_top)
{
    unsigned long top = (unsigned long)child + SLOT_BYTES;
    const struct _fpstate *state = (const void *)frame->uc_mcontext.fpstate;
    size_t size = extended_state_size(frame);
    unsigned long copied = (top - size) & ~63ul;
    memcpy((void *)copied, state, size);
    struct ucontext *fresh = (void *)((copied - sizeof *fresh) & ~15ul);
    *fresh = *frame;
    fresh->uc_mcontext.fpstate = (void *)(size ? copied : 0);
    unsigned long low = page_up((unsigned long)(child + 1)) + PAGE;
    fresh->uc_stack.ss_sp = (void *)low;
    fresh->uc_stack.ss_size = top - low;
    fresh->uc_stack.ss_flags = 0;
    *stack_top = (unsigned long)fresh - 64;
    return fresh;
}

static long start_thread(struct trap *t, unsigned long flags)
{
    struct thread *self = t->self, *child = new_thread_slot();
    if (!child)
        return -EAGAIN;
    unsigned long top;
    struct ucontext *frame = copy_frame(child, t->frame, &top);
    frame->uc_mcontext.rax = 0;
    frame->uc_mcontext.rsp = t->a[1];
    child->hidden_mask = self->hidden_mask;
    child->clear_at_exit = flags & CLONE_CHILD_CLEARTID ? (int *)t->a[3] : NULL;
    memcpy(child->name, self->name, sizeof child->name);
    struct birth birth = {.self = child, .tls = t->a[4], .sets_tls = (flags & CLONE_SETTLS) != 0,
                          .child_id = flags & CLONE_CHILD_SETTID ? (int *)t->a[3] : NULL,
                          .parent_id = flags & CLONE_PARENT_SETTID ? (int *)t->a[2] : NULL, .frame = frame};
    __atomic_add_fetch(&threads_live, 1, __ATOMIC_SEQ_CST);
    long id = clone_thread(THREAD_FLAGS, (void *)(top & ~15ul), born, &birth, NULL);
    if (id < 0) {
        __atomic_sub_fetch(&threads_live, 1, __ATOMIC_SEQ_CST);
        child->state = THREAD_FREE;
        return id;
    }
    /* The birth certificate lies on our stack: wait until it has been read. */
    while (__atomic_load_n(&child->state, __ATOMIC_ACQUIRE) == THREAD_STARTING)
        wait_while(&child->state, THREAD_STARTING);
    return birth.virtual_id;
}

long do_clone(struct trap *t)
{
    unsigned long flags = t->a[0];
    if (flags & NAMESPACES)
        return -EPERM;
    if (flags & CLONE_PIDFD && flags & (CLONE_THREAD | CLONE_PARENT_SETTID | CLONE_DETACHED))
        return -EINVAL;
    if ((flags & NEEDED) == NEEDED)
        return start_thread(t, flags);
    if (flags & SHARED || (flags & CLONE_VM && !(flags & CLONE_VFORK)) || (flags & CSIGNAL) != SIGCHLD)
        return -EINVAL; /* a child has copies of everything, and its end is told by this signal */
    if (flags & CLONE_PARENT && (!process.helper || flags & CLONE_VFORK)) /* whose parent is no member; who waits for no child */
        return -EINVAL;
    return start_member(t, flags);
}

/* After a fork: the other threads stayed with the parent. */
void forget_other_threads(struct thread *self)
{
    for (int slot = 0; slot < MAX_THREADS && slot_mapped[slot]; slot++)
        if (thread_at(slot) != self)
            thread_at(slot)->state = THREAD_FREE;
    threads_live = 1;
    exec_phase = EXEC_NONE;
}

/* The last thing a thread does: it gives its slot away while still standing on it, so the kernel's exit
 * follows in the same breath, without touching the stack.  The thread that joins it is told before that, and not by
 * the kernel: a checkpoint between the two would have a thread that is gone and was never seen to go. */
void leave(struct thread *self, int status)
{
    static const int gone;
    release_owned(self);
    if (self->clear_at_exit && !copy_user(self->clear_at_exit, &gone, sizeof gone)) {
        SYSTEM(__NR_set_tid_address, NULL);
        SYSTEM(__NR_futex, self->clear_at_exit, FUTEX_WAKE, 1);
    }
    if (__atomic_sub_fetch(&threads_live, 1, __ATOMIC_SEQ_CST) == 0) { /* the others left in the same moment */
        __atomic_add_fetch(&threads_live, 1, __ATOMIC_SEQ_CST);
        end_program(self, status);
    }
    __asm__ volatile("movl $0, (%0)\n"
                     "xor %%edi, %%edi\n"
                     "mov $60, %%eax\n"
                     "syscall\n"
                     :
                     : "r"(&self->state)
                     : "memory");
    __builtin_unreachable();
}

/* An exec keeps one thread.  The others are asked to leave as they are asked to park.  It and a checkpoint exclude each
 * other: each says what it is about to do, then looks at what the other has said; the exec is the one that stands back. */
bool must_leave(void)
{
    while (__atomic_load_n(&exec_phase, __ATOMIC_SEQ_CST) == EXEC_CLAIMED)
        wait_while(&exec_phase, EXEC_CLAIMED);
    return __atomic_load_n(&exec_phase, __ATOMIC_SEQ_CST) == EXEC_BEGUN;
}

static void set_exec_phase(uint32_t phase)
{
    __atomic_store_n(&exec_phase, phase, __ATOMIC_SEQ_CST);
    wake_all(&exec_phase);
}

/* False: another thread does the same, or a checkpoint is being taken, and SELF is to leave or to park first. */
bool end_other_threads(struct thread *self)
{
    uint32_t none = EXEC_NONE;
    if (!__atomic_compare_exchange_n(&exec_phase, &none, EXEC_CLAIMED, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        return false;
    bool free = !(__atomic_load_n(&checkpoint_phase, __ATOMIC_SEQ_CST) & 1);
    set_exec_phase(free ? EXEC_BEGUN : EXEC_NONE);
    for (uint32_t live; free && (live = __atomic_load_n(&threads_live, __ATOMIC_SEQ_CST)) > 1;) {
        for (int slot = 0; slot < MAX_THREADS && slot_mapped[slot]; slot++) {
            struct thread *other = thread_at(slot);
            bool is_there = other->state == THREAD_LIVE || other->state == THREAD_PARKED;
            if (other == self || !is_there || other->asked_to_leave)
                continue;
            /* Once: such signals queue up, and all programs of a user share the room, which may be used up just now. */
            other->asked_to_leave = !SYSTEM(__NR_tgkill, process.real_id, other->real_id, CHECKPOINT_SIGNAL);
        }
        wait_a_moment_while(&threads_live, live);
    }
    if (free)
        set_exec_phase(EXEC_NONE);
    return free;
}

void end_program(struct thread *self, int status)
{
    struct request request = {.call = OP_EXIT, .arguments = {status}};
    plan_end();
    give_back(self);
    release_owned(self);
    /* As the kernel ends who changes a mapping that its disk has no room for: also where a write has failed that did not
     * wait for its answer, and nothing has asked for that since. */
    if (shared_write_all(self) || ask(self, &request, NULL, 0, NULL, 0, NULL) < 0)
        die_of(SIGBUS);
    send_terminal_signals(self);
    tell_starter(CONTROL_EXITED, status);
    die(status);
}

long do_exit(struct trap *t)
{
    if (__atomic_load_n(&threads_live, __ATOMIC_SEQ_CST) == 1)
        end_program(t->self, (int)t->a[0]);
    leave(t->self, (int)t->a[0]);
}

long do_exit_group(struct trap *t)
{
    end_program(t->self, (int)t->a[0] & EXIT_STATUS_BITS);
}

long do_set_tid_address(struct trap *t)
{
    t->self->clear_at_exit = (int *)t->a[0];
    SYSTEM(__NR_set_tid_address, t->a[0]);
    return t->self->virtual_id;
}

long do_set_robust_list(struct trap *t)
{
    t->self->robust_list = (void *)t->a[0];
    t->self->robust_size = t->a[1];
    return SYSTEM(__NR_set_robust_list, t->a[0], t->a[1]);
}

long do_gettid(struct trap *t)
{
    return t->self->virtual_id;
}

long do_arch_prctl(struct trap *t)
{
    if (t->a[0] < ARCH_FIRST || t->a[0] > ARCH_LAST)
        return -EINVAL;
    return SYSTEM(__NR_arch_prctl, t->a[0], t->a[1]);
}
