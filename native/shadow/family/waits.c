/* Waiting for many descriptors at once. */
#include "shadow/serve.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

/* A century stands for no limit; more than that would not fit beside the present time. */
#define LONGEST_NS (100ll * 366 * 86400 * 1000000000)

static long until_later(struct work *w, int64_t timeout_ns)
{
    if (!w->again)
        w->until_ns = timeout_ns < 0 || timeout_ns > LONGEST_NS ? -1 : now_ns() + timeout_ns;
    return PARKED;
}

static bool time_is_up(const struct work *w, int64_t timeout_ns)
{
    return timeout_ns == 0 || (w->again && w->until_ns >= 0 && now_ns() >= w->until_ns);
}

long serve_poll_all(struct work *w)
{
    struct session *s = w->session;
    size_t count = w->head.size / sizeof(struct pollfd);
    if (w->head.size % sizeof(struct pollfd) || count != (size_t)ARGUMENT(0) || count > MAX_FILES)
        return -EINVAL;
    struct pollfd *asked = (void *)w->payload, *real = calloc(count + 1, sizeof *real);
    if (!real)
        return -ENOMEM;
    int bad = 0, told = 0;
    for (size_t i = 0; i < count; i++) {
        int fd = asked[i].fd < 0 ? -1 : real_of(s, asked[i].fd);
        const struct file *file = fd < 0 ? NULL : file_of(s, asked[i].fd);
        const bool signals = file && file->kind == FILE_SIGNALS; /* no event at home tells of them */
        real[i] = (struct pollfd){signals ? -1 : fd, asked[i].events, 0};
        bad += asked[i].fd >= 0 && fd < 0;
        told += signals && (asked[i].events & POLLIN) && signals_wait(file, (uint64_t)ARGUMENT(2));
    }
    long found = result_of(poll(real, count, 0));
    if (found < 0) { /* more than this process may have files open */
        free(real);
        return found;
    }
    if (found + bad + told == 0 && !time_is_up(w, ARGUMENT(1))) {
        w->wait = real;
        w->wait_count = count;
        return until_later(w, ARGUMENT(1));
    }
    uint8_t *to = out_room(w, w->head.size);
    for (size_t i = 0; i < count && to; i++) {
        struct pollfd one = asked[i];
        const struct file *file = one.fd < 0 ? NULL : file_of(s, one.fd);
        one.revents = one.fd >= 0 && !file ? POLLNVAL : real[i].revents;
        if (file && file->kind == FILE_SIGNALS && signals_wait(file, (uint64_t)ARGUMENT(2)))
            one.revents = one.events & POLLIN;
        memcpy(to + i * sizeof one, &one, sizeof one);
    }
    free(real);
    return to ? found + bad + told : -ENOMEM;
}

long serve_epoll_set(struct work *w)
{
    const struct file *set = file_of(w->session, ARGUMENT(0));
    int64_t most = ARGUMENT(1);
    if (!set)
        return -EBADF;
    if (most <= 0 || most > MAX_FILES || set->inotify)
        return -EINVAL;
    uint8_t *to = out_room(w, (size_t)most * sizeof(struct epoll_event));
    if (!to)
        return -ENOMEM;
    signals_show(w->session, (uint64_t)ARGUMENT(3));
    long found = result_of(epoll_wait(set->real, (void *)to, (int)most, 0));
    w->out_used = found > 0 ? (size_t)found * sizeof(struct epoll_event) : 0;
    if (found != 0 || time_is_up(w, ARGUMENT(2)))
        return found;
    wait_on(w, set->real, POLLIN);
    return until_later(w, ARGUMENT(2));
}
