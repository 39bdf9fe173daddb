/* Is told by signals that descriptors are ready, with rests in which it is moved, and tells what it hears. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int rest_ms;

static void rest(void) { usleep((useconds_t)rest_ms * 1000); }

static void say(const char *what, long result)
{
    printf("%s: %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
    fflush(stdout);
}

/* Waits for the signal; 0: none comes. */
static int hear(int within_ms)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    struct timespec limit = {within_ms / 1000, within_ms % 1000 * 1000000l};
    int got;
    while ((got = sigtimedwait(&set, NULL, &limit)) < 0 && errno == EINTR) {}
    return got < 0 ? 0 : got;
}

/* A child puts something there after a rest. */
static void put(int fd, int where_ms)
{
    pid_t pid = fork();
    if (!pid) {
        rest();
        usleep((useconds_t)where_ms * 1000);
        _exit(write(fd, "some", 4) == 4 ? 0 : 1);
    }
    const int got = hear(20000);
    int status;
    waitpid(pid, &status, 0);
    while (hear(0)) {}
    printf("heard %d, child %d\n", got, status);
    fflush(stdout);
}

static void show(int fd)
{
    struct f_owner_ex owner = {-1, -1};
    printf("flag %d, owner %d %d", !!(fcntl(fd, F_GETFL) & O_ASYNC), fcntl(fd, F_GETOWN) == getpid(), fcntl(fd, F_GETOWN) == -getpgrp());
    printf(", %d", fcntl(fd, F_GETOWN_EX, &owner));
    printf(" %d %d %d\n", owner.type, owner.pid == getpid(), owner.pid == getpgrp());
}

static void through(const char *name, int reads, int writes, int by_request)
{
    char got[16];
    int on = 1, off = 0;
    printf("-- %s\n", name);
    say("off", by_request ? ioctl(reads, FIOASYNC, &off) : fcntl(reads, F_SETFL, fcntl(reads, F_GETFL) & ~O_ASYNC));
    say("on", by_request ? ioctl(reads, FIOASYNC, &on) : fcntl(reads, F_SETFL, fcntl(reads, F_GETFL) | O_ASYNC));
    say("own", fcntl(reads, F_SETOWN, getpid()));
    rest();
    show(reads);
    for (int i = 0; i < 3; i++) {
        put(writes, i);
        say("read", read(reads, got, sizeof got) > 0);
        rest();
    }
    say("group", fcntl(reads, F_SETOWN, -getpgrp()));
    show(reads);
    put(writes, 0);
    struct f_owner_ex owner = {F_OWNER_PID, getpid()};
    say("own", fcntl(reads, F_SETOWN_EX, &owner));
    rest();
    put(writes, 0);
    say("nobody", fcntl(reads, F_SETOWN, 0));
    show(reads);
    say("written", write(writes, "more", 4));
    say("heard", hear(50));
    say("own", fcntl(reads, F_SETOWN, getpid()));
    say("off", by_request ? ioctl(reads, FIOASYNC, &off) : fcntl(reads, F_SETFL, fcntl(reads, F_GETFL) & ~O_ASYNC));
    say("written", write(writes, "more", 4));
    say("heard", hear(50));
    rest();
    show(reads);
}

static void refused(void)
{
    int on = 1, own = getpid(), file = open("file", O_RDWR | O_CREAT, 0600), count = eventfd(0, 0), ends[2], pair[2];
    struct f_owner_ex owner = {7, 1};
    printf("-- refused\n");
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
        exit(1);
    say("file", ioctl(file, FIOASYNC, &on));
    say("counter", ioctl(count, FIOASYNC, &on));
    say("file's flag", fcntl(file, F_SETFL, O_ASYNC));
    say("file's flags", fcntl(file, F_GETFL) & O_ASYNC);
    say("nowhere", ioctl(ends[0], FIOASYNC, (void *)8));
    say("bad", ioctl(99, FIOASYNC, &on));
    say("nobody there", fcntl(ends[0], F_SETOWN, 4000000));
    say("no group there", fcntl(ends[0], F_SETOWN, -4000000));
    say("no kind", fcntl(ends[0], F_SETOWN_EX, &owner));
    say("no address", fcntl(ends[0], F_SETOWN_EX, (void *)8));
    say("no address", fcntl(ends[0], F_GETOWN_EX, (void *)8));
    say("which signal", fcntl(ends[0], F_GETSIG));
    say("that signal", fcntl(ends[0], F_SETSIG, 0));
    say("no signal", fcntl(ends[0], F_SETSIG, 900));
    say("of a pipe", ioctl(ends[0], FIOSETOWN, &own));
    say("of a socket", ioctl(pair[0], FIOSETOWN, &own));
    own = 0;
    say("of a socket", ioctl(pair[0], FIOGETOWN, &own));
    say("it is", own == getpid());
    say("of a socket", ioctl(pair[0], SIOCGPGRP, &own));
    say("lease", fcntl(file, F_GETLEASE));
    close(open("file", O_RDONLY));
}

int main(int argc, char **argv)
{
    int ends[2], pair[2], master, slave;
    sigset_t set;
    rest_ms = argc > 1 ? atoi(argv[1]) : 1;
    sigemptyset(&set);
    sigaddset(&set, SIGIO);
    sigprocmask(SIG_BLOCK, &set, NULL);
    setpgid(0, 0);
    if (pipe(ends) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
        return 1;
    through("pipe", ends[0], ends[1], 0);
    through("socket", pair[0], pair[1], 1);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) || mkfifo("fifo", 0600))
        return 1;
    through("packets", pair[0], pair[1], 0);
    const int both = open("fifo", O_RDWR);
    through("named pipe", both, both, 1);
    if (openpty(&master, &slave, NULL, NULL, NULL))
        return 1;
    through("terminal", master, slave, 1);
    refused();
    return 0;
}
