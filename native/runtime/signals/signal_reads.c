/* Descriptors of signals (signalfd).
 *
 * Which signals one is of, home knows; what it reads is taken from the kernel here.  A thread that waits for descriptors
 * tells home which signals wait, so that home can say whether such a descriptor has something.  During that wait the signals
 * that the program blocks and has such descriptors for are let through: one that comes ends the wait, is sent again
 * (signals.c), and the call is done again from its beginning.
 */
#include "signal_reads.h"

#include <linux/signalfd.h>

#include "pending.h"
#include "runtime/remote/remote.h"
#include "runtime/text.h"
#include "runtime/user.h"
#include "signals.h"

static volatile uint64_t watched ATOMIC; /* of all such descriptors that this process ever had */

bool is_watched(int number)
{
    return watched & SIGNAL_BIT(number);
}

/* Those that have come, of those that are watched. */
uint64_t waiting_signals(void)
{
    uint64_t pending = 0;
    if (!watched)
        return 0;
    SYSTEM(__NR_rt_sigpending, &pending, MASK_BYTES);
    return pending & watched;
}

/* The mask during a wait of one that has MASK. */
uint64_t let_through(struct thread *self, uint64_t mask)
{
    self->let_through = mask & watched;
    return mask & ~self->let_through;
}

long do_signalfd4(struct trap *t)
{
    uint64_t mask;
    if (t->a[2] != MASK_BYTES)
        return -EINVAL;
    if (copy_user(&mask, (void *)t->a[1], MASK_BYTES))
        return -EFAULT;
    mask &= ~(RESERVED_SIGNALS | SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP));
    struct request request = {.call = __NR_signalfd4, .arguments = {(int)t->a[0], (int64_t)mask, MASK_BYTES, (int)t->a[3]}};
    long fd = ask(t->self, &request, NULL, 0, NULL, 0, NULL);
    if (fd >= 0 && (mask & ~watched)) {
        __atomic_or_fetch(&watched, mask, __ATOMIC_SEQ_CST);
        watch_actions();
    }
    return fd;
}

static void describe(struct signalfd_siginfo *to, const struct siginfo *from)
{
    memset(to, 0, sizeof *to);
    to->ssi_signo = (uint32_t)from->si_signo;
    to->ssi_errno = from->si_errno;
    to->ssi_code = from->si_code;
    if (from->si_signo == SIGCHLD && from->si_code > 0) {
        to->ssi_pid = (uint32_t)from->_sifields._sigchld._pid;
        to->ssi_uid = from->_sifields._sigchld._uid;
        to->ssi_status = from->_sifields._sigchld._status;
        to->ssi_utime = (uint64_t)from->_sifields._sigchld._utime;
        to->ssi_stime = (uint64_t)from->_sifields._sigchld._stime;
    } else if (from->si_code == SI_TIMER) {
        to->ssi_tid = (uint32_t)from->_sifields._timer._tid;
        to->ssi_overrun = (uint32_t)from->_sifields._timer._overrun;
        to->ssi_int = from->_sifields._timer._sigval.sival_int;
        to->ssi_ptr = (uint64_t)from->_sifields._timer._sigval.sival_ptr;
    } else {
        to->ssi_pid = (uint32_t)from->_sifields._rt._pid;
        to->ssi_uid = from->_sifields._rt._uid;
        if (from->si_code != SI_USER && from->si_code != SI_TKILL) {
            to->ssi_int = from->_sifields._rt._sigval.sival_int;
            to->ssi_ptr = (uint64_t)from->_sifields._rt._sigval.sival_ptr;
        }
    }
}

/* One of SET; WAITING: the program's call, if it may wait. Returns the signal's number or -errno. */
static long take_one(struct trap *waiting, uint64_t set, struct siginfo *info)
{
    static const struct __kernel_timespec now = {0, 0};
    long a[6] = {(long)&set, (long)info, 0, MASK_BYTES};
    if (!waiting)
        return SYSTEM(__NR_rt_sigtimedwait, &set, info, &now, MASK_BYTES);
    uint64_t mask = waiting->frame->uc_sigmask | set; /* taken here, not by a handler */
    return interruptible_system(__NR_rt_sigtimedwait, a, &mask);
}

/* What a read of FD gets, which home has said is one of signals. */
long read_signals(struct thread *self, struct trap *waiting, int fd, uint8_t *to, size_t size)
{
    uint64_t set;
    struct request request = {.call = OP_SIGNALS, .arguments = {fd}};
    struct vector out = {&set, sizeof set};
    long never_waits = ask(self, &request, NULL, 0, &out, 1, NULL);
    size_t done = 0;
    if (never_waits < 0)
        return never_waits;
    if (size < sizeof(struct signalfd_siginfo))
        return -EINVAL;
    while (size - done >= sizeof(struct signalfd_siginfo)) {
        struct siginfo info;
        struct signalfd_siginfo one;
        long number = take_one(done || never_waits ? NULL : waiting, set, &info);
        if (number <= 0)
            return done ? (long)done : number == -EINTR ? -RESTART_ALWAYS : number;
        name_sender(&info);
        describe(&one, &info);
        if (copy_user(to + done, &one, sizeof one))
            return -EFAULT;
        done += sizeof one;
    }
    return (long)done;
}
