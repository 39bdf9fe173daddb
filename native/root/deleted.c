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

struct found {
    uid_t uid;
    const dev_t *devices;
    struct counted files;
    size_t looked;
};

static int in_order(const void *left, const void *right)
{
    const struct counted_file *a = left, *b = right;
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

void count_file(struct counted *counted, dev_t device, uint64_t inode, int64_t blocks)
{
    if (counted->count == counted->room) {
        size_t room = counted->room ? 2 * counted->room : 64;
        struct counted_file *files = realloc(counted->files, room * sizeof *files);
        if (!files)
            return;
        counted->files = files;
        counted->room = room;
    }
    counted->files[counted->count++] = (struct counted_file){device, inode, blocks};
}

/* Of each once.  The table is given up. */
int64_t sum_counted(struct counted *counted)
{
    int64_t blocks = 0;
    if (counted->count)
        qsort(counted->files, counted->count, sizeof *counted->files, in_order);
    for (size_t i = 0; i < counted->count; i++)
        if (i == 0 || in_order(&counted->files[i - 1], &counted->files[i]) != 0)
            blocks += counted->files[i].blocks;
    free(counted->files);
    return blocks;
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
        dev_t device = makedev(facts.stx_dev_major, facts.stx_dev_minor);
        bool here = device == found->devices[0] || device == found->devices[1];
        if (here && S_ISREG(facts.stx_mode) && facts.stx_nlink == 0 && facts.stx_uid == found->uid)
            count_file(&found->files, device, facts.stx_ino, (int64_t)facts.stx_blocks);
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
    return sum_counted(&found.files);
}
