/* The memory that all members of a family have in common, for files that they map shared.
 *
 * It is one object of the kernel's, mapped before the first fork where no program is, so every member has it, whatever it
 * executes: memory that is nobody's own, and of which only what is touched exists.  Home gives out parts of it
 * (shadow/mapped.c): one for each piece of a file, whichever members map it.  A mapping of the file is a second mapping
 * of that part, in the program's own place.  So what one member writes, or a futex there, is the others' at once.
 *
 * Behind it are the marks of its pages: what the file has, as far as is known (shared.c); and a page of which files there
 * are (shared_transfer.c).
 */
#include "shared_arena.h"

#include "image_digest.h"
#include "memory.h"
#include "runtime/process/process.h"
#include "runtime/remote/remote.h"
#include "shared_transfer.h"
#include "runtime/text.h"

#define MARKS_PLACE (ARENA_PLACE + ARENA_BYTES)
#define OWN_PAGE (MARKS_PLACE + ARENA_MARKS_BYTES)
#define PLACE_BITS 4095l

enum { READ_AT_ONCE = 64 /* pages */, GIVES_BACK = 9 /* MADV_REMOVE */ };

uint64_t arena_object GUARDED_BY(one_thread);

bool arena_make(void)
{
    if (process.arena || !process.family)
        return process.arena;
    long at = SYSTEM(__NR_mmap, ARENA_PLACE, ARENA_WHOLE_BYTES, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (at != (long)ARENA_PLACE && !is_error(at))
        SYSTEM(__NR_munmap, at, ARENA_WHOLE_BYTES);
    if (at == (long)ARENA_PLACE || at == -EEXIST) /* another thread was first */
        process.arena = true;
    return process.arena;
}

/* In the first process of a restarted family. False: there is none, and it needs one. */
bool arena_make_again(void)
{
    bool needed = process.arena;
    process.arena = false;
    return !needed || arena_make();
}

/* What a page is known by. */
uint64_t arena_mark(const void *page)
{
    if (digest_is_zero(page))
        return MARK_OF_ZEROS;
    uint64_t mark = digest_page(page, 0);
    return mark > MARK_UNKNOWN ? mark : MARK_UNKNOWN + 1;
}

/* How much of SIZE bytes at OFFSET the file has; the rest is not touched, since it may be most of the mapping. */
static long size_there(struct thread *self, long handle, int64_t offset, size_t size)
{
    struct request request = {.call = OP_HOLD, .arguments = {handle, HOLD_SIZE}};
    long all = ask(self, &request, NULL, 0, NULL, 0, NULL);
    if (all < 0)
        return all;
    return all <= offset ? 0 : (size_t)(all - offset) < size ? all - offset : (long)size;
}

void *arena_own_page(void)
{
    return (void *)OWN_PAGE;
}

uint64_t *arena_marks(const struct arena_place *g)
{
    return (uint64_t *)MARKS_PLACE + g->at / (int64_t)PAGE;
}

/* Beside them in a page of the kernel's may be others that count. */
static void forget_marks(uint64_t *marks, size_t count)
{
    unsigned long from = (unsigned long)marks, to = (unsigned long)(marks + count), first = page_up(from), last = page_down(to);
    if (first >= last) {
        memset(marks, 0, to - from);
        return;
    }
    memset(marks, 0, first - from);
    SYSTEM(__NR_madvise, first, last - first, GIVES_BACK);
    memset((void *)last, 0, to - last);
}

/* FROM..TO of the file comes into memory that nobody uses yet. */
static long fill_gap(struct thread *self, long handle, const struct shared_place *p, uint64_t base)
{
    const struct arena_place piece = {.at = (int64_t)base + p->gap_from - p->from};
    uint8_t *to = (uint8_t *)ARENA_PLACE + piece.at;
    uint64_t *marks = arena_marks(&piece);
    size_t size = (size_t)(p->gap_to - p->gap_from);
    SYSTEM(__NR_madvise, to, size, GIVES_BACK); /* of another file's, whose last member was killed */
    forget_marks(marks, page_up(size) / PAGE);
    long there = size_there(self, handle, p->gap_from, size);
    long got = there > 0 ? read_home(self, (int)handle, to, (size_t)there, p->gap_from) : there;
    for (long at = 0; at < there && got >= 0; at += (long)PAGE)
        marks[(size_t)at / PAGE] = arena_mark(to + at);
    return got < 0 ? got : 0;
}

/* Other members have it already.  What has been written to the file in another way since becomes visible where no member
 * has changed the page. */
static long refresh(struct thread *self, long handle, int64_t offset, size_t size, const struct arena_place *g)
{
    const size_t room = READ_AT_ONCE * PAGE;
    long fresh = SYSTEM(__NR_mmap, 0, room, PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0), got = 0;
    uint8_t *memory = (uint8_t *)ARENA_PLACE + g->at;
    uint64_t *marks = arena_marks(g);
    if (is_error(fresh))
        return -ENOMEM;
    long there = size_there(self, handle, offset, size);
    if (there < 0)
        got = there;
    for (size_t at = 0; (long)at < there && got >= 0; at += room) {
        size_t bytes = page_up((size_t)there) - at < room ? page_up((size_t)there) - at : room;
        memset((void *)fresh, 0, bytes);
        got = read_home(self, (int)handle, (void *)fresh, bytes, offset + (int64_t)at);
        for (size_t i = 0; i < bytes && got >= 0; i += PAGE) {
            uint64_t mark = arena_mark((uint8_t *)fresh + i), *known = &marks[(at + i) / PAGE];
            if (mark == *known || arena_mark(memory + at + i) != *known)
                continue;
            memcpy(memory + at + i, (uint8_t *)fresh + i, PAGE);
            *known = mark;
        }
    }
    SYSTEM(__NR_munmap, fresh, room);
    return got < 0 ? got : 0;
}

/* Where SIZE bytes at OFFSET of HANDLE's file are. They are there when this returns 0; else -errno. */
long arena_find(struct thread *self, long handle, int64_t offset, size_t size, struct arena_place *to)
{
    struct shared_place place;
    struct vector out = {&place, sizeof place};
    struct request request = {.call = OP_SHARE, .arguments = {handle, offset, (int64_t)size, SHARE_ASK}};
    bool filled_all = false;
    list_shared(self, handle);
    for (;;) {
        long found = ask(self, &request, NULL, 0, &out, 1, NULL);
        if (found < 0)
            return found;
        const uint64_t base = (uint64_t)found & ~(uint64_t)PLACE_BITS;
        *to = (struct arena_place){(int64_t)base + offset - place.from, found, place.from};
        if (place.gap_from >= place.gap_to)
            return filled_all ? 0 : refresh(self, handle, offset, size, to);
        filled_all = place.gap_from == offset && place.gap_to == offset + (int64_t)size;
        long failed = fill_gap(self, handle, &place, base);
        if (failed)
            return failed;
        request.arguments[3] = SHARE_FILLED;
    }
}

/* G appears at AT as well, where nothing of use is. */
long arena_map(const struct arena_place *g, unsigned long at, size_t size)
{
    return SYSTEM(__NR_mremap, ARENA_PLACE + (unsigned long)g->at, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, at);
}

/* After a restart, home is told what is where. */
long arena_claim(struct thread *self, long handle, int64_t offset, size_t size, const struct arena_place *g)
{
    struct request request = {.call = OP_SHARE,
                              .arguments = {handle, offset, (int64_t)size, SHARE_CLAIM, g->place, g->from}};
    list_shared(self, handle);
    long told = ask(self, &request, NULL, 0, NULL, 0, NULL);
    return told < 0 ? told : 0;
}

/* RELEASED: what home said when a handle was given up.  Nobody has that part any more, and nobody gets it until home has
 * heard that its memory is gone. */
void arena_give_back(struct thread *self, long released)
{
    if (released <= 0)
        return;
    const struct request left = {.call = OP_SHARE, .arguments = {0, 0, 0, SHARE_LEFT, released - 1}};
    const struct arena_place part = {.at = (released - 1) & ~PLACE_BITS};
    const size_t size = 1ul << ((released - 1) & PLACE_BITS);
    SYSTEM(__NR_madvise, ARENA_PLACE + (unsigned long)part.at, size, GIVES_BACK);
    SYSTEM(__NR_madvise, arena_marks(&part), size / PAGE * sizeof(uint64_t), GIVES_BACK);
    ask(self, &left, NULL, 0, NULL, 0, NULL);
}
