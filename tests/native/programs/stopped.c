/* Children that the program has stopped, and what there is to hear of them, before and after they were moved.
 * Argument: a file; the program goes on with them when it is there.  Every line is the same however it is run. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NOBODY, COUNTS, COUNTS_IN_THREADS, HANDLES, STOPS_ITSELF, STOPS_BY_TERMINAL, IGNORES_TERMINAL, WAITS, KINDS };

static const char *go;
static volatile long *counters; /* shared by all */
static volatile sig_atomic_t heard[CLD_CONTINUED + 1], handled;

static void on_child(int number, siginfo_t *info, void *context)
{
    (void)number, (void)context;
    heard[info->si_code]++;
}

static void on_signal(int number)
{
    handled = handled * 100 + number;
}

static void expect(const char *what, bool holds)
{
    printf("%s: %s\n", what, holds ? "yes" : "NO");
    fflush(stdout);
}

static void *count(void *at)
{
    for (volatile long *counter = at;; usleep(100))
        ++*counter;
    return NULL;
}

static void live(int kind)
{
    pthread_t thread;
    char one;
    int ends[2];
    volatile long *counter = &counters[kind];
    signal(SIGCHLD, SIG_DFL);
    switch (kind) {
    case COUNTS_IN_THREADS:
        for (int i = 0; i < 3; i++)
            pthread_create(&thread, NULL, count, (void *)counter);
        break;
    case HANDLES:
        signal(SIGTERM, on_signal);
        signal(SIGCONT, on_signal);
        signal(SIGUSR1, on_signal);
        for (;; *counter = handled)
            pause();
    case STOPS_ITSELF:
        raise(SIGSTOP);
        ++*counter;
        kill(getpid(), SIGSTOP);
        ++*counter;
        _exit(7);
    case STOPS_BY_TERMINAL:
        raise(SIGTSTP);
        break;
    case IGNORES_TERMINAL:
        signal(SIGTTOU, SIG_IGN);
        raise(SIGTTOU);
        break;
    case WAITS:
        if (pipe(ends) < 0 || read(ends[0], &one, 1) < 0)
            _exit(1);
    }
    count((void *)counter);
}

/* One that comes while another waits to be taken is lost. */
static void await_stops(int count)
{
    sigset_t open, closed;
    sigemptyset(&closed);
    sigaddset(&closed, SIGCHLD);
    sigprocmask(SIG_BLOCK, &closed, &open);
    while (heard[CLD_STOPPED] < count)
        sigsuspend(&open);
    sigprocmask(SIG_SETMASK, &open, NULL);
}

static pid_t start(int kind)
{
    pid_t pid = fork();
    if (pid == 0) {
        setpgid(0, 0);
        live(kind);
    }
    setpgid(pid, pid);
    return pid;
}

static void moment(void)
{
    nanosleep(&(struct timespec){0, 30000000}, NULL);
}

static bool is_still(int kind)
{
    long before = counters[kind];
    moment();
    return counters[kind] == before;
}

static bool moves(int kind)
{
    for (long before = counters[kind]; counters[kind] == before;)
        moment();
    return true;
}

static bool stopped(pid_t whom, pid_t who, int number)
{
    int status = 0;
    return waitpid(whom, &status, WUNTRACED) == who && WIFSTOPPED(status) && WSTOPSIG(status) == number;
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

static bool ended(pid_t who, int by)
{
    int status = 0;
    return waitpid(who, &status, WUNTRACED) == who && WIFSIGNALED(status) && WTERMSIG(status) == by;
}

static void *stop_soon(void *who)
{
    moment();
    kill(*(pid_t *)who, SIGSTOP);
    return NULL;
}

static bool is_told(pid_t who, int options)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)who, &info, options) == 0 && info.si_pid == who && info.si_code == CLD_STOPPED &&
           info.si_status == SIGSTOP && info.si_uid == getuid();
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART};
    pid_t who[KINDS];
    pthread_t thread;
    if (argc != 2)
        return 2;
    go = argv[1];
    counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sigaction(SIGCHLD, &action, NULL);
    for (int kind = COUNTS; kind < KINDS; kind++) {
        who[kind] = start(kind);
        await_stops((kind >= STOPS_ITSELF) + (kind >= STOPS_BY_TERMINAL));
    }
    moves(COUNTS), moves(COUNTS_IN_THREADS), moves(IGNORES_TERMINAL);
    expect("it stops itself", stopped(who[STOPS_ITSELF], who[STOPS_ITSELF], SIGSTOP));
    expect("as a terminal does", stopped(-who[STOPS_BY_TERMINAL], who[STOPS_BY_TERMINAL], SIGTSTP));
    for (int kind = COUNTS, stops = heard[CLD_STOPPED]; kind <= HANDLES; kind++) {
        kill(-who[kind], SIGSTOP);
        await_stops(++stops);
    }
    kill(who[WAITS], SIGSTOP);
    await_stops(6);
    expect("looked at", is_told(who[COUNTS], WSTOPPED | WNOWAIT));
    expect("a handler does not run", stopped(who[HANDLES], who[HANDLES], SIGSTOP) && !kill(who[HANDLES], SIGUSR1) &&
           !kill(who[HANDLES], SIGTERM) && is_still(HANDLES));
    int stops = heard[CLD_STOPPED];
    expect("ready", stops == 6);
    while (access(go, F_OK) < 0)
        nanosleep(&(struct timespec){0, 5000000}, NULL);
    expect("no other signals", heard[CLD_STOPPED] == stops && !heard[CLD_CONTINUED] && !heard[CLD_EXITED]);
    expect("all stand still", is_still(COUNTS) && is_still(COUNTS_IN_THREADS) && is_still(HANDLES) &&
           is_still(STOPS_ITSELF) && is_still(STOPS_BY_TERMINAL) && moves(IGNORES_TERMINAL));
    expect("still to be told", is_told(who[COUNTS], WSTOPPED | WEXITED) && nothing(who[COUNTS]));
    expect("of threads", stopped(-1, who[COUNTS_IN_THREADS], SIGSTOP) && nothing(who[COUNTS_IN_THREADS]));
    expect("told before", nothing(who[HANDLES]) && nothing(who[STOPS_ITSELF]) && nothing(who[STOPS_BY_TERMINAL]));
    kill(who[COUNTS], SIGSTOP);
    expect("once is enough", nothing(who[COUNTS]));
    kill(-who[COUNTS], SIGCONT);
    expect("it goes on", continued(who[COUNTS], who[COUNTS]) && moves(COUNTS));
    kill(who[COUNTS_IN_THREADS], SIGCONT);
    expect("with its threads", continued(-1, who[COUNTS_IN_THREADS]) && moves(COUNTS_IN_THREADS));
    kill(who[HANDLES], SIGCONT);
    while (counters[HANDLES] < 100000)
        moment();
    expect("each handler runs", counters[HANDLES] / 1000000 == 0 && continued(who[HANDLES], who[HANDLES]));
    kill(who[STOPS_ITSELF], SIGCONT);
    expect("it stops itself again", stopped(who[STOPS_ITSELF], who[STOPS_ITSELF], SIGSTOP) && counters[STOPS_ITSELF] == 1);
    kill(who[STOPS_ITSELF], SIGCONT);
    int status = 0;
    expect("and ends", waitpid(who[STOPS_ITSELF], &status, 0) == who[STOPS_ITSELF] && WEXITSTATUS(status) == 7);
    kill(who[STOPS_BY_TERMINAL], SIGTERM);
    expect("a signal waits", is_still(STOPS_BY_TERMINAL) && nothing(who[STOPS_BY_TERMINAL]));
    kill(who[STOPS_BY_TERMINAL], SIGCONT);
    expect("until it goes on", ended(who[STOPS_BY_TERMINAL], SIGTERM));
    kill(who[WAITS], SIGKILL);
    expect("its end counts for more", ended(who[WAITS], SIGKILL));
    pthread_create(&thread, NULL, stop_soon, &who[COUNTS]);
    expect("waited for in one thread", stopped(who[COUNTS], who[COUNTS], SIGSTOP));
    pthread_join(thread, NULL);
    kill(who[COUNTS], SIGCONT), kill(who[COUNTS], SIGSTOP), kill(who[COUNTS], SIGCONT);
    expect("the last word counts", moves(COUNTS));
    action.sa_flags |= SA_NOCLDSTOP;
    sigaction(SIGCHLD, &action, NULL);
    stops = heard[CLD_STOPPED];
    kill(who[COUNTS_IN_THREADS], SIGSTOP);
    expect("no signal, if none is wanted", stopped(who[COUNTS_IN_THREADS], who[COUNTS_IN_THREADS], SIGSTOP) &&
           heard[CLD_STOPPED] == stops);
    for (int kind = COUNTS; kind < KINDS; kind++)
        kill(who[kind], SIGKILL);
    while (wait(&status) > 0)
        ;
    expect("nobody is left", errno == ECHILD);
    return 0;
}
