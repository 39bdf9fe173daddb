/* System V semaphores, message queues and shared memory are at home (shadow/ipc.h); here the program's structures become one request
 * each, and back. */
#include <linux/msg.h>
#include <linux/sem.h>
#include <linux/shm.h>

#include "runtime/memory/memory.h"
#include "runtime/remote/remote.h"
#include "runtime/memory/shared.h"
#include "runtime/process/time.h"
#include "runtime/user.h"

enum {
    MOST_OPERATIONS = 500, OPERATION_BYTES = sizeof(struct sembuf), LONGEST_MESSAGE = 8192, TYPE_BYTES = sizeof(long),
    HIGHEST_VALUE = 32767, VALUE_BYTES = sizeof(unsigned short),
    SET_BYTES = 104, QUEUE_BYTES = 120, SET_LIMITS_BYTES = 40, QUEUE_LIMITS_BYTES = 32,
    SEGMENT_BYTES = 112, SEGMENT_LIMITS_BYTES = 72, SEGMENTS_USE_BYTES = 48,
    SETS_COUNT = 1 << 20, /* as home calls it: how many semaphores there are */
};

/* Waits like those of semaphores are begun anew only if no handler ran.  One that is begun anew, and finds nothing any
 * more, waited for what was removed meanwhile. */
static long after_wait(struct trap *t, bool anew, long result, int64_t end_ns)
{
    if (result == -RESTART_ALWAYS) {
        remember_wait(t, end_ns);
        return -RESTART_UNHANDLED;
    }
    return anew && result == -EINVAL ? -EIDRM : result;
}

static bool is_anew(const struct trap *t)
{
    return t->self->resume.number == t->number;
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
    int64_t end_ns = t->a[3] ? wait_left(t, &limit) : INT64_MAX;
    int64_t left_ns = !t->a[3] ? -1 : limit.tv_sec < INT32_MAX ? limit.tv_sec * SECOND_NS + limit.tv_nsec : INT64_MAX / 2;
    if (t->a[3] && left_ns < 0)
        left_ns = 0;
    struct request request = {.call = __NR_semtimedop, .arguments = {(int)t->a[0], 0, count, left_ns}};
    const struct vector in = {operations, count * OPERATION_BYTES};
    return after_wait(t, is_anew(t), ask_waiting(t, &request, &in, 1, NULL, 0, NULL), end_ns);
}

long do_semop(struct trap *t)
{
    t->a[3] = 0;
    return do_semtimedop(t);
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
    return after_wait(t, is_anew(t), ask_waiting(t, &request, &in, 1, NULL, 0, NULL), INT64_MAX);
}

long do_msgrcv(struct trap *t)
{
    const int64_t wanted = (int64_t)t->a[2], room = wanted < LONGEST_MESSAGE ? wanted : LONGEST_MESSAGE;
    if ((int)t->a[0] < 0 || wanted < 0)
        return -EINVAL;
    struct request request = {.call = __NR_msgrcv,
                              .arguments = {(int)t->a[0], 0, room, (int64_t)t->a[3], (int)t->a[4]}};
    const struct vector out = {(void *)t->a[1], TYPE_BYTES + (size_t)room};
    return after_wait(t, is_anew(t), ask_waiting(t, &request, NULL, 0, &out, 1, NULL), INT64_MAX);
}

long do_shmctl(struct trap *t)
{
    const int segment = (int)t->a[0], command = (int)t->a[1];
    const struct request request = {.call = __NR_shmctl, .arguments = {segment, command}};
    struct control_bytes bytes = {0};
    if (segment < 0 || command < 0)
        return -EINVAL;
    switch (command) {
    case IPC_STAT: case SHM_STAT: case SHM_STAT_ANY: bytes.out = SEGMENT_BYTES; break;
    case IPC_SET: bytes.in = SEGMENT_BYTES; break;
    case IPC_INFO: bytes.out = SEGMENT_LIMITS_BYTES; break;
    case SHM_INFO: bytes.out = SEGMENTS_USE_BYTES; break;
    default: break;
    }
    return control(t, &request, (void *)t->a[2], bytes);
}

long do_shmat(struct trap *t)
{
    const int flags = (int)t->a[2];
    unsigned long at = t->a[1];
    uint64_t size;
    const struct vector out = {&size, sizeof size};
    const struct request request = {.call = __NR_shmat, .arguments = {(int)t->a[0], 0, flags}};
    if ((int)t->a[0] < 0 || ((at & (PAGE - 1)) && !(flags & SHM_RND)))
        return -EINVAL;
    at &= ~(PAGE - 1);
    if (!at && (flags & SHM_REMAP))
        return -EINVAL;
    if (flags & SHM_EXEC) /* as with files: memory that is executable is not shared */
        return -EPERM;
    long handle = ask(t->self, &request, NULL, 0, &out, 1, NULL);
    if (handle < 0)
        return handle;
    const int placed = !at ? 0 : flags & SHM_REMAP ? MAP_FIXED : MAP_FIXED_NOREPLACE;
    long place = map_segment(t->self, handle, at, page_up(size), flags & SHM_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE,
                             placed);
    if (is_error(place)) {
        release_file(t->self, handle);
        return place == -EEXIST ? -EINVAL : place;
    }
    shared_is_segment(handle);
    return place;
}

long do_shmdt(struct trap *t)
{
    struct trap unmap = *t;
    unsigned long from, to;
    bool some = false;
    while (shared_segment_piece(t->a[0], &from, &to)) {
        unmap.a[0] = from;
        unmap.a[1] = to - from;
        long failed = do_munmap(&unmap);
        if (failed)
            return failed;
        some = true;
    }
    return some ? 0 : -EINVAL;
}
