/* What this program may do, what its children may, and how they become another user. */
#define _GNU_SOURCE
#include "root.h"

#include "../guards.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RIGHT(name) (1ull << CAP_##name)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The launcher is the account already when it begins: with these it gives the job namespaces and a root directory, and
 * drops them before it becomes the job.  None of them opens a file or signals a process of another user. */
const uint64_t launch_rights = RIGHT(SYS_ADMIN) | RIGHT(SYS_CHROOT) | RIGHT(NET_ADMIN) | RIGHT(SETPCAP);
const uint64_t chown_right = RIGHT(CHOWN);
/* A program that begins as a user has these for its first moments, and nothing to do with them: the kernel lets no process
 * trace one, or look into its memory, that has rights which it has not itself.  So the user's other processes cannot,
 * until the program has made itself untraceable and given them up.  (Containers have the second where they lack the
 * first.) */
const uint64_t guard_rights = RIGHT(WAKE_ALARM) | RIGHT(NET_BIND_SERVICE);

static bool set_rights(uint64_t permitted, uint64_t effective, uint64_t inheritable)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    for (int i = 0; i < 2; i++) {
        data[i].permitted = (uint32_t)(permitted >> 32 * i);
        data[i].effective = (uint32_t)(effective >> 32 * i);
        data[i].inheritable = (uint32_t)(inheritable >> 32 * i);
    }
    return syscall(SYS_capset, &head, data) == 0;
}

static uint64_t permitted_rights(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};
    if (syscall(SYS_capget, &head, data) < 0)
        return 0;
    return data[0].permitted | (uint64_t)data[1].permitted << 32;
}

/* Between two orders nothing of what is permitted is in effect. */
bool use_rights(bool on)
{
    uint64_t permitted = permitted_rights();
    return set_rights(permitted, on ? permitted : 0, 0);
}

/* What no daemon, job or shadow host of the pool has any use for, whatever its rights.  The filter is inherited by all
 * that is started here, so it says what is not allowed and nothing else. */
static const int never[] = {
    SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct,
    SYS_settimeofday, SYS_clock_settime, SYS_quotactl, SYS_open_by_handle_at, SYS_bpf, SYS_vhangup,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_iopl
    SYS_iopl, SYS_ioperm,
#endif
};

#define OTHER_TABLE 0x40000000u /* from here on: the numbers of x32, and none of any other table */

/* Calls by the numbers of another architecture (32-bit programs) are refused, whatever they are. */
static bool close_filter(void)
{
    struct sock_filter lines[COUNT(never) + 8];
    size_t count = 0;
#ifdef __x86_64__
    const uint32_t own = AUDIT_ARCH_X86_64;
#else
    const uint32_t own = AUDIT_ARCH_AARCH64;
#endif
    lines[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    lines[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, own, 1, 0);
    lines[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    lines[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    lines[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, OTHER_TABLE, 0, 1);
    lines[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    const size_t refuse = count + COUNT(never) + 1;
    for (size_t i = 0; i < COUNT(never); i++, count++)
        lines[count] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)never[i],
                                                    (uint8_t)(refuse - count - 1), 0);
    lines[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    lines[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    struct sock_fprog program = {.len = (unsigned short)count, .filter = lines};
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}

/* The rights of each kind of order; a program that begins as root needs all there are, and nothing else does. */
static uint64_t rights_of(const struct policy *policy)
{
    static const uint64_t needed[KINDS] = {
        [START] = RIGHT(SETUID) | RIGHT(SETGID) | RIGHT(SETPCAP) | RIGHT(DAC_OVERRIDE) | RIGHT(SYS_ADMIN) |
                  RIGHT(SYS_CHROOT) | RIGHT(NET_ADMIN),
        [OPEN] = RIGHT(SETUID) | RIGHT(SETGID) | RIGHT(KILL),
        [SIGNAL] = RIGHT(KILL),
        [GIVE] = RIGHT(SETUID) | RIGHT(SETGID) | RIGHT(CHOWN) | RIGHT(KILL),
        [TAKE] = RIGHT(SETUID) | RIGHT(SETGID) | RIGHT(CHOWN) | RIGHT(KILL),
        [REMOVE] = RIGHT(SETUID) | RIGHT(SETGID) | RIGHT(KILL),
        [MEASURE] = RIGHT(SETUID) | RIGHT(SETGID) | RIGHT(KILL),
        [PROGRAM] = RIGHT(SETUID) | RIGHT(SETGID) | RIGHT(WAKE_ALARM) | RIGHT(NET_BIND_SERVICE),
        [WATCH] = RIGHT(DAC_READ_SEARCH),
    };
    uint64_t rights = 0;
    for (enum kind kind = START; kind < KINDS; kind++)
        if (policy->kinds & 1u << kind)
            rights |= needed[kind];
    return starts_as_root(policy) ? ~0ull : rights;
}

void keep_rights(const struct policy *policy)
{
    uint64_t had = permitted_rights(), kept = rights_of(policy) & had;
    const char *problem = NULL;
    for (int right = 0; right < 64 && !problem; right++)
        if (had & 1ull << right && !(kept & 1ull << right) && prctl(PR_CAPBSET_DROP, right, 0, 0, 0) < 0)
            problem = "the bounding set";
    if (!problem && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        problem = "no_new_privs";
    if (!problem && !close_filter())
        problem = "the system-call filter";
    if (!problem && (!set_rights(kept, 0, 0) || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0))
        problem = "the rights";
    if (problem) {
        fprintf(stderr, "condor_root: %s: %s\n", problem, strerror(errno));
        _exit(2);
    }
}

/* The C library loads what answers for the user database when it is first asked: here, once, before there are orders;
 * else each process that is forked for one would do it.  What it answers is never kept: each asks for itself. */
static void ask_for_root(void)
{
    gid_t groups[256];
    int count = (int)COUNT(groups);
    const struct passwd *root = getpwuid(0);
    if (root)
        (void)getgrouplist(root->pw_name, root->pw_gid, groups, &count);
}

static int complain_to UNGUARDED("written before the only signal that reads it") = -1;

static void no_answer(int number)
{
    static const char line[] = "gid 110 the user database does not answer\n"; /* 110: ETIMEDOUT */
    (void)number;
    if (complain_to >= 0)
        (void)!write(complain_to, line, sizeof line - 1);
    _exit(LAUNCH_FAILED);
}

/* From here on this process ends, with a line on STATUS, unless the user database answers in time.  It is the handler
 * that ends it: the first process of a pid namespace does not die of what is left to the kernel. */
void expect_names(int status, unsigned seconds)
{
    const struct sigaction action = {.sa_handler = no_answer};
    sigset_t late;
    sigemptyset(&late);
    sigaddset(&late, SIGALRM);
    complain_to = status;
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
    sigprocmask(SIG_UNBLOCK, &late, NULL);
}

void names_are_known(void)
{
    sigset_t late;
    sigemptyset(&late);
    sigaddset(&late, SIGALRM);
    sigprocmask(SIG_BLOCK, &late, NULL);
    alarm(0);
    signal(SIGALRM, SIG_DFL);
}

/* Asked by a process that may be given up first: where the database does not answer, this program begins all the same. */
void open_user_database(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        expect_names(-1, NAMES_S);
        ask_for_root();
        _exit(0);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        ask_for_root();
}

/* As the user database has it; a listed account without a name has the group of the list. */
gid_t group_of(const struct policy *policy, uid_t uid)
{
    const struct passwd *found = getpwuid(uid);
    if (found)
        return found->pw_gid;
    for (size_t i = 0; i < policy->account_count; i++)
        if (policy->accounts[i].uid == uid)
            return policy->accounts[i].gid;
    return 0;
}

/* Groups first, as the user database has them.  Root's group is left out, and an account of it is none. */
static bool take_groups(const struct policy *policy, uid_t uid)
{
    gid_t groups[256], gid = group_of(policy, uid);
    int count = (int)COUNT(groups);
    const struct passwd *found = getpwuid(uid);
    if (!found) {
        groups[0] = gid;
        count = 1;
    } else if (getgrouplist(found->pw_name, gid, groups, &count) < 0) {
        return false;
    }
    if (gid == 0) {
        errno = ESRCH;
        return false;
    }
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (groups[i] != 0)
            groups[kept++] = groups[i];
    return setgroups((size_t)kept, groups) == 0 && setresgid(gid, gid, gid) == 0;
}

static bool change_user(uid_t uid)
{
    uid_t real, effective, saved;
    if (setresuid(uid, uid, uid) < 0 || getresuid(&real, &effective, &saved) < 0)
        return false;
    errno = EPERM;
    return real == uid && effective == uid && saved == uid && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

/* For good, and with nothing left: the kernel takes every right of a process that stops being root. */
bool become_account(const struct policy *policy, uid_t uid, const char **stage)
{
    *stage = "gid";
    if (!use_rights(true) || !take_groups(policy, uid))
        return false;
    *stage = "uid";
    if (!change_user(uid) || permitted_rights() != 0)
        return false;
    errno = EPERM;
    return setresuid(0, 0, 0) < 0;
}

/* For good, with some rights kept; FOR_EXEC: the next program has them as well. */
bool become_account_with(const struct policy *policy, uid_t uid, uint64_t rights, bool for_exec, const char **stage)
{
    *stage = "gid";
    if (!use_rights(true) || !take_groups(policy, uid))
        return false;
    *stage = "uid";
    rights &= permitted_rights();
    if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || !change_user(uid) ||
        !set_rights(rights, rights, for_exec ? rights : 0) || prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) < 0)
        return false;
    for (int right = 0; for_exec && right < 64; right++)
        if (rights & 1ull << right && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0) < 0)
            return false;
    errno = EPERM;
    return setresuid(0, 0, 0) < 0;
}

/* The pool's account, with the right to give what is its own away. */
bool become_pool_to_give(const struct policy *policy)
{
    gid_t gid = policy->pool_gid;
    return use_rights(true) && setgroups(1, &gid) == 0 && setresgid(gid, gid, gid) == 0 &&
           prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 && change_user(policy->pool_uid) &&
           set_rights(chown_right, chown_right, 0);
}
