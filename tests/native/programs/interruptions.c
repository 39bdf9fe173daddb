/* Calls that wait, and signals: EINTR where the kernel gives it, another try where it makes one.
 *
 * A second thread sends signals until it hears that the call has ended, so no moment matters.  Without SA_RESTART
 * the call must end with EINTR; with it, the second thread sends a number of signals and then lets the call end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_t main_thread;
static atomic_int done, ready, hits;
static int ends[2], full[2], pair[2], lock_one, lock_two, set, word;
static char buffer[1 << 17];

static void on(int number) { (void)number; hits++; }

static void let_go(const char *name) /* what the call waits for happens */
{
    struct flock unlock = {.l_type = F_UNLCK};
    if (strstr(name, "write"))
        while (read(full[0], buffer, sizeof buffer) > 0)
            if (done)
                break;
    if (!strcmp(name, "open"))
        close(open("fifo", O_WRONLY));
    else if (!strcmp(name, "flock"))
        flock(lock_one, LOCK_UN);
    else if (!strcmp(name, "fcntl"))
        fcntl(lock_one, F_OFD_SETLK, &unlock);
    else if (!strcmp(name, "recv") || !strcmp(name, "recvmsg"))
        write(pair[1], "x", 1);
    else if (!strcmp(name, "futex") || !strcmp(name, "timed futex")) {
        word = 1;
        syscall(SYS_futex, &word, FUTEX_WAKE, 1, 0, 0, 0);
    } else if (!strstr(name, "write"))
        write(ends[1], "x", 1);
}

struct shot {
    const char *name;
    int then_let_go;
};

static void *shoot(void *argument)
{
    struct shot *shot = argument;
    struct timespec moment = {0, 200000};
    while (!ready)
        ;
    for (int i = 0; !done && (!shot->then_let_go || hits < 12); i++) {
        pthread_kill(main_thread, SIGUSR1);
        nanosleep(&moment, 0);
    }
    if (shot->then_let_go)
        let_go(shot->name);
    return 0;
}

static long wait_in(const char *name)
{
    char c[4];
    struct iovec v = {c, 1};
    struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
    struct pollfd p = {ends[0], POLLIN};
    struct epoll_event e;
    struct timespec minute = {60, 0};
    struct timeval minute_too = {60, 0};
    struct flock lock = {.l_type = F_WRLCK};
    fd_set s;
    sigset_t none, some;
    siginfo_t info;
    FD_ZERO(&s);
    FD_SET(ends[0], &s);
    sigemptyset(&none);
    sigemptyset(&some);
    sigaddset(&some, SIGUSR2);
    if (!strcmp(name, "read")) return read(ends[0], c, 1);
    if (!strcmp(name, "readv")) return readv(ends[0], &v, 1);
    if (!strcmp(name, "write")) return write(full[1], buffer, 5);
    if (!strcmp(name, "writev")) return writev(full[1], &(struct iovec){buffer, 5}, 1);
    if (!strcmp(name, "recv")) return recv(pair[0], c, 1, 0);
    if (!strcmp(name, "recvmsg")) return recvmsg(pair[0], &m, 0);
    if (!strcmp(name, "open")) { int fd = open("fifo", O_RDONLY); if (fd >= 0) close(fd); return fd < 0 ? -1 : 0; }
    if (!strcmp(name, "flock")) return flock(lock_two, LOCK_EX);
    if (!strcmp(name, "fcntl")) return fcntl(lock_two, F_OFD_SETLKW, &lock);
    if (!strcmp(name, "poll")) return poll(&p, 1, 60000);
    if (!strcmp(name, "poll without end")) return poll(&p, 1, -1);
    if (!strcmp(name, "ppoll")) return ppoll(&p, 1, &minute, &none);
    if (!strcmp(name, "select")) return select(ends[0] + 1, &s, 0, 0, &minute_too);
    if (!strcmp(name, "pselect")) return pselect(ends[0] + 1, &s, 0, 0, &minute, &none);
    if (!strcmp(name, "epoll_wait")) return epoll_wait(set, &e, 1, 60000);
    if (!strcmp(name, "epoll_pwait")) return epoll_pwait(set, &e, 1, -1, &none);
    if (!strcmp(name, "futex")) return syscall(SYS_futex, &word, FUTEX_WAIT, 0, 0, 0, 0) && word ? 0 : word ? 0 : -1;
    if (!strcmp(name, "timed futex")) return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &minute, 0, 0) && word ? 0 : word ? 0 : -1;
    if (!strcmp(name, "nanosleep")) return nanosleep(&minute, &minute);
    if (!strcmp(name, "clock_nanosleep")) { errno = clock_nanosleep(CLOCK_MONOTONIC, 0, &minute, 0); return errno ? -1 : 0; }
    if (!strcmp(name, "sigsuspend")) return sigsuspend(&none);
    if (!strcmp(name, "pause")) return pause();
    if (!strcmp(name, "sigtimedwait")) return sigtimedwait(&some, &info, &minute);
    abort();
}

static void try(const char *name, int flags)
{
    struct sigaction action = {.sa_handler = on, .sa_flags = flags};
    struct shot shot = {name, flags & SA_RESTART};
    pthread_t thread;
    while (read(ends[0], buffer, 1) > 0 && 0)
        ;
    sigaction(SIGUSR1, &action, 0);
    done = ready = hits = word = 0;
    pthread_create(&thread, 0, shoot, &shot);
    ready = 1;
    errno = 0;
    long result = wait_in(name);
    int error = errno;
    done = 1;
    pthread_join(thread, 0);
    printf("%s%s: %ld %s, %s\n", name, flags ? " with restart" : "", result, result < 0 ? strerrorname_np(error) : "",
           hits ? "signalled" : "not signalled");
    fflush(stdout);
}

static void renew(void)
{
    int *all[] = {&ends[0], &ends[1], &full[0], &full[1], &pair[0], &pair[1], &lock_one, &lock_two, &set};
    struct epoll_event e = {EPOLLIN};
    struct flock lock = {.l_type = F_WRLCK};
    static int again;
    for (unsigned i = 0; again && i < sizeof all / sizeof *all; i++)
        close(*all[i]);
    again = 1;
    pipe(ends);
    write(ends[1], "y", 1); /* taken by try */
    pipe(full);
    fcntl(full[1], F_SETFL, O_NONBLOCK);
    while (write(full[1], buffer, 4096) > 0)
        ;
    fcntl(full[1], F_SETFL, 0);
    fcntl(full[0], F_SETFL, O_NONBLOCK);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    lock_one = open("lock", O_RDWR | O_CREAT, 0600);
    lock_two = open("lock", O_RDWR);
    flock(lock_one, LOCK_EX);
    fcntl(lock_one, F_OFD_SETLK, &lock);
    set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &e);
}

/* A call that has waited to its end leaves nothing behind: the next one from the same place is another one. */
static void one_place(int timeout)
{
    struct pollfd p = {ends[0], POLLIN};
    printf("poll %d: %d\n", timeout, poll(&p, 1, timeout));
    fflush(stdout);
}

int main(void)
{
    static const char *const plain[] = {
        "read", "readv", "write", "writev", "recv", "recvmsg", "open", "flock", "fcntl", "poll", "poll without end",
        "ppoll", "select", "pselect", "epoll_wait", "epoll_pwait", "futex", "timed futex", "nanosleep",
        "clock_nanosleep", "sigsuspend", "pause", "sigtimedwait"};
    static const char *const restarted[] = {"read", "readv", "write", "writev", "recv", "recvmsg", "open", "flock",
                                            "fcntl", "futex"};
    static const char *const never[] = {"poll", "ppoll", "select", "pselect", "epoll_wait", "nanosleep",
                                        "sigtimedwait", "pause"};
    main_thread = pthread_self();
    mkfifo("fifo", 0600);
    for (unsigned i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (strstr(plain[i], "futex"))
            continue; /* what a futex returns after a signal depends on who is first */
        renew();
        try(plain[i], 0);
    }
    for (unsigned i = 0; i < sizeof restarted / sizeof *restarted; i++) {
        renew();
        try(restarted[i], SA_RESTART);
    }
    for (unsigned i = 0; i < sizeof never / sizeof *never; i++) { /* EINTR all the same */
        struct sigaction action = {.sa_handler = on, .sa_flags = SA_RESTART};
        struct shot shot = {never[i], 0};
        pthread_t thread;
        renew();
        read(ends[0], buffer, 1);
        sigaction(SIGUSR1, &action, 0);
        done = ready = hits = 0;
        pthread_create(&thread, 0, shoot, &shot);
        ready = 1;
        long result = wait_in(never[i]);
        int error = errno;
        done = 1;
        pthread_join(thread, 0);
        printf("%s, never restarted: %ld %s\n", never[i], result, result < 0 ? strerrorname_np(error) : "");
        fflush(stdout);
    }
    renew();
    read(ends[0], buffer, 1);
    one_place(0);
    one_place(1);
    write(ends[1], "x", 1);
    one_place(-1);
    read(ends[0], buffer, 1);
    one_place(0);
    return 0;
}
