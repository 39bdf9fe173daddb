/* What each call means for answers given ahead.
 *
 * They are good as long as the program cannot know better: until it changes files itself (own changes), or hears
 * from others who may have (invalidation): a pipe, a signal, a child, a lock, a sleep.
 */
#include "invalidation.h"

#include "read_ahead.h"
#include "plan.h"

volatile uint32_t invalidations ATOMIC;
static volatile uint32_t own_changes ATOMIC;

void note_invalidation(void)
{
    __atomic_add_fetch(&invalidations, 1, __ATOMIC_SEQ_CST);
}

void note_own_change(void)
{
    __atomic_add_fetch(&own_changes, 1, __ATOMIC_SEQ_CST);
}

/* An answer that depends on names and statuses is as good as this was when it came. */
uint32_t world_now(void)
{
    return invalidations + own_changes;
}

/* Calls that change nothing and tell nothing but what a file is. */
static bool only_looks(const struct trap *t)
{
    switch (t->number) {
    case __NR_read: case __NR_write: case __NR_pread64: case __NR_pwrite64: case __NR_readv: case __NR_writev:
    case __NR_preadv: case __NR_pwritev: case __NR_preadv2: case __NR_pwritev2: case __NR_lseek: case __NR_close:
    case __NR_openat: case __NR_newfstatat: case __NR_statx: case __NR_readlinkat: case __NR_faccessat:
    case __NR_faccessat2: case __NR_getdents64: case __NR_getdents: case __NR_getcwd: case __NR_fstatfs:
    case __NR_statfs: case __NR_uname: case __NR_fadvise64: case __NR_readahead: case __NR_fsync:
    case __NR_fdatasync: case __NR_getxattr: case __NR_lgetxattr: case __NR_fgetxattr: case __NR_umask:
    case __NR_mmap: case __NR_munmap: case __NR_brk: case __NR_mremap: case __NR_madvise: case __NR_futex:
    case __NR_rt_sigaction: case __NR_rt_sigprocmask: case __NR_rt_sigreturn: case __NR_sigaltstack:
    case __NR_getpid: case __NR_gettid: case __NR_getuid: case __NR_getgid: case __NR_geteuid: case __NR_getegid:
    case __NR_getppid: case __NR_set_tid_address: case __NR_set_robust_list: case __NR_prlimit64:
    case __NR_getrlimit: case __NR_arch_prctl: case __NR_prctl: case __NR_clock_gettime: case __NR_tgkill:
    case __NR_sched_getaffinity: case __NR_exit: case __NR_exit_group: case __NR_epoll_create1: /* which watches nothing yet */
        return true;
    case __NR_ioctl:
        return t->a[1] == TCGETS || t->a[1] == TIOCGWINSZ || t->a[1] == FIONCLEX || t->a[1] == FIOCLEX;
    case __NR_fcntl: return t->a[1] >= F_GETFD && t->a[1] <= F_GETFL;
    default: return false;
    }
}

/* A change takes effect somewhere between the beginning of its call and the end.  What is learned of a descriptor in that
 * time may be old: begin_change and end_change stand on both sides.  And what was answered in that time may be older than
 * the change: it is told of on both sides, too. */
static enum meaning note_control(const struct trap *t)
{
    if (t->a[1] == F_SETFL) {
        unlearn_file((int)t->a[0]);
        return MEANS_NOTHING;
    }
    share_position((int)t->a[0]);
    return MEANS_INVALIDATION; /* locks; duplicates */
}

/* Before a call is done. What is not named here may tell the program what others did. */
enum meaning note_call(const struct trap *t)
{
    if (only_looks(t))
        return MEANS_NOTHING;
    plan_end();
    switch (t->number) {
    case __NR_clone: return MEANS_NOTHING;
    case __NR_fcntl: return note_control(t);
    case __NR_mkdirat: case __NR_mknodat: case __NR_unlinkat: case __NR_renameat: case __NR_renameat2:
    case __NR_linkat: case __NR_symlinkat: case __NR_fchmod: case __NR_fchmodat: case __NR_fchown:
    case __NR_fchownat: case __NR_utimensat: case __NR_futimesat: case __NR_utime: case __NR_chdir:
    case __NR_fchdir: note_own_change(); return MEANS_OWN_CHANGE;
    case __NR_dup: share_position((int)t->a[0]); return MEANS_NOTHING;
    case __NR_dup2: case __NR_dup3:
        share_position((int)t->a[0]);
        if (t->a[0] != t->a[1])
            begin_change((int)t->a[1]);
        return MEANS_NOTHING;
    case __NR_close_range:
        for (uint64_t fd = t->a[0]; fd <= t->a[1] && fd < KNOWN_FILES; fd++)
            begin_change((int)fd);
        return MEANS_NOTHING;
    case __NR_sendfile: case __NR_splice: case __NR_copy_file_range: case __NR_epoll_ctl:
        unlearn_file((int)t->a[0]);
        unlearn_file((int)t->a[1]);
        unlearn_file((int)t->a[2]);
        return MEANS_INVALIDATION;
    default: return MEANS_INVALIDATION;
    }
}

/* After it. A: its arguments as they were. */
void note_call_done(enum meaning meaning, const struct trap *t, const unsigned long a[6])
{
    if (meaning == MEANS_INVALIDATION)
        note_invalidation();
    else if (meaning == MEANS_OWN_CHANGE)
        note_own_change();
    if ((t->number == __NR_dup2 || t->number == __NR_dup3) && a[0] != a[1])
        end_change((int)a[1]);
    if (t->number == __NR_dup || t->number == __NR_dup2 || t->number == __NR_dup3 ||
        (t->number == __NR_fcntl && meaning == MEANS_INVALIDATION))
        share_position((int)a[0]);
    for (uint64_t fd = a[0]; t->number == __NR_close_range && fd <= a[1] && fd < KNOWN_FILES; fd++)
        end_change((int)fd);
}
