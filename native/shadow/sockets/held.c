/* The memory that a family's sockets hold at home: what was sent and not received yet.
 *
 * The kernel bounds it for each socket, and nobody for all of a program's sockets together.  So it is counted here, and a
 * family that has much of it under way is served as one whose buffers are full: who sends waits until there is room, or gets
 * EAGAIN.  What lies ahead of nothing may still be sent a little at a time, so that no program is stuck that reads what it is
 * sent.
 *
 * A message counts for its bytes and for what the kernel needs around it.  On a stream nobody is told where messages end:
 * there they count until all has been read, and one direction never counts for more than a socket has room for. */
#include "sockets.h"

enum {
    MOST_HELD = 128 << 20,   /* by the sockets of a family */
    LITTLE = 4 << 10,        /* is sent all the same where nothing is under way */
    PART_BYTES = 1 << 10,    /* of the kernel's, around each message */
    MOST_OF_ONE = 512 << 10, /* in one direction of one socket */
};

/* The link's lock is held, as in all that follow. */
static void count_again(struct link *link, int end)
{
    uint64_t now = link->sent[end] - link->got[end] + (uint64_t)link->parts[end] * PART_BYTES;
    if (now > MOST_OF_ONE)
        now = MOST_OF_ONE;
    link->network->held += now - link->held[end]; /* may wrap on its way, and comes out right */
    link->held[end] = now;
}

/* One message of SIZE bytes more is on its way to an end. */
void held_sent(struct link *link, int to, size_t size)
{
    link->sent[to] += size;
    if (link->parts[to] < UINT32_MAX)
        link->parts[to]++;
    count_again(link, to);
}

/* An end has received SIZE bytes: of a stream, or one message. What an older image brought along was never counted. */
void held_got(struct link *link, int end, size_t size, bool is_stream)
{
    link->got[end] += size;
    if (link->got[end] > link->sent[end])
        link->sent[end] = link->got[end];
    if (is_stream ? link->got[end] == link->sent[end] : link->parts[end] == 1)
        link->parts[end] = 0;
    else if (!is_stream && link->parts[end])
        link->parts[end]--;
    if (!is_stream && !link->parts[end])
        link->got[end] = link->sent[end];
    count_again(link, end);
}

/* Nobody will receive what is on its way to an end. */
void held_dropped(struct link *link, int end)
{
    link->got[end] = link->sent[end];
    link->parts[end] = 0;
    count_again(link, end);
}

/* Whether SIZE bytes may be sent to an end now; of a stream, *SIZE is how many. */
bool may_hold(struct link *link, int to, bool is_stream, size_t *size)
{
    if (link->network->held < MOST_HELD)
        return true;
    pthread_mutex_lock(&link->lock);
    const bool is_empty = !link->parts[to] && link->sent[to] == link->got[to];
    pthread_mutex_unlock(&link->lock);
    if (is_empty && is_stream && *size > LITTLE)
        *size = LITTLE;
    return is_empty && *size <= LITTLE;
}
