/* Record locks (fcntl) of a process.
 *
 * They belong to a process and a file: by whichever descriptor a process locks, it does not exclude itself; its children
 * do not inherit its locks; and all that it has in a file are gone when it closes any descriptor of that file.
 *
 * To the kernel all programs served here are one process.  So a session opens each file that it locks once more, and its
 * locks are those of that open file, which no descriptor names.  What is no ordinary file, or cannot be opened once more,
 * is locked by the open file of the descriptor, whose locks are then those of all that have it; and so is one that had
 * such a lock in an older image, in which all were of that kind.
 */
#include "shadow/checkpoint/described.h"
#include "shadow/serve.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RETRY_NS = 20000000, LOCK_BYTES = 32 };

/* Of an ordinary file, for reading and writing if its mode allows it: the program may lock by another descriptor later. */
static int open_again(const struct file *file)
{
    char link[64];
    struct stat st;
    if (fstat(file->real, &st) < 0)
        return -1;
    if (!S_ISREG(st.st_mode) || (file->flags & O_PATH)) {
        errno = EINVAL;
        return -1;
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->real);
    int real = open(link, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    return real >= 0 ? real : open(link, (file->flags & O_ACCMODE) | O_CLOEXEC | O_NONBLOCK);
}

/* The place among the session's locked files of the one that REAL is, or of none of them. */
static struct locked *locked_place(struct session *s, int real, bool *found)
{
    struct stat st;
    struct locked *vacant = NULL;
    *found = false;
    if (fstat(real, &st) < 0)
        return NULL;
    for (int i = 0; i < MOST_LOCKED; i++) {
        struct locked *one = &s->locked[i];
        *found = one->file && one->device == st.st_dev && one->inode == st.st_ino;
        if (*found)
            return one;
        if (!one->file && !vacant)
            vacant = one;
    }
    return vacant;
}

/* Gives FILE, whose reference it takes over, to the session, whose locks it has. False: there is no room, or it has one. */
bool records_enter(struct session *s, struct locked *place, struct file *file)
{
    struct stat st;
    bool fits = place && !place->file && fstat(file->real, &st) == 0;
    if (!fits) {
        file_drop(file);
        return false;
    }
    pthread_mutex_lock(&table_lock);
    *place = (struct locked){file, st.st_dev, st.st_ino};
    s->locked_count++;
    pthread_mutex_unlock(&table_lock);
    return true;
}

static void forget(struct session *s, struct locked *place)
{
    pthread_mutex_lock(&table_lock);
    struct file *file = place->file;
    place->file = NULL;
    s->locked_count--;
    pthread_mutex_unlock(&table_lock);
    file_drop(file);
}

/* A descriptor of FILE is closed. */
void records_closed(struct session *s, const struct file *file)
{
    bool found;
    struct locked *place = s->locked_count && !(file->flags & O_PATH) ? locked_place(s, file->real, &found) : NULL;
    if (place && found)
        forget(s, place);
}

void records_forget(struct session *s)
{
    for (int i = 0; i < MOST_LOCKED && s->locked_count; i++)
        if (s->locked[i].file)
            forget(s, &s->locked[i]);
}

/* The open file that has the session's locks in FILE. Returns a descriptor of this process, or -errno. */
static int owner_of(struct session *s, struct file *file)
{
    bool found;
    if (file->has_records)
        return file->real;
    if (s->state == SHADOW_EXITED) /* a thread asked before another one ended the process */
        return -ENOLCK;
    struct locked *place = locked_place(s, file->real, &found);
    if (place && found)
        return place->file->real;
    int real = open_again(file);
    if (real < 0)
        return file->real;
    struct file *again = file_new(real, O_RDWR);
    if (!again)
        return -ENOLCK;
    again->kind = FILE_RECORDS;
    return records_enter(s, place, again) ? real : -ENOLCK;
}

/* Which other member of the family has a lock that was found in the way of REAL's; -1: none. */
static int member_with(struct session *s, int real, const struct flock *lock)
{
    int pid = -1;
    struct stat st;
    const struct described_lock wanted = {lock->l_start, lock->l_len ? lock->l_start + lock->l_len - 1 : -1, false,
                                          lock->l_type == F_WRLCK};
    if (fstat(real, &st) < 0)
        return -1;
    pthread_mutex_lock(&table_lock);
    for (struct session *other = s->root; other && pid < 0; other = other->next_member)
        for (int i = 0; i < MOST_LOCKED && other->locked_count && other != s && pid < 0; i++) {
            const struct locked *one = &other->locked[i];
            if (one->file && one->device == st.st_dev && one->inode == st.st_ino && has_lock(one->file->real, &wanted))
                pid = other->member.pid;
        }
    pthread_mutex_unlock(&table_lock);
    return pid;
}

/* What counts from where the program is in the file counts from its beginning then. Returns 0 or -errno. */
static long from_beginning(const struct file *file, struct flock *lock)
{
    if (lock->l_whence != SEEK_CUR)
        return 0;
    const off_t at = lseek(file->real, 0, SEEK_CUR);
    lock->l_whence = SEEK_SET;
    return at < 0 ? -errno : __builtin_add_overflow(lock->l_start, at, &lock->l_start) ? -EOVERFLOW : 0;
}

/* The lock as the kernel gets it, and by which open file. Returns that, or -errno. */
static int asked_of(struct session *s, struct file *file, int command, struct flock *lock)
{
    const int way = file->flags & O_ACCMODE;
    lock->l_pid = 0;
    if (command == F_OFD_GETLK || command == F_OFD_SETLK || command == F_OFD_SETLKW)
        return file->real;
    const int owner = owner_of(s, file);
    if (owner < 0 || owner == file->real)
        return owner;
    if (command != F_GETLK && ((lock->l_type == F_RDLCK && way == O_WRONLY) || (lock->l_type == F_WRLCK && way == O_RDONLY)))
        return -EBADF;
    const long refused = from_beginning(file, lock);
    return refused ? (int)refused : owner;
}

long serve_lock(struct work *w, struct file *file, int command)
{
    struct flock told, lock;
    size_t at = 0;
    const void *from = take_input(w, &at, LOCK_BYTES);
    const bool waits = command == F_SETLKW || command == F_OFD_SETLKW;
    const bool asks = command == F_GETLK || command == F_OFD_GETLK;
    if (!from)
        return -EFAULT;
    memcpy(&told, from, sizeof told);
    lock = told;
    const int real = asked_of(w->session, file, command, &lock);
    if (real < 0)
        return real;
    long result = result_of(fcntl(real, asks ? F_OFD_GETLK : F_OFD_SETLK, &lock));
    if (asks && result >= 0) {
        uint8_t *to = out_room(w, sizeof lock);
        if (!to)
            return -ENOMEM;
        if (lock.l_type == F_UNLCK)
            told.l_type = F_UNLCK, lock = told;
        else if (lock.l_pid == -1)
            lock.l_pid = member_with(w->session, real, &lock);
        memcpy(to, &lock, sizeof lock);
    }
    if (result == -EBADF && real != file->real) /* it could be opened for one of the two only */
        return -ENOLCK;
    if (waits && (result == -EAGAIN || result == -EACCES)) {
        w->retry_ns = now_ns() + RETRY_NS;
        return PARKED;
    }
    return result;
}

/* The session's locks in a file, again: by OF, one of its descriptors' files. Returns a descriptor, or -1: errno. */
int records_again(const struct file *of, const struct described_file *d, const uint8_t *content)
{
    const int real = of ? open_again(of) : (errno = EPROTO, -1);
    if (real >= 0 && (of->flags & O_ACCMODE) == O_RDONLY && excludes(d, content))
        errno = EACCES; /* natively it would be refused */
    else if (real < 0 || retake_locks(real, d, content))
        return real;
    else
        errno = EAGAIN;
    const int error = errno;
    close(real);
    errno = error;
    return -1;
}
