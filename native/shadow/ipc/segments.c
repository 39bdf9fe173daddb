/* System V shared memory.
 *
 * A segment is a file of the family's in memory here, and its attachments are mappings of that file, as runtime/shared.c has
 * them: all members see the same memory, and what is in it when nobody has it attached is in the file.  Each attachment
 * has a handle, so the file has as many references as there are attachments, and one of the table's.
 */
#include "ipc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GONE = SHM_DEST };

static uint64_t whole_pages(uint64_t size)
{
    return (size + 4095) & ~4095ull;
}

struct segment *segment_new(struct ipc *ipc, uint64_t size, struct file *file)
{
    struct segment *segment = calloc(1, sizeof *segment);
    if (!segment)
        return NULL;
    file_keep(file);
    file->memory_known = true; /* segments have a limit of their own, and are no files in memory: see memory_files.c */
    segment->file = file;
    segment->size = size;
    ipc->segment_bytes += whole_pages(size);
    return segment;
}

/* With memory of its own, of zeros. NULL: errno. */
struct segment *segment_fresh(struct ipc *ipc, uint64_t size, int creator)
{
    int real = memfd_create("segment", MFD_CLOEXEC);
    struct file *file = real < 0 || ftruncate(real, (off_t)whole_pages(size)) < 0 ? NULL : file_new(real, O_RDWR);
    if (!file) {
        if (real >= 0)
            close(real);
        return NULL;
    }
    struct segment *segment = segment_new(ipc, size, file);
    if (segment)
        segment->creator = creator;
    file_drop(file);
    return segment;
}

/* One that has no number. */
void segment_drop(struct ipc *ipc, struct segment *segment)
{
    ipc->segment_bytes -= whole_pages(segment->size);
    file_drop(segment->file);
    free(segment);
}

void segment_end(struct ipc *ipc, struct segment *segment)
{
    ipc_take_out(ipc, &segment->base);
    segment_drop(ipc, segment);
}

static int attachments(const struct segment *segment)
{
    return segment->file->references - 1;
}

/* Those that were removed end with their last attachment. */
static void settle(struct ipc *ipc)
{
    for (int i = 0; i < MOST_OBJECTS; i++) {
        struct segment *segment = (struct segment *)ipc_at(ipc, IPC_SEGMENTS, i);
        if (segment && (segment->base.mode & GONE) && attachments(segment) <= 0)
            segment_end(ipc, segment);
    }
}

/* S has one handle less of FILE, which may be none any more. */
void segment_left(struct session *s, const struct file *file)
{
    pthread_mutex_lock(&table_lock);
    struct ipc *ipc = s->root->ipc;
    pthread_mutex_unlock(&table_lock);
    if (!ipc)
        return;
    pthread_mutex_lock(&ipc->lock);
    for (int i = 0; i < MOST_OBJECTS; i++) {
        struct segment *segment = (struct segment *)ipc_at(ipc, IPC_SEGMENTS, i);
        if (segment && segment->file == file) {
            segment->last = s->virtual_pid;
            segment->detached = ipc_now();
        }
    }
    settle(ipc);
    pthread_mutex_unlock(&ipc->lock);
}

static bool is_segments(struct ipc *ipc, const struct file *file)
{
    bool found = false;
    pthread_mutex_lock(&ipc->lock);
    for (int i = 0; i < MOST_OBJECTS && !found; i++) {
        const struct segment *segment = (struct segment *)ipc_at(ipc, IPC_SEGMENTS, i);
        found = segment && segment->file == file;
    }
    pthread_mutex_unlock(&ipc->lock);
    return found;
}

/* S has said that it ends: its parent may have waited for it before its channel ends, and then has it nothing attached. */
void segments_left(struct session *s)
{
    pthread_mutex_lock(&table_lock);
    struct ipc *ipc = s->root->ipc;
    pthread_mutex_unlock(&table_lock);
    for (int i = 0; i < MAX_HANDLES && ipc; i++) {
        struct file *file = s->handles[i];
        if (!file || !is_segments(ipc, file))
            continue;
        s->handles[i] = NULL;
        file_drop(file);
        segment_left(s, file);
    }
}

/* ---- calls */

long serve_shmget(struct work *w)
{
    const int flags = (int)ARGUMENT(2);
    if (flags & SHM_HUGETLB)
        return -ENOMEM;
    return ipc_get(w, IPC_SEGMENTS, (int)ARGUMENT(0), flags, (size_t)ARGUMENT(1));
}

/* A handle of the session's for the segment's file. */
static long attach(struct work *w, struct segment *segment, int flags)
{
    struct session *s = w->session;
    uint8_t *to = out_room(w, sizeof segment->size);
    if (!ipc_may(&segment->base, flags & SHM_RDONLY ? 0444 : 0666))
        return -EACCES;
    for (int i = 0; i < MAX_HANDLES && to; i++)
        if (!s->handles[i]) {
            file_keep(segment->file);
            s->handles[i] = segment->file;
            segment->last = s->virtual_pid;
            segment->attached = ipc_now();
            memcpy(to, &segment->size, sizeof segment->size);
            return MAX_FILES + i;
        }
    return -ENOMEM;
}

static long attach_found(struct work *w, struct ipc *ipc)
{
    settle(ipc);
    struct segment *segment = (struct segment *)ipc_find(ipc, IPC_SEGMENTS, (int)ARGUMENT(0));
    if (!segment)
        return -EINVAL;
    return w->session->state == SHADOW_EXITED ? -EINTR : attach(w, segment, (int)ARGUMENT(2));
}

/* Segment, a number of its own, flags; the answer is a handle, and the size. */
long serve_shmat(struct work *w)
{
    return ipc_alone(w, attach_found);
}

static long tell_segment(struct work *w, const struct segment *segment, long result)
{
    struct shmid_ds told = {.shm_segsz = segment->size, .shm_atime = segment->attached, .shm_dtime = segment->detached,
                            .shm_ctime = segment->base.changed, .shm_cpid = segment->creator, .shm_lpid = segment->last,
                            .shm_nattch = (shmatt_t)attachments(segment)};
    uint8_t *to = out_room(w, sizeof told);
    if (!to)
        return -ENOMEM;
    ipc_permissions(&segment->base, &told.shm_perm);
    memcpy(to, &told, sizeof told);
    return result;
}

static long tell_limits(struct work *w, const struct ipc *ipc)
{
    const struct shminfo told = {.shmmax = MOST_SEGMENT_BYTES, .shmmin = 1, .shmmni = MOST_OBJECTS, .shmseg = MOST_OBJECTS,
                                 .shmall = MOST_SEGMENT_BYTES / 4096};
    uint8_t *to = out_room(w, sizeof told);
    if (!to)
        return -ENOMEM;
    memcpy(to, &told, sizeof told);
    return ipc_highest(ipc, IPC_SEGMENTS);
}

static long tell_use(struct work *w, const struct ipc *ipc)
{
    struct shm_info told = {.used_ids = ipc_used(ipc, IPC_SEGMENTS), .shm_tot = ipc->segment_bytes / 4096};
    uint8_t *to = out_room(w, sizeof told);
    struct stat st;
    if (!to)
        return -ENOMEM;
    for (int i = 0; i < MOST_OBJECTS; i++) {
        const struct segment *segment = (const struct segment *)ipc->objects[IPC_SEGMENTS][i];
        if (segment && fstat(segment->file->real, &st) == 0)
            told.shm_rss += (unsigned long)st.st_blocks / 8;
    }
    memcpy(to, &told, sizeof told);
    return ipc_highest(ipc, IPC_SEGMENTS);
}

static long control_owned(struct work *w, struct ipc *ipc, struct segment *segment, int command)
{
    struct shmid_ds fresh;
    const unsigned gone = segment->base.mode & GONE;
    if (!ipc_is_owner(&segment->base))
        return -EPERM;
    if (command == IPC_RMID) {
        segment->base.mode |= GONE;
        segment->base.key = IPC_PRIVATE;
        settle(ipc);
        return 0;
    }
    if (w->head.size != sizeof fresh)
        return -EINVAL;
    memcpy(&fresh, w->payload, sizeof fresh);
    ipc_set_permissions(&segment->base, &fresh.shm_perm);
    segment->base.mode |= gone;
    return 0;
}

static long control(struct work *w, struct ipc *ipc)
{
    const int command = (int)ARGUMENT(1);
    const bool by_place = command == SHM_STAT || command == SHM_STAT_ANY;
    settle(ipc);
    struct segment *segment = (struct segment *)(by_place ? ipc_at(ipc, IPC_SEGMENTS, (int)ARGUMENT(0))
                                                          : ipc_find(ipc, IPC_SEGMENTS, (int)ARGUMENT(0)));
    if (command == IPC_INFO)
        return tell_limits(w, ipc);
    if (command == SHM_INFO)
        return tell_use(w, ipc);
    if (!segment)
        return -EINVAL;
    switch (command) {
    case IPC_STAT:
    case SHM_STAT:
        if (!ipc_may(&segment->base, 0444))
            return -EACCES;
        __attribute__((fallthrough));
    case SHM_STAT_ANY: return tell_segment(w, segment, by_place ? segment->base.id : 0);
    case IPC_SET: case IPC_RMID: return control_owned(w, ipc, segment, command);
    case SHM_LOCK: case SHM_UNLOCK: return -EPERM;
    default: return -EINVAL;
    }
}

/* Segment and command; what follows is as the command wants it. */
long serve_shmctl(struct work *w)
{
    return ipc_alone(w, control);
}
