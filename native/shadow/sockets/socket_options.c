/* What the program sets of its sockets and is told of them.  Each option that is known here means nothing inside one
 * machine, or is done here; what would have to be done and is not, is refused. */
#include "sockets.h"

#include <net/if.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

/* Options that are kept and told again; DEFAULT: what one is that was not set. */
static const struct known_option {
    int16_t level, name;
    int32_t size, standard;
} kept_options[] = {
    {SOL_SOCKET, SO_REUSEADDR, 4, 0}, {SOL_SOCKET, SO_REUSEPORT, 4, 0}, {SOL_SOCKET, SO_KEEPALIVE, 4, 0},
    {SOL_SOCKET, SO_BROADCAST, 4, 0}, {SOL_SOCKET, SO_LINGER, 8, 0}, {SOL_SOCKET, SO_OOBINLINE, 4, 0},
    {SOL_SOCKET, SO_PRIORITY, 4, 0}, {SOL_SOCKET, SO_RCVLOWAT, 4, 1}, {SOL_SOCKET, SO_DONTROUTE, 4, 0},
    {SOL_SOCKET, SO_INCOMING_CPU, 4, 0}, {SOL_SOCKET, SO_BUSY_POLL, 4, 0},
    {IPPROTO_TCP, TCP_NODELAY, 4, 0}, {IPPROTO_TCP, TCP_CORK, 4, 0}, {IPPROTO_TCP, TCP_KEEPIDLE, 4, 7200},
    {IPPROTO_TCP, TCP_KEEPINTVL, 4, 75}, {IPPROTO_TCP, TCP_KEEPCNT, 4, 9}, {IPPROTO_TCP, TCP_USER_TIMEOUT, 4, 0},
    {IPPROTO_TCP, TCP_QUICKACK, 4, 1}, {IPPROTO_TCP, TCP_DEFER_ACCEPT, 4, 0}, {IPPROTO_TCP, TCP_MAXSEG, 4, 65483},
    {IPPROTO_TCP, TCP_SYNCNT, 4, 6}, {IPPROTO_TCP, TCP_LINGER2, 4, 60}, {IPPROTO_TCP, TCP_WINDOW_CLAMP, 4, 0},
    {IPPROTO_IP, IP_TOS, 4, 0}, {IPPROTO_IP, IP_TTL, 4, 64}, {IPPROTO_IP, IP_RECVERR, 4, 0},
    {IPPROTO_IP, IP_MTU_DISCOVER, 4, 1}, {IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 4, 0},
    {IPPROTO_IPV6, IPV6_V6ONLY, 4, 0}, {IPPROTO_IPV6, IPV6_UNICAST_HOPS, 4, 64}, {IPPROTO_IPV6, IPV6_RECVERR, 4, 0},
    {IPPROTO_IPV6, IPV6_TCLASS, 4, 0},
};

static const struct known_option *kept_option(const struct socket *socket, int64_t level, int64_t name)
{
    const bool fits = level == SOL_SOCKET || (level == IPPROTO_TCP && socket->protocol == IPPROTO_TCP) ||
                      (level == IPPROTO_IP && socket->domain != AF_UNIX) ||
                      (level == IPPROTO_IPV6 && socket->domain == AF_INET6);
    for (size_t i = 0; fits && i < sizeof kept_options / sizeof *kept_options; i++)
        if (kept_options[i].level == level && kept_options[i].name == name)
            return &kept_options[i];
    return NULL;
}

static struct option *option_of(struct socket *socket, int64_t level, int64_t name)
{
    for (uint32_t i = 0; i < socket->option_count; i++)
        if (socket->options[i].level == level && socket->options[i].name == name)
            return &socket->options[i];
    return NULL;
}

static long keep_option(struct socket *socket, const struct known_option *known, const uint8_t *value, size_t size)
{
    if (size < (size_t)known->size)
        return -EINVAL;
    struct network *network = socket->network;
    pthread_mutex_lock(&network->lock);
    struct option *option = option_of(socket, known->level, known->name);
    if (!option && socket->option_count < MOST_OPTIONS)
        option = &socket->options[socket->option_count++];
    if (option) {
        *option = (struct option){known->level, known->name, (uint32_t)known->size, {0}};
        memcpy(option->value, value, (size_t)known->size);
    }
    pthread_mutex_unlock(&network->lock);
    return option ? 0 : -ENOBUFS;
}

static long set_timeout(atomic_llong *to, const uint8_t *value, size_t size)
{
    struct timeval limit;
    if (size < sizeof limit)
        return -EINVAL;
    memcpy(&limit, value, sizeof limit);
    if (limit.tv_usec < 0 || limit.tv_usec >= 1000000)
        return -EDOM;
    *to = limit.tv_sec < 0 ? 1 : limit.tv_sec > 1000000000 ? 0 : limit.tv_sec * 1000000000ll + limit.tv_usec * 1000ll;
    return 0;
}

/* Arguments: descriptor, level, name; the value is the payload. */
long serve_setsockopt(struct work *w)
{
    long error;
    struct socket *socket = socket_of(w->session, ARGUMENT(0), &error);
    const int64_t level = ARGUMENT(1), name = ARGUMENT(2);
    int number = 0;
    if (!socket)
        return error;
    memcpy(&number, w->payload, w->head.size < sizeof number ? w->head.size : sizeof number);
    if (level == SOL_SOCKET) {
        switch (name) {
        case SO_SNDBUF: case SO_RCVBUF: {
            if (w->head.size < sizeof number)
                return -EINVAL;
            int real = real_of(w->session, ARGUMENT(0)), far = socket->far;
            setsockopt(real, SOL_SOCKET, SO_SNDBUF, &number, sizeof number);
            if (far >= 0 && socket->headed)
                setsockopt(far, SOL_SOCKET, SO_SNDBUF, &number, sizeof number);
            return result_of(setsockopt(real, SOL_SOCKET, (int)name, &number, sizeof number));
        }
        case SO_RCVTIMEO: return set_timeout(&socket->receive_ns, w->payload, w->head.size);
        case SO_SNDTIMEO: return set_timeout(&socket->send_ns, w->payload, w->head.size);
        case SO_PASSCRED: return w->head.size < sizeof number ? -EINVAL : number ? -ENOPROTOOPT : 0;
        default: break;
        }
    }
    const struct known_option *known = kept_option(socket, level, name);
    return known ? keep_option(socket, known, w->payload, w->head.size) : -ENOPROTOOPT;
}

static size_t of_number(uint8_t *to, int number)
{
    memcpy(to, &number, sizeof number);
    return sizeof number;
}

/* The value of an option. Returns its bytes in TO, which has OPTION_ROOM, or -errno. */
static long option_now(struct socket *socket, int real, int64_t level, int64_t name, uint8_t *to)
{
    socklen_t size = OPTION_ROOM;
    const long long limit = name == SO_RCVTIMEO ? socket->receive_ns : socket->send_ns;
    const struct timeval wait = {limit / 1000000000, limit % 1000000000 / 1000};
    if (level == SOL_SOCKET)
        switch (name) {
        case SO_TYPE: return (long)of_number(to, socket->type);
        case SO_DOMAIN: return (long)of_number(to, socket->domain);
        case SO_PROTOCOL: return (long)of_number(to, socket->protocol);
        case SO_ERROR: case SO_PASSCRED: case SO_TIMESTAMP: return (long)of_number(to, 0);
        case SO_ACCEPTCONN: return (long)of_number(to, socket->state == SOCKET_LISTENS);
        case SO_SNDBUF: case SO_RCVBUF: return getsockopt(real, SOL_SOCKET, (int)name, to, &size) < 0 ? -errno : (long)size;
        case SO_RCVTIMEO: case SO_SNDTIMEO: memcpy(to, &wait, sizeof wait); return sizeof wait;
        case SO_PEERCRED: memcpy(to, &socket->other, sizeof socket->other); return sizeof socket->other;
        default: break;
        }
    const struct known_option *known = kept_option(socket, level, name);
    if (!known)
        return level != SOL_SOCKET && socket->domain == AF_UNIX ? -EOPNOTSUPP : -ENOPROTOOPT;
    const struct option *option = option_of(socket, level, name);
    memset(to, 0, OPTION_ROOM);
    of_number(to, known->standard);
    if (option)
        memcpy(to, option->value, option->size);
    return known->size;
}

/* Arguments: descriptor, level, name. Out: the value; result: its bytes. */
long serve_getsockopt(struct work *w)
{
    long error;
    struct socket *socket = socket_of(w->session, ARGUMENT(0), &error);
    uint8_t value[OPTION_ROOM];
    if (!socket)
        return error;
    pthread_mutex_lock(&socket->network->lock);
    long size = option_now(socket, real_of(w->session, ARGUMENT(0)), ARGUMENT(1), ARGUMENT(2), value);
    pthread_mutex_unlock(&socket->network->lock);
    const bool older = w->head.size == OPTION_ROOM + sizeof(int); /* a program that began with an older runtime */
    uint8_t *to = size < 0 ? NULL : out_room(w, older ? w->head.size : (size_t)size);
    if (to && older)
        of_number(memcpy(to, w->payload, w->head.size) + OPTION_ROOM, (int)size);
    if (to)
        memcpy(to, value, (size_t)size);
    return size < 0 ? size : !to ? -ENOMEM : older ? 0 : size;
}

/* Out: bytes of the name, and the name. */
static long tell_name(struct work *w, bool peer)
{
    long error;
    struct socket *socket = socket_of(w->session, ARGUMENT(0), &error);
    if (!socket)
        return error;
    pthread_mutex_lock(&socket->network->lock);
    const struct socket_name name = peer ? socket->peer : socket->own;
    const bool known = !peer || (socket->headed ? socket->peer.size != 0 : socket->state == SOCKET_CONNECTED);
    pthread_mutex_unlock(&socket->network->lock);
    if (!known)
        return -ENOTCONN;
    const bool older = w->head.size == sizeof name.size + NAME_ROOM; /* as above: the size comes last */
    uint8_t *to = out_room(w, sizeof name.size + NAME_ROOM);
    if (!to)
        return -ENOMEM;
    memcpy(to + (older ? NAME_ROOM : 0), &name.size, sizeof name.size);
    memcpy(to + (older ? 0 : sizeof name.size), name.bytes, NAME_ROOM);
    return 0;
}

long serve_getsockname(struct work *w) { return tell_name(w, false); }
long serve_getpeername(struct work *w) { return tell_name(w, true); }

/* Queries about the machine's interfaces are answered as home has them: their addresses are the family's, too
 * (names.c). ROOM: a struct ifreq; of the list, argument 2 is how many bytes there is room for. */
long socket_interfaces(struct work *w, unsigned long code, uint8_t *room)
{
    _Static_assert(sizeof(struct ifreq) == INTERFACE_BYTES, "as the runtime has it");
    const bool list = code == SIOCGIFCONF;
    struct ifconf all = {.ifc_len = (int)ARGUMENT(2)};
    if (list ? ARGUMENT(2) < 0 || ARGUMENT(2) > PATH_LIMIT : w->head.size != INTERFACE_BYTES)
        return -EINVAL;
    uint8_t *to = out_room(w, list ? (size_t)ARGUMENT(2) : INTERFACE_BYTES);
    int asks = to ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    if (asks < 0)
        return to ? -errno : -ENOMEM;
    all.ifc_buf = (char *)to;
    long result = result_of(ioctl(asks, code, list ? (void *)&all : room));
    close(asks);
    if (list)
        w->out_used = result < 0 ? 0 : (size_t)all.ifc_len;
    else
        memcpy(to, room, INTERFACE_BYTES);
    return result < 0 || !list ? result : all.ifc_len;
}
