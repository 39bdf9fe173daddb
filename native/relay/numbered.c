/* A channel that outlives its connections: each end counts what it sends and what has come, and keeps what has not
 * arrived.
 *
 * A frame is its length (4 bytes), how much has come in the other direction (8 bytes), both little-endian, and as many
 * bytes.  Length 0 tells only what has come; END_OF_CHANNEL: nothing more follows, which counts as one more byte.  When a
 * connection breaks, both ends say before the next one how much has come, and each sends the rest: every byte comes once,
 * and in order, wherever in a frame it broke.
 *
 * The end that is told of the channel's end says so, and leaves it to the other to close the connection; so neither
 * looks for a channel that the other has forgotten, but where the connection breaks just then. */
#include "relays.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define END_OF_CHANNEL 0xffffffffu

enum {
    FRAME_BYTES = 64 << 10,
    MOST_FRAME = 1 << 20,
    WINDOW_BYTES = 4 << 20, /* from so much that has not arrived on, nothing is read here */
    MOST_WAITING = 72 << 20, /* for an end here that says much before it listens: as much as a program asks for ahead */
    TELL_BYTES = 256 << 10, /* so much has come that the other end is told at once, and not with the next bytes */
};

static void head_to(uint8_t head[HEAD_BYTES], uint32_t length, uint64_t received)
{
    memcpy(head, &length, sizeof length);
    memcpy(head + sizeof length, &received, sizeof received);
}

/* Sends a frame; what the connection does not take now waits. Returns false when it is gone. */
static bool send_frame(struct relay *relay, uint32_t length, const uint8_t *bytes, size_t size) REQUIRES(relay_lock);
static bool send_frame(struct relay *relay, uint32_t length, const uint8_t *bytes, size_t size)
{
    struct numbered *c = &relay->channel;
    struct end *remote = &relay->ends[REMOTE];
    uint8_t head[HEAD_BYTES];
    head_to(head, length, c->received);
    c->told = c->received;
    struct iovec parts[2] = {{head, sizeof head}, {(void *)(uintptr_t)bytes, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = size ? 2 : 1};
    ssize_t sent = sendmsg(remote->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return false;
    size_t done = sent > 0 ? (size_t)sent : 0;
    if (done < sizeof head && !bytes_add(&remote->waiting, head + done, sizeof head - done))
        return false;
    done = done > sizeof head ? done - sizeof head : 0;
    return done == size || bytes_add(&remote->waiting, bytes + done, size - done);
}

/* Sends what is to be sent, as far as the connection takes it. Returns false when it is gone. */
static bool send_all(struct relay *relay) REQUIRES(relay_lock);
static bool send_all(struct relay *relay)
{
    struct numbered *c = &relay->channel;
    struct end *remote = &relay->ends[REMOTE];
    bool good = remote->fd < 0 || relay_write_waiting(remote);
    while (good && remote->fd >= 0 && !c->listens && !remote->waiting.used) {
        size_t unsent = (size_t)(c->acknowledged + c->kept.used - c->sent);
        if (unsent && !c->end_came) {
            size_t size = unsent < FRAME_BYTES ? unsent : FRAME_BYTES;
            const uint8_t *from = c->kept.data + c->kept.start + (c->sent - c->acknowledged);
            c->sent += size;
            good = send_frame(relay, (uint32_t)size, from, size);
        } else if (c->local_over && !c->end_sent && !c->end_came) {
            c->end_sent = true;
            good = send_frame(relay, END_OF_CHANNEL, NULL, 0);
        } else if (c->received - c->told >= TELL_BYTES || (c->end_came && c->told != c->received)) {
            good = send_frame(relay, 0, NULL, 0);
        } else {
            break;
        }
    }
    return good;
}

/* The connection has ended, or is not wanted any more. */
static void drop_connection(struct relay *relay) REQUIRES(relay_lock);
static void drop_connection(struct relay *relay)
{
    struct numbered *c = &relay->channel;
    relay_close(&relay->ends[REMOTE]);
    c->head_used = c->left = 0; /* what came of a frame is counted */
    c->end_sent = false;
}

/* Nothing is read or written here any more. */
static void local_is_over(struct relay *relay) REQUIRES(relay_lock);
static void local_is_over(struct relay *relay)
{
    relay->channel.local_over = true;
    relay_close(&relay->ends[LOCAL]);
}

/* Does what follows, and says what is of interest. */
static void settle(struct relay *relay) REQUIRES(relay_lock);
static void settle(struct relay *relay)
{
    struct numbered *c = &relay->channel;
    struct end *local = &relay->ends[LOCAL], *remote = &relay->ends[REMOTE];
    if (relay->over)
        return;
    if (c->end_came && local->fd >= 0 && !local->waiting.used)
        local_is_over(relay);
    if (!send_all(relay)) {
        drop_connection(relay);
        relay_tell(relay, RELAY_LOST);
    }
    if (c->end_came && remote->fd < 0 && local->fd < 0) {
        relay_end(relay, NULL);
        return;
    }
    const bool reads = !c->local_over && !c->end_came && c->kept.used < WINDOW_BYTES;
    relay_watch(local, (reads ? EPOLLIN : 0u) | (local->waiting.used ? EPOLLOUT : 0u));
    /* Who is here may wait until more is read of it before it listens, and that more has arrived comes behind what it has
     * not heard. */
    const bool hears = !local->waiting.used || (c->kept.used >= WINDOW_BYTES && local->waiting.used < MOST_WAITING);
    relay_watch(remote, (hears ? EPOLLIN : 0u) | (remote->waiting.used ? EPOLLOUT : 0u));
}

static void read_local(struct relay *relay, uint8_t *room) REQUIRES(relay_lock);
static void read_local(struct relay *relay, uint8_t *room)
{
    ssize_t got = recv(relay->ends[LOCAL].fd, room, READ_BYTES, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0)
        local_is_over(relay);
    else if (!bytes_add(&relay->channel.kept, room, (size_t)got))
        relay_end(relay, "there is no memory for what is to be sent");
}

/* So much has arrived there. Returns what is wrong with that, or NULL. */
static const char *arrived_there(struct relay *relay, uint64_t arrived) REQUIRES(relay_lock);
static const char *arrived_there(struct relay *relay, uint64_t arrived)
{
    struct numbered *c = &relay->channel;
    if (arrived < c->acknowledged || arrived - c->acknowledged > c->sent - c->acknowledged + c->end_sent)
        return "bytes are said to have arrived that were not sent, or not to have that had";
    size_t fresh = (size_t)(arrived - c->acknowledged);
    const bool all = fresh > c->kept.used; /* the channel's end, too */
    bytes_drop(&c->kept, all ? c->kept.used : fresh);
    c->acknowledged = arrived;
    if (all)
        relay_end(relay, NULL);
    return NULL;
}

/* A frame's head is whole. Returns what is wrong with it, or NULL. */
static const char *take_head(struct relay *relay) REQUIRES(relay_lock);
static const char *take_head(struct relay *relay)
{
    struct numbered *c = &relay->channel;
    uint32_t length;
    uint64_t arrived;
    memcpy(&length, c->head, sizeof length);
    memcpy(&arrived, c->head + sizeof length, sizeof arrived);
    c->head_used = 0;
    if (c->end_came && length)
        return "something comes after the end of the channel";
    if (length == END_OF_CHANNEL) {
        c->end_came = true;
        c->received++;
    } else if (length > MOST_FRAME) {
        return "a frame is too long";
    } else {
        c->left = length;
    }
    return arrived_there(relay, arrived);
}

/* Takes what has come, and moves what is for here to the beginning of ROOM. Returns how much that is. */
static size_t take_frames(struct relay *relay, uint8_t *room, size_t got, const char **wrong) REQUIRES(relay_lock);
static size_t take_frames(struct relay *relay, uint8_t *room, size_t got, const char **wrong)
{
    struct numbered *c = &relay->channel;
    size_t at = 0, kept = 0;
    while (at < got && !*wrong && !relay->over) {
        const size_t lacking = c->left ? c->left : HEAD_BYTES - c->head_used;
        const size_t size = got - at < lacking ? got - at : lacking;
        if (c->left) {
            memmove(room + kept, room + at, size);
            kept += size;
            c->left -= (uint32_t)size;
            c->received += size;
        } else {
            memcpy(c->head + c->head_used, room + at, size);
            c->head_used += size;
            if (c->head_used == HEAD_BYTES)
                *wrong = take_head(relay);
        }
        at += size;
    }
    return kept;
}

static void read_remote(struct relay *relay, uint8_t *room) REQUIRES(relay_lock);
static void read_remote(struct relay *relay, uint8_t *room)
{
    struct end *local = &relay->ends[LOCAL];
    const char *wrong = NULL;
    ssize_t got = recv(relay->ends[REMOTE].fd, room, READ_BYTES, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        drop_connection(relay);
        if (!relay->channel.end_came)
            relay_tell(relay, RELAY_LOST);
        return;
    }
    relay->channel.listens = false;
    size_t size = take_frames(relay, room, (size_t)got, &wrong);
    if (wrong)
        relay_end(relay, wrong);
    if (size && local->fd >= 0 && !relay_write(local, room, size))
        local_is_over(relay);
}

void numbered_begin(struct relay *relay)
{
    settle(relay);
}

void numbered_ready(struct relay *relay, int number, uint32_t events, uint8_t *room)
{
    struct end *end = &relay->ends[number];
    if (number == LOCAL && end->waiting.used && !relay_write_waiting(end))
        local_is_over(relay);
    if (end->fd >= 0 && (end->watched & EPOLLIN) && (events & (EPOLLIN | EPOLLERR | EPOLLHUP))) {
        if (number == LOCAL)
            read_local(relay, room);
        else
            read_remote(relay, room);
    }
    settle(relay);
}

/* Returns 0 or -errno; then REMOTE is the caller's. */
int numbered_attach(struct relay *relay, int remote, uint64_t arrived, bool listens)
{
    struct numbered *c = &relay->channel;
    drop_connection(relay);
    if (arrived < c->acknowledged || arrived - c->acknowledged > c->kept.used + c->local_over)
        return -EBADMSG;
    if (arrived - c->acknowledged > c->kept.used) { /* the channel's end, too: nobody looks for it any more */
        relay_end(relay, NULL);
        return -ESRCH;
    }
    bytes_drop(&c->kept, (size_t)(arrived - c->acknowledged));
    c->acknowledged = c->sent = arrived;
    c->told = c->received; /* it was said on the way here */
    c->listens = listens;
    relay->ends[REMOTE].fd = remote;
    if (!listens && !send_frame(relay, 0, NULL, 0)) { /* who listens may speak now */
        drop_connection(relay);
        relay_tell(relay, RELAY_LOST);
    }
    settle(relay);
    return 0;
}

void numbered_detach(struct relay *relay)
{
    drop_connection(relay);
    settle(relay);
}
