/* Coverage-guided fuzzing of what the shadow makes of bytes from a hostile runtime.
 *
 * One input is what comes over one channel after the greeting.  The process confines itself before the first one: the
 * working directory, which holds nothing but the corpus, becomes its root; it is nobody; files stay small. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../native/protocol.h"
#include "../../../native/shadow/shadow.h"

static int standard;

static void must(int result, const char *what)
{
    if (result < 0) {
        perror(what);
        exit(2);
    }
}

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    if (geteuid() == 0) {
        must(chroot("."), "the working directory as an empty root directory");
        must(chdir("/"), "the root directory");
        must(setgroups(0, NULL), "no groups");
        must(setgid(65534), "nobody's group");
        must(setuid(65534), "nobody");
    }
    struct rlimit small = {16 << 20, 16 << 20};
    setrlimit(RLIMIT_FSIZE, &small);
    standard = open("standard", O_RDWR | O_CREAT, 0600);
    must(standard, "a file");
    return 0;
}

/* What would be heard on the whole machine is replaced by something harmless. */
static void tame(uint8_t *data, size_t size)
{
    for (size_t at = 0; at + sizeof(struct request) <= size;) {
        struct request head;
        memcpy(&head, data + at, sizeof head);
        if (head.call == SYS_sync || head.call == SYS_syncfs || head.call == SYS_fsync || head.call == SYS_fdatasync) {
            head.call = SYS_close;
            memcpy(data + at, &head, sizeof head);
        }
        at += sizeof head + head.size;
    }
}

static void send_bytes(int channel, const uint8_t *data, size_t size)
{
    uint8_t answers[65536];
    while (size) {
        struct pollfd one = {channel, POLLIN | POLLOUT, 0};
        if (poll(&one, 1, 10000) <= 0)
            abort(); /* the shadow neither takes nor gives: it is stuck */
        if ((one.revents & POLLIN) && recv(channel, answers, sizeof answers, MSG_DONTWAIT) == 0)
            return;
        if (one.revents & (POLLERR | POLLHUP))
            return;
        ssize_t sent = one.revents & POLLOUT ? send(channel, data, size, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        if (sent > 0) {
            data += sent;
            size -= (size_t)sent;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *const words[] = {"x", NULL}, *const none[] = {NULL};
    struct shadow_task task = {.program = "x", .arguments = words, .environment = none, .image = "image",
                               .standard = {standard, standard, standard}, .journal = size % 2};
    struct {
        struct request head;
        struct hello hello;
    } greeting = {{sizeof(struct hello), 0, OP_HELLO, {1 << 20}}, {PROTOCOL_VERSION, HELLO_FRESH, 4242, 0}};
    int pair[2], session;
    uint8_t *copy = malloc(size + 1), answers[65536];
    if (size < 1 || !copy || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        free(copy);
        return 0;
    }
    memcpy(copy, data, size);
    tame(copy, size);
    session = shadow_open(pair[0], &task);
    if (session < 0)
        abort();
    send_bytes(pair[1], (const uint8_t *)&greeting, sizeof greeting);
    send_bytes(pair[1], copy, size);
    shutdown(pair[1], SHUT_WR);
    for (bool over = false; !over;) {
        struct shadow_event event;
        struct pollfd wait[2] = {{shadow_event_descriptor(), POLLIN, 0}, {pair[1], POLLIN, 0}};
        if (poll(wait, 2, 20000) <= 0)
            abort();
        if (wait[1].revents && recv(pair[1], answers, sizeof answers, MSG_DONTWAIT) <= 0)
            shutdown(pair[1], SHUT_RDWR);
        while (shadow_next_event(&event))
            over |= event.kind == SHADOW_ENDED && event.session == session;
    }
    close(pair[1]);
    free(copy);
    return 0;
}
