/* What this program may do, what its children may, and how they become another user. */
#define _GNU_SOURCE
#include "root.h"

#include "../guards.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RIGHT(name) (1ull << CAP_##name)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The launcher is the account already when it begins: with these it gives the job namespaces and a root directory, and
 * drops them before it becomes the job.  None of them opens a file or signals a process of another user. */
const uint64_t launch_rights = RIGHT(SYS_ADMIN) | RIGHT(SYS_CHROOT) | RIGHT(NET_ADMIN) | RIGHT(SETPCAP);
const uint64_t chown_right = RIGHT(CHOWN);
/* What measures a tree reads the folders that the account has closed to itself, and changes nothing. */
const uint64_t measure_right = RIGHT(DAC_READ_SEARCH);
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

bool drop_rights(void)
{
    return set_rights(0, 0, 0);
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
        [MEASURE] = RIGHT(SETUID) | RIGHT(SETGID) | RIGHT(KILL) | RIGHT(DAC_READ_SEARCH),
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

static bool change_user(uid_t uid)
{
    uid_t real, effective, saved;
    if (setresuid(uid, uid, uid) < 0 || getresuid(&real, &effective, &saved) < 0)
        return false;
    errno = EPERM;
    return real == uid && effective == uid && saved == uid && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0;
}

/* What the user database says of an account. */
struct names {
    int32_t known, count;
    gid_t gid, groups[256];
};

/* The database is asked by libraries that its configuration names, and they speak with other programs: in a process
 * that has no right, no way back to one, and no descriptor but OUT, on which it answers.  It has the pool's account,
 * whose other processes can neither look into it nor trace it. */
static void tell_names(const struct policy *policy, uid_t uid, int out) __attribute__((noreturn));

static void tell_names(const struct policy *policy, uid_t uid, int out)
{
    struct names names = {.count = (int32_t)COUNT(names.groups)};
    const gid_t gid = policy->pool_gid;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    sigset_t late;
    sigemptyset(&late);
    sigaddset(&late, SIGALRM);
    if (!use_rights(true) || setgroups(1, &gid) < 0 || setresgid(gid, gid, gid) < 0 || !change_user(policy->pool_uid) ||
        permitted_rights() != 0 || setresuid(0, 0, 0) == 0 || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
        _exit(LAUNCH_FAILED);
    if (null < 0 || (out != 3 && dup2(out, 3) < 0) || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
        syscall(SYS_close_range, 4, ~0u, 0) < 0)
        _exit(LAUNCH_FAILED);
    sigprocmask(SIG_UNBLOCK, &late, NULL);
    alarm(2 * NAMES_S); /* for a parent that does not end with its order */
    const struct passwd *found = getpwuid(uid);
    if (found) {
        int count = names.count;
        names.known = 1;
        names.gid = found->pw_gid;
        if (getgrouplist(found->pw_name, found->pw_gid, names.groups, &count) < 0)
            count = -1;
        names.count = (int32_t)count;
    }
    _exit(write(3, &names, sizeof names) == (ssize_t)sizeof names ? 0 : LAUNCH_FAILED);
}

/* Reads all of an answer, in time. */
static bool read_names(int in, struct names *names)
{
    struct timespec began, now;
    size_t have = 0;
    clock_gettime(CLOCK_MONOTONIC, &began);
    while (have < sizeof *names) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        struct pollfd wait = {.fd = in, .events = POLLIN};
        long left = NAMES_S - (now.tv_sec - began.tv_sec);
        int ready = left > 0 ? poll(&wait, 1, (int)left * 1000) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        errno = ETIMEDOUT;
        if (ready <= 0)
            return false;
        ssize_t got = read(in, (char *)names + have, sizeof *names - have);
        errno = ESRCH;
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return true;
}

/* Asks in a process of its own; false: there is no answer, and errno says why. */
static bool ask_names(const struct policy *policy, uid_t uid, struct names *names)
{
    int ends[2], status;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    pid_t pid = fork();
    if (pid == 0)
        tell_names(policy, uid, ends[1]);
    close(ends[1]);
    bool told = pid > 0 && read_names(ends[0], names);
    int error = errno;
    close(ends[0]);
    errno = error;
    if (!told)
        return false;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    errno = ESRCH;
    return names->count >= 0 && names->count <= (int32_t)COUNT(names->groups);
}

static gid_t listed_group(const struct policy *policy, uid_t uid)
{
    for (size_t i = 0; i < policy->account_count; i++)
        if (policy->accounts[i].uid == uid)
            return policy->accounts[i].gid;
    return 0;
}

/* As the user database has it; a listed account without a name has the group of the list.  0: it has none. */
gid_t group_of(const struct policy *policy, uid_t uid)
{
    struct names names = {0};
    if (!ask_names(policy, uid, &names))
        return 0;
    return names.known ? names.gid : listed_group(policy, uid);
}

/* Groups first, as the user database has them.  Root's group is left out, and an account of it is none.  GROUP is to
 * be the process's group, and has to be one of the account's; 0: the account's own. */
static bool take_groups(const struct policy *policy, uid_t uid, gid_t group)
{
    struct names names = {0};
    if (!ask_names(policy, uid, &names))
        return false;
    if (!names.known) {
        names.gid = names.groups[0] = listed_group(policy, uid);
        names.count = 1;
    }
    const gid_t gid = group ? group : names.gid;
    if (names.gid == 0) {
        errno = ESRCH;
        return false;
    }
    int kept = 0;
    bool member = gid == names.gid;
    for (int i = 0; i < names.count; i++)
        if (names.groups[i] != 0) {
            member = member || names.groups[i] == gid;
            names.groups[kept++] = names.groups[i];
        }
    errno = EPERM;
    return member && setgroups((size_t)kept, names.groups) == 0 && setresgid(gid, gid, gid) == 0;
}

/* For good, and with nothing left: the kernel takes every right of a process that stops being root. */
bool become_account(const struct policy *policy, uid_t uid, const char **stage)
{
    *stage = "gid";
    if (!use_rights(true) || !take_groups(policy, uid, 0))
        return false;
    *stage = "uid";
    if (!change_user(uid) || permitted_rights() != 0)
        return false;
    errno = EPERM;
    return setresuid(0, 0, 0) < 0;
}

/* For good, with some rights kept; GROUP: as for take_groups; FOR_EXEC: the next program has them as well. */
bool become_account_with(const struct policy *policy, uid_t uid, gid_t group, uint64_t rights, bool for_exec,
                         const char **stage)
{
    *stage = "gid";
    if (!use_rights(true) || !take_groups(policy, uid, group))
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
