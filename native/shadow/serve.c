/* One request: the table's calls in one general way, the others by functions of their own. */
#define WANT_CALL_TABLE
#include "serve.h"
#include "terminals/terminals.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static server *const servers[CALL_COUNT] = {
#define ENTER(name) [__NR_##name] = serve_##name,
    CALLS_SERVED_THERE(ENTER)
#undef ENTER
};

long result_of(long result)
{
    return result < 0 ? -errno : result;
}

/* The next string of the payload, or NULL if there is none that ends inside the frame. */
const char *take_path(struct work *w, size_t *at)
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

void *take_input(struct work *w, size_t *at, size_t size)
{
    if (w->head.size - *at < size)
        return NULL;
    void *found = w->payload + *at;
    *at += size;
    return found;
}

long install(struct session *s, int real, int flags, bool closes_on_exec, uint8_t kind)
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
    bool given[6] = {false};
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
            given[i] = true;
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
        if (given[i])
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
    pthread_mutex_lock(&table_lock);
    s->real_pid = (int)hello.real_pid;
    s->virtual_pid = (int)(hello.kind == HELLO_FRESH ? hello.real_pid : hello.virtual_pid);
    s->greeted = true;
    s->member.pid = s->virtual_pid;
    s->member.real_pid = s->real_pid;
    if (s->root == s) /* a session of its own */
        s->member = (struct membership){.pid = s->virtual_pid, .parent = 1, .group = s->virtual_pid,
                                        .session = s->virtual_pid, .real_pid = s->real_pid, .real_group = s->real_pid};
    pthread_mutex_unlock(&table_lock);
    family_joined(s->root);
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
    for (int i = 0; i < 32; i++)
        start.taken |= s->entries[i].file ? 1u << i : 0;
    uint8_t *to = out_room(w, sizeof start + s->string_bytes);
    if (!to)
        return -ENOMEM;
    memcpy(to, &start, sizeof start);
    if (s->root != s) /* a helper: its program is its parent's */
        return 0;
    memcpy(to + sizeof start, s->strings, s->string_bytes);
    if (hello.kind == HELLO_FRESH && s->task.journal == JOURNAL_FROM_START) {
        long failed = journal_apply(s, GENERATION_OF_START);
        if (!failed || failed == -ENOENT)
            failed = journal_reset(s, GENERATION_OF_START);
        if (failed)
            return failed;
    }
    if (ARGUMENT(2))
        library_learn(s, w->payload + sizeof hello, w->head.size - sizeof hello);
    if (hello.kind == HELLO_FRESH)
        tell(s, SHADOW_STARTED, s->real_pid, 0, NULL);
    return 0;
}

static long serve_exit(struct work *w)
{
    struct session *s = w->session;
    const int lost = ARGUMENT(1) ? 0 : take_lost_write(s);
    if (lost) /* it dies in another way */
        return -lost;
    s->state = SHADOW_EXITED;
    process_ends(s);
    records_forget(s); /* its parent may have waited for it before its channel ends */
    ipc_process_ended(s);
    segments_left(s);
    terminal_process_ended(s);
    note_processor_time(s);
    tell(s, SHADOW_EXITED, ARGUMENT(0), ARGUMENT(1), NULL);
    return 0;
}

/* With job_root, where home has its files is no business of the program's. */
static bool add_mounts(const struct work *w, int to)
{
    const bool mounts = ARGUMENT(1) == TEXT_MOUNTS;
    char part[4096];
    ssize_t got = 0;
    if ((!mounts && ARGUMENT(1) != TEXT_MOUNT_INFO) || w->session->root->job_root)
        return true;
    const int from = open(mounts ? "/proc/self/mounts" : "/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
    while (from >= 0 && (got = read(from, part, sizeof part)) > 0)
        if (write(to, part, (size_t)got) != got)
            break;
    if (from >= 0)
        close(from);
    return from >= 0 && got == 0;
}

static long serve_text(struct work *w)
{
    int real = memfd_create("proc", MFD_CLOEXEC);
    if (real < 0)
        return -errno;
    if (write(real, w->payload, w->head.size) != (ssize_t)w->head.size || !add_mounts(w, real) || lseek(real, 0, SEEK_SET) < 0 ||
        fchmod(real, 0444) < 0) {
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
    if (ARGUMENT(1) == HOLD_SIZE) {
        struct file **held = handle_of(s, ARGUMENT(0));
        if (!held)
            return -EBADF;
        return fstat((*held)->real, &st) < 0 ? -errno : st.st_size;
    }
    struct file *file = file_of(s, ARGUMENT(0));
    if (!file)
        return -EBADF;
    const bool reads = ARGUMENT(1) == HOLD_TO_READ && (file->flags & (O_ACCMODE | O_PATH)) == O_RDONLY;
    if (reads ? !is_shared_file(s, file->real) : (file->flags & O_ACCMODE) != O_RDWR || ARGUMENT(1) != HOLD_TO_WRITE)
        return -EACCES;
    const int seals = reads ? 0 : fcntl(file->real, F_GET_SEALS);
    if (seals > 0 && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)))
        return -EPERM;
    if (!reads && !memory_may_be_mapped(s, file, ARGUMENT(2)))
        return -ENOMEM;
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
    struct file **held = handle_of(w->session, ARGUMENT(0));
    if (!held)
        return -EBADF;
    const struct file *file = *held;
    *held = NULL;
    long result = span_release(w->session, ARGUMENT(0));
    file_drop((struct file *)file);
    segment_left(w->session, file);
    return result;
}

static long serve_path_of(struct work *w)
{
    char link[64], found[PATH_LIMIT];
    int real = real_of(w->session, ARGUMENT(0));
    if (real < 0)
        return -ENOENT;
    snprintf(link, sizeof link, "/proc/self/fd/%d", real);
    const struct file *file = file_of(w->session, ARGUMENT(0));
    ssize_t length = file->process    ? snprintf(found, sizeof found, "anon_inode:[pidfd]")
                     : file->terminal ? (ssize_t)terminal_shown(file, found, sizeof found)
                                      : readlink(link, found, sizeof found);
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
    pthread_mutex_lock(&table_lock);
    w->session->member.executed = true;
    pthread_mutex_unlock(&table_lock);
    return 0;
}

/* Descriptors beyond a limit that was lowered stay. */
static long serve_limit_files(struct work *w)
{
    int64_t most = ARGUMENT(0);
    w->session->most_files = most >= 0 && most < MAX_FILES ? (int)most : MAX_FILES;
    return 0;
}

static long serve_member_gone(struct work *w)
{
    if (member_is_gone(w->session->root, (int)ARGUMENT(0)))
        return 0;
    w->retry_ns = now_ns() + 1000000;
    return PARKED;
}

/* A write without an answer has failed: what comes after it for that file hears of it, once. */
static bool is_late(struct work *w, long *result)
{
    switch (w->head.call) {
    case __NR_write: case __NR_pwrite64: case __NR_close: case __NR_fsync: case __NR_fdatasync: case __NR_ftruncate:
        break;
    default: return false;
    }
    struct file *file = file_of(w->session, ARGUMENT(0));
    if (!file || !file->late_error || w->again)
        return false;
    *result = -file->late_error;
    if (w->head.id == ID_NONE) /* a close is done all the same */
        return w->head.call != __NR_close;
    file->late_error = 0;
    if (w->head.call == __NR_close)
        close_entry(w->session, ARGUMENT(0));
    return true;
}

static long serve_operation(struct work *w)
{
    switch (w->head.call) {
    case OP_HELLO: return serve_hello(w);
    case OP_EXIT: return serve_exit(w);
    case OP_POLL: return serve_poll_all(w);
    case OP_EPOLL_WAIT: return serve_epoll_set(w);
    case OP_TEXT: return serve_text(w);
    case OP_DESCRIBE: return serve_describe(w);
    case OP_ADOPT: return serve_adopt(w);
    case OP_IMAGE_BEGIN: return serve_image_begin(w);
    case OP_IMAGE_END: return serve_image_end(w);
    case OP_HOLD: return serve_hold(w);
    case OP_RELEASE: return serve_release(w);
    case OP_SHARE: return serve_share(w);
    case OP_PATH_OF: return serve_path_of(w);
    case OP_EXEC: return serve_exec(w);
    case OP_BEGIN: return serve_begin(w);
    case OP_GATHER: return serve_gather(w);
    case OP_PARKED: return serve_parked(w);
    case OP_SHARED_MEMORY: return serve_shared_memory(w);
    case OP_PART: return serve_part(w);
    case OP_PART_WRITTEN: return serve_part_written(w);
    case OP_REAL_PID: return serve_real_pid(w);
    case OP_GROUP: return serve_group(w);
    case OP_PROCESS: return serve_process(w);
    case OP_PROGRAM: return serve_program(w);
    case OP_MEMBERS: return serve_members(w);
    case OP_LISTING: return serve_listing(w);
    case OP_ORPHANS: return serve_orphans(w);
    case OP_SIGNALS: return serve_signals(w);
    case OP_TERMINAL_SIGNALS: return serve_terminal_signals(w);
    case OP_FACTS: return serve_facts(w);
    case OP_REOPEN: return serve_reopen(w);
    case OP_FILE_INFO: return serve_file_info(w);
    case OP_TAKE: return serve_take(w);
    case OP_PLAN_END: return serve_plan_end(w);
    case OP_MEMBER_GONE: return serve_member_gone(w);
    case OP_FORK: return serve_fork(w);
    case OP_LIMIT_FILES: return serve_limit_files(w);
    default: return -ENOSYS;
    }
}

static long serve_call(struct work *w, const struct call *call)
{
    long result;
    if (is_late(w, &result))
        return result;
    result = journal_before(w);
    if (result)
        return result;
    if (mapped_refuses(w))
        return -EINVAL;
    if ((result = memory_before(w)))
        return result;
    const bool has_file = call->arguments[0].kind == ARG_FD || call->arguments[0].kind == ARG_AT;
    const struct file *of = has_file ? file_of(w->session, ARGUMENT(0)) : NULL;
    const bool lists = of && is_listing(of);
    if (lists && w->head.call == __NR_getdents64)
        return listing_read(w, of);
    if (lists && w->head.call == __NR_fchdir)
        return -EACCES;
    const bool mapped = mapped_begin(w);
    if (call->flags & CALL_THERE)
        result = servers[w->head.call](w);
    else
        result = call->flags & CALL_NEW ? serve_new(w, call) : serve_general(w, call);
    if (lists && !result && w->head.size && !w->payload[0])
        listing_status(w);
    if (mapped)
        mapped_end(w, result);
    memory_after(w);
    journal_after(w, result);
    return result;
}

long serve(struct work *w)
{
    struct confined before;
    if (w->head.call >= CALL_COUNT)
        return serve_operation(w);
    const struct call *call = &calls[w->head.call];
    if (call->how != HOW_REMOTE)
        return -ENOSYS;
    long result;
    if (w->head.call == __NR_openat && terminal_opens(w, &result))
        return result;
    result = confine(w, &before);
    if (!result)
        result = serve_call(w, call);
    confine_end(w, &before);
    return result;
}
