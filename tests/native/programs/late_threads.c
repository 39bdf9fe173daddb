/* Signals that wait for threads which are younger than a move.  It goes on when the files "begin" and "take" are there, and
 * makes "sent" itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { THREADS = 3 };

static pthread_barrier_t barrier;
static sigset_t set;

static void until_there(const char *name)
{
    while (access(name, F_OK))
        usleep(1000);
}

static void *waits(void *number)
{
    struct timespec now = {0, 0};
    siginfo_t info;
    pthread_barrier_wait(&barrier); /* all are there */
    pthread_barrier_wait(&barrier); /* it is to be taken */
    for (long turn = 0; turn < THREADS; turn++) {
        for (int got; turn == (long)number && (got = sigtimedwait(&set, &info, &now)) > 0;)
            printf("thread %ld has %s\n", turn, got == SIGUSR1 ? "USR1" : "USR2");
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

int main(void)
{
    pthread_t thread[THREADS];
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    until_there("begin");
    for (long i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, waits, (void *)i);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) {
        pthread_kill(thread[i], SIGUSR1);
        if (i)
            pthread_kill(thread[i], SIGUSR2);
    }
    close(open("sent", O_CREAT | O_WRONLY, 0600));
    until_there("take");
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
