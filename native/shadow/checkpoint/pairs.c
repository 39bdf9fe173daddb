/* Pipes and pairs of sockets in a checkpoint: what lies in a pipe is described without being taken out (for sockets see
 * moved_sockets.c), and they are made again, both ends at once, when the first is met. */
#include "described.h"
#include "shadow/sockets/sockets.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static bool has_packets(const struct described_file *d)
{
    int kind = (int)d->offset & PAIR_KIND;
    return kind && kind != SOCK_STREAM;
}

/* Reads all that there is: a packet is its size and its bytes. Returns how many bytes there are in TO. */
static ssize_t read_all(int from, const struct described_file *d, uint8_t *to, size_t room)
{
    const size_t head = has_packets(d) ? sizeof(uint32_t) : 0;
    size_t used = 0;
    while (used + head + PIPE_BUF <= room) { /* a packet of a pipe that is longer than asked for is cut */
        uint8_t *at = to + used + head;
        ssize_t got = read(from, at, room - used - head);
        if (got < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? (ssize_t)used : -errno;
        if (!got)
            return (ssize_t)used;
        uint32_t size = (uint32_t)got;
        if (head)
            memcpy(to + used, &size, sizeof size);
        used += head + (size_t)got;
    }
    return -EFBIG;
}

/* The kernel may refuse the copy of a pipe as much room as the pipe has, for the sake of all that its owner's pipes
 * have: then there is no description. */
static ssize_t pipe_content(int real, struct described_file *d, uint8_t *to, size_t room)
{
    int copy[2], filled = 0;
    d->offset = (int64_t)fcntl(real, F_GETPIPE_SZ) << ROOM_SHIFT | (d->flags & O_DIRECT ? SOCK_SEQPACKET : SOCK_STREAM);
    if (ioctl(real, FIONREAD, &filled) < 0)
        return -errno;
    if (d->end || !filled)
        return 0;
    if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0)
        return -errno;
    ssize_t refused = fcntl(copy[1], F_SETPIPE_SZ, fcntl(real, F_GETPIPE_SZ)) < 0 ? -errno : -EIO;
    bool copied = tee(real, copy[1], (size_t)filled, SPLICE_F_NONBLOCK) == filled;
    ssize_t size = copied ? read_all(copy[0], d, to, room) : refused;
    close(copy[0]);
    close(copy[1]);
    return size;
}

ssize_t end_content(int real, struct described_file *d, uint8_t *to, size_t room)
{
    return pipe_content(real, d, to, room);
}

struct pairs {
    struct pair {
        uint32_t number, fresh; /* as the image has it, and as no other pair here has it */
        int real[2];
        bool filled[2]; /* by the end that came back first; each has what lay in it */
        struct link *link; /* of sockets */
    } list[MAX_FILES];
    size_t count;
};

struct pairs *pairs_new(void)
{
    return calloc(1, sizeof(struct pairs));
}

/* Ends without a descriptor are closed with those that were copied. */
void pairs_drop(struct pairs *pairs)
{
    for (size_t i = 0; pairs && i < pairs->count; i++) {
        close(pairs->list[i].real[0]);
        close(pairs->list[i].real[1]);
        if (pairs->list[i].link)
            link_drop(pairs->list[i].link);
    }
    free(pairs);
}

static struct pair *pair_of(struct pairs *pairs, const struct described_file *d)
{
    int kind = has_packets(d) ? (int)d->offset & PAIR_KIND : SOCK_STREAM;
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->list[i].number == d->number)
            return &pairs->list[i];
    if (pairs->count == MAX_FILES)
        return NULL;
    struct pair *pair = &pairs->list[pairs->count];
    int failed = d->kind == FILE_PIPE
                     ? pipe2(pair->real, O_CLOEXEC | O_NONBLOCK | (has_packets(d) ? O_DIRECT : 0))
                     : socketpair(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair->real);
    if (failed)
        return NULL;
    pair->number = d->number;
    pair->fresh = new_pair_number();
    pairs->count++;
    return pair;
}

/* Both ends of the pair that D's file is one of; NULL: it cannot be made. */
const int *pair_ends(struct pairs *pairs, const struct described_file *d)
{
    struct pair *pair = d->end > 1 ? NULL : pair_of(pairs, d);
    return pair ? pair->real : NULL;
}

struct link **pair_link(struct pairs *pairs, const struct described_file *d)
{
    struct pair *pair = d->end > 1 ? NULL : pair_of(pairs, d);
    return pair ? &pair->link : NULL;
}

/* The number of a pair that was made again: its old one may be another pair's by now. */
uint32_t pair_number(struct pairs *pairs, uint32_t old)
{
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->list[i].number == old)
            return pairs->list[i].fresh;
    return new_pair_number();
}

/* Where room is refused, not all can be written. */
static void make_room(int to, const struct described_file *d)
{
    enum { MOST_ROOM = 1 << 20 /* that a user may give a pipe, as kernels are */ };
    int room = 0, wanted = (int)d->content_size;
    const int64_t had = d->offset >> ROOM_SHIFT;
    socklen_t size = sizeof room;
    if (d->kind == FILE_PIPE && had > 0 && had <= MOST_ROOM && fcntl(to, F_GETPIPE_SZ) != had)
        fcntl(to, F_SETPIPE_SZ, (int)had);
    if (d->kind == FILE_PIPE && fcntl(to, F_GETPIPE_SZ) < wanted)
        fcntl(to, F_SETPIPE_SZ, wanted);
    if (d->kind != FILE_PIPE && !getsockopt(to, SOL_SOCKET, SO_SNDBUF, &room, &size) && room < 2 * wanted)
        setsockopt(to, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted); /* the kernel doubles it */
}

/* Returns 0 or -errno. */
static long write_all(int to, const struct described_file *d, const uint8_t *content)
{
    const bool packets = has_packets(d);
    uint32_t at = 0, size = d->content_size;
    while (at < d->content_size) {
        if (packets) {
            if (d->content_size - at < sizeof size)
                return -EPROTO;
            memcpy(&size, content + at, sizeof size);
            at += sizeof size;
            if (size > d->content_size - at)
                return -EPROTO;
        }
        ssize_t written = d->kind == FILE_PIPE ? write(to, content + at, size)
                                               : send(to, content + at, size, MSG_NOSIGNAL);
        if (written != (ssize_t)size)
            return written < 0 ? -errno : -ENOSPC;
        at += size;
    }
    return 0;
}

long fill_pipe(int to, const struct described_file *d, const uint8_t *content)
{
    make_room(to, d);
    return write_all(to, d, content);
}

int reopen_end(struct pairs *pairs, const struct described_file *d, const uint8_t *content)
{
    struct pair *pair = d->end > 1 ? NULL : pair_of(pairs, d);
    if (!pair)
        return -1;
    int own = fcntl(pair->real[d->end], F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return -1;
    int other = d->kind == FILE_PIPE ? pair->real[1] : pair->real[!d->end];
    long failed = pair->filled[d->end] ? 0 : fill_pipe(other, d, content);
    pair->filled[d->end] = !failed;
    if (!failed && d->kind != FILE_PIPE && (d->offset & HEARS_NO_MORE) && shutdown(own, SHUT_RD) < 0)
        failed = -errno;
    if (!failed)
        return own;
    close(own);
    errno = (int)-failed;
    return -1;
}
