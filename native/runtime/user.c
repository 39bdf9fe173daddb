/* Memory of the program's that may be missing: the copy is one instruction, and a fault in it becomes
 * -EFAULT instead of a death. */
#include "runtime.h"

extern char copy_user_instruction[], copy_user_after[], copy_user_failed[];

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
        "    ret\n");

bool fix_fault(struct ucontext *frame)
{
    if (frame->uc_mcontext.rip != (unsigned long)copy_user_instruction)
        return false;
    frame->uc_mcontext.rip = (unsigned long)copy_user_failed;
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

bool is_beyond_memory(const void *from, size_t size)
{
    return (unsigned long)from + size < (unsigned long)from || (unsigned long)from + size > USER_SPACE_END;
}

size_t readable_part(const void *from, size_t size)
{
    size_t done = 0;
    char byte;
    while (done < size && !copy_user(&byte, (const char *)from + done, 1)) {
        size_t page = PAGE - (((unsigned long)from + done) & (PAGE - 1));
        done += page < size - done ? page : size - done;
    }
    return done;
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
