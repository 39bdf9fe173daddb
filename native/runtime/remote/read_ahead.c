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
#include "read_ahead.h"

#include <linux/fs.h>

#include "known.h"
#include "invalidation.h"
#include "library.h"
#include "plan.h"
#include "runtime/process/process.h"
#include "remote.h"
#include "runtime/memory/shared_transfer.h"
#include "streams.h"
#include "runtime/text.h"
#include "runtime/process/time.h"
#include "runtime/user.h"

struct known known[KNOWN_FILES]
    UNGUARDED("each has a lock of its own; what a transfer reads without it is compared with generation afterwards");

struct known *known_file(int fd)
{
    return fd >= 0 && fd < KNOWN_FILES ? &known[fd] : NULL;
}

/* Members that share memory can tell each other without our knowledge that something was written. */
static bool others_look(void)
{
    return process.shares && process.forked;
}

#define SPREAD 0x9e3779b97f4a7c15ul /* 2^64 by the golden ratio: far apart for neighbours */

uint64_t identity_of(const struct stat *status)
{
    return (status->st_ino * SPREAD ^ status->st_dev) | 1;
}

/* The program has changed that file, and home has heard of it: later requests see the new state. 0: not known which. */
void spoil(uint64_t identity)
{
    note_own_change();
    spoil_streams(identity);
}

/* ---- reading */

/* One question. Of a large piece home may tell the digest in place of the bytes, which are here then. */
static long read_piece(struct thread *self, int fd, uint8_t *to, size_t size, int64_t offset)
{
    uint8_t digest[LIBRARY_DIGEST];
    struct request request = {.call = __NR_pread64, .arguments = {fd, (int64_t)size, (int64_t)size, offset}};
    struct vector out[] = {{digest, sizeof digest}, {to, size}};
    uint64_t hints = 0;
    if (size < LEAST_WANTED || !library_is_kept())
        return ask(self, &request, NULL, 0, &out[1], 1, NULL);
    request.arguments[4] = WANT_DIGEST;
    long got = ask(self, &request, NULL, 0, out, COUNT(out), &hints);
    if (got <= 0 || !(hints & HINT_DIGEST))
        return got;
    if (self->waiter.answer.size > sizeof digest) {
        library_add(digest, to, (size_t)got);
        return got;
    }
    long here = library_read_whole(digest, to, (size_t)got);
    request.arguments[4] = 0;
    return here == got || here == -EFAULT ? here : ask(self, &request, NULL, 0, &out[1], 1, NULL);
}

static long read_there(struct thread *self, int fd, uint8_t *to, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done < size) {
        size_t part = size - done > MAX_READ ? MAX_READ : size - done;
        long got = read_piece(self, fd, to + done, part, offset + (int64_t)done);
        if (got < 0)
            return done ? (long)done : got;
        done += (size_t)got;
        if ((size_t)got < part)
            break;
    }
    return (long)done;
}

static long read_stream(struct thread *self, struct stream *s, int fd, uint8_t *to, size_t size, int64_t offset,
                        int64_t file_size)
{
    bool ended, sequential = offset == s->next;
    s->waited = false;
    long done = take(s, to, size, offset, &ended);
    if (done >= 0 && (size_t)done < size && !ended && sequential && size <= MAX_PAYLOAD && s->next) {
        s->waited = true; /* what is missing is asked for together with what follows it */
        ask_ahead(s, fd, offset + done, file_size);
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
        ask_ahead(s, fd, offset + done, file_size);
    }
    s->next = offset + done;
    return done;
}

/* K's lock is held, and what is known of it is true. */
static UNCHECKED_LOCKS long read_known(struct thread *self, struct known *k, int fd, uint8_t *to, size_t size,
                                       int64_t offset)
{
    long done = plan_read(fd, to, size, offset);
    if (done != NOT_HERE)
        return done;
    struct stream *s = stream_of(fd, k->identity);
    if (!s)
        return read_there(self, fd, to, size, offset);
    done = read_stream(self, s, fd, to, size, offset, k->size);
    unlock(&s->lock);
    return done;
}

/* NOT_HERE: this is none of the files that are read ahead. OFFSET < 0: at the position. */
long read_ahead(struct thread *self, int fd, uint8_t *to, size_t size, int64_t offset)
{
    struct known *k = known_file(fd);
    bool at_position = offset < 0;
    if (!k || !k->reads || others_look() || size == 0)
        return NOT_HERE;
    if (is_shared(k->identity)) {
        share_position(fd);
        return NOT_HERE;
    }
    lock(&k->lock);
    if (at_position)
        offset = k->position;
    long done = !k->reads || offset < 0 ? NOT_HERE : read_known(self, k, fd, to, size, offset);
    if (at_position && done > 0) {
        k->position = offset + done;
        defer_position(fd, k->position);
    }
    unlock(&k->lock);
    return done;
}

bool is_ordinary(int fd)
{
    struct known *k = known_file(fd);
    return k && (k->reads || k->writes);
}

/* Whether it is known that the file is open for reading only. */
bool is_for_reading(int fd)
{
    struct known *k = known_file(fd);
    return k && k->reads;
}

static long seek_there(struct trap *t, int fd)
{
    begin_move(fd);
    long result = remote(t, &calls[__NR_lseek]);
    end_change(fd);
    return result;
}

long do_lseek(struct trap *t)
{
    int fd = (int)t->a[0];
    struct known *k = known_file(fd);
    long result = NOT_HERE, to = (long)t->a[1];
    plan_note_moved(fd);
    if (!k || !k->reads)
        return seek_there(t, fd);
    lock(&k->lock);
    if (k->position >= 0 && (t->a[2] == SEEK_SET || t->a[2] == SEEK_CUR)) {
        if (t->a[2] == SEEK_CUR && __builtin_add_overflow(to, k->position, &to))
            to = -1;
        result = to < 0 ? -EINVAL : to;
        if (to >= 0 && to != k->position) {
            k->position = to;
            defer_position(fd, to);
        }
    } else if (k->position >= 0) {
        result = remote(t, &calls[__NR_lseek]);
        if (result >= 0)
            k->position = result;
    }
    unlock(&k->lock);
    return result == NOT_HERE ? seek_there(t, fd) : result;
}

/* ---- writing */

/* Sends a write without waiting for it; every few megabytes it does wait. */
long write_behind(struct thread *self, int fd, const uint8_t *from, size_t size, int64_t offset)
{
    struct known *k = known_file(fd);
    size_t done = 0;
    long put = 0;
    if (!k || !k->writes || others_look() || is_shared(k->identity) || size == 0)
        return NOT_HERE;
    uint32_t generation = __atomic_load_n(&k->generation, __ATOMIC_ACQUIRE);
    uint64_t identity = k->identity;
    while (done < size) {
        size_t part = size - done > MAX_PAYLOAD ? MAX_PAYLOAD : size - done;
        struct request request = {.call = offset < 0 ? __NR_write : __NR_pwrite64,
                                  .arguments = {fd, (int64_t)part, (int64_t)part,
                                                offset < 0 ? 0 : offset + (int64_t)done}};
        struct vector in = {(void *)(from + done), part};
        put = (long)part;
        if (__atomic_add_fetch(&k->unsettled, (uint32_t)part, __ATOMIC_RELAXED) > MAX_UNANSWERED) {
            k->unsettled = 0;
            put = ask(self, &request, &in, 1, NULL, 0, NULL);
        } else if (tell_home(&request, &in, 1)) {
            put = -EFAULT;
        }
        done += put > 0 ? (size_t)put : 0;
        if (put < (long)part)
            break;
    }
    spoil(generation == __atomic_load_n(&k->generation, __ATOMIC_ACQUIRE) ? identity : 0);
    return done ? (long)done : put;
}

/* Before something is heard of by another way than the channel: everything written is there. */
void settle_writes(struct thread *self)
{
    struct request request = {.call = OP_FACTS, .arguments = {-1}};
    ask(self, &request, NULL, 0, NULL, 0, NULL);
}

/* ---- what is known */

/* Nothing is known of it any more. */
static void clear(struct known *k) REQUIRES(k->lock);
static void clear(struct known *k)
{
    k->learned = k->reads = k->writes = false;
    k->identity = 0;
    k->size = 0;
    k->unsettled = 0;
    k->position = -1;
    __atomic_add_fetch(&k->generation, 1, __ATOMIC_RELEASE);
}

void note_facts(struct known *k, const struct stat *status, uint64_t hints, int64_t position)
{
    if (k->changing)
        return;
    k->learned = true;
    if ((status->st_mode & S_IFMT) != S_IFREG || !(hints & HINT_STEADY))
        return;
    k->identity = identity_of(status);
    k->size = status->st_size;
    k->unsettled = 0;
    k->writes = hints & FACT_WRITES;
    k->reads = hints & FACT_READS;
    k->position = k->reads && (hints & FACT_ALONE) && !others_look() && !is_shared(k->identity) ? position : -1;
}

/* Asks about a descriptor that the program was given or made by other means than opening a file.  What another thread
 * does with it meanwhile makes the answer old. */
static void learn_file(struct thread *self, int fd)
{
    struct known *k = known_file(fd);
    struct stat status;
    uint64_t facts = 0;
    if (!k || k->learned)
        return;
    lock(&k->lock);
    uint32_t generation = k->generation;
    bool wanted = !k->learned && !k->changing;
    unlock(&k->lock);
    if (!wanted)
        return;
    struct request request = {.call = OP_FACTS, .arguments = {fd}};
    struct vector out = {&status, sizeof status};
    long position = ask(self, &request, NULL, 0, &out, 1, &facts);
    if (position < 0)
        return;
    lock(&k->lock);
    if (k->generation == generation && !k->learned)
        note_facts(k, &status, facts, position);
    unlock(&k->lock);
}

/* The descriptor means nothing any more, or something else. */
void forget_file(int fd)
{
    struct known *k = known_file(fd);
    if (!k)
        return;
    lock(&k->lock);
    bool had_stream = k->reads;
    if (k->learned)
        forget_deferred_position(fd);
    clear(k);
    if (had_stream)
        drop_stream(fd);
    unlock(&k->lock);
}

/* A call that makes something else of the descriptor, and has not been done yet: until end_change nothing is learned. */
void begin_change(int fd)
{
    if (!known_file(fd))
        return;
    __atomic_add_fetch(&known[fd].changing, 1, __ATOMIC_SEQ_CST);
    forget_file(fd);
}

/* The same for a call that moves the position at home. */
void begin_move(int fd)
{
    struct known *k = known_file(fd);
    if (!k)
        return;
    __atomic_add_fetch(&k->changing, 1, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&k->generation, 1, __ATOMIC_SEQ_CST);
}

void end_change(int fd)
{
    if (known_file(fd))
        __atomic_sub_fetch(&known[fd].changing, 1, __ATOMIC_SEQ_CST);
}

/* A read or write that was done the long way. */
void note_transfer(struct thread *self, int fd, bool writing, uint64_t hints)
{
    if (!(hints & HINT_STEADY)) {
        if (!writing)
            note_invalidation();
        return;
    }
    if (writing)
        spoil(0);
    learn_file(self, fd);
}

/* Another process may move that position from now on. */
void share_position(int fd)
{
    struct known *k = known_file(fd);
    if (!k)
        return;
    __atomic_add_fetch(&k->generation, 1, __ATOMIC_SEQ_CST);
    if (!k->learned)
        return;
    lock(&k->lock);
    k->position = -1; /* home is told with the next frame */
    unlock(&k->lock);
}

/* It is open, but nothing is known of it any more. */
void unlearn_file(int fd)
{
    struct known *k = known_file(fd);
    if (!k)
        return;
    lock(&k->lock);
    bool had_stream = k->reads;
    clear(k);
    if (had_stream)
        drop_stream(fd);
    unlock(&k->lock);
}

void share_positions(void)
{
    for (int fd = 0; fd < KNOWN_FILES; fd++)
        share_position(fd);
}

/* The process has memory from now on that other members may have as well.  Nothing is read ahead any more then, so each
 * read moves the position at home. */
void begin_sharing(void)
{
    if (process.shares)
        return;
    process.shares = true;
    if (process.forked)
        share_positions();
}

void forget_files(void)
{
    for (int fd = 0; fd < KNOWN_FILES; fd++)
        if (known[fd].learned)
            forget_file(fd);
}

/* After a restart, and in a new member: nothing of all that is true any more. */
void read_ahead_reset(bool mapped)
{
    for (int fd = 0; fd < KNOWN_FILES; fd++)
        if (known[fd].learned || known[fd].lock.word || known[fd].changing)
            known[fd] = (struct known){.position = -1};
    streams_reset(mapped);
}
