/* condor_launcher: prepares one process for a job and becomes that job.
 *
 * The starter host executes this program once per job.  It takes, in a fixed order, the steps that a
 * job's process needs (cgroup, namespaces, limits, root directory, identity, signals) and then executes
 * the job.  Each step either succeeds or ends the launch: one line "stage errno detail" goes to the
 * status descriptor and the exit status is 127.  The status descriptor closes on exec, so end of file
 * without a line means that the job runs.
 */
#ifndef CONDOR_LAUNCHER_H
#define CONDOR_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>

enum {
    MAX_GROUPS = 256,
    MAX_CGROUPS = 16,
    MAX_LIMITS = 16,
    MAX_BINDS = 32,
    MAX_JOINED = 8,
    MAX_KEPT = 8,
    MAX_SHUT = 64,
    MAX_DEVICES = 256,
    MAX_CHECKED = 40,
    LAUNCH_FAILED = 127,
};

struct limit {
    int resource;
    const char *name;
    struct rlimit value;
};

struct bind {
    const char *from; /* NULL: a file system in memory that goes with the namespace */
    const char *to;
    bool read_only; /* in a container only */
};

/* A path of an image or of what is bound that the starter has looked at: no link is followed on the way to it. */
struct checked {
    const char *path;
    int fd; /* what was seen there, kept open; -1: only that there are no links counts */
};

enum filter { FILTER_NONE, FILTER_JOB, FILTER_JOB_TRACEABLE, FILTER_RUNTIME };

struct plan {
    bool has_uid, has_gid, has_umask, has_nice, new_session, joins_pids;
    bool terminal; /* standard input is one, and becomes the session's own */
    bool first; /* the launcher is the first process of its pid namespace already */
    bool stop_at_exec; /* the job stands at its first instruction until it is continued */
    uid_t uid;
    gid_t gid;
    gid_t groups[MAX_GROUPS];
    size_t group_count;
    mode_t mask;
    int nice_increment;
    int isolate;                    /* CLONE_NEW* bits */
    const char *joined[MAX_JOINED]; /* namespaces of another process, /proc/PID/ns/... */
    size_t joined_count;
    const char *root;
    const char *directory;
    const char *layers; /* of a container: a folder with upper, work, root in it; NULL: none */
    const char *image;  /* of which those are the upper layers, a folder */
    struct checked checked[MAX_CHECKED];
    size_t checked_count;
    const char *cgroups[MAX_CGROUPS];
    size_t cgroup_count;
    struct limit limits[MAX_LIMITS];
    size_t limit_count;
    struct bind binds[MAX_BINDS];
    size_t bind_count;
    const char *read_only[MAX_SHUT]; /* with all that is mounted below; what is bound later stays as it was */
    size_t read_only_count;
    const char *hidden[MAX_SHUT]; /* folders in whose place an empty one is seen, but for what is bound below it */
    size_t hidden_count;
    const char *shut_devices[MAX_DEVICES]; /* files of devices that cannot be opened; one that is not there is well */
    size_t shut_device_count;
    const char *devices[MAX_DEVICES]; /* of a container: what it has below /dev beside the usual */
    size_t device_count;
    enum filter filter;
    int end_fd; /* -1: none; gets the wait status of the job, where a relay stands for it */
    int linger_fd; /* -1: none; when the job has ended its namespace stays until this end of a pipe is closed */
    int linger_s; /* but no longer than this */
    int kept[MAX_KEPT]; /* descriptors the job keeps besides 0-2 */
    size_t kept_count;
    int death_signal; /* 0: none */
    int status_fd;    /* -1: messages go to standard error */
    char **program;
};

/* options.c */
void read_options(struct plan *plan, int count, char **words);

/* The program's variables come under names that mean nothing to a dynamic linker or a shell on the way to it, which
 * have the launcher's rights; others stay as they are. */
#define VEIL "_CONDOR_JOB_ENV_"

/* report.c */
void report_to(int status_fd);
void fail(const char *stage, int error, const char *detail) __attribute__((noreturn));

/* namespaces.c: what is shared with the host and what is not. */
void join_cgroups(const struct plan *plan);
void enter_namespaces(const struct plan *plan);
void arrange_mounts(const struct plan *plan);

/* sources.c: opens what is mounted, as a place (O_PATH), without links where it was checked before; ends the launch where
 * that is not what was seen then. */
bool is_checked(const struct plan *plan, const char *path);
int open_source(const struct plan *plan, const char *stage, const char *path, int flags);
int open_below(int folder, const char *name); /* a folder, and no link, in a folder of a container's layers */

/* container.c: the root directory of a job that has an image. */
void enter_container(const struct plan *plan);

/* filter.c: what the kernel does for the program. */
void close_filter(enum filter which);

/* supervise.c: first process of a pid namespace, and its relay outside; or a process in one that was joined, and its
 * relay. Return in the job's process. */
void fork_from_first(const struct plan *plan);
void fork_into_joined(const struct plan *plan);
void fork_into_pid_namespace(const struct plan *plan);

/* stop.c: a job that stands still at its first instruction. */
struct stop {
    int go, done;
    pid_t tracer;
};
void prepare_stop(const struct plan *plan, struct stop *stop); /* before the filter is closed */
void allow_stop(const struct plan *plan, const struct stop *stop); /* behind that, last before the exec */

/* identity.c: limits, identity, signals: everything the job inherits by exec. */
void close_descriptors(const struct plan *plan);
void set_limits(const struct plan *plan);
void drop_rights(void);
void become_user(const struct plan *plan);
void drop_capabilities(void);
void reset_signals(void);
void set_death_signal(int number, pid_t expected_parent);

#endif
