/* Says which errors the limits give: of names, links and descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void say(const char *what, long result)
{
    printf("%s: %s\n", what, result < 0 ? strerrorname_np(errno) : "done");
}

static void descriptors(void)
{
    struct rlimit old, few = {24, 24};
    int opened[64], count = 0, ends[2];
    getrlimit(RLIMIT_NOFILE, &old);
    few.rlim_max = old.rlim_max;
    say("setrlimit", setrlimit(RLIMIT_NOFILE, &few));
    while (count < 64 && (opened[count] = open(".", O_RDONLY)) >= 0)
        count++;
    printf("%d more descriptors, up to %d: %s\n", count, count ? opened[count - 1] : -1, strerrorname_np(errno));
    say("dup", dup(0));
    say("dup2 beyond", dup2(0, 24));
    say("dup2 below", dup2(0, 23));
    say("F_DUPFD beyond", fcntl(0, F_DUPFD, 24));
    say("pipe", pipe(ends));
    close(opened[count - 1]);
    say("pipe with one free", pipe(ends));
    say("open with one free", opened[count - 1] = open("new", O_CREAT | O_RDWR, 0600));
    while (count)
        close(opened[--count]);
    setrlimit(RLIMIT_NOFILE, &old);
}

int main(void)
{
    close_range(3, ~0u, 0);
    char longest[5000], component[300];
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    memset(component, 'y', sizeof component);
    component[sizeof component - 1] = 0;
    say("open of a long path", open(longest, O_RDONLY));
    say("open of a long name", open(component, O_CREAT | O_RDWR, 0600));
    say("mkdir of a long name", mkdir(component, 0700));
    say("rename to a long name", rename("limits", component));
    symlink("b", "a");
    symlink("a", "b");
    say("open in a circle", open("a", O_RDONLY));
    say("chdir in a circle", chdir("a/x"));
    say("open of a link", open("a", O_RDONLY | O_NOFOLLOW));
    descriptors();
    return 0;
}
