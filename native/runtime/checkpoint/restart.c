/* An image has been executed: the kernel has mapped most of the program and the runtime with it.
 *
 * What is missing is mapped, the shadow takes up the open files, the filter closes, and each parked thread
 * is made again and returns from the signal handler in which it was parked: a restart looks like a return
 * from that handler.
 */
#include <linux/elf.h>

#include "runtime/remote/read_ahead.h"
#include "checkpoint.h"
#include "runtime/memory/shared_memory.h"
#include "runtime/remote/control.h"
#include "runtime/cpu.h"
#include "runtime/process/family.h"
#include "runtime/filter.h"
#include "runtime/memory/shared_arena.h"
#include "runtime/process/groups.h"
#include "runtime/process/identity.h"
#include "runtime/kinship/kinship.h"
#include "runtime/memory/memory.h"
#include "runtime/proc/own_proc.h"
#include "runtime/proc/facts.h"
#include "park.h"
#include "runtime/signals/pending.h"
#include "runtime/remote/library.h"
#include "runtime/remote/plan.h"
#include "runtime/process/process.h"
#include "restart.h"

#include <linux/membarrier.h>
#include "runtime/memory/shared.h"
#include "runtime/signals/signals.h"
#include "runtime/signals/stops.h"
#include "runtime/text.h"
#include "runtime/process/time.h"

enum { ERROR_FD = 2, STACK_KEPT = 256 /* below a frame: the red zone, and more than enough */ };

static volatile uint32_t begun ATOMIC;
static volatile uint32_t threads_back ATOMIC;

/* Alone, an image cannot reach its files: the command that can is executed instead. */
static void find_help(unsigned long *stack) __attribute__((noreturn));
static void find_help(unsigned long *stack)
{
    char **words = (char **)(stack + 1), **environment = words + stack[0] + 1;
    char path[PATH_LIMIT], self[PATH_LIMIT] = {0};
    char *help[] = {"condor_checkpoint", "restart", self, NULL};
    SYSTEM(__NR_readlinkat, AT_FDCWD, "/proc/self/exe", self, sizeof self - 1);
    for (; *environment; environment++) {
        if (!starts_with(*environment, "PATH="))
            continue;
        for (const char *at = *environment + 5; *at;) {
            struct text text = {path, 0, sizeof path};
            char one[2] = {0};
            for (; *at && *at != ':'; at++) {
                one[0] = *at;
                put(&text, one);
            }
            while (*at == ':')
                at++;
            put(&text, "/condor_checkpoint");
            SYSTEM(__NR_execve, path, help, (char **)(stack + 1) + stack[0] + 1);
        }
    }
    static const char advice[] =
        "This is a checkpoint of a program; it goes on with: condor_checkpoint restart FILE\n";
    SYSTEM(__NR_write, ERROR_FD, advice, sizeof advice - 1);
    die(EXIT_CANNOT_START);
}

static void map_late(void) REQUIRES(one_thread);
static void map_late(void)
{
    lock(&memory_lock);
    for (size_t i = 0; i < late_count; i++) {
        const struct region *r = &late[i];
        long at = r->in_image ? SYSTEM(__NR_mmap, r->from, r->to - r->from, r->protection,
                                       MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, OLD_IMAGE_FD, r->offset)
                              : SYSTEM(__NR_mmap, r->from, r->to - r->from, r->protection,
                                       MAP_FRESH | MAP_FIXED | MAP_FIXED_NOREPLACE, -1, 0);
        if (at != (long)r->from)
            die(EXIT_CANNOT_START);
        if (r->in_image)
            intervals_add(&from_image, r->from, r->to);
        if (r->in_image && (r->protection & PROT_EXEC))
            intervals_add(&image_code, r->from, r->to);
    }
    unlock(&memory_lock);
}

/* The image's own headers say what the kernel mapped from it. */
static void note_image(uint64_t base) REQUIRES(one_thread);
static void note_image(uint64_t base)
{
    struct elf64_hdr head;
    struct elf64_phdr p;
    lock(&memory_lock);
    from_image.count = image_code.count = 0;
    if (SYSTEM(__NR_pread64, OLD_IMAGE_FD, &head, sizeof head, base) != sizeof head)
        die(EXIT_CANNOT_START);
    for (int i = 0; i < head.e_phnum; i++) {
        if (SYSTEM(__NR_pread64, OLD_IMAGE_FD, &p, sizeof p, base + head.e_phoff + (unsigned)i * sizeof p) != sizeof p)
            die(EXIT_CANNOT_START);
        if (p.p_type == PT_LOAD && p.p_vaddr < THREAD_PLACE)
            intervals_add(&from_image, p.p_vaddr, p.p_vaddr + p.p_memsz);
        if (p.p_type == PT_LOAD && p.p_vaddr < THREAD_PLACE && (p.p_flags & PF_X))
            intervals_add(&image_code, p.p_vaddr, p.p_vaddr + p.p_memsz);
    }
    unlock(&memory_lock);
}

/* The kernel forgets who wants membarrier to reach it, and refuses it to others. */
static void register_barriers(void)
{
    static const int wishes[] = {MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
                                 MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE,
                                 MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ};
    for (size_t i = 0; i < COUNT(wishes); i++)
        SYSTEM(__NR_membarrier, wishes[i], 0, 0);
}

static void greet(struct thread *self, const struct revival *r) REQUIRES(one_thread);
static void greet(struct thread *self, const struct revival *r)
{
    struct start start;
    struct hello hello = {.version = PROTOCOL_VERSION, .kind = process.helper ? HELLO_MEMBER : HELLO_RESTARTED,
                          .real_pid = (uint32_t)process.real_id,
                          .virtual_pid = (uint32_t)process.start.virtual_pid};
    struct request request = {.call = OP_HELLO};
    struct vector in = {&hello, sizeof hello}, out = {&start, sizeof start};
    if (ask(self, &request, &in, 1, &out, 1, NULL) < 0)
        die(EXIT_CANNOT_START);
    struct request adopt = {.call = OP_ADOPT,
                            .arguments = {r->family ? r->family->living : 0, process.start.group, process.start.session,
                                          r->real_group, process.executed, process.start.parent_pid}};
    struct vector blob = {files, files_size};
    if (ask(self, &adopt, &blob, 1, NULL, 0, NULL) < 0)
        die(EXIT_CANNOT_START);
    tell_limits(self);
    tell_program(self);
}

static void come_back(void *argument)
{
    struct thread *self = argument;
    self->real_id = (int)SYSTEM(__NR_gettid);
    set_alternate_stack(self);
    SYSTEM(__NR_arch_prctl, ARCH_SET_FS, self->fs_base);
    if (self->gs_base)
        SYSTEM(__NR_arch_prctl, ARCH_SET_GS, self->gs_base);
    SYSTEM(__NR_set_tid_address, self->clear_at_exit);
    if (self->robust_list)
        SYSTEM(__NR_set_robust_list, self->robust_list, self->robust_size);
    give_back_signals(self);
    self->takes_checkpoint = false;
    const bool has_parent = process.parent_real_id; /* else who started it may be there still, and ends now */
    if (has_parent)
        death_signal_again(self);
    self->state = THREAD_LIVE;
    uint32_t back = __atomic_add_fetch(&threads_back, 1, __ATOMIC_SEQ_CST);
    const bool is_last = back == threads_live, stands = checkpoint_phase & 1;
    if (is_last) { /* the last one: everybody is here */
        struct request begin = {.call = OP_BEGIN};
        restore_timers();
        ask(self, &begin, NULL, 0, NULL, 0, NULL);
        if (!process.helper)
            groups_release();
        __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
        wake_all(&begun);
    }
    while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
        wait_while(&begun, 0);
    if (!has_parent)
        death_signal_again(self);
    if (stands && is_last)
        stand_again(self);
    else if (stands)
        park(self, self->frame, checkpoint_phase);
    enter_frame(self->frame);
}

/* Below the frame it was parked with, a thread's stack is free. */
static unsigned long stack_of(const struct thread *t)
{
    return ((unsigned long)t->frame - STACK_KEPT) & ~15ul;
}

/* In an image no lock is held: all threads were parked. */
static void forget_locks(void)
{
    struct lock *const all[] = {&memory_lock, &threads_lock, &actions_lock, &proc_lock, &timers_lock, &identity_lock,
                                &views_lock, &children_lock, &passed_fd_lock, &stops_lock};
    for (size_t i = 0; i < COUNT(all); i++)
        forget_lock(all[i]);
}

/* The process is made from its part of the image, which is mapped; its children are started; it goes on. */
void revive(struct revival *r)
{
    forget_locks();
    note_image(r->base);
    map_late();
    if (!shared_memory_again(r))
        die(EXIT_CANNOT_START);
    shared_restart();
    channel_reset();
    read_ahead_reset(false);
    plan_reset();
    library_forget();
    forget_orders();
    checkpoint_is_wished();
    /* Never a number that a thread was asked for before; odd, where all stand still. */
    checkpoint_phase = (checkpoint_phase | 1) + 1 + has_stopped();
    begun = threads_back = 0;
    is_image = false;
    process.restarted = true;
    process.moves = (process.moves + 1) % MOST_TOLD_MOVES;
    if (cpu_level() > process.cpu_level)
        process.cpu_level = cpu_level();
    process.real_id = (int)SYSTEM(__NR_getpid);
    struct thread *first = NULL;
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot) && !first; slot++)
        if (thread_at(slot)->state == THREAD_PARKED)
            first = thread_at(slot);
    if (!first)
        die(EXIT_RUNTIME_FAULT);
    first->waiter.state = WAITER_IDLE;
    groups_again(r);
    greet(first, r);
    if (!shared_claim(first))
        die(EXIT_CANNOT_START);
    restore_clock();
    if (process.helper) /* all have the clock of the first */
        process.monotonic_offset_ns = r->clock_offset_ns;
    r->clock_offset_ns = process.monotonic_offset_ns;
    lineage_start(r, first);
    shared_memory_drop(r);
    register_barriers();
    install_actions();
    if (!process.helper)
        tell_starter(CONTROL_BEGAN, 0);
    install_filter();
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++) {
        struct thread *t = thread_at(slot);
        if (t == first || t->state != THREAD_PARKED)
            continue;
        t->waiter.state = WAITER_IDLE;
        if (clone_thread(THREAD_FLAGS, (void *)stack_of(t), come_back, t, NULL) < 0)
            die(EXIT_CANNOT_START);
    }
    switch_stack(come_back, first, stack_of(first));
    die(EXIT_RUNTIME_FAULT);
}

void restart(unsigned long *stack)
{
    static const uint64_t mask = RUNTIME_MASK;
    if (stack[0] < 2)
        find_help(stack);
    no_other_thread_runs();
    forget_locks();
    SYSTEM(__NR_rt_sigprocmask, SIG_SETMASK, &mask, 0, MASK_BYTES);
    process.real_id = (int)SYSTEM(__NR_getpid);
    take_descriptors(stack);
    struct revival *r = lineage_load();
    if (!r || !arena_make_again() || (r->family && !shared_memory_make(r)))
        die(EXIT_CANNOT_START);
    if (process.family)
        groups_hold(r);
    revive(r);
}
