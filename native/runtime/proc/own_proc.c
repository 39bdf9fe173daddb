/* The processes of the family under /proc: this one and others, and nobody else.  Their files are made here: the process at
 * home with such a name would be the shadow or a stranger, and the one on this machine is the runtime's.
 */
#include "own_proc.h"

#include "runtime/memory/memory.h"
#include "runtime/process/process.h"
#include "runtime/remote/plan.h"
#include "runtime/remote/remote.h"
#include "runtime/user.h"

enum { TEXT_BYTES = 1 << 19, LARGEST_PID = 1 << 22, WORDS_BYTES = MOST_PROGRAM_BYTES };

/* The part of PATH behind the directory FRONT, "" for that itself; NULL: it is elsewhere. */
static const char *below(const char *path, const char *front)
{
    if (!starts_with(path, front))
        return NULL;
    path += strlen(front);
    if (*path && *path != '/')
        return NULL;
    while (*path == '/')
        path++;
    return path;
}

static const char *device_name(const char *path)
{
    static const struct {
        const char *path, *name;
    } same[] = {{"/dev/stdin", "fd/0"}, {"/dev/stdout", "fd/1"}, {"/dev/stderr", "fd/2"}, {"/dev/fd", "fd"}};
    for (size_t i = 0; i < COUNT(same); i++)
        if (!strcmp(path, same[i].path))
            return same[i].name;
    return starts_with(path, "/dev/fd/") ? path + 5 : NULL;
}

/* What a number under /proc stands for. A number too large for a process is none's. */
static int number_of_process(const char **at)
{
    const uint64_t number = read_number(at, 10);
    return number == (uint64_t)process.start.virtual_pid ? PROC_OWN : number && number < LARGEST_PID ? (int)number : LARGEST_PID;
}

bool find_proc_path(struct thread *self, const char *path, struct proc_path *to)
{
    *to = (struct proc_path){.pid = PROC_OWN};
    if (starts_with(path, "/dev/"))
        return (to->name = device_name(path));
    const char *at = below(path, "/proc"), *rest;
    if (!at)
        return false;
    if (!strcmp(at, "mounts") /* a link to this process's */ || !strcmp(at, PTRACE_SCOPE)) {
        to->name = at;
        return true;
    }
    if (!*at) {
        to->pid = PROC_ROOT;
        to->name = at;
        return true;
    }
    if ((rest = below(at, "self"))) {
        to->is_link = !at[sizeof "self" - 1];
    } else if ((rest = below(at, "thread-self"))) {
        to->is_link = !at[sizeof "thread-self" - 1];
        to->thread = self->virtual_id;
    } else if (*at >= '1' && *at <= '9') {
        rest = at;
        to->pid = number_of_process(&rest);
        if (!(rest = below(rest, "")))
            return false;
    } else {
        return false;
    }
    const char *in_task = below(rest, "task");
    if (in_task && *in_task >= '1' && *in_task <= '9') { /* one thread's files are much the process's */
        to->thread = (int)read_number(&in_task, 10);
        rest = below(in_task, "");
    }
    to->name = rest ? rest : "?";
    return true;
}

/* Slashes behind it are no part of a name. */
static bool is_named(const char *name, const char *what)
{
    const char *rest = below(name, what);
    return rest && !*rest;
}

/* Links of a process: to what it runs, where it is, and to each file that it has open. */
bool is_proc_link(const struct proc_path *which)
{
    return which->is_link || !strcmp(which->name, "exe") || !strcmp(which->name, "cwd") || !strcmp(which->name, "root") ||
           (starts_with(which->name, "fd/") && !is_named(which->name, "fd"));
}

static struct thread *thread_with(int virtual_id)
{
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++)
        if (thread_at(slot)->state != THREAD_FREE && thread_at(slot)->virtual_id == virtual_id)
            return thread_at(slot);
    return NULL;
}

/* As the kernel does with such links, the file is opened again.  Only looked at, it is a second descriptor. */
static long open_own_file(struct thread *self, long fd, int flags)
{
    if (flags & O_PATH) {
        long second = call_home(self, __NR_dup, fd, 0, 0, 0, 0, 0);
        return second == -EBADF ? -ENOENT : second;
    }
    const struct request again = {.call = OP_REOPEN, .arguments = {fd, flags}};
    long opened = ask(self, &again, NULL, 0, NULL, 0, NULL);
    if (opened >= 0 && (flags & O_TRUNC))
        call_home(self, __NR_ftruncate, opened, 0, 0, 0, 0, 0);
    return opened;
}

/* The descriptor whose link PATH is; -ENOSYS: it is none of this process's. */
long own_file_named(struct thread *self, const char *path)
{
    struct proc_path which;
    if (!find_proc_path(self, path, &which) || which.pid != PROC_OWN || !starts_with(which.name, "fd/"))
        return -ENOSYS;
    const char *at = which.name + sizeof "fd/" - 1;
    const long fd = (long)read_number(&at, 10);
    return *at ? -ENOSYS : fd;
}

/* What PATH, the link of one of the process's open files, stands for: a descriptor of it, -ENOSYS: PATH is no such link, or
 * -errno. The C library changes modes of what it has looked at by such paths. */
long own_file_again(struct thread *self, const char *path)
{
    const long fd = own_file_named(self, path);
    return fd < 0 ? fd : open_own_file(self, fd, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}

/* ---- directories */

static void put_listed(struct text *text, const char *listed)
{
    put(text, listed);
    text->used++;
}

static void put_threads(struct text *text, const struct proc_path *which)
{
    if (which->pid != PROC_OWN) {
        put(text, "d");
        put_number(text, (unsigned long)which->pid, 10);
        text->used++;
        return;
    }
    for (int slot = 0; slot < MAX_THREADS && thread_slot_exists(slot); slot++) {
        const struct thread *t = thread_at(slot);
        if (t->state == THREAD_FREE || t->state == THREAD_STARTING || !t->virtual_id)
            continue;
        put(text, "d");
        put_number(text, (unsigned long)t->virtual_id, 10);
        text->used++;
    }
}

/* What is in a process's directory, or in a thread's. */
static void put_files(struct text *text, const struct proc_path *which)
{
    static const char *const others[] = {"dfd", "dfdinfo", "lcwd", "lexe", "lroot"};
    for (size_t i = 0; i < COUNT(others); i++)
        put_listed(text, others[i]);
    put_text_names(text);
    if (!which->thread)
        put_listed(text, "dtask");
}

bool is_proc_directory(const struct proc_path *which)
{
    return !*which->name || (is_named(which->name, "task") && !which->thread) || is_named(which->name, "fd") ||
           is_named(which->name, "fdinfo");
}

static long open_directory(struct thread *self, const struct proc_path *which, int flags)
{
    const bool files = is_named(which->name, "fd"), info = is_named(which->name, "fdinfo");
    struct request request = {.call = OP_LISTING, .arguments = {LISTING_GIVEN, flags & O_CLOEXEC}};
    if ((flags & O_ACCMODE) && !(flags & O_PATH))
        return -EISDIR;
    if (which->pid > 0 && (files || info))
        return -EACCES;
    if (which->pid == PROC_ROOT || files || info) {
        request.arguments[0] = files ? LISTING_FILES : info ? LISTING_FILE_INFO : LISTING_MEMBERS;
        return ask(self, &request, NULL, 0, NULL, 0, NULL);
    }
    const long memory = map_anonymous(0, TEXT_BYTES, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    if (memory < 0)
        return memory;
    struct text text = {(char *)memory, 0, TEXT_BYTES};
    if (!*which->name)
        put_files(&text, which);
    else
        put_threads(&text, which);
    const struct vector in = {text.at, text.used};
    const long fd = ask(self, &request, &in, 1, NULL, 0, NULL);
    unmap((unsigned long)memory, TEXT_BYTES);
    return fd;
}

/* ---- files */

static long open_text(struct thread *self, const struct proc_path *which, int flags)
{
    struct facts facts;
    const size_t room = TEXT_BYTES + WORDS_BYTES;
    if (!is_made_text(which->name))
        return -ENOENT;
    if ((flags & O_ACCMODE) || (which->pid > 0 && is_own_alone(which->name)))
        return -EACCES;
    if (flags & O_DIRECTORY)
        return -ENOTDIR;
    const long memory = map_anonymous(0, room, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    if (memory < 0)
        return memory;
    struct text text = {(char *)memory, 0, TEXT_BYTES};
    long result = find_facts(self, which->pid, &facts, (char *)memory + TEXT_BYTES, WORDS_BYTES);
    const struct thread *thread = which->pid == PROC_OWN && which->thread ? thread_with(which->thread) : NULL;
    if (!result && make_text(which->name, &facts, thread, &text)) {
        const bool mounts = !strcmp(which->name, "mounts"), info = !strcmp(which->name, "mountinfo");
        const struct request request = {.call = OP_TEXT, .arguments = {flags & O_CLOEXEC, mounts ? TEXT_MOUNTS : info ? TEXT_MOUNT_INFO : 0}};
        const struct vector in = {text.at, text.used};
        result = ask(self, &request, &in, 1, NULL, 0, NULL);
    }
    unmap((unsigned long)memory, room);
    return result;
}

/* What a link of another's leads to. Returns its length or -errno. */
static long link_of_other(struct thread *self, const struct proc_path *which, char *to, size_t size)
{
    struct member_told told;
    const bool directory = !strcmp(which->name, "cwd");
    const struct request request = {.call = OP_MEMBERS, .arguments = {directory ? MEMBER_DIRECTORY : MEMBER_TOLD, which->pid}};
    struct vector out[] = {{&told, sizeof told}, {to, size}};
    if (starts_with(which->name, "fd/"))
        return -EACCES;
    if (!strcmp(which->name, "root"))
        return to[0] = '/', 1;
    if (directory)
        return ask(self, &request, NULL, 0, out + 1, 1, NULL);
    const long got = ask(self, &request, NULL, 0, out, 2, NULL);
    return got < 0 ? got : told.path_bytes > 1 && told.path_bytes <= size ? (long)told.path_bytes - 1 : -ENOENT;
}

/* Puts PATH, and REST behind it, where a call finds its path. */
static long lead_to(struct trap *t, const char *path, const char *rest)
{
    char whole[PATH_LIMIT];
    struct text text = {whole, 0, sizeof whole};
    put(&text, path);
    put(&text, rest);
    memcpy(t->self->scratch, whole, text.used + 1);
    return -ENOSYS;
}

static bool is_of(struct thread *self, const struct proc_path *which)
{
    if (which->thread && which->pid == PROC_OWN)
        return thread_with(which->thread);
    if (which->thread && which->thread != which->pid)
        return false;
    const struct request who = {.call = OP_MEMBERS, .arguments = {MEMBER_TOLD, which->pid}};
    struct member_told told;
    const struct vector out = {&told, sizeof told};
    return which->pid <= 0 || ask(self, &who, NULL, 0, &out, 1, NULL) >= 0;
}

/* -ENOSYS: the path is to be opened at home, under the name that is now in the thread's scratch. */
long proc_open(struct trap *t, const struct proc_path *which, int flags)
{
    const char *name = which->name;
    char found[PATH_LIMIT];
    if (!is_of(t->self, which))
        return -ENOENT;
    if (is_proc_directory(which))
        return open_directory(t->self, which, flags);
    const char *in_cwd = below(name, "cwd"), *in_root = below(name, "root");
    if (which->pid > 0 && (in_cwd || !strcmp(name, "exe"))) {
        struct proc_path link = *which;
        link.name = in_cwd ? "cwd" : "exe";
        const long size = link_of_other(t->self, &link, found, sizeof found - 1);
        if (size < 0)
            return size;
        found[size] = 0;
        return lead_to(t, found, in_cwd ? name + 3 : "");
    }
    if (!strcmp(name, "exe"))
        return lead_to(t, process.program, "");
    if (in_cwd)
        return lead_to(t, ".", name + 3);
    if (in_root)
        return lead_to(t, "/", in_root);
    if (which->pid > 0 && (starts_with(name, "fd/") || starts_with(name, "fdinfo/")))
        return -EACCES;
    if (starts_with(name, "fd/")) {
        const char *at = name + 3;
        const long fd = (long)read_number(&at, 10);
        return *at ? -ENOENT : open_own_file(t->self, fd, flags);
    }
    if (starts_with(name, "fdinfo/")) {
        const char *at = name + 7;
        const struct request info = {.call = OP_FILE_INFO, .arguments = {(int64_t)read_number(&at, 10), flags & O_CLOEXEC}};
        return *at ? -ENOENT : (flags & O_ACCMODE) ? -EACCES : ask(t->self, &info, NULL, 0, NULL, 0, NULL);
    }
    return open_text(t->self, which, flags);
}

long proc_link(struct trap *t, const struct proc_path *which, char *to, size_t size)
{
    struct text text = {to, 0, size};
    const char *name = which->name;
    if (!is_of(t->self, which))
        return -ENOENT;
    if (!is_proc_link(which))
        return is_proc_directory(which) || is_made_text(name) ? -EINVAL : -ENOENT;
    if (which->pid > 0)
        return link_of_other(t->self, which, to, size);
    if (!strcmp(name, "exe")) {
        put(&text, process.program);
    } else if (!strcmp(name, "cwd")) {
        long length = call_home(t->self, __NR_getcwd, (long)to, (long)size, 0, 0, 0, 0);
        return length > 0 ? length - 1 : length;
    } else if (!strcmp(name, "root")) {
        put(&text, "/");
    } else if (which->is_link) {
        put_signed(&text, process.start.virtual_pid);
        if (which->thread) {
            put(&text, "/task/");
            put_signed(&text, t->self->virtual_id);
        }
    } else {
        const char *at = name + 3;
        struct request request = {.call = OP_PATH_OF, .arguments = {(int64_t)read_number(&at, 10)}};
        struct vector out = {to, size};
        return *at ? -ENOENT : ask(t->self, &request, NULL, 0, &out, 1, NULL);
    }
    return (long)text.used;
}
