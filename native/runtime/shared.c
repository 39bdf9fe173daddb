/* Shared writable mappings of files that are at home.
 *
 * Such a mapping is memory of the program's own here, filled from the file when it is made; what the program changes in
 * it is written to the file at msync, munmap, mremap, execve, exit and before a checkpoint.  A *view* is a piece of
 * memory that stands for a piece of a file.  Only pages that changed since they were last read or written are written,
 * so that several views of one file, or a view and write(), do not undo each other's changes.
 *
 * Threads map and unmap at once, and writing takes a journey: a thread *takes* the views of a range, all at once or none,
 * works on them without the lock, and lets go of them.  Others wait for those views only.
 */
#include "shared.h"

#include "ground.h"
#include "memory.h"
#include "process.h"
#include "remote.h"
#include "text.h"
#include "user.h"

enum { VIEWS = 1024, WRITE_AT_ONCE = 64 /* pages */, ATTEMPTS = 3 };

struct view {
    unsigned long from, to; /* whole pages; 0, 0: unused */
    int handle;             /* the shadow's, of the file; several views may have it */
    int64_t offset;         /* of FROM in the file */
    struct ground ground;   /* of FROM, if all members have it */
    int holder;             /* one more than the slot of the thread that has taken it; 0: none */
    bool leaves;            /* the memory is being unmapped or moved: it stands for nothing just now */
    uint64_t born;          /* when it was made, counted in views */
    bool unsaved;           /* writing it has failed */
    uint64_t *marks;        /* of each page as the file has it; NULL: not known */
    uint64_t *marks_memory; /* where their memory begins, beyond what an image covers; perhaps other views' as well */
    size_t marks_bytes;
};

struct lock views_lock;
static struct view views[VIEWS] GUARDED_BY(views_lock);
static size_t views_used GUARDED_BY(views_lock);   /* those from here on were never used */
static uint64_t views_born GUARDED_BY(views_lock); /* how many there have been */
static volatile uint32_t views_let_go ATOMIC;      /* how often a thread did */

static size_t pages_of(const struct view *v)
{
    return (v->to - v->from) / PAGE;
}

static void *fresh_memory(size_t size, int flags)
{
    long at = SYSTEM(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    return is_error(at) ? NULL : (void *)at;
}

/* Views that were one have one piece of memory for their marks. */
static void drop_marks(struct view *v)
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
static bool make_marks(struct view *v, const uint64_t *old, size_t old_pages, size_t pages)
{
    size_t bytes = page_up(pages * sizeof *v->marks);
    uint64_t *fresh = fresh_memory(bytes, process.family ? MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE : MAP_FRESH);
    if (!fresh)
        return false;
    if (old)
        memcpy(fresh, old, (old_pages < pages ? old_pages : pages) * sizeof *fresh);
    v->marks = v->marks_memory = fresh;
    v->marks_bytes = bytes;
    return true;
}

static void mark_pages(struct view *v, unsigned long from, unsigned long to)
{
    uint64_t page[PAGE / sizeof(uint64_t)];
    for (unsigned long at = from; v->marks && at < to; at += PAGE)
        v->marks[(at - v->from) / PAGE] = copy_user(page, (void *)at, PAGE) ? 0 : ground_mark(page);
}

/* ---- taking and letting go */

static bool overlaps(const struct view *v, unsigned long from, unsigned long to)
{
    return !v->leaves && v->to > from && v->from < to;
}

static bool is_taken_by(const struct view *v, const struct thread *self)
{
    return v->to && v->holder == self->slot + 1;
}

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

/* All views that touch FROM..TO become SELF's, when nobody else has any of them. Returns how many there are. */
static size_t take_views(struct thread *self, unsigned long from, unsigned long to)
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
static struct view *next_taken(struct thread *self, size_t *at)
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
static struct view *new_view(struct thread *self)
{
    struct view *found = NULL;
    lock(&views_lock);
    for (size_t i = 0; i < VIEWS && !found; i++)
        if (!views[i].to) {
            found = &views[i];
            *found = (struct view){.leaves = true, .from = ~0ul - 1, .to = ~0ul, .handle = -1, .ground = {.at = -1}, .holder = self->slot + 1};
            if (i >= views_used)
                views_used = i + 1;
        }
    unlock(&views_lock);
    return found;
}

long hold_file(struct thread *self, int fd)
{
    struct request hold = {.call = OP_HOLD, .arguments = {fd, 0}};
    return ask(self, &hold, NULL, 0, NULL, 0, NULL);
}

void release_file(struct thread *self, long handle)
{
    struct request release = {.call = OP_RELEASE, .arguments = {handle}};
    if (handle >= 0)
        ground_give_back(self, ask(self, &release, NULL, 0, NULL, 0, NULL));
}

/* V stands for nothing any more. */
static void end_view(struct thread *self, struct view *v)
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

/* ---- writing */

static int64_t file_size(struct thread *self, const struct view *v)
{
    struct request request = {.call = OP_HOLD, .arguments = {v->handle, 1}};
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
    return copy_page(page, at) && ground_mark(page) == mark;
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
            whole && is_unchanged(b->from + i * PAGE, b->marks[i]) ? b->marks[i] : 0;
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
    for (unsigned long at = from; at < to && size >= 0; at += PAGE) {
        uint8_t *room = b->pages + b->count * PAGE;
        uint64_t mark = copy_page(room, at) ? ground_mark(room) : 0;
        bool changed = mark && (!v->marks || v->marks[(at - v->from) / PAGE] != mark);
        if (!mark && !failed)
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
        *again = !v->marks[(at - v->from) / PAGE];
    return failed;
}

static long write_view(struct thread *self, struct view *v, unsigned long from, unsigned long to)
{
    struct batch batch = {.pages = fresh_memory(WRITE_AT_ONCE * PAGE, MAP_FRESH)};
    long failed = batch.pages ? 0 : -ENOMEM;
    bool again = true;
    for (int i = 0; i < ATTEMPTS && again && !failed; i++)
        failed = write_changes(self, v, from, to, &batch, &again);
    if (batch.pages)
        SYSTEM(__NR_munmap, batch.pages, WRITE_AT_ONCE * PAGE);
    v->unsaved |= failed;
    return failed;
}

/* Writes what SELF has taken of FROM..TO. */
static long write_taken(struct thread *self, unsigned long from, unsigned long to)
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
    lock(&views_lock);
    for (uint32_t seen = views_let_go; anybody_works(); seen = views_let_go) {
        unlock(&views_lock);
        wait_while(&views_let_go, seen);
        lock(&views_lock);
    }
    unlock(&views_lock);
    return shared_write_back(self, 0, THREAD_PLACE);
}

/* ---- mapping and unmapping */

/* A view of SIZE bytes at AT, which were just read from HANDLE at OFFSET, or are a mapping of G. */
long shared_add(struct thread *self, long handle, unsigned long at, size_t size, int64_t offset, const struct ground *g)
{
    struct view *v = new_view(self);
    if (!v)
        return -ENOMEM;
    v->handle = (int)handle;
    v->offset = offset;
    v->unsaved = false;
    v->ground = *g;
    if (g->at >= 0) {
        v->marks = ground_marks(g);
    } else if (make_marks(v, NULL, 0, page_up(size) / PAGE)) {
        v->from = at;
        mark_pages(v, at, at + page_up(size));
    }
    lock(&views_lock);
    v->from = at;
    v->to = at + page_up(size);
    v->born = ++views_born;
    unlock(&views_lock);
    shared_let_go(self);
    return 0;
}

/* What of V lies from AT on becomes a view of its own. */
static bool split_view(struct thread *self, struct view *v, unsigned long at)
{
    struct view *rest = new_view(self);
    size_t before = (at - v->from) / PAGE;
    if (!rest)
        return false;
    struct view fresh = *v;
    fresh.marks = v->marks ? v->marks + before : NULL;
    fresh.from = at;
    fresh.offset += (int64_t)(at - v->from);
    if (fresh.ground.at >= 0)
        fresh.ground.at += (int64_t)(at - v->from);
    lock(&views_lock);
    *rest = fresh;
    v->to = at;
    unlock(&views_lock);
    return true;
}

/* Cuts what SELF has taken, so that each view lies inside FROM..TO or outside. */
static long cut_taken(struct thread *self, unsigned long from, unsigned long to)
{
    struct view *v;
    for (size_t at = 0; (v = next_taken(self, &at));)
        for (int i = 0; i < 2; i++) {
            unsigned long place = i ? from : to;
            if (v->from < place && v->to > place && !split_view(self, v, place))
                return -ENOMEM;
        }
    return 0;
}

/* What SELF has taken of FROM..TO stands for nothing until it is let go of: a fork in this moment must not give the
 * child a view without its memory.  The rest of what was cut is anybody's again. */
static void hide_taken(struct thread *self, unsigned long from, unsigned long to)
{
    lock(&views_lock);
    for (size_t i = 0; i < views_used; i++) {
        struct view *v = &views[i];
        if (!is_taken_by(v, self) || v->leaves)
            continue;
        v->leaves = v->from >= from && v->to <= to;
        if (!v->leaves)
            v->holder = 0;
    }
    __atomic_add_fetch(&views_let_go, 1, __ATOMIC_SEQ_CST);
    unlock(&views_lock);
    wake_all(&views_let_go);
}

bool shared_lies_in(unsigned long from, unsigned long to)
{
    bool found = false;
    lock(&views_lock);
    for (size_t i = 0; i < views_used && !found; i++)
        found = overlaps(&views[i], from, to);
    unlock(&views_lock);
    return found;
}

/* Before FROM..TO is unmapped, or something else is mapped there: what changed is written.  *ANY: there were views, which
 * are SELF's until shared_let_go, after shared_gone if they are gone; *UNWRITTEN: why something could not be written.
 * Returns 0 or -ENOMEM: nothing may be unmapped. */
long shared_leave(struct thread *self, unsigned long from, unsigned long to, bool *any, long *unwritten)
{
    *unwritten = 0;
    *any = take_views(self, from, to);
    long failed = *any ? cut_taken(self, from, to) : 0;
    if (*any && !failed) {
        *unwritten = write_taken(self, from, to);
        hide_taken(self, from, to);
    }
    return failed;
}

/* The same where the views will be somewhere else afterwards: see shared_moved. */
long shared_take(struct thread *self, unsigned long from, unsigned long to, bool *any)
{
    *any = take_views(self, from, to);
    long failed = *any ? cut_taken(self, from, to) : 0;
    if (*any && !failed)
        hide_taken(self, from, to);
    return failed;
}

void shared_gone(struct thread *self, unsigned long from, unsigned long to)
{
    struct view *v;
    for (size_t at = 0; (v = next_taken(self, &at));)
        if (v->leaves && v->from >= from && v->to <= to)
            end_view(self, v);
}

/* ---- moving and growing */

/* More of the file than was mapped: FROM.. is fresh memory behind V. */
static long extend_view(struct thread *self, struct view *v, size_t more)
{
    unsigned long from = v->to, end = v->to + PAGE;
    struct view grown = *v;
    grown.to = from + more;
    if (v->ground.at >= 0) { /* it was filled when it was mapped */
        lock(&views_lock);
        *v = grown;
        unlock(&views_lock);
        return 0;
    }
    if (v->marks && !make_marks(&grown, v->marks, pages_of(v), pages_of(&grown)))
        grown.marks = grown.marks_memory = NULL;
    drop_marks(v);
    int protection = memory_protection(from, &end);
    if ((protection & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE))
        SYSTEM(__NR_mprotect, from, more, protection | PROT_READ | PROT_WRITE);
    long got = read_home(self, v->handle, (void *)from, more, v->offset + (int64_t)(from - v->from));
    mark_pages(&grown, from, from + more);
    if ((protection & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE))
        SYSTEM(__NR_mprotect, from, more, protection);
    lock(&views_lock);
    *v = grown;
    unlock(&views_lock);
    return got < 0 ? got : 0;
}

/* The one view at OLD, which SELF has taken, is to be SIZE bytes long: it is mapped anew at TO, or where there is room (0).
 * Returns its place or -errno; 0: it is not memory of all members, and grows in another way. */
long shared_grow(struct thread *self, unsigned long old, size_t old_size, size_t size, unsigned long to)
{
    struct view *v, *one = NULL;
    struct ground grown;
    for (size_t at = 0; (v = next_taken(self, &at));)
        if (v->leaves && v->ground.at >= 0 && v->from >= old && v->to <= old + old_size)
            one = v;
    if (!one)
        return 0;
    if (one->from != old || one->to != old + old_size)
        return -ENOMEM;
    long failed = ground_find(self, one->handle, one->offset, size, &grown);
    if (failed || grown.place != one->ground.place) /* longer than that part of the ground */
        return failed ? failed : -ENOMEM;
    unsigned long end = old + PAGE;
    int protection = memory_protection(old, &end);
    long place = map_anonymous(to, size, 0, to ? MAP_FIXED | MAP_NORESERVE : MAP_NORESERVE);
    if (place < 0)
        return place;
    failed = ground_map(&grown, (unsigned long)place, size);
    if (is_error(failed)) {
        unmap((unsigned long)place, size);
        return failed;
    }
    SYSTEM(__NR_mprotect, place, size, protection);
    unmap(old, old_size);
    return place;
}

/* What was at OLD is at PLACE now, and SIZE bytes long. */
long shared_moved(struct thread *self, unsigned long old, size_t old_size, unsigned long place, size_t size)
{
    long failed = 0;
    struct view *v;
    for (size_t at = 0; (v = next_taken(self, &at));) {
        if (!v->leaves || v->from < old || v->to > old + old_size)
            continue;
        bool last = v->to == old + old_size;
        lock(&views_lock);
        v->from += place - old;
        v->to += place - old;
        unlock(&views_lock);
        if (last && size > old_size)
            failed = extend_view(self, v, size - old_size);
    }
    return failed;
}

/* ---- copies of the process */

/* Before home copies the files that views are of for a new member. */
uint64_t shared_moment(void)
{
    lock(&views_lock);
    uint64_t moment = views_born;
    unlock(&views_lock);
    return moment;
}

/* In a new member: whoever worked on a view stayed with the parent, and home's copy for it may not have the files of views
 * that another thread made after MOMENT. */
void shared_become_member(uint64_t moment)
{
    lock(&views_lock);
    for (size_t i = 0; i < views_used; i++) {
        views[i].holder = 0;
        if (views[i].leaves || views[i].to == ~0ul || views[i].born > moment) /* it was being unmapped, moved, made */
            views[i].from = views[i].to = 0;
        views[i].leaves = false;
    }
    unlock(&views_lock);
}

/* After a restart: marks are not in an image.  What had been written is as the file has it. */
void shared_restart(void)
{
    lock(&views_lock);
    for (size_t i = 0; i < views_used; i++) {
        struct view *v = &views[i];
        v->marks = v->marks_memory = NULL;
        v->holder = 0;
        if (v->to && v->ground.at >= 0)
            v->marks = ground_marks(&v->ground);
        else if (v->to)
            make_marks(v, NULL, 0, pages_of(v));
        if (v->to && !v->unsaved)
            mark_pages(v, v->from, v->to);
    }
    unlock(&views_lock);
}

/* Then home hears what is where. False: home has it otherwise. */
bool shared_claim(struct thread *self)
{
    bool good = true;
    for (size_t i = 0; i < VIEWS && good; i++) {
        lock(&views_lock);
        struct view v = views[i];
        unlock(&views_lock);
        if (v.to && v.ground.at >= 0)
            good = !ground_claim(self, v.handle, v.offset, v.to - v.from, &v.ground);
    }
    return good;
}
