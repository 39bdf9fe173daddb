/* Locks that open files have (flock, F_OFD_SETLK, and for a process records.c): what a checkpoint says of them, and taking
 * them again.  If another process has one meanwhile, it keeps it: the restart is refused.
 */
#include "shadow/checkpoint/described.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Lines of /proc/self/fdinfo: "lock: 1: FLOCK ADVISORY WRITE 17 00:2d:33 0 EOF". */
static bool read_lock(const char *line, struct described_lock *lock)
{
    char kind[16], way[16], end[32];
    long long begin;
    if (sscanf(line, "lock: %*s %15s %*s %15s %*s %*s %lld %31s", kind, way, &begin, end) != 4)
        return false;
    *lock = (struct described_lock){begin, strcmp(end, "EOF") ? atoll(end) : -1, strcmp(kind, "FLOCK") == 0,
                                    strcmp(way, "WRITE") == 0};
    return lock->is_flock || strcmp(kind, "OFDLCK") == 0;
}

static FILE *locks_of(int real)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", real);
    return fopen(name, "re");
}

ssize_t locks_content(int real, uint8_t *to, size_t room)
{
    char line[256];
    size_t used = 0;
    FILE *info = locks_of(real);
    if (!info)
        return -errno;
    for (struct described_lock one; fgets(line, sizeof line, info);)
        if (read_lock(line, &one) && used + sizeof one <= room) {
            memcpy(to + used, &one, sizeof one);
            used += sizeof one;
        }
    fclose(info);
    return (ssize_t)used;
}

bool has_lock(int real, const struct described_lock *lock)
{
    char line[256];
    bool found = false;
    FILE *info = locks_of(real);
    for (struct described_lock one; info && !found && fgets(line, sizeof line, info);)
        found = read_lock(line, &one) && one.begin == lock->begin && one.end == lock->end &&
                one.is_flock == lock->is_flock && one.is_exclusive == lock->is_exclusive;
    if (info)
        fclose(info);
    return found;
}

/* Whether one of them is no flock. */
bool has_records(const struct described_file *d, const uint8_t *content)
{
    bool found = false;
    struct described_lock one;
    for (size_t at = 0; at + sizeof one <= d->content_size && !found; at += sizeof one) {
        memcpy(&one, content + at, sizeof one);
        found = !one.is_flock;
    }
    return found;
}

bool excludes(const struct described_file *d, const uint8_t *content)
{
    bool found = false;
    struct described_lock one;
    for (size_t at = 0; at + sizeof one <= d->content_size && !found; at += sizeof one) {
        memcpy(&one, content + at, sizeof one);
        found = one.is_exclusive;
    }
    return found;
}

bool retake_locks(int real, const struct described_file *d, const uint8_t *content)
{
    for (size_t at = 0; at + sizeof(struct described_lock) <= d->content_size; at += sizeof(struct described_lock)) {
        struct described_lock one;
        memcpy(&one, content + at, sizeof one);
        struct flock lock = {.l_type = one.is_exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_start = one.begin,
                             .l_len = one.end < one.begin ? 0 : one.end - one.begin + 1};
        int failed = one.is_flock ? flock(real, (one.is_exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB)
                                  : fcntl(real, F_OFD_SETLK, &lock);
        if (failed < 0)
            return false;
    }
    return true;
}
