/* What a program watches: an inotify instance of the kernel's here at home, in an epoll set of its own, together with a
 * counter that is above zero while events were taken out of the kernel's queue (for a checkpoint) and wait here.  So who
 * waits for the descriptor hears of either.
 *
 * A watch has a number of the program's, as the kernel would give them, and the kernel's own, which is another one after
 * a move.
 */
#ifndef CONDOR_INOTIFY_H
#define CONDOR_INOTIFY_H

#include "shadow/checkpoint/described.h"

#include <sys/inotify.h>

enum {
    MOST_INOTIFIES = 64,         /* of a family; natively 128 of a user */
    MOST_WATCHES = 16384,        /* of a family */
    MOST_KEPT = 1 << 20,         /* bytes of events that wait here, and one that others were lost */
    EVENT_BYTES = sizeof(struct inotify_event),
    NO_NUMBER = -1,
};

struct watch {
    int number, real;
    dev_t device;
    ino_t inode;
    char *name;        /* where it was when the watch was added */
};

struct inotify {
    pthread_mutex_t lock; /* members of a family share open files */
    struct session *root;
    int real, bell;
    int next;             /* number */
    struct watch *watches; /* in the order of their numbers, which is that of the kernel's, too */
    size_t count, room;
    uint8_t *kept;        /* whole events, with the program's numbers */
    size_t kept_size;
};

/* inotify.c */
struct inotify *inotify_begin(struct session *s, int *set); /* NULL: errno; SET: what stands for it */
void inotify_end(struct inotify *in);
long inotify_read(struct work *w, struct file *file, size_t size);
long inotify_waiting_bytes(struct inotify *in);
int watched_at(const struct session *s, const char *path, int flags);      /* -errno: it may not be watched */
long watch_enter(struct inotify *in, int pin, uint32_t mask, int number);  /* number, or NO_NUMBER: the next one */
void watch_forget(struct inotify *in, size_t place);
bool inotify_keep(struct inotify *in, const void *events, size_t size);    /* false: no memory, or more than can be */
bool inotify_take(struct inotify *in, uint32_t but_of_directories);       /* of the kernel's queue; false: not all of it */

/* moved_inotify.c */
ssize_t inotify_described(struct session *s, struct inotify *in, uint8_t *to, size_t room, const char **lost,
                          int (*number)(void *list, dev_t device, ino_t inode), void *list);
long inotify_filled(struct session *s, struct inotify *in, const struct described_file *d, const uint8_t *content,
                    struct file **files, uint32_t count);

#endif
