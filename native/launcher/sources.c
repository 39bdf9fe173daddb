/* What a job's view of the machine is made of: folders and files that are opened once and used as they were opened.
 *
 * Some of the paths have been looked at before: nothing of the pool's was to be in that folder, say.  Between that look
 * and the launch a link may have been put in its place, or another folder.  Such a path is opened without following
 * any link, and is the one that was looked at, which the starter has kept open, or the launch ends.  That descriptor
 * itself is of no use here: it belongs to the machine's mounts, and the kernel mounts nothing from there in ours.
 */
#define _GNU_SOURCE
#include "launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CALL_OPENAT2 = 437 };

static int below(int folder, const char *name, int flags)
{
    return (int)syscall(SYS_openat, folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC | flags, 0);
}

/* For kernels before 5.6, and filters that do not know openat2: one name after the other.  With O_PATH a link at the end
 * is opened itself, so it is looked for. */
static int step_by_step(const char *path, int flags)
{
    char name[256];
    int here = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat facts;
    while (here >= 0 && *path) {
        size_t size = 0;
        for (; *path == '/'; path++)
            continue;
        for (; path[size] && path[size] != '/'; size++)
            continue;
        if (!size)
            break;
        if (size >= sizeof name) {
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(name, path, size);
        name[size] = 0;
        path += size;
        int next = below(here, name, *path ? O_DIRECTORY : flags);
        close(here);
        here = next;
    }
    if (here >= 0 && syscall(SYS_fstat, here, &facts) == 0 && S_ISLNK(facts.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    return here;
}

static int without_links(const char *path, int flags)
{
    const struct open_how how = {.flags = (unsigned)(O_PATH | O_CLOEXEC | flags),
                                 .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    int opened = (int)syscall(CALL_OPENAT2, AT_FDCWD, path, &how, sizeof how);
    if (opened >= 0 || (errno != ENOSYS && errno != EPERM))
        return opened;
    return step_by_step(path, flags);
}

static const struct checked *checked(const struct plan *plan, const char *path)
{
    for (size_t i = 0; i < plan->checked_count; i++)
        if (strcmp(plan->checked[i].path, path) == 0)
            return &plan->checked[i];
    return NULL;
}

bool is_checked(const struct plan *plan, const char *path)
{
    return checked(plan, path) != NULL;
}

int open_source(const struct plan *plan, const char *stage, const char *path, int flags)
{
    const struct checked *known = checked(plan, path);
    struct stat found, looked_at;
    int opened = known ? without_links(path, flags) : open(path, O_PATH | O_CLOEXEC | flags);
    if (opened < 0)
        fail(known && (known->fd >= 0 || errno == ELOOP) ? "changed" : stage, errno, path);
    if (!known || known->fd < 0)
        return opened;
    if (syscall(SYS_fstat, opened, &found) < 0 || syscall(SYS_fstat, known->fd, &looked_at) < 0)
        fail("changed", errno, path);
    if (found.st_dev != looked_at.st_dev || found.st_ino != looked_at.st_ino)
        fail("changed", ESTALE, path);
    return opened;
}

int open_below(int folder, const char *name)
{
    int opened = below(folder, name, O_DIRECTORY);
    if (opened < 0)
        fail("container", errno, name);
    return opened;
}
