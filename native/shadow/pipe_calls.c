/* Pipes, socket pairs, counters, epoll sets: real kernel objects here, whichever member of the family uses them. */
#include "serve.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* Pipes and the like live here: they work between all members of a program's family. */
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

long serve_socketpair(struct work *w)
{
    int real[2], type = (int)ARGUMENT(1);
    if (!ARGUMENT(3))
        return -EFAULT;
    if (ARGUMENT(0) != AF_UNIX)
        return -EAFNOSUPPORT;
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, (int)ARGUMENT(2), real) < 0)
        return -errno;
    return install_pair(w, real, type & (O_NONBLOCK | O_CLOEXEC), FILE_PAIR);
}

long serve_socket(struct work *w)
{
    (void)w;
    return ARGUMENT(0) == AF_UNIX ? -EACCES : -EAFNOSUPPORT;
}

static long serve_name(struct work *w, bool peer)
{
    struct sockaddr_storage name = {0};
    socklen_t size;
    int real = real_of(w->session, ARGUMENT(0)), type;
    socklen_t type_size = sizeof type;
    if (real < 0)
        return -EBADF;
    if (getsockopt(real, SOL_SOCKET, SO_TYPE, &type, &type_size) < 0)
        return -errno;
    if (w->head.size != 132)
        return -EFAULT;
    memcpy(&size, w->payload + 128, 4);
    socklen_t room = sizeof name;
    long result = result_of(peer ? getpeername(real, (void *)&name, &room) : getsockname(real, (void *)&name, &room));
    if (result < 0)
        return result;
    uint8_t *to = out_room(w, 132);
    if (!to)
        return -ENOMEM;
    memcpy(to, w->payload, 128);
    memcpy(to, &name, size < room ? size : room);
    memcpy(to + 128, &room, 4);
    return 0;
}

long serve_getsockname(struct work *w) { return serve_name(w, false); }
long serve_getpeername(struct work *w) { return serve_name(w, true); }

long serve_setsockopt(struct work *w)
{
    int real = real_of(w->session, ARGUMENT(0));
    if (real < 0)
        return -EBADF;
    if (ARGUMENT(1) != SOL_SOCKET || (ARGUMENT(2) != SO_SNDBUF && ARGUMENT(2) != SO_RCVBUF))
        return ARGUMENT(1) == SOL_SOCKET ? 0 : -ENOPROTOOPT;
    return result_of(setsockopt(real, SOL_SOCKET, (int)ARGUMENT(2), w->payload, (socklen_t)w->head.size));
}

/* Options that are numbers: others would be answered with a descriptor, or with more than there is room for. */
static bool is_plain_option(int option)
{
    switch (option) {
    case SO_TYPE: case SO_ERROR: case SO_SNDBUF: case SO_RCVBUF: case SO_ACCEPTCONN: case SO_DOMAIN: case SO_PROTOCOL:
    case SO_PEERCRED: case SO_PASSCRED: case SO_REUSEADDR: case SO_KEEPALIVE: case SO_LINGER: case SO_BROADCAST:
        return true;
    default: return false;
    }
}

long serve_getsockopt(struct work *w)
{
    int real = real_of(w->session, ARGUMENT(0));
    uint8_t room[16];
    socklen_t size = sizeof room;
    if (real < 0)
        return -EBADF;
    if (w->head.size != 20)
        return -EFAULT;
    if (ARGUMENT(1) != SOL_SOCKET || !is_plain_option((int)ARGUMENT(2)))
        return -ENOPROTOOPT;
    if (getsockopt(real, (int)ARGUMENT(1), (int)ARGUMENT(2), room, &size) < 0)
        return -errno;
    uint8_t *to = out_room(w, 20);
    if (!to)
        return -ENOMEM;
    memcpy(to, room, sizeof room);
    memcpy(to + 16, &size, 4);
    return 0;
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
    int set = real_of(w->session, ARGUMENT(0)), real = real_of(w->session, ARGUMENT(2));
    if (set < 0 || real < 0)
        return -EBADF;
    if (w->head.size && w->head.size != sizeof event)
        return -EFAULT;
    memcpy(&event, w->payload, w->head.size);
    return result_of(epoll_ctl(set, (int)ARGUMENT(1), real, w->head.size ? &event : NULL));
}

long serve_splice(struct work *w)
{
    (void)w;
    return -EINVAL; /* programs fall back to reading and writing */
}
