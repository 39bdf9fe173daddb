/* What semaphores, message queues and shared memory have in common: numbers, keys, rights, and standing in line. */
#include "ipc.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

int64_t ipc_now(void)
{
    return time(NULL);
}

struct ipc *ipc_of(struct session *s)
{
    struct session *root = s->root;
    pthread_mutex_lock(&table_lock);
    if (!root->ipc && (root->ipc = calloc(1, sizeof *root->ipc)))
        pthread_mutex_init(&root->ipc->lock, NULL);
    struct ipc *found = root->ipc;
    pthread_mutex_unlock(&table_lock);
    return found;
}

/* ---- objects */

/* As the kernel asks it of an object's owner: all members of a family are one user's. */
bool ipc_may(const struct ipc_object *o, unsigned mode)
{
    const unsigned wanted = (mode >> 6 | mode >> 3 | mode) & 7;
    return !(wanted & ~(o->mode >> 6)) || geteuid() == 0;
}

bool ipc_is_owner(const struct ipc_object *o)
{
    return geteuid() == o->uid || geteuid() == o->cuid || geteuid() == 0;
}

bool ipc_enter(struct ipc *ipc, enum ipc_kind kind, struct ipc_object *o, int place)
{
    for (int i = place < 0 ? 0 : place; i < (place < 0 ? MOST_OBJECTS : place + 1); i++)
        if (!ipc->objects[kind][i]) {
            ipc->objects[kind][i] = o;
            o->kind = kind;
            o->id = ipc->sequences[kind][i] * ID_STEP + i;
            o->last = &o->waits;
            return true;
        }
    return false;
}

/* Who stands in line for O hears that it is gone. */
void ipc_take_out(struct ipc *ipc, struct ipc_object *o)
{
    const int place = o->id % ID_STEP;
    while (o->waits)
        ipc_over(o->waits, -EIDRM);
    ipc->objects[o->kind][place] = NULL;
    ipc->sequences[o->kind][place] = (uint16_t)((ipc->sequences[o->kind][place] + 1) % MOST_SEQUENCE);
}

struct ipc_object *ipc_at(struct ipc *ipc, enum ipc_kind kind, int64_t place)
{
    return place >= 0 && place < MOST_OBJECTS ? ipc->objects[kind][place] : NULL;
}

struct ipc_object *ipc_find(struct ipc *ipc, enum ipc_kind kind, int64_t id)
{
    struct ipc_object *o = id < 0 ? NULL : ipc_at(ipc, kind, id % ID_STEP);
    return o && o->id == id ? o : NULL;
}

int ipc_highest(const struct ipc *ipc, enum ipc_kind kind)
{
    int highest = MOST_OBJECTS - 1;
    while (highest > 0 && !ipc->objects[kind][highest])
        highest--;
    return highest;
}

int ipc_used(const struct ipc *ipc, enum ipc_kind kind)
{
    int used = 0;
    for (int i = 0; i < MOST_OBJECTS; i++)
        used += ipc->objects[kind][i] != NULL;
    return used;
}

static long new_object(struct session *s, struct ipc *ipc, enum ipc_kind kind, int key, int flags, size_t size)
{
    if (ipc_used(ipc, kind) == MOST_OBJECTS || (kind == IPC_SETS && size > MOST_SEMAPHORES - ipc->semaphores) ||
        (kind == IPC_SEGMENTS && size > MOST_SEGMENT_BYTES - ipc->segment_bytes))
        return -ENOSPC;
    struct semaphore_set *set = kind == IPC_SETS ? set_new(ipc, size) : NULL;
    struct message_queue *queue = kind == IPC_QUEUES ? queue_new() : NULL;
    struct segment *segment = kind == IPC_SEGMENTS ? segment_fresh(ipc, size, s->virtual_pid) : NULL;
    struct ipc_object *o = set ? &set->base : queue ? &queue->base : segment ? &segment->base : NULL;
    if (!o)
        return -ENOMEM;
    o->key = key;
    o->uid = o->cuid = geteuid();
    o->gid = o->cgid = getegid();
    o->mode = (unsigned)flags & ALL_MODES;
    o->changed = ipc_now();
    ipc_enter(ipc, kind, o, -1);
    return o->id;
}

long ipc_alone(struct work *w, long (*call)(struct work *w, struct ipc *ipc))
{
    struct ipc *ipc = ipc_of(w->session);
    if (!ipc)
        return -ENOMEM;
    pthread_mutex_lock(&ipc->lock);
    const long result = call(w, ipc);
    pthread_mutex_unlock(&ipc->lock);
    return result;
}

static size_t size_of(const struct ipc_object *o)
{
    return o->kind == IPC_SETS       ? ((const struct semaphore_set *)o)->count
           : o->kind == IPC_SEGMENTS ? ((const struct segment *)o)->size
                                     : 0;
}

/* SIZE: at least so many semaphores, or bytes of memory. */
long ipc_get(struct work *w, enum ipc_kind kind, int key, int flags, size_t size)
{
    struct ipc *ipc = ipc_of(w->session);
    struct ipc_object *found = NULL;
    if (!ipc)
        return -ENOMEM;
    pthread_mutex_lock(&ipc->lock);
    for (int i = 0; i < MOST_OBJECTS && key != IPC_PRIVATE && !found; i++)
        if (ipc->objects[kind][i] && ipc->objects[kind][i]->key == key)
            found = ipc->objects[kind][i];
    long result;
    if (!found && key != IPC_PRIVATE && !(flags & IPC_CREAT))
        result = -ENOENT;
    else if (!found && kind != IPC_QUEUES && (!size || size > INT64_MAX))
        result = -EINVAL;
    else if (!found && kind == IPC_SEGMENTS && size > MOST_SEGMENT_BYTES)
        result = -ENOMEM;
    else if (!found)
        result = new_object(w->session, ipc, kind, key, flags, size);
    else if ((flags & IPC_CREAT) && (flags & IPC_EXCL))
        result = -EEXIST;
    else if (size > size_of(found))
        result = -EINVAL;
    else
        result = ipc_may(found, (unsigned)flags) ? found->id : -EACCES;
    pthread_mutex_unlock(&ipc->lock);
    return result;
}

void ipc_permissions(const struct ipc_object *o, struct ipc_perm *to)
{
    to->__key = o->key;
    to->uid = o->uid;
    to->gid = o->gid;
    to->cuid = o->cuid;
    to->cgid = o->cgid;
    to->mode = o->mode;
    to->__seq = (unsigned short)(o->id / ID_STEP);
}

void ipc_set_permissions(struct ipc_object *o, const struct ipc_perm *from)
{
    o->uid = from->uid;
    o->gid = from->gid;
    o->mode = from->mode & ALL_MODES;
    o->changed = ipc_now();
}

/* ---- standing in line */

/* W waits at the end of O's line. NULL: there is no memory, or no descriptor left. */
struct ipc_wait *ipc_wait(struct work *w, struct ipc_object *o)
{
    struct ipc_wait *wait = calloc(1, sizeof *wait);
    if (!wait)
        return NULL;
    wait->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (wait->bell < 0) {
        free(wait);
        return NULL;
    }
    wait->session = w->session;
    wait->pid = w->session->virtual_pid;
    wait->object = o;
    *o->last = wait;
    o->last = &wait->next;
    w->ipc = wait;
    return wait;
}

static void leave_line(struct ipc_wait *wait)
{
    struct ipc_object *o = wait->object;
    struct ipc_wait **place = &o->waits;
    while (*place != wait)
        place = &(*place)->next;
    *place = wait->next;
    if (o->last == &wait->next)
        o->last = place;
    wait->next = NULL;
    wait->object = NULL;
}

/* What WAIT is for was done, with that result, or will never be. */
void ipc_over(struct ipc_wait *wait, long result)
{
    const uint64_t one = 1;
    leave_line(wait);
    wait->result = result;
    if (write(wait->bell, &one, sizeof one) < 0) /* it rings already */
        return;
}

/* What became of it. The caller has the family's lock. */
long ipc_waited(struct work *w)
{
    struct ipc_wait *wait = w->ipc;
    if (!wait->object)
        return wait->result;
    if (w->until_ns >= 0 && now_ns() >= w->until_ns)
        return -EAGAIN;
    wait_on(w, wait->bell, POLLIN);
    return PARKED;
}

/* W's request is over, or will not be answered. */
void ipc_leave(struct work *w)
{
    struct ipc_wait *wait = w->ipc;
    if (!wait)
        return;
    struct ipc *ipc = ipc_of(w->session);
    pthread_mutex_lock(&ipc->lock);
    if (wait->object)
        leave_line(wait);
    if (wait->message)
        message_end(ipc, wait->message);
    pthread_mutex_unlock(&ipc->lock);
    close(wait->bell);
    free(wait->operations);
    free(wait);
    w->ipc = NULL;
}

/* ---- ends */

static void line_left(struct ipc_object *o, const struct session *s)
{
    for (struct ipc_wait *wait = o->waits, *next; wait; wait = next) {
        next = wait->next;
        if (wait->session == s)
            ipc_over(wait, -EINTR);
    }
}

/* Of a process: its operations that ask for it are undone before anyone can have waited for it. */
void ipc_process_ended(struct session *s)
{
    pthread_mutex_lock(&table_lock);
    struct ipc *ipc = s->root->ipc;
    pthread_mutex_unlock(&table_lock);
    if (!ipc)
        return;
    pthread_mutex_lock(&ipc->lock);
    for (int kind = 0; kind < IPC_KINDS; kind++)
        for (int i = 0; i < MOST_OBJECTS; i++) {
            struct ipc_object *o = ipc->objects[kind][i];
            if (o)
                line_left(o, s);
            if (o && kind == IPC_SETS)
                set_process_ended((struct semaphore_set *)o, s->virtual_pid);
        }
    for (struct posix_queue *queue = ipc->posix; queue; queue = queue->next) {
        line_left(&queue->base, s);
        if (queue->notice.pid == s->virtual_pid)
            queue->notice = (struct queue_notice){0};
    }
    pthread_mutex_unlock(&ipc->lock);
}

/* Of the family. */
void ipc_end(struct session *root)
{
    struct ipc *ipc = root->ipc;
    root->ipc = NULL;
    for (int kind = 0; ipc && kind < IPC_KINDS; kind++)
        for (int i = 0; i < MOST_OBJECTS; i++) {
            struct ipc_object *o = ipc->objects[kind][i];
            if (o && kind == IPC_SETS)
                set_end(ipc, (struct semaphore_set *)o);
            else if (o && kind == IPC_QUEUES)
                queue_end(ipc, (struct message_queue *)o);
            else if (o)
                segment_end(ipc, (struct segment *)o);
        }
    while (ipc && ipc->posix)
        posix_queue_end(ipc, ipc->posix);
    if (ipc)
        pthread_mutex_destroy(&ipc->lock);
    free(ipc);
}
