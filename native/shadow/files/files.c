/* Open files and the descriptors that name them. */
#include "inotify.h"
#include "shadow/sockets/sockets.h"
#include "shadow/terminals/terminals.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* File systems that say how long a file is, and mean it. */
static bool on_ordinary_system(int real)
{
    static const unsigned long kinds[] = {0xef53 /* ext */, 0x58465342 /* xfs */, 0x9123683e /* btrfs */,
                                          0x01021994 /* tmpfs */, 0x794c7630 /* overlay */, 0x6969 /* nfs */,
                                          0x2fc12fc1 /* zfs */, 0xf2f52010 /* f2fs */};
    struct statfs fs;
    if (fstatfs(real, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((unsigned long)fs.f_type == kinds[i])
            return true;
    return false;
}

static atomic_ullong file_ids ATOMIC;

void file_begin(struct file *file, int real, int flags)
{
    file->references = 1;
    file->id = ++file_ids;
    file->real = real;
    file->flags = flags;
    file->nonblocking = true;
    file->wants_nonblocking = flags & O_NONBLOCK;
}

struct file *file_new(int real, int flags)
{
    struct stat st;
    struct file *file = calloc(1, sizeof *file);
    if (!file || fstat(real, &st) < 0) {
        free(file);
        close(real);
        return NULL;
    }
    file_begin(file, real, flags);
    file->regular = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode) || S_ISBLK(st.st_mode);
    file->steady = S_ISREG(st.st_mode) && on_ordinary_system(real);
    return file;
}

void file_keep(struct file *file)
{
    file->references++;
}

/* The same of one that may be on its end already: then false. */
bool file_kept(struct file *file)
{
    int references = file->references;
    while (references > 0)
        if (atomic_compare_exchange_weak(&file->references, &references, references + 1))
            return true;
    return false;
}

/* Files that this thread is closing: a socket may be the last that has others, and these others. */
static __thread struct file *dying UNGUARDED("each thread has its own");
static __thread bool is_closing UNGUARDED("each thread has its own");

void file_drop(struct file *file)
{
    if (--file->references)
        return;
    file->next_dying = dying;
    dying = file;
    if (is_closing)
        return;
    is_closing = true;
    while ((file = dying)) {
        dying = file->next_dying;
        if (file->ready_root)
            ready_closing(file);
        if (file->terminal)
            terminal_closing(file);
        close(file->real);
        if (file->socket)
            socket_end(file->socket);
        if (file->inotify)
            inotify_end(file->inotify);
        if (file->process)
            process_file_end(file->process);
        if (file->queue)
            posix_queue_dropped(file->queue);
        memory_end(file);
        free(file);
    }
    is_closing = false;
}

struct file *file_of(struct session *s, int64_t descriptor)
{
    return descriptor >= 0 && descriptor < MAX_FILES ? s->entries[descriptor].file : NULL;
}

/* The place of a held file: handles begin where descriptors end. NULL: there is none of that number. */
struct file **handle_of(struct session *s, int64_t handle)
{
    bool exists = handle >= MAX_FILES && handle < MAX_FILES + MAX_HANDLES && s->handles[handle - MAX_FILES];
    return exists ? &s->handles[handle - MAX_FILES] : NULL;
}

int real_of(struct session *s, int64_t descriptor)
{
    struct file *file = file_of(s, descriptor);
    return file ? file->real : -1;
}

/* Gives FILE the lowest free descriptor from FROM on; takes over the caller's reference. */
long enter_file(struct session *s, struct file *file, int from, bool closes_on_exec)
{
    if (!file)
        return -ENFILE;
    for (int i = from; i < s->most_files; i++)
        if (!s->entries[i].file) {
            s->entries[i] = (struct entry){file, closes_on_exec};
            return i;
        }
    file_drop(file);
    return -EMFILE;
}

static bool is_open(const struct session *s, const struct file *file)
{
    for (int i = 0; i < MAX_FILES; i++)
        if (s->entries[i].file == file)
            return true;
    return false;
}

static bool has_late(const struct session *s, const struct file *file)
{
    return file && file->late_error && file->late_writer == s->virtual_pid;
}

static void tell_lost(struct session *s, const struct file *file)
{
    char link[64], path[160] = {0}, text[240];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->real);
    const bool named = readlink(link, path, sizeof path - 1) > 0;
    snprintf(text, sizeof text, "%s: a write failed that the program was not told of", named ? path : "a file");
    tell(s->root, SHADOW_WRITE_LOST, file->late_error, file->late_writer, text);
}

int take_lost_write(struct session *s)
{
    int lost = s->lost_write;
    for (int i = 0; i < MAX_FILES; i++) {
        struct file *file = s->entries[i].file;
        if (!has_late(s, file))
            continue;
        tell_lost(s, file);
        lost = file->late_error;
        file->late_error = 0;
    }
    s->lost_write = 0;
    return lost;
}

long close_entry(struct session *s, int64_t descriptor)
{
    struct file *file = file_of(s, descriptor);
    if (!file)
        return -EBADF;
    s->entries[descriptor] = (struct entry){0};
    if (has_late(s, file) && !is_open(s, file)) {
        tell_lost(s, file);
        s->lost_write = file->late_error;
        file->late_error = 0;
    }
    records_closed(s, file);
    if (file->queue)
        posix_queue_closed(s, file);
    file_drop(file);
    return 0;
}

void close_all(struct session *s)
{
    spans_leave(s);
    records_forget(s); /* before others read in a pipe that this process has ended */
    ipc_process_ended(s);
    for (int i = 0; i < MAX_FILES; i++) {
        struct file *file = s->entries[i].file;
        if (!file)
            continue;
        if (file->late_error && file->references == 1) { /* whose write it was, that process has gone before */
            tell_lost(s, file);
            file->late_error = 0;
        }
        close_entry(s, i);
    }
    for (int i = 0; i < MAX_HANDLES; i++)
        if (s->handles[i]) {
            struct file *file = s->handles[i];
            s->handles[i] = NULL;
            file_drop(file);
            segment_left(s, file);
        }
    for (int i = 0; i < 3; i++)
        if (s->task.standard[i] >= 0)
            close(s->task.standard[i]);
    if (s->image_fd >= 0) {
        close(s->image_fd);
        unlink(s->image_temporary);
    }
    free(s->image_temporary);
    free(s->image_final);
}

/* Standard input, output and error are shared with the process that started the job: their status flags are
 * theirs, so they stay as they are and waiting is done with poll. */
void open_standard(struct session *s)
{
    for (int i = 0; i < 3; i++) {
        int real = s->task.standard[i];
        if (real < 0)
            continue;
        int flags = fcntl(real, F_GETFL);
        struct file *file = file_new(fcntl(real, F_DUPFD_CLOEXEC, 3), flags < 0 ? 0 : flags);
        if (!file)
            continue;
        file->inherited = true;
        file->kind = FILE_STANDARD;
        file->number = (uint32_t)i;
        file->nonblocking = flags >= 0 && (flags & O_NONBLOCK);
        s->entries[i] = (struct entry){file, false};
    }
}
