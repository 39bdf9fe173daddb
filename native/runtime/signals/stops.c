/* Members that the program stops.
 *
 * The kernel stops none of them: one that it has stopped could not be saved, nor could it come back so.  Each process that sends
 * SIGSTOP or SIGCONT within the family sends an order instead: the signal that asks for a checkpoint, with something
 * beside it.  Its receiver parks all its threads, as for a checkpoint, and its first thread to hear of it waits for the
 * order to go on, with all signals blocked, so that they wait in the kernel.  A checkpoint that is asked for meanwhile it
 * takes part in.  The signals of terminals are orders where the program lets them do what they do by themselves.
 *
 * It tells its parent by an order, too, which keeps what no wait has told yet (family.c) and sends itself the SIGCHLD.
 *
 * Orders may be taken by several threads at once, and come again after a call: the later one, by the clock that all
 * members have, is right.  A stop from outside of the family, as when the machine's owner wants it, is the kernel's.
 */
#include "stops.h"

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/process/family.h"
#include "runtime/checkpoint/park.h"
#include "runtime/kinship/kinship.h"
#include "runtime/process/process.h"
#include "signals.h"
#include "runtime/text.h"

enum { ORDER = -90 /* as the code of a signal */, HOME_LOOK_S = 1 /* one that stands asks that often whether home is there */ };
enum order { ORDER_STOP, ORDER_GO_ON, ORDER_TERMINAL /* such a signal follows */, ORDER_CHILD_STOPPED, ORDER_CHILD_WENT_ON };

/* What lies beside an order's signal. */
struct told {
    int32_t from;   /* where it runs */
    uint16_t what;  /* an enum order */
    uint16_t number; /* by which signal */
    int64_t at_ns;
};

struct lock stops_lock;
static int64_t last_ns GUARDED_BY(stops_lock); /* when the order was sent that holds */
static int64_t terminal_ns GUARDED_BY(stops_lock); /* when a terminal's signal was sent; 0: none came from the family */
static int stops_by GUARDED_BY(stops_lock);    /* the signal; 0: it runs */
static int stood_by UNGUARDED("the business of the thread that has parked all others"); /* told to the parent; 0: nothing */

bool is_order(const struct siginfo *info)
{
    return info->si_code == ORDER;
}

bool is_terminal_stop(int number)
{
    return number == SIGTSTP || number == SIGTTIN || number == SIGTTOU;
}

static int64_t sent_at(void)
{
    struct __kernel_timespec now;
    SYSTEM(__NR_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

/* To a process, or to one thread of it. The signal is queued, and the queue may be full just now. */
static long send_order(int real_id, int thread, enum order what, int number, int64_t at_ns)
{
    volatile uint32_t nothing = 0;
    const struct told told = {process.real_id, (uint16_t)what, (uint16_t)number, at_ns};
    struct siginfo info;
    long failed;
    memset(&info, 0, sizeof info);
    info.si_signo = CHECKPOINT_SIGNAL;
    info.si_code = ORDER;
    memcpy(&info._sifields._rt, &told, sizeof told);
    while ((failed = thread ? SYSTEM(__NR_rt_tgsigqueueinfo, real_id, thread, CHECKPOINT_SIGNAL, &info)
                            : SYSTEM(__NR_rt_sigqueueinfo, real_id, CHECKPOINT_SIGNAL, &info)) == -EAGAIN)
        wait_a_moment_while(&nothing, 0);
    return failed;
}

/* What goes before a signal to a process of the family: when a terminal's was sent. */
static long order_before(int real_id, int number)
{
    return is_terminal_stop(number) ? send_order(real_id, 0, ORDER_TERMINAL, number, sent_at()) : 0;
}

/* And after it: who goes on finds SIGCONT among the signals that have waited. Neither of it nor of one that is about to end
 * a wait tells that it has stopped. */
static long order_after(int real_id, int number, long result)
{
    if (result || (number != SIGCONT && number != SIGKILL))
        return result;
    const int64_t now = sent_at();
    note_going_on(real_id, now);
    return number == SIGCONT ? send_order(real_id, 0, ORDER_GO_ON, number, now) : 0;
}

/* A signal to a process of the family, with INFO, or NULL. */
long send_signal(int real_id, int number, const struct siginfo *info)
{
    if (number == SIGSTOP) /* of this process the thread that asks is stopped at once */
        return send_order(real_id, real_id == process.real_id ? current_thread()->real_id : 0, ORDER_STOP, SIGSTOP, sent_at());
    long result = order_before(real_id, number);
    if (!result)
        result = info ? SYSTEM(__NR_rt_sigqueueinfo, real_id, number, info) : SYSTEM(__NR_kill, real_id, number);
    return order_after(real_id, number, result);
}

/* To a thread of this process; such as these are about the whole of it. */
long send_to_own_thread(int real_thread, int number, const struct siginfo *info)
{
    if (number == SIGSTOP)
        return send_signal(process.real_id, number, NULL);
    order_before(process.real_id, number);
    long result = info ? SYSTEM(__NR_rt_tgsigqueueinfo, process.real_id, real_thread, number, info)
                       : SYSTEM(__NR_tgkill, process.real_id, real_thread, number);
    return order_after(process.real_id, number, result);
}

static void obey(int number, int64_t at_ns)
{
    lock(&stops_lock);
    if (at_ns >= last_ns) {
        last_ns = at_ns;
        stops_by = number;
    }
    unlock(&stops_lock);
}

/* A terminal's signal, which the program leaves to its nature. When it was sent is told by an order, which the kernel
 * hands out after it. */
void stop_by_terminal(struct thread *self, int number)
{
    take_orders(self);
    lock(&stops_lock);
    const int64_t at_ns = terminal_ns;
    terminal_ns = 0;
    unlock(&stops_lock);
    obey(number, at_ns ? at_ns : sent_at());
}

bool is_to_stop(void)
{
    lock(&stops_lock);
    bool stops = stops_by;
    unlock(&stops_lock);
    return stops;
}

/* It is to stop, or its parent knows that it did, and not yet that it goes on. */
bool has_stopped(void)
{
    return stood_by || is_to_stop();
}

static void note_terminal(int64_t at_ns)
{
    lock(&stops_lock);
    if (at_ns > terminal_ns)
        terminal_ns = at_ns;
    unlock(&stops_lock);
}

void take_order(struct thread *self, const struct siginfo *info)
{
    struct told told;
    memcpy(&told, &info->_sifields._rt, sizeof told);
    switch (told.what) {
    case ORDER_STOP: obey(told.number, told.at_ns); break;
    case ORDER_GO_ON: obey(0, told.at_ns); break;
    case ORDER_TERMINAL: note_terminal(told.at_ns); break;
    case ORDER_CHILD_STOPPED: note_change(self, told.from, CLD_STOPPED, told.number, told.at_ns); break;
    case ORDER_CHILD_WENT_ON: note_change(self, told.from, CLD_CONTINUED, SIGCONT, told.at_ns); break;
    default: break;
    }
}

/* Orders that have come, which are not saved otherwise. Who asks for anything else by the same signal must be heard
 * after this. */
void take_orders(struct thread *self)
{
    const uint64_t set = SIGNAL_BIT(CHECKPOINT_SIGNAL);
    const struct __kernel_timespec now = {0, 0};
    struct siginfo info;
    while (SYSTEM(__NR_rt_sigtimedwait, &set, &info, &now, MASK_BYTES) == CHECKPOINT_SIGNAL)
        if (is_order(&info))
            take_order(self, &info);
        else if (!is_own_request(&info))
            wish_checkpoint();
}

/* The thread that has heard of it leaves for an exec. */
void pass_stop_on(void)
{
    if (is_to_stop())
        send_order(process.real_id, 0, ORDER_STOP, SIGSTOP, sent_at());
}

/* AT_NS: when it was told to do so. */
static void tell_parent(enum order what, int number, int64_t at_ns)
{
    const bool has_parent = process.helper && parent_now(current_thread()) > 1; /* no order is for others than the family */
    const int parent = process.parent_real_id;
    if (has_parent && send_order(parent, parent, what, number, at_ns) == -ESRCH) /* without its first thread */
        send_order(parent, 0, what, number, at_ns);
}

/* Its parent hears that it stops. */
static void begin_to_stand(void)
{
    lock(&stops_lock);
    const int64_t at_ns = last_ns;
    stood_by = stops_by;
    unlock(&stops_lock);
    if (stood_by)
        tell_parent(ORDER_CHILD_STOPPED, stood_by, at_ns);
}

/* Whether home is there no more; for those who neither ask nor read just now. What has come stays. */
static bool home_is_lost(void)
{
    enum { LOOK = 2 | 0x40 /* MSG_PEEK, MSG_DONTWAIT */ };
    uint8_t byte;
    struct vector room = {&byte, 1};
    struct message message = {.parts = &room, .part_count = 1};
    long got = SYSTEM(__NR_recvmsg, CHANNEL_FD, &message, LOOK);
    return got == 0 || (got < 0 && got != -EAGAIN && got != -EINTR);
}

/* All threads are parked. Returns when the program is to go on, or, with true, when a checkpoint is wanted. */
bool stand_still(struct thread *self)
{
    const uint64_t set = SIGNAL_BIT(CHECKPOINT_SIGNAL);
    const struct __kernel_timespec moment = {HOME_LOOK_S, 0};
    while (is_to_stop()) {
        struct siginfo info;
        if (!stood_by) {
            begin_to_stand();
            continue;
        }
        if (checkpoint_is_wished())
            return true;
        if (SYSTEM(__NR_rt_sigtimedwait, &set, &info, &moment, MASK_BYTES) != CHECKPOINT_SIGNAL) {
            if (home_is_lost()) /* the others have ended with it */
                die(EXIT_CHANNEL_LOST);
            continue;
        }
        if (is_order(&info))
            take_order(self, &info);
        else if (!is_own_request(&info))
            return true;
    }
    if (stood_by) {
        lock(&stops_lock);
        const int64_t at_ns = last_ns;
        unlock(&stops_lock);
        tell_parent(ORDER_CHILD_WENT_ON, SIGCONT, at_ns);
    }
    stood_by = 0;
    return checkpoint_is_wished();
}

/* On another machine: its clock is another one, and so are those who send. */
void forget_orders(void)
{
    forget_lock(&stops_lock);
    lock(&stops_lock);
    last_ns = terminal_ns = 0;
    unlock(&stops_lock);
}

/* In a new process. */
void forget_stop(void)
{
    forget_orders();
    lock(&stops_lock);
    stops_by = 0;
    unlock(&stops_lock);
    stood_by = 0;
}
