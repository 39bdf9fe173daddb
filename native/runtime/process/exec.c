/* execve: another program takes this one's place in the same process. */
#include "runtime/remote/read_ahead.h"
#include "runtime/memory/dirty.h"
#include "family.h"
#include "runtime/loader.h"
#include "runtime/memory/memory.h"
#include "owned.h"
#include "process.h"
#include "runtime/remote/remote.h"
#include "runtime/signals/signals.h"
#include "runtime/text.h"
#include "time.h"
#include "runtime/user.h"
#include "vfork.h"

enum { ROOM = 4 << 20, MOST_WORDS = 1 << 16, MAY_EXECUTE = 1, CANNOT_EXECUTE = 127 };

enum { CONTROL_WORD = 0x37f, CONTROL_REGISTER = 0x1f80 }; /* of the floating point unit at a program's beginning */

/* The new program's words, away from the memory that is about to go. */
struct words {
    char *path;
    char **arguments, **environment;
    unsigned long memory;
};

static long copy_list(char **to, char *const *from, char **at, const char *end)
{
    for (size_t i = 0;; i++) {
        char *one;
        if (i + 1 >= MOST_WORDS)
            return -E2BIG;
        if (copy_user(&one, from + i, sizeof one))
            return -EFAULT;
        to[i] = NULL;
        if (!one)
            return 0;
        to[i] = *at;
        for (;;) {
            if (*at == end)
                return -E2BIG;
            if (copy_user(*at, one++, 1))
                return -EFAULT;
            if (!*(*at)++)
                break;
        }
    }
}

static long copy_words(struct trap *t, struct words *words)
{
    static char *const nothing[1];
    const size_t lists = 2 * MOST_WORDS * sizeof(char *);
    words->memory = (unsigned long)SYSTEM(__NR_mmap, 0, ROOM + lists, PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0);
    if (is_error((long)words->memory))
        return -ENOMEM;
    words->arguments = (char **)words->memory;
    words->environment = words->arguments + MOST_WORDS;
    char *at = (char *)words->memory + lists, *end = at + ROOM;
    words->path = at;
    long failed = copy_path(at, (char *)t->a[0]);
    at += PATH_LIMIT;
    if (failed >= 0)
        failed = copy_list(words->arguments, t->a[1] ? (char *const *)t->a[1] : nothing, &at, end);
    if (!failed)
        failed = copy_list(words->environment, t->a[2] ? (char *const *)t->a[2] : nothing, &at, end);
    return failed;
}

static void drop_words(const struct words *words)
{
    if (!is_error((long)words->memory))
        SYSTEM(__NR_munmap, words->memory, ROOM + 2 * MOST_WORDS * sizeof(char *));
}

/* What can fail is found out before the old program is gone. */
static long check_program(struct thread *self, const char *path)
{
    unsigned char start[64];
    long failed = call_home(self, __NR_faccessat, AT_FDCWD, (long)path, MAY_EXECUTE, 0, 0, 0);
    if (failed)
        return failed;
    long fd = open_home(self, NULL, AT_FDCWD, path, O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    long got = read_home(self, (int)fd, start, sizeof start, 0);
    close_home(self, (int)fd);
    if (got < 0)
        return got == -EISDIR ? -EACCES : got;
    if (got > 2 && start[0] == '#' && start[1] == '!')
        return 0;
    return got == sizeof start && !memcmp(start, "\177ELF\2\1", 6) ? 0 : -ENOEXEC;
}

/* The state of the processor at a program's first instruction. */
static void fresh_registers(struct ucontext *frame, unsigned long entry, unsigned long stack)
{
    struct sigcontext *c = &frame->uc_mcontext;
    struct _fpstate *state = (void *)c->fpstate;
    c->r8 = c->r9 = c->r10 = c->r11 = c->r12 = c->r13 = c->r14 = c->r15 = 0;
    c->rdi = c->rsi = c->rbp = c->rbx = c->rdx = c->rax = c->rcx = 0;
    c->rsp = stack;
    c->rip = entry;
    c->eflags = FLAGS_OF_PROGRAM;
    if (state) {
        struct _fpx_sw_bytes kept = state->sw_reserved;
        memset(state, 0, FX_STATE_BYTES);
        state->cwd = CONTROL_WORD;
        state->mxcsr = CONTROL_REGISTER;
        state->sw_reserved = kept;
        if (kept.magic1 == FP_XSTATE_MAGIC1)
            memset((char *)state + FX_STATE_BYTES, 0, sizeof(uint64_t)); /* every component at its beginning */
    }
}

long do_execve(struct trap *t)
{
    struct thread *self = t->self;
    struct words words = {.memory = ~0ul};
    unsigned long entry, stack;
    long failed = copy_words(t, &words);
    if (!failed)
        failed = check_program(self, words.path);
    if (failed) {
        drop_words(&words);
        return failed;
    }
    if (!end_other_threads(self)) { /* it is done again, unless this thread is not there any more */
        drop_words(&words);
        return -RESTART_ALWAYS;
    }
    no_other_thread_runs();
    give_back(self);
    release_owned(self);
    drop_program_memory(self);
    share_positions(); /* of what stays open: home hears of them with the next frame */
    process.executed = true;
    struct request request = {.call = OP_EXEC};
    ask(self, &request, NULL, 0, NULL, 0, NULL);
    forget_files();
    dirty_forget();
    reset_actions_for_exec();
    forget_timers();
    memset(&self->alternate, 0, sizeof self->alternate);
    self->clear_at_exit = NULL;
    self->virtual_id = process.start.virtual_pid;
    SYSTEM(__NR_set_tid_address, NULL);
    SYSTEM(__NR_arch_prctl, ARCH_SET_FS, 0);
    failed = load_program(self, words.path, words.arguments, words.environment, &entry, &stack);
    drop_words(&words);
    if (failed) /* the old program cannot come back */
        end_program(self, CANNOT_EXECUTE);
    fresh_registers(t->frame, entry, stack);
    t->frame_is_new = true;
    return 0;
}
