/* Changes its files in every way there is, in steps that depend on what it finds there. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void put(const char *name, int flags, long at, const char *text)
{
    int fd = open(name, flags, 0644);
    if (at >= 0)
        lseek(fd, at, SEEK_SET);
    if (write(fd, text, strlen(text)) < 0)
        exit(1);
    close(fd);
}

static long size(const char *name)
{
    struct stat st;
    return stat(name, &st) < 0 ? -1 : st.st_size;
}

int main(int count, char **words)
{
    int steps = count > 1 ? atoi(words[1]) : 60;
    char text[64], name[64];
    double sum = 0;
    put("log", O_WRONLY | O_CREAT | O_APPEND, -1, "began\n");
    for (int i = 0; i < steps; i++) {
        for (int j = 0; j < 4000000; j++)
            sum += j % 7 * 0.5;
        snprintf(text, sizeof text, "%d %ld %ld;", i, size("log"), size("table"));
        put("log", O_WRONLY | O_CREAT | O_APPEND, -1, text);
        put("table", O_RDWR | O_CREAT, i * 37 % 1000, text);
        snprintf(name, sizeof name, "new.%d", i % 4);
        if (size(name) >= 0)
            unlink(name);
        else
            put(name, O_WRONLY | O_CREAT | O_EXCL, -1, text);
        if (i % 5 == 0)
            put("fresh", O_WRONLY | O_CREAT | O_TRUNC, -1, text);
        if (i % 7 == 0 && truncate("table", size("table") / 2))
            return 2;
        if (i % 6 == 0)
            rename("fresh", i % 12 ? "one" : "two");
        if (i % 3 == 0)
            mkdir("dir", 0755) < 0 ? rmdir("dir") : 0;
        if (i % 4 == 0)
            symlink(text, "link") < 0 ? unlink("link") : 0;
        chmod("table", i % 2 ? 0600 : 0644);
    }
    printf("%ld %ld %.0f\n", size("log"), size("table"), sum);
    return 0;
}
