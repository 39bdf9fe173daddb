/* A root directory of the job's own, from an unpacked image: a container without an engine.
 *
 * The image is a folder that nobody writes to; what the job changes lies in a layer in its scratch directory (overlay).
 * Whatever is mounted in there is opened or made while the machine's root is still ours, as a mount that is nowhere yet,
 * and put into its place when the image is the root already: by then no link of the image leads anywhere else.
 */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel's numbers (5.2, 5.12), which C libraries of some systems do not have. */
enum {
    CALL_OPEN_TREE = 428, CALL_MOVE_MOUNT = 429, CALL_FSOPEN = 430, CALL_FSCONFIG = 431, CALL_FSMOUNT = 432,
    CALL_MOUNT_SETATTR = 442, CLONE_TREE = 1, RECURSIVELY = 0x8000, CONFIG_FLAG = 0, CONFIG_STRING = 1, CONFIG_CREATE = 6,
    FROM_EMPTY = 4, TO_EMPTY = 0x40,
    ATTR_RDONLY = 1, ATTR_NOSUID = 2, ATTR_NODEV = 4, ATTR_NOEXEC = 8,
};

static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"};
#define DEVICES (sizeof devices / sizeof devices[0])

static int cloned(const char *path, bool needed)
{
    long tree = syscall(CALL_OPEN_TREE, AT_FDCWD, path, CLONE_TREE | O_CLOEXEC | RECURSIVELY);
    if (tree < 0 && needed)
        fail("source", errno, path);
    return (int)tree;
}

static int cloned_source(const struct plan *plan, const char *path)
{
    int opened = open_source(plan, "source", path, 0);
    long tree = syscall(CALL_OPEN_TREE, opened, "", CLONE_TREE | O_CLOEXEC | RECURSIVELY | AT_EMPTY_PATH);
    if (tree < 0)
        fail("source", errno, path);
    close(opened);
    return (int)tree;
}

static void set_attributes(int tree, uint64_t attributes, const char *path)
{
    const struct {
        uint64_t set, clear, propagation, user_namespace;
    } change = {.set = attributes};
    if (syscall(CALL_MOUNT_SETATTR, tree, "", RECURSIVELY | AT_EMPTY_PATH, &change, sizeof change) < 0)
        fail("read-only", errno, path);
}

/* Processes of the namespace that we are the first of. */
static int fresh_processes(void)
{
    long context = syscall(CALL_FSOPEN, "proc", 1), tree;
    if (context < 0 || syscall(CALL_FSCONFIG, context, CONFIG_CREATE, NULL, NULL, 0) < 0)
        fail("mount", errno, "proc");
    if ((tree = syscall(CALL_FSMOUNT, context, 1, ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC)) < 0)
        fail("mount", errno, "proc");
    close((int)context);
    return (int)tree;
}

static void put(int tree, const char *path)
{
    if (syscall(CALL_MOVE_MOUNT, tree, "", AT_FDCWD, path, FROM_EMPTY) < 0)
        fail("bind", errno, path);
    close(tree);
}

static void layer(long context, const char *name, int folder)
{
    char place[64];
    snprintf(place, sizeof place, "/proc/self/fd/%d", folder);
    if (syscall(CALL_FSCONFIG, context, CONFIG_STRING, name, place, 0) < 0)
        fail("container", errno, name);
}

/* The layers are descriptors: no name of a folder is taken for an option, and none is looked up again after it was
 * opened.  What is mounted is entered by its own descriptor, too. */
static void mount_layers(const struct plan *plan)
{
    int image = open_source(plan, "container", plan->image, O_DIRECTORY);
    int layers = open_source(plan, "container", plan->layers, O_DIRECTORY | O_NOFOLLOW);
    const int folders[] = {image, open_below(layers, "upper"), open_below(layers, "work"), open_below(layers, "root")};
    static const char *const names[] = {"lowerdir", "upperdir", "workdir"};
    long context = syscall(CALL_FSOPEN, "overlay", 1), merged;
    if (context < 0 || syscall(CALL_FSCONFIG, context, CONFIG_STRING, "source", "overlay", 0) < 0)
        fail("container", errno, "overlay");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        layer(context, names[i], folders[i]);
    if (plan->isolate & CLONE_NEWUSER && syscall(CALL_FSCONFIG, context, CONFIG_FLAG, "userxattr", NULL, 0) < 0)
        fail("container", errno, "userxattr");
    if (syscall(CALL_FSCONFIG, context, CONFIG_CREATE, NULL, NULL, 0) < 0 ||
        (merged = syscall(CALL_FSMOUNT, context, 1, ATTR_NOSUID | ATTR_NODEV)) < 0 ||
        syscall(CALL_MOVE_MOUNT, merged, "", folders[3], "", FROM_EMPTY | TO_EMPTY) < 0 || fchdir((int)merged) < 0)
        fail("container", errno, "the layers over the image");
    close((int)merged);
    close((int)context);
    close(layers);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        close(folders[i]);
}

static void take_root(void)
{
    if (syscall(SYS_pivot_root, ".", ".") == 0) {
        if (umount2(".", MNT_DETACH) < 0)
            fail("container", errno, "the old root");
    } else if (errno != EINVAL || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0) {
        fail("container", errno, "the new root"); /* EINVAL: the root is the kernel's first file system, which stays */
    }
    if (chdir("/") < 0)
        fail("container", errno, "/");
}

static void make_devices(const int nodes[DEVICES])
{
    static const char *const links[][2] = {
        {"/proc/self/fd", "/dev/fd"}, {"/proc/self/fd/0", "/dev/stdin"}, {"/proc/self/fd/1", "/dev/stdout"},
        {"/proc/self/fd/2", "/dev/stderr"}, {"pts/ptmx", "/dev/ptmx"}};
    if (mount("tmpfs", "/dev", "tmpfs", MS_NOSUID | MS_NOEXEC, "mode=0755,size=64k") < 0)
        fail("mount", errno, "/dev");
    for (size_t i = 0; i < DEVICES; i++) {
        if (nodes[i] < 0)
            continue;
        int place = open(devices[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (place < 0)
            fail("mount", errno, devices[i]);
        close(place);
        put(nodes[i], devices[i]);
    }
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        if (syscall(SYS_symlinkat, links[i][0], AT_FDCWD, links[i][1]) < 0)
            fail("mount", errno, links[i][1]);
    if (mkdir("/dev/pts", 0755) < 0 || mkdir("/dev/shm", 01777) < 0)
        fail("mount", errno, "/dev");
    if (mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620") < 0)
        fail("mount", errno, "/dev/pts");
    if (mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
        fail("mount", errno, "/dev/shm");
}

/* A device file of the job's own, and the folders that lead to it. */
static void put_device(int node, const char *path)
{
    char folder[256];
    for (const char *at = strchr(path + 5, '/'); at; at = strchr(at + 1, '/')) {
        size_t size = (size_t)(at - path);
        if (size >= sizeof folder)
            fail("device", ENAMETOOLONG, path);
        memcpy(folder, path, size);
        folder[size] = 0;
        if (mkdir(folder, 0755) < 0 && errno != EEXIST)
            fail("device", errno, folder);
    }
    int place = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (place < 0)
        fail("device", errno, path);
    close(place);
    put(node, path);
}

void enter_container(const struct plan *plan)
{
    int trees[MAX_BINDS], nodes[DEVICES], given[MAX_DEVICES];
    for (size_t i = 0; i < plan->bind_count; i++)
        if (plan->binds[i].from) {
            trees[i] = cloned_source(plan, plan->binds[i].from);
            set_attributes(trees[i], ATTR_NOSUID | ATTR_NODEV | (plan->binds[i].read_only ? ATTR_RDONLY : 0),
                           plan->binds[i].from);
        }
    for (size_t i = 0; i < DEVICES; i++)
        nodes[i] = cloned(devices[i], false);
    for (size_t i = 0; i < plan->device_count; i++)
        given[i] = cloned(plan->devices[i], true);
    int system = cloned("/sys", false), processes = fresh_processes();
    if (system >= 0)
        set_attributes(system, ATTR_RDONLY | ATTR_NOSUID | ATTR_NODEV | ATTR_NOEXEC, "/sys");
    mount_layers(plan);
    take_root();
    put(processes, "/proc");
    if (system >= 0)
        put(system, "/sys");
    make_devices(nodes);
    for (size_t i = 0; i < plan->device_count; i++)
        put_device(given[i], plan->devices[i]);
    for (size_t i = 0; i < plan->bind_count; i++)
        if (plan->binds[i].from)
            put(trees[i], plan->binds[i].to);
        else if (mount("tmpfs", plan->binds[i].to, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0)
            fail("bind", errno, plan->binds[i].to);
}
