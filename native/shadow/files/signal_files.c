/* Descriptors of signals (signalfd).  Signals are where the process is; here is what the descriptor is of, and whether those
 * who wait for it have something: with each wait the runtime says which signals wait for the process.  In an epoll set a
 * counter stands for the descriptor, which is above zero while some of its signals do. */
#include "shadow/serve.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

bool signals_wait(const struct file *file, uint64_t waiting)
{
    return file->signals & waiting;
}

/* Puts the counters of S's descriptors to what waits for its process now. */
void signals_show(struct session *s, uint64_t waiting)
{
    for (int i = 0; i < MAX_FILES; i++) {
        const struct file *file = s->entries[i].file;
        uint64_t count;
        if (!file || file->kind != FILE_SIGNALS)
            continue;
        struct pollfd one = {.fd = file->real, .events = POLLIN};
        const bool shown = poll(&one, 1, 0) > 0;
        if (shown && !signals_wait(file, waiting))
            (void)!read(file->real, &count, sizeof count);
        else if (!shown && signals_wait(file, waiting))
            eventfd_write(file->real, 1);
    }
}

/* Descriptor or -1, the signals, flags. */
long serve_signalfd4(struct work *w)
{
    const int flags = (int)ARGUMENT(3);
    const uint64_t mask = (uint64_t)ARGUMENT(1);
    if (flags & ~(SFD_CLOEXEC | SFD_NONBLOCK))
        return -EINVAL;
    if (ARGUMENT(0) != -1) {
        struct file *file = file_of(w->session, ARGUMENT(0));
        if (!file)
            return -EBADF;
        if (file->kind != FILE_SIGNALS)
            return -EINVAL;
        file->signals = mask;
        return ARGUMENT(0);
    }
    long fd = install(w->session, eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), O_RDWR | (flags & O_NONBLOCK), flags & O_CLOEXEC,
                      FILE_SIGNALS);
    if (fd >= 0)
        file_of(w->session, fd)->signals = mask;
    return fd;
}

long serve_signals(struct work *w)
{
    const struct file *file = file_of(w->session, ARGUMENT(0));
    if (!file || file->kind != FILE_SIGNALS)
        return -EBADF;
    const uint64_t mask = file->signals;
    uint8_t *to = out_room(w, sizeof mask);
    if (!to)
        return -ENOMEM;
    memcpy(to, &mask, sizeof mask);
    return file->wants_nonblocking;
}
