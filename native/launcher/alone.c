/* The few functions of a C library that the launcher needs, so that it runs without one.
 *
 * A C library looks at the processor before main: a few dozen cpuid instructions.  In a virtual machine each of them is a
 * trap of ten microseconds and more, which made half a millisecond of every launch.  Nothing here looks at anything.  The
 * declarations are the C library's own; where its library is linked after all (another kind of machine, the sanitizers),
 * this file is left out.
 */
#define _GNU_SOURCE
#include "../guards.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <grp.h>
#include <unistd.h>

int main(int count, char **words);

char **environ UNGUARDED("the launcher has one thread");

/* ---- the way in and the way to the kernel */

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tmov %rsp, %rdi\n\tand $-16, %rsp\n\tcall begin\n");

static long enter(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall" : "+a"(number) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return number;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n\tmov x29, #0\n\tmov x30, #0\n\tmov x0, sp\n\tbl begin\n");

static long enter(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "the way into this machine's kernel is not known: link the C library"
#endif

static int last_error UNGUARDED("the launcher has one thread");

int *__errno_location(void)
{
    return &last_error;
}

static long answered(long result)
{
    if (result < 0 && result > -4096) {
        last_error = (int)-result;
        return -1;
    }
    return result;
}

#define CALL(number, a, b, c, d, e, f) \
    answered(enter(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f)))
#define CALL0(number) CALL(number, 0, 0, 0, 0, 0, 0)
#define CALL1(number, a) CALL(number, a, 0, 0, 0, 0, 0)
#define CALL2(number, a, b) CALL(number, a, b, 0, 0, 0, 0)
#define CALL3(number, a, b, c) CALL(number, a, b, c, 0, 0, 0)
#define CALL4(number, a, b, c, d) CALL(number, a, b, c, d, 0, 0)
#define CALL5(number, a, b, c, d, e) CALL(number, a, b, c, d, e, 0)

void _exit(int status)
{
    for (;;)
        CALL1(SYS_exit_group, status);
}

void begin(long *stack) __attribute__((noreturn, used));

void begin(long *stack)
{
    int count = (int)stack[0];
    char **words = (char **)(stack + 1);
    environ = words + count + 1;
    _exit(main(count, words));
}

long syscall(long number, ...)
{
    va_list rest;
    long words[6];
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        words[i] = va_arg(rest, long);
    va_end(rest);
    return CALL(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

/* ---- files and descriptors */

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    int mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, int) : 0;
    va_end(rest);
    return (int)CALL4(SYS_openat, AT_FDCWD, path, flags, mode);
}

int close(int fd)
{
    return (int)CALL1(SYS_close, fd);
}

ssize_t read(int fd, void *data, size_t size)
{
    return CALL3(SYS_read, fd, data, size);
}

ssize_t write(int fd, const void *data, size_t size)
{
    return CALL3(SYS_write, fd, data, size);
}

int fcntl(int fd, int command, ...)
{
    va_list rest;
    va_start(rest, command);
    long argument = va_arg(rest, long);
    va_end(rest);
    return (int)CALL3(SYS_fcntl, fd, command, argument);
}

int ioctl(int fd, unsigned long request, ...)
{
    va_list rest;
    va_start(rest, request);
    long argument = va_arg(rest, long);
    va_end(rest);
    return (int)CALL3(SYS_ioctl, fd, request, argument);
}

int poll(struct pollfd *waits, nfds_t count, int milliseconds)
{
    struct timespec limit = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    return (int)CALL5(SYS_ppoll, waits, count, milliseconds < 0 ? NULL : &limit, NULL, 0);
}

int pipe2(int ends[2], int flags)
{
    return (int)CALL2(SYS_pipe2, ends, flags);
}

int socket(int family, int type, int protocol)
{
    return (int)CALL3(SYS_socket, family, type, protocol);
}

int access(const char *path, int mode)
{
    return (int)CALL3(SYS_faccessat, AT_FDCWD, path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    return (int)CALL3(SYS_mkdirat, AT_FDCWD, path, mode);
}

int chdir(const char *path)
{
    return (int)CALL1(SYS_chdir, path);
}

int fchdir(int fd)
{
    return (int)CALL1(SYS_fchdir, fd);
}

int chroot(const char *path)
{
    return (int)CALL1(SYS_chroot, path);
}

mode_t umask(mode_t mask)
{
    return (mode_t)CALL1(SYS_umask, mask);
}

int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data)
{
    return (int)CALL5(SYS_mount, source, target, type, flags, data);
}

int umount2(const char *target, int flags)
{
    return (int)CALL2(SYS_umount2, target, flags);
}

/* ---- processes, identity, limits */

pid_t fork(void)
{
    return (pid_t)CALL5(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

int execve(const char *path, char *const words[], char *const variables[])
{
    return (int)CALL3(SYS_execve, path, words, variables);
}

pid_t waitpid(pid_t pid, int *status, int options)
{
    return (pid_t)CALL4(SYS_wait4, pid, status, options, NULL);
}

int kill(pid_t pid, int number)
{
    return (int)CALL2(SYS_kill, pid, number);
}

pid_t getpid(void)
{
    return (pid_t)CALL0(SYS_getpid);
}

pid_t getppid(void)
{
    return (pid_t)CALL0(SYS_getppid);
}

pid_t setsid(void)
{
    return (pid_t)CALL0(SYS_setsid);
}

uid_t geteuid(void)
{
    return (uid_t)CALL0(SYS_geteuid);
}

gid_t getegid(void)
{
    return (gid_t)CALL0(SYS_getegid);
}

int getresuid(uid_t *real, uid_t *effective, uid_t *saved)
{
    return (int)CALL3(SYS_getresuid, real, effective, saved);
}

int setresuid(uid_t real, uid_t effective, uid_t saved)
{
    return (int)CALL3(SYS_setresuid, real, effective, saved);
}

int setresgid(gid_t real, gid_t effective, gid_t saved)
{
    return (int)CALL3(SYS_setresgid, real, effective, saved);
}

int setgroups(size_t count, const gid_t *groups)
{
    return (int)CALL2(SYS_setgroups, count, groups);
}

int unshare(int flags)
{
    return (int)CALL1(SYS_unshare, flags);
}

int setns(int fd, int kind)
{
    return (int)CALL2(SYS_setns, fd, kind);
}

long ptrace(enum __ptrace_request request, ...)
{
    va_list rest;
    va_start(rest, request);
    int pid = va_arg(rest, int);
    void *address = va_arg(rest, void *);
    void *data = va_arg(rest, void *);
    va_end(rest);
    return CALL4(SYS_ptrace, request, pid, address, data);
}

int prctl(int option, ...)
{
    va_list rest;
    long words[4];
    va_start(rest, option);
    for (int i = 0; i < 4; i++)
        words[i] = va_arg(rest, long);
    va_end(rest);
    return (int)CALL5(SYS_prctl, option, words[0], words[1], words[2], words[3]);
}

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
    return (int)CALL4(SYS_prlimit64, 0, resource, limit, NULL);
}

/* The kernel tells 20 less the value, so that no answer is negative. */
int nice(int more)
{
    long now = CALL2(SYS_getpriority, PRIO_PROCESS, 0);
    if (now < 0)
        return -1;
    long wanted = 20 - now + more;
    wanted = wanted < -20 ? -20 : wanted > 19 ? 19 : wanted;
    if (CALL3(SYS_setpriority, PRIO_PROCESS, 0, wanted) < 0) {
        if (errno == EACCES)
            errno = EPERM;
        return -1;
    }
    return (int)wanted;
}

/* ---- signals: the kernel's masks have 64 bits */

enum { MASK_BYTES = 8 };

int sigemptyset(sigset_t *set)
{
    memset(set, 0, sizeof *set);
    return 0;
}

int sigaddset(sigset_t *set, int number)
{
    unsigned long mask;
    memcpy(&mask, set, sizeof mask);
    mask |= 1ul << (number - 1);
    memcpy(set, &mask, sizeof mask);
    return 0;
}

int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return (int)CALL4(SYS_rt_sigprocmask, how, set, old, MASK_BYTES);
}

sighandler_t signal(int number, sighandler_t handler)
{
    const struct {
        sighandler_t handler;
        unsigned long flags;
        void (*restorer)(void);
        unsigned long mask;
    } wanted = {.handler = handler};
    return CALL4(SYS_rt_sigaction, number, &wanted, NULL, MASK_BYTES) < 0 ? SIG_ERR : SIG_DFL;
}
