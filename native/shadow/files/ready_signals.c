/* A signal when a descriptor is ready (O_ASYNC, FIOASYNC, F_SETOWN): what the kernel here would send, if the processes were here.
 *
 * The kernel tells of each such file's news once (an epoll set, edges).  After each call of a member it is asked whether there
 * are any; who owns the file gets its signal from whom is answered next, as with terminals.
 */
#include "shadow/serve.h"
#include "shadow/terminals/terminals.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_NEWS = 64, TERMINAL_MS = 20 /* in which what was written at one end is to be read at the other */ };

/* What the kernel sends signals for: none of what is always ready, or tells of itself by waiting alone. */
static bool can_tell(const struct file *file)
{
    struct stat st;
    switch (file->kind) {
    case FILE_PIPE: case FILE_SOCKET: case FILE_INOTIFY: case FILE_TERMINAL: return true;
    case FILE_PLAIN: case FILE_STANDARD:
        return !(file->flags & O_PATH) && fstat(file->real, &st) == 0 &&
               (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || (S_ISCHR(st.st_mode) && isatty(file->real)));
    default: return false;
    }
}

static bool only_writes(const struct file *file)
{
    return (file->flags & O_ACCMODE) == O_WRONLY || (file->kind == FILE_PIPE && file->end);
}

/* News since FILE was watched, of all that the family watches, become signals; those that are FILE's own are none. */
static void gather_news(struct session *root, const struct file *but) REQUIRES(terminals_lock);
static void gather_news(struct session *root, const struct file *but)
{
    struct epoll_event news[MOST_NEWS];
    const int count = epoll_wait(root->ready_set, news, MOST_NEWS, 0);
    for (int i = 0; i < count; i++)
        for (const struct file *file = root->ready_files; file; file = file->next_ready)
            if (file->id == news[i].data.u64 && file != but)
                terminal_signal(root, file->owner < 0 ? -file->owner : 0, file->owner > 0 ? file->owner : 0, SIGIO);
}

/* What is written to a terminal the kernel passes on a moment later. */
static bool passes_later(const struct work *w)
{
    const struct file *file = w->head.call == __NR_write ? file_of(w->session, ARGUMENT(0)) : NULL;
    return file && file->terminal;
}

/* After a call of a member's: who is to be told that something is ready. */
void ready_look(const struct work *w)
{
    struct session *root = w->session->root;
    if (!root->ready_count)
        return;
    if (passes_later(w)) {
        struct pollfd one = {.fd = root->ready_set, .events = POLLIN};
        poll(&one, 1, TERMINAL_MS);
    }
    pthread_mutex_lock(&terminals_lock);
    gather_news(root, NULL);
    pthread_mutex_unlock(&terminals_lock);
}

static long watch(struct session *root, struct file *file) REQUIRES(terminals_lock);
static long watch(struct session *root, struct file *file)
{
    struct epoll_event event = {.events = EPOLLET | (only_writes(file) ? EPOLLOUT : EPOLLIN | EPOLLRDHUP),
                                .data.u64 = file->id};
    if (root->ready_set < 0)
        root->ready_set = epoll_create1(EPOLL_CLOEXEC);
    if (root->ready_set < 0 || epoll_ctl(root->ready_set, EPOLL_CTL_ADD, file->real, &event) < 0)
        return -errno;
    file->ready_root = root;
    file->next_ready = root->ready_files;
    root->ready_files = file;
    root->ready_count++;
    gather_news(root, file); /* what is ready already is no news */
    return 0;
}

static void unwatch(struct file *file) REQUIRES(terminals_lock);
static void unwatch(struct file *file)
{
    struct session *root = file->ready_root;
    struct file **at = root ? &root->ready_files : NULL;
    while (at && *at && *at != file)
        at = &(*at)->next_ready;
    if (!at || !*at)
        return;
    *at = file->next_ready;
    file->ready_root = NULL;
    root->ready_count--;
    epoll_ctl(root->ready_set, EPOLL_CTL_DEL, file->real, NULL);
}

/* FILE is about to be closed. */
void ready_closing(struct file *file)
{
    pthread_mutex_lock(&terminals_lock);
    unwatch(file);
    pthread_mutex_unlock(&terminals_lock);
}

/* O_ASYNC of FILE is set or taken away. BY_REQUEST: by an ioctl, which says of what tells nothing that it is none of it. */
long ready_tell(struct session *s, struct file *file, bool wanted, bool by_request)
{
    const bool was = file->flags & O_ASYNC;
    const bool tells = can_tell(file);
    long result = 0;
    if (was == wanted)
        return 0;
    if (!tells)
        return by_request ? -ENOTTY : 0;
    const struct membership who = terminal_caller(s);
    pthread_mutex_lock(&terminals_lock);
    if (wanted) {
        if (file->terminal && !file->owner)
            file->owner = file->terminal->foreground ? -file->terminal->foreground : who.pid;
        result = watch(s->root, file);
    } else {
        unwatch(file);
    }
    if (!result)
        file->flags = (file->flags & ~O_ASYNC) | (wanted ? O_ASYNC : 0);
    pthread_mutex_unlock(&terminals_lock);
    return result;
}

static bool is_there(struct session *root, int owner)
{
    bool found = false;
    pthread_mutex_lock(&table_lock);
    for (const struct session *s = root; s && !found; s = s->next_member)
        found = s->greeted && (owner < 0 ? s->member.group == -owner : s->member.pid == owner);
    pthread_mutex_unlock(&table_lock);
    return found;
}

/* Who gets FILE's signals: a process, a group as a negative number, or 0: nobody. */
long ready_own(struct session *s, struct file *file, int64_t owner)
{
    if (owner <= INT_MIN || owner > INT_MAX)
        return -EINVAL;
    if (owner && !is_there(s->root, (int)owner))
        return -ESRCH;
    pthread_mutex_lock(&terminals_lock);
    file->owner = (int)owner;
    pthread_mutex_unlock(&terminals_lock);
    return 0;
}

struct owner_told { /* as F_GETOWN_EX has it: a thread, a process or a group */
    int32_t kind, number;
};

static struct owner_told told_of(const struct file *file)
{
    return (struct owner_told){file->owner < 0 ? F_OWNER_PGRP : F_OWNER_PID, file->owner < 0 ? -file->owner : file->owner};
}

/* Those of fcntl's commands. */
long serve_owner(struct work *w, struct file *file, int command)
{
    struct session *s = w->session;
    struct owner_told owner;
    switch (command) {
    case F_SETOWN: return ready_own(s, file, (int)ARGUMENT(2));
    case F_GETOWN: return file->owner;
    case F_GETSIG: return 0;
    case F_SETSIG: return (int)ARGUMENT(2) == 0 || (int)ARGUMENT(2) == SIGIO ? 0 : -EINVAL;
    case F_GETOWN_EX: {
        owner = told_of(file);
        uint8_t *to = out_room(w, sizeof owner);
        if (!to)
            return -ENOMEM;
        memcpy(to, &owner, sizeof owner);
        return 0;
    }
    default: break;
    }
    if (w->head.size != sizeof owner)
        return -EINVAL;
    memcpy(&owner, w->payload, sizeof owner);
    if (owner.number < 0 || owner.kind < F_OWNER_TID || owner.kind > F_OWNER_PGRP ||
        (owner.kind == F_OWNER_TID && owner.number != terminal_caller(s).pid)) /* a thread by itself is told of nothing */
        return owner.number < 0 && owner.kind >= F_OWNER_TID && owner.kind <= F_OWNER_PGRP ? -ESRCH : -EINVAL;
    return ready_own(s, file, owner.kind == F_OWNER_PGRP ? -(int64_t)owner.number : owner.number);
}

/* ---- in a checkpoint: a file of its own says who owns which. */

size_t owners_described(struct file *const *files, uint32_t count, uint8_t *to, size_t room)
{
    size_t used = 0;
    for (uint32_t i = 0; i < count && used + sizeof(struct described_owner) <= room; i++)
        if (files[i]->owner || (files[i]->flags & O_ASYNC)) {
            const struct described_owner one = {i, files[i]->owner};
            memcpy(to + used, &one, sizeof one);
            used += sizeof one;
        }
    return used;
}

long owners_again(struct session *s, const struct described_file *d, const uint8_t *content, struct file **files, uint32_t count)
{
    struct described_owner one;
    long result = 0;
    pthread_mutex_lock(&terminals_lock);
    for (size_t at = 0; at + sizeof one <= d->content_size && !result; at += sizeof one) {
        memcpy(&one, content + at, sizeof one);
        struct file *file = one.file < count ? files[one.file] : NULL;
        if (!file || file->ready_root || one.owner == INT_MIN) /* of several members' files the first has told */
            continue;
        file->owner = one.owner;
        if ((file->flags & O_ASYNC) && can_tell(file))
            result = watch(s->root, file);
    }
    pthread_mutex_unlock(&terminals_lock);
    return result;
}
