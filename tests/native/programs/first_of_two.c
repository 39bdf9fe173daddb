/* Two children die while SIGCHLD is blocked: it tells of the one that died first. The second dies as soon as it has been
 * stopped for a while, as a checkpoint does, or else after a while.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void until_a_gap(void)
{
    const double began_s = now_s();
    for (double before_s = began_s, at_s; (at_s = now_s()) - began_s < 0.3; before_s = at_s)
        if (at_s - before_s > 0.003)
            return;
}

int main(int count, char **words)
{
    const int rounds = count > 1 ? atoi(words[1]) : 1;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int round = 0; round < rounds; round++) {
        int end[2];
        char nothing;
        sigset_t waiting;
        pid_t first = fork();
        if (!first)
            _exit(0);
        do
            sigpending(&waiting);
        while (!sigismember(&waiting, SIGCHLD));
        if (pipe(end) < 0)
            return 2;
        pid_t second = fork();
        if (!second) {
            close(end[0]);
            until_a_gap();
            _exit(0);
        }
        close(end[1]);
        if (read(end[0], &nothing, 1) != 0)
            return 3;
        close(end[0]);
        siginfo_t info;
        sigwaitinfo(&set, &info);
        if (info.si_pid != first)
            printf("round %d: it tells of the %s\n", round, info.si_pid == second ? "second" : "other");
        waitpid(first, NULL, 0);
        waitpid(second, NULL, 0);
        struct timespec none = {0, 0};
        sigtimedwait(&set, &info, &none); /* of the second, which may die after it was waited for */
    }
    puts("over");
    return 0;
}
