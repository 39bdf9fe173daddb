/* The least that a system call's way home can take, for benchmarks/calls_apart.py: as many bytes to and fro, and nothing
 * is done with them.
 *
 *     ping serve PORT                                   the home: answers each request
 *     ping relay PORT HOST PORT                         a gateway: one connection, passed on by the gateways' own relays
 *     ping ask HOST PORT NUMBER KINDS TURNS TURN_S START   the program: asks in its turns, and says how often, and how long
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "relay.h"

enum { ASKED = 92, ANSWERED = 172 }; /* a sealed and numbered fstatvfs */

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static int at_once(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

static int taken(const char *port)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (void *)&here, sizeof here) < 0 || listen(listener, 1) < 0)
        exit(1);
    puts("listens");
    fflush(stdout);
    return at_once(accept(listener, NULL, NULL));
}

static int connected(const char *host, const char *port)
{
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)),
                                .sin_addr.s_addr = inet_addr(host)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(fd, (void *)&there, sizeof there) < 0)
        exit(2);
    return at_once(fd);
}

static void all_of(int fd, char *to, size_t size)
{
    while (size) {
        ssize_t got = recv(fd, to, size, 0);
        if (got <= 0)
            exit(0);
        to += got;
        size -= (size_t)got;
    }
}

static void ask(int fd, char *words[])
{
    char room[ANSWERED] = {0};
    const int number = atoi(words[0]), kinds = atoi(words[1]), turns = atoi(words[2]);
    const double turn_s = atof(words[3]), start_s = atof(words[4]);
    printf("done");
    for (int turn = 0; turn < turns; turn++) {
        const double begin_s = start_s + (kinds * turn + number) * turn_s, end_s = begin_s + 0.9 * turn_s;
        const double left_s = begin_s - now(CLOCK_REALTIME);
        struct timespec pause = {(time_t)left_s, (long)((left_s - (time_t)left_s) * 1e9)};
        if (left_s > 0)
            nanosleep(&pause, NULL);
        long calls = 0;
        const double began = now(CLOCK_MONOTONIC);
        while (now(CLOCK_REALTIME) < end_s)
            for (int i = 0; i < 10; i++, calls++) {
                if (send(fd, room, ASKED, MSG_NOSIGNAL) != ASKED)
                    exit(3);
                all_of(fd, room, ANSWERED);
            }
        printf(" %ld:%.6f", calls, now(CLOCK_MONOTONIC) - began);
    }
    puts("");
}

int main(int count, char *words[])
{
    char room[ANSWERED] = {0};
    if (count == 3 && !strcmp(words[1], "serve")) {
        int fd = taken(words[2]);
        for (;;) {
            all_of(fd, room, ASKED);
            if (send(fd, room, ANSWERED, MSG_NOSIGNAL) != ANSWERED)
                return 0;
        }
    }
    if (count == 5 && !strcmp(words[1], "relay")) {
        int first = taken(words[2]);
        struct relay_news news = {0};
        if (!relay_splice(first, connected(words[3], words[4])))
            return 1;
        for (uint64_t rings; !(news.what & RELAY_ENDED); relay_next_news(&news))
            if (read(relay_news_descriptor(), &rings, sizeof rings) < 0)
                usleep(100000); /* it does not wait, and nothing hurries */
        return 0;
    }
    if (count == 9 && !strcmp(words[1], "ask")) {
        ask(connected(words[2], words[3]), words + 4);
        return 0;
    }
    return 2;
}
