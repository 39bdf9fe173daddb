/* Gives names to files that it has open, with rests in which it is moved, and tells what it gets. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int rest_ms;

static void rest(void) { usleep((useconds_t)rest_ms * 1000); }

static void say(const char *what, long result)
{
    printf("%s: %ld %s\n", what, result, result < 0 ? strerrorname_np(errno) : "");
    fflush(stdout);
}

static int give(int fd, const char *name)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return linkat(AT_FDCWD, link, AT_FDCWD, name, AT_SYMLINK_FOLLOW);
}

static void show(int fd, const char *name)
{
    struct stat open_one, named;
    char got[32] = "";
    const int other = open(name, O_RDONLY);
    printf("%s: %d %d", name, fstat(fd, &open_one), stat(name, &named));
    printf(" %ld %d %o %zd", (long)open_one.st_nlink, open_one.st_ino == named.st_ino, named.st_mode, read(other, got, sizeof got - 1));
    printf(" %s\n", got);
    fflush(stdout);
    close(other);
}

int main(int argc, char **argv)
{
    int ends[2];
    char link[64];
    rest_ms = argc > 1 ? atoi(argv[1]) : 1;
    int first = open(".", O_TMPFILE | O_RDWR, 0640), second = open(".", O_TMPFILE | O_WRONLY, 0600);
    int unnamed = open(".", O_TMPFILE | O_EXCL | O_RDWR, 0600), here = open(".", O_RDONLY | O_DIRECTORY);
    say("opened", first >= 0 && second >= 0 && unnamed >= 0 && here >= 0);
    say("written", write(first, "one", 3) + write(second, "other", 5));
    rest();
    say("named", give(first, "first"));
    show(first, "first");
    rest();
    say("again", give(first, "first"));
    say("written", write(first, " more", 5));
    show(first, "first");
    say("by number", linkat(second, "", here, "second", AT_EMPTY_PATH));
    show(second, "second");
    rest();
    say("a second name", give(second, "third"));
    show(second, "third");
    say("never to be named", give(unnamed, "unnamed"));
    int gone = open("gone", O_RDWR | O_CREAT, 0600);
    say("removed", unlink("gone"));
    say("of a removed one", give(gone, "back"));
    say("of a directory", give(here, "there"));
    if (pipe(ends))
        return 1;
    say("of a pipe", give(ends[0], "pipe"));
    say("of nothing", give(99, "none"));
    say("no number", linkat(99, "", AT_FDCWD, "none", AT_EMPTY_PATH));
    say("no name", linkat(first, "", AT_FDCWD, "none", 0));
    say("no flag", linkat(first, "", AT_FDCWD, "none", 1));
    say("no address", linkat(AT_FDCWD, (char *)8, AT_FDCWD, "none", AT_SYMLINK_FOLLOW));
    say("no place", give(first, "none/name"));
    snprintf(link, sizeof link, "/proc/self/fd/%d", first);
    say("the link itself", linkat(AT_FDCWD, link, AT_FDCWD, "none", 0));
    say("by its process's number", (snprintf(link, sizeof link, "/proc/%d/fd/%d", getpid(), first),
                                    linkat(AT_FDCWD, link, AT_FDCWD, "fourth", AT_SYMLINK_FOLLOW)));
    rest();
    show(first, "fourth");
    say("symbolic", symlink("first", "sign"));
    say("followed", linkat(AT_FDCWD, "sign", here, "fifth", AT_SYMLINK_FOLLOW));
    show(first, "fifth");
    rest();
    say("written", write(first, "!", 1));
    show(first, "fifth");
    return 0;
}
