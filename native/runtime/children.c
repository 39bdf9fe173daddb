/* The children of this process: their numbers, who of them has stopped, and what the program has been told of it.
 *
 * Waiting is the kernel's. A child that is stopped when a checkpoint is taken goes on to be saved, parked, and stops again
 * before anyone goes on; what the program knew of it already, no wait tells it a second time.
 */
#include "children.h"

#include "family.h"
#include "image.h"
#include "lineage.h"
#include "pending.h"
#include "process.h"
#include "text.h"

enum { CHILDREN = 1024, CHILDREN_GONE = 64 };

struct lock children_lock;
static struct child children[CHILDREN] GUARDED_BY(children_lock), gone[CHILDREN_GONE] GUARDED_BY(children_lock);
static unsigned gone_next GUARDED_BY(children_lock);

static struct child *child_of(int virtual_id) REQUIRES(children_lock);
static struct child *child_of(int virtual_id)
{
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id && children[i].virtual_id == virtual_id)
            return &children[i];
    return NULL;
}

int real_child_id(int virtual_id)
{
    lock(&children_lock);
    const struct child *child = child_of(virtual_id);
    int found = child ? child->real_id : 0;
    unlock(&children_lock);
    return found;
}

/* A place for one more child.  Those that the kernel reaps by itself, because the program ignores
 * SIGCHLD, leave theirs unannounced. NULL: there are as many as can be. */
struct child *free_child(void)
{
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < CHILDREN; i++) {
            struct child *child = &children[i];
            if (round && child->real_id && SYSTEM(__NR_kill, child->real_id, 0) == -ESRCH)
                child->real_id = 0;
            if (!child->real_id)
                return child;
        }
    return NULL;
}

/* The kernel's number, unless a process of before a move has it. Parent and child find the same one, each in
 * its copy of the table. */
int new_virtual_id(int real_id)
{
    while (child_of(real_id) || real_id == process.start.virtual_pid || lineage_has(real_id))
        real_id += VIRTUAL_STEP;
    return real_id;
}

/* In a new member, before it forgets its parent's children: as its parent finds it. */
int first_virtual_id(int real_id)
{
    lock(&children_lock);
    int id = new_virtual_id(real_id);
    unlock(&children_lock);
    return id;
}

/* All are parked, or will be: what a wait would tell of children that live. */
void note_childrens_news(void)
{
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++) {
        struct siginfo info;
        memset(&info, 0, sizeof info);
        if (!children[i].real_id)
            continue;
        children[i].news = 0;
        if (SYSTEM(__NR_waitid, P_PID, children[i].real_id, &info, WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT, 0) < 0)
            continue;
        children[i].news = info.si_code;
        if (info.si_code != CLD_STOPPED)
            children[i].stop = 0;
        else if (!children[i].stop)
            children[i].stop = info._sifields._sigchld._status;
    }
    unlock(&children_lock);
}

/* What became of a living child, and whether a wait is to tell it. */
static int state_of(const struct child *child) REQUIRES(children_lock);
static int state_of(const struct child *child)
{
    no_other_thread_runs();
    if (was_stopped(child->real_id))
        return child->told && !child->news ? LINEAGE_STOPPED : LINEAGE_STOPPED_UNTOLD;
    return child->news == CLD_CONTINUED ? LINEAGE_CONTINUED_UNTOLD : LINEAGE_RUNS;
}

/* Whether the program has still to be told what that child does. */
bool child_is_news(int real_id)
{
    bool news = true;
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id)
            news = state_of(&children[i]) != LINEAGE_STOPPED;
    unlock(&children_lock);
    return news;
}

/* It did so after this process was parked, as a signal says that was not taken yet. */
void child_has_stopped(int real_id, int number)
{
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id && !children[i].stop && !children[i].told)
            children[i].stop = number;
    unlock(&children_lock);
}

/* Children that are stopped have stopped: what the program knows of them already no wait tells it again. */
void children_stop_again(struct thread *self, bool begins)
{
    bool some = false;
    for (size_t i = 0; i < CHILDREN; i++) {
        lock(&children_lock);
        struct child child = children[i];
        if (!begins)
            child.state = child.real_id && was_stopped(child.real_id) ? state_of(&child) : LINEAGE_RUNS;
        unlock(&children_lock);
        struct siginfo info;
        if (!child.real_id || child.state == LINEAGE_RUNS)
            continue;
        while (SYSTEM(__NR_waitid, P_PID, child.real_id, &info, WSTOPPED | WEXITED | WNOWAIT, 0) == -EINTR)
            ;
        if (child.state == LINEAGE_STOPPED)
            SYSTEM(__NR_waitid, P_PID, child.real_id, &info, WSTOPPED | WNOHANG, 0);
        if (child.state == LINEAGE_CONTINUED_UNTOLD)
            wake_stopped(child.real_id);
        some = true;
    }
    if (some)
        drop_news_of_stops(self);
}

/* What there is of children: each lives, or has ended and was not waited for. Returns their number or -errno. */
long list_children(struct lineage_child *list, uint32_t most)
{
    enum { STATUS_SHIFT = 8, DUMPED = 0x80 };
    uint32_t count = 0;
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++) {
        struct siginfo info;
        memset(&info, 0, sizeof info);
        if (!children[i].real_id)
            continue;
        if (SYSTEM(__NR_waitid, P_PID, children[i].real_id, &info, WEXITED | WNOHANG | WNOWAIT, 0) < 0) {
            children[i].real_id = 0; /* the kernel has reaped it */
            continue;
        }
        if (count == most)
            break;
        int status = info._sifields._sigchld._status;
        if (info.si_code == CLD_EXITED)
            status <<= STATUS_SHIFT;
        else if (info.si_code == CLD_DUMPED)
            status |= DUMPED;
        if (!info._sifields._sigchld._pid)
            status = state_of(&children[i]) | children[i].stop << LINEAGE_SIGNAL_SHIFT;
        list[count++] = (struct lineage_child){children[i].virtual_id, info._sifields._sigchld._pid != 0, status, 0};
    }
    unlock(&children_lock);
    return count < most ? (long)count : -E2BIG;
}

/* STATE: as an image has it of one that lives. */
bool adopt_child(int virtual_id, int real_id, int state)
{
    lock(&children_lock);
    struct child *child = free_child();
    if (child)
        *child = (struct child){.virtual_id = virtual_id, .real_id = real_id, .stop = state >> LINEAGE_SIGNAL_SHIFT,
                                .state = state & LINEAGE_STATE, .told = (state & LINEAGE_STATE) == LINEAGE_STOPPED};
    unlock(&children_lock);
    return child;
}

void forget_children(void)
{
    lock(&children_lock);
    memset(children, 0, sizeof children);
    memset(gone, 0, sizeof gone);
    unlock(&children_lock);
}

int virtual_child_id(int real_id, bool forget)
{
    int found = real_id;
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id) {
            found = children[i].virtual_id;
            if (!forget)
                continue;
            gone[gone_next++ % CHILDREN_GONE] = children[i];
            children[i].real_id = 0;
        }
    unlock(&children_lock);
    return found;
}

/* A child, or one that was waited for just now: its signal may come after that. 0: none. */
static int virtual_kin_id(int real_id)
{
    int found = 0;
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN_GONE; i++)
        if (gone[i].real_id == real_id)
            found = gone[i].virtual_id;
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id)
            found = children[i].virtual_id;
    unlock(&children_lock);
    return found;
}

/* Who sent a signal, as the program knows the process. */
int virtual_sender(int real_id)
{
    if (!process.restarted || real_id <= 1) /* the numbers are the kernel's */
        return real_id;
    if (real_id == process.real_id)
        return process.start.virtual_pid;
    int found = virtual_kin_id(real_id);
    if (!found && process.helper && real_id == process.parent_real_id)
        found = process.start.parent_pid;
    struct request request = {.call = OP_REAL_PID, .arguments = {real_id, 1}};
    if (!found)
        found = (int)ask(current_thread(), &request, NULL, 0, NULL, 0, NULL);
    return found > 0 ? found : real_id;
}

/* A wait tells that a child has stopped. Returns the signal that it is to tell: one that was stopped again when it came back
 * tells what had stopped it. TAKEN: no other wait will tell it. */
int told_stop(int real_id, int number, bool taken)
{
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id) {
            if (number == SIGSTOP && children[i].stop)
                number = children[i].stop;
            children[i].told |= taken;
            children[i].stop = taken ? 0 : children[i].stop;
        }
    unlock(&children_lock);
    return number;
}

/* A wait tells that it goes on. */
void told_other(int real_id)
{
    lock(&children_lock);
    for (size_t i = 0; i < CHILDREN; i++)
        if (children[i].real_id == real_id)
            children[i].told = false;
    unlock(&children_lock);
}
