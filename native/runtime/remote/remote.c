/* Calls that happen at home: the marshalling that the table describes, and the calls it cannot describe. */
#include "remote.h"

#include <linux/fs.h>
#include <linux/sockios.h>

#include "read_ahead.h"
#include "invalidation.h"
#include "runtime/ipc/terminals.h"
#include "runtime/proc/own_proc.h"
#include "plan.h"
#include "runtime/process/process.h"
#include "runtime/signals/signal_reads.h"
#include "runtime/memory/shared_transfer.h"
#include "runtime/user.h"

enum { MOST_VECTORS = 1024, FEW_VECTORS = 64, LOCK_BYTES = 32, OWNER_BYTES = 8 };

#define RWF_HINTS (RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT) /* of preadv2, pwritev2: harmless to ignore */
#define OFD_LOCKS(command) ((command) >= F_OFD_GETLK && (command) <= F_OFD_SETLKW)

static size_t bounded(unsigned long size)
{
    return size > MAX_PAYLOAD ? MAX_PAYLOAD : size;
}

/* Fills REQUEST, IN and OUT for the program's arguments A. Returns 0 or -errno. */
static long marshal(struct thread *self, const struct call *call, const unsigned long a[6],
                    struct request *request, struct vector in[MOST_PARTS], int *in_count, struct vector out[MOST_PARTS],
                    int *out_count)
{
    char *paths = (char *)self->scratch;
    for (int i = 0; i < 6; i++) {
        unsigned parameter = call->arguments[i].parameter;
        void *pointer = (void *)a[i];
        request->arguments[i] = (int64_t)a[i];
        size_t size = parameter;
        switch (call->arguments[i].kind) {
        case ARG_FD:
        case ARG_AT:
            request->arguments[i] = (int)a[i];
            break;
        case ARG_PATH: {
            if (!pointer) {
                request->arguments[i] = 0;
                break;
            }
            long length = copy_path(paths, pointer);
            if (length < 0)
                return length;
            in[(*in_count)++] = (struct vector){paths, (size_t)length};
            paths += PATH_LIMIT;
            request->arguments[i] = length;
            break;
        }
        case ARG_IN_COUNTED:
        case ARG_OUT_COUNTED:
            size = bounded(a[parameter]);
            request->arguments[parameter] = (int64_t)size;
            __attribute__((fallthrough));
        case ARG_IN:
        case ARG_OUT:
        case ARG_IO:
            request->arguments[i] = pointer ? (int64_t)size : 0;
            if (!pointer)
                break;
            if (call->arguments[i].kind != ARG_OUT && call->arguments[i].kind != ARG_OUT_COUNTED)
                in[(*in_count)++] = (struct vector){pointer, size};
            if (call->arguments[i].kind != ARG_IN && call->arguments[i].kind != ARG_IN_COUNTED)
                out[(*out_count)++] = (struct vector){pointer, size};
            break;
        default:
            break;
        }
    }
    /* A count that stands before its buffer was set by the buffer; one after it must not undo that. */
    for (int i = 0; i < 6; i++)
        if (call->arguments[i].kind == ARG_IN_COUNTED || call->arguments[i].kind == ARG_OUT_COUNTED)
            request->arguments[call->arguments[i].parameter] =
                (int64_t)bounded(a[call->arguments[i].parameter]);
    return 0;
}

long remote(struct trap *t, const struct call *call)
{
    struct request request = {.call = (uint16_t)t->number};
    struct vector in[MOST_PARTS], out[MOST_PARTS];
    int in_count = 0, out_count = 0;
    long failed = marshal(t->self, call, t->a, &request, in, &in_count, out, &out_count);
    long result;
    if (failed)
        return failed;
    if (t->number == __NR_getcwd && plan_answer(&request, "", out, out_count, &result))
        return result;
    if (in_count == 1 && call->arguments[1].kind == ARG_PATH && in[0].base == t->self->scratch &&
        plan_answer(&request, in[0].base, out, out_count, &result))
        return result;
    if (call->flags & CALL_WAITS)
        return ask_waiting(t, &request, in, in_count, out, out_count, NULL);
    result = ask(t->self, &request, in, in_count, out, out_count, NULL);
    if (t->number == __NR_epoll_create1 && result >= 0)
        plan_note_opened((int)result);
    return result;
}

/* The same for the runtime's own use. */
long call_home(struct thread *self, long number, long a, long b, long c, long d, long e, long f)
{
    struct request request = {.call = (uint16_t)number};
    struct vector in[MOST_PARTS], out[MOST_PARTS];
    int in_count = 0, out_count = 0;
    const unsigned long arguments[6] = {(unsigned long)a, (unsigned long)b, (unsigned long)c,
                                        (unsigned long)d, (unsigned long)e, (unsigned long)f};
    long failed = marshal(self, &calls[number], arguments, &request, in, &in_count, out, &out_count);
    return failed ? failed : ask(self, &request, in, in_count, out, out_count, NULL);
}

/* One read or write of any size is as many requests as it needs; only the first may wait. OFFSET < 0: at
 * the descriptor's own position. */
static long transfer(struct thread *self, struct trap *waiting, bool writing, int fd, uint8_t *at,
                     size_t size, int64_t offset)
{
    size_t done = 0;
    if (size > KERNEL_PLACES_END || (unsigned long)at > KERNEL_PLACES_END - size) /* before a byte of it is moved */
        return -EFAULT;
    long quick = writing ? write_behind(self, fd, at, size, offset) : read_ahead(self, fd, at, size, offset);
    if (quick != NOT_HERE)
        return quick;
    uint64_t hints = 0;
    long failed = 0;
    bool insists = false;
    if (offset < 0)
        begin_move(fd);
    do {
        size_t piece = bounded(size - done);
        struct request request = {.call = writing ? (offset < 0 ? __NR_write : __NR_pwrite64)
                                                  : (offset < 0 ? __NR_read : __NR_pread64),
                                  .arguments = {fd, (int64_t)piece, (int64_t)piece,
                                                offset < 0 ? insists : offset + (int64_t)done}};
        struct vector part = {at + done, piece};
        uint64_t before = write_backs();
        long got = waiting && !done
                       ? ask_waiting(waiting, &request, &part, writing, &part, !writing, &hints)
                       : ask(self, &request, &part, writing, &part, !writing, &hints);
        if (got == -IN_BACKGROUND && !(got = settle_background(self, writing ? SIGTTOU : SIGTTIN))) {
            insists = true;
            continue;
        }
        if (got == -READS_SIGNALS) {
            got = read_signals(self, waiting, fd, at, size);
            failed = got < 0 ? got : 0;
            done = got > 0 ? (size_t)got : 0;
            break;
        }
        if (got == -EPIPE) /* the shadow cannot send us the signal */
            SYSTEM(__NR_tgkill, process.real_id, self->real_id, SIGPIPE);
        if (got == -ESHUTDOWN) /* the same of a datagram socket, without a signal */
            got = -EPIPE;
        shared_transfer(self, fd, at + done, got, writing ? WAS_WRITTEN : WAS_READ, hints, before);
        failed = got < 0 ? got : 0;
        done += got > 0 ? (size_t)got : 0;
        if (got < (long)piece || !(hints & HINT_MORE))
            break;
    } while (done < size);
    if (offset < 0)
        end_change(fd);
    if (failed && !done)
        return failed;
    note_transfer(self, fd, writing, hints);
    return (long)done;
}

long read_home(struct thread *self, int fd, void *to, size_t size, int64_t offset)
{
    return transfer(self, NULL, false, fd, to, size, offset);
}

long write_home(struct thread *self, int fd, const void *from, size_t size, int64_t offset)
{
    return transfer(self, NULL, true, fd, (uint8_t *)from, size, offset);
}

long do_read(struct trap *t)
{
    return transfer(t->self, t, false, (int)t->a[0], (uint8_t *)t->a[1], t->a[2], -1);
}

long do_write(struct trap *t)
{
    return transfer(t->self, t, true, (int)t->a[0], (uint8_t *)t->a[1], t->a[2], -1);
}

static long positioned(struct trap *t, bool writing)
{
    if ((int64_t)t->a[3] < 0)
        return -EINVAL;
    return transfer(t->self, NULL, writing, (int)t->a[0], (uint8_t *)t->a[1], t->a[2], (int64_t)t->a[3]);
}

long do_pread64(struct trap *t) { return positioned(t, false); }
long do_pwrite64(struct trap *t) { return positioned(t, true); }

/* Vectors: small ones go as one piece through a buffer, large ones piece by piece. */
static long vectored(struct trap *t, bool writing, int64_t offset)
{
    struct vector vectors[FEW_VECTORS];
    int fd = (int)t->a[0];
    unsigned long count = (unsigned)t->a[2];
    size_t total = 0;
    if (count > MOST_VECTORS)
        return -EINVAL;
    uint8_t *buffer = t->self->scratch;
    if (count <= COUNT(vectors)) {
        if (copy_user(vectors, (void *)t->a[1], count * sizeof *vectors))
            return -EFAULT;
        for (unsigned long i = 0; i < count; i++) {
            if (vectors[i].size > SCRATCH_BYTES)
                total = SCRATCH_BYTES + 1;
            else
                total += vectors[i].size;
        }
    }
    if (count <= COUNT(vectors) && total <= SCRATCH_BYTES) {
        size_t at = 0;
        for (unsigned long i = 0; i < count && writing; at += vectors[i++].size)
            if (copy_user(buffer + at, vectors[i].base, vectors[i].size)) {
                if (!at)
                    return -EFAULT;
                total = at; /* what came before is written */
                break;
            }
        long done = transfer(t->self, offset < 0 ? t : NULL, writing, fd, buffer, total, offset);
        long left = done;
        for (unsigned long i = 0; i < count && !writing && left > 0; i++) {
            size_t piece = (size_t)left < vectors[i].size ? (size_t)left : vectors[i].size;
            if (copy_user(vectors[i].base, buffer + (done - left), piece))
                return -EFAULT;
            left -= (long)piece;
        }
        return done;
    }
    long done = 0;
    for (unsigned long i = 0; i < count; i++) {
        struct vector v;
        if (copy_user(&v, (struct vector *)t->a[1] + i, sizeof v))
            return done ? done : -EFAULT;
        if (!v.size)
            continue;
        long got = transfer(t->self, offset < 0 && !done ? t : NULL, writing, fd, v.base, v.size,
                            offset < 0 ? -1 : offset + done);
        if (got < 0)
            return done ? done : got;
        done += got;
        if ((size_t)got < v.size)
            break;
    }
    return done;
}

long do_readv(struct trap *t) { return vectored(t, false, -1); }
long do_writev(struct trap *t) { return vectored(t, true, -1); }

static long vectored_at(struct trap *t, bool writing, bool current_allowed)
{
    int64_t offset = (int64_t)t->a[3];
    if (current_allowed && (t->a[5] & ~(unsigned long)RWF_HINTS)) /* one of the others changes what is done */
        return -EOPNOTSUPP;
    if (offset < 0 && !(current_allowed && offset == -1))
        return -EINVAL;
    return vectored(t, writing, offset);
}

long do_preadv(struct trap *t) { return vectored_at(t, false, false); }
long do_pwritev(struct trap *t) { return vectored_at(t, true, false); }
long do_preadv2(struct trap *t) { return vectored_at(t, false, true); }
long do_pwritev2(struct trap *t) { return vectored_at(t, true, true); }

/* Descriptor control. The third argument is a number or a structure, by the second. */
long do_fcntl(struct trap *t)
{
    long command = (long)t->a[1];
    bool locks = (command >= F_GETLK && command <= F_SETLKW) || OFD_LOCKS(command);
    struct request request = {.call = __NR_fcntl, .arguments = {(int)t->a[0], command, (int64_t)t->a[2]}};
    long result;
    if (command == F_GETOWN_EX || command == F_SETOWN_EX) {
        const struct vector owner = {(void *)t->a[2], OWNER_BYTES};
        const bool told = command == F_GETOWN_EX;
        return ask(t->self, &request, &owner, !told, &owner, told, NULL);
    }
    if (!locks && command <= F_GETFL && plan_answer(&request, "", NULL, 0, &result))
        return result;
    if (!locks)
        return ask(t->self, &request, NULL, 0, NULL, 0, NULL);
    struct vector part = {(void *)t->a[2], LOCK_BYTES};
    request.arguments[2] = LOCK_BYTES;
    bool waits = command == F_SETLKW || command == F_OFD_SETLKW;
    bool asks = command == F_GETLK || command == F_OFD_GETLK;
    if (waits)
        return ask_waiting(t, &request, &part, 1, NULL, 0, NULL);
    return ask(t->self, &request, &part, 1, &part, asks, NULL);
}

/* The list has a place of its own. */
static long list_interfaces(struct trap *t)
{
    struct {
        int size, padding;
        void *at;
    } list;
    if (copy_user(&list, (void *)t->a[2], sizeof list))
        return -EFAULT;
    const int64_t room = !list.at || list.size > PATH_LIMIT ? PATH_LIMIT : list.size;
    uint8_t *scratch = t->self->scratch;
    struct request request = {.call = __NR_ioctl, .arguments = {(int)t->a[0], SIOCGIFCONF, room}};
    struct vector out = {scratch, (size_t)room};
    long size = ask(t->self, &request, NULL, 0, &out, 1, NULL);
    if (size < 0)
        return size;
    list.size = (int)size;
    if ((list.at && copy_user(list.at, scratch, (size_t)size)) || copy_user((void *)t->a[2], &list, sizeof list))
        return -EFAULT;
    return 0;
}

/* The requests that make sense away from the device, with the bytes they read and write. */
long do_ioctl(struct trap *t)
{
    enum { TERMINAL_BYTES = 36, WINDOW_BYTES = 8, INTERFACE_BYTES = 40 };
    static const struct {
        uint32_t code;
        uint16_t in, out;
    } known[] = {
        {TCGETS, 0, TERMINAL_BYTES}, {TIOCGWINSZ, 0, WINDOW_BYTES}, {FIONREAD, 0, sizeof(int)},
        {FIONBIO, sizeof(int), 0}, {FIOASYNC, sizeof(int), 0}, {FIOSETOWN, sizeof(int), 0}, {SIOCSPGRP, sizeof(int), 0},
        {FIOGETOWN, 0, sizeof(int)}, {SIOCGPGRP, 0, sizeof(int)}, {FIONCLEX, 0, 0}, {FIOCLEX, 0, 0}, {FICLONE, 0, 0}, {FS_IOC_GETFLAGS, 0, sizeof(long)},
        {SIOCGIFFLAGS, INTERFACE_BYTES, INTERFACE_BYTES}, {SIOCGIFADDR, INTERFACE_BYTES, INTERFACE_BYTES},
        {SIOCGIFNETMASK, INTERFACE_BYTES, INTERFACE_BYTES}, {SIOCGIFBRDADDR, INTERFACE_BYTES, INTERFACE_BYTES},
        {SIOCGIFDSTADDR, INTERFACE_BYTES, INTERFACE_BYTES}, {SIOCGIFINDEX, INTERFACE_BYTES, INTERFACE_BYTES},
        {SIOCGIFNAME, INTERFACE_BYTES, INTERFACE_BYTES}, {SIOCGIFMTU, INTERFACE_BYTES, INTERFACE_BYTES},
        {SIOCGIFMETRIC, INTERFACE_BYTES, INTERFACE_BYTES}, {SIOCGIFHWADDR, INTERFACE_BYTES, INTERFACE_BYTES},
    };
    uint32_t code = (uint32_t)t->a[1];
    if (code == TCGETS && is_ordinary((int)t->a[0]))
        return -ENOTTY;
    if (code == SIOCGIFCONF)
        return list_interfaces(t);
    bool of_terminal;
    long controlled = terminal_control(t, &of_terminal);
    if (of_terminal)
        return controlled;
    for (size_t i = 0; i < COUNT(known); i++)
        if (known[i].code == code) {
            struct request request = {.call = __NR_ioctl,
                                      .arguments = {(int)t->a[0], code, (int64_t)t->a[2]}};
            struct vector in = {(void *)t->a[2], known[i].in}, out = {(void *)t->a[2], known[i].out};
            long result;
            if (!known[i].in && plan_answer(&request, "", &out, known[i].out != 0, &result))
                return result;
            return ask(t->self, &request, &in, known[i].in != 0, &out, known[i].out != 0, NULL);
        }
    return -ENOTTY;
}

/* Calls with a path look first whether it names the program itself. */
long do_openat(struct trap *t)
{
    char *path = (char *)t->self->scratch;
    long length = copy_path(path, (char *)t->a[1]);
    if (length < 0)
        return length;
    struct proc_path which;
    if (find_proc_path(t->self, path, &which)) {
        plan_end(); /* a descriptor by another way */
        const bool link = ((int)t->a[2] & O_NOFOLLOW) && is_proc_link(&which);
        long result = link ? -ELOOP : proc_open(t, &which, (int)t->a[2]);
        if (result != -ENOSYS)
            return result;
        t->a[1] = (unsigned long)t->self->scratch; /* rewritten: where it really is */
    }
    return open_home(t->self, t, (int)t->a[0], (char *)t->a[1], (int)t->a[2], (int)t->a[3]);
}

/* Of an open file that its link under /proc names, also one that has no name yet (O_TMPFILE): the file itself gets one. */
long do_linkat(struct trap *t)
{
    const bool follows = (t->a[4] & AT_SYMLINK_FOLLOW) && t->a[1];
    const long length = follows ? copy_path((char *)t->self->scratch, (char *)t->a[1]) : 0;
    const long fd = length > 0 ? own_file_named(t->self, (char *)t->self->scratch) : -ENOSYS;
    if (length < 0)
        return length;
    if (fd >= 0) {
        t->a[0] = (unsigned long)fd;
        t->a[1] = (unsigned long)"";
        t->a[4] |= AT_EMPTY_PATH;
    }
    return remote(t, &calls[__NR_linkat]);
}

long do_readlinkat(struct trap *t)
{
    char *path = (char *)t->self->scratch;
    long length = copy_path(path, (char *)t->a[1]);
    if (length < 0)
        return length;
    struct proc_path which;
    if (!find_proc_path(t->self, path, &which) || which.pid == PROC_ROOT)
        return remote(t, &calls[__NR_readlinkat]);
    char found[PATH_LIMIT];
    long size = proc_link(t, &which, found, sizeof found);
    if (size < 0)
        return size;
    if ((unsigned long)size > t->a[3])
        size = (long)t->a[3];
    return copy_user((void *)t->a[2], found, (size_t)size) ? -EFAULT : size;
}

/* stat of the program's own files: through a descriptor that is opened for it. */
static long stat_path(struct trap *t, int flags_argument)
{
    char *path = (char *)t->self->scratch;
    if (t->a[1]) {
        long length = copy_path(path, (char *)t->a[1]), status;
        if (length < 0)
            return length;
        if (t->number == __NR_newfstatat && length == 1 && (t->a[3] & AT_EMPTY_PATH) &&
            status_ahead((int)t->a[0], (void *)t->a[2], &status))
            return status;
        struct proc_path which;
        const bool ours = find_proc_path(t->self, path, &which) && which.pid != PROC_ROOT;
        const bool link = ours && (t->a[flags_argument] & AT_SYMLINK_NOFOLLOW) && is_proc_link(&which);
        if (link && !which.is_link) {
            char found[PATH_LIMIT];
            const long size = proc_link(t, &which, found, sizeof found);
            if (size < 0)
                return size;
            memcpy(path, "/proc/self/exe", sizeof "/proc/self/exe"); /* they all look the same */
            t->a[1] = (unsigned long)path;
        } else if (ours && !link) {
            long fd = proc_open(t, &which, O_PATH);
            if (fd >= 0) {
                t->a[0] = (unsigned long)fd;
                t->a[1] = (unsigned long)"";
                t->a[flags_argument] |= AT_EMPTY_PATH;
                long result = remote(t, &calls[t->number]);
                close_home(t->self, (int)fd);
                return result;
            }
            if (fd != -ENOSYS)
                return fd;
            t->a[1] = (unsigned long)t->self->scratch;
        }
    }
    return remote(t, &calls[t->number]);
}

long do_newfstatat(struct trap *t) { return stat_path(t, 3); }
long do_statx(struct trap *t) { return stat_path(t, 2); }

/* Asks the same of the program's own files: through a descriptor as well. */
static long access_path(struct trap *t, long flags)
{
    char *path = (char *)t->self->scratch;
    struct proc_path which;
    const long length = copy_path(path, (char *)t->a[1]);
    if (length < 0 || !find_proc_path(t->self, path, &which) || which.pid == PROC_ROOT)
        return length < 0 ? length : remote(t, &calls[t->number]);
    const long fd = proc_open(t, &which, O_PATH | O_CLOEXEC);
    if (fd == -ENOSYS)
        t->a[1] = (unsigned long)t->self->scratch;
    if (fd < 0)
        return fd == -ENOSYS ? remote(t, &calls[t->number]) : fd;
    const unsigned mode = (unsigned)t->a[2] & (is_proc_directory(&which) ? ~1u : ~0u); /* the list of it is no directory at home */
    const long result = call_home(t->self, __NR_faccessat2, fd, (long)"", mode, flags | AT_EMPTY_PATH, 0, 0);
    close_home(t->self, (int)fd);
    return result;
}

/* Changes what a path stands for; NUMBER is the call that does so with a descriptor, and B and C are its further arguments. Of
 * an open file that its link under /proc names, it is done through a second descriptor. */
static long change_path(struct trap *t, bool follows, long number, unsigned long b, unsigned long c)
{
    char *path = (char *)t->self->scratch;
    const long length = follows && t->a[1] ? copy_path(path, (char *)t->a[1]) : 0;
    const long fd = length > 0 ? own_file_again(t->self, path) : -ENOSYS;
    if (length < 0 || fd < 0)
        return length < 0 ? length : fd == -ENOSYS ? remote(t, &calls[t->number]) : fd;
    const long result = call_home(t->self, number, fd, (long)b, (long)c, 0, 0, 0);
    close_home(t->self, (int)fd);
    return result;
}

long do_fchmodat(struct trap *t) { return change_path(t, true, __NR_fchmod, t->a[2], 0); }
long do_fchownat(struct trap *t) { return change_path(t, !(t->a[4] & AT_SYMLINK_NOFOLLOW), __NR_fchown, t->a[2], t->a[3]); }
long do_utimensat(struct trap *t) { return change_path(t, !(t->a[3] & AT_SYMLINK_NOFOLLOW), __NR_utimensat, 0, t->a[2]); }

long do_faccessat(struct trap *t) { return access_path(t, 0); }
long do_faccessat2(struct trap *t) { return access_path(t, (long)t->a[3] & ~AT_SYMLINK_NOFOLLOW); }
