/* The runtime: a small freestanding program that runs another program whose files are elsewhere.
 *
 * It loads the program itself, then lets the kernel trap each of the program's system calls (filter.c)
 * into on_trap (entry.c), which does it here (memory, signals, threads, time, identity) or sends it home
 * over the channel.  Handlers run on a stack of the runtime's, one per thread; while one runs all signals
 * are blocked except in interruptible_system, so nothing of the runtime need be reentrant.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <asm/sigcontext.h>
#include <asm/siginfo.h>
#include <asm/signal.h>
#include <asm/ucontext.h>
#include <linux/time_types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../calls_format.h"
#include "../protocol.h"
#include "system.h"

#pragma GCC visibility push(hidden) /* no table of addresses: code and data are one piece */

enum { /* as <errno.h>, which belongs to a C library */
    EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EIO = 5, E2BIG = 7, ENOEXEC = 8, EBADF = 9, ECHILD = 10,
    EAGAIN = 11, ENOMEM = 12, EACCES = 13, EFAULT = 14, EEXIST = 17, ENODEV = 19, ENOTDIR = 20, EISDIR = 21,
    EINVAL = 22, EPIPE = 32, ENOTTY = 25, ESPIPE = 29, ERANGE = 34, ENAMETOOLONG = 36, ENOSYS = 38, ELOOP = 40,
    EOPNOTSUPP = 95, EISCONN = 106, ETIMEDOUT = 110,
    /* Not for the program: what becomes of an interrupted call is decided in on_trap. */
    RESTART_ALWAYS = 512,    /* again, unless a handler without SA_RESTART runs */
    RESTART_UNHANDLED = 513, /* again only if no handler of the program runs */
};

/* Address space.  Everything of the program's and of the runtime's lies below KERNEL_PLACES. */
#define ARENA_START 0x400000000000ul
#define ARENA_END 0x500000000000ul
#define BREAK_START 0x500000000000ul
#define BREAK_END 0x600000000000ul
#define STACK_PLACE 0x600000000000ul
#define THREAD_PLACE 0x6ffe00000000ul
#define RUNTIME_PLACE 0x6fff00000000ul
#define KERNEL_PLACES 0x700000000000ul
#define PAGE 4096ul
#define USER_SPACE_END 0x7ffffffff000ul
#define READ_IMPLIES_EXEC 0x400000u /* of personality */

#define SLOT_BYTES 0x40000ul
#define MAX_THREADS 1024
#define VIRTUAL_STEP 0x400000 /* beyond the kernel's numbers: for an id that is taken */
#define SCRATCH_BYTES 16384

#define AT_CURRENT (-100l) /* AT_FDCWD */
#define SIGNAL_COUNT 64
#define SIGNAL_BIT(number) (1ul << ((number) - 1))
/* Never really blocked: the trap itself, the checkpoint, and the faults of copy_user. */
#define RESERVED_SIGNALS \
    (SIGNAL_BIT(SIGSYS) | SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(CHECKPOINT_SIGNAL))

/* Blocked while the runtime works: everything but the faults that copy_user turns into -EFAULT. */
#define RUNTIME_MASK (~(SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGBUS)))

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct vector {
    void *base;
    size_t size;
};

/* As the kernel wants it for recvmsg. */
struct message {
    void *name;
    uint64_t name_size;
    struct vector *parts;
    size_t part_count;
    void *control;
    size_t control_size;
    long flags;
};

/* What a signal did to a call in progress: bits of thread.signalled. */
enum { SIGNALLED_CHECKPOINT = 1, SIGNALLED_RESTART = 2, SIGNALLED_PLAIN = 4 };

enum thread_state { THREAD_FREE, THREAD_STARTING, THREAD_LIVE, THREAD_PARKED };

struct waiter {
    volatile uint32_t state; /* WAITER_... */
    struct answer answer;
    struct vector out[6];
    int out_count;
    long result;
};

struct thread {
    uint32_t state;
    int slot;
    int real_id, virtual_id;
    int *clear_at_exit; /* set_tid_address */
    void *robust_list;
    size_t robust_size;
    uint64_t fs_base, gs_base;   /* saved while parked */
    uint64_t pending;            /* signals that had not come through when it was parked */
    uint32_t asked_to_park;      /* the checkpoint's number */
    uint64_t hidden_mask;        /* reserved signals the program thinks blocked */
    bool restore_mask;           /* as sigsuspend: the mask to put into the next frame */
    uint64_t mask_to_restore;
    uint32_t signalled;
    struct sigaltstack alternate; /* the program's own */
    struct ucontext *frame;       /* of the trap or signal that is being served */
    struct {                      /* a timed call that is to be continued */
        long number;
        uint64_t rip, rsp;
        int64_t deadline_ns;
    } resume;
    char name[16];
    struct waiter waiter;
    uint8_t scratch[SCRATCH_BYTES];
};

struct trap {
    struct thread *self;
    struct ucontext *frame;
    long number;
    unsigned long a[6];
    bool frame_is_new; /* rt_sigreturn, execve: there is no result to store */
};

typedef long emulation(struct trap *t);

/* Everything about the process that outlives a checkpoint. */
struct process {
    struct start start;
    int real_id;
    uint64_t break_low, break_now; /* where the break began and where it is */
    uint32_t personality;          /* as the program set it */
    int64_t monotonic_offset_ns; /* the program's clock minus this machine's */
    bool restarted;
    bool family; /* other processes may be started and signalled: they are in a place of their own */
    bool helper; /* this one was started by the program */
    bool shares; /* it has made memory that members may share */
    bool direct; /* the channel goes straight home; see control.c */
    int control; /* then: the socket to the starter */
    bool forked; /* there are, or were, others that got a copy of it */
    int parent_real_id;
    char program[PATH_LIMIT]; /* absolute, for /proc/self/exe */
    uint64_t stack_low, stack_high;
    int cpu_level;     /* of the best machine so far */
    uint64_t auxiliary_at, auxiliary_size;
    uint64_t arguments_at, arguments_end, environment_at, environment_end;
};

extern struct process process;
extern struct thread *const threads_at;
extern const struct call calls[CALL_COUNT];
extern char runtime_text_start[], runtime_text_end[], runtime_data_start[], runtime_data_end[];

static inline struct thread *thread_at(int slot)
{
    return (struct thread *)(THREAD_PLACE + (unsigned long)slot * SLOT_BYTES);
}

static inline struct thread *current_thread(void)
{
    unsigned long here;
    __asm__("mov %%rsp, %0" : "=r"(here));
    return (struct thread *)(here & ~(SLOT_BYTES - 1));
}

static inline unsigned long page_up(unsigned long value)
{
    return (value + PAGE - 1) & ~(PAGE - 1);
}

static inline unsigned long page_down(unsigned long value)
{
    return value & ~(PAGE - 1);
}

/* text.c */
void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *left, const void *right, size_t size);
size_t strlen(const char *text);
int strcmp(const char *left, const char *right);
bool starts_with(const char *text, const char *prefix);
struct text {
    char *at;
    size_t used, room;
};
void put(struct text *text, const char *words);
void put_number(struct text *text, unsigned long value, unsigned base);
void put_signed(struct text *text, long value);
uint64_t read_number(const char **at, unsigned base);

/* user.c: memory that may not be there. 0 or -EFAULT. */
long copy_user(void *to, const void *from, size_t size);
long copy_path(char *to, const char *from); /* length with the zero, -ENAMETOOLONG, -EFAULT */
long touch_for_reading(const void *from, size_t size);
bool is_beyond_memory(const void *from, size_t size); /* no program has that: the kernel refuses it unseen */
size_t readable_part(const void *from, size_t size);  /* of its beginning, up to a hole */
bool fix_fault(struct ucontext *frame);

/* lock.c */
struct lock {
    volatile uint32_t word;
};
void lock(struct lock *l);
void unlock(struct lock *l);
void wait_while(volatile uint32_t *word, uint32_t value);
void wake_all(volatile uint32_t *word);
long interruptible_system(long number, const long arguments[6], const uint64_t *mask);
bool in_interruptible_call(struct ucontext *frame);

/* entry.c */
void take_descriptors(unsigned long *stack);
void on_trap(int number, struct siginfo *info, void *frame);
__attribute__((noreturn)) void die(int status);
__attribute__((noreturn)) void enter_frame(struct ucontext *frame);
long wait_mask(struct trap *t, const void *user_mask, size_t size, uint64_t *mask);

/* channel.c */
enum { WAITER_IDLE, WAITER_ASKED, WAITER_DONE };
long ask(struct thread *self, const struct request *request, const struct vector in[], int in_count,
         const struct vector out[], int out_count, uint64_t *hints);
long ask_waiting(struct trap *t, struct request *request, const struct vector in[], int in_count,
                 const struct vector out[], int out_count, uint64_t *hints);
void channel_reset(void);
long tell_home(const struct request *request, const struct vector in[], int in_count);
void owe(const struct request *request);
void owe_position(int fd, int64_t position);
void forget_owed_position(int fd);
void pay_owed(void);
bool unowe(unsigned call, int fd);
void wait_for_arrival(volatile uint32_t *state);

/* secret.c: encryption of the channel */
bool secret_take(long fd);
bool secret_is_kept(void);
void secret_become_member(long number);
void secret_forget(void);
void secret_send(const struct vector *parts, int count, void (*send)(const struct vector *parts, int count));
long secret_receive(uint8_t *to, size_t room, long (*receive)(void *to, size_t room, bool may_end), bool may_end);

/* ahead.c: what is known of open files, reading ahead and writing behind */
enum { NOT_HERE = -600 }; /* to be asked at home */
long open_home(struct thread *self, struct trap *waiting, int directory, const char *path, int flags, int mode);
long read_ahead(struct thread *self, int fd, uint8_t *to, size_t size, int64_t offset);
long write_behind(struct thread *self, int fd, const uint8_t *from, size_t size, int64_t offset);
long close_home(struct thread *self, int fd);
bool is_ordinary(int fd);
bool status_ahead(int fd, void *to, long *result);
void note_transfer(struct thread *self, int fd, bool writing, uint64_t hints);
void settle_writes(struct thread *self);
void share_positions(void);
void forget_files(void);
void ahead_reset(bool mapped);
uint8_t *ahead_place(unsigned stream, size_t *room);
void ahead_arrived(unsigned stream, int64_t length);

void share_position(int fd);
void forget_file(int fd);
void unlearn_file(int fd);

/* news.c */
bool note_call(const struct trap *t);
void note_news(void);
void note_own_change(void);
uint32_t world_now(void);
extern volatile uint32_t news_heard;

/* plan.c: answers that came before the questions */
bool plan_prepare(void);
void plan_begin(uint32_t taken);
void plan_end(void);
void plan_reset(void);
uint8_t *plan_place(size_t size);
void plan_arrived(const struct answer *answer, bool stored);
bool plan_answer(const struct request *request, const char *path, const struct vector out[], int out_count,
                 long *result);
long plan_open(const struct request *request, const char *path, void *status, uint64_t *hints);
long plan_read(int fd, uint8_t *to, size_t size, int64_t offset);
bool plan_status(int fd, void *to, long *result);
void plan_note_opened(int fd);
bool plan_note_closed(int fd, bool *quick);
void plan_note_moved(int fd);

/* remote.c */
long remote(struct trap *t, const struct call *call);
long call_home(struct thread *self, long number, long a, long b, long c, long d, long e, long f);
long read_home(struct thread *self, int fd, void *to, size_t size, int64_t offset);
long write_home(struct thread *self, int fd, const void *from, size_t size, int64_t offset);

/* filter.c */
void install_filter(void);

/* intervals.c */
struct interval {
    unsigned long from, to;
};
struct intervals {
    struct interval *list;
    size_t count, room;
};
bool intervals_full(const struct intervals *s);
void intervals_add(struct intervals *s, unsigned long from, unsigned long to);
void intervals_remove(struct intervals *s, unsigned long from, unsigned long to);
bool intervals_next(const struct intervals *s, unsigned long from, unsigned long to, struct interval *found);
unsigned long intervals_gap(const struct intervals *s, unsigned long from, unsigned long to,
                            unsigned long size);

/* space.c: which parts of the arena are taken */
bool space_is_full(void);
void space_forget(void);
void space_take(unsigned long from, unsigned long to);
void space_give(unsigned long from, unsigned long to);
unsigned long space_find(unsigned long size);

/* memory.c */
long map_anonymous(unsigned long at, size_t size, int protection, int flags);
bool is_programs_range(unsigned long at, size_t size);
extern struct intervals image_code; /* what of it was executable when the image was written */
extern struct intervals from_image; /* private mappings of the image's file, never to be seen as such */
void write_shared_back(struct thread *self);
void drop_program_memory(struct thread *self);
extern struct lock memory_lock;

/* signals.c */
struct action {
    void *function;
    uint64_t flags;
    void *restorer;
    uint64_t mask;
};
extern struct action actions[SIGNAL_COUNT + 1];
extern struct lock actions_lock;
void on_signal(int number, struct siginfo *info, void *frame);
void install_actions(void);
void reset_actions_for_exec(void);
void adopt_wait_mask(struct trap *t, uint64_t mask);
uint64_t program_mask(struct thread *self);
void set_program_mask(struct thread *self, uint64_t mask);

/* threads.c */
struct thread *new_thread_slot(void);
bool thread_slot_exists(int slot);
void set_alternate_stack(struct thread *self);
extern long clone_thread(long flags, void *stack, void (*function)(void *), void *argument, int *parent_id);
extern void switch_stack(void (*function)(void *), void *argument, unsigned long stack);
extern struct lock threads_lock;
extern volatile uint32_t threads_live;
__attribute__((noreturn)) void leave(struct thread *self, int status);
__attribute__((noreturn)) void end_program(struct thread *self, int status);
void forget_other_threads(struct thread *self);
void end_other_threads(struct thread *self);
bool must_leave(void);

/* control.c */
void tell_starter(int what, int64_t value);
long ask_starter(int what, int64_t value);
extern int given_control;

/* family.c */
long start_member(struct trap *t, unsigned long flags);
int real_child_id(int virtual_id);
long signal_member(int virtual_id, int number);
int real_thread_id(int virtual_id);

/* loader.c */
long load_program(struct thread *self, const char *path, char **arguments, char **environment,
                  unsigned long *entry, unsigned long *stack);
extern unsigned long kernel_auxiliary[32][2];

/* identity.c */
void tell_limits(struct thread *self);

/* time.c */
int64_t monotonic_ns(void);
int64_t wait_end(struct trap *t, int64_t timeout_ns);
void remember_wait(struct trap *t, int64_t end_ns);
void forget_timers(void);
void save_timers(void);
void restore_clock(void);
void restore_timers(void);

/* own_proc.c: /proc/self and its like */
extern struct lock proc_lock;
long own_proc_open(struct trap *t, const char *path, int flags);
long own_proc_link(struct trap *t, const char *path, char *to, size_t size);
const char *own_proc_name(const char *path);

/* cpu.c */
int cpu_level(void);
unsigned cpu_state(void);

/* dirty.c: what changed since the last whole image */
#define DIRTY_SCAN 0xc0606610     /* PAGEMAP_SCAN */
#define FAULT_REGISTER 0xc020aa00 /* UFFDIO_REGISTER */
extern uint64_t base_generation;
void dirty_prepare(void);
void dirty_forget(void);
void dirty_note_place(unsigned long from, unsigned long to, uint64_t offset);
bool dirty_protect(unsigned long from, unsigned long to);
void dirty_begin(uint64_t generation);
struct page_run { /* as PAGEMAP_SCAN tells it */
    uint64_t from, to, categories;
};
long dirty_scan(unsigned long from, unsigned long to, bool written, struct page_run *list, size_t room,
                unsigned long *next);
bool dirty_is_written(const struct page_run *run);
bool dirty_base_place(unsigned long at, unsigned long *to, uint64_t *offset);

/* park.c */
void save_thread(struct thread *self, struct ucontext *frame);
void park(struct thread *self, struct ucontext *frame, uint32_t phase);
void release_others(uint32_t phase);
void park_others(struct thread *self, uint32_t phase);

/* checkpoint.c, restart.c */
void take_checkpoint(struct thread *self, struct ucontext *frame, struct siginfo *info);
__attribute__((noreturn)) void restart(unsigned long *stack);
extern volatile bool is_image; /* true in the data of an image, and only there */
struct region {
    unsigned long from, to;
    uint64_t offset; /* in the image */
    int protection;
    bool in_image;
};
/* What the kernel does not map when it executes the image: mapped first thing after that. */
extern struct region late[4096];
extern size_t late_count;
/* What the family shares; at a restart it is made sharable again. */
extern struct region shared_memory[256];
extern size_t shared_count;
extern uint8_t files[MAX_BLOB]; /* the open files, as the shadow describes them */
extern size_t files_size;
extern int coordinator_slot;
extern volatile uint32_t checkpoint_phase;

#ifdef RUNTIME_TRACE
void trace(const char *what, long number, long value);
#else
#define trace(what, number, value) ((void)0)
#endif

#endif
