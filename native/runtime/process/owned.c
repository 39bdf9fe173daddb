/* Futexes whose word names the thread that has them: priority-inheriting ones, and robust ones.
 *
 * The kernel would look for the owner among its own numbers, and the program's words have numbers that stay the same when
 * it moves. So both are done here, on the first machine too. Nothing is inherited: all threads of a program have the same
 * priority, because none can be given another one (identity.c).
 *
 * A free word is 0. Who gives it back wakes one of those who wait; that one says again that others may be waiting, so
 * none is forgotten if a third thread was faster.
 */
#include "owned.h"

#include "process.h"
#include "runtime/signals/signals.h"
#include "thread.h"
#include "time.h"
#include "runtime/user.h"

enum { WORD_BYTES = sizeof(uint32_t), MOST_OWNED = 2048 /* in one thread's list, as in the kernel */ };

bool is_owned(long command)
{
    return command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2 || command == FUTEX_TRYLOCK_PI ||
           command == FUTEX_UNLOCK_PI || command == FUTEX_WAIT_REQUEUE_PI || command == FUTEX_CMP_REQUEUE_PI;
}

static uint32_t name_of(const struct thread *self)
{
    return (uint32_t)self->virtual_id & FUTEX_TID_MASK;
}

static void wake_one(uint32_t *word)
{
    SYSTEM(__NR_futex, word, FUTEX_WAKE_PRIVATE, 1);
    SYSTEM(__NR_futex, word, FUTEX_WAKE, 1);
}

/* Waits until WORD, which is SEEN, is given back, or until LIMIT. Returns 0 for another look, or -errno. */
static long wait_for_owner(struct trap *t, uint32_t seen, const struct __kernel_timespec *limit)
{
    unsigned long flags = t->a[1] & (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    if ((t->a[1] & FUTEX_CMD_MASK) == FUTEX_LOCK_PI)
        flags |= FUTEX_CLOCK_REALTIME;
    long a[6] = {(long)t->a[0], (long)(FUTEX_WAIT_BITSET | flags), (long)seen, (long)limit, 0, (long)FUTEX_BITSET_MATCH_ANY};
    uint64_t mask = t->frame->uc_sigmask;
    long result = interruptible_system(__NR_futex, a, &mask);
    if (result == -EINTR) { /* the kernel's is done again after any handler */
        t->self->signalled &= ~(uint32_t)SIGNALLED_PLAIN;
        return -RESTART_ALWAYS;
    }
    return result == -EAGAIN ? 0 : result;
}

/* A thread of this process that is not there any more gives nothing back. */
static bool has_gone(const struct trap *t, uint32_t owner)
{
    return (t->a[1] & FUTEX_PRIVATE_FLAG) && !real_thread_id((int)owner);
}

static long take(struct trap *t, bool waits, const struct __kernel_timespec *limit)
{
    uint32_t *word = (uint32_t *)t->a[0], self = name_of(t->self), others = 0, missed = 0, seen;
    for (;;) {
        if (copy_user(&seen, word, WORD_BYTES))
            return -EFAULT;
        uint32_t owner = seen & FUTEX_TID_MASK;
        if (owner == self)
            return -EDEADLK;
        if (owner && !waits)
            return -EAGAIN;
        if (owner && has_gone(t, owner)) { /* unless it was given back on the way out */
            if (missed == owner)
                return -ESRCH;
            missed = owner;
            continue;
        }
        uint32_t fresh = owner ? seen | FUTEX_WAITERS : self | others | (seen & ~FUTEX_TID_MASK);
        long failed = fresh == seen ? 0 : swap_user(word, &seen, fresh);
        if (failed < 0)
            return failed;
        if (failed)
            continue;
        if (!owner)
            return 0;
        failed = wait_for_owner(t, fresh, limit);
        if (failed)
            return failed;
        others = FUTEX_WAITERS;
    }
}

static long give_back(struct trap *t)
{
    uint32_t *word = (uint32_t *)t->a[0], seen;
    if (copy_user(&seen, word, WORD_BYTES))
        return -EFAULT;
    for (;;) {
        if ((seen & FUTEX_TID_MASK) != name_of(t->self))
            return -EPERM;
        if (t->a[0] % WORD_BYTES)
            return -EINVAL;
        long failed = swap_user(word, &seen, 0);
        if (failed < 0)
            return failed;
        if (!failed)
            break;
    }
    if (seen & FUTEX_WAITERS)
        SYSTEM(__NR_futex, word, FUTEX_WAKE | (t->a[1] & FUTEX_PRIVATE_FLAG), 1);
    return 0;
}

long owned_futex(struct trap *t, long command)
{
    struct __kernel_timespec limit;
    bool may_wait = command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2, ends = may_wait && t->a[3];
    if (command == FUTEX_WAIT_REQUEUE_PI || command == FUTEX_CMP_REQUEUE_PI)
        return -ENOSYS; /* no C library uses them any more */
    if (ends && copy_user(&limit, (void *)t->a[3], sizeof limit))
        return -EFAULT;
    if (ends && !valid_time(&limit))
        return -EINVAL;
    if ((t->a[1] & FUTEX_CLOCK_REALTIME) && command != FUTEX_LOCK_PI2)
        return -ENOSYS;
    if (t->a[0] % WORD_BYTES && command != FUTEX_UNLOCK_PI) /* of that, the kernel asks first whose it is */
        return -EINVAL;
    if (ends && command == FUTEX_LOCK_PI2 && !(t->a[1] & FUTEX_CLOCK_REALTIME))
        limit = this_machines(&limit);
    return command == FUTEX_UNLOCK_PI ? give_back(t) : take(t, may_wait, ends ? &limit : NULL);
}

/* ---- a thread ends with locks */

/* As the C library lays them down for the kernel. The lowest bit of an address says that it is a priority-inheriting one. */
struct robust_link {
    uint64_t next;
};

struct robust_head {
    struct robust_link list;
    int64_t word_at; /* from a link */
    uint64_t pending; /* one that was being taken or given back */
};

static void mark_dead(uint64_t link, int64_t word_at, uint32_t self, bool pending)
{
    uint32_t *word = (uint32_t *)((link & ~1ul) + (uint64_t)word_at), seen;
    if ((uint64_t)word % WORD_BYTES || copy_user(&seen, word, WORD_BYTES))
        return;
    if (pending && !(link & 1) && !seen) /* it was given back, and those who wait were not told */
        wake_one(word);
    while ((seen & FUTEX_TID_MASK) == self) {
        uint32_t waiters = seen & FUTEX_WAITERS;
        long failed = swap_user(word, &seen, waiters | FUTEX_OWNER_DIED);
        if (failed < 0)
            return;
        if (failed)
            continue;
        if (waiters)
            wake_one(word);
        return;
    }
}

/* What the kernel does for a thread that ends. It is not to do it again, with numbers of its own. */
void release_owned(struct thread *self)
{
    uint64_t at = (uint64_t)self->robust_list, next;
    struct robust_head head;
    bool there = at && !copy_user(&head, (void *)at, sizeof head);
    self->robust_list = NULL;
    SYSTEM(__NR_set_robust_list, NULL, sizeof head);
    if (!there)
        return;
    uint64_t link = head.list.next;
    for (int i = 0; i < MOST_OWNED && (link & ~1ul) != at; i++, link = next) {
        bool more = !copy_user(&next, (void *)(link & ~1ul), sizeof next);
        if (link != head.pending)
            mark_dead(link, head.word_at, name_of(self), false);
        if (!more)
            break;
    }
    if (head.pending)
        mark_dead(head.pending, head.word_at, name_of(self), true);
}
