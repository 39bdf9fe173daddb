/* What a program watches, as its checkpoint has it: the watches by name, what their files and directories were like,
 * and the events that the program has not read.
 *
 * While the program is nowhere, nobody watches.  So a restart compares: of a file that was changed meanwhile there is an
 * event; of one that is gone, those of its end; and if something in a directory was changed, the program is told that
 * events were lost (IN_Q_OVERFLOW), which is the truth, and has it look for itself.
 */
#include "shadow/files/inotify.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_COMPARED = 4096 /* entries of a directory */, MOST_COMPARED_IN_ALL = 1 << 18, NOT_COMPARED = 0 };
enum { NAME_BYTES = 64 };
#define LISTING_EVENTS (IN_OPEN | IN_ACCESS | IN_CLOSE_NOWRITE)
#define KEPT_MASK (IN_ALL_EVENTS | IN_EXCL_UNLINK | IN_ONESHOT)

struct described_watches {
    int32_t next;
    uint32_t count; /* of struct described_watch, each with its name; events follow */
};

struct described_watch {
    int32_t number;
    uint32_t mask;
    uint32_t file;      /* one more than the place of the open file that is watched; 0: it has a name */
    uint32_t name_size;
    uint64_t content, attributes;
};

/* One line of /proc/self/fdinfo: "inotify wd:1 ino:2f1 sdev:800001 mask:fce ..." */
struct living {
    int real;
    uint32_t mask;
};

#define SPREAD 0x100000001b3ull
#define SPREAD_FROM 0xcbf29ce484222325ull

static uint64_t mixed(uint64_t sum, const void *from, size_t size)
{
    const uint8_t *bytes = from;
    for (size_t i = 0; i < size; i++)
        sum = (sum ^ bytes[i]) * SPREAD;
    return sum;
}

static uint64_t content_mixed(uint64_t sum, const struct stat *st)
{
    const int64_t numbers[3] = {st->st_size, st->st_mtim.tv_sec, st->st_mtim.tv_nsec};
    return mixed(sum, numbers, sizeof numbers);
}

static uint64_t attributes_mixed(uint64_t sum, const struct stat *st)
{
    const uint32_t numbers[3] = {st->st_mode, st->st_uid, st->st_gid};
    return mixed(sum, numbers, sizeof numbers);
}

/* Entries come in any order, so they are added up. NOT_COMPARED: there are too many, or they cannot be read. */
static uint64_t listing_of(int pin, size_t *budget)
{
    int real = openat(pin, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = real < 0 ? NULL : fdopendir(real);
    uint64_t sum = SPREAD_FROM;
    const struct dirent *entry;
    struct stat st;
    if (!listing && real >= 0)
        close(real);
    if (!listing)
        return NOT_COMPARED;
    for (size_t count = 0; sum != NOT_COMPARED && (entry = readdir(listing)); count++) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        uint64_t own = mixed(SPREAD_FROM, entry->d_name, strlen(entry->d_name));
        if (fstatat(dirfd(listing), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            own = attributes_mixed(content_mixed(own, &st), &st);
        sum = count < MOST_COMPARED && *budget ? sum + own : NOT_COMPARED;
        *budget -= *budget > 0;
    }
    closedir(listing);
    return sum;
}

/* BUDGET: how many entries of directories are looked at still. */
static void compare_by(int pin, const struct stat *st, size_t *budget, uint64_t *content, uint64_t *attributes)
{
    *content = S_ISDIR(st->st_mode) ? listing_of(pin, budget) : content_mixed(SPREAD_FROM, st);
    *attributes = attributes_mixed(SPREAD_FROM, st);
}

/* The kernel's list, in the order of its numbers. NULL: errno. */
static struct living *all_living(int real, size_t *count)
{
    char name[NAME_BYTES], line[512];
    size_t room = 0;
    struct living *all = NULL;
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", real);
    FILE *info = fopen(name, "re");
    if (!info)
        return NULL;
    *count = 0;
    while (fgets(line, sizeof line, info)) {
        struct living one;
        if (sscanf(line, "inotify wd:%x ino:%*x sdev:%*x mask:%x", (unsigned *)&one.real, &one.mask) != 2)
            continue;
        if (*count == room) {
            struct living *more = realloc(all, (room += 256) * sizeof *all);
            if (!more)
                break;
            all = more;
        }
        all[(*count)++] = one;
    }
    fclose(info);
    return all ? all : calloc(1, sizeof *all);
}

static int in_order(const void *one, const void *other)
{
    const struct living *a = one, *b = other;
    return (a->real > b->real) - (a->real < b->real);
}

/* How the file of WATCH will be found again. Returns 0 or -ESTALE. */
static long find_again(struct session *s, const struct watch *watch, struct described_watch *d, size_t *budget,
                       int (*number)(void *list, dev_t device, ino_t inode), void *list)
{
    struct stat st;
    int pin = watched_at(s, watch->name, O_NOFOLLOW);
    bool same = pin >= 0 && fstat(pin, &st) == 0 && st.st_dev == watch->device && st.st_ino == watch->inode;
    if (same) {
        compare_by(pin, &st, budget, &d->content, &d->attributes);
        d->name_size = (uint32_t)strlen(watch->name) + 1;
    }
    if (pin >= 0)
        close(pin);
    int place = same ? -1 : number(list, watch->device, watch->inode);
    d->file = (uint32_t)(place + 1);
    return same || place >= 0 ? 0 : -ESTALE;
}

/* Events that nobody will read any more have no watch in the kernel: those are left out. */
static ssize_t describe_watches(struct session *s, struct inotify *in, uint8_t *to, size_t room, const char **lost,
                                int (*number)(void *list, dev_t device, ino_t inode), void *list)
{
    struct described_watches head = {.next = in->next};
    size_t used = sizeof head, count = 0, budget = MOST_COMPARED_IN_ALL;
    struct living *all = all_living(in->real, &count);
    long result = !all ? -errno : room < used ? -EFBIG : 0;
    if (all)
        qsort(all, count, sizeof *all, in_order);
    for (size_t i = 0; i < in->count && !result; i++) {
        const struct watch *watch = &in->watches[i];
        const struct living wanted = {watch->real, 0};
        const struct living *found = bsearch(&wanted, all, count, sizeof *all, in_order);
        if (!found)
            continue;
        struct described_watch d = {.number = watch->number, .mask = found->mask};
        result = find_again(s, watch, &d, &budget, number, list);
        if (result)
            *lost = watch->name;
        else if (room - used < sizeof d + d.name_size)
            result = -EFBIG;
        if (result)
            break;
        memcpy(to + used, &d, sizeof d);
        memcpy(to + used + sizeof d, watch->name, d.name_size);
        used += sizeof d + d.name_size;
        head.count++;
    }
    free(all);
    if (result)
        return result;
    memcpy(to, &head, sizeof head);
    return (ssize_t)used;
}

ssize_t inotify_described(struct session *s, struct inotify *in, uint8_t *to, size_t room, const char **lost,
                          int (*number)(void *list, dev_t device, ino_t inode), void *list)
{
    const struct inotify_event overflow = {.wd = -1, .mask = IN_Q_OVERFLOW};
    pthread_mutex_lock(&in->lock);
    bool all = inotify_take(in, 0);
    ssize_t used = describe_watches(s, in, to, room, lost, number, list);
    all = all && inotify_take(in, LISTING_EVENTS); /* what we did ourselves just now */
    if (used >= 0 && room - (size_t)used < in->kept_size + sizeof overflow)
        used = -EFBIG;
    if (used >= 0 && in->kept_size) {
        memcpy(to + used, in->kept, in->kept_size);
        used += (ssize_t)in->kept_size;
    }
    if (used >= 0 && !all && in->kept_size <= MOST_KEPT) { /* else that is what it ends with */
        memcpy(to + used, &overflow, sizeof overflow);
        used += (ssize_t)sizeof overflow;
    }
    pthread_mutex_unlock(&in->lock);
    return used;
}

/* False: no memory. *LOST: there is no room for it. */
static bool tell_of(struct inotify *in, int number, uint32_t mask, bool *lost)
{
    const struct inotify_event event = {.wd = number, .mask = mask};
    bool fits = in->kept_size + sizeof event <= MOST_KEPT;
    *lost |= mask && !fits;
    return !mask || !fits || inotify_keep(in, &event, sizeof event);
}

/* Those that are behind what there is room for, or that no one saw. */
static bool tell_lost(struct inotify *in)
{
    const struct inotify_event event = {.wd = -1, .mask = IN_Q_OVERFLOW};
    return in->kept_size > MOST_KEPT || inotify_keep(in, &event, sizeof event);
}

/* Where the program's watch was there is nothing that can be watched: it is told as of a file that was deleted. */
static bool tell_end(struct inotify *in, const struct described_watch *d, bool *lost)
{
    return tell_of(in, d->number, d->mask & IN_DELETE_SELF, lost) && tell_of(in, d->number, IN_IGNORED, lost);
}

/* Returns 0 or -errno; *LOST: something in a directory may have changed, or there is no room for an event. */
static long watch_again(struct session *s, struct inotify *in, const struct described_watch *d, const char *name,
                        const struct file *file, size_t *budget, bool *lost)
{
    char link[NAME_BYTES];
    struct stat st;
    uint64_t content = NOT_COMPARED, attributes = NOT_COMPARED;
    const uint32_t mask = (d->mask & KEPT_MASK) | IN_UNMOUNT | IN_MASK_CREATE;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file ? file->real : -1);
    int pin = file ? open(link, O_PATH | O_CLOEXEC) : watched_at(s, name, O_NOFOLLOW);
    if (pin < 0 || fstat(pin, &st) < 0)
        return tell_end(in, d, lost) ? 0 : -ENOMEM;
    if (!file)
        compare_by(pin, &st, budget, &content, &attributes);
    long result = watch_enter(in, pin, mask, d->number);
    close(pin);
    if (result == -ENOSPC || result == -ENOMEM)
        return result;
    if (result < 0)
        return tell_end(in, d, lost) ? 0 : -ENOMEM;
    uint32_t changed = file || attributes == d->attributes ? 0 : IN_ATTRIB;
    if (!file && (content != d->content || content == NOT_COMPARED)) {
        *lost |= S_ISDIR(st.st_mode);
        changed |= S_ISDIR(st.st_mode) ? 0 : IN_MODIFY;
    }
    const uint32_t directory = S_ISDIR(st.st_mode) ? IN_ISDIR : 0;
    bool told = (!(changed & d->mask & IN_MODIFY) || tell_of(in, d->number, IN_MODIFY, lost)) &&
                (!(changed & d->mask & IN_ATTRIB) || tell_of(in, d->number, IN_ATTRIB | directory, lost));
    return told ? 0 : -ENOMEM;
}

/* The watch at *AT of CONTENT, and its name. False: there is none. */
static bool next_watch(const uint8_t *content, size_t size, size_t *at, struct described_watch *d, const char **name)
{
    if (size - *at < sizeof *d)
        return false;
    memcpy(d, content + *at, sizeof *d);
    *at += sizeof *d;
    *name = (const char *)content + *at;
    if (d->name_size > size - *at || d->name_size > PATH_LIMIT || (!d->file && !d->name_size) ||
        (d->name_size && (*name)[d->name_size - 1]))
        return false;
    *at += d->name_size;
    return true;
}

static bool keep_events(struct inotify *in, const uint8_t *content, size_t size)
{
    for (size_t at = 0; at < size;) {
        struct inotify_event event;
        if (size - at < EVENT_BYTES)
            return false;
        memcpy(&event, content + at, EVENT_BYTES);
        if (event.len > size - at - EVENT_BYTES)
            return false;
        at += EVENT_BYTES + event.len;
    }
    return !size || inotify_keep(in, content, size);
}

/* A restarted program's: what the image says is hostile. Returns 0 or -errno. */
long inotify_filled(struct session *s, struct inotify *in, const struct described_file *d, const uint8_t *content,
                    struct file **files, uint32_t count)
{
    struct described_watches head;
    struct described_watch one;
    const char *name;
    size_t at = sizeof head, first = at, budget = MOST_COMPARED_IN_ALL;
    int last = 0;
    bool lost = false;
    if (d->content_size < sizeof head)
        return -EPROTO;
    memcpy(&head, content, sizeof head);
    for (uint32_t i = 0; i < head.count; i++) {
        if (!next_watch(content, d->content_size, &at, &one, &name) || one.number <= last || one.number >= head.next ||
            one.file > count)
            return -EPROTO;
        last = one.number;
    }
    if (head.next < 1 || !keep_events(in, content + at, d->content_size - at))
        return -EPROTO;
    in->next = head.next;
    long result = 0;
    for (at = first; head.count && !result; head.count--) {
        next_watch(content, d->content_size, &at, &one, &name);
        result = watch_again(s, in, &one, name, one.file ? files[one.file - 1] : NULL, &budget, &lost);
    }
    return result ? result : !lost || tell_lost(in) ? 0 : -ENOMEM;
}
