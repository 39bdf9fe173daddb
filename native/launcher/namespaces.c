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
#include <stdint.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* All are opened before one is entered: in another mount namespace the paths mean something else. */
static void join_namespaces(const struct plan *plan)
{
    int opened[MAX_JOINED];
    for (size_t i = 0; i < plan->joined_count; i++)
        if ((opened[i] = open(plan->joined[i], O_RDONLY | O_CLOEXEC)) < 0)
            fail("join", errno, plan->joined[i]);
    for (size_t i = 0; i < plan->joined_count; i++) {
        if (setns(opened[i], 0) < 0)
            fail("join", errno, plan->joined[i]);
        close(opened[i]);
    }
}

void enter_namespaces(const struct plan *plan)
{
    join_namespaces(plan);
    int fresh = plan->isolate & ~(plan->first ? CLONE_NEWPID : 0);
    if (!fresh)
        return;
    uid_t uid = geteuid();
    gid_t gid = getegid();
    if (unshare(fresh) < 0)
        fail("namespaces", errno, "unshare");
    if (plan->isolate & CLONE_NEWUSER)
        map_own_identity(uid, gid);
    if (plan->isolate & CLONE_NEWNET)
        raise_loopback();
}

/* In the place of a device stands one that a mount without devices has: it is seen, and nobody can open it. */
static void shut_device(const char *path)
{
    const struct {
        uint64_t set, clear, propagation, user_namespace;
    } change = {.set = 4 /* MOUNT_ATTR_NODEV */};
    enum { MOUNT_SETATTR = 442 };
    if (mount("/dev/null", path, NULL, MS_BIND, NULL) < 0) {
        if (errno == ENOENT)
            return;
        fail("shut-device", errno, path);
    }
    if (syscall(MOUNT_SETATTR, AT_FDCWD, path, 0, &change, sizeof change) < 0 &&
        (errno != ENOSYS || mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_NODEV | MS_NOSUID | MS_NOEXEC, NULL) < 0))
        fail("shut-device", errno, path);
}

/* Sets (or with CLEAR takes away) an attribute of the mount at PATH and all below it. Kernels before 5.12 cannot do all
 * at once: there the mount itself is changed. */
static void change_mounts(const char *path, bool clear)
{
    const struct {
        uint64_t set, clear, propagation, user_namespace;
    } change = {.set = clear ? 0 : 1 /* MOUNT_ATTR_RDONLY */, .clear = clear ? 1 : 0};
    enum { MOUNT_SETATTR = 442, RECURSIVE = 0x8000 };
    if (syscall(MOUNT_SETATTR, AT_FDCWD, path, RECURSIVE, &change, sizeof change) == 0)
        return;
    if (errno != ENOSYS ||
        mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | (clear ? 0 : MS_RDONLY), NULL) < 0)
        fail("read-only", errno, path);
}

static void shut_folders(const struct plan *plan)
{
    for (size_t i = 0; i < plan->read_only_count; i++) {
        const char *path = plan->read_only[i];
        if (mount(path, path, NULL, MS_BIND | MS_REC, NULL) < 0)
            fail("read-only", errno, path);
        change_mounts(path, false);
    }
    for (size_t i = 0; i < plan->hidden_count; i++)
        if (mount("tmpfs", plan->hidden[i], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=64k") < 0)
            fail("hide", errno, plan->hidden[i]);
}

/* Folders that lead to what is bound inside a hidden one. */
static void make_way(const struct plan *plan, const char *to)
{
    char path[4096];
    size_t size = strlen(to);
    bool inside = false;
    for (size_t i = 0; i < plan->hidden_count; i++) {
        size_t above = strlen(plan->hidden[i]);
        inside |= size > above && strncmp(to, plan->hidden[i], above) == 0 && to[above] == '/';
    }
    if (!inside || size >= sizeof path)
        return;
    for (size_t at = 1; at <= size; at++)
        if (to[at] == '/' || to[at] == 0) {
            memcpy(path, to, at);
            path[at] = 0;
            if (mkdir(path, 0755) < 0 && errno != EEXIST)
                fail("bind", errno, path);
        }
}

/* What is bound is opened before anything is shut: it may lie in what is hidden, and keeps its own attributes. */
static void bind_all(const struct plan *plan)
{
    int from[MAX_BINDS];
    char name[64];
    for (size_t i = 0; i < plan->bind_count; i++)
        if (plan->binds[i].from)
            from[i] = open_source(plan, "source", plan->binds[i].from, 0);
    shut_folders(plan);
    for (size_t i = 0; i < plan->bind_count; i++) {
        const struct bind *each = &plan->binds[i];
        int done;
        make_way(plan, each->to);
        if (each->from) {
            snprintf(name, sizeof name, "/proc/self/fd/%d", from[i]);
            done = mount(name, each->to, NULL, MS_BIND | MS_REC, NULL);
            close(from[i]);
        } else {
            done = mount("tmpfs", each->to, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
        }
        if (done < 0)
            fail("bind", errno, each->to);
    }
    for (size_t i = 0; i < plan->hidden_count; i++)
        if (mount(NULL, plan->hidden[i], NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC,
                  NULL) < 0)
            fail("hide", errno, plan->hidden[i]);
}

/* The new root takes the place of the old, which is let go: no descriptor and no ".." leads back. It is for reading. */
static void change_root(const struct plan *plan)
{
    int here;
    if (mount(plan->root, plan->root, NULL, MS_BIND | MS_REC, NULL) < 0)
        fail("root", errno, plan->root);
    if ((here = open(plan->root, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0 || fchdir(here) < 0)
        fail("root", errno, plan->root);
    if (mount(NULL, ".", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, NULL) < 0)
        fail("root", errno, plan->root);
    close(here);
    if (syscall(SYS_pivot_root, ".", ".") == 0) {
        if (umount2(".", MNT_DETACH) < 0)
            fail("root", errno, "the old root");
    } else if (errno != EINVAL || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0) {
        fail("root", errno, plan->root); /* EINVAL: the root is the kernel's first file system, which stays */
    }
    if (chdir("/") < 0)
        fail("root", errno, "/");
}

static void mount_processes(const struct plan *plan)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/proc", plan->root && strcmp(plan->root, "/") ? plan->root : "");
    if (length < 0 || (size_t)length >= sizeof path)
        fail("mount", ENAMETOOLONG, plan->root);
    if (plan->root && access(path, F_OK) < 0)
        return;
    if (mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0)
        fail("mount", errno, path);
}

void arrange_mounts(const struct plan *plan)
{
    if (plan->isolate & CLONE_NEWNS) {
        /* Slave: what the host mounts or unmounts later reaches the job, never the other way. */
        if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
            fail("mount", errno, "/");
        if (plan->layers) {
            enter_container(plan);
            return;
        }
        bind_all(plan);
        for (size_t i = 0; i < plan->shut_device_count; i++)
            shut_device(plan->shut_devices[i]);
        if (plan->isolate & CLONE_NEWPID)
            mount_processes(plan);
        if (plan->root && strcmp(plan->root, "/") != 0)
            change_root(plan);
    } else if (plan->root && (chroot(plan->root) < 0 || chdir("/") < 0)) {
        fail("root", errno, plan->root);
    }
}
