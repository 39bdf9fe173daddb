/* Streams: asking for pieces of files ahead, receiving them, giving them to the program. */
#include "streams.h"

#include "invalidation.h"
#include "runtime/text.h"
#include "runtime/process/time.h"
#include "runtime/user.h"

enum { LARGE_BUFFER = 1 << 20, AT_ONCE = 8 * PIECE };
#define WORTH_MORE_NS 50000l /* a wait that a longer way ahead would have saved */

static struct lock streams_lock;
static struct stream streams[STREAMS] UNGUARDED("each has a lock of its own; which is taken for what, streams_lock");
static uint32_t clock_hand GUARDED_BY(streams_lock);

/* Whether S could be another file's. If so it is locked. */
static bool lock_if_idle(struct stream *s) TRY_ACQUIRE(true, s->lock);
UNCHECKED_LOCKS static bool lock_if_idle(struct stream *s)
{
    if (!try_lock(&s->lock))
        return false;
    if (s->asked == s->arrived)
        return true;
    unlock(&s->lock);
    return false;
}

/* The one that was used least lately and could be another file's, locked, becomes FD's. */
UNCHECKED_LOCKS static struct stream *take_idle(int fd, uint64_t identity) REQUIRES(streams_lock);
UNCHECKED_LOCKS static struct stream *take_idle(int fd, uint64_t identity)
{
    struct stream *oldest = NULL;
    for (int i = 0; i < STREAMS; i++) {
        struct stream *s = &streams[i];
        if ((oldest && s->used >= oldest->used) || !lock_if_idle(s))
            continue;
        if (oldest)
            unlock(&oldest->lock);
        oldest = s;
    }
    if (!oldest)
        return NULL;
    oldest->fd = fd + 1;
    oldest->identity = identity;
    oldest->has_status = false;
    oldest->next = 0;
    oldest->ahead = FIRST_AHEAD;
    __atomic_add_fetch(&oldest->generation, 1, __ATOMIC_SEQ_CST);
    return oldest;
}

/* The stream of FD, locked, or NULL. IDENTITY: of its file, whose stream may be another file's until now; 0: none is
 * made. */
UNCHECKED_LOCKS struct stream *stream_of(int fd, uint64_t identity)
{
    for (;;) {
        struct stream *found = NULL;
        lock(&streams_lock);
        for (int i = 0; i < STREAMS && !found; i++)
            if (streams[i].fd == fd + 1)
                found = &streams[i];
        bool locked = !found && identity;
        if (locked)
            found = take_idle(fd, identity);
        if (found)
            found->used = ++clock_hand;
        unlock(&streams_lock);
        if (!found || locked)
            return found;
        lock(&found->lock);
        if (found->fd == fd + 1)
            return found;
        unlock(&found->lock);
    }
}

UNCHECKED_LOCKS void drop_stream(int fd)
{
    struct stream *s = stream_of(fd, 0);
    if (!s)
        return;
    __atomic_add_fetch(&s->generation, 1, __ATOMIC_SEQ_CST);
    s->fd = 0;
    s->has_status = false;
    if (s->buffer && s->next > LARGE_BUFFER && s->asked == s->arrived)
        SYSTEM(__NR_madvise, s->buffer, (size_t)PIECES * PIECE, MADV_DONTNEED);
    unlock(&s->lock);
}

/* What was read of a file is old. 0: not known of which. */
void spoil_streams(uint64_t identity)
{
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].fd && (!identity || streams[i].identity == identity))
            __atomic_add_fetch(&streams[i].generation, 1, __ATOMIC_SEQ_CST);
}

bool has_buffer(struct stream *s)
{
    if (!s->buffer) {
        long at = SYSTEM(__NR_mmap, 0, (size_t)PIECES * PIECE, PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0);
        s->buffer = is_error(at) ? NULL : (uint8_t *)at;
    }
    return s->buffer;
}

static struct piece *piece_at(struct stream *s, int64_t offset)
{
    return &s->pieces[(uint64_t)offset / PIECE % PIECES];
}

static uint8_t *place_of(const struct stream *s, int64_t offset)
{
    return s->buffer + (uint64_t)offset % ((uint64_t)PIECES * PIECE);
}

uint8_t *read_ahead_place(unsigned number, size_t *room)
{
    struct stream *s = number < STREAMS ? &streams[number] : NULL;
    if (!s || s->asked == s->arrived || !s->buffer)
        return NULL;
    struct piece *p = &s->pieces[s->order[s->arrived % PIECES]];
    uint32_t open = PLACE_OPEN;
    *room = (size_t)p->asked;
    return __atomic_compare_exchange_n(&p->place, &open, PLACE_BUFFER, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
               ? place_of(s, p->offset) : s->wanted_at;
}

void read_ahead_arrived(unsigned number, int64_t length)
{
    struct stream *s = &streams[number];
    struct piece *p = &s->pieces[s->order[s->arrived % PIECES]];
    p->length = length;
    __atomic_add_fetch(&s->arrived, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&p->state, WAITER_DONE, __ATOMIC_RELEASE);
}

void begin_piece(struct stream *s, struct piece *p, int64_t offset, int64_t size)
{
    p->generation = s->generation;
    p->world = invalidations;
    p->offset = offset;
    p->asked = size;
    p->when_ns = monotonic_ns();
    p->end_told = false;
    p->place = PLACE_OPEN;
}

static bool is_good(const struct stream *s, const struct piece *p, int64_t at)
{
    return p->state != WAITER_IDLE && p->generation == s->generation && p->world == invalidations && at >= p->offset &&
           at < p->offset + p->asked;
}

/* Asks for what a sequential reader at FROM will want, as far as it was not asked for. */
void ask_ahead(struct stream *s, int fd, int64_t from, int64_t size)
{
    int64_t to = from + s->ahead, few = s->ahead / 4 < AT_ONCE ? s->ahead / 4 : AT_ONCE;
    bool any = false;
    if (to > size)
        to = size;
    for (int64_t at = from; at < to;) {
        int64_t end = (at / PIECE + 1) * PIECE;
        struct piece *p = piece_at(s, at);
        if (is_good(s, p, at)) {
            at = p->offset + p->asked;
            continue;
        }
        if (p->state == WAITER_ASKED || !has_buffer(s) || (!any && to < size && to - at < few))
            break; /* several at once: each time the shadow has to wake up */
        begin_piece(s, p, at, end - at);
        p->state = WAITER_ASKED;
        s->order[s->asked % PIECES] = (uint16_t)(p - s->pieces);
        __atomic_add_fetch(&s->asked, 1, __ATOMIC_SEQ_CST);
        struct request request = {.id = (uint16_t)(ID_AHEAD + (s - streams)), .call = __NR_pread64,
                                  .arguments = {fd, end - at, end - at, at}};
        defer(&request);
        any = true;
        at = end;
    }
    if (any)
        flush_deferred();
}

/* Waits for P. If the program wants all of it, and receiving has not begun, it goes where the program wants
 * it. Returns whether it went there. */
static bool await_piece(struct stream *s, struct piece *p, uint8_t *to, size_t size)
{
    uint32_t open = PLACE_OPEN;
    int64_t began = monotonic_ns();
    s->wanted_at = to;
    bool there = size >= (size_t)p->asked &&
                 __atomic_compare_exchange_n(&p->place, &open, PLACE_PROGRAM, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    wait_for_arrival(&p->state);
    if (monotonic_ns() - began > WORTH_MORE_NS)
        s->waited = true;
    return there;
}

/* Takes what is there of SIZE bytes at OFFSET. *ENDED: the file ends behind them. */
long take(struct stream *s, uint8_t *to, size_t size, int64_t offset, bool *ended)
{
    size_t done = 0;
    int64_t now = monotonic_ns();
    *ended = false;
    while (done < size) {
        int64_t at = offset + (int64_t)done;
        struct piece *p = piece_at(s, at);
        bool there = false;
        if (!is_good(s, p, at))
            break;
        if (p->state == WAITER_ASKED) {
            there = at == p->offset && await_piece(s, p, to + done, size - done);
            if (!there)
                await_piece(s, p, NULL, 0);
            now = monotonic_ns();
        }
        if (there)
            p->state = WAITER_IDLE; /* it is nowhere else */
        if (p->length < 0 || now - p->when_ns > FRESH_NS)
            break;
        int64_t left = p->offset + p->length - at;
        if (left <= 0) {
            *ended = !p->end_told; /* once: a second read at the end looks for growth */
            p->end_told = true;
            break;
        }
        size_t part = (size_t)left < size - done ? (size_t)left : size - done;
        if (!there && copy_user(to + done, place_of(s, at), part))
            return done ? (long)done : -EFAULT;
        done += part;
        if (there && p->length < p->asked) {
            *ended = true;
            break;
        }
    }
    return (long)done;
}

/* The buffers are not part of an image; a new member has MAPPED copies of them. */
void streams_reset(bool mapped)
{
    forget_lock(&streams_lock);
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].buffer && mapped)
            SYSTEM(__NR_munmap, streams[i].buffer, (size_t)PIECES * PIECE);
        memset(&streams[i], 0, sizeof streams[i]);
    }
}
