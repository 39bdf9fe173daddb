/* Pipes and pairs of sockets in a checkpoint: what lies in them is described without being taken out, and they are made
 * again, both ends at once, when the first is met. */
#include "described.h"
#include "serve.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What a pair is stands where a file has its offset: the kind of its sockets, SOCK_SEQPACKET for a pipe of packets; 0 is
 * a stream too. */
enum { PAIR_KIND = 0xff, HEARS_NO_MORE = 0x100 };

static bool has_packets(const struct described_file *d)
{
    int kind = (int)d->offset & PAIR_KIND;
    return kind && kind != SOCK_STREAM;
}

/* Reads all that there is: a packet is its size and its bytes. Returns how many bytes there are in TO. */
static ssize_t read_all(int from, const struct described_file *d, uint8_t *to, size_t room)
{
    const size_t head = has_packets(d) ? sizeof(uint32_t) : 0;
    const bool pipe = d->kind == FILE_PIPE, ends = d->offset & HEARS_NO_MORE;
    size_t used = 0;
    while (used + head + PIPE_BUF <= room) { /* a packet of a pipe that is longer than asked for is cut */
        uint8_t *at = to + used + head;
        ssize_t got = pipe ? read(from, at, room - used - head)
                           : recv(from, at, room - used - head, MSG_PEEK | MSG_DONTWAIT | (head ? MSG_TRUNC : 0));
        if (got < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK ? (ssize_t)used : -errno;
        if (!got && (pipe || !head || ends))
            return (ssize_t)used;
        if ((size_t)got > room - used - head)
            return -EFBIG;
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
    d->offset = d->flags & O_DIRECT ? SOCK_SEQPACKET : SOCK_STREAM;
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

static ssize_t socket_content(int real, struct described_file *d, uint8_t *to, size_t room)
{
    int kind = SOCK_STREAM, from = 0, off = -1;
    socklen_t size = sizeof kind;
    struct pollfd hears = {real, POLLRDHUP, 0};
    if (getsockopt(real, SOL_SOCKET, SO_TYPE, &kind, &size) < 0 || poll(&hears, 1, 0) < 0)
        return -errno;
    d->offset = kind | (hears.revents & POLLRDHUP ? HEARS_NO_MORE : 0);
    if (setsockopt(real, SOL_SOCKET, SO_PEEK_OFF, &from, sizeof from) < 0)
        return -errno;
    ssize_t got = read_all(real, d, to, room);
    setsockopt(real, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof off);
    return got;
}

ssize_t end_content(int real, struct described_file *d, uint8_t *to, size_t room)
{
    return d->kind == FILE_PIPE ? pipe_content(real, d, to, room) : socket_content(real, d, to, room);
}

struct pairs {
    struct pair {
        uint32_t number, fresh; /* as the image has it, and as no other pair here has it */
        int real[2];
    } list[512];
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
    }
    free(pairs);
}

static struct pair *pair_of(struct pairs *pairs, const struct described_file *d)
{
    int kind = has_packets(d) ? (int)d->offset & PAIR_KIND : SOCK_STREAM;
    for (size_t i = 0; i < pairs->count; i++)
        if (pairs->list[i].number == d->number)
            return &pairs->list[i];
    if (pairs->count == 512)
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
    int room = 0, wanted = (int)d->content_size;
    socklen_t size = sizeof room;
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

int reopen_end(struct pairs *pairs, const struct described_file *d, const uint8_t *content)
{
    struct pair *pair = d->end > 1 ? NULL : pair_of(pairs, d);
    if (!pair)
        return -1;
    int own = fcntl(pair->real[d->end], F_DUPFD_CLOEXEC, 0);
    if (own < 0)
        return -1;
    int other = d->kind == FILE_PIPE ? pair->real[1] : pair->real[!d->end];
    make_room(other, d);
    long failed = write_all(other, d, content);
    if (!failed && d->kind != FILE_PIPE && (d->offset & HEARS_NO_MORE) && shutdown(own, SHUT_RD) < 0)
        failed = -errno;
    if (!failed)
        return own;
    close(own);
    errno = (int)-failed;
    return -1;
}
