/* Uses pseudo-terminals in each way that programs do, with rests in which it is moved, and tells what it finds. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int rest_ms;
static int up[2], down[2]; /* a child's word to its parent, and back */
static volatile sig_atomic_t caught[65];

static void rest(void) { usleep((useconds_t)rest_ms * 1000); }

static void say(const char *format, ...)
{
    va_list rest_of_them;
    va_start(rest_of_them, format);
    vprintf(format, rest_of_them);
    va_end(rest_of_them);
    fflush(stdout);
}

static void show(const char *name, const char *at, ssize_t size)
{
    say("%s: %zd", name, size < 0 ? (ssize_t)-errno : size);
    for (ssize_t i = 0; i < size; i++)
        say(at[i] < 32 || at[i] == 127 ? " %02x" : " %c", at[i]);
    say("\n");
}

enum { FIRST_MS = 1000, LATER_MS = 150 };

/* What can be read now or a moment later, without waiting for more than that. The kernel passes on what was written beside
 * who wrote it: on a busy machine the first of it comes late. */
static ssize_t soon(int fd, char *to, size_t size)
{
    struct pollfd one = {fd, POLLIN, 0};
    size_t used = 0;
    while (used < size && poll(&one, 1, used ? LATER_MS : FIRST_MS) > 0) {
        ssize_t got = read(fd, to + used, size - used);
        if (got <= 0)
            return used ? (ssize_t)used : got;
        used += (size_t)got;
    }
    return (ssize_t)used;
}

static void show_read(const char *name, int fd)
{
    char line[512];
    ssize_t got = read(fd, line, sizeof line);
    show(name, line, got);
}

static void show_soon(const char *name, int fd)
{
    char text[1024];
    errno = 0;
    ssize_t got = soon(fd, text, sizeof text);
    show(name, text, got);
}

static void type(int master, const char *text)
{
    if (write(master, text, strlen(text)) != (ssize_t)strlen(text))
        say("typing failed: %d\n", errno);
}

static void catch(int number) { caught[number]++; }

static void on(int number)
{
    struct sigaction a = {.sa_handler = catch};
    sigaction(number, &a, NULL);
}

static void tell(int fd, char word)
{
    if (write(fd, &word, 1) != 1)
        say("nobody hears %c\n", word);
}

static void hear(int fd, char word)
{
    char got = 0;
    ssize_t count;
    while ((count = read(fd, &got, 1)) < 0 && errno == EINTR)
        ;
    if (count != 1 || got != word)
        say("heard %d, not %c\n", got, word);
}

static int pair(int *slave)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) || unlockpt(master)) {
        say("no terminal: %d\n", errno);
        exit(1);
    }
    *slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    return master;
}

static void names(void)
{
    char name[64], path[64];
    struct stat by_name, by_number;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), number = -1;
    ioctl(master, TIOCGPTN, &number);
    snprintf(name, sizeof name, "/dev/pts/%d", number);
    int locked = open(name, O_RDWR | O_NOCTTY);
    say("locked: %d %d\n", locked, errno);
    rest();
    locked = open(name, O_RDWR | O_NOCTTY);
    say("locked still: %d %d, %s\n", locked, errno, strcmp(ptsname(master), name) ? "another name" : "its name");
    unlockpt(master);
    int slave = open(name, O_RDWR | O_NOCTTY), peer = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
    rest();
    say("open: %d %d %d\n", slave >= 0, peer >= 0, isatty(slave) && isatty(peer) && isatty(master));
    say("name: %d\n", ttyname_r(slave, path, sizeof path) || strcmp(path, name));
    int failed = stat(name, &by_name) | fstat(slave, &by_number);
    say("stat: %d %d\n", failed, by_name.st_ino == by_number.st_ino);
    say("flags: %x %x\n", fcntl(slave, F_GETFL), fcntl(master, F_GETFD));
    int group = tcgetpgrp(slave);
    say("asked: %d %d\n", group, errno);
    int none = open("/dev/tty", O_RDWR);
    say("no terminal of its own: %d %d\n", none, errno);
    close(slave);
    close(peer);
    show_soon("after the last", master);
    rest();
    show_soon("and later", master);
    close(master);
}

static void lines(void)
{
    int slave, master = pair(&slave), waiting = -1;
    struct termios before, after;
    tcgetattr(slave, &before);
    type(master, "hello\nwor");
    rest();
    show_read("first line", slave);
    type(master, "ld\n");
    rest();
    show_read("second line", slave);
    show_soon("echo", master);
    type(master, "abx\177c\n");
    show_read("edited", slave);
    type(master, "gone\025kept\n");
    show_read("killed", slave);
    type(master, "\004part\004next\n");
    rest();
    show_read("end", slave);
    show_read("part", slave);
    show_read("next", slave);
    show_soon("echo of all", master);
    type(master, "one\ntwo\nthree");
    show_soon("echo of three", master);
    rest();
    ioctl(slave, FIONREAD, &waiting);
    say("waiting: %d\n", waiting);
    show_read("one", slave);
    type(master, "\177\177\177\177\177four\n");
    show_read("two", slave);
    rest();
    show_read("four", slave);
    show_soon("echo of four", master);
    if (write(slave, "a\nb", 3) == 3)
        rest();
    show_soon("written", master);
    tcgetattr(slave, &after);
    say("setting: %d\n", memcmp(&before, &after, sizeof before));
    type(master, "lost\n");
    show_soon("echo of lost", master);
    tcflush(slave, TCIFLUSH);
    struct pollfd one = {slave, POLLIN, 0};
    say("flushed: %d\n", poll(&one, 1, 50));
    close(slave);
    close(master);
}

static void raw(void)
{
    int slave, master = pair(&slave);
    struct termios now;
    struct winsize size = {24, 80, 1, 2};
    char all[255], found[512];
    tcgetattr(slave, &now);
    cfmakeraw(&now);
    tcsetattr(slave, TCSANOW, &now);
    ioctl(slave, TIOCSWINSZ, &size);
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    if (write(master, all, sizeof all) != sizeof all || write(slave, all, sizeof all) != sizeof all)
        say("cannot write\n");
    rest();
    ssize_t got = soon(slave, found, sizeof found);
    say("in: %zd %d\n", got, memcmp(all, found, sizeof all));
    got = soon(master, found, sizeof found);
    say("out: %zd %d\n", got, memcmp(all, found, sizeof all));
    memset(&size, 0, sizeof size);
    ioctl(master, TIOCGWINSZ, &size);
    say("size: %d %d %d %d\n", size.ws_row, size.ws_col, size.ws_xpixel, size.ws_ypixel);
    now.c_cc[VMIN] = 0;
    now.c_cc[VTIME] = 0;
    tcsetattr(slave, TCSANOW, &now);
    show_read("at once", slave);
    now.c_cc[VTIME] = 2;
    tcsetattr(slave, TCSANOW, &now);
    rest();
    show_read("in time", slave);
    type(master, "x");
    show_read("before it", slave);
    fcntl(slave, F_SETFL, O_NONBLOCK);
    show_read("without waiting", slave);
    int on = 1;
    ioctl(master, TIOCPKT, &on);
    if (write(slave, "packet", 6) != 6)
        say("cannot write\n");
    rest();
    show_soon("packet", master);
    on = 0;
    ioctl(master, TIOCGPKT, &on);
    say("packets: %d\n", on);
    on = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = 7}, out = {0};
    epoll_ctl(on, EPOLL_CTL_ADD, slave, &event);
    rest();
    type(master, "y");
    int ready = epoll_wait(on, &out, 1, 1000);
    say("epoll: %d %d\n", ready, out.data.u32);
    show_read("y", slave);
    close(on);
    close(slave);
    close(master);
}

/* A child in a session of its own, whose terminal SLAVE is; 0 in the child. */
static pid_t leader(int master, int slave)
{
    if (pipe(up) || pipe(down))
        exit(1);
    pid_t pid = fork();
    if (pid)
        return pid;
    close(master);
    setsid();
    say("taken: %d\n", ioctl(slave, TIOCSCTTY, 0));
    return 0;
}

static void end(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    say("end: %x\n", status);
    for (int i = 0; i < 2; i++) {
        close(up[i]);
        close(down[i]);
    }
}

/* The kernel passes an echo on beside us, and the next signal key would throw away what is still on its way. */
static void await_echo(int master, int bytes)
{
    int there = 0;
    for (int look = 0; look < 5000 && there < bytes; look++) {
        ioctl(master, FIONREAD, &there);
        usleep(1000);
    }
}

static void typed_signals(void)
{
    int slave, master = pair(&slave);
    struct winsize size = {30, 100, 0, 0};
    static const int numbers[] = {SIGINT, SIGQUIT, SIGTSTP, SIGWINCH};
    pid_t pid = leader(master, slave);
    if (!pid) {
        for (int i = 0; i < 4; i++)
            on(numbers[i]);
        int own = open("/dev/tty", O_RDWR);
        say("leads: %d %d %d\n", own >= 0, tcgetpgrp(own) == getpid(), tcgetsid(slave) == getpid());
        for (int i = 0; i < 4; i++) {
            sigset_t blocked, none;
            sigemptyset(&none);
            sigfillset(&blocked);
            sigprocmask(SIG_SETMASK, &blocked, NULL);
            tell(up[1], 'a');
            while (!caught[numbers[i]])
                sigsuspend(&none);
            sigprocmask(SIG_SETMASK, &none, NULL);
            say("caught %d: %d\n", numbers[i], caught[numbers[i]]);
        }
        ioctl(own, TIOCGWINSZ, &size);
        say("size: %d %d\n", size.ws_row, size.ws_col);
        tell(up[1], 'b');
        show_read("not a signal", slave);
        say("caught still: %d\n", caught[SIGINT]);
        exit(5);
    }
    close(slave);
    static const char *const keys[] = {"\003", "\034", "\032"};
    for (int i = 0; i < 3; i++) {
        hear(up[0], 'a');
        rest();
        type(master, keys[i]);
        await_echo(master, 2 * (i + 1));
    }
    hear(up[0], 'a');
    ioctl(master, TIOCSWINSZ, &size);
    hear(up[0], 'b');
    say("foreground: %d\n", tcgetpgrp(master) == pid);
    rest();
    type(master, "\026\003\n");
    end(pid);
    show_soon("all of it", master);
    close(master);
}

static void jobs(void)
{
    int slave, master = pair(&slave), status = 0;
    pid_t pid = leader(master, slave);
    if (!pid) {
        signal(SIGTTOU, SIG_IGN);
        pid_t job = fork();
        if (!job) {
            setpgid(0, 0);
            signal(SIGTTOU, SIG_DFL);
            hear(down[0], 'r');
            show_read("the job", slave);
            exit(7);
        }
        setpgid(job, job);
        tell(down[1], 'r');
        waitpid(job, &status, WUNTRACED);
        say("stopped: %d\n", WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
        rest();
        say("to the front: %d\n", tcsetpgrp(slave, job));
        say("there: %d\n", tcgetpgrp(slave) == job);
        kill(-job, SIGCONT);
        tell(up[1], 't');
        waitpid(job, &status, WUNTRACED);
        say("ended: %x\n", status);
        rest();
        say("back: %d\n", tcsetpgrp(slave, getpgrp()));
        errno = 0;
        int stranger = tcsetpgrp(slave, 999999);
        say("no such group: %d %d\n", stranger, errno);
        if (!(job = fork())) {
            setpgid(0, 0);
            signal(SIGTTOU, SIG_DFL);
            tcsetpgrp(slave, getpgrp());
            exit(8);
        }
        setpgid(job, job);
        waitpid(job, &status, WUNTRACED);
        say("stopped: %d\n", WIFSTOPPED(status) ? WSTOPSIG(status) : -1);
        kill(job, SIGKILL);
        waitpid(job, &status, 0);
        say("killed: %x\n", status);
        exit(0);
    }
    hear(up[0], 't');
    rest();
    type(master, "for the job\n");
    end(pid);
    close(slave);
    close(master);
}

static void hang_up(void)
{
    int slave, master = pair(&slave), status;
    pid_t pid = leader(master, slave);
    if (!pid) {
        on(SIGHUP);
        on(SIGCONT);
        sigset_t blocked, none;
        sigemptyset(&none);
        sigfillset(&blocked);
        sigprocmask(SIG_SETMASK, &blocked, NULL);
        tell(up[1], 'h');
        while (!caught[SIGHUP])
            sigsuspend(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        rest();
        say("hung up: %d %d\n", caught[SIGHUP], caught[SIGCONT]);
        show_read("nothing more", slave);
        errno = 0;
        ssize_t put = write(slave, "x", 1);
        say("written: %zd %d\n", put, errno);
        int own = open("/dev/tty", O_RDWR);
        say("none left: %d %d\n", own, errno);
        exit(0);
    }
    close(slave);
    hear(up[0], 'h');
    rest();
    close(master);
    end(pid);

    master = pair(&slave);
    if (!(pid = leader(master, slave))) {
        pid_t job = fork();
        if (!job) {
            hear(down[0], 'j');
            tell(up[1], 'j');
            for (;;)
                pause();
        }
        tell(down[1], 'j');
        hear(up[0], 'j');
        exit(0);
    }
    waitpid(pid, &status, 0);
    close(slave);
    for (int i = 0; i < 2; i++) {
        close(up[!i]);
        close(down[!i]);
    }
    show_soon("all have left", master);
    close(master);
}

int main(int count, char **words)
{
    rest_ms = count > 1 ? atoi(words[1]) : 0;
    names();
    lines();
    raw();
    typed_signals();
    jobs();
    hang_up();
    return 0;
}
