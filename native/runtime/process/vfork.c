/* vfork and posix_spawn: the thread that calls them goes on when its child has executed a program, or has ended, and
 * has what the child stored until then.
 *
 * Natively both are in one memory. Here the child has a copy, as after a fork. So its parent lends it the stack above
 * the call, where posix_spawn keeps what became of the child, and the caller of vfork its variables: once as it was,
 * and, when the child gives it back, as it became. What differs is stored in the parent's, word by word, since other
 * threads may have changed the rest meanwhile. What a child stores anywhere else only it has.
 *
 * Who waits for a child holds no lock. A checkpoint waits for both, as for any call in the runtime, since the child
 * does not park before it has given back what it was lent; but not longer than PATIENCE_NS: from then on the call is a
 * fork.
 */
#include "vfork.h"

#include "process.h"
#include "runtime/signals/signals.h"
#include "runtime/text.h"
#include "time.h"
#include "runtime/user.h"

enum { MOST_WORDS = 2048, WORD = sizeof(uint64_t) };
#define LOOK_NS 10000000l /* for a child that was killed: it says nothing */
#define PATIENCE_NS 2000000000l

/* In memory that both have. */
struct loan {
    volatile uint32_t is_back;
    uint32_t words, words_back;
    uint64_t from;
    int64_t began_ns;
    uint64_t before[MOST_WORDS], after[MOST_WORDS];
};

static struct loan *borrowed UNGUARDED("set while there is one thread; one instruction takes it away");
static struct siginfo put_off UNGUARDED("a child has one thread while it is lent something");
static volatile bool is_put_off ATOMIC;

/* How many words there are; a stack ends somewhere. */
static uint32_t read_words(uint64_t *to, uint64_t from)
{
    uint32_t words = 0;
    while (words < MOST_WORDS) {
        uint64_t at = from + words * WORD;
        uint64_t part = PAGE - at % PAGE;
        if (part > (MOST_WORDS - words) * WORD)
            part = (MOST_WORDS - words) * WORD;
        if (copy_user(to + words, (const void *)at, part))
            break;
        words += (uint32_t)(part / WORD);
    }
    return words;
}

/* NULL: there is no memory for it, and the call is a fork. */
struct loan *loan_make(const struct trap *t)
{
    struct loan *l = (struct loan *)SYSTEM(__NR_mmap, 0, sizeof *l, PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (is_error((long)l))
        return NULL;
    l->from = (uint64_t)t->frame->uc_mcontext.rsp & -(uint64_t)WORD;
    l->words = read_words(l->before, l->from);
    l->began_ns = monotonic_ns();
    return l;
}

void loan_drop(struct loan *l)
{
    if (l)
        SYSTEM(__NR_munmap, l, sizeof *l);
}

/* The child is alone, and has what its parent lends it; NULL after a fork. */
void borrow(struct loan *l)
{
    __atomic_store_n(&borrowed, l, __ATOMIC_SEQ_CST);
}

/* The child was asked to park, with INFO. Returns whether it does so later. */
bool parks_later(const struct siginfo *info)
{
    const struct loan *l = __atomic_load_n(&borrowed, __ATOMIC_SEQ_CST);
    if (!l || monotonic_ns() - l->began_ns > PATIENCE_NS)
        return false;
    put_off = *info;
    __atomic_store_n(&is_put_off, true, __ATOMIC_SEQ_CST);
    return true;
}

/* The child is about to execute another program, or to end. */
void give_back(struct thread *self)
{
    struct loan *l = __atomic_exchange_n(&borrowed, NULL, __ATOMIC_SEQ_CST);
    if (!l)
        return;
    l->words_back = read_words(l->after, l->from);
    __atomic_store_n(&l->is_back, true, __ATOMIC_RELEASE);
    SYSTEM(__NR_futex, &l->is_back, FUTEX_WAKE, INT32_MAX);
    loan_drop(l);
    if (__atomic_exchange_n(&is_put_off, false, __ATOMIC_SEQ_CST))
        SYSTEM(__NR_rt_tgsigqueueinfo, process.real_id, self->real_id, CHECKPOINT_SIGNAL, &put_off);
}

/* For a checkpoint, a stop, or because another thread executes a program; and L has been out for long. */
static bool is_needed(const struct loan *l)
{
    uint64_t pending = 0;
    SYSTEM(__NR_rt_sigpending, &pending, MASK_BYTES);
    return pending & SIGNAL_BIT(CHECKPOINT_SIGNAL) && monotonic_ns() - l->began_ns > PATIENCE_NS;
}

/* True of one that is no child any more, too. */
static bool has_ended(int real_id)
{
    struct siginfo info;
    memset(&info, 0, sizeof info);
    return SYSTEM(__NR_waitid, P_PID, real_id, &info, WEXITED | WNOHANG | WNOWAIT, 0) || info._sifields._sigchld._pid;
}

/* The parent waits for its child REAL_ID, and takes back what it has lent. */
void loan_await(struct loan *l, int real_id)
{
    const struct __kernel_timespec moment = {0, LOOK_NS};
    while (!__atomic_load_n(&l->is_back, __ATOMIC_ACQUIRE)) {
        SYSTEM(__NR_futex, &l->is_back, FUTEX_WAIT, false, &moment);
        if (is_needed(l) || has_ended(real_id))
            break;
    }
    if (__atomic_load_n(&l->is_back, __ATOMIC_ACQUIRE))
        for (uint32_t i = 0; i < l->words && i < l->words_back && i < MOST_WORDS; i++)
            if (l->before[i] != l->after[i])
                copy_user((void *)(l->from + i * WORD), &l->after[i], WORD);
    loan_drop(l);
}
