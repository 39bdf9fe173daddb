/* Walks through a tree of files that another user may be changing: nothing in it is named by a path, no link is
 * followed, and each thing is looked at by the descriptor by which it is then changed. */
#define _GNU_SOURCE
#include "root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct walk {
    int top;
    enum kind kind;
    uid_t from, to;
    gid_t group;
    unsigned moved;
};

static int one(struct walk *walk, int folder, const char *name, int depth);

/* Everything in an open folder, which is closed. */
static int inside(struct walk *walk, int folder, int depth)
{
    DIR *list = fdopendir(folder);
    if (!list) {
        int error = errno;
        close(folder);
        return error;
    }
    int error = 0;
    for (struct dirent *entry; (entry = readdir(list));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int problem = one(walk, dirfd(list), entry->d_name, depth);
        error = error ? error : problem;
    }
    closedir(list);
    return error;
}

/* Gives a thing that is open another owner: only what is FROM's.  What is the pool's is given only if it has no other
 * name: an account could have put one of the pool's own files there.  What is the account's own it may lose everywhere. */
static int change_owner(const struct walk *walk, int thing, const struct stat *facts)
{
    if (facts->st_uid == walk->to)
        return 0;
    if (facts->st_uid != walk->from)
        return EPERM;
    if (walk->kind == GIVE && !S_ISDIR(facts->st_mode) && facts->st_nlink != 1)
        return EMLINK;
    return fchownat(thing, "", walk->to, walk->group, AT_EMPTY_PATH) < 0 ? errno : 0;
}

/* Something in an open folder that lies on the same mount; EXDEV otherwise.  Device numbers do not tell: below one mount
 * of layers (overlay) the files may have others than the folders, and a mount within one file system has the same. */
int open_near(int folder, const char *name, int flags)
{
    struct open_how how = {.flags = (unsigned)(flags | O_CLOEXEC), .resolve = RESOLVE_NO_XDEV | RESOLVE_BENEATH};
    return (int)syscall(SYS_openat2, folder, name, &how, sizeof how);
}

/* A folder in an open one, with all rights of its owner. */
static int open_below(int folder, const char *name)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
    int below = open_near(folder, name, flags);
    if (below < 0 && errno == EACCES) {
        int reached = open_near(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", reached);
        if (reached >= 0 && chmod(link, 0700) == 0)
            below = open_near(folder, name, flags);
        if (reached >= 0)
            close(reached);
    }
    return below;
}

static int enter(struct walk *walk, int folder, const char *name, int depth)
{
    int below = open_below(folder, name);
    if (below < 0)
        return errno;
    struct stat facts;
    if (fstat(below, &facts) == 0 && (facts.st_mode & 0700) != 0700)
        (void)!fchmod(below, (facts.st_mode & 07777) | 0700);
    return inside(walk, below, depth + 1);
}

static int one(struct walk *walk, int folder, const char *name, int depth)
{
    int thing = open_near(folder, name, O_PATH | O_NOFOLLOW), error = 0;
    if (thing < 0)
        return errno == ENOENT ? 0 : errno;
    struct stat facts;
    if (fstat(thing, &facts) < 0) {
        error = errno;
        close(thing);
        return error;
    }
    if (S_ISDIR(facts.st_mode)) {
        if (walk->kind == REMOVE && unlinkat(folder, name, AT_REMOVEDIR) == 0) {
            close(thing);
            return 0;
        }
        if (depth < DEEPEST) {
            error = enter(walk, folder, name, depth);
        } else if (walk->kind == REMOVE) { /* a tree of any depth goes: what is deep is put at the top, and found there */
            char fresh[32];
            snprintf(fresh, sizeof fresh, ".deep.%u.%d", ++walk->moved, (int)getpid());
            error = renameat(folder, name, walk->top, fresh) < 0 ? errno : 0;
            close(thing);
            return error;
        } else {
            error = ELOOP;
        }
    }
    if (walk->kind == GIVE || walk->kind == TAKE) {
        int problem = change_owner(walk, thing, &facts);
        error = error ? error : problem;
    } else if (walk->kind == REMOVE && unlinkat(folder, name, S_ISDIR(facts.st_mode) ? AT_REMOVEDIR : 0) < 0) {
        error = error ? error : errno;
    }
    close(thing);
    return error;
}

/* An errno, or 0.  The folder itself changes its owner last; it is never removed, its own folder is not ours. */
static int walk_all(struct walk *walk)
{
    const enum kind kind = walk->kind;
    const int top = walk->top;
    struct stat facts;
    if (fstat(top, &facts) < 0 || !S_ISDIR(facts.st_mode))
        return ENOTDIR;
    if ((facts.st_mode & 0700) != 0700)
        (void)!fchmod(top, (facts.st_mode & 07777) | 0700);
    int error;
    unsigned moved;
    do {
        moved = walk->moved;
        int folder = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (folder < 0)
            return errno;
        error = inside(walk, folder, 0);
    } while (walk->moved != moved);
    if (kind == GIVE || kind == TAKE) {
        int problem = change_owner(walk, top, &facts);
        error = error ? error : problem;
    }
    return error;
}

int walk(int top, enum kind kind, uid_t from, uid_t to, gid_t group)
{
    struct walk walk = {.top = top, .kind = kind, .from = from, .to = to, .group = group};
    return walk_all(&walk);
}

/* What is in it, and what those of the account's processes have deleted and keep open that PIDS names: these are looked
 * into without any right. */
int measure(int top, uid_t uid, const char *pids, int64_t *kib)
{
    struct stat facts;
    if (fstat(top, &facts) < 0 || !S_ISDIR(facts.st_mode))
        return ENOTDIR;
    dev_t files = facts.st_dev;
    int64_t blocks = tree_blocks(top, &files);
    if (!drop_rights())
        return errno;
    if (*pids)
        blocks += deleted_blocks(pids, uid, (const dev_t[]){facts.st_dev, files});
    *kib = blocks / 2;
    return 0;
}

/* Removes one entry of an open folder, a tree or a file. */
int remove_entry(int folder, const char *name)
{
    if (strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return EINVAL;
    int below = open_below(folder, name), error = 0;
    if (below < 0 && errno == EXDEV)
        return EXDEV;
    if (below >= 0) {
        error = walk(below, REMOVE, 0, 0, 0);
        close(below);
        if (!error && unlinkat(folder, name, AT_REMOVEDIR) < 0)
            error = errno;
        return error;
    }
    return unlinkat(folder, name, 0) < 0 && errno != ENOENT ? errno : 0;
}
