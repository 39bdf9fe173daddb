/* The kernel's interface, as its own headers have it: numbers that elsewhere come from a C library, of which there is none
 * here.  What is declared after this is part of the runtime itself: code and data are one piece, without a table of
 * addresses. */
#ifndef RUNTIME_ABI_H
#define RUNTIME_ABI_H

#include <asm/errno.h>
#include <asm/ioctls.h>
#include <asm/mman.h>
#include <asm/poll.h>
#include <asm/prctl.h>
#include <asm/sigcontext.h>
#include <asm/siginfo.h>
#include <asm/signal.h>
#include <asm/ucontext.h>
#include <linux/fcntl.h>
#include <linux/futex.h>
#include <linux/mman.h>
#include <linux/personality.h>
#include <linux/resource.h>
#include <linux/sched.h>
#include <linux/stat.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include <linux/wait.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guards.h"
#include "system.h"

#pragma GCC visibility push(hidden)

enum {
    /* Not for the program: what becomes of an interrupted call is decided in on_trap. */
    RESTART_ALWAYS = 512,    /* again, unless a handler without SA_RESTART runs */
    RESTART_UNHANDLED = 513, /* again only if no handler of the program runs */
    MASK_BYTES = 8,          /* of a signal mask, as the kernel wants it told */
    CALL_BYTES = 2,          /* the system-call instruction */
    MOST_ERRNO = 4095,       /* results from -MOST_ERRNO to -1 are errors */
    SS_IN_USE = 1, SS_DISABLED = 2,               /* of sigaltstack */
    FX_STATE_BYTES = 512,                         /* without the extended part */
    SEGMENT_CODE = 0x33, SEGMENT_DATA = 0x2b,     /* of user programs */
    FLAGS_OF_PROGRAM = 0x202,                     /* the processor's, at a program's first instruction */
};

#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif

#define SECOND_NS 1000000000l
#define MILLISECOND_NS 1000000l

/* Memory of the runtime's own, which the kernel places and no image covers. */
#define MAP_FRESH (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

/* As every C library starts threads, but for what the runtime does itself. */
#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

#define SIGNAL_COUNT 64
#define SIGNAL_BIT(number) (1ul << ((number) - 1))
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whether a call that returns an address or a size has failed. */
static inline bool is_error(long result)
{
    return result < 0 && result >= -MOST_ERRNO;
}

#endif
