/* The open files of a restarted program, from the bytes that describe.c made of them.
 *
 * They travelled inside the image, and are hostile.
 */
#include "described.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

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

/* A name is looked at before it is opened, since to open a device or a pipe may do something by itself; and what was
 * looked at is what is opened, whatever its name means by then. */
static int reopen_plain(const struct session *s, const struct described_file *d, const char *path)
{
    char link[64];
    int flags = d->flags & ~(O_CREAT | O_EXCL | O_TRUNC), real = -1;
    int pin = open_at(s, AT_FDCWD, path, O_PATH | O_CLOEXEC | (flags & (O_NOFOLLOW | O_DIRECTORY)), 0);
    if (pin < 0)
        return -1;
    long refused = flags & O_PATH ? 0 : check_proc(pin, flags);
    if (!refused && !may_have(s, pin, (flags & O_ACCMODE) != O_RDONLY))
        refused = -EACCES;
    if (!refused && (flags & O_PATH))
        return pin;
    snprintf(link, sizeof link, "/proc/self/fd/%d", pin);
    if (!refused && (real = open(link, (flags & ~O_NOFOLLOW) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) < 0)
        refused = -errno;
    if (!refused && d->offset && lseek(real, d->offset, SEEK_SET) < 0)
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
        real = path ? reopen_plain(s, d, path) : (errno = EINVAL, -1);
        if (real >= 0 && !retake_locks(real, d, content)) {
            close(real);
            errno = EAGAIN;
            return -1;
        }
        return real;
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
        snprintf(text, sizeof text, "%.150s %s", path ? path : "a nameless file",
                 errno == EAGAIN ? "is locked by another program" : "cannot be opened again");
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
    struct pairs *pairs = pairs_new();
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
    pairs_drop(pairs);
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
    int here = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (here < 0)
        return -errno;
    long refused = !may_have(s, here, false) ? -EACCES : fchdir(here) < 0 ? -errno : 0;
    close(here);
    if (refused)
        return refused;
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
