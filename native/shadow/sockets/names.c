/* Addresses of a family's sockets: which there are, and who is meant by one. */
#include "sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_PORT = 32768, LAST_PORT = 60999, FIRST_FREE_PORT = 1024 };

bool is_abstract(const struct socket_name *name)
{
    return name->size > sizeof(sa_family_t) && !name->here.sun_path[0];
}

/* The address that is argument 1 of a call, in bytes. Returns 0 or -errno. */
long name_given(struct work *w, struct socket *socket, struct socket_name *name)
{
    size_t size = (size_t)ARGUMENT(1);
    memset(name, 0, sizeof *name);
    if (size > NAME_ROOM || size > w->head.size)
        return -EINVAL;
    memcpy(name->bytes, w->payload, size);
    name->size = (uint32_t)size;
    if (size < sizeof(sa_family_t))
        return -EINVAL;
    if (name->any.sa_family != socket->domain)
        return socket->domain == AF_UNIX ? -EINVAL : -EAFNOSUPPORT;
    switch (socket->domain) {
    case AF_UNIX:
        if (size > sizeof name->here)
            return -EINVAL;
        if (size > sizeof(sa_family_t) && !is_abstract(name)) {
            size_t length = strnlen(name->here.sun_path, size - sizeof(sa_family_t));
            name->size = (uint32_t)(sizeof(sa_family_t) + length + 1);
            if (length == sizeof name->here.sun_path) /* the kernel has one byte more than the program */
                name->size--;
        }
        return 0;
    case AF_INET:
        if (size < sizeof name->four)
            return -EINVAL;
        name->size = sizeof name->four;
        return 0;
    default:
        if (size < sizeof name->six - sizeof name->six.sin6_scope_id)
            return -EINVAL;
        name->six.sin6_flowinfo = 0;
        name->size = sizeof name->six;
        return 0;
    }
}

/* One call of the program's own, as if it had made it: names are resolved, confined and noted in the journal as always.
 * What it puts out goes to TO. */
static long sub_call(struct work *w, uint16_t call, const int64_t arguments[6], const char *path, void *to, size_t size)
{
    struct work sub = {.session = w->session, .head = {(uint32_t)strlen(path) + 1, w->head.id, call, {0}}, .passed_fd = -1,
                       .until_ns = -1, .retry_ns = -1};
    memcpy(sub.head.arguments, arguments, sizeof sub.head.arguments);
    if (!(sub.payload = (uint8_t *)strdup(path)))
        return -ENOMEM;
    long result = serve(&sub);
    if (result >= 0 && size)
        memcpy(to, w->session->out + sizeof(struct answer), size);
    free(sub.payload);
    return result;
}

long make_path(struct work *w, const char *path)
{
    const int64_t make[6] = {AT_FDCWD, (int64_t)strlen(path) + 1, S_IFSOCK | 0777, 0};
    return sub_call(w, __NR_mknodat, make, path, NULL, 0);
}

/* What PATH stands for, which must be a socket that may be written to. Returns 0 or -errno. */
long find_path(struct work *w, const char *path, uint64_t *device, uint64_t *inode)
{
    struct stat st;
    const int64_t length = (int64_t)strlen(path) + 1, look[6] = {AT_FDCWD, length, sizeof st, 0},
                  may[6] = {AT_FDCWD, length, W_OK, 0};
    long result = sub_call(w, __NR_newfstatat, look, path, &st, sizeof st);
    if (!result && !S_ISSOCK(st.st_mode))
        result = -ECONNREFUSED;
    if (!result)
        result = sub_call(w, __NR_faccessat, may, path, NULL, 0);
    *device = st.st_dev;
    *inode = st.st_ino;
    return result;
}

/* ---- addresses of the network protocols, all as IPv6 has them */

struct place {
    struct in6_addr address;
    uint16_t port;
    bool mapped, any;
};

static struct place place_of(const struct socket_name *name)
{
    struct place found = {.port = 0};
    if (name->any.sa_family == AF_INET6) {
        found.address = name->six.sin6_addr;
        found.port = ntohs(name->six.sin6_port);
        found.mapped = IN6_IS_ADDR_V4MAPPED(&found.address);
    } else {
        found.address.s6_addr[10] = found.address.s6_addr[11] = 0xff;
        memcpy(found.address.s6_addr + 12, &name->four.sin_addr, 4);
        found.port = ntohs(name->four.sin_port);
        found.mapped = true;
    }
    uint32_t four;
    memcpy(&four, found.address.s6_addr + 12, sizeof four);
    found.any = found.mapped ? !four : IN6_IS_ADDR_UNSPECIFIED(&found.address);
    return found;
}

static bool same(const struct in6_addr *one, const struct in6_addr *other)
{
    return memcmp(one, other, sizeof *one) == 0;
}

/* NAME in the form that sockets of DOMAIN know. */
void to_domain(struct socket_name *name, int domain)
{
    if (domain == AF_UNIX || name->any.sa_family == domain)
        return;
    struct place place = place_of(name);
    memset(name->bytes, 0, sizeof name->bytes);
    name->any.sa_family = (sa_family_t)domain;
    name->size = domain == AF_INET ? sizeof name->four : sizeof name->six;
    if (domain == AF_INET) {
        memcpy(&name->four.sin_addr, place.address.s6_addr + 12, 4);
        name->four.sin_port = htons(place.port);
    } else {
        name->six.sin6_addr = place.address;
        name->six.sin6_port = htons(place.port);
    }
}

/* Whether home has that address itself: its own name may stand for it. */
static bool is_of_home(const struct place *place)
{
    struct ifaddrs *all = NULL;
    bool found = false;
    if (getifaddrs(&all) < 0)
        return false;
    for (const struct ifaddrs *one = all; one && !found; one = one->ifa_next) {
        struct socket_name name = {.size = 0};
        if (!one->ifa_addr || (one->ifa_addr->sa_family != AF_INET && one->ifa_addr->sa_family != AF_INET6))
            continue;
        memcpy(name.bytes, one->ifa_addr, one->ifa_addr->sa_family == AF_INET ? sizeof name.four : sizeof name.six);
        const struct place own = place_of(&name);
        found = same(&own.address, &place->address);
    }
    freeifaddrs(all);
    return found;
}

/* Whether NAME is an address of the family's network: the loopback ones, those of home itself, and, to bind, any. Without
 * a place one that is to be reached is this machine. Returns 0 or -errno. */
long reachable(const struct socket_name *name, bool to_bind)
{
    const struct place place = place_of(name);
    if (!place.port && !to_bind)
        return -ECONNREFUSED;
    if (place.any || (place.mapped ? place.address.s6_addr[12] == 127 : IN6_IS_ADDR_LOOPBACK(&place.address)) ||
        is_of_home(&place))
        return 0;
    return to_bind ? -EADDRNOTAVAIL : -ENETUNREACH;
}

static int option_value(const struct socket *socket, int level, int name)
{
    int value = 0;
    for (uint32_t i = 0; i < socket->option_count; i++)
        if (socket->options[i].level == level && socket->options[i].name == name)
            memcpy(&value, socket->options[i].value, sizeof value);
    return value;
}

/* Whether what is sent to AT comes to a socket with that own place. */
static bool covers(const struct socket *socket, const struct place *own, const struct place *at)
{
    if (own->port != at->port)
        return false;
    if (own->any && own->mapped)
        return at->mapped;
    if (own->any)
        return !at->mapped || !option_value(socket, IPPROTO_IPV6, IPV6_V6ONLY);
    return same(&own->address, &at->address);
}

/* Whether another socket of the kind has NAME, and will not share it. The network's lock is held, as below. */
bool names_conflict(struct network *network, const struct socket *socket, const struct socket_name *name)
{
    for (const struct socket *other = network->sockets; other; other = other->next) {
        if (other == socket || (other->state != SOCKET_BOUND && other->state != SOCKET_LISTENS) ||
            is_local_domain(other) != is_local_domain(socket) || other->type != socket->type)
            continue;
        if (is_local_domain(socket)) {
            if (is_abstract(name) && other->own.size == name->size && !memcmp(other->own.bytes, name->bytes, name->size))
                return true;
            continue;
        }
        const struct place one = place_of(name), two = place_of(&other->own);
        bool meets = covers(socket, &one, &two) || covers(other, &two, &one);
        bool shares = option_value(socket, SOL_SOCKET, SO_REUSEPORT) && option_value(other, SOL_SOCKET, SO_REUSEPORT);
        bool yields = option_value(socket, SOL_SOCKET, SO_REUSEADDR) && option_value(other, SOL_SOCKET, SO_REUSEADDR) &&
                      other->state != SOCKET_LISTENS;
        if (meets && !shares && !yields)
            return true;
    }
    return false;
}

static bool is_port_used(const struct network *network, const struct socket *socket, uint16_t port)
{
    for (const struct socket *other = network->sockets; other; other = other->next)
        if (!is_local_domain(other) && other->type == socket->type && ntohs(other->own.four.sin_port) == port)
            return true;
    return false;
}

/* A name that nobody has, for one that leaves it open: a port, or an abstract name. */
static long choose(struct network *network, const struct socket *socket, struct socket_name *name)
{
    for (int tries = 0; tries <= LAST_PORT - FIRST_PORT; tries++) {
        uint32_t number = network->next_port++;
        if (network->next_port > LAST_PORT)
            network->next_port = FIRST_PORT;
        if (is_local_domain(socket)) {
            int length = snprintf(name->here.sun_path + 1, 6, "%05x", number);
            name->size = (uint32_t)(sizeof(sa_family_t) + 1 + (size_t)length);
        } else {
            name->four.sin_port = htons((uint16_t)number); /* at the same place in both */
            if (is_port_used(network, socket, (uint16_t)number))
                continue;
        }
        if (!names_conflict(network, socket, name))
            return 0;
    }
    return -EADDRINUSE;
}

/* Completes NAME, to which SOCKET is to be bound. Returns 0 or -errno. */
long take_port(struct network *network, struct socket *socket, struct socket_name *name)
{
    _Static_assert(offsetof(struct sockaddr_in, sin_port) == offsetof(struct sockaddr_in6, sin6_port), "one place");
    if (is_local_domain(socket))
        return name->size <= sizeof(sa_family_t) ? choose(network, socket, name) : 0;
    const uint16_t port = ntohs(name->four.sin_port);
    if (!port)
        return choose(network, socket, name);
    return port < FIRST_FREE_PORT && geteuid() ? -EACCES : 0;
}

/* The socket that gets what FROM sends to NAME; DEVICE and INODE: what its path stands for. NAME without a place becomes
 * this machine. */
struct socket *find_target(struct network *network, const struct socket *from, struct socket_name *name,
                           uint64_t device, uint64_t inode)
{
    struct socket *found = NULL;
    struct place at = {.port = 0};
    const bool local = is_local_domain(from);
    if (!local) {
        at = place_of(name);
        if (at.any && name->any.sa_family == AF_INET)
            name->four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        else if (at.any && !at.mapped)
            name->six.sin6_addr = in6addr_loopback;
        at = place_of(name);
    }
    for (struct socket *s = network->sockets; s; s = s->next) {
        if (is_local_domain(s) != local || (s->state != SOCKET_LISTENS && s->state != SOCKET_BOUND))
            continue;
        bool meant;
        if (!local) {
            const struct place own = place_of(&s->own);
            meant = s->type == from->type && covers(s, &own, &at) && (is_connecting_kind(s) <= (s->state == SOCKET_LISTENS));
        } else if (is_abstract(name)) {
            meant = s->own.size == name->size && !memcmp(s->own.bytes, name->bytes, name->size);
        } else {
            meant = s->inode && s->inode == inode && s->device == device;
        }
        if (meant && (!found || s->waiting_count < found->waiting_count))
            found = s;
    }
    return found;
}
