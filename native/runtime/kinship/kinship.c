/* Parents that end: whom their children get instead (PR_SET_CHILD_SUBREAPER), and what these are told (PR_SET_PDEATHSIG).
 *
 * Both are the kernel's, since the processes of a family are real children of each other: it gives away what a process
 * leaves behind, and it sends the signals.  What is kept here is what a move has to set anew.  A process does not hear that
 * it got a child from another; so it looks among those whose parents have ended, when the kernel speaks of a child that it
 * does not know, when the program waits for one, and before a checkpoint.  To the first process, whose parent is no member,
 * nothing is sent: it ends with the job.
 */
#include "kinship.h"

#include <linux/prctl.h>

#include "runtime/process/family.h"
#include "runtime/process/identity.h"
#include "runtime/process/process.h"
#include "runtime/text.h"
#include "runtime/user.h"

enum { AT_A_TIME = 64, NOBODY = 1 /* the parent of those who have none in the family */ };

/* In a new process, which inherits neither. */
void kinship_begin(struct thread *self)
{
    self->death_signal = 0;
    process.reaps = false;
}

/* The parent as the program knows it: another than it began with if that has ended. */
int parent_now(struct thread *self)
{
    if (!process.helper)
        return process.start.parent_pid;
    const int real = (int)SYSTEM(__NR_getppid);
    lock(&identity_lock);
    int known = real == process.parent_real_id ? process.start.parent_pid : 0;
    unlock(&identity_lock);
    if (known)
        return known;
    const struct request who = {.call = OP_REAL_PID, .arguments = {real, REAL_PID_OF_LIVING}};
    const long found = real > 0 ? ask(self, &who, NULL, 0, NULL, 0, NULL) : 0;
    lock(&identity_lock);
    process.parent_real_id = real;
    process.start.parent_pid = known = found > 0 ? (int)found : NOBODY;
    unlock(&identity_lock);
    return known;
}

/* The kernel stops no member, and one signal is the runtime's own: what would come of them here is not what is meant. */
long set_death_signal(struct thread *self, unsigned long number)
{
    if (number > SIGNAL_COUNT || number == SIGSTOP)
        return -EINVAL;
    self->death_signal = (int)number;
    death_signal_again(self);
    return 0;
}

/* It is the thread's own; after a move, too. */
void death_signal_again(struct thread *self)
{
    if (process.helper)
        SYSTEM(__NR_prctl, PR_SET_PDEATHSIG, self->death_signal == CHECKPOINT_SIGNAL ? 0 : self->death_signal, 0, 0, 0);
}

long set_reaper(bool reaps)
{
    process.reaps = reaps;
    return process.family ? SYSTEM(__NR_prctl, PR_SET_CHILD_SUBREAPER, reaps, 0, 0, 0) : 0;
}

/* After a move, when there are the children that it had, and before any of them can end. */
void reaper_again(void)
{
    if (process.reaps && process.family)
        SYSTEM(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

/* Whose child it is, the kernel knows: it lets only the parent ask. */
static bool is_child(int real_id)
{
    struct siginfo info;
    return real_id > 1 && SYSTEM(__NR_waitid, P_PID, real_id, &info, WEXITED | WNOHANG | WNOWAIT, 0) == 0;
}

/* Enters the children of others that have become this process's. */
void find_orphans(struct thread *self)
{
    struct orphan list[AT_A_TIME];
    struct vector out = {list, sizeof list};
    if (!process.family || (!process.helper && !process.forked))
        return;
    for (long from = 0, count = AT_A_TIME; count == AT_A_TIME; from += AT_A_TIME) {
        const struct request request = {.call = OP_ORPHANS, .arguments = {from, AT_A_TIME}};
        count = ask(self, &request, NULL, 0, &out, 1, NULL);
        for (long i = 0; i < count && i < AT_A_TIME; i++)
            if (is_child(list[i].real_pid))
                note_orphan(list[i].virtual_pid, list[i].real_pid);
    }
}

/* The child, of which the kernel has told by its number. FORGET: it was waited for. */
int told_child(struct thread *self, int real_id, bool forget)
{
    int found = virtual_child_id(real_id, forget);
    const struct request who = {.call = OP_REAL_PID, .arguments = {real_id, REAL_PID_BACK}};
    if (!found)
        found = (int)ask(self, &who, NULL, 0, NULL, 0, NULL);
    return found > 0 ? found : real_id;
}
