/* Signals that were sent and not taken yet, because the program blocks them.
 *
 * A checkpoint takes them from the kernel, in their order and with what was sent beside them, and each thread sends itself
 * again what was meant for it: after the checkpoint, and after a restart from it. The kernel tells only with a signal that
 * it hands out whom it was for, and hands out a thread's own first; so the thread that takes the checkpoint takes its own
 * and the process's, and after it the others have nothing but their own. Of what the first has, "sent to one thread" is
 * what says so.
 *
 * Who sent a signal is a number of the kernel's; the program is told the sender's own.
 */
#include "pending.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/process/family.h"
#include "runtime/process/process.h"
#include "signals.h"
#include "stops.h"

enum { MOST_HELD = 8192, OF_THE_PROCESS = -1, STANDARD_SIGNALS = 31, NAMED = 0x4e414d45 /* the sender's number is the program's already */ };

static struct held {
    int32_t number; /* 0: nothing */
    int32_t slot;   /* of the thread, or OF_THE_PROCESS */
    int32_t sender; /* as the program knows it */
    struct siginfo info;
} held[MOST_HELD] UNGUARDED("each has its place, taken by an atomic instruction while the threads are parked; who gives back reads only");
static volatile uint32_t held_count ATOMIC;
static volatile uint32_t too_many ATOMIC;

/* Where the kernel puts the sender, and where there is room in what it keeps of a signal. NULL: no process sent it. */
static int32_t *sender_of(struct siginfo *info, int32_t **room)
{
    enum { ROOM_BEHIND_STATUS = 3 };
    bool of_child = info->si_signo == SIGCHLD && info->si_code >= CLD_EXITED && info->si_code <= CLD_CONTINUED;
    if (!of_child && info->si_code != SI_USER && info->si_code != SI_TKILL)
        return NULL;
    *room = (int32_t *)&info->_sifields._kill._pid + ROOM_BEHIND_STATUS;
    return &info->_sifields._kill._pid;
}

/* What the program is to find in INFO, of a signal that it takes now. */
void name_sender(struct siginfo *info)
{
    int32_t *room, *sender = sender_of(info, &room);
    if (!sender)
        return;
    if (*room == NAMED)
        *room = 0;
    else
        *sender = virtual_sender(*sender);
}

void forget_signals(void)
{
    held_count = too_many = 0;
}

bool all_signals_taken(void)
{
    return !too_many;
}

/* Takes what has come for SELF. OF_THE_PROCESS: also what has come for any thread. */
void take_signals(struct thread *self, bool of_the_process)
{
    const uint64_t set = ~(uint64_t)RESERVED_SIGNALS;
    const struct __kernel_timespec now = {0, 0};
    take_orders(self);
    for (;;) {
        uint32_t at = __atomic_fetch_add(&held_count, 1, __ATOMIC_SEQ_CST);
        if (at >= MOST_HELD) {
            __atomic_store_n(&held_count, MOST_HELD, __ATOMIC_SEQ_CST);
            __atomic_store_n(&too_many, 1, __ATOMIC_SEQ_CST);
            return;
        }
        struct held *h = &held[at];
        int32_t *room, *sender;
        long number = SYSTEM(__NR_rt_sigtimedwait, &set, &h->info, &now, MASK_BYTES);
        h->number = number > 0 ? (int32_t)number : 0;
        if (!h->number)
            return;
        h->slot = of_the_process && h->info.si_code != SI_TKILL ? OF_THE_PROCESS : self->slot;
        sender = sender_of(&h->info, &room);
        h->sender = sender ? *room == NAMED ? *sender : virtual_sender(*sender) : 0;
    }
}

/* The kernel lets a process say anything to itself; but one that is "itself" to it is only the thread of its number. */
static long send_again(struct thread *self, const struct held *h, struct siginfo *info)
{
    if (h->slot != OF_THE_PROCESS)
        return SYSTEM(__NR_rt_tgsigqueueinfo, process.real_id, self->real_id, h->number, info);
    long failed = SYSTEM(__NR_rt_sigqueueinfo, process.real_id, h->number, info);
    return failed == -EPERM ? SYSTEM(__NR_kill, process.real_id, h->number) : failed;
}

/* The kernel keeps the first of several standard signals, and drops those that come while it waits. The first has been
 * taken: what has come since is dropped here. What was sent to this thread alone is none of them, and is put back. */
static void drop_later(struct thread *self, int32_t number)
{
    const uint64_t set = SIGNAL_BIT(number);
    const struct __kernel_timespec now = {0, 0};
    struct siginfo own, later;
    bool has_own = false;
    while (SYSTEM(__NR_rt_sigtimedwait, &set, &later, &now, MASK_BYTES) == number)
        if (later.si_code == SI_TKILL) {
            own = later;
            has_own = true;
        }
    if (has_own)
        SYSTEM(__NR_rt_tgsigqueueinfo, process.real_id, self->real_id, number, &own);
}

static bool has_first_thread(void)
{
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++)
        if (thread_at(slot)->state != THREAD_FREE && thread_at(slot)->real_id == process.real_id)
            return true;
    return false;
}

/* The thread with the process's number gives back what is the process's; is there none, the one that took it. */
void give_back_signals(struct thread *self)
{
    volatile uint32_t nothing = 0;
    uint32_t count = held_count < MOST_HELD ? held_count : MOST_HELD;
    bool for_all = self->real_id == process.real_id || (self->takes_checkpoint && !has_first_thread());
    uint64_t given = 0; /* standard signals of the process */
    for (uint32_t i = 0; i < count; i++) {
        const struct held *h = &held[i];
        if (!h->number || (h->slot == OF_THE_PROCESS ? !for_all : h->slot != self->slot))
            continue;
        if (h->slot == OF_THE_PROCESS && h->number <= STANDARD_SIGNALS) {
            if (given & SIGNAL_BIT(h->number))
                continue;
            given |= SIGNAL_BIT(h->number);
            drop_later(self, h->number);
        }
        struct siginfo info = h->info;
        int32_t *room, *sender = sender_of(&info, &room);
        if (sender) {
            *sender = h->sender;
            *room = NAMED;
        }
        while (send_again(self, h, &info) == -EAGAIN) /* all programs of a user share the room */
            wait_a_moment_while(&nothing, 0);
    }
}
