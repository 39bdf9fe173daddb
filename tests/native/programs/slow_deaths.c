/* slow_deaths ROUNDS: children with so much memory that there is some time between their last call and their end; tells how
 * many ended without the signal of it. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 24 << 20 };

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 10;
    int lost = 0;
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (int i = 0; i < rounds; i++) {
        siginfo_t info;
        struct timespec now = {0, 0};
        pid_t child = fork();
        if (!child) {
            char *memory = malloc(BYTES);
            memset(memory, i + 1, BYTES);
            _exit(memory[BYTES / 2] != (char)(i + 1));
        }
        while (waitid(P_PID, child, &info, WEXITED | WNOWAIT))
            ;
        sigpending(&pending);
        lost += !sigismember(&pending, SIGCHLD);
        sigtimedwait(&set, NULL, &now);
        if (waitpid(child, NULL, 0) != child)
            printf("child %d is not there\n", i);
    }
    printf("%d lost\n", lost);
    return 0;
}
