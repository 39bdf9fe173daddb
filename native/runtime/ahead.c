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
#include "ahead.h"

enum { KNOWN = 4096, LOCKS = 64, REGULAR = 0100000, KIND = 0170000, READ_ONLY = 0, ACCESS = 3 };

/* What is known of the program's descriptors. Nothing is, of one that is all zeros. */
static struct known {
    bool learned, reads, writes;
    uint64_t identity; /* of the file; 0 unknown */
    int64_t position;  /* -1: home's matter. Else this descriptor's alone, and the file's size matters */
    int64_t size;
    uint32_t unsettled; /* bytes written since home last answered for this file */
} known[KNOWN];
static struct lock position_locks[LOCKS];

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

uint64_t file_identity(int fd)
{
    return known[fd].identity;
}

/* The program changes that file. 0: nobody knows which. */
static void spoil(uint64_t identity)
{
    note_own_change();
    spoil_streams(identity);
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
    if (is_beyond_memory(to, size))
        return -EFAULT;
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
    if (is_beyond_memory(from, size))
        return -EFAULT;
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
    for (int fd = 0; fd < KNOWN; fd++)
        if (known[fd].learned)
            known[fd] = (struct known){.position = -1};
    streams_reset(mapped);
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
