/* Calls on files and descriptors that the table cannot describe. */
#include "inotify.h"
#include "shadow/sockets/sockets.h"
#include "shadow/terminals/terminals.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BULK = 16 << 10 };

/* Reading and writing. */
long would_wait(struct work *w, const struct file *file, short events)
{
    if (file->wants_nonblocking)
        return -EAGAIN;
    wait_on(w, file->real, events);
    return PARKED;
}

static bool is_ready(const struct file *file, short events)
{
    struct pollfd one = {.fd = file->real, .events = events};
    return file->regular || file->nonblocking || poll(&one, 1, 0) > 0;
}

long serve_read(struct work *w)
{
    struct file *file = file_of(w->session, ARGUMENT(0));
    size_t size = (size_t)ARGUMENT(2);
    if (!file)
        return -EBADF;
    if (size > MAX_PAYLOAD)
        return -EINVAL;
    if (file->socket)
        return size ? socket_read(w, file, size) : 0;
    if (file->inotify)
        return inotify_read(w, file, size);
    if (file->terminal)
        return terminal_read(w, file, size);
    if (file->kind == FILE_SIGNALS)
        return -READS_SIGNALS;
    if (file->kind == FILE_PROCESS || file->kind == FILE_QUEUE)
        return -EINVAL;
    if (is_listing(file))
        return -EISDIR;
    if (!is_ready(file, POLLIN))
        return would_wait(w, file, POLLIN);
    uint8_t *to = out_room(w, size);
    if (!to)
        return -ENOMEM;
    long got = result_of(read(file->real, to, size));
    if (got == -EAGAIN && file->nonblocking) {
        w->out_used = 0;
        return would_wait(w, file, POLLIN);
    }
    if (got >= 0)
        w->out_used = (size_t)got;
    w->hints = (file->regular ? HINT_MORE : 0) | (file->steady ? HINT_STEADY : 0);
    return got;
}

/* What is left of a short write without an answer is tried at once: its error is why it was short. */
static bool is_silent(const struct work *w) { return w->head.id == ID_NONE; }

/* A write that may wait goes on until everything is written, as the kernel's does. */
long serve_write(struct work *w)
{
    struct file *file = file_of(w->session, ARGUMENT(0));
    size_t size = (size_t)ARGUMENT(2);
    if (!file)
        return -EBADF;
    if (size > w->head.size)
        return -EINVAL;
    if (file->inotify)
        return -EBADF;
    if (file->kind == FILE_SIGNALS || file->kind == FILE_PROCESS)
        return -EINVAL;
    if (file->socket) {
        w->hints = file->socket->type == SOCK_STREAM ? HINT_MORE : 0;
        return socket_write(w, file, w->payload, size, 0);
    }
    if (file->terminal && file->end == MASTER_END)
        return terminal_type(w, file, size);
    if (file->terminal && terminal_holds_back(w, file))
        return -IN_BACKGROUND;
    if (!is_ready(file, POLLOUT))
        return would_wait(w, file, POLLOUT);
    w->hints = HINT_MORE | (file->steady ? HINT_STEADY : 0);
    do {
        long put = result_of(write(file->real, w->payload + w->progress, size - w->progress));
        if (put == -EAGAIN && file->nonblocking) {
            if (w->progress && file->wants_nonblocking)
                break;
            return would_wait(w, file, POLLOUT);
        }
        if (put < 0)
            return w->progress && !is_silent(w) ? (long)w->progress : put;
        w->progress += (size_t)put;
        if (!put || (file->regular && !is_silent(w)))
            break;
    } while (w->progress < size);
    return (long)w->progress;
}

/* Of a large read the header is sent and then the file's own pages; its size is true, so the length is known. */
static bool read_bulk(struct work *w, const struct file *file, size_t size, struct stat *status)
{
    struct stat st;
    if (!file->steady || size < BULK || ARGUMENT(3) < 0 || fstat(file->real, &st) < 0)
        return false;
    int64_t left = st.st_size - ARGUMENT(3);
    if (left < BULK || (file->flags & O_ACCMODE) == O_WRONLY)
        return false;
    w->bulk.real = file->real;
    w->bulk.offset = ARGUMENT(3);
    w->bulk.size = left < (int64_t)size ? (size_t)left : size;
    *status = st;
    return true;
}

long serve_pread64(struct work *w)
{
    struct file **held = handle_of(w->session, ARGUMENT(0));
    struct file *file = held ? *held : file_of(w->session, ARGUMENT(0));
    size_t size = (size_t)ARGUMENT(2);
    struct stat st;
    if (!file)
        return -EBADF;
    if (size > MAX_READ)
        return -EINVAL;
    w->hints = HINT_MORE | (file->steady ? HINT_STEADY : 0);
    if (read_bulk(w, file, size, &st)) {
        const long whole = (long)w->bulk.size;
        if (ARGUMENT(4) == WANT_DIGEST)
            library_put(w, &st);
        return whole;
    }
    uint8_t *to = out_room(w, size);
    if (!to)
        return -ENOMEM;
    long got = result_of(pread(file->real, to, size, ARGUMENT(3)));
    if (got >= 0)
        w->out_used = (size_t)got;
    return got;
}

/* A mapping's handle is written to as if it were a descriptor. */
long serve_pwrite64(struct work *w)
{
    struct file **held = handle_of(w->session, ARGUMENT(0));
    struct file *file = held ? *held : file_of(w->session, ARGUMENT(0));
    size_t size = (size_t)ARGUMENT(2);
    if (!file)
        return -EBADF;
    if (size > w->head.size)
        return -EINVAL;
    w->hints = HINT_MORE | (file->steady ? HINT_STEADY : 0);
    long put, done = 0;
    do {
        put = result_of(pwrite(file->real, w->payload + done, size - (size_t)done, ARGUMENT(3) + done));
        done += put > 0 ? put : 0;
    } while (is_silent(w) && put > 0 && (size_t)done < size);
    return put < 0 ? put : done;
}

long serve_close(struct work *w) { return close_entry(w->session, ARGUMENT(0)); }

static long duplicate(struct work *w, int from, bool closes_on_exec)
{
    struct file *file = file_of(w->session, ARGUMENT(0));
    if (!file)
        return -EBADF;
    if (from < 0 || (from && from >= w->session->most_files))
        return -EINVAL;
    file_keep(file);
    return enter_file(w->session, file, from, closes_on_exec);
}

long serve_dup(struct work *w) { return duplicate(w, 0, false); }

static long duplicate_to(struct work *w, bool closes_on_exec)
{
    struct session *s = w->session;
    struct file *file = file_of(s, ARGUMENT(0));
    int64_t to = ARGUMENT(1);
    if (!file || to < 0 || to >= s->most_files)
        return -EBADF;
    file_keep(file);
    close_entry(s, to);
    s->entries[to] = (struct entry){file, closes_on_exec};
    return to;
}

long serve_dup2(struct work *w)
{
    if (ARGUMENT(0) == ARGUMENT(1))
        return file_of(w->session, ARGUMENT(0)) ? ARGUMENT(1) : -EBADF;
    return duplicate_to(w, false);
}

long serve_dup3(struct work *w)
{
    if (ARGUMENT(0) == ARGUMENT(1) || (ARGUMENT(2) & ~O_CLOEXEC))
        return -EINVAL;
    return duplicate_to(w, ARGUMENT(2) & O_CLOEXEC);
}

long serve_close_range(struct work *w)
{
    struct session *s = w->session;
    uint32_t from = (uint32_t)ARGUMENT(0), to = (uint32_t)ARGUMENT(1);
    if (from > to || (ARGUMENT(2) & ~6))
        return -EINVAL;
    for (uint32_t i = from; i <= to && i < MAX_FILES; i++) {
        if (!s->entries[i].file)
            continue;
        if (ARGUMENT(2) & 4) /* CLOSE_RANGE_CLOEXEC */
            s->entries[i].closes_on_exec = true;
        else
            close_entry(s, i);
    }
    return 0;
}

/* What F_GETFL tells. Here no real file waits, and of a pipe of packets both ends know that it is one. */
long shown_flags(const struct file *file)
{
    const bool by_name =
        file->kind == FILE_PLAIN || file->kind == FILE_TEXT || file->kind == FILE_STANDARD || file->terminal;
    int hidden = O_NONBLOCK | O_EXCL | (file->kind == FILE_PIPE && !file->end ? O_DIRECT : 0);
    return (file->flags & ~hidden) | (file->wants_nonblocking ? O_NONBLOCK : 0) | (by_name ? SHOWN_LARGE : 0);
}

long serve_fcntl(struct work *w)
{
    struct session *s = w->session;
    struct file *file = file_of(s, ARGUMENT(0));
    int command = (int)ARGUMENT(1), value = (int)ARGUMENT(2);
    const int settable = O_APPEND | O_DIRECT | O_NOATIME;
    if (!file)
        return -EBADF;
    switch (command) {
    case F_DUPFD: return duplicate(w, value, false);
    case F_DUPFD_CLOEXEC: return duplicate(w, value, true);
    case F_GETFD: return s->entries[ARGUMENT(0)].closes_on_exec;
    case F_SETFD: s->entries[ARGUMENT(0)].closes_on_exec = value & FD_CLOEXEC; return 0;
    case F_GETFL: return shown_flags(file);
    case F_SETFL: {
        const long told = ready_tell(s, file, value & O_ASYNC, false);
        if (told)
            return told;
        file->wants_nonblocking = value & O_NONBLOCK;
        file->flags = (file->flags & ~settable) | (value & settable);
        if (file->inherited)
            return 0;
        return result_of(fcntl(file->real, F_SETFL, (value & settable) | (file->nonblocking ? O_NONBLOCK : 0)));
    }
    case F_GETLK: case F_SETLK: case F_SETLKW:
    case F_OFD_GETLK: case F_OFD_SETLK: case F_OFD_SETLKW: return serve_lock(w, file, command);
    case F_GETOWN: case F_SETOWN: case F_GETOWN_EX: case F_SETOWN_EX: case F_GETSIG: case F_SETSIG:
        return serve_owner(w, file, command);
    case F_GETLEASE: return F_UNLCK;
    case F_SETPIPE_SZ: case F_GETPIPE_SZ: case F_ADD_SEALS: case F_GET_SEALS:
        return result_of(fcntl(file->real, command, value));
    default: return -EINVAL;
    }
}

long serve_flock(struct work *w)
{
    int real = real_of(w->session, ARGUMENT(0));
    long result = real < 0 ? -EBADF : result_of(flock(real, (int)ARGUMENT(1) | LOCK_NB));
    if (result == -EAGAIN && !(ARGUMENT(1) & LOCK_NB)) {
        w->retry_ns = now_ns() + 20000000;
        return PARKED;
    }
    return result;
}

/* The requests that the runtime may send on, with the bytes they write.  Any other one is refused here too: a
 * hostile runtime would choose one that types into the owner's terminal or writes beyond its room. */
static bool is_known_request(unsigned long code, size_t *out)
{
    static const struct {
        uint32_t code, out;
    } known[] = {
        {TCGETS, 36}, {TCSETS, 0}, {TCSETSW, 0}, {TCSETSF, 0}, {TIOCGWINSZ, 8},
        {FIONREAD, 4}, {FIONBIO, 0}, {FIOASYNC, 0}, {FIOSETOWN, 0}, {SIOCSPGRP, 0}, {FIOGETOWN, 4}, {SIOCGPGRP, 4}, {FIOCLEX, 0}, {FIONCLEX, 0}, {0x40049409 /* FICLONE */, 0},
        {0x80086601 /* FS_IOC_GETFLAGS */, 8},
        {SIOCGIFCONF, 0}, {SIOCGIFFLAGS, INTERFACE_BYTES}, {SIOCGIFADDR, INTERFACE_BYTES},
        {SIOCGIFNETMASK, INTERFACE_BYTES}, {SIOCGIFBRDADDR, INTERFACE_BYTES}, {SIOCGIFDSTADDR, INTERFACE_BYTES},
        {SIOCGIFINDEX, INTERFACE_BYTES}, {SIOCGIFNAME, INTERFACE_BYTES}, {SIOCGIFMTU, INTERFACE_BYTES},
        {SIOCGIFMETRIC, INTERFACE_BYTES}, {SIOCGIFHWADDR, INTERFACE_BYTES},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code) {
            *out = known[i].out;
            return true;
        }
    return false;
}

static long put_value(struct work *w, int value)
{
    uint8_t *to = out_room(w, sizeof value);
    if (to)
        memcpy(to, &value, sizeof value);
    return to ? 0 : -ENOMEM;
}

static long put_number(struct work *w, long number) { return number < 0 ? number : put_value(w, (int)number); }

static int number_in(const uint8_t room[64])
{
    int number;
    memcpy(&number, room, sizeof number);
    return number;
}

long serve_ioctl(struct work *w)
{
    size_t size, taken;
    struct session *s = w->session;
    struct file *file = file_of(s, ARGUMENT(0));
    unsigned long code = (unsigned long)ARGUMENT(1);
    uint8_t room[64] = {0};
    if (!file)
        return -EBADF;
    const bool of_terminal = file->terminal && terminal_knows(code, &taken, &size);
    if (!of_terminal && !is_known_request(code, &size))
        return -ENOTTY;
    if (w->head.size > sizeof room || (of_terminal && w->head.size < taken))
        return -EINVAL;
    memcpy(room, w->payload, w->head.size);
    if (of_terminal)
        return terminal_ioctl(w, file, code, room);
    switch (code) {
    case FIOCLEX: s->entries[ARGUMENT(0)].closes_on_exec = true; return 0;
    case FIONCLEX: s->entries[ARGUMENT(0)].closes_on_exec = false; return 0;
    case FIONREAD:
        if (file->socket)
            return put_number(w, socket_waiting_bytes(file->socket, file->real));
        if (file->inotify)
            return put_number(w, inotify_waiting_bytes(file->inotify));
        break;
    case FIOASYNC: return ready_tell(s, file, number_in(room), true);
    case FIOSETOWN: case SIOCSPGRP: return file->socket ? ready_own(s, file, number_in(room)) : -ENOTTY;
    case FIOGETOWN: case SIOCGPGRP: return file->socket ? put_value(w, file->owner) : -ENOTTY;
    case FIONBIO: file->wants_nonblocking = room[0] | room[1] | room[2] | room[3]; return 0;
    case 0x40049409: { /* FICLONE */
        int from = real_of(s, ARGUMENT(2));
        return from < 0 ? -EBADF : result_of(ioctl(file->real, code, from));
    }
    default: break;
    }
    if (code >> 8 == SIOCGIFCONF >> 8)
        return file->socket ? socket_interfaces(w, code, room) : -ENOTTY;
    long result = result_of(ioctl(file->real, code, room));
    if (result >= 0 && size) {
        uint8_t *to = out_room(w, size);
        if (!to)
            return -ENOMEM;
        memcpy(to, room, size);
    }
    return result;
}

/* To a socket or terminal of the family's it is done by reading and writing, which is what programs do then. */
long serve_sendfile(struct work *w)
{
    struct file *to = file_of(w->session, ARGUMENT(0)), *from = file_of(w->session, ARGUMENT(1));
    size_t at = 0;
    off_t offset;
    const bool given = ARGUMENT(2);
    const void *start = given ? take_input(w, &at, sizeof offset) : NULL;
    if (!to || !from)
        return -EBADF;
    if (to->socket || from->socket || to->terminal || from->terminal)
        return -EINVAL;
    if (given && !start)
        return -EFAULT;
    if (given)
        memcpy(&offset, start, sizeof offset);
    long result = result_of(sendfile(to->real, from->real, given ? &offset : NULL, (size_t)ARGUMENT(3)));
    if (result == -EAGAIN && to->nonblocking && !to->regular)
        return would_wait(w, to, POLLOUT);
    uint8_t *told = given && result >= 0 ? out_room(w, sizeof offset) : NULL;
    if (told)
        memcpy(told, &offset, sizeof offset);
    return result;
}

/* The working directory and the umask are this thread's. */
long serve_chdir(struct work *w)
{
    size_t at = 0;
    const char *path = take_path(w, &at);
    return path ? result_of(chdir(path)) : -EFAULT;
}

long serve_fchdir(struct work *w)
{
    int real = real_of(w->session, ARGUMENT(0));
    return real < 0 ? -EBADF : result_of(fchdir(real));
}

long serve_umask(struct work *w) { return umask((mode_t)ARGUMENT(0)); }

long serve_getcwd(struct work *w)
{
    char where[PATH_LIMIT];
    long length = syscall(SYS_getcwd, where, sizeof where);
    if (length < 0)
        return -errno;
    if (length > ARGUMENT(1))
        return -ERANGE;
    uint8_t *to = out_room(w, (size_t)length);
    if (!to)
        return -ENOMEM;
    memcpy(to, where, (size_t)length);
    return length;
}

/* Making: calls that would let the program make what only an administrator may are the kernel's to refuse. */
long serve_mkdirat(struct work *w)
{
    size_t at = 0;
    const char *path = take_path(w, &at);
    int directory = ARGUMENT(0) == AT_FDCWD ? AT_FDCWD : real_of(w->session, ARGUMENT(0));
    if (!path)
        return -EFAULT;
    return result_of(mkdirat(directory == -1 ? 1 << 30 : directory, path, (mode_t)ARGUMENT(2)));
}

long serve_mknodat(struct work *w)
{
    size_t at = 0;
    const char *path = take_path(w, &at);
    mode_t kind = (mode_t)ARGUMENT(2) & S_IFMT;
    int directory = ARGUMENT(0) == AT_FDCWD ? AT_FDCWD : real_of(w->session, ARGUMENT(0));
    if (!path)
        return -EFAULT;
    if (kind && kind != S_IFREG && kind != S_IFIFO && kind != S_IFSOCK)
        return -EPERM; /* devices */
    return result_of(mknodat(directory == -1 ? 1 << 30 : directory, path, (mode_t)ARGUMENT(2), 0));
}

/* Of a descriptor (AT_EMPTY_PATH, or its link under /proc, for which the runtime says that), also one without a name. */
long serve_linkat(struct work *w)
{
    size_t at = 0;
    char link[32];
    bool was_removed = false;
    int flags = (int)ARGUMENT(4);
    const char *from = take_path(w, &at), *to = from ? take_path(w, &at) : NULL;
    int old = ARGUMENT(0) == AT_FDCWD ? AT_FDCWD : real_of(w->session, ARGUMENT(0));
    const int new = ARGUMENT(2) == AT_FDCWD ? AT_FDCWD : real_of(w->session, ARGUMENT(2));
    if (!to)
        return -EFAULT;
    if (!from[0]) {
        if (!(flags & AT_EMPTY_PATH))
            return -ENOENT;
        if (old == -1)
            return flags & AT_SYMLINK_FOLLOW ? -ENOENT : -EBADF; /* its link is not there */
        snprintf(link, sizeof link, "/proc/self/fd/%d", old);
        const struct file *file = file_of(w->session, ARGUMENT(0));
        was_removed = file && file->kind == FILE_TEXT && file->number <= 1; /* in memory since a move */
        from = old == AT_FDCWD ? "." : link;
        old = AT_FDCWD;
        flags = AT_SYMLINK_FOLLOW;
    }
    const long result = result_of(linkat(old == -1 ? 1 << 30 : old, from, new == -1 ? 1 << 30 : new, to, flags));
    return result == -EXDEV && was_removed ? -ENOENT : result;
}

long serve_symlinkat(struct work *w)
{
    size_t at = 0;
    const char *target = take_path(w, &at), *path = target ? take_path(w, &at) : NULL;
    int directory = ARGUMENT(1) == AT_FDCWD ? AT_FDCWD : real_of(w->session, ARGUMENT(1));
    if (!path)
        return -EFAULT;
    return result_of(symlinkat(target, directory == -1 ? 1 << 30 : directory, path));
}
