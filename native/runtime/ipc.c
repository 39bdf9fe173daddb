/* System V semaphores and message queues are at home (shadow/ipc.h); here the program's structures become one request
 * each, and back. */
#include <linux/msg.h>
#include <linux/sem.h>

#include "remote.h"
#include "time.h"
#include "user.h"

enum {
    MOST_OPERATIONS = 500, OPERATION_BYTES = sizeof(struct sembuf), LONGEST_MESSAGE = 8192, TYPE_BYTES = sizeof(long),
    HIGHEST_VALUE = 32767, VALUE_BYTES = sizeof(unsigned short),
    SET_BYTES = 104, QUEUE_BYTES = 120, SET_LIMITS_BYTES = 40, QUEUE_LIMITS_BYTES = 32,
    SETS_COUNT = 1 << 20, /* as home calls it: how many semaphores there are */
};

/* Waits like those of semaphores are begun anew only if no handler ran. */
static long unless_handled(long result)
{
    return result == -RESTART_ALWAYS ? -RESTART_UNHANDLED : result;
}

long do_semtimedop(struct trap *t)
{
    const unsigned count = (unsigned)t->a[2];
    struct sembuf *operations = (void *)t->self->scratch;
    struct __kernel_timespec limit;
    _Static_assert(MOST_OPERATIONS * OPERATION_BYTES <= SCRATCH_BYTES, "they fit");
    if (t->a[3] && copy_user(&limit, (void *)t->a[3], sizeof limit))
        return -EFAULT;
    if (count > MOST_OPERATIONS)
        return -E2BIG;
    if (!count)
        return -EINVAL;
    if (copy_user(operations, (void *)t->a[1], count * OPERATION_BYTES))
        return -EFAULT;
    if ((int)t->a[0] < 0 || (t->a[3] && !valid_time(&limit)))
        return -EINVAL;
    int64_t end_ns = t->a[3] ? wait_left(t, &limit) : 0;
    int64_t left_ns = !t->a[3] ? -1 : limit.tv_sec < INT32_MAX ? limit.tv_sec * SECOND_NS + limit.tv_nsec : INT64_MAX / 2;
    if (t->a[3] && left_ns < 0)
        left_ns = 0;
    struct request request = {.call = __NR_semtimedop, .arguments = {(int)t->a[0], 0, count, left_ns}};
    const struct vector in = {operations, count * OPERATION_BYTES};
    long result = unless_handled(ask_waiting(t, &request, &in, 1, NULL, 0, NULL));
    if (result == -RESTART_UNHANDLED && t->a[3])
        remember_wait(t, end_ns);
    return result;
}

/* Bytes that a command reads and writes. */
struct control_bytes {
    size_t in, out;
};

static long control(struct trap *t, const struct request *request, void *at, struct control_bytes bytes)
{
    const struct vector in = {at, bytes.in}, out = {at, bytes.out};
    return ask(t->self, request, &in, bytes.in != 0, &out, bytes.out != 0, NULL);
}

long do_semctl(struct trap *t)
{
    const int set = (int)t->a[0], command = (int)t->a[2];
    struct request request = {.call = __NR_semctl, .arguments = {set, (int)t->a[1], command, (int)t->a[3]}};
    struct control_bytes bytes = {0};
    if (set < 0 || command == SETS_COUNT)
        return -EINVAL;
    switch (command) {
    case IPC_STAT: case SEM_STAT: case SEM_STAT_ANY: bytes.out = SET_BYTES; break;
    case IPC_SET: bytes.in = SET_BYTES; break;
    case IPC_INFO: case SEM_INFO: bytes.out = SET_LIMITS_BYTES; break;
    case SETALL:
    case GETALL: {
        const struct request size = {.call = __NR_semctl, .arguments = {set, 0, SETS_COUNT}};
        long count = ask(t->self, &size, NULL, 0, NULL, 0, NULL);
        if (count < 0)
            return count;
        *(command == SETALL ? &bytes.in : &bytes.out) = (size_t)count * VALUE_BYTES;
        break;
    }
    default: break;
    }
    return control(t, &request, (void *)t->a[3], bytes);
}

long do_msgctl(struct trap *t)
{
    const int queue = (int)t->a[0], command = (int)t->a[1];
    const struct request request = {.call = __NR_msgctl, .arguments = {queue, command}};
    struct control_bytes bytes = {0};
    if (queue < 0 || command < 0)
        return -EINVAL;
    switch (command) {
    case IPC_STAT: case MSG_STAT: case MSG_STAT_ANY: bytes.out = QUEUE_BYTES; break;
    case IPC_SET: bytes.in = QUEUE_BYTES; break;
    case IPC_INFO: case MSG_INFO: bytes.out = QUEUE_LIMITS_BYTES; break;
    default: break;
    }
    return control(t, &request, (void *)t->a[2], bytes);
}

long do_msgsnd(struct trap *t)
{
    const size_t size = t->a[2];
    long type;
    if (copy_user(&type, (void *)t->a[1], sizeof type))
        return -EFAULT;
    if (size > LONGEST_MESSAGE || (int)t->a[0] < 0 || type < 1)
        return -EINVAL;
    struct request request = {.call = __NR_msgsnd, .arguments = {(int)t->a[0], 0, (int64_t)size, (int)t->a[3]}};
    const struct vector in = {(void *)t->a[1], TYPE_BYTES + size};
    return unless_handled(ask_waiting(t, &request, &in, 1, NULL, 0, NULL));
}

long do_msgrcv(struct trap *t)
{
    const int64_t wanted = (int64_t)t->a[2], room = wanted < LONGEST_MESSAGE ? wanted : LONGEST_MESSAGE;
    if ((int)t->a[0] < 0 || wanted < 0)
        return -EINVAL;
    struct request request = {.call = __NR_msgrcv,
                              .arguments = {(int)t->a[0], 0, room, (int64_t)t->a[3], (int)t->a[4]}};
    const struct vector out = {(void *)t->a[1], TYPE_BYTES + (size_t)room};
    return unless_handled(ask_waiting(t, &request, NULL, 0, &out, 1, NULL));
}
