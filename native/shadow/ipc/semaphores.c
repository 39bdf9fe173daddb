/* System V semaphores. */
#include "ipc.h"

#include <stdlib.h>
#include <string.h>

enum { WOULD_WAIT = 1, LEAST_UNDO = -HIGHEST_VALUE - 1 };

struct semaphore_set *set_new(struct ipc *ipc, size_t count)
{
    struct semaphore_set *set = calloc(1, sizeof *set + count * sizeof *set->list);
    if (!set)
        return NULL;
    set->count = (uint32_t)count;
    ipc->semaphores += count;
    return set;
}

void set_end(struct ipc *ipc, struct semaphore_set *set)
{
    ipc_take_out(ipc, &set->base);
    ipc->semaphores -= set->count;
    while (set->undos) {
        struct undo *undo = set->undos;
        set->undos = undo->next;
        free(undo);
    }
    free(set);
}

struct undo *set_undo(struct semaphore_set *set, int pid, bool make)
{
    struct undo *undo = set->undos;
    while (undo && undo->pid != pid)
        undo = undo->next;
    if (undo || !make || !(undo = calloc(1, sizeof *undo + set->count * sizeof *undo->by)))
        return undo;
    undo->pid = pid;
    undo->next = set->undos;
    set->undos = undo;
    return undo;
}

/* One of several operations. Returns 0, WOULD_WAIT or -errno. */
static long step(struct semaphore *one, int16_t *undo, const struct sembuf *operation)
{
    const int after = one->value + operation->sem_op;
    if ((!operation->sem_op && one->value) || after < 0)
        return operation->sem_flg & IPC_NOWAIT ? -EAGAIN : WOULD_WAIT;
    if (after > HIGHEST_VALUE)
        return -ERANGE;
    if (undo && (operation->sem_flg & SEM_UNDO)) {
        const int back = *undo - operation->sem_op;
        if (back < LEAST_UNDO || back > HIGHEST_VALUE)
            return -ERANGE;
        *undo = (int16_t)back;
    }
    one->value = after;
    return 0;
}

/* All of them or none; BLOCKING: the one that is in the way. The process has its undo already. */
static long attempt(struct semaphore_set *set, int pid, const struct sembuf *operations, unsigned count, unsigned *blocking)
{
    struct undo *undo = set_undo(set, pid, false);
    long result = 0;
    unsigned done = 0;
    for (; done < count; done++) {
        const unsigned at = operations[done].sem_num;
        result = step(&set->list[at], undo ? &undo->by[at] : NULL, &operations[done]);
        if (result)
            break;
    }
    *blocking = done;
    for (unsigned i = 0; i < count && !result; i++)
        set->list[operations[i].sem_num].pid = pid;
    while (result && done--) {
        const struct sembuf *operation = &operations[done];
        set->list[operation->sem_num].value -= operation->sem_op;
        if (undo && (operation->sem_flg & SEM_UNDO))
            undo->by[operation->sem_num] = (int16_t)(undo->by[operation->sem_num] + operation->sem_op);
    }
    if (!result)
        set->used = ipc_now();
    return result;
}

/* The first in line whose operations are possible now: those that only wait for zeros before others. */
static bool settle_one(struct semaphore_set *set)
{
    for (int alters = 0; alters <= 1; alters++)
        for (struct ipc_wait *wait = set->base.waits; wait; wait = wait->next) {
            if (wait->alters != alters)
                continue;
            long result = attempt(set, wait->pid, wait->operations, wait->count, &wait->blocking);
            if (result == WOULD_WAIT)
                continue;
            ipc_over(wait, result);
            return true;
        }
    return false;
}

static void settle(struct semaphore_set *set)
{
    while (settle_one(set))
        ;
}

void set_process_ended(struct semaphore_set *set, int pid)
{
    struct undo **place = &set->undos;
    while (*place && (*place)->pid != pid)
        place = &(*place)->next;
    struct undo *undo = *place;
    if (!undo)
        return;
    *place = undo->next;
    for (uint32_t i = 0; i < set->count; i++) {
        struct semaphore *one = &set->list[i];
        if (!undo->by[i])
            continue;
        one->value += undo->by[i];
        one->value = one->value < 0 ? 0 : one->value > HIGHEST_VALUE ? HIGHEST_VALUE : one->value;
        one->pid = pid;
    }
    set->used = ipc_now();
    free(undo);
    settle(set);
}

/* ---- calls */

long serve_semget(struct work *w)
{
    const int count = (int)ARGUMENT(1);
    if (count < 0 || count > MOST_IN_SET)
        return -EINVAL;
    return ipc_get(w, IPC_SETS, (int)ARGUMENT(0), (int)ARGUMENT(2), (size_t)count);
}

/* Into the line. */
static long wait_for_set(struct work *w, struct semaphore_set *set, const struct sembuf *operations, unsigned count,
                         unsigned blocking)
{
    struct sembuf *kept = malloc(count * sizeof *kept);
    struct ipc_wait *wait = kept ? ipc_wait(w, &set->base) : NULL;
    if (!wait) {
        free(kept);
        return -ENOMEM;
    }
    memcpy(kept, operations, count * sizeof *kept);
    wait->operations = kept;
    wait->count = count;
    wait->blocking = blocking;
    for (unsigned i = 0; i < count; i++)
        wait->alters |= kept[i].sem_op != 0;
    w->until_ns = ARGUMENT(3) < 0 ? -1 : now_ns() + ARGUMENT(3);
    return ipc_waited(w);
}

static long operate(struct work *w, struct ipc *ipc, const struct sembuf *operations, unsigned count)
{
    struct semaphore_set *set = (struct semaphore_set *)ipc_find(ipc, IPC_SETS, (int)ARGUMENT(0));
    bool alters = false, undoes = false;
    unsigned highest = 0, blocking;
    for (unsigned i = 0; i < count; i++) {
        alters |= operations[i].sem_op != 0;
        undoes |= operations[i].sem_flg & SEM_UNDO;
        highest = operations[i].sem_num > highest ? operations[i].sem_num : highest;
    }
    if (!set)
        return -EINVAL;
    if (highest >= set->count)
        return -EFBIG;
    if (!ipc_may(&set->base, alters ? 0222 : 0444))
        return -EACCES;
    if (undoes && !set_undo(set, w->session->virtual_pid, true))
        return -ENOMEM;
    long result = attempt(set, w->session->virtual_pid, operations, count, &blocking);
    if (result == WOULD_WAIT)
        return wait_for_set(w, set, operations, count, blocking);
    if (!result && alters)
        settle(set);
    return result;
}

/* Set, how many bytes of operations follow, a number of its own, and how long it may wait, in ns; -1: without limit. */
long serve_semtimedop(struct work *w)
{
    struct ipc *ipc = ipc_of(w->session);
    const unsigned count = w->head.size / sizeof(struct sembuf);
    if (!ipc)
        return -ENOMEM;
    if (!count || count > MOST_OPERATIONS || w->head.size % sizeof(struct sembuf) || ARGUMENT(3) > INT64_MAX / 2)
        return -EINVAL;
    struct sembuf operations[MOST_OPERATIONS];
    memcpy(operations, w->payload, w->head.size);
    pthread_mutex_lock(&ipc->lock);
    long result = w->ipc                                ? ipc_waited(w)
                  : w->session->state == SHADOW_EXITED ? -EINTR
                                                       : operate(w, ipc, operations, count);
    pthread_mutex_unlock(&ipc->lock);
    if (result != PARKED)
        ipc_leave(w);
    return result;
}

static long tell_set(struct work *w, const struct semaphore_set *set, long result)
{
    struct semid_ds told = {.sem_otime = set->used, .sem_ctime = set->base.changed, .sem_nsems = set->count};
    uint8_t *to = out_room(w, sizeof told);
    if (!to)
        return -ENOMEM;
    ipc_permissions(&set->base, &told.sem_perm);
    memcpy(to, &told, sizeof told);
    return result;
}

static long tell_limits(struct work *w, struct ipc *ipc, bool in_use)
{
    struct seminfo told = {.semmap = MOST_SEMAPHORES, .semmni = MOST_OBJECTS, .semmns = MOST_SEMAPHORES,
                           .semmnu = MOST_SEMAPHORES, .semmsl = MOST_IN_SET, .semopm = MOST_OPERATIONS,
                           .semume = MOST_OPERATIONS, .semvmx = HIGHEST_VALUE, .semusz = 20, .semaem = HIGHEST_VALUE};
    uint8_t *to = out_room(w, sizeof told);
    if (!to)
        return -ENOMEM;
    if (in_use) {
        told.semusz = ipc_used(ipc, IPC_SETS);
        told.semaem = (int)ipc->semaphores;
    }
    memcpy(to, &told, sizeof told);
    return ipc_highest(ipc, IPC_SETS);
}

static long in_line(const struct semaphore_set *set, unsigned at, bool for_zero)
{
    long count = 0;
    for (const struct ipc_wait *wait = set->base.waits; wait; wait = wait->next) {
        const struct sembuf *operation = &wait->operations[wait->blocking];
        count += operation->sem_num == at && (for_zero ? operation->sem_op == 0 : operation->sem_op < 0);
    }
    return count;
}

static void forget_undo(struct semaphore_set *set, uint32_t from, uint32_t to)
{
    for (struct undo *undo = set->undos; undo; undo = undo->next)
        memset(undo->by + from, 0, (to - from) * sizeof *undo->by);
}

/* VALUES, as they came, are of the semaphores from FROM to TO. */
static long set_values(struct work *w, struct semaphore_set *set, uint32_t from, uint32_t to, const void *values)
{
    for (int stores = 0; stores <= 1; stores++)
        for (uint32_t i = from; i < to; i++) {
            uint16_t value;
            memcpy(&value, (const uint8_t *)values + (i - from) * sizeof value, sizeof value);
            if (value > HIGHEST_VALUE)
                return -ERANGE;
            if (stores)
                set->list[i] = (struct semaphore){value, w->session->virtual_pid};
        }
    forget_undo(set, from, to);
    set->base.changed = ipc_now();
    settle(set);
    return 0;
}

static long tell_values(struct work *w, const struct semaphore_set *set)
{
    uint8_t *to = out_room(w, set->count * sizeof(uint16_t));
    for (uint32_t i = 0; i < set->count && to; i++) {
        const uint16_t value = (uint16_t)set->list[i].value;
        memcpy(to + i * sizeof value, &value, sizeof value);
    }
    return to ? 0 : -ENOMEM;
}

static long tell_one(const struct semaphore_set *set, uint32_t at, int command)
{
    switch (command) {
    case GETVAL: return set->list[at].value;
    case GETPID: return set->list[at].pid;
    default: return in_line(set, at, command == GETZCNT);
    }
}

static long control_values(struct work *w, struct semaphore_set *set, int command)
{
    const bool writes = command == SETALL || command == SETVAL;
    const int64_t at = (int)ARGUMENT(1);
    const uint16_t value = (uint16_t)ARGUMENT(3);
    const bool of_one = command != SETALL && command != GETALL;
    if (command == SETVAL && at >= 0 && at < set->count && !ipc_may(&set->base, 0222))
        return -EACCES;
    if (command != SETVAL && !ipc_may(&set->base, writes ? 0222 : 0444))
        return -EACCES;
    if (of_one && (at < 0 || at >= set->count))
        return -EINVAL;
    if (command == SETVAL)
        return set_values(w, set, (uint32_t)at, (uint32_t)at + 1, &value);
    if (command == SETALL)
        return w->head.size == set->count * sizeof value ? set_values(w, set, 0, set->count, w->payload) : -EINVAL;
    return command == GETALL ? tell_values(w, set) : tell_one(set, (uint32_t)at, command);
}

static long control_owned(struct work *w, struct ipc *ipc, struct semaphore_set *set, int command)
{
    struct semid_ds fresh;
    if (!ipc_is_owner(&set->base))
        return -EPERM;
    if (command == IPC_RMID) {
        set_end(ipc, set);
        return 0;
    }
    if (w->head.size != sizeof fresh)
        return -EINVAL;
    memcpy(&fresh, w->payload, sizeof fresh);
    ipc_set_permissions(&set->base, &fresh.sem_perm);
    return 0;
}

static long control(struct work *w, struct ipc *ipc)
{
    const int command = (int)ARGUMENT(2);
    const bool by_place = command == SEM_STAT || command == SEM_STAT_ANY;
    struct semaphore_set *set = (struct semaphore_set *)(by_place ? ipc_at(ipc, IPC_SETS, (int)ARGUMENT(0))
                                                                  : ipc_find(ipc, IPC_SETS, (int)ARGUMENT(0)));
    if (command == IPC_INFO || command == SEM_INFO)
        return tell_limits(w, ipc, command == SEM_INFO);
    if (command == SETVAL && (ARGUMENT(3) < 0 || ARGUMENT(3) > HIGHEST_VALUE))
        return -ERANGE;
    if (!set)
        return -EINVAL;
    switch (command) {
    case SETS_COUNT: return set->count;
    case IPC_STAT:
    case SEM_STAT:
        if (!ipc_may(&set->base, 0444))
            return -EACCES;
        __attribute__((fallthrough));
    case SEM_STAT_ANY: return tell_set(w, set, by_place ? set->base.id : 0);
    case GETALL: case GETVAL: case GETPID: case GETNCNT: case GETZCNT: case SETALL: case SETVAL:
        return control_values(w, set, command);
    case IPC_SET: case IPC_RMID: return control_owned(w, ipc, set, command);
    default: return -EINVAL;
    }
}

/* Set, semaphore, command, and the value of SETVAL; what follows is as the command wants it. */
long serve_semctl(struct work *w)
{
    return ipc_alone(w, control);
}
