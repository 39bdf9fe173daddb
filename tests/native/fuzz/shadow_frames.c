/* Coverage-guided fuzzing of what the shadow makes of bytes from a hostile runtime.
 *
 * One input is what comes over one channel after the greeting. */
#include "confined.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "../../../native/protocol.h"
#include "../../../native/shadow/shadow.h"

/* Far beyond what a slow machine needs: a session that says nothing for so long never will. */
enum { STUCK_MS = 300000 };

/* What is there before a journal is: it is saved when it is written over. */
enum { STANDARD_BYTES = 100000 };

static int standard, root;
static char below[PATH_LIMIT];

int LLVMFuzzerInitialize(int *count, char ***words)
{
    (void)count;
    (void)words;
    shut_in();
    root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    must(root, "the root directory");
    mkdir("below", 0700);
    if (!realpath("below", below))
        must(-1, "a directory");
    unlink("standard");
    standard = open("standard", O_RDWR | O_CREAT | O_EXCL, 0600);
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

/* The fuzzer's own timer interrupts. */
static void wait_for(struct pollfd *fds, nfds_t count, const char *what)
{
    int ready;
    while ((ready = poll(fds, count, STUCK_MS)) < 0 && errno == EINTR)
        ;
    if (ready <= 0)
        give_up(what, ready ? errno : ETIMEDOUT);
}

/* What one channel says, and what is left of it to say. */
struct talk {
    int channel; /* -1: over */
    const uint8_t *next;
    size_t left;
};

static void end_talk(struct talk *talk)
{
    if (talk->channel >= 0)
        close(talk->channel);
    talk->channel = -1;
}

/* Takes what was answered. The first descriptor that comes beside it is a helper's channel: it says the same. */
static void listen_to(struct talk *talk, struct talk *helper)
{
    static char bytes[1 << 18];
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {bytes, sizeof bytes};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t got = recvmsg(talk->channel, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        end_talk(talk);
    if (got <= 0 || !CMSG_FIRSTHDR(&message))
        return;
    int gift;
    memcpy(&gift, CMSG_DATA(&control.head), sizeof gift);
    if (helper && helper->channel < 0 && helper->left)
        helper->channel = gift;
    else
        close(gift);
}

static void say(struct talk *talk)
{
    ssize_t sent = send(talk->channel, talk->next, talk->left, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        talk->left = 0;
    if (sent > 0) {
        talk->next += sent;
        talk->left -= (size_t)sent;
    }
    if (!talk->left)
        shutdown(talk->channel, SHUT_WR);
}

/* A session without room for its journal waits for some, or for its program's end: that comes now. */
static bool take_events(int session, struct talk talks[2])
{
    struct shadow_event event;
    bool over = false;
    while (shadow_next_event(&event)) {
        over |= event.kind == SHADOW_ENDED && event.session == session;
        if (event.kind == SHADOW_NO_IMAGE && event.value == ENOSPC) {
            end_talk(&talks[0]);
            end_talk(&talks[1]);
        }
    }
    return over;
}

/* How a session is served: what an input's size says, so that a search changes it too. */
struct mode {
    int journal;    /* as in struct shadow_task; of the second kind it is gone back by when the session is repeated */
    bool foresees;  /* the second session is told what the first one asked */
    bool confined;  /* to a directory below */
    int times;
};

static struct mode mode_of(size_t size)
{
    static const struct mode modes[4] = {{0, false, false, 1}, {1, false, false, 1}, {0, true, false, 2},
                                         {2, false, false, 2}};
    struct mode mode = modes[size % 4];
    mode.confined = size % 8 >= 4;
    return mode;
}

/* One session from its greeting to its end. */
static void converse(const char *program, const uint8_t *words, size_t size, const struct mode *mode)
{
    const char *const arguments[] = {"x", NULL}, *const none[] = {NULL};
    struct shadow_task task = {.program = program, .arguments = arguments, .environment = none, .image = "image",
                               .standard = {standard, standard, standard}, .journal = mode->journal,
                               .directory = mode->confined ? below : NULL, .libraries = "/lib:/",
                               .job_root = mode->confined ? below : NULL};
    int pair[2];
    fchmod(root, 0777); /* where it is ours, a frame may have closed it */
    if (fchmod(standard, 0600) < 0 || ftruncate(standard, 0) < 0 || ftruncate(standard, STANDARD_BYTES) < 0 ||
        lseek(standard, 0, SEEK_SET) < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        give_up("nothing to begin with", errno);
    int session = shadow_open(pair[0], &task);
    if (session < 0)
        give_up("the shadow opens no session", -session);
    struct request *head = (void *)(uintptr_t)words;
    head->arguments[1] = head->arguments[2] = mode->foresees;
    struct talk talks[2] = {{pair[1], words, size}, {-1, words, size}};
    for (bool over = false; !over;) {
        struct pollfd wait[3] = {{shadow_event_descriptor(), POLLIN, 0}};
        for (int i = 0; i < 2; i++)
            wait[i + 1] = (struct pollfd){talks[i].channel, POLLIN | (talks[i].left ? POLLOUT : 0), 0};
        wait_for(wait, 3, "the session does not go on");
        for (int i = 0; i < 2; i++) {
            if (talks[i].channel >= 0 && (wait[i + 1].revents & POLLOUT))
                say(&talks[i]);
            if (talks[i].channel >= 0 && (wait[i + 1].revents & ~POLLOUT))
                listen_to(&talks[i], i ? NULL : &talks[1]);
        }
        over = wait[0].revents && take_events(session, talks);
    }
    end_talk(&talks[0]);
    end_talk(&talks[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct {
        struct request head;
        struct hello hello;
        uint32_t kept[4];
    } greeting = {{sizeof(struct hello) + 16, 0, OP_HELLO, {1 << 20}}, {PROTOCOL_VERSION, HELLO_FRESH, 4242, 0}, {3, 1, 2, 1}};
    static unsigned runs;
    char program[32];
    uint8_t *words = malloc(sizeof greeting + size);
    if (size < 1 || !words) {
        free(words);
        return 0;
    }
    memcpy(words, &greeting, sizeof greeting);
    memcpy(words + sizeof greeting, data, size);
    tame(words + sizeof greeting, size);
    snprintf(program, sizeof program, "program %u", runs++);
    struct mode mode = mode_of(size);
    for (int i = 0; i < mode.times; i++)
        converse(program, words, sizeof greeting + size, &mode);
    fchmod(root, 0777);
    free(words);
    return 0;
}
