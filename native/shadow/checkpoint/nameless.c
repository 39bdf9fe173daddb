/* Files that have no name (deleted ones, memory files): they are saved with their content, and come back as memory
 * files; those that can be given a name (O_TMPFILE) come back in their directory.  The content is the size, and what the
 * file has besides zeros, in pieces.
 */
#include "described.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 16 };

/* Which file it was, since several may have been opened of it, and when. */
struct described_nameless {
    uint64_t device, inode;
    struct timespec times[2]; /* read, written */
};

/* Its bytes follow. */
struct described_piece {
    int64_t at, size;
};

/* Returns what it took of TO: nothing for zeros. */
static ssize_t read_piece(int real, int64_t at, int64_t size, uint8_t *to, size_t room)
{
    struct described_piece piece = {at, size};
    if (room < sizeof piece + (size_t)size)
        return -EFBIG;
    ssize_t got = pread(real, to + sizeof piece, (size_t)size, at);
    if (got != size)
        return got < 0 ? -errno : -EIO;
    memcpy(to, &piece, sizeof piece);
    to += sizeof piece;
    return to[0] || memcmp(to, to + 1, (size_t)size - 1) ? (ssize_t)(sizeof piece + (size_t)size) : 0;
}

/* Opens what LINK stands for, which the program has open: its mode may have been changed since then. */
int open_anyhow(const char *link, const struct stat *st, int flags)
{
    int real = open(link, flags);
    if (real >= 0 || errno != EACCES || st->st_uid != geteuid() || chmod(link, (st->st_mode & 07777) | 0600) < 0)
        return real;
    real = open(link, flags);
    const int why = errno;
    chmod(link, st->st_mode & 07777);
    errno = why;
    return real;
}

/* Opened once more: the program's descriptor may be for writing only, and its position is not to move. */
ssize_t nameless_content(const char *link, const struct stat *st, uint8_t *to, size_t room)
{
    int real = open_anyhow(link, st, O_RDONLY | O_CLOEXEC);
    if (real < 0)
        return -errno;
    const struct described_nameless which = {st->st_dev, st->st_ino, {st->st_atim, st->st_mtim}};
    const int64_t size = st->st_size;
    ssize_t used = sizeof which + sizeof size, got = 0;
    int64_t at = 0, end = 0;
    memcpy(to, &which, sizeof which);
    memcpy(to + sizeof which, &size, sizeof size);
    while (got >= 0 && (at < end || (at = lseek(real, at, SEEK_DATA)) >= 0)) {
        if (at >= end)
            end = lseek(real, at, SEEK_HOLE);
        int64_t next = end - at < PIECE ? end : at + PIECE;
        got = read_piece(real, at, next - at, to + used, room - (size_t)used);
        used += got;
        at = next;
    }
    close(real);
    return got < 0 ? got : used;
}

static bool write_pieces(int real, const uint8_t *from, size_t left)
{
    int64_t size;
    struct described_piece piece;
    if (left < sizeof size)
        return false;
    memcpy(&size, from, sizeof size);
    if (ftruncate(real, size) < 0)
        return false;
    for (from += sizeof size, left -= sizeof size; left; from += piece.size, left -= (size_t)piece.size) {
        if (left < sizeof piece)
            return false;
        memcpy(&piece, from, sizeof piece);
        from += sizeof piece;
        left -= sizeof piece;
        if (piece.at < 0 || piece.size < 0 || piece.at > size || (uint64_t)piece.size > left ||
            piece.size > size - piece.at || pwrite(real, from, (size_t)piece.size, piece.at) != piece.size)
            return false;
    }
    return true;
}

/* Whether it can be given a name; PATH is its directory then. */
static bool can_be_named(const struct described_file *d, const char *path)
{
    return path && (d->flags & (O_TMPFILE | O_EXCL)) == O_TMPFILE;
}

/* -1: not there, where the program may not be, or where there are no such files: then no name can be given to it. */
static int made_in(const struct session *s, const char *directory)
{
    const int pin = open_at(s, AT_FDCWD, directory, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    const int real = pin >= 0 && may_have(s, pin, true) ? openat(pin, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) : -1;
    if (pin >= 0)
        close(pin);
    return real;
}

static int made_again(const struct session *s, const struct described_file *d, const char *path, const uint8_t *content,
                      size_t size)
{
    int real = can_be_named(d, path) ? made_in(s, path) : -1;
    const bool in_memory = real < 0;
    if (in_memory)
        real = memfd_create("restored", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (real < 0)
        return -1;
    bool whole = d->sparse ? write_pieces(real, content, size) : write(real, content, size) == (ssize_t)size;
    if (whole && fchmod(real, d->mode & 07777) == 0 &&
        (d->number <= 1 || !in_memory || fcntl(real, F_ADD_SEALS, (int)(d->number - 1)) == 0))
        return real;
    close(real);
    return -1;
}

/* Opened as it was: a position and a right to write are each open file's own. */
static int opened_again(int held, const struct described_file *d)
{
    const int kept = O_ACCMODE | O_APPEND | O_PATH | O_NOATIME;
    char link[64];
    struct stat st;
    snprintf(link, sizeof link, "/proc/self/fd/%d", held);
    if (fstat(held, &st) < 0)
        return -1;
    int real = open_anyhow(link, &st, (d->flags & kept) | O_CLOEXEC | O_NONBLOCK);
    if (real < 0 || (d->flags & O_PATH) || lseek(real, d->offset, SEEK_SET) >= 0)
        return real;
    close(real);
    return -1;
}

int reopen_nameless(const struct session *s, struct unlinked *all, const struct described_file *d, const char *path,
                    const uint8_t *content)
{
    struct described_nameless which;
    if (d->sparse < 2) { /* an older image */
        int held = made_again(s, d, path, content, d->content_size), real = held < 0 ? -1 : opened_again(held, d);
        if (held >= 0)
            close(held);
        return real;
    }
    if (d->content_size < sizeof which)
        return errno = EPROTO, -1;
    memcpy(&which, content, sizeof which);
    int held = unlinked_find(all, which.device, which.inode);
    if (held < 0) {
        held = made_again(s, d, path, content + sizeof which, d->content_size - sizeof which);
        if (held < 0)
            return -1;
        futimens(held, which.times);
        if (!unlinked_hold(all, which.device, which.inode, held)) {
            close(held);
            return -1;
        }
    }
    return opened_again(held, d);
}
