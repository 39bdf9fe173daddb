/* A thread's state inside the runtime; it lies below the thread's stack there, in a slot of its own. */
#ifndef RUNTIME_THREAD_H
#define RUNTIME_THREAD_H

#include "runtime/remote/channel.h"
#include "runtime/layout.h"

enum { SCRATCH_BYTES = 16384, NAME_BYTES = 16 };

/* Beyond the kernel's numbers: for an id that is taken. */
#define VIRTUAL_STEP 0x400000
enum { MOST_TOLD_MOVES = 256 }; /* there are 30 bits for a thread's id */

/* What a signal did to a call in progress: bits of thread.signalled. */
enum { SIGNALLED_CHECKPOINT = 1, SIGNALLED_RESTART = 2, SIGNALLED_PLAIN = 4 };

enum thread_state { THREAD_FREE, THREAD_STARTING, THREAD_LIVE, THREAD_PARKED };

/* Its own thread's business, but for state, the ids and asked_to_park. */
struct thread {
    volatile uint32_t state; /* THREAD_... */
    int slot;
    int real_id, virtual_id;
    int *clear_at_exit; /* set_tid_address */
    void *robust_list;
    size_t robust_size;
    uint64_t fs_base, gs_base;   /* saved while parked */
    uint32_t asked_to_park;      /* the checkpoint's number; the coordinator's business */
    uint32_t signals_taken;      /* for the how many-th time; its own business */
    bool awaits_changes;         /* it waits for children that stop or go on */
    bool takes_checkpoint;
    bool asked_to_leave;         /* for an exec; the business of the thread that executes */
    uint64_t hidden_mask;        /* reserved signals the program thinks blocked */
    bool restore_mask;           /* as sigsuspend: the mask to put into the next frame */
    uint64_t mask_to_restore;
    uint32_t signalled;
    uint64_t let_through;         /* signals that the program blocks, while it waits for descriptors of them */
    struct sigaltstack alternate; /* the program's own */
    struct ucontext *frame;       /* of the trap or signal that is being served */
    struct {                      /* a timed call that is to be continued */
        long number;
        uint64_t rip, rsp;
        int64_t deadline_ns;
    } resume;
    struct {                      /* a call that is done again, as nothing of the program's interrupted it */
        uint64_t rip, rsp;        /* 0: none */
        bool ends;                /* with any handler, also one that restarts calls */
    } again;
    char name[NAME_BYTES];
    int death_signal; /* when its parent ends; 0: none */
    struct waiter waiter;
    uint8_t scratch[SCRATCH_BYTES];
};

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

/* threads.c */
struct thread *new_thread_slot(void);
bool thread_slot_exists(int slot);
void set_alternate_stack(struct thread *self);
extern long clone_thread(long flags, void *stack, void (*function)(void *), void *argument, int *parent_id);
extern void switch_stack(void (*function)(void *), void *argument, unsigned long stack);
extern struct lock threads_lock;
extern volatile uint32_t threads_live ATOMIC;
int real_thread_id(int virtual_id);
__attribute__((noreturn)) void leave(struct thread *self, int status);
__attribute__((noreturn)) void end_program(struct thread *self, int status);
void forget_other_threads(struct thread *self) REQUIRES(one_thread);
bool end_other_threads(struct thread *self);
bool must_leave(void);

#endif
