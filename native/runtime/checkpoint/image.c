/* Writing an image: its regions, what is in the base, the note for people, the header. */
#include "image.h"

#include "runtime/cpu.h"
#include "runtime/memory/dirty.h"
#include "runtime/process/process.h"
#include "runtime/text.h"

#define NOTE_NAME "CONDOR"
enum { NOTE_NAME_ROOM = 8, NOTE_HEAD = 64 /* before the words, at most */, FRAME_WORDS = 80 /* that tell of a frame */ };

static void put_file(struct writer *w, const void *from, size_t size, uint64_t offset)
{
    const uint8_t *at = from;
    while (size && !w->failed) {
        size_t piece = size > LARGEST_WRITE ? LARGEST_WRITE : size;
        long put = SYSTEM(__NR_pwrite64, PASSED_FD, at, piece, offset);
        if (put == -EINTR)
            continue;
        if (put <= 0) {
            w->failed = put ? put : -EIO;
            return;
        }
        at += put;
        offset += (uint64_t)put;
        size -= (size_t)put;
    }
}

/* Pages FROM.. of the image, at OFFSET. */
static void put_pages(struct writer *w, const uint8_t *from, size_t size, uint64_t offset)
{
    for (size_t at = 0; at < size; at += PAGE)
        w->digest += digest_page((const uint64_t *)(from + at), offset + at);
    put_file(w, from, size, offset);
}

static void put_same(struct writer *w, unsigned long from, unsigned long to, uint64_t offset) REQUIRES(one_thread);
static void put_same(struct writer *w, unsigned long from, unsigned long to, uint64_t offset)
{
    while (from < to) {
        unsigned long end = to;
        uint64_t base_offset = 0;
        dirty_base_place(from, &end, &base_offset);
        if (end > to)
            end = to;
        if (w->same_count == MOST_SAME) {
            w->failed = -E2BIG;
            return;
        }
        w->same[w->same_count++] = (struct same){offset, base_offset, end - from};
        offset += end - from;
        from = end;
    }
}

/* The runtime's own memory changes while it is written: a copy of it does not. */
static void write_run(struct writer *w, const struct mapping *m, enum kind kind, unsigned long from, unsigned long to) REQUIRES(one_thread);
static void write_run(struct writer *w, const struct mapping *m, enum kind kind, unsigned long from, unsigned long to)
{
    uint64_t offset = w->offset + (from - m->from);
    if (kind == SAME) {
        put_same(w, from, to, offset);
    } else if (m->from < THREAD_PLACE) {
        while (from < to) { /* a piece that is still in the cache when it is written */
            size_t piece = to - from < LARGEST_WRITE ? to - from : LARGEST_WRITE;
            put_pages(w, (void *)from, piece, offset);
            from += piece;
            offset += piece;
        }
    } else {
        while (from < to) {
            size_t piece = to - from < BOUNCE_BYTES ? to - from : BOUNCE_BYTES;
            memcpy(w->bounce, (void *)from, piece);
            for (size_t at = 0; at < piece; at += PAGE)
                if (!digest_is_zero((uint64_t *)(w->bounce + at)))
                    put_pages(w, w->bounce + at, PAGE, offset + at);
            from += piece;
            offset += piece;
        }
    }
}

/* Unreadable memory is readable while it is looked at. */
static void write_mapping(struct writer *w, const struct mapping *m, unsigned long from, unsigned long to,
                          uint64_t offset) REQUIRES(one_thread);
static void write_mapping(struct writer *w, const struct mapping *m, unsigned long from, unsigned long to,
                          uint64_t offset)
{
    struct mapping part = *m;
    part.from = from;
    part.to = to;
    w->offset = offset;
    if (!(m->protection & PROT_READ))
        SYSTEM(__NR_mprotect, m->from, m->to - m->from, PROT_READ);
    each_run(w, &part, write_run);
    if (!w->increment)
        dirty_note_place(from, to, offset);
    if (!(m->protection & PROT_READ))
        SYSTEM(__NR_mprotect, m->from, m->to - m->from, m->protection);
}

/* Where each thread was: its number, its signal frame, its thread pointer. As many as fit. */
static void put_frames(struct text *text)
{
    put(text, "\nframes=");
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot) && text->room - text->used > FRAME_WORDS; slot++) {
        const struct thread *t = thread_at(slot);
        if (t->state != THREAD_PARKED)
            continue;
        put_number(text, (unsigned long)t->virtual_id, 16);
        put(text, ":");
        put_number(text, (unsigned long)t->frame, 16);
        put(text, ":");
        put_number(text, t->fs_base, 16);
        put(text, " ");
    }
}

/* The shadow's own number of this image, in its description of the open files. */
uint64_t image_generation(void)
{
    uint64_t generation;
    memcpy(&generation, files + GENERATION_AT, sizeof generation);
    return generation;
}

/* Keys and values for people and tools that look at the file; nothing of it is needed to run it. */
static size_t make_note(const struct writer *w, char *room, uint64_t bytes) REQUIRES(one_thread);
static size_t make_note(const struct writer *w, char *room, uint64_t bytes)
{
    struct text text = {room, 0, NOTE_BYTES - NOTE_HEAD};
    struct __kernel_timespec now;
    SYSTEM(__NR_clock_gettime, CLOCK_REALTIME, &now);
    put(&text, "program=");
    put(&text, process.program);
    put(&text, "\npid=");
    put_signed(&text, process.start.virtual_pid);
    put(&text, "\nthreads=");
    put_number(&text, threads_live, 10);
    put(&text, "\nprocesses=");
    put_number(&text, w->processes, 10);
    put(&text, "\nwritten=");
    put_signed(&text, now.tv_sec);
    put(&text, "\nbytes=");
    put_number(&text, bytes, 10);
    put(&text, "\ngeneration=");
    put_number(&text, image_generation(), 16);
    if (w->increment) {
        put(&text, "\nbase=");
        put_number(&text, base_generation, 16);
        put(&text, "\nsame_at=");
        put_number(&text, bytes, 10);
        put(&text, "\nsame_count=");
        put_number(&text, w->same_count, 10);
    }
    put(&text, "\nfiles_at=");
    put_number(&text, (unsigned long)files, 10);
    put(&text, "\nfiles_size=");
    put_number(&text, files_size, 10);
    put(&text, "\nlate_at="); /* regions that have no header: how checkpoint.h describes them */
    put_number(&text, (unsigned long)late, 10);
    put(&text, "\nlate_count=");
    put_number(&text, late_count, 10);
    put(&text, "\nprotocol=");
    put_number(&text, PROTOCOL_VERSION, 10);
    put(&text, "\ncpu=x86-64-v");
    put_number(&text, (unsigned long)process.cpu_level, 10);
    put(&text, "\nstate=");
    put_number(&text, cpu_state(), 16);
    put(&text, "\nauxv=");
    put_number(&text, process.auxiliary_at, 16);
    put(&text, ":");
    put_number(&text, process.auxiliary_size, 16);
    put_frames(&text);
    put(&text, "\n");
    return text.used;
}

/* Everything that stands before the regions, and its digest with that of all pages. */
static void write_header(struct writer *w, struct plan *plan) REQUIRES(one_thread);
static void write_header(struct writer *w, struct plan *plan)
{
    uint8_t *room = w->header;
    struct elf64_note *note = (void *)(room + NOTE_AT);
    size_t size = make_note(w, (char *)note + sizeof *note + NOTE_NAME_ROOM, w->end);
    *note = (struct elf64_note){.n_namesz = sizeof NOTE_NAME, .n_descsz = (uint32_t)size, .n_type = 1};
    memcpy((char *)note + sizeof *note, NOTE_NAME, sizeof NOTE_NAME);
    plan->segments[plan->count++] = (struct elf64_phdr){
        .p_type = PT_NOTE, .p_flags = PF_R, .p_offset = w->base + NOTE_AT, .p_filesz = sizeof *note + NOTE_NAME_ROOM + size, .p_align = 4};
    plan->segments[plan->count++] = (struct elf64_phdr){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W};
    extern void runtime_entry(void);
    struct elf64_hdr head = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
        .e_entry = (unsigned long)runtime_entry, .e_phoff = sizeof head, .e_ehsize = sizeof head,
        .e_phentsize = sizeof(struct elf64_phdr), .e_phnum = (uint16_t)plan->count};
    memcpy(room, &head, sizeof head);
    memcpy(room + sizeof head, plan->segments, plan->count * sizeof *plan->segments);
    for (size_t at = 0; at < HEADER_BYTES; at += PAGE)
        if (!digest_is_zero((uint64_t *)(room + at)))
            w->digest += digest_page((uint64_t *)(room + at), w->base + at);
    const uint64_t seal[2] = {DIGEST_MAGIC, w->digest};
    if (!w->base)
        memcpy(room + DIGEST_AT, seal, sizeof seal);
    put_file(w, room, HEADER_BYTES, w->base);
}

/* What is to be found in the base stands behind the regions. */
static void write_same(struct writer *w, uint64_t offset)
{
    size_t size = page_up(w->same_count * sizeof *w->same);
    for (size_t at = 0; at < size; at += PAGE)
        if (!digest_is_zero((uint64_t *)((uint8_t *)w->same + at)))
            put_pages(w, (uint8_t *)w->same + at, PAGE, offset + at);
}

/* The program's memory first, the runtime's last: its data holds the list of what is where. */
static long write_segments(struct writer *w, struct plan *plan, const struct mapping *list, long count) REQUIRES(one_thread);
static long write_segments(struct writer *w, struct plan *plan, const struct mapping *list, long count)
{
    size_t segment = 0, entry = 0;
    for (int round = 0; round < 2; round++)
        for (long i = 0; i < count && !w->failed; i++) {
            const struct mapping *m = &list[i];
            if (is_runtimes(m) != (round == 1))
                continue;
            while (segment < plan->count && plan->segments[segment].p_vaddr < m->from)
                segment++;
            if (segment < plan->count && plan->segments[segment].p_vaddr < m->to) {
                const struct elf64_phdr *p = &plan->segments[segment];
                write_mapping(w, m, p->p_vaddr, p->p_vaddr + p->p_filesz, p->p_offset);
            }
        }
    for (; entry < late_count && !w->failed; entry++)
        if (late[entry].in_image) {
            struct mapping m = {.from = late[entry].from, .to = late[entry].to, .inode = 1,
                                .protection = late[entry].protection};
            write_mapping(w, &m, m.from, m.to, late[entry].offset);
        }
    return w->failed;
}

struct image_room *image_room(bool increment)
{
    long at = SYSTEM(__NR_mmap, 0, sizeof(struct image_room), PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0);
    struct image_room *m = is_error(at) ? NULL : (struct image_room *)at; /* beyond what an image covers */
    if (m)
        m->writer = (struct writer){.increment = increment, .pagemap = m->pagemap, .same = m->same, .runs = m->runs,
                                    .bounce = m->bounce, .header = m->header, .processes = 1};
    return m;
}

/* What goes where. FAMILY: the thread that asks home what others write; NULL: there are none. */
long plan_image(struct image_room *m, struct thread *family, long *mappings)
{
    long count = read_mappings(m->room, m->list), failed = 0;
    if (count < 0)
        return count;
    *mappings = count;
    m->plan.count = 0;
    m->plan.end = HEADER_BYTES;
    late_count = 0;
    if (!m->writer.increment)
        dirty_forget();
    for (long i = 0; i < count; i++)
        m->plan.reserved += is_runtimes(&m->list[i]);
    failed = shared_memory_note(m, family, count);
    for (long i = 0; i < count && !failed; i++)
        failed = plan_mapping(&m->writer, &m->plan, &m->list[i]);
    m->writer.end = m->plan.end;
    return failed ? failed : m->writer.failed;
}

/* The part begins at BASE, it has turned out. */
void move_plan(struct image_room *m, uint64_t base)
{
    for (size_t i = 0; i < m->plan.count; i++)
        m->plan.segments[i].p_offset += base;
    for (size_t i = 0; i < late_count; i++)
        if (late[i].in_image)
            late[i].offset += base;
    m->writer.base = base;
    m->writer.end = m->plan.end += base;
}

long write_part(struct image_room *m, long mappings)
{
    struct writer *w = &m->writer;
    is_image = true;
    long failed = write_segments(w, &m->plan, m->list, mappings);
    is_image = false;
    if (failed)
        return failed;
    if (w->increment)
        write_same(w, m->plan.end);
    w->offset = m->plan.end + (w->increment ? page_up(w->same_count * sizeof *w->same) : 0);
    if (w->base) /* the first process finishes the file, and writes its own header last */
        write_header(w, &m->plan);
    return w->failed;
}

/* The table of a family's members behind all parts, whose digest is DIGEST. */
long write_table(struct image_room *m, size_t size, uint64_t offset, uint64_t digest, uint32_t processes)
{
    struct writer *w = &m->writer;
    const uint64_t where[] = {FAMILY_MAGIC, offset};
    size_t whole = page_up(size);
    memset(m->table + size, 0, whole - size);
    w->digest += digest;
    for (size_t at = 0; at < whole; at += PAGE)
        if (!digest_is_zero((uint64_t *)(m->table + at)))
            put_pages(w, m->table + at, PAGE, offset + at);
    memcpy(m->header + FAMILY_AT, where, sizeof where);
    w->processes = processes;
    w->offset = w->end = offset + whole;
    return w->failed;
}

long finish_image(struct image_room *m)
{
    struct writer *w = &m->writer;
    write_header(w, &m->plan);
    return SYSTEM(__NR_ftruncate, PASSED_FD, w->offset) < 0 ? -EIO : w->failed;
}
