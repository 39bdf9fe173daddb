/* Coverage-guided fuzzing of a numbered channel whose other end is hostile.
 *
 * One input is a list of steps: a byte that says which, a byte that says how much, and what is sent.  The channel is
 * served here, step by step, and not by the thread of the relays: so one input always does the same. */
#include <pthread.h>
#define pthread_create(...) 0 /* no thread of theirs */
#include "../../../native/relay/relay.c"
#undef pthread_create

#include <string.h>

enum { STEPS_END, SAYS_THERE, SAYS_HERE, ANOTHER, LOSES, CLOSES_HERE, CLOSES_THERE, READS_THERE, READS_HERE };

static uint8_t room[READ_BYTES];

static void pair(int both[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, both) < 0)
        abort();
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void serve(struct relay *relay)
{
    pthread_mutex_lock(&relay_lock);
    for (int i = 0; i < 4; i++)
        if (!relay->over && relay->ends[i & 1].watched)
            numbered_ready(relay, i & 1, relay->ends[i & 1].watched, room);
    pthread_mutex_unlock(&relay_lock);
}

static void drain(int fd)
{
    while (fd >= 0 && recv(fd, room, sizeof room, MSG_DONTWAIT) > 0)
        continue;
}

static void say(int fd, const uint8_t *data, size_t size)
{
    if (fd >= 0 && send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return;
}

/* Gives the channel another connection, of which the other end says that so much has come. */
static void attach(struct relay *relay, int *there, uint64_t arrived, bool listens)
{
    int both[2];
    close_one(there);
    relay_detach(relay);
    pair(both);
    if (relay_attach(relay, both[0], arrived, listens)) {
        close(both[0]);
        close(both[1]);
    } else {
        *there = both[1];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int here[2], there = -1;
    struct relay_news news;
    pair(here);
    struct relay *relay = relay_channel(here[0]);
    if (!relay)
        abort();
    attach(relay, &there, 0, size & 1);
    for (size_t at = 0; at + 2 <= size;) {
        const int step = data[at] % (READS_HERE + 1);
        size_t count = data[at + 1];
        at += 2;
        if (count > size - at)
            count = size - at;
        uint64_t number = 0;
        memcpy(&number, data + at, count < sizeof number ? count : sizeof number);
        switch (step) {
        case SAYS_THERE: say(there, data + at, count); break;
        case SAYS_HERE: say(here[1], data + at, count); break;
        case ANOTHER: attach(relay, &there, number, count & 1); break;
        case LOSES: relay_detach(relay); break;
        case CLOSES_HERE: close_one(&here[1]); break;
        case CLOSES_THERE: close_one(&there); break;
        case READS_THERE: drain(there); break;
        case READS_HERE: drain(here[1]); break;
        default: count = 0; break;
        }
        at += count;
        serve(relay);
    }
    relay_cut(relay);
    close_one(&here[1]);
    close_one(&there);
    while (relay_next_news(&news))
        if (news.what & RELAY_ENDED)
            relay_free((struct relay *)news.relay);
    pthread_mutex_lock(&relay_lock);
    free_dead();
    pthread_mutex_unlock(&relay_lock);
    return 0;
}
