/* Where the kernel enters the runtime: at its start, and at each system call of the program. */
#include "trap.h"

#include "runtime/process/broker.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/remote/channel.h"
#include "runtime/remote/control.h"
#include "cpu.h"
#include "runtime/memory/dirty.h"
#include "runtime/ipc/terminals.h"
#include "filter.h"
#include "loader.h"
#include "runtime/memory/memory.h"
#include "runtime/remote/invalidation.h"
#include "runtime/remote/library.h"
#include "runtime/remote/plan.h"
#include "runtime/process/process.h"
#include "runtime/remote/remote.h"
#include "runtime/remote/secret.h"
#include "runtime/signals/signals.h"
#include "text.h"

#include <linux/prctl.h>

#define WANT_CALL_TABLE
#define calls call_table /* the table is made as a static; the rest of the runtime sees it as calls */
#include "calls.h"
#undef calls
extern const struct call calls[CALL_COUNT] __attribute__((alias("call_table")));
_Static_assert(CALL_COUNT_NEEDED <= CALL_COUNT, "the call table is too short");

struct process process
    UNGUARDED("set while there is one thread; what changes later has a lock of its own or is one word that only grows");

#define DECLARE(name) emulation do_##name;
CALLS_DONE_HERE(DECLARE)
#undef DECLARE

static emulation *const emulations[CALL_COUNT] = {
#define ENTER(name) [__NR_##name] = do_##name,
    CALLS_DONE_HERE(ENTER)
#undef ENTER
};

__asm__(".text\n"
        ".globl runtime_entry, enter_frame, switch_stack\n"
        "runtime_entry:\n"
        "    xor %ebp, %ebp\n"
        "    mov %rsp, %rdi\n"
        "    and $-16, %rsp\n"
        "    call runtime_main\n"
        "    ud2\n"
        "enter_frame:\n" /* leave for the program: what a signal handler's return does */
        "    mov %rdi, %rsp\n"
        "    mov $15, %eax\n"
        "    syscall\n"
        "    ud2\n"
        "switch_stack:\n" /* (function, argument, stack) */
        "    mov %rdx, %rsp\n"
        "    mov %rdi, %rax\n"
        "    mov %rsi, %rdi\n"
        "    xor %ebp, %ebp\n"
        "    call *%rax\n"
        "    ud2\n");

void die(int status)
{
    for (;;)
        SYSTEM(__NR_exit_group, status);
}

static bool has_resume(const struct trap *t)
{
    const struct thread *self = t->self;
    return self->resume.number == t->number && self->resume.rip == t->frame->uc_mcontext.rip &&
           self->resume.rsp == t->frame->uc_mcontext.rsp;
}

/* An interrupted call is done again from its first instruction, or fails with EINTR. */
static long settle_interruption(struct trap *t, long result)
{
    uint32_t handled = t->self->signalled & (SIGNALLED_PLAIN | SIGNALLED_RESTART);
    bool again = result == -RESTART_UNHANDLED ? handled == 0 : !(handled & SIGNALLED_PLAIN);
    if (!again) {
        t->self->resume.number = -1;
        return -EINTR;
    }
    t->self->restore_mask = false;
    t->frame->uc_mcontext.rip -= CALL_BYTES;
    if (!handled) {
        t->self->again.rip = t->frame->uc_mcontext.rip;
        t->self->again.rsp = t->frame->uc_mcontext.rsp;
        t->self->again.ends = result == -RESTART_UNHANDLED;
    }
    return t->number;
}

static long dispatch(struct trap *t)
{
    if (t->number < 0 || t->number >= CALL_COUNT)
        return -ENOSYS;
    const struct call *call = &calls[t->number];
    if (call->how == HOW_AS) {
        unsigned long old[COUNT(t->a)];
        memcpy(old, t->a, sizeof old);
        for (int i = 0; i < 6; i++)
            switch (call->values[i].kind) {
            case VALUE_ARGUMENT: t->a[i] = old[call->values[i].number]; break;
            case VALUE_CWD: t->a[i] = (unsigned long)AT_FDCWD; break;
            case VALUE_EMPTY: t->a[i] = (unsigned long)""; break;
            default: t->a[i] = (unsigned long)call->values[i].number; break;
            }
        if (t->number == __NR_fstat && (int)old[0] < 0) /* no name for the working directory here */
            return -EBADF;
        t->number = call->target;
        call = &calls[t->number];
    }
    bool noted = call->how == HOW_RUNTIME || call->how == HOW_REMOTE;
    unsigned long arguments[COUNT(t->a)];
    memcpy(arguments, t->a, sizeof arguments);
    enum meaning meaning = noted ? note_call(t) : MEANS_NOTHING;
    long result;
    switch (call->how) {
    case HOW_REFUSED: return -call->target;
    case HOW_RUNTIME: result = emulations[t->number](t); break;
    case HOW_REMOTE: result = call->flags & CALL_HERE ? emulations[t->number](t) : remote(t, call); break;
    case HOW_LOCAL: /* the filter lets it pass; a machine whose filter cannot traps it */
        return system6(t->number, (long)t->a[0], (long)t->a[1], (long)t->a[2], (long)t->a[3], (long)t->a[4],
                       (long)t->a[5]);
    default: return -ENOSYS;
    }
    if (noted)
        note_call_done(meaning, t, arguments);
    return result;
}

void on_trap(int number, struct siginfo *info, void *context)
{
    struct ucontext *frame = context;
    struct sigcontext *c = &frame->uc_mcontext;
    struct thread *self = current_thread();
    if (info->si_code != SYS_SECCOMP) { /* an ordinary signal of that number */
        on_signal(number, info, context);
        return;
    }
    long asked = (long)(int)c->rax;
    struct trap t = {.self = self, .frame = frame, .number = asked,
                     .a = {c->rdi, c->rsi, c->rdx, c->r10, c->r8, c->r9}};
    self->frame = frame;
    self->signalled = 0;
    self->again.rip = 0;
    if (!has_resume(&t))
        self->resume.number = -1;
    long result = dispatch(&t);
    send_terminal_signals(self);
    if (t.frame_is_new)
        return;
    if (result == -RESTART_ALWAYS || result == -RESTART_UNHANDLED) {
        t.number = asked;
        result = settle_interruption(&t, result);
    } else {
        self->resume.number = -1; /* the next call from this place is another one */
    }
    trace("call", asked, result);
    c->rax = (unsigned long)result;
}

static void begin(void *unused);
static void enter_program(struct thread *self, unsigned long entry, unsigned long stack)
    __attribute__((noreturn));

/* Called on the kernel's stack: the process has just been executed. */
__attribute__((used)) void runtime_main(unsigned long *stack)
{
    no_other_thread_runs();
    if (is_image)
        restart(stack);
    struct thread *self = new_thread_slot();
    if (!self)
        die(EXIT_CANNOT_START);
    switch_stack(begin, stack, (unsigned long)self + SLOT_BYTES);
}

/* Brings the inherited descriptors to their fixed numbers: argument 1 names the channel, argument 2 a
 * directory that is /proc when the root directory holds none ("-" otherwise); argument 3 is "family" where
 * the program may start others, because signals cannot reach anybody else's; "key=N" a descriptor with the key
 * of the channel; "control=N" the socket to the starter, where the channel goes straight home; "parent=N" the process
 * without which there is to be none of this. */
void take_descriptors(unsigned long *stack)
{
    long count = (long)stack[0];
    char **words = (char **)(stack + 1);
    const char *at = count > 1 ? words[1] : "3";
    long channel = (long)read_number(&at, 10), proc = -1;
    if (count > 2 && words[2][0] != '-') {
        at = words[2];
        proc = (long)read_number(&at, 10);
    }
    long key = -1, control = -1, library = -1, table = -1;
    process.family = false;
    for (long i = 3; i < count; i++) {
        process.family |= !strcmp(words[i], "family");
        if (starts_with(words[i], "key=")) {
            at = words[i] + 4;
            key = (long)read_number(&at, 10);
        }
        if (starts_with(words[i], "control=")) {
            at = words[i] + 8;
            control = (long)read_number(&at, 10);
        }
        if (starts_with(words[i], "library=")) {
            at = words[i] + 8;
            library = (long)read_number(&at, 10);
        }
        if (starts_with(words[i], "table=")) {
            at = words[i] + 6;
            table = (long)read_number(&at, 10);
        }
        if (starts_with(words[i], "parent=")) {
            at = words[i] + 7;
            SYSTEM(__NR_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
            if (SYSTEM(__NR_getppid) != (long)read_number(&at, 10)) /* it has ended meanwhile */
                die(EXIT_CANNOT_START);
        }
    }
    if (!secret_take(key))
        die(EXIT_CANNOT_START);
    long maps, pages, image;
    if (proc >= 0) {
        maps = SYSTEM(__NR_openat, proc, "self/maps", O_CLOEXEC);
        pages = SYSTEM(__NR_openat, proc, "self/pagemap", O_CLOEXEC);
        image = SYSTEM(__NR_openat, proc, "self/exe", O_CLOEXEC);
    } else {
        maps = SYSTEM(__NR_openat, AT_FDCWD, "/proc/self/maps", O_CLOEXEC);
        pages = SYSTEM(__NR_openat, AT_FDCWD, "/proc/self/pagemap", O_CLOEXEC);
        image = SYSTEM(__NR_openat, AT_FDCWD, "/proc/self/exe", O_CLOEXEC);
    }
    if (channel < 0 || maps < 0 || pages < 0 || image < 0)
        die(EXIT_CANNOT_START);
    /* Through high numbers first: the fixed ones may be among those just opened. */
    enum { HIGH = 200, TAKEN = 4 /* descriptors, the control socket, and the contents kept here */ };
    process.direct = control >= 0;
    library_take(library, table);
    const long found[] = {channel, maps, pages, image, control, library};
    for (int i = 0; i < TAKEN + process.direct + library_is_kept(); i++)
        if (SYSTEM(__NR_dup3, found[i], HIGH + i, O_CLOEXEC) < 0)
            die(EXIT_CANNOT_START);
    for (int i = 0; i < TAKEN; i++)
        if (SYSTEM(__NR_dup3, HIGH + i, CHANNEL_FD + i, O_CLOEXEC) < 0)
            die(EXIT_CANNOT_START);
    for (int fd = 0; fd <= 2; fd++) /* never free: a descriptor that arrives must become PASSED_FD */
        if (SYSTEM(__NR_fcntl, fd, F_GETFD) < 0)
            SYSTEM(__NR_dup3, MAPS_FD, fd, 0);
    if (process.direct && SYSTEM(__NR_dup3, HIGH + TAKEN, CONTROL_FD, O_CLOEXEC) < 0)
        die(EXIT_CANNOT_START);
    SYSTEM(__NR_close_range, PASSED_FD, FAULT_FD, 0);
    if (library_is_kept() && SYSTEM(__NR_dup3, HIGH + TAKEN + 1, LIBRARY_FD, O_CLOEXEC) < 0)
        die(EXIT_CANNOT_START);
    SYSTEM(__NR_close_range, CONTROL_FD + process.direct, LIBRARY_FD - 1, 0);
    SYSTEM(__NR_close_range, LIBRARY_FD + library_is_kept(), ~0u, 0);
    process.control = CONTROL_FD;
    SYSTEM(__NR_dup3, MAPS_FD, FAULT_FD, O_CLOEXEC); /* not free either, with or without what belongs there */
    process.own_lists = true;
    broker_start();
    dirty_prepare();
}

static void read_kernel_auxiliary(unsigned long *stack) REQUIRES(one_thread);
static void read_kernel_auxiliary(unsigned long *stack)
{
    unsigned long *at = stack + 1 + stack[0] + 1;
    while (*at)
        at++;
    at++;
    for (size_t i = 0; i + 1 < AUXILIARY_WORDS && at[0]; i++, at += 2) {
        kernel_auxiliary[i][0] = at[0];
        kernel_auxiliary[i][1] = at[1];
    }
}

/* Asks home what to run. Returns the strings that follow the answer's struct start. */
static char *learn_task(struct thread *self)
{
    struct hello hello = {.version = PROTOCOL_VERSION, .kind = HELLO_FRESH,
                          .real_pid = (uint32_t)process.real_id};
    struct request request = {.call = OP_HELLO, .arguments = {MAX_START, plan_prepare(), library_is_kept()}};
    uint32_t firsts[MOST_CONTENTS];
    long strings = map_anonymous(0, MAX_START, PROT_READ | PROT_WRITE, 0);
    if (strings < 0)
        die(EXIT_CANNOT_START);
    struct vector in[] = {{&hello, sizeof hello}, {firsts, library_firsts(firsts) * sizeof *firsts}};
    struct vector out[] = {{&process.start, sizeof process.start}, {(void *)strings, MAX_START}};
    if (ask(self, &request, in, COUNT(in), out, 2, NULL) < 0)
        die(EXIT_CANNOT_START);
    plan_begin(process.start.taken);
    return (char *)strings;
}

static void begin(void *argument)
{
    static const uint64_t mask = RUNTIME_MASK;
    struct thread *self = current_thread();
    no_other_thread_runs();
    SYSTEM(__NR_rt_sigprocmask, SIG_SETMASK, &mask, 0, MASK_BYTES);
    take_descriptors(argument);
    read_kernel_auxiliary(argument);
    process.real_id = (int)SYSTEM(__NR_getpid);
    if (process.family) /* members are in groups of the kernel's own, see groups.c */
        SYSTEM(__NR_setpgid, 0, 0);
    process.cpu_level = cpu_level();
    self->real_id = process.real_id;
    self->state = THREAD_LIVE;
    threads_live = 1;
    char *strings = learn_task(self);
    self->virtual_id = process.start.virtual_pid;

    unsigned count = process.start.argument_count, more = process.start.environment_count;
    unsigned long pointer_bytes = page_up((count + more + 2) * sizeof(char *));
    char **pointers = (char **)map_anonymous(0, pointer_bytes, PROT_READ | PROT_WRITE, 0);
    char *at = strings, *path = at;
    at += strlen(at) + 1;
    char **arguments = pointers, **environment = pointers + count + 1;
    for (unsigned i = 0; i < count; i++, at += strlen(at) + 1)
        arguments[i] = at;
    for (unsigned i = 0; i < more; i++, at += strlen(at) + 1)
        environment[i] = at;

    unsigned long entry, stack;
    set_alternate_stack(self);
    install_actions();
    tell_starter(CONTROL_BEGAN, 0);
    long failed = load_program(self, path, arguments, environment, &entry, &stack);
    unmap((unsigned long)strings, MAX_START);
    unmap((unsigned long)pointers, pointer_bytes);
    if (failed) {
        struct request request = {.call = OP_EXIT, .arguments = {EXIT_CANNOT_START, -failed}};
        ask(self, &request, NULL, 0, NULL, 0, NULL);
        tell_starter(CONTROL_EXITED, EXIT_CANNOT_START);
        die(EXIT_CANNOT_START);
    }
    install_filter();
    enter_program(self, entry, stack);
}

/* The first instruction of the program is reached through a frame, like every other one: so the signal
 * mask opens in the same moment. A frame without extended state makes the kernel give a fresh one. */
static void enter_program(struct thread *self, unsigned long entry, unsigned long stack)
{
    enum { STRICT_SEGMENTS = 6 };
    struct ucontext frame = {0};
    unsigned long low = page_up((unsigned long)(self + 1)) + PAGE;
    frame.uc_flags = STRICT_SEGMENTS;
    frame.uc_stack.ss_sp = (void *)low;
    frame.uc_stack.ss_size = (unsigned long)self + SLOT_BYTES - low;
    frame.uc_mcontext.rip = entry;
    frame.uc_mcontext.rsp = stack;
    frame.uc_mcontext.eflags = FLAGS_OF_PROGRAM;
    frame.uc_mcontext.cs = SEGMENT_CODE;
    frame.uc_mcontext.ss = SEGMENT_DATA;
    enter_frame(&frame);
}
