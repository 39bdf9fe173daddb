/* Shared writable mappings of files that are at home.
 *
 * Such a mapping is memory of the program's own here, filled from the file when it is made; what the program changes in
 * it is written to the file at msync, munmap, mremap, execve, exit and before a checkpoint.  A *view* is a piece of
 * memory that stands for a piece of a file.  Only pages that changed since they were last read or written are written,
 * so that several views of one file, or a view and write(), do not undo each other's changes.
 *
 * Which views there are, and whose they are just now, is in views.c; how they are written in shared_write.c.
 */
#include "views.h"

#include "memory.h"
#include "runtime/process/process.h"
#include "runtime/remote/remote.h"
#include "runtime/text.h"

/* ---- mapping and unmapping */

/* A view of SIZE bytes at AT, which were just read from HANDLE at OFFSET, or are a mapping of G. */
long shared_add(struct thread *self, long handle, unsigned long at, size_t size, int64_t offset, const struct arena_place *g,
                bool reads)
{
    struct view *v = new_view(self);
    if (!v)
        return -ENOMEM;
    v->handle = (int)handle;
    v->offset = offset;
    v->unsaved = false;
    v->reads = reads;
    v->arena = *g;
    if (g->at >= 0) {
        v->marks = arena_marks(g);
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
    if (fresh.arena.at >= 0)
        fresh.arena.at += (int64_t)(at - v->from);
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
    if (v->arena.at >= 0) { /* it was filled when it was mapped */
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
    struct arena_place grown;
    for (size_t at = 0; (v = next_taken(self, &at));)
        if (v->leaves && v->arena.at >= 0 && v->from >= old && v->to <= old + old_size)
            one = v;
    if (!one)
        return 0;
    if (one->from != old || one->to != old + old_size)
        return -ENOMEM;
    long failed = arena_find(self, one->handle, one->offset, size, &grown);
    if (failed || grown.place != one->arena.place) /* longer than that part of the arena */
        return failed ? failed : -ENOMEM;
    unsigned long end = old + PAGE;
    int protection = memory_protection(old, &end);
    long place = map_anonymous(to, size, 0, to ? MAP_FIXED | MAP_NORESERVE : MAP_NORESERVE);
    if (place < 0)
        return place;
    failed = arena_map(&grown, (unsigned long)place, size);
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

/* In a new member: threads that worked on a view stayed with the parent, and home's copy for it may not have the files
 * of views that another thread made after MOMENT. */
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
    bool all_saved = true;
    for (size_t i = 0; i < views_used; i++)
        all_saved &= !views[i].to || !views[i].unsaved;
    for (size_t i = 0; i < views_used; i++) {
        struct view *v = &views[i];
        v->marks = v->marks_memory = NULL;
        v->holder = 0;
        if (v->to && v->arena.at >= 0)
            v->marks = arena_marks(&v->arena);
        else if (v->to)
            make_marks(v, NULL, 0, pages_of(v));
        for (size_t page = 0; v->marks && v->unsaved && page < pages_of(v); page++)
            v->marks[page] = MARK_UNKNOWN;
        if (v->to && !v->unsaved && (all_saved || !v->reads))
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
        if (v.to && v.arena.at >= 0)
            good = !arena_claim(self, v.handle, v.offset, v.to - v.from, &v.arena);
    }
    return good;
}
