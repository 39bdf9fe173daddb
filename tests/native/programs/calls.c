/* Calls and their errors: one line per call, the same wherever it runs. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAY(call) (errno = 0, say(#call, (long)(call)))

static void say(const char *what, long result)
{
    printf("%s = %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
}

static char buffer[5000], name[5000];

static void names(void)
{
    memset(name, 'x', 300);
    SAY(open(name, O_RDONLY));
    memset(name, 'x', 4500);
    SAY(open(name, O_RDONLY));
    SAY(open((char *)8, O_RDONLY));
    SAY(symlink("loop", "loop"));
    SAY(open("loop", O_RDONLY));
    SAY(open("loop", O_RDONLY | O_NOFOLLOW));
    SAY(open("none/x", O_RDONLY));
    SAY(mkdir("dir", 0700));
    SAY(mkdir("dir", 0700));
    SAY(rmdir("none"));
    SAY(unlink("dir"));
    SAY(open("dir", O_WRONLY));
    SAY(readlink("loop", buffer, sizeof buffer));
    SAY(readlink("dir", buffer, sizeof buffer));
    SAY(rename("dir", "other"));
    SAY(chdir("other"));
    SAY(chdir(".."));
    SAY(access("other", X_OK));
    SAY(chmod("other", 0755));
    SAY(truncate("none", 5));
    SAY(link("none", "some"));
}

static void files(void)
{
    struct stat st;
    int fd = open("file", O_RDWR | O_CREAT | O_EXCL, 0640);
    SAY(fd >= 0);
    SAY(open("file", O_RDWR | O_CREAT | O_EXCL, 0640));
    SAY(write(fd, "hello world", 11));
    SAY(write(fd, (void *)8, 5));
    SAY(lseek(fd, -1, SEEK_SET));
    SAY(lseek(fd, 3, SEEK_SET));
    SAY(read(fd, buffer, 100));
    SAY(read(fd, buffer, 100));
    SAY(pread(fd, buffer, 5, 6));
    SAY(pread(fd, buffer, 5, -1));
    SAY(pwrite(fd, "W", 1, 6));
    SAY(read(999, buffer, 1));
    SAY(read(-1, buffer, 1));
    SAY(fstat(fd, &st));
    SAY(st.st_size);
    SAY(st.st_mode);
    SAY(fstat(fd, (void *)8));
    SAY(ftruncate(fd, 4));
    SAY(ftruncate(fd, -4));
    SAY(fsync(fd));
    SAY(fallocate(fd, 0, 0, 100));
    SAY(fcntl(fd, F_GETFD));
    SAY(fcntl(fd, F_SETFD, FD_CLOEXEC));
    SAY(fcntl(fd, F_GETFD));
    SAY(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK));
    SAY(fcntl(fd, F_DUPFD, 50));
    SAY(fcntl(fd, 9999));
    SAY(dup2(fd, 60));
    SAY(dup2(999, 60));
    SAY(close(60));
    SAY(close(60));
    SAY(ioctl(fd, 0x5401, buffer));
    SAY(flock(fd, LOCK_EX));
    struct iovec parts[2] = {{buffer, 2}, {buffer + 10, 2}}, bad[2] = {{buffer, 2}, {(void *)8, 2}};
    SAY(lseek(fd, 0, SEEK_SET));
    SAY(readv(fd, parts, 2));
    SAY(readv(fd, parts, -1));
    SAY(writev(fd, bad, 2));
    SAY(writev(fd, (void *)8, 2));
    struct timespec times[2] = {{5, 0}, {6, 0}};
    SAY(utimensat(AT_FDCWD, "file", times, 0));
    SAY(futimens(fd, times));
    SAY(stat("file", &st));
    SAY(st.st_mtime);
    SAY(mmap(0, 4096, PROT_READ, MAP_PRIVATE, 999, 0) == MAP_FAILED);
    SAY(mmap(0, 0, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    SAY(mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 1) == MAP_FAILED);
    char *m = mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    SAY(m[0]);
    SAY(munmap(m, 4096));
    SAY(munmap((void *)1, 4096));
    SAY(unlink("file"));
    SAY(fstat(fd, &st));
    SAY(st.st_nlink);
}

static void pipes(void)
{
    int ends[2];
    SAY(pipe(ends));
    SAY(pipe((int *)8));
    SAY(write(ends[1], "abc", 3));
    struct pollfd p[2] = {{ends[0], POLLIN, 0}, {999, POLLIN, 0}};
    SAY(poll(p, 1, 0));
    SAY(p[0].revents);
    SAY(poll(p, 2, 0));
    SAY(read(ends[0], buffer, 10));
    SAY(poll(p, 1, 5));
    SAY(fcntl(ends[0], F_SETFL, O_NONBLOCK));
    SAY(read(ends[0], buffer, 10));
    SAY(lseek(ends[0], 0, SEEK_SET));
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[1], &set);
    struct timeval none = {0, 0};
    SAY(select(ends[1] + 1, 0, &set, 0, &none));
    int counter = eventfd(3, 0), ep = epoll_create1(0);
    struct epoll_event event = {EPOLLIN, {.u64 = 42}};
    SAY(epoll_ctl(ep, EPOLL_CTL_ADD, counter, &event));
    SAY(epoll_ctl(ep, EPOLL_CTL_ADD, counter, &event));
    SAY(epoll_wait(ep, &event, 1, 0));
    SAY(event.data.u64);
    SAY(read(counter, buffer, 8));
    SAY(epoll_wait(ep, &event, 1, 5));
    SAY(close(ends[1]));
    SAY(read(ends[0], buffer, 10));
    SAY(socket(AF_INET, 0x77, 0) < 0);
    int pair[2];
    SAY(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    SAY(send(pair[0], "xyz", 3, 0));
    SAY(recv(pair[1], buffer, 10, 0));
}

static void many(void)
{
    int opened = 0, status;
    int child = fork();
    if (child == 0)
        _exit(write(1, "child\n", 6));
    SAY(waitpid(child, &status, 0) == child);
    SAY(status);
    SAY(waitpid(-1, &status, 0));
    SAY(waitpid(999999, &status, 0));
    SAY(execl("/no/such/program", "x", (char *)0));
    SAY(execl("/etc/passwd", "x", (char *)0));
    SAY(umask(027));
    SAY(umask(022));
    DIR *dir = opendir(".");
    while (readdir(dir))
        opened++;
    SAY(opened);
    SAY(getcwd(buffer, 1) != 0);
    SAY(kill(999999, 0));
    SAY(kill(getpid(), 0));
    SAY(kill(getpid(), 99));
    SAY(getpid() == getpgrp() || getpgrp() > 0);
}

int main(void)
{
    setvbuf(stdout, 0, _IONBF, 0);
    names();
    files();
    pipes();
    many();
    return 0;
}
