/* The command line: every word is checked, nothing is guessed. */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    int value;
} namespace_names[] = {
    {"user", CLONE_NEWUSER}, {"net", CLONE_NEWNET}, {"pid", CLONE_NEWPID},       {"mount", CLONE_NEWNS},
    {"ipc", CLONE_NEWIPC},   {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP},
}, limit_names[] = {
    {"cpu", RLIMIT_CPU},         {"fsize", RLIMIT_FSIZE},           {"data", RLIMIT_DATA},
    {"stack", RLIMIT_STACK},     {"core", RLIMIT_CORE},             {"rss", RLIMIT_RSS},
    {"nproc", RLIMIT_NPROC},     {"nofile", RLIMIT_NOFILE},         {"memlock", RLIMIT_MEMLOCK},
    {"as", RLIMIT_AS},           {"locks", RLIMIT_LOCKS},           {"sigpending", RLIMIT_SIGPENDING},
    {"msgqueue", RLIMIT_MSGQUEUE}, {"nice", RLIMIT_NICE},           {"rtprio", RLIMIT_RTPRIO},
    {"rttime", RLIMIT_RTTIME},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static long long number(const char *option, const char *text, int base, long long least, long long most)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, base);
    if (errno || end == text || *end || value < least || value > most)
        fail("options", EINVAL, option);
    return value;
}

static void read_groups(struct plan *plan, char *text)
{
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        if (plan->group_count == MAX_GROUPS)
            fail("options", E2BIG, "--groups");
        plan->groups[plan->group_count++] = (gid_t)number("--groups", word, 10, 0, UINT_MAX - 1);
    }
}

static void read_isolation(struct plan *plan, char *text)
{
    for (char *word = strtok(text, ","); word; word = strtok(NULL, ",")) {
        size_t i = 0;
        while (i < COUNT(namespace_names) && strcmp(word, namespace_names[i].name) != 0)
            i++;
        if (i == COUNT(namespace_names))
            fail("options", EINVAL, word);
        plan->isolate |= namespace_names[i].value;
    }
}

static rlim_t limit_value(const char *text)
{
    if (strcmp(text, "unlimited") == 0)
        return RLIM_INFINITY;
    return (rlim_t)number("--rlimit", text, 10, 0, LLONG_MAX);
}

/* NAME=SOFT:HARD or NAME=BOTH */
static void read_limit(struct plan *plan, char *text)
{
    if (plan->limit_count == MAX_LIMITS)
        fail("options", E2BIG, "--rlimit");
    char *equals = strchr(text, '=');
    if (!equals)
        fail("options", EINVAL, text);
    *equals = 0;
    size_t i = 0;
    while (i < COUNT(limit_names) && strcmp(text, limit_names[i].name) != 0)
        i++;
    if (i == COUNT(limit_names))
        fail("options", EINVAL, text);
    char *hard = strchr(equals + 1, ':');
    if (hard)
        *hard++ = 0;
    struct limit *limit = &plan->limits[plan->limit_count++];
    limit->resource = limit_names[i].value;
    limit->name = limit_names[i].name;
    limit->value.rlim_cur = limit_value(equals + 1);
    limit->value.rlim_max = hard ? limit_value(hard) : limit->value.rlim_cur;
}

static void keep_descriptor(struct plan *plan, const char *option, const char *text)
{
    if (plan->kept_count == MAX_KEPT)
        fail("options", E2BIG, option);
    plan->kept[plan->kept_count++] = (int)number(option, text, 10, 3, INT_MAX);
}

static void add_bind(struct plan *plan, const char *option, const char *from, const char *to, bool read_only)
{
    if (plan->bind_count == MAX_BINDS)
        fail("options", E2BIG, option);
    plan->binds[plan->bind_count++] = (struct bind){from, to, read_only};
}

static void add_device(const char **list, size_t *count, const char *option, const char *path)
{
    if (*count == MAX_DEVICES)
        fail("options", E2BIG, option);
    if (strncmp(path, "/dev/", 5) != 0 || strstr(path, ".."))
        fail("options", EINVAL, option);
    list[(*count)++] = path;
}

static void shut(const char **list, size_t *count, const char *option, const char *path)
{
    if (*count == MAX_SHUT)
        fail("options", E2BIG, option);
    if (path[0] != '/')
        fail("options", EINVAL, option);
    list[(*count)++] = path;
}

/* The number of the descriptor, or - where nothing was kept. */
static void add_checked(struct plan *plan, const char *option, const char *text, const char *path)
{
    if (plan->checked_count == MAX_CHECKED)
        fail("options", E2BIG, option);
    if (path[0] != '/')
        fail("options", EINVAL, option);
    struct checked *each = &plan->checked[plan->checked_count++];
    *each = (struct checked){path, -1};
    if (strcmp(text, "-") != 0)
        each->fd = (int)number(option, text, 10, 3, INT_MAX);
}

static void read_filter(struct plan *plan, const char *word)
{
    static const char *const names[] = {
        [FILTER_NONE] = "none", [FILTER_JOB] = "job", [FILTER_JOB_TRACEABLE] = "job-traceable",
        [FILTER_RUNTIME] = "runtime"};
    for (size_t i = 0; i < COUNT(names); i++)
        if (strcmp(word, names[i]) == 0) {
            plan->filter = (enum filter)i;
            return;
        }
    fail("options", EINVAL, word);
}

/* Options with one argument. Returns whether NAME is one of them. */
static bool read_valued(struct plan *plan, const char *name, char *value)
{
    if (strcmp(name, "--uid") == 0) {
        plan->uid = (uid_t)number(name, value, 10, 0, UINT_MAX - 1);
        plan->has_uid = true;
    } else if (strcmp(name, "--gid") == 0) {
        plan->gid = (gid_t)number(name, value, 10, 0, UINT_MAX - 1);
        plan->has_gid = true;
    } else if (strcmp(name, "--groups") == 0) {
        read_groups(plan, value);
    } else if (strcmp(name, "--chdir") == 0) {
        plan->directory = value;
    } else if (strcmp(name, "--root") == 0) {
        plan->root = value;
    } else if (strcmp(name, "--cgroup") == 0) {
        if (plan->cgroup_count == MAX_CGROUPS)
            fail("options", E2BIG, name);
        plan->cgroups[plan->cgroup_count++] = value;
    } else if (strcmp(name, "--nice") == 0) {
        plan->nice_increment = (int)number(name, value, 10, -40, 40);
        plan->has_nice = true;
    } else if (strcmp(name, "--rlimit") == 0) {
        read_limit(plan, value);
    } else if (strcmp(name, "--umask") == 0) {
        plan->mask = (mode_t)number(name, value, 8, 0, 0777);
        plan->has_umask = true;
    } else if (strcmp(name, "--isolate") == 0) {
        read_isolation(plan, value);
    } else if (strcmp(name, "--join") == 0) {
        if (plan->joined_count == MAX_JOINED)
            fail("options", E2BIG, name);
        plan->joined[plan->joined_count++] = value;
        plan->joins_pids |= strstr(value, "/ns/pid") != NULL;
    } else if (strcmp(name, "--tmpfs") == 0) {
        add_bind(plan, name, NULL, value, false);
    } else if (strcmp(name, "--death-signal") == 0) {
        plan->death_signal = (int)number(name, value, 10, 1, 64);
    } else if (strcmp(name, "--status-fd") == 0) {
        plan->status_fd = (int)number(name, value, 10, 3, INT_MAX);
        report_to(plan->status_fd);
    } else if (strcmp(name, "--keep-fd") == 0) {
        keep_descriptor(plan, name, value);
    } else if (strcmp(name, "--end-fd") == 0) {
        plan->end_fd = (int)number(name, value, 10, 3, INT_MAX);
    } else if (strcmp(name, "--linger-fd") == 0) {
        plan->linger_fd = (int)number(name, value, 10, 3, INT_MAX);
    } else if (strcmp(name, "--linger-s") == 0) {
        plan->linger_s = (int)number(name, value, 10, 0, INT_MAX / 1000);
    } else if (strcmp(name, "--layers") == 0) {
        plan->layers = value;
    } else if (strcmp(name, "--image") == 0) {
        plan->image = value;
    } else if (strcmp(name, "--read-only") == 0) {
        shut(plan->read_only, &plan->read_only_count, name, value);
    } else if (strcmp(name, "--hide") == 0) {
        shut(plan->hidden, &plan->hidden_count, name, value);
    } else if (strcmp(name, "--shut-device") == 0) {
        add_device(plan->shut_devices, &plan->shut_device_count, name, value);
    } else if (strcmp(name, "--device") == 0) {
        add_device(plan->devices, &plan->device_count, name, value);
    } else if (strcmp(name, "--filter") == 0) {
        read_filter(plan, value);
    } else {
        return false;
    }
    return true;
}

static void check(const struct plan *plan)
{
    if (plan->has_uid && !plan->has_gid)
        fail("options", EINVAL, "--uid needs --gid: a job never keeps the launcher's groups");
    if (plan->group_count && !plan->has_gid)
        fail("options", EINVAL, "--groups needs --gid");
    for (size_t i = 0; i < plan->bind_count; i++)
        if (plan->binds[i].read_only && !plan->layers)
            fail("options", EINVAL, "--bind-read-only needs --layers");
    if (plan->bind_count && !(plan->isolate & CLONE_NEWNS))
        fail("options", EINVAL, "--bind and --tmpfs need --isolate mount");
    if ((plan->read_only_count || plan->hidden_count) && !(plan->isolate & CLONE_NEWNS))
        fail("options", EINVAL, "--read-only and --hide need --isolate mount");
    if (plan->shut_device_count && !(plan->isolate & CLONE_NEWNS))
        fail("options", EINVAL, "--shut-device needs --isolate mount");
    if (plan->device_count && !plan->layers)
        fail("options", EINVAL, "--device needs --layers");
    if (plan->layers && (!plan->image || plan->root || plan->read_only_count || plan->hidden_count ||
                         !(plan->isolate & CLONE_NEWNS) || !(plan->isolate & CLONE_NEWPID)))
        fail("options", EINVAL, "--layers needs --image and --isolate mount,pid, and shuts nothing else");
    if (plan->first && (!(plan->isolate & CLONE_NEWPID) || plan->status_fd < 0))
        fail("options", EINVAL, "--first needs --isolate pid and --status-fd");
    if (plan->linger_fd >= 0 && !(plan->isolate & CLONE_NEWPID))
        fail("options", EINVAL, "--linger-fd needs --isolate pid");
    for (size_t i = 0; i < plan->kept_count; i++)
        if (plan->kept[i] == plan->status_fd)
            fail("options", EINVAL, "--keep-fd names the status descriptor");
}

void read_options(struct plan *plan, int count, char **words)
{
    int i = 1;
    while (i < count && strcmp(words[i], "--") != 0) {
        char *name = words[i];
        if (strcmp(name, "--new-session") == 0) {
            plan->new_session = true;
            i += 1;
        } else if (strcmp(name, "--terminal") == 0) {
            plan->terminal = true;
            i += 1;
        } else if (strcmp(name, "--stop-at-exec") == 0) {
            plan->stop_at_exec = true;
            i += 1;
        } else if (strcmp(name, "--first") == 0) {
            plan->first = true;
            i += 1;
        } else if (strcmp(name, "--bind") == 0 && i + 2 < count) {
            add_bind(plan, name, words[i + 1], words[i + 2], false);
            i += 3;
        } else if (strcmp(name, "--bind-read-only") == 0 && i + 2 < count) {
            add_bind(plan, name, words[i + 1], words[i + 2], true);
            i += 3;
        } else if (strcmp(name, "--checked") == 0 && i + 2 < count) {
            add_checked(plan, name, words[i + 1], words[i + 2]);
            i += 3;
        } else if (i + 1 < count && read_valued(plan, name, words[i + 1])) {
            i += 2;
        } else {
            fail("options", EINVAL, name);
        }
    }
    if (i + 1 >= count)
        fail("options", EINVAL, "no program: end the options with -- PROGRAM ARGUMENTS");
    plan->program = words + i + 1;
    check(plan);
}
