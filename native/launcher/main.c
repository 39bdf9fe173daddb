/* The order of the steps is the program: see launcher.h. */
#define _GNU_SOURCE
#include "launcher.h"

#include "../guards.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

/* Where the job begins; by then with its own rights. */
static void enter_directory(const struct plan *plan)
{
    if (!is_checked(plan, plan->directory)) {
        if (chdir(plan->directory) < 0)
            fail("chdir", errno, plan->directory);
        return;
    }
    int folder = open_source(plan, "chdir", plan->directory, O_DIRECTORY);
    if (fchdir(folder) < 0)
        fail("chdir", errno, plan->directory);
    close(folder);
}

static void unveil(char **variables)
{
    for (; *variables; variables++)
        if (strncmp(*variables, VEIL, sizeof VEIL - 1) == 0)
            *variables += sizeof VEIL - 1;
}

int main(int count, char **words)
{
    static struct plan plan UNGUARDED("the launcher has one thread") = {.status_fd = -1, .end_fd = -1, .linger_fd = -1};
    struct stop stop = {-1, -1, 0};
    pid_t parent = getppid();

    read_options(&plan, count, words);
    close_descriptors(&plan);
    join_cgroups(&plan);
    enter_namespaces(&plan);
    /* From here on processes of the job's account may be near: none of them traces what is not shut in yet, or is never.
     * What is executed in the end begins as any program does. */
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
    if (plan.first) {
        fork_from_first(&plan);
    } else if (plan.isolate & CLONE_NEWPID) {
        if (plan.death_signal)
            set_death_signal(plan.death_signal, parent); /* relayed to the job */
        fork_into_pid_namespace(&plan);
    } else {
        arrange_mounts(&plan);
        if (plan.joins_pids) {
            if (plan.death_signal)
                set_death_signal(plan.death_signal, parent);
            fork_into_joined(&plan);
        }
    }
    if (plan.new_session && setsid() < 0 && errno != EPERM)
        fail("session", errno, "setsid");
    if (plan.terminal && ioctl(STDIN_FILENO, TIOCSCTTY, 0) < 0)
        fail("session", errno, "the terminal");
    set_limits(&plan);
    become_user(&plan);
    if (plan.directory)
        enter_directory(&plan);
    reset_signals();
    if (plan.death_signal && !(plan.isolate & CLONE_NEWPID) && !plan.joins_pids)
        set_death_signal(plan.death_signal, parent);
    if (plan.death_signal && plan.joins_pids)
        set_death_signal(SIGKILL, 0); /* from there the relay has no number */
    unveil(environ);
    prepare_stop(&plan, &stop);
    close_filter(plan.filter);
    allow_stop(&plan, &stop);
    execve(plan.program[0], plan.program, environ);
    fail("exec", errno, plan.program[0]);
}
