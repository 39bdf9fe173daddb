/* A wire with a delay: what comes in at one end goes out at the other, so many microseconds later.
 *
 * delay FD FD MICROSECONDS [BYTES]    each way; so many bytes pass in a second, or as many as the machine can
 *
 * One thread per direction.  Pieces keep the time at which they came; the ring is long enough that reading does
 * not wait for writing.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { RING = 64 << 20, PIECE = 256 << 10, MARKS = 65536 };

struct way {
    int from, to;
    char *ring;
    _Atomic uint64_t in, out;
    _Atomic uint32_t marks_in, marks_out;
    _Atomic int ended;
    int64_t busy_until_ns;
    struct {
        int64_t due_ns;
        uint64_t end;
    } marks[MARKS];
};

static int64_t delay_ns, bytes_per_s;

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void pause_ns(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

static void *reader(void *argument)
{
    struct way *w = argument;
    for (;;) {
        uint64_t in = w->in;
        size_t room = RING - (in - w->out), edge = RING - in % RING;
        if (room < PIECE || w->marks_in - w->marks_out >= MARKS - 1) {
            pause_ns(20000);
            continue;
        }
        ssize_t got = read(w->from, w->ring + in % RING, edge < PIECE ? edge : PIECE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        int64_t now = now_ns();
        w->busy_until_ns = (w->busy_until_ns > now ? w->busy_until_ns : now) + (bytes_per_s ? got * 1000000000 / bytes_per_s : 0);
        w->marks[w->marks_in % MARKS].due_ns = w->busy_until_ns + delay_ns;
        w->marks[w->marks_in % MARKS].end = in + (uint64_t)got;
        w->in = in + (uint64_t)got;
        w->marks_in++;
    }
    w->ended = 1;
    return NULL;
}

static void *writer(void *argument)
{
    struct way *w = argument;
    prctl(PR_SET_TIMERSLACK, 1000);
    for (;;) {
        if (w->marks_in == w->marks_out) {
            if (w->ended && w->marks_in == w->marks_out)
                break;
            struct pollfd one = {w->from, POLLIN, 0};
            poll(&one, 1, 1); /* then the reader has it within a moment */
            pause_ns(delay_ns / 8 < 20000 ? delay_ns / 8 + 1000 : 20000);
            continue;
        }
        int64_t left = w->marks[w->marks_out % MARKS].due_ns - now_ns();
        if (left > 0) {
            pause_ns(left);
            continue;
        }
        uint64_t end = w->marks[w->marks_out % MARKS].end, out = w->out;
        while (out < end) {
            ssize_t put = send(w->to, w->ring + out % RING, end - out, MSG_NOSIGNAL);
            if (put < 0 && errno == EINTR)
                continue;
            if (put <= 0)
                exit(0);
            out += (uint64_t)put;
        }
        w->out = out;
        w->marks_out++;
    }
    shutdown(w->to, SHUT_WR);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct way ways[2];
    pthread_t threads[4];
    if (argc != 4 && argc != 5)
        return 1;
    bytes_per_s = argc > 4 ? atoll(argv[4]) : 0;
    int one = atoi(argv[1]), two = atoi(argv[2]);
    delay_ns = atoll(argv[3]) * 1000;
    for (int i = 0; i < 2; i++) {
        ways[i].from = i ? two : one;
        ways[i].to = i ? one : two;
        ways[i].ring = malloc(RING);
        pthread_create(&threads[2 * i], NULL, reader, &ways[i]);
        pthread_create(&threads[2 * i + 1], NULL, writer, &ways[i]);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
