/* The only words the launcher says: why a launch failed. */
#include "launcher.h"

#include "../guards.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int destination UNGUARDED("the launcher has one thread") = STDERR_FILENO;

void report_to(int status_fd)
{
    destination = status_fd;
}

void fail(const char *stage, int error, const char *detail)
{
    char line[512];
    int length = snprintf(line, sizeof line, "%s %d %s", stage, error, detail);
    if (length < 0)
        length = 0;
    if ((size_t)length > sizeof line - 2)
        length = sizeof line - 2;
    for (int i = 0; i < length; i++)
        if (line[i] == '\n')
            line[i] = ' ';
    line[length] = '\n';
    for (size_t done = 0; done < (size_t)length + 1;) {
        ssize_t count = write(destination, line + done, (size_t)length + 1 - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        done += (size_t)count;
    }
    _exit(LAUNCH_FAILED);
}
