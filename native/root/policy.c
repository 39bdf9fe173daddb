/* The command line, which root wrote: every word is checked, and nothing of it ever changes. */
#define _GNU_SOURCE
#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const kind_names[KINDS] = {
    [START] = "start", [OPEN] = "open", [SIGNAL] = "signal", [GIVE] = "give", [TAKE] = "take", [REMOVE] = "remove",
    [MEASURE] = "measure", [PROGRAM] = "program", [WATCH] = "watch",
};

static void wrong(const char *what, const char *word) __attribute__((noreturn));

static void wrong(const char *what, const char *word)
{
    fprintf(stderr, "condor_root: %s: %s\n", what, word ? word : "a word is missing");
    _exit(2);
}

static uint32_t number(const char *word)
{
    char *end;
    errno = 0;
    unsigned long value = word ? strtoul(word, &end, 10) : 0;
    if (!word || errno || end == word || *end || value >= UINT_MAX)
        wrong("not a number", word);
    return (uint32_t)value;
}

static void add(const char **list, size_t *count, const char *word)
{
    if (!word || word[0] != '/' || *count == MAX_FOLDERS)
        wrong("not a folder", word);
    list[(*count)++] = word;
}

static void add_kinds(struct policy *policy, char *word)
{
    if (!word)
        wrong("no orders", word);
    for (char *name = strtok(word, ","); name; name = strtok(NULL, ",")) {
        enum kind kind = START;
        while (kind < KINDS && strcmp(name, kind_names[kind]) != 0)
            kind++;
        if (kind == KINDS)
            wrong("no kind of order", name);
        policy->kinds |= 1u << kind;
    }
}

/* NAME root|account VARIABLES WORD... ; */
static char **add_program(struct policy *policy, char **word)
{
    if (policy->program_count == MAX_PROGRAMS || !word[0] || !word[1] || !word[2])
        wrong("no program", word[0]);
    struct program *program = &policy->programs[policy->program_count++];
    program->name = word[0];
    program->as_root = strcmp(word[1], "root") == 0;
    size_t count = 0;
    for (char *name = strtok(word[2], ","); name; name = strtok(NULL, ",")) {
        if (count == MAX_NAMES)
            wrong("too many variables", name);
        program->variables[count++] = name;
    }
    program->words = word += 3;
    while (*word && strcmp(*word, ";") != 0)
        word++;
    if (!*word || program->words == word || program->words[0][0] != '/')
        wrong("no program", program->name);
    *word = NULL;
    return word + 1;
}

/* START reads|events */
static char **add_device(struct policy *policy, char **word)
{
    if (policy->device_count == MAX_FOLDERS || !word[0] || word[0][0] != '/' || !word[1])
        wrong("no device", word[0]);
    struct device *device = &policy->devices[policy->device_count++];
    device->start = word[0];
    device->inputs = strcmp(word[1], "events") == 0;
    if (!device->inputs && strcmp(word[1], "reads") != 0)
        wrong("no way to watch a device", word[1]);
    return word + 2;
}

void read_policy(struct policy *policy, int count, char **words)
{
    if (count < 2)
        wrong("no socket", NULL);
    policy->socket = (int)number(words[1]);
    policy->least = policy->most = UINT_MAX;
    for (char **word = words + 2; *word;) {
        const char *name = *word++;
        if (strcmp(name, "--pool") == 0) {
            policy->pool_uid = number(word[0]);
            policy->pool_gid = number(word[0] ? word[1] : NULL);
            word += 2;
        } else if (strcmp(name, "--users") == 0) {
            policy->least = number(word[0]);
            policy->most = number(word[0] ? word[1] : NULL);
            word += 2;
        } else if (strcmp(name, "--account") == 0) {
            if (policy->account_count == MAX_ACCOUNTS)
                wrong("too many accounts", word[0]);
            struct account *account = &policy->accounts[policy->account_count++];
            account->uid = number(word[0]);
            account->gid = number(word[0] ? word[1] : NULL);
            word += 2;
        } else if (strcmp(name, "--orders") == 0) {
            add_kinds(policy, *word++);
        } else if (strcmp(name, "--group") == 0) {
            add(policy->groups, &policy->group_count, *word++);
        } else if (strcmp(name, "--folder") == 0) {
            add(policy->folders, &policy->folder_count, *word++);
        } else if (strcmp(name, "--descendants") == 0) {
            policy->descendants = true;
        } else if (strcmp(name, "--launcher") == 0) {
            policy->launcher = *word ? open(*word, O_PATH | O_CLOEXEC) : -1;
            if (policy->launcher < 0)
                wrong("cannot open", *word);
            word++;
        } else if (strcmp(name, "--program") == 0) {
            word = add_program(policy, word);
        } else if (strcmp(name, "--device") == 0) {
            word = add_device(policy, word);
        } else {
            wrong("no option", name);
        }
    }
    if (policy->pool_uid == 0 || policy->pool_gid == 0)
        wrong("the pool's account", "is root's, or none");
    if ((policy->kinds & 1u << START) && policy->launcher <= 0)
        wrong("no launcher", NULL);
}

/* Whether a program of the list begins as root. */
bool starts_as_root(const struct policy *policy)
{
    for (size_t i = 0; i < policy->program_count; i++)
        if (policy->programs[i].as_root)
            return true;
    return false;
}

/* Nobody becomes root or the pool; the range has no account of the system's in it, the list is the administrator's. */
bool account_allowed(const struct policy *policy, uid_t uid)
{
    if (uid == 0 || uid == (uid_t)-1 || uid == policy->pool_uid)
        return false;
    if (uid >= policy->least && uid <= policy->most)
        return true;
    for (size_t i = 0; i < policy->account_count; i++)
        if (policy->accounts[i].uid == uid)
            return true;
    return false;
}

/* The number of the mount that a descriptor is on; -1: none is told. */
static long mount_of(int descriptor)
{
    char path[64], line[256];
    long number = -1;
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", descriptor);
    FILE *facts = fopen(path, "re");
    while (facts && number < 0 && fgets(line, sizeof line, facts))
        if (strncmp(line, "mnt_id:", 7) == 0)
            number = strtol(line + 7, NULL, 10);
    if (facts)
        fclose(facts);
    return number;
}

/* Whether a descriptor is on one of the mounts that are seen from here.  A process with a mount namespace of its own (any user may
 * make one, with a user namespace) can mount another user's folder there under any name, and a descriptor's path is told
 * as it is in its own namespace.  The descriptor keeps its mount, so the number is no other's meanwhile. */
static bool mounted_here(int descriptor)
{
    long wanted = mount_of(descriptor), number;
    FILE *list = wanted < 0 ? NULL : fopen("/proc/self/mountinfo", "re");
    bool found = false;
    char *line = NULL;
    size_t room = 0;
    while (list && !found && getline(&line, &room, list) > 0) {
        char *end;
        number = strtol(line, &end, 10);
        found = end != line && *end == ' ' && number == wanted;
    }
    free(line);
    if (list)
        fclose(list);
    return found;
}

/* Whether a descriptor is of a folder below one of the list's. */
bool folder_allowed(const struct policy *policy, int folder)
{
    char link[64], path[PATH_MAX];
    if (!mounted_here(folder))
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0 || length == (ssize_t)sizeof path - 1)
        return false;
    path[length] = 0;
    for (size_t i = 0; i < policy->folder_count; i++) {
        size_t own = strlen(policy->folders[i]);
        if (strncmp(path, policy->folders[i], own) == 0 && path[own] == '/' && path[own + 1])
            return true;
    }
    return false;
}
