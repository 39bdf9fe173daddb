/* Takes orders one at a time, checks them, and forks a process for each that needs another user's rights. */
#define _GNU_SOURCE
#include "root.h"

#include "../guards.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Processes that answer by themselves; one that is killed, or takes too long, is answered for. */
struct child {
    pid_t pid;
    time_t until;
    struct order order;
};

static struct child children[MAX_CHILDREN] UNGUARDED("this program has one thread");

static time_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec;
}

static struct child *free_place(void)
{
    for (size_t i = 0; i < MAX_CHILDREN; i++)
        if (!children[i].pid)
            return &children[i];
    return NULL;
}

static void reap(const struct policy *policy)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
        for (size_t i = 0; i < MAX_CHILDREN; i++)
            if (children[i].pid == pid) {
                if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                    answer(policy, &children[i].order, EIO, 0, "its process was killed, or took too long", -1);
                children[i].pid = 0;
            }
}

/* Milliseconds until the next child is late, -1 without any; those that are late are killed. */
static int hurry(void)
{
    time_t next = 0, time = now();
    for (size_t i = 0; i < MAX_CHILDREN; i++) {
        struct child *child = &children[i];
        if (child->pid && child->until <= time) {
            use_rights(true);
            kill(child->pid, SIGKILL);
            use_rights(false);
            child->until = time + 1;
        }
        if (child->pid && (!next || child->until < next))
            next = child->until;
    }
    return next ? (int)(next - time) * 1000 : -1;
}

/* A child of the daemon's own: it is the daemon's to wait for, and ends with it. */
static pid_t fork_sibling(bool own_pids)
{
    if (own_pids && !use_rights(true))
        return -1;
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD | (own_pids ? CLONE_NEWPID : 0), 0, 0, 0, 0);
    if (own_pids && !use_rights(false))
        _exit(2);
    return pid;
}

static void carry_out(struct request *request)
{
    const struct policy *policy = request->policy;
    struct order *order = &request->order;
    const struct program *program = NULL;
    const char *reason = NULL;
    if (order->kind == READY) {
        answer(policy, order, 0, getpid(), "", -1);
        return;
    }
    if (order->kind == SIGNAL) {
        int error = request->count == 1 ? signal_process(request, &reason) : EBADF;
        answer(policy, order, error, 0, reason ? reason : "one descriptor is needed", -1);
        return;
    }
    if (order->kind == WATCH) {
        int64_t number = 0;
        int error = request->count == 1 ? watch_device(request, &number, &reason) : EBADF;
        answer(policy, order, error, number, reason ? reason : "one descriptor is needed", -1);
        return;
    }
    bool tree = order->kind >= GIVE && order->kind <= MEASURE;
    if (order->kind == PROGRAM)
        reason = check_program(request, &program);
    if (!reason && !(program && program->as_root) && !account_allowed(policy, order->uid))
        reason = "that account is not allowed";
    else if (!reason && order->kind == START)
        reason = request->count < 5                ? "a start needs five descriptors or more"
                 : order->flags & ~(uint32_t)OWN_PIDS ? "a start has no such flag"
                                                      : read_sheet(request);
    else if (!reason && tree && (request->count != 1 || !folder_allowed(policy, request->descriptors[0])))
        reason = "not a folder that may be touched";
    else if (!reason && order->kind == OPEN && request->count > 1)
        reason = "one folder at most";
    if (reason) {
        answer(policy, order, EPERM, 0, reason, -1);
        return;
    }
    bool sibling = order->kind == START || order->kind == PROGRAM;
    struct child *place = sibling ? NULL : free_place();
    pid_t pid = !sibling && !place ? -1 : sibling ? fork_sibling(order->kind == START && order->flags & OWN_PIDS) : fork();
    if (pid < 0) {
        answer(policy, order, EAGAIN, 0, "too many at once", -1);
    } else if (pid == 0) {
        if (order->kind == START)
            start_launcher(request);
        if (order->kind == PROGRAM)
            start_program(request, program);
        if (order->kind == OPEN)
            open_path(request);
        walk_tree(request);
    } else if (sibling) {
        answer(policy, order, 0, pid, "", -1);
    } else {
        *place = (struct child){pid, now() + (order->kind == OPEN ? CHILD_S : WALK_S), *order};
    }
}

/* The descriptors of a message; whatever else the kernel hands over is nothing we asked for. */
static void take_descriptors(struct msghdr *message, struct request *request)
{
    for (struct cmsghdr *head = CMSG_FIRSTHDR(message); head; head = CMSG_NXTHDR(message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int descriptor;
            memcpy(&descriptor, CMSG_DATA(head) + i * sizeof(int), sizeof descriptor);
            if (request->count < MAX_DESCRIPTORS)
                request->descriptors[request->count++] = descriptor;
            else
                close(descriptor);
        }
    }
}

static const char *fault(const struct request *request, ssize_t length, int flags)
{
    const struct order *order = &request->order;
    if (length != (ssize_t)sizeof *order || flags & (MSG_TRUNC | MSG_CTRUNC) || order->magic != MAGIC)
        return "not an order";
    if (order->kind < READY || order->kind >= KINDS ||
        (order->kind != READY && !(request->policy->kinds & 1u << order->kind)))
        return "a kind of order that is not taken here";
    if (order->descriptors != request->count)
        return "other descriptors than it says";
    size_t end = strnlen(order->text, TEXT_BYTES);
    if (end == TEXT_BYTES)
        return "a text without an end";
    for (; end < TEXT_BYTES; end++)
        if (order->text[end])
            return "something behind the end of the text";
    return NULL;
}

/* One order; false: the daemon is gone. */
static bool take_order(const struct policy *policy)
{
    struct request request = {.policy = policy};
    struct iovec part = {&request.order, sizeof request.order};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(MAX_DESCRIPTORS * sizeof(int))];
    } control;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t length = recvmsg(policy->socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (length < 0)
        return errno == EINTR || errno == EAGAIN;
    take_descriptors(&message, &request);
    if (length == 0)
        return false;
    const char *wrong = fault(&request, length, message.msg_flags);
    if (wrong)
        answer(policy, &request.order, EINVAL, 0, wrong, -1);
    else
        carry_out(&request);
    for (size_t i = 0; i < request.count; i++)
        close(request.descriptors[i]);
    free(request.sheet);
    return true;
}

int main(int count, char **words)
{
    static struct policy policy UNGUARDED("written once, before the first order") = {.launcher = -1};
    policy.daemon = getppid();
    read_policy(&policy, count, words);
    sigset_t ended;
    sigfillset(&ended);
    sigprocmask(SIG_SETMASK, &ended, NULL);
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    int signals = signalfd(-1, &ended, SFD_CLOEXEC | SFD_NONBLOCK);
    getrlimit(RLIMIT_NOFILE, &policy.room);
    const struct rlimit room = {policy.room.rlim_max, policy.room.rlim_max};
    (void)!setrlimit(RLIMIT_NOFILE, &room);
    /* Nothing that is started here has the socket, nor what else was open: its numbers are no launcher's to keep. */
    syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
    if (signals < 0 || fcntl(policy.socket, F_SETFD, FD_CLOEXEC) < 0) {
        perror("condor_root: descriptors");
        return 2;
    }
    keep_rights(&policy);
    for (;;) {
        struct pollfd waits[] = {{.fd = policy.socket, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
        if (poll(waits, 2, hurry()) < 0 && errno != EINTR)
            return 2;
        if (waits[1].revents) {
            struct signalfd_siginfo read_away;
            while (read(signals, &read_away, sizeof read_away) == sizeof read_away)
                continue;
            reap(&policy);
        }
        if (waits[0].revents && !take_order(&policy))
            return 0;
    }
}
