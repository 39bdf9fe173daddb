/* Record locks between a program's processes, and what one process does with several descriptors of a file.
 *
 * Each answer is printed; with another argument than 0 the program sleeps so many milliseconds between them. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int pause_ms;

static void say(const char *what, long value)
{
    struct timespec left = {pause_ms / 1000, pause_ms % 1000 * 1000000l};
    printf("%s %ld\n", what, value);
    fflush(stdout);
    while (pause_ms && nanosleep(&left, &left) < 0)
        ;
}

static int set(int fd, int command, int type, int whence, long start, long length)
{
    struct flock lock = {.l_type = (short)type, .l_whence = (short)whence, .l_start = start, .l_len = length};
    int result;
    while ((result = fcntl(fd, command, &lock)) < 0 && errno == EINTR)
        ;
    return result < 0 ? errno : 0;
}

static int locks(int fd, int type, long start, long length) { return set(fd, F_SETLK, type, SEEK_SET, start, length); }

/* Who is in the way: 0 nobody, 1 this process's parent, 2 another. */
static int in_the_way(int fd, int type, long start, long length, struct flock *found)
{
    *found = (struct flock){.l_type = (short)type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    if (fcntl(fd, F_GETLK, found) < 0)
        return -errno;
    return found->l_type == F_UNLCK ? 0 : found->l_pid == getppid() ? 1 : 2;
}

/* What a child finds that has FD of its parent. */
static void child_finds(const char *what, int fd, long start, long length)
{
    fflush(stdout);
    pid_t pid = fork();
    int status;
    if (pid == 0) {
        struct flock found;
        int who = in_the_way(fd, F_WRLCK, start, length, &found);
        say(what, who);
        if (who)
            say("from", found.l_start), say("long", found.l_len), say("type", found.l_type);
        int taken = locks(fd, F_WRLCK, start, length);
        say("taken", taken);
        _exit(taken == EAGAIN || taken == EACCES ? 1 : 0);
    }
    waitpid(pid, &status, 0);
    say("child", WEXITSTATUS(status));
}

static void one_process(void)
{
    int one = open("locked", O_RDWR | O_CREAT, 0600), two = open("locked", O_RDWR), reads = open("locked", O_RDONLY);
    int writes = open("locked", O_WRONLY);
    say("first", locks(one, F_WRLCK, 0, 10));
    say("it does not exclude itself", locks(two, F_WRLCK, 5, 10));
    say("shared by itself", locks(reads, F_RDLCK, 12, 2));
    say("no lock to write", locks(reads, F_WRLCK, 0, 1));
    say("no lock to read", locks(writes, F_RDLCK, 0, 1));
    say("wrong", set(one, F_SETLK, 77, SEEK_SET, 0, 1));
    say("wrong place", set(one, F_SETLK, F_WRLCK, SEEK_SET, -5, 1));
    child_finds("all of it", one, 0, 0);
    say("given back by another descriptor", locks(two, F_UNLCK, 0, 8));
    child_finds("the first part", one, 0, 8);
    child_finds("the second part", two, 8, 4);
    child_finds("shared", two, 12, 2);
    lseek(one, 100, SEEK_SET);
    say("from here", set(one, F_SETLK, F_WRLCK, SEEK_CUR, -10, 20));
    child_finds("there", two, 95, 1);
    child_finds("beside", two, 110, 5);
    close(open("locked", O_RDONLY));
    child_finds("any descriptor closed", one, 0, 0);
    say("again", locks(one, F_WRLCK, 0, 0));
    close(open("locked", O_PATH));
    child_finds("one that is a name only", one, 3, 1);
    dup2(one, two);
    child_finds("one replaced", one, 0, 0);
    close(one), close(two), close(reads), close(writes);
}

/* A counter in a file that all have by one descriptor: each adds in turn. */
static void several_processes(void)
{
    enum { CHILDREN = 3, TIMES = 8 };
    int fd = open("counter", O_RDWR | O_CREAT | O_TRUNC, 0600);
    long value = 0;
    if (pwrite(fd, &value, sizeof value, 0) != sizeof value)
        exit(1);
    for (int i = 0; i < CHILDREN; i++)
        if (fork() == 0) {
            for (int k = 0; k < TIMES; k++) {
                struct timespec left = {0, 1000000l + pause_ms * 100000l};
                if (set(fd, F_SETLKW, F_WRLCK, SEEK_SET, 0, 0) || pread(fd, &value, sizeof value, 0) != sizeof value)
                    _exit(1);
                value++;
                while (nanosleep(&left, &left) < 0)
                    ;
                if (pwrite(fd, &value, sizeof value, 0) != sizeof value || locks(fd, F_UNLCK, 0, 0))
                    _exit(1);
            }
            _exit(0);
        }
    for (int status, i = 0; i < CHILDREN; i++)
        wait(&status);
    say("counted", pread(fd, &value, sizeof value, 0) == sizeof value ? value : -1);
    close(fd);
}

/* A lock goes with the process that has it, and stays when that executes something. */
static void ends_and_executes(char *self)
{
    int fd = open("locked", O_RDWR), ends[2], status;
    char byte;
    if (pipe(ends) < 0)
        exit(1);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        locks(fd, F_WRLCK, 20, 5);
        dup2(ends[1], 1);
        execl(self, self, "holds", NULL);
        _exit(9);
    }
    close(ends[1]);
    say("executed", read(ends[0], &byte, 1) == 1);
    struct flock found;
    in_the_way(fd, F_WRLCK, 0, 0, &found);
    say("its lock", found.l_pid == pid && found.l_start == 20 && found.l_len == 5);
    kill(pid, 9);
    waitpid(pid, &status, 0);
    say("free", set(fd, F_SETLKW, F_WRLCK, SEEK_SET, 0, 0));
    close(fd), close(ends[0]);
}

/* Without a name, and where nobody else may open it. */
static void nameless(void)
{
    int fd = open("gone", O_RDWR | O_CREAT, 0600), other = open("gone", O_RDWR);
    unlink("gone");
    say("one", locks(fd, F_WRLCK, 0, 5));
    say("the other", locks(other, F_WRLCK, 3, 5));
    child_finds("nameless", fd, 6, 1);
    say("pipes have none", locks(0, 99, 0, 1));
    close(fd), close(other);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "holds")) {
        if (write(1, "!", 1) == 1)
            for (;;)
                pause();
        return 1;
    }
    pause_ms = argc > 1 ? atoi(argv[1]) : 0;
    one_process();
    several_processes();
    ends_and_executes(argv[0]);
    nameless();
    return 0;
}
