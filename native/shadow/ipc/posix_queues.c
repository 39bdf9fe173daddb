/* POSIX message queues of a family: its names mean nothing to any other program.
 *
 * A queue is there as long as it has a name or anybody has it open.  Each open file of it is a second descriptor of its
 * event counter, by which poll and epoll know how full it is: 0 is empty, the highest value full, and 1 anything between.
 * Who waits stands in line, as at a queue of System V's; of several the first is served, the highest priority first.
 */
#include "ipc.h"

#include <limits.h>
#include <mqueue.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USUAL_MESSAGES = 10, USUAL_SIZE = 8192, MOST_MESSAGES = 65536, LARGEST_MESSAGE = 1 << 20, PRIORITIES = 32768 };

static const uint64_t FULL = UINT64_MAX - 1;

static bool is_empty(const struct posix_queue *queue)
{
    return !queue->count;
}

static bool is_full(const struct posix_queue *queue)
{
    return queue->count >= queue->most;
}

/* Makes the event counter what poll is to find. */
static void show(struct posix_queue *queue)
{
    const uint64_t value = is_full(queue) ? FULL : !is_empty(queue);
    uint64_t old;
    if (value == queue->shown)
        return;
    if (queue->shown && read(queue->event, &old, sizeof old) < 0)
        return;
    if (value && write(queue->event, &value, sizeof value) < 0)
        return;
    queue->shown = value;
}

/* The caller has the family's lock, as in all that follows. */
struct posix_queue *posix_queue_new(struct ipc *ipc, const char *name, int id)
{
    struct posix_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->name = strdup(name);
    queue->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (!queue->name || queue->event < 0) {
        if (queue->event >= 0)
            close(queue->event);
        free(queue->name);
        free(queue);
        return NULL;
    }
    queue->ipc = ipc;
    queue->base.id = id;
    queue->base.last = &queue->base.waits;
    queue->base.uid = queue->base.cuid = geteuid();
    queue->base.gid = getegid();
    queue->most = USUAL_MESSAGES;
    queue->largest = USUAL_SIZE;
    queue->next = ipc->posix;
    ipc->posix = queue;
    if (id >= ipc->next_posix)
        ipc->next_posix = id + 1;
    return queue;
}

struct posix_queue *posix_queue_numbered(const struct ipc *ipc, int id)
{
    struct posix_queue *queue = ipc->posix;
    while (queue && queue->base.id != id)
        queue = queue->next;
    return queue;
}

static struct posix_queue *named(const struct ipc *ipc, const char *name)
{
    struct posix_queue *queue = ipc->posix;
    while (queue && strcmp(queue->name, name) != 0)
        queue = queue->next;
    return queue;
}

void posix_queue_end(struct ipc *ipc, struct posix_queue *queue)
{
    struct posix_queue **place = &ipc->posix;
    while (*place != queue)
        place = &(*place)->next;
    *place = queue->next;
    while (queue->base.waits)
        ipc_over(queue->base.waits, -EBADF);
    for (struct message *message; (message = queue->first);) {
        queue->first = message->next;
        message_end(ipc, message);
    }
    close(queue->event);
    free(queue->name);
    free(queue);
}

static void end_if_unused(struct ipc *ipc, struct posix_queue *queue)
{
    if (!queue->files && !queue->name[0])
        posix_queue_end(ipc, queue);
}

void posix_queue_add(struct posix_queue *queue, struct message *message)
{
    struct message **place = &queue->first;
    while (*place && (*place)->type >= message->type)
        place = &(*place)->next;
    message->next = *place;
    *place = message;
    queue->count++;
    show(queue);
}

/* An open file of it. NULL: there is no memory, or no descriptor left. */
struct file *posix_queue_file(struct posix_queue *queue, int flags)
{
    struct file *file = file_new(fcntl(queue->event, F_DUPFD_CLOEXEC, 3), flags);
    if (!file)
        return NULL;
    file->kind = FILE_QUEUE;
    file->queue = queue;
    queue->files++;
    return file;
}

/* FILE, which nobody has open any more, was one of those. */
void posix_queue_dropped(struct posix_queue *queue)
{
    struct ipc *ipc = queue->ipc;
    pthread_mutex_lock(&ipc->lock);
    queue->files--;
    end_if_unused(ipc, queue);
    pthread_mutex_unlock(&ipc->lock);
}

/* A process that is to be told of a message closes one of its descriptors: it is told no more. */
void posix_queue_closed(struct session *s, const struct file *file)
{
    struct ipc *ipc = ipc_of(s);
    pthread_mutex_lock(&ipc->lock);
    if (file->queue->notice.pid == s->virtual_pid)
        file->queue->notice = (struct queue_notice){0};
    pthread_mutex_unlock(&ipc->lock);
}

/* ---- calls */

static size_t reserved(const struct ipc *ipc)
{
    size_t bytes = 0;
    for (const struct posix_queue *queue = ipc->posix; queue; queue = queue->next)
        bytes += queue->most * (queue->largest + sizeof(struct message));
    return bytes;
}

static long make(struct ipc *ipc, const char *name, const struct mq_attr *wanted, unsigned mode, struct posix_queue **made)
{
    const bool free_choice = geteuid() == 0;
    const long most = wanted ? wanted->mq_maxmsg : USUAL_MESSAGES, largest = wanted ? wanted->mq_msgsize : USUAL_SIZE;
    if (most <= 0 || largest <= 0 || most > (free_choice ? MOST_MESSAGES : USUAL_MESSAGES) ||
        largest > (free_choice ? LARGEST_MESSAGE : USUAL_SIZE))
        return -EINVAL;
    int count = 0;
    for (const struct posix_queue *queue = ipc->posix; queue; queue = queue->next)
        count++;
    if (count >= MOST_OBJECTS)
        return -ENOSPC;
    if (reserved(ipc) + (size_t)most * ((size_t)largest + sizeof(struct message)) > MOST_MESSAGE_BYTES)
        return -EMFILE;
    struct posix_queue *queue = posix_queue_new(ipc, name, ipc->next_posix);
    if (!queue)
        return -ENOMEM;
    queue->most = (uint64_t)most;
    queue->largest = (uint64_t)largest;
    queue->base.mode = mode & ALL_MODES;
    *made = queue;
    return 0;
}

/* *OPENED: an open file of the queue with that name. */
static long open_queue(struct ipc *ipc, const char *name, int flags, unsigned mode, const struct mq_attr *wanted, struct file **opened)
{
    struct posix_queue *queue = named(ipc, name);
    const int how = flags & O_ACCMODE;
    if (queue && (flags & O_CREAT) && (flags & O_EXCL))
        return -EEXIST;
    if (!queue && !(flags & O_CREAT))
        return -ENOENT;
    if (queue && !ipc_may(&queue->base, how == O_RDONLY ? 0444 : how == O_WRONLY ? 0222 : 0666))
        return -EACCES;
    const long failed = queue ? 0 : make(ipc, name, wanted, mode, &queue);
    if (failed)
        return failed;
    *opened = posix_queue_file(queue, flags & (O_ACCMODE | O_NONBLOCK));
    return *opened ? 0 : -EMFILE;
}

/* As the kernel has names of queues: one part of a path. */
static long check_name(const char *name)
{
    if (!*name)
        return -ENOENT;
    if (strchr(name, '/') || !strcmp(name, ".") || !strcmp(name, ".."))
        return -EACCES;
    return strlen(name) > NAME_MAX ? -ENAMETOOLONG : 0;
}

/* Name, flags, mode, and what the queue is to be like, or nothing. */
long serve_mq_open(struct work *w)
{
    struct ipc *ipc = ipc_of(w->session);
    size_t at = 0;
    const char *name = take_path(w, &at);
    struct mq_attr wanted;
    const void *given = ARGUMENT(3) ? take_input(w, &at, sizeof wanted) : NULL;
    struct file *file = NULL;
    if (!ipc || !name || (ARGUMENT(3) && !given))
        return ipc ? -EFAULT : -ENOMEM;
    if (given)
        memcpy(&wanted, given, sizeof wanted);
    const mode_t mask = umask(0);
    umask(mask);
    long result = check_name(name);
    pthread_mutex_lock(&ipc->lock);
    if (!result)
        result = open_queue(ipc, name, (int)ARGUMENT(1), (unsigned)ARGUMENT(2) & ~mask, given ? &wanted : NULL, &file);
    pthread_mutex_unlock(&ipc->lock);
    return result ? result : enter_file(w->session, file, 0, true);
}

long serve_mq_unlink(struct work *w)
{
    struct ipc *ipc = ipc_of(w->session);
    size_t at = 0;
    const char *name = take_path(w, &at);
    if (!ipc || !name)
        return ipc ? -EFAULT : -ENOMEM;
    long result = check_name(name);
    pthread_mutex_lock(&ipc->lock);
    struct posix_queue *queue = result ? NULL : named(ipc, name);
    if (queue && !ipc_is_owner(&queue->base))
        result = -EACCES;
    else if (queue) {
        queue->name[0] = 0;
        end_if_unused(ipc, queue);
    } else if (!result)
        result = -ENOENT;
    pthread_mutex_unlock(&ipc->lock);
    return result;
}

/* The queue that the descriptor is of, open for READS or for writing; NULL: it is not. */
static struct posix_queue *queue_of(struct work *w, bool reads)
{
    const struct file *file = file_of(w->session, ARGUMENT(0));
    const int how = file ? file->flags & O_ACCMODE : 0;
    return file && file->queue && how != (reads ? O_WRONLY : O_RDONLY) ? file->queue : NULL;
}

/* W's call has to wait. */
static long stand_in_line(struct work *w, struct posix_queue *queue, struct message *message)
{
    const struct file *file = file_of(w->session, ARGUMENT(0));
    const int64_t left_ns = ARGUMENT(3);
    if (file->wants_nonblocking || !left_ns)
        return file->wants_nonblocking ? -EAGAIN : -ETIMEDOUT;
    struct ipc_wait *wait = ipc_wait(w, &queue->base);
    if (!wait)
        return -ENOMEM;
    wait->sends = message != NULL;
    wait->message = message;
    w->until_ns = left_ns < 0 ? -1 : left_ns < INT64_MAX / 4 ? now_ns() + left_ns : INT64_MAX / 2;
    return ipc_waited(w);
}

static struct ipc_wait *first_waiting(const struct posix_queue *queue, bool sends)
{
    struct ipc_wait *wait = queue->base.waits;
    while (wait && wait->sends != sends)
        wait = wait->next;
    return wait;
}

/* The message is in the queue, or with who waited for it. NOTICE: whom to tell of it, of nobody if its process is 0. */
static void deliver(struct posix_queue *queue, struct message *message, struct queue_notice *notice)
{
    struct ipc_wait *wait = first_waiting(queue, false);
    if (wait) {
        wait->message = message;
        ipc_over(wait, 0);
        return;
    }
    const bool was_empty = is_empty(queue);
    posix_queue_add(queue, message);
    if (was_empty && notice) {
        *notice = queue->notice;
        queue->notice = (struct queue_notice){0};
    }
}

static long send_message(struct work *w, struct ipc *ipc, struct queue_notice *notice)
{
    struct posix_queue *queue = queue_of(w, false);
    if (!queue)
        return -EBADF;
    if (ARGUMENT(2) < 0 || (uint64_t)ARGUMENT(2) > queue->largest)
        return -EMSGSIZE;
    if (w->head.size != (uint64_t)ARGUMENT(2))
        return -EFAULT;
    struct message *message = message_new(ipc, w->head.size);
    if (!message)
        return -ENOMEM;
    message->type = ARGUMENT(1);
    memcpy(message->text, w->payload, w->head.size);
    if (!is_full(queue)) {
        deliver(queue, message, notice);
        return 0;
    }
    const long result = stand_in_line(w, queue, message);
    if (!w->ipc)
        message_end(ipc, message);
    return result;
}

/* What a call with RESULT answers. It keeps its place in line only if it waits there. */
static long out_of_line(struct work *w, long result)
{
    if (result == PARKED)
        return result;
    if (w->ipc && result == -EAGAIN)
        result = -ETIMEDOUT;
    ipc_leave(w);
    return result;
}

/* Queue, priority, bytes, how long it may take in ns, -1: as long as it does; the text follows. Result 1: there is a process to be told. */
long serve_mq_timedsend(struct work *w)
{
    struct ipc *ipc = ipc_of(w->session);
    struct queue_notice notice = {0};
    if (!ipc)
        return -ENOMEM;
    if (ARGUMENT(1) < 0 || ARGUMENT(1) >= PRIORITIES)
        return -EINVAL;
    pthread_mutex_lock(&ipc->lock);
    long result = w->ipc                                ? ipc_waited(w)
                  : w->session->state == SHADOW_EXITED ? -EINTR
                                                       : send_message(w, ipc, &notice);
    pthread_mutex_unlock(&ipc->lock);
    result = out_of_line(w, result);
    uint8_t *to = !result && notice.pid && notice.number ? out_room(w, sizeof notice) : NULL;
    if (!to)
        return result;
    memcpy(to, &notice, sizeof notice);
    return 1;
}

static long put(struct work *w, const struct message *message)
{
    const uint32_t priority = (uint32_t)message->type;
    uint8_t *to = out_room(w, sizeof priority + message->size);
    if (!to)
        return -ENOMEM;
    memcpy(to, &priority, sizeof priority);
    memcpy(to + sizeof priority, message->text, message->size);
    return message->size;
}

static long receive_message(struct work *w, struct ipc *ipc)
{
    struct posix_queue *queue = queue_of(w, true);
    if (!queue)
        return -EBADF;
    if (ARGUMENT(2) < 0 || (uint64_t)ARGUMENT(2) < queue->largest)
        return -EMSGSIZE;
    if (is_empty(queue))
        return stand_in_line(w, queue, NULL);
    struct message *message = queue->first;
    const long result = put(w, message);
    if (result < 0)
        return result;
    queue->first = message->next;
    queue->count--;
    message_end(ipc, message);
    struct ipc_wait *wait = first_waiting(queue, true);
    if (wait) {
        struct message *next = wait->message;
        wait->message = NULL;
        ipc_over(wait, 0);
        posix_queue_add(queue, next);
    }
    show(queue);
    return result;
}

/* Queue, a number of its own, room for the text, how long it may take. */
long serve_mq_timedreceive(struct work *w)
{
    struct ipc *ipc = ipc_of(w->session);
    if (!ipc)
        return -ENOMEM;
    pthread_mutex_lock(&ipc->lock);
    long result = w->ipc                                ? ipc_waited(w)
                  : w->session->state == SHADOW_EXITED ? -EINTR
                                                       : receive_message(w, ipc);
    if (w->ipc && !result)
        result = put(w, w->ipc->message);
    pthread_mutex_unlock(&ipc->lock);
    return out_of_line(w, result);
}

/* Queue, and what is to be done when a message comes to the empty queue: 0: nothing any more, 1: what follows. */
long serve_mq_notify(struct work *w)
{
    struct ipc *ipc = ipc_of(w->session);
    const struct file *file = file_of(w->session, ARGUMENT(0));
    struct sigevent wanted;
    size_t at = 0;
    const void *given = ARGUMENT(1) ? take_input(w, &at, sizeof wanted) : NULL;
    if (!ipc || (ARGUMENT(1) && !given))
        return ipc ? -EFAULT : -ENOMEM;
    if (given)
        memcpy(&wanted, given, sizeof wanted);
    if (given && wanted.sigev_notify != SIGEV_NONE && wanted.sigev_notify != SIGEV_SIGNAL)
        return wanted.sigev_notify == SIGEV_THREAD ? -ENOSYS : -EINVAL; /* it would need a netlink socket */
    if (given && wanted.sigev_notify == SIGEV_SIGNAL && (wanted.sigev_signo <= 0 || wanted.sigev_signo >= _NSIG))
        return -EINVAL;
    if (!file || !file->queue)
        return -EBADF;
    long result = 0;
    pthread_mutex_lock(&ipc->lock);
    struct queue_notice *notice = &file->queue->notice;
    if (given && notice->pid)
        result = -EBUSY;
    else if (given)
        *notice = (struct queue_notice){.pid = w->session->virtual_pid,
                                        .number = wanted.sigev_notify == SIGEV_SIGNAL ? wanted.sigev_signo : 0,
                                        .value = (int64_t)(uintptr_t)wanted.sigev_value.sival_ptr};
    else if (notice->pid == w->session->virtual_pid)
        *notice = (struct queue_notice){0};
    pthread_mutex_unlock(&ipc->lock);
    return result;
}

/* Queue, new flags or nothing, room for what it is like or nothing. */
long serve_mq_getsetattr(struct work *w)
{
    struct ipc *ipc = ipc_of(w->session);
    struct file *file = file_of(w->session, ARGUMENT(0));
    struct mq_attr fresh, told = {0};
    size_t at = 0;
    const void *given = ARGUMENT(1) ? take_input(w, &at, sizeof fresh) : NULL;
    uint8_t *to = ARGUMENT(2) ? out_room(w, sizeof told) : NULL;
    if (!ipc || (ARGUMENT(2) && !to))
        return -ENOMEM;
    if (ARGUMENT(1) && !given)
        return -EFAULT;
    if (given)
        memcpy(&fresh, given, sizeof fresh);
    if (given && (fresh.mq_flags & ~O_NONBLOCK))
        return -EINVAL;
    if (!file || !file->queue)
        return -EBADF;
    pthread_mutex_lock(&ipc->lock);
    told.mq_flags = file->wants_nonblocking ? O_NONBLOCK : 0;
    told.mq_maxmsg = (long)file->queue->most;
    told.mq_msgsize = (long)file->queue->largest;
    told.mq_curmsgs = (long)file->queue->count;
    if (given)
        file->wants_nonblocking = fresh.mq_flags & O_NONBLOCK;
    pthread_mutex_unlock(&ipc->lock);
    if (to)
        memcpy(to, &told, sizeof told);
    return 0;
}
