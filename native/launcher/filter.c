/* What the kernel does for the program: closed before its first instruction.
 *
 * "runtime" is for the runtime and for checkpoints, which may be forged: a list of what they need before the runtime
 * closes its own filter, which is narrower.  "job" is for ordinary programs: all but what administers a machine, reaches
 * into other processes' keys, or has been the way into kernels.  Either way the answer to anything else is an error, so
 * that a filter on top of this one may still trap a call.
 */
#define _GNU_SOURCE
#include "launcher.h"

#include "../guards.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#if defined(__x86_64__)
#define OWN_ARCH AUDIT_ARCH_X86_64
#define X32 0x40000000u
#elif defined(__aarch64__)
#define OWN_ARCH AUDIT_ARCH_AARCH64
#else
#error "the filter does not know this machine's calls"
#endif

enum {
    MOST = 512,
    NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                 CLONE_NEWCGROUP | 0x80 /* CLONE_NEWTIME */,
    USER_FAULTS = 1,
    TYPE_AHEAD = 0x5412, CONSOLE_PASTE = 0x541c, /* TIOCSTI, TIOCLINUX: typing into another terminal */
    FAMILY_CRYPTO = 38, FAMILY_VIRTUAL = 40, FAMILY_PACKET = 17,
};

static struct sock_filter code[MOST] UNGUARDED("the launcher has one thread");
static unsigned length UNGUARDED("the launcher has one thread");

static void emit(uint16_t op, uint8_t yes, uint8_t no, uint32_t value)
{
    if (length == MOST)
        fail("filter", E2BIG, "too many calls");
    code[length++] = (struct sock_filter){op, yes, no, value};
}

static void load(size_t offset)
{
    emit(BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void answer(uint32_t what)
{
    emit(BPF_RET | BPF_K, 0, 0, what);
}

static void answer_for(uint32_t number, uint32_t what)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number);
    answer(what);
}

/* NUMBER is refused when its argument has one of the bits; the number stays in the register. */
static void refuse_bits(uint32_t number, unsigned argument, uint32_t bits)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, number);
    load(offsetof(struct seccomp_data, args[argument]));
    emit(BPF_JMP | BPF_JSET | BPF_K, 0, 1, bits);
    answer(SECCOMP_RET_ERRNO | EPERM);
    load(offsetof(struct seccomp_data, nr));
}

static void only_bits(uint32_t number, unsigned argument, uint32_t bits)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, number);
    load(offsetof(struct seccomp_data, args[argument]));
    emit(BPF_JMP | BPF_JSET | BPF_K, 0, 1, ~bits);
    answer(SECCOMP_RET_ERRNO | EPERM);
    answer(SECCOMP_RET_ALLOW);
}

static void only_value(uint32_t number, unsigned argument, uint32_t value)
{
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, number);
    load(offsetof(struct seccomp_data, args[argument]));
    emit(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, value);
    answer(SECCOMP_RET_ERRNO | EPERM);
    answer(SECCOMP_RET_ALLOW);
}

/* Numbers that every machine has in common begin at 424. */
static const uint16_t refused[] = {
    __NR_acct, __NR_add_key, __NR_adjtimex, __NR_bpf, __NR_clock_adjtime, __NR_clock_settime, __NR_delete_module,
    __NR_fanotify_init, __NR_finit_module, __NR_init_module, __NR_kexec_file_load, __NR_kexec_load, __NR_keyctl,
    __NR_lookup_dcookie, __NR_mount, __NR_move_pages, __NR_name_to_handle_at, __NR_open_by_handle_at,
    __NR_perf_event_open, __NR_pivot_root, __NR_quotactl, __NR_reboot, __NR_request_key, __NR_sethostname,
    __NR_setdomainname, __NR_setns, __NR_settimeofday, __NR_swapoff, __NR_swapon, __NR_syslog, __NR_umount2,
    __NR_userfaultfd, __NR_vhangup,
#ifdef __x86_64__
    __NR_ioperm, __NR_iopl, __NR_modify_ldt, __NR_uselib, __NR__sysctl, __NR_nfsservctl,
#endif
    425, 426, 427, /* io_uring */
    428, 429, 430, 431, 432, 433, 442, 443, /* open_tree … fspick, mount_setattr, quotactl_fd */
};

static const uint16_t reaching[] = { /* into other processes; harmless among one's own */
    __NR_ptrace, __NR_process_vm_readv, __NR_process_vm_writev, __NR_kcmp, 438 /* pidfd_getfd */,
};

/* What is refused for one of its arguments: a value, or some bits. */
enum on { ANY, BITS, VALUE };

struct rule {
    uint32_t number;
    enum on on;
    uint8_t argument;
    uint16_t error;
    uint32_t what;
};

static const struct rule by_argument[] = {
    {435 /* clone3: its flags are out of sight */, ANY, 0, ENOSYS, 0},
    {__NR_clone, BITS, 0, EPERM, NAMESPACES},
    {__NR_unshare, BITS, 0, EPERM, NAMESPACES},
    {__NR_ioctl, VALUE, 1, EPERM, TYPE_AHEAD},
    {__NR_ioctl, VALUE, 1, EPERM, CONSOLE_PASTE},
    {__NR_socket, VALUE, 0, EAFNOSUPPORT, FAMILY_CRYPTO},
    {__NR_socket, VALUE, 0, EAFNOSUPPORT, FAMILY_VIRTUAL},
    {__NR_socket, VALUE, 0, EAFNOSUPPORT, FAMILY_PACKET},
};

enum { MOST_RULES = COUNT(refused) + COUNT(reaching) + COUNT(by_argument), LEAF = 4 };

/* In the order of their numbers; those of one number stay in theirs. */
static size_t add_rule(struct rule *rules, size_t count, struct rule rule)
{
    size_t at = count;
    for (; at && rules[at - 1].number > rule.number; at--)
        rules[at] = rules[at - 1];
    rules[at] = rule;
    return count + 1;
}

/* The number is in the register, and stays there when the rule lets the call pass. */
static void apply_rule(const struct rule *rule)
{
    if (rule->on == ANY) {
        answer_for(rule->number, SECCOMP_RET_ERRNO | rule->error);
        return;
    }
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, rule->number);
    load(offsetof(struct seccomp_data, args) + rule->argument * sizeof(uint64_t));
    emit(BPF_JMP | (rule->on == BITS ? BPF_JSET : BPF_JEQ) | BPF_K, 0, 1, rule->what);
    answer(SECCOMP_RET_ERRNO | rule->error);
    load(offsetof(struct seccomp_data, nr));
}

/* A search by halves: the kernel tries the filter on every number there is when it is closed, and then on each call. */
static void search(const struct rule *rules, size_t count)
{
    size_t half = count / 2;
    while (half && rules[half - 1].number == rules[half].number)
        half--;
    if (count <= LEAF || !half) {
        for (size_t i = 0; i < count; i++)
            apply_rule(&rules[i]);
        answer(SECCOMP_RET_ALLOW);
        return;
    }
    emit(BPF_JMP | BPF_JGE | BPF_K, 0, 1, rules[half].number);
    unsigned jump = length;
    emit(BPF_JMP | BPF_JA, 0, 0, 0);
    search(rules, half);
    code[jump].k = length - jump - 1;
    search(rules + half, count - half);
}

static void job_calls(bool traceable)
{
    struct rule rules[MOST_RULES];
    size_t count = 0;
    for (size_t i = 0; i < COUNT(refused); i++)
        count = add_rule(rules, count, (struct rule){.number = refused[i], .error = EPERM});
    for (size_t i = 0; i < COUNT(reaching) && !traceable; i++)
        count = add_rule(rules, count, (struct rule){.number = reaching[i], .error = EPERM});
    for (size_t i = 0; i < COUNT(by_argument); i++)
        count = add_rule(rules, count, by_argument[i]);
    search(rules, count);
}

/* What the runtime's own filter lets through from any place or from its text, and what it needs before that closes. */
static const uint16_t runtimes[] = {
    __NR_brk, __NR_clock_gettime, __NR_clock_nanosleep, __NR_close, __NR_close_range, __NR_dup3, __NR_execve,
    __NR_exit, __NR_exit_group, __NR_fcntl, __NR_fsync, __NR_ftruncate, __NR_futex, __NR_getcpu,
    __NR_getitimer, __NR_getpid, __NR_getppid, __NR_getrandom, __NR_getrusage, __NR_gettid, __NR_gettimeofday,
    __NR_ioctl, __NR_kill, __NR_lseek, __NR_clock_getres, __NR_madvise, __NR_membarrier, __NR_mincore,
    __NR_mmap, __NR_mprotect, __NR_mremap, __NR_munmap, __NR_pread64, __NR_prlimit64, __NR_pwrite64, __NR_read,
    __NR_readlinkat, __NR_recvmsg, __NR_restart_syscall, __NR_rt_sigaction, __NR_rt_sigpending,
    __NR_rt_sigprocmask, __NR_rt_sigqueueinfo, __NR_rt_sigreturn, __NR_rt_sigsuspend, __NR_rt_sigtimedwait,
    __NR_rt_tgsigqueueinfo, __NR_sched_getaffinity, __NR_sched_yield, __NR_seccomp, __NR_sendmsg,
    __NR_set_robust_list, __NR_set_tid_address, __NR_setitimer, __NR_setpgid, __NR_sigaltstack, __NR_sysinfo,
    __NR_tgkill, __NR_timer_create, __NR_timer_delete, __NR_timer_getoverrun, __NR_timer_gettime,
    __NR_timer_settime, __NR_times, __NR_wait4, __NR_waitid, __NR_write, __NR_writev,
#ifdef __x86_64__
    __NR_arch_prctl, __NR_time,
#endif
};

static void runtime_calls(void)
{
    for (size_t i = 0; i < COUNT(runtimes); i++)
        answer_for(runtimes[i], SECCOMP_RET_ALLOW);
    refuse_bits(__NR_clone, 0, NAMESPACES);
    answer_for(__NR_clone, SECCOMP_RET_ALLOW);
    only_bits(__NR_openat, 2, 02000000 /* O_CLOEXEC: to read, and nothing made */);
    only_value(__NR_prctl, 0, PR_SET_NO_NEW_PRIVS);
    only_value(__NR_socketpair, 0, AF_UNIX); /* and that it tells who sends: runtime/broker.c */
    only_value(__NR_setsockopt, 2, SO_PASSCRED);
    emit(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, __NR_userfaultfd);
    load(offsetof(struct seccomp_data, args[0]));
    emit(BPF_JMP | BPF_JSET | BPF_K, 1, 0, USER_FAULTS);
    answer(SECCOMP_RET_ERRNO | EPERM);
    answer(SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_ERRNO | ENOSYS);
}

void close_filter(enum filter which)
{
    if (which == FILTER_NONE)
        return;
    length = 0;
    load(offsetof(struct seccomp_data, arch));
    emit(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, OWN_ARCH);
    answer(which == FILTER_RUNTIME ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | ENOSYS);
    load(offsetof(struct seccomp_data, nr));
#ifdef X32
    emit(BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 0xffffffffu); /* -1 is how some programs probe */
    emit(BPF_JMP | BPF_JGE | BPF_K, 0, 1, X32);
    answer(SECCOMP_RET_ERRNO | ENOSYS);
#endif
    if (which == FILTER_RUNTIME)
        runtime_calls();
    else
        job_calls(which == FILTER_JOB_TRACEABLE);
    struct sock_fprog program = {(unsigned short)length, code};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) < 0)
        fail("filter", errno, "seccomp");
}
