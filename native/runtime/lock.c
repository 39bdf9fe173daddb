/* Locks between the program's threads while they are inside the runtime, and the one kind of wait that
 * signals may end. */
#include "runtime.h"

enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

void wait_while(volatile uint32_t *word, uint32_t value)
{
    SYSTEM(__NR_futex, word, FUTEX_WAIT_PRIVATE, value, 0);
}

void wake_all(volatile uint32_t *word)
{
    SYSTEM(__NR_futex, word, FUTEX_WAKE_PRIVATE, 0x7fffffff);
}

/* 0 free, 1 taken, 2 taken and somebody waits. */
void lock(struct lock *l)
{
    uint32_t seen = 0;
    if (__atomic_compare_exchange_n(&l->word, &seen, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    while (__atomic_exchange_n(&l->word, 2, __ATOMIC_ACQUIRE) != 0)
        wait_while(&l->word, 2);
}

void unlock(struct lock *l)
{
    if (__atomic_exchange_n(&l->word, 0, __ATOMIC_RELEASE) == 2)
        SYSTEM(__NR_futex, &l->word, FUTEX_WAKE_PRIVATE, 1);
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
