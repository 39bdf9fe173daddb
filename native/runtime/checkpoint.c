/* A checkpoint: the whole program as an executable file.
 *
 * The thread that takes the signal coordinates.  It parks all others in their own signal handlers, asks
 * the shadow to describe the open files and to hand over a new file, and writes every page that is not
 * zero.  The file is an ELF executable: one PT_LOAD per region that has data, the runtime's own text and
 * data among them; what the kernel cannot or need not map itself is listed in the runtime's data.  Since
 * the data says that it is an image, the runtime's entry goes to restart.c when the file is executed.
 */
#include "runtime.h"

#include <linux/elf.h>

#include "../image_digest.h"

enum {
    MOST_SEGMENTS = 1100, HEADER_BYTES = 0x12000, NOTE_AT = 0x11000, NOTE_BYTES = 0x1000,
    MAPS_ROOM = 8 << 20, MOST_SAME = 1 << 20, BOUNCE_BYTES = 64 << 10, GENERATION_AT = 24, MOST_REGIONS = 60000, PAGEMAP_ENTRIES = 4096, LARGEST_WRITE = 4 << 20,
    READ = 1, WRITE = 2, EXECUTE = 4, SIGNALLED_BY_THREAD = -6,
};

volatile bool is_image;
struct region late[4096];
size_t late_count;
struct region shared_memory[256];
size_t shared_count;
uint8_t files[4 << 20];
size_t files_size;
int coordinator_slot;

/* A mapping as /proc/self/maps shows it. */
struct mapping {
    unsigned long from, to, offset, inode;
    int protection;
    bool shared;
};

/* ---- what there is */

static void *scratch_memory(size_t size) /* where the kernel likes: beyond what an image covers */
{
    long at = SYSTEM(__NR_mmap, 0, size, READ | WRITE, 0x4022, -1, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

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

static long read_mappings(char *room, struct mapping *list)
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

/* ---- writing */

/* Pages that are as they were in the base: where they are to be, where they are there. */
struct same {
    uint64_t offset, base_offset, size;
};

struct writer {
    uint64_t offset; /* of the region being written */
    uint64_t digest;
    long failed;
    bool increment;    /* only what changed since the base */
    uint64_t *pagemap; /* PAGEMAP_ENTRIES */
    uint8_t *bounce;   /* BOUNCE_BYTES */
    uint8_t *header;   /* HEADER_BYTES */
    struct same *same; /* MOST_SAME */
    size_t same_count;
};

static void put_file(struct writer *w, const void *from, size_t size, uint64_t offset)
{
    const uint8_t *at = from;
    while (size && !w->failed) {
        size_t piece = size > LARGEST_WRITE ? LARGEST_WRITE : size;
        long put = SYSTEM(__NR_pwrite64, GIFT_FD, at, piece, offset);
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

enum kind { NOTHING, SAME, DATA };

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

typedef void each(struct writer *w, const struct mapping *m, enum kind kind, unsigned long from, unsigned long to);

/* Calls EACH for every run of pages of one kind in M. LOOK: pages of zeros are nothing. */
static void each_run(struct writer *w, const struct mapping *m, bool look, each *each)
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

/* Pages FROM.. of the image, at OFFSET. */
static void put_pages(struct writer *w, const uint8_t *from, size_t size, uint64_t offset)
{
    for (size_t at = 0; at < size; at += PAGE)
        w->digest += digest_page((const uint64_t *)(from + at), offset + at);
    put_file(w, from, size, offset);
}

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

static bool is_runtimes(const struct mapping *m)
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

struct plan {
    struct elf64_phdr segments[MOST_SEGMENTS];
    size_t count;
    uint64_t end; /* of the file so far */
    size_t reserved; /* segments the runtime itself needs */
};

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
static long plan_mapping(struct writer *w, struct plan *plan, const struct mapping *m)
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

/* Unreadable memory is readable while it is looked at. */
static void write_mapping(struct writer *w, const struct mapping *m, unsigned long from, unsigned long to,
                          uint64_t offset)
{
    struct mapping part = *m;
    part.from = from;
    part.to = to;
    w->offset = offset;
    if (!(m->protection & READ))
        SYSTEM(__NR_mprotect, m->from, m->to - m->from, READ);
    each_run(w, &part, true, write_run);
    if (!w->increment)
        dirty_note_place(from, to, offset);
    if (!(m->protection & READ))
        SYSTEM(__NR_mprotect, m->from, m->to - m->from, m->protection);
}

/* Where each thread was: its number, its signal frame, its thread pointer. As many as fit. */
static void put_frames(struct text *text)
{
    put(text, "\nframes=");
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot) && text->room - text->used > 80; slot++) {
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
static uint64_t image_generation(void)
{
    uint64_t generation;
    memcpy(&generation, files + GENERATION_AT, sizeof generation);
    return generation;
}

/* Keys and values for whoever looks at the file; nothing of it is needed to run it. */
static size_t make_note(const struct writer *w, char *room, uint64_t bytes)
{
    struct text text = {room, 0, NOTE_BYTES - 64};
    struct __kernel_timespec now;
    SYSTEM(__NR_clock_gettime, 0, &now);
    put(&text, "program=");
    put(&text, process.program);
    put(&text, "\npid=");
    put_signed(&text, process.start.virtual_pid);
    put(&text, "\nthreads=");
    put_number(&text, threads_live, 10);
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
static void write_header(struct writer *w, struct plan *plan)
{
    uint8_t *room = w->header;
    struct elf64_note *note = (void *)(room + NOTE_AT);
    size_t size = make_note(w, (char *)note + sizeof *note + 8, plan->end);
    *note = (struct elf64_note){.n_namesz = 7, .n_descsz = (uint32_t)size, .n_type = 1};
    memcpy((char *)note + sizeof *note, "CONDOR", 7);
    plan->segments[plan->count++] = (struct elf64_phdr){
        .p_type = PT_NOTE, .p_flags = PF_R, .p_offset = NOTE_AT, .p_filesz = sizeof *note + 8 + size, .p_align = 4};
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
            w->digest += digest_page((uint64_t *)(room + at), at);
    const uint64_t seal[2] = {DIGEST_MAGIC, w->digest};
    memcpy(room + DIGEST_AT, seal, sizeof seal);
    put_file(w, room, HEADER_BYTES, 0);
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

static long write_image(struct writer *w, struct plan *plan, struct mapping *list, char *room, long *mappings)
{
    long count = read_mappings(room, list), failed = 0;
    if (count < 0)
        return count;
    *mappings = count;
    plan->count = 0;
    plan->end = HEADER_BYTES;
    late_count = shared_count = 0;
    if (!w->increment)
        dirty_forget();
    for (long i = 0; i < count; i++) {
        plan->reserved += is_runtimes(&list[i]);
        if (list[i].shared && shared_count < COUNT(shared_memory))
            shared_memory[shared_count++] =
                (struct region){list[i].from, list[i].to, 0, list[i].protection, false};
    }
    for (long i = 0; i < count && !failed; i++)
        failed = plan_mapping(w, plan, &list[i]);
    if (failed || w->failed)
        return failed ? failed : w->failed;
    is_image = true;
    failed = write_segments(w, plan, list, count);
    is_image = false;
    if (failed)
        return failed;
    if (w->increment)
        write_same(w, plan->end);
    write_header(w, plan);
    w->offset = plan->end + (w->increment ? page_up(w->same_count * sizeof *w->same) : 0);
    return SYSTEM(__NR_ftruncate, GIFT_FD, w->offset) < 0 ? -EIO : w->failed;
}

/* From now on pages tell whether they changed. */
static void protect_all(const struct mapping *list, long count)
{
    for (long i = 0; i < count; i++) {
        const struct mapping *m = &list[i];
        if (m->to <= THREAD_PLACE && !m->shared && (m->protection & WRITE))
            dirty_protect(m->from, m->to);
    }
    dirty_begin(image_generation());
}

static long describe_files(struct thread *self)
{
    struct request request = {.call = OP_DESCRIBE, .arguments = {sizeof files}};
    struct vector out = {files, sizeof files};
    long size = ask(self, &request, NULL, 0, &out, 1, NULL);
    files_size = size < 0 ? 0 : (size_t)size;
    return size < 0 ? size : 0;
}

/* A child that has ended and was not waited for is the kernel's to remember, and would be lost. */
static bool has_children(void)
{
    enum { ANYBODY = 0, NO_HANG = 1, ENDED = 4, KEEP = 0x01000000 };
    struct siginfo info;
    return SYSTEM(__NR_waitid, ANYBODY, 0, &info, NO_HANG | ENDED | KEEP, 0) != -ECHILD;
}

static long write_checkpoint(struct thread *self)
{
    struct memory {
        struct writer writer;
        struct plan plan;
        uint64_t pagemap[PAGEMAP_ENTRIES];
        uint8_t bounce[BOUNCE_BYTES], header[HEADER_BYTES];
        struct mapping list[MOST_REGIONS];
        char room[MAPS_ROOM];
        struct same same[MOST_SAME];
    } *memory;
    long failed = describe_files(self), count = 0;
    if (failed)
        return failed;
    struct request begin = {.call = OP_IMAGE_BEGIN, .arguments = {(int64_t)base_generation}};
    failed = ask(self, &begin, NULL, 0, NULL, 0, NULL);
    if (failed < 0)
        return failed;
    memory = scratch_memory(sizeof *memory);
    if (has_children()) {
        failed = -EAGAIN;
    } else if (memory) {
        memory->writer = (struct writer){.increment = failed == 1, .pagemap = memory->pagemap, .same = memory->same,
                                         .bounce = memory->bounce, .header = memory->header};
        failed = write_image(&memory->writer, &memory->plan, memory->list, memory->room, &count);
    } else {
        failed = -ENOMEM;
    }
    struct request end = {.call = OP_IMAGE_END,
                          .arguments = {!failed, failed ? -failed : (int64_t)memory->writer.offset}};
    SYSTEM(__NR_close, GIFT_FD);
    long told = ask(self, &end, NULL, 0, NULL, 0, NULL);
    if (told == 1)
        die(EXIT_MOVED); /* the program goes on elsewhere: it must not do another step here */
    if (failed || told < 0)
        dirty_forget();
    else if (!memory->writer.increment)
        protect_all(memory->list, count);
    if (memory)
        SYSTEM(__NR_munmap, memory, sizeof *memory);
    return failed;
}

void take_checkpoint(struct thread *self, struct ucontext *frame, struct siginfo *info)
{
    uint32_t phase = __atomic_load_n(&checkpoint_phase, __ATOMIC_ACQUIRE);
    if (phase & 1) {
        park(self, frame, phase);
        return;
    }
    if (info->si_code == SIGNALLED_BY_THREAD && info->_sifields._kill._pid == process.real_id)
        return; /* asked to park for a checkpoint that is over */
    if (!__atomic_compare_exchange_n(&checkpoint_phase, &phase, phase + 1, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        if (phase & 1)
            park(self, frame, phase);
        return;
    }
    save_thread(self, frame);
    park_others(self, phase + 1);
    plan_end();
    write_shared_back(self);
    save_timers();
    coordinator_slot = self->slot;
    self->state = THREAD_PARKED;
    write_checkpoint(self);
    release_others(phase);
}
