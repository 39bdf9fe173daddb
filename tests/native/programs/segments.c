/* segments REST_MS: System V shared memory, alone and among processes, with rests between; tells what came of each.
 * segments arguments: what each call says to arguments that it should refuse.  segments child ID: adds to what is there. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRIED(call) (errno = 0, told(#call, (long)(call)))
#define PLACE ((char *)0x4f0000000000)

enum { SIZE = 3 * 4096 + 100, WORKERS = 4, ROUNDS = 60 };

static int rest_ms;
static const char *self;

static void rest(void)
{
    usleep(rest_ms * 1000);
}

static long told(const char *what, long found)
{
    printf("%s: %ld %s\n", what, found, found < 0 ? strerrorname_np(errno) : "");
    fflush(stdout);
    return found;
}

static void facts(const char *when, int segment)
{
    struct shmid_ds told_of;
    if (shmctl(segment, IPC_STAT, &told_of) < 0)
        printf("%s: %s\n", when, strerrorname_np(errno));
    else
        printf("%s: %zu bytes, %lu attached, made by me %d, last by me %d, mode %o, times %d %d\n", when, told_of.shm_segsz,
               told_of.shm_nattch, told_of.shm_cpid == getpid(), told_of.shm_lpid == getpid(), told_of.shm_perm.mode,
               told_of.shm_atime >= told_of.shm_ctime, told_of.shm_dtime >= told_of.shm_ctime);
    fflush(stdout);
}

static void alone(void)
{
    const int segment = shmget(IPC_PRIVATE, SIZE, 0600);
    facts("made", segment);
    char *at = shmat(segment, NULL, 0), *other = shmat(segment, NULL, 0);
    facts("attached", segment);
    strcpy(at + 5000, "first");
    printf("other: %s, zero %d\n", other + 5000, other[SIZE - 1]);
    rest();
    strcpy(other + 5000, "second");
    printf("one: %s\n", at + 5000);
    TRIED(shmdt(at));
    TRIED(shmdt(at));
    TRIED(shmdt(other + 4096));
    printf("still: %s\n", other + 5000);
    TRIED(shmdt(other));
    facts("detached", segment);
    rest(); /* nobody has it */
    const char *read_only = shmat(segment, NULL, SHM_RDONLY);
    printf("again: %s\n", read_only + 5000);
    printf("placed: %d\n", shmat(segment, PLACE + 100, SHM_RND) == PLACE);
    printf("taken: %d\n", shmat(segment, PLACE + 4096, 0) == (void *)-1 && errno == EINVAL);
    printf("over it: %d\n", shmat(segment, PLACE + 4096, SHM_REMAP) == PLACE + 4096);
    printf("there: %s\n", PLACE + 4096 + 5000);
    rest();
    TRIED(munmap(PLACE + 2 * 4096, 4096));
    TRIED(shmdt(PLACE));
    TRIED(shmdt(PLACE + 4096));
    facts("before its end", segment);
    TRIED(shmctl(segment, IPC_RMID, NULL));
    facts("removed", segment);
    rest();
    facts("removed and moved", segment);
    char *late = shmat(segment, NULL, 0);
    printf("late: %s\n", late + 5000);
    TRIED(shmdt(late));
    TRIED(shmdt(read_only));
    facts("gone", segment);
    TRIED(shmat(segment, NULL, 0));
}

/* Children have what their parent had attached, also those that execute, until then. */
static void family(void)
{
    const key_t key = ftok(".", 's');
    const int segment = shmget(key, SIZE, IPC_CREAT | IPC_EXCL | 0600), set = semget(IPC_PRIVATE, 1, 0600);
    char number[20];
    long *at = shmat(segment, NULL, 0);
    int status;
    sprintf(number, "%d", segment);
    semctl(set, 0, SETVAL, 1);
    printf("found: %d\n", shmget(key, 0, 0) == segment);
    TRIED(shmget(key, SIZE, IPC_CREAT | IPC_EXCL | 0600));
    TRIED(shmget(key, SIZE + 1, 0600));
    fflush(stdout);
    for (int i = 0; i < WORKERS; i++)
        if (!fork()) {
            for (int round = 0; round < ROUNDS; round++) {
                semop(set, &(struct sembuf){0, -1, SEM_UNDO}, 1);
                at[i]++;
                at[600]++;
                semop(set, &(struct sembuf){0, 1, SEM_UNDO}, 1);
                if (round % 30 == i)
                    rest();
            }
            if (i % 2)
                execl(self, self, "child", number, NULL);
            _exit(shmdt(at) < 0);
        }
    for (int i = 0; i < WORKERS; i++) {
        wait(&status);
        printf("ended: %d\n", status);
    }
    rest();
    printf("%ld %ld %ld %ld, %ld, by those that executed %ld\n", at[0], at[1], at[2], at[3], at[600], at[700]);
    facts("after them", segment);
    TRIED(shmctl(segment, IPC_RMID, NULL));
    TRIED(shmget(key, 0, 0));
    if (!fork()) {
        at[0] = 77;
        _exit(0);
    }
    wait(NULL);
    printf("from a child: %ld\n", at[0]);
    TRIED(shmdt(at));
    facts("end", segment);
    TRIED(semctl(set, 0, IPC_RMID));
}

struct common {
    pthread_mutex_t lock;
    pthread_cond_t turned;
    int turn;
};

/* A lock in it is one for all. */
static void turns(void)
{
    const int segment = shmget(IPC_PRIVATE, sizeof(struct common), 0600);
    struct common *at = shmat(segment, NULL, 0);
    pthread_mutexattr_t shared;
    pthread_condattr_t too;
    pthread_mutexattr_init(&shared);
    pthread_condattr_init(&too);
    pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setpshared(&too, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(&at->lock, &shared);
    pthread_cond_init(&at->turned, &too);
    TRIED(shmctl(segment, IPC_RMID, NULL));
    pid_t child = fork();
    for (int round = 0; round < 20; round++) {
        pthread_mutex_lock(&at->lock);
        while (at->turn % 2 != !child)
            pthread_cond_wait(&at->turned, &at->lock);
        at->turn++;
        if (at->turn % 10 == 0)
            rest();
        pthread_cond_broadcast(&at->turned);
        pthread_mutex_unlock(&at->lock);
    }
    if (!child)
        _exit(0);
    wait(NULL);
    printf("turns: %d\n", at->turn);
    TRIED(shmdt(at));
}

static void arguments(void)
{
    const long numbers[] = {-1, 0, LONG_MIN, LONG_MAX};
    char *const places[] = {(char *)1, (char *)5000, (char *)0xffffffffffff0000};
    const int segment = shmget(IPC_PRIVATE, SIZE, 0600);
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const long n = numbers[i];
        printf("number %ld\n", n);
        TRIED(shmget(IPC_PRIVATE, (size_t)n, 0600) < 0 ? -1 : 0);
        TRIED(shmat((int)n | 1 << 30, NULL, 0));
        TRIED(shmctl((int)n | 1 << 30, IPC_STAT, places[0]));
        TRIED(shmctl(segment, (int)n | 1 << 21, NULL));
    }
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        printf("place %u\n", i);
        TRIED(shmdt(places[i]));
        if (i < 2)
            TRIED(shmat(segment, places[i], 0));
        TRIED(shmctl(segment, IPC_STAT, places[i]));
        TRIED(shmctl(segment, IPC_SET, places[i]));
    }
    TRIED(shmat(segment, NULL, SHM_REMAP));
    TRIED(shmdt(&segment));
    TRIED(shmget(ftok("/", 'z'), 1, 0600));
    TRIED(shmctl(segment, IPC_RMID, NULL));
    TRIED(shmctl(segment, IPC_RMID, NULL));
}

int main(int argc, char **argv)
{
    self = argv[0];
    if (!strcmp(argv[1], "arguments")) {
        arguments();
        return 0;
    }
    if (!strcmp(argv[1], "child")) {
        long *at = shmat(atoi(argv[2]), NULL, 0);
        __atomic_add_fetch(&at[700], 1, __ATOMIC_SEQ_CST);
        return 0; /* still attached */
    }
    rest_ms = atoi(argv[1]);
    alone();
    family();
    turns();
    return 0;
}
