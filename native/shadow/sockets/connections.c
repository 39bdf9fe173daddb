/* Connections between the sockets of a family: who listens, who waits to be accepted, who hears no more. */
#include "sockets.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

long serve_listen(struct work *w)
{
    long error;
    struct socket *socket = socket_of(w->session, ARGUMENT(0), &error);
    if (!socket)
        return error;
    struct network *network = socket->network;
    pthread_mutex_lock(&network->lock);
    struct socket_name name = socket->own;
    if (!is_connecting_kind(socket))
        error = -EOPNOTSUPP;
    else if (socket->state == SOCKET_CONNECTED || socket->state == SOCKET_SHUT ||
             (is_local_domain(socket) && socket->state == SOCKET_FRESH))
        error = -EINVAL;
    else if (!is_local_domain(socket) && socket->state == SOCKET_FRESH)
        error = take_port(network, socket, &name);
    socket->own = error ? socket->own : name;
    if (!error) {
        socket->self = socket_caller(w->session);
        const int backlog = (int)ARGUMENT(1);
        socket->backlog = backlog < 0 || backlog > MOST_BACKLOG ? MOST_BACKLOG : backlog;
        socket->state = SOCKET_LISTENS;
    }
    pthread_mutex_unlock(&network->lock);
    return error;
}

/* The far end of SOCKET as a file of the other side's. NULL: there is no memory; the lock is held. */
static struct file *other_side(struct file *file, const struct socket *listener, const struct socket_name *dialled)
{
    struct socket *socket = file->socket;
    struct socket *fresh = socket_new(socket->network, listener->domain, socket->type, socket->protocol);
    if (!fresh)
        return NULL;
    struct file *other = calloc(1, sizeof *other);
    if (!other) {
        socket_discard(fresh);
        return NULL;
    }
    fresh->link = link_keep(socket->link);
    fresh->end = 1;
    fresh->state = SOCKET_CONNECTED;
    fresh->own = is_local_domain(listener) ? listener->own : *dialled;
    fresh->peer = socket->own;
    to_domain(&fresh->own, listener->domain);
    to_domain(&fresh->peer, listener->domain);
    fresh->self = listener->self;
    fresh->other = socket->self;
    fresh->option_count = listener->option_count;
    memcpy(fresh->options, listener->options, sizeof fresh->options);
    file_begin(other, socket->far, O_RDWR);
    socket->far = -1;
    other->kind = FILE_SOCKET;
    other->number = file->number;
    other->end = 1;
    other->socket = fresh;
    fresh->file = other;
    socket_enter_locked(fresh);
    return other;
}

/* One more connection that waits. The network's lock is held. */
bool queue_connection(struct socket *listener, struct file *other)
{
    if (listener->waiting_count == listener->waiting_room) {
        uint32_t room = listener->waiting_room ? 2 * listener->waiting_room : 8;
        struct file **more = realloc(listener->waiting, room * sizeof(struct file *));
        if (!more)
            return false;
        listener->waiting = more;
        listener->waiting_room = room;
    }
    if (send(listener->far, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
        return false;
    listener->waiting[listener->waiting_count++] = other;
    return true;
}

/* Connects a stream to who listens at NAME. The network's lock is held. Returns 0, PARKED: it must wait, or -errno;
 * *LOST is to be dropped without the lock. */
static long connect_to(struct file *file, struct socket *listener, struct socket_name *name, struct file **lost)
{
    struct socket *socket = file->socket;
    if (listener->type != socket->type)
        return -EPROTOTYPE;
    if (listener->state != SOCKET_LISTENS)
        return -ECONNREFUSED;
    const bool local = is_local_domain(socket);
    const bool is_short = local && listener->backlog < MOST_WAITING; /* TCP's are asked again by the kernel */
    const uint32_t most = is_short ? (uint32_t)listener->backlog : MOST_WAITING;
    if (listener->waiting_count > most)
        return local && file->wants_nonblocking ? -EAGAIN : PARKED;
    if (socket->network->count >= MOST_SOCKETS) /* those that wait cost the program no descriptor */
        return -ENFILE;
    if (!local && socket->state == SOCKET_FRESH) {
        struct socket_name own = *name;
        own.four.sin_port = 0; /* at the same place in both */
        long error = take_port(socket->network, socket, &own);
        if (error)
            return error;
        socket->own = own;
    }
    struct file *other = other_side(file, listener, name);
    if (!other)
        return -ENOMEM;
    socket->peer = local ? listener->own : *name;
    socket->other = listener->self;
    socket->state = SOCKET_CONNECTED;
    if (queue_connection(listener, other))
        return 0;
    *lost = other;
    return -ECONNREFUSED;
}

/* A datagram socket only notes whom it talks to. The network's lock is held. */
static long note_peer(struct socket *socket, const struct socket_name *name, struct socket *found)
{
    if (is_local_domain(socket) && !found)
        return -ECONNREFUSED;
    if (found && found->type != socket->type)
        return -EPROTOTYPE;
    if (!is_local_domain(socket) && socket->state == SOCKET_FRESH) {
        struct socket_name own = *name;
        own.four.sin_port = 0;
        long error = take_port(socket->network, socket, &own);
        if (error)
            return error;
        socket->own = own;
        socket->state = SOCKET_BOUND;
    }
    socket->peer = *name;
    socket_connects_to(socket, found && socket->headed && found->headed && is_local_domain(socket) ? found : NULL);
    socket->other = found ? found->self : socket->other;
    return 0;
}

/* Until when a call of SOCKET may wait that has just begun to. */
static void limit_wait(struct work *w, const struct socket *socket)
{
    int64_t limit = socket->send_ns;
    if (!w->again && limit)
        w->until_ns = now_ns() + limit;
}

static long connect_named(struct file *file, struct socket_name *name, uint64_t device, uint64_t inode)
{
    struct socket *socket = file->socket;
    struct network *network = socket->network;
    struct file *lost = NULL;
    long result;
    pthread_mutex_lock(&network->lock);
    if (is_connecting_kind(socket) && socket->state == SOCKET_CONNECTED) {
        result = -EISCONN;
    } else if (is_connecting_kind(socket) &&
               (socket->state == SOCKET_LISTENS || socket->state == SOCKET_SHUT || socket->far < 0)) {
        result = is_local_domain(socket) ? -EINVAL : -EISCONN;
    } else {
        struct socket *found = find_target(network, socket, name, device, inode);
        if (!is_connecting_kind(socket))
            result = note_peer(socket, name, found);
        else
            result = found ? connect_to(file, found, name, &lost) : -ECONNREFUSED;
    }
    pthread_mutex_unlock(&network->lock);
    if (lost)
        file_drop(lost);
    return result;
}

long serve_connect(struct work *w)
{
    long error;
    struct socket_name name;
    uint64_t device = 0, inode = 0;
    struct file *file = file_of(w->session, ARGUMENT(0));
    struct socket *socket = socket_of(w->session, ARGUMENT(0), &error);
    if (!socket)
        return error;
    const bool whole = ARGUMENT(1) >= (int64_t)sizeof(sa_family_t) && w->head.size >= sizeof(sa_family_t);
    if (whole && !w->payload[0] && !w->payload[1]) {
        if (is_connecting_kind(socket)) /* AF_UNSPEC */
            return -EINVAL;
        pthread_mutex_lock(&socket->network->lock);
        socket->peer.size = 0;
        socket_connects_to(socket, NULL);
        pthread_mutex_unlock(&socket->network->lock);
        return 0;
    }
    if ((error = name_given(w, socket, &name)))
        return error;
    if (is_local_domain(socket) && name.size <= sizeof(sa_family_t))
        return -EINVAL;
    if (!is_local_domain(socket) && (error = reachable(&name, false)))
        return error;
    if (is_local_domain(socket) && !is_abstract(&name) && (error = find_path(w, name.here.sun_path, &device, &inode)))
        return error;
    if (w->again && w->until_ns >= 0 && now_ns() >= w->until_ns)
        return -EAGAIN;
    limit_wait(w, socket);
    long result = connect_named(file, &name, device, inode);
    if (result == PARKED)
        w->retry_ns = now_ns() + 2000000;
    return result;
}

static bool has_free_entry(const struct session *s)
{
    for (int i = 0; i < s->most_files; i++)
        if (!s->entries[i].file)
            return true;
    return false;
}

long serve_accept4(struct work *w)
{
    struct session *s = w->session;
    long error;
    struct file *file = file_of(s, ARGUMENT(0)), *found = NULL;
    struct socket *socket = socket_of(s, ARGUMENT(0), &error);
    int flags = (int)ARGUMENT(3);
    char byte;
    if (flags & ~(SOCK_CLOEXEC | SOCK_NONBLOCK))
        return -EINVAL;
    if (!socket)
        return error;
    if (!is_connecting_kind(socket))
        return -EOPNOTSUPP;
    if (!has_free_entry(s))
        return -EMFILE;
    pthread_mutex_lock(&socket->network->lock);
    bool listens = socket->state == SOCKET_LISTENS;
    if (listens && socket->waiting_count && recv(file->real, &byte, 1, MSG_DONTWAIT) == 1) {
        found = socket->waiting[0];
        memmove(socket->waiting, socket->waiting + 1, --socket->waiting_count * sizeof found);
    }
    pthread_mutex_unlock(&socket->network->lock);
    if (!listens)
        return -EINVAL;
    if (!found) {
        if (w->again && w->until_ns >= 0 && now_ns() >= w->until_ns)
            return -EAGAIN;
        int64_t limit = socket->receive_ns;
        if (!w->again && limit)
            w->until_ns = now_ns() + limit;
        return would_wait(w, file, POLLIN);
    }
    found->wants_nonblocking = flags & SOCK_NONBLOCK;
    const struct socket_name name = found->socket->peer;
    long descriptor = enter_file(s, found, 0, flags & SOCK_CLOEXEC);
    uint8_t *to = descriptor < 0 ? NULL : out_room(w, sizeof name.size + NAME_ROOM);
    if (to) {
        memcpy(to, &name.size, sizeof name.size);
        memcpy(to + sizeof name.size, name.bytes, NAME_ROOM);
    }
    return descriptor;
}

long serve_shutdown(struct work *w)
{
    long error;
    int how = (int)ARGUMENT(1);
    struct file *file = file_of(w->session, ARGUMENT(0)), **waiting = NULL;
    struct socket *socket = socket_of(w->session, ARGUMENT(0), &error);
    uint32_t count = 0;
    if (!socket)
        return error;
    if (how < SHUT_RD || how > SHUT_RDWR)
        return -EINVAL;
    pthread_mutex_lock(&socket->network->lock);
    if (socket->state == SOCKET_LISTENS && how != SHUT_WR) {
        shutdown(socket->far, SHUT_RDWR);
        socket->state = SOCKET_SHUT;
        waiting = socket->waiting;
        count = socket->waiting_count;
        socket->waiting = NULL;
        socket->waiting_count = socket->waiting_room = 0;
    } else if (socket->headed ? socket->peer.size != 0 : socket->state == SOCKET_CONNECTED) {
        socket->says_no_more |= socket->type == SOCK_DGRAM && how != SHUT_RD;
        error = !socket->headed || how != SHUT_WR ? result_of(shutdown(file->real, socket->headed ? SHUT_RD : how)) : 0;
    } else {
        error = -ENOTCONN;
    }
    pthread_mutex_unlock(&socket->network->lock);
    for (uint32_t i = 0; i < count; i++)
        file_drop(waiting[i]);
    free(waiting);
    return error;
}
