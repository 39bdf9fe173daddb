/* Processes as descriptors, in each way that programs use them, with rests in which all are moved. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WITH_FILE = 0x1000, THREADS_ID = 0x00100000 };

static const idtype_t BY_FILE = (idtype_t)3;
static int rest_ms;
static volatile sig_atomic_t heard, beside;

static void rest(void) { usleep((useconds_t)rest_ms * 1000); }
static int file_of(pid_t pid, unsigned flags) { return (int)syscall(SYS_pidfd_open, pid, flags); }
static long result(long value) { return value < 0 ? -errno : value; }
static long send_to(int fd, int number, siginfo_t *info, unsigned flags)
{
    return result(syscall(SYS_pidfd_send_signal, fd, number, info, flags));
}

static void hear(int number, siginfo_t *info, void *context)
{
    (void)context;
    heard = number;
    beside = info->si_code == SI_QUEUE ? info->si_value.sival_int : -1;
}

/* What there is within a time; that one who was waited for has hung up, too, is not told by all kernels. */
static int ready(int fd, int within_ms)
{
    struct pollfd one = {fd, POLLIN | POLLOUT, 0};
    int found = poll(&one, 1, within_ms);
    return found < 0 ? -errno : found * 100 + (one.revents & ~POLLHUP);
}

static pid_t child(int status, int rests)
{
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        while (rests--)
            rest();
        _exit(status);
    }
    return pid;
}

static void print_wait(const char *name, int fd, int options)
{
    siginfo_t info = {0};
    long got = result(waitid(BY_FILE, (id_t)fd, &info, options));
    printf("%s: %ld %d %d\n", name, got, info.si_code, info.si_status);
}

static void refused(void)
{
    char text[8];
    int own = file_of(getpid(), 0), other = open("/dev/null", O_RDWR);
    siginfo_t info = {0};
    printf("open: %ld %ld %ld %ld\n", result(file_of(0, 0)), result(file_of(-1, 0)), result(file_of(3999999, 0)),
           result(file_of(getpid(), 1)));
    printf("file: %ld %ld %d %d\n", result(read(own, text, sizeof text)), result(write(own, text, sizeof text)),
           fcntl(own, F_GETFL) & (O_ACCMODE | O_NONBLOCK), fcntl(own, F_GETFD));
    printf("sent: %ld %ld %ld %ld %ld\n", send_to(own, 0, NULL, 0), send_to(own, 70, NULL, 0), send_to(own, 0, NULL, 8),
           send_to(other, 0, NULL, 0), send_to(99, 0, NULL, 0));
    printf("info: %ld\n", send_to(own, SIGUSR1, &info, 0));
    print_wait("own", own, WEXITED);
    print_wait("another file", other, WEXITED);
    print_wait("none", 99, WEXITED);
    print_wait("negative", -1, WEXITED);
    printf("poll: %d\n", ready(own, 0));
    close(own);
    close(other);
}

/* Polled by its parent, then waited for by it. */
static void ends(int status, int rests, unsigned flags)
{
    pid_t pid = child(status, rests);
    int fd = file_of(pid, flags), set = epoll_create1(EPOLL_CLOEXEC), second;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7}, got = {0};
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    if (rests) {
        printf("runs: %d\n", ready(fd, 0));
        if (flags)
            print_wait("does not wait", fd, WEXITED);
        print_wait("asked", fd, WEXITED | WNOHANG);
    }
    rest();
    printf("poll: %d\n", ready(fd, 20000));
    int found = epoll_wait(set, &got, 1, 20000);
    printf("epoll: %d %d\n", found, got.data.u32);
    print_wait("kept", fd, WEXITED | WNOHANG | WNOWAIT);
    second = file_of(pid, 0);
    rest();
    printf("a second: %d %ld\n", ready(second, 0), send_to(second, 0, NULL, 0));
    print_wait("taken", second, WEXITED | WNOHANG);
    print_wait("no more", fd, WEXITED);
    printf("later: %d %ld %ld\n", ready(fd, 0), send_to(fd, SIGTERM, NULL, 0), result(file_of(pid, 0)));
    close(set);
    close(second);
    close(fd);
}

static void numbers(void)
{
    pid_t pid = child(8, 1);
    int fd = file_of(pid, 0), status = 0;
    printf("ready: %d\n", ready(fd, 20000));
    printf("without waiting: %d", waitpid(pid, &status, WNOHANG) == pid);
    printf(" %d\n", WEXITSTATUS(status));
    close(fd);
}

static void signals(void)
{
    sigset_t set, before;
    struct sigaction action = {.sa_sigaction = hear, .sa_flags = SA_SIGINFO};
    siginfo_t info = {.si_signo = SIGUSR2, .si_code = SI_QUEUE};
    info.si_value.sival_int = 4711;
    info.si_pid = getpid();
    info.si_uid = getuid();
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, &before);
    sigaction(SIGUSR2, &action, NULL);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        while (!heard)
            sigsuspend(&before);
        rest();
        _exit(heard == SIGUSR2 && beside == 4711 ? 21 : 22);
    }
    int fd = file_of(pid, 0);
    rest();
    printf("sent: %ld\n", send_to(fd, SIGUSR2, &info, 0));
    print_wait("heard", fd, WEXITED);
    close(fd);
    pid = child(0, 10000);
    fd = file_of(pid, 0);
    rest();
    printf("killed: %ld", send_to(fd, SIGKILL, NULL, 0));
    printf(" %d\n", ready(fd, 20000));
    print_wait("by", fd, WEXITED);
    close(fd);
    fd = file_of(getpid(), 0);
    heard = beside = 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    printf("own: %ld", send_to(fd, SIGUSR2, &info, 0));
    printf(" %d %d", (int)heard, (int)beside);
    printf(" %ld", send_to(fd, SIGUSR2, NULL, 0));
    printf(" %d\n", (int)beside);
    close(fd);
}

/* The descriptor is made with the child, which does not have it. */
static void born(void)
{
    int fd = -1;
    fflush(stdout);
    long pid = syscall(SYS_clone, WITH_FILE | SIGCHLD, 0, &fd, 0, 0);
    if (!pid) {
        rest();
        _exit(fcntl(fd, F_GETFD) < 0 && errno == EBADF ? 31 : 32);
    }
    printf("born: %d %d\n", fd >= 0, fcntl(fd, F_GETFD));
    rest();
    print_wait("born", fd, WEXITED);
    printf("refused: %ld\n", result(syscall(SYS_clone, WITH_FILE | THREADS_ID | SIGCHLD, 0, &fd, 0, 0)));
    close(fd);
}

/* Watched by one that is not its parent, which got the descriptor from it. */
static void passed(void)
{
    int pair[2];
    char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    pid_t watched = child(5, 2);
    fflush(stdout);
    pid_t watcher = fork();
    if (!watcher) {
        siginfo_t info;
        recvmsg(pair[1], &message, 0);
        int fd;
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
        rest();
        int found = ready(fd, 20000);
        long not_mine = result(waitid(BY_FILE, (id_t)fd, &info, WEXITED));
        _exit(found == 101 && not_mine == -ECHILD ? 41 : 42);
    }
    int fd = file_of(watched, 0), status;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    printf("passed: %ld\n", result(sendmsg(pair[0], &message, 0)));
    close(fd);
    rest();
    waitpid(watcher, &status, 0);
    printf("watcher: %d\n", WEXITSTATUS(status));
    waitpid(watched, &status, 0);
    printf("watched: %d\n", WEXITSTATUS(status));
    close(pair[0]);
    close(pair[1]);
}

/* A child watches its parent, and what a file under /proc says of it. */
static void parents(void)
{
    fflush(stdout);
    pid_t middle = fork();
    if (!middle) {
        int ends[2];
        if (pipe(ends) < 0)
            _exit(1);
        const pid_t own = getpid();
        if (!fork()) {
            int fd = file_of(own, 0);
            char name[64], line[128];
            snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
            FILE *info = fopen(name, "r");
            int told = 0;
            while (info && fgets(line, sizeof line, info))
                if (sscanf(line, "Pid: %d", &told) == 1)
                    break;
            printf("told: %d\n", told == own);
            fflush(stdout);
            (void)!write(ends[1], "", 1);
            printf("parent: %d\n", ready(fd, 20000));
            fflush(stdout);
            _exit(0);
        }
        char byte;
        (void)!read(ends[0], &byte, 1);
        rest();
        _exit(0);
    }
    int fd = file_of(middle, 0);
    waitpid(middle, NULL, 0);
    rest();
    printf("gone: %d\n", ready(fd, 0));
    close(fd);
}

int main(int count, char **arguments)
{
    rest_ms = count > 1 ? atoi(arguments[1]) : 10;
    refused();
    ends(3, 2, 0);
    ends(4, 2, O_NONBLOCK);
    ends(5, 0, 0);
    numbers();
    signals();
    born();
    passed();
    parents();
    rest();
    return 0;
}
