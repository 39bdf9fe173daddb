/* See spawn.h. */
#define _GNU_SOURCE
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 32768, NOT_STARTED = 127, MASK_BYTES = 8 };

struct start {
    char **words, **variables;
    const int *standard, *kept;
    int kept_count, error;
};

/* In the new process, on a stack of its own but in the caller's memory: nothing here but system calls. */
static int become(void *argument)
{
    struct start *start = argument;
    int moved[3], ready = 1;
    for (int i = 0; i < 3 && ready; i++) {
        moved[i] = start->standard[i] > 2 ? start->standard[i] : fcntl(start->standard[i], F_DUPFD_CLOEXEC, 3);
        ready = moved[i] >= 0;
    }
    for (int i = 0; i < 3 && ready; i++)
        ready = dup2(moved[i], i) == i;
    for (int i = 0; i < start->kept_count && ready; i++)
        ready = fcntl(start->kept[i], F_SETFD, 0) == 0;
    if (ready)
        execve(start->words[0], start->words, start->variables);
    start->error = errno;
    _exit(NOT_STARTED);
}

/* The words as a list that ends with a null; NULL: they are others than was said. */
static char **as_lists(const char *text, size_t size, size_t words, size_t variables)
{
    char **list = calloc(words + variables + 2, sizeof *list);
    size_t count = 0;
    for (size_t at = 0; list && at < size; at += strlen(text + at) + 1) {
        if (count == words + variables)
            break;
        list[count + (count >= words)] = (char *)text + at;
        count++;
        if (count == words + variables && at + strlen(text + at) + 1 == size)
            return list;
    }
    free(list);
    return NULL;
}

int spawn_program(const char *text, size_t size, int words, int variables, const int *standard, const int *kept,
                  int kept_count, int own_pids)
{
    const unsigned long every = ~0ul;
    unsigned long before;
    char stack[STACK_BYTES] __attribute__((aligned(16)));
    if (words < 1 || variables < 0 || size == 0 || text[size - 1] != 0)
        return -EINVAL;
    errno = EINVAL;
    char **lists = as_lists(text, size, (size_t)words, (size_t)variables);
    if (!lists)
        return -errno;
    struct start start = {lists, lists + words + 1, standard, kept, kept_count, 0};
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &every, &before, MASK_BYTES);
    int pid = clone(become, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD | (own_pids ? CLONE_NEWPID : 0),
                    &start);
    int error = pid < 0 ? errno : start.error;
    if (pid > 0 && error)
        syscall(SYS_wait4, pid, NULL, 0, NULL);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, MASK_BYTES);
    free(lists);
    return error ? -error : pid;
}
