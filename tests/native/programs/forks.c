/* Forks while other threads allocate and change handlers; in the end, executes another program beside them. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static void nothing(int s)
{
    (void)s;
}

static void *busy(void *unused)
{
    while (!stop) {
        free(malloc(300000));
        signal(SIGUSR1, nothing);
    }
    return unused;
}

int main(void)
{
    pthread_t threads[3];
    int bad = 0, status;
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, busy, 0);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        if (child == 0) {
            void *memory = malloc(400000);
            signal(SIGUSR1, SIG_IGN);
            _exit(memory ? i : 99);
        }
        bad += waitpid(child, &status, 0) != child || WEXITSTATUS(status) != i;
    }
    printf("bad %d\n", bad);
    fflush(stdout);
    execl("/bin/echo", "echo", "another program", (char *)0);
    return 1;
}
