/* Sockets are at home (shadow/sockets.c); here the program's structures become one request each, and back. */
#include "runtime/remote/read_ahead.h"
#include "runtime/process/process.h"
#include "runtime/remote/remote.h"
#include "sockets.h"
#include "runtime/text.h"
#include "runtime/user.h"

enum {
    PEEK = 2, WAIT_ALL = 0x100, DO_NOT_WAIT = 0x40, NO_SIGNAL = 0x4000, WAIT_FOR_ONE = 0x10000,
    CLOSE_RECEIVED = 0x40000000, SOCKET_LEVEL = 1, RIGHTS = 1, CREDENTIALS = 2,
    MOST_SPANS = 1024, MOST_MESSAGES = 1024,
    DATA_PARTS = MOST_PARTS - 2, /* of a request or an answer, beside what goes in front */
};

/* As the program has it. */
struct user_message {
    void *name;
    uint32_t name_size, padding;
    const struct vector *spans;
    uint64_t span_count;
    uint8_t *control;
    uint64_t control_size;
    uint32_t flags, padding_too;
};

struct user_messages {
    struct user_message message;
    uint32_t size, padding;
};

struct control_head {
    uint64_t size;
    int level, kind;
};

#define CONTROL_ROUND(size) (((size) + 7) & ~7ul)

/* The program's memory of one message, part after part. */
struct spans {
    const struct vector *list;
    uint64_t count, at;
    size_t within; /* of the part AT: what is done */
    size_t total;
};

static long begin_spans(struct spans *spans, const struct vector *list, uint64_t count)
{
    *spans = (struct spans){.list = list, .count = count};
    if (count > MOST_SPANS)
        return -EMSGSIZE;
    for (uint64_t i = 0; i < count; i++) {
        struct vector one;
        if (copy_user(&one, &list[i], sizeof one))
            return -EFAULT;
        if (one.size > KERNEL_PLACES_END || (unsigned long)one.base > KERNEL_PLACES_END - one.size)
            return -EFAULT;
        spans->total += one.size;
    }
    return 0;
}

static void skip_spans(struct spans *spans, size_t size)
{
    struct vector one;
    spans->total -= size;
    while (spans->at < spans->count && !copy_user(&one, &spans->list[spans->at], sizeof one)) {
        size_t left = one.size - spans->within;
        if (size < left) {
            spans->within += size;
            return;
        }
        size -= left;
        spans->within = 0;
        spans->at++;
    }
}

/* The next parts, as many as go with one request. Returns their bytes or -EFAULT. */
static long next_parts(const struct spans *spans, struct vector *parts, int *count)
{
    size_t total = 0, within = spans->within;
    *count = 0;
    for (uint64_t i = spans->at; i < spans->count && *count < DATA_PARTS && total < MAX_PAYLOAD; i++, within = 0) {
        struct vector one;
        if (copy_user(&one, &spans->list[i], sizeof one) || one.size < within)
            return -EFAULT;
        size_t size = one.size - within;
        if (size > MAX_PAYLOAD - total)
            size = MAX_PAYLOAD - total;
        if (size)
            parts[(*count)++] = (struct vector){(uint8_t *)one.base + within, size};
        total += size;
    }
    return (long)total;
}

/* A buffer of the runtime's for a message in many parts. NULL: there is no memory. */
static uint8_t *begin_buffer(size_t size)
{
    long at = SYSTEM(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0);
    return is_error(at) ? NULL : (uint8_t *)at;
}

static void end_buffer(uint8_t *buffer, size_t size)
{
    SYSTEM(__NR_munmap, buffer, size);
}

static long copy_spans(struct spans *spans, uint8_t *buffer, size_t size, bool out)
{
    for (size_t done = 0; done < size;) {
        struct vector parts[DATA_PARTS];
        int count;
        long got = next_parts(spans, parts, &count);
        if (got <= 0)
            return -EFAULT;
        size_t round = 0;
        for (int i = 0; i < count && done + round < size; i++) {
            size_t piece = parts[i].size < size - done - round ? parts[i].size : size - done - round;
            if (out ? copy_user(parts[i].base, buffer + done + round, piece)
                    : copy_user(buffer + done + round, parts[i].base, piece))
                return -EFAULT;
            round += piece;
        }
        done += round;
        skip_spans(spans, round);
    }
    return 0;
}

/* ---- sending */

static void note_broken_pipe(struct thread *self, long result, unsigned long flags)
{
    if (result == -EPIPE && !(flags & NO_SIGNAL)) /* the shadow cannot send us the signal */
        SYSTEM(__NR_tgkill, process.real_id, self->real_id, SIGPIPE);
}

/* What goes in front of the data: the name, and descriptors. */
struct front {
    uint8_t name[NAME_ROOM];
    uint32_t name_size;
    int32_t rights[MOST_RIGHTS];
    uint32_t right_count;
};

static long send_front(struct trap *t, int fd, unsigned long flags, struct front *front, const struct vector *parts,
                       int count, size_t size)
{
    struct vector in[MOST_PARTS];
    int used = 0;
    struct request request = {.call = __NR_sendmsg,
                              .arguments = {fd, (int64_t)(flags & 0xffffffff), front->name_size, front->right_count,
                                            (int64_t)size}};
    if (front->name_size)
        in[used++] = (struct vector){front->name, front->name_size};
    if (front->right_count)
        in[used++] = (struct vector){front->rights, front->right_count * sizeof front->rights[0]};
    for (int i = 0; i < count; i++)
        in[used++] = parts[i];
    return ask_waiting(t, &request, in, used, NULL, 0, NULL);
}

/* Sends all of SPANS, in as many requests as a stream needs; a packet is one. */
static long send_spans(struct trap *t, int fd, unsigned long flags, struct front *front, struct spans *spans)
{
    struct vector parts[DATA_PARTS];
    size_t done = 0;
    int count;
    long size = next_parts(spans, parts, &count), result;
    if (size < 0)
        return size;
    uint8_t *buffer = NULL;
    const size_t total = spans->total;
    if ((size_t)size < total && total <= MAX_PAYLOAD) {
        if (!(buffer = begin_buffer(total)))
            return -ENOMEM;
        if (copy_spans(spans, buffer, total, false)) {
            end_buffer(buffer, total);
            return -EFAULT;
        }
        parts[0] = (struct vector){buffer, total};
        result = send_front(t, fd, flags, front, parts, 1, total);
        end_buffer(buffer, total);
        return result;
    }
    for (;;) {
        result = send_front(t, fd, flags, front, parts, count, (size_t)size);
        done += result > 0 ? (size_t)result : 0;
        if (result < size || done == total)
            break;
        front->name_size = front->right_count = 0;
        skip_spans(spans, (size_t)result);
        size = next_parts(spans, parts, &count);
        if (size < 0)
            break;
    }
    return done ? (long)done : result;
}

static long take_name(struct front *front, const void *name, unsigned long size)
{
    if (!name || !size)
        return 0;
    if (size > NAME_ROOM)
        return -EINVAL;
    front->name_size = (uint32_t)size;
    return copy_user(front->name, name, size);
}

/* The descriptors that go beside a message. Their positions are the receiver's, too, from now on. */
static long take_control(struct front *front, const uint8_t *control, uint64_t size)
{
    struct control_head head;
    for (uint64_t at = 0; control && at + sizeof head <= size; at += CONTROL_ROUND(head.size)) {
        if (copy_user(&head, control + at, sizeof head))
            return -EFAULT;
        if (head.size < sizeof head || head.size > size - at)
            return -EINVAL;
        if (head.level == SOCKET_LEVEL && head.kind == CREDENTIALS)
            continue; /* nobody is told of them */
        if (head.level != SOCKET_LEVEL || head.kind != RIGHTS)
            return -EINVAL;
        uint64_t count = (head.size - sizeof head) / sizeof(int32_t);
        if (count > MOST_RIGHTS - front->right_count)
            return -EINVAL;
        if (copy_user(front->rights + front->right_count, control + at + sizeof head, count * sizeof(int32_t)))
            return -EFAULT;
        front->right_count += (uint32_t)count;
    }
    for (uint32_t i = 0; i < front->right_count; i++)
        share_position(front->rights[i]);
    return 0;
}

/* A call that went wrong here: what home has against the descriptor is told first, as the kernel does. */
static long first_error(struct trap *t, int fd, long failed)
{
    long against = call_home(t->self, __NR_getsockname, fd, 0, 0, 0, 0, 0);
    return against < 0 ? against : failed;
}

static long send_message(struct trap *t, int fd, const struct user_message *m, unsigned long flags)
{
    struct front front;
    struct spans spans;
    front.name_size = front.right_count = 0;
    long failed = take_name(&front, m->name, m->name_size);
    if (!failed)
        failed = take_control(&front, m->control, m->control_size);
    if (!failed)
        failed = begin_spans(&spans, m->spans, m->span_count);
    if (failed)
        return first_error(t, fd, failed);
    if (!front.name_size || front.right_count || spans.total <= MAX_PAYLOAD) {
        long result = send_spans(t, fd, flags, &front, &spans);
        note_broken_pipe(t->self, result, flags);
        return result == -ESHUTDOWN ? -EPIPE : result;
    }
    return -EMSGSIZE;
}

long do_sendto(struct trap *t)
{
    const struct vector part = {(void *)t->a[1], t->a[2]};
    const struct user_message m = {.name = (void *)t->a[4], .name_size = (uint32_t)t->a[5], .spans = &part, .span_count = 1};
    return send_message(t, (int)t->a[0], &m, t->a[3]);
}

long do_sendmsg(struct trap *t)
{
    struct user_message m;
    if (copy_user(&m, (void *)t->a[1], sizeof m))
        return first_error(t, (int)t->a[0], -EFAULT);
    return send_message(t, (int)t->a[0], &m, t->a[2]);
}

long do_sendmmsg(struct trap *t)
{
    struct user_messages *list = (struct user_messages *)t->a[1];
    unsigned long count = (unsigned)t->a[2] > MOST_MESSAGES ? MOST_MESSAGES : (unsigned)t->a[2], done = 0;
    long result = 0;
    for (; done < count; done++) {
        struct user_message m;
        if (copy_user(&m, &list[done].message, sizeof m)) {
            result = -EFAULT;
            break;
        }
        result = send_message(t, (int)t->a[0], &m, t->a[3] | (done ? DO_NOT_WAIT : 0));
        if (result < 0)
            break;
        const uint32_t size = (uint32_t)result;
        if (copy_user(&list[done].size, &size, sizeof size))
            return done ? (long)done : -EFAULT;
    }
    return done ? (long)done : result;
}

/* ---- receiving */

/* One message of the answer; DATA is already where the program wants it. */
struct received {
    struct message_head head;
    uint8_t name[NAME_ROOM];
    int32_t rights[MOST_RIGHTS];
};

static long ask_message(struct trap *t, int fd, unsigned long flags, bool named, uint32_t rights, struct received *to,
                        const struct vector *parts, int count, size_t size)
{
    uint8_t front[sizeof *to];
    const size_t names = named ? NAME_ROOM : 0, numbers = rights * sizeof(int32_t);
    struct vector out[MOST_PARTS] = {{front, sizeof to->head + names + numbers}};
    struct request request = {.call = __NR_recvmsg,
                              .arguments = {fd, (int64_t)(flags & 0xffffffff), (int64_t)names, rights, (int64_t)size}};
    for (int i = 0; i < count; i++)
        out[i + 1] = parts[i];
    long result = ask_waiting(t, &request, NULL, 0, out, count + 1, NULL);
    if (result < 0)
        return result;
    memcpy(&to->head, front, sizeof to->head);
    memcpy(to->name, front + sizeof to->head, names);
    memcpy(to->rights, front + sizeof to->head + names, numbers);
    return result;
}

/* Into SPANS; with WAIT_ALL a stream's are filled. */
static long receive_spans(struct trap *t, int fd, unsigned long flags, bool named, uint32_t rights, struct received *to,
                          struct spans *spans)
{
    struct vector parts[DATA_PARTS];
    size_t done = 0;
    int count;
    long size = next_parts(spans, parts, &count), result;
    if (size < 0)
        return size;
    size_t total = spans->total < MAX_PAYLOAD ? spans->total : MAX_PAYLOAD;
    if ((size_t)size < total && !(flags & WAIT_ALL)) {
        uint8_t *buffer = begin_buffer(total);
        if (!buffer)
            return -ENOMEM;
        parts[0] = (struct vector){buffer, total};
        result = ask_message(t, fd, flags, named, rights, to, parts, 1, total);
        if (result > 0 && copy_spans(spans, buffer, (size_t)result < total ? (size_t)result : total, true))
            result = -EFAULT;
        end_buffer(buffer, total);
        return result;
    }
    const size_t wanted = spans->total;
    for (;;) {
        result = ask_message(t, fd, flags, named, done ? 0 : rights, to, parts, count, (size_t)size);
        done += result > 0 ? (size_t)result : 0;
        const bool once = !(flags & WAIT_ALL) || (flags & (PEEK | DO_NOT_WAIT));
        if (result <= 0 || once || done >= wanted || to->head.rights || to->head.flags)
            break;
        skip_spans(spans, (size_t)result);
        if ((size = next_parts(spans, parts, &count)) <= 0)
            break;
    }
    return done ? (long)done : result;
}

static long give_control(struct user_message *m, const struct received *received)
{
    struct control_head head = {sizeof head + received->head.rights * sizeof(int32_t), SOCKET_LEVEL, RIGHTS};
    if (!received->head.rights) {
        m->control_size = 0;
        return 0;
    }
    if (copy_user(m->control, &head, sizeof head) ||
        copy_user(m->control + sizeof head, received->rights, received->head.rights * sizeof(int32_t)))
        return -EFAULT;
    m->control_size = CONTROL_ROUND(head.size) < m->control_size ? CONTROL_ROUND(head.size) : m->control_size;
    return 0;
}

static long receive_message(struct trap *t, int fd, struct user_message *at, unsigned long flags)
{
    struct user_message m;
    struct received received;
    struct spans spans;
    if (copy_user(&m, at, sizeof m))
        return first_error(t, fd, -EFAULT);
    long result = begin_spans(&spans, m.spans, m.span_count);
    if (result)
        return first_error(t, fd, result);
    uint64_t rights = !m.control || m.control_size <= sizeof(struct control_head)
                          ? 0 : (m.control_size - sizeof(struct control_head)) / sizeof(int32_t);
    result = receive_spans(t, fd, flags, m.name, rights > MOST_RIGHTS ? MOST_RIGHTS : (uint32_t)rights, &received, &spans);
    if (result < 0)
        return result;
    if (m.name && give_name(m.name, NULL, m.name_size, received.name, received.head.name_size))
        return -EFAULT;
    if (m.name)
        m.name_size = received.head.name_size;
    m.flags = received.head.flags | (flags & CLOSE_RECEIVED);
    if (give_control(&m, &received) || copy_user(at, &m, sizeof m))
        return -EFAULT;
    return result;
}

long do_recvmsg(struct trap *t)
{
    return receive_message(t, (int)t->a[0], (struct user_message *)t->a[1], t->a[2]);
}

long do_recvfrom(struct trap *t)
{
    const struct vector part = {(void *)t->a[1], t->a[2]};
    struct received received;
    struct spans spans;
    uint32_t room = 0;
    uint32_t *size_at = (uint32_t *)t->a[5];
    const bool named = t->a[4] && size_at;
    long result = begin_spans(&spans, &part, 1);
    if (!result && named && copy_user(&room, size_at, sizeof room))
        result = -EFAULT;
    if (result)
        return result;
    if ((int)room < 0)
        return -EINVAL;
    result = receive_spans(t, (int)t->a[0], t->a[3], named, 0, &received, &spans);
    if (result >= 0 && named && give_name((void *)t->a[4], size_at, room, received.name, received.head.name_size))
        return -EFAULT;
    return result;
}

/* The limit of time counts only between messages, and then none is waited for: as in the kernel. */
long do_recvmmsg(struct trap *t)
{
    struct user_messages *list = (struct user_messages *)t->a[1];
    unsigned long count = (unsigned)t->a[2] > MOST_MESSAGES ? MOST_MESSAGES : (unsigned)t->a[2], done = 0;
    unsigned long flags = t->a[3] & ~(unsigned long)WAIT_FOR_ONE;
    long result = 0;
    for (; done < count; done++) {
        bool waits = !done || (!(t->a[3] & WAIT_FOR_ONE) && !t->a[4]);
        result = receive_message(t, (int)t->a[0], &list[done].message, flags | (waits ? 0 : DO_NOT_WAIT));
        if (result < 0)
            break;
        const uint32_t size = (uint32_t)result;
        if (copy_user(&list[done].size, &size, sizeof size))
            return done ? (long)done : -EFAULT;
    }
    return done ? (long)done : result;
}
