/* Locks between the program's threads while they are inside the runtime, and the one kind of wait that
 * signals may end. */
#include "lock.h"

enum { FREE, TAKEN, AWAITED /* taken, and another thread waits */ };

struct lock one_thread;

void wait_while(volatile uint32_t *word, uint32_t value)
{
    SYSTEM(__NR_futex, word, FUTEX_WAIT_PRIVATE, value, 0);
}

void wake_all(volatile uint32_t *word)
{
    SYSTEM(__NR_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* For events without a wake-up: returns after a millisecond at the latest. */
void wait_a_moment_while(volatile uint32_t *word, uint32_t value)
{
    const struct __kernel_timespec moment = {0, MILLISECOND_NS};
    SYSTEM(__NR_futex, word, FUTEX_WAIT_PRIVATE, value, &moment);
}

UNCHECKED_LOCKS bool try_lock(struct lock *l)
{
    uint32_t seen = FREE;
    return __atomic_compare_exchange_n(&l->word, &seen, TAKEN, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

UNCHECKED_LOCKS void lock(struct lock *l)
{
    if (try_lock(l))
        return;
    while (__atomic_exchange_n(&l->word, AWAITED, __ATOMIC_ACQUIRE) != FREE)
        wait_while(&l->word, AWAITED);
}

UNCHECKED_LOCKS void unlock(struct lock *l)
{
    if (__atomic_exchange_n(&l->word, FREE, __ATOMIC_SEQ_CST) == AWAITED)
        SYSTEM(__NR_futex, &l->word, FUTEX_WAKE_PRIVATE, 1);
}

/* In a copy of the process its holder does not exist. */
void forget_lock(struct lock *l)
{
    l->word = FREE;
}

/* Opens the signal mask, does one call, closes the mask.  A signal that arrives before the call has begun
 * to wait must not be missed: its handler finds the program counter between _start and _call and moves it
 * to _abort.  The result is then -EINTR. */
extern char interruptible_start[], interruptible_call[], interruptible_abort[];
static const uint64_t every_signal = RUNTIME_MASK;
const uint64_t *const every_signal_at = &every_signal;

__asm__(".text\n"
        ".globl interruptible_system, interruptible_start, interruptible_call, interruptible_abort\n"
        "interruptible_system:\n"
        "    push %rbx\n"
        "    push %rbp\n"
        "    mov %rdi, %rbx\n"
        "    mov %rsi, %rbp\n"
        "    mov %rdx, %rsi\n" /* rt_sigprocmask(SIG_SETMASK, mask, 0, 8) */
        "    mov $2, %edi\n"
        "    xor %edx, %edx\n"
        "    mov $8, %r10d\n"
        "    mov $14, %eax\n"
        "    syscall\n"
        "interruptible_start:\n"
        "    mov 0(%rbp), %rdi\n"
        "    mov 8(%rbp), %rsi\n"
        "    mov 16(%rbp), %rdx\n"
        "    mov 24(%rbp), %r10\n"
        "    mov 32(%rbp), %r8\n"
        "    mov 40(%rbp), %r9\n"
        "    mov %rbx, %rax\n"
        "interruptible_call:\n"
        "    syscall\n"
        "interruptible_end:\n"
        "    mov %rax, %rbx\n"
        "    mov every_signal_at(%rip), %rsi\n"
        "    mov $2, %edi\n"
        "    xor %edx, %edx\n"
        "    mov $8, %r10d\n"
        "    mov $14, %eax\n"
        "    syscall\n"
        "    mov %rbx, %rax\n"
        "    pop %rbp\n"
        "    pop %rbx\n"
        "    ret\n"
        "interruptible_abort:\n"
        "    mov $-4, %rax\n"
        "    jmp interruptible_end\n");

/* Called by a signal that found the runtime at work. Returns whether signals were open there at all. */
bool in_interruptible_call(struct ucontext *frame)
{
    unsigned long at = frame->uc_mcontext.rip;
    if (at < (unsigned long)interruptible_start || at > (unsigned long)interruptible_abort)
        return false;
    if (at <= (unsigned long)interruptible_call)
        frame->uc_mcontext.rip = (unsigned long)interruptible_abort;
    frame->uc_sigmask = RUNTIME_MASK;
    return true;
}
