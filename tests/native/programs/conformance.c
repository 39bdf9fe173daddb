/* Every call of the table with good and bad arguments: one line per case, the same wherever it runs.
 *
 * conformance_cases.h is made from syscalls.tbl.  For each call there is one list of good arguments; each case
 * replaces one of them by something else.  The state is made anew for each case, so cases do not depend on each
 * other. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { NONE, NUMBER, FD, AT, PATH, IN, OUT };
struct call_case {
    const char *name;
    long number;
    enum kind kinds[6];
};
static const struct call_case calls[] = {
#include "conformance_cases.h"
};

static char *low, *edge, *readonly; /* good memory; its last bytes before a hole; memory that cannot be written */
static char longest[6000], component[400], folder[4096];

struct value {
    const char *what;
    long value;
};

static long good(enum kind kind, int position)
{
    switch (kind) {
    case FD: return 20;
    case AT: return AT_FDCWD;
    case PATH: return (long)(position > 1 ? "other" : "file");
    case IN:
    case OUT: return (long)low + position * 4096;
    default: return 0;
    }
}

/* What a case may put in the place of a good argument. */
static int bad(enum kind kind, struct value *to)
{
    static const struct value fds[] = {{"-1", -1}, {"closed", 99}, {"huge", 1 << 20}, {"directory", 21},
                                       {"pipe to read", 22}, {"pipe to write", 23}, {"only to read", 24},
                                       {"named only", 25}, {"socket", 26}, {"only to write", 27}};
    static const struct value numbers[] = {{"-1", -1}, {"1", 1}, {"2", 2}, {"4096", 4096}, {"huge", 1l << 62},
                                           {"negative", -(1l << 62)}, {"0x1000", 0x1000}, {"0x100", 0x100}};
    struct value paths[] = {{"null", 0}, {"unmapped", 8}, {"longest", (long)longest}, {"component", (long)component},
                            {"empty", (long)""}, {"missing", (long)"none"}, {"below a file", (long)"file/x"},
                            {"below nothing", (long)"none/x"}, {"loop", (long)"loop"}, {"below a loop", (long)"loop/x"},
                            {"directory", (long)"dir"}, {"link to a directory", (long)"link"},
                            {"full directory", (long)"full"}, {"dangling", (long)"dangling"},
                            {"closed directory", (long)"closed/x"}, {"absolute", (long)"/no/such/place"},
                            {"dot", (long)"."}, {"slash at the end", (long)"file/"}, {"up", (long)"dir/../file"},
                            {"runs into a hole", (long)edge + 4}};
    struct value inputs[] = {{"null", 0}, {"unmapped", 8}, {"kernel", -4096}, {"edge", (long)edge + 6}};
    struct value outputs[] = {{"null", 0}, {"unmapped", 8}, {"kernel", -4096}, {"edge", (long)edge + 6},
                              {"cannot be written", (long)readonly}};
#define GIVE(list) memcpy(to, list, sizeof list); return sizeof list / sizeof *list
    switch (kind) {
    case FD: GIVE(fds);
    case AT: {
        static const struct value ats[] = {{"-1", -1}, {"closed", 99}, {"a file", 20}, {"directory", 21}, {"pipe", 22}};
        GIVE(ats);
    }
    case NUMBER: GIVE(numbers);
    case PATH: GIVE(paths);
    case IN: GIVE(inputs);
    case OUT: GIVE(outputs);
    default: return 0;
    }
}

static void put_at(int fd, int place)
{
    dup2(fd, place);
    close(fd);
}

static void empty(const char *path)
{
    DIR *folder = opendir(path);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        char name[2000];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (unlink(name)) {
            chmod(name, 0700);
            empty(name);
            rmdir(name);
        }
    }
    if (folder)
        closedir(folder);
}

/* The same files and descriptors for each case. */
static void prepare(void)
{
    int ends[2], pair[2];
    fsync(20); /* a write that did not wait may have something to tell, and this program wants no more of it */
    fsync(27);
    close_range(3, 200, 0);
    umask(022);
    chmod(folder, 0777); /* its owner may have been told to close it */
    empty(".");
    put_at(open("file", O_RDWR | O_CREAT | O_TRUNC, 0644), 20);
    if (write(20, "0123456789abcdef", 16) != 16)
        perror("prepare"), abort();
    lseek(20, 4, SEEK_SET);
    mkdir("dir", 0755); mkdir("full", 0755); mkdir("closed", 0);
    close(open("full/x", O_CREAT | O_WRONLY, 0600));
    symlink("loop", "loop"); symlink("dir", "link"); symlink("nothing", "dangling");
    put_at(open("dir", O_RDONLY | O_DIRECTORY), 21);
    pipe2(ends, O_NONBLOCK);
    put_at(ends[0], 22);
    put_at(ends[1], 23);
    put_at(open("file", O_RDONLY), 24);
    put_at(open("file", O_PATH), 25);
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair);
    put_at(pair[0], 26);
    put_at(open("file", O_WRONLY), 27);
    put_at(pair[1], 28);
    memset(low, 0, 8 * 4096);
    memset(edge, 'e', 8);
    for (int i = 0; i < 7; i++) /* a plausible content of any structure; a name for what is set and read */
        strcpy(low + i * 4096, "user.x");
}

static void forget(int number) { (void)number; }

static void one(const struct call_case *c, const char *what, int place, const long a[6])
{
    prepare();
    errno = 0;
    long result = syscall(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result == -1)
        printf("%s: argument %d %s: %s\n", c->name, place, what, strerrorname_np(errno));
    else
        printf("%s: argument %d %s: %ld\n", c->name, place, what, result);
}

static void all_cases(const struct call_case *c)
{
    long base[6];
    for (int i = 0; i < 6; i++) {
        base[i] = good(c->kinds[i], i);
        if (c->kinds[i] == NUMBER && i && (c->kinds[i - 1] == IN || c->kinds[i - 1] == OUT))
            base[i] = 16;
    }
    one(c, "all good", 0, base);
    for (int i = 0; i < 6 && c->kinds[i] != NONE; i++) {
        struct value values[32];
        int count = bad(c->kinds[i], values);
        for (int j = 0; j < count; j++) {
            long a[6];
            memcpy(a, base, sizeof a);
            a[i] = values[j].value;
            one(c, values[j].what, i + 1, a);
        }
    }
}

int main(int count, char **words)
{
    for (int number = 1; number <= 64; number++)
        if (number != SIGSEGV && number != SIGABRT && number != SIGKILL && number != SIGSTOP)
            signal(number, forget);
    memset(longest, 'a', sizeof longest - 1);
    for (int i = 100; i < 5900; i += 100)
        longest[i] = '/';
    memset(component, 'c', 300);
    if (!getcwd(folder, sizeof folder))
        perror("conformance"), abort();
    readonly = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    low = mmap(0, 9 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(low + 8 * 4096, 4096, PROT_NONE); /* stays reserved: whatever is mapped later does not fill the hole */
    edge = low + 8 * 4096 - 8;
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (count < 2 || !strcmp(words[1], calls[i].name)) {
            all_cases(&calls[i]);
            fflush(stdout);
        }
    prepare();
    return 0;
}
