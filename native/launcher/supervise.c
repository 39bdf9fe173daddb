/* A pid namespace needs a first process, and the starter needs a child that dies as the job died.
 *
 *   starter host ── launcher (relay) ── first process of the namespace ── job
 *
 * The relay and the first process keep every signal blocked and take them one at a time: SIGCHLD means
 * "a process ended", any other signal goes one step down.  The first process reaps orphans; when the job
 * itself ends it tells the relay how through a pipe and exits, and the kernel then kills whatever is left
 * in the namespace.  The relay ends in the same way as the job did.
 *
 * A starter that has root's rights makes the namespace itself, and the launcher is its first process: no relay then.
 */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The kernel's own calls: the C library keeps signals 32 and 33 out of every mask, and 33 asks a program of
 * the standard universe for a checkpoint. */
static const unsigned long every_signal = ~0ul;

static void block_every_signal(void)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &every_signal, NULL, sizeof every_signal);
}

static int take_signal(void)
{
    return (int)syscall(SYS_rt_sigtimedwait, &every_signal, NULL, NULL, sizeof every_signal);
}

/* Waits until CHILD ends, reaping everybody else; signals that arrive meanwhile are passed to it. */
static int tend(pid_t child)
{
    for (;;) {
        int status, number = take_signal();
        if (number < 0)
            continue;
        if (number != SIGCHLD) {
            kill(child, number);
            continue;
        }
        pid_t ended;
        while ((ended = waitpid(-1, &status, WNOHANG)) > 0)
            if (ended == child)
                return status;
    }
}

static void end_like(int status) __attribute__((noreturn));

static void end_like(int status)
{
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        struct rlimit none = {0, 0};
        sigset_t one;
        setrlimit(RLIMIT_CORE, &none); /* the job's core is the job's, not ours */
        signal(number, SIG_DFL);
        sigemptyset(&one);
        sigaddset(&one, number);
        kill(getpid(), number);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        _exit(128 + number);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : LAUNCH_FAILED);
}

/* The descriptors of the job are not ours to hold: a reader of its output waits for end of file.  Rights that were lent
 * are not needed any more. */
static void let_go(const struct plan *plan, int keep)
{
    drop_rights();
    if (plan->status_fd >= 0)
        close(plan->status_fd);
    for (size_t i = 0; i < plan->kept_count; i++)
        close(plan->kept[i]);
    for (size_t i = 0; i < plan->checked_count; i++)
        if (plan->checked[i].fd >= 0)
            close(plan->checked[i].fd);
    for (int fd = 0; fd <= 2; fd++)
        if (fd != keep)
            close(fd);
}

static void relay(const struct plan *plan, pid_t first, int verdict) __attribute__((noreturn));

static void relay(const struct plan *plan, pid_t first, int verdict)
{
    int status, told;
    let_go(plan, verdict);
    status = tend(first);
    if (verdict >= 0 && read(verdict, &told, sizeof told) == sizeof told)
        status = told;
    if (plan->end_fd >= 0 && write(plan->end_fd, &status, sizeof status) != sizeof status)
        _exit(LAUNCH_FAILED);
    end_like(status);
}

void fork_into_joined(const struct plan *plan)
{
    block_every_signal();
    signal(SIGCHLD, SIG_DFL);
    pid_t job = fork();
    if (job < 0)
        fail("join", errno, "fork");
    if (job > 0)
        relay(plan, job, -1);
}

/* Nobody reads what a descriptor has to say any more. */
static bool unheard(int fd)
{
    struct pollfd reader = {.fd = fd};
    return poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR);
}

/* The job has ended; a tool beside it, which has joined the namespace, may still have something to write. */
static void linger(const struct plan *plan)
{
    struct pollfd held = {.fd = plan->linger_fd};
    if (plan->linger_fd >= 0)
        poll(&held, 1, plan->linger_s * 1000);
}

static void first_process(const struct plan *plan, pid_t job, int verdict) __attribute__((noreturn));

/* VERDICT: where it says how the job ended; -1: in its own exit alone. */
static void first_process(const struct plan *plan, pid_t job, int verdict)
{
    int status;
    let_go(plan, verdict);
    if (plan->end_fd >= 0 && plan->end_fd != verdict)
        close(plan->end_fd);
    status = tend(job);
    linger(plan);
    if (verdict >= 0)
        _exit(write(verdict, &status, sizeof status) == sizeof status ? 0 : LAUNCH_FAILED);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* Who started the launcher made the namespace and is told over the end descriptor: there is no relay.  A number of the
 * parent's means nothing in here; that it lives is seen by its end of the status pipe. */
void fork_from_first(const struct plan *plan)
{
    block_every_signal();
    signal(SIGCHLD, SIG_DFL);
    if (getpid() != 1)
        fail("pid-namespace", EINVAL, "--first is not the first");
    if (plan->death_signal && prctl(PR_SET_PDEATHSIG, plan->death_signal) < 0)
        fail("death-signal", errno, "prctl");
    if (unheard(plan->status_fd))
        fail("death-signal", ESRCH, "the parent is gone");
    arrange_mounts(plan);
    pid_t job = fork();
    if (job < 0)
        fail("pid-namespace", errno, "fork");
    if (job > 0)
        first_process(plan, job, plan->end_fd);
}

void fork_into_pid_namespace(const struct plan *plan)
{
    int verdict[2];
    block_every_signal();
    signal(SIGCHLD, SIG_DFL); /* an inherited "ignore" would reap behind our back */
    if (pipe2(verdict, O_CLOEXEC) < 0)
        fail("pid-namespace", errno, "pipe");
    pid_t first = fork();
    if (first < 0)
        fail("pid-namespace", errno, "fork");
    if (first > 0) {
        close(verdict[1]);
        relay(plan, first, verdict[0]);
    }
    close(verdict[0]);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
        fail("pid-namespace", errno, "PR_SET_PDEATHSIG");
    if (unheard(verdict[1]))
        fail("pid-namespace", ESRCH, "the relay is gone");
    arrange_mounts(plan);
    pid_t job = fork();
    if (job < 0)
        fail("pid-namespace", errno, "fork");
    if (job > 0)
        first_process(plan, job, verdict[1]);
    close(verdict[1]);
}
