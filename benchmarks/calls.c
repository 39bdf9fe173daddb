/* Small loads for benchmarks/native.py; each prints how many seconds it took. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 16];

static int clock_used = CLOCK_MONOTONIC;

static double now(void)
{
    struct timespec t;
    clock_gettime(clock_used, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void connect_pair(int tcp, int pair[2])
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    int on = 1, listener;
    if (!tcp) {
        socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
        return;
    }
    listener = socket(AF_INET, SOCK_STREAM, 0);
    bind(listener, (void *)&here, size);
    listen(listener, 1);
    getsockname(listener, (void *)&here, &size);
    pair[0] = socket(AF_INET, SOCK_STREAM, 0);
    connect(pair[0], (void *)&here, size);
    pair[1] = accept(listener, NULL, NULL);
    for (int i = 0; i < 2; i++)
        setsockopt(pair[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    close(listener);
}

static int other_end(int count, int answers, int tcp)
{
    int pair[2];
    connect_pair(tcp, pair);
    if (fork() == 0) {
        close(pair[1]);
        if (answers)
            while (read(pair[0], block, 64) > 0 && write(pair[0], block, 16) > 0)
                ;
        else
            for (int i = 0; i < count && write(pair[0], block, sizeof block) > 0; i++)
                ;
        _exit(0);
    }
    close(pair[0]);
    return pair[1];
}

int main(int argc, char **argv)
{
    int n = atoi(argv[2]), fd;
    if (!strcmp(argv[1], "local") || !strcmp(argv[1], "compute")) /* nobody else has a part in these */
        clock_used = CLOCK_PROCESS_CPUTIME_ID;
    double began = now();
    if (!strcmp(argv[1], "local"))
        for (int i = 0; i < n; i++)
            syscall(SYS_getppid);
    if (!strcmp(argv[1], "remote"))
        for (int i = 0; i < n; i++)
            lseek(0, 0, SEEK_CUR);
    if (!strcmp(argv[1], "read"))
        for (fd = open(argv[3], O_RDONLY); read(fd, block, sizeof block) > 0;)
            ;
    if (!strcmp(argv[1], "write")) {
        fd = open(argv[3], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        for (int i = 0; i < n && write(fd, block, sizeof block) > 0; i++)
            ;
    }
    if (!strcmp(argv[1], "random")) {
        fd = open(argv[3], O_RDONLY);
        for (int i = 0; i < n; i++)
            pread(fd, block, 4096, random() % atol(argv[4]) * 4096);
    }
    if (!strcmp(argv[1], "job")) { /* computes, and now and then reads and writes a piece */
        int in = open(argv[3], O_RDONLY), out = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        volatile double s = 0;
        for (int i = 0; read(in, block, sizeof block) > 0; i++) {
            for (long k = 0; k < n; k++)
                s += k * 0.5;
            if (i % 10 == 0)
                write(out, block, sizeof block);
        }
    }
    if (!strcmp(argv[1], "compute")) {
        volatile double s = 0;
        for (long i = 0; i < n * 1000000l; i++)
            s += i * 0.5;
    }
    if (!strcmp(argv[1], "pingpong")) {
        fd = other_end(0, 1, argc > 3);
        began = now();
        for (int i = 0; i < n; i++)
            if (write(fd, block, 64) < 0 || read(fd, block, 16) < 0)
                return 1;
    }
    if (!strcmp(argv[1], "carry")) { /* from a file through a stream into another one */
        int pair[2], from = open(argv[3], O_RDONLY), to = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        connect_pair(1, pair);
        if (fork() == 0) {
            close(pair[1]);
            for (int i = 0; i < n && read(from, block, sizeof block) > 0; i++)
                write(pair[0], block, sizeof block);
            _exit(0);
        }
        close(pair[0]);
        began = now();
        for (long got; (got = read(pair[1], block, sizeof block)) > 0;)
            write(to, block, got);
    }
    if (!strcmp(argv[1], "stream")) {
        fd = other_end(n, 0, argc > 3);
        began = now();
        while (read(fd, block, sizeof block) > 0)
            ;
    }
    printf("%.9f\n", now() - began);
    return 0;
}
