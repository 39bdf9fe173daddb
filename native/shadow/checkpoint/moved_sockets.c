/* Sockets in a checkpoint: what each is, who waits to be accepted, and what is on its way to it, with the open files
 * beside it.  All is described without being taken out; in a restarted program, pairs are made again like any
 * (pairs.c), and filled when all files are there. */
#include "described.h"
#include "shadow/sockets/sockets.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Followed by the options, numbers of the files that wait to be accepted, or of the one whom a datagram socket is
 * connected to, and what is on its way: in pieces. */
struct described_socket {
    int32_t domain, type, protocol, state, backlog, send_room;
    uint8_t headed, has_far, is_named, bare;
    uint32_t options, waiting;
    struct socket_name own, peer;
    struct ucred self, other;
    int64_t receive_ns, send_ns;
};

enum { NOBODY_ANY_MORE = -1 /* in place of a number: whom it was connected to has ended */ };

/* Followed by numbers of files and the bytes. */
struct described_message {
    uint32_t size, rights;
};

/* ---- to bytes */

/* Files that only sockets have, so that each is described. They are kept until the description is made. Returns false
 * where there are too many. */
bool gather_hidden(struct file *file, bool (*note)(void *list, struct file *hidden), void *list)
{
    struct socket *socket = file->socket;
    struct file *addressee = NULL;
    bool fits = true;
    if (!socket)
        return true;
    pthread_mutex_lock(&socket->network->lock);
    if (socket->to && file_kept(socket->to->file)) {
        addressee = socket->to->file;
        fits = note(list, addressee);
    }
    for (uint32_t i = 0; i < socket->waiting_count && fits; i++)
        fits = note(list, socket->waiting[i]);
    pthread_mutex_lock(&socket->link->lock);
    for (const struct rights *r = socket->link->first[socket->end]; r && fits; r = r->next)
        for (uint32_t i = 0; i < r->count && fits; i++)
            fits = note(list, r->files[i]);
    pthread_mutex_unlock(&socket->link->lock);
    pthread_mutex_unlock(&socket->network->lock);
    if (addressee)
        file_drop(addressee);
    return fits;
}

struct writer {
    uint8_t *at, *end;
};

static bool put(struct writer *to, const void *from, size_t size)
{
    if ((size_t)(to->end - to->at) < size)
        return false;
    memcpy(to->at, from, size);
    to->at += size;
    return true;
}

/* Whom a datagram socket is connected to. It may have ended since all were gathered. */
static bool put_addressee(struct writer *to, const struct socket *socket, int (*number)(void *list, struct file *file), void *list)
{
    const int32_t found = socket->to ? number(list, socket->to->file) : NOBODY_ANY_MORE;
    return put(to, &found, sizeof found);
}

static bool put_number_of(struct writer *to, struct file *file, int (*number)(void *list, struct file *file), void *list)
{
    const int found = number(list, file);
    const uint32_t it = (uint32_t)found;
    return found >= 0 && put(to, &it, sizeof it);
}

/* What lies AT so many bytes of what is on its way. *MARKED: open files go with it, if it is a packet. */
static ssize_t peek(int real, int at, uint8_t *to, size_t size, bool packets, bool *marked)
{
    struct iovec part = {to, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (setsockopt(real, SOL_SOCKET, SO_PEEK_OFF, &at, sizeof at) < 0)
        return -1;
    ssize_t got = recvmsg(real, &message, MSG_PEEK | MSG_DONTWAIT | (packets ? MSG_TRUNC : 0));
    *marked = message.msg_flags & MSG_CTRUNC;
    return got;
}

/* What is on its way to SOCKET, which the kernel shows piece by piece. The link's lock is held. Returns 0 or -errno. */
static long put_messages(struct writer *to, struct socket *socket, int real, bool ends,
                         int (*number)(void *list, struct file *file), void *list)
{
    const bool packets = socket->type != SOCK_STREAM;
    const struct link *link = socket->link;
    const struct rights *next = link->first[socket->end];
    for (int seen = 0;;) {
        struct described_message head;
        uint8_t *const at = to->at + sizeof head;
        if (at > to->end)
            return -EFBIG;
        const size_t room = (size_t)(to->end - at);
        const size_t before = next && !packets ? (size_t)(next->at - link->got[socket->end]) - (size_t)seen : 0;
        const bool whole = next && !packets && !before; /* of a stream, the bytes that files go with are a piece */
        const size_t most = whole ? next->size : before;
        bool marked = false;
        ssize_t got = peek(real, seen, at, most && most < room ? most : room, packets, &marked);
        if (got < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
        if (!got && (!packets || ends))
            return 0;
        marked = next && (packets ? marked : whole);
        head = (struct described_message){(uint32_t)got, marked ? next->count : 0};
        const size_t numbers = head.rights * sizeof(uint32_t);
        if ((size_t)got + numbers > room)
            return -EFBIG;
        memmove(at + numbers, at, (size_t)got);
        put(to, &head, sizeof head);
        for (uint32_t i = 0; i < head.rights; i++)
            if (!put_number_of(to, next->files[i], number, list))
                return -ESTALE; /* it was not there when all were gathered */
        next = marked ? next->next : next;
        to->at += got;
        seen += (int)got;
    }
}

static int room_of(int real)
{
    int room = 0;
    socklen_t size = sizeof room;
    return getsockopt(real, SOL_SOCKET, SO_SNDBUF, &room, &size) < 0 ? 0 : room;
}

/* The kernel doubles what it is asked for. */
static void make_room(int real, int room)
{
    const int half = room / 2;
    if (room_of(real) < room)
        setsockopt(real, SOL_SOCKET, SO_SNDBUF, &half, sizeof half);
}

/* Where in the file system SOCKET is to be found now, in ROOM of SIZE bytes. Returns how long that is, 0: nowhere. */
size_t socket_path(const struct socket *socket, char *room, size_t size)
{
    char link[64];
    struct stat named;
    snprintf(link, sizeof link, "/proc/self/fd/%d", socket->pin);
    ssize_t length = socket->pin >= 0 ? readlink(link, room, size - 1)
                     : socket->path   ? snprintf(room, size, "%s", socket->path)
                                      : 0;
    if (length <= 0 || length >= (ssize_t)size)
        return 0;
    room[length] = 0;
    const bool is_there = lstat(room, &named) == 0 && named.st_dev == socket->device && named.st_ino == socket->inode;
    return is_there ? (size_t)length : 0;
}

/* The content of a socket's description. Returns its bytes, or -errno. */
ssize_t socket_described(struct file *file, struct described_file *d, uint8_t *room, size_t size,
                         int (*number)(void *list, struct file *file), void *list)
{
    struct socket *socket = file->socket;
    struct writer to = {room, room + size};
    int kind = SOCK_STREAM, off = -1;
    socklen_t kind_size = sizeof kind;
    struct pollfd hears = {file->real, POLLRDHUP, 0};
    char path[PATH_LIMIT];
    if (getsockopt(file->real, SOL_SOCKET, SO_TYPE, &kind, &kind_size) < 0 || poll(&hears, 1, 0) < 0)
        return -errno;
    const bool ends = hears.revents & POLLRDHUP;
    d->offset = kind | (ends ? HEARS_NO_MORE : 0) | (socket->says_no_more ? SAYS_NO_MORE : 0);
    pthread_mutex_lock(&socket->network->lock);
    struct described_socket it = {
        .domain = socket->domain, .type = socket->type, .protocol = socket->protocol, .state = socket->state,
        .backlog = socket->backlog, .send_room = room_of(file->real), .headed = socket->headed, .bare = socket->bare,
        .has_far = socket->far >= 0,
        .options = socket->option_count, .waiting = socket->to || socket->lost ? 1 : socket->waiting_count,
        .own = socket->own, .peer = socket->peer,
        .self = socket->self, .other = socket->other, .receive_ns = socket->receive_ns, .send_ns = socket->send_ns};
    it.is_named = socket->inode && socket_path(socket, path, sizeof path);
    bool fits = put(&to, &it, sizeof it) && put(&to, socket->options, it.options * sizeof socket->options[0]);
    if (socket->to || socket->lost)
        fits = fits && put_addressee(&to, socket, number, list);
    for (uint32_t i = 0; i < socket->waiting_count && fits; i++)
        fits = put_number_of(&to, socket->waiting[i], number, list);
    long result = fits ? 0 : -EFBIG;
    if (!result && socket->state != SOCKET_LISTENS && socket->state != SOCKET_SHUT) {
        pthread_mutex_lock(&socket->link->lock);
        result = put_messages(&to, socket, file->real, ends, number, list);
        setsockopt(file->real, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof off);
        pthread_mutex_unlock(&socket->link->lock);
    }
    pthread_mutex_unlock(&socket->network->lock);
    return result ? result : to.at - room;
}

/* ---- and back; all of it is hostile */

struct reading {
    const uint8_t *at, *end;
};

static const uint8_t *get(struct reading *r, size_t size)
{
    if ((size_t)(r->end - r->at) < size)
        return NULL;
    const uint8_t *found = r->at;
    r->at += size;
    return found;
}

static bool is_sound(const struct described_socket *it)
{
    const bool known = it->domain == AF_UNIX || it->domain == AF_INET || it->domain == AF_INET6;
    return known && (it->type == SOCK_STREAM || it->type == SOCK_DGRAM || it->type == SOCK_SEQPACKET) &&
           (it->domain == AF_UNIX || it->type != SOCK_SEQPACKET) && it->state >= SOCKET_FRESH && it->state <= SOCKET_SHUT &&
           it->own.size <= NAME_ROOM && it->peer.size <= NAME_ROOM &&
           (it->domain != AF_UNIX || (it->own.size <= sizeof it->own.here && it->peer.size <= sizeof it->peer.here)) &&
           it->options <= MOST_OPTIONS && it->headed <= 1 &&
           it->waiting <= (it->headed ? 1 : MOST_BACKLOG + 1) && it->bare <= 1 &&
           (!it->headed || (it->type == SOCK_DGRAM && !it->bare)) && it->receive_ns >= 0 && it->send_ns >= 0 &&
           it->own.any.sa_family == it->domain && (!it->peer.size || it->peer.any.sa_family == it->domain) &&
           it->backlog >= 0 && it->backlog <= MOST_BACKLOG;
}

/* The link between both ends of a pair, by the ends' files that are there already. */
static struct link *link_of(struct network *network, struct pairs *pairs, const struct described_file *d)
{
    struct link **place = pair_link(pairs, d);
    if (!place)
        return NULL;
    if (!*place)
        *place = link_new(network);
    return *place ? link_keep(*place) : NULL;
}

/* A name in the file system is the same file as before, or a new one where there is none. */
static void find_again(struct work *w, struct socket *socket, const char *path)
{
    if (!path || path[0] != '/' || strlen(path) >= PATH_LIMIT || !(socket->path = strdup(path)))
        return;
    long found = find_path(w, path, &socket->device, &socket->inode);
    if (found == -ENOENT && !make_path(w, path))
        found = find_path(w, path, &socket->device, &socket->inode);
    if (found)
        socket->inode = 0;
    else
        socket_pinned(w->session, socket, path);
}

/* What a file's SOCKET is again, but for what waits; REAL: the kernel's. NULL: errno. */
struct socket *socket_again(struct work *w, struct pairs *pairs, const struct described_file *d, const char *path,
                            const uint8_t *content)
{
    struct described_socket it;
    struct reading r = {content, content + d->content_size};
    const uint8_t *head = get(&r, sizeof it);
    errno = EPROTO;
    if (!head)
        return NULL;
    memcpy(&it, head, sizeof it);
    const uint8_t *options = is_sound(&it) ? get(&r, it.options * sizeof(struct option)) : NULL;
    if (!options)
        return NULL;
    errno = ENOMEM;
    struct socket *socket = socket_new(network_of(w->session), it.domain, it.type, it.protocol);
    if (!socket || !(socket->link = link_of(socket->network, pairs, d))) {
        free(socket);
        return NULL;
    }
    const int *ends = pair_ends(pairs, d);
    socket->end = d->end;
    socket->state = it.state;
    socket->headed = it.headed;
    socket->says_no_more = d->offset & SAYS_NO_MORE;
    socket->bare = it.bare;
    socket->own = it.own;
    socket->peer = it.peer;
    socket->own.bytes[NAME_ROOM - 1] = socket->peer.bytes[NAME_ROOM - 1] = 0;
    socket->self = it.self;
    socket->other = it.other;
    socket->backlog = it.backlog;
    socket->receive_ns = it.receive_ns;
    socket->send_ns = it.send_ns;
    for (uint32_t i = 0; i < it.options; i++) {
        struct option one;
        memcpy(&one, options + i * sizeof one, sizeof one);
        if (one.size <= OPTION_ROOM)
            socket->options[socket->option_count++] = one;
    }
    const bool needs_far = it.headed || it.state == SOCKET_LISTENS || it.state == SOCKET_FRESH || it.state == SOCKET_BOUND;
    if (d->end == 0 && (it.has_far || needs_far) && ends)
        socket->far = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
    if ((d->end || socket->far < 0) && needs_far) {
        socket_discard(socket);
        errno = EPROTO;
        return NULL;
    }
    if (it.is_named)
        find_again(w, socket, path);
    return socket;
}

static struct file *file_numbered(struct file **files, uint32_t count, const uint8_t *from)
{
    uint32_t number;
    memcpy(&number, from, sizeof number);
    return number < count && files[number]->kind != FILE_RECORDS ? files[number] : NULL;
}

static long fill_messages(struct socket *socket, struct reading *r, int into, struct file **files, uint32_t count)
{
    for (struct described_message head; r->at < r->end;) {
        const uint8_t *from = get(r, sizeof head);
        if (!from)
            return -EPROTO;
        memcpy(&head, from, sizeof head);
        if (head.rights > MOST_RIGHTS)
            return -EPROTO;
        const uint8_t *numbers = get(r, head.rights * sizeof(uint32_t)), *bytes = numbers ? get(r, head.size) : NULL;
        if (!bytes || (has_heads(socket) && head.size < sizeof(struct packet_head)))
            return -EPROTO;
        struct rights *rights = head.rights ? rights_new(socket->network, head.rights) : NULL;
        if (head.rights && !rights)
            return -ENOMEM;
        for (uint32_t i = 0; i < head.rights; i++) {
            struct file *file = file_numbered(files, count, numbers + i * sizeof(uint32_t));
            if (!file) {
                rights_drop(rights);
                return -EPROTO;
            }
            rights_add(rights, file);
        }
        const struct iovec part = {(void *)(uintptr_t)bytes, head.size};
        ssize_t sent;
        /* from the other end, whatever kind it is: to where this socket reads */
        struct socket sender = {.link = socket->link, .headed = true, .end = socket->end};
        if (!send_with_rights(&sender, into, &part, 1, rights, 0, &sent))
            rights_drop(rights);
        if (sent != (ssize_t)head.size)
            return sent < 0 ? -errno : -ENOSPC;
    }
    return 0;
}

/* Whom a datagram socket was connected to. The network's lock is held. Returns 0 or -errno. */
static long addressee_again(struct socket *socket, struct reading *r, struct file **files, uint32_t count)
{
    int32_t number;
    const uint8_t *from = get(r, sizeof number);
    if (!from)
        return -EPROTO;
    memcpy(&number, from, sizeof number);
    struct file *file = number == NOBODY_ANY_MORE ? NULL : file_numbered(files, count, from);
    struct socket *to = file ? file->socket : NULL;
    if (number != NOBODY_ANY_MORE && (!to || !to->headed || !is_local_domain(to) || !is_local_domain(socket)))
        return -EPROTO;
    socket_connects_to(socket, to);
    socket->lost = !to;
    return 0;
}

/* What waits to be accepted, and what is on its way, when all files are there. Returns 0 or -errno. */
long socket_filled(struct file *file, struct pairs *pairs, const struct described_file *d, const uint8_t *content,
                   struct file **files, uint32_t count)
{
    struct socket *socket = file->socket;
    struct described_socket it;
    struct reading r = {content, content + d->content_size};
    const int *ends = pair_ends(pairs, d);
    const uint8_t *head = get(&r, sizeof it);
    if (!head)
        return -EINVAL;
    memcpy(&it, head, sizeof it);
    if (!get(&r, it.options * sizeof(struct option)))
        return -EINVAL;
    if (!ends)
        return -EMFILE;
    pthread_mutex_lock(&socket->network->lock);
    long result = it.headed && it.waiting ? addressee_again(socket, &r, files, count) : 0;
    for (uint32_t i = 0; i < it.waiting && !it.headed && !result; i++) {
        const uint8_t *number = get(&r, sizeof(uint32_t));
        struct file *other = number ? file_numbered(files, count, number) : NULL;
        if (!other || !other->socket || socket->state != SOCKET_LISTENS) {
            result = -EPROTO;
        } else if (!queue_connection(socket, other)) {
            result = -ENOSPC;
        } else {
            file_keep(other);
        }
    }
    pthread_mutex_unlock(&socket->network->lock);
    const int into = ends[!d->end];
    if (!result) {
        make_room(file->real, it.send_room);
        make_room(into, it.headed ? it.send_room : 0);
        make_room(into, 2 * (int)d->content_size);
        result = fill_messages(socket, &r, into, files, count);
    }
    if (!result && (d->offset & HEARS_NO_MORE) && shutdown(file->real, SHUT_RD) < 0)
        result = -errno;
    return result;
}
