/* Files in memory (memfd_create): at home their content is this machine's memory, so a family may have so much and no more.
 *
 * A file counts for what the kernel has given it, which is looked at after each call that may have changed it.  What might
 * go beyond the limit is refused before it is done, as on a full disk.
 */
#include "shadow/serve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_MEMORY_BYTES (1ull << 30) /* of a family */

/* What a family has: of its first session and of each file that counts. */
struct memory_account {
    pthread_mutex_t lock;
    uint64_t bytes;
    uint32_t holders; /* the lock guards all of them, and what files are counted for */
};

static struct memory_account *account_of(struct session *root)
{
    pthread_mutex_lock(&table_lock);
    struct memory_account *account = root->memory;
    if (!account && (account = calloc(1, sizeof *account))) {
        pthread_mutex_init(&account->lock, NULL);
        account->holders = 1;
        root->memory = account;
    }
    pthread_mutex_unlock(&table_lock);
    return account;
}

static void account_leave(struct memory_account *account, uint64_t bytes)
{
    pthread_mutex_lock(&account->lock);
    account->bytes -= bytes;
    const bool last = --account->holders == 0;
    pthread_mutex_unlock(&account->lock);
    if (last)
        free(account);
}

/* Whether a file has no place but in memory; a file of a file system in memory has a name there. */
static bool is_memory(int real)
{
    struct stat st;
    return fcntl(real, F_GET_SEALS) >= 0 && fstat(real, &st) == 0 && st.st_nlink == 0;
}

/* How much of a file of SIZE bytes a member may write through its mappings. */
static uint64_t mapped_bytes(const struct file *file, uint64_t size)
{
    return file->memory_mapped < size ? file->memory_mapped : size;
}

/* FILE counts for what it has now, or what it may have once what is written to its mappings comes home: then it is too late
 * to refuse it. */
static void count(struct file *file)
{
    struct stat st;
    if (fstat(file->real, &st) < 0)
        return;
    pthread_mutex_lock(&file->memory->lock);
    const uint64_t mapped = mapped_bytes(file, (uint64_t)st.st_size);
    const uint64_t bytes = (uint64_t)st.st_blocks * 512 > mapped ? (uint64_t)st.st_blocks * 512 : mapped;
    file->memory->bytes += bytes - file->memory_bytes; /* may wrap on its way, and comes out right */
    file->memory_bytes = bytes;
    pthread_mutex_unlock(&file->memory->lock);
}

/* Once for each file. */
static void begin_to_count(struct session *s, struct file *file)
{
    if (__atomic_exchange_n(&file->memory_known, true, __ATOMIC_RELAXED) || !is_memory(file->real) || !(file->memory = account_of(s->root)))
        return;
    pthread_mutex_lock(&file->memory->lock);
    file->memory->holders++;
    pthread_mutex_unlock(&file->memory->lock);
    count(file);
}

/* What a call writes to; NULL: it writes to no file.  *MORE: how many bytes at most, from *AT on, or -1: at its position. */
static struct file *target(struct work *w, uint64_t *more, int64_t *at)
{
    struct session *s = w->session;
    struct file **held = handle_of(s, ARGUMENT(0));
    int64_t fd = ARGUMENT(0), source = -1;
    struct stat st;
    *more = 0;
    *at = -1;
    switch (w->head.call) {
    case __NR_write: *more = (uint64_t)ARGUMENT(2); break;
    case __NR_pwrite64: *more = (uint64_t)ARGUMENT(2), *at = ARGUMENT(3); break;
    case __NR_fallocate: *more = (uint64_t)ARGUMENT(3), *at = ARGUMENT(2); break;
    case __NR_ftruncate: break;
    case __NR_sendfile: source = ARGUMENT(1), *more = (uint64_t)ARGUMENT(3); break;
    case __NR_copy_file_range: source = fd, fd = ARGUMENT(2), *more = (uint64_t)ARGUMENT(4); break;
    default: return NULL;
    }
    struct file *file = held && w->head.call == __NR_pwrite64 ? *held : file_of(s, fd);
    if (source >= 0 && real_of(s, source) >= 0 && fstat(real_of(s, source), &st) == 0 && S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size < *more)
        *more = (uint64_t)st.st_size;
    return file && file->regular ? file : NULL;
}

/* Whether all of that is there already, so that writing it takes no more memory. */
static bool is_there(const struct file *file, uint64_t more, int64_t at)
{
    struct stat st;
    if (at < 0)
        at = file->flags & O_APPEND ? INT64_MAX : lseek(file->real, 0, SEEK_CUR);
    return fstat(file->real, &st) == 0 && at >= 0 && at <= st.st_size && more <= (uint64_t)(st.st_size - at) &&
           st.st_blocks * 512 >= st.st_size;
}

/* Whether FILE may count for BYTES. */
static bool may_count(const struct file *file, uint64_t bytes) REQUIRES(file->memory->lock);
static bool may_count(const struct file *file, uint64_t bytes)
{
    const uint64_t others = file->memory->bytes - file->memory_bytes;
    return bytes <= file->memory_bytes || (bytes <= MOST_MEMORY_BYTES && others <= MOST_MEMORY_BYTES - bytes);
}

/* Before FILE is mapped for writing, from its beginning to END at most. */
bool memory_may_be_mapped(struct session *s, struct file *file, int64_t end)
{
    struct stat st;
    begin_to_count(s, file);
    if (!file->memory || end <= 0 || fstat(file->real, &st) < 0)
        return true;
    pthread_mutex_lock(&file->memory->lock);
    const bool fits = may_count(file, (uint64_t)end < (uint64_t)st.st_size ? (uint64_t)end : (uint64_t)st.st_size);
    if (fits && (uint64_t)end > file->memory_mapped)
        file->memory_mapped = (uint64_t)end;
    pthread_mutex_unlock(&file->memory->lock);
    count(file);
    return fits;
}

/* Whether FILE may be as long as SIZE, as far as it is mapped. */
static bool may_be_cut(struct file *file, int64_t size)
{
    if (!file->memory || size < 0)
        return true;
    pthread_mutex_lock(&file->memory->lock);
    const bool fits = may_count(file, mapped_bytes(file, (uint64_t)size));
    pthread_mutex_unlock(&file->memory->lock);
    return fits;
}

/* Before a call. 0, or why it is not done. */
long memory_before(struct work *w)
{
    uint64_t more;
    int64_t at;
    struct file *file = target(w, &more, &at);
    if (file)
        begin_to_count(w->session, file);
    if (file && w->head.call == __NR_ftruncate && !may_be_cut(file, ARGUMENT(1)))
        return -ENOSPC;
    if (!file || !file->memory || !more)
        return 0;
    pthread_mutex_lock(&file->memory->lock);
    const bool fits = file->memory->bytes <= MOST_MEMORY_BYTES && more <= MOST_MEMORY_BYTES - file->memory->bytes;
    pthread_mutex_unlock(&file->memory->lock);
    return fits || is_there(file, more, at) ? 0 : -ENOSPC;
}

void memory_after(struct work *w)
{
    uint64_t more;
    int64_t at;
    struct file *file = target(w, &more, &at);
    if (file && file->memory)
        count(file);
}

/* FILE is closed. */
void memory_end(struct file *file)
{
    if (file->memory)
        account_leave(file->memory, file->memory_bytes);
}

/* The family is gone. */
void memory_leave(struct session *root)
{
    if (root->memory)
        account_leave(root->memory, 0);
    root->memory = NULL;
}
