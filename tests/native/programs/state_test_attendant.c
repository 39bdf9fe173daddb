/* Attends one of the public state tests: starts it, says when it waits, tells it to look, waits until it has ended.
 *
 *   state_test_attendant PIDFILE OUTFILE COMMAND...
 *
 * The test goes into the background and writes its process id to PIDFILE when its state is made.  Then the attendant
 * writes "ready" and reads a byte; meanwhile the family is moved.  With that byte it sends the test SIGTERM, which looks
 * at its state, and writes what it found to OUTFILE under that name as it ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_STARTED = 3, NOT_ENDED = 4, LOOK_EACH_US = 20000, LOOKS = 1500 };

static int said(const char *text) { return write(1, text, strlen(text)) == (ssize_t)strlen(text); }

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    pid_t starter = fork();
    if (starter == 0) {
        execvp(argv[3], argv + 3);
        _exit(127);
    }
    int status;
    if (waitpid(starter, &status, 0) != starter || status != 0)
        return NOT_STARTED;
    FILE *file = fopen(argv[1], "r");
    int test = 0;
    if (file == NULL || fscanf(file, "%d", &test) != 1)
        return NOT_STARTED;
    fclose(file);
    char byte;
    if (!said("ready\n") || read(0, &byte, 1) != 1 || kill(test, SIGTERM) != 0)
        return NOT_ENDED;
    for (int i = 0; i < LOOKS; i++) {
        if (access(argv[2], F_OK) == 0 || (kill(test, 0) != 0 && errno == ESRCH))
            return 0;
        usleep(LOOK_EACH_US);
    }
    return NOT_ENDED;
}
