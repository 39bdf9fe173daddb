/* watches all REST_MS: does things to files that it watches, rests before it looks, and tells what it hears.
 * watches wait: watches "file", "gone" and "folder", says that it is ready, and tells what it hears until it is told that
 * something was lost. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int rest_ms, overflowed;

static void rest(void)
{
    usleep(rest_ms * 1000);
}

/* Events of one kind and watch that follow each other count once: whether the kernel joins them is a matter of who was
 * faster. */
static void tell(int fd, size_t room)
{
    char buffer[8192] __attribute__((aligned(8))), last[400] = "", line[400];
    unsigned cookie = 0;
    ssize_t got;
    int waiting = -1;
    ioctl(fd, FIONREAD, &waiting);
    printf("waiting: %s\n", waiting > 0 ? "yes" : "no");
    while ((got = read(fd, buffer, room)) > 0)
        for (char *at = buffer; at < buffer + got;) {
            struct inotify_event *e = (void *)at;
            const char *pair = !e->cookie ? "" : e->cookie == cookie ? " the same" : " another";
            snprintf(line, sizeof line, "%d %x %s%s", e->wd, e->mask, e->len ? e->name : "-", pair);
            if (strcmp(line, last))
                puts(line);
            strcpy(last, line);
            cookie = e->cookie;
            overflowed |= e->mask & IN_Q_OVERFLOW;
            at += sizeof *e + e->len;
        }
    printf("end: %s\n", got < 0 ? strerror(errno) : "none");
    fflush(stdout);
}

static void put(const char *name, const char *what)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (write(fd, what, strlen(what)) < 0)
        perror(name);
    close(fd);
}

static void result(const char *what, int found)
{
    printf("%s: %d %s\n", what, found, found < 0 ? strerror(errno) : "");
    fflush(stdout);
}

static void errors(int fd)
{
    char small[8];
    int ends[2];
    pipe(ends);
    result("no mask", inotify_add_watch(fd, ".", 0));
    result("no file", inotify_add_watch(fd, "none", IN_MODIFY));
    result("no directory", inotify_add_watch(fd, "a", IN_MODIFY | IN_ONLYDIR));
    result("no instance", inotify_add_watch(0, "a", IN_MODIFY));
    result("no descriptor", inotify_add_watch(99, "a", IN_MODIFY));
    result("no such watch", inotify_rm_watch(fd, 77));
    result("flags", inotify_init1(1));
    result("written to", write(fd, small, 8));
    result("a set?", epoll_ctl(fd, EPOLL_CTL_ADD, ends[0], &(struct epoll_event){.events = EPOLLIN}));
    result("waited for?", epoll_wait(fd, &(struct epoll_event){0}, 1, 0));
    put("a", "x");
    result("too small", read(fd, small, sizeof small));
}

static void all(void)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.u64 = 5};
    const unsigned mask = IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVE | IN_DELETE_SELF | IN_MOVE_SELF;
    int fd = inotify_init1(IN_NONBLOCK), other = inotify_init(), set = epoll_create1(0);
    mkdir("folder", 0755);
    mkdir("second", 0755);
    put("a", "begin");
    put("b", "begin");
    symlink("a", "link");
    result("folder", inotify_add_watch(fd, "folder", mask));
    result("a", inotify_add_watch(fd, "a", mask));
    result("a again, by its link", inotify_add_watch(fd, "link", mask | IN_CLOSE_WRITE));
    result("the link", inotify_add_watch(fd, "link", IN_ATTRIB | IN_DELETE_SELF | IN_DONT_FOLLOW));
    result("b, once", inotify_add_watch(fd, "b", IN_MODIFY | IN_ONESHOT));
    result("once only", inotify_add_watch(fd, "a", IN_MODIFY | IN_MASK_CREATE));
    result("another instance", inotify_add_watch(other, "second", IN_CREATE));
    result("set", epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    errors(fd);
    rest();
    tell(fd, 8192);
    for (int round = 0; round < 4; round++) {
        struct pollfd both[2] = {{fd, POLLIN}, {other, POLLIN}};
        char name[100];
        result("before", poll(both, 2, 0));
        rest();
        snprintf(name, sizeof name, "folder/file with a name of some length %d", round);
        put(name, "content");
        rest();
        rename(name, "folder/other");
        chmod("a", 0600 + round);
        put("b", "more");
        rest();
        snprintf(name, sizeof name, "second/%d", round);
        put(name, "");
        unlink("folder/other");
        result("after", poll(both, 2, 60000));
        result("ready", epoll_wait(set, &event, 1, 60000));
        result("not again", epoll_wait(set, &event, 1, 0));
        rest();
        tell(fd, round % 2 ? 8192 : 64);
        char one[512];
        result("one of the other", (int)read(other, one, sizeof one));
    }
    result("no more", inotify_rm_watch(fd, 1));
    result("nor again", inotify_rm_watch(fd, 1));
    rest();
    put("folder/unseen", "");
    unlink("link");
    rest();
    unlink("a");
    tell(fd, 8192);
    int keeper = open("b", O_RDWR);
    result("b again", inotify_add_watch(fd, "b", IN_MODIFY | IN_DELETE_SELF | IN_ATTRIB));
    unlink("b");
    rest();
    tell(fd, 8192);
    result("written without a name", write(keeper, "x", 1));
    rest();
    tell(fd, 8192);
    close(keeper);
    rest();
    tell(fd, 8192);
    if (!fork()) { /* an open file that two have */
        put("second/by a child", "");
        rest();
        _exit(0);
    }
    char heard[512];
    ssize_t got = read(other, heard, sizeof heard);
    printf("%zd %s\n", got, ((struct inotify_event *)heard)->name);
    wait(NULL);
    result("next", inotify_add_watch(other, "folder", IN_CREATE));
}

static void wait_for_others(void)
{
    int fd = inotify_init();
    result("file", inotify_add_watch(fd, "file", IN_MODIFY | IN_ATTRIB));
    result("gone", inotify_add_watch(fd, "gone", IN_MODIFY | IN_DELETE_SELF));
    result("folder", inotify_add_watch(fd, "folder", IN_MODIFY));
    result("same", inotify_add_watch(fd, "same", IN_ALL_EVENTS));
    puts("ready");
    fflush(stdout);
    struct pollfd one = {fd, POLLIN};
    while (!overflowed && poll(&one, 1, -1) > 0) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
        tell(fd, 8192);
    }
    put("folder/inside", "again");
    tell(fd, 8192);
}

int main(int count, char **words)
{
    if (count > 2) {
        rest_ms = atoi(words[2]);
        all();
    } else {
        wait_for_others();
    }
    return 0;
}
