/* The open files of a restarted program, from the bytes that describe.c made of them.
 *
 * They travelled inside the image, and are hostile.
 */
#include "described.h"
#include "shadow/files/inotify.h"
#include "shadow/ipc/ipc.h"
#include "shadow/sockets/sockets.h"
#include "shadow/terminals/terminals.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* What members of a family have in common until all are back: each file is opened once. */
struct adopted {
    struct pairs *pairs;
    struct unlinked *unlinked;
    struct {
        uint64_t id;
        struct file *file;
    } *files;
    size_t count;
};

static pthread_mutex_t adopting = PTHREAD_MUTEX_INITIALIZER; /* members come back side by side */

void adopted_forget(struct session *root)
{
    pthread_mutex_lock(&adopting);
    struct adopted *all = root->adopted;
    root->adopted = NULL;
    for (size_t i = 0; all && i < all->count; i++)
        file_drop(all->files[i].file);
    if (all) {
        pairs_drop(all->pairs);
        unlinked_drop(all->unlinked);
        free(all->files);
    }
    free(all);
    pthread_mutex_unlock(&adopting);
    terminals_settled(root);
}

static bool adopted_begin(struct session *root) REQUIRES(adopting);
static bool adopted_begin(struct session *root)
{
    if (root->adopted)
        return true;
    struct adopted *all = calloc(1, sizeof *all);
    if (all && (!(all->pairs = pairs_new()) || !(all->unlinked = unlinked_new()))) {
        pairs_drop(all->pairs);
        free(all);
        all = NULL;
    }
    root->adopted = all;
    return all;
}

/* The file of that number, if another member has it already. */
static struct file *adopted_file(struct session *root, uint64_t id) REQUIRES(adopting);
static struct file *adopted_file(struct session *root, uint64_t id)
{
    const struct adopted *all = root->adopted;
    for (size_t i = 0; id && i < all->count; i++)
        if (all->files[i].id == id) {
            file_keep(all->files[i].file);
            return all->files[i].file;
        }
    return NULL;
}

static bool adopted_note(struct session *root, uint64_t id, struct file *file) REQUIRES(adopting);
static bool adopted_note(struct session *root, uint64_t id, struct file *file)
{
    struct adopted *all = root->adopted;
    void *more = id ? realloc(all->files, (all->count + 1) * sizeof *all->files) : NULL;
    if (!id)
        return true;
    if (!more)
        return false;
    all->files = more;
    all->files[all->count].id = id;
    all->files[all->count++].file = file;
    file_keep(file);
    return true;
}

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

/* Whether that is a file, or the directory, of a process at home. */
static bool names_process(const char *path)
{
    return strncmp(path, "/proc/", 6) == 0 && path[6] >= '0' && path[6] <= '9';
}

/* Of a process that has ended there is nothing to be read any more. */
static int open_of_dead(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* A name is looked at before it is opened, since to open a device or a pipe may do something by itself; and what was
 * looked at is what is opened, whatever its name means by then. */
static int reopen_plain(const struct session *s, const struct described_file *d, const char *path, const void *content)
{
    char link[64];
    struct stat st;
    int flags = d->flags & ~(O_CREAT | O_EXCL | O_TRUNC), real = -1;
    if ((flags & O_TMPFILE) == O_TMPFILE) /* it has been given a name since */
        flags &= ~O_TMPFILE;
    int pin = open_at(s, AT_FDCWD, path, O_PATH | O_CLOEXEC | (flags & (O_NOFOLLOW | O_DIRECTORY)), 0);
    if (pin < 0)
        return names_process(path) ? open_of_dead() : -1;
    long refused = flags & O_PATH ? 0 : check_proc(pin, flags);
    if (!refused && !may_have(s, pin, (flags & O_ACCMODE) != O_RDONLY))
        refused = -EACCES;
    if (!refused && (flags & O_PATH))
        return pin;
    snprintf(link, sizeof link, "/proc/self/fd/%d", pin);
    if (!refused && S_ISFIFO(d->mode) && may_have(s, pin, true) && !pipe_held_again(s, s->root->adopted->unlinked, d, pin, content))
        refused = -errno;
    if (!refused && fstat(pin, &st) == 0 &&
        (real = open_anyhow(link, &st, (flags & ~O_NOFOLLOW) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0)
        refused = -errno;
    if (!refused && !S_ISFIFO(d->mode) && d->offset && lseek(real, d->offset, SEEK_SET) < 0)
        refused = -errno;
    close(pin);
    if (!refused)
        return real;
    if (real >= 0)
        close(real);
    errno = (int)-refused;
    return -1;
}

static int reopen(struct session *s, struct pairs *pairs, const struct described_file *d, const char *path,
                  const void *content)
{
    struct itimerspec setting;
    int real;
    switch (d->kind) {
    case FILE_PLAIN:
        if (d->sparse)
            return reopen_gone(s, s->root->adopted->unlinked, d, path, content);
        real = path ? reopen_plain(s, d, path, content) : (errno = EINVAL, -1);
        if (real >= 0 && !S_ISFIFO(d->mode) && !retake_locks(real, d, content)) {
            close(real);
            errno = EAGAIN;
            return -1;
        }
        return real;
    case FILE_TEXT: return reopen_nameless(s, s->root->adopted->unlinked, d, path, content);
    case FILE_STANDARD:
        return d->number < 3 && s->root->task.standard[d->number] >= 0
                   ? fcntl(s->root->task.standard[d->number], F_DUPFD_CLOEXEC, 3)
                   : open("/dev/null", O_RDWR | O_CLOEXEC);
    case FILE_PIPE:
    case FILE_PAIR: return reopen_end(pairs, d, content);
    case FILE_SOCKET: {
        const int *ends = pair_ends(pairs, d);
        return ends ? fcntl(ends[d->end], F_DUPFD_CLOEXEC, 0) : (errno = EPROTO, -1);
    }
    case FILE_EVENT:
        return eventfd((unsigned)d->offset, EFD_CLOEXEC | EFD_NONBLOCK | (d->flags & EFD_SEMAPHORE));
    case FILE_EPOLL: return epoll_create1(EPOLL_CLOEXEC);
    case FILE_IPC: case FILE_OWNERS: return eventfd(0, EFD_CLOEXEC);
    case FILE_SIGNALS: return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    case FILE_PROCESS: return process_timer();
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

/* What an older image has of a pair of sockets: no more than its bytes. */
static struct socket *older_pair(struct session *s, struct pairs *pairs, const struct described_file *d)
{
    const int kind = (int)d->offset & PAIR_KIND;
    struct link **link = pair_link(pairs, d);
    struct socket *socket = link ? socket_new(network_of(s), AF_UNIX, kind ? kind : SOCK_STREAM, 0) : NULL;
    if (!socket || (!*link && !(*link = link_new(socket->network)))) {
        free(socket);
        return NULL;
    }
    socket->link = link_keep(*link);
    socket->end = d->end;
    socket->state = SOCKET_CONNECTED;
    socket->bare = socket->type == SOCK_DGRAM;
    socket->peer = socket->own;
    if (socket->type == SOCK_STREAM)
        socket->link->sent[d->end] += d->content_size;
    return socket;
}

static struct file *adopt_file(struct work *w, struct pairs *pairs, const struct described_file *d,
                               const char *path, const void *content, const struct file *locked)
{
    struct session *s = w->session;
    int real = -1;
    struct inotify *in = d->kind == FILE_INOTIFY ? inotify_begin(s, &real) : NULL;
    if (d->kind == FILE_RECORDS)
        real = records_again(locked, d, content);
    else if (d->kind != FILE_INOTIFY && d->kind != FILE_TERMINAL && d->kind != FILE_QUEUE)
        real = reopen(s, pairs, d, path, content);
    struct file *file = d->kind == FILE_TERMINAL ? terminal_again(s, d, content)
                        : d->kind == FILE_QUEUE  ? posix_queue_file_again(s, (int)d->offset, d->flags)
                        : real < 0               ? NULL
                                                 : file_new(real, d->flags);
    if (!file) {
        if (in)
            inotify_end(in);
        char text[200];
        snprintf(text, sizeof text, "%.150s %s", path ? path : "a nameless file",
                 errno == EAGAIN ? "is locked by another program" : "cannot be opened again");
        tell(s, SHADOW_BROKEN, errno, 0, text);
        return NULL;
    }
    if (d->kind == FILE_PROCESS && !process_file_begin(s, file, (int)d->offset, d->offset >> 32)) {
        file_drop(file);
        errno = ENOMEM;
        return NULL;
    }
    file->kind = d->kind == FILE_TEXT && path ? FILE_PLAIN : d->kind; /* that one may have a name the next time */
    file->end = d->end;
    file->inotify = in;
    file->signals = d->kind == FILE_SIGNALS ? (uint64_t)d->offset : 0;
    if (d->kind == FILE_SOCKET || d->kind == FILE_PAIR) {
        struct socket *socket = d->kind == FILE_PAIR ? older_pair(s, pairs, d) : socket_again(w, pairs, d, path, content);
        if (!socket) {
            int error = errno;
            file_drop(file);
            tell(s, SHADOW_BROKEN, error, 0, "a socket cannot be made again");
            errno = error;
            return NULL;
        }
        socket_enter(socket);
        file->socket = socket;
        socket->file = file;
        file->kind = FILE_SOCKET;
    }
    file->number = d->kind == FILE_PIPE || file->socket ? pair_number(pairs, d->number) : d->number;
    file->has_records = d->kind == FILE_PLAIN && d->number;
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

/* The numbers at the end of a description; an older one has none. */
static const uint8_t *find_ids(const struct reader *r, uint32_t count)
{
    size_t bytes = count * sizeof(uint64_t);
    return (size_t)(r->end - r->at) > bytes ? r->end - bytes : NULL;
}

static long adopt_files(struct work *w, struct reader *r, struct file **files, const struct described *head, bool numbered)
    REQUIRES(adopting);
static long adopt_files(struct work *w, struct reader *r, struct file **files, const struct described *head, bool numbered)
{
    struct session *s = w->session;
    const uint32_t count = head->files;
    struct pairs *pairs = s->root->adopted->pairs;
    const uint8_t *ids = numbered ? find_ids(r, count) : NULL;
    const struct described_file **described = calloc(count + 1, sizeof *described);
    const uint8_t **contents = calloc(count + 1, sizeof *contents);
    bool *known = calloc(count + 1, sizeof *known);
    long result = known && described && contents ? 0 : -ENOMEM;
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
        if (head->magic == OLDER_DESCRIBED_MAGIC && copy.kind == FILE_PLAIN)
            copy.number = has_records(&copy, content);
        uint64_t id = 0;
        if (ids)
            memcpy(&id, ids + i * sizeof id, sizeof id);
        files[i] = adopted_file(s->root, id);
        known[i] = files[i];
        if (!files[i])
            files[i] = adopt_file(w, pairs, &copy, path, content, copy.number < i ? files[copy.number] : NULL);
        if (!files[i])
            result = errno ? -errno : -EIO;
        else if (!known[i] && !adopted_note(s->root, id, files[i]))
            result = -ENOMEM;
    }
    for (uint32_t i = 0; i < count && !result; i++) {
        struct described_file copy;
        memcpy(&copy, described[i], sizeof copy);
        if (copy.kind == FILE_EPOLL && !known[i])
            adopt_interests(files, count, &copy, files[i], contents[i]);
        if (copy.kind == FILE_SOCKET && !known[i])
            result = socket_filled(files[i], pairs, &copy, contents[i], files, count);
        if (copy.kind == FILE_INOTIFY && !known[i])
            result = inotify_filled(s, files[i]->inotify, &copy, contents[i], files, count);
        if (copy.kind == FILE_OWNERS)
            result = owners_again(s, &copy, contents[i], files, count);
        if (copy.kind == FILE_IPC)
            result = ipc_filled(s, contents[i], copy.content_size, files, count);
    }
    free(described);
    free(contents);
    free(known);
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
        if (one.descriptor >= MOST_DESCRIBED || one.file >= head->files)
            return -EPROTO;
        if ((files[one.file]->kind == FILE_RECORDS) != (one.descriptor >= FIRST_LOCKED))
            return -EPROTO; /* what locks are taken by may be written where the program may only read */
        if (files[one.file]->kind == FILE_IPC || files[one.file]->kind == FILE_OWNERS)
            return -EPROTO;
        file_keep(files[one.file]);
        if (one.descriptor < MAX_FILES) {
            close_entry(s, one.descriptor);
            s->entries[one.descriptor] = (struct entry){files[one.file], one.closes_on_exec};
        } else if (one.descriptor >= FIRST_LOCKED) {
            if (!records_enter(s, &s->locked[one.descriptor - FIRST_LOCKED], files[one.file]))
                return -EPROTO;
        } else if (s->handles[one.descriptor - MAX_FILES]) {
            file_drop(files[one.file]);
            return -EPROTO;
        } else {
            s->handles[one.descriptor - MAX_FILES] = files[one.file];
        }
    }
    return 0;
}

/* Those that a new member has of its parent, and the standard ones of a program that begins. */
static void forget_files_of(struct session *s)
{
    spans_leave(s);
    for (int i = 0; i < MAX_FILES; i++)
        if (s->entries[i].file)
            close_entry(s, i);
    records_forget(s);
    for (int i = 0; i < MAX_HANDLES; i++)
        if (s->handles[i]) {
            file_drop(s->handles[i]);
            s->handles[i] = NULL;
        }
}

static long go_to(const struct session *s, const char *directory)
{
    int here = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (here < 0)
        return -errno;
    long refused = !may_have(s, here, false) ? -EACCES : fchdir(here) < 0 ? -errno : 0;
    close(here);
    return refused;
}

/* One that has no name, and is one of the files that came back. */
static long go_to_file(struct file **files, uint32_t count, const char *number)
{
    const unsigned long i = strtoul(number, NULL, 10);
    if (i >= count || files[i]->kind != FILE_PLAIN)
        return -EPROTO;
    return fchdir(files[i]->real) < 0 ? -errno : 0;
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
    if ((head.magic != DESCRIBED_MAGIC && head.magic != OLDER_DESCRIBED_MAGIC) || head.files > MOST_DESCRIBED || head.entries > MAX_FILES ||
        head.handles > MAX_HANDLES + MOST_LOCKED || !directory || !head.directory_size || directory[head.directory_size - 1])
        return -EPROTO;
    long gone_back = s->root == s ? journal_apply(s, head.generation) : 0; /* a copied image has no journal beside it */
    if (gone_back && gone_back != -ENOENT)
        return gone_back;
    long refused = directory[0] == NUMBER_OF_DIRECTORY ? 0 : go_to(s, directory);
    if (refused)
        return refused;
    umask(head.umask & 0777);
    forget_files_of(s);
    struct file **files = calloc(head.files + 1, sizeof *files);
    if (!files)
        return -ENOMEM;
    pthread_mutex_lock(&adopting);
    const bool family = s->root != s || ARGUMENT(0) > 1;
    long result = adopted_begin(s->root) ? adopt_files(w, &r, files, &head, family) : -ENOMEM;
    pthread_mutex_unlock(&adopting);
    if (!result)
        result = adopt_entries(s, &r, files, &head);
    if (!result && directory[0] == NUMBER_OF_DIRECTORY)
        result = go_to_file(files, head.files, directory + 1);
    for (uint32_t i = 0; i < head.files; i++)
        if (files[i])
            file_drop(files[i]);
    free(files);
    if (!result)
        membership_again(w);
    if (!result && s->root == s && family) {
        pthread_mutex_lock(&table_lock);
        s->awaited = ARGUMENT(0) < MOST_MEMBERS ? (uint32_t)ARGUMENT(0) : MOST_MEMBERS;
        pthread_mutex_unlock(&table_lock);
    }
    if (!result && !family)
        adopted_forget(s);
    return result || s->root != s ? result : journal_reset(s, head.generation);
}
