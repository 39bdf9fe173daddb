/* What there is to be saved: the program's mappings, what of them has data, and where that goes in an image. */
#include "runtime/checkpoint/image.h"

#include "dirty.h"
#include "shared_arena.h"
#include "memory.h"
#include "runtime/text.h"

enum { PRESENT_OR_SWAPPED = 62 /* the bits from here on in an entry of the page map */, SEGMENTS_KEPT_BACK = 8 };

static bool read_mapping(const char **line, struct mapping *m)
{
    const char *at = *line;
    m->from = read_number(&at, 16);
    at++;
    m->to = read_number(&at, 16);
    at++;
    m->protection = (at[0] == 'r' ? PROT_READ : 0) | (at[1] == 'w' ? PROT_WRITE : 0) | (at[2] == 'x' ? PROT_EXEC : 0);
    m->shared = at[3] == 's';
    at += 5;
    m->offset = read_number(&at, 16);
    at++;
    read_number(&at, 16);
    at++;
    read_number(&at, 16);
    at++;
    m->inode = read_number(&at, 10);
    while (*at && *at != '\n')
        at++;
    *line = *at ? at + 1 : at;
    return m->to > m->from;
}

long read_mappings(char *room, struct mapping *list)
{
    long size = 0, got, count = 0;
    while ((got = SYSTEM(__NR_pread64, MAPS_FD, room + size, MAPS_ROOM - 1 - size, size)) > 0)
        size += got;
    if (got < 0 || size >= MAPS_ROOM - 1)
        return -E2BIG;
    room[size] = 0;
    for (const char *line = room; *line;) {
        struct mapping m;
        bool good = read_mapping(&line, &m);
        if (good && m.from == ARENA_PLACE && m.shared)
            arena_object = m.inode;
        if (!good || m.from >= KERNEL_PLACES)
            continue;
        if (count == MOST_REGIONS)
            return -E2BIG;
        list[count++] = m;
    }
    return count;
}

/* ---- runs of pages of one kind */

struct pieces {
    struct writer *w;
    const struct mapping *m;
    bool look; /* pages of zeros are nothing */
    take_run *each;
    struct run run;
};

static void end_run(struct pieces *p)
{
    if (p->run.kind != NOTHING)
        p->each(p->w, p->m, p->run.kind, p->run.from, p->run.to);
}

static void join_piece(struct pieces *p, unsigned long from, unsigned long to, enum kind kind)
{
    if (kind == p->run.kind && from == p->run.to) {
        p->run.to = to;
        return;
    }
    end_run(p);
    p->run = (struct run){from, to, kind};
}

/* Pieces come in ascending order; between them is nothing. */
static void add_piece(struct pieces *p, unsigned long from, unsigned long to, enum kind kind)
{
    if (!p->look || kind != DATA)
        join_piece(p, from, to, kind);
    else
        for (; from < to; from += PAGE)
            join_piece(p, from, from + PAGE, digest_is_zero((void *)from) ? NOTHING : DATA);
}

/* Pages that are as they were when the base was written. */
static void add_unchanged(struct pieces *p, unsigned long from, unsigned long to) REQUIRES(one_thread);
static void add_unchanged(struct pieces *p, unsigned long from, unsigned long to)
{
    while (from < to) {
        unsigned long end;
        uint64_t offset;
        bool placed = dirty_base_place(from, &end, &offset);
        if (end > to)
            end = to;
        add_piece(p, from, end, placed ? SAME : NOTHING);
        from = end;
    }
}

/* As the kernel's page table has it. False: from *AT on it must be asked in another way. */
static bool add_scanned(struct pieces *p, unsigned long *at) REQUIRES(one_thread);
static bool add_scanned(struct pieces *p, unsigned long *at)
{
    const struct mapping *m = p->m;
    enum kind untouched = m->inode ? DATA : NOTHING; /* it has its file's content */
    struct page_run *list = (struct page_run *)p->w->pagemap;
    while (*at < m->to) {
        unsigned long next;
        long count = dirty_scan(*at, m->to, p->w->increment, list, PAGEMAP_ENTRIES * sizeof *p->w->pagemap / sizeof *list, &next);
        bool good = count >= 0 && next > *at && next <= m->to;
        for (long i = 0; i < count && good; i++) {
            good = list[i].from >= *at && list[i].to > list[i].from && list[i].to <= next;
            if (!good)
                break;
            add_piece(p, *at, list[i].from, untouched);
            if (p->w->increment && !m->shared && !dirty_is_written(&list[i]))
                add_unchanged(p, list[i].from, list[i].to);
            else
                add_piece(p, list[i].from, list[i].to, DATA);
            *at = list[i].to;
        }
        if (!good) {
            p->w->cannot_scan = true;
            return false;
        }
        add_piece(p, *at, next, untouched);
        *at = next;
    }
    return true;
}

/* The same from a number for each page, without knowing what changed. */
static void add_listed(struct pieces *p, unsigned long at)
{
    const struct mapping *m = p->m;
    uint64_t *entry = p->w->pagemap;
    while (at < m->to) {
        size_t pages = (m->to - at) / PAGE;
        if (pages > PAGEMAP_ENTRIES)
            pages = PAGEMAP_ENTRIES;
        if (SYSTEM(__NR_pread64, PAGEMAP_FD, entry, pages * sizeof *entry, at / PAGE * sizeof *entry) != (long)(pages * sizeof *entry)) {
            p->w->failed = -EIO;
            return;
        }
        for (size_t i = 0; i < pages; i++, at += PAGE)
            add_piece(p, at, at + PAGE, m->inode || entry[i] >> PRESENT_OR_SWAPPED ? DATA : NOTHING); /* there, or in a file */
    }
}

static bool is_programs(const struct mapping *m)
{
    return m->to <= THREAD_PLACE;
}

/* What was found in M when its place was given out. */
static void add_known(struct pieces *p)
{
    const struct run *runs = p->w->runs;
    size_t low = 0, high = p->w->run_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (runs[middle].to <= p->m->from)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < p->w->run_count && runs[low].from < p->m->to; low++) {
        unsigned long from = runs[low].from > p->m->from ? runs[low].from : p->m->from;
        unsigned long to = runs[low].to < p->m->to ? runs[low].to : p->m->to;
        add_piece(p, from, to, runs[low].kind);
    }
}

static void look_through(struct writer *w, const struct mapping *m, bool look, take_run *each) REQUIRES(one_thread);
static void look_through(struct writer *w, const struct mapping *m, bool look, take_run *each)
{
    struct pieces pieces = {w, m, look, each, {m->from, m->from, NOTHING}};
    unsigned long at = m->from;
    if (look && is_programs(m) && !w->too_many)
        add_known(&pieces);
    else if (w->cannot_scan || !add_scanned(&pieces, &at))
        add_listed(&pieces, at);
    end_run(&pieces);
}

/* Calls EACH for every run of pages of one kind in M that is to be written. */
void each_run(struct writer *w, const struct mapping *m, take_run *each)
{
    look_through(w, m, true, each);
}

/* ---- where it goes */

static struct {
    unsigned long first, last;
} extent GUARDED_BY(one_thread);

UNCHECKED_LOCKS static void measure_run(struct writer *w, const struct mapping *m, enum kind kind, unsigned long from, unsigned long to)
{
    if (!extent.last)
        extent.first = from;
    extent.last = to;
    if (!is_programs(m))
        return;
    w->too_many |= w->run_count == MOST_RUNS;
    if (!w->too_many)
        w->runs[w->run_count++] = (struct run){from, to, kind};
}

bool is_runtimes(const struct mapping *m)
{
    return m->from >= RUNTIME_PLACE;
}

static bool add_late(unsigned long from, unsigned long to, const struct mapping *m, uint64_t offset, bool in_image) REQUIRES(one_thread);
static bool add_late(unsigned long from, unsigned long to, const struct mapping *m, uint64_t offset, bool in_image)
{
    if (from == to)
        return true;
    if (late_count == COUNT(late))
        return false;
    late[late_count++] = (struct region){from, to, offset, m->protection, in_image};
    return true;
}

static void add_segment(struct plan *plan, const struct mapping *m, unsigned long from, unsigned long to)
{
    plan->segments[plan->count++] = (struct elf64_phdr){
        .p_type = PT_LOAD,
        .p_flags = (m->protection & PROT_READ ? PF_R : 0u) | (m->protection & PROT_WRITE ? PF_W : 0u) |
                   (m->protection & PROT_EXEC ? PF_X : 0u),
        .p_offset = plan->end, .p_vaddr = from, .p_paddr = from, .p_filesz = to - from,
        .p_memsz = to - from, .p_align = PAGE};
}

/* Decides where M goes. */
long plan_mapping(struct writer *w, struct plan *plan, const struct mapping *m)
{
    extent.first = extent.last = 0;
    if (is_runtimes(m))
        extent.first = m->from, extent.last = m->to;
    else if (!m->shared || !shared_memory_elsewhere(m->from))
        look_through(w, m, false, measure_run);
    if (!extent.last)
        return add_late(m->from, m->to, m, 0, false) ? 0 : -E2BIG;
    bool room = is_runtimes(m) || plan->count + plan->reserved < MOST_SEGMENTS - SEGMENTS_KEPT_BACK;
    if (!add_late(m->from, extent.first, m, 0, false) || !add_late(extent.last, m->to, m, 0, false) ||
        (!room && !add_late(extent.first, extent.last, m, plan->end, true)))
        return -E2BIG;
    if (room)
        add_segment(plan, m, extent.first, extent.last);
    plan->end += extent.last - extent.first;
    return 0;
}
