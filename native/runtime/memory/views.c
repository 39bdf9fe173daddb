/* Views: which memory stands for which piece of a file at home, see shared.c.
 *
 * Threads map and unmap at once, and writing takes a journey: a thread *takes* the views of a range, all at once or none,
 * works on them without the lock, and lets go of them.  Others wait for those views only.
 */
#include "views.h"

#include "runtime/remote/channel.h"
#include "memory.h"
#include "runtime/process/process.h"
#include "runtime/text.h"
#include "runtime/user.h"

struct lock views_lock;
struct view views[VIEWS] GUARDED_BY(views_lock);
size_t views_used GUARDED_BY(views_lock);   /* those from here on were never used */
uint64_t views_born GUARDED_BY(views_lock); /* how many there have been */
volatile uint32_t views_let_go ATOMIC;      /* how often a thread did */

void *views_memory(size_t size, int flags)
{
    long at = SYSTEM(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    return is_error(at) ? NULL : (void *)at;
}

/* Views that were one have one piece of memory for their marks. */
void drop_marks(struct view *v)
{
    uint64_t *memory = v->marks_memory;
    bool last = memory;
    lock(&views_lock);
    v->marks = v->marks_memory = NULL;
    for (size_t i = 0; i < views_used; i++)
        last &= views[i].marks_memory != memory;
    unlock(&views_lock);
    if (last)
        SYSTEM(__NR_munmap, memory, v->marks_bytes);
}

/* Room for the marks of PAGES pages, with the old ones that fit.  Members of a family share the memory that a view is, so
 * they share what is known of it: one must not write what another has written long ago. */
bool make_marks(struct view *v, const uint64_t *old, size_t old_pages, size_t pages)
{
    size_t bytes = page_up(pages * sizeof *v->marks);
    uint64_t *fresh = views_memory(bytes, process.family ? MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE : MAP_FRESH);
    if (!fresh)
        return false;
    if (old)
        memcpy(fresh, old, (old_pages < pages ? old_pages : pages) * sizeof *fresh);
    v->marks = v->marks_memory = fresh;
    v->marks_bytes = bytes;
    return true;
}

void mark_pages(struct view *v, unsigned long from, unsigned long to)
{
    uint64_t page[PAGE / sizeof(uint64_t)];
    for (unsigned long at = from; v->marks && at < to; at += PAGE)
        v->marks[(at - v->from) / PAGE] = copy_user(page, (void *)at, PAGE) ? MARK_UNKNOWN : arena_mark(page);
}

/* ---- taking and letting go */

static bool somebody_has(unsigned long from, unsigned long to) REQUIRES(views_lock);
static bool somebody_has(unsigned long from, unsigned long to)
{
    for (size_t i = 0; i < views_used; i++)
        if (overlaps(&views[i], from, to) && views[i].holder)
            return true;
    return false;
}

static bool anybody_works(void) REQUIRES(views_lock);
static bool anybody_works(void)
{
    bool some = false;
    for (size_t i = 0; i < views_used && !some; i++)
        some = views[i].to && views[i].holder;
    return some;
}

/* Until no thread works on any. */
void await_all_views(void)
{
    lock(&views_lock);
    for (uint32_t seen = views_let_go; anybody_works(); seen = views_let_go) {
        unlock(&views_lock);
        wait_while(&views_let_go, seen);
        lock(&views_lock);
    }
    unlock(&views_lock);
}

/* All views that touch FROM..TO become SELF's, when nobody else has any of them. Returns how many there are. */
size_t take_views(struct thread *self, unsigned long from, unsigned long to)
{
    size_t count = 0;
    lock(&views_lock);
    for (uint32_t seen = views_let_go; somebody_has(from, to); seen = views_let_go) {
        unlock(&views_lock);
        wait_while(&views_let_go, seen);
        lock(&views_lock);
    }
    for (size_t i = 0; i < views_used; i++)
        if (overlaps(&views[i], from, to)) {
            views[i].holder = self->slot + 1;
            count++;
        }
    unlock(&views_lock);
    return count;
}

void shared_let_go(struct thread *self)
{
    lock(&views_lock);
    for (size_t i = 0; i < views_used; i++)
        if (is_taken_by(&views[i], self)) {
            views[i].holder = 0;
            views[i].leaves = false;
        }
    __atomic_add_fetch(&views_let_go, 1, __ATOMIC_SEQ_CST);
    unlock(&views_lock);
    wake_all(&views_let_go);
}

/* The next view that SELF has taken, from place AT on. It stays where it is, and is nobody else's to change. */
struct view *next_taken(struct thread *self, size_t *at)
{
    struct view *found = NULL;
    lock(&views_lock);
    while (*at < views_used && !found) {
        struct view *v = &views[(*at)++];
        if (is_taken_by(v, self))
            found = v;
    }
    unlock(&views_lock);
    return found;
}

/* An unused place, which is SELF's. NULL: there is none. */
struct view *new_view(struct thread *self)
{
    struct view *found = NULL;
    lock(&views_lock);
    for (size_t i = 0; i < VIEWS && !found; i++)
        if (!views[i].to) {
            found = &views[i];
            *found = (struct view){.leaves = true, .from = ~0ul - 1, .to = ~0ul, .handle = -1, .arena = {.at = -1}, .holder = self->slot + 1};
            if (i >= views_used)
                views_used = i + 1;
        }
    unlock(&views_lock);
    return found;
}

/* HANDLE's view is an attached segment of shared memory. */
void shared_is_segment(long handle)
{
    lock(&views_lock);
    for (size_t i = 0; i < views_used; i++)
        views[i].segment |= views[i].to && views[i].handle == handle;
    unlock(&views_lock);
}

/* A piece of the segment that was attached at AT. False: there is none. */
bool shared_segment_piece(unsigned long at, unsigned long *from, unsigned long *to)
{
    bool found = false;
    lock(&views_lock);
    for (size_t i = 0; i < views_used && !found; i++) {
        const struct view *v = &views[i];
        found = v->segment && overlaps(v, v->from, v->to) && v->from - (unsigned long)v->offset == at;
        if (found) {
            *from = v->from;
            *to = v->to;
        }
    }
    unlock(&views_lock);
    return found;
}

/* HOW: HOLD_TO_...; END: how far in the file it is to be mapped. */
long hold_file(struct thread *self, int fd, int how, int64_t end)
{
    struct request hold = {.call = OP_HOLD, .arguments = {fd, how, end}};
    return ask(self, &hold, NULL, 0, NULL, 0, NULL);
}

void release_file(struct thread *self, long handle)
{
    struct request release = {.call = OP_RELEASE, .arguments = {handle}};
    if (handle >= 0)
        arena_give_back(self, ask(self, &release, NULL, 0, NULL, 0, NULL));
}

/* V stands for nothing any more. */
void end_view(struct thread *self, struct view *v)
{
    int handle = v->handle;
    drop_marks(v);
    lock(&views_lock);
    v->from = v->to = 0;
    v->holder = 0;
    v->leaves = false;
    for (size_t i = 0; i < views_used; i++)
        if (views[i].to && views[i].handle == handle)
            handle = -1; /* the rest of it is still there */
    unlock(&views_lock);
    release_file(self, handle);
}
