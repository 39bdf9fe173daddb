/* Writes more than there is room for, believes what write() returns, and ends without a close that it looks at.
 *
 * "lost_write exit FILE": the file is open at the end; "over": another descriptor takes its place; "closed": close_range;
 * "child": a child does it, and what became of that is printed; "told": the close is looked at; "exec": another program runs
 * afterwards. The exit status is 0, or 3 where the program was told. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char bytes[1 << 20];

static int lose(const char *how, const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | (strcmp(how, "exec") ? 0 : O_CLOEXEC), 0644);
    if (fd < 0)
        return 4;
    if (write(fd, bytes, sizeof bytes) < 0)
        return 3;
    if (!strcmp(how, "over"))
        dup2(STDERR_FILENO, fd);
    if (!strcmp(how, "closed"))
        close_range((unsigned)fd, (unsigned)fd, 0);
    if (!strcmp(how, "told") && close(fd) < 0)
        return 3;
    if (!strcmp(how, "exec"))
        execl("/bin/true", "true", NULL);
    return 0;
}

int main(int count, char **words)
{
    int status;
    if (count != 3)
        return 2;
    signal(SIGXFSZ, SIG_IGN);
    if (strcmp(words[1], "child"))
        return lose(words[1], words[2]);
    if (fork() == 0)
        _exit(lose("exit", words[2]));
    if (wait(&status) < 0)
        return 5;
    printf("%d %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    return 0;
}
