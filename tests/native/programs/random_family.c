/* A random family of processes that checks itself.  Arguments: the seed, how many steps a process takes, how long it rests
 * between them in milliseconds.  What it writes follows from the seed alone: a sum over all that its processes found, or
 * what was wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEEPEST = 3, MOST_CHILDREN = 4, LONGEST = 150000, STATUS_BITS = 0x3f, WRONG = 99 };

static uint64_t seed;
static int pause_ms, steps;
static const char *step = "beginning";
static char *program;

static unsigned below(unsigned limit)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed >> 20) % limit;
}

static void wrong(const char *what, long found, long expected)
{
    char line[200];
    int size = snprintf(line, sizeof line, "WRONG: %s: %s: %ld, not %ld (errno %d)\n", step, what, found, expected, errno);
    if (write(1, line, (size_t)size) != size)
        _exit(WRONG + 1);
    _exit(WRONG);
}

static void check(const char *what, long found, long expected)
{
    if (found != expected)
        wrong(what, found, expected);
}

static void rest(void)
{
    long ms = below((unsigned)pause_ms + 1);
    struct timespec before, after, t = {ms / 1000, ms % 1000 * 1000000l};
    clock_gettime(CLOCK_MONOTONIC, &before);
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t))
        ;
    clock_gettime(CLOCK_MONOTONIC, &after);
    long slept = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    check("the clock went on", slept >= ms, 1);
}

/* A child goes on with numbers of its own, and leaves the parent's as they were to come. */
static pid_t begin(void)
{
    uint64_t own = seed * 0x9e3779b97f4a7c15ull + 1;
    below(2);
    pid_t child = fork();
    if (child < 0)
        wrong("fork", -1, 0);
    if (!child)
        seed = own;
    return child;
}

static int end_of(pid_t child)
{
    int status = -1;
    pid_t got;
    while ((got = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        ;
    check("the one waited for", got, child);
    if (WIFEXITED(status) && WEXITSTATUS(status) >= WRONG)
        _exit(WRONG);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static size_t all(ssize_t (*done)(int, void *, size_t), int fd, uint8_t *bytes, size_t size)
{
    size_t at = 0;
    while (at < size) {
        ssize_t now = done(fd, bytes + at, size - at);
        if (now < 0 && errno == EINTR)
            continue;
        if (now <= 0)
            break;
        at += (size_t)now;
    }
    return at;
}

static ssize_t put(int fd, void *bytes, size_t size)
{
    return write(fd, bytes, size);
}

static unsigned sum_of(const uint8_t *bytes, size_t size)
{
    unsigned sum = 1;
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + bytes[i];
    return sum & STATUS_BITS;
}

/* A chain of children: the first makes bytes, each changes them, the last one's come here. */
static int pipeline(void)
{
    static uint8_t bytes[LONGEST];
    size_t size = below(LONGEST) + 1, piece = below(9000) + 1;
    int links = (int)below(3) + 1, from = -1;
    pid_t child[4];
    unsigned first = below(256);
    for (int i = 0; i <= links; i++) {
        int pair[2];
        check("pipe", below(2) ? pipe(pair) : socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        child[i] = begin();
        if (!child[i]) {
            step = "a link of a pipeline";
            close(pair[0]);
            for (size_t at = 0; at < size; at += piece) {
                size_t now = size - at < piece ? size - at : piece;
                if (i == 0)
                    for (size_t k = 0; k < now; k++)
                        bytes[k] = (uint8_t)(first + at + k);
                else
                    check("bytes that came", (long)all((ssize_t(*)(int, void *, size_t))read, from, bytes, now), (long)now);
                for (size_t k = 0; k < now; k++)
                    bytes[k] += (uint8_t)i;
                if (below(size / piece + 1) < 2)
                    rest();
                check("bytes that went", (long)all(put, pair[1], bytes, now), (long)now);
            }
            _exit(i);
        }
        close(pair[1]);
        if (from >= 0)
            close(from);
        from = pair[0];
    }
    size_t got = 0;
    rest();
    got = all((ssize_t(*)(int, void *, size_t))read, from, bytes, sizeof bytes);
    check("all bytes", (long)got, (long)size);
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != (uint8_t)(first + i + links * (links + 1) / 2))
            wrong("a byte", bytes[i], (uint8_t)(first + i + links * (links + 1) / 2));
    close(from);
    for (int i = links; i >= 0; i--)
        check("a link's end", end_of(child[i]), i);
    return (int)sum_of(bytes, size);
}

/* Children that add to what they share: with an atomic instruction, under a lock, and in a file. */
static int sharing(void)
{
    struct shared {
        pthread_mutex_t lock;
        volatile long locked, atomic;
    } *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t how;
    int count = (int)below(MOST_CHILDREN) + 1, turns = (int)below(40) + 1, file = memfd_create("shared", 0);
    pid_t child[MOST_CHILDREN];
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    if (below(2))
        pthread_mutexattr_setprotocol(&how, PTHREAD_PRIO_INHERIT);
    if (below(2))
        pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->lock, &how);
    for (int i = 0; i < count; i++) {
        child[i] = begin();
        if (child[i])
            continue;
        step = "one that shares";
        for (int k = 0; k < turns; k++) {
            check("lock", pthread_mutex_lock(&shared->lock), 0);
            long before = shared->locked;
            if (k % 16 == 3)
                rest();
            shared->locked = before + 1;
            check("append", write(file, "x", 1), 1);
            check("unlock", pthread_mutex_unlock(&shared->lock), 0);
            __atomic_add_fetch(&shared->atomic, 1, __ATOMIC_SEQ_CST);
        }
        _exit(0);
    }
    rest();
    for (int i = 0; i < count; i++)
        check("one that shared", end_of(child[i]), 0);
    check("under a lock", shared->locked, count * turns);
    check("by an instruction", shared->atomic, count * turns);
    check("in a file", lseek(file, 0, SEEK_END), count * turns);
    check("its position", lseek(file, 0, SEEK_CUR), count * turns);
    close(file);
    munmap(shared, sizeof *shared);
    return count * turns & STATUS_BITS;
}

/* Values by signals from a child, in their order, and more of them than are taken at once. */
static int signals(void)
{
    sigset_t set, old;
    siginfo_t info;
    int count = (int)below(12) + 1, number = SIGRTMIN + (int)below(5), sum = 0;
    sigemptyset(&set);
    sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, &old);
    pid_t parent = getpid(), child = begin();
    if (!child) {
        step = "one that sends signals";
        for (int i = 0; i < count; i++) {
            check("sigqueue", sigqueue(parent, number, (union sigval){.sival_int = i * 7}), 0);
            if (i == count / 2)
                rest();
        }
        _exit(count);
    }
    rest();
    for (int i = 0; i < count; i++) {
        int got;
        while ((got = sigwaitinfo(&set, &info)) < 0 && errno == EINTR)
            ;
        check("a signal", got, number);
        check("its value", info.si_value.sival_int, i * 7);
        check("its sender", info.si_pid, child);
        sum += info.si_value.sival_int;
        if (i == 1)
            rest();
    }
    check("one that sent signals", end_of(child), count);
    sigprocmask(SIG_SETMASK, &old, NULL);
    return sum & STATUS_BITS;
}

/* Children that have ended long before they are waited for, by exits and by signals; some lead a group. */
static int ended(void)
{
    int count = (int)below(MOST_CHILDREN) + 1, kinds[MOST_CHILDREN], sum = 0;
    pid_t child[MOST_CHILDREN];
    static const int deadly[] = {SIGKILL, SIGTERM, SIGUSR1, SIGHUP};
    for (int i = 0; i < count; i++) {
        kinds[i] = (int)below(8);
        child[i] = begin();
        if (!child[i]) {
            if (kinds[i] < 4)
                _exit(kinds[i]);
            setpgid(0, 0);
            for (;;)
                pause();
        }
        if (kinds[i] >= 4)
            setpgid(child[i], child[i]);
    }
    rest();
    for (int i = 0; i < count; i++)
        if (kinds[i] >= 4)
            check("kill", kill(-child[i], deadly[kinds[i] - 4]), 0);
    rest();
    for (int i = count - 1; i >= 0; i--) {
        int expected = kinds[i] < 4 ? kinds[i] : -deadly[kinds[i] - 4];
        check("how it ended", end_of(child[i]), expected);
        sum += expected + 64;
    }
    check("no child is left", waitpid(-1, NULL, WNOHANG), -1);
    return sum & STATUS_BITS;
}

/* A grandchild whose parent has ended says something at last. */
static int orphans(void)
{
    int pair[2];
    pid_t said = 0;
    check("pipe", pipe(pair), 0);
    pid_t child = begin();
    if (!child) {
        pid_t grandchild = begin();
        if (!grandchild) {
            step = "an orphan";
            close(pair[0]);
            rest();
            rest();
            pid_t self = getpid();
            check("its word", write(pair[1], &self, sizeof self), sizeof self);
            _exit(0);
        }
        check("its number", write(pair[1], &grandchild, sizeof grandchild), sizeof grandchild);
        _exit(1);
    }
    close(pair[1]);
    check("the parent between", end_of(child), 1);
    pid_t numbers[3];
    check("what came", (long)all((ssize_t(*)(int, void *, size_t))read, pair[0], (uint8_t *)numbers, sizeof numbers), 2 * sizeof said);
    check("the orphan's number", numbers[1], numbers[0]);
    close(pair[0]);
    return 1;
}

/* Another program: this one again, with a seed of its own, or one of the system's. */
static int executing(int depth)
{
    int pair[2], which = (int)below(3);
    char text[3][24], answer[64] = "";
    check("pipe", pipe(pair), 0);
    pid_t child = begin();
    if (!child) {
        step = "one that executes";
        rest();
        dup2(pair[1], 5);
        close(pair[0]);
        if (which == 0)
            execl("/bin/sh", "sh", "-c", "(exit 7) | cat; echo $((6 * 7)) >&5; exit 9", (char *)NULL);
        if (which == 1)
            execl("/bin/sh", "sh", "-c", "x=$(echo a b c | wc -w); echo $x >&5; kill -TERM $$", (char *)NULL);
        snprintf(text[0], sizeof text[0], "%lu", (unsigned long)(seed >> 1 | 1));
        snprintf(text[1], sizeof text[1], "%d", steps / 2 + 1);
        snprintf(text[2], sizeof text[2], "%d", pause_ms);
        execl(program, program, text[0], text[1], text[2], depth + 1 < DEEPEST ? "2" : "9", (char *)NULL);
        wrong("exec", -1, 0);
    }
    close(pair[1]);
    size_t got = all((ssize_t(*)(int, void *, size_t))read, pair[0], (uint8_t *)answer, sizeof answer - 1);
    close(pair[0]);
    int end = end_of(child);
    if (which < 2) {
        check("what it said", atoi(answer), which ? 3 : 42);
        check("how it ended", end, which ? -SIGTERM : 9);
    }
    return (end + (int)got + 64) & STATUS_BITS;
}

/* Threads of one process that pass a number around. */
static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static volatile int turn, threads, rounds;

static void *takes_turns(void *own)
{
    for (int i = 0; i < rounds; i++) {
        pthread_mutex_lock(&turn_lock);
        while (turn % threads != (int)(long)own)
            pthread_cond_wait(&turned, &turn_lock);
        turn++;
        pthread_cond_broadcast(&turned);
        pthread_mutex_unlock(&turn_lock);
    }
    return NULL;
}

static int in_turns(void)
{
    pthread_t thread[MOST_CHILDREN];
    threads = (int)below(MOST_CHILDREN) + 1;
    rounds = (int)below(60) + 1;
    turn = 0;
    for (long i = 0; i < threads; i++)
        check("a thread", pthread_create(&thread[i], NULL, takes_turns, (void *)i), 0);
    rest();
    for (int i = 0; i < threads; i++)
        check("its end", pthread_join(thread[i], NULL), 0);
    check("turns", turn, threads * rounds);
    return turn & STATUS_BITS;
}

/* Who holds a lock of a file keeps the others out: of the open file, and of the process. */
static int locking(void)
{
    char name[] = "locked.XXXXXX";
    int fd = mkstemp(name), of_file = (int)below(2), pair[2], back[2];
    char byte;
    check("pipe", pipe(pair), 0);
    check("pipe", pipe(back), 0);
    struct flock mine = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 5};
    check("lock", of_file ? flock(fd, LOCK_EX) : fcntl(fd, F_SETLK, &mine), 0);
    pid_t child = begin();
    if (!child) {
        step = "one that is locked out";
        close(pair[1]);
        struct flock theirs = mine;
        if (of_file) { /* it has the same open file, and so the lock */
            check("the same lock", flock(fd, LOCK_EX | LOCK_NB), 0);
            check("word of it", write(back[1], "x", 1), 1);
            _exit(0);
        }
        int own = open(name, O_RDWR);
        check("locked out", fcntl(own, F_SETLK, &theirs), -1);
        check("asked", fcntl(own, F_GETLK, &theirs), 0);
        check("what there is", theirs.l_type, F_WRLCK);
        check("word of it", write(back[1], "x", 1), 1);
        check("until it is over", read(pair[0], &byte, 1), 0);
        check("let in", fcntl(own, F_SETLKW, &mine), 0);
        _exit(0);
    }
    rest();
    close(pair[0]);
    close(back[1]);
    check("the other was there", read(back[0], &byte, 1), 1);
    close(back[0]);
    mine.l_type = F_UNLCK;
    if (!of_file)
        check("unlock", fcntl(fd, F_SETLK, &mine), 0);
    close(pair[1]);
    check("one that was locked out", end_of(child), 0);
    close(fd);
    check("its name", unlink(name), 0);
    return of_file;
}

/* Children that are stopped do nothing until they may go on; a stopped one can be ended. */
static int stopping(void)
{
    int number = below(2) ? SIGSTOP : SIGTSTP, turns = (int)below(4) + 1, ends = (int)below(2), status = 0;
    volatile long *counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = begin();
    if (!child)
        for (setpgid(0, 0);; usleep(100))
            ++*counter;
    for (int i = setpgid(child, child); i < turns; i++) {
        check("one that stopped", kill(-child, number) ? -1 : waitpid(-child, &status, WUNTRACED), child);
        check("by what", WIFSTOPPED(status) ? WSTOPSIG(status) : -1, number);
        long before = *counter;
        rest();
        check("it stands still", *counter, before);
        if (i == turns - 1 && ends)
            break;
        kill(child, SIGCONT);
        check("one that went on", waitpid(child, &status, WCONTINUED) == child && WIFCONTINUED(status), 1);
        while (*counter == before) /* without a number of those that follow from the seed */
            usleep(100);
    }
    check("its end", kill(child, SIGKILL) || end_of(child) != -SIGKILL, 0);
    return turns;
}

static int family(int depth);

static int deeper(int depth)
{
    pid_t child = begin();
    if (!child)
        _exit(family(depth + 1));
    rest();
    int end = end_of(child);
    check("a child's exit", end >= 0, 1);
    return end;
}

static int family(int depth)
{
    static const char *const names[] = {"a pipeline", "sharing", "signals", "the ended", "orphans",
                                        "stopping", "executing", "in turns", "locking", "deeper"};
    int sum = 0;
    for (int i = 0; i < steps; i++) {
        unsigned kind = below(depth < DEEPEST ? 10 : 6);
        int found = 0;
        step = names[kind];
        switch (kind) {
        case 0: found = pipeline(); break;
        case 1: found = sharing(); break;
        case 2: found = signals(); break;
        case 3: found = ended(); break;
        case 4: found = orphans(); break;
        case 5: found = stopping(); break;
        case 6: found = executing(depth); break;
        case 7: found = in_turns(); break;
        case 8: found = locking(); break;
        default: found = deeper(depth); break;
        }
        sum = (sum * 5 + found + (int)kind) & STATUS_BITS;
        rest();
    }
    return sum;
}

int main(int argc, char **argv)
{
    static const int heard[] = {SIGHUP, SIGTERM, SIGUSR1, SIGCHLD};
    if (argc < 4)
        return 2;
    program = argv[0];
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) /* who started this may ignore them, as nohup does */
        signal(heard[i], SIG_DFL);
    seed = strtoull(argv[1], NULL, 10) * 2 + 1;
    for (int i = 0; i < 16; i++)
        below(2);
    steps = atoi(argv[2]);
    pause_ms = atoi(argv[3]);
    int depth = argc > 4 ? atoi(argv[4]) : 0, sum = family(depth);
    if (argc <= 4)
        printf("all was right: %d\n", sum);
    return argc > 4 ? sum : 0;
}
