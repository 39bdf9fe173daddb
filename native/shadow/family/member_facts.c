/* What members learn of each other under /proc, as far as home knows it: who there is, what each runs, which files a process
 * has open itself, and lists of such names as directories.  How a member does (its time, its memory) is known where it
 * runs: see runtime/proc/facts.c.
 *
 * Each process says what it runs when it begins, and again after a restart (OP_PROGRAM).  When it began is home's to know,
 * in ticks since home was booted, as the kernel has it; an image has it as a time.
 */
#include "shadow/serve.h"
#include "shadow/terminals/terminals.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BIRTH_NS 2000000000ll

enum { TICK_NS = 10000000, TICKS = 100, FIRST_PROCESS = 1, TERMINAL_MAJOR = 136 };

int64_t ticks_since_boot(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * TICKS + now.tv_nsec / TICK_NS;
}

/* When home was booted, in ticks since 1970: in whole seconds, which no adjustment of the clock changes. */
static int64_t booted(void)
{
    char line[256];
    int64_t seconds = 0;
    FILE *stat = fopen("/proc/stat", "re");
    while (stat && fgets(line, sizeof line, stat))
        if (strncmp(line, "btime ", 6) == 0)
            seconds = strtoll(line + 6, NULL, 10);
    if (stat)
        fclose(stat);
    return seconds * TICKS;
}

/* MEMBER is born as a copy of S. */
void program_copy(struct session *member, const struct session *s)
{
    member->began = ticks_since_boot();
    memcpy(member->name, s->name, sizeof member->name);
    member->program = s->program_bytes ? malloc(s->program_bytes) : NULL;
    if (!member->program)
        return;
    memcpy(member->program, s->program, s->program_bytes);
    member->program_bytes = s->program_bytes;
    member->path_bytes = s->path_bytes;
}

/* Its name, and unless that is all, the program's path and arguments. No answer. */
long serve_program(struct work *w)
{
    struct session *s = w->session;
    const size_t size = w->head.size < PROGRAM_NAME_BYTES ? 0 : w->head.size - PROGRAM_NAME_BYTES;
    const bool is_all = ARGUMENT(1) > 0 && (uint64_t)ARGUMENT(1) <= size && size <= MOST_PROGRAM_BYTES;
    char *program = is_all ? malloc(size) : NULL;
    if (w->head.size < PROGRAM_NAME_BYTES)
        return -EINVAL;
    if (program)
        memcpy(program, w->payload + PROGRAM_NAME_BYTES, size);
    const int64_t began = ARGUMENT(0) > 0 ? ARGUMENT(0) - booted() : 0;
    pthread_mutex_lock(&table_lock);
    memcpy(s->name, w->payload, sizeof s->name);
    s->name[sizeof s->name - 1] = 0;
    if (ARGUMENT(0) > 0)
        s->began = began > 0 ? began : 0;
    char *old = program ? s->program : NULL;
    if (program) {
        s->program = program;
        s->program_bytes = (uint32_t)size;
        s->path_bytes = (uint32_t)ARGUMENT(1);
    }
    pthread_mutex_unlock(&table_lock);
    free(old);
    return 0;
}

static struct session *member_of(struct session *root, int64_t pid) REQUIRES(table_lock);
static struct session *member_of(struct session *root, int64_t pid)
{
    for (struct session *s = root; s; s = s->next_member)
        if (s->greeted && !s->ending && s->member.pid == pid)
            return s;
    return NULL;
}

/* Whether a member is being born, who is to be there for those that ask now; then W waits for it, two seconds at most. */
static bool awaits_birth(struct work *w)
{
    bool expected = false;
    if (!w->again)
        w->until_ns = now_ns() + BIRTH_NS;
    pthread_mutex_lock(&table_lock);
    for (const struct session *s = w->session->root; s; s = s->next_member)
        expected |= !s->greeted;
    pthread_mutex_unlock(&table_lock);
    return expected && now_ns() < w->until_ns;
}

/* Which terminal controls TOLD's session. */
static void tell_terminal(const struct session *root, struct member_told *told)
{
    pthread_mutex_lock(&terminals_lock);
    const struct terminal *terminal = terminal_controlling(root, told->session);
    if (terminal) {
        told->foreground = terminal->foreground;
        told->terminal = TERMINAL_MAJOR << 8 | terminal->number;
    }
    pthread_mutex_unlock(&terminals_lock);
}

/* Who the process is that calls itself so; of process 1, that it is none of the family. */
static long tell_member(struct work *w)
{
    struct session *root = w->session->root;
    struct member_told told = {.virtual_pid = (int32_t)ARGUMENT(1), .foreground = -1, .uid = getuid(), .gid = getgid()};
    char *program = NULL;
    pthread_mutex_lock(&table_lock);
    const struct session *s = member_of(root, ARGUMENT(1));
    if (s) {
        told.parent = s->member.parent;
        told.group = s->member.group;
        told.session = s->member.session;
        told.real_pid = s->member.real_pid;
        told.began = s->began;
        memcpy(told.name, s->name, sizeof told.name);
        program = s->program_bytes ? malloc(s->program_bytes) : NULL;
        told.path_bytes = program ? s->path_bytes : 0;
        told.argument_bytes = program ? s->program_bytes - s->path_bytes : 0;
        if (program)
            memcpy(program, s->program, s->program_bytes);
        if (!member_of(root, told.parent))
            told.parent = FIRST_PROCESS;
    }
    pthread_mutex_unlock(&table_lock);
    if (!s && ARGUMENT(1) != FIRST_PROCESS)
        return awaits_birth(w) ? family_wait(w, w->until_ns) : -ESRCH;
    if (!s) {
        told.group = told.session = FIRST_PROCESS;
        memcpy(told.name, "init", sizeof "init");
    }
    told.began_at = told.began + booted();
    tell_terminal(root, &told);
    const size_t words = told.path_bytes + told.argument_bytes;
    uint8_t *to = out_room(w, sizeof told + words);
    if (to) {
        memcpy(to, &told, sizeof told);
        if (words)
            memcpy(to + sizeof told, program, words);
    }
    free(program);
    return to ? (long)words : -ENOMEM;
}

/* Where the process is that calls itself so. */
static long tell_directory(struct work *w)
{
    char link[64], found[PATH_LIMIT];
    pthread_mutex_lock(&table_lock);
    const struct session *s = member_of(w->session->root, ARGUMENT(1));
    const int thread = s ? s->thread_id : 0;
    pthread_mutex_unlock(&table_lock);
    if (!thread)
        return awaits_birth(w) ? family_wait(w, w->until_ns) : -ENOENT;
    snprintf(link, sizeof link, "/proc/self/task/%d/cwd", thread);
    const ssize_t length = readlink(link, found, sizeof found);
    uint8_t *to = length < 0 ? NULL : out_room(w, (size_t)length);
    if (!to)
        return -ENOENT;
    memcpy(to, found, (size_t)length);
    return length;
}

long serve_members(struct work *w)
{
    switch (ARGUMENT(0)) {
    case MEMBER_TOLD: return tell_member(w);
    case MEMBER_DIRECTORY: return tell_directory(w);
    default: return -EINVAL;
    }
}

/* ---- lists of names */

/* One name, as the kernel has it in what getdents64 tells. */
static void put_name(FILE *to, unsigned char type, const char *name)
{
    const size_t at = offsetof(struct dirent64, d_name), length = strlen(name) + 1;
    struct dirent64 one = {.d_type = type, .d_reclen = (unsigned short)((at + length + 7) & ~(size_t)7)};
    one.d_off = ftell(to) + one.d_reclen;
    one.d_ino = (ino64_t)one.d_off;
    memcpy(one.d_name, name, length);
    fwrite(&one, one.d_reclen, 1, to);
}

static void put_number_name(FILE *to, unsigned char type, int number)
{
    char name[16];
    snprintf(name, sizeof name, "%d", number);
    put_name(to, type, name);
}

static int by_number(const void *left, const void *right)
{
    const int l = *(const int *)left, r = *(const int *)right;
    return (l > r) - (l < r);
}

/* The family, and what the machine has to tell besides. */
static void put_members(const struct session *asks, FILE *to)
{
    int pids[MOST_GATHERED + 1] = {FIRST_PROCESS};
    size_t count = 1;
    pthread_mutex_lock(&table_lock);
    for (const struct session *s = asks->root; s && count <= MOST_GATHERED; s = s->next_member)
        if (s->greeted && !s->ending && s->member.pid != FIRST_PROCESS)
            pids[count++] = s->member.pid;
    pthread_mutex_unlock(&table_lock);
    qsort(pids, count, sizeof *pids, by_number);
    for (size_t i = 0; i < count; i++)
        put_number_name(to, DT_DIR, pids[i]);
    put_name(to, DT_LNK, "self");
    put_name(to, DT_LNK, "thread-self");
    DIR *proc = asks->root->job_root ? NULL : opendir("/proc");
    for (const struct dirent *one; proc && (one = readdir(proc));)
        if ((one->d_name[0] < '0' || one->d_name[0] > '9') && one->d_name[0] != '.' && strcmp(one->d_name, "self") &&
            strcmp(one->d_name, "thread-self") && strcmp(one->d_name, "sysvipc"))
            put_name(to, one->d_type, one->d_name);
    if (proc)
        closedir(proc);
}

static void put_files(const struct session *s, unsigned char type, FILE *to)
{
    for (int i = 0; i < MAX_FILES; i++)
        if (s->entries[i].file)
            put_number_name(to, type, i);
}

/* Names that the process gives itself: each with a letter in front that says what it is. */
static bool put_given(const struct work *w, FILE *to)
{
    const char *at = (const char *)w->payload, *end = at + w->head.size;
    if (!w->head.size || end[-1])
        return !w->head.size;
    for (; at < end; at += strlen(at) + 1) {
        const size_t length = strlen(at);
        if (length < 2 || length > NAME_MAX || strchr(at, '/'))
            return false;
        put_name(to, *at == 'd' ? DT_DIR : *at == 'l' ? DT_LNK : DT_REG, at + 1);
    }
    return true;
}

/* A new descriptor of a directory under /proc. */
long serve_listing(struct work *w)
{
    struct session *s = w->session;
    if (ARGUMENT(0) == LISTING_MEMBERS && awaits_birth(w))
        return family_wait(w, w->until_ns);
    const int real = memfd_create("proc", MFD_CLOEXEC);
    FILE *to = real < 0 ? NULL : fdopen(fcntl(real, F_DUPFD_CLOEXEC, 3), "w");
    bool good = to;
    if (good) {
        put_name(to, DT_DIR, ".");
        put_name(to, DT_DIR, "..");
        switch (ARGUMENT(0)) {
        case LISTING_MEMBERS: put_members(s, to); break;
        case LISTING_FILES: put_files(s, DT_LNK, to); break;
        case LISTING_FILE_INFO: put_files(s, DT_REG, to); break;
        default: good = put_given(w, to);
        }
        good = fclose(to) == 0 && good;
    }
    if (!good || lseek(real, 0, SEEK_SET) < 0 || fchmod(real, 0444) < 0) {
        if (real >= 0)
            close(real);
        return good ? -EIO : -EINVAL;
    }
    const long fd = install(s, real, O_RDONLY | O_DIRECTORY, ARGUMENT(1) & O_CLOEXEC, FILE_TEXT);
    if (fd >= 0)
        s->entries[fd].file->end = IS_LISTING;
    return fd;
}

bool is_listing(const struct file *file)
{
    return file->kind == FILE_TEXT && file->end == IS_LISTING;
}

/* As getdents64. What is in the file may come from an image. */
long listing_read(struct work *w, const struct file *file)
{
    const size_t at = offsetof(struct dirent64, d_name);
    const size_t room = ARGUMENT(2) > 0 && ARGUMENT(2) < MAX_PAYLOAD ? (size_t)ARGUMENT(2) : MAX_PAYLOAD;
    size_t used = 0;
    off_t from = lseek(file->real, 0, SEEK_CUR);
    uint8_t *to = out_room(w, room);
    struct dirent64 one;
    if (!to)
        return -ENOMEM;
    while (from >= 0 && pread(file->real, &one, at, from) == (ssize_t)at && one.d_reclen > at && one.d_reclen % 8 == 0) {
        if (one.d_reclen > room - used || pread(file->real, to + used, one.d_reclen, from) != one.d_reclen)
            break;
        used += one.d_reclen;
        from += one.d_reclen;
    }
    struct stat st;
    const bool more = fstat(file->real, &st) == 0 && from < st.st_size;
    lseek(file->real, from, SEEK_SET);
    w->out_used -= room - used;
    return used || !more ? (long)used : -EINVAL; /* not even one fits */
}

/* What was told of FILE's status is made that of a directory. */
void listing_status(struct work *w)
{
    uint8_t *told = w->session->out + sizeof(struct answer);
    if (w->head.call == __NR_newfstatat && w->out_used == sizeof(struct stat)) {
        struct stat *st = (struct stat *)told;
        st->st_mode = S_IFDIR | 0555;
        st->st_nlink = 2;
        st->st_size = st->st_blocks = 0;
    } else if (w->head.call == __NR_statx && w->out_used == sizeof(struct statx)) {
        struct statx *st = (struct statx *)told;
        st->stx_mode = S_IFDIR | 0555;
        st->stx_nlink = 2;
        st->stx_size = st->stx_blocks = 0;
    }
}
