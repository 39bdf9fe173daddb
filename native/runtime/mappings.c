/* What there is to be saved: the program's mappings, what of them has data, and where that goes in an image. */
#include "image.h"

static bool read_mapping(const char **line, struct mapping *m)
{
    const char *at = *line;
    m->from = read_number(&at, 16);
    at++;
    m->to = read_number(&at, 16);
    at++;
    m->protection = (at[0] == 'r' ? READ : 0) | (at[1] == 'w' ? WRITE : 0) | (at[2] == 'x' ? EXECUTE : 0);
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
        if (!read_mapping(&line, &m) || m.from >= KERNEL_PLACES)
            continue;
        if (count == MOST_REGIONS)
            return -E2BIG;
        list[count++] = m;
    }
    return count;
}

static enum kind kind_of(const struct writer *w, const struct mapping *m, uint64_t entry, unsigned long at)
{
    unsigned long to;
    uint64_t offset;
    if (!m->inode && !(entry >> 62)) /* never touched, and no file behind it */
        return NOTHING;
    if (w->increment && !m->shared && dirty_is_marked(entry))
        return dirty_base_place(at, &to, &offset) ? SAME : NOTHING;
    return DATA;
}

/* Calls EACH for every run of pages of one kind in M. LOOK: pages of zeros are nothing. */
void each_run(struct writer *w, const struct mapping *m, bool look, each *each)
{
    unsigned long run = m->from;
    enum kind before = NOTHING;
    for (unsigned long at = m->from; at < m->to;) {
        size_t pages = (m->to - at) / PAGE;
        if (pages > PAGEMAP_ENTRIES)
            pages = PAGEMAP_ENTRIES;
        if (SYSTEM(__NR_pread64, PAGEMAP_FD, w->pagemap, pages * 8, at / PAGE * 8) != (long)(pages * 8)) {
            w->failed = -EIO;
            return;
        }
        for (size_t i = 0; i < pages; i++, at += PAGE) {
            enum kind kind = kind_of(w, m, w->pagemap[i], at);
            if (kind == DATA && look && digest_is_zero((void *)at))
                kind = NOTHING;
            if (kind != before) {
                if (before != NOTHING)
                    each(w, m, before, run, at);
                run = at;
                before = kind;
            }
        }
    }
    if (before != NOTHING)
        each(w, m, before, run, m->to);
}

/* ---- where it goes */

static struct { unsigned long first, last; } extent;

static void measure_run(struct writer *w, const struct mapping *m, enum kind kind, unsigned long from, unsigned long to)
{
    (void)w;
    (void)m;
    (void)kind;
    if (!extent.last)
        extent.first = from;
    extent.last = to;
}

bool is_runtimes(const struct mapping *m)
{
    return m->from >= RUNTIME_PLACE;
}

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
        .p_flags = (m->protection & READ ? PF_R : 0u) | (m->protection & WRITE ? PF_W : 0u) |
                   (m->protection & EXECUTE ? PF_X : 0u),
        .p_offset = plan->end, .p_vaddr = from, .p_paddr = from, .p_filesz = to - from,
        .p_memsz = to - from, .p_align = PAGE};
}

/* Decides where M goes. */
long plan_mapping(struct writer *w, struct plan *plan, const struct mapping *m)
{
    extent.first = extent.last = 0;
    if (is_runtimes(m))
        extent.first = m->from, extent.last = m->to;
    else
        each_run(w, m, false, measure_run);
    if (!extent.last)
        return add_late(m->from, m->to, m, 0, false) ? 0 : -E2BIG;
    bool room = is_runtimes(m) || plan->count + plan->reserved < MOST_SEGMENTS - 8;
    if (!add_late(m->from, extent.first, m, 0, false) || !add_late(extent.last, m->to, m, 0, false) ||
        (!room && !add_late(extent.first, extent.last, m, plan->end, true)))
        return -E2BIG;
    if (room)
        add_segment(plan, m, extent.first, extent.last);
    plan->end += extent.last - extent.first;
    return 0;
}
