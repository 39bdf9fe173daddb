/* Members that are stopped: what waits tell of them, what they do when they go on, what they were sent meanwhile. It says
 * nothing that depends on numbers or on time.  Argument: how long to stay in each state, in ms. */
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

static int heard[2], pause_ms;
static volatile sig_atomic_t news;

static void stay(void)
{
    struct timespec left = {pause_ms / 1000, pause_ms % 1000 * 1000000l};
    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

static void expect(const char *what, bool holds)
{
    printf("%s: %s\n", what, holds ? "yes" : "NO");
    fflush(stdout);
}

static void say(char what)
{
    if (write(heard[1], &what, 1) != 1)
        abort();
}

static void on_child(int number)
{
    (void)number;
    news++;
}

static void on_signal(int number)
{
    say(number == SIGCONT ? 'c' : 'u');
}

static char next(void)
{
    char said = 0;
    while (read(heard[0], &said, 1) < 0 && errno == EINTR)
        ;
    return said;
}

static bool silent(void)
{
    char said;
    int flags = fcntl(heard[0], F_GETFL);
    fcntl(heard[0], F_SETFL, flags | O_NONBLOCK);
    bool none = read(heard[0], &said, 1) < 0 && errno == EAGAIN;
    fcntl(heard[0], F_SETFL, flags);
    return none;
}

static pid_t start(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGCONT, on_signal);
        signal(SIGUSR1, on_signal);
        signal(SIGCHLD, SIG_DFL);
        say('r');
        for (;;)
            pause();
    }
    expect("started", next() == 'r');
    return pid;
}

/* That it has ended or stopped is there to be taken, and is not. */
static void until(pid_t pid, int what)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)pid, &info, what | WNOWAIT) < 0 && errno == EINTR)
        ;
}

static void nothing_happens(pid_t pid)
{
    sig_atomic_t before = news;
    int status;
    stay();
    expect("no news", waitpid(pid, &status, WNOHANG | WUNTRACED | WCONTINUED) == 0 && news == before && silent());
}

static bool stopped(pid_t pid, int number)
{
    int status = 0;
    pid_t got;
    while ((got = waitpid(pid, &status, WUNTRACED)) < 0 && errno == EINTR)
        ;
    return got == pid && WIFSTOPPED(status) && WSTOPSIG(status) == number;
}

static bool continued(pid_t pid)
{
    int status = 0;
    pid_t got;
    while ((got = waitpid(pid, &status, WCONTINUED)) < 0 && errno == EINTR)
        ;
    return got == pid && WIFCONTINUED(status);
}

static bool ended(pid_t pid, int code, int number)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return number ? WIFSIGNALED(status) && WTERMSIG(status) == number : WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static void one_that_is_stopped(void)
{
    pid_t a = start();
    kill(a, SIGSTOP);
    expect("stopped", stopped(a, SIGSTOP));
    nothing_happens(a);
    kill(a, SIGUSR1); /* it is kept until it goes on */
    nothing_happens(a);
    kill(a, SIGCONT);
    char one = next(), two = next();
    expect("both are heard then", (one == 'c' && two == 'u') || (one == 'u' && two == 'c'));
    expect("continued", continued(a));
    nothing_happens(a);
    kill(a, SIGTSTP);
    until(a, WSTOPPED);
    stay(); /* nobody was told yet */
    expect("stopped as by a terminal", stopped(a, SIGTSTP));
    nothing_happens(a);
    kill(a, SIGCONT);
    expect("went on", next() == 'c');
    until(a, WCONTINUED);
    stay();
    expect("continued", continued(a));
    nothing_happens(a);
    kill(a, SIGSTOP);
    expect("stopped", stopped(a, SIGSTOP));
    kill(a, SIGKILL);
    expect("killed", ended(a, 0, SIGKILL));
}

static void one_that_stops_itself(void)
{
    pid_t b = fork();
    if (b == 0) {
        raise(SIGSTOP);
        say('o');
        _exit(7);
    }
    expect("it has stopped itself", stopped(b, SIGSTOP));
    nothing_happens(b);
    kill(b, SIGCONT);
    expect("it went on", next() == 'o' && ended(b, 7, 0));
}

static void parents_and_children(void)
{
    pid_t parent = fork();
    if (parent == 0) {
        pid_t child = fork();
        if (child == 0) {
            raise(SIGSTOP);
            _exit(3);
        }
        bool first = stopped(child, SIGSTOP);
        say(first ? 'y' : 'n');
        raise(SIGSTOP);
        int status;
        say(waitpid(child, &status, WNOHANG | WUNTRACED | WCONTINUED) == 0 ? 'y' : 'n');
        kill(child, SIGCONT);
        _exit(ended(child, 3, 0) ? 4 : 5);
    }
    expect("the child is stopped", next() == 'y');
    expect("and then its parent", stopped(parent, SIGSTOP));
    nothing_happens(parent);
    kill(parent, SIGCONT);
    expect("it knew", next() == 'y');
    expect("both went on", ended(parent, 4, 0));
}

static void blocked_stop(void)
{
    pid_t c = fork();
    if (c == 0) {
        sigset_t set, pending;
        sigemptyset(&set);
        sigaddset(&set, SIGTSTP);
        sigprocmask(SIG_BLOCK, &set, NULL);
        raise(SIGTSTP);
        stay();
        sigpending(&pending);
        say(sigismember(&pending, SIGTSTP) ? 'y' : 'n');
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        say('o');
        _exit(0);
    }
    expect("it waits to stop", next() == 'y');
    expect("it stops", stopped(c, SIGTSTP));
    nothing_happens(c);
    kill(c, SIGCONT);
    expect("and goes on", next() == 'o' && ended(c, 0, 0));
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    pause_ms = argc > 1 ? atoi(argv[1]) : 20;
    if (pipe2(heard, O_CLOEXEC) < 0 || sigaction(SIGCHLD, &action, NULL) < 0)
        return 1;
    setpgid(0, 0);
    for (int round = 0; round < 3; round++) {
        one_that_is_stopped();
        one_that_stops_itself();
        parents_and_children();
        blocked_stop();
    }
    return 0;
}
