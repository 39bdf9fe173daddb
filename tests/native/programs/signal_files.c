/* Reads signals by descriptors, in each way that programs do, with rests in which it is moved, and tells what it gets. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static int rest_ms;
static volatile sig_atomic_t caught;

static void rest(void) { usleep((useconds_t)rest_ms * 1000); }
static void catch(int number) { caught = number; }

static sigset_t set_of(int one, int other)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, one);
    if (other)
        sigaddset(&set, other);
    return set;
}

static void take(const char *name, int fd)
{
    struct signalfd_siginfo got[4];
    errno = 0;
    ssize_t size = read(fd, got, sizeof got);
    printf("%s: %zd %d\n", name, size, errno);
    for (ssize_t i = 0; i < size / (ssize_t)sizeof *got; i++) {
        const char *who = got[i].ssi_pid == (unsigned)getpid() ? "self" : got[i].ssi_pid == (unsigned)getppid() ? "parent" : "other";
        printf("  %d %d %s %d %d %d\n", got[i].ssi_signo, got[i].ssi_code, who, got[i].ssi_uid == getuid(), got[i].ssi_status,
               got[i].ssi_signo >= (unsigned)SIGRTMIN ? got[i].ssi_int : 0);
    }
    fflush(stdout);
}

static int ready(int fd, int within_ms)
{
    struct pollfd one = {fd, POLLIN, 0};
    int found = poll(&one, 1, within_ms);
    return found < 0 ? -errno : found * 100 + one.revents;
}

/* A child that sends NUMBER to its parent after a rest. */
static pid_t sender(int number)
{
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        rest();
        sigqueue(getppid(), number, (union sigval){.sival_int = 77});
        _exit(9);
    }
    return pid;
}

static void waits(int fd, int set)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 5}, out = {0};
    int status;
    pid_t pid = sender(SIGUSR1);
    printf("poll: %d\n", ready(fd, 20000));
    take("by poll", fd);
    waitpid(pid, &status, 0);
    pid = sender(SIGRTMIN);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    int found = epoll_wait(set, &out, 1, 20000);
    printf("epoll: %d %d\n", found, out.data.u32);
    take("by epoll", fd);
    waitpid(pid, &status, 0);
    printf("nothing: %d\n", epoll_wait(set, &out, 1, 30));
    pid = sender(SIGRTMIN);
    fcntl(fd, F_SETFL, 0);
    take("waiting", fd);
    waitpid(pid, &status, 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    fd_set in;
    FD_ZERO(&in);
    FD_SET(fd, &in);
    pid = sender(SIGUSR1);
    found = select(fd + 1, &in, NULL, NULL, NULL);
    printf("select: %d %d\n", found, FD_ISSET(fd, &in));
    take("by select", fd);
    waitpid(pid, &status, 0);
}

static void children(void)
{
    sigset_t set = set_of(SIGCHLD, 0), pending;
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        rest();
        _exit(6);
    }
    printf("child: %d\n", ready(fd, 20000));
    struct signalfd_siginfo got;
    printf("told: %zd %d %d %d %d\n", read(fd, &got, sizeof got), 0, 0, 0, 0);
    printf("of it: %d %d %d\n", got.ssi_pid == (unsigned)pid, got.ssi_code, got.ssi_status);
    rest();
    int status = 0;
    pid_t ended = waitpid(-1, &status, WNOHANG);
    printf("waited: %d %x\n", ended == pid, status);
    sigpending(&pending);
    printf("left: %d\n", sigismember(&pending, SIGCHLD));
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    if (!(pid = fork()))
        _exit(0);
    waitpid(pid, &status, 0);
    printf("unblocked: %x %d\n", status, ready(fd, 20));
    close(fd);
}

int main(int count, char **words)
{
    rest_ms = count > 1 ? atoi(words[1]) : 0;
    sigset_t set = set_of(SIGUSR1, SIGRTMIN), other = set_of(SIGTERM, SIGUSR2);
    int events = epoll_create1(0), status;
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    printf("flags: %d %x\n", fcntl(fd, F_GETFD), fcntl(fd, F_GETFL));
    take("nothing", fd);
    printf("not ready: %d\n", ready(fd, 0));
    raise(SIGUSR1);
    for (int i = 0; i < 3; i++)
        sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
    rest();
    printf("ready: %d\n", ready(fd, 0));
    take("four", fd);
    take("no more", fd);
    rest();
    printf("small: %zd", read(fd, &status, sizeof status));
    printf(" %d\n", errno);
    ssize_t put = write(fd, &status, sizeof status);
    printf("written: %zd %d\n", put, errno);
    waits(fd, events);
    children();

    sigprocmask(SIG_BLOCK, &other, NULL);
    int same = signalfd(fd, &other, 0);
    printf("same: %d\n", same == fd);
    raise(SIGUSR1);
    printf("not one of them: %d\n", ready(fd, 20));
    raise(SIGTERM);
    rest();
    printf("one of them: %d\n", ready(fd, 20));
    take("terminated", fd);
    int copy = dup(fd);
    raise(SIGUSR2);
    take("by a copy", copy);
    signal(SIGUSR1, catch);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    printf("caught: %d\n", caught == SIGUSR1);
    errno = 0;
    int wrong = signalfd(events, &set, 0);
    printf("wrong: %d %d\n", wrong, errno);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        printf("to wait for: %d\n", ready(fd, 0));
        fflush(stdout);
        sigprocmask(SIG_UNBLOCK, &other, NULL);
        rest();
        raise(SIGTERM);
        _exit(1);
    }
    waitpid(pid, &status, 0);
    printf("end: %x\n", status);
    return 0;
}
