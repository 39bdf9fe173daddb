/* What the program changed in shared mappings of files goes home: see shared.c.
 *
 * Only pages that changed since they were last read or written are written.
 */
#include "views.h"

#include "memory.h"
#include "runtime/remote/remote.h"
#include "shared_transfer.h"
#include "runtime/text.h"
#include "runtime/user.h"

enum { WRITE_AT_ONCE = 64 /* pages */, ATTEMPTS = 3 };

static int64_t file_size(struct thread *self, const struct view *v)
{
    struct request request = {.call = OP_HOLD, .arguments = {v->handle, HOLD_SIZE}};
    return ask(self, &request, NULL, 0, NULL, 0, NULL);
}

/* Copies a page that the program may have made unreadable. */
static bool copy_page(void *to, unsigned long from)
{
    if (!copy_user(to, (void *)from, PAGE))
        return true;
    unsigned long end = from + PAGE;
    int protection = memory_protection(from, &end);
    if (SYSTEM(__NR_mprotect, from, PAGE, protection | PROT_READ) < 0)
        return false;
    bool good = !copy_user(to, (void *)from, PAGE);
    SYSTEM(__NR_mprotect, from, PAGE, protection);
    return good;
}

/* Changed pages that follow each other, as they were when they were looked at. */
struct batch {
    uint8_t *pages;
    uint64_t marks[WRITE_AT_ONCE];
    unsigned long from;
    size_t count;
};

/* Another member of the family, or another thread, may have changed a page while it was on its way: the last one that
 * writes must have seen the last change, so what is different now is written again. */
static bool is_unchanged(unsigned long at, uint64_t mark)
{
    uint64_t page[PAGE / sizeof(uint64_t)];
    return copy_page(page, at) && arena_mark(page) == mark;
}

static long write_batch(struct thread *self, struct view *v, struct batch *b, int64_t size)
{
    int64_t offset = v->offset + (int64_t)(b->from - v->from);
    size_t bytes = b->count * PAGE;
    if (offset + (int64_t)bytes > size) /* what lies beyond the end of file is not kept */
        bytes = offset < size ? (size_t)(size - offset) : 0;
    long put = bytes ? write_home(self, v->handle, b->pages, bytes, offset) : 0;
    bool whole = put == (long)bytes;
    for (size_t i = 0; i < b->count && v->marks; i++)
        v->marks[(b->from - v->from) / PAGE + i] =
            whole && is_unchanged(b->from + i * PAGE, b->marks[i]) ? b->marks[i] : MARK_UNKNOWN;
    b->count = 0;
    return whole ? 0 : put < 0 ? put : -EIO;
}

/* Writes what changed in FROM..TO of V, once. Returns 0 or the first error; *AGAIN: something changed meanwhile. */
static long write_changes(struct thread *self, struct view *v, unsigned long from, unsigned long to, struct batch *b,
                          bool *again)
{
    int64_t size = file_size(self, v);
    long failed = size < 0 ? size : 0, error;
    b->count = 0;
    *again = false;
    if (size < v->offset + (int64_t)(to - v->from)) /* what lies beyond the end of file is not kept, and not looked at */
        to = size <= v->offset ? from : v->from + page_up((size_t)(size - v->offset));
    for (unsigned long at = from; at < to; at += PAGE) {
        uint8_t *room = b->pages + b->count * PAGE;
        bool copied = copy_page(room, at);
        uint64_t mark = copied ? arena_mark(room) : MARK_UNKNOWN;
        bool changed = copied && (!v->marks || v->marks[(at - v->from) / PAGE] != mark);
        if (!copied && !failed)
            failed = -EIO;
        if (changed) {
            if (!b->count)
                b->from = at;
            b->marks[b->count++] = mark;
        }
        if (b->count && (!changed || b->count == WRITE_AT_ONCE || at + PAGE == to) &&
            (error = write_batch(self, v, b, size)) && !failed)
            failed = error;
    }
    for (unsigned long at = from; at < to && v->marks && !*again; at += PAGE)
        *again = v->marks[(at - v->from) / PAGE] == MARK_UNKNOWN;
    return failed;
}

static long write_view(struct thread *self, struct view *v, unsigned long from, unsigned long to)
{
    if (v->reads)
        return 0;
    struct batch batch = {.pages = views_memory(WRITE_AT_ONCE * PAGE, MAP_FRESH)};
    long failed = batch.pages ? 0 : -ENOMEM;
    bool again = true;
    write_back_begins();
    for (int i = 0; i < ATTEMPTS && again && !failed; i++)
        failed = write_changes(self, v, from, to, &batch, &again);
    write_back_ends();
    if (batch.pages)
        SYSTEM(__NR_munmap, batch.pages, WRITE_AT_ONCE * PAGE);
    v->unsaved |= failed;
    return failed;
}

/* Writes what SELF has taken of FROM..TO. */
long write_taken(struct thread *self, unsigned long from, unsigned long to)
{
    long failed = 0;
    struct view *v;
    for (size_t at = 0; (v = next_taken(self, &at));) {
        unsigned long a = v->from > from ? v->from : from, b = v->to < to ? v->to : to;
        long error = a < b ? write_view(self, v, a, b) : 0;
        if (error && !failed)
            failed = error;
    }
    return failed;
}

long shared_write_back(struct thread *self, unsigned long from, unsigned long to)
{
    if (!take_views(self, from, to))
        return 0;
    long failed = write_taken(self, from, to);
    shared_let_go(self);
    return failed;
}

/* Everything, also what other threads are about to unmap or to move. */
long shared_write_all(struct thread *self)
{
    await_all_views();
    return shared_write_back(self, 0, THREAD_PLACE);
}
