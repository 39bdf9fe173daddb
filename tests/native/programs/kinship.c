/* Parents that end: what their children are told, and whose children they become, with rests in which all are moved. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int rest_ms, told[2];
static volatile sig_atomic_t heard;
static volatile pid_t heard_from;

static void rest(void) { usleep((useconds_t)rest_ms * 1000); }
static void say(const char *text) { (void)!write(told[1], text, strlen(text) + 1); }

static void hear(int number, siginfo_t *info, void *context)
{
    (void)context;
    heard = number;
    heard_from = info->si_pid;
}

static void listen_for(int number)
{
    struct sigaction action = {.sa_sigaction = hear, .sa_flags = SA_SIGINFO};
    sigaction(number, &action, NULL);
}

/* Prints what was said until nobody has the other end any more. */
static void print_said(const char *name)
{
    char text[512];
    size_t used = 0;
    ssize_t got;
    close(told[1]);
    while ((got = read(told[0], text + used, sizeof text - used)) > 0)
        used += (size_t)got;
    close(told[0]);
    printf("%s:", name);
    for (size_t at = 0; at < used; at += strlen(text + at) + 1)
        printf(" [%s]", text + at);
    printf("\n");
    fflush(stdout);
}

static void begin(void)
{
    if (pipe(told) < 0)
        exit(9);
    fflush(stdout);
}

static void await_signal(sigset_t *before)
{
    while (!heard)
        sigsuspend(before);
}

static pid_t blocked_fork(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, before);
    return fork();
}

/* A grandchild is told that its parent ends; a great-grandchild inherits nothing of it. */
static void death(int by_signal)
{
    sigset_t before;
    begin();
    pid_t middle = fork();
    if (!middle) {
        const pid_t parent = getpid();
        if (!blocked_fork(&before)) {
            char text[64];
            int number = 0, of_child = 5;
            listen_for(SIGUSR1);
            prctl(PR_SET_PDEATHSIG, SIGUSR1);
            if (!fork()) {
                prctl(PR_GET_PDEATHSIG, &of_child);
                _exit(of_child);
            }
            wait(&of_child);
            say("ready");
            rest();
            await_signal(&before);
            prctl(PR_GET_PDEATHSIG, &number);
            snprintf(text, sizeof text, "%d from %d kept %d inherited %d", (int)heard, heard_from == parent, number, of_child);
            say(text);
            rest();
            say(getppid() == parent ? "has a parent" : "is an orphan");
            _exit(0);
        }
        char ready[6];
        (void)!read(told[0], ready, sizeof ready);
        rest();
        rest();
        if (by_signal)
            raise(SIGKILL);
        _exit(3);
    }
    int status;
    waitpid(middle, &status, 0);
    printf("middle: %x\n", status);
    print_said("death");
}

/* What ends with its parent, whatever it does. */
static void killed(void)
{
    begin();
    pid_t middle = fork();
    if (!middle) {
        if (!fork()) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            say("lives");
            for (;;)
                pause();
        }
        char said[6];
        (void)!read(told[0], said, sizeof said);
        say("goes");
        rest();
        rest();
        _exit(0);
    }
    waitpid(middle, NULL, 0);
    print_said("killed");
}

static void *leave_behind(void *nothing)
{
    sigset_t before;
    (void)nothing;
    if (!blocked_fork(&before)) {
        listen_for(SIGUSR2);
        prctl(PR_SET_PDEATHSIG, SIGUSR2);
        say("ready");
        await_signal(&before);
        say("the thread has ended");
        _exit(0);
    }
    char ready[6];
    (void)!read(told[0], ready, sizeof ready);
    return NULL;
}

/* The parent is a thread; after a move it would be the first one. */
static void thread_death(void)
{
    pthread_t thread;
    begin();
    if (pthread_create(&thread, NULL, leave_behind, NULL))
        exit(8);
    pthread_join(thread, NULL);
    wait(NULL);
    print_said("thread");
}

static void orphan(int number, pid_t grandparent)
{
    if (fork())
        _exit(10 + number); /* the middle one */
    rest();
    while (getppid() != grandparent)
        usleep(1000);
    rest();
    _exit(number);
}

static int by_status(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Orphans become this process's children: they are waited for in each way, and one as what it was when all were moved. */
static void reaps(int in_child)
{
    int is = -1, statuses[8], count = 0, status;
    fflush(stdout);
    if (in_child && fork()) {
        wait(&status);
        printf("reaper: %x\n", status);
        return;
    }
    int set = prctl(PR_SET_CHILD_SUBREAPER, 1), got = prctl(PR_GET_CHILD_SUBREAPER, &is);
    printf("reaper: %d %d %d\n", set, got, is);
    fflush(stdout);
    const pid_t own = getpid();
    for (int i = 1; i <= 4; i++)
        if (!fork())
            orphan(i, own);
    rest();
    while (waitpid(-1, &status, 0) > 0 && count < 8)
        statuses[count++] = WEXITSTATUS(status);
    printf("errno %d\n", errno);
    qsort(statuses, (size_t)count, sizeof *statuses, by_status);
    for (int i = 0; i < count; i++)
        printf(" %d", statuses[i]);
    printf("\n");
    begin();
    if (!fork()) {
        pid_t child = fork();
        if (child) {
            (void)!write(told[1], &child, sizeof child);
            _exit(0);
        }
        rest();
        _exit(77);
    }
    pid_t child = 0;
    (void)!read(told[0], &child, sizeof child);
    wait(NULL); /* the one in the middle, or its child */
    rest();
    rest();
    pid_t other = waitpid(child, &status, 0);
    printf("by number: %d %d\n", other == child || errno == ECHILD, waitpid(child, &status, 0) < 0 ? errno : 0);
    close(told[0]);
    close(told[1]);
    while (wait(NULL) > 0)
        ;
    prctl(PR_SET_CHILD_SUBREAPER, 0);
    prctl(PR_GET_CHILD_SUBREAPER, &is);
    printf("reaper no more: %d\n", is);
    fflush(stdout);
    if (in_child)
        _exit(5);
}

/* A zombie of another's is among the children when all are moved. */
static void late(void)
{
    siginfo_t info = {0};
    begin();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!fork()) {
        if (fork())
            _exit(0);
        (void)!read(told[0], &info, 1);
        _exit(33);
    }
    wait(NULL);
    (void)!write(told[1], "", 1);
    close(told[1]);
    waitid(P_ALL, 0, &info, WEXITED | WNOWAIT);
    rest();
    rest();
    int status = 0;
    const pid_t pid = wait(&status);
    printf("late: %d %d %d\n", pid == info.si_pid, WEXITSTATUS(status), wait(NULL) < 0 ? errno : 0);
    close(told[0]);
    prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* Whose parent is that of who started it; it lives, and then has ended, while all are moved. */
static void sibling(void)
{
    int status;
    begin();
    pid_t middle = fork();
    if (!middle) {
        const pid_t parent = getppid();
        long pid = syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
        if (!pid) {
            rest();
            say(getppid() == parent ? "a sibling" : "none");
            rest();
            _exit(getppid() == parent ? 44 : 45);
        }
        const int found = waitpid((pid_t)pid, NULL, 0) < 0 ? errno : 0;
        (void)!write(told[1], &pid, sizeof(pid_t));
        _exit(found);
    }
    waitpid(middle, &status, 0);
    printf("not a child: %x\n", status);
    pid_t pid = 0, other;
    (void)!read(told[0], &pid, sizeof pid);
    other = waitpid(pid, &status, 0);
    printf("sibling: %d %x %d\n", other == pid, status, wait(NULL) < 0 ? errno : 0);
    print_said("said");
}

int main(int count, char **arguments)
{
    rest_ms = count > 1 ? atoi(arguments[1]) : 10;
    int number = 7;
    printf("refused: %d", prctl(PR_SET_PDEATHSIG, 65) < 0 ? errno : 0);
    printf(" %d", prctl(PR_GET_PDEATHSIG, &number) < 0 ? errno : number);
    prctl(PR_SET_PDEATHSIG, SIGWINCH);
    prctl(PR_GET_PDEATHSIG, &number);
    printf(" own %d\n", number);
    prctl(PR_SET_PDEATHSIG, 0);
    death(0);
    death(1);
    killed();
    if (count > 2)
        thread_death();
    reaps(0);
    reaps(1);
    late();
    sibling();
    return 0;
}
