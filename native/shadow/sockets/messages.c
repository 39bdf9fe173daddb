/* What goes through the sockets of a family, and open files beside it. */
#include "sockets.h"

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    SEND_FLAGS = MSG_DONTWAIT | MSG_NOSIGNAL | MSG_MORE | MSG_EOR | MSG_CONFIRM | MSG_DONTROUTE,
    RECEIVE_FLAGS = MSG_PEEK | MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC | MSG_NOSIGNAL | MSG_WAITALL | MSG_ERRQUEUE,
    LONGEST_DATAGRAM = 65507,
};
#define AGAIN_NS 2000000 /* for what no descriptor tells */

/* What stands for the open files of a message in the kernel's queue: it keeps them apart from other messages'. */
static pthread_once_t mark_once UNGUARDED("the C library's own") = PTHREAD_ONCE_INIT;
static int mark UNGUARDED("set once, before it is looked at") = -1;

static void make_mark(void)
{
    mark = eventfd(0, EFD_CLOEXEC);
}

/* Sends PARTS with RIGHTS, which are the receiver's from then on, if it was done. */
bool send_with_rights(struct socket *socket, int real, const struct iovec *parts, int count, struct rights *rights, int flags,
                      ssize_t *sent)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    const struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = (size_t)count,
                                   .msg_control = rights ? &control : NULL,
                                   .msg_controllen = rights ? sizeof control : 0};
    struct link *link = socket->link;
    const int to = socket->headed ? socket->end : !socket->end;
    pthread_once(&mark_once, make_mark);
    memcpy(CMSG_DATA(&control.head), &mark, sizeof mark);
    pthread_mutex_lock(&link->lock);
    *sent = sendmsg(real, &message, flags | MSG_DONTWAIT | MSG_NOSIGNAL);
    bool gone = rights && *sent >= 0;
    if (gone) {
        rights->at = link->sent[to]; /* before these are counted */
        rights->size = (uint64_t)*sent;
        if (link->first[to])
            link->last[to]->next = rights;
        else
            link->first[to] = rights;
        link->last[to] = rights;
    }
    int error = errno;
    if (*sent >= 0)
        held_sent(link, to, (size_t)*sent);
    pthread_mutex_unlock(&link->lock);
    errno = error;
    return gone;
}

/* The open files of COUNT descriptors. NULL: *ERROR.
 *
 * A file that is on its way costs this process a descriptor, and the program none: so there are no more of a family's
 * than one program may have open, and one message. */
static struct rights *gather_rights(struct session *s, struct network *network, const uint8_t *numbers, uint32_t count,
                                    long *error)
{
    if (network->on_way > (uint32_t)s->most_files) {
        *error = -ETOOMANYREFS;
        return NULL;
    }
    struct rights *rights = rights_new(network, count);
    *error = rights ? 0 : -ENOMEM;
    for (uint32_t i = 0; rights && i < count; i++) {
        int32_t descriptor;
        memcpy(&descriptor, numbers + i * sizeof descriptor, sizeof descriptor);
        struct file *file = file_of(s, descriptor);
        if (!file) {
            rights_drop(rights);
            *error = -EBADF;
            return NULL;
        }
        rights_add(rights, file);
    }
    return rights;
}

/* A call on SOCKET would block: EAGAIN, or it waits for EVENTS on REAL, or a moment where REAL is -1. */
static long must_wait(struct work *w, const struct file *file, int real, short events, int flags, int64_t limit_ns)
{
    if (file->wants_nonblocking || (flags & MSG_DONTWAIT) || (w->again && w->until_ns >= 0 && now_ns() >= w->until_ns))
        return -EAGAIN;
    if (!w->again && limit_ns)
        w->until_ns = now_ns() + limit_ns;
    if (real >= 0)
        wait_on(w, real, events);
    else
        w->retry_ns = now_ns() + AGAIN_NS;
    return PARKED;
}

/* What is sent at once: bytes, and what goes beside them. */
struct parcel {
    const struct socket_name *name; /* NULL: to whom it is connected */
    const uint8_t *data, *numbers;
    size_t size;
    uint32_t rights;
    int flags;
};

/* One packet of a datagram socket, into the far end of its addressee. The network's lock is held. */
static ssize_t deliver(struct socket *from, struct socket *to, const struct parcel *p, struct rights **rights)
{
    struct packet_head head = {.size = from->own.size};
    const bool named = !is_local_domain(from) || from->own.size > sizeof(sa_family_t);
    ssize_t sent;
    if (named)
        memcpy(head.name, from->own.bytes, sizeof head.name);
    else
        head.size = 0;
    const struct iovec parts[2] = {{&head, sizeof head}, {(void *)(uintptr_t)p->data, p->size}};
    const bool other = to->to != from && (to->to || to->lost || to->peer.size != from->own.size ||
                                          memcmp(to->peer.bytes, from->own.bytes, to->peer.size));
    if (is_local_domain(to) && to->peer.size && other) {
        errno = EPERM;
        return -1;
    }
    if (!is_local_domain(to) && to->peer.size) {
        struct socket_name sender = from->own, wanted = to->peer;
        to_domain(&sender, AF_INET6);
        to_domain(&wanted, AF_INET6);
        if (sender.six.sin6_port != wanted.six.sin6_port) /* not for it: lost, as anything may be */
            return (ssize_t)p->size;
    }
    size_t size = sizeof head + p->size;
    if (!may_hold(to->link, to->end, false, &size)) {
        errno = EAGAIN;
        return -1;
    }
    if (send_with_rights(to, to->far, parts, 2, *rights, 0, &sent))
        *rights = NULL;
    if (sent < 0)
        return errno == EPIPE ? (is_local_domain(to) ? sent : (ssize_t)p->size) : sent;
    return sent - (ssize_t)sizeof head;
}

static ssize_t send_found(struct socket *socket, struct socket_name *name, const struct parcel *p, uint64_t device,
                          uint64_t inode, struct rights **rights)
{
    struct network *network = socket->network;
    ssize_t result = -1;
    pthread_mutex_lock(&network->lock);
    if (!is_local_domain(socket) && socket->state == SOCKET_FRESH) {
        struct socket_name own = *name;
        memset(own.bytes + sizeof(sa_family_t), 0, sizeof own.bytes - sizeof(sa_family_t));
        long error = take_port(network, socket, &own);
        if (!error) {
            socket->own = own;
            socket->state = SOCKET_BOUND;
        }
    }
    struct socket *to = !p->name && socket->to   ? socket->to
                        : !p->name && socket->lost ? NULL
                                                   : find_target(network, socket, name, device, inode);
    if (!to && !p->name && socket->lost) {
        socket->lost = false; /* it has heard of it now */
        socket->peer.size = 0;
    }
    if (to && to->type != socket->type) {
        errno = EPROTOTYPE;
    } else if (to) {
        struct socket_name before = socket->own;
        if (socket->domain == AF_INET && !socket->own.four.sin_addr.s_addr) /* it is sent from where it goes to */
            socket->own.four.sin_addr = name->four.sin_addr;
        else if (socket->domain == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&socket->own.six.sin6_addr))
            socket->own.six.sin6_addr = name->six.sin6_addr;
        result = deliver(socket, to, p, rights);
        socket->own = before;
    } else if (is_local_domain(socket) || !p->name) {
        errno = ECONNREFUSED;
    } else {
        result = (ssize_t)p->size; /* nobody hears it */
    }
    pthread_mutex_unlock(&network->lock);
    return result;
}

static long send_datagram(struct work *w, struct file *file, const struct parcel *p)
{
    struct socket *socket = file->socket;
    struct socket_name name;
    uint64_t device = 0, inode = 0;
    long error = 0;
    pthread_mutex_lock(&socket->network->lock);
    name = p->name ? *p->name : socket->peer;
    const bool by_name = p->name || (!socket->to && !socket->lost);
    if (!p->name && is_local_domain(socket) && socket->path == NULL && !socket->peer.size)
        error = -ENOTCONN;
    pthread_mutex_unlock(&socket->network->lock);
    if (error || !name.size)
        return is_local_domain(socket) ? -ENOTCONN : -EDESTADDRREQ;
    if (!is_local_domain(socket) && p->size > LONGEST_DATAGRAM)
        return -EMSGSIZE;
    if (!is_local_domain(socket) && (error = reachable(&name, false)))
        return error;
    if (is_local_domain(socket) && by_name && !is_abstract(&name) &&
        (error = find_path(w, name.here.sun_path, &device, &inode)))
        return error;
    struct rights *rights = p->rights ? gather_rights(w->session, socket->network, p->numbers, p->rights, &error) : NULL;
    if (error)
        return error;
    ssize_t sent = send_found(socket, &name, p, device, inode, &rights);
    error = sent < 0 ? -errno : 0;
    rights_drop(rights);
    return error == -EAGAIN ? must_wait(w, file, -1, 0, p->flags, socket->send_ns) : error ? error : (long)sent;
}

/* On a stream, or a packet of a pair: all of it, unless it must not wait. */
static long send_bytes(struct work *w, struct file *file, const struct parcel *p)
{
    struct socket *socket = file->socket;
    long error = 0;
    ssize_t sent;
    if (p->rights && !is_local_domain(socket))
        return -EINVAL;
    do {
        struct rights *rights =
            p->rights && !w->progress ? gather_rights(w->session, socket->network, p->numbers, p->rights, &error) : NULL;
        if (error)
            return error;
        const bool headed = has_heads(socket);
        struct packet_head head = {.size = 0};
        const bool is_stream = socket->type == SOCK_STREAM;
        size_t size = p->size - w->progress;
        if (!size && is_stream) {
            rights_drop(rights);
            break;
        }
        const bool has_room = may_hold(socket->link, !socket->end, is_stream, &size);
        const struct iovec parts[2] = {{&head, sizeof head}, {(void *)(uintptr_t)(p->data + w->progress), size}};
        bool gone = has_room && send_with_rights(socket, file->real, parts + !headed, 1 + headed, rights, p->flags & MSG_EOR,
                                                 &sent);
        error = !has_room ? -EAGAIN : sent < 0 ? -errno : 0;
        if (!gone)
            rights_drop(rights);
        if (error == -EAGAIN) {
            long waits = must_wait(w, file, has_room ? file->real : -1, POLLOUT, p->flags, socket->send_ns);
            return waits != PARKED && w->progress ? (long)w->progress : waits;
        }
        if (error)
            return w->progress ? (long)w->progress : error;
        w->progress += (size_t)sent - (headed && sent > 0 ? sizeof head : 0);
    } while (w->progress < p->size);
    return (long)w->progress;
}

/* Why nothing can be sent or heard through SOCKET now. Returns 0 or -errno. */
static long not_connected(const struct socket *socket, bool to_send)
{
    if (to_send && socket->says_no_more)
        return -ESHUTDOWN; /* of datagram sockets no signal tells */
    if (socket->headed || socket->state == SOCKET_CONNECTED)
        return 0;
    if (is_local_domain(socket))
        return !to_send && socket->type == SOCK_STREAM ? -EINVAL : -ENOTCONN;
    return to_send ? -EPIPE : -ENOTCONN;
}

long socket_write(struct work *w, struct file *file, const uint8_t *data, size_t size, int flags)
{
    const struct parcel p = {.data = data, .size = size, .flags = flags};
    long error = not_connected(file->socket, true);
    return error ? error : file->socket->headed ? send_datagram(w, file, &p) : send_bytes(w, file, &p);
}

/* Arguments: descriptor, flags, bytes of the name, number of descriptors, bytes of data. */
long serve_sendmsg(struct work *w)
{
    long error;
    struct file *file = file_of(w->session, ARGUMENT(0));
    struct socket *socket = socket_of(w->session, ARGUMENT(0), &error);
    const uint64_t name_size = (uint64_t)ARGUMENT(2), rights = (uint64_t)ARGUMENT(3), size = (uint64_t)ARGUMENT(4);
    struct socket_name name;
    if (!socket)
        return error;
    if (name_size > NAME_ROOM || rights > MOST_RIGHTS || size > MAX_PAYLOAD ||
        name_size + rights * sizeof(int32_t) + size != w->head.size)
        return -EINVAL;
    if (ARGUMENT(1) & ~SEND_FLAGS)
        return ARGUMENT(1) & MSG_OOB ? -EOPNOTSUPP : -EINVAL;
    struct parcel p = {.data = w->payload + name_size + rights * sizeof(int32_t), .numbers = w->payload + name_size,
                       .size = size, .rights = (uint32_t)rights, .flags = (int)ARGUMENT(1)};
    if ((error = not_connected(socket, true)))
        return error;
    if (!socket->headed) {
        if (name_size && is_local_domain(socket))
            return socket->type == SOCK_STREAM ? -EISCONN : send_bytes(w, file, &p);
        return send_bytes(w, file, &p);
    }
    if (name_size) {
        w->head.arguments[1] = (int64_t)name_size; /* where name_given looks for it */
        error = name_given(w, socket, &name);
        w->head.arguments[1] = p.flags;
        if (error)
            return error;
        p.name = &name;
    }
    return send_datagram(w, file, &p);
}

/* ---- receiving */

/* What came with a message. */
struct arrival {
    struct packet_head head;
    struct rights *rights;
    int flags;
};

/* Returns the bytes of a message, also those that there is no room for. */
static ssize_t receive(struct file *file, void *to, size_t size, int flags, struct arrival *arrival)
{
    struct socket *socket = file->socket;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec parts[2] = {{&arrival->head, sizeof arrival->head}, {to, size}};
    struct msghdr message = {.msg_iov = parts + !has_heads(socket), .msg_iovlen = has_heads(socket) ? 2 : 1,
                             .msg_control = &control, .msg_controllen = sizeof control};
    if (flags & MSG_PEEK)
        message.msg_controllen = 0;
    pthread_mutex_lock(&socket->link->lock);
    const bool is_stream = socket->type == SOCK_STREAM;
    const int wanted = (flags & MSG_PEEK) | (is_stream ? 0 : MSG_TRUNC); /* how long a message was that is cut short */
    ssize_t got = recvmsg(file->real, &message, wanted | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    int error = errno;
    if (got >= 0 && !(flags & MSG_PEEK))
        held_got(socket->link, socket->end, (size_t)got, is_stream);
    const bool came = CMSG_FIRSTHDR(&message) != NULL;
    if (got >= 0 && !(flags & MSG_PEEK) && (came || message.msg_flags & MSG_CTRUNC)) {
        int gift;
        if (came) { /* else there was no descriptor free for the mark: what it marked has come all the same */
            memcpy(&gift, CMSG_DATA(&control.head), sizeof gift);
            close(gift);
        }
        arrival->rights = socket->link->first[socket->end];
        if (arrival->rights) {
            socket->link->first[socket->end] = arrival->rights->next;
            arrival->rights->next = NULL;
        }
    }
    pthread_mutex_unlock(&socket->link->lock);
    errno = error;
    arrival->flags = message.msg_flags & (MSG_TRUNC | MSG_EOR);
    if (got >= 0 && has_heads(socket))
        got = got < (ssize_t)sizeof arrival->head ? 0 : got - (ssize_t)sizeof arrival->head;
    return got;
}

long socket_read(struct work *w, struct file *file, size_t size)
{
    struct arrival arrival = {.flags = 0};
    long error = not_connected(file->socket, false);
    uint8_t *to = error ? NULL : out_room(w, size);
    if (!to)
        return error ? error : -ENOMEM;
    ssize_t got = receive(file, to, size, 0, &arrival);
    error = got < 0 ? -errno : 0;
    if (got > (ssize_t)size)
        got = (ssize_t)size;
    w->out_used = got < 0 ? 0 : (size_t)got;
    rights_drop(arrival.rights);
    return error == -EAGAIN ? must_wait(w, file, file->real, POLLIN, 0, file->socket->receive_ns) : error ? error : got;
}

/* Enters what came into the program's table; returns how many of them. */
static uint32_t enter_rights(struct session *s, struct rights *rights, uint32_t most, bool closes_on_exec, uint8_t *numbers,
                             int *flags)
{
    uint32_t entered = 0;
    for (uint32_t i = 0; rights && i < rights->count; i++) {
        if (entered < most) {
            file_keep(rights->files[i]);
            int32_t descriptor = (int32_t)enter_file(s, rights->files[i], 0, closes_on_exec);
            if (descriptor >= 0) {
                memcpy(numbers + entered++ * sizeof descriptor, &descriptor, sizeof descriptor);
                continue;
            }
        }
        *flags |= MSG_CTRUNC;
    }
    rights_drop(rights);
    return entered;
}

/* Arguments: descriptor, flags, room for the name (0 or NAME_ROOM), for so many descriptors, for data. Out: struct
 * message_head, the room for the name, for the descriptors, the data. */
long serve_recvmsg(struct work *w)
{
    long error;
    struct file *file = file_of(w->session, ARGUMENT(0));
    struct socket *socket = socket_of(w->session, ARGUMENT(0), &error);
    const uint64_t names = (uint64_t)ARGUMENT(2), rights = (uint64_t)ARGUMENT(3), size = (uint64_t)ARGUMENT(4);
    const int flags = (int)ARGUMENT(1);
    if (!socket)
        return error;
    if ((names && names != NAME_ROOM) || rights > MOST_RIGHTS || size > MAX_PAYLOAD || (ARGUMENT(1) & ~RECEIVE_FLAGS))
        return -EINVAL;
    if (flags & MSG_ERRQUEUE)
        return -EAGAIN;
    if ((error = not_connected(socket, false)))
        return error;
    const size_t front = sizeof(struct message_head) + names + rights * sizeof(int32_t);
    uint8_t *to = out_room(w, front + size);
    if (!to)
        return -ENOMEM;
    struct arrival arrival = {.flags = 0};
    ssize_t got = receive(file, to + front, size, flags, &arrival);
    error = got < 0 ? -errno : 0;
    if (error) {
        w->out_used = 0;
        return error == -EAGAIN ? must_wait(w, file, file->real, POLLIN, flags, socket->receive_ns) : error;
    }
    memset(to, 0, front);
    struct message_head head = {.flags = (uint32_t)arrival.flags};
    int came = arrival.flags;
    head.rights = enter_rights(w->session, arrival.rights, (uint32_t)rights, flags & MSG_CMSG_CLOEXEC,
                               to + sizeof head + names, &came);
    head.flags = (uint32_t)came;
    if (has_heads(socket) && arrival.head.size <= sizeof arrival.head.name) {
        struct socket_name from = {.size = arrival.head.size};
        memcpy(from.bytes, arrival.head.name, sizeof arrival.head.name);
        to_domain(&from, socket->domain);
        head.name_size = from.size;
        if (names)
            memcpy(to + sizeof head, from.bytes, names);
    }
    memcpy(to, &head, sizeof head);
    const size_t had = (size_t)got < size ? (size_t)got : size;
    w->out_used = front + had;
    return flags & MSG_TRUNC && socket->type != SOCK_STREAM ? got : (long)had;
}

/* As FIONREAD has it: of datagrams, the first one's. */
long socket_waiting_bytes(struct socket *socket, int real)
{
    int waiting = 0;
    if (!has_heads(socket))
        return ioctl(real, FIONREAD, &waiting) < 0 ? -errno : waiting;
    ssize_t got = recv(real, NULL, 0, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
    return got < (ssize_t)sizeof(struct packet_head) ? 0 : got - (long)sizeof(struct packet_head);
}
