/* Generations of the undo journal, and going back to one: see journal.c. */
#include "journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- generations */

static void remove_copies(struct journal *j)
{
    int again = dup(j->directory);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    struct dirent *entry;
    if (!list)
        return;
    rewinddir(list);
    while ((entry = readdir(list)))
        if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
            unlinkat(j->directory, entry->d_name, 0);
    closedir(list);
}

static long open_directory(struct session *s, bool makes);

static bool read_header(int file, struct header *header)
{
    return pread(file, header, sizeof *header, 0) == sizeof *header && header->magic == JOURNAL_MAGIC;
}

static bool name_directory(const struct session *s, const char *end, char *to)
{
    return snprintf(to, PATH_LIMIT, "%s.undo%s", s->image, end) < PATH_LIMIT;
}

static bool open_places(const char *name, struct journal *j)
{
    j->directory = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    j->file = j->directory < 0 ? -1 : openat(j->directory, "journal", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (j->directory >= 0 && j->file < 0) {
        int error = errno;
        close(j->directory);
        errno = error;
    }
    return j->file >= 0;
}

static void close_places(struct journal *j)
{
    close(j->file);
    close(j->directory);
}

static void drop_places(const char *name)
{
    struct journal old = {0};
    if (access(name, F_OK) == 0 && open_places(name, &old)) {
        remove_copies(&old);
        unlinkat(old.directory, "journal", 0);
        close_places(&old);
    }
    rmdir(name);
}

/* What is in the journal leads from the image before back to the one before that: it is kept for the case that the
 * newest image is damaged. */
static void step_aside(const struct session *s, struct journal *j)
{
    struct header header;
    struct journal fresh = {0};
    char name[PATH_LIMIT], older[PATH_LIMIT];
    if (!read_header(j->file, &header) || !name_directory(s, "", name) || !name_directory(s, ".1", older))
        return;
    drop_places(older);
    if (rename(name, older) < 0)
        return;
    if (mkdir(name, 0700) < 0 || !open_places(name, &fresh)) {
        rmdir(name);
        if (rename(older, name) < 0)
            errno = 0; /* the old one goes on under its other name: the next image finds a way */
        return;
    }
    close_places(j);
    j->directory = fresh.directory;
    j->file = fresh.file;
    j->copies = 0;
}

static long begin_generation(struct journal *j, uint64_t generation)
{
    struct header header = {JOURNAL_MAGIC, 1, generation};
    forget_known(j);
    j->generation = generation;
    long result = ftruncate(j->file, 0) < 0 || pwrite(j->file, &header, sizeof header, 0) != sizeof header ? -errno : 0;
    remove_copies(j);
    return result;
}

/* The journal begins anew: GENERATION's image is what is gone back to.  Before the first image there is
 * none, and nothing is written. */
long journal_reset(struct session *s, uint64_t generation)
{
    long failed = open_directory(s, true);
    struct journal *j = s->journal;
    if (failed || !j)
        return failed;
    pthread_mutex_lock(&j->lock);
    if (generation != j->generation)
        step_aside(s, j);
    long result = begin_generation(j, generation);
    pthread_mutex_unlock(&j->lock);
    return result;
}

uint64_t journal_new_generation(void)
{
    uint64_t generation = 0;
    while (!generation)
        if (getrandom(&generation, sizeof generation, 0) < 0)
            generation = (uint64_t)now_ns();
    return generation;
}

/* Opens (or makes) the directory beside the image. */
static long open_directory(struct session *s, bool makes)
{
    char *name = NULL;
    if (s->journal || !s->image || !s->task.journal)
        return 0;
    struct journal *j = calloc(1, sizeof *j);
    if (!j || asprintf(&name, "%s.undo", s->image) < 0) {
        free(j);
        return -ENOMEM;
    }
    pthread_mutex_init(&j->lock, NULL);
    bool opened = (!makes || mkdir(name, 0700) == 0 || errno == EEXIST) && open_places(name, j);
    long result = -errno;
    free(name);
    if (!opened) {
        free(j);
        return result;
    }
    s->journal = j;
    return 0;
}

/* A program that has ended will not go back: its journal goes with it. */
void journal_close(struct session *s, bool finished)
{
    struct journal *j = s->journal;
    if (!j)
        return;
    if (finished) {
        char *name = NULL;
        remove_copies(j);
        unlinkat(j->directory, "journal", 0);
        if (asprintf(&name, "%s.undo", s->image) >= 0)
            rmdir(name);
        free(name);
        char older[PATH_LIMIT];
        if (name_directory(s, ".1", older))
            drop_places(older);
    }
    forget_known(j);
    close_places(j);
    pthread_mutex_destroy(&j->lock);
    free(j);
    s->journal = NULL;
}

/* ---- going back */

static void bring_back(const struct journal *j, const struct record *r, const char *path, const char *other)
{
    if (S_ISLNK(r->mode)) {
        if (symlink(other, path) < 0)
            return;
    } else if (S_ISDIR(r->mode)) {
        mkdir(path, r->mode & 07777);
    } else if (S_ISREG(r->mode)) {
        struct stat st;
        int from = openat(j->directory, other, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        int to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
        if (from >= 0 && to >= 0 && fstat(from, &st) == 0 && S_ISREG(st.st_mode) && copy_content(from, to))
            fchmod(to, r->mode & 07777);
        if (from >= 0)
            close(from);
        if (to >= 0)
            close(to);
    } else if (S_ISFIFO(r->mode)) {
        mkfifo(path, r->mode & 07777);
    }
}

static void undo_content(const struct record *r, const char *path, const void *data)
{
    int real = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (real < 0)
        return;
    if (r->kind == RECORD_SIZE ? ftruncate(real, (off_t)r->number) < 0
                               : pwrite(real, data, r->data_size, (off_t)r->number) < 0)
        errno = 0; /* the file is another one by now: it stays as it is */
    close(real);
}

static void undo(const struct journal *j, const struct record *r, const char *path, const char *other, const void *data)
{
    struct stat st;
    const struct timespec times[2] = {{r->times[0], r->times[1]}, {r->times[2], r->times[3]}};
    switch (r->kind) {
    case RECORD_SIZE:
    case RECORD_BLOCK: undo_content(r, path, data); break;
    case RECORD_MADE:
        if (lstat(path, &st) == 0 && (S_ISDIR(st.st_mode) ? rmdir(path) : unlink(path)) < 0)
            errno = 0;
        break;
    case RECORD_REMOVED: bring_back(j, r, path, other); break;
    case RECORD_MOVED:
        if (rename(other, path) < 0)
            errno = 0;
        break;
    case RECORD_STATUS:
        if (lchown(path, r->uid, r->gid) < 0)
            errno = 0;
        fchmodat(AT_FDCWD, path, r->mode & 07777, AT_SYMLINK_NOFOLLOW);
        utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
        break;
    default: break;
    }
}

/* Names are looked up once, through no link to what a process has open, and stay what they were then. */
static void undo_pinned(const struct session *s, const struct journal *j, const struct record *r, const char *path,
                        const char *other, const void *data)
{
    char safe_path[PINNED_NAME + PATH_LIMIT], safe_other[PINNED_NAME + PATH_LIMIT];
    int pin = -1, other_pin = -1;
    bool allowed = may_bring_back(s, &path, safe_path, &pin);
    if (allowed && r->kind == RECORD_MOVED)
        allowed = r->other_size && may_bring_back(s, &other, safe_other, &other_pin);
    if (allowed)
        undo(j, r, path, other, data);
    if (pin >= 0)
        close(pin);
    if (other_pin >= 0)
        close(other_pin);
}

/* Applies the records backwards. An incomplete last one was never followed by its change. */
static long go_back(const struct session *s, struct journal *j, const uint8_t *bytes, size_t size)
{
    size_t at = sizeof(struct header), count = 0, room = 1024;
    size_t *starts = malloc(room * sizeof *starts);
    struct record r;
    while (starts && at + sizeof r <= size) {
        memcpy(&r, bytes + at, sizeof r);
        uint64_t rest = (uint64_t)r.path_size + r.other_size;
        if (r.data_size > size || rest + r.data_size > size - at - sizeof r || !r.path_size ||
            bytes[at + sizeof r + r.path_size - 1] ||
            (r.other_size && bytes[at + sizeof r + rest - 1]))
            break;
        if (count == room) {
            size_t *more = realloc(starts, (room *= 2) * sizeof *starts);
            if (!more)
                free(starts);
            starts = more;
            if (!more)
                break;
        }
        starts[count++] = at;
        at += sizeof r + rest + r.data_size;
    }
    if (!starts)
        return -ENOMEM;
    while (count--) {
        memcpy(&r, bytes + starts[count], sizeof r);
        const char *path = (const char *)bytes + starts[count] + sizeof r, *other = path + r.path_size;
        undo_pinned(s, j, &r, path, r.other_size ? other : "", other + r.other_size);
    }
    free(starts);
    return 0;
}

static long apply_all(const struct session *s, struct journal *j)
{
    struct stat st;
    if (fstat(j->file, &st) < 0)
        return -errno;
    if (!st.st_size)
        return 0;
    uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, j->file, 0); /* it may be large */
    if (bytes == MAP_FAILED)
        return -errno;
    long result = go_back(s, j, bytes, (size_t)st.st_size);
    munmap(bytes, (size_t)st.st_size);
    return result;
}

/* The image before the newest is gone back to: first through the newest's journal, then through its own. */
static long apply_both(const struct session *s, struct journal *j, uint64_t generation)
{
    struct header header;
    struct journal old = {0};
    char older[PATH_LIMIT];
    if (!name_directory(s, ".1", older) || access(older, F_OK) < 0 || !open_places(older, &old))
        return -ENOENT;
    long result = read_header(old.file, &header) && header.generation == generation ? 0 : -ENOENT;
    if (!result && read_header(j->file, &header))
        result = apply_all(s, j);
    if (!result)
        result = apply_all(s, &old);
    close_places(&old);
    if (!result)
        drop_places(older);
    return result;
}

/* The program goes on from GENERATION's image: its files become what they were then. Returns 0, -ENOENT when
 * there is no journal of that generation, or another -errno. */
long journal_apply(struct session *s, uint64_t generation)
{
    struct header header;
    long failed = open_directory(s, false);
    struct journal *j = s->journal;
    if (failed)
        return failed;
    if (!j)
        return -ENOENT;
    bool own = read_header(j->file, &header) && header.generation == generation;
    long result = own ? apply_all(s, j) : apply_both(s, j, generation);
    if (!result)
        j->generation = generation; /* what comes next is this one's journal again */
    return result;
}
