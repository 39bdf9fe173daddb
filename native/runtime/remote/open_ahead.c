/* Opening and closing files with fewer round trips: an open brings the first bytes and facts along.  See read_ahead.c. */
#include "read_ahead.h"

#include <linux/fs.h>

#include "known.h"
#include "invalidation.h"
#include "plan.h"
#include "runtime/process/process.h"
#include "remote.h"
#include "runtime/memory/shared_transfer.h"
#include "streams.h"
#include "runtime/text.h"
#include "runtime/process/time.h"
#include "runtime/user.h"

/* WORLD: as it was before the file was opened. */
static UNCHECKED_LOCKS void note_opened(int fd, const struct stat *status, const uint8_t *first, int flags, uint64_t hints,
                                        uint32_t world)
{
    struct known *k = known_file(fd);
    forget_file(fd);
    if (!k)
        return;
    lock(&k->lock);
    note_facts(k, status, hints, 0);
    if (k->writes && (flags & O_TRUNC))
        spoil(k->identity);
    struct stream *s = k->reads ? stream_of(fd, k->identity) : NULL;
    if (s) {
        s->status = *status;
        s->has_status = true;
        s->status_world = world;
        s->status_ns = monotonic_ns();
        if (first && world_now() == world && has_buffer(s) && s->pieces[0].state != WAITER_ASKED) {
            struct piece *p = &s->pieces[0];
            begin_piece(s, p, 0, FIRST_BYTES); /* any change from now on spoils it */
            p->length = k->size < FIRST_BYTES ? k->size : FIRST_BYTES;
            memcpy(s->buffer, first, (size_t)p->length);
            p->state = WAITER_DONE;
        }
        unlock(&s->lock);
    }
    unlock(&k->lock);
}

/* PATH may be the program's memory. The answer tells more than was asked.  WAITING is the program's call, which
 * a signal may end while a pipe's other end is waited for. */
long open_home(struct thread *self, struct trap *waiting, int directory, const char *path, int flags, int mode)
{
    char *name = (char *)self->scratch;
    struct stat status;
    uint64_t hints = 0, before = write_backs();
    long length = copy_path(name, path);
    if (length < 0)
        return length;
    struct request request = {.call = __NR_openat, .arguments = {directory, length, flags, mode,
                                                                 WANT_FACTS | FIRST_BYTES}};
    struct vector in = {name, (size_t)length};
    struct vector out[] = {{&status, sizeof status}, {self->scratch, FIRST_BYTES}};
    bool changes = flags & (O_CREAT | O_TRUNC);
    uint32_t world = world_now();
    if (!changes && (flags & O_ACCMODE) == O_RDONLY) {
        long found = plan_open(&request, name, &status, &hints);
        if (found >= 0 && (hints & HINT_STEADY))
            note_opened((int)found, &status, NULL, flags, hints, world);
        if (found != NOT_HERE)
            return found;
    }
    long fd = waiting ? ask_waiting(waiting, &request, &in, 1, out, 2, &hints)
                      : ask(self, &request, &in, 1, out, 2, &hints);
    if (changes)
        note_own_change(), world++;
    if (fd >= 0) {
        plan_note_opened((int)fd);
        shared_cut(self, (int)fd, hints, before);
    }
    if (fd >= 0 && (hints & HINT_STEADY))
        note_opened((int)fd, &status, self->scratch, flags, hints, world);
    else if (fd >= 0)
        forget_file((int)fd);
    return fd;
}

/* A file that was only read needs no answer to its closing. */
long close_home(struct thread *self, int fd)
{
    struct known *k = known_file(fd);
    bool quick = k && k->learned && (k->reads || k->writes) && !k->unsettled;
    long result = 0;
    begin_change(fd);
    if (!plan_note_closed(fd, &quick)) {
        struct request request = {.call = __NR_close, .arguments = {fd}};
        result = quick ? tell_home(&request, NULL, 0) : ask(self, &request, NULL, 0, NULL, 0, NULL);
    }
    end_change(fd);
    return result;
}

long do_close(struct trap *t)
{
    return close_home(t->self, (int)t->a[0]);
}

/* fstat right after open: its answer came along, and serves once. */
UNCHECKED_LOCKS bool status_ahead(int fd, void *to, long *result)
{
    if (plan_status(fd, to, result))
        return true;
    struct known *k = known_file(fd);
    struct stream *s = k && k->reads ? stream_of(fd, 0) : NULL;
    if (!s)
        return false;
    bool good = s->has_status && s->status_world == world_now() && monotonic_ns() - s->status_ns < FRESH_NS;
    s->has_status = false;
    if (good)
        *result = copy_user(to, &s->status, sizeof s->status) ? -EFAULT : 0;
    unlock(&s->lock);
    return good;
}
