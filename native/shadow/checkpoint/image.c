/* Receiving a checkpoint. */
#include "shadow/serve.h"

#include "image_digest.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Only what changed since the whole image, as long as that is much less. */
static bool increment_is_better(const struct session *s, int64_t generation)
{
    return s->task.increments && generation && (uint64_t)generation == s->base_generation &&
           s->base_bytes >= s->task.increments && s->increment_bytes * 2 < s->base_bytes;
}

static bool name_image(struct session *s, bool increment)
{
    free(s->image_temporary);
    free(s->image_final);
    s->image_temporary = s->image_final = NULL;
    s->image_is_increment = increment;
    return asprintf(&s->image_final, increment ? "%s.delta" : "%s", s->image) >= 0 && s->image_final &&
           asprintf(&s->image_temporary, "%s.new", s->image_final) >= 0 && s->image_temporary;
}

/* A checkpoint is written to a new file beside the old one and takes its place when it is complete. */
long serve_image_begin(struct work *w)
{
    struct session *s = w->session;
    bool family = !family_may_grow(s->root); /* a checkpoint of all is being taken */
    if (!s->image || s->image_fd >= 0 || (s->root->members > 1 && !family))
        return -EBUSY;
    if (!name_image(s, !family && increment_is_better(s, ARGUMENT(0))))
        return -ENOMEM;
    unlink(s->image_temporary);
    s->image_fd = open(s->image_temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (s->image_fd < 0) {
        tell(s, SHADOW_NO_IMAGE, errno, 0, s->image_temporary);
        return -errno;
    }
    s->image_began_ns = now_ns();
    w->passed_fd = fcntl(s->image_fd, F_DUPFD_CLOEXEC, 3);
    return s->image_is_increment;
}

static long complete(struct session *s, const struct stat *st)
{
    bool last = s->vacates; /* who hears of this image and then wants the next to be the last gets a next one */
    if (s->image_is_increment) {
        s->increment_bytes = st->st_blocks * 512;
    } else {
        char *old;
        s->base_generation = s->generation;
        s->base_bytes = st->st_blocks * 512;
        s->increment_bytes = 0;
        if (asprintf(&old, "%s.delta", s->image) >= 0) {
            unlink(old); /* of another generation: it would not be taken for this one's */
            free(old);
        }
    }
    s->statistics.checkpoints++;
    long failed = journal_reset(s, s->generation);
    if (failed)
        tell(s, SHADOW_NO_IMAGE, -failed, 0, "the image is good, but files will not roll back to it");
    tell(s, s->image_is_increment ? SHADOW_INCREMENT : SHADOW_IMAGE, st->st_size, now_ns() - s->image_began_ns,
         s->image_final);
    return last;
}

long serve_image_end(struct work *w)
{
    struct session *s = w->session;
    struct stat st = {0};
    if (s->image_fd < 0)
        return -EBADF;
    long result = 0;
    if (ARGUMENT(0)) {
        errno = 0;
        if (fstat(s->image_fd, &st) < 0 || st.st_size != ARGUMENT(1) || fsync(s->image_fd) < 0)
            result = errno ? -errno : -EIO;
    } else {
        result = ARGUMENT(1) > 0 && ARGUMENT(1) < 4096 ? -ARGUMENT(1) : -EIO; /* errno of the one who gave up */
    }
    if (close(s->image_fd) < 0 && !result)
        result = -errno;
    s->image_fd = -1;
    if (!result && rename(s->image_temporary, s->image_final) < 0)
        result = -errno;
    if (!result) {
        if (family_may_grow(s))
            s->processes = 1;
        result = complete(s, &st);
        family_release(s, result);
        return result;
    }
    unlink(s->image_temporary);
    tell(s, SHADOW_NO_IMAGE, -result, 0, "the image could not be completed");
    return result;
}

/* The last piece of the COUNT at MOVED, in the order of FROM, that begins at or before AT; NULL: none. */
static const struct shadow_moved *piece_at(const struct shadow_moved *moved, size_t count, int64_t at)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (moved[middle].from <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &moved[low - 1] : NULL;
}

int shadow_digest_image(int file, const struct shadow_moved *moved, size_t count, struct shadow_digest *found)
{
    enum { ROOM = 1 << 20 };
    uint8_t *room = NULL;
    uint64_t seal[2];
    off_t at = 0, end;
    ssize_t got;
    *found = (struct shadow_digest){0};
    if (posix_memalign((void **)&room, DIGEST_PAGE, ROOM))
        return -ENOMEM;
    if (pread(file, seal, sizeof seal, DIGEST_AT) != sizeof seal || seal[0] != DIGEST_MAGIC) {
        free(room);
        return -ENODATA;
    }
    found->stored = seal[1];
    for (; (at = lseek(file, at, SEEK_DATA)) >= 0; at = end) {
        at -= at % DIGEST_PAGE;
        end = lseek(file, at, SEEK_HOLE);
        while (at < end && (got = pread(file, room, ROOM, at)) > 0) {
            memset(room + got, 0, (size_t)(-got & (DIGEST_PAGE - 1)));
            if (at <= DIGEST_AT && at + got > DIGEST_AT)
                memset(room + DIGEST_AT - at, 0, DIGEST_BYTES);
            for (ssize_t page = 0; page < got && at + page < end; page += DIGEST_PAGE) {
                const uint64_t *words = (uint64_t *)(void *)(room + page);
                if (digest_is_zero(words))
                    continue;
                const struct shadow_moved *piece = piece_at(moved, count, at + page);
                found->computed += digest_page(words, (uint64_t)(at + page));
                if (piece && at + page < piece->from + piece->size)
                    found->moved += digest_page(words, (uint64_t)(at + page - piece->from + piece->to));
            }
            at += got;
        }
        if (at < end) {
            errno = EIO;
            break;
        }
    }
    int failed = errno == ENXIO ? 0 : -errno; /* no more data is the end we want */
    free(room);
    return failed;
}
