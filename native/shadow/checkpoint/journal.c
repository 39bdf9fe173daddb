/* The undo journal: what the program changed at home since its last checkpoint, so that it can be changed back.
 *
 * Beside the image lies a directory "<image>.undo" with one file "journal" and copies of deleted files.  Before
 * a call changes something, a record of how it was is appended; a complete checkpoint empties the journal; a
 * restart from that checkpoint applies the records backwards.  Both carry the same generation: a journal of
 * another generation than the image's has nothing to say about it.
 *
 * Of a file's content each block is saved once per generation, and nothing of files that were made since.
 * The records are in the kernel's hands before the change is, so they survive the death of any process; a
 * machine that loses its power may lose the last ones.
 */
#include "journal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- writing records */

static bool append(struct journal *j, const struct record *head, const char *path, const char *other,
                   const void *data)
{
    struct iovec parts[4] = {{(void *)(uintptr_t)head, sizeof *head},
                             {(void *)(uintptr_t)path, head->path_size},
                             {(void *)(uintptr_t)other, head->other_size},
                             {(void *)(uintptr_t)data, head->data_size}};
    size_t total = sizeof *head + head->path_size + head->other_size + head->data_size;
    off_t before = lseek(j->file, 0, SEEK_END);
    if (writev(j->file, parts, 4) == (ssize_t)total)
        return true;
    if (ftruncate(j->file, before) < 0) /* half a record is ignored when it is the last one */
        return false;
    errno = ENOSPC;
    return false;
}

static struct record make(uint32_t kind, const char *path, const char *other)
{
    return (struct record){.kind = kind, .path_size = (uint32_t)strlen(path) + 1,
                           .other_size = other ? (uint32_t)strlen(other) + 1 : 0};
}

static struct known **find(struct journal *j, const struct stat *st)
{
    struct known **place = &j->known[(st->st_ino ^ st->st_dev) % BUCKETS];
    while (*place && ((*place)->inode != st->st_ino || (*place)->device != st->st_dev))
        place = &(*place)->next;
    return place;
}

static struct known *know(struct journal *j, const struct stat *st, bool made)
{
    struct known **place = find(j, st), *k = *place;
    if (k)
        return k;
    size_t blocks = made ? 0 : ((size_t)st->st_size + BLOCK - 1) / BLOCK;
    k = calloc(1, sizeof *k + (blocks + 7) / 8);
    if (k) {
        k->device = st->st_dev;
        k->inode = st->st_ino;
        k->made = made;
        k->size = made ? 0 : (uint64_t)st->st_size;
        *place = k;
    }
    return k;
}

void forget_known(struct journal *j)
{
    for (int i = 0; i < BUCKETS; i++)
        while (j->known[i]) {
            struct known *k = j->known[i];
            j->known[i] = k->next;
            free(k);
        }
}

static void forget_file(struct journal *j, const struct stat *st)
{
    struct known **place = find(j, st), *k = *place;
    if (k) {
        *place = k->next;
        free(k);
    }
}

/* A descriptor to read what REAL, which may be open for writing only, is about to change. */
static int reader_of(int real)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", real);
    return open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static long save_block(struct journal *j, int reader, const char *path, uint64_t at, uint8_t *data)
{
    ssize_t got = pread(reader, data, BLOCK, (off_t)at);
    struct record record = make(RECORD_BLOCK, path, NULL);
    if (got < 0)
        return -errno;
    record.number = at;
    record.data_size = (uint64_t)got;
    return append(j, &record, path, NULL, data) ? 0 : -ENOSPC;
}

/* Saves the blocks of FROM..TO that the file had and that are not saved yet. */
static long save_range(struct journal *j, int real, const char *path, uint64_t from, uint64_t to)
{
    struct stat st;
    uint8_t *data = NULL;
    long result = 0;
    int reader = -1;
    if (fstat(real, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_nlink == 0)
        return 0;
    struct known *k = *find(j, &st);
    if (!k) {
        struct record size = make(RECORD_SIZE, path, NULL);
        size.number = (uint64_t)st.st_size;
        if (!append(j, &size, path, NULL, NULL) || !(k = know(j, &st, false)))
            return -ENOSPC;
    }
    if (k->made)
        return 0;
    if (to > k->size)
        to = k->size;
    for (uint64_t block = from / BLOCK; block * BLOCK < to && !result; block++) {
        if (k->saved[block / 8] >> (block % 8) & 1)
            continue;
        if (!data && (!(data = malloc(BLOCK)) || (reader = reader_of(real)) < 0))
            result = -EACCES; /* what cannot be read cannot be brought back */
        else if (!(result = save_block(j, reader, path, block * BLOCK, data)))
            k->saved[block / 8] |= (uint8_t)(1 << (block % 8));
    }
    if (reader >= 0)
        close(reader);
    free(data);
    return result;
}

static bool path_of(int real, char *to)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", real);
    ssize_t length = readlink(link, to, PATH_LIMIT - 1);
    if (length <= 0)
        return false;
    to[length] = 0;
    return to[0] == '/';
}

/* The absolute name that NAME under DIRECTORY has now: its own directory resolved, its last part not. */
static bool absolute(int directory, const char *name, char *to)
{
    char front[PATH_LIMIT];
    size_t length = strlen(name);
    while (length > 1 && name[length - 1] == '/')
        length--;
    size_t slash = length;
    while (slash && name[slash - 1] != '/')
        slash--;
    if (length == 0 || length >= PATH_LIMIT)
        return false;
    memcpy(front, name, slash);
    front[slash] = 0;
    int parent = openat(directory, slash ? front : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char where[PATH_LIMIT];
    bool found = parent >= 0 && path_of(parent, where);
    if (parent >= 0)
        close(parent);
    return found && snprintf(to, PATH_LIMIT, "%s/%.*s", strcmp(where, "/") ? where : "", (int)(length - slash),
                             name + slash) < PATH_LIMIT;
}

static long save_status(struct journal *j, const char *path, const struct stat *st)
{
    struct record record = make(RECORD_STATUS, path, NULL);
    record.mode = st->st_mode;
    record.uid = st->st_uid;
    record.gid = st->st_gid;
    record.times[0] = st->st_atim.tv_sec;
    record.times[1] = st->st_atim.tv_nsec;
    record.times[2] = st->st_mtim.tv_sec;
    record.times[3] = st->st_mtim.tv_nsec;
    return append(j, &record, path, NULL, NULL) ? 0 : -ENOSPC;
}

bool copy_content(int from, int to)
{
    if (ioctl(to, 0x40049409 /* FICLONE */, from) == 0)
        return true;
    off_t at = 0;
    ssize_t got;
    char *data = malloc(BLOCK);
    while (data && (got = pread(from, data, BLOCK, at)) > 0 && write(to, data, (size_t)got) == got)
        at += got;
    free(data);
    struct stat st;
    return fstat(from, &st) == 0 && at == st.st_size;
}

/* A file that is about to lose its name, NAME below DIRECTORY and PATH in the record, is copied: processes that have it open may
 * go on changing it. */
static long save_removed(struct journal *j, int directory, const char *name, const char *path)
{
    struct stat st;
    char other[PATH_LIMIT];
    if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    struct record record = make(RECORD_REMOVED, path, NULL);
    record.mode = st.st_mode;
    if (S_ISLNK(st.st_mode)) {
        ssize_t length = readlinkat(directory, name, other, sizeof other - 1);
        if (length < 0)
            return -errno;
        other[length] = 0;
    } else if (S_ISREG(st.st_mode)) {
        struct known *k = *find(j, &st);
        if (k && k->made && st.st_nlink == 1) { /* it had not been there: no more to be said than that */
            forget_file(j, &st);
            return 0;
        }
        snprintf(other, sizeof other, "%llu", (unsigned long long)++j->copies);
        int from = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (from < 0)
            return -EACCES; /* what cannot be read cannot be brought back */
        int to = openat(j->directory, other, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        bool copied = to >= 0 && copy_content(from, to);
        close(from);
        if (to >= 0)
            close(to);
        if (!copied) {
            unlinkat(j->directory, other, 0);
            return -ENOSPC;
        }
    } else {
        other[0] = 0; /* directories and pipes: made again as they were */
    }
    record.other_size = (uint32_t)strlen(other) + 1;
    long failed = append(j, &record, path, other, NULL) ? 0 : -ENOSPC;
    if (S_ISREG(st.st_mode) && st.st_nlink == 1)
        forget_file(j, &st); /* its number may be reused soon */
    return failed;
}

static long save_made(struct journal *j, const char *path)
{
    struct record record = make(RECORD_MADE, path, NULL);
    return append(j, &record, path, NULL, NULL) ? 0 : -ENOSPC;
}

/* ---- what a call is about to change */

static const char *string_at(const struct work *w, size_t which)
{
    const char *at = (const char *)w->payload, *end = at + w->head.size;
    for (;; which--) {
        size_t length = strnlen(at, (size_t)(end - at));
        if (length == (size_t)(end - at))
            return NULL;
        if (!which)
            return at;
        at += length + 1;
    }
}

static int directory_of(const struct work *w, int directory_argument)
{
    int64_t given = directory_argument < 0 ? AT_FDCWD : w->head.arguments[directory_argument];
    return given == AT_FDCWD ? AT_FDCWD : real_of(w->session, given);
}

static bool name_of(struct work *w, int directory_argument, size_t which, char *to)
{
    const char *name = string_at(w, which);
    int directory = directory_of(w, directory_argument);
    return name && (confined_name(w, name, to) || absolute(directory, name, to));
}

static long before_descriptor(struct work *w, struct journal *j, int real, uint64_t from, uint64_t to)
{
    char path[PATH_LIMIT];
    (void)w;
    return real >= 0 && path_of(real, path) ? save_range(j, real, path, from, to) : 0;
}

static long before_write(struct work *w, struct journal *j, int real, bool positioned)
{
    int64_t at = positioned ? w->head.arguments[3] : lseek(real, 0, SEEK_CUR);
    struct stat st;
    if (at < 0 || fstat(real, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    if (!positioned && (fcntl(real, F_GETFL) & O_APPEND))
        at = st.st_size;
    return before_descriptor(w, j, real, (uint64_t)at, (uint64_t)at + (uint64_t)w->head.arguments[2]);
}

static long before_open(struct work *w, struct journal *j)
{
    char path[PATH_LIMIT], link[64];
    struct stat st;
    int flags = (int)w->head.arguments[2];
    if (!(flags & (O_CREAT | O_TRUNC)) || (flags & O_PATH) || !name_of(w, 0, 0, path))
        return 0;
    int found = open_at(w->session, directory_of(w, 0), string_at(w, 0), O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW), 0);
    if (found < 0) { /* what leads nowhere, or where it may not, is for the call to refuse */
        w->made_now = errno == ENOENT && (flags & O_CREAT);
        return w->made_now ? save_made(j, path) : 0;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", found);
    bool saves = fstat(found, &st) == 0 && S_ISREG(st.st_mode) && (flags & O_TRUNC) &&
                 (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
    int real = saves ? open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    close(found);
    if (real < 0)
        return saves ? -EACCES : 0; /* what cannot be read cannot be brought back */
    long result = before_descriptor(w, j, real, 0, UINT64_MAX);
    close(real);
    return result;
}

static long before_rename(struct work *w, struct journal *j)
{
    char from[PATH_LIMIT], to[PATH_LIMIT];
    struct stat st;
    if (!name_of(w, 0, 0, from) || !name_of(w, 2, 1, to) || lstat(from, &st) < 0)
        return 0;
    if (w->head.call == __NR_renameat2 && (w->head.arguments[4] & 2)) /* exchange: its own undoing */
        return -EINVAL;
    bool replaces = lstat(to, &st) == 0 && !S_ISDIR(st.st_mode);
    long result = replaces ? save_removed(j, directory_of(w, 2), string_at(w, 1), to) : 0;
    struct record record = make(RECORD_MOVED, from, to);
    return result ? result : append(j, &record, from, to, NULL) ? 0 : -ENOSPC;
}

static long before_new_name(struct work *w, struct journal *j, int directory_argument, size_t which)
{
    char path[PATH_LIMIT];
    struct stat st;
    return name_of(w, directory_argument, which, path) && lstat(path, &st) < 0 ? save_made(j, path) : 0;
}

static long before_removal(struct work *w, struct journal *j)
{
    char path[PATH_LIMIT];
    return name_of(w, 0, 0, path) ? save_removed(j, directory_of(w, 0), string_at(w, 0), path) : 0;
}

static long before_status(struct work *w, struct journal *j, bool descriptor)
{
    char path[PATH_LIMIT];
    struct stat st;
    if (descriptor) {
        int real = real_of(w->session, w->head.arguments[0]);
        return real >= 0 && fstat(real, &st) == 0 && st.st_nlink && path_of(real, path) ? save_status(j, path, &st) : 0;
    }
    return name_of(w, 0, 0, path) && stat(path, &st) == 0 ? save_status(j, path, &st) : 0;
}

static long before_truncation(struct work *w, struct journal *j)
{
    int real = real_of(w->session, w->head.arguments[0]);
    if (w->head.call == __NR_truncate) {
        char path[PATH_LIMIT];
        real = name_of(w, -1, 0, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
        long result = before_descriptor(w, j, real, 0, UINT64_MAX);
        if (real >= 0)
            close(real);
        return result;
    }
    uint64_t from = w->head.call == __NR_ftruncate ? (uint64_t)w->head.arguments[1] : 0;
    return before_descriptor(w, j, real, from, UINT64_MAX);
}

static int written_handle(const struct work *w)
{
    struct file **held = handle_of(w->session, w->head.arguments[0]);
    struct file *file = held ? *held : file_of(w->session, w->head.arguments[0]);
    return file ? file->real : -1;
}

static long before(struct work *w, struct journal *j)
{
    struct session *s = w->session;
    const int64_t *a = w->head.arguments;
    switch (w->head.call) {
    case __NR_write: return before_write(w, j, real_of(s, a[0]), false);
    case __NR_pwrite64: return before_write(w, j, written_handle(w), true);
    case __NR_openat: return before_open(w, j);
    case __NR_ftruncate: case __NR_truncate: case __NR_fallocate: return before_truncation(w, j);
    case __NR_sendfile: return before_descriptor(w, j, real_of(s, a[0]), 0, UINT64_MAX);
    case __NR_copy_file_range: return before_descriptor(w, j, real_of(s, a[2]), 0, UINT64_MAX);
    case __NR_ioctl:
        return a[1] == 0x40049409 ? before_descriptor(w, j, real_of(s, a[0]), 0, UINT64_MAX) : 0;
    case __NR_unlinkat: return before_removal(w, j);
    case __NR_renameat: case __NR_renameat2: return before_rename(w, j);
    case __NR_linkat: return before_new_name(w, j, 2, 1);
    case __NR_symlinkat: return before_new_name(w, j, 1, 1);
    case __NR_mkdirat: case __NR_mknodat: return before_new_name(w, j, 0, 0);
    case __NR_fchmodat: case __NR_fchownat: case __NR_utimensat: case __NR_futimesat:
        return before_status(w, j, a[0] != AT_FDCWD && a[1] == 0);
    case __NR_fchmod: case __NR_fchown: return before_status(w, j, true);
    default: return 0;
    }
}

static long before_alone(struct work *w, struct journal *j)
{
    pthread_mutex_lock(&j->lock);
    long result = before(w, j);
    pthread_mutex_unlock(&j->lock);
    return result;
}

/* A pool's disk is full: the program, which must not hear of a disk that is not its own, waits until there is
 * room.  With its channel it ends, and so does the session, before anything is changed. */
static long wait_for_room(struct work *w, struct journal *j)
{
    enum { MOMENT_MS = 1000, PEER_GONE = 0x2000 /* POLLRDHUP */ };
    struct session *s = w->session;
    tell(s->root, SHADOW_NO_IMAGE, ENOSPC, 0, "no room to note what the program changes: it waits");
    for (;;) {
        struct pollfd channel = {.fd = s->channel, .events = PEER_GONE};
        if (poll(&channel, 1, MOMENT_MS) > 0) {
            s->over = true;
            return -ENOSPC;
        }
        long result = before_alone(w, j);
        if (result != -ENOSPC)
            return result;
    }
}

/* Called before every call. An error means that the change could not be undone, so it must not be made. */
long journal_before(struct work *w)
{
    struct session *root = w->session->root;
    struct journal *j = root->journal;
    if (!j || w->again)
        return 0;
    long result = before_alone(w, j);
    return result == -ENOSPC && root->task.journal == JOURNAL_FROM_START ? wait_for_room(w, j) : result;
}

/* A file that openat has just made needs no saving from now on. */
void journal_after(struct work *w, long result)
{
    struct journal *j = w->session->root->journal;
    struct stat st;
    int real = j && result >= 0 && w->head.call == __NR_openat ? real_of(w->session, result) : -1;
    if (real < 0 || !(w->head.arguments[2] & O_CREAT) || fstat(real, &st) < 0 || !S_ISREG(st.st_mode))
        return;
    pthread_mutex_lock(&j->lock);
    if (st.st_size == 0 && !*find(j, &st) && w->made_now)
        know(j, &st, true);
    pthread_mutex_unlock(&j->lock);
}
