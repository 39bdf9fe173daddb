/* A session's channel: a socket, or the end here of one that outlives its connections (relay/here.c).
 *
 * Of the second kind the session's thread reads and writes the connection itself.  It may be another one the next time,
 * so the thread asks each time what it is to wait for. */
#include "session.h"

#include "relay/relay.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { MOST_HEARD = 72 << 20, /* is taken in while nothing arrives: behind it is that something has */
       PEER_GONE = 0x2000 /* POLLRDHUP */ };

/* Puts what is readable when something comes to FDS. Returns how many that are, at most CHANNEL_FDS. */
size_t channel_fds(const struct session *s, struct pollfd fds[CHANNEL_FDS])
{
    int both[2];
    fds[0] = (struct pollfd){.fd = s->channel, .events = POLLIN};
    if (!s->relay)
        return 1;
    relay_wait_for(s->relay, both);
    for (int i = 0; i < 2; i++)
        fds[i] = (struct pollfd){.fd = both[i], .events = POLLIN};
    return 2;
}

/* As recv: EAGAIN when the session's patience is over, EINTR when there is nothing and it is not to be waited for. */
ssize_t channel_receive(struct session *s, void *to, size_t size, bool waits)
{
    struct pollfd fds[CHANNEL_FDS];
    int64_t got;
    if (!s->relay)
        return recv(s->channel, to, size, 0);
    do {
        int ready = poll(fds, channel_fds(s, fds), waits ? s->patience_ms : 0);
        if (ready <= 0) {
            errno = ready < 0 || !waits ? EINTR : EAGAIN;
            return -1;
        }
        got = relay_receive(s->relay, to, size);
    } while (got == -EAGAIN && waits);
    if (got >= 0)
        return (ssize_t)got;
    errno = EINTR;
    return -1;
}

/* What the relay sends. While too much has not arrived, requests are taken in: behind them it is said what has. */
bool channel_send(struct session *s, const uint8_t *from, size_t size, bool more)
{
    struct pollfd fds[CHANNEL_FDS];
    int room = relay_send(s->relay, from, size, more);
    while (room >= 0 && (room = relay_has_room(s->relay)) == 0) {
        if (poll(fds, channel_fds(s, fds), -1) < 0 && errno != EINTR)
            return false;
        if (!take_in(s, MOST_HEARD) && !s->heard_all)
            return false;
    }
    return room >= 0;
}

/* How long it may be silent before receiving says EAGAIN. 0: without limit. */
void channel_patience(struct session *s, int seconds)
{
    struct timeval limit = {seconds, 0};
    s->patience_ms = seconds ? seconds * 1000 : -1;
    if (!s->relay)
        setsockopt(s->channel, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

/* The session's thread is here. */
void channel_begin(struct session *s)
{
    if (s->relay)
        relay_take(s->relay);
}

/* Whether it ends within a moment, in which nothing is read. */
bool channel_ends(struct session *s, int moment_ms)
{
    struct pollfd one = {.fd = s->channel, .events = PEER_GONE};
    int both[2];
    if (!s->relay)
        return poll(&one, 1, moment_ms) > 0;
    relay_lend(s->relay);
    relay_wait_for(s->relay, both);
    one = (struct pollfd){.fd = both[0], .events = POLLIN};
    poll(&one, 1, moment_ms);
    relay_take(s->relay);
    return relay_has_room(s->relay) < 0;
}

/* Nothing more is said, nor heard if it is not to be HEARD. From other threads with the table's lock. */
void channel_shut(struct session *s, bool heard)
{
    if (s->relay)
        relay_shut(s->relay, !heard);
    else
        shutdown(s->channel, heard ? SHUT_WR : SHUT_RDWR);
}

/* A shutdown from outside must not meet another file under the number, nor a relay that is forgotten. */
void channel_close(struct session *s)
{
    pthread_mutex_lock(&table_lock);
    int channel = s->channel;
    struct relay *relay = s->relay;
    s->channel = -1;
    s->relay = NULL;
    pthread_mutex_unlock(&table_lock);
    channel_drop(channel, relay);
}

/* One that no session has. */
void channel_drop(int channel, struct relay *relay)
{
    if (relay)
        relay_leave(relay);
    else
        close(channel);
}
