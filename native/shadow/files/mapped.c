/* Files that the program maps shared: where they are in the memory that all its processes have.
 *
 * The processes of a family have a piece of memory in common, the *arena* (runtime/shared_arena.c).  A *span* is a part of it
 * that stands for a part of one file, for all processes that map it, whether by a fork or by an open of their own.
 * Home gives spans out, because home knows which names and descriptors are of one file, and hears of a member's end
 * however it ends.  What of a span was never mapped is a gap: one member is told to fill it, others wait for that.
 *
 *     unknown ─ OP_SHARE ▶ being filled ─ OP_SHARE, SHARE_FILLED ▶ filled ─ the last user's OP_RELEASE ▶ being left
 *         ▲                                                                                                 │
 *         └────────────────────────────── OP_SHARE, SHARE_LEFT: its memory was given back ──────────────────┘
 *
 * What a member says concerns the memory of its own family and no other's.
 *
 * A file that is mapped may be read and written as well.  Then the memory is what counts: who writes is told where the
 * piece is and writes there, too, and who reads reads there (runtime/shared_arena.c).
 */
#include "shadow/serve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILLED = 64 /* pieces of a span with gaps between them */ };
#define SMALLEST_SPAN (1ull << 30)
#define SPARE_FACTOR 4 /* a file grows; what is not touched costs nothing */
#define FILL_LOOK_NS 500000
#define EVERY_PLACE (-1)

struct piece {
    int64_t from, to; /* of the file */
};

struct span {
    struct span *next;
    dev_t device;
    ino_t inode;
    uint64_t base, room; /* of the arena; ROOM is a power of two, and BASE a multiple of it */
    int64_t from;        /* of the file, what is at BASE */
    uint32_t users;      /* handles */
    struct session *leaves; /* who gives its memory back */
    int mark;            /* -1: another span of the file has it, or there is none; see mapped_elsewhere.c */
    struct session *filler;
    struct piece filling;
    struct piece filled[MOST_FILLED]; /* ascending, apart */
    uint32_t filled_count;
};

static bool holds(const struct span *p, const struct piece *range)
{
    return range->from >= p->from && (uint64_t)(range->to - p->from) <= p->room;
}

static struct span *find_span(struct session *root, const struct stat *st, const struct piece *range) REQUIRES(table_lock);
static struct span *find_span(struct session *root, const struct stat *st, const struct piece *range)
{
    for (struct span *p = root->spans; p; p = p->next)
        if (p->inode == st->st_ino && p->device == st->st_dev && !p->leaves && holds(p, range))
            return p;
    return NULL;
}

/* What of the arena is in use from AT on for SIZE bytes; NULL: nothing. */
static const struct span *span_at(const struct session *root, uint64_t at, uint64_t size) REQUIRES(table_lock);
static const struct span *span_at(const struct session *root, uint64_t at, uint64_t size)
{
    for (const struct span *p = root->spans; p; p = p->next)
        if (p->base < at + size && at < p->base + p->room)
            return p;
    return NULL;
}

/* A free place for SIZE bytes, a power of two. ARENA_BYTES: there is none. */
static uint64_t find_in_arena(const struct session *root, uint64_t size) REQUIRES(table_lock);
static uint64_t find_in_arena(const struct session *root, uint64_t size)
{
    const struct span *other;
    uint64_t at = 0;
    while (at + size <= ARENA_BYTES && (other = span_at(root, at, size)))
        at = (other->base + other->room + size - 1) & ~(size - 1);
    return at + size <= ARENA_BYTES ? at : ARENA_BYTES;
}

static struct span *add_span(struct session *root, const struct stat *st, int64_t from, uint64_t base, uint64_t room)
    REQUIRES(table_lock);
static struct span *add_span(struct session *root, const struct stat *st, int64_t from, uint64_t base, uint64_t room)
{
    struct span *p = base < ARENA_BYTES ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    *p = (struct span){.next = root->spans, .device = st->st_dev, .inode = st->st_ino, .base = base, .room = room, .from = from,
                       .mark = -1};
    root->spans = p;
    return p;
}

/* A part of the arena for RANGE of a file, with room to grow. */
static struct span *new_span(struct session *root, const struct stat *st, const struct piece *range) REQUIRES(table_lock);
static struct span *new_span(struct session *root, const struct stat *st, const struct piece *range)
{
    int64_t from = (uint64_t)range->to <= SMALLEST_SPAN ? 0 : range->from;
    uint64_t wanted = (uint64_t)(range->to - from), room = SMALLEST_SPAN;
    while (room < wanted * SPARE_FACTOR && room < ARENA_BYTES)
        room *= 2;
    for (; room >= SMALLEST_SPAN && room >= wanted; room /= 2) {
        struct span *p = add_span(root, st, from, find_in_arena(root, room), room);
        if (p)
            return p;
    }
    return NULL;
}

static void drop_span(struct session *root, struct span *p) REQUIRES(table_lock);
static void drop_span(struct session *root, struct span *p)
{
    struct span **place = &root->spans;
    while (*place != p)
        place = &(*place)->next;
    *place = p->next;
    for (struct span *other = root->spans; other && p->mark >= 0; other = other->next)
        if (other->inode == p->inode && other->device == p->device) {
            other->mark = p->mark;
            p->mark = -1;
        }
    if (p->mark >= 0)
        close(p->mark);
    free(p);
}

/* FROM..TO of the file is in the arena. False: there are too many pieces. */
static bool note_filled(struct span *p, struct piece fresh)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < p->filled_count; i++) {
        const struct piece one = p->filled[i];
        if (one.to < fresh.from || fresh.to < one.from) {
            p->filled[kept++] = one;
            continue;
        }
        fresh.from = one.from < fresh.from ? one.from : fresh.from;
        fresh.to = one.to > fresh.to ? one.to : fresh.to;
    }
    if (kept == MOST_FILLED)
        return false;
    uint32_t at = kept;
    for (; at && p->filled[at - 1].from > fresh.from; at--)
        p->filled[at] = p->filled[at - 1];
    p->filled[at] = fresh;
    p->filled_count = kept + 1;
    return true;
}

/* The first part of RANGE that nobody has filled; empty: there is none. */
static struct piece first_gap(const struct span *p, const struct piece *range)
{
    struct piece gap = *range;
    for (uint32_t i = 0; i < p->filled_count && gap.from < gap.to; i++) {
        const struct piece *one = &p->filled[i];
        if (one->from <= gap.from && gap.from < one->to)
            gap.from = one->to < gap.to ? one->to : gap.to;
        else if (one->from > gap.from && one->from < gap.to)
            gap.to = one->from;
    }
    return gap;
}

/* HANDLE is of a mapping in P from now on. */
static void use_span(struct session *s, int64_t handle, struct span *p) REQUIRES(table_lock);
static void use_span(struct session *s, int64_t handle, struct span *p)
{
    struct span **mine = &s->handle_spans[handle - MAX_FILES];
    if (*mine == p)
        return;
    if (*mine && --(*mine)->users == 0)
        drop_span(s->root, *mine);
    *mine = p;
    p->users++;
}

static int64_t place_of(const struct span *p)
{
    return (int64_t)(p->base | (uint64_t)__builtin_ctzll(p->room));
}

static bool is_mapped(const struct session *root, const struct stat *st) REQUIRES(table_lock);
static bool is_mapped(const struct session *root, const struct stat *st)
{
    const struct span *p = root->spans;
    while (p && !(p->inode == st->st_ino && p->device == st->st_dev))
        p = p->next;
    return p;
}

/* After a restart, a member says where in the arena it has a piece of a file. */
static long claim(struct session *s, const struct stat *st, const struct piece *range, int64_t handle, int64_t place, int64_t from)
    REQUIRES(table_lock);
static long claim(struct session *s, const struct stat *st, const struct piece *range, int64_t handle, int64_t place, int64_t from)
{
    uint64_t base = (uint64_t)place & ~(uint64_t)(SMALLEST_SPAN - 1), bits = (uint64_t)place & (SMALLEST_SPAN - 1);
    if (place < 0 || bits >= 63 || 1ull << bits < SMALLEST_SPAN || base + (1ull << bits) > ARENA_BYTES)
        return -EINVAL;
    if (from < 0 || from > range->from || (uint64_t)(range->to - from) > 1ull << bits)
        return -EINVAL;
    struct span *p = find_span(s->root, st, range);
    if (!p && !span_at(s->root, base, 1ull << bits))
        p = add_span(s->root, st, from, base, 1ull << bits);
    if (!p || p->base != base || p->from != from)
        return -ENODEV;
    use_span(s, handle, p);
    return note_filled(p, *range) ? place_of(p) : -E2BIG;
}

/* The part of the arena for RANGE, and what of it is to be filled. */
static long give(struct work *w, const struct stat *st, const struct piece *range, bool has_filled, struct shared_place *to)
    REQUIRES(table_lock);
static long give(struct work *w, const struct stat *st, const struct piece *range, bool has_filled, struct shared_place *to)
{
    struct session *s = w->session;
    struct span *p = find_span(s->root, st, range);
    if (!p && !(p = new_span(s->root, st, range)))
        return -ENOMEM;
    use_span(s, ARGUMENT(0), p);
    if (has_filled && p->filler == s) {
        p->filler = NULL;
        if (!note_filled(p, p->filling))
            return -ENOMEM;
    }
    const struct piece gap = first_gap(p, range);
    if (gap.from < gap.to && p->filler) {
        w->retry_ns = now_ns() + FILL_LOOK_NS;
        return PARKED;
    }
    if (gap.from < gap.to) {
        p->filler = s;
        p->filling = gap;
    }
    *to = (struct shared_place){.from = p->from, .gap_from = gap.from, .gap_to = gap.to};
    return place_of(p);
}

/* The last mapping of a file is gone and its memory given back: of this file, since other threads may be about to. */
static long forget_left(struct session *s, int64_t place) REQUIRES(table_lock);
static long forget_left(struct session *s, int64_t place)
{
    for (struct span *p = s->root->spans, *next; p; p = next) {
        next = p->next;
        if (p->leaves == s && (place == EVERY_PLACE || place_of(p) == place))
            drop_span(s->root, p);
    }
    return 0;
}

/* ---- reading and writing what is mapped */

static bool has_span(struct session *root, int real)
{
    struct stat st;
    bool found = false;
    if (fstat(real, &st) < 0)
        return false;
    pthread_mutex_lock(&table_lock);
    for (const struct span *p = root->spans; p && !found; p = p->next)
        found = p->inode == st.st_ino && p->device == st.st_dev && !p->leaves;
    pthread_mutex_unlock(&table_lock);
    return found;
}

bool is_shared_file(struct session *s, int real) { return has_span(s->root, real); }

/* Before a call that reads, writes or cuts a file by a descriptor of the program's.  True: some member has it mapped, and
 * nobody else of the family moves positions of such files until mapped_end. */
bool mapped_begin(struct work *w)
{
    struct session *root = w->session->root;
    switch (w->head.call) {
    case __NR_read: case __NR_write: case __NR_pread64: case __NR_pwrite64: case __NR_ftruncate: case __NR_fallocate: break;
    default: return false;
    }
    if (!__atomic_load_n(&root->spans, __ATOMIC_RELAXED) || w->head.id >= MOST_SLOTS)
        return false;
    const struct file *file = ARGUMENT(0) < MAX_FILES ? file_of(w->session, ARGUMENT(0)) : NULL;
    if (!file || !file->regular || !has_span(root, file->real))
        return false;
    pthread_mutex_lock(&root->positions_lock);
    return true;
}

void mapped_end(struct work *w, long result)
{
    struct session *s = w->session;
    const struct file *file = file_of(s, ARGUMENT(0));
    int64_t at = -1;
    struct stat st;
    switch (w->head.call) {
    case __NR_read: case __NR_write: at = lseek(file->real, 0, SEEK_CUR) - result; break;
    case __NR_pread64: at = ARGUMENT(3); break;
    case __NR_pwrite64: /* at the end, where a file is open for that */
        at = !(file->flags & O_APPEND) ? ARGUMENT(3) : fstat(file->real, &st) == 0 ? st.st_size - result : -1;
        break;
    case __NR_ftruncate: at = ARGUMENT(1); break;
    default: at = ARGUMENT(2); break;
    }
    pthread_mutex_unlock(&s->root->positions_lock);
    s->moved_at[w->head.id] = at;
    if (result >= 0 && at >= 0)
        w->hints |= HINT_MAPPED;
}

/* Calls that copy from file to file at home, where nobody has what is in memory: programs have another way. */
bool mapped_refuses(struct work *w)
{
    struct session *root = w->session->root;
    int64_t from = ARGUMENT(0), to = ARGUMENT(1);
    switch (w->head.call) {
    case __NR_sendfile: break;
    case __NR_copy_file_range: to = ARGUMENT(2); break;
    default: return false;
    }
    if (!__atomic_load_n(&root->spans, __ATOMIC_RELAXED))
        return false;
    const int one = real_of(w->session, from), other = real_of(w->session, to);
    return (one >= 0 && has_span(root, one)) || (other >= 0 && has_span(root, other));
}

/* FD was opened, and with that its file emptied. */
void mapped_emptied(struct work *w, int64_t fd)
{
    struct session *s = w->session;
    if (w->head.id >= MOST_SLOTS || !__atomic_load_n(&s->root->spans, __ATOMIC_RELAXED) || !has_span(s->root, real_of(s, fd)))
        return;
    s->moved_at[w->head.id] = 0;
    w->hints |= HINT_MAPPED;
}

/* Fills in the piece with that number, ascending, of RANGE of ST's file that is in memory; NULL: there is none. */
static const struct span *nth_piece(const struct session *root, const struct stat *st, const struct piece *range, int64_t number,
                                    struct piece *to) REQUIRES(table_lock);
static const struct span *nth_piece(const struct session *root, const struct stat *st, const struct piece *range, int64_t number,
                                    struct piece *to)
{
    for (const struct span *p = root->spans; p; p = p->next)
        for (uint32_t i = 0; i < p->filled_count && p->inode == st->st_ino && p->device == st->st_dev && !p->leaves; i++) {
            to->from = range->from > p->filled[i].from ? range->from : p->filled[i].from;
            to->to = range->to < p->filled[i].to ? range->to : p->filled[i].to;
            if (to->from < to->to && number-- == 0)
                return p;
        }
    return NULL;
}

static bool is_being_filled(const struct session *root, const struct stat *st, const struct piece *range) REQUIRES(table_lock);
static bool is_being_filled(const struct session *root, const struct stat *st, const struct piece *range)
{
    bool found = false;
    for (const struct span *p = root->spans; p && !found; p = p->next)
        found = p->inode == st->st_ino && p->device == st->st_dev && p->filler && p->filling.from < range->to &&
                range->from < p->filling.to;
    return found;
}

static long say_where(struct work *w, struct shared_place *to)
{
    struct session *s = w->session;
    const struct file *file = ARGUMENT(0) < MAX_FILES ? file_of(s, ARGUMENT(0)) : NULL;
    struct stat st;
    struct piece found;
    if (!file || w->head.id >= MOST_SLOTS)
        return -EBADF;
    const int64_t at = s->moved_at[w->head.id];
    if (at < 0 || at > INT64_MAX / 4 || ARGUMENT(1) < 0 || ARGUMENT(2) <= 0 || ARGUMENT(2) > INT64_MAX / 4)
        return -EINVAL;
    if (fstat(file->real, &st) < 0)
        return -errno;
    const struct piece range = {at, at + ARGUMENT(2)};
    long result = -ENOENT;
    pthread_mutex_lock(&table_lock);
    const struct span *p = nth_piece(s->root, &st, &range, ARGUMENT(1), &found);
    if (is_being_filled(s->root, &st, &range)) {
        w->retry_ns = now_ns() + FILL_LOOK_NS;
        result = PARKED;
    } else if (p) {
        *to = (struct shared_place){.from = p->from - at, .gap_from = found.from - at, .gap_to = found.to - at};
        result = place_of(p);
    }
    pthread_mutex_unlock(&table_lock);
    return result;
}

/* MARK is of a span of that file, if there is one. */
static void keep_mark(struct session *root, const struct stat *st, int mark) REQUIRES(table_lock);
static void keep_mark(struct session *root, const struct stat *st, int mark)
{
    struct span *p = root->spans;
    while (p && !(p->inode == st->st_ino && p->device == st->st_dev && p->mark < 0))
        p = p->next;
    if (mark >= 0 && p)
        p->mark = mark;
    else if (mark >= 0)
        close(mark);
}

static long put_place(struct work *w, long result, const struct shared_place *place)
{
    uint8_t *to = result < 0 ? NULL : out_room(w, sizeof *place);
    if (to)
        memcpy(to, place, sizeof *place);
    return result;
}

long serve_share(struct work *w)
{
    struct session *s = w->session;
    struct piece range;
    struct shared_place place = {0};
    struct stat st;
    long result;
    if (ARGUMENT(3) == SHARE_LEFT) {
        pthread_mutex_lock(&table_lock);
        result = forget_left(s, ARGUMENT(4));
        pthread_mutex_unlock(&table_lock);
        return result;
    }
    if (ARGUMENT(3) == SHARE_WHERE) {
        result = say_where(w, &place);
        return put_place(w, result, &place);
    }
    struct file **held = handle_of(s, ARGUMENT(0));
    if (!held)
        return -EBADF;
    if (ARGUMENT(1) < 0 || ARGUMENT(1) > INT64_MAX / 4 || ARGUMENT(2) <= 0 || ARGUMENT(2) > (int64_t)ARENA_BYTES)
        return -EINVAL;
    range = (struct piece){ARGUMENT(1), ARGUMENT(1) + ARGUMENT(2)};
    if (fstat((*held)->real, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode)) /* a mapping of a device is new memory each time */
        return -ENOTBLK;
    const bool claims = ARGUMENT(3) == SHARE_CLAIM; /* of what it has had mapped: that is not taken from it */
    int mark = -1;
    pthread_mutex_lock(&s->root->entering_lock); /* a member that enters the same file sees our mark, and takes it for another's */
    pthread_mutex_lock(&table_lock);
    const bool is_new = !is_mapped(s->root, &st) && ((*held)->flags & O_ACCMODE) == O_RDWR;
    pthread_mutex_unlock(&table_lock);
    const bool refused = is_new && mapped_elsewhere(s, *held, &st, !claims, &mark);
    pthread_mutex_lock(&table_lock);
    if (refused)
        result = -EAGAIN;
    else if (claims)
        result = claim(s, &st, &range, ARGUMENT(0), ARGUMENT(4), ARGUMENT(5));
    else
        result = give(w, &st, &range, ARGUMENT(3) == SHARE_FILLED && !w->again, &place);
    keep_mark(s->root, &st, mark);
    pthread_mutex_unlock(&table_lock);
    pthread_mutex_unlock(&s->root->entering_lock);
    return claims ? result : put_place(w, result, &place);
}

/* HANDLE is given up.  Returns 0, or which part of the arena nobody uses any more: S is to give its memory back. */
long span_release(struct session *s, int64_t handle)
{
    struct span **mine = &s->handle_spans[handle - MAX_FILES];
    long result = 0;
    pthread_mutex_lock(&table_lock);
    if (*mine && --(*mine)->users == 0) {
        (*mine)->leaves = s;
        result = place_of(*mine) + 1;
    }
    *mine = NULL;
    pthread_mutex_unlock(&table_lock);
    return result;
}

/* MEMBER has a copy of the handles of S. */
void spans_copy(struct session *member, const struct session *s)
{
    pthread_mutex_lock(&table_lock);
    for (int i = 0; i < MAX_HANDLES; i++)
        if (member->handles[i] && (member->handle_spans[i] = s->handle_spans[i]))
            s->handle_spans[i]->users++;
    pthread_mutex_unlock(&table_lock);
}

/* S is served no more, or will say anew what it maps. */
void spans_leave(struct session *s)
{
    pthread_mutex_lock(&table_lock);
    for (int i = 0; i < MAX_HANDLES; i++) {
        struct span *p = s->handle_spans[i];
        s->handle_spans[i] = NULL;
        if (p && --p->users == 0)
            drop_span(s->root, p);
    }
    for (struct span *p = s->root->spans; p; p = p->next)
        if (p->filler == s)
            p->filler = NULL;
    forget_left(s, EVERY_PLACE);
    pthread_mutex_unlock(&table_lock);
}
