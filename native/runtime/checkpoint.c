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

enum {
    MOST_SEGMENTS = 1100, HEADER_BYTES = 0x12000, NOTE_AT = 0x11000, NOTE_BYTES = 0x1000,
    MAPS_ROOM = 8 << 20, MOST_REGIONS = 60000, PAGEMAP_ENTRIES = 4096, LARGEST_WRITE = 4 << 20,
    READ = 1, WRITE = 2, EXECUTE = 4, GET_FS = 0x1003, GET_GS = 0x1004, SIGNALLED_BY_THREAD = -6,
};

volatile bool is_image;
struct region late[4096];
size_t late_count;
struct region shared_memory[256];
size_t shared_count;
uint8_t files[4 << 20];
size_t files_size;
int coordinator_slot;
volatile uint32_t checkpoint_phase; /* even: none; odd: the number of the one that is being taken */
static volatile uint32_t parked_count;

/* A mapping as /proc/self/maps shows it. */
struct mapping {
    unsigned long from, to, offset, inode;
    int protection;
    bool shared;
};

/* ---- parking */

static void save_thread(struct thread *self, struct ucontext *frame)
{
    self->frame = frame;
    SYSTEM(__NR_arch_prctl, GET_FS, &self->fs_base);
    SYSTEM(__NR_arch_prctl, GET_GS, &self->gs_base);
    SYSTEM(__NR_rt_sigpending, &self->pending, 8);
}

static void park(struct thread *self, struct ucontext *frame, uint32_t phase)
{
    save_thread(self, frame);
    __atomic_store_n(&self->state, THREAD_PARKED, __ATOMIC_RELEASE);
    __atomic_add_fetch(&parked_count, 1, __ATOMIC_RELEASE);
    wake_all(&parked_count);
    while (__atomic_load_n(&checkpoint_phase, __ATOMIC_ACQUIRE) == phase)
        wait_while(&checkpoint_phase, phase);
}

/* The coordinator says that threads live again, not they themselves: one that has not woken yet must not look
 * parked to the next checkpoint. */
static void release_others(uint32_t phase)
{
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++)
        if (thread_at(slot)->state == THREAD_PARKED)
            thread_at(slot)->state = THREAD_LIVE;
    __atomic_store_n(&checkpoint_phase, phase + 2, __ATOMIC_RELEASE);
    wake_all(&checkpoint_phase);
}

/* One look at all threads. Returns whether all are parked. */
static bool all_parked(struct thread *self, uint32_t phase)
{
    bool all = true;
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++) {
        struct thread *t = thread_at(slot);
        uint32_t state = __atomic_load_n(&t->state, __ATOMIC_ACQUIRE);
        if (t == self || state == THREAD_FREE || state == THREAD_PARKED)
            continue;
        all = false;
        if (state == THREAD_LIVE && t->asked_to_park != phase) {
            t->asked_to_park = phase;
            SYSTEM(__NR_tgkill, process.real_id, t->real_id, CHECKPOINT_SIGNAL);
        }
    }
    return all;
}

static void park_others(struct thread *self, uint32_t phase)
{
    const struct __kernel_timespec moment = {0, 1000000};
    for (;;) {
        uint32_t seen = __atomic_load_n(&parked_count, __ATOMIC_ACQUIRE);
        if (all_parked(self, phase))
            return;
        /* Threads come and go meanwhile without telling: look again after a moment. */
        SYSTEM(__NR_futex, &parked_count, 128 /* FUTEX_WAIT_PRIVATE */, seen, &moment);
    }
}

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

struct writer {
    uint64_t offset; /* of the region being written */
    uint64_t written;
    long failed;
    uint64_t *pagemap; /* PAGEMAP_ENTRIES */
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
        w->written += (uint64_t)put;
    }
}

static bool is_zero(const uint64_t *page)
{
    for (size_t i = 0; i < PAGE / 8; i += 4)
        if (page[i] | page[i + 1] | page[i + 2] | page[i + 3])
            return false;
    return true;
}

/* Whether the page can hold anything: it was touched, or a file is behind it. */
static bool may_hold_data(uint64_t entry, bool has_file)
{
    return has_file || (entry >> 62) != 0;
}

/* Calls EACH for every run of pages with data in M. */
static void each_run(struct writer *w, const struct mapping *m,
                     void (*each)(struct writer *w, const struct mapping *m, unsigned long from, unsigned long to))
{
    unsigned long run = 0;
    for (unsigned long at = m->from; at < m->to;) {
        size_t pages = (m->to - at) / PAGE;
        if (pages > PAGEMAP_ENTRIES)
            pages = PAGEMAP_ENTRIES;
        if (SYSTEM(__NR_pread64, PAGEMAP_FD, w->pagemap, pages * 8, at / PAGE * 8) != (long)(pages * 8)) {
            w->failed = -EIO;
            return;
        }
        for (size_t i = 0; i < pages; i++, at += PAGE) {
            bool data = may_hold_data(w->pagemap[i], m->inode != 0) && !is_zero((void *)at);
            if (data && !run)
                run = at;
            if (!data && run) {
                each(w, m, run, at);
                run = 0;
            }
        }
    }
    if (run)
        each(w, m, run, m->to);
}

static void write_run(struct writer *w, const struct mapping *m, unsigned long from, unsigned long to)
{
    put_file(w, (void *)from, to - from, w->offset + (from - m->from));
}

static struct { unsigned long first, last; } extent;

static void measure_run(struct writer *w, const struct mapping *m, unsigned long from, unsigned long to)
{
    (void)w;
    (void)m;
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

/* Decides where M goes. Unreadable memory is readable while it is looked at. */
static long plan_mapping(struct writer *w, struct plan *plan, const struct mapping *m)
{
    if (!(m->protection & READ))
        SYSTEM(__NR_mprotect, m->from, m->to - m->from, READ);
    extent.first = extent.last = 0;
    if (is_runtimes(m))
        extent.first = m->from, extent.last = m->to;
    else
        each_run(w, m, measure_run);
    if (!(m->protection & READ))
        SYSTEM(__NR_mprotect, m->from, m->to - m->from, m->protection);
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

static void write_mapping(struct writer *w, const struct mapping *m, unsigned long from, unsigned long to,
                          uint64_t offset)
{
    struct mapping part = *m;
    part.from = from;
    part.to = to;
    w->offset = offset;
    if (!(m->protection & READ))
        SYSTEM(__NR_mprotect, m->from, m->to - m->from, READ);
    each_run(w, &part, write_run);
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

/* Keys and values for whoever looks at the file; nothing of it is needed to run it. */
static size_t make_note(char *room, uint64_t bytes)
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

static void write_header(struct writer *w, struct plan *plan)
{
    char *room = (char *)w->pagemap;
    memset(room, 0, NOTE_BYTES);
    struct elf64_note *note = (void *)room;
    size_t size = make_note(room + sizeof *note + 8, plan->end);
    *note = (struct elf64_note){.n_namesz = 7, .n_descsz = (uint32_t)size, .n_type = 1};
    memcpy(room + sizeof *note, "CONDOR", 7);
    put_file(w, room, NOTE_BYTES, NOTE_AT);
    plan->segments[plan->count++] = (struct elf64_phdr){
        .p_type = PT_NOTE, .p_flags = PF_R, .p_offset = NOTE_AT, .p_filesz = sizeof *note + 8 + size, .p_align = 4};
    plan->segments[plan->count++] = (struct elf64_phdr){.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W};
    extern void runtime_entry(void);
    struct elf64_hdr head = {
        .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
        .e_entry = (unsigned long)runtime_entry, .e_phoff = sizeof head, .e_ehsize = sizeof head,
        .e_phentsize = sizeof(struct elf64_phdr), .e_phnum = (uint16_t)plan->count};
    put_file(w, plan->segments, plan->count * sizeof *plan->segments, sizeof head);
    put_file(w, &head, sizeof head, 0);
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

static long write_image(struct writer *w, struct plan *plan, struct mapping *list, char *room)
{
    long count = read_mappings(room, list), failed = 0;
    if (count < 0)
        return count;
    plan->count = 0;
    plan->end = HEADER_BYTES;
    late_count = shared_count = 0;
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
    if (SYSTEM(__NR_ftruncate, GIFT_FD, plan->end) < 0)
        return -EIO;
    is_image = true;
    failed = write_segments(w, plan, list, count);
    is_image = false;
    if (!failed)
        write_header(w, plan);
    return w->failed;
}

static long describe_files(struct thread *self)
{
    struct request request = {.call = OP_DESCRIBE, .arguments = {sizeof files}};
    struct vector out = {files, sizeof files};
    long size = ask(self, &request, NULL, 0, &out, 1, NULL);
    files_size = size < 0 ? 0 : (size_t)size;
    return size < 0 ? size : 0;
}

static long write_checkpoint(struct thread *self)
{
    struct memory {
        struct writer writer;
        struct plan plan;
        uint64_t pagemap[PAGEMAP_ENTRIES];
        struct mapping list[MOST_REGIONS];
        char room[MAPS_ROOM];
    } *memory;
    long failed = describe_files(self);
    if (failed)
        return failed;
    struct request begin = {.call = OP_IMAGE_BEGIN};
    failed = ask(self, &begin, NULL, 0, NULL, 0, NULL);
    if (failed)
        return failed;
    memory = scratch_memory(sizeof *memory);
    if (memory) {
        memory->writer.pagemap = memory->pagemap;
        failed = write_image(&memory->writer, &memory->plan, memory->list, memory->room);
    } else {
        failed = -ENOMEM;
    }
    struct request end = {.call = OP_IMAGE_END,
                          .arguments = {!failed, failed ? -failed : (int64_t)memory->plan.end}};
    SYSTEM(__NR_close, GIFT_FD);
    if (ask(self, &end, NULL, 0, NULL, 0, NULL) == 1)
        die(EXIT_MOVED); /* the program goes on elsewhere: it must not do another step here */
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
