/* The program's address space: mmap and related calls, and the program break.
 *
 * All memory is anonymous for the kernel.  A mapping of a file is filled by reading the file at home; a shared writable
 * one is written back (shared.c).  What the members of a family share from a fork on is memory that the kernel shares
 * between them.
 */
#include "memory.h"

#include "runtime/remote/read_ahead.h"
#include "runtime/process/process.h"
#include "runtime/remote/remote.h"
#include "shared.h"
#include "shared_transfer.h"
#include "runtime/signals/signals.h"
#include "runtime/text.h"
#include "runtime/trap.h"
#include "runtime/user.h"

/* Where MAP_32BIT leads to, and the steps in which a place is looked for there. */
#define LOW_START 0x40000000ul
#define LOW_END 0x7fff0000ul
#define LOW_STEP 0x10000ul

struct lock memory_lock;

bool is_programs_range(unsigned long at, size_t size)
{
    return at >= LOWEST_PLACE && at + size > at && at + size <= THREAD_PLACE;
}

/* As the kernel maps it, without noting it. */
long map(unsigned long at, size_t size, int protection, int flags)
{
    return SYSTEM(__NR_mmap, at, size, protection, flags | (flags & MAP_SHARED ? 0 : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0);
}

static unsigned long low_next GUARDED_BY(memory_lock) = LOW_START;

static unsigned long low_place(size_t size) REQUIRES(memory_lock);
static unsigned long low_place(size_t size)
{
    for (int round = 0; round < 2; round++) {
        for (; low_next + size <= LOW_END; low_next += size > LOW_STEP ? page_up(size) : LOW_STEP) {
            long found = map(low_next, size, 0, MAP_FIXED_NOREPLACE);
            if (found > 0)
                return (unsigned long)found;
        }
        low_next = LOW_START;
    }
    return 0;
}

/* AT = 0 lets the runtime choose. Returns the place or -errno. */
static long map_at(unsigned long at, size_t size, int protection, int flags) REQUIRES(memory_lock);
static long map_at(unsigned long at, size_t size, int protection, int flags)
{
    long place;
    size = page_up(size);
    if (space_is_full() || intervals_full(&from_image))
        return -ENOMEM;
    if (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) {
        if (at & (PAGE - 1))
            return -EINVAL;
        if (!is_programs_range(at, size))
            return -ENOMEM;
        place = map(at, size, protection, flags & ~MAP_32BIT);
    } else if (flags & MAP_32BIT) {
        at = page_down(at);
        place = at >= LOWEST_PLACE && at + size <= LOW_END ? map(at, size, protection, (flags & ~MAP_32BIT) | MAP_FIXED_NOREPLACE) : 0;
        if (place <= 0) {
            place = (long)low_place(size);
            place = place ? map((unsigned long)place, size, protection, (flags & ~MAP_32BIT) | MAP_FIXED) : -ENOMEM;
        }
    } else {
        place = -ENOMEM;
        at = page_down(at);
        if (at && is_programs_range(at, size))
            place = map(at, size, protection, flags | MAP_FIXED_NOREPLACE);
        while (place < 0) {
            unsigned long gap = space_find(size);
            if (!gap)
                return -ENOMEM;
            place = map(gap, size, protection, flags | MAP_FIXED_NOREPLACE);
            if (place < 0 && place != -EEXIST)
                return place;
            if (place < 0)
                space_take(gap, gap + size); /* a mapping that is not in our list */
        }
    }
    if (place > 0) {
        space_take((unsigned long)place, (unsigned long)place + size);
        intervals_remove(&from_image, (unsigned long)place, (unsigned long)place + size);
    }
    return place;
}

long map_anonymous(unsigned long at, size_t size, int protection, int flags)
{
    lock(&memory_lock);
    long place = map_at(at, size, protection, flags);
    unlock(&memory_lock);
    return place;
}

static long unmap_at(unsigned long at, size_t size) REQUIRES(memory_lock);
static long unmap_at(unsigned long at, size_t size)
{
    if (space_is_full() || intervals_full(&from_image))
        return -ENOMEM;
    long failed = SYSTEM(__NR_munmap, at, size);
    if (failed)
        return failed;
    space_give(at, at + size);
    intervals_remove(&from_image, at, at + size);
    return 0;
}

/* Memory that the runtime itself has mapped. */
void unmap(unsigned long at, size_t size)
{
    lock(&memory_lock);
    unmap_at(at, page_up(size));
    unlock(&memory_lock);
}

/* Fills fresh writable memory from the file. Whatever lies beyond its end stays zero. */
static long fill(struct thread *self, int fd, unsigned long at, size_t size, int64_t offset)
{
    long got = read_home(self, fd, (void *)at, size, offset);
    if (got == -EBADF || got == -EFAULT)
        return got;
    if (got == -EISDIR || got == -ESPIPE || got == -EINVAL)
        return -ENODEV;
    return got < 0 ? got : 0;
}

/* For execve: the program's memory goes in one piece. */
void drop_program_memory(struct thread *self)
{
    bool shared;
    long unwritten;
    shared_leave(self, 0, THREAD_PLACE, &shared, &unwritten);
    lock(&memory_lock);
    SYSTEM(__NR_munmap, LOWEST_PLACE, THREAD_PLACE - LOWEST_PLACE);
    space_forget();
    from_image.count = 0;
    unlock(&memory_lock);
    if (shared)
        shared_gone(self, 0, THREAD_PLACE);
    if (unwritten)
        die_of(SIGBUS);
}

static int with_implied(int protection)
{
    return (protection & PROT_READ) && (process.personality & READ_IMPLIES_EXEC) ? protection | PROT_EXEC : protection;
}

/* Fresh memory. A view of a file that lay there is over. */
static long map_over(struct thread *self, unsigned long at, size_t size, int protection, int flags)
{
    bool any = false;
    long unwritten = 0, place = 0;
    if ((flags & MAP_FIXED) && !(at & (PAGE - 1)) && is_programs_range(at, page_up(size)))
        place = shared_leave(self, at, at + page_up(size), &any, &unwritten);
    if (!place)
        place = map_anonymous(at, size, protection, flags);
    if (any && place >= 0)
        shared_gone(self, at, at + page_up(size));
    if (any)
        shared_let_go(self);
    if (unwritten && place >= 0)
        die_of(SIGBUS);
    return place;
}

/* Where all members have what is to be mapped of HANDLE's file. G->at is negative: each mapping is memory of its own. */
static long find_in_arena(struct trap *t, long handle, struct arena_place *g)
{
    *g = (struct arena_place){.at = -1};
    if (handle < 0 || !process.family)
        return 0;
    if (!arena_make()) /* other members could not have it */
        return process.forked || process.helper ? -ENODEV : 0;
    long failed = arena_find(t->self, handle, (int64_t)t->a[5], page_up(t->a[1]), g);
    if (failed == -ENOTBLK) { /* a device, which is new memory each time */
        g->at = -1;
        failed = 0;
    }
    return failed;
}

/* A mapping of the file FD.  HANDLE: home's, when its changes go back to the file; else negative. */
static long map_file(struct trap *t, long handle, int protection, int kept, const struct arena_place *g, bool reads)
{
    unsigned long size = t->a[1];
    int64_t offset = (int64_t)t->a[5];
    long place = map_over(t->self, t->a[0], size, PROT_READ | PROT_WRITE, kept);
    if (place < 0)
        return place;
    long failed = 0;
    if (g->at < 0)
        failed = fill(t->self, handle >= 0 ? (int)handle : (int)t->a[4], (unsigned long)place, page_up(size), offset);
    else if (arena_map(g, (unsigned long)place, page_up(size)) != place)
        failed = -ENOMEM;
    if (!failed && handle >= 0)
        failed = shared_add(t->self, handle, (unsigned long)place, size, offset, g, reads);
    if (failed) {
        unmap((unsigned long)place, size);
        return failed;
    }
    if (protection != (PROT_READ | PROT_WRITE))
        SYSTEM(__NR_mprotect, place, page_up(size), protection);
    return place;
}

long do_mmap(struct trap *t)
{
    unsigned long at = t->a[0], size = t->a[1];
    int protection = (int)t->a[2], flags = (int)t->a[3], fd = (int)t->a[4], type = flags & MAP_TYPE;
    if (size == 0 || size > ARENA_END - ARENA_START)
        return size ? -ENOMEM : -EINVAL;
    if (type != MAP_SHARED && type != MAP_PRIVATE && type != MAP_SHARED_VALIDATE)
        return -EINVAL;
    if (flags & MAP_HUGETLB)
        return -EINVAL;
    protection = with_implied(protection);
    int kept = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_NORESERVE | MAP_STACK | MAP_32BIT);
    if (!(flags & MAP_ANONYMOUS) && (t->a[5] & (PAGE - 1)))
        return -EINVAL;
    /* What cannot be written now may become so without our knowledge: what counts is how the file is open. */
    long handle = -EACCES;
    if (!(flags & MAP_ANONYMOUS) && type != MAP_PRIVATE && !is_for_reading(fd))
        handle = hold_file(t->self, fd, HOLD_TO_WRITE, (int64_t)(t->a[5] + page_up(size)));
    if (handle == -EPERM && !(protection & PROT_WRITE)) /* sealed: it stays as it is */
        handle = -EACCES;
    /* Others' changes of a file are seen through a mapping that changes nothing, too. */
    bool reads = handle == -EACCES && !(flags & MAP_ANONYMOUS) && type != MAP_PRIVATE && !(protection & (PROT_WRITE | PROT_EXEC)) &&
                 any_is_shared();
    if (reads)
        handle = hold_file(t->self, fd, HOLD_TO_READ, 0);
    if (reads && handle < 0) {
        reads = false;
        handle = -EACCES;
    }
    if (!(flags & MAP_ANONYMOUS) && type != MAP_PRIVATE && handle < 0 && ((protection & PROT_WRITE) || handle != -EACCES))
        return handle;
    /* Code that is written through one mapping of a file and executed in another would stay what it was here: each mapping
     * is memory of its own.  Compilers at run time that do so have another way when they hear that it cannot be. */
    if (handle >= 0 && (protection & PROT_EXEC)) {
        release_file(t->self, handle);
        return -EPERM;
    }
    struct arena_place arena;
    long failed = find_in_arena(t, handle, &arena);
    if (failed) {
        release_file(t->self, handle);
        return failed;
    }
    if (process.family && type != MAP_PRIVATE && ((flags & MAP_ANONYMOUS) || handle >= 0)) {
        begin_sharing();
        kept |= arena.at < 0 ? MAP_SHARED : MAP_NORESERVE;
    }
    if (flags & MAP_ANONYMOUS)
        return map_over(t->self, at, size, protection, kept);
    long place = map_file(t, handle, protection, kept, &arena, reads);
    if (place < 0)
        release_file(t->self, handle);
    return place;
}

/* SIZE bytes of shared memory that home has under HANDLE, at a place of the program's choice if AT is not 0. */
long map_segment(struct thread *self, long handle, unsigned long at, size_t size, int protection, int flags)
{
    struct trap as_file = {.self = self, .number = __NR_mmap, .a = {at, size}};
    struct arena_place arena;
    long failed = find_in_arena(&as_file, handle, &arena);
    if (failed || arena.at < 0)
        return failed ? failed : -ENOMEM;
    begin_sharing();
    return map_file(&as_file, handle, protection, flags | MAP_NORESERVE, &arena, false);
}

long do_munmap(struct trap *t)
{
    unsigned long at = t->a[0], size = page_up(t->a[1]);
    if ((at & (PAGE - 1)) || size == 0)
        return -EINVAL;
    if (!is_programs_range(at, size))
        return -EINVAL;
    bool any;
    long unwritten, failed = shared_leave(t->self, at, at + size, &any, &unwritten);
    if (!failed) {
        lock(&memory_lock);
        failed = unmap_at(at, size);
        unlock(&memory_lock);
    }
    if (any && !failed)
        shared_gone(t->self, at, at + size);
    if (any)
        shared_let_go(t->self);
    if (!failed && unwritten)
        die_of(SIGBUS);
    return failed;
}

/* Grown memory must be zero. What came from an image is a private mapping of a file, whose next pages
 * belong to other memory, and what members share ends where it ended: a copy takes its place. */
static long grow_by_copy(unsigned long old, size_t old_size, size_t size, int flags) REQUIRES(memory_lock);
static long grow_by_copy(unsigned long old, size_t old_size, size_t size, int flags)
{
    unsigned long end = old + old_size;
    int protection = protection_of(old, &end);
    long place = map_at(0, size, PROT_READ | PROT_WRITE, flags);
    if (place < 0)
        return place;
    if (copy_user((void *)place, (void *)old, old_size)) {
        unmap_at((unsigned long)place, size);
        return -EFAULT;
    }
    if (protection != (PROT_READ | PROT_WRITE))
        SYSTEM(__NR_mprotect, place, size, protection);
    unmap_at(old, old_size);
    return place;
}

/* The same at a place of the program's choice. */
static long move_to(unsigned long old, size_t old_size, size_t size, int flags, unsigned long to) REQUIRES(memory_lock);
static long move_to(unsigned long old, size_t old_size, size_t size, int flags, unsigned long to)
{
    bool grows = process.restarted && old_size && size > old_size;
    if (!is_programs_range(to, size) || (to & (PAGE - 1)) || (to < old + old_size && old < to + size))
        return -EINVAL;
    if (grows && map(to + old_size, size - old_size, PROT_READ | PROT_WRITE, MAP_FIXED) < 0)
        return -ENOMEM;
    return SYSTEM(__NR_mremap, old, old_size, grows ? old_size : size, flags, to);
}

/* IS_VIEW: of a file at home. */
static long move(unsigned long old, size_t old_size, size_t size, int flags, unsigned long to, bool is_view)
    REQUIRES(memory_lock);
static long move(unsigned long old, size_t old_size, size_t size, int flags, unsigned long to, bool is_view)
{
    long place;
    struct interval piece;
    if (space_is_full() || intervals_full(&from_image))
        return -ENOMEM;
    bool was_image = intervals_next(&from_image, old, old + old_size, &piece);
    bool ends_there = size > old_size && ((is_view && process.family) || (process.restarted && was_image));
    if (ends_there && (!(flags & MREMAP_MAYMOVE) || (is_view && (flags & MREMAP_FIXED))))
        return -ENOMEM;
    if (flags & MREMAP_FIXED) {
        place = move_to(old, old_size, size, flags, to);
    } else if (size <= old_size && !(flags & MREMAP_DONTUNMAP)) {
        place = SYSTEM(__NR_mremap, old, old_size, size, 0);
    } else {
        if (ends_there)
            return grow_by_copy(old, old_size, size, is_view && process.family ? MAP_SHARED : 0);
        place = flags & MREMAP_DONTUNMAP ? -ENOMEM : SYSTEM(__NR_mremap, old, old_size, size, 0);
        if (place < 0 && (flags & MREMAP_MAYMOVE)) {
            unsigned long gap = space_find(size);
            if (!gap)
                return -ENOMEM;
            place = SYSTEM(__NR_mremap, old, old_size, size, flags | MREMAP_FIXED, gap);
        }
    }
    if (place > 0) {
        if (flags & MREMAP_DONTUNMAP)
            leave_zeros(old, old + old_size);
        else
            space_give(old, old + old_size);
        space_take((unsigned long)place, (unsigned long)place + size);
        intervals_remove(&from_image, (unsigned long)place, (unsigned long)place + size);
        if (was_image) /* some of it: to take all for that costs nothing but time */
            intervals_add(&from_image, (unsigned long)place, (unsigned long)place + size);
    }
    return place;
}

/* A move of what is, at least in part, views of files. They stand for the same pieces of files at their new place. */
static long move_views(struct trap *t, unsigned long old, size_t old_size, size_t size, int flags)
{
    struct thread *self = t->self;
    unsigned long to = t->a[4];
    size_t kept = old_size < size ? old_size : size;
    bool any;
    long unwritten[2] = {0}, result = flags & MREMAP_DONTUNMAP ? -EINVAL : 0;
    if (!result && (flags & MREMAP_FIXED) && is_programs_range(to, size) && (to + size <= old || old + old_size <= to))
        result = shared_leave(self, to, to + size, &any, &unwritten[0]);
    if (!result && kept < old_size)
        result = shared_leave(self, old + kept, old + old_size, &any, &unwritten[1]);
    if (!result)
        result = shared_take(self, old, old + kept, &any);
    if (!result && size > old_size)
        result = !(flags & MREMAP_MAYMOVE) ? -ENOMEM
                 : (flags & MREMAP_FIXED) && (!is_programs_range(to, size) || (to & (PAGE - 1)) || (to < old + old_size && old < to + size))
                     ? -EINVAL
                     : shared_grow(self, old, old_size, size, flags & MREMAP_FIXED ? to : 0);
    if (!result) {
        lock(&memory_lock);
        result = move(old, old_size, size, flags, to, any);
        unlock(&memory_lock);
    }
    if (result > 0) {
        if (flags & MREMAP_FIXED)
            shared_gone(self, to, to + size);
        shared_gone(self, old + kept, old + old_size);
        unwritten[1] |= shared_moved(self, old, kept, (unsigned long)result, size);
    }
    shared_let_go(self);
    if (result > 0 && (unwritten[0] || unwritten[1]))
        die_of(SIGBUS);
    return result;
}

long do_mremap(struct trap *t)
{
    unsigned long old = t->a[0], old_size = page_up(t->a[1]), size = page_up(t->a[2]);
    int flags = (int)t->a[3];
    if ((old & (PAGE - 1)) || size == 0 || !is_programs_range(old, old_size ? old_size : PAGE))
        return -EINVAL;
    bool any = shared_lies_in(old, old + old_size);
    if (flags & MREMAP_FIXED)
        any |= shared_lies_in(t->a[4], t->a[4] + size);
    if (any)
        return move_views(t, old, old_size, size, flags);
    lock(&memory_lock);
    long result = move(old, old_size, size, flags, t->a[4], false);
    unlock(&memory_lock);
    return result;
}

long do_brk(struct trap *t)
{
    unsigned long wanted = t->a[0];
    lock(&memory_lock);
    unsigned long now = page_up(process.break_now), to = page_up(wanted);
    unsigned long end = process.break_low < BREAK_START ? ARENA_START : BREAK_END;
    long failed = wanted < process.break_low || wanted > end;
    if (!failed && to > now)
        failed = map(now, to - now, with_implied(PROT_READ | PROT_WRITE), MAP_FIXED_NOREPLACE) < 0;
    else if (!failed && to < now)
        failed = SYSTEM(__NR_munmap, to, now - to) < 0;
    if (!failed)
        process.break_now = wanted;
    long now_at = (long)process.break_now;
    unlock(&memory_lock);
    return now_at;
}

long do_msync(struct trap *t)
{
    if (t->a[0] & (PAGE - 1))
        return -EINVAL;
    return shared_write_back(t->self, t->a[0], t->a[0] + page_up(t->a[1]));
}

/* Locked memory would stay behind when the program moves; it is only a matter of speed. */
long do_mlock(struct trap *t) { (void)t; return 0; }
long do_mlock2(struct trap *t) { (void)t; return 0; }
long do_munlock(struct trap *t) { (void)t; return 0; }
long do_mlockall(struct trap *t) { (void)t; return 0; }
long do_munlockall(struct trap *t) { (void)t; return 0; }
long do_mbind(struct trap *t) { (void)t; return 0; }
long do_set_mempolicy(struct trap *t) { (void)t; return 0; }
