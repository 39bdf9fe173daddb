/* Says what stops a program that sends itself open files and keeps none: no more are on their way than it may open. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MOST_OPEN = 200, PAIRS = 40, ENOUGH = 5000 };

static int pairs[PAIRS][2];

static union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
} control;

static int send_file(int socket, int file)
{
    char byte = 'x';
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    control.head = (struct cmsghdr){CMSG_LEN(sizeof file), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), &file, sizeof file);
    return (int)sendmsg(socket, &message, MSG_DONTWAIT);
}

/* Sends files and closes them until something else than a full socket stops it; returns how many. */
static int flood(void)
{
    int sent = 0, result = 0;
    for (int pair = 0; pair < PAIRS && sent < ENOUGH;) {
        int file = open("/dev/null", O_RDONLY);
        result = file < 0 ? -1 : send_file(pairs[pair][0], file);
        int error = errno;
        close(file);
        errno = error;
        if (result >= 0)
            sent++;
        else if (error == EAGAIN)
            pair++;
        else
            break;
    }
    printf("sending: %s\n", result < 0 ? strerrorname_np(errno) : "done");
    printf("about as many as may be open: %s\n", sent > MOST_OPEN - 20 && sent < MOST_OPEN + 20 ? "yes" : "no");
    return sent;
}

static int receive(int socket)
{
    char byte;
    int file;
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(socket, &message, MSG_DONTWAIT) != 1 || !CMSG_FIRSTHDR(&message))
        return 0;
    memcpy(&file, CMSG_DATA(&control.head), sizeof file);
    return !close(file);
}

static void open_pairs(void)
{
    for (int i = 0; i < PAIRS; i++)
        socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]);
}

int main(void)
{
    struct rlimit few;
    getrlimit(RLIMIT_NOFILE, &few);
    few.rlim_cur = MOST_OPEN;
    setrlimit(RLIMIT_NOFILE, &few);
    open_pairs();
    int sent = flood(), came = 0;
    for (int i = 0; i < PAIRS; i++)
        while (receive(pairs[i][1]))
            came++;
    printf("all came: %s\n", came == sent ? "yes" : "no");
    flood();
    for (int i = 0; i < PAIRS; i++) { /* nobody reads them */
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    open_pairs();
    flood();
    return 0;
}
