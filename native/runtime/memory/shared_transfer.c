/* Files that are mapped shared and read or written as well.
 *
 * The memory that members map of a file counts: natively it is the file.  So what a call has written at home is written to
 * that memory too, what a call has read is read from there where it is, and what was cut off becomes zeros.  Home knows
 * what is mapped and where a call took place in its file (HINT_MAPPED, SHARE_WHERE).
 *
 * A page that a call has written may be on its way home just then, as it was before: what is written last is home's to know.
 * Then the page counts as changed, and is written again.
 *
 * Of such files nothing may be read ahead or written behind: a list of them is in the memory that all members have.  It
 * only grows; where it is full, or home cannot tell a file from others, it stands for all files.
 */
#include "shared_transfer.h"

#include "protocol.h"
#include "runtime/remote/known.h"
#include "runtime/process/process.h"
#include "runtime/remote/read_ahead.h"
#include "runtime/remote/remote.h"
#include "shared_arena.h"
#include "runtime/text.h"
#include "runtime/user.h"

enum { MOST_LISTED = 500 };
#define PLACE_BITS 4095l

/* In the arena's own page. */
struct listed {
    uint32_t count; /* beyond MOST_LISTED: every file */
    uint32_t begun, ended; /* how often a member began to write changed pages to a file, and ended */
    uint64_t identities[MOST_LISTED]; /* 0: being written */
};

static struct listed *list(void)
{
    _Static_assert(sizeof(struct listed) <= PAGE, "the arena has one page of its own");
    return arena_own_page();
}

static bool is_listed(uint64_t identity)
{
    const struct listed *l = list();
    uint32_t count = __atomic_load_n(&l->count, __ATOMIC_ACQUIRE);
    bool found = count > MOST_LISTED;
    for (uint32_t i = 0; i < count && !found; i++) {
        uint64_t one = __atomic_load_n(&l->identities[i], __ATOMIC_ACQUIRE);
        found = one == identity || !one;
    }
    return found;
}

/* Whether members map, or mapped, any file at all. */
bool any_is_shared(void)
{
    return process.arena && __atomic_load_n(&list()->count, __ATOMIC_ACQUIRE);
}

/* Whether the memory of a mapping may be newer than that file. */
bool is_shared(uint64_t identity)
{
    return any_is_shared() && is_listed(identity);
}

/* Around the writing of changed pages. */
void write_back_begins(void)
{
    if (process.arena)
        __atomic_add_fetch(&list()->begun, 1, __ATOMIC_SEQ_CST);
}

void write_back_ends(void)
{
    if (process.arena)
        __atomic_add_fetch(&list()->ended, 1, __ATOMIC_SEQ_CST);
}

/* Before a call writes: what has changed afterwards where members wrote meanwhile. */
uint64_t write_backs(void)
{
    if (!process.arena)
        return 0;
    uint64_t ended = __atomic_load_n(&list()->ended, __ATOMIC_SEQ_CST);
    return ended << 32 | __atomic_load_n(&list()->begun, __ATOMIC_SEQ_CST);
}

static bool is_quiet_since(uint64_t before)
{
    return before >> 32 == (before & UINT32_MAX) && write_backs() == before;
}

/* HANDLE's file is about to be mapped. */
void list_shared(struct thread *self, long handle)
{
    struct stat status;
    struct request request = {.call = OP_FACTS, .arguments = {handle}};
    struct vector out = {&status, sizeof status};
    uint64_t hints = 0;
    struct listed *l = list();
    bool known_here = ask(self, &request, NULL, 0, &out, 1, &hints) >= 0 && (hints & HINT_STEADY);
    uint64_t identity = known_here ? identity_of(&status) : 0;
    if (known_here && is_listed(identity))
        return;
    uint32_t place = __atomic_fetch_add(&l->count, known_here ? 1 : MOST_LISTED + 1, __ATOMIC_ACQ_REL);
    if (known_here && place < MOST_LISTED)
        __atomic_store_n(&l->identities[place], identity, __ATOMIC_RELEASE);
    spoil(0); /* what was read ahead of it */
}

/* SIZE bytes FROM are in the file at MEMORY's place, and come into memory.  A page that was as the file had it is so again;
 * one that a member has changed is still to be written. */
static void put_bytes(uint64_t at, const uint8_t *from, size_t size, uint64_t before)
{
    uint64_t page[PAGE / sizeof(uint64_t)];
    while (size) {
        size_t in_page = at & (PAGE - 1), bytes = PAGE - in_page < size ? PAGE - in_page : size;
        const struct arena_place g = {.at = (int64_t)(at - in_page)};
        uint8_t *memory = (uint8_t *)ARENA_PLACE + (at - in_page);
        uint64_t *known_mark = arena_marks(&g);
        memcpy(page, memory, PAGE);
        bool is_as_the_file = arena_mark(page) == *known_mark;
        if (!from)
            memset((uint8_t *)page + in_page, 0, bytes);
        else if (copy_user((uint8_t *)page + in_page, from, bytes))
            return;
        memcpy(memory + in_page, (uint8_t *)page + in_page, bytes);
        if (!is_quiet_since(before))
            *known_mark = MARK_UNKNOWN;
        else if (is_as_the_file)
            *known_mark = arena_mark(page);
        at += bytes;
        from = from ? from + bytes : NULL;
        size -= bytes;
    }
}

/* SIZE bytes were moved between BUFFER and FD's file: each piece of them that is in memory. */
static void each_piece(struct thread *self, int fd, uint8_t *buffer, size_t size, enum moved moved, uint64_t before)
{
    for (long number = 0;; number++) {
        struct shared_place place = {0};
        struct vector out = {&place, sizeof place};
        struct request request = {.call = OP_SHARE, .arguments = {fd, number, (int64_t)size, SHARE_WHERE}};
        long found = ask(self, &request, NULL, 0, &out, 1, NULL);
        if (found < 0 || place.gap_from < 0 || place.gap_to > (int64_t)size || place.gap_from >= place.gap_to)
            return;
        uint64_t at = (uint64_t)((found & ~PLACE_BITS) + place.gap_from - place.from);
        size_t bytes = (size_t)(place.gap_to - place.gap_from);
        if (at > ARENA_BYTES || bytes > ARENA_BYTES - at)
            return;
        if (moved == WAS_READ)
            copy_user(buffer + place.gap_from, (uint8_t *)ARENA_PLACE + at, bytes);
        else
            put_bytes(at, moved == WAS_WRITTEN ? buffer + place.gap_from : NULL, bytes, before);
    }
}

/* A call has done so, as home says with HINTS. BEFORE: what write_backs said then. */
void shared_transfer(struct thread *self, int fd, uint8_t *buffer, long size, enum moved moved, uint64_t hints, uint64_t before)
{
    if (size > 0 && (hints & HINT_MAPPED) && process.arena)
        each_piece(self, fd, buffer, (size_t)size, moved, before);
}

/* FD's file has been cut where home says. */
void shared_cut(struct thread *self, int fd, uint64_t hints, uint64_t before)
{
    shared_transfer(self, fd, NULL, INT64_MAX / 8, WAS_CUT, hints, before);
}

enum { PUNCH_HOLE = 2, ZERO_RANGE = 16 /* of fallocate */ };

long do_ftruncate(struct trap *t)
{
    uint64_t hints = 0, before = write_backs();
    struct request request = {.call = __NR_ftruncate, .arguments = {(int)t->a[0], (int64_t)t->a[1]}};
    long result = ask(t->self, &request, NULL, 0, NULL, 0, &hints);
    if (!result)
        shared_cut(t->self, (int)t->a[0], hints, before);
    return result;
}

/* By its name. */
long do_truncate(struct trap *t)
{
    if (!any_is_shared())
        return remote(t, &calls[__NR_truncate]);
    long fd = open_home(t->self, NULL, AT_FDCWD, (const char *)t->a[0], O_WRONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    struct trap cut = *t;
    cut.a[0] = (unsigned long)fd;
    long result = do_ftruncate(&cut);
    close_home(t->self, (int)fd);
    return result;
}

long do_fallocate(struct trap *t)
{
    uint64_t hints = 0, before = write_backs();
    struct request request = {.call = __NR_fallocate,
                              .arguments = {(int)t->a[0], (int)t->a[1], (int64_t)t->a[2], (int64_t)t->a[3]}};
    long result = ask(t->self, &request, NULL, 0, NULL, 0, &hints);
    bool cut = !result && (t->a[1] & (PUNCH_HOLE | ZERO_RANGE));
    shared_transfer(t->self, (int)t->a[0], NULL, cut ? (long)t->a[3] : 0, WAS_CUT, hints, before);
    return result;
}
