/* Sockets of a family: what they are, how they come and go.
 *
 * They are not the kernel's network.  Each is one end of a pair that the kernel made, and who can reach whom is decided by
 * a table of the family's own names: addresses of this machine, paths, abstract names.  So nothing that is sent can leave
 * the family, nothing outside it can be reached or heard, no name collides with another program's, no privilege is
 * needed, and what is on its way is saved like what lies in any pair.
 *
 *     socket   a pair; the socket keeps its far end
 *     listen   each connection that waits is a byte in the pair, so waiting for one is waiting for something to read
 *     connect  the far end becomes a file of its own, and waits to be accepted
 *     a datagram socket's far end is where anybody puts in packets, each with the name of who sent it
 *
 * Locks: the network's, then a link's.  No file is dropped with either held, since with its last use its socket ends.
 */
#include "sockets.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct network *network_of(struct session *s)
{
    struct session *root = s->root;
    pthread_mutex_lock(&table_lock);
    if (!root->network && (root->network = calloc(1, sizeof *root->network))) {
        pthread_mutex_init(&root->network->lock, NULL);
        root->network->next_port = 32768 + (uint32_t)(now_ns() / 1000 % 20000);
    }
    struct network *found = root->network;
    pthread_mutex_unlock(&table_lock);
    return found;
}

struct link *link_keep(struct link *link)
{
    link->references++;
    return link;
}

/* For as many files as ROOM. NULL: there is no memory. */
struct rights *rights_new(struct network *network, uint32_t room)
{
    struct rights *rights = calloc(1, sizeof *rights + room * sizeof(struct file *));
    if (rights)
        rights->network = network;
    return rights;
}

/* One file more is on its way. */
void rights_add(struct rights *rights, struct file *file)
{
    file_keep(file);
    rights->files[rights->count++] = file;
    rights->network->on_way++;
}

void rights_drop(struct rights *rights)
{
    while (rights) {
        struct rights *next = rights->next;
        rights->network->on_way -= rights->count;
        for (uint32_t i = 0; i < rights->count; i++)
            file_drop(rights->files[i]);
        free(rights);
        rights = next;
    }
}

static struct rights *take_rights(struct link *link, int end)
{
    pthread_mutex_lock(&link->lock);
    struct rights *found = link->first[end];
    link->first[end] = link->last[end] = NULL;
    pthread_mutex_unlock(&link->lock);
    return found;
}

void link_drop(struct link *link)
{
    if (--link->references)
        return;
    for (int end = 0; end < 2; end++) {
        rights_drop(take_rights(link, end));
        held_dropped(link, end);
    }
    pthread_mutex_destroy(&link->lock);
    free(link);
}

struct link *link_new(struct network *network)
{
    struct link *link = network ? calloc(1, sizeof *link) : NULL;
    if (link) {
        link->network = network;
        pthread_mutex_init(&link->lock, NULL);
        link->references = 1;
    }
    return link;
}

/* One that is in no table yet. NULL: there is no memory. */
struct socket *socket_new(struct network *network, int domain, int type, int protocol)
{
    struct socket *socket = network ? calloc(1, sizeof *socket) : NULL;
    if (!socket)
        return NULL;
    socket->network = network;
    socket->domain = domain;
    socket->type = type;
    socket->protocol = protocol;
    socket->far = -1;
    socket->pin = -1;
    socket->path = NULL;
    socket->own.size = sizeof(sa_family_t);
    socket->own.any.sa_family = (sa_family_t)domain;
    if (domain != AF_UNIX)
        socket->own.size = domain == AF_INET ? sizeof socket->own.four : sizeof socket->own.six;
    socket->other = (struct ucred){0, (uid_t)-1, (gid_t)-1};
    return socket;
}

/* The network's lock is held. */
void socket_enter_locked(struct socket *socket)
{
    struct network *network = socket->network;
    socket->next = network->sockets;
    socket->place = &network->sockets;
    if (socket->next)
        socket->next->place = &socket->next;
    network->sockets = socket;
    network->count++;
}

void socket_enter(struct socket *socket)
{
    pthread_mutex_lock(&socket->network->lock);
    socket_enter_locked(socket);
    pthread_mutex_unlock(&socket->network->lock);
}

/* One that is in no table. */
void socket_discard(struct socket *socket)
{
    if (socket->far >= 0)
        close(socket->far);
    if (socket->pin >= 0)
        close(socket->pin);
    if (socket->link)
        link_drop(socket->link);
    free(socket->waiting);
    free(socket->path);
    free(socket);
}

/* A datagram socket is for TO from now on, or for nobody. The network's lock is held. */
void socket_connects_to(struct socket *socket, struct socket *to)
{
    socket->to = to;
    socket->lost = false;
}

/* Those that are connected to it learn that when they next send something. The network's lock is held. */
static void lose(struct socket *gone)
{
    if (!gone->headed || !is_local_domain(gone))
        return;
    for (struct socket *s = gone->network->sockets; s; s = s->next)
        if (s->to == gone) {
            s->to = NULL;
            s->lost = true;
        }
}

/* SOCKET keeps what PATH stands for, which may get another name, or lose it. It does without where there is no room. */
void socket_pinned(struct session *s, struct socket *socket, const char *path)
{
    struct stat st;
    socket->pin = open_at(s, AT_FDCWD, path, O_PATH | O_CLOEXEC | O_NOFOLLOW, 0);
    if (socket->pin >= 0 && (fstat(socket->pin, &st) < 0 || st.st_dev != socket->device || st.st_ino != socket->inode)) {
        close(socket->pin);
        socket->pin = -1;
    }
}

/* Its file is gone, and its descriptor closed. */
void socket_end(struct socket *socket)
{
    struct network *network = socket->network;
    pthread_mutex_lock(&network->lock);
    *socket->place = socket->next;
    if (socket->next)
        socket->next->place = socket->place;
    network->count--;
    lose(socket);
    pthread_mutex_unlock(&network->lock);
    for (uint32_t i = 0; i < socket->waiting_count; i++)
        file_drop(socket->waiting[i]);
    rights_drop(take_rights(socket->link, socket->end)); /* nobody will read what is on its way here */
    pthread_mutex_lock(&socket->link->lock);
    held_dropped(socket->link, socket->end);
    pthread_mutex_unlock(&socket->link->lock);
    socket_discard(socket);
}

/* What nobody can reach any more, because it is on its way to itself. */
static bool break_circle(struct network *network)
{
    struct rights *found = NULL;
    struct file **waiting = NULL;
    uint32_t count = 0;
    pthread_mutex_lock(&network->lock);
    for (struct socket *s = network->sockets; s && !found && !count; s = s->next) {
        for (int end = 0; end < 2 && !found; end++)
            found = take_rights(s->link, end);
        waiting = s->waiting;
        count = s->waiting_count;
        s->waiting = NULL;
        s->waiting_count = s->waiting_room = 0;
    }
    pthread_mutex_unlock(&network->lock);
    for (uint32_t i = 0; i < count; i++)
        file_drop(waiting[i]);
    free(waiting);
    rights_drop(found);
    return found || count;
}

/* All sessions of the family are over. */
void network_end(struct session *root)
{
    struct network *network = root->network;
    if (!network)
        return;
    while (break_circle(network))
        ;
    pthread_mutex_destroy(&network->lock);
    free(network);
    root->network = NULL;
}

/* The socket that the program calls so; NULL: *ERROR. */
struct socket *socket_of(struct session *s, int64_t descriptor, long *error)
{
    struct file *file = file_of(s, descriptor);
    *error = !file || (file->flags & O_PATH) ? -EBADF : file->socket ? 0 : -ENOTSOCK;
    return file ? file->socket : NULL;
}

struct ucred socket_caller(const struct session *s)
{
    return (struct ucred){s->member.pid, geteuid(), getegid()};
}

/* A file for one end of a pair of the kernel's; takes both over. NULL: there is no memory, and they are closed. */
static struct file *socket_file(int real, int flags, uint32_t number, struct socket *socket)
{
    struct file *file = file_new(real, O_RDWR | (flags & O_NONBLOCK));
    if (!file) {
        socket_discard(socket);
        return NULL;
    }
    file->kind = FILE_SOCKET;
    file->number = number;
    file->end = (uint8_t)socket->end;
    file->socket = socket;
    socket->file = file;
    socket_enter(socket);
    return file;
}

/* What is known of socket(2)'s arguments. Returns 0 or -errno. */
static long check_kind(int domain, int type, int protocol)
{
    const bool stream = type == SOCK_STREAM, packets = type == SOCK_DGRAM;
    if (domain == AF_UNIX)
        return protocol && protocol != AF_UNIX                      ? -EPROTONOSUPPORT
               : stream || packets || type == SOCK_SEQPACKET        ? 0
                                                                    : -ESOCKTNOSUPPORT;
    if (domain != AF_INET && domain != AF_INET6)
        return -EAFNOSUPPORT;
    if (type == SOCK_RAW)
        return -EPERM;
    if (!stream && !packets)
        return -ESOCKTNOSUPPORT;
    return !protocol || protocol == (stream ? IPPROTO_TCP : IPPROTO_UDP) ? 0 : -EPROTONOSUPPORT;
}

static bool has_room(struct session *s)
{
    struct network *network = network_of(s);
    if (!network)
        return false;
    pthread_mutex_lock(&network->lock);
    bool has = network->count < MOST_SOCKETS;
    pthread_mutex_unlock(&network->lock);
    return has;
}

long serve_socket(struct work *w)
{
    struct session *s = w->session;
    int real[2], domain = (int)ARGUMENT(0), type = (int)ARGUMENT(1) & 0xff, protocol = (int)ARGUMENT(2);
    if (domain == AF_UNIX && type == SOCK_RAW)
        type = SOCK_DGRAM;
    long refused = ARGUMENT(1) & ~(0xff | SOCK_CLOEXEC | SOCK_NONBLOCK) ? -EINVAL : check_kind(domain, type, protocol);
    if (refused)
        return refused;
    if (!has_room(s))
        return -ENFILE;
    if (!protocol && domain != AF_UNIX)
        protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
    struct socket *socket = socket_new(network_of(s), domain, type, protocol);
    if (!socket || !(socket->link = link_new(socket->network))) {
        free(socket);
        return -ENOMEM;
    }
    const int kind = type == SOCK_STREAM ? SOCK_STREAM : SOCK_SEQPACKET;
    if (socketpair(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, real) < 0) {
        socket_discard(socket);
        return -errno;
    }
    socket->far = real[1];
    socket->headed = type == SOCK_DGRAM;
    socket->self = socket_caller(s);
    struct file *file = socket_file(real[0], (int)ARGUMENT(1), new_pair_number(), socket);
    return file ? enter_file(s, file, 0, ARGUMENT(1) & SOCK_CLOEXEC) : -ENOMEM;
}

static struct file *pair_file(struct work *w, int type, int real, int end, uint32_t number, struct link *link)
{
    struct socket *socket = socket_new(network_of(w->session), AF_UNIX, type & 0xff, 0);
    if (!socket) {
        close(real);
        return NULL;
    }
    socket->link = link_keep(link);
    socket->end = end;
    socket->state = SOCKET_CONNECTED;
    socket->peer = socket->own;
    socket->self = socket->other = socket_caller(w->session);
    return socket_file(real, (int)ARGUMENT(1), number, socket);
}

long serve_socketpair(struct work *w)
{
    struct session *s = w->session;
    int real[2], found[2], type = (int)ARGUMENT(1);
    if (!ARGUMENT(3))
        return -EFAULT;
    if (ARGUMENT(0) != AF_UNIX)
        return ARGUMENT(0) == AF_INET || ARGUMENT(0) == AF_INET6 ? -EOPNOTSUPP : -EAFNOSUPPORT;
    if (!has_room(s))
        return -ENFILE;
    if ((type & 0xff) == SOCK_RAW) /* the kernel makes one of datagrams */
        type = (type & ~0xff) | SOCK_DGRAM;
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, (int)ARGUMENT(2), real) < 0)
        return -errno;
    struct link *link = link_new(network_of(s));
    uint32_t number = new_pair_number();
    struct file *one = link ? pair_file(w, type, real[0], 0, number, link) : (close(real[0]), NULL);
    struct file *other = link ? pair_file(w, type, real[1], 1, number, link) : (close(real[1]), NULL);
    if (link)
        link_drop(link);
    if (!one || !other) {
        if (one)
            file_drop(one);
        if (other)
            file_drop(other);
        return -ENOMEM;
    }
    found[0] = (int)enter_file(s, one, 0, type & SOCK_CLOEXEC);
    found[1] = found[0] < 0 ? (file_drop(other), found[0]) : (int)enter_file(s, other, 0, type & SOCK_CLOEXEC);
    if (found[1] < 0) {
        if (found[0] >= 0)
            close_entry(s, found[0]);
        return found[1];
    }
    uint8_t *to = out_room(w, sizeof found);
    if (!to)
        return -ENOMEM;
    memcpy(to, found, sizeof found);
    return 0;
}

long serve_bind(struct work *w)
{
    long error;
    struct socket_name name;
    struct socket *socket = socket_of(w->session, ARGUMENT(0), &error);
    if (!socket || (error = name_given(w, socket, &name)))
        return error;
    struct network *network = socket->network;
    char *path = NULL;
    uint64_t device = 0, inode = 0;
    pthread_mutex_lock(&network->lock);
    bool taken = socket->state != SOCKET_FRESH;
    pthread_mutex_unlock(&network->lock);
    if (taken)
        return -EINVAL;
    if (!is_local_domain(socket)) {
        if ((error = reachable(&name, true)))
            return error;
    } else if (name.size > sizeof(sa_family_t) && !is_abstract(&name)) {
        char where[PATH_LIMIT] = "";
        if (name.here.sun_path[0] != '/' && !getcwd(where, sizeof where))
            return -errno;
        if (strlen(where) + 1 + strlen(name.here.sun_path) >= PATH_LIMIT)
            return -ENAMETOOLONG;
        if ((error = make_path(w, name.here.sun_path)) || (error = find_path(w, name.here.sun_path, &device, &inode)))
            return error == -EEXIST ? -EADDRINUSE : error;
        if (asprintf(&path, "%s%s%s", where, *where ? "/" : "", name.here.sun_path) < 0)
            return -ENOMEM;
    }
    pthread_mutex_lock(&network->lock);
    error = socket->state != SOCKET_FRESH ? -EINVAL : take_port(network, socket, &name); /* another may have bound it */
    if (!error && !path && names_conflict(network, socket, &name))
        error = -EADDRINUSE;
    for (struct socket *old = network->sockets; old && path && !error; old = old->next)
        if (old->inode == inode && old->device == device)
            old->inode = 0; /* the name of that one was removed, and its number is another file's now */
    if (!error) {
        socket->own = name;
        socket->path = path;
        socket->device = device;
        socket->inode = inode;
        socket->state = SOCKET_BOUND;
        if (path)
            socket_pinned(w->session, socket, path);
        path = NULL;
    }
    pthread_mutex_unlock(&network->lock);
    free(path);
    return error;
}
