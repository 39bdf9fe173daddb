/* The program's address space: mmap and its kin, and the program break.
 *
 * All memory is anonymous for the kernel.  A mapping of a file is filled by reading the file at home; a
 * shared writable one is written back at msync, munmap, exit and before a checkpoint.  What the members of
 * a family share from a fork on is memory that the kernel shares between them.
 */
#include "runtime.h"

enum {
    PROT_READ = 1, PROT_WRITE = 2, PROT_EXECUTE = 4,
    SHARED = 1, PRIVATE = 2, SHARED_VALIDATE = 3, TYPE = 15, FIXED = 0x10, ANONYMOUS = 0x20, LOW = 0x40,
    NORESERVE = 0x4000, STACKLIKE = 0x20000, HUGE = 0x40000, FIXED_NOREPLACE = 0x100000,
    MOVE = 1, MOVE_FIXED = 2, KEEP_OLD = 4,
};

#define LOWEST 0x10000ul
#define LOW_START 0x40000000ul
#define LOW_END 0x7fff0000ul

struct lock memory_lock;

/* A shared writable mapping of a file at home. */
static struct shared {
    unsigned long from, to; /* 0: unused */
    int handle;
    int64_t offset;
} shared[256];

bool is_programs_range(unsigned long at, size_t size)
{
    return at >= LOWEST && at + size > at && at + size <= THREAD_PLACE;
}

static long map(unsigned long at, size_t size, int protection, int flags)
{
    return SYSTEM(__NR_mmap, at, size, protection, flags | (flags & SHARED ? 0 : PRIVATE) | ANONYMOUS, -1, 0);
}

static unsigned long low_place(size_t size)
{
    static unsigned long next = LOW_START;
    for (int round = 0; round < 2; round++) {
        for (; next + size <= LOW_END; next += size > 0x10000 ? page_up(size) : 0x10000) {
            long found = map(next, size, 0, FIXED_NOREPLACE);
            if (found > 0)
                return (unsigned long)found;
        }
        next = LOW_START;
    }
    return 0;
}

/* AT = 0 lets the runtime choose. Returns the place or -errno. */
static long map_at(unsigned long at, size_t size, int protection, int flags)
{
    long place;
    size = page_up(size);
    if (space_is_full() || intervals_full(&from_image))
        return -ENOMEM;
    if (flags & (FIXED | FIXED_NOREPLACE)) {
        if (at & (PAGE - 1))
            return -EINVAL;
        if (!is_programs_range(at, size))
            return -ENOMEM;
        place = map(at, size, protection, flags & ~LOW);
    } else if (flags & LOW) {
        at = page_down(at);
        place = at >= LOWEST && at + size <= LOW_END ? map(at, size, protection, (flags & ~LOW) | FIXED_NOREPLACE) : 0;
        if (place <= 0) {
            place = (long)low_place(size);
            place = place ? map((unsigned long)place, size, protection, (flags & ~LOW) | FIXED) : -ENOMEM;
        }
    } else {
        place = -ENOMEM;
        at = page_down(at);
        if (at && is_programs_range(at, size))
            place = map(at, size, protection, flags | FIXED_NOREPLACE);
        while (place < 0) {
            unsigned long gap = space_find(size);
            if (!gap)
                return -ENOMEM;
            place = map(gap, size, protection, flags | FIXED_NOREPLACE);
            if (place < 0 && place != -EEXIST)
                return place;
            if (place < 0)
                space_take(gap, gap + size); /* somebody is there whom we do not know */
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

static void write_back(struct thread *self, struct shared *s, unsigned long from, unsigned long to)
{
    int64_t offset = s->offset + (int64_t)(from - s->from);
    struct request size_request = {.call = OP_HOLD, .arguments = {s->handle, 1}};
    int64_t file_size = ask(self, &size_request, NULL, 0, NULL, 0, NULL);
    if (file_size < offset + (int64_t)(to - from)) /* what lies beyond the end of file is nobody's */
        to = file_size > offset ? from + (unsigned long)(file_size - offset) : from;
    if (to > from)
        write_home(self, s->handle, (void *)from, to - from, offset);
}

static void each_shared(struct thread *self, unsigned long from, unsigned long to, bool drop)
{
    for (size_t i = 0; i < COUNT(shared); i++) {
        struct shared *s = &shared[i];
        if (!s->to || s->to <= from || s->from >= to)
            continue;
        unsigned long a = s->from > from ? s->from : from, b = s->to < to ? s->to : to;
        write_back(self, s, a, b);
        if (!drop)
            continue;
        if (a == s->from && b == s->to) {
            struct request release = {.call = OP_RELEASE, .arguments = {s->handle}};
            ask(self, &release, NULL, 0, NULL, 0, NULL);
            s->to = 0;
        } else if (a == s->from) {
            s->offset += (int64_t)(b - s->from);
            s->from = b;
        } else {
            s->to = a; /* a hole in the middle gives the rest up: it has just been written */
        }
    }
}

void write_shared_back(struct thread *self)
{
    each_shared(self, 0, ~0ul, false);
}

/* For execve: the program's memory goes in one piece. */
void drop_program_memory(struct thread *self)
{
    each_shared(self, 0, ~0ul, true);
    lock(&memory_lock);
    SYSTEM(__NR_munmap, LOWEST, THREAD_PLACE - LOWEST);
    space_forget();
    from_image.count = 0;
    unlock(&memory_lock);
}

static long remember_shared(struct thread *self, int fd, unsigned long at, size_t size, int64_t offset)
{
    for (size_t i = 0; i < COUNT(shared); i++)
        if (!shared[i].to) {
            struct request hold = {.call = OP_HOLD, .arguments = {fd, 0}};
            long handle = ask(self, &hold, NULL, 0, NULL, 0, NULL);
            if (handle < 0)
                return handle;
            shared[i] = (struct shared){at, at + page_up(size), (int)handle, offset};
            return 0;
        }
    return -ENOMEM;
}

/* Code that is written through one mapping of a file and executed in another would stay what it was here: each mapping
 * is memory of its own.  Compilers at run time that do so have another way when they hear that it cannot be. */
static bool is_second_view_of_code(struct thread *self, int type, int protection, int fd)
{
    if (type == PRIVATE || !(protection & PROT_EXECUTE))
        return false;
    struct request hold = {.call = OP_HOLD, .arguments = {fd, 0}};
    long handle = ask(self, &hold, NULL, 0, NULL, 0, NULL);
    struct request release = {.call = OP_RELEASE, .arguments = {handle}};
    if (handle >= 0) /* open for writing, too */
        ask(self, &release, NULL, 0, NULL, 0, NULL);
    return handle >= 0;
}

static int with_implied(int protection)
{
    return (protection & PROT_READ) && (process.personality & READ_IMPLIES_EXEC) ? protection | PROT_EXECUTE : protection;
}

long do_mmap(struct trap *t)
{
    unsigned long at = t->a[0], size = t->a[1];
    int protection = (int)t->a[2], flags = (int)t->a[3], fd = (int)t->a[4], type = flags & TYPE;
    int64_t offset = (int64_t)t->a[5];
    if (size == 0 || size > ARENA_END - ARENA_START)
        return size ? -ENOMEM : -EINVAL;
    if (type != SHARED && type != PRIVATE && type != SHARED_VALIDATE)
        return -EINVAL;
    if (flags & HUGE)
        return -EINVAL;
    protection = with_implied(protection);
    int kept = flags & (FIXED | FIXED_NOREPLACE | NORESERVE | STACKLIKE | LOW);
    if (process.family && type != PRIVATE && ((flags & ANONYMOUS) || (protection & PROT_WRITE)))
        kept |= SHARED, process.shares = true;
    if (flags & ANONYMOUS)
        return map_anonymous(at, size, protection, kept);
    if (offset & (int64_t)(PAGE - 1))
        return -EINVAL;
    if (is_second_view_of_code(t->self, type, protection, fd))
        return -EPERM;
    if (flags & FIXED)
        each_shared(t->self, at, at + page_up(size), true);
    long place = map_anonymous(at, size, PROT_READ | PROT_WRITE, kept);
    if (place < 0)
        return place;
    long failed = fill(t->self, fd, (unsigned long)place, size, offset);
    if (!failed && type != PRIVATE && (protection & PROT_WRITE))
        failed = remember_shared(t->self, fd, (unsigned long)place, size, offset);
    if (failed) {
        SYSTEM(__NR_munmap, place, size);
        space_give((unsigned long)place, (unsigned long)place + page_up(size));
        return failed == -EBADF && fd >= 0 ? -EBADF : failed;
    }
    if (protection != (PROT_READ | PROT_WRITE))
        SYSTEM(__NR_mprotect, place, page_up(size), protection);
    return place;
}

long do_munmap(struct trap *t)
{
    unsigned long at = t->a[0], size = page_up(t->a[1]);
    if ((at & (PAGE - 1)) || size == 0)
        return -EINVAL;
    if (!is_programs_range(at, size))
        return -EINVAL;
    each_shared(t->self, at, at + size, true);
    lock(&memory_lock);
    bool full = space_is_full() || intervals_full(&from_image);
    long result = full ? -ENOMEM : SYSTEM(__NR_munmap, at, size);
    if (!result) {
        space_give(at, at + size);
        intervals_remove(&from_image, at, at + size);
    }
    unlock(&memory_lock);
    return result;
}

/* Grown memory must be zero. What came from an image is a private mapping of a file, whose next pages are
 * somebody else's: a copy takes its place. */
static long grow_by_copy(unsigned long old, size_t old_size, size_t size)
{
    long place = map_at(0, size, PROT_READ | PROT_WRITE, 0);
    if (place < 0)
        return place;
    if (copy_user((void *)place, (void *)old, old_size)) {
        SYSTEM(__NR_munmap, place, size);
        space_give((unsigned long)place, (unsigned long)place + size);
        return -EFAULT;
    }
    SYSTEM(__NR_munmap, old, old_size);
    space_give(old, old + old_size);
    return place;
}

/* The same at a place of the program's choice. */
static long move_to(unsigned long old, size_t old_size, size_t size, int flags, unsigned long to)
{
    bool grows = process.restarted && old_size && size > old_size;
    if (!is_programs_range(to, size) || (to & (PAGE - 1)) || (to < old + old_size && old < to + size))
        return -EINVAL;
    if (grows && map(to + old_size, size - old_size, PROT_READ | PROT_WRITE, FIXED) < 0)
        return -ENOMEM;
    return SYSTEM(__NR_mremap, old, old_size, grows ? old_size : size, flags, to);
}

static void leave_zeros(unsigned long from, unsigned long to);

static long move(unsigned long old, size_t old_size, size_t size, int flags, unsigned long to)
{
    long place;
    struct interval piece;
    if (space_is_full() || intervals_full(&from_image))
        return -ENOMEM;
    bool was_image = intervals_next(&from_image, old, old + old_size, &piece);
    if (flags & MOVE_FIXED) {
        place = move_to(old, old_size, size, flags, to);
    } else if (size <= old_size && !(flags & KEEP_OLD)) {
        place = SYSTEM(__NR_mremap, old, old_size, size, 0);
    } else {
        if (process.restarted && size > old_size && (flags & MOVE))
            return grow_by_copy(old, old_size, size);
        place = flags & KEEP_OLD ? -ENOMEM : SYSTEM(__NR_mremap, old, old_size, size, 0);
        if (place < 0 && (flags & MOVE)) {
            unsigned long gap = space_find(size);
            if (!gap)
                return -ENOMEM;
            place = SYSTEM(__NR_mremap, old, old_size, size, flags | MOVE_FIXED, gap);
        }
    }
    if (place > 0) {
        if (flags & KEEP_OLD)
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

long do_mremap(struct trap *t)
{
    unsigned long old = t->a[0], old_size = page_up(t->a[1]), size = page_up(t->a[2]);
    if ((old & (PAGE - 1)) || size == 0 || !is_programs_range(old, old_size ? old_size : PAGE))
        return -EINVAL;
    lock(&memory_lock);
    long result = move(old, old_size, size, (int)t->a[3], t->a[4]);
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
        failed = map(now, to - now, with_implied(PROT_READ | PROT_WRITE), FIXED_NOREPLACE) < 0;
    else if (!failed && to < now)
        failed = SYSTEM(__NR_munmap, to, now - to) < 0;
    if (!failed)
        process.break_now = wanted;
    unlock(&memory_lock);
    return (long)process.break_now;
}

long do_msync(struct trap *t)
{
    if (t->a[0] & (PAGE - 1))
        return -EINVAL;
    each_shared(t->self, t->a[0], t->a[0] + page_up(t->a[1]), false);
    return 0;
}

/* Locked memory would stay behind when the program moves; it is only a matter of speed. */
long do_mlock(struct trap *t) { (void)t; return 0; }
long do_mlock2(struct trap *t) { (void)t; return 0; }
long do_munlock(struct trap *t) { (void)t; return 0; }
long do_mlockall(struct trap *t) { (void)t; return 0; }
long do_munlockall(struct trap *t) { (void)t; return 0; }
long do_mbind(struct trap *t) { (void)t; return 0; }
long do_set_mempolicy(struct trap *t) { (void)t; return 0; }

/* What came from an image is a private mapping of a file: to give its pages up must make zeros, not the
 * file's content again.  It is replaced by fresh memory of the same kind as far as that shows. */
static struct interval from_image_list[1 << 17];
struct intervals from_image = {from_image_list, 0, COUNT(from_image_list)};

/* What of it was code. Set at a restart. */
static struct interval code_list[COUNT(from_image_list)];
struct intervals image_code = {code_list, 0, COUNT(code_list)};

static const char *find_end(const char *line)
{
    while (*line && *line != '\n')
        line++;
    return *line ? line : NULL;
}

/* The kernel's word for the protection AT; *TO becomes less when another mapping begins before. */
static int protection_there(unsigned long at, unsigned long *to)
{
    enum { LONGEST_LINE = 256 };
    static char room[1 << 14];
    size_t used = 0, offset = 0;
    long got;
    while ((got = SYSTEM(__NR_pread64, MAPS_FD, room + used, sizeof room - 1 - used, offset)) > 0) {
        const char *line = room;
        offset += (size_t)got;
        used += (size_t)got;
        room[used] = 0;
        for (const char *end; (end = find_end(line)); line = end + 1) {
            const char *word = line;
            unsigned long from = read_number(&word, 16), until = (word++, read_number(&word, 16));
            if (at >= until)
                continue;
            if (until < *to)
                *to = until;
            return at < from ? 0 : (word[1] == 'r' ? PROT_READ : 0) | (word[2] == 'w' ? PROT_WRITE : 0) |
                                       (word[3] == 'x' ? PROT_EXECUTE : 0);
        }
        used -= (size_t)(line - room);
        if (used >= sizeof room - LONGEST_LINE)
            break;
        memmove(room, line, used);
    }
    return 0;
}

/* A look at a byte says whether it can be read and written, which is quick. The kernel is asked about the rest: what
 * was code, and what cannot be written. */
static int protection_of(unsigned long from, unsigned long *to)
{
    char byte;
    struct interval code;
    bool reads = !copy_user(&byte, (void *)from, 1);
    if (reads && !copy_user((void *)from, &byte, 1) && !intervals_next(&image_code, from, *to, &code))
        return PROT_READ | PROT_WRITE;
    return protection_there(from, to);
}

static bool renew(const struct interval *piece)
{
    for (unsigned long from = piece->from, to; from < piece->to; from = to) {
        to = piece->to;
        int protection = protection_of(from, &to);
        if (intervals_full(&from_image) || map(from, to - from, protection, FIXED) < 0)
            return false;
        intervals_remove(&from_image, from, to);
    }
    return true;
}

/* There are as many mappings as the kernel allows: the pages stay and become zero. */
static bool make_zero(const struct interval *piece)
{
    static const uint8_t zeros[PAGE];
    for (unsigned long at = piece->from; at < piece->to; at += PAGE)
        if (copy_user((void *)at, zeros, PAGE))
            return false;
    return true;
}

/* What moved away, and stays mapped, leaves zeros. */
static void leave_zeros(unsigned long from, unsigned long to)
{
    struct interval piece;
    for (; intervals_next(&from_image, from, to, &piece); from = piece.to)
        if (!renew(&piece))
            make_zero(&piece);
}

/* What did not come from an image. */
static void advise_others(unsigned long from, unsigned long to, unsigned long advice)
{
    struct interval piece = {from, from};
    for (; from < to; from = piece.to) {
        if (!intervals_next(&from_image, from, to, &piece))
            piece = (struct interval){to, to};
        if (piece.from > from)
            SYSTEM(__NR_madvise, from, piece.from - from, advice);
    }
}

long do_madvise(struct trap *t)
{
    enum { DONT_NEED = 4, FREE = 8, REMOVE = 9, DONT_NEED_LOCKED = 24 };
    unsigned long from = t->a[0], to = from + page_up(t->a[1]), advice = t->a[2];
    struct interval piece = {0};
    bool stays = false, zero = true;
    if (advice == DONT_NEED || advice == FREE || advice == REMOVE || advice == DONT_NEED_LOCKED) {
        lock(&memory_lock);
        for (unsigned long at = from; at < to && intervals_next(&from_image, at, to, &piece); at = piece.to)
            if (!renew(&piece)) {
                stays = true;
                zero &= make_zero(&piece);
            }
        if (stays)
            advise_others(from, to, advice);
        unlock(&memory_lock);
    }
    if (stays)
        return zero ? 0 : -ENOMEM;
    return SYSTEM(__NR_madvise, from, t->a[1], advice);
}
