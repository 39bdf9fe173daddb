/* The disk space of files that an account's processes have deleted and keep open: no folder shows it.
 *
 * This runs with the account's rights and no other, so the kernel lets it look into the account's own processes only. Each
 * descriptor is held as a place, which opens nothing, and asked without a word to its file system (AT_STATX_DONT_SYNC): one
 * that the account has made itself might never answer. Memory files and other file systems do not count. */
#define _GNU_SOURCE
#include "root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct file {
    dev_t device;
    uint64_t inode;
    int64_t blocks;
};

struct found {
    uid_t uid;
    const dev_t *devices;
    struct file *files;
    size_t count, room, looked;
};

static int in_order(const void *left, const void *right)
{
    const struct file *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

static void add_file(struct found *found, const struct file *file)
{
    if (found->count == found->room) {
        size_t room = found->room ? 2 * found->room : 64;
        struct file *files = realloc(found->files, room * sizeof *files);
        if (!files)
            return;
        found->files = files;
        found->room = room;
    }
    found->files[found->count++] = *file;
}

/* One entry of a /proc/PID/fd. */
static void look_at(struct found *found, int list, const char *name)
{
    struct statx facts;
    int held = openat(list, name, O_PATH | O_CLOEXEC);
    if (held < 0)
        return;
    const unsigned wanted = STATX_TYPE | STATX_NLINK | STATX_UID | STATX_INO | STATX_BLOCKS;
    if (statx(held, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, wanted, &facts) == 0) {
        struct file file = {makedev(facts.stx_dev_major, facts.stx_dev_minor), facts.stx_ino, (int64_t)facts.stx_blocks};
        bool here = file.device == found->devices[0] || file.device == found->devices[1];
        if (here && S_ISREG(facts.stx_mode) && facts.stx_nlink == 0 && facts.stx_uid == found->uid)
            add_file(found, &file);
    }
    close(held);
}

static void look_into(struct found *found, unsigned long pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%lu/fd", pid);
    DIR *list = opendir(path);
    if (!list)
        return; /* it has ended, or is none of the account's */
    for (struct dirent *entry; found->looked < MOST_OPEN && (entry = readdir(list));)
        if (entry->d_name[0] != '.') {
            found->looked++;
            look_at(found, dirfd(list), entry->d_name);
        }
    closedir(list);
}

/* PIDS are numbers with spaces between; what is none is left out. */
int64_t deleted_blocks(const char *pids, uid_t uid, const dev_t devices[2])
{
    struct found found = {.uid = uid, .devices = devices};
    for (char *end; *pids; pids = end) {
        unsigned long pid = strtoul(pids, &end, 10);
        if (end == pids)
            break;
        look_into(&found, pid);
    }
    int64_t blocks = 0;
    if (found.count)
        qsort(found.files, found.count, sizeof *found.files, in_order);
    for (size_t i = 0; i < found.count; i++)
        if (i == 0 || in_order(&found.files[i - 1], &found.files[i]) != 0)
            blocks += found.files[i].blocks;
    free(found.files);
    return blocks;
}
