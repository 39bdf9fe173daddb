/* Answers that came before the questions.
 *
 * When a program begins, home tells what such a program asked the last time, with today's answers.  Each serves
 * once (an open file's content and status as long as all of them are good): until the program does anything but
 * look around, hears from anybody, or two seconds have passed.  Files opened so have the lowest free number, as
 * ever, which is why the numbers in use are followed here meanwhile; home is told of a number with the next frame
 * that it gets, and never, if the file is closed before that.
 */
#include "plan.h"

#include "read_ahead.h"
#include "runtime/layout.h"
#include "invalidation.h"
#include "control.h"
#include "library.h"
#include "remote.h"
#include "runtime/text.h"
#include "runtime/process/time.h"
#include "runtime/user.h"

#include <asm/stat.h>

enum { FOLLOWED = 64, DIRECTORY_ENTRY_BYTES = 19, ENTRY_POSITION_AT = 8, ENTRY_SIZE_AT = 16, ALIGNMENT = 16 };
#define GOOD_NS (2 * SECOND_NS)

static struct {
    bool active, complete;
    uint8_t *memory;
    size_t used;
    struct entry {
        const struct foreseen *head;
        const char *path;
        const uint8_t *output;
        size_t output_size;
        int64_t result;
        uint16_t hints;
        bool used;
    } entries[MOST_FORESEEN];
    volatile uint32_t count, awaited;
    size_t cursor, answered;
    uint32_t began_world;
    int64_t began_ns;
    uint64_t taken;    /* descriptors in use */
    uint64_t standard; /* of them, those that were open at the beginning and still are */
    struct opened {
        const uint8_t *content; /* NULL: nothing is known */
        const struct kept *kept; /* it is here, and not in CONTENT */
        size_t have;
        struct stat status;
        bool listing, has_status, here; /* here: opened by this plan */
        size_t listed;
    } open[FOLLOWED];
} plan UNGUARDED("one thread's: whatever starts a second one ends the plan before; then only that it is over is looked at");

/* Room for home's answers. Without, they are not asked for. */
bool plan_prepare(void)
{
    long at = SYSTEM(__NR_mmap, 0, MOST_FORESEEN_BYTES, PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0);
    plan.memory = is_error(at) ? NULL : (uint8_t *)at;
    return plan.memory;
}

void plan_begin(uint32_t taken)
{
    plan.active = plan.memory;
    plan.taken = plan.standard = taken;
    plan.began_world = world_now();
    plan.began_ns = monotonic_ns();
}

enum { BEFORE_CONTENT = sizeof(struct stat) + LIBRARY_DIGEST };

/* Whether it came with its digest, and is not kept here. */
static bool is_new(const struct entry *e)
{
    return (e->hints & HINT_DIGEST) && e->output_size > BEFORE_CONTENT && !library_find(e->output + sizeof(struct stat));
}

static void keep_new(void)
{
    uint32_t first = 0;
    while (first < plan.count && !is_new(&plan.entries[first]))
        first++;
    if (first == plan.count || !library_is_kept() || !try_lock(&passed_fd_lock))
        return;
    bool begun = library_begin_new();
    for (uint32_t i = first; i < plan.count && begun; i++)
        if (is_new(&plan.entries[i]))
            library_add_new(plan.entries[i].output + sizeof(struct stat), plan.entries[i].output + BEFORE_CONTENT,
                            plan.entries[i].output_size - BEFORE_CONTENT);
    if (begun)
        library_end_new();
    unlock(&passed_fd_lock);
}

void plan_end(void)
{
    if (!plan.active)
        return;
    plan.active = false;
    struct request request = {.id = ID_NONE, .call = OP_PLAN_END, .arguments = {(int64_t)plan.answered}};
    while (!plan.complete) { /* what is on its way still arrives */
        plan.awaited = WAITER_ASKED;
        wait_for_arrival(&plan.awaited);
    }
    keep_new();
    library_tell_used();
    SYSTEM(__NR_munmap, plan.memory, MOST_FORESEEN_BYTES);
    plan.memory = NULL;
    memset(plan.open, 0, sizeof plan.open);
    defer(&request);
}

/* In a new member, and after a restart: it was the other process's. */
void plan_reset(void)
{
    memset(&plan, 0, sizeof plan);
}

static bool is_good(void)
{
    if (plan.active && (plan.began_world != world_now() || monotonic_ns() - plan.began_ns > GOOD_NS))
        plan_end();
    return plan.active;
}

/* ---- arriving */

uint8_t *plan_place(size_t size)
{
    return plan.memory && plan.used + size <= MOST_FORESEEN_BYTES ? plan.memory + plan.used : NULL;
}

void plan_arrived(const struct answer *answer, bool stored)
{
    struct foreseen *head = (void *)(plan.memory + plan.used);
    size_t size = answer->size, front;
    if (size == 0)
        plan.complete = true;
    if (stored && size > sizeof *head && plan.count < MOST_FORESEEN &&
        (front = sizeof *head + head->path_size) <= size) {
        plan.entries[plan.count] = (struct entry){
            .head = head, .path = (const char *)(head + 1), .output = (uint8_t *)head + front,
            .output_size = size - front, .result = answer->result, .hints = answer->hints};
        plan.used += (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1ul);
        __atomic_add_fetch(&plan.count, 1, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&plan.awaited, WAITER_DONE, __ATOMIC_RELEASE);
}

/* ---- answering */

static bool matches(const struct entry *e, const struct request *request, const char *path)
{
    static const uint8_t with_path[] = {0, 2, 3}, without[] = {0, 1, 2}; /* 1 is the path's length */
    const uint8_t *compared = *path || request->call == __NR_newfstatat ? with_path : without;
    size_t count = request->call == __NR_ioctl || request->call == __NR_fcntl || request->call == __NR_getcwd ? 2 : 3;
    if (e->used || e->head->call != request->call || strcmp(e->path, path))
        return false;
    for (size_t i = request->call == __NR_openat ? 1 : 0; i < count; i++)
        if (e->head->arguments[compared[i]] != request->arguments[compared[i]])
            return false;
    return request->call != __NR_openat || path[0] == '/' || request->arguments[0] == AT_FDCWD;
}

/* The answer to REQUEST, waiting for what is on its way. Questions come in nearly the old order. */
static struct entry *find(const struct request *request, const char *path)
{
    uint32_t seen = 0;
    for (;;) {
        uint32_t count = __atomic_load_n(&plan.count, __ATOMIC_ACQUIRE);
        for (uint32_t i = seen ? seen : 0; i < count; i++) {
            uint32_t at = seen ? i : (uint32_t)((plan.cursor + i) % count);
            if (matches(&plan.entries[at], request, path)) {
                plan.cursor = at + 1;
                plan.answered++;
                plan.entries[at].used = true;
                return &plan.entries[at];
            }
        }
        seen = count;
        if (plan.complete)
            return NULL;
        plan.awaited = WAITER_ASKED;
        if (plan.count == seen && !plan.complete)
            wait_for_arrival(&plan.awaited);
    }
}

/* A call with a path and output. Returns whether it is answered. */
bool plan_answer(const struct request *request, const char *path, const struct vector out[], int out_count,
                 long *result)
{
    bool known = *path || request->call == __NR_getcwd ||
                 (request->arguments[0] >= 0 && request->arguments[0] < 3 && plan.standard >> request->arguments[0] & 1);
    struct entry *e = known && is_good() ? find(request, path) : NULL;
    if (!e)
        return false;
    size_t left = e->output_size, at = 0;
    *result = e->result;
    for (int i = 0; i < out_count && left; i++) {
        size_t piece = out[i].size < left ? out[i].size : left;
        if (copy_user(out[i].base, e->output + at, piece))
            *result = -EFAULT;
        at += piece;
        left -= piece;
    }
    return true;
}

static int lowest_free(void)
{
    return ~plan.taken ? __builtin_ctzl(~plan.taken) : FOLLOWED;
}

/* NOT_HERE, or what openat returns. STATUS is filled for files whose status came along. */
long plan_open(const struct request *request, const char *path, void *status, uint64_t *hints)
{
    struct entry *e = is_good() ? find(request, path) : NULL;
    int fd = lowest_free();
    if (!e)
        return NOT_HERE;
    if (e->result < 0)
        return e->result;
    if (fd == FOLLOWED) {
        plan_end();
        return NOT_HERE;
    }
    struct opened *o = &plan.open[fd];
    memset(o, 0, sizeof *o);
    *hints = e->hints;
    o->here = true;
    o->listing = e->hints & HINT_LISTING;
    o->content = e->output;
    o->have = e->output_size;
    if ((e->hints & (HINT_STEADY | HINT_LISTING)) && o->have >= sizeof o->status) {
        memcpy(status, e->output, sizeof o->status);
        memcpy(&o->status, e->output, sizeof o->status);
        o->has_status = true;
        o->content += sizeof o->status;
        o->have -= sizeof o->status;
    }
    if ((e->hints & HINT_DIGEST) && o->has_status && o->have >= LIBRARY_DIGEST) {
        o->kept = o->have == LIBRARY_DIGEST ? library_find(o->content) : NULL;
        o->content += LIBRARY_DIGEST;
        o->have = o->kept ? o->kept->size : o->have - LIBRARY_DIGEST;
        if (o->kept)
            library_note_used(o->kept);
    }
    plan.taken |= 1ul << fd;
    struct request take = {.id = ID_NONE, .call = OP_TAKE,
                           .arguments = {e->head->ticket, fd, request->arguments[2]}};
    defer(&take);
    return fd;
}

static struct opened *opened(int fd)
{
    return fd >= 0 && fd < FOLLOWED && is_good() && plan.open[fd].here ? &plan.open[fd] : NULL;
}

/* What is there only in part is left to home. */
long plan_read(int fd, uint8_t *to, size_t size, int64_t offset)
{
    struct opened *o = opened(fd);
    if (!o || !o->has_status || o->listing)
        return NOT_HERE;
    bool whole = o->have >= (size_t)o->status.st_size;
    size_t left = (size_t)offset < o->have ? o->have - (size_t)offset : 0;
    if (left < size && !whole)
        return NOT_HERE;
    if (left < size)
        size = left;
    if (o->kept) {
        long got = library_read(o->kept, to, size, offset);
        return got == -EFAULT || got >= 0 ? got : NOT_HERE;
    }
    return copy_user(to, o->content + offset, size) ? -EFAULT : (long)size;
}

bool plan_status(int fd, void *to, long *result)
{
    struct opened *o = opened(fd);
    if (o && o->has_status)
        *result = copy_user(to, &o->status, sizeof o->status) ? -EFAULT : 0;
    return o && o->has_status;
}

/* Entries of a directory that came with its opening. */
static long list(struct opened *o, int fd, uint8_t *to, size_t room)
{
    size_t done = 0;
    int64_t position = -1;
    while (o->listed + DIRECTORY_ENTRY_BYTES < o->have) {
        const uint8_t *at = o->content + o->listed;
        uint16_t size;
        memcpy(&size, at + ENTRY_SIZE_AT, sizeof size);
        if (size < DIRECTORY_ENTRY_BYTES || size > o->have - o->listed || size > room - done)
            break;
        if (copy_user(to + done, at, size))
            return -EFAULT;
        memcpy(&position, at + ENTRY_POSITION_AT, sizeof position);
        done += size;
        o->listed += size;
    }
    if (!done && o->listed < o->have)
        return -EINVAL; /* not even one fits */
    if (done)
        defer_position(fd, position);
    return (long)done;
}

long do_getdents64(struct trap *t)
{
    struct opened *o = opened((int)t->a[0]);
    return o && o->listing ? list(o, (int)t->a[0], (uint8_t *)t->a[1], t->a[2])
                           : remote(t, &calls[__NR_getdents64]);
}

/* ---- following the numbers in use */

void plan_note_opened(int fd)
{
    if (plan.active && fd >= FOLLOWED)
        plan_end();
    else if (plan.active)
        plan.taken |= 1ul << fd;
}

/* Whether home need not hear of the closing, because it has not heard of the opening. */
bool plan_note_closed(int fd, bool *quick)
{
    if (!plan.active || fd < 0 || fd >= FOLLOWED)
        return false;
    bool here = plan.open[fd].here;
    plan.taken &= ~(1ul << fd);
    plan.standard &= ~(1ul << fd);
    plan.open[fd].here = false;
    *quick |= here;
    return here && take_back_deferred(OP_TAKE, fd);
}

/* A listing is read from one end to the other, or at home. */
void plan_note_moved(int fd)
{
    if (plan.active && fd >= 0 && fd < FOLLOWED)
        plan.open[fd].listing = false;
}
