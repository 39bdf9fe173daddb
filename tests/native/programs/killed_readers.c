/* Children that read about themselves are killed at any moment, and are waited for only after others have read, too. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int read_once(void)
{
    char text[512];
    const int fd = open("/proc/self/stat", O_RDONLY);
    const ssize_t got = read(fd, text, sizeof text);
    close(fd);
    return got > 0;
}

int main(int count, char **words)
{
    const int rounds = count > 1 ? atoi(words[1]) : 100;
    int good = 0;
    for (int round = 0; round < rounds; round++) {
        int ready[2], status;
        char byte;
        if (pipe(ready) < 0)
            return 1;
        const pid_t child = fork();
        if (child == 0) {
            write(ready[1], "", 1);
            for (;;)
                read_once();
        }
        read(ready[0], &byte, 1);
        for (int more = round % 7; more; more--)
            read_once();
        kill(child, SIGKILL);
        good += read_once() && read_once();
        waitpid(child, &status, 0);
        close(ready[0]);
        close(ready[1]);
    }
    printf("%d of %d\n", good, rounds);
    return 0;
}
