/* A checkpoint: the whole program as an executable file.
 *
 * The thread that takes the signal coordinates.  It parks all others in their own signal handlers, asks
 * the shadow to describe the open files and to hand over a new file, and writes every page that is not
 * zero.  The file is an ELF executable: one PT_LOAD per region that has data, the runtime's own text and
 * data among them; what the kernel cannot or need not map itself is listed in the runtime's data.  Since
 * the data says that it is an image, the runtime's entry goes to restart.c when the file is executed.
 */
#include "image.h"

#include "runtime/remote/channel.h"
#include "runtime/remote/control.h"
#include "runtime/memory/dirty.h"
#include "runtime/memory/memory.h"
#include "park.h"
#include "runtime/signals/pending.h"
#include "runtime/remote/plan.h"
#include "runtime/process/process.h"
#include "runtime/proc/facts.h"
#include "runtime/process/vfork.h"
#include "runtime/memory/shared.h"
#include "runtime/signals/stops.h"
#include "runtime/text.h"
#include "runtime/process/time.h"
#include "runtime/trap.h"

volatile bool is_image GUARDED_BY(one_thread);
struct region late[MOST_LATE] GUARDED_BY(one_thread);
size_t late_count GUARDED_BY(one_thread);
struct shared_region shared_memory[MOST_SHARED] GUARDED_BY(one_thread);
size_t shared_count GUARDED_BY(one_thread);
uint8_t files[MAX_BLOB] GUARDED_BY(one_thread);
size_t files_size GUARDED_BY(one_thread);

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

long describe_files(struct thread *self)
{
    struct request request = {.call = OP_DESCRIBE, .arguments = {sizeof files}};
    struct vector out = {files, sizeof files};
    long size = ask(self, &request, NULL, 0, &out, 1, NULL);
    note_beginning(self);
    size_t before = files_size;
    files_size = size < 0 ? 0 : (size_t)size;
    if (before > files_size) /* what was longer once is not to be in every image from now on */
        memset(files + files_size, 0, before - files_size);
    return size < 0 ? size : 0;
}

/* One process, without helpers. */
static void write_alone(struct thread *self) REQUIRES(one_thread);
static void write_alone(struct thread *self)
{
    long failed = describe_files(self), count = 0;
    if (failed) {
        tell_starter(CONTROL_REFUSED, -failed);
        return;
    }
    struct request begin = {.call = OP_IMAGE_BEGIN, .arguments = {(int64_t)base_generation}};
    failed = ask(self, &begin, NULL, 0, NULL, 0, NULL);
    if (failed < 0) {
        tell_starter(CONTROL_REFUSED, -failed);
        return;
    }
    lock(&passed_fd_lock);
    long no_file = ask_starter(CONTROL_FILE, failed);
    struct image_room *m = image_room(failed == 1);
    failed = no_file < 0 ? no_file : !all_signals_taken() ? -E2BIG : !m ? -ENOMEM : plan_image(m, NULL, &count);
    if (!failed)
        failed = write_part(m, count);
    if (!failed)
        failed = finish_image(m);
    if (!no_file)
        SYSTEM(__NR_close, PASSED_FD);
    if (!failed)
        failed = ask_starter(CONTROL_WRITTEN, 0);
    else
        tell_starter(CONTROL_DROPPED, 0);
    unlock(&passed_fd_lock);
    struct request end = {.call = OP_IMAGE_END,
                          .arguments = {!failed, failed ? -failed : (int64_t)m->writer.offset}};
    long told = ask(self, &end, NULL, 0, NULL, 0, NULL);
    if (told == 1)
        die(EXIT_MOVED); /* the program goes on elsewhere: it must not do another step here */
    if (failed || told < 0)
        dirty_forget();
    else if (!m->writer.increment)
        protect_all(m->list, count);
    if (m)
        SYSTEM(__NR_munmap, m, sizeof *m);
}

static volatile uint32_t wished ATOMIC; /* a checkpoint, while all threads stood still */

void wish_checkpoint(void)
{
    __atomic_store_n(&wished, 1, __ATOMIC_SEQ_CST);
}

bool checkpoint_is_wished(void)
{
    return __atomic_exchange_n(&wished, 0, __ATOMIC_SEQ_CST);
}

/* One thread of the program asked another one to park, or to leave. */
bool is_own_request(const struct siginfo *info)
{
    return info->si_code == SI_TKILL && info->_sifields._kill._pid == process.real_id;
}

/* All who have asked meanwhile have had their answer: else a program that two ask time and again would do nothing more.
 * What one thread of the program told this one is told once more. */
static void drop_wishes(struct thread *self)
{
    const uint64_t set = SIGNAL_BIT(CHECKPOINT_SIGNAL);
    const struct __kernel_timespec now = {0, 0};
    struct siginfo info;
    bool of_own = false;
    while (SYSTEM(__NR_rt_sigtimedwait, &set, &info, &now, MASK_BYTES) == CHECKPOINT_SIGNAL)
        if (is_order(&info))
            take_order(self, &info);
        else
            of_own |= is_own_request(&info);
    checkpoint_is_wished();
    if (of_own)
        SYSTEM(__NR_tgkill, process.real_id, self->real_id, CHECKPOINT_SIGNAL);
}

/* All threads of this process are parked. */
static void write_checkpoint(struct thread *self) REQUIRES(one_thread);
static void write_checkpoint(struct thread *self)
{
    plan_end();
    shared_write_all(self);
    save_timers();
    long gathered = gather_family(self);
    if (gathered >= 0)
        gather_signals(self);
    if (gathered == GATHER_ALONE)
        write_alone(self);
    else if (!gathered)
        write_with_family(self, !process.helper);
    else if (!process.helper)
        tell_starter(CONTROL_REFUSED, -gathered);
    if (gathered < 0)
        drop_wishes(self);
}

/* The threads of a process that the program has stopped stand still for longer: through any number of checkpoints. */
static void stand_and_write(struct thread *self, bool wanted) REQUIRES(one_thread);
static void stand_and_write(struct thread *self, bool wanted)
{
    for (; wanted || stand_still(self); wanted = false) {
        write_checkpoint(self);
        checkpoint_is_wished(); /* who has asked meanwhile has what it asked for */
    }
}

/* SELF is the one that the others park for. WANTED: a checkpoint; else the program stops this process. */
static void park_all(struct thread *self, struct ucontext *frame, bool wanted)
{
    uint32_t phase = __atomic_load_n(&checkpoint_phase, __ATOMIC_ACQUIRE);
    if (phase & 1 || !__atomic_compare_exchange_n(&checkpoint_phase, &phase, phase + 1, false, __ATOMIC_SEQ_CST,
                                                  __ATOMIC_SEQ_CST)) {
        if (wanted)
            wish_checkpoint();
        if (phase & 1)
            park(self, frame, phase);
        return;
    }
    if (must_leave()) { /* an exec was first: those that are parked are to go, too */
        pass_stop_on();
        release_others(phase);
        leave(self, 0);
    }
    save_thread(self, frame);
    park_others(self, phase + 1);
    no_other_thread_runs();
    forget_signals();
    self->state = THREAD_PARKED;
    self->takes_checkpoint = true;
    stand_and_write(self, wanted);
    release_others(phase);
    give_back_signals(self);
    self->takes_checkpoint = false;
}

void take_checkpoint(struct thread *self, struct ucontext *frame, const struct siginfo *info)
{
    uint32_t phase = __atomic_load_n(&checkpoint_phase, __ATOMIC_ACQUIRE);
    if (!is_order(info) && parks_later(info))
        return;
    if (is_order(info))
        take_order(self, info);
    if (must_leave()) {
        pass_stop_on();
        leave(self, 0);
    }
    if (is_own_request(info) && phase & 1)
        park(self, frame, phase);
    else if (!is_own_request(info) && !is_order(info)) /* the former: asked to park for a checkpoint that is over */
        park_all(self, frame, true);
    if (is_to_stop())
        park_all(self, frame, false);
}

/* Also where there was something else to be heard of with the orders. */
void take_stop(struct thread *self, struct ucontext *frame)
{
    park_all(self, frame, checkpoint_is_wished());
}

/* After a restart, in the last thread to be back. */
void stand_again(struct thread *self)
{
    uint32_t phase = checkpoint_phase; /* as it is while all stand still */
    save_thread(self, self->frame);
    park_others(self, phase);
    no_other_thread_runs();
    forget_signals();
    self->state = THREAD_PARKED;
    self->takes_checkpoint = true;
    stand_and_write(self, false);
    release_others(phase - 1);
    give_back_signals(self);
    self->takes_checkpoint = false;
}
