/* What a caller of posix_spawn and vfork learns of its child: whether the program exists, and what the child stored.  With a number: so
 * many times over. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void spawned(const char *what, const char *program, const posix_spawn_file_actions_t *actions)
{
    char *words[] = {(char *)program, NULL};
    pid_t child = 0;
    int status = 0, failed = posix_spawn(&child, program, actions, NULL, words, environ);
    if (!failed)
        waitpid(child, &status, 0);
    printf("%s: %s, %d\n", what, strerror(failed), status);
    fflush(stdout);
}

/* What the child does with VALUE, and how it ends. */
static void forked(const char *what, int (*act)(volatile int *))
{
    volatile int value = 1, beside[8] = {0};
    int status = 0;
    pid_t child = vfork();
    if (!child) {
        beside[3] = 5;
        _exit(act(&value));
    }
    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) /* nobody can ask it what it had stored */
        printf("%s: signal %d\n", what, WTERMSIG(status));
    else
        printf("%s: %d %d, %#x\n", what, value, beside[3], status);
    fflush(stdout);
}

static int stores(volatile int *value)
{
    *value = 7;
    return 3;
}

static int executes(volatile int *value)
{
    *value = 8;
    execl("/bin/true", "true", NULL);
    return 9;
}

static int finds_nothing(volatile int *value)
{
    execl("/nonexistent/program", "program", NULL);
    *value = errno;
    return 127;
}

static int is_killed(volatile int *value)
{
    *value = 10;
    raise(SIGKILL);
    return 0;
}

static int has_a_child(volatile int *value)
{
    pid_t child = fork();
    if (!child) {
        *value = 99; /* its own */
        _exit(0);
    }
    waitpid(child, NULL, 0);
    *value += 1;
    return 0;
}

static volatile int going = 1;

static void *counts(void *at)
{
    volatile unsigned *mine = at;
    while (going)
        __atomic_add_fetch(mine, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* Another thread's stores beside a child's are not undone. */
static void beside_a_thread(void)
{
    unsigned count = 0;
    volatile unsigned last = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, counts, &count);
    volatile int fell = 0;
    going = 1;
    for (volatile int i = 0; i < 50; i++) {
        pid_t child = vfork();
        if (!child)
            _exit(0);
        waitpid(child, NULL, 0);
        unsigned now = __atomic_load_n(&count, __ATOMIC_SEQ_CST);
        fell += now < last;
        last = now;
    }
    going = 0;
    pthread_join(thread, NULL);
    printf("a thread's counter fell %d times\n", fell);
}

static void once(void)
{
    posix_spawn_file_actions_t actions;
    spawned("a program", "/bin/true", NULL);
    spawned("one that fails", "/bin/false", NULL);
    spawned("none", "/nonexistent/program", NULL);
    spawned("a folder", "/tmp", NULL);
    spawned("no program", "/etc/passwd", NULL);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 5, "/nonexistent/file", O_RDONLY, 0);
    spawned("a file that is not there", "/bin/true", &actions);
    posix_spawn_file_actions_destroy(&actions);
    forked("stored", stores);
    forked("executed", executes);
    forked("found nothing", finds_nothing);
    forked("had a child", has_a_child);
    forked("was killed", is_killed);
    beside_a_thread();
}

int main(int argc, char **argv)
{
    for (int left = argc > 1 ? atoi(argv[1]) : 1; left > 0; left--)
        once();
    return 0;
}
