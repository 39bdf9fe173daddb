/* Questions and answers over the one socket.
 *
 * Any thread may ask: it sends its request under a lock, with its slot as the id, and waits.  Of the
 * waiting threads one is the reader; it takes answers from the socket and puts each one where its asker
 * wants it, until its own has come, and then wakes the others so that one of them becomes the reader.
 *
 * Some frames get no answer (ID_NONE).  Those that may wait a little are deferred: they go in front of the
 * next frame, from any thread, so home has heard everything when it is asked something.
 */
#include "channel.h"

#include "plan.h"
#include "runtime/process/process.h"
#include "secret.h"
#include "streams.h"
#include "runtime/text.h"
#include "runtime/trap.h"
#include "runtime/user.h"

enum {
    INBOX_BYTES = 16384,
    MOST_DEFERRED = 64,
    MOST_POSITIONS = 16,
    SMALL_BYTES = 1024,              /* a request up to this is copied and sent in one piece */
    SENT_PARTS = MOST_PARTS + 2,     /* what is deferred and the header before them */
    DESCRIPTOR_ROOM = 4,             /* words for a control message */
};

static struct lock sending;
static struct lock reading; /* of the one thread that takes answers from the socket */
static volatile uint32_t others_waiting ATOMIC;
static volatile uint32_t signals_are_due ATOMIC; /* home has said so */
static volatile uint32_t wakeups ATOMIC; /* changes when a sleeper should look again */
static struct {
    uint8_t bytes[INBOX_BYTES];
    size_t start, end;
} inbox GUARDED_BY(reading);

static struct {
    struct request frames[MOST_DEFERRED];
    size_t count;
    struct {
        int fd;
        int64_t position;
    } positions[MOST_POSITIONS];
    size_t position_count;
} deferred GUARDED_BY(sending);

static void lost(void) __attribute__((noreturn));
static void lost(void)
{
    trace("channel lost", -1, 0);
    die(EXIT_CHANNEL_LOST);
}

void channel_reset(void)
{
    forget_lock(&sending);
    forget_lock(&reading);
    others_waiting = 0;
    lock(&sending);
    deferred.count = deferred.position_count = 0;
    unlock(&sending);
    lock(&reading);
    inbox.start = inbox.end = 0;
    unlock(&reading);
}

static void send_plain(const struct vector *parts, int count)
{
    struct vector left[SENT_PARTS];
    memcpy(left, parts, (size_t)count * sizeof *parts);
    struct vector *at = left;
    while (count > 0) {
        long sent = count == 1 ? SYSTEM(__NR_write, CHANNEL_FD, at->base, at->size)
                               : SYSTEM(__NR_writev, CHANNEL_FD, at, count);
        if (sent == -EINTR)
            continue;
        if (sent <= 0)
            lost();
        while (count > 0 && (size_t)sent >= at->size) {
            sent -= (long)at->size;
            at++, count--;
        }
        if (count > 0) {
            at->base = (uint8_t *)at->base + sent;
            at->size -= (size_t)sent;
        }
    }
}

static void send_all(const struct vector *parts, int count) REQUIRES(sending);
static void send_all(const struct vector *parts, int count)
{
    if (secret_is_kept())
        secret_send(parts, count, send_plain);
    else
        send_plain(parts, count);
}

static void defer_now(const struct request *request) REQUIRES(sending);
static void defer_now(const struct request *request)
{
    struct vector part = {deferred.frames, deferred.count * sizeof *deferred.frames};
    if (deferred.count == COUNT(deferred.frames)) {
        send_all(&part, 1);
        deferred.count = 0;
    }
    deferred.frames[deferred.count++] = *request;
}

static void defer_positions_now(void) REQUIRES(sending);
static void defer_positions_now(void)
{
    for (size_t i = 0; i < deferred.position_count; i++) {
        struct request seek = {.id = ID_NONE, .call = __NR_lseek,
                               .arguments = {deferred.positions[i].fd, deferred.positions[i].position, 0}};
        defer_now(&seek);
    }
    deferred.position_count = 0;
}

void defer(const struct request *request)
{
    lock(&sending);
    defer_now(request);
    unlock(&sending);
}

void defer_position(int fd, int64_t position)
{
    lock(&sending);
    size_t i = 0;
    while (i < deferred.position_count && deferred.positions[i].fd != fd)
        i++;
    if (i == MOST_POSITIONS) {
        defer_positions_now();
        i = 0;
    }
    deferred.positions[i].fd = fd;
    deferred.positions[i].position = position;
    if (i == deferred.position_count)
        deferred.position_count++;
    unlock(&sending);
}

/* Takes back what has not been sent yet. */
bool take_back_deferred(unsigned call, int fd)
{
    bool found = false;
    lock(&sending);
    for (size_t i = 0; i < deferred.count && !found; i++)
        if ((found = deferred.frames[i].call == call && deferred.frames[i].arguments[1] == fd))
            memmove(&deferred.frames[i], &deferred.frames[i + 1], (--deferred.count - i) * sizeof deferred.frames[0]);
    unlock(&sending);
    return found;
}

void forget_deferred_position(int fd)
{
    lock(&sending);
    for (size_t i = 0; i < deferred.position_count; i++)
        if (deferred.positions[i].fd == fd)
            deferred.positions[i--] = deferred.positions[--deferred.position_count];
    unlock(&sending);
}

/* What is deferred goes first, in one piece with the rest. */
static void send_with_deferred(struct vector *parts, int count)
{
    lock(&sending);
    defer_positions_now();
    parts[0] = (struct vector){deferred.frames, deferred.count * sizeof *deferred.frames};
    if (deferred.count)
        send_all(parts, count + 1);
    else
        send_all(parts + 1, count);
    deferred.count = 0;
    unlock(&sending);
}

void flush_deferred(void)
{
    struct vector parts[1];
    lock(&sending);
    parts[0] = (struct vector){deferred.frames, deferred.count * sizeof *deferred.frames};
    if (deferred.count)
        send_all(parts, 1);
    deferred.count = 0;
    unlock(&sending);
}

/* The payload is memory of the program's: it is looked at before the first byte is sent, because half a
 * frame would be the end of the channel. Small ones are copied. */
static long send_request(unsigned id, const struct request *request, const struct vector *in, int count)
{
    struct request head = *request;
    struct vector parts[SENT_PARTS];
    uint8_t small[SMALL_BYTES];
    head.size = 0;
    head.id = (uint16_t)id;
    for (int i = 0; i < count; i++)
        head.size += (uint32_t)in[i].size;
    if (head.size <= sizeof small - sizeof head) {
        size_t used = sizeof head;
        memcpy(small, &head, sizeof head);
        for (int i = 0; i < count; used += in[i++].size)
            if (copy_user(small + used, in[i].base, in[i].size))
                return -EFAULT;
        parts[1] = (struct vector){small, used};
        count = 1;
    } else {
        parts[1] = (struct vector){&head, sizeof head};
        for (int i = 0; i < count; i++) {
            if (touch_for_reading(in[i].base, in[i].size))
                return -EFAULT;
            parts[i + 2] = in[i];
        }
        count++;
    }
    send_with_deferred(parts, count);
    return 0;
}

long tell_home(const struct request *request, const struct vector in[], int in_count)
{
    return send_request(ID_NONE, request, in, in_count);
}

/* Who may be interrupted while the socket is read; there is one reader at a time. */
static struct trap *may_end GUARDED_BY(reading);
static const uint64_t *may_end_mask GUARDED_BY(reading);

/* This thread asks for something that a descriptor comes with. Others may as well, if there are any. */
static bool fd_awaited UNGUARDED("counts only while there is one thread, and is that thread's");

/* What the socket has. -EINTR only when INTERRUPTIBLE and nothing came.  A descriptor that comes beside an answer
 * takes the lowest free number, which is PASSED_FD; where none can come, reading is the shorter way. */
static long receive_plain(void *to, size_t size, bool interruptible) REQUIRES(reading);
static long receive_plain(void *to, size_t size, bool interruptible)
{
    long got, number = __NR_recvmsg;
    uint64_t control[DESCRIPTOR_ROOM];
    struct vector room = {to, size};
    struct message message = {.parts = &room, .part_count = 1, .control = control,
                              .control_size = sizeof control};
    long a[6] = {CHANNEL_FD, (long)&message, 0};
    if (process.direct || (threads_live == 1 && !fd_awaited)) {
        number = __NR_read;
        a[1] = (long)to;
        a[2] = (long)size;
    }
    if (interruptible && may_end)
        return interruptible_system(number, a, may_end_mask);
    do
        got = SYSTEM(number, a[0], a[1], a[2]);
    while (got == -EINTR);
    return got;
}

/* Fills the inbox. Returns -EINTR only when interruptible and nothing came. */
static long fill_inbox(struct trap *interruptible, const uint64_t *mask) REQUIRES(reading);
static long fill_inbox(struct trap *interruptible, const uint64_t *mask)
{
    if (inbox.start == inbox.end)
        inbox.start = inbox.end = 0;
    uint8_t *to = inbox.bytes + inbox.end;
    size_t room = sizeof inbox.bytes - inbox.end;
    may_end = interruptible;
    may_end_mask = mask;
    long got = secret_is_kept() ? secret_receive(to, room, receive_plain, true) : receive_plain(to, room, true);
    if (got == -EINTR && interruptible)
        return got;
    if (got <= 0)
        lost();
    inbox.end += (size_t)got;
    return 0;
}

static void drain(size_t size) REQUIRES(reading);
static void drain(size_t size)
{
    while (size) {
        size_t have = inbox.end - inbox.start;
        if (have > size)
            have = size;
        inbox.start += have;
        size -= have;
        if (size)
            fill_inbox(NULL, NULL);
    }
}

/* Puts SIZE bytes of payload to TO, which may not be there. Large pieces come straight from the socket. */
static long receive_into(uint8_t *to, size_t size) REQUIRES(reading);
static long receive_into(uint8_t *to, size_t size)
{
    while (size) {
        size_t have = inbox.end - inbox.start;
        if (have) {
            if (have > size)
                have = size;
            if (copy_user(to, inbox.bytes + inbox.start, have)) {
                drain(size);
                return -EFAULT;
            }
            inbox.start += have;
        } else if (size >= sizeof inbox.bytes / 2) {
            long got = secret_is_kept() ? secret_receive(to, size, receive_plain, false)
                                        : SYSTEM(__NR_read, CHANNEL_FD, to, size);
            if (got == -EINTR)
                continue;
            if (got == -EFAULT) {
                drain(size);
                return -EFAULT;
            }
            if (got <= 0)
                lost();
            have = (size_t)got;
        } else {
            fill_inbox(NULL, NULL);
            continue;
        }
        to += have;
        size -= have;
    }
    return 0;
}

static void receive_payload(struct waiter *w) REQUIRES(reading);
static void receive_payload(struct waiter *w)
{
    size_t left = w->answer.size;
    w->result = w->answer.result;
    for (int i = w->digest_first && !(w->answer.hints & HINT_DIGEST); i < w->out_count && left; i++) {
        size_t piece = w->out[i].size < left ? w->out[i].size : left;
        if (receive_into(w->out[i].base, piece))
            w->result = -EFAULT;
        left -= piece;
    }
    drain(left);
}

static void receive_ahead(const struct answer *answer) REQUIRES(reading);
static void receive_ahead(const struct answer *answer)
{
    size_t room;
    uint8_t *to = read_ahead_place(answer->id - ID_AHEAD, &room);
    if (!to)
        lost();
    size_t size = answer->size < room ? answer->size : room;
    bool missing = receive_into(to, size) != 0;
    drain(answer->size - size);
    read_ahead_arrived(answer->id - ID_AHEAD, answer->result < 0 || missing ? -1 : (int64_t)size);
}

static void receive_foreseen(const struct answer *answer) REQUIRES(reading);
static void receive_foreseen(const struct answer *answer)
{
    uint8_t *to = plan_place(answer->size);
    if (to)
        receive_into(to, answer->size);
    else
        drain(answer->size);
    plan_arrived(answer, to);
}

/* Takes one answer from the socket and gives it to the thread that asked. */
static long receive_one(struct trap *interruptible, const uint64_t *mask) REQUIRES(reading);
static long receive_one(struct trap *interruptible, const uint64_t *mask)
{
    while (inbox.end - inbox.start < sizeof(struct answer)) {
        if (inbox.start && sizeof inbox.bytes - inbox.start < sizeof(struct answer)) {
            memmove(inbox.bytes, inbox.bytes + inbox.start, inbox.end - inbox.start);
            inbox.end -= inbox.start;
            inbox.start = 0;
        }
        if (fill_inbox(inbox.start == inbox.end ? interruptible : NULL, mask))
            return -EINTR;
    }
    struct answer answer;
    memcpy(&answer, inbox.bytes + inbox.start, sizeof answer);
    inbox.start += sizeof answer;
    if (answer.id >= ID_AHEAD) {
        receive_ahead(&answer);
        return 0;
    }
    if (answer.id == ID_PLAN) {
        receive_foreseen(&answer);
        return 0;
    }
    if (answer.id >= MAX_THREADS)
        lost();
    struct waiter *w = &thread_at(answer.id)->waiter;
    if (w->state != WAITER_ASKED)
        lost();
    w->answer = answer;
    receive_payload(w);
    __atomic_store_n(&w->state, WAITER_DONE, __ATOMIC_RELEASE);
    return 0;
}

static void tell_sleepers(void)
{
    __atomic_add_fetch(&wakeups, 1, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&others_waiting, __ATOMIC_SEQ_CST))
        wake_all(&wakeups);
}

/* One step towards the answer: read, or sleep while another thread reads. -EINTR if a signal came. */
static long await(volatile uint32_t *state, struct trap *interruptible, const uint64_t *mask)
{
    long interrupted = 0;
    if (try_lock(&reading)) {
        while (*state == WAITER_ASKED && !interrupted) {
            interrupted = receive_one(interruptible, mask);
            if (!interrupted && *state == WAITER_ASKED)
                tell_sleepers();
        }
        unlock(&reading);
        tell_sleepers();
        return interrupted;
    }
    __atomic_add_fetch(&others_waiting, 1, __ATOMIC_SEQ_CST);
    uint32_t seen = __atomic_load_n(&wakeups, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(state, __ATOMIC_SEQ_CST) == WAITER_ASKED &&
        __atomic_load_n(&reading.word, __ATOMIC_SEQ_CST)) {
        if (interruptible) {
            long a[6] = {(long)&wakeups, FUTEX_WAIT_PRIVATE, (long)seen};
            interrupted = interruptible_system(__NR_futex, a, mask) == -EINTR ? -EINTR : 0;
        } else {
            wait_while(&wakeups, seen);
        }
    }
    __atomic_sub_fetch(&others_waiting, 1, __ATOMIC_SEQ_CST);
    return interrupted;
}

/* Whether a terminal's signals are to be sent; the caller does that. */
bool take_news_of_signals(void)
{
    return __atomic_load_n(&signals_are_due, __ATOMIC_SEQ_CST) && __atomic_exchange_n(&signals_are_due, 0, __ATOMIC_SEQ_CST);
}

void wait_for_arrival(volatile uint32_t *state)
{
    while (__atomic_load_n(state, __ATOMIC_ACQUIRE) == WAITER_ASKED)
        await(state, NULL, NULL);
}

static void cancel(struct thread *self)
{
    struct request request = {.call = OP_CANCEL, .id = (uint16_t)self->slot, .arguments = {self->slot}};
    struct vector part = {&request, sizeof request};
    lock(&sending);
    send_all(&part, 1);
    unlock(&sending);
}

static long ask_and_wait(struct thread *self, struct trap *interruptible, const uint64_t *mask,
                         const struct request *request, const struct vector in[], int in_count,
                         const struct vector out[], int out_count, uint64_t *hints)
{
    struct waiter *w = &self->waiter;
    memcpy(w->out, out, (size_t)out_count * sizeof *out);
    w->out_count = out_count;
    w->digest_first = request->call == __NR_pread64 && request->arguments[4] == WANT_DIGEST;
    fd_awaited = request->call == OP_FORK || request->call == OP_IMAGE_BEGIN || request->call == OP_PART;
    __atomic_store_n(&w->state, WAITER_ASKED, __ATOMIC_RELEASE);
    long failed = send_request((unsigned)self->slot, request, in, in_count);
    if (failed) {
        w->state = WAITER_IDLE;
        return failed;
    }
    while (__atomic_load_n(&w->state, __ATOMIC_ACQUIRE) != WAITER_DONE)
        if (await(&w->state, interruptible, mask)) {
            cancel(self); /* the answer comes all the same: the result, or that it was interrupted */
            interruptible = NULL;
        }
    w->state = WAITER_IDLE;
    if (w->answer.hints & HINT_SIGNALS)
        __atomic_store_n(&signals_are_due, 1, __ATOMIC_SEQ_CST);
    if (hints)
        *hints = w->answer.hints;
    return w->result;
}

long ask(struct thread *self, const struct request *request, const struct vector in[], int in_count,
         const struct vector out[], int out_count, uint64_t *hints)
{
    return ask_and_wait(self, NULL, NULL, request, in, in_count, out, out_count, hints);
}

long ask_waiting(struct trap *t, struct request *request, const struct vector in[], int in_count,
                 const struct vector out[], int out_count, uint64_t *hints)
{
    uint64_t mask = t->frame->uc_sigmask;
    long result = ask_and_wait(t->self, t, &mask, request, in, in_count, out, out_count, hints);
    return result == -EINTR ? -RESTART_ALWAYS : result;
}
