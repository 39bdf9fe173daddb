/* Waiting for descriptors: poll, select and epoll all become one question that the shadow keeps until
 * there is something to say. */
#include "time.h"

#include "runtime/remote/channel.h"
#include "runtime/remote/remote.h"
#include "runtime/signals/signal_reads.h"
#include "runtime/signals/signals.h"
#include "runtime/text.h"
#include "runtime/user.h"

struct poll_entry {
    int fd;
    int16_t events, found;
};

enum { IN = 1, PRIORITY = 2, OUT = 4, ERROR = 8, HANG = 16, INVALID = 32, MOST = 4096, FOREVER = -1 };

/* Asks REQUEST with what is left of TIMEOUT as its argument AT. Interrupted, it continues or ends as the
 * kernel's own waits do: never restarted after a handler. */
static long wait_for(struct trap *t, struct request *request, int at, int64_t timeout_ns, uint64_t mask,
                     const struct vector *in, int in_count, const struct vector *out)
{
    int64_t end = timeout_ns < 0 ? INT64_MAX : wait_end(t, timeout_ns);
    int64_t left = timeout_ns < 0 ? FOREVER : end - monotonic_ns();
    request->arguments[at] = timeout_ns >= 0 && left < 0 ? 0 : left;
    request->arguments[at + 1] = (int64_t)(waiting_signals() & mask);
    uint64_t before = t->frame->uc_sigmask;
    t->frame->uc_sigmask = let_through(t->self, mask);
    long result = timeout_ns == 0 ? ask(t->self, request, in, in_count, out, 1, NULL)
                                  : ask_waiting(t, request, in, in_count, out, 1, NULL);
    t->frame->uc_sigmask = before;
    t->self->let_through = 0;
    if (result != -RESTART_ALWAYS)
        return result;
    remember_wait(t, end);
    adopt_wait_mask(t, mask);
    return -RESTART_UNHANDLED;
}

static long read_timeout(const void *from, bool micro, int64_t *ns)
{
    int64_t pair[2];
    *ns = FOREVER;
    if (!from)
        return 0;
    if (copy_user(pair, from, sizeof pair))
        return -EFAULT;
    if (pair[0] < 0 || pair[1] < 0 || pair[1] >= (micro ? 1000000 : 1000000000))
        return -EINVAL;
    if (pair[0] > 4000000000l)
        pair[0] = 4000000000l;
    *ns = pair[0] * 1000000000l + pair[1] * (micro ? 1000 : 1);
    return 0;
}

static long poll_user(struct trap *t, int64_t timeout_ns, uint64_t mask)
{
    if (t->a[1] > MOST)
        return -EINVAL;
    struct vector part = {(void *)t->a[0], t->a[1] * sizeof(struct poll_entry)};
    struct request request = {.call = OP_POLL, .arguments = {(int64_t)t->a[1]}};
    return wait_for(t, &request, 1, timeout_ns, mask, &part, 1, &part);
}

long do_poll(struct trap *t)
{
    int timeout = (int)t->a[2];
    return poll_user(t, timeout < 0 ? FOREVER : timeout * 1000000l, t->frame->uc_sigmask);
}

long do_ppoll(struct trap *t)
{
    int64_t timeout;
    uint64_t mask;
    long failed = read_timeout((void *)t->a[2], false, &timeout);
    if (!failed)
        failed = wait_mask(t, (void *)t->a[3], t->a[4], &mask);
    return failed ? failed : poll_user(t, timeout, mask);
}

static const int16_t asked_for[3] = {IN, OUT, PRIORITY};
static const int16_t counts_as[3] = {IN | HANG | ERROR, OUT | ERROR, PRIORITY};

/* The three sets of select as a list of descriptors, and back. */
static long list_sets(unsigned long count, const uint64_t *sets, struct poll_entry *list)
{
    long used = 0;
    for (unsigned fd = 0; fd < count; fd++) {
        int16_t events = 0;
        for (int s = 0; s < 3; s++)
            if (sets[s * 16 + fd / 64] >> (fd % 64) & 1)
                events |= asked_for[s];
        if (events)
            list[used++] = (struct poll_entry){(int)fd, events, 0};
    }
    return used;
}

static long fill_sets(const struct poll_entry *list, long used, uint64_t *sets)
{
    long found = 0;
    memset(sets, 0, 48 * sizeof *sets);
    for (long i = 0; i < used; i++) {
        if (list[i].found & INVALID)
            return -EBADF;
        for (int s = 0; s < 3; s++)
            if ((list[i].events & asked_for[s]) && (list[i].found & counts_as[s])) {
                sets[s * 16 + list[i].fd / 64] |= 1ul << (list[i].fd % 64);
                found++;
            }
    }
    return found;
}

static long select_sets(struct trap *t, int64_t timeout_ns, uint64_t mask)
{
    unsigned long count = t->a[0] > 1024 ? 1024 : t->a[0];
    size_t bytes = (count + 63) / 64 * 8;
    uint64_t sets[48] = {0};
    struct poll_entry *list = (struct poll_entry *)t->self->scratch;
    if ((int)t->a[0] < 0)
        return -EINVAL;
    for (int s = 0; s < 3; s++)
        if (t->a[1 + s] && copy_user(sets + s * 16, (void *)t->a[1 + s], bytes))
            return -EFAULT;
    long used = list_sets(count, sets, list);
    struct vector part = {list, (size_t)used * sizeof *list};
    struct request request = {.call = OP_POLL, .arguments = {used}};
    long result = wait_for(t, &request, 1, timeout_ns, mask, &part, 1, &part);
    if (result < 0)
        return result;
    long found = fill_sets(list, used, sets);
    for (int s = 0; s < 3 && found >= 0; s++)
        if (t->a[1 + s] && copy_user((void *)t->a[1 + s], sets + s * 16, bytes))
            return -EFAULT;
    return found;
}

long do_select(struct trap *t)
{
    int64_t timeout;
    long failed = read_timeout((void *)t->a[4], true, &timeout);
    return failed ? failed : select_sets(t, timeout, t->frame->uc_sigmask);
}

long do_pselect6(struct trap *t)
{
    int64_t timeout;
    uint64_t mask = t->frame->uc_sigmask;
    struct {
        void *mask;
        size_t size;
    } sixth;
    long failed = read_timeout((void *)t->a[4], false, &timeout);
    if (!failed && t->a[5]) {
        if (copy_user(&sixth, (void *)t->a[5], sizeof sixth))
            return -EFAULT;
        failed = wait_mask(t, sixth.mask, sixth.size, &mask);
    }
    return failed ? failed : select_sets(t, timeout, mask);
}

static long epoll(struct trap *t, uint64_t mask)
{
    int most = (int)t->a[2], timeout = (int)t->a[3];
    if (most <= 0)
        return -EINVAL;
    if (most > MOST)
        most = MOST;
    struct vector out = {(void *)t->a[1], (size_t)most * 12};
    struct request request = {.call = OP_EPOLL_WAIT, .arguments = {(int)t->a[0], most}};
    return wait_for(t, &request, 2, timeout < 0 ? FOREVER : timeout * 1000000l, mask, NULL, 0, &out);
}

long do_epoll_wait(struct trap *t)
{
    return epoll(t, t->frame->uc_sigmask);
}

long do_epoll_pwait(struct trap *t)
{
    uint64_t mask;
    long failed = wait_mask(t, (void *)t->a[4], t->a[5], &mask);
    return failed ? failed : epoll(t, mask);
}
