/* A job that stands at its first instruction until something beside it lets it go.
 *
 * The kernel stops a program there for who traces it, and for nobody else.  So a process of ours traces the job over its
 * exec, leaves it a stop signal, which it takes before it executes anything, and ends.  It is a grandchild: the program
 * has no child that it has not made.  Until the program is executed the job is closed in already, so that it may as well
 * be traced.
 */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OVER_EXEC = PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL };

/* Both ends of what one process tells the other: 0, or an error. */
struct word {
    int from, to;
};

static struct word new_word(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        fail("stop", errno, "pipe");
    return (struct word){ends[0], ends[1]};
}

static void say(int to, int32_t error)
{
    if (write(to, &error, sizeof error) != sizeof error)
        _exit(LAUNCH_FAILED);
}

static int32_t hear(int from)
{
    int32_t error = 0;
    return read(from, &error, sizeof error) == sizeof error ? error : ESRCH;
}

static void trace_over_exec(pid_t job, struct word go, struct word done) __attribute__((noreturn));

static void trace_over_exec(pid_t job, struct word go, struct word done)
{
    int status;
    close(go.to);
    close(done.from);
    say(done.to, getpid());
    if (hear(go.from))
        _exit(LAUNCH_FAILED);
    long seized = ptrace(PTRACE_SEIZE, job, NULL, (void *)(uintptr_t)OVER_EXEC);
    say(done.to, seized < 0 ? errno : 0);
    while (seized == 0 && waitpid(job, &status, __WALL) == job && WIFSTOPPED(status)) {
        if (status >> 16 == PTRACE_EVENT_EXEC) {
            kill(job, SIGSTOP);
            ptrace(PTRACE_DETACH, job, NULL, NULL);
            break;
        }
        ptrace(PTRACE_CONT, job, NULL, (void *)(uintptr_t)(status >> 16 ? 0 : WSTOPSIG(status)));
    }
    _exit(0);
}

void prepare_stop(const struct plan *plan, struct stop *stop)
{
    if (!plan->stop_at_exec)
        return;
    struct word go = new_word(), done = new_word();
    pid_t job = getpid(), between = fork();
    if (between < 0)
        fail("stop", errno, "fork");
    if (between == 0) {
        pid_t tracer = fork();
        if (tracer == 0)
            trace_over_exec(job, go, done);
        _exit(tracer < 0 ? LAUNCH_FAILED : 0);
    }
    int status;
    if (waitpid(between, &status, 0) != between || status != 0)
        fail("stop", EAGAIN, "fork");
    close(go.from);
    close(done.to);
    stop->go = go.to;
    stop->done = done.from;
    stop->tracer = hear(done.from);
}

/* The filter is closed.  Yama, where it is there, wants to be told who may trace. */
void allow_stop(const struct plan *plan, const struct stop *stop)
{
    if (!plan->stop_at_exec)
        return;
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    prctl(PR_SET_PTRACER, stop->tracer, 0, 0, 0);
    say(stop->go, 0);
    int32_t error = hear(stop->done);
    if (error)
        fail("stop", error, "the kernel lets the job not be traced to its first instruction (suspend_job_at_exec)");
}
