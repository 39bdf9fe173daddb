/* Locks of a program's open files (flock, and those of fcntl, which belong to the open file here): what a checkpoint
 * says of them, and taking them again.  If another process has one meanwhile, it keeps it: the restart is refused.
 */
#include "described.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* Lines of /proc/self/fdinfo: "lock: 1: FLOCK ADVISORY WRITE 17 00:2d:33 0 EOF". */
ssize_t locks_content(int real, uint8_t *to, size_t room)
{
    char name[64], line[256], kind[16], way[16], end[32];
    long long begin;
    size_t used = 0;
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", real);
    FILE *info = fopen(name, "re");
    if (!info)
        return -errno;
    while (fgets(line, sizeof line, info)) {
        if (sscanf(line, "lock: %*s %15s %*s %15s %*s %*s %lld %31s", kind, way, &begin, end) != 4)
            continue;
        const struct described_lock one = {begin, strcmp(end, "EOF") ? atoll(end) : -1, strcmp(kind, "FLOCK") == 0,
                                           strcmp(way, "WRITE") == 0};
        if ((!one.is_flock && strcmp(kind, "OFDLCK")) || used + sizeof one > room)
            continue;
        memcpy(to + used, &one, sizeof one);
        used += sizeof one;
    }
    fclose(info);
    return (ssize_t)used;
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
