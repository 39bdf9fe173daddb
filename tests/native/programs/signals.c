/* Handlers, masks, timers, alternate stacks, faults, interrupted calls: prints what happened. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int count;
static volatile double number;

static void counted(int s, siginfo_t *info, void *context)
{
    (void)s, (void)info, (void)context;
    number = ++count * 2.5;
}

static void faulted(int s)
{
    siglongjmp(back, s);
}

static void tick(int on)
{
    struct itimerval every = {{0, on ? 10000 : 0}, {0, on ? 10000 : 0}};
    setitimer(ITIMER_REAL, &every, 0);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = counted, .sa_flags = SA_SIGINFO};
    sigaction(SIGALRM, &action, 0);
    sigaction(SIGUSR1, &action, 0);
    raise(SIGUSR1);
    printf("raised %d %.1f\n", count, number);
    tick(1);
    while (count < 5)
        ;
    int ends[2], unused = pipe(ends);
    char byte;
    errno = 0;
    long got = read(ends[0], &byte, 1);
    printf("read %ld %s\n", got, strerror(errno));
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &old);
    int before = count;
    got = sigsuspend(&old);
    printf("suspend %ld %s %d\n", got, strerror(errno), count > before);
    sigprocmask(SIG_SETMASK, &old, 0);
    tick(0);
    signal(SIGSEGV, faulted);
    for (int i = 0; i < 3; i++)
        if (sigsetjmp(back, 1) == 0)
            *(volatile int *)8 = 1;
        else
            printf("fault %d\n", i);
    stack_t other = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&other, 0);
    action.sa_flags |= SA_ONSTACK;
    sigaction(SIGUSR2, &action, 0);
    raise(SIGUSR2);
    got = write(1, (void *)8, 5);
    printf("write %ld %s\n", got, strerror(errno));
    got = read(ends[0], (void *)8, 0) + unused;
    printf("empty read %ld\n", got);
    fflush(stdout);
    raise(SIGTERM);
    return 0;
}
