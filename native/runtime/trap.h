/* A system call of the program's on its way through the runtime: see entry.c. */
#ifndef RUNTIME_TRAP_H
#define RUNTIME_TRAP_H

#include "calls_format.h"
#include "runtime/process/thread.h"

struct trap {
    struct thread *self;
    struct ucontext *frame;
    long number;
    unsigned long a[6];
    bool frame_is_new; /* rt_sigreturn, execve: there is no result to store */
};

typedef long emulation(struct trap *t);

extern const struct call calls[CALL_COUNT];
void take_descriptors(unsigned long *stack) REQUIRES(one_thread);
void on_trap(int number, struct siginfo *info, void *frame);
__attribute__((noreturn)) void die(int status);
__attribute__((noreturn)) void enter_frame(struct ucontext *frame);

#endif
