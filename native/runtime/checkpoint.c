/* A checkpoint: the whole program as an executable file.
 *
 * The thread that takes the signal coordinates.  It parks all others in their own signal handlers, asks
 * the shadow to describe the open files and to hand over a new file, and writes every page that is not
 * zero.  The file is an ELF executable: one PT_LOAD per region that has data, the runtime's own text and
 * data among them; what the kernel cannot or need not map itself is listed in the runtime's data.  Since
 * the data says that it is an image, the runtime's entry goes to restart.c when the file is executed.
 */
#include "image.h"

#include "channel.h"
#include "control.h"
#include "dirty.h"
#include "memory.h"
#include "park.h"
#include "plan.h"
#include "process.h"
#include "shared.h"
#include "text.h"
#include "time.h"
#include "trap.h"

volatile bool is_image GUARDED_BY(one_thread);
struct region late[MOST_LATE] GUARDED_BY(one_thread);
size_t late_count GUARDED_BY(one_thread);
struct region shared_memory[MOST_SHARED] GUARDED_BY(one_thread);
size_t shared_count GUARDED_BY(one_thread);
uint8_t files[MAX_BLOB] GUARDED_BY(one_thread);
size_t files_size GUARDED_BY(one_thread);

static void *scratch_memory(size_t size) /* where the kernel likes: beyond what an image covers */
{
    long at = SYSTEM(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0);
    return is_error(at) ? NULL : (void *)at;
}

/* From now on pages tell whether they changed; those that cannot be written now may become writable. */
static void protect_all(const struct mapping *list, long count) REQUIRES(one_thread);
static void protect_all(const struct mapping *list, long count)
{
    bool some = false;
    for (long i = 0; i < count; i++) {
        const struct mapping *m = &list[i];
        if (m->to <= THREAD_PLACE && !m->shared)
            some |= dirty_protect(m->from, m->to);
    }
    if (some)
        dirty_begin(image_generation());
}

static long describe_files(struct thread *self) REQUIRES(one_thread);
static long describe_files(struct thread *self)
{
    struct request request = {.call = OP_DESCRIBE, .arguments = {sizeof files}};
    struct vector out = {files, sizeof files};
    long size = ask(self, &request, NULL, 0, &out, 1, NULL);
    size_t before = files_size;
    files_size = size < 0 ? 0 : (size_t)size;
    if (before > files_size) /* what was longer once is not to be in every image from now on */
        memset(files + files_size, 0, before - files_size);
    return size < 0 ? size : 0;
}

/* A child that has ended and was not waited for is the kernel's to remember, and would be lost. */
static bool has_children(void)
{
    struct siginfo info;
    return SYSTEM(__NR_waitid, P_ALL, 0, &info, WNOHANG | WEXITED | WNOWAIT, 0) != -ECHILD;
}

static long write_checkpoint(struct thread *self) REQUIRES(one_thread);
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
        struct run runs[MOST_RUNS];
    } *memory;
    long failed = describe_files(self), count = 0;
    if (failed)
        return failed;
    struct request begin = {.call = OP_IMAGE_BEGIN, .arguments = {(int64_t)base_generation}};
    failed = ask(self, &begin, NULL, 0, NULL, 0, NULL);
    if (failed < 0) {
        tell_starter(CONTROL_REFUSED, -failed);
        return failed;
    }
    lock(&passed_fd_lock);
    long no_file = ask_starter(CONTROL_FILE, failed);
    memory = scratch_memory(sizeof *memory);
    if (no_file < 0) {
        failed = no_file;
    } else if (has_children()) {
        failed = -EAGAIN;
    } else if (memory) {
        memory->writer = (struct writer){.increment = failed == 1, .pagemap = memory->pagemap, .same = memory->same,
                                         .runs = memory->runs, .bounce = memory->bounce, .header = memory->header};
        failed = write_image(&memory->writer, &memory->plan, memory->list, memory->room, &count);
    } else {
        failed = -ENOMEM;
    }
    if (!no_file)
        SYSTEM(__NR_close, PASSED_FD);
    if (!failed)
        failed = ask_starter(CONTROL_WRITTEN, 0);
    else
        tell_starter(CONTROL_DROPPED, 0);
    unlock(&passed_fd_lock);
    struct request end = {.call = OP_IMAGE_END,
                          .arguments = {!failed, failed ? -failed : (int64_t)memory->writer.offset}};
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
    if (info->si_code == SI_TKILL && info->_sifields._kill._pid == process.real_id)
        return; /* asked to park for a checkpoint that is over */
    if (!__atomic_compare_exchange_n(&checkpoint_phase, &phase, phase + 1, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST)) {
        if (phase & 1)
            park(self, frame, phase);
        return;
    }
    if (must_leave()) { /* an exec was first: those that are parked are to go, too */
        release_others(phase);
        leave(self, 0);
    }
    save_thread(self, frame);
    park_others(self, phase + 1);
    no_other_thread_runs();
    plan_end();
    shared_write_all(self);
    save_timers();
    self->state = THREAD_PARKED;
    write_checkpoint(self);
    release_others(phase);
}
