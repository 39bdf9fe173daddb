/* Semaphores, message queues and shared memory in a checkpoint.
 *
 * They are content of a file of their own kind that no descriptor stands for, in the description of a family's first
 * process; the files of shared memory are among its files, too.  Nobody stands in line then: who waited was interrupted, and asks again.
 */
#include "shadow/ipc/ipc.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_POSIX_ID = 1 << 30 };

struct saved_head {
    uint32_t sets, queues, segments, posix;
};

struct saved_object {
    int32_t id, key;
    uint32_t uid, gid, cgid, mode;
    int64_t changed;
};

struct saved_set { /* its values and processes follow, and what is to be undone: a process, and a number for each semaphore */
    struct saved_object base;
    int64_t used;
    uint32_t count, undos;
};

struct saved_queue { /* its messages follow */
    struct saved_object base;
    int64_t sent, received;
    uint64_t most_bytes;
    int32_t sender, receiver;
    uint64_t messages;
};

struct saved_message { /* its text follows */
    int64_t type;
    uint64_t size;
};

struct saved_segment {
    struct saved_object base;
    uint64_t size;
    int64_t attached, detached;
    int32_t creator, last;
    uint32_t file, gone; /* which of the described ones; whether it ends with its last attachment */
};

struct saved_posix { /* its name and its messages follow; who is to be told of the next */
    struct saved_object base;
    uint64_t most, largest, messages;
    struct queue_notice notice;
    uint64_t name_size;
};

struct writer {
    uint8_t *to;
    size_t room, used;
};

static void write_down(struct writer *out, const void *from, size_t size)
{
    if (out->used + size <= out->room)
        memcpy(out->to + out->used, from, size);
    out->used += size;
}

static struct saved_object saved_object(const struct ipc_object *o)
{
    return (struct saved_object){o->id, o->key, o->uid, o->gid, o->cgid, o->mode & ALL_MODES, o->changed};
}

static void describe_set(struct writer *out, const struct semaphore_set *set)
{
    struct saved_set saved = {.base = saved_object(&set->base), .used = set->used, .count = set->count};
    for (const struct undo *undo = set->undos; undo; undo = undo->next)
        saved.undos++;
    write_down(out, &saved, sizeof saved);
    write_down(out, set->list, set->count * sizeof *set->list);
    for (const struct undo *undo = set->undos; undo; undo = undo->next) {
        const int32_t pid = undo->pid;
        write_down(out, &pid, sizeof pid);
        write_down(out, undo->by, set->count * sizeof *undo->by);
    }
}

static void describe_queue(struct writer *out, const struct message_queue *queue)
{
    const struct saved_queue saved = {.base = saved_object(&queue->base), .sent = queue->sent, .received = queue->received,
                                      .most_bytes = queue->most_bytes, .sender = queue->sender,
                                      .receiver = queue->receiver, .messages = queue->count};
    write_down(out, &saved, sizeof saved);
    for (const struct message *message = queue->first; message; message = message->next) {
        const struct saved_message one = {message->type, message->size};
        write_down(out, &one, sizeof one);
        write_down(out, message->text, message->size);
    }
}

static void describe_segment(struct writer *out, const struct segment *segment, int file)
{
    const struct saved_segment saved = {.base = saved_object(&segment->base), .size = segment->size,
                                        .attached = segment->attached, .detached = segment->detached,
                                        .creator = segment->creator, .last = segment->last, .file = (uint32_t)file,
                                        .gone = (segment->base.mode & SHM_DEST) != 0};
    write_down(out, &saved, sizeof saved);
}

static void describe_posix(struct writer *out, const struct posix_queue *queue)
{
    const struct saved_posix saved = {.base = saved_object(&queue->base), .most = queue->most, .largest = queue->largest,
                                      .messages = queue->count, .notice = queue->notice, .name_size = strlen(queue->name)};
    write_down(out, &saved, sizeof saved);
    write_down(out, queue->name, saved.name_size);
    for (const struct message *message = queue->first; message; message = message->next) {
        const struct saved_message one = {message->type, message->size};
        write_down(out, &one, sizeof one);
        write_down(out, message->text, message->size);
    }
}

/* Tells of each file that is to be described. False: there is no room for all. */
bool ipc_files(struct ipc *ipc, bool (*note)(void *list, struct file *file), void *list)
{
    bool fits = true;
    pthread_mutex_lock(&ipc->lock);
    for (int i = 0; i < MOST_OBJECTS && fits; i++)
        if (ipc_at(ipc, IPC_SEGMENTS, i))
            fits = note(list, ((struct segment *)ipc_at(ipc, IPC_SEGMENTS, i))->file);
    pthread_mutex_unlock(&ipc->lock);
    return fits;
}

/* Returns how many bytes it is, or -errno. */
ssize_t ipc_described(struct ipc *ipc, uint8_t *to, size_t room, int (*number)(void *list, struct file *file), void *list)
{
    struct writer out = {to, room, 0};
    pthread_mutex_lock(&ipc->lock);
    struct saved_head head = {(uint32_t)ipc_used(ipc, IPC_SETS), (uint32_t)ipc_used(ipc, IPC_QUEUES),
                              (uint32_t)ipc_used(ipc, IPC_SEGMENTS), 0};
    for (const struct posix_queue *queue = ipc->posix; queue; queue = queue->next)
        head.posix++;
    write_down(&out, &head, sizeof head);
    write_down(&out, ipc->sequences, sizeof ipc->sequences);
    for (int i = 0; i < MOST_OBJECTS; i++)
        if (ipc_at(ipc, IPC_SETS, i))
            describe_set(&out, (const struct semaphore_set *)ipc_at(ipc, IPC_SETS, i));
    for (int i = 0; i < MOST_OBJECTS; i++)
        if (ipc_at(ipc, IPC_QUEUES, i))
            describe_queue(&out, (const struct message_queue *)ipc_at(ipc, IPC_QUEUES, i));
    for (int i = 0; i < MOST_OBJECTS; i++) {
        const struct segment *segment = (const struct segment *)ipc_at(ipc, IPC_SEGMENTS, i);
        if (segment)
            describe_segment(&out, segment, number(list, segment->file));
    }
    for (const struct posix_queue *queue = ipc->posix; queue; queue = queue->next)
        describe_posix(&out, queue);
    pthread_mutex_unlock(&ipc->lock);
    return out.used <= room ? (ssize_t)out.used : -EFBIG;
}

/* ---- and back: it travelled in the image, and is hostile */

struct reader {
    const uint8_t *at;
    size_t left;
};

static bool read_back(struct reader *in, void *to, size_t size)
{
    if (in->left < size)
        return false;
    memcpy(to, in->at, size);
    in->at += size;
    in->left -= size;
    return true;
}

/* False: its place is taken, or its number is none of that place. */
static bool object_again(struct ipc *ipc, enum ipc_kind kind, struct ipc_object *o, const struct saved_object *saved)
{
    const int place = saved->id % ID_STEP;
    if (saved->id < 0 || place >= MOST_OBJECTS || ipc->sequences[kind][place] != saved->id / ID_STEP)
        return false;
    o->key = saved->key;
    o->uid = saved->uid;
    o->gid = saved->gid;
    o->cgid = saved->cgid;
    o->cuid = geteuid();
    o->mode = saved->mode & ALL_MODES;
    o->changed = saved->changed;
    return ipc_enter(ipc, kind, o, place);
}

static bool set_filled(struct semaphore_set *set, const struct saved_set *saved, struct reader *in)
{
    bool good = read_back(in, set->list, set->count * sizeof *set->list);
    for (uint32_t i = 0; i < set->count && good; i++)
        good = set->list[i].value >= 0 && set->list[i].value <= HIGHEST_VALUE;
    for (uint32_t i = 0; i < saved->undos && good; i++) {
        int32_t pid;
        good = read_back(in, &pid, sizeof pid) && in->left >= set->count * sizeof(int16_t) && !set_undo(set, pid, false);
        struct undo *undo = good ? set_undo(set, pid, true) : NULL;
        good = undo && read_back(in, undo->by, set->count * sizeof *undo->by);
    }
    return good;
}

static bool set_again(struct ipc *ipc, struct reader *in)
{
    struct saved_set saved;
    if (!read_back(in, &saved, sizeof saved) || !saved.count || saved.count > MOST_IN_SET ||
        saved.count > MOST_SEMAPHORES - ipc->semaphores)
        return false;
    struct semaphore_set *set = set_new(ipc, saved.count);
    if (!set)
        return false;
    if (!object_again(ipc, IPC_SETS, &set->base, &saved.base)) {
        ipc->semaphores -= set->count;
        free(set);
        return false;
    }
    set->used = saved.used;
    return set_filled(set, &saved, in);
}

/* The next message. NULL: it is of a type below LEAST_TYPE or longer than LONGEST, it is not whole, or there is no room. */
static struct message *message_again(struct ipc *ipc, struct reader *in, long least_type, uint64_t longest)
{
    struct saved_message saved;
    if (!read_back(in, &saved, sizeof saved) || saved.type < least_type || saved.size > longest || saved.size > in->left)
        return NULL;
    struct message *message = message_new(ipc, saved.size);
    if (!message)
        return NULL;
    message->type = saved.type;
    read_back(in, message->text, saved.size);
    return message;
}

static bool queue_filled(struct ipc *ipc, struct message_queue *queue, const struct saved_queue *saved, struct reader *in)
{
    for (uint64_t i = 0; i < saved->messages; i++) {
        struct message *message = message_again(ipc, in, 1, LONGEST_MESSAGE);
        if (!message)
            return false;
        queue_add(queue, message);
    }
    return true;
}

static bool queue_again(struct ipc *ipc, struct reader *in)
{
    struct saved_queue saved;
    struct message_queue *queue = read_back(in, &saved, sizeof saved) && saved.most_bytes <= QUEUE_BYTES ? queue_new() : NULL;
    if (!queue)
        return false;
    if (!object_again(ipc, IPC_QUEUES, &queue->base, &saved.base)) {
        free(queue);
        return false;
    }
    queue->sent = saved.sent;
    queue->received = saved.received;
    queue->most_bytes = saved.most_bytes;
    queue->sender = saved.sender;
    queue->receiver = saved.receiver;
    return queue_filled(ipc, queue, &saved, in);
}

static bool segment_again(struct ipc *ipc, struct reader *in, struct file **files, uint32_t count)
{
    struct saved_segment saved;
    if (!read_back(in, &saved, sizeof saved) || saved.file >= count || !files[saved.file] ||
        files[saved.file]->kind != FILE_TEXT || !saved.size || saved.size > MOST_SEGMENT_BYTES - ipc->segment_bytes)
        return false;
    struct segment *segment = segment_new(ipc, saved.size, files[saved.file]);
    if (!segment)
        return false;
    segment->attached = saved.attached;
    segment->detached = saved.detached;
    segment->creator = saved.creator;
    segment->last = saved.last;
    if (object_again(ipc, IPC_SEGMENTS, &segment->base, &saved.base)) {
        segment->base.mode |= saved.gone ? SHM_DEST : 0;
        return true;
    }
    segment_drop(ipc, segment);
    return false;
}

/* An open file of the queue with that number, whose content comes later. NULL: errno. */
struct file *posix_queue_file_again(struct session *s, int id, int flags)
{
    struct ipc *ipc = ipc_of(s);
    errno = id < 0 || id >= MOST_POSIX_ID ? EPROTO : ENOMEM;
    if (!ipc || id < 0 || id >= MOST_POSIX_ID)
        return NULL;
    pthread_mutex_lock(&ipc->lock);
    struct posix_queue *queue = posix_queue_numbered(ipc, id);
    if (!queue)
        queue = posix_queue_new(ipc, "", id);
    struct file *file = queue ? posix_queue_file(queue, flags & (O_ACCMODE | O_NONBLOCK)) : NULL;
    pthread_mutex_unlock(&ipc->lock);
    return file;
}

static bool posix_again(struct ipc *ipc, struct reader *in)
{
    struct saved_posix saved;
    char name[NAME_MAX + 1] = {0};
    if (!read_back(in, &saved, sizeof saved) || saved.name_size > NAME_MAX || !read_back(in, name, saved.name_size) ||
        saved.base.id < 0 || saved.base.id >= MOST_POSIX_ID || !saved.most || saved.most > MAX_PAYLOAD || !saved.largest ||
        saved.largest > MAX_PAYLOAD || saved.messages > saved.most)
        return false;
    struct posix_queue *queue = posix_queue_numbered(ipc, saved.base.id);
    if (queue && queue->count)
        return false;
    if (!queue && !(queue = posix_queue_new(ipc, name, saved.base.id)))
        return false;
    char *fresh = strdup(name);
    if (!fresh)
        return false;
    free(queue->name);
    queue->name = fresh;
    queue->base.mode = saved.base.mode & ALL_MODES;
    queue->most = saved.most;
    queue->largest = saved.largest;
    queue->notice = saved.notice;
    for (uint64_t i = 0; i < saved.messages; i++) {
        struct message *message = message_again(ipc, in, 0, saved.largest);
        if (!message)
            return false;
        posix_queue_add(queue, message);
    }
    return true;
}

/* Only of a family that has none yet, and by its first process. Returns 0 or -errno. */
long ipc_filled(struct session *s, const uint8_t *content, size_t size, struct file **files, uint32_t count)
{
    struct ipc *ipc = s->root == s ? ipc_of(s) : NULL;
    struct reader in = {content, size};
    struct saved_head head;
    if (!ipc)
        return s->root == s ? -ENOMEM : -EPROTO;
    pthread_mutex_lock(&ipc->lock);
    bool good = !ipc_used(ipc, IPC_SETS) && !ipc_used(ipc, IPC_QUEUES) &&
                !ipc_used(ipc, IPC_SEGMENTS) && read_back(&in, &head, sizeof head) &&
                read_back(&in, ipc->sequences, sizeof ipc->sequences);
    for (size_t i = 0; i < sizeof ipc->sequences / sizeof **ipc->sequences; i++)
        ipc->sequences[i / MOST_OBJECTS][i % MOST_OBJECTS] %= MOST_SEQUENCE;
    for (uint32_t i = 0; good && i < head.sets; i++)
        good = set_again(ipc, &in);
    for (uint32_t i = 0; good && i < head.queues; i++)
        good = queue_again(ipc, &in);
    for (uint32_t i = 0; good && i < head.segments; i++)
        good = segment_again(ipc, &in, files, count);
    for (uint32_t i = 0; good && i < head.posix; i++)
        good = posix_again(ipc, &in);
    pthread_mutex_unlock(&ipc->lock);
    return good && !in.left ? 0 : -EPROTO;
}
