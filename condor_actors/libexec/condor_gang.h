/* The members of a gang meet, from C: values that one puts and others wait for, and channels between them.
 *
 * Everything is in this header; include it in one source file of a program (POSIX sockets, C99, no library):
 *
 *     struct condor_gang gang;
 *     if (condor_gang_open(&gang)) { perror("condor_gang"); exit(1); }
 *     if (gang.number == 0) condor_gang_put(&gang, "address", "10.0.0.1:5000", 13);
 *     char address[64];
 *     long length = condor_gang_wait(&gang, "address", address, sizeof address, 60);
 *
 * Functions return the length of what they got, or 0, or a negative CONDOR_GANG_ error.  One struct is one connection,
 * for one thread.  Timeouts are in seconds; a negative one waits forever.  After a timeout nothing was
 * received; what was to be sent may have been.
 */
#ifndef CONDOR_GANG_H
#define CONDOR_GANG_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    CONDOR_GANG_NOT_ALLOWED = -2,  /* no member of a gang, or its run is over */
    CONDOR_GANG_ABSENT = -3,       /* nobody has put it yet */
    CONDOR_GANG_EXISTS = -4,       /* another member has put it */
    CONDOR_GANG_TOO_BIG = -5,      /* a value or message has at most 128 KiB; or the buffer is too small */
    CONDOR_GANG_NO_SPACE = -6,     /* a member has at most 1000 values, of 256 KiB together */
    CONDOR_GANG_INVALID = -8,      /* names have 1 to 200 letters, without blanks */
    CONDOR_GANG_OFFLINE = -17,     /* the submit machine, or the starter, does not answer */
    CONDOR_GANG_TIMEOUT = -100     /* it did not happen in time */
};

enum { CONDOR_GANG_MOST_BYTES = 128 * 1024, CONDOR_GANG_MOST_NAME = 200 };

struct condor_gang {
    int number, size; /* of this member, and how many there are */
    int fd;           /* the connection, -1: none */
};

static inline void condor_gang_close(struct condor_gang *gang) {
    if (gang->fd >= 0)
        close(gang->fd);
    gang->fd = -1;
}

static inline long condor_gang_now_ms_(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000L + now.tv_nsec / 1000000L;
}

/* Wait until the connection can be read or written; 0, or an error. */
static inline int condor_gang_ready_(struct condor_gang *gang, short events, long until_ms) {
    for (;;) {
        struct pollfd wanted = {gang->fd, events, 0};
        long left = until_ms < 0 ? -1 : until_ms - condor_gang_now_ms_();
        int found = until_ms >= 0 && left <= 0 ? 0 : poll(&wanted, 1, left > 3600000L ? 3600000 : (int)left);
        if (found > 0)
            return 0;
        if (found == 0 && until_ms >= 0 && condor_gang_now_ms_() >= until_ms)
            return CONDOR_GANG_TIMEOUT;
        if (found < 0 && errno != EINTR)
            return CONDOR_GANG_OFFLINE;
    }
}

static inline int condor_gang_send_all_(struct condor_gang *gang, const void *data, size_t length, long until_ms) {
    const char *at = (const char *)data;
    while (length > 0) {
        int problem = condor_gang_ready_(gang, POLLOUT, until_ms);
        if (problem)
            return problem;
        ssize_t sent = send(gang->fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EINTR && errno != EAGAIN)
            return CONDOR_GANG_OFFLINE;
        if (sent > 0) {
            at += sent;
            length -= (size_t)sent;
        }
    }
    return 0;
}

static inline int condor_gang_read_all_(struct condor_gang *gang, void *data, size_t length, long until_ms) {
    char *at = (char *)data;
    while (length > 0) {
        int problem = condor_gang_ready_(gang, POLLIN, until_ms);
        if (problem)
            return problem;
        ssize_t got = recv(gang->fd, at, length, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
            return CONDOR_GANG_OFFLINE;
        if (got > 0) {
            at += got;
            length -= (size_t)got;
        }
    }
    return 0;
}

static inline int condor_gang_line_(struct condor_gang *gang, char *line, size_t size, long until_ms) {
    for (size_t length = 0; length < size; length++) {
        int problem = condor_gang_read_all_(gang, line + length, 1, until_ms);
        if (problem)
            return problem;
        if (line[length] == '\n') {
            line[length] = 0;
            return 0;
        }
    }
    return CONDOR_GANG_OFFLINE;
}

static inline int condor_gang_connect_(struct condor_gang *gang) {
    char line[512], host[64], cookie[128];
    int port = 0;
    const char *path = getenv("_CONDOR_CHIRP_CONFIG");
    FILE *config = path ? fopen(path, "re") : NULL;
    if (!config)
        return CONDOR_GANG_NOT_ALLOWED;
    int found = fscanf(config, "%63s %d %127s", host, &port, cookie);
    fclose(config);
    struct sockaddr_in there;
    memset(&there, 0, sizeof there);
    there.sin_family = AF_INET;
    there.sin_port = htons((unsigned short)port);
    if (found != 3 || inet_pton(AF_INET, host, &there.sin_addr) != 1)
        return CONDOR_GANG_INVALID;
    gang->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (gang->fd < 0 || connect(gang->fd, (struct sockaddr *)&there, sizeof there)) {
        condor_gang_close(gang);
        return CONDOR_GANG_OFFLINE;
    }
    int length = snprintf(line, sizeof line, "cookie %s\n", cookie);
    int problem = condor_gang_send_all_(gang, line, (size_t)length, -1);
    if (!problem)
        problem = condor_gang_line_(gang, line, sizeof line, -1);
    if (!problem)
        problem = atoi(line);
    if (problem)
        condor_gang_close(gang);
    return problem;
}

/* One request: its line, what is behind it, and the answer with the bytes that belong to it. */
static inline long condor_gang_ask_(struct condor_gang *gang, const char *verb, const char *names, const void *data,
                                    size_t length, int gives, char *from, void *buffer, size_t size, double timeout) {
    char line[CONDOR_GANG_MOST_NAME * 64 + 400];
    long until_ms = timeout < 0 ? -1 : condor_gang_now_ms_() + (long)(timeout * 1000);
    size_t at = 0;
    if (length > CONDOR_GANG_MOST_BYTES)
        return CONDOR_GANG_TOO_BIG;
    int problem = gang->fd < 0 ? condor_gang_connect_(gang) : 0;
    if (problem)
        return problem;
    at = (size_t)snprintf(line, sizeof line, "%s ", verb);
    for (; *names; names++) {
        if (at + 40 > sizeof line)
            return CONDOR_GANG_INVALID;
        if (*names == ' ' || *names == '\\')
            line[at++] = '\\';
        line[at++] = *names;
    }
    at += (size_t)(gives ? snprintf(line + at, sizeof line - at, " %zu\n", length)
                         : snprintf(line + at, sizeof line - at, "\n"));
    problem = condor_gang_send_all_(gang, line, at, until_ms);
    if (!problem)
        problem = condor_gang_send_all_(gang, data, length, until_ms);
    if (!problem)
        problem = condor_gang_line_(gang, line, sizeof line, until_ms);
    if (problem) {
        condor_gang_close(gang);
        return problem;
    }
    long value = atol(line);
    if (value < 0 || gives)
        return value;
    problem = condor_gang_line_(gang, line, sizeof line, -1);
    if (!problem && from)
        snprintf(from, CONDOR_GANG_MOST_NAME + 20, "%.*s", CONDOR_GANG_MOST_NAME + 19, line);
    if (!problem && (size_t)value > size)
        problem = CONDOR_GANG_TOO_BIG;
    if (!problem)
        problem = condor_gang_read_all_(gang, buffer, (size_t)value, -1);
    if (problem) {
        condor_gang_close(gang);
        return problem;
    }
    return value;
}

/* Begin; 0, or an error. */
static inline int condor_gang_open(struct condor_gang *gang) {
    const char *number = getenv("_CONDOR_PROCNO"), *size = getenv("_CONDOR_NPROCS");
    gang->fd = -1;
    if (!number || !size)
        return CONDOR_GANG_NOT_ALLOWED;
    gang->number = atoi(number);
    gang->size = atoi(size);
    return condor_gang_connect_(gang);
}

/* Let all members see a value; only who has put it may put another in its place. */
static inline int condor_gang_put(struct condor_gang *gang, const char *key, const void *value, size_t length) {
    return (int)condor_gang_ask_(gang, "gang_put", key, value, length, 1, NULL, NULL, 0, -1);
}

/* A value that is there, else CONDOR_GANG_ABSENT. */
static inline long condor_gang_get(struct condor_gang *gang, const char *key, void *buffer, size_t size) {
    return condor_gang_ask_(gang, "gang_get", key, "", 0, 0, NULL, buffer, size, -1);
}

/* A value, as soon as a node has put it. */
static inline long condor_gang_wait(struct condor_gang *gang, const char *key, void *buffer, size_t size,
                                    double timeout) {
    return condor_gang_ask_(gang, "gang_wait", key, "", 0, 0, NULL, buffer, size, timeout);
}

/* Send a message; 0 when another member has received it. */
static inline int condor_gang_send(struct condor_gang *gang, const char *channel, const void *data, size_t length,
                                   double timeout) {
    return (int)condor_gang_ask_(gang, "gang_send", channel, data, length, 1, NULL, NULL, 0, timeout);
}

/* The next message on any of some channels (names with blanks between them).
 * from: NULL, or CONDOR_GANG_MOST_NAME + 20 bytes for "MEMBER CHANNEL". */
static inline long condor_gang_receive(struct condor_gang *gang, const char *channels, void *buffer, size_t size,
                                       char *from, double timeout) {
    return condor_gang_ask_(gang, "gang_recv", channels, "", 0, 0, from, buffer, size, timeout);
}

/* Return 0 when all members have come here; each name serves once. */
static inline int condor_gang_barrier(struct condor_gang *gang, const char *name, double timeout) {
    char key[CONDOR_GANG_MOST_NAME + 40], nothing[1];
    snprintf(key, sizeof key, "barrier/%s/%d", name, gang->number);
    int problem = condor_gang_put(gang, key, "", 0);
    for (int number = 0; number < gang->size && !problem; number++) {
        snprintf(key, sizeof key, "barrier/%s/%d", name, number);
        long found = condor_gang_wait(gang, key, nothing, sizeof nothing, timeout);
        problem = found < 0 ? (int)found : 0;
    }
    return problem;
}

#endif
