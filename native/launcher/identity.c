/* What the job inherits through exec: descriptors, limits, identity, signals. */
#define _GNU_SOURCE
#include "launcher.h"

#include "../guards.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool is_kept(const struct plan *plan, int fd)
{
    if (fd <= 2 || fd == plan->status_fd || fd == plan->end_fd || fd == plan->linger_fd)
        return true;
    for (size_t i = 0; i < plan->kept_count; i++)
        if (plan->kept[i] == fd)
            return true;
    for (size_t i = 0; i < plan->checked_count; i++)
        if (plan->checked[i].fd == fd)
            return true;
    return false;
}

static int compare(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

/* Kernels before 5.9 have no close_range: look the open descriptors up. */
static void close_listed(const struct plan *plan)
{
    struct entry {
        uint64_t inode, offset;
        uint16_t size;
        uint8_t kind;
        char name[];
    } const *entry;
    static char list[32768] __attribute__((aligned(8))) UNGUARDED("the launcher has one thread");
    int folder = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    long length = 0;
    if (folder < 0)
        fail("descriptors", errno, "/proc/self/fd");
    while ((length = syscall(SYS_getdents64, folder, list, sizeof list)) > 0)
        for (long at = 0; at < length; at += entry->size) {
            entry = (const struct entry *)(list + at);
            int fd = (int)strtoll(entry->name, NULL, 10);
            if (entry->name[0] != '.' && fd != folder && !is_kept(plan, fd))
                close(fd);
        }
    if (length < 0)
        fail("descriptors", errno, "/proc/self/fd");
    close(folder);
}

void close_descriptors(const struct plan *plan)
{
    int kept[MAX_KEPT + MAX_CHECKED + 3];
    size_t count = 0;
    for (size_t i = 0; i < plan->kept_count; i++) {
        if (fcntl(plan->kept[i], F_SETFD, 0) < 0)
            fail("descriptors", errno, "--keep-fd");
        kept[count++] = plan->kept[i];
    }
    if (plan->status_fd >= 0) {
        if (fcntl(plan->status_fd, F_SETFD, FD_CLOEXEC) < 0) {
            report_to(STDERR_FILENO);
            fail("descriptors", errno, "--status-fd");
        }
        kept[count++] = plan->status_fd;
    }
    if (plan->end_fd >= 0) {
        if (fcntl(plan->end_fd, F_SETFD, FD_CLOEXEC) < 0)
            fail("descriptors", errno, "--end-fd");
        kept[count++] = plan->end_fd;
    }
    if (plan->linger_fd >= 0) {
        if (fcntl(plan->linger_fd, F_SETFD, FD_CLOEXEC) < 0)
            fail("descriptors", errno, "--linger-fd");
        kept[count++] = plan->linger_fd;
    }
    for (size_t i = 0; i < plan->checked_count; i++) {
        if (plan->checked[i].fd < 0)
            continue;
        if (fcntl(plan->checked[i].fd, F_SETFD, FD_CLOEXEC) < 0)
            fail("descriptors", errno, "--checked");
        kept[count++] = plan->checked[i].fd;
    }
    qsort(kept, count, sizeof kept[0], compare);
    unsigned from = 3;
    for (size_t i = 0; i <= count; i++) {
        unsigned next = i < count ? (unsigned)kept[i] : ~0u;
        if (next > from && syscall(SYS_close_range, from, i < count ? next - 1 : ~0u, 0) < 0) {
            close_listed(plan);
            return;
        }
        from = next + 1;
    }
}

void set_limits(const struct plan *plan)
{
    for (size_t i = 0; i < plan->limit_count; i++)
        if (setrlimit(plan->limits[i].resource, &plan->limits[i].value) < 0)
            fail("rlimit", errno, plan->limits[i].name);
    if (plan->has_nice) {
        errno = 0;
        if (nice(plan->nice_increment) == -1 && errno)
            fail("nice", errno, "nice");
    }
    if (plan->has_umask)
        umask(plan->mask);
}

/* Who starts the launcher as the job's account already lends it rights for its own steps: they end here.  Those of root
 * have ended with its identity. */
void drop_rights(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct none[2] = {{0}};
    if (geteuid() == 0)
        return;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 || syscall(SYS_capset, &head, none) < 0)
        fail("rights", errno, "capabilities");
}

/* Nothing that is executed from now on gets a capability, and no key of the starter's session is in reach. Without the
 * right to say so there are none to lose. */
void drop_capabilities(void)
{
    enum { LAST = 63, JOIN_SESSION_KEYRING = 1 };
    for (int each = 0; each <= LAST; each++)
        if (prctl(PR_CAPBSET_DROP, each, 0, 0, 0) < 0 && errno != EINVAL && errno != EPERM)
            fail("capabilities", errno, "PR_CAPBSET_DROP");
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    syscall(SYS_keyctl, JOIN_SESSION_KEYRING, NULL);
}

/* Groups first, user last, and then a look that nothing of the old identity is left. */
void become_user(const struct plan *plan)
{
    if (plan->has_uid || plan->filter != FILTER_NONE)
        drop_capabilities();
    if (plan->has_gid) {
        if (geteuid() == 0 && setgroups(plan->group_count, plan->groups) < 0)
            fail("groups", errno, "setgroups");
        if (setresgid(plan->gid, plan->gid, plan->gid) < 0)
            fail("gid", errno, "setresgid");
    }
    if (plan->has_uid) {
        uid_t real, effective, saved;
        if (setresuid(plan->uid, plan->uid, plan->uid) < 0)
            fail("uid", errno, "setresuid");
        if (getresuid(&real, &effective, &saved) < 0 || real != plan->uid || effective != plan->uid ||
            saved != plan->uid)
            fail("uid", EPERM, "the old identity is still there");
        if (plan->uid != 0 && setresuid(0, 0, 0) == 0)
            fail("uid", EPERM, "the way back to root is open");
    }
    drop_rights();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        fail("no-new-privs", errno, "prctl");
}

void reset_signals(void)
{
    /* The kernel's own layout: the C library would refuse signals 32 and 33. */
    const struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } fresh = {.handler = SIG_DFL};
    const unsigned long none = 0;
    for (int number = 1; number <= 64; number++)
        syscall(SYS_rt_sigaction, number, &fresh, NULL, sizeof fresh.mask);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

/* A change of identity clears the death signal, so it comes late; a parent that died before that left us
 * to another process. */
void set_death_signal(int number, pid_t expected_parent)
{
    if (prctl(PR_SET_PDEATHSIG, number) < 0)
        fail("death-signal", errno, "prctl");
    if (getppid() != expected_parent)
        fail("death-signal", ESRCH, "the parent is gone");
}
