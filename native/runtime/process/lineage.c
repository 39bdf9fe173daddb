/* Kinship: who is whose child, and how a family comes back from its image.
 *
 * A part of the image of a family is an image of one process, at some place of the file.  The kernel executes the first
 * process's.  That one makes the memory that members share, and each process starts its children, those that have ended
 * and were not waited for among them, before its own filter closes; a child takes its parent's memory for a moment only:
 * it maps its own part over it, the runtime's data included, and goes on from there as a restarted program does.
 * Children whose parent has ended are started by a process that ends at once, so they are nobody's here as well.
 *
 * Ids that the program knows stay.  A new process gets the kernel's number, unless one of the image has it.
 */
#include "lineage.h"

#include <linux/elf.h>

#include "broker.h"
#include "runtime/memory/shared_memory.h"
#include "runtime/remote/control.h"
#include "family.h"
#include "groups.h"
#include "runtime/kinship/kinship.h"
#include "runtime/checkpoint/image.h"
#include "process.h"
#include "runtime/checkpoint/restart.h"
#include "runtime/remote/secret.h"
#include "runtime/text.h"
#include "runtime/trap.h"

static int32_t taken[3 * MOST_MEMBERS] UNGUARDED("written in a restart, while there is one thread");
static uint32_t taken_count UNGUARDED("written in a restart, while there is one thread");

/* Whether a process of the image had that number, or a group or session of it has. */
bool lineage_has(int virtual_id)
{
    for (uint32_t i = 0; i < taken_count; i++)
        if (taken[i] == virtual_id)
            return true;
    return false;
}

/* This process and its children, for home. */
long lineage_list(struct image_room *m)
{
    const int parent = parent_now(current_thread());
    find_orphans(current_thread());
    long count = list_children(m->children, MOST_MEMBERS);
    m->lineage = (struct lineage){.virtual_pid = process.start.virtual_pid, .parent_pid = parent,
                          .children = count < 0 ? 0 : (uint32_t)count};
    return count < 0 ? count : 0;
}

/* ---- coming back */

/* The table at the end of an image's file. NULL: the program is one process. */
struct revival *lineage_load(void)
{
    uint64_t where[2];
    struct family_image head;
    const size_t room = sizeof(struct revival) + TABLE_BYTES;
    long at = SYSTEM(__NR_mmap, 0, room, PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0);
    if (is_error(at))
        die(EXIT_CANNOT_START);
    struct revival *r = (struct revival *)at;
    r->secret = secret_keep();
    r->broker = broker_keep();
    r->control = process.control;
    r->direct = process.direct;
    taken_count = 0;
    if (SYSTEM(__NR_pread64, OLD_IMAGE_FD, where, sizeof where, FAMILY_AT) != sizeof where || where[0] != FAMILY_MAGIC)
        return r;
    if (SYSTEM(__NR_pread64, OLD_IMAGE_FD, r + 1, TABLE_BYTES, where[1]) < (long)sizeof head)
        die(EXIT_CANNOT_START);
    memcpy(&head, r + 1, sizeof head);
    if (head.magic != FAMILY_MAGIC || head.members > MOST_MEMBERS || head.objects > MOST_SHARED_PIECES ||
        (head.groups && head.groups != head.members))
        die(EXIT_CANNOT_START);
    r->family = (const struct family_image *)(r + 1);
    r->members = (const struct member_image *)(r->family + 1);
    r->objects = (struct object_image *)(r->members + head.members);
    r->groups = head.groups ? (const struct group_image *)(r->objects + head.objects) : NULL;
    return r;
}

static void remember_ids(const struct revival *r)
{
    taken_count = 0;
    for (uint32_t i = 0; r->family && i < r->family->members; i++)
        taken[taken_count++] = r->members[i].virtual_pid;
    for (uint32_t i = 0; r->groups && i < r->family->members; i++) {
        taken[taken_count++] = r->groups[i].group;
        taken[taken_count++] = r->groups[i].session;
    }
}

/* The memory of the process that part BASE of the image is of takes the place of this one's, but for the runtime's text
 * and constants, which are the same, and what the kernel has placed, the stack that this runs on among it. */
static void take_part(uint64_t base) REQUIRES(one_thread);
static void take_part(uint64_t base)
{
    struct elf64_hdr head;
    struct elf64_phdr p;
    if (SYSTEM(__NR_pread64, OLD_IMAGE_FD, &head, sizeof head, base) != sizeof head || head.e_phnum > MOST_SEGMENTS)
        die(EXIT_CANNOT_START);
    SYSTEM(__NR_munmap, LOWEST_PLACE, RUNTIME_PLACE - LOWEST_PLACE);
    for (int i = 0; i < head.e_phnum; i++) {
        uint64_t at = base + head.e_phoff + (unsigned)i * sizeof p;
        if (SYSTEM(__NR_pread64, OLD_IMAGE_FD, &p, sizeof p, at) != sizeof p)
            die(EXIT_CANNOT_START);
        if (p.p_type != PT_LOAD || (p.p_vaddr >= RUNTIME_PLACE && !(p.p_flags & PF_W)))
            continue;
        int protection = (p.p_flags & PF_R ? PROT_READ : 0) | (p.p_flags & PF_W ? PROT_WRITE : 0) |
                         (p.p_flags & PF_X ? PROT_EXEC : 0);
        long placed = SYSTEM(__NR_mmap, p.p_vaddr, p.p_filesz, protection, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE,
                             OLD_IMAGE_FD, p.p_offset);
        if (placed != (long)p.p_vaddr)
            die(EXIT_CANNOT_START);
    }
}

/* In the new process. Its channel is PASSED_FD. */
static void become(struct revival *r, const struct member_image *who, long number, bool straight) REQUIRES(one_thread, passed_fd_lock);
static void become(struct revival *r, const struct member_image *who, long number, bool straight)
{
    SYSTEM(__NR_dup3, PASSED_FD, CHANNEL_FD, 0);
    SYSTEM(__NR_close, PASSED_FD);
    if (r->direct) {
        SYSTEM(__NR_close, r->control);
        r->control = passed_control;
        if (!straight)
            secret_forget();
    }
    r->direct = straight;
    secret_become_member(number);
    r->secret = secret_keep();
    r->base = who->base;
    r->parent_pid = process.real_id;
    take_part(who->base);
    process.own_lists = false;
    process.helper = true;
    process.parent_real_id = (int)r->parent_pid;
    process.control = r->control;
    process.direct = r->direct;
    secret_again(r->secret);
    broker_again(r->broker);
    revive(r);
}

/* Ends as the process did that nobody has waited for yet. */
static void end_as(int status) __attribute__((noreturn));
static void end_as(int status)
{
    enum { SIGNAL_OF_STATUS = 0x7f };
    const uint64_t none = 0;
    int number = status & SIGNAL_OF_STATUS;
    if (number) {
        const struct {
            void *function;
            uint64_t flags;
            void *restorer;
            uint64_t mask;
        } action = {0};
        SYSTEM(__NR_rt_sigaction, number, &action, 0, MASK_BYTES);
        SYSTEM(__NR_kill, SYSTEM(__NR_getpid), number);
        SYSTEM(__NR_rt_sigprocmask, SIG_SETMASK, &none, 0, MASK_BYTES);
    }
    die(status >> STATUS_SHIFT);
}

static long start_ended(struct revival *r, struct thread *self, const struct member_image *who) REQUIRES(one_thread);
static long start_ended(struct revival *r, struct thread *self, const struct member_image *who)
{
    if (!groups_note_ended(self, r, who))
        return -EIO;
    long id = SYSTEM(__NR_clone, SIGCHLD, 0, 0, 0, 0);
    if (id == 0) {
        if (r->groups)
            SYSTEM(__NR_setpgid, 0, r->real_groups[who - r->members]);
        end_as(who->status);
    }
    return id;
}

/* ORPHAN: nobody's child. */
static long start_living(struct revival *r, struct thread *self, const struct member_image *who, bool orphan)
    REQUIRES(one_thread);
static long start_living(struct revival *r, struct thread *self, const struct member_image *who, bool orphan)
{
    struct request request = {.call = OP_FORK, .arguments = {process.direct, r->family->living}};
    lock(&passed_fd_lock);
    long number = ask(self, &request, NULL, 0, NULL, 0, NULL);
    long way = number < 0 ? number : ask_starter(CONTROL_MEMBER, number);
    bool straight = way == 1 && (passed_control == CONTROL_FD || passed_control == OTHER_CONTROL_FD);
    long id = way < 0 || (way == 1 && !straight) ? -EAGAIN : SYSTEM(__NR_clone, SIGCHLD, 0, 0, 0, 0);
    if (id == 0 && orphan && SYSTEM(__NR_clone, SIGCHLD, 0, 0, 0, 0) != 0)
        die(0);
    if (id == 0) {
        if (orphan) /* whom it knows as its parent is gone */
            process.real_id = 0;
        become(r, who, number, straight);
    }
    SYSTEM(__NR_close, PASSED_FD);
    if (straight)
        SYSTEM(__NR_close, passed_control);
    unlock(&passed_fd_lock);
    while (orphan && id > 0 && SYSTEM(__NR_wait4, id, 0, 0, 0) == -EINTR)
        ;
    return id;
}

static bool is_orphan(const struct revival *r, const struct member_image *who)
{
    if (who == r->members) /* the first */
        return false;
    for (uint32_t i = 0; i < r->family->members; i++)
        if (!r->members[i].has_ended && r->members[i].virtual_pid == who->parent_pid)
            return false;
    return true;
}

/* That children have ended was told to the program before it was saved, or is in what it was saved with; and what the
 * runtime started for a moment, here or before, is not the program's business. */
static void wait_for_ended(struct revival *r) REQUIRES(one_thread);
static void wait_for_ended(struct revival *r)
{
    struct siginfo info;
    for (uint32_t i = 0; r->family && i < r->family->members; i++) {
        const struct member_image *who = &r->members[i];
        if (!who->has_ended || who->parent_pid != process.start.virtual_pid)
            continue;
        while (SYSTEM(__NR_waitid, P_PID, real_child_id(who->virtual_pid), &info, WEXITED | WNOWAIT, 0) == -EINTR)
            ;
    }
    const struct {
        void *function;
        uint64_t flags;
        void *restorer;
        uint64_t mask;
    } ignore = {(void *)1, 0, NULL, 0}, none = {0};
    SYSTEM(__NR_rt_sigaction, SIGCHLD, &ignore, 0, MASK_BYTES); /* the kernel forgets what is pending of such a signal */
    SYSTEM(__NR_rt_sigaction, SIGCHLD, &none, 0, MASK_BYTES);
}

/* Starts the processes that this one is the parent of. */
void lineage_start(struct revival *r, struct thread *self)
{
    forget_children();
    remember_ids(r);
    for (uint32_t i = 0; r->family && i < r->family->members; i++) {
        const struct member_image *who = &r->members[i];
        bool orphan = !process.helper && is_orphan(r, who);
        if (!orphan && (who->parent_pid != process.start.virtual_pid || who == r->members))
            continue;
        long id = who->has_ended ? start_ended(r, self, who) : start_living(r, self, who, orphan);
        if (id < 0)
            die(EXIT_CANNOT_START);
        if (!orphan && !adopt_child(who->virtual_pid, (int)id))
            die(EXIT_CANNOT_START);
    }
    wait_for_ended(r);
    reaper_again();
}
