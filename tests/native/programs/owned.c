/* Locks whose words name their owners: priority-inheriting and robust ones, of threads and of processes.  Argument: how
 * long each step lasts in milliseconds.  Every line that it writes is the same however it is run. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, MEMBERS = 3, STEPS = 40 };

static int pause_ms;
static struct shared {
    pthread_mutex_t inheriting, robust, both;
    pthread_barrier_t barrier;
    volatile long sum;
} *shared;

static void rest(void)
{
    struct timespec t = {pause_ms / 1000, pause_ms % 1000 * 1000000l};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t))
        ;
}

static void make(pthread_mutex_t *mutex, int inherits, int robust, int is_shared)
{
    pthread_mutexattr_t a;
    pthread_mutexattr_init(&a);
    pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutexattr_setprotocol(&a, inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE);
    pthread_mutexattr_setrobust(&a, robust ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED);
    pthread_mutexattr_setpshared(&a, is_shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE);
    printf("made %d\n", pthread_mutex_init(mutex, &a));
}

/* Adds 1 to a sum, so slowly that a second one in here at once would be seen. */
static void add(pthread_mutex_t *mutex, volatile long *sum, int count)
{
    for (int i = 0; i < count; i++) {
        int failed = pthread_mutex_lock(mutex);
        long before = *sum;
        if (i % 4 == 0)
            rest();
        *sum = before + 1;
        failed |= pthread_mutex_unlock(mutex);
        if (failed)
            printf("add: %d\n", failed);
    }
}

static pthread_mutex_t own;
static volatile long own_sum;

static void *adds(void *nothing)
{
    add(&own, &own_sum, STEPS);
    return NULL;
}

static void *takes_and_leaves(void *mutex)
{
    printf("taken %d\n", pthread_mutex_lock(mutex));
    rest();
    return NULL; /* it ends with the lock */
}

static void *tries(void *mutex)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 1000000;
    if (until.tv_nsec >= 1000000000)
        until.tv_sec++, until.tv_nsec -= 1000000000;
    printf("tried %d\n", pthread_mutex_trylock(mutex));
    printf("timed %d\n", pthread_mutex_timedlock(mutex, &until));
    printf("not mine %d\n", pthread_mutex_unlock(mutex));
    return NULL;
}

static void in_thread(void *(*function)(void *), void *argument)
{
    pthread_t thread;
    pthread_create(&thread, NULL, function, argument);
    pthread_join(thread, NULL);
}

static void after_death(const char *what, pthread_mutex_t *mutex)
{
    int got = pthread_mutex_lock(mutex);
    printf("%s: %s", what, got == EOWNERDEAD ? "its owner died" : "wrong");
    if (got == EOWNERDEAD)
        printf(" %d", pthread_mutex_consistent(mutex));
    printf(" %d", pthread_mutex_unlock(mutex));
    printf(" %d", pthread_mutex_lock(mutex));
    printf(" %d\n", pthread_mutex_unlock(mutex));
}

static void threads(void)
{
    pthread_t thread[THREADS];
    make(&own, 1, 0, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, adds, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    printf("sum %ld\n", own_sum);
    printf("lock %d, again %d\n", pthread_mutex_lock(&own), pthread_mutex_lock(&own));
    in_thread(tries, &own);
    printf("unlock %d, again %d\n", pthread_mutex_unlock(&own), pthread_mutex_unlock(&own));
}

static int status_of(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

/* A child that ends, or another program in its place, with two locks; its sibling waits for one of them meanwhile. */
static void death(const char *what, int executes)
{
    pid_t owner = fork();
    if (!owner) {
        pthread_mutex_lock(&shared->robust);
        pthread_mutex_lock(&shared->both);
        pthread_barrier_wait(&shared->barrier);
        rest();
        if (executes)
            execl("/bin/true", "true", (char *)NULL);
        _exit(3);
    }
    pthread_barrier_wait(&shared->barrier);
    after_death(what, &shared->robust);
    after_death(what, &shared->both);
    printf("%s: %d\n", what, status_of(owner));
}

static void members(void)
{
    pthread_barrierattr_t a;
    pid_t child[MEMBERS];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_barrierattr_init(&a);
    pthread_barrierattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &a, 2);
    make(&shared->inheriting, 1, 0, 1);
    make(&shared->robust, 0, 1, 1);
    make(&shared->both, 1, 1, 1);
    fflush(stdout);
    for (int i = 0; i < MEMBERS; i++)
        if (!(child[i] = fork())) {
            add(&shared->inheriting, &shared->sum, STEPS);
            fflush(stdout);
            _exit(0);
        }
    add(&shared->inheriting, &shared->sum, STEPS);
    for (int i = 0; i < MEMBERS; i++)
        printf("member %d\n", status_of(child[i]));
    printf("sum of all %ld\n", shared->sum);
    fflush(stdout);
    death("a process", 0);
    fflush(stdout);
    death("a program", 1);
    in_thread(takes_and_leaves, &shared->robust);
    after_death("a thread", &shared->robust);
    in_thread(takes_and_leaves, &shared->both);
    after_death("a thread", &shared->both);
}

static void words(void)
{
    static uint32_t word;
    printf("not there %ld\n", syscall(SYS_futex, 4096, FUTEX_LOCK_PI, 0, NULL, NULL, 0) == -1 ? (long)errno : 0);
    printf("read only %ld\n", syscall(SYS_futex, "aaaabbbb", FUTEX_UNLOCK_PI, 0, NULL, NULL, 0) == -1 ? (long)errno : 0);
    printf("between %ld\n", syscall(SYS_futex, (char *)&word + 1, FUTEX_LOCK_PI, 0, NULL, NULL, 0) == -1 ? (long)errno : 0);
    printf("free %ld\n", syscall(SYS_futex, &word, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0) == -1 ? (long)errno : 0);
    printf("first %ld", syscall(SYS_futex, &word, FUTEX_TRYLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    printf(" %d", word == (uint32_t)gettid());
    printf(" %ld", syscall(SYS_futex, &word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0));
    printf(" %u\n", word);
}

int main(int argc, char **argv)
{
    pause_ms = argc > 1 ? atoi(argv[1]) : 0;
    words();
    threads();
    members();
    return 0;
}
