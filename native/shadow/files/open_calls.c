/* Opening files, and what is told of them at once. */
#include "shadow/serve.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Whether a part of NAME is the number of one of this process's threads, or of one that was until a moment ago: each
 * has a directory under /proc. */
static bool names_own_thread(char *name)
{
    char own[64];
    for (char *at = name; (at = strchr(at, '/'));) {
        size_t digits = strspn(++at, "0123456789");
        char after = at[digits];
        if (!digits || digits >= 16 || (after && after != '/'))
            continue;
        snprintf(own, sizeof own, "/proc/self/task/%.*s", (int)digits, at);
        at[digits] = 0;
        bool gone = access(name, F_OK) < 0;
        at[digits] = after;
        if (gone || access(own, F_OK) == 0)
            return true;
    }
    return false;
}

/* A name under /proc of the shadow's own, or one there to be written, is not for the program: the shadow's memory is
 * behind it. Returns 0 or -errno. */
long check_proc(int real, int flags)
{
    struct statfs fs;
    char link[64], name[PATH_LIMIT];
    if (fstatfs(real, &fs) < 0 || fs.f_type != 0x9fa0 /* PROC_SUPER_MAGIC */)
        return 0;
    if ((flags & O_ACCMODE) != O_RDONLY)
        return -EACCES;
    snprintf(link, sizeof link, "/proc/self/fd/%d", real);
    ssize_t length = readlink(link, name, sizeof name - 1);
    if (length < 0)
        return -EACCES;
    name[length] = 0;
    if (strncmp(name, "/proc/sysvipc/", 14) == 0) /* the machine's, and not the family's: ipcs then asks the calls */
        return -ENOENT;
    return names_own_thread(name) ? -EACCES : 0;
}

/* What the runtime need not ask again: struct stat and the beginning of a file that is only read. */
static bool put_facts(struct work *w, const struct file *file, int64_t first)
{
    struct stat st;
    int mode = file->flags & O_ACCMODE;
    uint8_t *to;
    _Static_assert(sizeof st == STATUS_BYTES, "struct stat is the kernel's");
    if (!file->steady || is_listing(file) || (file->flags & (O_SYNC | O_DSYNC | O_DIRECT | O_PATH)) || fstat(file->real, &st) < 0)
        return true;
    if (!(to = out_room(w, sizeof st)))
        return false;
    memcpy(to, &st, sizeof st);
    w->hints |= HINT_STEADY | (mode == O_RDONLY ? FACT_READS : FACT_WRITES) | (file->references == 1 ? FACT_ALONE : 0);
    if (first > st.st_size)
        first = st.st_size;
    if (mode != O_RDONLY || first <= 0 || first > MAX_PAYLOAD)
        return true;
    if (!(to = out_room(w, (size_t)first)))
        return false;
    if (pread(file->real, to, (size_t)first, 0) < first) { /* it is becoming shorter: no help */
        w->out_used = 0;
        w->hints = 0;
    }
    return true;
}

/* A pipe without a reader is waited for; a device that is not there is not. */
static bool awaits_reader(int directory, const char *path, int flags)
{
    struct stat st;
    return !(flags & O_NONBLOCK) && fstatat(directory, path, &st, 0) == 0 && S_ISFIFO(st.st_mode);
}

/* Whether anybody writes, or did: then a reader's open is over. */
static bool has_writer(int real)
{
    struct pollfd one = {.fd = real, .events = POLLIN};
    int copy[2];
    if (poll(&one, 1, 0) > 0) /* something to read, or the end after something */
        return true;
    if (pipe2(copy, O_CLOEXEC | O_NONBLOCK) < 0)
        return true;
    bool found = tee(real, copy[1], 1, SPLICE_F_NONBLOCK) < 0 && errno == EAGAIN;
    close(copy[0]);
    close(copy[1]);
    return found;
}

static long park_open(struct work *w, int real)
{
    w->held = real + 1;
    w->retry_ns = now_ns() + 10000000;
    return PARKED;
}

/* Opens a name as the kernel's openat does, but follows no link under /proc that stands for a descriptor: the shadow's
 * own are behind those of its threads. A name that job_root has pinned is such a link, and may. */
int open_at(const struct session *s, int directory, const char *path, int flags, mode_t mode)
{
    const int known = O_ACCMODE | O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC | O_APPEND | O_NONBLOCK | O_SYNC | O_ASYNC |
                      O_DIRECT | O_DIRECTORY | O_NOFOLLOW | O_NOATIME | O_CLOEXEC | O_PATH | O_TMPFILE;
    flags &= known;
    if (flags & O_PATH)
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
    struct open_how how = {.flags = (unsigned)flags, .mode = makes ? mode & 07777 : 0, .resolve = RESOLVE_NO_MAGICLINKS};
    int real = -1;
    errno = ENOSYS;
    if (!s->root->job_root)
        real = (int)syscall(SYS_openat2, directory, path, &how, sizeof how);
    return real < 0 && errno == ENOSYS ? openat(directory, path, flags, mode) : real; /* before Linux 5.6 */
}

/* Both ends of a named pipe wait for each other. Returns the descriptor, -errno or PARKED. */
static long open_there(struct work *w, int directory, const char *path, int flags)
{
    struct stat st;
    bool waits = !(flags & (O_NONBLOCK | O_PATH)) && (flags & O_ACCMODE) != O_RDWR;
    int real = w->held - 1;
    w->held = 0;
    if (real < 0)
        real = open_at(w->session, directory, path,
                       flags | O_CLOEXEC | O_NOCTTY | (flags & O_PATH ? 0 : O_NONBLOCK), (mode_t)ARGUMENT(3));
    if (real < 0 && errno == ENXIO)
        return awaits_reader(directory, path, flags) ? park_open(w, -1) : -ENXIO;
    if (real < 0)
        return -errno;
    if (waits && !(flags & O_ACCMODE) && fstat(real, &st) == 0 && S_ISFIFO(st.st_mode) && !has_writer(real))
        return park_open(w, real);
    return real;
}

long serve_openat(struct work *w)
{
    struct session *s = w->session;
    size_t at = 0;
    const char *path = take_path(w, &at);
    int directory = AT_FDCWD, flags = (int)ARGUMENT(2);
    if (!path)
        return -EFAULT;
    if (ARGUMENT(0) != AT_FDCWD && (directory = real_of(s, ARGUMENT(0))) < 0 && path[0] != '/')
        return -EBADF;
    int real = (int)open_there(w, directory, path, flags);
    if (real < 0)
        return real;
    long refused = flags & O_PATH ? 0 : check_proc(real, flags); /* what is opened below it comes here again */
    if (refused) {
        close(real);
        return refused;
    }
    s->statistics.files_opened++;
    const int kept = (flags & O_TMPFILE) == O_TMPFILE ? O_EXCL : 0; /* no name can be given to it */
    long fd = install(s, real, flags & ~((O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC) & ~kept), flags & O_CLOEXEC, FILE_PLAIN);
    if (fd >= 0 && (ARGUMENT(4) & WANT_FACTS) && !put_facts(w, file_of(s, fd), ARGUMENT(4) & 0xfffff)) {
        close_entry(s, fd);
        return -ENOMEM;
    }
    if (fd >= 0 && (ARGUMENT(2) & O_TRUNC))
        mapped_emptied(w, fd);
    return fd;
}

/* Where a descriptor is that the runtime did not see opened. Descriptor -1 asks for nothing but an answer. */
long serve_facts(struct work *w)
{
    struct file **held = handle_of(w->session, ARGUMENT(0));
    struct file *file = held ? *held : file_of(w->session, ARGUMENT(0));
    if (!file)
        return -EBADF;
    if (!put_facts(w, file, 0))
        return -ENOMEM;
    long at = lseek(file->real, 0, SEEK_CUR);
    return at < 0 ? 0 : at;
}
