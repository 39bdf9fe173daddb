/* Cgroups, namespaces and mounts: the job's view of the machine. */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

/* Writes TEXT to DIRECTORY/NAME in one call, as control files want it. */
static void write_control(const char *stage, const char *directory, const char *name, const char *text)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s", directory, name);
    if (length < 0 || (size_t)length >= sizeof path)
        fail(stage, ENAMETOOLONG, directory);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        fail(stage, errno, path);
    if (write(fd, text, strlen(text)) < 0)
        fail(stage, errno, path);
    close(fd);
}

void join_cgroups(const struct plan *plan)
{
    for (size_t i = 0; i < plan->cgroup_count; i++)
        write_control("cgroup", plan->cgroups[i], "cgroup.procs", "0");
}

/* An unprivileged launcher maps its own user and group to themselves, and no others. */
static void map_own_identity(uid_t uid, gid_t gid)
{
    char line[64];
    write_control("user-namespace", "/proc/self", "setgroups", "deny");
    snprintf(line, sizeof line, "%u %u 1", uid, uid);
    write_control("user-namespace", "/proc/self", "uid_map", line);
    snprintf(line, sizeof line, "%u %u 1", gid, gid);
    write_control("user-namespace", "/proc/self", "gid_map", line);
}

/* A new network namespace has only a loopback device, and that one is down. */
static void raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        fail("loopback", errno, "socket");
    if (ioctl(fd, SIOCGIFFLAGS, &request) < 0)
        fail("loopback", errno, "SIOCGIFFLAGS");
    request.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        fail("loopback", errno, "SIOCSIFFLAGS");
    close(fd);
}

void enter_namespaces(const struct plan *plan)
{
    for (size_t i = 0; i < plan->joined_count; i++) {
        int fd = open(plan->joined[i], O_RDONLY | O_CLOEXEC);
        if (fd < 0 || setns(fd, 0) < 0)
            fail("join", errno, plan->joined[i]);
        close(fd);
    }
    if (!plan->isolate)
        return;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(plan->isolate) < 0)
        fail("namespaces", errno, "unshare");
    if (plan->isolate & CLONE_NEWUSER)
        map_own_identity(uid, gid);
    if (plan->isolate & CLONE_NEWNET)
        raise_loopback();
}

void arrange_mounts(const struct plan *plan)
{
    if (plan->isolate & CLONE_NEWNS) {
        /* Slave: what the host mounts or unmounts later reaches the job, never the other way. */
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
            fail("mount", errno, "/");
        for (size_t i = 0; i < plan->bind_count; i++) {
            const struct bind *each = &plan->binds[i];
            int done = each->from ? mount(each->from, each->to, NULL, MS_BIND | MS_REC, NULL)
                                  : mount("tmpfs", each->to, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
            if (done < 0)
                fail("bind", errno, each->to);
        }
        if ((plan->isolate & CLONE_NEWPID) && !plan->root &&
            mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
            fail("mount", errno, "/proc");
    }
    if (plan->root && (chroot(plan->root) < 0 || chdir("/") < 0))
        fail("root", errno, plan->root);
}
