/* One request: the table's calls in one general way, the others by functions of their own. */
#include "session.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define WANT_CALL_TABLE
#include "calls.h"

#define ARGUMENT(k) (w->head.arguments[k])

typedef long server(struct work *w);
#define DECLARE(name) static server serve_##name;
CALLS_SERVED_THERE(DECLARE)
#undef DECLARE
static server *const servers[CALL_COUNT] = {
#define ENTER(name) [__NR_##name] = serve_##name,
    CALLS_SERVED_THERE(ENTER)
#undef ENTER
};

static long result_of(long result)
{
    return result < 0 ? -errno : result;
}

/* The next string of the payload, or NULL if there is none that ends inside the frame. */
static const char *take_path(struct work *w, size_t *at)
{
    if (*at >= w->head.size)
        return NULL;
    const char *path = (const char *)w->payload + *at;
    size_t length = strnlen(path, w->head.size - *at);
    if (length == w->head.size - *at || length >= PATH_LIMIT)
        return NULL;
    *at += length + 1;
    return path;
}

static void *take_input(struct work *w, size_t *at, size_t size)
{
    if (w->head.size - *at < size)
        return NULL;
    void *found = w->payload + *at;
    *at += size;
    return found;
}

static long install(struct session *s, int real, int flags, bool closes_on_exec, uint8_t kind)
{
    struct file *file = real < 0 ? NULL : file_new(real, flags);
    if (file)
        file->kind = kind;
    return real < 0 ? -errno : enter_file(s, file, 0, closes_on_exec);
}

/* Input and output of the general calls go through a few places of fixed size, in the order of the
 * arguments; what is read and written is copied, so that the answer's room may move meanwhile. */
static long serve_general(struct work *w, const struct call *call)
{
    struct session *s = w->session;
    long a[6];
    size_t at = 0, outs[6], sizes[6] = {0};
    int counted = -1;
    for (int i = 0; i < 6; i++) {
        size_t size = call->arguments[i].parameter;
        a[i] = (long)ARGUMENT(i);
        switch (call->arguments[i].kind) {
        case ARG_FD:
            if ((a[i] = real_of(s, ARGUMENT(i))) < 0)
                return -EBADF;
            break;
        case ARG_AT:
            if (ARGUMENT(i) != AT_FDCWD && (a[i] = real_of(s, ARGUMENT(i))) < 0)
                a[i] = 1 << 30; /* EBADF, but only where the path is relative */
            break;
        case ARG_PATH:
            if (ARGUMENT(i) && !(a[i] = (long)take_path(w, &at)))
                return -EFAULT;
            break;
        case ARG_IN_COUNTED:
        case ARG_IN: {
            if (call->arguments[i].kind == ARG_IN_COUNTED)
                size = (size_t)ARGUMENT(call->arguments[i].parameter);
            if (ARGUMENT(i) && !(a[i] = (long)take_input(w, &at, size)))
                return -EFAULT;
            break;
        }
        case ARG_OUT_COUNTED:
            size = (size_t)ARGUMENT(call->arguments[i].parameter);
            if (size > MAX_PAYLOAD)
                return -EINVAL;
            counted = i;
            __attribute__((fallthrough));
        case ARG_OUT:
        case ARG_IO: {
            if (!ARGUMENT(i))
                break;
            outs[i] = w->out_used;
            sizes[i] = size;
            uint8_t *to = out_room(w, size);
            if (!to)
                return -ENOMEM;
            if (call->arguments[i].kind == ARG_IO) {
                const void *from = take_input(w, &at, size);
                if (!from)
                    return -EFAULT;
                memcpy(to, from, size);
            }
            break;
        }
        default:
            break;
        }
    }
    for (int i = 0; i < 6; i++) /* only now does the room stay where it is */
        if (sizes[i])
            a[i] = (long)(s->out + sizeof(struct answer) + outs[i]);
    long result = result_of(syscall(w->head.call, a[0], a[1], a[2], a[3], a[4], a[5]));
    if (result >= 0 && counted >= 0 && sizes[counted] > (size_t)result)
        w->out_used -= sizes[counted] - (size_t)result; /* such a buffer is the last output */
    return result;
}

/* Calls whose result is a new descriptor. */
static long serve_new(struct work *w, const struct call *call)
{
    long real = serve_general(w, call);
    uint8_t kind = w->head.call == __NR_epoll_create1 ? FILE_EPOLL
                   : w->head.call == __NR_timerfd_create ? FILE_TIMER
                                                         : FILE_PLAIN;
    if (real < 0)
        return real;
    int flags = fcntl((int)real, F_GETFL);
    int given = fcntl((int)real, F_GETFD);
    fcntl((int)real, F_SETFD, FD_CLOEXEC);
    fcntl((int)real, F_SETFL, flags | O_NONBLOCK);
    return install(w->session, (int)real, flags, given & FD_CLOEXEC, kind);
}

/* Reading and writing. */
static long would_wait(struct work *w, const struct file *file, short events)
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

static long serve_read(struct work *w)
{
    struct file *file = file_of(w->session, ARGUMENT(0));
    size_t size = (size_t)ARGUMENT(2);
    if (!file)
        return -EBADF;
    if (size > MAX_PAYLOAD)
        return -EINVAL;
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
    w->hints = file->regular ? HINT_MORE : 0;
    return got;
}

/* A write that may wait goes on until everything is written, as the kernel's does. */
static long serve_write(struct work *w)
{
    struct file *file = file_of(w->session, ARGUMENT(0));
    size_t size = (size_t)ARGUMENT(2);
    if (!file)
        return -EBADF;
    if (size > w->head.size)
        return -EINVAL;
    if (!is_ready(file, POLLOUT))
        return would_wait(w, file, POLLOUT);
    w->hints = HINT_MORE;
    do {
        long put = result_of(write(file->real, w->payload + w->progress, size - w->progress));
        if (put == -EAGAIN && file->nonblocking) {
            if (w->progress && file->wants_nonblocking)
                break;
            return would_wait(w, file, POLLOUT);
        }
        if (put < 0)
            return w->progress ? (long)w->progress : put;
        w->progress += (size_t)put;
        if (file->regular)
            break;
    } while (w->progress < size);
    return (long)w->progress;
}

static long serve_pread64(struct work *w)
{
    struct file *file = file_of(w->session, ARGUMENT(0));
    size_t size = (size_t)ARGUMENT(2);
    if (!file)
        return -EBADF;
    if (size > MAX_PAYLOAD)
        return -EINVAL;
    uint8_t *to = out_room(w, size);
    if (!to)
        return -ENOMEM;
    long got = result_of(pread(file->real, to, size, ARGUMENT(3)));
    if (got >= 0)
        w->out_used = (size_t)got;
    w->hints = HINT_MORE;
    return got;
}

/* A mapping's handle is written to as if it were a descriptor: handles begin where those end. */
static long serve_pwrite64(struct work *w)
{
    int64_t number = ARGUMENT(0);
    bool handle = number >= MAX_FILES && number < MAX_FILES + MAX_HANDLES;
    struct file *file = handle ? w->session->handles[number - MAX_FILES] : file_of(w->session, number);
    size_t size = (size_t)ARGUMENT(2);
    if (!file)
        return -EBADF;
    if (size > w->head.size)
        return -EINVAL;
    w->hints = HINT_MORE;
    return result_of(pwrite(file->real, w->payload, size, ARGUMENT(3)));
}

/* Opening. A name under /proc of the shadow's own, or one there to be written, is not for the program:
 * the shadow's memory is behind it. */
static long check_proc(int real, int flags)
{
    struct statfs fs;
    char link[64], name[64] = {0}, own[32];
    if (fstatfs(real, &fs) < 0 || fs.f_type != 0x9fa0 /* PROC_SUPER_MAGIC */)
        return 0;
    if ((flags & O_ACCMODE) != O_RDONLY)
        return -EACCES;
    snprintf(link, sizeof link, "/proc/self/fd/%d", real);
    int length = snprintf(own, sizeof own, "/proc/%d/", (int)getpid());
    if (readlink(link, name, sizeof name - 1) < 0 || strncmp(name, own, (size_t)length) == 0)
        return -EACCES;
    return 0;
}

static long serve_openat(struct work *w)
{
    struct session *s = w->session;
    size_t at = 0;
    const char *path = take_path(w, &at);
    int directory = AT_FDCWD, flags = (int)ARGUMENT(2);
    if (!path)
        return -EFAULT;
    if (ARGUMENT(0) != AT_FDCWD && (directory = real_of(s, ARGUMENT(0))) < 0 && path[0] != '/')
        return -EBADF;
    int real = openat(directory, path, flags | O_CLOEXEC | O_NOCTTY | (flags & O_PATH ? 0 : O_NONBLOCK),
                      (mode_t)ARGUMENT(3));
    if (real < 0 && errno == ENXIO && !(flags & O_NONBLOCK)) { /* a pipe that nobody reads yet */
        w->retry_ns = now_ns() + 10000000;
        return PARKED;
    }
    if (real < 0)
        return -errno;
    long refused = flags & O_PATH ? 0 : check_proc(real, flags);
    if (refused) {
        close(real);
        return refused;
    }
    s->statistics.files_opened++;
    return install(s, real, flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC), flags & O_CLOEXEC, FILE_PLAIN);
}

static long serve_close(struct work *w) { return close_entry(w->session, ARGUMENT(0)); }

static long duplicate(struct work *w, int from, bool closes_on_exec)
{
    struct file *file = file_of(w->session, ARGUMENT(0));
    if (!file)
        return -EBADF;
    if (from < 0 || from >= MAX_FILES)
        return -EINVAL;
    file_keep(file);
    return enter_file(w->session, file, from, closes_on_exec);
}

static long serve_dup(struct work *w) { return duplicate(w, 0, false); }

static long duplicate_to(struct work *w, bool closes_on_exec)
{
    struct session *s = w->session;
    struct file *file = file_of(s, ARGUMENT(0));
    int64_t to = ARGUMENT(1);
    if (!file || to < 0 || to >= MAX_FILES)
        return -EBADF;
    file_keep(file);
    close_entry(s, to);
    s->entries[to] = (struct entry){file, closes_on_exec};
    return to;
}

static long serve_dup2(struct work *w)
{
    if (ARGUMENT(0) == ARGUMENT(1))
        return file_of(w->session, ARGUMENT(0)) ? ARGUMENT(1) : -EBADF;
    return duplicate_to(w, false);
}

static long serve_dup3(struct work *w)
{
    if (ARGUMENT(0) == ARGUMENT(1) || (ARGUMENT(2) & ~O_CLOEXEC))
        return -EINVAL;
    return duplicate_to(w, ARGUMENT(2) & O_CLOEXEC);
}

static long serve_close_range(struct work *w)
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

/* Locks belong to the open file here, since many programs share this process. */
static long serve_lock(struct work *w, struct file *file, int command)
{
    struct flock lock;
    size_t at = 0;
    const void *from = take_input(w, &at, 32);
    bool waits = command == F_SETLKW || command == F_OFD_SETLKW;
    bool asks = command == F_GETLK || command == F_OFD_GETLK;
    if (!from)
        return -EFAULT;
    memcpy(&lock, from, sizeof lock);
    lock.l_pid = 0;
    long result = result_of(fcntl(file->real, asks ? F_OFD_GETLK : F_OFD_SETLK, &lock));
    if (asks && result >= 0) {
        uint8_t *to = out_room(w, sizeof lock);
        if (!to)
            return -ENOMEM;
        memcpy(to, &lock, sizeof lock);
    }
    if (waits && (result == -EAGAIN || result == -EACCES)) {
        w->retry_ns = now_ns() + 20000000;
        return PARKED;
    }
    return result;
}

static long serve_fcntl(struct work *w)
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
    case F_GETFL: return (file->flags & ~O_NONBLOCK) | (file->wants_nonblocking ? O_NONBLOCK : 0) | 0100000;
    case F_SETFL: {
        file->wants_nonblocking = value & O_NONBLOCK;
        file->flags = (file->flags & ~settable) | (value & settable);
        if (file->inherited)
            return 0;
        return result_of(fcntl(file->real, F_SETFL, (value & settable) | (file->nonblocking ? O_NONBLOCK : 0)));
    }
    case F_GETLK: case F_SETLK: case F_SETLKW:
    case F_OFD_GETLK: case F_OFD_SETLK: case F_OFD_SETLKW: return serve_lock(w, file, command);
    case F_GETOWN: case F_SETOWN: return 0;
    case F_SETPIPE_SZ: case F_GETPIPE_SZ: case F_ADD_SEALS: case F_GET_SEALS:
        return result_of(fcntl(file->real, command, value));
    default: return -EINVAL;
    }
}

static long serve_flock(struct work *w)
{
    int real = real_of(w->session, ARGUMENT(0));
    long result = real < 0 ? -EBADF : result_of(flock(real, (int)ARGUMENT(1) | LOCK_NB));
    if (result == -EAGAIN && !(ARGUMENT(1) & LOCK_NB)) {
        w->retry_ns = now_ns() + 20000000;
        return PARKED;
    }
    return result;
}

static long serve_ioctl(struct work *w)
{
    struct session *s = w->session;
    struct file *file = file_of(s, ARGUMENT(0));
    unsigned long code = (unsigned long)ARGUMENT(1);
    uint8_t room[64] = {0};
    if (!file)
        return -EBADF;
    if (w->head.size > sizeof room)
        return -EINVAL;
    memcpy(room, w->payload, w->head.size);
    switch (code) {
    case FIOCLEX: s->entries[ARGUMENT(0)].closes_on_exec = true; return 0;
    case FIONCLEX: s->entries[ARGUMENT(0)].closes_on_exec = false; return 0;
    case FIONBIO: file->wants_nonblocking = *(int *)(void *)room; return 0;
    case 0x40049409: { /* FICLONE */
        int from = real_of(s, ARGUMENT(2));
        return from < 0 ? -EBADF : result_of(ioctl(file->real, code, from));
    }
    default: break;
    }
    long result = result_of(ioctl(file->real, code, room));
    size_t size = code == TCGETS ? 36 : code == TIOCGWINSZ ? 8 : code == FIONREAD || code == TIOCGPGRP ? 4
                  : code == 0x80086601 ? 8 : 0;
    if (result >= 0 && size) {
        uint8_t *to = out_room(w, size);
        if (!to)
            return -ENOMEM;
        memcpy(to, room, size);
    }
    return result;
}

/* The working directory and the umask are this thread's. */
static long serve_chdir(struct work *w)
{
    size_t at = 0;
    const char *path = take_path(w, &at);
    return path ? result_of(chdir(path)) : -EFAULT;
}

static long serve_fchdir(struct work *w)
{
    int real = real_of(w->session, ARGUMENT(0));
    return real < 0 ? -EBADF : result_of(fchdir(real));
}

static long serve_umask(struct work *w) { return umask((mode_t)ARGUMENT(0)); }

static long serve_getcwd(struct work *w)
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
static long serve_mkdirat(struct work *w)
{
    size_t at = 0;
    const char *path = take_path(w, &at);
    int directory = ARGUMENT(0) == AT_FDCWD ? AT_FDCWD : real_of(w->session, ARGUMENT(0));
    if (!path)
        return -EFAULT;
    return result_of(mkdirat(directory == -1 ? 1 << 30 : directory, path, (mode_t)ARGUMENT(2)));
}

static long serve_mknodat(struct work *w)
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

static long serve_symlinkat(struct work *w)
{
    size_t at = 0;
    const char *target = take_path(w, &at), *path = target ? take_path(w, &at) : NULL;
    int directory = ARGUMENT(1) == AT_FDCWD ? AT_FDCWD : real_of(w->session, ARGUMENT(1));
    if (!path)
        return -EFAULT;
    return result_of(symlinkat(target, directory == -1 ? 1 << 30 : directory, path));
}

/* Pipes and the like live here: they work between all members of a program's family. */
static atomic_uint pair_numbers = 1;

static long install_pair(struct work *w, const int real[2], int flags, uint8_t kind)
{
    struct session *s = w->session;
    uint32_t number = pair_numbers++;
    int found[2] = {-1, -1};
    for (int i = 0; i < 2; i++) {
        int mode = kind == FILE_PIPE ? (i ? O_WRONLY : O_RDONLY) : O_RDWR;
        long got = install(s, real[i], mode | (flags & O_NONBLOCK), flags & O_CLOEXEC, kind);
        if (got < 0) {
            if (i)
                close_entry(s, found[0]);
            else
                close(real[1]);
            return got;
        }
        found[i] = (int)got;
        s->entries[got].file->number = number;
        s->entries[got].file->end = (uint8_t)i;
    }
    uint8_t *to = out_room(w, sizeof found);
    if (!to)
        return -ENOMEM;
    memcpy(to, found, sizeof found);
    return 0;
}

static long serve_pipe2(struct work *w)
{
    int real[2], flags = (int)ARGUMENT(1);
    if (pipe2(real, (flags & O_DIRECT) | O_CLOEXEC | O_NONBLOCK) < 0 || (flags & ~(O_CLOEXEC | O_NONBLOCK | O_DIRECT)))
        return -EINVAL;
    return install_pair(w, real, flags, FILE_PIPE);
}

static long serve_socketpair(struct work *w)
{
    int real[2], type = (int)ARGUMENT(1);
    if (ARGUMENT(0) != AF_UNIX)
        return -EAFNOSUPPORT;
    if (socketpair(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, (int)ARGUMENT(2), real) < 0)
        return -errno;
    return install_pair(w, real, type & (O_NONBLOCK | O_CLOEXEC), FILE_PAIR);
}

static long serve_socket(struct work *w)
{
    (void)w;
    return ARGUMENT(0) == AF_UNIX ? -EACCES : -EAFNOSUPPORT;
}

static long serve_name(struct work *w, bool peer)
{
    struct sockaddr_storage name = {0};
    socklen_t size;
    int real = real_of(w->session, ARGUMENT(0));
    if (real < 0)
        return -EBADF;
    if (w->head.size != 132)
        return -EFAULT;
    memcpy(&size, w->payload + 128, 4);
    socklen_t room = sizeof name;
    long result = result_of(peer ? getpeername(real, (void *)&name, &room) : getsockname(real, (void *)&name, &room));
    if (result < 0)
        return result;
    uint8_t *to = out_room(w, 132);
    if (!to)
        return -ENOMEM;
    memcpy(to, w->payload, 128);
    memcpy(to, &name, size < room ? size : room);
    memcpy(to + 128, &room, 4);
    return 0;
}

static long serve_getsockname(struct work *w) { return serve_name(w, false); }
static long serve_getpeername(struct work *w) { return serve_name(w, true); }

static long serve_setsockopt(struct work *w)
{
    int real = real_of(w->session, ARGUMENT(0));
    if (real < 0)
        return -EBADF;
    if (ARGUMENT(1) != SOL_SOCKET || (ARGUMENT(2) != SO_SNDBUF && ARGUMENT(2) != SO_RCVBUF))
        return ARGUMENT(1) == SOL_SOCKET ? 0 : -ENOPROTOOPT;
    return result_of(setsockopt(real, SOL_SOCKET, (int)ARGUMENT(2), w->payload, (socklen_t)w->head.size));
}

static long serve_getsockopt(struct work *w)
{
    int real = real_of(w->session, ARGUMENT(0));
    uint8_t room[16];
    socklen_t size = sizeof room;
    if (real < 0)
        return -EBADF;
    if (w->head.size != 20)
        return -EFAULT;
    if (getsockopt(real, (int)ARGUMENT(1), (int)ARGUMENT(2), room, &size) < 0)
        return -errno;
    uint8_t *to = out_room(w, 20);
    if (!to)
        return -ENOMEM;
    memcpy(to, room, sizeof room);
    memcpy(to + 16, &size, 4);
    return 0;
}

static long serve_eventfd2(struct work *w)
{
    int flags = (int)ARGUMENT(1);
    return install(w->session, eventfd((unsigned)ARGUMENT(0), flags | EFD_CLOEXEC | EFD_NONBLOCK),
                   O_RDWR | (flags & (O_NONBLOCK | EFD_SEMAPHORE)), flags & O_CLOEXEC, FILE_EVENT);
}

static long serve_memfd_create(struct work *w)
{
    size_t at = 0;
    const char *name = take_path(w, &at);
    if (!name)
        return -EFAULT;
    return install(w->session, memfd_create(name, (unsigned)ARGUMENT(1) | MFD_CLOEXEC), O_RDWR,
                   ARGUMENT(1) & MFD_CLOEXEC, FILE_PLAIN);
}

static long serve_epoll_ctl(struct work *w)
{
    struct epoll_event event;
    int set = real_of(w->session, ARGUMENT(0)), real = real_of(w->session, ARGUMENT(2));
    if (set < 0 || real < 0)
        return -EBADF;
    if (w->head.size && w->head.size != sizeof event)
        return -EFAULT;
    memcpy(&event, w->payload, w->head.size);
    return result_of(epoll_ctl(set, (int)ARGUMENT(1), real, w->head.size ? &event : NULL));
}

static long serve_splice(struct work *w)
{
    (void)w;
    return -EINVAL; /* programs fall back to reading and writing */
}

/* Waiting for many. */
static long until_later(struct work *w, int64_t timeout_ns)
{
    if (!w->again)
        w->until_ns = timeout_ns < 0 ? -1 : now_ns() + timeout_ns;
    return PARKED;
}

static bool time_is_up(const struct work *w, int64_t timeout_ns)
{
    return timeout_ns == 0 || (w->again && w->until_ns >= 0 && now_ns() >= w->until_ns);
}

static long serve_poll_all(struct work *w)
{
    struct session *s = w->session;
    size_t count = w->head.size / sizeof(struct pollfd);
    if (w->head.size % sizeof(struct pollfd) || count != (size_t)ARGUMENT(0) || count > MAX_FILES)
        return -EINVAL;
    struct pollfd *asked = (void *)w->payload, *real = calloc(count + 1, sizeof *real);
    if (!real)
        return -ENOMEM;
    int bad = 0;
    for (size_t i = 0; i < count; i++) {
        int fd = asked[i].fd < 0 ? -1 : real_of(s, asked[i].fd);
        real[i] = (struct pollfd){fd, asked[i].events, 0};
        bad += asked[i].fd >= 0 && fd < 0;
    }
    long found = result_of(poll(real, count, 0));
    if (found + bad == 0 && !time_is_up(w, ARGUMENT(1))) {
        w->wait = real;
        w->wait_count = count;
        return until_later(w, ARGUMENT(1));
    }
    uint8_t *to = out_room(w, w->head.size);
    for (size_t i = 0; i < count && to; i++) {
        struct pollfd one = asked[i];
        one.revents = one.fd >= 0 && real[i].fd < 0 ? POLLNVAL : real[i].revents;
        memcpy(to + i * sizeof one, &one, sizeof one);
    }
    free(real);
    return to ? found + bad : -ENOMEM;
}

static long serve_epoll_wait(struct work *w)
{
    int set = real_of(w->session, ARGUMENT(0));
    int64_t most = ARGUMENT(1);
    if (set < 0)
        return -EBADF;
    if (most <= 0 || most > MAX_FILES)
        return -EINVAL;
    uint8_t *to = out_room(w, (size_t)most * sizeof(struct epoll_event));
    if (!to)
        return -ENOMEM;
    long found = result_of(epoll_wait(set, (void *)to, (int)most, 0));
    w->out_used = found > 0 ? (size_t)found * sizeof(struct epoll_event) : 0;
    if (found != 0 || time_is_up(w, ARGUMENT(2)))
        return found;
    wait_on(w, set, POLLIN);
    return until_later(w, ARGUMENT(2));
}

/* The greeting: what to run, as whom. */
static long serve_hello(struct work *w)
{
    struct session *s = w->session;
    struct hello hello;
    struct start start = {0};
    if (w->head.size < sizeof hello || s->greeted)
        return -EPROTO;
    memcpy(&hello, w->payload, sizeof hello);
    if (hello.version != PROTOCOL_VERSION)
        return -EPROTO;
    s->greeted = true;
    s->real_pid = (int)hello.real_pid;
    start.virtual_pid = start.group = start.session = (int32_t)hello.real_pid;
    start.parent_pid = 1;
    start.uid = getuid();
    start.euid = geteuid();
    start.gid = getgid();
    start.egid = getegid();
    int groups = getgroups(START_GROUPS, start.groups);
    start.group_count = groups < 0 ? 0 : (uint32_t)groups;
    start.stack_bytes = s->task.stack_bytes ? s->task.stack_bytes : 8 << 20;
    start.max_files = MAX_FILES;
    start.argument_count = s->argument_count;
    start.environment_count = s->environment_count;
    start.string_bytes = (uint32_t)s->string_bytes;
    uint8_t *to = out_room(w, sizeof start + s->string_bytes);
    if (!to)
        return -ENOMEM;
    memcpy(to, &start, sizeof start);
    memcpy(to + sizeof start, s->strings, s->string_bytes);
    if (s->root != s)
        return 0;
    if (hello.kind == HELLO_FRESH)
        tell(s, SHADOW_STARTED, s->real_pid, 0, NULL);
    return 0;
}

static long serve_exit(struct work *w)
{
    struct session *s = w->session;
    s->state = SHADOW_EXITED;
    note_processor_time(s);
    tell(s, SHADOW_EXITED, ARGUMENT(0), ARGUMENT(1), NULL);
    return 0;
}

static long serve_text(struct work *w)
{
    int real = memfd_create("proc", MFD_CLOEXEC);
    if (real < 0)
        return -errno;
    if (write(real, w->payload, w->head.size) != (ssize_t)w->head.size || lseek(real, 0, SEEK_SET) < 0) {
        close(real);
        return -EIO;
    }
    return install(w->session, real, O_RDONLY, ARGUMENT(0) & O_CLOEXEC, FILE_TEXT);
}

/* A handle keeps a mapped file open after its descriptor was closed. With argument 1: its size now. */
static long serve_hold(struct work *w)
{
    struct session *s = w->session;
    struct stat st;
    if (ARGUMENT(1)) {
        int64_t i = ARGUMENT(0) - MAX_FILES;
        if (i < 0 || i >= MAX_HANDLES || !s->handles[i])
            return -EBADF;
        return fstat(s->handles[i]->real, &st) < 0 ? -errno : st.st_size;
    }
    struct file *file = file_of(s, ARGUMENT(0));
    if (!file)
        return -EBADF;
    if ((file->flags & O_ACCMODE) != O_RDWR)
        return -EACCES;
    for (int i = 0; i < MAX_HANDLES; i++)
        if (!s->handles[i]) {
            file_keep(file);
            s->handles[i] = file;
            return MAX_FILES + i;
        }
    return -ENFILE;
}

static long serve_release(struct work *w)
{
    int64_t i = ARGUMENT(0) - MAX_FILES;
    if (i < 0 || i >= MAX_HANDLES || !w->session->handles[i])
        return -EBADF;
    file_drop(w->session->handles[i]);
    w->session->handles[i] = NULL;
    return 0;
}

static long serve_path_of(struct work *w)
{
    char link[64], found[PATH_LIMIT];
    int real = real_of(w->session, ARGUMENT(0));
    if (real < 0)
        return -ENOENT;
    snprintf(link, sizeof link, "/proc/self/fd/%d", real);
    ssize_t length = readlink(link, found, sizeof found);
    uint8_t *to = length < 0 ? NULL : out_room(w, (size_t)length);
    if (!to)
        return -ENOENT;
    memcpy(to, found, (size_t)length);
    return length;
}

static long serve_exec(struct work *w)
{
    for (int i = 0; i < MAX_FILES; i++)
        if (w->session->entries[i].file && w->session->entries[i].closes_on_exec)
            close_entry(w->session, i);
    return 0;
}

/* A checkpoint is written to a new file beside the old one and takes its place when it is complete. */
static long serve_image_begin(struct work *w)
{
    struct session *s = w->session;
    if (s->root->members > 1) {
        tell(s, SHADOW_NO_IMAGE, EAGAIN, s->root->members - 1, "the program waits for its helpers");
        return -EAGAIN;
    }
    if (!s->image || s->image_fd >= 0)
        return -EBUSY;
    free(s->image_temporary);
    if (asprintf(&s->image_temporary, "%s.new", s->image) < 0)
        return -ENOMEM;
    unlink(s->image_temporary);
    s->image_fd = open(s->image_temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (s->image_fd < 0) {
        tell(s, SHADOW_NO_IMAGE, errno, 0, s->image_temporary);
        return -errno;
    }
    s->image_began_ns = now_ns();
    w->gift = fcntl(s->image_fd, F_DUPFD_CLOEXEC, 3);
    return 0;
}

static long serve_image_end(struct work *w)
{
    struct session *s = w->session;
    struct stat st = {0};
    if (s->image_fd < 0)
        return -EBADF;
    long result = 0;
    if (ARGUMENT(0)) {
        if (fstat(s->image_fd, &st) < 0 || st.st_size != ARGUMENT(1) || fsync(s->image_fd) < 0 ||
            close(s->image_fd) < 0 || rename(s->image_temporary, s->image) < 0)
            result = errno ? -errno : -EIO;
    } else {
        close(s->image_fd);
        result = ARGUMENT(1) ? -ARGUMENT(1) : -EIO;
    }
    s->image_fd = -1;
    if (result) {
        unlink(s->image_temporary);
        tell(s, SHADOW_NO_IMAGE, -result, 0, "the image could not be completed");
    } else {
        s->statistics.checkpoints++;
        long failed = journal_reset(s, s->generation);
        if (failed)
            tell(s, SHADOW_NO_IMAGE, -failed, 0, "the image is good, but files will not roll back to it");
        tell(s, SHADOW_IMAGE, st.st_size, now_ns() - s->image_began_ns, s->image);
        result = s->vacates;
    }
    return result;
}

static long serve_operation(struct work *w)
{
    switch (w->head.call) {
    case OP_HELLO: return serve_hello(w);
    case OP_EXIT: return serve_exit(w);
    case OP_POLL: return serve_poll_all(w);
    case OP_EPOLL_WAIT: return serve_epoll_wait(w);
    case OP_TEXT: return serve_text(w);
    case OP_DESCRIBE: return serve_describe(w);
    case OP_ADOPT: return serve_adopt(w);
    case OP_IMAGE_BEGIN: return serve_image_begin(w);
    case OP_IMAGE_END: return serve_image_end(w);
    case OP_HOLD: return serve_hold(w);
    case OP_RELEASE: return serve_release(w);
    case OP_PATH_OF: return serve_path_of(w);
    case OP_EXEC: return serve_exec(w);
    case OP_BEGIN: tell(w->session, SHADOW_STARTED, w->session->real_pid, 1, NULL); return 0;
    case OP_FORK: return start_member(w->session, &w->gift);
    default: return -ENOSYS;
    }
}

long serve(struct work *w)
{
    if (w->head.call >= CALL_COUNT)
        return serve_operation(w);
    const struct call *call = &calls[w->head.call];
    if (call->how != HOW_REMOTE)
        return -ENOSYS;
    long result = journal_before(w);
    if (result)
        return result;
    if (call->flags & CALL_THERE)
        result = servers[w->head.call](w);
    else
        result = call->flags & CALL_NEW ? serve_new(w, call) : serve_general(w, call);
    journal_after(w, result);
    return result;
}
