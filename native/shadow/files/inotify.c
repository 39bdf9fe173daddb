/* Watching files: inotify_init1, inotify_add_watch, inotify_rm_watch, and reading what happened. */
#include "inotify.h"
#include "shadow/serve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { QUEUE_PIECE = 64 << 10 };

static bool join(int set, int real)
{
    struct epoll_event event = {.events = EPOLLIN};
    return real >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, real, &event) == 0;
}

struct inotify *inotify_begin(struct session *s, int *set)
{
    if (s->root->inotifies >= MOST_INOTIFIES) {
        errno = EMFILE;
        return NULL;
    }
    struct inotify *in = calloc(1, sizeof *in);
    if (!in)
        return NULL;
    pthread_mutex_init(&in->lock, NULL);
    in->root = s->root;
    in->root->inotifies++;
    in->next = 1;
    in->real = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    in->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    *set = epoll_create1(EPOLL_CLOEXEC);
    if (*set >= 0 && join(*set, in->real) && join(*set, in->bell))
        return in;
    int error = errno;
    if (*set >= 0)
        close(*set);
    inotify_end(in);
    errno = error;
    return NULL;
}

void inotify_end(struct inotify *in)
{
    while (in->count)
        watch_forget(in, in->count - 1);
    in->root->inotifies--;
    if (in->real >= 0)
        close(in->real);
    if (in->bell >= 0)
        close(in->bell);
    pthread_mutex_destroy(&in->lock);
    free(in->watches);
    free(in->kept);
    free(in);
}

void watch_forget(struct inotify *in, size_t place)
{
    free(in->watches[place].name);
    memmove(in->watches + place, in->watches + place + 1, (--in->count - place) * sizeof *in->watches);
    in->root->watches--;
}

/* Both kinds of numbers only grow. NULL: there is none. */
static struct watch *watch_of(struct inotify *in, int number, bool real)
{
    size_t from = 0, to = in->count;
    while (from < to) {
        size_t middle = from + (to - from) / 2;
        int found = real ? in->watches[middle].real : in->watches[middle].number;
        if (found == number)
            return &in->watches[middle];
        if (found < number)
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

/* What PATH stands for, if the program may read it. */
int watched_at(const struct session *s, const char *path, int flags)
{
    int pin = pin_to_read(s, path, flags);
    if (pin < 0)
        return pin;
    long refused = check_proc(pin, O_RDONLY);
    if (!refused)
        return pin;
    close(pin);
    return (int)refused;
}

static bool room_for_one(struct inotify *in)
{
    if (in->count < in->room)
        return true;
    size_t room = in->room ? in->room * 2 : 16;
    struct watch *more = realloc(in->watches, room * sizeof *more);
    if (!more)
        return false;
    in->watches = more;
    in->room = room;
    return true;
}

/* One more watch, of what PIN stands for, or a known one changed. Returns its number or -errno. */
long watch_enter(struct inotify *in, int pin, uint32_t mask, int number)
{
    char link[64], name[PATH_LIMIT];
    struct stat st;
    snprintf(link, sizeof link, "/proc/self/fd/%d", pin);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0 || fstat(pin, &st) < 0)
        return -errno;
    name[length] = 0;
    if (!room_for_one(in))
        return -ENOMEM;
    int real = inotify_add_watch(in->real, link, mask & ~(uint32_t)IN_DONT_FOLLOW);
    if (real < 0)
        return -errno;
    const struct watch *known = watch_of(in, real, true);
    if (known)
        return known->number;
    char *kept = in->root->watches < MOST_WATCHES ? strdup(name) : NULL;
    if (!kept) {
        inotify_rm_watch(in->real, real); /* the event of that is none of the program's */
        return in->root->watches < MOST_WATCHES ? -ENOMEM : -ENOSPC;
    }
    in->root->watches++;
    if (number == NO_NUMBER)
        number = in->next++;
    in->watches[in->count++] = (struct watch){number, real, st.st_dev, st.st_ino, kept};
    return number;
}

static struct inotify *inotify_of(struct work *w, long *error)
{
    struct file *file = file_of(w->session, ARGUMENT(0));
    *error = !file || (file->flags & O_PATH) ? -EBADF : -EINVAL;
    return file ? file->inotify : NULL;
}

long serve_inotify_init1(struct work *w)
{
    int flags = (int)ARGUMENT(0), set;
    if (flags & ~(IN_CLOEXEC | IN_NONBLOCK))
        return -EINVAL;
    struct inotify *in = inotify_begin(w->session, &set);
    if (!in)
        return -errno;
    struct file *file = file_new(set, flags & IN_NONBLOCK);
    if (!file) {
        inotify_end(in);
        return -ENFILE;
    }
    file->kind = FILE_INOTIFY;
    file->inotify = in;
    return enter_file(w->session, file, 0, flags & IN_CLOEXEC);
}

long serve_inotify_add_watch(struct work *w)
{
    long error;
    size_t at = 0;
    const uint32_t mask = (uint32_t)ARGUMENT(2), sensible = IN_ALL_EVENTS | IN_UNMOUNT | IN_Q_OVERFLOW | IN_IGNORED;
    if (!(mask & (sensible | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_ADD | IN_MASK_CREATE | IN_ISDIR |
                  IN_ONESHOT)))
        return -EINVAL;
    struct inotify *in = inotify_of(w, &error);
    if (!in)
        return error;
    const char *path = take_path(w, &at);
    if (!path)
        return -EFAULT;
    int flags = (mask & IN_DONT_FOLLOW ? O_NOFOLLOW : 0) | (mask & IN_ONLYDIR ? O_DIRECTORY : 0);
    int pin = watched_at(w->session, path, flags);
    if (pin < 0)
        return pin;
    pthread_mutex_lock(&in->lock);
    long number = watch_enter(in, pin, mask, NO_NUMBER);
    pthread_mutex_unlock(&in->lock);
    close(pin);
    return number;
}

/* It is known until the event of its end was read. */
long serve_inotify_rm_watch(struct work *w)
{
    long error;
    struct inotify *in = inotify_of(w, &error);
    if (!in)
        return error;
    pthread_mutex_lock(&in->lock);
    const struct watch *watch = watch_of(in, (int)ARGUMENT(1), false);
    long result = watch ? result_of(inotify_rm_watch(in->real, watch->real)) : -EINVAL;
    pthread_mutex_unlock(&in->lock);
    return result;
}

/* Events of the kernel's, in place: with the program's numbers, without those of watches that it does not have and, of
 * directories, those of BUT. Returns the bytes that are left. */
static size_t as_the_program_has_it(struct inotify *in, uint8_t *events, size_t size, uint32_t but)
{
    size_t used = 0;
    for (size_t at = 0, length; at < size; at += length) {
        struct inotify_event event;
        memcpy(&event, events + at, EVENT_BYTES);
        length = EVENT_BYTES + event.len;
        struct watch *watch = event.wd < 0 ? NULL : watch_of(in, event.wd, true);
        if ((event.wd >= 0 && !watch) || ((event.mask & but) && (event.mask & IN_ISDIR)))
            continue;
        if (watch)
            event.wd = watch->number;
        if (watch && (event.mask & IN_IGNORED))
            watch_forget(in, (size_t)(watch - in->watches));
        memmove(events + used, events + at, length);
        memcpy(events + used, &event, EVENT_BYTES);
        used += length;
    }
    return used;
}

static long read_kernels(struct inotify *in, uint8_t *to, size_t size)
{
    long got;
    do {
        got = result_of(read(in->real, to, size));
        if (got > 0)
            got = (long)as_the_program_has_it(in, to, (size_t)got, 0);
    } while (got == 0);
    return got;
}

static void ring(struct inotify *in)
{
    uint64_t one = 1;
    if (write(in->bell, &one, sizeof one) < 0) /* it rings already */
        return;
}

static long read_kept(struct inotify *in, uint8_t *to, size_t size)
{
    size_t used = 0;
    while (used < in->kept_size) {
        struct inotify_event event;
        memcpy(&event, in->kept + used, EVENT_BYTES);
        if (used + EVENT_BYTES + event.len > size)
            break;
        used += EVENT_BYTES + event.len;
    }
    if (!used)
        return -EINVAL;
    memcpy(to, in->kept, used);
    memmove(in->kept, in->kept + used, in->kept_size - used);
    in->kept_size -= used;
    uint64_t rung;
    if (!in->kept_size && read(in->bell, &rung, sizeof rung) < 0)
        return (long)used;
    return (long)used;
}

long inotify_read(struct work *w, struct file *file, size_t size)
{
    struct inotify *in = file->inotify;
    uint8_t *to = out_room(w, size);
    if (!to)
        return -ENOMEM;
    pthread_mutex_lock(&in->lock);
    long got = in->kept_size ? read_kept(in, to, size) : read_kernels(in, to, size);
    pthread_mutex_unlock(&in->lock);
    w->out_used = got > 0 ? (size_t)got : 0;
    return got == -EAGAIN ? would_wait(w, file, POLLIN) : got;
}

long inotify_waiting_bytes(struct inotify *in)
{
    int waiting = 0;
    pthread_mutex_lock(&in->lock);
    long result = result_of(ioctl(in->real, FIONREAD, &waiting));
    if (!result)
        result = waiting + (long)in->kept_size;
    pthread_mutex_unlock(&in->lock);
    return result;
}

bool inotify_keep(struct inotify *in, const void *events, size_t size)
{
    if (in->kept_size + size > MOST_KEPT + EVENT_BYTES)
        return false;
    uint8_t *more = realloc(in->kept, in->kept_size + size + 1);
    if (!more)
        return false;
    in->kept = more;
    memcpy(in->kept + in->kept_size, events, size);
    in->kept_size += size;
    if (in->kept_size)
        ring(in);
    return true;
}

bool inotify_take(struct inotify *in, uint32_t but_of_directories)
{
    uint8_t *piece = malloc(QUEUE_PIECE);
    bool all = false;
    int waiting = 0;
    while (piece && !all && in->kept_size <= MOST_KEPT - QUEUE_PIECE) {
        ssize_t got = read(in->real, piece, QUEUE_PIECE);
        all = got <= 0;
        if (got > 0 && !inotify_keep(in, piece, as_the_program_has_it(in, piece, (size_t)got, but_of_directories)))
            break;
    }
    free(piece);
    return all || (ioctl(in->real, FIONREAD, &waiting) == 0 && !waiting);
}
