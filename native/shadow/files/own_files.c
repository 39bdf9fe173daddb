/* What the program opens under /proc/self/fd and /proc/self/fdinfo: its open files once more, and what is said of them.
 *
 * Under fd, a file or pipe is opened anew, with a position and flags of its own, as the kernel does.  What has no name
 * but is no file or pipe cannot be opened so; the standard files are another program's, and become a second descriptor.
 */
#include "inotify.h"
#include "shadow/serve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static long second_descriptor(struct session *s, struct file *file, int flags)
{
    file_keep(file);
    return enter_file(s, file, 0, flags & O_CLOEXEC);
}

/* Whether the program may have FILE with FLAGS; it has it in some way already. */
static long refuses(const struct session *s, const struct file *file, int flags)
{
    const bool writes = (flags & O_ACCMODE) != O_RDONLY;
    const bool wrote = !(file->flags & O_PATH) && (file->flags & O_ACCMODE) != O_RDONLY;
    long refused = check_proc(file->real, flags);
    const bool memory = fcntl(file->real, F_GET_SEALS) >= 0;
    return refused || memory || file->kind == FILE_PIPE || (writes && wrote) || may_have(s, file->real, writes) ? refused : -EACCES;
}

long serve_reopen(struct work *w)
{
    struct session *s = w->session;
    struct file *file = file_of(s, ARGUMENT(0));
    const int flags = (int)ARGUMENT(1) & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW);
    char link[64];
    if (!file)
        return -ENOENT;
    if (file->inherited)
        return second_descriptor(s, file, flags);
    const bool pipe = file->kind == FILE_PIPE;
    if (!pipe && file->kind != FILE_PLAIN && file->kind != FILE_TEXT)
        return -ENXIO;
    if (pipe && (flags & O_ACCMODE) == O_RDWR) /* neither end */
        return -ENXIO;
    long refused = refuses(s, file, flags);
    if (refused)
        return refused;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->real);
    const int real = open(link, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (real < 0)
        return -errno;
    long fd = install(s, real, (flags & ~O_CLOEXEC) | (pipe ? SHOWN_LARGE : 0), flags & O_CLOEXEC, file->kind);
    if (fd >= 0 && pipe) {
        s->entries[fd].file->number = file->number;
        s->entries[fd].file->end = (flags & O_ACCMODE) == O_WRONLY;
    }
    return fd;
}

/* ---- /proc/self/fdinfo */

/* Lines of the kernel's that mean the same to the program. */
static bool is_told(const char *line, bool of_process)
{
    static const char *const told[] = {"pos:",     "mnt_id:",  "ino:", "eventfd-count:", "eventfd-semaphore:",
                                       "clockid:", "ticks:",   "settime flags:", "it_value:", "it_interval:"};
    for (size_t i = 0; i < (of_process ? 3 : sizeof told / sizeof *told); i++)
        if (strncmp(line, told[i], strlen(told[i])) == 0)
            return true;
    return false;
}

/* A line of a lock: the kernel knows who has it by numbers of this machine's, and record locks as an open file's own. */
static bool put_lock(int to, const char *line, int pid, bool is_record)
{
    static atomic_uint numbers ATOMIC;
    char kind[16], advisory[16], how[16], rest[128];
    if (sscanf(line, "lock: %*d: %15s %15s %15s %*d %127[^\n]", kind, advisory, how, rest) != 4)
        return true;
    const bool is_ofd = strcmp(kind, "OFDLCK") == 0;
    return dprintf(to, "lock:\t%u: %s  %s  %s %d %s\n", ++numbers, is_ofd && is_record ? "POSIX" : kind, advisory, how,
                   is_ofd && !is_record ? -1 : pid, rest) > 0;
}

/* Copies what the kernel says of REAL to TO, as far as it means the same to the program. */
static bool put_info(int to, int real, long flags, int pid, bool of_process)
{
    char name[64], line[256];
    bool good = true;
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", real);
    FILE *info = fopen(name, "re");
    if (!info)
        return false;
    while (good && fgets(line, sizeof line, info)) {
        if (strncmp(line, "flags:", 6) == 0)
            good = dprintf(to, "flags:\t0%lo\n", (unsigned long)flags) > 0;
        else if (strncmp(line, "lock:", 5) == 0)
            good = put_lock(to, line, pid, false);
        else if (is_told(line, of_process))
            good = write(to, line, strlen(line)) == (ssize_t)strlen(line);
    }
    fclose(info);
    return good;
}

/* The record locks of this process in FILE, which another open file has for it. */
static bool put_records(int to, const struct session *s, const struct file *file)
{
    struct stat st;
    char name[64], line[256];
    bool good = true;
    if (!s->locked_count || fstat(file->real, &st) < 0)
        return true;
    for (int i = 0; i < MOST_LOCKED && good; i++) {
        const struct locked *one = &s->locked[i];
        if (!one->file || one->device != st.st_dev || one->inode != st.st_ino)
            continue;
        snprintf(name, sizeof name, "/proc/self/fdinfo/%d", one->file->real);
        FILE *info = fopen(name, "re");
        while (good && info && fgets(line, sizeof line, info))
            if (strncmp(line, "lock:", 5) == 0)
                good = put_lock(to, line, s->virtual_pid, true);
        if (info)
            fclose(info);
    }
    return good;
}

/* What is watched, by the numbers that the program knows. */
static bool put_watches(int to, struct inotify *in)
{
    char name[64], line[512];
    bool good = true;
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", in->real);
    pthread_mutex_lock(&in->lock);
    FILE *info = fopen(name, "re");
    while (good && info && fgets(line, sizeof line, info)) {
        unsigned real;
        int rest = 0;
        if (sscanf(line, "inotify wd:%x%n", &real, &rest) != 1)
            continue;
        for (size_t i = 0; i < in->count; i++)
            if (in->watches[i].real == (int)real)
                good = dprintf(to, "inotify wd:%x%s", (unsigned)in->watches[i].number, line + rest) > 0;
    }
    if (info)
        fclose(info);
    pthread_mutex_unlock(&in->lock);
    return good;
}

static bool put_process(int to, const struct file *file)
{
    bool ended;
    const int pid = process_of(file, &ended);
    return dprintf(to, "Pid:\t%d\nNSpid:\t%d\n", ended ? -1 : pid, ended ? -1 : pid) > 0;
}

long serve_file_info(struct work *w)
{
    struct session *s = w->session;
    const struct file *file = file_of(s, ARGUMENT(0));
    if (!file)
        return -ENOENT;
    int real = memfd_create("proc", MFD_CLOEXEC);
    if (real < 0)
        return -errno;
    const long flags = shown_flags(file) | (s->entries[ARGUMENT(0)].closes_on_exec ? O_CLOEXEC : 0);
    const bool good = put_info(real, file->inotify ? file->inotify->real : file->real, flags, s->virtual_pid, file->process) &&
                      put_records(real, s, file) && (!file->inotify || put_watches(real, file->inotify)) && (!file->process || put_process(real, file));
    if (!good || lseek(real, 0, SEEK_SET) < 0 || fchmod(real, 0444) < 0) {
        close(real);
        return -EIO;
    }
    return install(s, real, O_RDONLY, ARGUMENT(1) & O_CLOEXEC, FILE_TEXT);
}
