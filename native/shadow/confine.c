/* What the names in a program's calls stand for: no link under /proc is followed to what this process or another one has
 * open (openat2, RESOLVE_NO_MAGICLINKS; before Linux 5.6 only job_root keeps it from there).  With job_root, of home the
 * program gets at one directory, and to read at what every program needs.
 *
 * Names stay what they are.  The kernel resolves a name as the owner, into a descriptor that stands for what was found
 * (O_PATH); if that lies where the program may be, the call is done through the descriptor, under its name
 * /proc/self/fd/N.  So nothing can change between the look and the deed, whatever the program renames or links
 * meanwhile.  What is not followed, or is not there yet, is done in its directory, which was looked at in that way.
 */
#include "serve.h"
#include "terminals/terminals.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PINNED_FRONT = sizeof "/proc/self/fd/" - 1, NOFOLLOW_FLAG = 0x100, FOLLOW_FLAG = 0x400 };

/* What a call does to the file that a name of its arguments stands for. */
enum use { LOOKS, READS, WRITES };

struct name {
    int at; /* argument: the directory, -1 the working one */
    bool follows;
    enum use use;
};

static bool lies_in(const char *path, const char *directory)
{
    size_t length = strlen(directory);
    return strncmp(path, directory, length) == 0 && (!path[length] || path[length] == '/');
}

static bool may_be_at(const struct session *s, const char *path, enum use use)
{
    static const char *const devices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};
    static const char *const to_read[] = {"/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/sbin", "/usr",
                                          "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version",
                                          "/proc/filesystems", "/proc/sys", "/sys/devices/system"};
    if (lies_in(path, s->root->job_root))
        return true;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcmp(path, devices[i]) == 0)
            return true;
    for (size_t i = 0; use != WRITES && i < sizeof to_read / sizeof *to_read; i++)
        if (lies_in(path, to_read[i]))
            return true;
    bool above = strcmp(path, "/") == 0 || lies_in(s->root->job_root, path);
    return use == LOOKS && above; /* the way down to it: programs look at each part of their own name */
}

static bool name_now(int real, char path[PATH_LIMIT])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", real);
    ssize_t length = readlink(link, path, PATH_LIMIT - 1);
    path[length < 0 ? 0 : length] = 0;
    return length > 0;
}

/* Whether the descriptor REAL, which the program has, may be used so. What has no name any more belongs to this program alone. */
static bool may_use(const struct session *s, int real, enum use use)
{
    char path[PATH_LIMIT];
    struct stat st;
    return name_now(real, path) && fstat(real, &st) == 0 &&
           (path[0] != '/' || st.st_nlink == 0 || may_be_at(s, path, use));
}

/* The same of what a name has led to. Names under /proc lead also to what has none: pipes, deleted files, the memory of
 * other processes of the owner's. */
static bool may_reach(const struct session *s, int real, enum use use)
{
    char path[PATH_LIMIT];
    return name_now(real, path) && (may_be_at(s, path, use) || terminal_is_ours(s, path));
}

/* A file that was opened by other ways than a call with its name. */
bool may_have(const struct session *s, int real, bool writes)
{
    return !s->root->job_root || may_reach(s, real, writes ? WRITES : READS);
}

/* Names of which calls, in the order of the payload; returns how many. Other strings there are no names of files. */
static int names_of(const struct request *r, struct name names[2])
{
    const int64_t *a = r->arguments;
    int flags = (int)a[2];
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC));
    switch (r->call) {
    case __NR_openat:
        names[0] = (struct name){0, !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL),
                                 flags & O_PATH ? LOOKS : writes ? WRITES : READS};
        return 1;
    case __NR_newfstatat: names[0] = (struct name){0, !(a[3] & NOFOLLOW_FLAG), LOOKS}; return 1;
    case __NR_statx: names[0] = (struct name){0, !(a[2] & NOFOLLOW_FLAG), LOOKS}; return 1;
    case __NR_faccessat2: names[0] = (struct name){0, !(a[3] & NOFOLLOW_FLAG), LOOKS}; return 1;
    case __NR_faccessat: names[0] = (struct name){0, true, LOOKS}; return 1;
    case __NR_readlinkat: names[0] = (struct name){0, false, LOOKS}; return 1;
    case __NR_fchmodat: names[0] = (struct name){0, true, WRITES}; return 1;
    case __NR_fchownat: names[0] = (struct name){0, !(a[4] & NOFOLLOW_FLAG), WRITES}; return 1;
    case __NR_futimesat: names[0] = (struct name){0, true, WRITES}; return a[1] ? 1 : 0;
    case __NR_utimensat: names[0] = (struct name){0, !(a[3] & NOFOLLOW_FLAG), WRITES}; return a[1] ? 1 : 0;
    case __NR_mkdirat: case __NR_mknodat: case __NR_unlinkat:
        names[0] = (struct name){0, false, WRITES};
        return 1;
    case __NR_renameat: case __NR_renameat2: case __NR_linkat:
        names[0] = (struct name){0, r->call == __NR_linkat && (a[4] & FOLLOW_FLAG), WRITES};
        names[1] = (struct name){2, false, WRITES};
        return 2;
    case __NR_symlinkat: names[0] = (struct name){1, false, WRITES}; return 1;
    case __NR_truncate: case __NR_utime: case __NR_setxattr: case __NR_removexattr:
        names[0] = (struct name){-1, true, WRITES};
        return 1;
    case __NR_lsetxattr: case __NR_lremovexattr: names[0] = (struct name){-1, false, WRITES}; return 1;
    case __NR_chdir: case __NR_getxattr: case __NR_listxattr: names[0] = (struct name){-1, true, READS}; return 1;
    case __NR_statfs: names[0] = (struct name){-1, true, LOOKS}; return 1;
    case __NR_lgetxattr: case __NR_llistxattr: names[0] = (struct name){-1, false, READS}; return 1;
    default: return 0;
    }
}

/* Flags that the kernel knows nothing of; it says so before it looks at any name. */
static bool has_unknown_flags(const struct request *r)
{
    const int64_t *a = r->arguments;
    unsigned looks = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE;
    switch (r->call) {
    case __NR_newfstatat: return (unsigned)a[3] & ~looks;
    case __NR_statx: return (unsigned)a[2] & ~looks;
    case __NR_faccessat2: return (unsigned)a[3] & ~(unsigned)(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    case __NR_fchownat: return (unsigned)a[4] & ~(unsigned)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    case __NR_utimensat: return (unsigned)a[3] & ~(unsigned)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
    case __NR_linkat: return (unsigned)a[4] & ~(unsigned)(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH);
    case __NR_unlinkat: return (unsigned)a[2] & ~(unsigned)AT_REMOVEDIR;
    default: return false;
    }
}

/* Calls that make, move or remove a name: they follow none, not even for a slash behind it. */
static bool is_about_names(uint16_t call)
{
    return call == __NR_mkdirat || call == __NR_mknodat || call == __NR_unlinkat || call == __NR_renameat ||
           call == __NR_renameat2 || call == __NR_linkat || call == __NR_symlinkat;
}

/* Calls that change what a descriptor stands for, though it may be open for reading only. */
static bool changes_descriptor(const struct request *r)
{
    return r->call == __NR_fchmod || r->call == __NR_fchown || r->call == __NR_fsetxattr ||
           r->call == __NR_fremovexattr || ((r->call == __NR_utimensat || r->call == __NR_futimesat) && !r->arguments[1]);
}

static int pin_allowed(const struct session *s, int directory, const char *path, int flags, enum use use)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | (unsigned)flags, .resolve = RESOLVE_NO_MAGICLINKS};
    int pin = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    if (pin < 0 && errno == ENOSYS)
        pin = openat(directory, path, (int)how.flags);
    if (pin < 0)
        return -errno;
    if (!s->root->job_root || may_reach(s, pin, use))
        return pin;
    close(pin);
    return -EACCES;
}

/* What PATH stands for, if the program may read it: a descriptor that stands for it, or -errno. */
int pin_to_read(const struct session *s, const char *path, int flags)
{
    return pin_allowed(s, AT_FDCWD, path, flags, READS);
}

/* Opens what PATH stands for and writes its safe name. Returns the descriptor, -ENOENT or another -errno. */
static int pin_object(const struct session *s, int directory, const char *path, enum use use, char *to)
{
    int pin = pin_allowed(s, directory, path, 0, use);
    if (pin >= 0)
        snprintf(to, PINNED_NAME, "/proc/self/fd/%d", pin);
    return pin;
}

/* The same of its directory; the last part of the name is added, and not followed by the call; nor is the slash behind
 * the LENGTH, if there is one. */
static int pin_directory(const struct session *s, int directory, const char *path, size_t length, enum use use, char *to)
{
    char front[PATH_LIMIT];
    size_t slash = length;
    while (slash && path[slash - 1] != '/')
        slash--;
    memcpy(front, path, slash);
    front[slash] = 0;
    int pin = pin_object(s, directory, slash ? front : ".", use, to);
    if (pin >= 0 && snprintf(to, PINNED_NAME + PATH_LIMIT, "/proc/self/fd/%d/%.*s%s", pin, (int)(length - slash),
                             path + slash, path[length] ? "/" : "") < 0)
        return -EINVAL;
    return pin;
}

static int pin_name(struct work *w, const struct name *name, const char *path, char *to)
{
    struct session *s = w->session;
    int64_t given = name->at < 0 ? AT_FDCWD : w->head.arguments[name->at];
    int directory = given == AT_FDCWD ? AT_FDCWD : real_of(s, given);
    size_t length = strlen(path);
    if (directory == -1 && path[0] != '/')
        return -EBADF;
    while (length > 1 && path[length - 1] == '/')
        length--;
    const char *last = memrchr(path, '/', length);
    last = last ? last + 1 : path;
    size_t last_length = (size_t)(path + length - last);
    bool dots = (last_length == 1 && last[0] == '.') || (last_length == 2 && last[0] == '.' && last[1] == '.');
    bool slash = !is_about_names(w->head.call) && path[length] == '/';
    if (name->follows || dots || slash || !last_length) { /* a slash behind it follows, too */
        bool makes = w->head.call == __NR_openat && (w->head.arguments[2] & O_CREAT);
        int pin = pin_object(s, directory, path, name->use, to);
        if (pin >= 0 && !name->follows)
            strcat(to, "/."); /* a directory: the call is not to stop at the name's own link */
        if (pin != -ENOENT || dots || !makes) /* what is not there now may be a link in a moment */
            return pin;
        if (slash)
            return -EISDIR;
    }
    if (name->use == LOOKS && s->root->job_root) { /* who may look at a directory on the way may not look at what else is in it */
        int pin = pin_allowed(s, directory, path, O_NOFOLLOW, LOOKS);
        if (pin == -EACCES)
            return pin;
        if (pin >= 0)
            close(pin);
    }
    return pin_directory(s, directory, path, length, name->use, to);
}

/* An empty name: a call that changes what its descriptor stands for. */
static bool may_change(const struct session *s, const struct request *r, const struct name *name)
{
    int64_t given = name->at < 0 ? AT_FDCWD : r->arguments[name->at];
    int real = given == AT_FDCWD ? open(".", O_PATH | O_CLOEXEC) : real_of((struct session *)(uintptr_t)s, given);
    bool allowed = name->use != WRITES || real < 0 || may_use(s, real, WRITES);
    if (given == AT_FDCWD && real >= 0)
        close(real);
    return allowed;
}

/* The names of W's payload, replaced by safe ones. Returns 0, -errno; what was there is in BEFORE. */
long confine(struct work *w, struct confined *before)
{
    struct name names[2];
    int count = names_of(&w->head, names);
    size_t at = 0, used = 0;
    *before = (struct confined){.head = w->head, .payload = w->payload, .pins = {-1, -1}};
    bool rooted = w->session->root->job_root;
    if (rooted && changes_descriptor(&w->head)) {
        int real = real_of(w->session, ARGUMENT(0));
        return real < 0 || may_use(w->session, real, WRITES) ? 0 : -EACCES;
    }
    if (!count || (!rooted && w->head.call == __NR_openat)) /* open_at looks after that itself */
        return 0;
    if (has_unknown_flags(&w->head))
        return -EINVAL;
    uint8_t *fresh = before->fresh = malloc(w->head.size + 2 * (PINNED_NAME + PATH_LIMIT));
    if (!fresh)
        return -ENOMEM;
    if (w->head.call == __NR_symlinkat) { /* what it says is no name yet */
        if (!take_path(w, &at))
            return -EFAULT;
        memcpy(fresh, w->payload, used = at);
    }
    for (int i = 0; i < count; i++) {
        const char *path = w->head.arguments[names[i].at + 1] ? take_path(w, &at) : NULL; /* it stands behind its directory */
        char to[PINNED_NAME + PATH_LIMIT] = "", here[PATH_LIMIT];
        if (!path)
            return -EFAULT;
        path = terminal_path(w->session, path, here);
        if (!path[0] && rooted && !may_change(w->session, &w->head, &names[i]))
            return -EACCES;
        if (path[0]) {
            before->pins[i] = pin_name(w, &names[i], path, to);
            if (before->pins[i] < 0)
                return before->pins[i];
            if (names[i].at >= 0)
                w->head.arguments[names[i].at] = AT_FDCWD;
        }
        size_t length = strlen(to) + 1;
        if (length > PATH_LIMIT)
            return -ENAMETOOLONG;
        memcpy(fresh + used, to, length);
        used += length;
    }
    memcpy(fresh + used, w->payload + at, w->head.size - at);
    if (w->head.call == __NR_openat && strchr((char *)fresh + PINNED_FRONT, '/'))
        w->head.arguments[2] |= O_NOFOLLOW; /* what is not to be followed, or was not there when it was looked at */
    w->payload = fresh;
    w->head.size = (uint32_t)(used + w->head.size - at);
    return 0;
}

/* The request as it came, which is what is kept when it must wait. */
void confine_end(struct work *w, struct confined *before)
{
    for (int i = 0; i < 2; i++)
        if (before->pins[i] >= 0)
            close(before->pins[i]);
    free(before->fresh);
    w->payload = before->payload;
    w->head = before->head;
}

/* The real name of what is a safe one now; false: it is not one that stands for the file itself. */
bool confined_name(const struct work *w, const char *name, char *to)
{
    char *end;
    bool pinned = w->session->root->job_root || w->head.call != __NR_openat;
    if (!pinned || strncmp(name, "/proc/self/fd/", PINNED_FRONT) != 0)
        return false;
    strtoul(name + PINNED_FRONT, &end, 10);
    ssize_t length = *end ? -1 : readlink(name, to, PATH_LIMIT - 1);
    to[length < 0 ? 0 : length] = 0;
    return length > 0;
}

/* Whether a file of this name may be brought back; then *NAME is one that means the same until *PIN is closed: another
 * program of the owner's may be running. TO: room for it. */
bool may_bring_back(const struct session *s, const char **name, char to[PINNED_NAME + PATH_LIMIT], int *pin)
{
    size_t length = strlen(*name);
    *pin = length && length < PATH_LIMIT ? pin_directory(s, AT_FDCWD, *name, length, WRITES, to) : -1;
    *name = to;
    return *pin >= 0;
}

/* The session's thread, as the owner, finds out where its root really is. Returns NULL, or what is wrong. */
const char *confine_begin(struct session *s)
{
    char here[PATH_LIMIT], beside[PATH_LIMIT];
    if (!s->job_root)
        return NULL;
    char *real = realpath(s->job_root, NULL);
    free(s->job_root);
    s->job_root = real;
    if (!real)
        return "job_root: there is no such directory";
    if (!real[1]) { /* all of home */
        free(s->job_root);
        s->job_root = NULL;
        return NULL;
    }
    if ((!getcwd(here, sizeof here) || !lies_in(here, real)) && chdir(real) < 0)
        return "job_root: the directory cannot be entered"; /* who began elsewhere begins there */
    const char *slash = s->image ? strrchr(s->image, '/') : NULL;
    if (!slash || slash == s->image || slash - s->image >= (int)sizeof beside)
        return NULL;
    memcpy(beside, s->image, (size_t)(slash - s->image));
    beside[slash - s->image] = 0;
    char *place = realpath(beside, NULL);
    bool inside = place && lies_in(place, real);
    free(place);
    return inside ? "job_root: the checkpoint must lie outside of it, where the program cannot change it" : NULL;
}
