/* What is done for one order, in a process forked for it; signals alone are sent by the main process. */
#define _GNU_SOURCE
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CGROUP_V1 0x27e0eb
#define CGROUP_V2 0x63677270

void answer(const struct policy *policy, const struct order *order, int error, int64_t value, const char *reason,
            int descriptor)
{
    struct answer said = {.magic = MAGIC, .kind = order->kind, .number = order->number, .error = error, .value = value};
    snprintf(said.reason, sizeof said.reason, "%s", reason);
    struct iovec part = {&said, sizeof said};
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {.room = {0}};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &descriptor, sizeof descriptor);
    }
    while (sendmsg(policy->socket, &message, MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

static void done(struct request *request, int error, int64_t value, const char *reason, int descriptor)
    __attribute__((noreturn));

static void done(struct request *request, int error, int64_t value, const char *reason, int descriptor)
{
    answer(request->policy, &request->order, error, value, reason, descriptor);
    _exit(0);
}

/* ---- start */

/* Reads the sheet into memory of our own: it is a sealed memory file, so nobody changes it and nothing blocks. */
const char *read_sheet(struct request *request)
{
    const int seals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW;
    int file = request->descriptors[0];
    struct stat facts;
    if (fcntl(file, F_GET_SEALS) < 0 || (fcntl(file, F_GET_SEALS) & seals) != seals || fstat(file, &facts) < 0)
        return "the sheet is no sealed memory file";
    if (facts.st_size < (off_t)sizeof(struct sheet) + 1 || facts.st_size > MAX_SHEET_BYTES)
        return "the sheet has no proper size";
    size_t size = (size_t)facts.st_size;
    request->sheet = malloc(size);
    if (!request->sheet || pread(file, request->sheet, size, 0) != (ssize_t)size)
        return "the sheet cannot be read";
    request->sheet_bytes = size;
    struct sheet head;
    memcpy(&head, request->sheet, sizeof head);
    if (head.magic != MAGIC || request->sheet[size - 1] != 0 || head.words < 1 || head.words > size ||
        head.variables > size || head.groups > MAX_FOLDERS)
        return "the sheet is none";
    size_t strings = 0;
    for (size_t i = sizeof head; i < size; i++)
        strings += request->sheet[i] == 0;
    if (strings != (size_t)head.words + head.variables + head.groups)
        return "the sheet has other words than it says";
    for (size_t i = 0; i + 1 < request->count; i++) {
        if (head.targets[i] < 0 || head.targets[i] > 60000)
            return "a descriptor has no proper number";
        for (size_t j = 0; j < i; j++)
            if (head.targets[i] == head.targets[j])
                return "two descriptors have one number";
    }
    return NULL;
}

static void failed(int status, const char *stage, const char *detail) __attribute__((noreturn));

/* In the launcher's words, on its own descriptor: the reader need not know how far it came. */
static void failed(int status, const char *stage, const char *detail)
{
    int number = errno;
    char line[256];
    int length = snprintf(line, sizeof line, "%s %d %.160s\n", stage, number, detail);
    if (length > 0)
        (void)!write(status, line, (size_t)length);
    _exit(LAUNCH_FAILED);
}

static const char *account_fault(void)
{
    return errno == ETIMEDOUT ? "the user database does not answer" : "the account";
}

static bool below_a_group(const struct policy *policy, const char *path)
{
    if (strstr(path, "/.."))
        return false;
    for (size_t i = 0; i < policy->group_count; i++) {
        size_t own = strlen(policy->groups[i]);
        if (strncmp(path, policy->groups[i], own) == 0 && path[own] == '/')
            return true;
    }
    return false;
}

static bool join_group(const struct policy *policy, const char *path)
{
    char file[TEXT_BYTES];
    struct statfs facts;
    errno = EACCES;
    if (!below_a_group(policy, path) || snprintf(file, sizeof file, "%s/cgroup.procs", path) >= (int)sizeof file)
        return false;
    int procs = open(file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (procs < 0 || fstatfs(procs, &facts) < 0)
        return false;
    errno = EACCES;
    bool joined = (facts.f_type == CGROUP_V1 || facts.f_type == CGROUP_V2) && write(procs, "0", 1) == 1;
    close(procs);
    return joined;
}

/* Signals and limits as a program expects them; the first process of a pid namespace would lose what comes before it
 * waits for signals. */
static void as_new(const struct policy *policy, bool keep_blocked)
{
    sigset_t none;
    sigemptyset(&none);
    signal(SIGCHLD, SIG_DFL);
    if (!keep_blocked)
        sigprocmask(SIG_SETMASK, &none, NULL);
    (void)!setrlimit(RLIMIT_NOFILE, &policy->room);
}

/* The descriptors get their numbers: all of them are first put out of the way, since any may be in another's place. */
static int arrange(struct request *request, const int32_t *targets, size_t count, int errors)
{
    int highest = errors;
    for (size_t i = 0; i < count; i++)
        if (targets[i] > highest)
            highest = targets[i];
    int moved[MAX_DESCRIPTORS], launcher = fcntl(request->policy->launcher, F_DUPFD_CLOEXEC, highest + 1);
    for (size_t i = 0; i < count; i++)
        if ((moved[i] = fcntl(request->descriptors[i + 1], F_DUPFD_CLOEXEC, highest + 1)) < 0)
            return -1;
    for (size_t i = 0; i < count; i++)
        if (dup2(moved[i], targets[i]) < 0)
            return -1;
    return launcher;
}

void start_launcher(struct request *request)
{
    struct sheet head;
    memcpy(&head, request->sheet, sizeof head);
    size_t total = (size_t)head.words + head.variables + head.groups, at = sizeof head, count = request->count - 1;
    char **list = calloc(total + 3, sizeof *list);
    int errors = request->descriptors[4]; /* the launcher's status descriptor, as long as it has its number here */
    if (!list)
        failed(errors, "memory", "words");
    char **words = list, **variables = list + head.words + 1, **groups = variables + head.variables + 1;
    for (size_t i = 0; i < total; i++) {
        char **place = i < head.words ? &words[i]
                       : i < (size_t)head.words + head.variables ? &variables[i - head.words]
                                                                 : &groups[i - head.words - head.variables];
        *place = request->sheet + at;
        at += strlen(*place) + 1;
    }
    for (char **variable = variables; *variable; variable++)
        if (strncmp(*variable, "_CONDOR_", 8) != 0) {
            errno = EINVAL;
            failed(errors, "variables", *variable);
        }
    const char *stage;
    if (!use_rights(true))
        failed(errors, "rights", "");
    for (size_t i = 0; i < head.groups; i++)
        if (!join_group(request->policy, groups[i]))
            failed(errors, "cgroup", groups[i]);
    if (!become_account_with(request->policy, request->order.uid, request->order.extra, launch_rights, true, &stage))
        failed(errors, stage, account_fault());
    int launcher = arrange(request, head.targets, count, errors);
    as_new(request->policy, request->order.flags & OWN_PIDS);
    if (launcher >= 0)
        syscall(SYS_execveat, launcher, "", words, variables, AT_EMPTY_PATH);
    failed(head.targets[3], "launcher", "cannot be started");
}

/* ---- program */

static bool plain(const char *text)
{
    for (; *text; text++)
        if (!((*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z') || (*text >= '0' && *text <= '9') ||
              strchr("_.:/@-", *text)))
            return false;
    return true;
}

/* The text is NAME, then VARIABLE=VALUE for some of those that the program may be given, with spaces between. */
const char *check_program(const struct request *request, const struct program **found)
{
    char text[TEXT_BYTES], *rest = NULL;
    memcpy(text, request->order.text, sizeof text);
    const char *name = strtok_r(text, " ", &rest);
    *found = NULL;
    for (size_t i = 0; name && i < request->policy->program_count; i++)
        if (strcmp(name, request->policy->programs[i].name) == 0)
            *found = &request->policy->programs[i];
    if (!*found)
        return "no such program is in the list";
    for (char *word; (word = strtok_r(NULL, " ", &rest));) {
        char *equals = strchr(word, '=');
        bool known = false;
        if (equals)
            *equals = 0;
        for (size_t i = 0; equals && (*found)->variables[i]; i++)
            known = known || strcmp(word, (*found)->variables[i]) == 0;
        if (!known || !plain(equals + 1))
            return "a variable is not this program's, or is not plain text";
    }
    if ((*found)->as_root != (request->order.uid == 0))
        return "the program runs as another account";
    if (request->count != 1)
        return "a program gets one descriptor";
    return NULL;
}

void start_program(struct request *request, const struct program *program)
{
    char *rest = NULL;
    const char *stage = "rights";
    int output = fcntl(request->descriptors[0], F_DUPFD_CLOEXEC, 3);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)strtok_r(request->order.text, " ", &rest);
    for (char *word; (word = strtok_r(NULL, " ", &rest));)
        putenv(word);
    if (program->as_root ? !use_rights(true)
                         : !become_account_with(request->policy, request->order.uid, 0, guard_rights, true, &stage))
        failed(output, stage, account_fault());
    setsid();
    as_new(request->policy, false);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0 || chdir("/") < 0 ||
        syscall(SYS_close_range, 3, ~0u, 0) < 0)
        failed(output, "descriptors", program->name);
    execv(program->words[0], program->words);
    failed(2, "exec", program->words[0]);
}

/* ---- open */

void open_path(struct request *request)
{
    const struct order *order = &request->order;
    const uint64_t allowed = O_ACCMODE | O_CREAT | O_EXCL | O_TRUNC | O_APPEND | O_NOFOLLOW | O_DIRECTORY;
    const char *stage;
    if (order->flags & ~allowed || order->extra & ~(uint32_t)(ANY_KIND | NO_LINKS) || order->mode & ~0777u)
        done(request, EINVAL, 0, "a flag that is not allowed", -1);
    int folder = request->count ? request->descriptors[0] : AT_FDCWD;
    if (request->count == 0 && order->text[0] != '/')
        done(request, EINVAL, 0, "a path without a folder begins at the root", -1);
    if (!become_account(request->policy, order->uid, &stage))
        done(request, errno, 0, "the account cannot be taken on", -1);
    struct open_how how = {
        .flags = order->flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
        .mode = order->flags & O_CREAT ? order->mode : 0,
        .resolve = RESOLVE_NO_MAGICLINKS | (order->extra & NO_LINKS ? RESOLVE_NO_SYMLINKS : 0) |
                   (request->count ? RESOLVE_BENEATH : 0),
    };
    int opened = (int)syscall(SYS_openat2, folder, order->text, &how, sizeof how);
    struct stat facts;
    if (opened < 0 || fstat(opened, &facts) < 0)
        done(request, errno, 0, "", -1);
    if (!(order->extra & ANY_KIND) && !S_ISREG(facts.st_mode) && !((order->flags & O_DIRECTORY)))
        done(request, EINVAL, 0, "not a plain file", -1);
    done(request, 0, 0, "", opened);
}

/* ---- trees of files */

void walk_tree(struct request *request)
{
    const struct policy *policy = request->policy;
    const struct order *order = &request->order;
    const char *stage = "";
    int64_t size = 0;
    bool ready;
    gid_t group = order->kind == GIVE ? group_of(policy, order->uid) : policy->pool_gid;
    if (group == 0)
        done(request, ESRCH, 0, "the account has no group", -1);
    if (order->kind == GIVE)
        ready = become_pool_to_give(policy);
    else if (order->kind == TAKE)
        ready = become_account_with(policy, order->uid, 0, chown_right, false, &stage);
    else if (order->kind == MEASURE)
        ready = become_account_with(policy, order->uid, 0, measure_right, false, &stage);
    else
        ready = become_account(policy, order->uid, &stage);
    if (!ready)
        done(request, errno ? errno : EPERM, 0, "the account cannot be taken on", -1);
    uid_t from = order->kind == GIVE ? policy->pool_uid : order->uid;
    uid_t to = order->kind == GIVE ? order->uid : policy->pool_uid;
    int error = order->kind == REMOVE && order->text[0]
                    ? remove_entry(request->descriptors[0], order->text)
                : order->kind == MEASURE
                    ? measure(request->descriptors[0], order->uid, order->text, &size)
                    : walk(request->descriptors[0], order->kind, from, to, group);
    done(request, error, size, error ? "not everything in it" : "", -1);
}

/* ---- signals */

/* A number that follows a name in one of the kernel's files about a process; false: there is none. */
static bool field(const char *path, const char *name, long *values, int count)
{
    char text[4096];
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return false;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return false;
    text[length] = 0;
    for (char *line = text, *rest = NULL; (line = strtok_r(line, "\n", &rest)); line = NULL) {
        size_t own = strlen(name);
        if (strncmp(line, name, own) != 0 || line[own] != ':')
            continue;
        char *at = line + own + 1;
        for (int i = 0; i < count; i++)
            values[i] = strtol(at, &at, 10);
        return true;
    }
    return false;
}

static bool descends(pid_t pid, pid_t from)
{
    char path[64];
    for (int steps = 0; steps < 4096 && pid > 1; steps++) {
        long parent;
        if (pid == from)
            return true;
        snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
        if (!field(path, "PPid", &parent, 1))
            return false;
        pid = (pid_t)parent;
    }
    return false;
}

/* A child of the daemon's that is root has been started from here, by an order of a program that begins as root: the
 * daemon itself cannot. */
static bool started_here(const struct policy *policy, pid_t pid)
{
    char path[64];
    long parent;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    return policy->kinds & 1u << PROGRAM && starts_as_root(policy) && pid != getpid() &&
           field(path, "PPid", &parent, 1) && parent == policy->daemon;
}

/* The descriptor names one process for good: should it end meanwhile, its number means nothing and no signal is sent. */
int signal_process(const struct request *request, const char **reason)
{
    char path[64];
    long pid = 0, users[4];
    int process = request->descriptors[0];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", process);
    *reason = "not the descriptor of a process";
    if (!field(path, "Pid", &pid, 1))
        return EBADF;
    *reason = "";
    if (pid <= 1)
        return ESRCH;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    if (!field(path, "Uid", users, 4))
        return ESRCH;
    *reason = "a process of an account that is not allowed";
    for (int i = 0; i < 4; i++)
        if (users[i] < 0 || !(account_allowed(request->policy, (uid_t)users[i]) ||
                              (users[i] == 0 && started_here(request->policy, (pid_t)pid))))
            return EPERM;
    *reason = "a process that was not started from here";
    if (request->policy->descendants && !descends((pid_t)pid, request->policy->daemon))
        return EPERM;
    *reason = "";
    if (request->order.signal < 0 || request->order.signal > 64)
        return EINVAL;
    if (!use_rights(true))
        return EPERM;
    int error = syscall(SYS_pidfd_send_signal, process, request->order.signal, NULL, 0) < 0 ? errno : 0;
    return use_rights(false) ? error : EPERM;
}
