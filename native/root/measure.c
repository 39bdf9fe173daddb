/* The disk space of a tree that an account fills and may be changing: each file once, whatever names it has, and by the
 * blocks that it has, not by its size.
 *
 * The right to read all folders is kept for it: a folder that the account has closed to itself hides nothing.  The walk
 * keeps a list of names for each folder on the way down, and the folders near the top open; from further down it goes back
 * by "..", which has to be the folder it came from, so no depth is too much.  Where it is not, one was moved, and
 * the walk goes on at the last folder that is open. */
#define _GNU_SOURCE
#include "root.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HELD = 300,      /* so many folders are kept open */
    LEAST_BLOCKS = 2 /* what an empty file counts for: a file system has so many files and no more */
};

struct level {
    int folder; /* -1: closed for now */
    dev_t device;
    ino_t inode;
    char *names; /* of the folders in it, one after the other */
    size_t used, room, at;
};

struct measure {
    struct level *levels;
    size_t depth, room;
    int64_t blocks;
    dev_t files; /* the device of a file in it: below layers another one than the folders' */
    struct counted several;
};

static void remember(struct level *level, const char *name)
{
    const size_t bytes = strlen(name) + 1;
    if (level->used + bytes > level->room) {
        size_t room = 2 * level->room + bytes + 256;
        char *names = realloc(level->names, room);
        if (!names)
            return;
        level->names = names;
        level->room = room;
    }
    memcpy(level->names + level->used, name, bytes);
    level->used += bytes;
}

static void look_at(struct measure *measure, struct level *level, const char *name)
{
    struct stat facts;
    int thing = open_near(level->folder, name, O_PATH | O_NOFOLLOW);
    if (thing < 0)
        return;
    if (fstat(thing, &facts) == 0) {
        const int64_t blocks = facts.st_blocks < LEAST_BLOCKS ? LEAST_BLOCKS : facts.st_blocks;
        if (S_ISREG(facts.st_mode))
            measure->files = facts.st_dev;
        if (S_ISDIR(facts.st_mode))
            remember(level, name);
        if (!S_ISDIR(facts.st_mode) && facts.st_nlink > 1)
            count_file(&measure->several, facts.st_dev, facts.st_ino, blocks);
        else
            measure->blocks += blocks;
    }
    close(thing);
}

/* Goes into an open folder, which is this walk's from now on, and looks at all that is in it. */
static void enter(struct measure *measure, int folder)
{
    struct stat facts;
    if (measure->depth == measure->room) {
        size_t room = measure->room ? 2 * measure->room : 32;
        struct level *levels = realloc(measure->levels, room * sizeof *levels);
        if (levels) {
            measure->levels = levels;
            measure->room = room;
        }
    }
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = copy < 0 ? NULL : fdopendir(copy);
    if (!list || measure->depth == measure->room || fstat(folder, &facts) < 0) {
        if (list)
            closedir(list);
        else if (copy >= 0)
            close(copy);
        close(folder);
        return;
    }
    struct level *level = &measure->levels[measure->depth];
    *level = (struct level){.folder = folder, .device = facts.st_dev, .inode = facts.st_ino};
    for (struct dirent *entry; (entry = readdir(list));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            look_at(measure, level, entry->d_name);
    closedir(list);
    if (measure->depth > HELD) {
        struct level *above = level - 1;
        close(above->folder);
        above->folder = -1;
    }
    measure->depth++;
}

static void leave(struct measure *measure)
{
    struct level *level = &measure->levels[--measure->depth];
    free(level->names);
    if (measure->depth && level[-1].folder < 0) {
        struct level *above = level - 1;
        struct stat facts;
        above->folder = openat(level->folder, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (above->folder >= 0 && (fstat(above->folder, &facts) < 0 || facts.st_dev != above->device ||
                                   facts.st_ino != above->inode)) {
            close(above->folder);
            above->folder = -1;
        }
    }
    close(level->folder);
    while (measure->depth && measure->levels[measure->depth - 1].folder < 0)
        free(measure->levels[--measure->depth].names);
}

int64_t tree_blocks(int top, dev_t *files)
{
    struct measure measure = {.files = *files};
    int folder = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0)
        enter(&measure, folder);
    while (measure.depth) {
        struct level *level = &measure.levels[measure.depth - 1];
        if (level->at == level->used) {
            leave(&measure);
            continue;
        }
        const char *name = level->names + level->at;
        level->at += strlen(name) + 1;
        int below = open_near(level->folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
        if (below >= 0)
            enter(&measure, below);
    }
    free(measure.levels);
    *files = measure.files;
    return measure.blocks + sum_counted(&measure.several);
}
