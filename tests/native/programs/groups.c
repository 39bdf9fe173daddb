/* Process groups and sessions: who is in which, who hears a signal, whom a wait finds, what is refused. It says nothing
 * that depends on numbers or on time, so it says the same anywhere.  Argument: how long to stay in each state, in ms. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int heard[2], begin[2], pause_ms;
static char own_name;

static void stay(void)
{
    struct timespec left = {pause_ms / 1000, pause_ms % 1000 * 1000000l};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static void on_signal(int number)
{
    char said = own_name;
    (void)number;
    if (write(heard[1], &said, 1) != 1)
        abort();
}

static void result(const char *what, long value)
{
    printf("%s: %s\n", what, value < 0 ? strerrorname_np(errno) : value == 0 ? "0" : "more");
    fflush(stdout);
}

static void expect(const char *what, bool holds)
{
    printf("%s: %s\n", what, holds ? "yes" : "NO");
    fflush(stdout);
}

/* A child that says its name at SIGUSR1 and ends at SIGTERM. It is in GROUP, of its own if 0, put there by itself as well
 * as by its parent; -1: where its parent is. */
static pid_t start(char name, pid_t group)
{
    char ready;
    pid_t pid = fork();
    if (pid == 0) {
        own_name = name;
        signal(SIGUSR1, on_signal);
        if (group >= 0 && setpgid(0, group) < 0)
            abort();
        on_signal(0);
        for (;;)
            pause();
    }
    if (group >= 0 && setpgid(pid, group) < 0)
        result("parent's setpgid", -1);
    if (read(heard[0], &ready, 1) != 1 || ready != name)
        abort();
    return pid;
}

/* Who hears SIGUSR1 sent to GROUP: COUNT names, sorted. */
static void call(const char *what, pid_t group, int count)
{
    char names[8] = {0};
    if (kill(group, SIGUSR1) < 0) {
        result(what, -1);
        return;
    }
    for (int i = 0; i < count; i++)
        if (read(heard[0], &names[i], 1) != 1)
            abort();
    for (int i = 0; i < count; i++)
        for (int k = i + 1; k < count; k++)
            if (names[k] < names[i]) {
                char swap = names[i];
                names[i] = names[k];
                names[k] = swap;
            }
    printf("%s: %s heard\n", what, names);
    fflush(stdout);
}

static void ended(const char *what, pid_t whom, int status, pid_t got)
{
    printf("%s: %s, signal %d, status %d\n", what, got == whom ? "the right one" : got < 0 ? strerrorname_np(errno) : "ANOTHER",
           WIFSIGNALED(status) ? WTERMSIG(status) : 0, WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    fflush(stdout);
}

static void groups(void)
{
    int status = 0;
    pid_t a = start('a', 0), b = start('b', a), c = start('c', -1);
    stay();
    expect("a leads, b is with it, c is here", getpgid(a) == a && getpgid(b) == a && getpgid(c) == getpgrp());
    call("group of a", -a, 2);
    call("c alone", c, 1);
    result("nobody's group", kill(-999999, 0));
    kill(a, SIGTERM);
    ended("waiting for the group", a, status, waitpid(-a, &status, 0));
    stay(); /* a group without its leader */
    pid_t d = start('d', a);
    call("group without its leader", -a, 2);
    expect("nobody has ended", waitpid(-a, &status, WNOHANG) == 0);
    kill(c, SIGKILL);
    siginfo_t info = {0};
    stay(); /* one that has ended in another group */
    expect("nobody of that group", waitpid(-a, &status, WNOHANG) == 0);
    kill(-a, SIGTERM);
    waitid(P_PGID, (id_t)a, &info, WEXITED);
    pid_t first = info.si_pid;
    stay();
    waitid(P_PGID, (id_t)a, &info, WEXITED);
    expect("both have ended", (first == b && info.si_pid == d) || (first == d && info.si_pid == b));
    result("nobody is left there", waitpid(-a, &status, 0));
    result("nobody hears there", kill(-a, 0));
    ended("waiting for the own group", c, 0, waitpid(0, &status, 0));
}

static void stopping(void)
{
    int status = 0;
    pid_t a = start('a', 0), b = start('b', a);
    kill(-a, SIGSTOP);
    int one = waitpid(-a, &status, WUNTRACED) > 0 && WIFSTOPPED(status);
    int two = waitpid(-a, &status, WUNTRACED) > 0 && WIFSTOPPED(status);
    kill(-a, SIGCONT);
    int three = waitpid(-a, &status, WCONTINUED) > 0 && WIFCONTINUED(status);
    int four = waitpid(-a, &status, WCONTINUED) > 0 && WIFCONTINUED(status);
    expect("stopped and continued", one && two && three && four);
    stay();
    call("again", -b, 0);
    call("again", -a, 2);
    result("into a group of its own", setpgid(b, b));
    expect("it leads", getpgid(b) == b && getpgid(a) == a);
    call("the new group", -b, 1);
    stay();
    kill(-a, SIGTERM);
    kill(-b, SIGTERM);
    ended("first group", a, 0, waitpid(-a, &status, 0));
    ended("second group", b, 0, waitpid(-b, &status, 0));
}

static void ended_and_kept(void)
{
    int status = 0;
    siginfo_t info;
    pid_t a = start('a', 0);
    kill(a, SIGTERM);
    waitid(P_PID, (id_t)a, &info, WEXITED | WNOWAIT);
    stay(); /* one that has ended is its group */
    pid_t b = start('b', a);
    expect("joined one that has ended", getpgid(b) == a && getpgid(a) == a);
    call("heard by", -a, 1);
    kill(b, SIGTERM);
    waitid(P_PID, (id_t)b, &info, WEXITED | WNOWAIT);
    stay();
    expect("first", waitpid(-a, &status, 0) > 0);
    expect("second", waitpid(-a, &status, 0) > 0);
    result("none", waitpid(-a, &status, 0));
}

static void say(int to, bool holds)
{
    if (write(to, holds ? "y" : "n", 1) != 1)
        abort();
}

static void sessions(void)
{
    char said[4] = {0};
    int status, told[2];
    if (pipe2(told, O_CLOEXEC) < 0)
        abort();
    pid_t leader = fork();
    if (leader == 0) {
        pid_t own = getpid(), before = getsid(0);
        say(told[1], setsid() == own && getsid(0) == own && getpgrp() == own && before != own && getsid(getppid()) == before);
        say(told[1], setsid() < 0 && errno == EPERM);
        say(told[1], setpgid(0, 0) < 0 && errno == EPERM);
        if (fork() == 0) { /* its session's leader is gone soon */
            pause_ms *= 2;
            while (getppid() == own && kill(own, 0) == 0)
                stay();
            stay();
            say(told[1], getsid(0) == own && getpgrp() == own && kill(-own, 0) == 0);
            _exit(setsid() == getpid() && getpgrp() == getpid() ? 0 : 1);
        }
        char go;
        if (read(begin[0], &go, 1) != 1)
            abort();
        _exit(0);
    }
    for (int i = 0; i < 3; i++)
        expect("session", read(told[0], said, 1) == 1 && *said == 'y');
    result("a leader of a session", setpgid(leader, leader));
    result("into another session", setpgid(0, leader));
    pid_t other = start('o', -1);
    result("child into another session", setpgid(other, leader));
    stay();
    say(begin[1], true);
    ended("its leader", leader, 0, waitpid(leader, &status, 0));
    expect("its orphan", read(told[0], said, 1) == 1 && *said == 'y');
    kill(other, SIGKILL);
    waitpid(other, &status, 0);
    close(told[0]);
    close(told[1]);
}

static void refused(void)
{
    int status, told[2];
    char none;
    if (pipe2(told, O_CLOEXEC) < 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sleep", "sleep", "1000", NULL);
        _exit(127);
    }
    close(told[1]);
    if (read(told[0], &none, 1) != 0) /* it has replaced its program */
        abort();
    close(told[0]);
    stay();
    result("one that has executed", setpgid(child, child));
    result("no such process", setpgid(999999, 0));
    result("not a child", setpgid(getppid(), 0));
    result("a negative group", setpgid(0, -5));
    result("no such group", setpgid(0, 999999));
    result("whose group", getpgid(999999));
    result("whose session", getsid(999999));
    result("which children", waitpid(-999999, &status, 0));
    result("waiting for an odd group", waitpid((pid_t)0x80000000, &status, 0));
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

int main(int argc, char **argv)
{
    pause_ms = argc > 1 ? atoi(argv[1]) : 20;
    if (pipe2(heard, O_CLOEXEC) < 0 || pipe2(begin, O_CLOEXEC) < 0)
        return 1;
    for (int round = 0; round < 2; round++) {
        groups();
        stopping();
        ended_and_kept();
        sessions();
        refused();
    }
    return 0;
}
