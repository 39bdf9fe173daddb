/* condor_root: the only program of a pool that stays root.
 *
 * A daemon that was started as root starts this program first, over a socket pair that nobody else has, and then becomes
 * the pool's account for good.  Whatever still needs another account's rights it orders here: one fixed-size message an
 * order, one an answer, descriptors in place of paths wherever there are any.  What is not allowed is refused with a
 * reason.  The daemon's end of the socket closes: this program ends.
 *
 * Which orders are taken, which accounts there are, what may be started: all of it is on the command line, which root
 * wrote, and never changes.  docs/privileges.md goes through the source line by line.
 */
#ifndef CONDOR_ROOT_H
#define CONDOR_ROOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

enum {
    MAGIC = 0x544f4f52,
    TEXT_BYTES = 4096,
    REASON_BYTES = 232,
    MAX_DESCRIPTORS = 16,
    MAX_ACCOUNTS = 256,
    MAX_FOLDERS = 16,
    MAX_PROGRAMS = 64,
    MAX_NAMES = 4,
    MAX_CHILDREN = 64,
    MAX_HELD = 64,      /* input devices */
    DEVICE_BYTES = 64,
    MAX_SHEET_BYTES = 4 << 20,
    CHILD_S = 25,     /* how long an open may take, with the question about its account */
    NAMES_S = 20,     /* how long the user database may take to answer about an account */
    WALK_S = 600,     /* how long a walk through a tree of files may take */
    DEEPEST = 500,    /* how deep a tree is walked */
    MOST_OPEN = 100000, /* how many descriptors of processes one order looks at */
    LAUNCH_FAILED = 127,
};

enum kind { READY = 1, START, OPEN, SIGNAL, GIVE, TAKE, REMOVE, MEASURE, PROGRAM, WATCH, KINDS };

/* START: the launcher is to be the first process of a pid namespace of its own, and begins with every signal blocked. */
enum { OWN_PIDS = 1 };

/* START has in EXTRA which of the account's groups is to be the process's; 0: its own. */

/* What OPEN may be asked for beside the flags of open(2). */
enum { ANY_KIND = 1, NO_LINKS = 2 };

struct order {
    uint32_t magic, kind;
    uint64_t number;
    uint32_t uid, flags, mode;
    int32_t signal;
    uint32_t descriptors, extra;
    char text[TEXT_BYTES]; /* ends with a zero, and nothing but zeros is behind it */
};

struct answer {
    uint32_t magic, kind;
    uint64_t number;
    int32_t error; /* 0, or an errno */
    uint32_t reserved;
    int64_t value;
    char reason[REASON_BYTES];
};

/* The sheet of a START, in a sealed memory file: this, then words, variables and control groups, each ended by a zero. */
struct sheet {
    uint32_t magic, words, variables, groups;
    int32_t targets[MAX_DESCRIPTORS]; /* the numbers that the descriptors behind the sheet's get in the new process */
};

struct program {
    const char *name;
    bool as_root;
    const char *variables[MAX_NAMES + 1]; /* which the order may set */
    char **words;                         /* ends with NULL */
};

/* Devices are START and a number. */
struct device {
    const char *start;
    bool inputs; /* their events count; without, that a process reads them */
};

struct account {
    uid_t uid;
    gid_t gid;
};

struct policy {
    int socket;
    uint32_t kinds; /* one bit each */
    uid_t pool_uid;
    gid_t pool_gid;
    uid_t least, most;
    bool descendants;
    struct account accounts[MAX_ACCOUNTS];
    size_t account_count;
    const char *groups[MAX_FOLDERS]; /* below which control groups are joined */
    size_t group_count;
    const char *folders[MAX_FOLDERS]; /* below which trees are given, taken, removed */
    size_t folder_count;
    struct program programs[MAX_PROGRAMS];
    size_t program_count;
    struct device devices[MAX_FOLDERS];
    size_t device_count;
    int launcher;
    pid_t daemon;
    struct rlimit room; /* how many descriptors the daemon may have: what is started here gets that again */
};

/* policy.c */
void read_policy(struct policy *policy, int count, char **words);
bool starts_as_root(const struct policy *policy);
bool account_allowed(const struct policy *policy, uid_t uid);
bool folder_allowed(const struct policy *policy, int folder);

/* rights.c: capabilities, the filter, changes of identity. */
void keep_rights(const struct policy *policy);
bool use_rights(bool on);
gid_t group_of(const struct policy *policy, uid_t uid);
bool become_account(const struct policy *policy, uid_t uid, const char **stage);
bool become_account_with(const struct policy *policy, uid_t uid, gid_t group, uint64_t rights, bool for_exec,
                         const char **stage);
bool become_pool_to_give(const struct policy *policy);
extern const uint64_t launch_rights, chown_right, guard_rights, measure_right;
bool drop_rights(void);

/* orders.c: what the processes do that are forked for one order each. */
struct request {
    const struct policy *policy;
    struct order order;
    int descriptors[MAX_DESCRIPTORS];
    size_t count;
    char *sheet; /* of a START, read */
    size_t sheet_bytes;
};

void answer(const struct policy *policy, const struct order *order, int error, int64_t value, const char *reason,
            int descriptor);
const char *read_sheet(struct request *request);
void start_launcher(struct request *request) __attribute__((noreturn));
const char *check_program(const struct request *request, const struct program **found);
void start_program(struct request *request, const struct program *program) __attribute__((noreturn));
void open_path(struct request *request) __attribute__((noreturn));
void walk_tree(struct request *request) __attribute__((noreturn));
int signal_process(const struct request *request, const char **reason);

/* watch.c */
int watch_device(const struct request *request, int64_t *number, const char **reason);

/* tree.c */
int open_near(int folder, const char *name, int flags);
int walk(int top, enum kind kind, uid_t from, uid_t to, gid_t group);
int measure(int top, uid_t uid, const char *pids, int64_t *kib);
int remove_entry(int folder, const char *name);

/* measure.c */
int64_t tree_blocks(int top, dev_t *files);

/* deleted.c */
struct counted_file {
    dev_t device;
    uint64_t inode;
    int64_t blocks;
};

/* Files that may be met several times. */
struct counted {
    struct counted_file *files;
    size_t count, room;
};

void count_file(struct counted *counted, dev_t device, uint64_t inode, int64_t blocks);
int64_t sum_counted(struct counted *counted);
int64_t deleted_blocks(const char *pids, uid_t uid, const dev_t devices[2]);

#endif
