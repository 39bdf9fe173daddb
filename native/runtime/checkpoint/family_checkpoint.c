/* A checkpoint of all processes of a program: what each says to home, and is told.  The order of it is in
 * shadow/family.c.
 */
#include "runtime/process/broker.h"
#include "runtime/remote/control.h"
#include "runtime/memory/dirty.h"
#include "runtime/process/family.h"
#include "image.h"
#include "runtime/process/lineage.h"
#include "runtime/signals/pending.h"
#include "runtime/process/process.h"
#include "runtime/trap.h"

/* A child that has ended and was not waited for is the kernel's to remember, and would be lost. */
static bool has_children(void)
{
    struct siginfo info;
    return SYSTEM(__NR_waitid, P_ALL, 0, &info, WNOHANG | WEXITED | WNOWAIT, 0) != -ECHILD;
}

/* The signal is queued, and the queue may be full just now. */
static void call_to_park(int real_id)
{
    volatile uint32_t nothing = 0;
    while (SYSTEM(__NR_kill, real_id, CHECKPOINT_SIGNAL) == -EAGAIN)
        wait_a_moment_while(&nothing, 0);
}

/* Returns 0: the members of the family are parked; GATHER_ALONE: there are no others; or -errno: no checkpoint now. */
long gather_family(struct thread *self)
{
    struct request request = {.call = OP_PARKED};
    if (process.helper)
        return ask(self, &request, NULL, 0, NULL, 0, NULL);
    int32_t pids[MOST_GATHERED];
    struct vector out = {pids, sizeof pids};
    request = (struct request){.call = OP_GATHER, .arguments = {GATHER_FIRST, has_children()}};
    for (;;) {
        long count = ask(self, &request, NULL, 0, &out, 1, NULL);
        if (count <= 0 || count > MOST_GATHERED)
            return count;
        for (long i = 0; i < count; i++)
            call_to_park(pids[i]);
        request.arguments[0] = GATHER_MORE;
    }
}

/* Tells how long this process's part is, and finds where it begins and who its children are; the file is PASSED_FD
 * then. */
static long place_part(struct thread *self, struct image_room *m, long size, bool first) REQUIRES(passed_fd_lock);
static long place_part(struct thread *self, struct image_room *m, long size, bool first)
{
    struct request request = {.call = OP_PART, .arguments = {size}};
    struct vector in[] = {{&m->lineage, sizeof m->lineage}, {m->children, m->lineage.children * sizeof m->children[0]}};
    long base = ask(self, &request, in, 2, NULL, 0, NULL);
    if (base < 0 || first)
        return base;
    long no_file = ask_starter(CONTROL_FILE, 0);
    return no_file < 0 ? no_file : base;
}

/* The first process makes the file, before anyone may write to it. */
static long begin_file(struct thread *self) REQUIRES(passed_fd_lock);
static long begin_file(struct thread *self)
{
    struct request begin = {.call = OP_IMAGE_BEGIN};
    long failed = ask(self, &begin, NULL, 0, NULL, 0, NULL);
    if (failed < 0) {
        tell_starter(CONTROL_REFUSED, -failed);
        return failed;
    }
    failed = ask_starter(CONTROL_FILE, 0);
    if (failed < 0) {
        struct request end = {.call = OP_IMAGE_END, .arguments = {0, -failed}};
        ask(self, &end, NULL, 0, NULL, 0, NULL);
    }
    return failed;
}

/* All have written: the table, the header, and what becomes of it. Returns 0 or -errno. */
static long finish_family(struct thread *self, struct image_room *m, long failed) REQUIRES(one_thread, passed_fd_lock);
static long finish_family(struct thread *self, struct image_room *m, long failed)
{
    uint64_t words[2]; /* where the parts end, their digest */
    struct request written = {.call = OP_PART_WRITTEN, .arguments = {failed ? -failed : 0, 0}};
    struct vector out[] = {{words, sizeof words}, {m->table, sizeof m->table}};
    long size = ask(self, &written, NULL, 0, out, 2, NULL);
    const struct family_image *head = (const void *)m->table;
    if (!failed && size < 0)
        failed = size;
    if (!failed)
        failed = write_table(m, (size_t)size, words[0], words[1], head->living);
    if (!failed)
        failed = finish_image(m);
    SYSTEM(__NR_close, PASSED_FD);
    if (!failed)
        failed = ask_starter(CONTROL_WRITTEN, 0);
    else
        tell_starter(CONTROL_DROPPED, 0);
    struct request end = {.call = OP_IMAGE_END, .arguments = {!failed, failed ? -failed : (int64_t)m->writer.offset}};
    long told = ask(self, &end, NULL, 0, NULL, 0, NULL);
    if (told == 1)
        die(EXIT_MOVED);
    return failed ? failed : told;
}

static long write_as_first(struct thread *self, struct image_room *m, long mappings, long failed)
    REQUIRES(one_thread, passed_fd_lock);
static long write_as_first(struct thread *self, struct image_room *m, long mappings, long failed)
{
    if (failed)
        tell_starter(CONTROL_REFUSED, -failed);
    long begun = failed ? failed : begin_file(self);
    long base = place_part(self, m, begun < 0 ? begun : (long)m->writer.end, true);
    if (begun < 0)
        return begun;
    failed = base < 0 ? base : write_part(m, mappings);
    return finish_family(self, m, failed);
}

/* Returns what home says at the end: 0 go on, 1: the program goes on elsewhere. */
static long write_as_member(struct thread *self, struct image_room *m, long mappings, long failed)
    REQUIRES(one_thread, passed_fd_lock);
static long write_as_member(struct thread *self, struct image_room *m, long mappings, long failed)
{
    long base = place_part(self, m, failed ? failed : (long)m->writer.end, false);
    if (base >= 0) {
        move_plan(m, (uint64_t)base);
        failed = write_part(m, mappings);
        SYSTEM(__NR_close, PASSED_FD);
    } else {
        failed = base;
    }
    struct request written = {.call = OP_PART_WRITTEN, .arguments = {failed ? -failed : 0, (int64_t)m->writer.digest}};
    return ask(self, &written, NULL, 0, NULL, 0, NULL);
}

void write_with_family(struct thread *self, bool first)
{
    struct image_room *m = image_room(false);
    long mappings = 0, failed = m ? 0 : -ENOMEM;
    if (!m) /* there is nothing to say it with */
        die(EXIT_RUNTIME_FAULT);
    lock(&passed_fd_lock);
    if (!broker_lists())
        failed = -EPERM;
    if (!failed)
        failed = describe_files(self);
    if (!failed)
        failed = plan_image(m, self, &mappings);
    if (!failed)
        failed = lineage_list(m);
    take_signals(self, true); /* of children that have died since, and are listed as dead */
    if (!failed && !all_signals_taken())
        failed = -E2BIG;
    long told = first ? write_as_first(self, m, mappings, failed) : write_as_member(self, m, mappings, failed);
    unlock(&passed_fd_lock);
    if (!first && told == 1)
        die(EXIT_MOVED);
    if (first) {
        struct request over = {.call = OP_GATHER, .arguments = {GATHER_OVER, told < 0 ? told : 0}};
        ask(self, &over, NULL, 0, NULL, 0, NULL);
    }
    dirty_forget();
    SYSTEM(__NR_munmap, m, sizeof *m);
}
