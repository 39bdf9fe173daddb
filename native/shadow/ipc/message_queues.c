/* System V message queues. */
#include "ipc.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct message_queue *queue_new(void)
{
    struct message_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->most_bytes = QUEUE_BYTES;
    queue->end = &queue->first;
    return queue;
}

void queue_end(struct ipc *ipc, struct message_queue *queue)
{
    ipc_take_out(ipc, &queue->base);
    while (queue->first) {
        struct message *message = queue->first;
        queue->first = message->next;
        message_end(ipc, message);
    }
    free(queue);
}

struct message *message_new(struct ipc *ipc, size_t size)
{
    const size_t cost = sizeof(struct message) + size;
    struct message *message = ipc->message_bytes + cost <= MOST_MESSAGE_BYTES ? calloc(1, cost) : NULL;
    if (!message)
        return NULL;
    ipc->message_bytes += cost;
    message->size = (uint32_t)size;
    return message;
}

void message_end(struct ipc *ipc, struct message *message)
{
    ipc->message_bytes -= sizeof *message + message->size;
    free(message);
}

void queue_add(struct message_queue *queue, struct message *message)
{
    message->next = NULL;
    *queue->end = message;
    queue->end = &message->next;
    queue->bytes += message->size;
    queue->count++;
}

static void take_out(struct message_queue *queue, struct message *message)
{
    struct message **place = &queue->first;
    while (*place != message)
        place = &(*place)->next;
    *place = message->next;
    if (queue->end == &message->next)
        queue->end = place;
    queue->bytes -= message->size;
    queue->count--;
}

static bool fits(const struct message_queue *queue, size_t size)
{
    return queue->bytes + size <= queue->most_bytes && queue->count < queue->most_bytes;
}

static bool is_wanted(const struct message *message, int64_t type, int flags)
{
    if (type < 0)
        return message->type <= (type == INT64_MIN ? INT64_MAX : -type);
    return !type || ((flags & MSG_EXCEPT) ? message->type != type : message->type == type);
}

/* The message that is wanted; of several whose type is at most -TYPE, the first with the lowest. */
static struct message *find(const struct message_queue *queue, int64_t type, int flags)
{
    struct message *found = NULL;
    int64_t place = 0;
    for (struct message *message = queue->first; message; message = message->next, place++) {
        if (flags & MSG_COPY ? place != type : !is_wanted(message, type, flags))
            continue;
        if (!found || message->type < found->type)
            found = message;
        if (type >= 0)
            break;
    }
    return found;
}

/* To the first in line that wants it; those for whom it is too long hear so. False: nobody wants it. */
static bool hand_over(struct message_queue *queue, struct message *message)
{
    for (struct ipc_wait *wait = queue->base.waits, *next; wait; wait = next) {
        next = wait->next;
        if (wait->sends || !is_wanted(message, wait->type, wait->flags))
            continue;
        if (message->size > wait->room && !(wait->flags & MSG_NOERROR)) {
            ipc_over(wait, -E2BIG);
            continue;
        }
        queue->receiver = wait->pid;
        queue->received = ipc_now();
        wait->message = message;
        ipc_over(wait, 0);
        return true;
    }
    return false;
}

static void deliver(struct message_queue *queue, int pid, struct message *message)
{
    queue->sender = pid;
    queue->sent = ipc_now();
    if (!hand_over(queue, message))
        queue_add(queue, message);
}

/* There is room for more. */
static void settle_senders(struct message_queue *queue)
{
    for (struct ipc_wait *wait = queue->base.waits, *next; wait; wait = next) {
        next = wait->next;
        if (!wait->sends || !fits(queue, wait->message->size))
            continue;
        struct message *message = wait->message;
        wait->message = NULL;
        const int pid = wait->pid;
        ipc_over(wait, 0);
        deliver(queue, pid, message);
        next = queue->base.waits; /* others may have left the line */
    }
}

/* ---- calls */

long serve_msgget(struct work *w)
{
    return ipc_get(w, IPC_QUEUES, (int)ARGUMENT(0), (int)ARGUMENT(1), 0);
}

static struct message_queue *queue_of(struct work *w, struct ipc *ipc)
{
    return (struct message_queue *)ipc_find(ipc, IPC_QUEUES, (int)ARGUMENT(0));
}

static long send(struct work *w, struct ipc *ipc, const void *text, size_t size, int64_t type)
{
    struct message_queue *queue = queue_of(w, ipc);
    if (!queue)
        return -EINVAL;
    if (!ipc_may(&queue->base, 0222))
        return -EACCES;
    const bool waits = !fits(queue, size);
    if (waits && (ARGUMENT(3) & IPC_NOWAIT))
        return -EAGAIN;
    struct message *message = message_new(ipc, size);
    struct ipc_wait *wait = waits && message ? ipc_wait(w, &queue->base) : NULL;
    if (!message || (waits && !wait)) {
        if (message)
            message_end(ipc, message);
        return -ENOMEM;
    }
    message->type = type;
    memcpy(message->text, text, size);
    if (waits) {
        wait->message = message;
        wait->sends = true;
        return ipc_waited(w);
    }
    deliver(queue, w->session->virtual_pid, message);
    return 0;
}

/* Queue, a number of its own, bytes, flags; the message's type and text follow. */
long serve_msgsnd(struct work *w)
{
    struct ipc *ipc = ipc_of(w->session);
    int64_t type;
    if (!ipc)
        return -ENOMEM;
    if (w->head.size < SOME_BYTES || w->head.size - SOME_BYTES > LONGEST_MESSAGE)
        return -EINVAL;
    memcpy(&type, w->payload, sizeof type);
    if (type < 1)
        return -EINVAL;
    pthread_mutex_lock(&ipc->lock);
    long result = w->ipc                                ? ipc_waited(w)
                  : w->session->state == SHADOW_EXITED ? -EINTR
                                                       : send(w, ipc, w->payload + SOME_BYTES, w->head.size - SOME_BYTES, type);
    pthread_mutex_unlock(&ipc->lock);
    if (result != PARKED)
        ipc_leave(w);
    return result;
}

static long put(struct work *w, const struct message *message)
{
    const int64_t room = ARGUMENT(2);
    const size_t size = message->size < room ? message->size : (size_t)room;
    uint8_t *to = out_room(w, SOME_BYTES + size);
    if (!to)
        return -ENOMEM;
    memcpy(to, &message->type, SOME_BYTES);
    memcpy(to + SOME_BYTES, message->text, size);
    return (long)size;
}

static long wait_for_message(struct work *w, struct message_queue *queue)
{
    struct ipc_wait *wait = ipc_wait(w, &queue->base);
    if (!wait)
        return -ENOMEM;
    wait->room = (size_t)ARGUMENT(2);
    wait->type = ARGUMENT(3);
    wait->flags = (int)ARGUMENT(4);
    return ipc_waited(w);
}

static long receive(struct work *w, struct ipc *ipc)
{
    const int flags = (int)ARGUMENT(4);
    struct message_queue *queue = queue_of(w, ipc);
    if (!queue)
        return -EINVAL;
    if (!ipc_may(&queue->base, 0444))
        return -EACCES;
    struct message *found = find(queue, ARGUMENT(3), flags);
    if (!found)
        return flags & IPC_NOWAIT ? -ENOMSG : wait_for_message(w, queue);
    if (found->size > ARGUMENT(2) && !(flags & MSG_NOERROR))
        return -E2BIG;
    long result = put(w, found);
    if (result < 0 || (flags & MSG_COPY))
        return result;
    take_out(queue, found);
    message_end(ipc, found);
    queue->receiver = w->session->virtual_pid;
    queue->received = ipc_now();
    settle_senders(queue);
    return result;
}

/* Queue, a number of its own, room for the text, wanted type, flags. */
long serve_msgrcv(struct work *w)
{
    const int flags = (int)ARGUMENT(4);
    struct ipc *ipc = ipc_of(w->session);
    if (!ipc)
        return -ENOMEM;
    if (ARGUMENT(2) < 0 || ((flags & MSG_COPY) && ((flags & MSG_EXCEPT) || !(flags & IPC_NOWAIT))))
        return -EINVAL;
    pthread_mutex_lock(&ipc->lock);
    long result = w->ipc                                ? ipc_waited(w)
                  : w->session->state == SHADOW_EXITED ? -EINTR
                                                       : receive(w, ipc);
    if (w->ipc && !result)
        result = put(w, w->ipc->message);
    pthread_mutex_unlock(&ipc->lock);
    if (result != PARKED)
        ipc_leave(w);
    return result;
}

static long tell_queue(struct work *w, const struct message_queue *queue, long result)
{
    struct msqid_ds told = {.msg_stime = queue->sent, .msg_rtime = queue->received, .msg_ctime = queue->base.changed,
                            .__msg_cbytes = queue->bytes, .msg_qnum = queue->count, .msg_qbytes = queue->most_bytes,
                            .msg_lspid = queue->sender, .msg_lrpid = queue->receiver};
    uint8_t *to = out_room(w, sizeof told);
    if (!to)
        return -ENOMEM;
    ipc_permissions(&queue->base, &told.msg_perm);
    memcpy(to, &told, sizeof told);
    return result;
}

static long tell_limits(struct work *w, struct ipc *ipc, bool in_use)
{
    struct msginfo told = {.msgpool = MOST_OBJECTS * QUEUE_BYTES / 1024, .msgmap = QUEUE_BYTES, .msgmax = LONGEST_MESSAGE,
                           .msgmnb = QUEUE_BYTES, .msgmni = MOST_OBJECTS, .msgssz = 16, .msgtql = QUEUE_BYTES,
                           .msgseg = USHRT_MAX};
    uint8_t *to = out_room(w, sizeof told);
    if (!to)
        return -ENOMEM;
    if (in_use) {
        told.msgpool = ipc_used(ipc, IPC_QUEUES);
        told.msgmap = told.msgtql = 0;
        for (int i = 0; i < MOST_OBJECTS; i++) {
            const struct message_queue *queue = (struct message_queue *)ipc_at(ipc, IPC_QUEUES, i);
            told.msgmap += queue ? (int)queue->count : 0;
            told.msgtql += queue ? (int)queue->bytes : 0;
        }
    }
    memcpy(to, &told, sizeof told);
    return ipc_highest(ipc, IPC_QUEUES);
}

static long set_owned(struct work *w, struct message_queue *queue)
{
    struct msqid_ds fresh;
    if (w->head.size != sizeof fresh)
        return -EINVAL;
    memcpy(&fresh, w->payload, sizeof fresh);
    if (fresh.msg_qbytes > QUEUE_BYTES)
        return -EPERM;
    ipc_set_permissions(&queue->base, &fresh.msg_perm);
    queue->most_bytes = fresh.msg_qbytes;
    settle_senders(queue);
    return 0;
}

static long control(struct work *w, struct ipc *ipc)
{
    const int command = (int)ARGUMENT(1);
    const bool by_place = command == MSG_STAT || command == MSG_STAT_ANY;
    struct message_queue *queue = by_place ? (struct message_queue *)ipc_at(ipc, IPC_QUEUES, (int)ARGUMENT(0)) : queue_of(w, ipc);
    if (command == IPC_INFO || command == MSG_INFO)
        return tell_limits(w, ipc, command == MSG_INFO);
    if (!queue)
        return -EINVAL;
    switch (command) {
    case IPC_STAT:
    case MSG_STAT:
        if (!ipc_may(&queue->base, 0444))
            return -EACCES;
        __attribute__((fallthrough));
    case MSG_STAT_ANY: return tell_queue(w, queue, by_place ? queue->base.id : 0);
    case IPC_SET:
    case IPC_RMID:
        if (!ipc_is_owner(&queue->base))
            return -EPERM;
        if (command == IPC_SET)
            return set_owned(w, queue);
        queue_end(ipc, queue);
        return 0;
    default: return -EINVAL;
    }
}

/* Queue and command; what follows is as the command wants it. */
long serve_msgctl(struct work *w)
{
    return ipc_alone(w, control);
}
