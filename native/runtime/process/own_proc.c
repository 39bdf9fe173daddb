/* What the program sees of itself under /proc.  It is made here: the process at home with that name
 * would be the shadow, and the one on this machine is the runtime's. */
#include "own_proc.h"

#include "runtime/memory/memory.h"
#include "runtime/kinship/kinship.h"
#include "process.h"
#include "runtime/remote/remote.h"
#include "runtime/text.h"
#include "runtime/user.h"

/* The part after /proc/self/ (or its other names), "" for the directory, NULL for any other path. */
const char *own_proc_name(const char *path)
{
    if (!starts_with(path, "/proc/") && !starts_with(path, "/dev/"))
        return NULL;
    if (starts_with(path, "/dev/")) {
        static const struct {
            const char *path, *name;
        } same[] = {{"/dev/stdin", "fd/0"}, {"/dev/stdout", "fd/1"}, {"/dev/stderr", "fd/2"}};
        for (size_t i = 0; i < COUNT(same); i++)
            if (!strcmp(path, same[i].path))
                return same[i].name;
        return starts_with(path, "/dev/fd/") ? path + 5 : NULL;
    }
    const char *at = path + 6;
    if (starts_with(at, "self"))
        at += 4;
    else if (starts_with(at, "thread-self"))
        at += 11;
    else if (*at >= '0' && *at <= '9') {
        if (read_number(&at, 10) != (uint64_t)process.start.virtual_pid)
            return NULL;
    } else {
        return NULL;
    }
    if (*at == 0)
        return at;
    if (*at++ != '/')
        return NULL;
    if (starts_with(at, "task/")) { /* one thread's files are the process's */
        const char *rest = at + 5;
        read_number(&rest, 10);
        return *rest == '/' ? rest + 1 : NULL;
    }
    return at;
}

/* The part after another member's /proc/PID/, or NULL.  Under that name the kernel at home has a process of its own. */
const char *member_proc_name(struct thread *self, const char *path)
{
    if (!process.family || !starts_with(path, "/proc/") || path[6] < '1' || path[6] > '9')
        return NULL;
    const char *at = path + 6;
    const struct request who = {.call = OP_REAL_PID, .arguments = {(int64_t)read_number(&at, 10)}};
    return *at == '/' && ask(self, &who, NULL, 0, NULL, 0, NULL) > 0 ? at + 1 : NULL;
}

/* What a member may see of another: what is the same for all. */
bool is_told_of_members(const char *name)
{
    return !strcmp(name, "mounts") || !strcmp(name, "mountinfo") || !strcmp(name, "cgroup");
}

enum { MAPS_BYTES = 1 << 20, TEXT_BYTES = 1 << 19 };

struct lock proc_lock;
static char maps[MAPS_BYTES] GUARDED_BY(proc_lock); /* as the kernel has them */

static void put_place(struct text *text, unsigned long place)
{
    for (unsigned long digit = 1ul << 28; digit > place && digit > 1; digit >>= 4)
        put(text, "0");
    put_number(text, place, 16);
}

static void put_mapping(struct text *text, unsigned long from, unsigned long to, const char *protection)
{
    put_place(text, from);
    put(text, "-");
    put_place(text, to);
    put(text, " ");
    put(text, protection);
    put(text, to == process.stack_high ? " 00000000 00:00 0 [stack]\n" : " 00000000 00:00 0\n");
}

/* All memory is the program's own and has no name; that an image gave it in pieces is not to be seen.  (The C library
 * finds the size of the first thread's stack in here.) */
static void make_maps(struct text *text)
{
    char protection[5] = "";
    unsigned long from = 0, to = 0;
    long size = 0, got;
    lock(&proc_lock);
    while (size < (long)sizeof maps - 1 &&
           (got = SYSTEM(__NR_pread64, MAPS_FD, maps + size, sizeof maps - 1 - (size_t)size, size)) > 0)
        size += got;
    maps[size] = 0;
    for (const char *at = maps; *at;) {
        unsigned long start = read_number(&at, 16), end = (at++, read_number(&at, 16));
        if (start >= THREAD_PLACE || strlen(at) < 5)
            break;
        at++;
        if (start != to || memcmp(at, protection, 4) || protection[3] == 's') {
            if (to)
                put_mapping(text, from, to, protection);
            from = start;
            memcpy(protection, at, 4);
        }
        to = end;
        while (*at && *at++ != '\n')
            ;
    }
    if (to)
        put_mapping(text, from, to, protection);
    unlock(&proc_lock);
}

static void make_stat(struct text *text)
{
    const char *name = process.program;
    for (const char *at = name; *at; at++)
        if (*at == '/')
            name = at + 1;
    put_signed(text, process.start.virtual_pid);
    put(text, " (");
    put(text, name);
    put(text, ") R ");
    put_signed(text, parent_now(current_thread()));
    put(text, " ");
    put_signed(text, process.start.group);
    put(text, " ");
    put_signed(text, process.start.session);
    put(text, " 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 ");
    put_number(text, threads_live, 10);
    put(text, " 0 0 100000000 10000 18446744073709551615 1 1 ");
    put_number(text, process.stack_high, 10);
    put(text, " 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 ");
    put_number(text, process.arguments_at, 10);
    put(text, " ");
    put_number(text, process.arguments_end, 10);
    put(text, " ");
    put_number(text, process.environment_at, 10);
    put(text, " ");
    put_number(text, process.environment_end, 10);
    put(text, " 0\n");
}

static void make_status(struct text *text)
{
    const char *name = process.program;
    for (const char *at = name; *at; at++)
        if (*at == '/')
            name = at + 1;
    put(text, "Name:\t");
    put(text, name);
    put(text, "\nUmask:\t0022\nState:\tR (running)\nTgid:\t");
    put_signed(text, process.start.virtual_pid);
    put(text, "\nPid:\t");
    put_signed(text, process.start.virtual_pid);
    put(text, "\nPPid:\t");
    put_signed(text, parent_now(current_thread()));
    put(text, "\nTracerPid:\t0\nUid:\t");
    for (int i = 0; i < 4; i++)
        put_number(text, i ? process.start.euid : process.start.uid, 10), put(text, i < 3 ? "\t" : "\nGid:\t");
    for (int i = 0; i < 4; i++)
        put_number(text, i ? process.start.egid : process.start.gid, 10), put(text, i < 3 ? "\t" : "\n");
    put(text, "VmPeak:\t  100000 kB\nVmSize:\t  100000 kB\nVmRSS:\t   10000 kB\nThreads:\t");
    put_number(text, threads_live, 10);
    put(text, "\nNoNewPrivs:\t1\nSeccomp:\t2\n");
}

/* The words of a list on the program's stack, zeros included. */
static void put_memory(struct text *text, unsigned long from, unsigned long to)
{
    size_t size = to - from;
    if (size > text->room - text->used)
        size = text->room - text->used;
    if (!copy_user(text->at + text->used, (void *)from, size))
        text->used += size;
}

static bool make(const char *name, struct text *text)
{
    if (!strcmp(name, "maps")) {
        make_maps(text);
    } else if (!strcmp(name, "stat")) {
        make_stat(text);
    } else if (!strcmp(name, "status")) {
        make_status(text);
    } else if (!strcmp(name, "statm")) {
        put(text, "25000 2500 1000 1 0 2000 0\n");
    } else if (!strcmp(name, "cmdline")) {
        put_memory(text, process.arguments_at, process.arguments_end);
    } else if (!strcmp(name, "environ")) {
        put_memory(text, process.environment_at, process.environment_end);
    } else if (!strcmp(name, "comm")) {
        put(text, current_thread()->name);
        put(text, "\n");
    } else if (!strcmp(name, "cgroup")) {
        put(text, "0::/\n");
    } else if (!strcmp(name, "oom_score_adj") || !strcmp(name, "loginuid")) {
        put(text, "0\n");
    } else if (!strcmp(name, "mounts") || !strcmp(name, "mountinfo") || !strcmp(name, "smaps")) {
        put(text, "");
    } else {
        return false;
    }
    return true;
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

/* -ENOSYS: the path is to be opened at home, under the name that is now in the thread's scratch. */
long own_proc_open(struct trap *t, const char *name, int flags)
{
    if (!strcmp(name, "exe")) {
        memcpy(t->self->scratch, process.program, sizeof process.program);
        return -ENOSYS;
    }
    if (starts_with(name, "cwd") && (name[3] == 0 || name[3] == '/')) {
        char rest[PATH_LIMIT];
        struct text text = {rest, 0, sizeof rest};
        put(&text, ".");
        put(&text, name + 3);
        memcpy(t->self->scratch, rest, text.used + 1);
        return -ENOSYS;
    }
    if (starts_with(name, "fd/")) {
        const char *at = name + 3;
        long fd = (long)read_number(&at, 10);
        if (*at)
            return -ENOENT;
        return open_own_file(t->self, fd, flags);
    }
    if (starts_with(name, "fdinfo/")) {
        const char *at = name + 7;
        const struct request info = {.call = OP_FILE_INFO, .arguments = {(int64_t)read_number(&at, 10), flags & O_CLOEXEC}};
        return *at ? -ENOENT : (flags & O_ACCMODE) ? -EACCES : ask(t->self, &info, NULL, 0, NULL, 0, NULL);
    }
    if (flags & O_ACCMODE)
        return -EACCES;
    const size_t room = TEXT_BYTES;
    long memory = map_anonymous(0, room, PROT_READ | PROT_WRITE, MAP_NORESERVE);
    if (memory < 0)
        return memory;
    struct text text = {(char *)memory, 0, room};
    long result = -ENOENT;
    if (make(name, &text)) {
        struct request request = {.call = OP_TEXT, .arguments = {flags & O_CLOEXEC}};
        struct vector in = {text.at, text.used};
        result = ask(t->self, &request, &in, 1, NULL, 0, NULL);
    }
    unmap((unsigned long)memory, room);
    return result;
}

long own_proc_link(struct trap *t, const char *name, char *to, size_t size)
{
    struct text text = {to, 0, size};
    if (!strcmp(name, "exe")) {
        put(&text, process.program);
    } else if (!strcmp(name, "cwd")) {
        long length = call_home(t->self, __NR_getcwd, (long)to, (long)size, 0, 0, 0, 0);
        return length > 0 ? length - 1 : length;
    } else if (!strcmp(name, "root")) {
        put(&text, "/");
    } else if (*name == 0) {
        const char *path = (const char *)t->self->scratch;
        if (path[6] >= '0' && path[6] <= '9') /* the directory itself, by its number */
            return -EINVAL;
        put_signed(&text, process.start.virtual_pid);
        if (path[6] == 't') {
            put(&text, "/task/");
            put_signed(&text, t->self->virtual_id);
        }
    } else if (starts_with(name, "fd/")) {
        const char *at = name + 3;
        struct request request = {.call = OP_PATH_OF, .arguments = {(int64_t)read_number(&at, 10)}};
        struct vector out = {to, size};
        return *at ? -ENOENT : ask(t->self, &request, NULL, 0, &out, 1, NULL);
    } else {
        return -EINVAL;
    }
    return (long)text.used;
}
