/* The open files of a program as bytes, for its checkpoint.
 *
 * A file is described once and may have several descriptors.  Ordinary files will be opened again by name at their
 * position; what has no name (deleted files, pipes, socket pairs) is saved with its content, event counters, timers
 * and epoll sets with their state.  A number at the end of the description tells which files of several members are one.
 */
#include "described.h"
#include "shadow/files/inotify.h"
#include "shadow/ipc/ipc.h"
#include "shadow/sockets/sockets.h"
#include "shadow/terminals/terminals.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { MAX_CONTENT = (1 << 20) + (1 << 16), MAX_NAMELESS = MAX_BLOB };

struct list {
    struct file *files[MOST_DESCRIBED];
    uint32_t count;
    char why[256]; /* one of them cannot be described; empty: something else is wrong */
};

static uint32_t index_in(struct list *list, struct file *file)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->files[i] == file)
            return i;
    list->files[list->count] = file;
    return list->count++;
}

/* The number of a file that is in the list. */
static int number_in(void *list, struct file *file)
{
    const struct list *all = list;
    for (uint32_t i = 0; i < all->count; i++)
        if (all->files[i] == file)
            return (int)i;
    return -1;
}

/* The same of the file that is that inode's, and has no name. */
static int nameless_in(void *list, dev_t device, ino_t inode)
{
    const struct list *all = list;
    struct stat st;
    for (uint32_t i = 0; i < all->count; i++)
        if ((all->files[i]->kind == FILE_PLAIN || all->files[i]->kind == FILE_TEXT) &&
            fstat(all->files[i]->real, &st) == 0 && st.st_dev == device && st.st_ino == inode && st.st_nlink == 0)
            return (int)i;
    return -1;
}

/* A file that no descriptor stands for. Another process could take it meanwhile, so it is kept. */
static bool note_hidden(void *list, struct file *file)
{
    struct list *all = list;
    if (number_in(list, file) >= 0)
        return true;
    if (all->count == MOST_DESCRIBED)
        return false;
    file_keep(file);
    all->files[all->count++] = file;
    return true;
}

static uint8_t *append(struct work *w, const void *from, size_t size)
{
    if (w->out_used + size > (size_t)w->head.arguments[0])
        return NULL;
    uint8_t *to = out_room(w, size);
    if (to && from)
        memcpy(to, from, size);
    return to;
}

/* Lines of /proc/self/fdinfo: "tfd:  N events:  HEX data:  HEX ..." and "eventfd-count: HEX". */
static ssize_t epoll_content(struct list *list, const struct file *set, uint8_t *to, size_t room)
{
    char name[64], line[256];
    size_t used = 0;
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", set->real);
    FILE *info = fopen(name, "re");
    if (!info)
        return -errno;
    while (fgets(line, sizeof line, info)) {
        int fd;
        unsigned events;
        unsigned long long data;
        if (sscanf(line, "tfd: %d events: %x data: %llx", &fd, &events, &data) != 3)
            continue;
        for (uint32_t i = 0; i < list->count; i++)
            if (list->files[i]->real == fd && used + sizeof(struct described_interest) <= room) {
                struct described_interest one = {i, events, data};
                memcpy(to + used, &one, sizeof one);
                used += sizeof one;
            }
    }
    fclose(info);
    return (ssize_t)used;
}

static int64_t fdinfo_value(int real, const char *key, const char *format)
{
    char name[64], line[256];
    unsigned long long value = 0;
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", real);
    FILE *info = fopen(name, "re");
    while (info && fgets(line, sizeof line, info))
        if (strncmp(line, key, strlen(key)) == 0)
            sscanf(line + strlen(key), format, &value);
    if (info)
        fclose(info);
    return (int64_t)value;
}

/* One of the program's files that RECORDS is, for writing if one is; -1: it has none. */
static int locked_by(const struct list *list, const struct file *records)
{
    struct stat st, other;
    int found = -1;
    if (fstat(records->real, &st) < 0)
        return -1;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct file *file = list->files[i];
        const bool writes = (file->flags & O_ACCMODE) != O_RDONLY;
        if (file->kind == FILE_RECORDS || (file->flags & O_PATH) || (found >= 0 && !writes))
            continue;
        if (fstat(file->real, &other) == 0 && other.st_dev == st.st_dev && other.st_ino == st.st_ino) {
            found = (int)i;
            if (writes)
                break;
        }
    }
    return found;
}

static ssize_t watches_content(struct work *w, struct list *list, struct inotify *in, uint8_t *to, size_t room)
{
    const char *lost = NULL;
    ssize_t size = inotify_described(w->session, in, to, room, &lost, nameless_in, list);
    if (lost)
        snprintf(list->why, sizeof list->why, "%.200s: it is watched, and has that name no longer", lost);
    return size;
}

static ssize_t terminal_content(struct list *list, struct file *file, uint8_t *to, size_t room)
{
    const char *why = NULL;
    ssize_t size = terminal_described(file, to, room, &why);
    if (why)
        snprintf(list->why, sizeof list->why, "%.200s", why);
    return size;
}

static ssize_t content_of(struct work *w, struct list *list, struct file *file, struct described_file *d, uint8_t *to,
                          size_t room)
{
    struct itimerspec setting;
    struct stat st;
    switch (file->kind) {
    case FILE_PIPE: return end_content(file->real, d, to, room);
    case FILE_SOCKET: return socket_described(file, d, to, room, number_in, list);
    case FILE_EVENT: d->offset = fdinfo_value(file->real, "eventfd-count:", "%llx"); return 0;
    case FILE_SIGNALS: d->offset = (int64_t)file->signals; return 0;
    case FILE_QUEUE: d->offset = file->queue->base.id; return 0;
    case FILE_PROCESS: d->offset = process_described(file); return 0;
    case FILE_EPOLL: return epoll_content(list, file, to, room);
    case FILE_INOTIFY: return watches_content(w, list, file->inotify, to, room);
    case FILE_TERMINAL: return terminal_content(list, file, to, room);
    case FILE_OWNERS: return (ssize_t)owners_described(list->files, list->count, to, room);
    case FILE_IPC: return ipc_described(w->session->ipc, to, room, number_in, list);
    case FILE_TIMER:
        d->offset = fdinfo_value(file->real, "clockid:", "%llu");
        if (timerfd_gettime(file->real, &setting) < 0)
            return -errno;
        memcpy(to, &setting, sizeof setting);
        return sizeof setting;
    case FILE_RECORDS:
        d->number = (uint32_t)locked_by(list, file);
        return locks_content(file->real, to, room);
    case FILE_PLAIN:
        d->number = file->has_records;
        if (d->sparse || (S_ISFIFO(d->mode) && !(file->flags & O_PATH)))
            return fstat(file->real, &st) < 0 ? -errno : unlinked_content(file->real, d, &st, to, room);
        return file->regular ? locks_content(file->real, to, room) : 0;
    default: return 0;
    }
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* A file whose name was removed may have another one in the same directory: then PATH becomes that. Returns whether. */
static bool found_beside(char path[PATH_LIMIT], const struct stat *st)
{
    enum { MOST_NAMES = 65536 };
    char *name = strrchr(path, '/');
    struct stat named;
    bool found = false;
    if (!name || st->st_nlink < 1)
        return false;
    name++;
    const size_t room = (size_t)(path + PATH_LIMIT - name);
    const char first = *name;
    *name = 0;
    DIR *directory = opendir(path);
    *name = first;
    const struct dirent *one;
    for (int i = 0; directory && !found && i < MOST_NAMES && (one = readdir(directory)); i++) {
        found = one->d_ino == st->st_ino && strlen(one->d_name) < room &&
                fstatat(dirfd(directory), one->d_name, &named, AT_SYMLINK_NOFOLLOW) == 0 && is_same(&named, st);
        if (found)
            strcpy(name, one->d_name);
    }
    if (directory)
        closedir(directory);
    return found;
}

/* What a restart would not find again by its name, or not with what is in it. Returns 0 or -errno. */
static long cannot_return(struct list *list, const struct file *file, const struct stat *st, char path[PATH_LIMIT])
{
    struct stat named;
    const bool is_link = S_ISLNK(st->st_mode);
    if (file->kind != FILE_PLAIN || !(S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISFIFO(st->st_mode) || is_link) ||
        strncmp(path, "/proc/", 6) == 0)
        return 0;
    const bool is_there = (is_link ? lstat(path, &named) : stat(path, &named)) == 0 && is_same(&named, st);
    if (!is_there && !found_beside(path, st)) {
        snprintf(list->why, sizeof list->why, "%.200s: it is open, and has that name no longer", path);
        return -ESTALE;
    }
    const int mode = (file->flags & O_PATH)                      ? F_OK
                     : (file->flags & O_ACCMODE) == O_RDWR       ? R_OK | W_OK
                     : (file->flags & O_ACCMODE) == O_WRONLY     ? W_OK
                                                                 : R_OK;
    if (st->st_uid != geteuid() && faccessat(AT_FDCWD, path, mode, AT_EACCESS) < 0) {
        snprintf(list->why, sizeof list->why, "%.200s: it is open, and may not be opened so any more", path);
        return -EACCES;
    }
    return 0;
}

static long describe_file(struct work *w, struct list *list, struct file *file)
{
    char link[64], path[PATH_LIMIT] = {0};
    struct stat st;
    if (file->late_error || w->session->lost_write) /* not told yet: an image would not know of it */
        return -(file->late_error ? file->late_error : w->session->lost_write);
    if (fstat(file->real, &st) < 0)
        return -errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->real);
    ssize_t length = readlink(link, path, sizeof path - 1);
    bool nameless = file->kind == FILE_TEXT || (file->kind == FILE_PLAIN && S_ISREG(st.st_mode) && st.st_nlink == 0);
    const bool gone = file->kind == FILE_PLAIN && is_gone(&st);
    long missing = nameless || gone ? 0 : cannot_return(list, file, &st, path);
    if (missing)
        return missing;
    char *slash = nameless && (file->flags & (O_TMPFILE | O_EXCL)) == O_TMPFILE ? strrchr(path, '/') : NULL;
    if (slash) /* it may be given a name yet: where it is */
        slash[slash == path] = 0;
    length = (ssize_t)strlen(path);
    const int seals = nameless ? fcntl(file->real, F_GET_SEALS) : -1;
    const size_t room = nameless || file->inotify || file->kind == FILE_IPC ? MAX_NAMELESS : MAX_CONTENT;
    struct described_file d = {.kind = nameless ? FILE_TEXT : file->kind, .end = file->end, .sparse = nameless ? 2 : gone,
                               .wants_nonblocking = file->wants_nonblocking,
                               .number = nameless ? (uint32_t)(seals + 1) : file->number, .flags = file->flags,
                               .mode = st.st_mode};
    off_t offset = file->regular ? lseek(file->real, 0, SEEK_CUR) : 0;
    d.offset = offset < 0 ? 0 : offset;
    uint8_t *content = malloc(room);
    ssize_t size = !content   ? -ENOMEM
                   : nameless ? nameless_content(link, &st, content, room)
                              : content_of(w, list, file, &d, content, room);
    if (size >= 0 && file->socket) {
        length = (ssize_t)socket_path(file->socket, path, sizeof path);
        d.path_size = length ? (uint32_t)length + 1 : 0;
    }
    if (size >= 0) {
        const bool named = (file->kind == FILE_PLAIN || file->kind == FILE_RECORDS) && (!nameless || slash) && length > 0;
        d.path_size = file->socket ? d.path_size : named ? (uint32_t)length + 1 : 0;
        d.content_size = (uint32_t)size;
        if (!append(w, &d, sizeof d) || !append(w, path, d.path_size) || !append(w, content, d.content_size))
            size = -EFBIG;
    }
    free(content);
    return size < 0 ? size : 0;
}

/* A file that says who gets the signals of the others, if anybody does. False: there is no room. */
static bool note_owners(struct list *list)
{
    bool any = false;
    for (uint32_t i = 0; i < list->count && !any; i++)
        any = list->files[i]->owner || (list->files[i]->flags & O_ASYNC);
    struct file *file = any ? file_new(eventfd(0, EFD_CLOEXEC), O_RDWR) : NULL;
    if (!file)
        return !any;
    file->kind = FILE_OWNERS;
    const bool fits = note_hidden(list, file);
    file_drop(file);
    return fits;
}

/* A family's semaphores, message queues and shared memory are in its first process's description. False: there is no room. */
static bool note_ipc(struct session *s, struct list *list)
{
    if (s->root != s || !s->ipc)
        return true;
    struct file *file = file_new(eventfd(0, EFD_CLOEXEC), O_RDWR);
    if (!file)
        return false;
    file->kind = FILE_IPC;
    const bool fits = ipc_files(s->ipc, note_hidden, list) && note_hidden(list, file);
    file_drop(file);
    return fits;
}

/* The file of a descriptor, a handle or a place among the locked ones. */
static struct file *file_at(const struct session *s, int place)
{
    return place < MAX_FILES      ? s->entries[place].file
           : place < FIRST_LOCKED ? s->handles[place - MAX_FILES]
                                  : s->locked[place - FIRST_LOCKED].file;
}

/* Where the program is. What has no name any more is one of the files: then that one's number. False: there is no room. */
static bool note_directory(struct list *list, char to[PATH_LIMIT])
{
    if (getcwd(to, PATH_LIMIT) || errno != ENOENT)
        return to[0];
    struct file *file = file_new(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), O_PATH | O_DIRECTORY);
    const bool fits = file && note_hidden(list, file);
    if (fits)
        snprintf(to, PATH_LIMIT, "%c%d", NUMBER_OF_DIRECTORY, number_in(list, file));
    if (file)
        file_drop(file);
    return fits;
}

long serve_describe(struct work *w)
{
    struct session *s = w->session;
    struct list *list = calloc(1, sizeof *list);
    struct described head = {.magic = DESCRIBED_MAGIC, .generation = journal_new_generation()};
    char directory[PATH_LIMIT] = {0};
    if (!list)
        return -ENOMEM;
    if (w->head.arguments[0] < 0 || w->head.arguments[0] > MAX_BLOB) {
        free(list);
        return -EINVAL;
    }
    for (int i = 0; i < MAX_FILES; i++)
        if (s->entries[i].file)
            index_in(list, s->entries[i].file), head.entries++;
    for (int i = 0; i < MAX_HANDLES; i++)
        if (s->handles[i])
            index_in(list, s->handles[i]), head.handles++;
    for (int i = 0; i < MOST_LOCKED; i++)
        if (s->locked[i].file && locked_by(list, s->locked[i].file) >= 0)
            index_in(list, s->locked[i].file), head.handles++;
    const uint32_t seen = list->count;
    bool fits = true;
    for (uint32_t i = 0; i < list->count && fits; i++)
        fits = gather_hidden(list->files[i], note_hidden, list);
    fits = fits && note_ipc(s, list) && note_directory(list, directory) && note_owners(list);
    head.files = list->count;
    head.umask = umask(0);
    umask(head.umask);
    head.directory_size = (uint32_t)strlen(directory) + 1;
    long result = append(w, &head, sizeof head) && append(w, directory, head.directory_size) && fits ? 0 : -EFBIG;
    for (uint32_t i = 0; i < head.files && !result; i++)
        result = describe_file(w, list, list->files[i]);
    for (int i = 0; i < MOST_DESCRIBED && !result; i++) {
        struct file *file = file_at(s, i);
        const int number = file ? number_in(list, file) : -1;
        struct described_entry one = {(uint32_t)i, (uint32_t)number, i < MAX_FILES && s->entries[i].closes_on_exec};
        if (number >= 0 && !append(w, &one, sizeof one))
            result = -EFBIG;
    }
    for (uint32_t i = 0; i < head.files && !result; i++)
        if (!append(w, &list->files[i]->id, sizeof list->files[i]->id))
            result = -EFBIG;
    s->generation = head.generation;
    if (result)
        tell(s->root, SHADOW_NO_IMAGE, -result, 0, list->why[0] ? list->why : "the open files cannot be described");
    for (uint32_t i = seen; i < list->count; i++)
        file_drop(list->files[i]);
    free(list);
    return result ? result : (long)w->out_used;
}
