/* Parking: all threads but one stand still in their own signal handlers while a checkpoint is taken. */
#include "park.h"

#include "runtime/signals/pending.h"
#include "runtime/process/process.h"

volatile uint32_t checkpoint_phase ATOMIC; /* even: none; odd: the number of the one that is being taken */
static volatile uint32_t parked_count ATOMIC;
static volatile uint32_t bell ATOMIC; /* rung for those who are parked */
static volatile uint32_t signals_wanted ATOMIC; /* for the how many-th time; 0: not now */
static volatile uint32_t signal_rounds ATOMIC;
static volatile uint32_t signals_told ATOMIC; /* by how many threads */

/* The child of a fork, which has one thread: another one of its parent's may have begun to park them all. */
void forget_parking(void)
{
    checkpoint_phase += checkpoint_phase & 1;
    parked_count = signals_wanted = signals_told = 0;
}

void save_thread(struct thread *self, struct ucontext *frame)
{
    self->frame = frame;
    SYSTEM(__NR_arch_prctl, ARCH_GET_FS, &self->fs_base);
    SYSTEM(__NR_arch_prctl, ARCH_GET_GS, &self->gs_base);
}

static void ring(void)
{
    __atomic_add_fetch(&bell, 1, __ATOMIC_SEQ_CST);
    wake_all(&bell);
}

void park(struct thread *self, struct ucontext *frame, uint32_t phase)
{
    save_thread(self, frame);
    __atomic_store_n(&self->state, THREAD_PARKED, __ATOMIC_RELEASE);
    __atomic_add_fetch(&parked_count, 1, __ATOMIC_RELEASE);
    wake_all(&parked_count);
    bool has_taken = false;
    for (;;) {
        uint32_t seen = __atomic_load_n(&bell, __ATOMIC_SEQ_CST), round;
        if (__atomic_load_n(&checkpoint_phase, __ATOMIC_SEQ_CST) != phase)
            break;
        round = __atomic_load_n(&signals_wanted, __ATOMIC_SEQ_CST);
        if (round && self->signals_taken != round) {
            take_signals(self, false);
            self->signals_taken = round;
            has_taken = true;
            __atomic_add_fetch(&signals_told, 1, __ATOMIC_SEQ_CST);
            wake_all(&signals_told);
        }
        wait_while(&bell, seen);
    }
    if (has_taken)
        give_back_signals(self);
}

/* All are parked: what was sent to the program and not taken goes into the image. */
void gather_signals(struct thread *self)
{
    uint32_t others = 0, told;
    take_signals(self, true);
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++)
        others += thread_at(slot) != self && thread_at(slot)->state == THREAD_PARKED;
    __atomic_store_n(&signals_told, 0, __ATOMIC_SEQ_CST);
    signal_rounds += signal_rounds == UINT32_MAX ? 2 : 1;
    __atomic_store_n(&signals_wanted, signal_rounds, __ATOMIC_SEQ_CST);
    ring();
    while ((told = __atomic_load_n(&signals_told, __ATOMIC_SEQ_CST)) < others)
        wait_while(&signals_told, told);
    __atomic_store_n(&signals_wanted, 0, __ATOMIC_SEQ_CST); /* in the image, too: it is no word to threads that begin later */
}

/* The coordinator says that threads live again, not they themselves: one that has not woken yet must not look
 * parked to the next checkpoint. */
void release_others(uint32_t phase)
{
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++)
        if (thread_at(slot)->state == THREAD_PARKED)
            thread_at(slot)->state = THREAD_LIVE;
    __atomic_store_n(&checkpoint_phase, phase + 2, __ATOMIC_SEQ_CST);
    ring();
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
            if (!SYSTEM(__NR_tgkill, process.real_id, t->real_id, CHECKPOINT_SIGNAL)) /* or again, when there is room */
                t->asked_to_park = phase;
        }
    }
    return all;
}

void park_others(struct thread *self, uint32_t phase)
{
    for (;;) {
        uint32_t seen = __atomic_load_n(&parked_count, __ATOMIC_ACQUIRE);
        if (all_parked(self, phase))
            return;
        /* Threads come and go meanwhile without telling: look again after a moment. */
        wait_a_moment_while(&parked_count, seen);
    }
}
