/* An image has been executed: the kernel has mapped most of the program and the runtime with it.
 *
 * What is missing is mapped, the shadow takes up the open files, the filter closes, and each parked thread
 * is made again and returns from the signal handler in which it was parked: a restart looks like a return
 * from that handler.
 */
#include "runtime.h"

#include <linux/elf.h>

enum { SET_FS = 0x1002, SET_GS = 0x1001, THREAD_FLAGS = 0x50f00, ANONYMOUS_FIXED = 0x4032 | 0x100000, PROT_EXECUTE = 4 };

static volatile uint32_t begun;
static volatile uint32_t threads_back;

/* Alone, an image cannot reach its files: the command that can is executed instead. */
static void find_help(unsigned long *stack) __attribute__((noreturn));
static void find_help(unsigned long *stack)
{
    char **words = (char **)(stack + 1), **environment = words + stack[0] + 1;
    char path[PATH_LIMIT], self[PATH_LIMIT] = {0};
    char *help[] = {"condor_checkpoint", "restart", self, NULL};
    SYSTEM(__NR_readlinkat, AT_CURRENT, "/proc/self/exe", self, sizeof self - 1);
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
    static const char words_of_sorrow[] =
        "This is a checkpoint of a program; it goes on with: condor_checkpoint restart FILE\n";
    SYSTEM(__NR_write, 2, words_of_sorrow, sizeof words_of_sorrow - 1);
    die(EXIT_CANNOT_START);
}

static void map_late(void)
{
    for (size_t i = 0; i < late_count; i++) {
        const struct region *r = &late[i];
        long at = r->in_image ? SYSTEM(__NR_mmap, r->from, r->to - r->from, r->protection,
                                       0x2 | 0x10 | 0x4000, OLD_IMAGE_FD, r->offset)
                              : SYSTEM(__NR_mmap, r->from, r->to - r->from, r->protection, ANONYMOUS_FIXED, -1, 0);
        if (at != (long)r->from)
            die(EXIT_CANNOT_START);
        if (r->in_image)
            intervals_add(&from_image, r->from, r->to);
        if (r->in_image && (r->protection & PROT_EXECUTE))
            intervals_add(&image_code, r->from, r->to);
    }
}

/* What members of the family are to share is an image's private memory now: it becomes sharable again. */
static void share_again(void)
{
    enum { PROT_READ = 1, PROT_WRITE = 2, SHARED_ANONYMOUS = 0x21, MOVE_FIXED = 3 };
    for (size_t i = 0; i < shared_count; i++) {
        const struct region *r = &shared_memory[i];
        size_t size = r->to - r->from;
        long at = SYSTEM(__NR_mmap, 0, size, PROT_READ | PROT_WRITE, SHARED_ANONYMOUS, -1, 0);
        if (at < 0 && at > -4096)
            die(EXIT_CANNOT_START);
        if (!(r->protection & PROT_READ))
            SYSTEM(__NR_mprotect, r->from, size, PROT_READ);
        memcpy((void *)at, (void *)r->from, size);
        SYSTEM(__NR_mprotect, at, size, r->protection);
        if (SYSTEM(__NR_mremap, at, size, size, MOVE_FIXED, r->from) != (long)r->from)
            die(EXIT_CANNOT_START);
        intervals_remove(&from_image, r->from, r->to);
    }
}

/* The image's own headers say what the kernel mapped from it. */
static void note_image(void)
{
    struct elf64_hdr head;
    struct elf64_phdr p;
    from_image.count = image_code.count = 0;
    if (SYSTEM(__NR_pread64, OLD_IMAGE_FD, &head, sizeof head, 0) != sizeof head)
        die(EXIT_CANNOT_START);
    for (int i = 0; i < head.e_phnum; i++) {
        if (SYSTEM(__NR_pread64, OLD_IMAGE_FD, &p, sizeof p, head.e_phoff + (unsigned)i * sizeof p) != sizeof p)
            die(EXIT_CANNOT_START);
        if (p.p_type == PT_LOAD && p.p_vaddr < THREAD_PLACE)
            intervals_add(&from_image, p.p_vaddr, p.p_vaddr + p.p_memsz);
        if (p.p_type == PT_LOAD && p.p_vaddr < THREAD_PLACE && (p.p_flags & PF_X))
            intervals_add(&image_code, p.p_vaddr, p.p_vaddr + p.p_memsz);
    }
}

static void greet(struct thread *self)
{
    struct start start;
    struct hello hello = {.version = PROTOCOL_VERSION, .kind = HELLO_RESTARTED,
                          .real_pid = (uint32_t)process.real_id,
                          .virtual_pid = (uint32_t)process.start.virtual_pid};
    struct request request = {.call = OP_HELLO};
    struct vector in = {&hello, sizeof hello}, out = {&start, sizeof start};
    if (ask(self, &request, &in, 1, &out, 1, NULL) < 0)
        die(EXIT_CANNOT_START);
    struct request adopt = {.call = OP_ADOPT};
    struct vector blob = {files, files_size};
    if (ask(self, &adopt, &blob, 1, NULL, 0, NULL) < 0)
        die(EXIT_CANNOT_START);
    tell_limits(self);
}

static void come_back(void *argument)
{
    struct thread *self = argument;
    self->real_id = (int)SYSTEM(__NR_gettid);
    set_alternate_stack(self);
    SYSTEM(__NR_arch_prctl, SET_FS, self->fs_base);
    if (self->gs_base)
        SYSTEM(__NR_arch_prctl, SET_GS, self->gs_base);
    SYSTEM(__NR_set_tid_address, self->clear_at_exit);
    if (self->robust_list)
        SYSTEM(__NR_set_robust_list, self->robust_list, self->robust_size);
    for (int number = 1; number <= SIGNAL_COUNT; number++)
        if ((self->pending & ~RESERVED_SIGNALS) & SIGNAL_BIT(number))
            SYSTEM(__NR_tgkill, process.real_id, self->real_id, number);
    self->state = THREAD_LIVE;
    uint32_t back = __atomic_add_fetch(&threads_back, 1, __ATOMIC_SEQ_CST);
    if (back == threads_live) { /* the last one: everybody is here */
        struct request begin = {.call = OP_BEGIN};
        restore_timers();
        ask(self, &begin, NULL, 0, NULL, 0, NULL);
        __atomic_store_n(&begun, 1, __ATOMIC_RELEASE);
        wake_all(&begun);
    }
    while (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE))
        wait_while(&begun, 0);
    enter_frame(self->frame);
}

/* Below the frame it was parked with, a thread's stack is free. */
static unsigned long stack_of(const struct thread *t)
{
    return ((unsigned long)t->frame - 256) & ~15ul;
}

void restart(unsigned long *stack)
{
    static const uint64_t mask = RUNTIME_MASK;
    if (stack[0] < 2)
        find_help(stack);
    SYSTEM(__NR_rt_sigprocmask, 2, &mask, 0, 8);
    take_descriptors(stack);
    note_image();
    map_late();
    share_again();
    channel_reset();
    ahead_reset(false);
    plan_reset();
    memory_lock.word = threads_lock.word = actions_lock.word = proc_lock.word = 0;
    checkpoint_phase = (checkpoint_phase | 1) + 1; /* never a number that a thread was asked for before */
    begun = threads_back = 0;
    is_image = false;
    process.restarted = true;
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
    greet(first);
    restore_clock();
    install_actions();
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
