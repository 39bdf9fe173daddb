/* Receiving a checkpoint. */
#include "serve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A checkpoint is written to a new file beside the old one and takes its place when it is complete. */
long serve_image_begin(struct work *w)
{
    struct session *s = w->session;
    if (s->root->members > 1) {
        tell(s, SHADOW_NO_IMAGE, EAGAIN, s->root->members - 1, "the program waits for its helpers");
        return -EAGAIN;
    }
    if (!s->image || s->image_fd >= 0)
        return -EBUSY;
    free(s->image_temporary);
    if (asprintf(&s->image_temporary, "%s.new", s->image) < 0)
        return -ENOMEM;
    unlink(s->image_temporary);
    s->image_fd = open(s->image_temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (s->image_fd < 0) {
        tell(s, SHADOW_NO_IMAGE, errno, 0, s->image_temporary);
        return -errno;
    }
    s->image_began_ns = now_ns();
    w->gift = fcntl(s->image_fd, F_DUPFD_CLOEXEC, 3);
    return 0;
}

long serve_image_end(struct work *w)
{
    struct session *s = w->session;
    struct stat st = {0};
    if (s->image_fd < 0)
        return -EBADF;
    long result = 0;
    if (ARGUMENT(0)) {
        if (fstat(s->image_fd, &st) < 0 || st.st_size != ARGUMENT(1) || fsync(s->image_fd) < 0 ||
            close(s->image_fd) < 0 || rename(s->image_temporary, s->image) < 0)
            result = errno ? -errno : -EIO;
    } else {
        close(s->image_fd);
        result = ARGUMENT(1) ? -ARGUMENT(1) : -EIO;
    }
    s->image_fd = -1;
    if (result) {
        unlink(s->image_temporary);
        tell(s, SHADOW_NO_IMAGE, -result, 0, "the image could not be completed");
    } else {
        s->statistics.checkpoints++;
        long failed = journal_reset(s, s->generation);
        if (failed)
            tell(s, SHADOW_NO_IMAGE, -failed, 0, "the image is good, but files will not roll back to it");
        tell(s, SHADOW_IMAGE, st.st_size, now_ns() - s->image_began_ns, s->image);
        result = s->vacates;
    }
    return result;
}
