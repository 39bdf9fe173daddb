/* The runtime's own system calls.  They are inlined, so every one of them lies in the runtime's text,
 * which is what the filter looks at. */
#ifndef RUNTIME_SYSTEM_H
#define RUNTIME_SYSTEM_H

#include <asm/unistd.h>

static inline long system6(long number, long a, long b, long c, long d, long e, long f)
{
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#define SYSTEM_PICK(a, b, c, d, e, f, g, name, ...) name
#define SYSTEM(...) \
    SYSTEM_PICK(__VA_ARGS__, SYS_6, SYS_5, SYS_4, SYS_3, SYS_2, SYS_1, SYS_0, 0)(__VA_ARGS__)
#define SYS_0(n) system6(n, 0, 0, 0, 0, 0, 0)
#define SYS_1(n, a) system6(n, (long)(a), 0, 0, 0, 0, 0)
#define SYS_2(n, a, b) system6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS_3(n, a, b, c) system6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS_4(n, a, b, c, d) system6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS_5(n, a, b, c, d, e) system6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define SYS_6(n, a, b, c, d, e, f) \
    system6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif
