/* A numbered channel whose end here is a thread of this process, and not a socket: what comes is read by the thread that
 * wants it, and what it says is written by itself, so no other one is woken between it and the connection.
 *
 * A thread that waits does so for the connection and for a bell, which rings when there is another connection, none any
 * more, or the channel is over.  What the connection does not take at once is written by the relays' thread; and as long as
 * nobody waits here, that one also reads. */
#include "relays.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MOST_LENT = 256 << 10 /* is read for nobody yet */ };

void here_ring(struct relay *relay)
{
    struct numbered *c = &relay->channel;
    uint64_t one = 1;
    if (c->bell < 0 || c->rings)
        return;
    c->rings = true;
    if (write(c->bell, &one, sizeof one) < 0) /* full means that it is readable already */
        return;
}

static void hush(struct numbered *c)
{
    uint64_t count;
    if (c->rings && read(c->bell, &count, sizeof count) > 0)
        c->rings = false;
}

/* Nothing more is said by the other end, or nobody here wants to hear it. */
static bool is_silent(const struct relay *relay)
{
    const struct numbered *c = &relay->channel;
    return relay->over || c->deaf || c->end_came;
}

/* What of the connection is the relays' thread's business. */
void here_watch(struct relay *relay)
{
    struct numbered *c = &relay->channel;
    struct end *remote = &relay->ends[REMOTE];
    const bool reads = !c->taken && !c->end_came && relay->ends[LOCAL].waiting.used < MOST_LENT;
    relay_watch(remote, (reads ? EPOLLIN : 0u) | (remote->waiting.used ? EPOLLOUT : 0u));
}

/* Reads for who takes the channel later. */
void here_read_ahead(struct relay *relay, uint8_t *room)
{
    size_t size = numbered_read(relay, room, READ_BYTES);
    if (!relay->over && size && !bytes_add(&relay->ends[LOCAL].waiting, room, size))
        relay_end(relay, "there is no memory for what has come");
    if (is_silent(relay))
        here_ring(relay);
}

struct relay *relay_channel_here(void)
{
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell < 0)
        return NULL;
    pthread_mutex_lock(&relay_lock);
    struct relay *relay = relay_new(-1, -1, true);
    if (relay) {
        relay->channel.is_here = true;
        relay->channel.bell = bell;
    }
    pthread_mutex_unlock(&relay_lock);
    if (!relay) {
        int problem = errno;
        close(bell);
        errno = problem;
    }
    return relay;
}

void relay_hold(struct relay *relay)
{
    pthread_mutex_lock(&relay_lock);
    relay->channel.held = true;
    pthread_mutex_unlock(&relay_lock);
}

void relay_let_go(struct relay *relay)
{
    pthread_mutex_lock(&relay_lock);
    relay->channel.held = false;
    pthread_mutex_unlock(&relay_lock);
}

void relay_take(struct relay *relay)
{
    pthread_mutex_lock(&relay_lock);
    relay->channel.taken = true;
    if (!relay->over)
        numbered_settle(relay);
    if (relay->ends[LOCAL].waiting.used || is_silent(relay))
        here_ring(relay);
    pthread_mutex_unlock(&relay_lock);
}

void relay_lend(struct relay *relay)
{
    pthread_mutex_lock(&relay_lock);
    relay->channel.taken = false;
    if (!is_silent(relay))
        hush(&relay->channel);
    if (!relay->over)
        numbered_settle(relay);
    pthread_mutex_unlock(&relay_lock);
}

/* What was read ahead. */
static size_t from_ahead(struct bytes *ahead, uint8_t *room, size_t size)
{
    if (size > ahead->used)
        size = ahead->used;
    memcpy(room, ahead->data + ahead->start, size);
    bytes_drop(ahead, size);
    return size;
}

int64_t relay_receive(struct relay *relay, uint8_t *room, size_t size)
{
    struct bytes *ahead = &relay->ends[LOCAL].waiting;
    size_t got = 0;
    pthread_mutex_lock(&relay_lock);
    if (!ahead->used && !is_silent(relay))
        hush(&relay->channel);
    if (ahead->used && !relay->channel.deaf) {
        got = from_ahead(ahead, room, size);
    } else if (!is_silent(relay) && relay->ends[REMOTE].fd >= 0) {
        got = numbered_read(relay, room, size);
    }
    if (!relay->over)
        numbered_settle(relay);
    const bool silent = !ahead->used && is_silent(relay);
    if (silent)
        here_ring(relay);
    pthread_mutex_unlock(&relay_lock);
    return got ? (int64_t)got : silent ? 0 : -EAGAIN;
}

int relay_send(struct relay *relay, const uint8_t *from, size_t size, int more)
{
    struct numbered *c = &relay->channel;
    int result = 0;
    pthread_mutex_lock(&relay_lock);
    if (relay->over || c->local_over || c->end_came)
        result = -EPIPE;
    else if (size && !bytes_add(&c->kept, from, size))
        result = -ENOMEM;
    else if (!more)
        numbered_settle(relay);
    pthread_mutex_unlock(&relay_lock);
    return result;
}

int relay_has_room(struct relay *relay)
{
    const struct numbered *c = &relay->channel;
    pthread_mutex_lock(&relay_lock);
    int result = relay->over || c->local_over || c->end_came ? -EPIPE : c->kept.used < WINDOW_BYTES;
    pthread_mutex_unlock(&relay_lock);
    return result;
}

void relay_wait_for(struct relay *relay, int found[2])
{
    pthread_mutex_lock(&relay_lock);
    found[0] = relay->channel.bell;
    found[1] = is_silent(relay) ? -1 : relay->ends[REMOTE].fd;
    pthread_mutex_unlock(&relay_lock);
}

void relay_shut(struct relay *relay, int deaf)
{
    struct numbered *c = &relay->channel;
    pthread_mutex_lock(&relay_lock);
    c->local_over = true;
    c->deaf |= deaf;
    if (!relay->over)
        numbered_settle(relay);
    here_ring(relay);
    pthread_mutex_unlock(&relay_lock);
}

void relay_leave(struct relay *relay)
{
    struct numbered *c = &relay->channel;
    pthread_mutex_lock(&relay_lock);
    if (c->bell >= 0)
        close(c->bell);
    c->bell = -1;
    c->local_over = true;
    c->held = c->is_here = c->taken = false;
    bytes_free(&relay->ends[LOCAL].waiting);
    if (!relay->over)
        numbered_settle(relay);
    if (c->forgotten)
        relay_bury(relay);
    pthread_mutex_unlock(&relay_lock);
}
