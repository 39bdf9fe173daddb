/* What a session does all the time: its frames, and the requests that wait. */
#include "session.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { SMALL_BUFFER = 64 << 10 };

int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000ll + now.tv_nsec;
}

void broken(struct session *s, const char *how)
{
    if (!s->over)
        tell(s, SHADOW_BROKEN, 0, 0, how);
    s->over = true;
}

/* Room for SIZE more bytes of the answer's payload. */
uint8_t *out_room(struct work *w, size_t size)
{
    struct session *s = w->session;
    size_t needed = sizeof(struct answer) + w->out_used + size;
    if (needed > s->out_room && !buffer_size(&s->out, &s->out_room, needed))
        return NULL;
    uint8_t *at = s->out + sizeof(struct answer) + w->out_used;
    w->out_used += size;
    return at;
}

void wait_on(struct work *w, int fd, short events)
{
    w->wait_one = (struct pollfd){.fd = fd, .events = events};
    w->wait = &w->wait_one;
    w->wait_count = 1;
}

static void drop_work(struct work *w)
{
    if (w->wait != &w->wait_one)
        free(w->wait);
    if (w->held)
        close(w->held - 1);
    ipc_leave(w);
    free(w->payload);
    free(w);
}

/* The request waits: it keeps a copy of its frame. */
static bool park(const struct work *w)
{
    struct session *s = w->session;
    struct work *kept = malloc(sizeof *kept);
    uint8_t *payload = malloc(w->head.size ? w->head.size : 1);
    size_t count = 0;
    for (struct work *other = s->parked; other; other = other->next)
        count++;
    if (!kept || !payload || count >= MAX_PARKED) {
        free(kept);
        free(payload);
        return false;
    }
    *kept = *w;
    memcpy(payload, w->payload, w->head.size);
    kept->payload = payload;
    if (w->wait == &w->wait_one)
        kept->wait = &kept->wait_one;
    kept->again = true;
    kept->next = s->parked;
    s->parked = kept;
    return true;
}

static void attempt_parked(struct session *s, struct work **place)
{
    struct work *w = *place;
    w->out_used = 0;
    if (w->wait != &w->wait_one)
        free(w->wait);
    w->wait = NULL;
    w->wait_count = 0;
    w->retry_ns = -1;
    long result = w->cancelled ? -EINTR : serve(w);
    if (result == PARKED)
        return;
    *place = w->next;
    if (!s->over)
        answer(w, result);
    drop_work(w);
}

static void cancel(struct session *s, uint16_t id)
{
    for (struct work **place = &s->parked; *place; place = &(*place)->next)
        if ((*place)->head.id == id) {
            struct work *w = *place;
            bool partly = (w->head.call == __NR_write || w->head.call == __NR_sendmsg) && w->progress;
            *place = w->next;
            w->out_used = 0;
            long done = w->ipc ? serve(w) : PARKED; /* others may have done it meanwhile */
            answer(w, done != PARKED ? done : partly ? (long)w->progress : -EINTR);
            drop_work(w);
            return;
        }
}

static bool may_be_silent(uint16_t call)
{
    return call == __NR_write || call == __NR_pwrite64 || call == __NR_close || call == __NR_lseek ||
           call == OP_TAKE || call == OP_PLAN_END || call == OP_PROGRAM;
}

static void take_request(struct session *s, const struct request *head, uint8_t *payload)
{
    struct work w = {.session = s, .head = *head, .payload = payload, .passed_fd = -1, .until_ns = -1,
                     .retry_ns = -1};
    s->statistics.calls++;
    if (head->call < 512)
        s->statistics.by_call[head->call]++;
    if (!s->greeted && head->call != OP_HELLO) {
        broken(s, "a request before the greeting");
        return;
    }
    if (head->call == OP_CANCEL) {
        cancel(s, (uint16_t)head->arguments[0]);
        return;
    }
    if (head->id == ID_NONE && !may_be_silent(head->call)) {
        broken(s, "a call that needs an answer and wants none");
        return;
    }
    long result = serve(&w);
    if (result == PARKED && !park(&w)) {
        result = -ENOMEM;
        ipc_leave(&w);
    }
    if (s->plan)
        plan_learn(&w, result);
    if (result != PARKED && !s->over)
        answer(&w, result);
    if (head->call == OP_HELLO && result >= 0 && s->root == s && head->arguments[1] && !s->over)
        plan_begin(s);
    if (result != PARKED && w.wait != &w.wait_one)
        free(w.wait);
}

static size_t limit_of(uint16_t call)
{
    return call == OP_ADOPT ? MAX_BLOB : MAX_PAYLOAD + 2 * PATH_LIMIT;
}

/* Serves every complete frame of the input. Returns how many bytes are wanted at least. */
static size_t take_frames(struct session *s)
{
    size_t at = 0, wanted = sizeof(struct request);
    while (!s->over && s->in_used - at >= sizeof(struct request)) {
        struct request head;
        memcpy(&head, s->in + at, sizeof head);
        if (head.size > limit_of(head.call)) {
            broken(s, "a frame longer than any call needs");
            return 0;
        }
        wanted = sizeof head + head.size;
        if (s->in_used - at < wanted)
            break;
        take_request(s, &head, s->in + at + sizeof head);
        at += wanted;
        wanted = sizeof head;
    }
    s->in_used -= at;
    if (s->in_used)
        memmove(s->in, s->in + at, s->in_used);
    return wanted;
}

static bool make_room(struct session *s, size_t wanted)
{
    size_t room = wanted < SMALL_BUFFER ? SMALL_BUFFER : wanted;
    if (room <= s->in_room && !(s->in_room > SMALL_BUFFER * 4 && room == SMALL_BUFFER && s->in_used < room))
        return true;
    if (room < s->in_used)
        room = s->in_used;
    return buffer_size(&s->in, &s->in_room, room);
}

static void receive(struct session *s)
{
    ssize_t got = s->secret ? secret_receive(s) : recv(s->channel, s->in + s->in_used, s->in_room - s->in_used, 0);
    if (got < 0 && errno == EINTR)
        return;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
        idle_sleep(s);
        return;
    }
    if (got <= 0) {
        s->heard_all = true;
        return;
    }
    if (s->asleep)
        idle_expect(s);
    s->in_used += s->secret ? 0 : (size_t)got;
    s->statistics.bytes_in += (uint64_t)got;
}

/* Requests that come while an answer cannot be sent: the other side may be sending, too, and wait for us. */
bool take_in(struct session *s, size_t most)
{
    if (s->in_used + SMALL_BUFFER > most)
        return false;
    if (s->in_room < s->in_used + SMALL_BUFFER && !buffer_size(&s->in, &s->in_room, s->in_room * 2 + SMALL_BUFFER))
        return false;
    receive(s);
    return !s->over;
}

/* Waits for the channel or for whatever the parked requests wait for, then attempts those again. */
static void wait_with_parked(struct session *s)
{
    size_t count = 1;
    int64_t until = -1;
    for (struct work *w = s->parked; w; w = w->next) {
        count += w->wait_count;
        if (w->until_ns >= 0 && (until < 0 || w->until_ns < until))
            until = w->until_ns;
        if (w->retry_ns >= 0 && (until < 0 || w->retry_ns < until))
            until = w->retry_ns;
    }
    struct pollfd *fds = calloc(count, sizeof *fds);
    if (!fds) {
        s->over = true;
        return;
    }
    fds[0] = (struct pollfd){.fd = s->channel, .events = POLLIN};
    size_t at = 1;
    for (struct work *w = s->parked; w; at += w->wait_count, w = w->next)
        if (w->wait_count)
            memcpy(fds + at, w->wait, w->wait_count * sizeof *fds);
    int64_t left = until < 0 ? 0 : until - now_ns();
    struct timespec limit = {left > 0 ? left / 1000000000 : 0, left > 0 ? left % 1000000000 : 0};
    int ready = ppoll(fds, count, until < 0 ? NULL : &limit, NULL);
    if (ready < 0 && errno == EINVAL) { /* more than this process may have files open: all are tried time and again */
        limit = (struct timespec){0, 10000000};
        until = 0;
        ready = ppoll(fds, 1, &limit, NULL);
    }
    bool input = ready > 0 && fds[0].revents;
    uint64_t heard = s->statistics.bytes_in;
    if (ready - input > 0 || until >= 0) {
        struct work **place = &s->parked;
        while (*place && !s->over) {
            struct work *w = *place;
            attempt_parked(s, place);
            if (*place == w)
                place = &w->next;
        }
    }
    free(fds);
    if (input && !s->over && s->statistics.bytes_in == heard) /* else an answer that had to wait has taken it in */
        receive(s);
}

/* Until the session's own end, its thread's processor time is what it used so far. */
void note_processor_time(struct session *s)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    int64_t now = used.tv_sec * 1000000000ll + used.tv_nsec;
    s->statistics.served_ns += now - s->noted_ns;
    s->noted_ns = now;
}

/* A shutdown from outside must not meet another file under the number. */
static void close_channel(struct session *s)
{
    pthread_mutex_lock(&table_lock);
    int channel = s->channel;
    s->channel = -1;
    pthread_mutex_unlock(&table_lock);
    close(channel);
}

void serve_channel(struct session *s)
{
    size_t wanted = sizeof(struct request);
    pthread_mutex_lock(&table_lock);
    s->thread_id = gettid();
    pthread_mutex_unlock(&table_lock);
    idle_expect(s);
    while (!s->over && !s->heard_all) {
        if (!make_room(s, wanted))
            break;
        if (s->parked)
            wait_with_parked(s);
        else
            receive(s);
        if (!s->over)
            wanted = take_frames(s);
    }
    while (s->parked) {
        struct work *w = s->parked;
        s->parked = w->next;
        drop_work(w);
    }
    close_channel(s);
    plan_forget(s);
    secret_end(s);
    close_all(s);
    buffer_size(&s->in, &s->in_room, 0);
    buffer_size(&s->out, &s->out_room, 0);
}

