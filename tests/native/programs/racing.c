/* Threads that map, unmap, open, close, time, signal and fork at once.  What each of them does is its own and has one
 * possible result, whatever the others do meanwhile; they share the tables of the process that does their calls.
 *
 * racing ROUNDS SEED: writes what went wrong, and files whose content follows from the arguments. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGES = 16, PAGE = 4096, SIZE = PAGES * PAGE, MAPPERS = 4, FEW = 3 };

static int rounds;
static unsigned seed;
static atomic_int complaints;

static void complain(const char *what, long a, long b)
{
    if (complaints++ < 20)
        printf("%s: %ld %ld (%s)\n", what, a, b, strerror(errno));
}

#define EXPECT(condition, a, b) ((condition) ? (void)0 : complain(#condition, (long)(a), (long)(b)))

static char letter(long thread, int round, int page)
{
    return (char)('a' + (thread * 7 + round * 3 + page + (long)seed) % 26);
}

/* A file of its own in each round: mapped in several ways, cut, moved, grown, given up. */
static void *map(void *argument)
{
    long me = (long)argument;
    char name[40];
    for (int round = 0; round < rounds; round++) {
        snprintf(name, sizeof name, "mapped.%ld.%d", me, round % 8);
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        EXPECT(fd >= 0 && ftruncate(fd, SIZE) == 0, me, round);
        char *at = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (at == MAP_FAILED) {
            complain("mmap", me, round);
            close(fd);
            continue;
        }
        for (int page = 0; page < PAGES; page++)
            memset(at + page * PAGE, letter(me, round, page), PAGE);
        if (round % 3 == 0)
            EXPECT(msync(at, SIZE, MS_SYNC) == 0, me, round);
        if (round % 4 == 1) { /* a hole in the middle; what is left still belongs to the file */
            EXPECT(munmap(at + 4 * PAGE, 2 * PAGE) == 0, me, round);
            memset(at + 8 * PAGE, '!', PAGE);
            EXPECT(munmap(at, 4 * PAGE) == 0, me, round);
            EXPECT(munmap(at + 6 * PAGE, 10 * PAGE) == 0, me, round);
        } else if (round % 4 == 2) { /* moved, and longer than before */
            char *moved = mremap(at, SIZE, SIZE / 2, 0);
            EXPECT(moved == at && ftruncate(fd, SIZE + PAGE) == 0, me, round);
            EXPECT(pwrite(fd, "behind", 6, SIZE) == 6, me, round);
            moved = mremap(at, SIZE / 2, SIZE + PAGE, MREMAP_MAYMOVE);
            EXPECT(moved != MAP_FAILED && !memcmp(moved + SIZE, "behind", 6), me, round);
            if (moved != MAP_FAILED) {
                moved[SIZE + 6] = letter(me, round, 0);
                EXPECT(moved[SIZE - 1] == letter(me, round, PAGES - 1), me, round);
                EXPECT(munmap(moved, SIZE + PAGE) == 0, me, round);
            }
        } else if (round % 4 == 3) { /* something else takes its place */
            EXPECT(mmap(at, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at, me, round);
            EXPECT(at[0] == 0, me, round);
            memset(at, '?', SIZE);
            EXPECT(munmap(at, SIZE) == 0, me, round);
        } else {
            mprotect(at, PAGE, PROT_NONE);
            EXPECT(munmap(at, SIZE) == 0, me, round);
        }
        close(fd);
    }
    return NULL;
}

/* Private memory: what was written is there, what was given up is zero. */
static void *allocate(void *argument)
{
    long me = (long)argument;
    for (int round = 0; round < rounds * FEW; round++) {
        size_t size = (size_t)(1 + (round * 13 + me) % 32) * PAGE;
        char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED) {
            complain("allocate", me, round);
            continue;
        }
        EXPECT(at[0] == 0 && at[size - 1] == 0, me, round);
        memset(at, letter(me, round, 0), size);
        char *moved = mremap(at, size, size * 2, MREMAP_MAYMOVE);
        EXPECT(moved != MAP_FAILED && moved[size - 1] == letter(me, round, 0) && moved[size] == 0, me, round);
        if (moved != MAP_FAILED)
            munmap(moved, size * 2);
    }
    return NULL;
}

/* Numbers of descriptors that are given up are taken by others: each must read what it opened. */
static void *open_and_close(void *argument)
{
    long me = (long)argument;
    char name[40], content[2 * PAGE], found[2 * PAGE];
    for (int round = 0; round < rounds; round++) {
        snprintf(name, sizeof name, "opened.%ld.%d", me, round % 5);
        memset(content, letter(me, round, 1), sizeof content);
        int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        EXPECT(write(fd, content, sizeof content) == sizeof content, me, round);
        EXPECT(close(fd) == 0, me, round);
        fd = open(name, O_RDONLY);
        int other = round % 2 ? dup(fd) : -1;
        memset(found, 0, sizeof found);
        EXPECT(read(fd, found, PAGE) == PAGE, me, round);
        EXPECT(read(other < 0 ? fd : other, found + PAGE, PAGE) == PAGE, me, round);
        EXPECT(!memcmp(found, content, sizeof content), me, round);
        EXPECT(lseek(fd, 10, SEEK_SET) == 10 && read(fd, found, 10) == 10, me, round);
        EXPECT(pread(fd, found, 20, 0) == 20 && !memcmp(found, content, 20), me, round);
        struct stat status;
        EXPECT(fstat(fd, &status) == 0 && status.st_size == sizeof content, me, round);
        if (other >= 0)
            close(other);
        EXPECT(close(fd) == 0, me, round);
        fd = open("/proc/self/maps", O_RDONLY);
        EXPECT(read(fd, found, sizeof found) > 0, me, round);
        close(fd);
    }
    return NULL;
}

/* One descriptor keeps its number while another file is put under it; who reads sees the one or the other. */
static int changing;

static void *put_under(void *argument)
{
    (void)argument;
    int files[2];
    for (int i = 0; i < 2; i++) {
        char name[40], content[PAGE];
        snprintf(name, sizeof name, "under.%d", i);
        memset(content, 'A' + i, sizeof content);
        files[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        EXPECT(write(files[i], content, sizeof content) == sizeof content, i, 0);
        close(files[i]);
        files[i] = open(name, O_RDONLY);
    }
    for (int round = 0; round < rounds; round++) {
        char found = 0;
        EXPECT(dup2(files[round % 2], changing) == changing, round, 0);
        EXPECT(pread(changing, &found, 1, 100) == 1, round, 0);
        EXPECT(found == 'A' + round % 2, round, found);
    }
    close(files[0]);
    close(files[1]);
    return NULL;
}

static atomic_bool over;

static void *look_at(void *argument)
{
    (void)argument;
    while (!over) {
        char found[2] = {0};
        EXPECT(pread(changing, found, 2, 200) == 2, found[0], found[1]);
        EXPECT(found[0] == found[1] && (found[0] == 'A' || found[0] == 'B'), found[0], found[1]);
    }
    return NULL;
}

/* Timers: each has a number of its own, and the time that was given to it. */
static void *set_timers(void *argument)
{
    long me = (long)argument;
    for (int round = 0; round < rounds; round++) {
        timer_t timers[FEW];
        struct sigevent event = {.sigev_notify = SIGEV_NONE};
        struct itimerspec now, then = {.it_value = {1000 + me * 100, 0}};
        for (int i = 0; i < FEW; i++) {
            EXPECT(timer_create(CLOCK_MONOTONIC, &event, &timers[i]) == 0, me, round);
            then.it_value.tv_sec = 1000 + me * 100 + i * 10;
            EXPECT(timer_settime(timers[i], 0, &then, NULL) == 0, me, round);
        }
        for (int i = 0; i < FEW; i++) {
            EXPECT(timer_gettime(timers[i], &now) == 0, me, round);
            long left = 1000 + me * 100 + i * 10 - now.it_value.tv_sec;
            EXPECT(left >= 0 && left < 10, me, now.it_value.tv_sec);
            EXPECT(timer_delete(timers[i]) == 0, me, round);
        }
    }
    return NULL;
}

/* Signals: handlers come and go while they are sent; none is called that was not set, none is lost for good. */
static atomic_int heard;

static void hear(int number)
{
    (void)number;
    heard++;
}

static void *send_signals(void *argument)
{
    (void)argument;
    for (int round = 0; round < rounds * FEW; round++) {
        int before = heard, number = SIGRTMIN + round % 4;
        struct sigaction action = {.sa_handler = hear, .sa_flags = round % 2 ? SA_RESTART : SA_NODEFER};
        EXPECT(sigaction(number, &action, NULL) == 0, round, 0);
        EXPECT(pthread_kill(pthread_self(), number) == 0, round, 0);
        EXPECT(heard > before, round, before);
        action.sa_handler = SIG_IGN;
        EXPECT(sigaction(number, &action, NULL) == 0, round, 0);
        EXPECT(pthread_kill(pthread_self(), number) == 0, round, 0);
    }
    return NULL;
}

/* Limits: who changes one changes both of its numbers. */
static void *change_limits(void *argument)
{
    struct rlimit limit;
    (void)argument;
    for (int round = 0; round < rounds * FEW; round++) {
        EXPECT(getrlimit(RLIMIT_CORE, &limit) == 0, round, 0);
        EXPECT(limit.rlim_cur <= limit.rlim_max, limit.rlim_cur, limit.rlim_max);
        limit.rlim_cur = (rlim_t)(round % 100);
        EXPECT(setrlimit(RLIMIT_CORE, &limit) == 0, round, 0);
    }
    return NULL;
}

/* Children: each is waited for by its number and says what it was told; some map and write, some end by a signal. */
static void *fork_children(void *argument)
{
    long me = (long)argument;
    for (int round = 0; round < rounds / 4; round++) {
        pid_t child = fork();
        if (child == 0) {
            char name[40];
            snprintf(name, sizeof name, "child.%ld.%d", me, round % 4);
            int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
            char *at = ftruncate(fd, PAGE) ? MAP_FAILED : mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (at == MAP_FAILED)
                _exit(99);
            memset(at, letter(me, round, 2), PAGE);
            if (round % 3 == 2) {
                munmap(at, PAGE);
                kill(getpid(), SIGKILL);
            }
            _exit(round % 50);
        }
        int status = 0;
        EXPECT(child > 0 && waitpid(child, &status, 0) == child, me, round);
        if (round % 3 == 2)
            EXPECT(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, me, status);
        else
            EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == round % 50, me, status);
    }
    return NULL;
}

/* Threads that begin and end all the time, each with an id that it can be signalled by. */
static void *begin_thread(void *argument)
{
    return (void *)((long)argument * 2);
}

static void *begin_threads(void *argument)
{
    (void)argument;
    for (long round = 0; round < rounds; round++) {
        pthread_t thread;
        void *said = NULL;
        int failed = pthread_create(&thread, NULL, begin_thread, (void *)round);
        EXPECT(!failed && !pthread_join(thread, &said) && (long)said == round * 2, round, failed);
    }
    return NULL;
}

int main(int count, char **words)
{
    void *(*const works[])(void *) = {map, map, map, map, allocate, allocate, open_and_close, open_and_close, put_under,
                                      set_timers, set_timers, send_signals, change_limits, fork_children, fork_children,
                                      begin_threads};
    enum { WORKS = sizeof works / sizeof *works };
    pthread_t threads[WORKS], looker;
    rounds = count > 1 ? atoi(words[1]) : 20;
    seed = count > 2 ? (unsigned)atoi(words[2]) : 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    changing = open("/dev/null", O_RDONLY);
    changing = fcntl(changing, F_DUPFD, 100);
    int first = open("first", O_RDWR | O_CREAT | O_TRUNC, 0644);
    char content[PAGE];
    memset(content, 'A', sizeof content);
    EXPECT(write(first, content, sizeof content) == sizeof content, 0, 0);
    close(first);
    first = open("first", O_RDONLY);
    dup2(first, changing);
    for (long i = 0; i < WORKS; i++)
        pthread_create(&threads[i], NULL, works[(i + (long)seed) % WORKS], (void *)((i + (long)seed) % WORKS));
    pthread_create(&looker, NULL, look_at, NULL);
    for (int i = 0; i < WORKS; i++)
        pthread_join(threads[i], NULL);
    over = true;
    pthread_join(looker, NULL);
    printf("%d complaints\n", (int)complaints);
    return complaints != 0;
}
