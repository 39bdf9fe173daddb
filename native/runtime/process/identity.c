/* Who the program is: its owner's ids at home, a process id of its own, limits, scheduling. */
#include "identity.h"

#include <linux/prctl.h>

#include "runtime/remote/channel.h"
#include "runtime/remote/plan.h"
#include "runtime/kinship/kinship.h"
#include "process.h"
#include "runtime/proc/facts.h"
#include "runtime/trap.h"
#include "runtime/user.h"

enum { USUAL_NICENESS = 20, MOST_NICENESS = 19 };

struct limit {
    uint64_t soft, hard;
};

struct lock identity_lock;
static struct limit own_limits[RLIM_NLIMITS] GUARDED_BY(identity_lock);
static bool limit_is_own[RLIM_NLIMITS] GUARDED_BY(identity_lock);

long do_getpid(struct trap *t) { (void)t; return process.start.virtual_pid; }
long do_getppid(struct trap *t) { return parent_now(t->self); }
long do_getuid(struct trap *t) { (void)t; return process.start.uid; }
long do_geteuid(struct trap *t) { (void)t; return process.start.euid; }
long do_getgid(struct trap *t) { (void)t; return process.start.gid; }
long do_getegid(struct trap *t) { (void)t; return process.start.egid; }
long do_setfsuid(struct trap *t) { (void)t; return process.start.euid; }
long do_setfsgid(struct trap *t) { (void)t; return process.start.egid; }

static bool own(long id)
{
    return id == 0 || id == process.start.virtual_pid;
}

/* Changing to an id that the program has already is allowed, as everywhere. */
static bool is_user(uint32_t id)
{
    return id == ~0u || id == process.start.uid || id == process.start.euid;
}

static bool is_group(uint32_t id)
{
    return id == ~0u || id == process.start.gid || id == process.start.egid;
}

static long user_change(uint32_t a, uint32_t b, uint32_t c)
{
    return is_user(a) && is_user(b) && is_user(c) ? 0 : -EPERM;
}

static long group_change(uint32_t a, uint32_t b, uint32_t c)
{
    return is_group(a) && is_group(b) && is_group(c) ? 0 : -EPERM;
}

long do_setuid(struct trap *t) { return user_change((uint32_t)t->a[0], ~0u, ~0u); }
long do_setgid(struct trap *t) { return group_change((uint32_t)t->a[0], ~0u, ~0u); }
long do_setreuid(struct trap *t) { return user_change((uint32_t)t->a[0], (uint32_t)t->a[1], ~0u); }
long do_setregid(struct trap *t) { return group_change((uint32_t)t->a[0], (uint32_t)t->a[1], ~0u); }

long do_setresuid(struct trap *t)
{
    return user_change((uint32_t)t->a[0], (uint32_t)t->a[1], (uint32_t)t->a[2]);
}

long do_setresgid(struct trap *t)
{
    return group_change((uint32_t)t->a[0], (uint32_t)t->a[1], (uint32_t)t->a[2]);
}

static long three(struct trap *t, uint32_t a, uint32_t b, uint32_t c)
{
    if (copy_user((void *)t->a[0], &a, 4) || copy_user((void *)t->a[1], &b, 4) ||
        copy_user((void *)t->a[2], &c, 4))
        return -EFAULT;
    return 0;
}

long do_getresuid(struct trap *t)
{
    return three(t, process.start.uid, process.start.euid, process.start.euid);
}

long do_getresgid(struct trap *t)
{
    return three(t, process.start.gid, process.start.egid, process.start.egid);
}

long do_getgroups(struct trap *t)
{
    int room = (int)t->a[0], count = (int)process.start.group_count;
    if (room < 0 || (room && room < count))
        return -EINVAL;
    if (room && copy_user((void *)t->a[1], process.start.groups, (size_t)count * 4))
        return -EFAULT;
    return count;
}

long do_capget(struct trap *t)
{
    struct {
        uint32_t version;
        int pid;
    } header;
    static const uint32_t none[6];
    if (copy_user(&header, (void *)t->a[0], sizeof header))
        return -EFAULT;
    bool old = header.version == 0x19980330;
    if (!old && header.version != 0x20080522 && header.version != 0x20071026) {
        header.version = 0x20080522;
        copy_user((void *)t->a[0], &header, sizeof header);
        return t->a[1] ? -EINVAL : 0;
    }
    return t->a[1] && copy_user((void *)t->a[1], none, old ? 12 : 24) ? -EFAULT : 0;
}

/* Limits: the memory and processor ones are the kernel's and may only be read; that of descriptors holds at home; the
 * rest is a note. */
static void read_limit(unsigned which, struct limit *to) REQUIRES(identity_lock);
static void read_limit(unsigned which, struct limit *to)
{
    *to = (struct limit){~0ul, ~0ul};
    if (limit_is_own[which])
        *to = own_limits[which];
    else if (which == RLIMIT_STACK)
        to->soft = process.start.stack_bytes;
    else if (which == RLIMIT_NOFILE)
        to->soft = to->hard = process.start.max_files;
    else if (which == RLIMIT_CORE)
        to->soft = 0;
    else
        SYSTEM(__NR_prlimit64, 0, which, 0, to);
}

/* WORDS, and spaces up to WIDTH and one more. */
static void put_column(struct text *text, const char *words, size_t width)
{
    put(text, words);
    for (size_t used = strlen(words); used <= width; used++)
        put(text, " ");
}

static void put_limit(struct text *text, uint64_t value)
{
    char digits[24];
    struct text number = {digits, 0, sizeof digits - 1};
    put_number(&number, value, 10);
    digits[number.used] = 0;
    put_column(text, value == ~0ul ? "unlimited" : digits, 20);
}

/* As /proc/self/limits has them. */
void put_limits(struct text *text)
{
    static const struct {
        char name[26], unit[10];
    } lines[RLIM_NLIMITS] = {
        [RLIMIT_CPU] = {"Max cpu time", "seconds"},       [RLIMIT_FSIZE] = {"Max file size", "bytes"},
        [RLIMIT_DATA] = {"Max data size", "bytes"},       [RLIMIT_STACK] = {"Max stack size", "bytes"},
        [RLIMIT_CORE] = {"Max core file size", "bytes"},  [RLIMIT_RSS] = {"Max resident set", "bytes"},
        [RLIMIT_NPROC] = {"Max processes", "processes"},  [RLIMIT_NOFILE] = {"Max open files", "files"},
        [RLIMIT_MEMLOCK] = {"Max locked memory", "bytes"}, [RLIMIT_AS] = {"Max address space", "bytes"},
        [RLIMIT_LOCKS] = {"Max file locks", "locks"},     [RLIMIT_SIGPENDING] = {"Max pending signals", "signals"},
        [RLIMIT_MSGQUEUE] = {"Max msgqueue size", "bytes"}, [RLIMIT_NICE] = {"Max nice priority", ""},
        [RLIMIT_RTPRIO] = {"Max realtime priority", ""},  [RLIMIT_RTTIME] = {"Max realtime timeout", "us"},
    };
    put(text, "Limit                     Soft Limit           Hard Limit           Units     \n");
    lock(&identity_lock);
    for (unsigned which = 0; which < RLIM_NLIMITS; which++) {
        struct limit now;
        read_limit(which, &now);
        put_column(text, lines[which].name, 25);
        put_limit(text, now.soft);
        put_limit(text, now.hard);
        if (lines[which].unit[0])
            put_column(text, lines[which].unit, 9);
        put(text, "\n");
    }
    unlock(&identity_lock);
}

/* Descriptors are given out at home: the shadow has to know how many there may be.  After a restart, again. */
void tell_limits(struct thread *self)
{
    lock(&identity_lock);
    struct request request = {.call = OP_LIMIT_FILES, .arguments = {(int64_t)own_limits[RLIMIT_NOFILE].soft}};
    if (limit_is_own[RLIMIT_NOFILE])
        ask(self, &request, NULL, 0, NULL, 0, NULL); /* with the lock: home hears of two changes in their order */
    unlock(&identity_lock);
}

/* The limit as it was goes to OLD; if FROM is there, it becomes that. */
static long change_limit(struct thread *self, unsigned which, const void *from, struct limit *old)
{
    struct limit fresh;
    long failed = 0;
    if (from && copy_user(&fresh, from, sizeof fresh))
        return -EFAULT;
    lock(&identity_lock);
    read_limit(which, old);
    if (from && (fresh.soft > fresh.hard || fresh.hard > old->hard))
        failed = fresh.soft > fresh.hard ? -EINVAL : -EPERM;
    if (from && !failed) {
        own_limits[which] = fresh;
        limit_is_own[which] = true;
    }
    unlock(&identity_lock);
    if (from && !failed && which == RLIMIT_NOFILE) {
        plan_end(); /* what is foreseen was opened under the old one */
        tell_limits(self);
    }
    return failed;
}

long do_prlimit64(struct trap *t)
{
    struct limit old;
    unsigned which = (unsigned)t->a[1];
    if (which >= RLIM_NLIMITS)
        return -EINVAL;
    if (!own((int)t->a[0]))
        return -ESRCH;
    long failed = change_limit(t->self, which, (void *)t->a[2], &old);
    return !failed && t->a[3] && copy_user((void *)t->a[3], &old, sizeof old) ? -EFAULT : failed;
}

long do_getrlimit(struct trap *t)
{
    struct limit now;
    if ((unsigned)t->a[0] >= RLIM_NLIMITS)
        return -EINVAL;
    change_limit(t->self, (unsigned)t->a[0], NULL, &now);
    return copy_user((void *)t->a[1], &now, sizeof now) ? -EFAULT : 0;
}

long do_setrlimit(struct trap *t)
{
    struct limit old;
    if ((unsigned)t->a[0] >= RLIM_NLIMITS)
        return -EINVAL;
    return t->a[1] ? change_limit(t->self, (unsigned)t->a[0], (void *)t->a[1], &old) : -EFAULT;
}

long do_personality(struct trap *t)
{
    enum { COMPATIBLE_LAYOUT = 0x200000, NO_RANDOMIZE = 0x40000 }; /* places are never random here */
    uint32_t wanted = (uint32_t)t->a[0], before = process.personality;
    if (wanted == 0xffffffff)
        return before;
    if (wanted & ~(READ_IMPLIES_EXEC | COMPATIBLE_LAYOUT | NO_RANDOMIZE))
        return -EINVAL;
    process.personality = wanted;
    return before;
}

long do_prctl(struct trap *t)
{
    enum { SET_DEATH = 1, GET_DEATH = 2, GET_DUMPABLE = 3, SET_DUMPABLE = 4, SET_NAME = 15, GET_NAME = 16,
           READ_BOUND = 23, SET_SLACK = 29, GET_SLACK = 30, SET_REAPER = 36, GET_REAPER = 37, NO_NEW = 38, GET_NO_NEW = 39,
           THP = 41, GET_THP = 42 };
    char name[16] = {0};
    int told;
    switch ((int)t->a[0]) {
    case SET_NAME:
        for (int i = 0; i < 15; i++)
            if (copy_user(&name[i], (char *)t->a[1] + i, 1))
                return -EFAULT;
            else if (!name[i])
                break;
        memcpy(t->self->name, name, sizeof name);
        tell_name(t->self);
        return 0;
    case GET_NAME: return copy_user((void *)t->a[1], t->self->name, 16) ? -EFAULT : 0;
    case GET_DEATH:
        told = t->self->death_signal;
        return copy_user((void *)t->a[1], &told, sizeof told) ? -EFAULT : 0;
    case SET_DEATH: return set_death_signal(t->self, t->a[1]);
    case SET_REAPER: return set_reaper(t->a[1]);
    case GET_REAPER:
        told = process.reaps;
        return copy_user((void *)t->a[1], &told, sizeof told) ? -EFAULT : 0;
    case SET_DUMPABLE:
    case SET_SLACK:
    case NO_NEW:
    case THP:
    case GET_THP:
    case READ_BOUND: return 0;
    case GET_DUMPABLE:
    case GET_NO_NEW: return 1;
    case GET_SLACK: return 50000;
    default: return -EINVAL;
    }
}

/* Scheduling: every program is an ordinary one; the owner of the machine decides when it runs. */
static int niceness GUARDED_BY(identity_lock); /* a note, too */

/* The program itself is meant, or another process, of which nothing is known. */
static bool is_for_own(const struct trap *t)
{
    return t->a[0] == PRIO_PROCESS && (own((int)t->a[1]) || real_thread_id((int)t->a[1]));
}

/* As the kernel has it: 40 for the one that gives way least, 1 for the one that gives way most. */
long do_getpriority(struct trap *t)
{
    lock(&identity_lock);
    const int now = is_for_own(t) ? niceness : 0;
    unlock(&identity_lock);
    return USUAL_NICENESS - now;
}

long do_setpriority(struct trap *t)
{
    const int wanted = (int)t->a[2] > MOST_NICENESS ? MOST_NICENESS : (int)t->a[2];
    lock(&identity_lock);
    const bool allowed = is_for_own(t) ? wanted >= niceness || (wanted >= 0 && !process.start.euid) : wanted >= 0;
    if (allowed && is_for_own(t))
        niceness = wanted;
    unlock(&identity_lock);
    return allowed ? 0 : -EACCES;
}

long do_sched_getscheduler(struct trap *t) { (void)t; return 0; }
long do_sched_setscheduler(struct trap *t) { return t->a[1] == 0 || t->a[1] == 3 ? 0 : -EPERM; }

static long priority_bound(struct trap *t, int realtime)
{
    static const int8_t realtime_kind[] = {0, 1, 1, 0, -1, 0, 0, 0}; /* OTHER FIFO RR BATCH - IDLE DEADLINE EXT */
    unsigned policy = (unsigned)t->a[0];
    if (policy >= COUNT(realtime_kind) || realtime_kind[policy] < 0)
        return -EINVAL;
    return realtime_kind[policy] ? realtime : 0;
}

long do_sched_get_priority_max(struct trap *t) { return priority_bound(t, 99); }
long do_sched_get_priority_min(struct trap *t) { return priority_bound(t, 1); }
long do_sched_setaffinity(struct trap *t) { (void)t; return 0; }

long do_sched_getparam(struct trap *t)
{
    int zero = 0;
    return copy_user((void *)t->a[1], &zero, sizeof zero) ? -EFAULT : 0;
}

long do_sched_setparam(struct trap *t)
{
    int priority;
    if (copy_user(&priority, (void *)t->a[1], sizeof priority))
        return -EFAULT;
    return priority ? -EINVAL : 0;
}

long do_sched_getaffinity(struct trap *t)
{
    int id = (int)t->a[0], real = id ? real_thread_id(id) : 0;
    if (id && !real)
        return -ESRCH;
    return SYSTEM(__NR_sched_getaffinity, real, t->a[1], t->a[2]);
}
