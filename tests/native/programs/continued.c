/* Children that went on after a stop: a wait that asks for it hears so once, however often all were moved before it.
 * Argument: a file; what the waits hear is looked at when it is there.  Every line is the same however it is run. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *go;
static volatile sig_atomic_t heard[CLD_CONTINUED + 1];

static void on_child(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    heard[info->si_code]++;
}

static void wait_for_go(void)
{
    while (access(go, F_OK) < 0)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
}

static void expect(const char *what, bool holds)
{
    printf("%s: %s\n", what, holds ? "yes" : "NO");
    fflush(stdout);
}

static pid_t start(bool leads)
{
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGCHLD, SIG_DFL);
        for (;;)
            pause();
    }
    if (leads && setpgid(pid, pid) < 0)
        abort();
    return pid;
}

static void await_signal(int code, int before)
{
    sigset_t open, closed;
    sigemptyset(&closed);
    sigaddset(&closed, SIGCHLD);
    sigprocmask(SIG_BLOCK, &closed, &open);
    while (heard[code] == before)
        sigsuspend(&open);
    sigprocmask(SIG_SETMASK, &open, NULL);
}

/* It has stopped and gone on, and the signals that say so have come. REPORTED: a wait tells of the stop. */
static void stop_and_continue(pid_t pid, bool reported)
{
    siginfo_t info;
    int before = heard[CLD_STOPPED];
    kill(pid, SIGSTOP);
    if (waitid(P_PID, (id_t)pid, &info, WSTOPPED | (reported ? 0 : WNOWAIT)) < 0)
        abort();
    await_signal(CLD_STOPPED, before);
    before = heard[CLD_CONTINUED];
    kill(pid, SIGCONT);
    await_signal(CLD_CONTINUED, before);
}

static bool continued(pid_t whom, pid_t who)
{
    int status = 0;
    return waitpid(whom, &status, WCONTINUED) == who && WIFCONTINUED(status);
}

static bool nothing(pid_t whom)
{
    int status = 0;
    return waitpid(whom, &status, WCONTINUED | WUNTRACED | WNOHANG) == 0;
}

static void *wait_for_any(void *pid)
{
    int status = 0;
    *(pid_t *)pid = waitpid(-1, &status, WCONTINUED);
    return WIFCONTINUED(status) ? pid : NULL;
}

static void two_threads(pid_t one, pid_t other)
{
    pthread_t threads[2];
    pid_t found[2];
    void *right[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, wait_for_any, &found[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], &right[i]);
    expect("each of two threads hears of another one", right[0] && right[1] &&
           ((found[0] == one && found[1] == other) || (found[0] == other && found[1] == one)));
}

/* A child with a child of its own that went on. */
static pid_t start_parent(void)
{
    int told[2];
    char ready;
    if (pipe(told) < 0)
        abort();
    pid_t pid = fork();
    if (pid == 0) {
        pid_t child = start(false);
        stop_and_continue(child, true);
        int before = heard[CLD_CONTINUED];
        if (write(told[1], "r", 1) != 1)
            abort();
        wait_for_go();
        bool right = heard[CLD_CONTINUED] == before && continued(child, child) && nothing(child);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        _exit(right ? 0 : 1);
    }
    if (read(told[0], &ready, 1) != 1)
        abort();
    return pid;
}

static void end(pid_t pid)
{
    int status = 0;
    kill(pid, SIGKILL);
    if (waitpid(pid, &status, WCONTINUED) != pid || !WIFSIGNALED(status))
        expect("its end", false);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    siginfo_t info = {0};
    int status = 0;
    if (argc != 2)
        return 2;
    go = argv[1];
    sigaction(SIGCHLD, &action, NULL);
    pid_t parent = start_parent();
    pid_t waited = start(false), not_waited = start(false), leader = start(true), told = start(false), ended = start(false);
    pid_t never = start(false), one = start(false), other = start(false);
    stop_and_continue(waited, true);
    stop_and_continue(not_waited, false);
    stop_and_continue(leader, true);
    stop_and_continue(told, true);
    stop_and_continue(one, true);
    stop_and_continue(other, false);
    expect("told before", continued(told, told));
    stop_and_continue(ended, true);
    int before = heard[CLD_KILLED];
    kill(ended, SIGKILL);
    await_signal(CLD_KILLED, before);
    int stops = heard[CLD_STOPPED], goings_on = heard[CLD_CONTINUED];
    expect("ready", true);
    wait_for_go();
    expect("no other signals", heard[CLD_STOPPED] == stops && heard[CLD_CONTINUED] == goings_on);
    expect("looked at", waitid(P_PID, (id_t)waited, &info, WCONTINUED | WNOWAIT) == 0 && info.si_pid == waited &&
           info.si_code == CLD_CONTINUED && info.si_status == SIGCONT);
    expect("waited for", continued(waited, waited) && nothing(waited));
    expect("its stop was not waited for", continued(not_waited, not_waited) && nothing(not_waited));
    expect("leader of a group", continued(-leader, leader) && nothing(-leader));
    expect("it was told before", nothing(told));
    expect("it was never stopped", nothing(never));
    expect("it has ended since", waitpid(ended, &status, WCONTINUED) == ended && WIFSIGNALED(status));
    expect("a child's child", waitpid(parent, &status, 0) == parent && status == 0);
    two_threads(one, other);
    stop_and_continue(waited, true);
    expect("once more", continued(waited, waited) && nothing(waited));
    end(waited), end(not_waited), end(leader), end(told), end(never), end(one), end(other);
    expect("nobody is left", wait(&status) < 0 && errno == ECHILD);
    return 0;
}
