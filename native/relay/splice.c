/* Two bare connections as one: what comes in at one end goes out at the other, unread.
 *
 * Who sends waits for who receives.  An end that will say no more (a half-close) makes the other be told so, once what
 * came before is written; answers still go back.  When an end is gone the other is closed as soon as it has what came. */
#include "relays.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* An end is gone: what came of it is written yet. */
static void lost(struct relay *relay, int number) REQUIRES(relay_lock);
static void lost(struct relay *relay, int number)
{
    relay->splice.finishing = true;
    relay_close(&relay->ends[number]);
    if (relay->ends[1 - number].fd >= 0 && relay->ends[1 - number].waiting.used)
        relay_tell(relay, RELAY_LINGERS);
}

/* Does what follows from the two ends' states, and says what of them is of interest. */
static void settle(struct relay *relay) REQUIRES(relay_lock);
static void settle(struct relay *relay)
{
    struct spliced *s = &relay->splice;
    if (s->said_all[FIRST] && s->said_all[SECOND] && !s->finishing) {
        s->finishing = true;
        if (relay->ends[FIRST].waiting.used || relay->ends[SECOND].waiting.used)
            relay_tell(relay, RELAY_LINGERS);
    }
    for (int i = 0; i < 2; i++) {
        struct end *end = &relay->ends[i], *other = &relay->ends[1 - i];
        if (end->fd < 0)
            continue;
        if (s->finishing && !end->waiting.used) {
            relay_close(end);
            continue;
        }
        if (s->said_all[1 - i] && !end->waiting.used && !s->told_so[i]) {
            s->told_so[i] = true;
            shutdown(end->fd, SHUT_WR);
        }
        const bool reads = !s->finishing && !s->said_all[i] && !other->waiting.used;
        relay_watch(end, (reads ? EPOLLIN : 0u) | (end->waiting.used ? EPOLLOUT : 0u));
    }
    if (relay->ends[FIRST].fd < 0 && relay->ends[SECOND].fd < 0)
        relay_end(relay, NULL);
}

static void pass_on(struct relay *relay, int number, uint8_t *room) REQUIRES(relay_lock);
static void pass_on(struct relay *relay, int number, uint8_t *room)
{
    ssize_t got = recv(relay->ends[number].fd, room, READ_BYTES, MSG_DONTWAIT);
    if (got > 0) {
        relay->splice.carried[number] += (uint64_t)got;
        if (!relay_write(&relay->ends[1 - number], room, (size_t)got))
            lost(relay, 1 - number);
    } else if (got == 0) {
        relay->splice.said_all[number] = true;
    } else if (errno != EAGAIN && errno != EINTR) {
        lost(relay, number);
    }
}

void splice_begin(struct relay *relay)
{
    settle(relay);
}

void splice_ready(struct relay *relay, int number, uint32_t events, uint8_t *room)
{
    struct end *end = &relay->ends[number];
    if ((events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) && end->waiting.used && !relay_write_waiting(end))
        lost(relay, number);
    if (end->fd >= 0 && (end->watched & EPOLLIN) && (events & (EPOLLIN | EPOLLERR | EPOLLHUP)))
        pass_on(relay, number, room);
    const bool changed = end->fd < 0 || relay->splice.said_all[number] || end->waiting.used ||
                         relay->ends[1 - number].waiting.used || end->watched != EPOLLIN || relay->splice.finishing;
    if (changed)
        settle(relay);
}
