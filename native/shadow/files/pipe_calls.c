/* Pipes, counters, epoll sets: real kernel objects here, whichever member of the family uses them. */
#include "shadow/serve.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* Pipes and similar objects live here: they work between all members of a program's family. */
static atomic_uint pair_numbers ATOMIC = 1;

uint32_t new_pair_number(void)
{
    return pair_numbers++;
}

static long install_pair(struct work *w, const int real[2], int flags, uint8_t kind)
{
    struct session *s = w->session;
    uint32_t number = new_pair_number();
    int found[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        int mode = kind == FILE_PIPE ? (i ? O_WRONLY : O_RDONLY) : O_RDWR;
        long got = install(s, real[i], mode | (flags & (O_NONBLOCK | O_DIRECT)), flags & O_CLOEXEC, kind);
        if (got < 0) {
            if (i)
                close_entry(s, found[0]);
            else
                close(real[1]);
            return got;
        }
        found[i] = (int)got;
        s->entries[got].file->number = number;
        s->entries[got].file->end = (uint8_t)i;
    }
    uint8_t *to = out_room(w, sizeof found);
    if (!to)
        return -ENOMEM;
    memcpy(to, found, sizeof found);
    return 0;
}

long serve_pipe2(struct work *w)
{
    int real[2], flags = (int)ARGUMENT(1);
    if (!ARGUMENT(0))
        return -EFAULT;
    if (flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT))
        return -EINVAL;
    if (pipe2(real, (flags & O_DIRECT) | O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    return install_pair(w, real, flags, FILE_PIPE);
}

long serve_eventfd2(struct work *w)
{
    int flags = (int)ARGUMENT(1);
    return install(w->session, eventfd((unsigned)ARGUMENT(0), flags | EFD_CLOEXEC | EFD_NONBLOCK),
                   O_RDWR | (flags & (O_NONBLOCK | EFD_SEMAPHORE)), flags & O_CLOEXEC, FILE_EVENT);
}

long serve_memfd_create(struct work *w)
{
    size_t at = 0;
    const char *name = take_path(w, &at);
    if (!name)
        return -EFAULT;
    if (ARGUMENT(1) & ~(MFD_CLOEXEC | MFD_ALLOW_SEALING)) /* huge pages are the machine's */
        return -EINVAL;
    return install(w->session, memfd_create(name, (unsigned)ARGUMENT(1) | MFD_CLOEXEC), O_RDWR,
                   ARGUMENT(1) & MFD_CLOEXEC, FILE_PLAIN);
}

long serve_epoll_ctl(struct work *w)
{
    struct epoll_event event;
    const struct file *set = file_of(w->session, ARGUMENT(0));
    int real = real_of(w->session, ARGUMENT(2));
    if (!set || real < 0)
        return -EBADF;
    if (set->inotify) /* a set here, and none to the program */
        return -EINVAL;
    if (w->head.size && w->head.size != sizeof event)
        return -EFAULT;
    memcpy(&event, w->payload, w->head.size);
    return result_of(epoll_ctl(set->real, (int)ARGUMENT(1), real, w->head.size ? &event : NULL));
}

long serve_splice(struct work *w)
{
    (void)w;
    return -EINVAL; /* programs fall back to reading and writing */
}
