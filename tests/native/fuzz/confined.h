/* A process that is to meet hostile input confines itself first: the working directory, which holds nothing but the
 * corpus, becomes its root; it has no rights (root becomes nobody, others enter a user namespace); files stay small. */
#ifndef CONDOR_FUZZ_CONFINED_H
#define CONDOR_FUZZ_CONFINED_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void must(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(2);
    }
}

/* What the sanitizers do not see: the fuzzer makes a finding of it. */
static void give_up(const char *what, int error)
{
    fprintf(stderr, "ERROR: %s: %s\n", what, strerror(error));
    abort();
}

/* The shadow looks up what descriptors stand for: of /proc this is all that the empty root directory gets, where the
 * machine allows a mount. */
static bool keep_own_descriptors(void)
{
    static const char *const kept[] = {"/proc/self/fd", "/proc/self/fdinfo"};
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return false;
    mkdir("proc", 0755);
    mkdir("proc/self", 0755);
    for (int i = 0; i < 2; i++) {
        mkdir(kept[i] + 1, 0755);
        if (mount(kept[i], kept[i] + 1, NULL, MS_BIND, NULL) < 0)
            perror(kept[i]);
    }
    return true;
}

static void say_in(const char *path, const char *text)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    must(file, path);
    must(write(file, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1, path);
    close(file);
}

/* Terminals of its own, which are nobody else's; without a mount the shadow has none here. */
static void make_terminals(void)
{
    mkdir("dev", 0755);
    mkdir("dev/pts", 0755);
    if (mount("devpts", "dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620") < 0)
        return;
    must(symlink("pts/ptmx", "dev/ptmx") < 0 && errno != EEXIST ? -1 : 0, "dev/ptmx");
}

/* Someone without rights may take an empty root directory too, in a user namespace of his own, where he stays who he
 * is. Without that the frames would be answered with all that he may do. */
static void enter_own_namespace(void)
{
    char map[64];
    unsigned user = geteuid(), group = getegid();
    must(unshare(CLONE_NEWUSER), "a user namespace");
    say_in("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", user, user);
    say_in("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", group, group);
    say_in("/proc/self/gid_map", map);
}

static void drop_capabilities(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    must((int)syscall(SYS_capset, &head, none), "no capabilities");
}

static void shut_in(void)
{
    bool is_root = geteuid() == 0;
    if (!is_root)
        enter_own_namespace();
    if (keep_own_descriptors())
        make_terminals();
    must(chroot("."), "the working directory as an empty root directory");
    must(chdir("/"), "the root directory");
    if (is_root) {
        must(setgroups(0, NULL), "no groups");
        must(setgid(65534), "nobody's group");
        must(setuid(65534), "nobody");
    }
    drop_capabilities();
    struct rlimit small = {16 << 20, 16 << 20};
    setrlimit(RLIMIT_FSIZE, &small);
}

#endif
