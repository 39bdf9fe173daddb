/* Use of input devices: that they are used is reported, never what was typed. */
#define _GNU_SOURCE
#include "root.h"

#include "../guards.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

/* Input devices are held open here: the daemon has nothing of them but an epoll instance that becomes ready. */
struct held {
    int device; /* + 1; 0: the place is free */
    char path[DEVICE_BYTES];
};

static struct held held[MAX_HELD] UNGUARDED("this program has one thread");

/* A path is allowed if it is one of the list's beginnings with a number behind it. */
static const struct device *allowed(const struct policy *policy, const char *path)
{
    for (size_t i = 0; i < policy->device_count; i++) {
        size_t own = strlen(policy->devices[i].start);
        if (strncmp(path, policy->devices[i].start, own) == 0 && path[own] && strlen(path) < DEVICE_BYTES &&
            strspn(path + own, "0123456789") == strlen(path + own))
            return &policy->devices[i];
    }
    return NULL;
}

static void let_go(struct held *place)
{
    close(place->device - 1);
    *place = (struct held){0};
}

/* A place for a device; whatever was held of the same name, or is pulled out by now, is let go of. */
static struct held *place_for(const char *path)
{
    struct held *found = NULL;
    for (size_t i = 0; i < MAX_HELD; i++) {
        struct pollfd gone = {.fd = held[i].device - 1};
        if (held[i].device && (strcmp(held[i].path, path) == 0 || (poll(&gone, 1, 0) > 0 && gone.revents)))
            let_go(&held[i]);
        if (!held[i].device && !found)
            found = &held[i];
    }
    return found;
}

static int hold(int instance, const char *path, const char **reason)
{
    struct held *place = place_for(path);
    *reason = "too many devices are watched";
    if (!place)
        return EMFILE;
    *reason = "";
    int device = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
    if (device < 0)
        return errno;
    struct epoll_event wanted = {.events = EPOLLIN | EPOLLET};
    if (epoll_ctl(instance, EPOLL_CTL_ADD, device, &wanted) < 0) {
        int error = errno;
        close(device);
        return error;
    }
    place->device = device + 1;
    memcpy(place->path, path, strlen(path) + 1);
    return 0;
}

int watch_device(const struct request *request, int64_t *number, const char **reason)
{
    const char *path = request->order.text;
    const struct device *device = allowed(request->policy, path);
    *reason = "not a device that may be watched";
    if (!device)
        return EPERM;
    *reason = "";
    int error = EPERM, instance = request->descriptors[0];
    if (!use_rights(true))
        return error;
    if (device->inputs)
        error = hold(instance, path, reason);
    else if ((*number = inotify_add_watch(instance, path, IN_ACCESS | IN_ONESHOT | IN_DONT_FOLLOW)) < 0)
        error = errno;
    else
        error = 0;
    return use_rights(false) ? error : EPERM;
}
