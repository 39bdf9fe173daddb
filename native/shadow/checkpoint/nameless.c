/* Files that have no name (deleted ones, memory files): they are saved with their content, and come back as memory
 * files.  The content is the size, and what the file has besides zeros, in pieces.
 */
#include "described.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 16 };

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

/* Opened once more: the program's descriptor may be for writing only, and its position is not to move. */
ssize_t nameless_content(const char *link, int64_t size, uint8_t *to, size_t room)
{
    int real = open(link, O_RDONLY | O_CLOEXEC);
    if (real < 0)
        return -errno;
    ssize_t used = sizeof size, got = 0;
    int64_t at = 0, end = 0;
    memcpy(to, &size, sizeof size);
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

int reopen_nameless(const struct described_file *d, const void *content)
{
    int real = memfd_create("restored", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (real < 0)
        return -1;
    bool whole = d->sparse ? write_pieces(real, content, d->content_size)
                           : write(real, content, d->content_size) == (ssize_t)d->content_size;
    bool unsealed = d->number && (d->number - 1) && fcntl(real, F_ADD_SEALS, (int)(d->number - 1)) < 0;
    if (!whole || unsealed || fchmod(real, d->mode & 07777) < 0 || lseek(real, d->offset, SEEK_SET) < 0) {
        close(real);
        return -1;
    }
    if (d->flags & O_APPEND)
        fcntl(real, F_SETFL, O_APPEND);
    return real;
}
