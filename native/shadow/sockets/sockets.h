/* Sockets within a program's family: see sockets.c. */
#ifndef CONDOR_SOCKETS_H
#define CONDOR_SOCKETS_H

#include "shadow/serve.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { MOST_OPTIONS = 16, OPTION_ROOM = 16, MOST_BACKLOG = 4096, MOST_WAITING = 256 /* each is a byte in a pair */ };
enum { MOST_SOCKETS = 2 * MAX_FILES }; /* of a family, also those that wait to be accepted or are on their way */
enum { SOCKET_FRESH, SOCKET_BOUND, SOCKET_LISTENS, SOCKET_CONNECTED, SOCKET_SHUT };

/* An address as the program gave it or is told it. */
struct socket_name {
    uint32_t size;
    union {
        struct sockaddr any;
        struct sockaddr_un here;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
        uint8_t bytes[NAME_ROOM];
    };
};

/* Open files on their way beside a message, in whose place the kernel carries a mark. */
struct rights {
    struct rights *next;
    struct network *network; /* counts them */
    uint64_t at, size; /* on a stream: of the message's bytes */
    uint32_t count;
    struct file *files[];
};

/* What the two ends of a pair have in common: the rights on their way to each. */
struct link {
    atomic_int references;
    struct network *network;
    pthread_mutex_t lock;
    struct rights *first[2]; /* guarded by the lock, as are the next */
    struct rights *last[2];
    uint64_t sent[2], got[2]; /* bytes to each end, as are the two; the kernel would not show where a message begins */
    uint32_t parts[2];        /* messages on their way to each end; of a stream, since nothing was, see held.c */
    uint64_t held[2];         /* what that counts as */
};

struct option {
    int32_t level, name;
    uint32_t size;
    uint8_t value[OPTION_ROOM];
};

struct socket {
    struct network *network;
    struct socket *next, **place; /* guarded by the network's lock, as is all that follows but the link and the timeouts */
    int domain, type, protocol;
    int state; /* SOCKET_... */
    bool headed; /* others' packets are put into the far end */
    bool says_no_more; /* a datagram socket that was shut down for sending, of which the other end hears nothing */
    bool lost;   /* a datagram socket whose addressee has ended, of which it has not heard */
    bool bare;   /* a pair of datagram sockets of an older image: its packets have no head */
    struct socket_name own, peer;
    struct socket *to; /* whom a datagram socket of the file system's names is connected to, whatever is called so now */
    struct file *file;
    char *path; /* of one with a name in the file system: the absolute one that it was given */
    int pin;    /* what was made under that name, wherever it is now; -1: nothing */
    uint64_t device, inode;
    struct link *link;
    int end; /* of the link: which one reads here */
    int far; /* of the kernel's pair: the end that nobody else has; -1: another process has it */
    struct file **waiting; /* connections that were not accepted yet; room for BACKLOG and one more */
    uint32_t waiting_count, waiting_room;
    int backlog;
    struct ucred self, other; /* who made it, who is at the other end */
    uint32_t option_count;
    struct option options[MOST_OPTIONS];
    atomic_llong receive_ns, send_ns; /* how long one waits; 0: forever */
};

/* A family's own network: no name of it is known to the kernel. */
struct network {
    pthread_mutex_t lock;
    struct socket *sockets; /* guarded by the lock, as is the next */
    uint32_t count, next_port;
    atomic_uint on_way; /* open files beside messages: as the kernel counts a user's, see gather_rights */
    atomic_ullong held; /* bytes that are on their way through all sockets, see held.c */
};

/* In front of the bytes of each datagram: who sent it. So none is empty, which the kernel would show only once. */
struct packet_head {
    uint32_t size, reserved;
    uint8_t name[NAME_ROOM - 8];
};

static inline bool is_local_domain(const struct socket *socket)
{
    return socket->domain == AF_UNIX;
}

static inline bool has_heads(const struct socket *socket)
{
    return socket->type == SOCK_DGRAM && !socket->bare;
}

static inline bool is_connecting_kind(const struct socket *socket)
{
    return socket->type != SOCK_DGRAM;
}

/* sockets.c */
struct network *network_of(struct session *s);
void network_end(struct session *root);
struct socket *socket_new(struct network *network, int domain, int type, int protocol);
void socket_enter(struct socket *socket);
void socket_enter_locked(struct socket *socket);
void socket_pinned(struct session *s, struct socket *socket, const char *path);
void socket_connects_to(struct socket *socket, struct socket *to);
struct ucred socket_caller(const struct session *s);
void socket_discard(struct socket *socket);
void socket_end(struct socket *socket);
struct socket *socket_of(struct session *s, int64_t descriptor, long *error);
struct link *link_keep(struct link *link);
struct rights *rights_new(struct network *network, uint32_t room);
void rights_add(struct rights *rights, struct file *file);
void rights_drop(struct rights *rights);
struct link *link_new(struct network *network);
void link_drop(struct link *link);

/* held.c */
void held_sent(struct link *link, int to, size_t size);
void held_got(struct link *link, int end, size_t size, bool is_stream);
void held_dropped(struct link *link, int end);
bool may_hold(struct link *link, int to, bool is_stream, size_t *size);

/* connections.c */
bool queue_connection(struct socket *listener, struct file *other);

/* names.c */
long name_given(struct work *w, struct socket *socket, struct socket_name *name);
bool is_abstract(const struct socket_name *name);
struct socket *find_target(struct network *network, const struct socket *from, struct socket_name *name,
                           uint64_t device, uint64_t inode);
long find_path(struct work *w, const char *path, uint64_t *device, uint64_t *inode);
long make_path(struct work *w, const char *path);
long take_port(struct network *network, struct socket *socket, struct socket_name *name);
bool names_conflict(struct network *network, const struct socket *socket, const struct socket_name *name);
void to_domain(struct socket_name *name, int domain);
long reachable(const struct socket_name *name, bool to_bind);

/* socket_options.c */
enum { INTERFACE_BYTES = 40 /* struct ifreq */ };
long socket_interfaces(struct work *w, unsigned long code, uint8_t *room);

/* messages.c */
long socket_write(struct work *w, struct file *file, const uint8_t *data, size_t size, int flags);
long socket_read(struct work *w, struct file *file, size_t size);
long socket_waiting_bytes(struct socket *socket, int real);
bool send_with_rights(struct socket *socket, int real, const struct iovec *parts, int count, struct rights *rights, int flags,
                      ssize_t *sent);

#endif
