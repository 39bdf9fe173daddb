/* queues REST_MS: System V semaphores and message queues, alone and among processes, with rests between; tells what came of
 * each.  queues arguments: what each call says to arguments that it should refuse. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIED(call) (errno = 0, told(#call, (long)(call)))

enum { TASKS = 120, WORKERS = 3, LAST = 900000, LITTLE_MS = 5 };

static int rest_ms;

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

struct letter {
    long type;
    char text[8200];
};

static long put(int queue, long type, const char *text, int flags)
{
    struct letter one = {.type = type};
    strcpy(one.text, text);
    return msgsnd(queue, &one, strlen(text) + 1, flags);
}

/* What was received, or the errno. */
static void take(int queue, long type, size_t room, int flags)
{
    struct letter one = {0};
    long got = msgrcv(queue, &one, room, type, flags);
    if (got < 0)
        printf("take %ld: %s\n", type, strerrorname_np(errno));
    else
        printf("take %ld: %ld, type %ld, %.*s\n", type, got, one.type, (int)got, one.text);
    fflush(stdout);
}

static void one_after_another(void)
{
    const int queue = msgget(IPC_PRIVATE, 0600 | IPC_CREAT);
    struct msqid_ds facts;
    for (int i = 1; i <= 6; i++) {
        char text[20];
        sprintf(text, "text %d", i);
        TRIED(put(queue, 1 + i * 5 % 4, text, 0));
    }
    rest();
    take(queue, 0, 100, 0);
    take(queue, 3, 100, 0);
    take(queue, 3, 2, IPC_NOWAIT);
    take(queue, 4, 2, IPC_NOWAIT | MSG_NOERROR);
    take(queue, -2, 100, IPC_NOWAIT);
    rest();
    take(queue, 2, 100, IPC_NOWAIT | MSG_EXCEPT);
    take(queue, 77, 100, IPC_NOWAIT);
    TRIED(msgctl(queue, IPC_STAT, &facts));
    printf("%lu left, %lu bytes of %lu, by me %d %d, mode %o, changed %d\n", facts.msg_qnum, facts.__msg_cbytes,
           facts.msg_qbytes, facts.msg_lspid == getpid(), facts.msg_lrpid == getpid(), facts.msg_perm.mode,
           facts.msg_ctime > 0 && facts.msg_stime >= facts.msg_ctime && facts.msg_rtime >= facts.msg_stime);
    facts.msg_qbytes = 30;
    facts.msg_perm.mode = 0640;
    TRIED(msgctl(queue, IPC_SET, &facts));
    TRIED(put(queue, 1, "too much for what is left of it", IPC_NOWAIT));
    TRIED(put(queue, 1, "no", IPC_NOWAIT));
    TRIED(msgctl(queue, IPC_STAT, &facts));
    printf("%lu of %lu, mode %o\n", facts.msg_qnum, facts.msg_qbytes, facts.msg_perm.mode);
    TRIED(msgctl(queue, IPC_RMID, NULL));
    TRIED(msgctl(queue, IPC_STAT, &facts));
    take(queue, 0, 100, IPC_NOWAIT);
}

static long step(int set, int at, int by, int flags)
{
    struct sembuf one = {at, by, flags};
    return semop(set, &one, 1);
}

static void values(int set)
{
    unsigned short all[4] = {0};
    TRIED(semctl(set, 0, GETALL, all));
    printf("%d %d %d %d, by me: %d %d\n", all[0], all[1], all[2], all[3], semctl(set, 0, GETPID) == getpid(),
           semctl(set, 3, GETPID) == getpid());
}

static void operations(void)
{
    const key_t key = ftok(".", 'q');
    const int set = semget(key, 4, 0600 | IPC_CREAT | IPC_EXCL);
    unsigned short all[4] = {5, 0, 7, 1};
    struct semid_ds facts;
    struct timespec soon = {0, 30000000}, never = {0, 0};
    printf("made: %d, found: %d\n", set >= 0, semget(key, 0, 0) == set);
    TRIED(semget(key, 4, 0600 | IPC_CREAT | IPC_EXCL));
    TRIED(semget(key, 5, 0600));
    values(set);
    TRIED(semctl(set, 0, SETALL, all));
    rest();
    values(set);
    struct sembuf two[] = {{0, -3, 0}, {1, 2, 0}}, all_or_none[] = {{2, -1, 0}, {3, -2, IPC_NOWAIT}};
    struct sembuf twice[] = {{0, -1, 0}, {0, -1, 0}, {0, 2, 0}}, too_high[] = {{0, 1, 0}, {1, 32766, 0}};
    TRIED(semop(set, two, 2));
    TRIED(semop(set, all_or_none, 2));
    TRIED(semop(set, twice, 3));
    TRIED(semop(set, too_high, 2));
    rest();
    values(set);
    TRIED(semtimedop(set, &(struct sembuf){1, 0, 0}, 1, &soon));
    TRIED(semtimedop(set, &(struct sembuf){3, -9, 0}, 1, &never));
    TRIED(semctl(set, 1, SETVAL, 0));
    TRIED(semtimedop(set, &(struct sembuf){1, 0, 0}, 1, &soon));
    TRIED(semctl(set, 1, GETVAL));
    TRIED(semctl(set, 1, GETZCNT));
    TRIED(semctl(set, 0, IPC_STAT, &facts));
    printf("%lu of them, mode %o, times %d\n", facts.sem_nsems, facts.sem_perm.mode, facts.sem_otime >= facts.sem_ctime - 60);
    TRIED(semctl(set, 0, IPC_RMID));
    TRIED(semctl(set, 0, GETVAL));
    TRIED(semget(key, 4, 0600));
}

static void on_alarm(int number)
{
    (void)number;
}

static void interrupted(void)
{
    const int set = semget(IPC_PRIVATE, 1, 0600), queue = msgget(IPC_PRIVATE, 0600);
    struct msqid_ds facts;
    struct itimerval often = {{0, 20000}, {0, 20000}}, none = {{0, 0}, {0, 0}};
    msgctl(queue, IPC_STAT, &facts);
    facts.msg_qbytes = 1;
    msgctl(queue, IPC_SET, &facts);
    for (int flags = 0; flags <= SA_RESTART; flags += SA_RESTART) {
        struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
        sigaction(SIGALRM, &action, NULL);
        setitimer(ITIMER_REAL, &often, NULL);
        TRIED(step(set, 0, -1, 0));
        take(queue, 0, 10, 0);
        TRIED(put(queue, 1, "long", 0));
        setitimer(ITIMER_REAL, &none, NULL);
    }
    TRIED(semctl(set, 0, IPC_RMID));
    TRIED(msgctl(queue, IPC_RMID, NULL));
}

static void until(int set, int at, int how, int many)
{
    while (semctl(set, at, how) != many)
        usleep(2000);
}

/* Who waits gets what it waits for in the moment that it is there, in the order of waiting; and hears of the end. */
static void in_line(void)
{
    const int set = semget(IPC_PRIVATE, 3, 0600);
    int status;
    for (int i = 0; i < 3; i++) {
        if (!fork()) {
            long found = step(set, 0, -1, 0);
            _exit(found ? 100 : step(set, 1, 1, 0) ? 101 : i);
        }
        until(set, 0, GETNCNT, i + 1);
    }
    rest();
    for (int i = 0; i < 3; i++) {
        TRIED(step(set, 0, 1, 0));
        if (rest_ms <= LITTLE_MS)
            TRIED(semctl(set, 0, GETVAL)); /* it was taken at once */
        printf("child %d: ", wait(&status) > 0);
        printf("%d\n", WEXITSTATUS(status) < 3 ? rest_ms > LITTLE_MS ? i : WEXITSTATUS(status) : -1); /* a move forms the line anew */
    }
    if (!fork())
        _exit(step(set, 1, 0, 0) ? errno : 0);
    until(set, 1, GETZCNT, 1);
    rest();
    TRIED(step(set, 1, -3, 0));
    wait(&status);
    printf("zero: %d\n", WEXITSTATUS(status));
    if (!fork())
        _exit(step(set, 2, -1, 0) ? errno : 0);
    until(set, 2, GETNCNT, 1);
    rest();
    TRIED(semctl(set, 0, IPC_RMID));
    wait(&status);
    printf("gone: %s\n", strerrorname_np(WEXITSTATUS(status)));
}

/* What is to be undone is undone at each kind of end, and only what was done. */
static void undone(void)
{
    const int set = semget(IPC_PRIVATE, 2, 0600);
    int status, ready[2];
    char byte;
    semctl(set, 0, SETVAL, 1);
    for (int how = 0; how < 3; how++) {
        pipe(ready);
        pid_t child = fork();
        if (!child) {
            step(set, 0, -1, SEM_UNDO);
            step(set, 1, 5, SEM_UNDO);
            step(set, 1, -2, SEM_UNDO);
            step(set, 1, 1, 0);
            write(ready[1], "x", 1);
            if (how == 2)
                execl("/bin/true", "true", NULL);
            how ? pause() : _exit(0);
        }
        read(ready[0], &byte, 1);
        rest();
        if (how == 1)
            kill(child, SIGKILL);
        waitpid(child, &status, 0);
        close(ready[0]);
        close(ready[1]);
        printf("%d: %d %d, by the child: %d\n", how, semctl(set, 0, GETVAL), semctl(set, 1, GETVAL), semctl(set, 0, GETPID) == child);
        fflush(stdout);
    }
    TRIED(step(set, 0, -1, SEM_UNDO));
    TRIED(semctl(set, 0, SETVAL, 3)); /* there is nothing to be undone now */
    if (!fork())
        _exit(0);
    wait(&status);
    TRIED(semctl(set, 0, GETVAL));
    TRIED(semctl(set, 0, IPC_RMID));
}

static void *takes(void *queue)
{
    struct letter one;
    return (void *)(msgrcv(*(int *)queue, &one, 100, 5, 0) < 0 ? -1L : atol(one.text));
}

static void threads(void)
{
    int queue = msgget(IPC_PRIVATE, 0600);
    pthread_t all[4];
    long sum = 0;
    for (int i = 0; i < 4; i++)
        pthread_create(&all[i], NULL, takes, &queue);
    rest();
    for (int i = 1; i <= 4; i++) {
        char text[20];
        sprintf(text, "%d", i * i);
        put(queue, 5, text, 0);
    }
    for (int i = 0; i < 4; i++) {
        void *found;
        pthread_join(all[i], &found);
        sum += (long)found;
    }
    printf("threads: %ld\n", sum);
    TRIED(msgctl(queue, IPC_RMID, NULL));
}

static void work(int queue, int back, int set, const char *count)
{
    struct letter one;
    for (;;) {
        if (msgrcv(queue, &one, sizeof one.text, -LAST, 0) < 0)
            _exit(1);
        if (one.type == LAST)
            _exit(0);
        char text[20] = "0";
        step(set, 0, -1, SEM_UNDO);
        int fd = open(count, O_RDWR);
        read(fd, text, sizeof text);
        sprintf(text, "%-19d", atoi(text) + atoi(one.text));
        pwrite(fd, text, sizeof text, 0);
        close(fd);
        step(set, 0, 1, SEM_UNDO);
        if (one.type % 20 == 0)
            rest();
        if (put(back, one.type, one.text, 0))
            _exit(2);
    }
}

/* Tasks go to workers by a queue that has no room for all, and come back. */
static void family(void)
{
    const int queue = msgget(IPC_PRIVATE, 0600), back = msgget(IPC_PRIVATE, 0600), set = semget(IPC_PRIVATE, 1, 0600);
    char text[20];
    long sum = 0;
    int status;
    struct msqid_ds facts;
    msgctl(queue, IPC_STAT, &facts);
    facts.msg_qbytes = 200;
    msgctl(queue, IPC_SET, &facts);
    msgctl(back, IPC_SET, &facts);
    semctl(set, 0, SETVAL, 1);
    int fd = open("count", O_RDWR | O_CREAT | O_TRUNC, 0600);
    pwrite(fd, "0                  ", 20, 0);
    fflush(stdout);
    for (int i = 0; i < WORKERS; i++)
        if (!fork())
            work(queue, back, set, "count");
    pid_t giver = fork();
    if (!giver) {
        for (int i = 1; i <= TASKS; i++) {
            sprintf(text, "%d", i);
            put(queue, i, text, 0);
        }
        _exit(0);
    }
    for (int i = 1; i <= TASKS; i++) {
        struct letter one;
        if (msgrcv(back, &one, sizeof one.text, 0, 0) < 0)
            perror("msgrcv");
        sum += atoi(one.text);
    }
    for (int i = 0; i < WORKERS; i++)
        put(queue, LAST, "", 0);
    for (int i = 0; i <= WORKERS; i++) {
        wait(&status);
        printf("ended: %d\n", status);
    }
    pread(fd, text, sizeof text, 0);
    printf("sum %ld, counted %d\n", sum, atoi(text));
    TRIED(msgctl(queue, IPC_STAT, &facts));
    printf("left: %lu, %lu bytes\n", facts.msg_qnum, facts.__msg_cbytes);
    TRIED(msgctl(queue, IPC_RMID, NULL));
    TRIED(msgctl(back, IPC_RMID, NULL));
    TRIED(semctl(set, 0, IPC_RMID));
}

static void arguments(void)
{
    const long numbers[] = {-1, 0, 1, 1L << 31, LONG_MIN, LONG_MAX, 501, 8193, 40000};
    void *const places[] = {NULL, (void *)16, (void *)0xffffffffffff0000};
    const int set = semget(IPC_PRIVATE, 2, 0600), queue = msgget(IPC_PRIVATE, 0600);
    struct sembuf up[600] = {{0, 1, 0}};
    struct timespec wrong[] = {{-1, 0}, {0, 1000000000}, {0, -1}};
    struct letter one = {.type = 1};
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const long n = numbers[i];
        printf("number %ld\n", n);
        if (n < 0 || n > 1000) {
            TRIED(semop((int)n | 1 << 30, up, 1));
            TRIED(semctl((int)n | 1 << 30, 0, GETVAL));
            TRIED(msgctl((int)n | 1 << 30, IPC_RMID, NULL));
            TRIED(msgsnd((int)n | 1 << 30, &one, 1, 0));
            TRIED(msgrcv((int)n | 1 << 30, &one, 1, 0, IPC_NOWAIT));
            if (n != 8193)
                TRIED(semget(IPC_PRIVATE, (int)n, 0600));
            TRIED(semctl(set, (int)n, GETVAL));
            TRIED(semctl(set, (int)n, SETVAL, 1));
            TRIED(semctl(set, 0, SETVAL, (int)n) < 0 ? -1 : 0);
            TRIED(semctl(set, 0, (int)n | 1 << 21));
            TRIED(msgctl(queue, (int)n | 1 << 21, NULL));
        }
        if (n != 1)
            TRIED(semop(set, up, (size_t)n));
        one.type = n;
        TRIED(msgsnd(queue, &one, 1, IPC_NOWAIT));
        one.type = 7;
        if (n < 0 || n > 8192)
            TRIED(msgsnd(queue, &one, (size_t)n, IPC_NOWAIT));
        TRIED(msgrcv(queue, &one, (size_t)n, 99, IPC_NOWAIT));
    }
    for (unsigned i = 0; i < sizeof places / sizeof *places; i++) {
        printf("place %u\n", i);
        TRIED(semop(set, places[i], 1));
        if (i)
            TRIED(semtimedop(set, up, 1, places[i]));
        TRIED(semctl(set, 0, GETALL, places[i]));
        TRIED(semctl(set, 0, SETALL, places[i]));
        TRIED(semctl(set, 0, IPC_STAT, places[i]));
        TRIED(semctl(set, 0, IPC_SET, places[i]));
        TRIED(msgctl(queue, IPC_STAT, places[i]));
        TRIED(msgctl(queue, IPC_SET, places[i]));
        TRIED(msgsnd(queue, places[i], 1, IPC_NOWAIT));
        TRIED(put(queue, 50, "lost", 0));
        TRIED(msgrcv(queue, places[i], 100, 50, IPC_NOWAIT));
        TRIED(msgrcv(queue, &one, 100, 50, IPC_NOWAIT));
    }
    for (int i = 0; i < 3; i++)
        TRIED(semtimedop(set, up, 1, &wrong[i]));
    up[0].sem_num = 2;
    TRIED(semop(set, up, 1));
    unsigned short high[] = {1, 32768};
    TRIED(semctl(set, 0, SETALL, high));
    TRIED(semctl(set, 2, GETNCNT));
    TRIED(msgrcv(queue, &one, 1, 0, MSG_COPY));
    TRIED(msgrcv(queue, &one, 1, 0, MSG_COPY | IPC_NOWAIT | MSG_EXCEPT));
    TRIED(msgget(ftok("/", 'z'), 0600));
    TRIED(semctl(set, 0, IPC_RMID));
    TRIED(msgctl(queue, IPC_RMID, NULL));
}

int main(int argc, char **argv)
{
    if (!strcmp(argv[1], "arguments")) {
        arguments();
        return 0;
    }
    rest_ms = atoi(argv[1]);
    one_after_another();
    operations();
    interrupted();
    in_line();
    undone();
    threads();
    family();
    return 0;
}
