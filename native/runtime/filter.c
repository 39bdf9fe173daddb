/* The filter: what the kernel lets the process do.
 *
 * Three classes.  Calls that touch nothing but the process itself pass from anywhere.  The runtime's own
 * calls pass only from its text and only with arguments that are harmless in anybody's hands, because a
 * hostile program can jump to a system-call instruction of the runtime's.  Everything else is trapped
 * when it comes from the program, and ends the process when it comes from the runtime's text.
 */
#include "filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>

#include "calls.h"
#include "runtime/memory/dirty.h"
#include "runtime/memory/memory.h"
#include "layout.h"
#include "runtime/process/process.h"
#include "trap.h"

enum { MOST_INSTRUCTIONS = 400 };
static struct sock_filter code[MOST_INSTRUCTIONS] GUARDED_BY(one_thread);
static unsigned length GUARDED_BY(one_thread);

static void emit(uint16_t op, uint8_t yes, uint8_t no, uint32_t k) REQUIRES(one_thread);
static void emit(uint16_t op, uint8_t yes, uint8_t no, uint32_t k)
{
    if (length < COUNT(code))
        code[length] = (struct sock_filter){op, yes, no, k};
    length++;
}

#define LOAD(field) emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, field))
#define LOAD_LOW(i) emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args[i]))
#define LOAD_HIGH(i) emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, args[i]) + 4)
#define ANSWER(what) emit(BPF_RET | BPF_K, 0, 0, what)
#define SKIP_UNLESS_EQUAL(value, steps) emit(BPF_JMP | BPF_JEQ | BPF_K, 0, steps, value)
#define SKIP_IF_EQUAL(value, steps) emit(BPF_JMP | BPF_JEQ | BPF_K, steps, 0, value)

/* What the runtime's text may call. A condition looks at one argument; all must hold. */
enum test { ANY, IS, IS_OR_CONTROL, IS_OR_FORK, IS_OWN, IS_DIRTY_SCAN, HAS_ONLY, HAS_ALL };
struct condition {
    uint8_t test, argument;
    uint32_t value;
};
struct permission {
    uint16_t number;
    struct condition conditions[3];
};

#define NEGATIVE 0x80000000u /* and more, as the filter sees it */

#define PLAIN_MAP \
    (MAP_SHARED | MAP_PRIVATE | MAP_FIXED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED_NOREPLACE)
#define FORK_FLAGS SIGCHLD     /* at the end, and nothing shared */
#define SIBLING_FLAGS (CLONE_PARENT | SIGCHLD)
#define BASES_AND_CPUID 0x1007 /* bits of arch_prctl's: FS and GS base; 1011, 1012 CPUID faulting */
#define OWN_FILES 15           /* bits of the descriptors' that are read: maps, pagemap, old image, contents kept here */

static const struct permission permissions[] = {
    {__NR_rt_sigreturn, {{0}}},
    {__NR_recvmsg, {{IS_OR_CONTROL, 0, CHANNEL_FD}}},
    {__NR_read, {{IS, 0, CHANNEL_FD}}},
#ifdef RUNTIME_TRACE
    {__NR_write, {{0}}},
#endif
    {__NR_write, {{IS, 0, CHANNEL_FD}}},
    {__NR_writev, {{IS_OR_CONTROL, 0, CHANNEL_FD}}},
    {__NR_mmap, {{HAS_ONLY, 3, PLAIN_MAP}, {HAS_ALL, 3, MAP_ANONYMOUS}}},
    {__NR_munmap, {{0}}},
    {__NR_mremap, {{0}}},
    {__NR_madvise, {{0}}},
    {__NR_rt_sigprocmask, {{0}}},
    {__NR_rt_sigaction, {{0}}},
    {__NR_rt_sigpending, {{0}}},
    {__NR_rt_sigsuspend, {{0}}},
    {__NR_rt_sigtimedwait, {{0}}},
    {__NR_sigaltstack, {{0}}},
    {__NR_getitimer, {{0}}},
    {__NR_setitimer, {{0}}},
    {__NR_timer_create, {{0}}},
    {__NR_timer_settime, {{0}}},
    {__NR_timer_gettime, {{0}}},
    {__NR_timer_getoverrun, {{0}}},
    {__NR_timer_delete, {{0}}},
    {__NR_futex, {{0}}},
    {__NR_clock_gettime, {{0}}},
    {__NR_clock_nanosleep, {{0}}},
    {__NR_set_tid_address, {{0}}},
    {__NR_set_robust_list, {{0}}},
    {__NR_getpid, {{0}}},
    {__NR_getppid, {{0}}},
    {__NR_gettid, {{0}}},
    {__NR_sched_getaffinity, {{0}}},
    {__NR_exit, {{0}}},
    {__NR_exit_group, {{0}}},
    {__NR_clone, {{IS_OR_FORK, 0, THREAD_FLAGS}}},
    {__NR_arch_prctl, {{HAS_ONLY, 0, BASES_AND_CPUID}}},
    {__NR_prlimit64, {{IS, 0, 0}, {IS, 2, 0}}},
    /* Helpers, and the channel of a new one. */
    {__NR_wait4, {{0}}},
    {__NR_waitid, {{0}}},
    {__NR_dup3, {{IS, 0, PASSED_FD}, {IS_OWN, 1, CHANNEL_FD}}},
    /* The checkpoint. */
    {__NR_pread64, {{HAS_ONLY, 0, OWN_FILES}}},
    {__NR_lseek, {{IS, 0, OLD_IMAGE_FD}}},
    {__NR_ioctl, {{IS_DIRTY_SCAN, 1, 0}}}, /* of own memory; no other kind of descriptor knows these requests */
    {__NR_pwrite64, {{IS, 0, PASSED_FD}}},
    {__NR_ftruncate, {{IS, 0, PASSED_FD}}},
    {__NR_fsync, {{IS, 0, PASSED_FD}}},
    {__NR_close, {{IS_OR_CONTROL, 0, PASSED_FD}}},
};

/* Each test falls through when it holds and ends the process when it does not. */
static void emit_condition(const struct condition *c) REQUIRES(one_thread);
static void emit_condition(const struct condition *c)
{
    if (c->test == IS && c->value == 0) { /* a pointer must be null in both halves */
        LOAD_HIGH(c->argument);
        SKIP_IF_EQUAL(0, 1);
        ANSWER(SECCOMP_RET_KILL_PROCESS);
    }
    LOAD_LOW(c->argument);
    switch (c->test) {
    case IS: SKIP_IF_EQUAL(c->value, 1); break;
    case IS_OR_CONTROL:
        SKIP_IF_EQUAL(c->value, 4);
        SKIP_IF_EQUAL(process.family ? BROKER_FD : c->value, 3);
        SKIP_IF_EQUAL(process.direct ? CONTROL_FD : c->value, 2);
        SKIP_IF_EQUAL(process.direct ? OTHER_CONTROL_FD : c->value, 1);
        break;
    case IS_OR_FORK:
        SKIP_IF_EQUAL(c->value, 3);
        SKIP_IF_EQUAL(process.family ? FORK_FLAGS : THREAD_FLAGS, 2);
        SKIP_IF_EQUAL(process.family ? SIBLING_FLAGS : THREAD_FLAGS, 1);
        break;
    case IS_OWN: /* the channel, and the lists of its memory */
        SKIP_IF_EQUAL(c->value, 3);
        SKIP_IF_EQUAL(process.family ? MAPS_FD : c->value, 2);
        SKIP_IF_EQUAL(process.family ? PAGEMAP_FD : c->value, 1);
        break;
    case IS_DIRTY_SCAN:
        SKIP_IF_EQUAL(DIRTY_SCAN, 2);
        SKIP_IF_EQUAL(FAULT_REGISTER, 1);
        break;
    case HAS_ONLY: emit(BPF_JMP | BPF_JSET | BPF_K, 0, 1, ~c->value); break;
    case HAS_ALL: emit(BPF_JMP | BPF_JSET | BPF_K, 1, 0, c->value); break;
    default: break;
    }
    ANSWER(SECCOMP_RET_KILL_PROCESS);
}

static void emit_runtimes_calls(void) REQUIRES(one_thread);
static void emit_runtimes_calls(void)
{
    for (size_t i = 0; i < COUNT(permissions); i++) {
        const struct permission *p = &permissions[i];
        unsigned at = length;
        SKIP_UNLESS_EQUAL(p->number, 0);
        for (size_t j = 0; j < COUNT(p->conditions) && p->conditions[j].test != ANY; j++)
            emit_condition(&p->conditions[j]);
        ANSWER(SECCOMP_RET_ALLOW);
        code[at].jf = (uint8_t)(length - at - 1);
    }
    if (process.family) { /* itself and its children, within their session */
        SKIP_UNLESS_EQUAL(__NR_setpgid, 1);
        ANSWER(SECCOMP_RET_ALLOW);
        SKIP_UNLESS_EQUAL(__NR_prctl, 5); /* what it hears of its parent's end, and whose children become its own */
        LOAD_LOW(0);
        SKIP_IF_EQUAL(PR_SET_PDEATHSIG, 2);
        SKIP_IF_EQUAL(PR_SET_CHILD_SUBREAPER, 1);
        ANSWER(SECCOMP_RET_KILL_PROCESS);
        ANSWER(SECCOMP_RET_ALLOW);
    }
    /* Signals to the process itself, or to its family, and to no other. */
    static const uint16_t senders[] = {__NR_tgkill, __NR_rt_tgsigqueueinfo, __NR_kill, __NR_rt_sigqueueinfo};
    for (size_t i = 0; i < COUNT(senders); i++) {
        SKIP_UNLESS_EQUAL(senders[i], process.family ? 5 : 4);
        LOAD_LOW(0);
        if (process.family) { /* any one process: there are no others than the family */
            SKIP_IF_EQUAL(0, 2);
            emit(BPF_JMP | BPF_JGE | BPF_K, 1, 0, NEGATIVE);
        } else {
            SKIP_UNLESS_EQUAL((uint32_t)process.real_id, 1);
        }
        ANSWER(SECCOMP_RET_ALLOW);
        ANSWER(SECCOMP_RET_KILL_PROCESS);
    }
    ANSWER(SECCOMP_RET_KILL_PROCESS);
}

/* A futex that waits with a timeout is trapped, so that a checkpoint does not end it early; and so is one whose word names
 * its owner, which the kernel would look for among its own numbers (owned.c). */
static void emit_futex(void) REQUIRES(one_thread);
static void emit_futex(void)
{
    unsigned at = length;
    SKIP_UNLESS_EQUAL(__NR_futex, 0);
    LOAD_LOW(1);
    emit(BPF_ALU | BPF_AND | BPF_K, 0, 0, FUTEX_CMD_MASK);
    static const uint8_t owned[] = {FUTEX_LOCK_PI,         FUTEX_UNLOCK_PI,      FUTEX_TRYLOCK_PI,
                                    FUTEX_WAIT_REQUEUE_PI, FUTEX_CMP_REQUEUE_PI, FUTEX_LOCK_PI2};
    enum { QUESTIONS_ABOUT_TIME = 8 };
    for (unsigned i = 0; i < COUNT(owned); i++)
        SKIP_IF_EQUAL(owned[i], (uint8_t)(COUNT(owned) - 1 - i + QUESTIONS_ABOUT_TIME));
    SKIP_IF_EQUAL(FUTEX_WAIT, 2);
    SKIP_IF_EQUAL(FUTEX_WAIT_BITSET, 1);
    ANSWER(SECCOMP_RET_ALLOW);
    LOAD_LOW(3);
    SKIP_UNLESS_EQUAL(0, 3);
    LOAD_HIGH(3);
    SKIP_UNLESS_EQUAL(0, 1);
    ANSWER(SECCOMP_RET_ALLOW);
    code[at].jf = (uint8_t)(length - at - 1); /* those go on to the question who asks */
}

/* Advice is the kernel's business until the program has moved, but for what an image would not know of. */
static void emit_madvise(void) REQUIRES(one_thread);
static void emit_madvise(void)
{
    if (process.restarted)
        return;
    unsigned at = length;
    SKIP_UNLESS_EQUAL(__NR_madvise, 0);
    LOAD_LOW(2);
    SKIP_IF_EQUAL(MADV_WIPEONFORK, 2);
    SKIP_IF_EQUAL(GUARD_INSTALL, 1);
    ANSWER(SECCOMP_RET_ALLOW);
    LOAD(nr);
    code[at].jf = (uint8_t)(length - at - 1);
}

static void emit_local_calls(void) REQUIRES(one_thread);
static void emit_local_calls(void)
{
    static const uint16_t always[] = {LOCAL_CALLS};
    /* Their behaviour is the runtime's business once the program has moved. */
    static const uint16_t until_moved[] = {__NR_clock_gettime};
    for (size_t i = 0; i < COUNT(always); i++) {
        SKIP_UNLESS_EQUAL(always[i], 1);
        ANSWER(SECCOMP_RET_ALLOW);
    }
    for (size_t i = 0; i < COUNT(until_moved) && !process.restarted; i++) {
        SKIP_UNLESS_EQUAL(until_moved[i], 1);
        ANSWER(SECCOMP_RET_ALLOW);
    }
}

static void emit_origin(void) REQUIRES(one_thread);
static void emit_origin(void)
{
    const uint64_t from = (uint64_t)runtime_text_start, to = (uint64_t)runtime_text_end;
    emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, instruction_pointer) + 4);
    SKIP_IF_EQUAL((uint32_t)(from >> 32), 1);
    ANSWER(SECCOMP_RET_TRAP);
    LOAD(instruction_pointer);
    emit(BPF_JMP | BPF_JGE | BPF_K, 1, 0, (uint32_t)from);
    ANSWER(SECCOMP_RET_TRAP);
    emit(BPF_JMP | BPF_JGE | BPF_K, 0, 1, (uint32_t)to);
    ANSWER(SECCOMP_RET_TRAP);
    LOAD(nr);
}

void install_filter(void)
{
    length = 0;
    LOAD(arch);
    SKIP_IF_EQUAL(AUDIT_ARCH_X86_64, 1);
    ANSWER(SECCOMP_RET_KILL_PROCESS);
    LOAD(nr);
    SKIP_IF_EQUAL(0xffffffffu, 2); /* -1 is how some programs probe */
    emit(BPF_JMP | BPF_JGE | BPF_K, 0, 1, __X32_SYSCALL_BIT); /* x32 */
    ANSWER(SECCOMP_RET_KILL_PROCESS);
    emit_local_calls();
    emit_madvise();
    emit_futex();
    emit_origin();
    emit_runtimes_calls();
    struct {
        unsigned short length;
        struct sock_filter *code;
    } program = {(unsigned short)length, code};
    if (length > COUNT(code) || SYSTEM(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        SYSTEM(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) < 0)
        die(EXIT_CANNOT_START);
}
