/* Sending answers.  While one cannot be sent, requests are taken in: a runtime that sends much without waiting
 * for answers must not wait for us while we wait for it. */
#include "session.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEPT_ROOM = 256 << 10, PADDING = 64 << 10, RECORD = 64 << 10 };

/* Until something more can be sent. */
static bool wait_for_room(struct session *s)
{
    bool listens = !s->heard_all && s->in_used < MAX_BACKLOG;
    struct pollfd one = {.fd = s->channel, .events = POLLOUT | (listens ? POLLIN : 0)};
    if (poll(&one, 1, -1) < 0)
        return errno == EINTR;
    if (one.revents & (POLLERR | POLLNVAL))
        return false;
    if ((one.revents & POLLIN) && !(one.revents & POLLOUT))
        return take_in(s, MAX_BACKLOG + (1 << 20)) || s->heard_all;
    return !(one.revents & POLLHUP);
}

static ssize_t send_with_fd(int channel, const uint8_t *at, size_t size, int passed_fd, int flags)
{
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
    struct iovec part = {(void *)(uintptr_t)at, size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control.room};
    memcpy(CMSG_DATA(&control.head), &passed_fd, sizeof passed_fd);
    return sendmsg(channel, &message, flags);
}

static bool send_plain(struct session *s, const uint8_t *at, size_t size, int passed_fd, int flags)
{
    flags |= MSG_NOSIGNAL | MSG_DONTWAIT;
    while (size) {
        ssize_t sent = passed_fd < 0 ? send(s->channel, at, size, flags)
                                : send_with_fd(s->channel, at, size, passed_fd, flags);
        if (sent < 0 && (errno == EINTR || ((errno == EAGAIN || errno == EWOULDBLOCK) && wait_for_room(s))))
            continue;
        if (sent <= 0)
            return false;
        passed_fd = -1;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool send_all(struct session *s, const uint8_t *at, size_t size, int passed_fd, int flags)
{
    bool good = true;
    if (!s->secret)
        return send_plain(s, at, size, passed_fd, flags);
    while (size && good) {
        size_t piece = size < RECORD ? size : RECORD, whole = piece;
        uint8_t *record = secret_record(s, at, &whole);
        good = record && send_plain(s, record, whole, passed_fd, flags);
        free(record);
        passed_fd = -1;
        at += piece;
        size -= piece;
    }
    return good;
}

/* A file that became shorter meanwhile ends in zeros: the answer's length was said already. */
static bool send_padding(struct session *s, size_t size)
{
    uint8_t *zeros = calloc(1, PADDING);
    bool good = zeros;
    for (; good && size; size -= size < PADDING ? size : PADDING)
        good = send_all(s, zeros, size < PADDING ? size : PADDING, -1, 0);
    free(zeros);
    return good;
}

static bool send_copied(struct session *s, int real, int64_t offset, size_t size)
{
    uint8_t *room = malloc(KEPT_ROOM);
    bool good = room;
    while (good && size) {
        ssize_t got = pread(real, room, size < KEPT_ROOM ? size : KEPT_ROOM, offset);
        if (got <= 0)
            break;
        good = send_all(s, room, (size_t)got, -1, 0);
        offset += got;
        size -= (size_t)got;
    }
    free(room);
    return good && (!size || send_padding(s, size));
}

static bool send_pages(struct session *s, int real, int64_t offset, size_t size)
{
    off_t at = offset;
    while (size) {
        ssize_t sent = sendfile(s->channel, real, &at, size);
        if (sent < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_room(s))))
            continue;
        if (sent < 0 && errno == EINVAL)
            return send_copied(s, real, at, size);
        if (sent < 0)
            return false;
        if (sent == 0)
            return send_padding(s, size);
        size -= (size_t)sent;
    }
    return true;
}

/* The kernel hands the file's pages to the socket, which must not wait meanwhile (see wait_for_room). */
static bool send_bulk(struct session *s, const struct work *w)
{
    if (s->secret)
        return send_copied(s, w->bulk.real, w->bulk.offset, w->bulk.size);
    int flags = fcntl(s->channel, F_GETFL);
    fcntl(s->channel, F_SETFL, flags | O_NONBLOCK);
    bool good = send_pages(s, w->bulk.real, w->bulk.offset, w->bulk.size);
    fcntl(s->channel, F_SETFL, flags);
    return good;
}

/* The answer to a request that wants none is remembered, if it is bad news. */
static void note_silent(struct work *w, long result)
{
    struct file *file = file_of(w->session, w->head.arguments[0]);
    bool writes = w->head.call == __NR_write || w->head.call == __NR_pwrite64;
    if (!file || !writes || file->late_error)
        return;
    file->late_writer = w->session->virtual_pid;
    if (result < 0)
        file->late_error = (int)-result;
    else if (result < w->head.arguments[2])
        file->late_error = ENOSPC;
}

/* One answer before its question: W's output behind HEAD and PATH. */
bool send_foreseen(struct work *w, long result, const struct foreseen *head, const char *path)
{
    struct session *s = w->session;
    struct {
        struct answer answer;
        struct foreseen head;
        char path[PATH_LIMIT];
    } front;
    size_t size = sizeof front.answer;
    front.answer = (struct answer){.id = ID_PLAN, .hints = w->hints, .result = result};
    if (path) {
        front.head = *head;
        memcpy(front.path, path, head->path_size);
        size += sizeof front.head + head->path_size;
    }
    front.answer.size = (uint32_t)(size - sizeof front.answer + w->out_used + w->bulk.size);
    s->statistics.bytes_out += sizeof front.answer + front.answer.size;
    return send_all(s, (const uint8_t *)&front, size, -1, w->out_used + w->bulk.size ? MSG_MORE : 0) &&
           send_all(s, s->out + sizeof(struct answer), w->out_used, -1, w->bulk.size ? MSG_MORE : 0) &&
           (!w->bulk.size || send_bulk(s, w));
}

static bool send_answer(struct work *w, long result)
{
    struct session *s = w->session;
    if (result < 0) {
        w->out_used = 0;
        w->bulk.size = 0;
    }
    if (!out_room(w, 0))
        return false;
    ready_look(w);
    if (s->root->due_count)
        w->hints |= HINT_SIGNALS;
    struct answer head = {.size = (uint32_t)(w->out_used + w->bulk.size), .id = w->head.id, .hints = w->hints,
                          .result = result};
    memcpy(s->out, &head, sizeof head);
    s->statistics.bytes_out += sizeof head + w->out_used + w->bulk.size;
    int passed_fd = s->task.direct ? -1 : w->passed_fd;
    return send_all(s, s->out, sizeof head + w->out_used, passed_fd, w->bulk.size ? MSG_MORE : 0) &&
           (!w->bulk.size || send_bulk(s, w));
}

/* When answers cannot be delivered, the program is dead; what it had said before is done all the same, as a kernel does the
 * writes of a program that is killed after them. */
void answer(struct work *w, long result)
{
    struct session *s = w->session;
    if (s->task.direct && w->head.call == OP_FORK && w->passed_fd >= 0) {
        tell(s, SHADOW_MEMBER, w->passed_fd, result, NULL);
        w->passed_fd = -1;
    }
    if (w->head.id == ID_NONE) {
        note_silent(w, result);
    } else if (!s->mute && !send_answer(w, result)) {
        s->mute = true;
        shutdown(s->channel, SHUT_WR);
    }
    if (w->passed_fd >= 0)
        close(w->passed_fd);
    if (s->out_room > 2 * KEPT_ROOM) /* a big answer's room is not kept */
        buffer_size(&s->out, &s->out_room, 0);
}
