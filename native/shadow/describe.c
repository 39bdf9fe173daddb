/* The open files of a program as bytes, for its checkpoint, and back.
 *
 * The bytes travel inside the image and are hostile when they come back.  A file is described once and may
 * have several descriptors.  Ordinary files are opened again by name at their position; what has no name
 * (deleted files, pipes, socket pairs) is saved with its content, event counters, timers and epoll sets
 * with their state.
 */
#include "session.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { DESCRIBED_MAGIC = 0x46534443, MAX_CONTENT = 1 << 20, MAX_NAMELESS = MAX_BLOB, PIECE = 1 << 16 };

struct described {
    uint32_t magic, files, entries, handles;
    uint32_t umask, directory_size;
    uint64_t generation; /* of the image, and of the journal that leads back to it */
};

struct described_file {
    uint8_t kind, end, wants_nonblocking;
    uint8_t sparse; /* the content is the size of a file, and what it has besides zeros */
    uint32_t number;
    int32_t flags;
    uint32_t mode;
    int64_t offset; /* or the event counter, or the timer's clock */
    uint32_t path_size, content_size;
};

struct described_entry {
    uint32_t descriptor, file, closes_on_exec;
};

/* One member of an epoll set, and the setting of a timer: content of their files. */
struct described_interest {
    uint32_t file, events;
    uint64_t data;
};

/* A piece of a sparse file; its bytes follow. */
struct described_piece {
    int64_t at, size;
};

struct list {
    struct file *files[MAX_FILES + MAX_HANDLES];
    uint32_t count;
};

/* ---- describing */

static uint32_t index_in(struct list *list, struct file *file)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->files[i] == file)
            return i;
    list->files[list->count] = file;
    return list->count++;
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

/* What lies in a pipe is copied without being taken out. */
static ssize_t pipe_content(int real, uint8_t *to, size_t room)
{
    int copy[2];
    if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    fcntl(copy[1], F_SETPIPE_SZ, fcntl(real, F_GETPIPE_SZ));
    ssize_t size = 0, got;
    if (tee(real, copy[1], room, SPLICE_F_NONBLOCK) > 0)
        while ((got = read(copy[0], to + size, room - (size_t)size)) > 0)
            size += got;
    close(copy[0]);
    close(copy[1]);
    return size;
}

/* Returns what it took of TO: nothing for zeros. */
static ssize_t read_piece(int real, int64_t at, int64_t size, uint8_t *to, size_t room)
{
    struct described_piece piece = {at, size};
    if (room < sizeof piece + (size_t)size)
        return -EFBIG;
    ssize_t got = pread(real, to + sizeof piece, (size_t)size, at);
    if (got != size)
        return got < 0 ? -errno : -EIO;
    memcpy(to, &piece, sizeof piece);
    to += sizeof piece;
    return to[0] || memcmp(to, to + 1, (size_t)size - 1) ? (ssize_t)(sizeof piece + (size_t)size) : 0;
}

/* Opened once more: the program's descriptor may be for writing only, and its position is not to move. */
static ssize_t nameless_content(const char *link, int64_t size, uint8_t *to, size_t room)
{
    int real = open(link, O_RDONLY | O_CLOEXEC);
    if (real < 0)
        return -errno;
    ssize_t used = sizeof size, got = 0;
    int64_t at = 0, end = 0;
    memcpy(to, &size, sizeof size);
    while (got >= 0 && (at < end || (at = lseek(real, at, SEEK_DATA)) >= 0)) {
        if (at >= end)
            end = lseek(real, at, SEEK_HOLE);
        int64_t next = end - at < PIECE ? end : at + PIECE;
        got = read_piece(real, at, next - at, to + used, room - (size_t)used);
        used += got;
        at = next;
    }
    close(real);
    return got < 0 ? got : used;
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

static ssize_t content_of(struct list *list, struct file *file, struct described_file *d, uint8_t *to, size_t room)
{
    struct itimerspec setting;
    switch (file->kind) {
    case FILE_PIPE: return file->end == 0 ? pipe_content(file->real, to, room) : 0;
    case FILE_PAIR: {
        ssize_t got = recv(file->real, to, room, MSG_PEEK | MSG_DONTWAIT);
        return got < 0 ? 0 : got;
    }
    case FILE_EVENT: d->offset = fdinfo_value(file->real, "eventfd-count:", "%llx"); return 0;
    case FILE_EPOLL: return epoll_content(list, file, to, room);
    case FILE_TIMER:
        d->offset = fdinfo_value(file->real, "clockid:", "%llu");
        if (timerfd_gettime(file->real, &setting) < 0)
            return -errno;
        memcpy(to, &setting, sizeof setting);
        return sizeof setting;
    default: return 0;
    }
}

static long describe_file(struct work *w, struct list *list, struct file *file)
{
    char link[64], path[PATH_LIMIT] = {0};
    struct stat st;
    if (file->late_error) /* not told yet: an image would not know of it */
        return -file->late_error;
    if (fstat(file->real, &st) < 0)
        return -errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->real);
    ssize_t length = readlink(link, path, sizeof path - 1);
    bool nameless = file->kind == FILE_TEXT || (file->kind == FILE_PLAIN && S_ISREG(st.st_mode) && st.st_nlink == 0);
    const size_t room = nameless ? MAX_NAMELESS : MAX_CONTENT;
    struct described_file d = {.kind = nameless ? FILE_TEXT : file->kind, .end = file->end, .sparse = nameless,
                               .wants_nonblocking = file->wants_nonblocking, .number = file->number,
                               .flags = file->flags, .mode = st.st_mode};
    off_t offset = file->regular ? lseek(file->real, 0, SEEK_CUR) : 0;
    d.offset = offset < 0 ? 0 : offset;
    uint8_t *content = malloc(room);
    ssize_t size = !content   ? -ENOMEM
                   : nameless ? nameless_content(link, st.st_size, content, room)
                              : content_of(list, file, &d, content, room);
    if (size >= 0) {
        d.path_size = file->kind == FILE_PLAIN && !nameless && length > 0 ? (uint32_t)length + 1 : 0;
        d.content_size = (uint32_t)size;
        if (!append(w, &d, sizeof d) || !append(w, path, d.path_size) || !append(w, content, d.content_size))
            size = -EFBIG;
    }
    free(content);
    return size < 0 ? size : 0;
}

long serve_describe(struct work *w)
{
    struct session *s = w->session;
    struct list *list = calloc(1, sizeof *list);
    struct described head = {.magic = DESCRIBED_MAGIC, .generation = journal_new_generation()};
    char directory[PATH_LIMIT];
    if (!list)
        return -ENOMEM;
    if (w->head.arguments[0] < 0 || w->head.arguments[0] > MAX_BLOB || !getcwd(directory, sizeof directory)) {
        free(list);
        return -EINVAL;
    }
    for (int i = 0; i < MAX_FILES; i++)
        if (s->entries[i].file)
            index_in(list, s->entries[i].file), head.entries++;
    for (int i = 0; i < MAX_HANDLES; i++)
        if (s->handles[i])
            index_in(list, s->handles[i]), head.handles++;
    head.files = list->count;
    head.umask = umask(0);
    umask(head.umask);
    head.directory_size = (uint32_t)strlen(directory) + 1;
    long result = append(w, &head, sizeof head) && append(w, directory, head.directory_size) ? 0 : -EFBIG;
    for (uint32_t i = 0; i < head.files && !result; i++)
        result = describe_file(w, list, list->files[i]);
    for (int i = 0; i < MAX_FILES + MAX_HANDLES && !result; i++) {
        struct file *file = i < MAX_FILES ? s->entries[i].file : s->handles[i - MAX_FILES];
        struct described_entry one = {(uint32_t)i, file ? index_in(list, file) : 0,
                                      i < MAX_FILES && s->entries[i].closes_on_exec};
        if (file && !append(w, &one, sizeof one))
            result = -EFBIG;
    }
    free(list);
    s->generation = head.generation;
    if (result)
        tell(s, SHADOW_NO_IMAGE, -result, 0, "the open files cannot be described");
    return result ? result : (long)w->out_used;
}

/* ---- adopting */

struct reader {
    const uint8_t *at, *end;
};

static const void *take(struct reader *r, size_t size)
{
    if ((size_t)(r->end - r->at) < size)
        return NULL;
    const void *found = r->at;
    r->at += size;
    return found;
}

static int reopen_plain(const struct session *s, const struct described_file *d, const char *path)
{
    int flags = d->flags & ~(O_CREAT | O_EXCL | O_TRUNC);
    int real = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    long refused = real < 0 || (flags & O_PATH) ? 0 : check_proc(real, flags);
    if (real >= 0 && !may_have(s, real, (flags & O_ACCMODE) != O_RDONLY))
        refused = -EACCES;
    if (refused || (real >= 0 && d->offset && lseek(real, d->offset, SEEK_SET) < 0)) {
        int error = refused ? (int)-refused : errno;
        close(real);
        errno = error;
        return -1;
    }
    return real;
}

static bool write_pieces(int real, const uint8_t *from, size_t left)
{
    int64_t size;
    struct described_piece piece;
    if (left < sizeof size)
        return false;
    memcpy(&size, from, sizeof size);
    if (ftruncate(real, size) < 0)
        return false;
    for (from += sizeof size, left -= sizeof size; left; from += piece.size, left -= (size_t)piece.size) {
        if (left < sizeof piece)
            return false;
        memcpy(&piece, from, sizeof piece);
        from += sizeof piece;
        left -= sizeof piece;
        if (piece.at < 0 || piece.size < 0 || piece.at > size || (uint64_t)piece.size > left ||
            piece.size > size - piece.at || pwrite(real, from, (size_t)piece.size, piece.at) != piece.size)
            return false;
    }
    return true;
}

static int reopen_nameless(const struct described_file *d, const void *content)
{
    int real = memfd_create("restored", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (real < 0)
        return -1;
    bool whole = d->sparse ? write_pieces(real, content, d->content_size)
                           : write(real, content, d->content_size) == (ssize_t)d->content_size;
    if (!whole || lseek(real, d->offset, SEEK_SET) < 0) {
        close(real);
        return -1;
    }
    if (d->flags & O_APPEND)
        fcntl(real, F_SETFL, O_APPEND);
    return real;
}

/* Both ends of a pipe or pair are made when the first is met; ends that nobody has are closed later. */
struct pairs {
    struct pair {
        uint32_t number;
        int real[2];
    } list[512];
    size_t count;
};

static struct pair *pair_of(struct pairs *pairs, const struct described_file *d)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->list[i].number == d->number)
            return &pairs->list[i];
    if (pairs->count == 512)
        return NULL;
    struct pair *pair = &pairs->list[pairs->count];
    int failed = d->kind == FILE_PIPE
                     ? pipe2(pair->real, O_CLOEXEC | O_NONBLOCK)
                     : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair->real);
    if (failed)
        return NULL;
    pair->number = d->number;
    pairs->count++;
    return pair;
}

static int reopen_end(struct pairs *pairs, const struct described_file *d, const void *content)
{
    struct pair *pair = d->end > 1 ? NULL : pair_of(pairs, d);
    if (!pair || pair->real[d->end] < 0)
        return -1;
    int other = d->kind == FILE_PIPE ? pair->real[1] : pair->real[!d->end];
    int own = dup(pair->real[d->end]);
    fcntl(own, F_SETFD, FD_CLOEXEC);
    if (d->content_size && d->kind == FILE_PIPE)
        fcntl(other, F_SETPIPE_SZ, 1 << 20);
    if (d->content_size && write(other, content, d->content_size) != (ssize_t)d->content_size) {
        close(own);
        return -1;
    }
    return own;
}

static int reopen(struct session *s, struct pairs *pairs, const struct described_file *d, const char *path,
                  const void *content)
{
    struct itimerspec setting;
    int real;
    switch (d->kind) {
    case FILE_PLAIN: return path ? reopen_plain(s, d, path) : (errno = EINVAL, -1);
    case FILE_TEXT: return reopen_nameless(d, content);
    case FILE_STANDARD:
        return d->number < 3 && s->task.standard[d->number] >= 0
                   ? fcntl(s->task.standard[d->number], F_DUPFD_CLOEXEC, 3)
                   : open("/dev/null", O_RDWR | O_CLOEXEC);
    case FILE_PIPE:
    case FILE_PAIR: return reopen_end(pairs, d, content);
    case FILE_EVENT:
        return eventfd((unsigned)d->offset, EFD_CLOEXEC | EFD_NONBLOCK | (d->flags & EFD_SEMAPHORE));
    case FILE_EPOLL: return epoll_create1(EPOLL_CLOEXEC);
    case FILE_TIMER:
        real = timerfd_create((int)d->offset, TFD_CLOEXEC | TFD_NONBLOCK);
        if (real >= 0 && d->content_size == sizeof setting) {
            memcpy(&setting, content, sizeof setting);
            timerfd_settime(real, 0, &setting, NULL);
        }
        return real;
    default: errno = EINVAL; return -1;
    }
}

static struct file *adopt_file(struct session *s, struct pairs *pairs, const struct described_file *d,
                               const char *path, const void *content)
{
    int real = reopen(s, pairs, d, path, content);
    struct file *file = real < 0 ? NULL : file_new(real, d->flags);
    if (!file) {
        char text[200];
        snprintf(text, sizeof text, "%s cannot be opened again", path ? path : "a nameless file");
        tell(s, SHADOW_BROKEN, errno, 0, text);
        return NULL;
    }
    file->kind = d->kind;
    file->end = d->end;
    file->number = d->number;
    file->wants_nonblocking = d->wants_nonblocking;
    file->inherited = d->kind == FILE_STANDARD;
    if (file->inherited)
        file->nonblocking = fcntl(real, F_GETFL) & O_NONBLOCK;
    return file;
}

static void adopt_interests(struct file **files, uint32_t count, const struct described_file *d,
                            const struct file *set, const uint8_t *content)
{
    for (size_t at = 0; at + sizeof(struct described_interest) <= d->content_size;
         at += sizeof(struct described_interest)) {
        struct described_interest one;
        memcpy(&one, content + at, sizeof one);
        struct epoll_event event = {.events = one.events, .data.u64 = one.data};
        if (set && one.file < count && files[one.file])
            epoll_ctl(set->real, EPOLL_CTL_ADD, files[one.file]->real, &event);
    }
}

static long adopt_files(struct session *s, struct reader *r, struct file **files, uint32_t count)
{
    struct pairs *pairs = calloc(1, sizeof *pairs);
    const struct described_file **described = calloc(count + 1, sizeof *described);
    const uint8_t **contents = calloc(count + 1, sizeof *contents);
    long result = pairs && described && contents ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < count && !result; i++) {
        struct described_file copy;
        const void *d = take(r, sizeof copy);
        if (!d) {
            result = -EPROTO;
            break;
        }
        memcpy(&copy, d, sizeof copy);
        const char *path = copy.path_size ? take(r, copy.path_size) : NULL;
        const uint8_t *content = take(r, copy.content_size);
        if (!content || (copy.path_size && (!path || path[copy.path_size - 1]))) {
            result = -EPROTO;
            break;
        }
        described[i] = d;
        contents[i] = content;
        files[i] = adopt_file(s, pairs, &copy, path, content);
        if (!files[i])
            result = errno ? -errno : -EIO;
    }
    for (uint32_t i = 0; i < count && !result; i++) {
        struct described_file copy;
        memcpy(&copy, described[i], sizeof copy);
        if (copy.kind == FILE_EPOLL)
            adopt_interests(files, count, &copy, files[i], contents[i]);
    }
    for (size_t i = 0; pairs && i < pairs->count; i++) {
        close(pairs->list[i].real[0]);
        close(pairs->list[i].real[1]);
    }
    free(pairs);
    free(described);
    free(contents);
    return result;
}

static long adopt_entries(struct session *s, struct reader *r, struct file **files, const struct described *head)
{
    for (uint32_t i = 0; i < head->entries + head->handles; i++) {
        struct described_entry one;
        const void *from = take(r, sizeof one);
        if (!from)
            return -EPROTO;
        memcpy(&one, from, sizeof one);
        if (one.descriptor >= MAX_FILES + MAX_HANDLES || one.file >= head->files)
            return -EPROTO;
        file_keep(files[one.file]);
        if (one.descriptor < MAX_FILES) {
            close_entry(s, one.descriptor);
            s->entries[one.descriptor] = (struct entry){files[one.file], one.closes_on_exec};
        } else if (s->handles[one.descriptor - MAX_FILES]) {
            file_drop(files[one.file]);
            return -EPROTO;
        } else {
            s->handles[one.descriptor - MAX_FILES] = files[one.file];
        }
    }
    return 0;
}

long serve_adopt(struct work *w)
{
    struct session *s = w->session;
    struct reader r = {w->payload, w->payload + w->head.size};
    struct described head;
    const void *from = take(&r, sizeof head);
    if (!from)
        return -EPROTO;
    memcpy(&head, from, sizeof head);
    const char *directory = take(&r, head.directory_size);
    if (head.magic != DESCRIBED_MAGIC || head.files > MAX_FILES + MAX_HANDLES || head.entries > MAX_FILES ||
        head.handles > MAX_HANDLES || !directory || !head.directory_size || directory[head.directory_size - 1])
        return -EPROTO;
    long gone_back = journal_apply(s, head.generation); /* a copied image has no journal beside it */
    if (gone_back && gone_back != -ENOENT)
        return gone_back;
    if (chdir(directory) < 0)
        return -errno;
    int here = open(".", O_PATH | O_CLOEXEC);
    bool allowed = here >= 0 && may_have(s, here, false);
    close(here);
    if (!allowed)
        return -EACCES;
    umask(head.umask & 0777);
    for (int i = 0; i < 3; i++)
        close_entry(s, i);
    struct file **files = calloc(head.files + 1, sizeof *files);
    if (!files)
        return -ENOMEM;
    long result = adopt_files(s, &r, files, head.files);
    if (!result)
        result = adopt_entries(s, &r, files, &head);
    for (uint32_t i = 0; i < head.files; i++)
        if (files[i])
            file_drop(files[i]);
    free(files);
    return result ? result : journal_reset(s, head.generation);
}
