/* A program with many threads becomes another one, again and again: of two threads that execute something at once, one
 * does, and all others are gone.  execs LEFT */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WORKERS = 4, EXECUTERS = 2 };

static char **own;
static pthread_barrier_t together;

static void *work(void *unused)
{
    struct stat status;
    pthread_barrier_wait(&together);
    for (;;) {
        char *at = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        at[4096] = 1;
        munmap(at, 3 * 4096);
        stat("/", &status);
    }
    return unused;
}

static void *execute(void *unused)
{
    char left[20];
    snprintf(left, sizeof left, "%d", atoi(own[1]) - 1);
    char *words[] = {own[0], left, NULL};
    pthread_barrier_wait(&together);
    usleep(2000);
    execv(own[0], words);
    perror("execv");
    exit(1);
    return unused;
}

int main(int count, char **words)
{
    pthread_t thread;
    own = words;
    if (count < 2 || atoi(words[1]) <= 0) {
        printf("over\n");
        return 7;
    }
    pthread_barrier_init(&together, NULL, WORKERS + EXECUTERS);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&thread, NULL, work, NULL);
    for (int i = 0; i < EXECUTERS; i++)
        pthread_create(&thread, NULL, execute, NULL);
    pthread_join(thread, NULL);
    return 1;
}
