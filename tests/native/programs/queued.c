/* Signals that wait: sent to the process, to one thread, by others, with values, more than one of a kind.  Arguments: how
 * many rounds, how long each step lasts in milliseconds.  Every line that it writes is the same however it is run. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 3, VALUES = 9 };

static int pause_ms;

static void rest(void)
{
    struct timespec t = {pause_ms / 1000, pause_ms % 1000 * 1000000l};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t))
        ;
}

static sigset_t set_of_all(void)
{
    sigset_t set;
    sigemptyset(&set);
    for (int number = SIGRTMIN; number <= SIGRTMIN + 6; number++)
        sigaddset(&set, number);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGALRM);
    return set;
}

static const char *name(int number)
{
    static __thread char text[16];
    if (number >= SIGRTMIN)
        snprintf(text, sizeof text, "RT%d", number - SIGRTMIN);
    else
        snprintf(text, sizeof text, "%s", sigabbrev_np(number));
    return text;
}

/* Takes all that has come; CHILD and OTHER are who else may have sent something. */
static void take_all(const char *who, pid_t child, pid_t other)
{
    sigset_t set = set_of_all(), pending;
    struct timespec now = {0, 0};
    siginfo_t info;
    sigpending(&pending);
    for (int number = 1; number <= SIGRTMAX; number++)
        if (sigismember(&pending, number))
            printf("%s: %s waits\n", who, name(number));
    for (int number; (number = sigtimedwait(&set, &info, &now)) > 0;) {
        const char *from = info.si_pid == getpid() ? "me" : info.si_pid == child ? "child" : info.si_pid == other ? "other" : "?";
        if (info.si_code == SI_QUEUE)
            printf("%s: %s from %s: %d\n", who, name(number), from, info.si_value.sival_int);
        else if (number == SIGCHLD)
            printf("%s: %s from %s: code %d status %d\n", who, name(number), from, info.si_code, info.si_status);
        else if (info.si_code == SI_TIMER)
            printf("%s: %s of a timer: %d\n", who, name(number), info.si_value.sival_int);
        else if (info.si_code == SI_USER || info.si_code == SI_TKILL)
            printf("%s: %s from %s: code %d\n", who, name(number), from, info.si_code);
        else
            printf("%s: %s: code %d\n", who, name(number), info.si_code);
    }
    fflush(stdout);
}

static pthread_barrier_t barrier;

static void *waits_with_its_own(void *number)
{
    char who[16];
    snprintf(who, sizeof who, "thread %ld", (long)number);
    pthread_barrier_wait(&barrier); /* all are there */
    pthread_barrier_wait(&barrier); /* all has been sent */
    for (long turn = 0; turn < THREADS; turn++) {
        if (turn == (long)number)
            take_all(who, 0, 0);
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void to_threads(void)
{
    pthread_t thread[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, waits_with_its_own, (void *)i);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) {
        pthread_kill(thread[i], SIGUSR2);
        if (i)
            pthread_kill(thread[i], SIGRTMIN + i);
        pthread_kill(thread[i], SIGRTMIN + 4);
        pthread_kill(thread[i], SIGRTMIN + 4);
    }
    rest();
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
}

static void to_itself(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 5, .sigev_value.sival_int = 77};
    struct itimerspec soon = {.it_value = {0, 1000000}};
    struct itimerval alarm_soon = {.it_value = {0, 1000}};
    timer_t timer;
    for (int i = 0; i < VALUES; i++)
        sigqueue(getpid(), SIGRTMIN + i % 3, (union sigval){.sival_int = 100 + i});
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGRTMIN + 3);
    kill(getpid(), SIGRTMIN + 3);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &soon, NULL);
    setitimer(ITIMER_REAL, &alarm_soon, NULL);
    pid_t child = fork();
    if (!child)
        _exit(5);
    siginfo_t info;
    waitid(P_PID, child, &info, WEXITED | WNOWAIT);
    for (sigset_t pending; sigpending(&pending), !sigismember(&pending, SIGRTMIN + 5) || !sigismember(&pending, SIGALRM);)
        usleep(1000);
    rest();
    take_all("itself", child, 0);
    printf("status %d\n", waitpid(child, NULL, 0) == child);
    timer_delete(timer);
}

/* A process-directed signal is anyone's: here that of the one thread that waits for it. */
static void *waits_for_one(void *nothing)
{
    sigset_t set;
    siginfo_t info;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 6);
    for (int i = 0; i < 2; i++) {
        int got = sigwaitinfo(&set, &info);
        printf("a thread has %s: %d\n", name(got), info.si_value.sival_int);
        rest();
    }
    return NULL;
}

static void to_anyone(void)
{
    pthread_t thread;
    sigqueue(getpid(), SIGRTMIN + 6, (union sigval){.sival_int = 1});
    rest();
    pthread_create(&thread, NULL, waits_for_one, NULL);
    rest();
    sigqueue(getpid(), SIGRTMIN + 6, (union sigval){.sival_int = 2});
    pthread_join(thread, NULL);
}

/* Between processes: the child, and a second one, which knows the first by its number only. */
static void to_others(void)
{
    int ready[2], go[2];
    char byte;
    pipe(ready);
    pipe(go);
    pid_t parent = getpid(), first = fork();
    if (!first) {
        read(go[0], &byte, 1);
        rest();
        pid_t second = 0;
        read(go[0], &second, sizeof second);
        take_all("first", second, parent);
        _exit(0);
    }
    rest();
    for (int i = 0; i < VALUES; i++)
        if (sigqueue(first, SIGRTMIN + 1, (union sigval){.sival_int = i}))
            printf("sigqueue: %d\n", errno);
    kill(first, SIGUSR1);
    rest();
    pid_t second = fork();
    if (!second) {
        kill(first, SIGUSR2);
        sigqueue(first, SIGRTMIN + 2, (union sigval){.sival_int = 50});
        _exit(6);
    }
    int status;
    siginfo_t info;
    waitid(P_PID, second, &info, WEXITED | WNOWAIT);
    printf("second is %s, status %d\n", info.si_pid == second ? "known" : "unknown", info.si_status);
    write(go[1], "x", 1);
    rest();
    write(go[1], &second, sizeof second);
    printf("first %d\n", waitpid(first, &status, 0) == first ? status : -1);
    rest();
    take_all("parent", first, second);
    printf("second %d\n", waitpid(second, &status, 0) == second ? status : -1);
    printf("nobody %d\n", sigqueue(first, 0, (union sigval){0}) ? errno : 0);
    close(ready[0]), close(ready[1]), close(go[0]), close(go[1]);
}

static volatile pid_t heard_from;
static volatile int heard;

static void on_child(int number, siginfo_t *info, void *context)
{
    heard_from = info->si_pid;
    heard++;
}

static void handled(void)
{
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct timespec while_ms = {0, 120000000};
    sigset_t set, none;
    sigemptyset(&none);
    sigaction(SIGCHLD, &action, NULL);
    sigprocmask(SIG_SETMASK, &none, &set);
    heard = 0;
    pid_t child = fork();
    if (!child) {
        rest();
        _exit(0);
    }
    int status, got = waitpid(child, &status, 0) == child;
    while (!heard)
        usleep(1000);
    rest();
    printf("waited %d, a handler heard %s, %d times\n", got, heard_from == child ? "of it" : "of another", heard);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &set, NULL);
    sigemptyset(&none);
    sigaddset(&none, SIGUSR1);
    printf("nothing came: %d\n", sigtimedwait(&none, NULL, &while_ms) < 0 ? errno : 0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 1;
    sigset_t set = set_of_all();
    pause_ms = argc > 2 ? atoi(argv[2]) : 0;
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < rounds; i++) {
        to_itself();
        fflush(stdout);
        to_threads();
        fflush(stdout);
        to_anyone();
        fflush(stdout);
        to_others();
        fflush(stdout);
        handled();
    }
    return 0;
}
