/* Memory of the program's that may be missing: the copy is one instruction, and so is the exchange of a word; a fault in
 * either becomes -EFAULT instead of a death. */
#include "user.h"

#include "protocol.h"
#include "layout.h"

extern char copy_user_instruction[], copy_user_after[], copy_user_failed[], swap_user_instruction[], swap_user_failed[];

__asm__(".text\n"
        ".globl copy_user, copy_user_instruction, copy_user_after, copy_user_failed\n"
        "copy_user:\n"
        "    mov %rdx, %rcx\n"
        "copy_user_instruction:\n"
        "    rep movsb\n"
        "copy_user_after:\n"
        "    xor %eax, %eax\n"
        "    ret\n"
        "copy_user_failed:\n"
        "    mov $-14, %rax\n"
        "    ret\n"
        ".globl swap_user, swap_user_instruction, swap_user_failed\n"
        "swap_user:\n"
        "    mov (%rsi), %eax\n"
        "swap_user_instruction:\n"
        "    lock cmpxchg %edx, (%rdi)\n"
        "    mov %eax, (%rsi)\n"
        "    setne %al\n"
        "    movzbl %al, %eax\n"
        "    ret\n"
        "swap_user_failed:\n"
        "    mov $-14, %rax\n"
        "    ret\n");

bool fix_fault(struct ucontext *frame)
{
    __u64 *rip = &frame->uc_mcontext.rip;
    bool copies = *rip == (unsigned long)copy_user_instruction;
    if (!copies && *rip != (unsigned long)swap_user_instruction)
        return false;
    *rip = (unsigned long)(copies ? copy_user_failed : swap_user_failed);
    return true;
}

long copy_path(char *to, const char *from)
{
    size_t done = 0;
    while (done < PATH_LIMIT) {
        size_t piece = PAGE - ((unsigned long)(from + done) & (PAGE - 1));
        if (piece > 256)
            piece = 256;
        if (piece > PATH_LIMIT - done)
            piece = PATH_LIMIT - done;
        if (copy_user(to + done, from + done, piece))
            return -EFAULT;
        for (size_t i = done; i < done + piece; i++)
            if (!to[i])
                return (long)i + 1;
        done += piece;
    }
    return -ENAMETOOLONG;
}

long touch_for_reading(const void *from, size_t size)
{
    const char *at = from, *end = at + size;
    char byte;
    if (size == 0)
        return 0;
    if (end < at)
        return -EFAULT;
    for (; at < end; at = (const char *)(page_down((unsigned long)at) + PAGE))
        if (copy_user(&byte, at, 1))
            return -EFAULT;
    return 0;
}
