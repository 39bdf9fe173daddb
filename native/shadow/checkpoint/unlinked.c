/* Named pipes and deleted directories in a checkpoint.
 *
 * A named pipe has what lies in it as long as anybody has it open, which is over when its family has left; so a checkpoint
 * has that, and the first end that comes back puts it in again.  Until all are back, an end for both ways is held here, so
 * that a writer finds a reader whichever comes first.  What has no name any more is made anew, and its name is removed:
 * where it was, if nothing is there now, or beside the image.
 */
#include "described.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Content of such a file: which one it was, since several files may be of it, and what lies in a pipe. */
struct described_unlinked {
    uint64_t device, inode;
};

struct unlinked {
    struct {
        uint64_t device, inode;
        int held;
    } list[MAX_FILES];
    size_t count;
};

struct unlinked *unlinked_new(void)
{
    return calloc(1, sizeof(struct unlinked));
}

void unlinked_drop(struct unlinked *all)
{
    for (size_t i = 0; all && i < all->count; i++)
        close(all->list[i].held);
    free(all);
}

static int link_of(int real, char to[64])
{
    return snprintf(to, 64, "/proc/self/fd/%d", real);
}

bool is_gone(const struct stat *st)
{
    return st->st_nlink == 0 && (S_ISFIFO(st->st_mode) || S_ISDIR(st->st_mode));
}

ssize_t unlinked_content(int real, struct described_file *d, const struct stat *st, uint8_t *to, size_t room)
{
    const struct described_unlinked which = {st->st_dev, st->st_ino};
    int filled = 0, reader = real;
    char link[64];
    memcpy(to, &which, sizeof which);
    if (!S_ISFIFO(st->st_mode) || (d->flags & O_PATH))
        return sizeof which;
    if (ioctl(real, FIONREAD, &filled) < 0)
        return -errno;
    link_of(real, link);
    if (filled && (d->flags & O_ACCMODE) == O_WRONLY && (reader = open(link, O_RDONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
        return -errno;
    ssize_t size = end_content(reader, d, to + sizeof which, room - sizeof which);
    if (reader != real)
        close(reader);
    return size < 0 ? size : (ssize_t)sizeof which + size;
}

/* Makes what D is under NAME, opens it with FLAGS, and removes the name. */
static int made_and_removed(const struct described_file *d, const char *name, int flags)
{
    const bool directory = S_ISDIR(d->mode);
    if ((directory ? mkdir(name, 0700) : mkfifo(name, 0600)) < 0)
        return -1;
    int real = open(name, flags | O_NOFOLLOW | O_CLOEXEC);
    const int why = errno;
    if (real >= 0)
        fchmod(real, d->mode & 07777);
    if (directory)
        rmdir(name);
    else
        unlink(name);
    errno = why;
    return real;
}

static int held_flags(const struct described_file *d)
{
    return S_ISDIR(d->mode) ? O_RDONLY | O_DIRECTORY : O_RDWR | O_NONBLOCK | (d->flags & O_DIRECT);
}

/* WAS: where it had been, as the kernel tells it; NULL: nothing is to be made there. */
static int make_again(const struct session *s, const struct described_file *d, const char *was)
{
    static const char deleted[] = " (deleted)";
    static atomic_uint numbers ATOMIC;
    char name[PATH_LIMIT + 64];
    const size_t length = was ? strlen(was) : 0, tail = sizeof deleted - 1;
    int real = -1;
    if (length > tail && was[0] == '/' && strcmp(was + length - tail, deleted) == 0 && length < sizeof name) {
        snprintf(name, sizeof name, "%.*s", (int)(length - tail), was);
        real = made_and_removed(d, name, held_flags(d));
    }
    if (real >= 0 || !s->root->image)
        return real;
    if (snprintf(name, sizeof name, "%s.gone.%u", s->root->image, ++numbers) >= (int)sizeof name)
        return errno = ENAMETOOLONG, -1;
    return made_and_removed(d, name, held_flags(d));
}

/* What lay in a pipe lies there again, if nobody else has it open who may have had it meanwhile. */
static long put_back(int held, const struct described_file *d, const uint8_t *content, bool has_reader)
{
    struct described_file as_pipe = *d;
    int filled = 0;
    if (!S_ISFIFO(d->mode) || !d->offset || has_reader || ioctl(held, FIONREAD, &filled) < 0 || filled)
        return 0;
    as_pipe.kind = FILE_PIPE;
    return fill_pipe(held, &as_pipe, content);
}

int unlinked_find(const struct unlinked *all, uint64_t device, uint64_t inode)
{
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].device == device && all->list[i].inode == inode)
            return all->list[i].held;
    return -1;
}

bool unlinked_hold(struct unlinked *all, uint64_t device, uint64_t inode, int held)
{
    if (all->count == MAX_FILES)
        return errno = EMFILE, false;
    all->list[all->count].device = device;
    all->list[all->count].inode = inode;
    all->list[all->count++].held = held;
    return true;
}

/* Keeps both ways of the pipe PIN stands for, or makes what has no name. Returns a descriptor of the list's, or -1. */
static int held_again(const struct session *s, struct unlinked *all, const struct described_file *d, int pin, const char *was,
                      const uint8_t *content)
{
    struct described_unlinked which;
    struct described_file rest = *d;
    char link[64];
    if (d->content_size < sizeof which)
        return errno = EPROTO, -1;
    memcpy(&which, content, sizeof which);
    rest.content_size -= (uint32_t)sizeof which;
    int held = unlinked_find(all, which.device, which.inode), other = -1;
    if (held >= 0)
        return held;
    if (pin >= 0) {
        link_of(pin, link);
        other = open(link, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
        held = open(link, held_flags(d) | O_CLOEXEC);
    } else {
        held = make_again(s, d, was);
    }
    long failed = held < 0 ? 0 : put_back(held, &rest, content + sizeof which, other >= 0);
    if (other >= 0)
        close(other);
    if (failed)
        errno = (int)-failed;
    if (held >= 0 && (failed || !unlinked_hold(all, which.device, which.inode, held))) {
        close(held);
        return -1;
    }
    return held;
}

bool pipe_held_again(const struct session *s, struct unlinked *all, const struct described_file *d, int pin,
                     const uint8_t *content)
{
    struct stat st;
    if (fstat(pin, &st) < 0 || !S_ISFIFO(st.st_mode))
        return errno = ESTALE, false;
    if (!d->content_size) /* an older image */
        return true;
    return held_again(s, all, d, pin, NULL, content) >= 0 || errno == EACCES; /* then it can hold nothing of the program's */
}

int reopen_gone(const struct session *s, struct unlinked *all, const struct described_file *d, const char *was,
                    const uint8_t *content)
{
    char link[64];
    int held = held_again(s, all, d, -1, s->root->job_root ? NULL : was, content);
    if (held < 0)
        return -1;
    link_of(held, link);
    const int kept = d->flags & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW);
    return open(link, kept | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}
