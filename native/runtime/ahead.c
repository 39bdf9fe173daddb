/* Fewer round trips for ordinary files: reading ahead, writing behind, and answers that came with the open.
 *
 * The runtime knows of some descriptors what kind of file they name, and of files opened for reading only
 * where their position is.  Such a file has a stream: pieces of it that were asked for before the program
 * did.  Home's position of it is told before anything else is (channel.c), so every other call finds it right.
 * Writes to ordinary files are sent and not waited for: home serves a channel in order, so whatever comes
 * later finds them done; an error is told by the next call for that file, and close waits for it.
 *
 * What was read ahead may be old.  It is given to the program only within a second, and only if since then the
 * program has neither changed that file nor heard from anybody else (a pipe, a signal, a child, a lock).
 */
#include "runtime.h"

#include <asm/stat.h>

enum {
    KNOWN = 4096, STREAMS = 8, PIECES = 128, PIECE = 64 << 10, FIRST_AHEAD = 128 << 10, LARGE_BUFFER = 1 << 20,
    LOCKS = 64, REGULAR = 0100000, KIND = 0170000, READ_ONLY = 0, ACCESS = 3, EMPTY_PATH = 0x1000,
};
#define FRESH_NS 1000000000l
#define WORTH_MORE_NS 50000l /* a wait that a longer way ahead would have saved */
#define MOST_AHEAD ((int64_t)(PIECES - 2) * PIECE)

/* What is known of the program's descriptors. Nothing is, of one that is all zeros. */
static struct known {
    bool learned, reads, writes;
    uint64_t identity; /* of the file; 0 unknown */
    int64_t position;  /* -1: home's matter. Else this descriptor's alone, and the file's size matters */
    int64_t size;
    uint32_t unsettled; /* bytes written since home last answered for this file */
} known[KNOWN];
static struct lock position_locks[LOCKS];

/* PIECE bytes of a file at most, up to the next multiple of PIECE. */
struct piece {
    volatile uint32_t state; /* WAITER_... */
    volatile uint32_t place; /* PLACE_...: where it goes when it arrives */
    uint32_t generation, world;
    int64_t offset, asked, length; /* length < asked: the file ended there */
    int64_t when_ns;
    bool end_told;
};

enum { PLACE_OPEN, PLACE_BUFFER, PLACE_PROGRAM };

static struct stream {
    struct lock lock;
    int fd; /* -1: none */
    uint64_t identity;
    volatile uint32_t generation; /* of what is still good */
    uint32_t used;
    bool has_status;
    struct stat status;
    uint32_t status_world;
    int64_t status_ns;
    int64_t next;  /* where a sequential reader would go on */
    int64_t ahead; /* bytes wanted beyond it */
    bool waited;
    uint8_t *buffer;
    struct piece pieces[PIECES];
    uint16_t order[PIECES]; /* asked for, in this order */
    uint8_t *wanted_at; /* the program's memory, of the piece with PLACE_PROGRAM */
    volatile uint32_t asked, arrived;
} streams[STREAMS];
static struct lock streams_lock;
static uint32_t clock_hand;

static struct known *known_file(int fd)
{
    return fd >= 0 && fd < KNOWN ? &known[fd] : NULL;
}

static struct lock *position_lock(int fd)
{
    return &position_locks[fd % LOCKS];
}

/* Members that share memory can tell each other without our knowledge that something was written. */
static bool others_look(void)
{
    return process.shares && process.forked;
}

static uint64_t identity_of(const struct stat *status)
{
    return (status->st_ino * 0x9e3779b97f4a7c15ul ^ status->st_dev) | 1;
}

/* ---- streams */

static bool idle(const struct stream *s)
{
    return s->lock.word == 0 && s->asked == s->arrived;
}

/* The stream of FD, locked, or NULL. MAKE: another file's may be taken for it. */
static struct stream *stream_of(int fd, bool make)
{
    for (;;) {
        struct stream *found = NULL, *oldest = NULL;
        lock(&streams_lock);
        for (int i = 0; i < STREAMS; i++) {
            struct stream *s = &streams[i];
            if (s->fd == fd + 1)
                found = s;
            else if (idle(s) && (!oldest || s->used < oldest->used))
                oldest = s;
        }
        if (!found && make && oldest) {
            found = oldest;
            found->fd = fd + 1;
            found->identity = known[fd].identity;
            found->has_status = false;
            found->next = 0;
            found->ahead = FIRST_AHEAD;
            __atomic_add_fetch(&found->generation, 1, __ATOMIC_SEQ_CST);
        }
        if (found)
            found->used = ++clock_hand;
        unlock(&streams_lock);
        if (!found)
            return NULL;
        lock(&found->lock);
        if (found->fd == fd + 1)
            return found;
        unlock(&found->lock);
    }
}

static void drop_stream(int fd)
{
    struct stream *s = stream_of(fd, false);
    if (!s)
        return;
    __atomic_add_fetch(&s->generation, 1, __ATOMIC_SEQ_CST);
    s->fd = 0;
    s->has_status = false;
    if (s->buffer && s->next > LARGE_BUFFER && s->asked == s->arrived)
        SYSTEM(__NR_madvise, s->buffer, (size_t)PIECES * PIECE, 4 /* MADV_DONTNEED */);
    unlock(&s->lock);
}

/* The program changes that file: what was read of it is old. 0: nobody knows which. */
static void spoil(uint64_t identity)
{
    note_own_change();
    for (int i = 0; i < STREAMS; i++)
        if (streams[i].fd && (!identity || streams[i].identity == identity))
            __atomic_add_fetch(&streams[i].generation, 1, __ATOMIC_SEQ_CST);
}

static bool has_buffer(struct stream *s)
{
    if (!s->buffer) {
        long at = SYSTEM(__NR_mmap, 0, (size_t)PIECES * PIECE, 3, 0x4022, -1, 0);
        s->buffer = at < 0 && at > -4096 ? NULL : (uint8_t *)at;
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

uint8_t *ahead_place(unsigned number, size_t *room)
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

void ahead_arrived(unsigned number, int64_t length)
{
    struct stream *s = &streams[number];
    struct piece *p = &s->pieces[s->order[s->arrived % PIECES]];
    p->length = length;
    __atomic_add_fetch(&s->arrived, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&p->state, WAITER_DONE, __ATOMIC_RELEASE);
}

static void begin_piece(struct stream *s, struct piece *p, int64_t offset, int64_t size)
{
    p->generation = s->generation;
    p->world = news_heard;
    p->offset = offset;
    p->asked = size;
    p->when_ns = monotonic_ns();
    p->end_told = false;
    p->place = PLACE_OPEN;
}

static bool is_good(const struct stream *s, const struct piece *p, int64_t at)
{
    return p->state != WAITER_IDLE && p->generation == s->generation && p->world == news_heard && at >= p->offset &&
           at < p->offset + p->asked;
}

/* Asks for what a sequential reader at FROM will want, as far as it was not asked for. */
static void ask_ahead(struct stream *s, int fd, int64_t from, int64_t size)
{
    int64_t to = from + s->ahead;
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
        if (p->state == WAITER_ASKED || !has_buffer(s))
            break;
        begin_piece(s, p, at, end - at);
        p->state = WAITER_ASKED;
        s->order[s->asked % PIECES] = (uint16_t)(p - s->pieces);
        __atomic_add_fetch(&s->asked, 1, __ATOMIC_SEQ_CST);
        struct request request = {.id = (uint16_t)(ID_AHEAD + (s - streams)), .call = __NR_pread64,
                                  .arguments = {fd, end - at, end - at, at}};
        owe(&request);
        any = true;
        at = end;
    }
    if (any)
        pay_owed();
}

/* Waits for P. If the program wants all of it, and nobody has begun to receive it, it goes where the program wants
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
static long take(struct stream *s, uint8_t *to, size_t size, int64_t offset, bool *ended)
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
            *ended = !p->end_told; /* once: whoever asks again wants to see it grow */
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

/* ---- reading */

static long read_there(struct thread *self, int fd, uint8_t *to, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done < size) {
        size_t part = size - done > MAX_READ ? MAX_READ : size - done;
        struct request request = {.call = __NR_pread64,
                                  .arguments = {fd, (int64_t)part, (int64_t)part, offset + (int64_t)done}};
        struct vector out = {to + done, part};
        long got = ask(self, &request, NULL, 0, &out, 1, NULL);
        if (got < 0)
            return done ? (long)done : got;
        done += (size_t)got;
        if ((size_t)got < part)
            break;
    }
    return (long)done;
}

static long read_stream(struct thread *self, struct stream *s, int fd, uint8_t *to, size_t size, int64_t offset)
{
    bool ended, sequential = offset == s->next;
    s->waited = false;
    long done = take(s, to, size, offset, &ended);
    if (done >= 0 && (size_t)done < size && !ended && sequential && size <= MAX_PAYLOAD && s->next) {
        s->waited = true; /* what is missing is asked for together with what follows it */
        ask_ahead(s, fd, offset + done, known[fd].size);
        long more = take(s, to + done, size - (size_t)done, offset + done, &ended);
        done += more > 0 ? more : 0;
    }
    if (done < 0)
        return done;
    if ((size_t)done < size && !ended) {
        s->waited |= sequential;
        long more = read_there(self, fd, to + done, size - (size_t)done, offset + done);
        if (more < 0 && !done)
            return more;
        done += more > 0 ? more : 0;
    }
    if (!sequential) {
        s->ahead = FIRST_AHEAD;
    } else if (s->next || done >= (long)PAGE) { /* a glance at the beginning is not a reader yet */
        if (s->waited)
            s->ahead = s->ahead * 2 > MOST_AHEAD ? MOST_AHEAD : s->ahead * 2;
        ask_ahead(s, fd, offset + done, known[fd].size);
    }
    s->next = offset + done;
    return done;
}

/* NOT_HERE: this is none of the files that are read ahead. OFFSET < 0: at the position. */
long read_ahead(struct thread *self, int fd, uint8_t *to, size_t size, int64_t offset)
{
    struct known *k = known_file(fd);
    bool at_position = offset < 0;
    if (!k || !k->reads || others_look() || (at_position && k->position < 0) || size == 0)
        return NOT_HERE;
    if (at_position) {
        lock(position_lock(fd));
        offset = k->position;
    }
    long done = offset < 0 ? NOT_HERE : plan_read(fd, to, size, offset);
    struct stream *s = offset < 0 || done != NOT_HERE ? NULL : stream_of(fd, true);
    if (s) {
        done = read_stream(self, s, fd, to, size, offset);
        unlock(&s->lock);
    } else if (offset >= 0 && done == NOT_HERE) {
        done = read_there(self, fd, to, size, offset);
    }
    if (at_position) {
        if (done > 0 && k->position >= 0) {
            k->position = offset + done;
            owe_position(fd, k->position);
        }
        unlock(position_lock(fd));
    }
    return done;
}

bool is_ordinary(int fd)
{
    struct known *k = known_file(fd);
    return k && (k->reads || k->writes);
}

long do_lseek(struct trap *t)
{
    enum { SET = 0, CURRENT = 1 };
    int fd = (int)t->a[0];
    struct known *k = known_file(fd);
    long result = NOT_HERE, to = (long)t->a[1];
    plan_note_moved(fd);
    if (k && k->reads && k->position >= 0) {
        lock(position_lock(fd));
        if (k->position >= 0 && (t->a[2] == SET || t->a[2] == CURRENT)) {
            if (t->a[2] == CURRENT && __builtin_add_overflow(to, k->position, &to))
                to = -1;
            result = to < 0 ? -EINVAL : to;
            if (to >= 0 && to != k->position) {
                k->position = to;
                owe_position(fd, to);
            }
        }
        if (result == NOT_HERE) {
            result = remote(t, &calls[__NR_lseek]);
            if (result >= 0 && k->position >= 0)
                k->position = result;
        }
        unlock(position_lock(fd));
    }
    return result == NOT_HERE ? remote(t, &calls[__NR_lseek]) : result;
}

/* ---- writing */

/* Sends a write without waiting for it; every few megabytes it does wait. */
long write_behind(struct thread *self, int fd, const uint8_t *from, size_t size, int64_t offset)
{
    struct known *k = known_file(fd);
    size_t done = 0;
    if (!k || !k->writes || others_look() || size == 0)
        return NOT_HERE;
    spoil(k->identity);
    while (done < size) {
        size_t part = size - done > MAX_PAYLOAD ? MAX_PAYLOAD : size - done;
        struct request request = {.call = offset < 0 ? __NR_write : __NR_pwrite64,
                                  .arguments = {fd, (int64_t)part, (int64_t)part,
                                                offset < 0 ? 0 : offset + (int64_t)done}};
        struct vector in = {(void *)(from + done), part};
        long put = (long)part;
        if (__atomic_add_fetch(&k->unsettled, (uint32_t)part, __ATOMIC_RELAXED) > MAX_UNANSWERED) {
            k->unsettled = 0;
            put = ask(self, &request, &in, 1, NULL, 0, NULL);
        } else if (tell_home(&request, &in, 1)) {
            put = -EFAULT;
        }
        if (put < 0)
            return done ? (long)done : put;
        done += (size_t)put;
        if ((size_t)put < part)
            break;
    }
    return (long)done;
}

/* Before something is heard of by another way than the channel: everything written is there. */
void settle_writes(struct thread *self)
{
    struct request request = {.call = OP_FACTS, .arguments = {-1}};
    ask(self, &request, NULL, 0, NULL, 0, NULL);
}

/* ---- what is known */

static void note_facts(int fd, const struct stat *status, uint64_t hints, int64_t position)
{
    struct known *k = known_file(fd);
    if (!k)
        return;
    k->learned = true;
    if ((status->st_mode & KIND) != REGULAR || !(hints & HINT_STEADY))
        return;
    k->identity = identity_of(status);
    k->size = status->st_size;
    k->unsettled = 0;
    k->writes = hints & FACT_WRITES;
    k->reads = hints & FACT_READS;
    k->position = k->reads && (hints & FACT_ALONE) ? position : -1;
}

/* Asks about a descriptor that the program was given or made by other means than opening a file. */
static void learn_file(struct thread *self, int fd)
{
    struct known *k = known_file(fd);
    struct stat status;
    uint64_t facts = 0;
    if (!k || k->learned)
        return;
    struct request request = {.call = OP_FACTS, .arguments = {fd}};
    struct vector out = {&status, sizeof status};
    long position = ask(self, &request, NULL, 0, &out, 1, &facts);
    if (position >= 0)
        note_facts(fd, &status, facts, position);
}

/* The descriptor is closed. */
void forget_file(int fd)
{
    struct known *k = known_file(fd);
    if (!k || !k->learned)
        return;
    lock(position_lock(fd));
    forget_owed_position(fd);
    memset(k, 0, sizeof *k);
    k->position = -1;
    unlock(position_lock(fd));
    drop_stream(fd);
}

/* A read or write that was done the long way. */
void note_transfer(struct thread *self, int fd, bool writing, uint64_t hints)
{
    if (!(hints & HINT_STEADY)) {
        if (!writing)
            note_news();
        return;
    }
    if (writing)
        spoil(0);
    learn_file(self, fd);
}

/* Somebody else may move that position from now on. */
void share_position(int fd)
{
    struct known *k = known_file(fd);
    if (!k || !k->learned || k->position < 0)
        return;
    lock(position_lock(fd));
    k->position = -1; /* home is told with the next frame */
    unlock(position_lock(fd));
}

/* It is open, but nothing is known of it any more. */
void unlearn_file(int fd)
{
    share_position(fd);
    drop_stream(fd);
    if (known_file(fd))
        known[fd].learned = known[fd].reads = known[fd].writes = false;
}

void share_positions(void)
{
    for (int fd = 0; fd < KNOWN; fd++)
        if (known[fd].learned)
            share_position(fd);
}

void forget_files(void)
{
    for (int fd = 0; fd < KNOWN; fd++)
        forget_file(fd);
}

/* After a restart, and in a new member: nothing of all that is true any more. */
void ahead_reset(bool mapped)
{
    memset(position_locks, 0, sizeof position_locks);
    streams_lock.word = 0;
    for (int fd = 0; fd < KNOWN; fd++)
        if (known[fd].learned)
            known[fd] = (struct known){.position = -1};
    for (int i = 0; i < STREAMS; i++) {
        if (streams[i].buffer && mapped)
            SYSTEM(__NR_munmap, streams[i].buffer, (size_t)PIECES * PIECE);
        memset(&streams[i], 0, sizeof streams[i]);
    }
}

/* ---- opening and closing */

static void note_opened(int fd, const struct stat *status, const uint8_t *first, int flags, uint64_t hints)
{
    forget_file(fd);
    note_facts(fd, status, hints, 0);
    struct known *k = known_file(fd);
    if (!k)
        return;
    if (k->writes && (flags & 01000 /* O_TRUNC */))
        spoil(k->identity);
    if (!k->reads)
        return;
    struct stream *s = stream_of(fd, true);
    if (!s)
        return;
    s->status = *status;
    s->has_status = true;
    s->status_world = world_now();
    s->status_ns = monotonic_ns();
    if (first && has_buffer(s) && s->pieces[0].state != WAITER_ASKED) {
        struct piece *p = &s->pieces[0];
        begin_piece(s, p, 0, FIRST_BYTES);
        p->length = k->size < FIRST_BYTES ? k->size : FIRST_BYTES;
        memcpy(s->buffer, first, (size_t)p->length);
        p->state = WAITER_DONE;
    }
    unlock(&s->lock);
}

/* PATH may be the program's memory. The answer tells more than was asked.  WAITING is the program's call, which
 * a signal may end while a pipe's other end is waited for. */
long open_home(struct thread *self, struct trap *waiting, int directory, const char *path, int flags, int mode)
{
    char *name = (char *)self->scratch;
    struct stat status;
    uint64_t hints = 0;
    long length = copy_path(name, path);
    if (length < 0)
        return length;
    struct request request = {.call = __NR_openat, .arguments = {directory, length, flags, mode,
                                                                 WANT_FACTS | FIRST_BYTES}};
    struct vector in = {name, (size_t)length};
    struct vector out[] = {{&status, sizeof status}, {self->scratch, FIRST_BYTES}};
    bool changes = flags & 01100; /* O_CREAT, O_TRUNC */
    if (!changes && (flags & ACCESS) == READ_ONLY) {
        long found = plan_open(&request, name, &status, &hints);
        if (found >= 0 && (hints & HINT_STEADY))
            note_opened((int)found, &status, NULL, flags, hints);
        if (found != NOT_HERE)
            return found;
    }
    if (changes)
        note_own_change();
    long fd = waiting ? ask_waiting(waiting, &request, &in, 1, out, 2, &hints)
                      : ask(self, &request, &in, 1, out, 2, &hints);
    if (fd >= 0)
        plan_note_opened((int)fd);
    if (fd >= 0 && (hints & HINT_STEADY))
        note_opened((int)fd, &status, self->scratch, flags, hints);
    else if (fd >= 0)
        forget_file((int)fd);
    return fd;
}

/* A file that was only read needs no answer to its closing. */
long close_home(struct thread *self, int fd)
{
    struct known *k = known_file(fd);
    bool quick = k && k->learned && (k->reads || k->writes) && !k->unsettled;
    forget_file(fd);
    if (plan_note_closed(fd, &quick))
        return 0;
    struct request request = {.call = __NR_close, .arguments = {fd}};
    return quick ? tell_home(&request, NULL, 0) : ask(self, &request, NULL, 0, NULL, 0, NULL);
}

long do_close(struct trap *t)
{
    return close_home(t->self, (int)t->a[0]);
}

/* fstat right after open: its answer came along, and serves once. */
bool status_ahead(int fd, void *to, long *result)
{
    if (plan_status(fd, to, result))
        return true;
    struct known *k = known_file(fd);
    struct stream *s = k && k->reads ? stream_of(fd, false) : NULL;
    if (!s)
        return false;
    bool good = s->has_status && s->status_world == world_now() && monotonic_ns() - s->status_ns < FRESH_NS;
    s->has_status = false;
    if (good)
        *result = copy_user(to, &s->status, sizeof s->status) ? -EFAULT : 0;
    unlock(&s->lock);
    return good;
}
