/* posix_queues REST_MS: POSIX message queues, alone and among processes, with rests between; tells what came of each. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TRIED(call) (errno = 0, told(#call, (long)(call)))

enum { TASKS = 60, WORKERS = 3, SIZE = 64 };

static int rest_ms;
static char name[64], other[64];

static void rest(void)
{
    usleep(rest_ms * 1000);
}

static long told(const char *what, long found)
{
    printf("%s: %s\n", what, found < 0 ? strerrorname_np(errno) : "done");
    fflush(stdout);
    return found;
}

static struct timespec in_ms(long ms)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += (at.tv_nsec + ms * 1000000) / 1000000000;
    at.tv_nsec = (at.tv_nsec + ms * 1000000) % 1000000000;
    return at;
}

static void take(mqd_t queue)
{
    char text[SIZE] = "";
    unsigned priority = 77;
    long got = mq_receive(queue, text, sizeof text, &priority);
    if (got < 0)
        printf("take: %s\n", strerrorname_np(errno));
    else
        printf("take: %ld, priority %u, %s\n", got, priority, text);
    fflush(stdout);
}

static void tell(mqd_t queue)
{
    struct mq_attr like;
    struct pollfd one = {.fd = queue, .events = POLLIN | POLLOUT};
    mq_getattr(queue, &like);
    poll(&one, 1, 0);
    printf("flags %ld, %ld of %ld messages of %ld; poll %x\n", like.mq_flags, like.mq_curmsgs, like.mq_maxmsg, like.mq_msgsize, one.revents);
    fflush(stdout);
}

static mqd_t make(int flags)
{
    struct mq_attr like = {.mq_maxmsg = 4, .mq_msgsize = SIZE};
    return mq_open(name, O_CREAT | O_RDWR | flags, 0600, &like);
}

static void alone(void)
{
    struct mq_attr wrong = {.mq_maxmsg = 0, .mq_msgsize = SIZE}, nonblocking = {.mq_flags = O_NONBLOCK}, before;
    struct timespec past = {1, 0}, bad = {0, 1000000000}, soon;
    char text[SIZE] = "";
    TRIED(mq_open(name, O_RDWR));
    TRIED(mq_open("/", O_RDWR | O_CREAT, 0600, NULL));
    TRIED(mq_open("/a/b", O_RDWR | O_CREAT, 0600, NULL));
    TRIED(mq_open(other, O_RDWR | O_CREAT, 0600, &wrong));
    TRIED(mq_unlink(other));
    mqd_t queue = make(O_EXCL), reader = mq_open(name, O_RDONLY | O_NONBLOCK), writer = mq_open(name, O_WRONLY);
    TRIED(make(O_EXCL));
    printf("closes %d\n", fcntl(queue, F_GETFD));
    tell(queue);
    TRIED(mq_send(reader, "x", 1, 0));
    TRIED(mq_receive(writer, text, sizeof text, NULL));
    TRIED(mq_receive(reader, text, sizeof text, NULL));
    TRIED(mq_receive(queue, text, sizeof text - 1, NULL));
    TRIED(mq_send(queue, text, sizeof text + 1, 0));
    TRIED(mq_send(queue, text, 1, 32768));
    TRIED(mq_send(0, text, 1, 0));
    TRIED(mq_timedreceive(queue, text, sizeof text, NULL, &past));
    TRIED(mq_timedreceive(queue, text, sizeof text, NULL, &bad));
    soon = in_ms(rest_ms);
    TRIED(mq_timedreceive(queue, text, sizeof text, NULL, &soon));
    const char *words[] = {"low", "high", "low too", "highest"};
    const unsigned priorities[] = {0, 5, 0, 32767};
    for (int i = 0; i < 4; i++) {
        TRIED(mq_send(writer, words[i], strlen(words[i]) + 1, priorities[i]));
        tell(queue);
        rest();
    }
    soon = in_ms(rest_ms);
    TRIED(mq_timedsend(queue, "more", 5, 1, &soon));
    TRIED(mq_setattr(writer, &nonblocking, &before));
    TRIED(mq_send(writer, "more", 5, 1));
    TRIED(mq_unlink(name));
    TRIED(mq_open(name, O_RDWR));
    mqd_t fresh = make(O_EXCL);
    tell(fresh);
    rest();
    for (int i = 0; i < 5; i++) {
        take(reader);
        tell(i % 2 ? reader : writer);
        rest();
    }
    TRIED(mq_unlink(name));
    TRIED(mq_close(fresh));
    TRIED(mq_close(queue));
    TRIED(mq_close(reader));
    TRIED(mq_close(writer));
    TRIED(mq_close(writer));
}

static void hear(int number, siginfo_t *info, void *context)
{
    (void)context;
    char line[80];
    int size = snprintf(line, sizeof line, "signal %d: %d, value %d, from %s\n", number, info->si_code, info->si_value.sival_int,
                        info->si_pid == getpid() ? "itself" : "another");
    write(1, line, (size_t)size);
}

static void notified(void)
{
    struct sigaction action = {.sa_sigaction = hear, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct sigevent by_signal = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 41};
    struct sigevent by_none = {.sigev_notify = SIGEV_NONE}, wrong = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = 1000};
    sigset_t usr1, before;
    mqd_t queue = make(O_EXCL);
    sigaction(SIGUSR1, &action, NULL);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    TRIED(mq_notify(queue, &wrong));
    TRIED(mq_notify(queue, &by_signal));
    TRIED(mq_notify(queue, &by_none));
    rest();
    TRIED(mq_send(queue, "own", 4, 0));
    TRIED(mq_send(queue, "second", 7, 0));
    take(queue), take(queue);
    TRIED(mq_send(queue, "untold", 7, 0));
    take(queue);
    by_signal.sigev_value.sival_int = 42;
    TRIED(mq_notify(queue, &by_signal));
    sigprocmask(SIG_BLOCK, &usr1, &before);
    pid_t child = fork();
    if (!child) {
        errno = 0;
        rest();
        _exit(mq_notify(queue, &by_none) == 0 || errno != EBUSY || mq_notify(queue, NULL) || mq_send(queue, "from afar", 10, 9));
    }
    sigsuspend(&before);
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", status);
    rest();
    sigprocmask(SIG_SETMASK, &before, NULL);
    take(queue);
    TRIED(mq_notify(queue, &by_none));
    TRIED(mq_notify(queue, NULL));
    TRIED(mq_notify(queue, &by_none));
    TRIED(mq_close(queue));
    queue = mq_open(name, O_RDWR);
    TRIED(mq_notify(queue, &by_none));
    TRIED(mq_unlink(name));
    TRIED(mq_close(queue));
}

/* Tasks go out by one queue, which is small, and come back by another. */
static void shared(void)
{
    mqd_t out = make(O_EXCL), back = mq_open(other, O_CREAT | O_RDWR, 0600, NULL);
    int sum = 0, epoll = epoll_create1(0);
    struct epoll_event wanted = {.events = EPOLLIN}, got;
    for (int i = 0; i < WORKERS; i++)
        if (!fork()) {
            char text[8192];
            int task;
            while (mq_receive(out, text, SIZE, NULL) == sizeof task) {
                memcpy(&task, text, sizeof task);
                if (task % 16 == 0)
                    rest();
                task *= task;
                mq_send(back, (char *)&task, sizeof task, 0);
            }
            _exit(0);
        }
    if (!fork()) {
        for (int i = 0; i < TASKS; i++)
            mq_send(out, (char *)&i, sizeof i, i % 7);
        for (int i = 0; i < WORKERS; i++)
            mq_send(out, "", 1, 0);
        _exit(0);
    }
    mq_unlink(name), mq_unlink(other);
    epoll_ctl(epoll, EPOLL_CTL_ADD, back, &wanted);
    for (int i = 0; i < TASKS; i++) {
        char text[8192];
        int one;
        while (epoll_wait(epoll, &got, 1, -1) < 1)
            ;
        mq_receive(back, text, sizeof text, NULL);
        memcpy(&one, text, sizeof one);
        sum += one;
    }
    while (wait(NULL) > 0)
        ;
    printf("sum %d\n", sum);
    tell(out), tell(back);
}

int main(int count, char **words)
{
    rest_ms = count > 1 ? atoi(words[1]) : 1;
    snprintf(name, sizeof name, "/condor-test-%d", getpid());
    snprintf(other, sizeof other, "/condor-test-%d-back", getpid());
    alone();
    notified();
    shared();
    return 0;
}
