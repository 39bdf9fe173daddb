/* The relays of the process: the thread that serves them, their news, and what the host does with them. */
#include "relays.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_AT_ONCE = 64, STACK_BYTES = 128 << 10 };

pthread_mutex_t relay_lock = PTHREAD_MUTEX_INITIALIZER;
static int poll_fd GUARDED_BY(relay_lock) = -1;
static int news_fd GUARDED_BY(relay_lock) = -1;
static struct relay *news_first GUARDED_BY(relay_lock);
static struct relay **news_last GUARDED_BY(relay_lock) = &news_first;
static struct relay *dead GUARDED_BY(relay_lock); /* freed when the thread has no events of theirs any more */

/* ---- for the two kinds */

/* EVENTS of an end are of interest: none, reading, writing. */
void relay_watch(struct end *end, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = end};
    if (end->fd < 0 || events == end->watched)
        return;
    int how = !events ? EPOLL_CTL_DEL : end->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    end->watched = events; /* without any it is left out, since errors would be told all the time */
    if (epoll_ctl(poll_fd, how, end->fd, &event) < 0)
        relay_end(end->relay, "there is no memory to wait for a connection");
}

void relay_close(struct end *end)
{
    bytes_free(&end->waiting);
    if (end->fd < 0)
        return;
    if (end->watched)
        epoll_ctl(poll_fd, EPOLL_CTL_DEL, end->fd, NULL);
    close(end->fd);
    end->fd = -1;
    end->watched = 0;
}

void relay_tell(struct relay *relay, int what)
{
    uint64_t one = 1;
    relay->news |= what;
    if (relay->has_news)
        return;
    relay->has_news = true;
    relay->next_news = NULL;
    *news_last = relay;
    news_last = &relay->next_news;
    if (write(news_fd, &one, sizeof one) < 0) /* full means that it is readable already */
        return;
}

/* Closes all. WHY: what the other end has done wrong, or NULL. */
void relay_end(struct relay *relay, const char *why)
{
    if (relay->over)
        return;
    relay->over = true;
    relay->why = why;
    relay_close(&relay->ends[FIRST]);
    relay_close(&relay->ends[SECOND]);
    if (relay->is_channel)
        bytes_free(&relay->channel.kept);
    relay_tell(relay, RELAY_ENDED);
}

/* Writes what waits, as far as the end takes it. Returns false when it is gone. */
bool relay_write_waiting(struct end *end)
{
    struct bytes *b = &end->waiting;
    while (b->used) {
        ssize_t sent = send(end->fd, b->data + b->start, b->used, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
            return errno == EAGAIN || errno == EINTR;
        bytes_drop(b, (size_t)sent);
    }
    return true;
}

/* Writes, and lets wait what the end does not take now. Returns false when it is gone. */
bool relay_write(struct end *end, const uint8_t *from, size_t size)
{
    size_t done = 0;
    if (!end->waiting.used) {
        ssize_t sent = send(end->fd, from, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        done = sent > 0 ? (size_t)sent : 0;
    }
    return done == size || bytes_add(&end->waiting, from + done, size - done);
}

/* ---- the thread */

static void serve_events(const struct epoll_event *events, int count, uint8_t *room) REQUIRES(relay_lock);
static void serve_events(const struct epoll_event *events, int count, uint8_t *room)
{
    for (int i = 0; i < count; i++) {
        struct end *end = events[i].data.ptr;
        struct relay *relay = end->relay;
        if (relay->over || end->fd < 0 || !end->watched)
            continue;
        if (relay->is_channel)
            numbered_ready(relay, end == &relay->ends[SECOND], events[i].events, room);
        else
            splice_ready(relay, end == &relay->ends[SECOND], events[i].events, room);
    }
}

static void free_dead(void) REQUIRES(relay_lock);
static void free_dead(void)
{
    while (dead) {
        struct relay *relay = dead;
        dead = relay->next_dead;
        free(relay);
    }
}

static void *run(void *argument)
{
    const int own_poll = *(int *)argument;
    struct epoll_event events[MOST_AT_ONCE];
    sigset_t all;
    free(argument);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    uint8_t *room = malloc(READ_BYTES);
    while (room) {
        int count = epoll_wait(own_poll, events, MOST_AT_ONCE, -1);
        if (count < 0 && errno != EINTR)
            break;
        pthread_mutex_lock(&relay_lock);
        serve_events(events, count, room);
        free_dead();
        pthread_mutex_unlock(&relay_lock);
    }
    free(room);
    return NULL;
}

/* Returns 0 or -errno. */
static int start_thread(void) REQUIRES(relay_lock);
static int start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    int *argument = malloc(sizeof *argument);
    if (!argument)
        return -ENOMEM;
    int fd = epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) {
        free(argument);
        return -errno;
    }
    *argument = fd;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, run, argument);
    pthread_attr_destroy(&attributes);
    if (failed) {
        free(argument);
        close(fd);
        return -failed;
    }
    poll_fd = fd;
    return 0;
}

static int begin(void) REQUIRES(relay_lock);
static int begin(void)
{
    if (news_fd < 0 && (news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return -errno;
    return poll_fd < 0 ? start_thread() : 0;
}

/* ---- the host's */

int relay_news_descriptor(void)
{
    pthread_mutex_lock(&relay_lock);
    int failed = begin();
    int fd = news_fd;
    pthread_mutex_unlock(&relay_lock);
    return failed ? failed : fd;
}

int relay_next_news(struct relay_news *news)
{
    uint64_t count;
    pthread_mutex_lock(&relay_lock);
    struct relay *relay = news_first;
    if (relay) {
        news_first = relay->next_news;
        if (!news_first)
            news_last = &news_first;
        news->relay = (uintptr_t)relay;
        news->what = relay->news;
        news->why = relay->why;
        relay->news = 0;
        relay->has_news = false;
    }
    if (!news_first && read(news_fd, &count, sizeof count) < 0)
        count = 0;
    pthread_mutex_unlock(&relay_lock);
    return relay ? 1 : 0;
}

static struct relay *relay_new(int first, int second, bool is_channel) REQUIRES(relay_lock);
static struct relay *relay_new(int first, int second, bool is_channel)
{
    int failed = begin();
    struct relay *relay = failed ? NULL : calloc(1, sizeof *relay);
    if (!relay) {
        errno = failed ? -failed : ENOMEM;
        return NULL;
    }
    relay->is_channel = is_channel;
    relay->ends[FIRST] = (struct end){.relay = relay, .fd = first};
    relay->ends[SECOND] = (struct end){.relay = relay, .fd = second};
    return relay;
}

struct relay *relay_splice(int first, int second)
{
    pthread_mutex_lock(&relay_lock);
    struct relay *relay = relay_new(first, second, false);
    if (relay)
        splice_begin(relay);
    pthread_mutex_unlock(&relay_lock);
    return relay;
}

struct relay *relay_channel(int local)
{
    pthread_mutex_lock(&relay_lock);
    struct relay *relay = relay_new(local, -1, true);
    if (relay)
        numbered_begin(relay);
    pthread_mutex_unlock(&relay_lock);
    return relay;
}

int relay_attach(struct relay *relay, int remote, uint64_t arrived, int listens)
{
    pthread_mutex_lock(&relay_lock);
    int failed = relay->over ? -ESRCH : numbered_attach(relay, remote, arrived, listens);
    pthread_mutex_unlock(&relay_lock);
    return failed;
}

int64_t relay_detach(struct relay *relay)
{
    pthread_mutex_lock(&relay_lock);
    if (!relay->over)
        numbered_detach(relay);
    int64_t received = relay->over ? -ESRCH : (int64_t)relay->channel.received;
    pthread_mutex_unlock(&relay_lock);
    return received;
}

void relay_carried(struct relay *relay, uint64_t carried[2])
{
    pthread_mutex_lock(&relay_lock);
    carried[FIRST] = relay->splice.carried[FIRST];
    carried[SECOND] = relay->splice.carried[SECOND];
    pthread_mutex_unlock(&relay_lock);
}

void relay_cut(struct relay *relay)
{
    pthread_mutex_lock(&relay_lock);
    relay_end(relay, NULL);
    pthread_mutex_unlock(&relay_lock);
}

void relay_free(struct relay *relay)
{
    pthread_mutex_lock(&relay_lock);
    relay->next_dead = dead;
    dead = relay;
    pthread_mutex_unlock(&relay_lock);
}
