/* What sessions have to tell, in one queue for the host. */
#include "session.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { MOST_UNTOLD = 4096 }; /* events of one session that wait: a runtime that makes more is not one of ours */

struct queued {
    struct shadow_event event;
    struct session *root; /* there until its SHADOW_ENDED is taken, which comes last */
    struct queued *next;
};
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static struct queued *queue_first GUARDED_BY(queue_lock);
static struct queued **queue_last GUARDED_BY(queue_lock) = &queue_first;
static int queue_fd GUARDED_BY(queue_lock) = -1;

int shadow_event_descriptor(void)
{
    pthread_mutex_lock(&queue_lock);
    if (queue_fd < 0)
        queue_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int fd = queue_fd;
    pthread_mutex_unlock(&queue_lock);
    return fd;
}

void tell(struct session *s, int kind, int64_t value, int64_t detail, const char *text)
{
    bool of_members = kind == SHADOW_MEMBER || kind == SHADOW_MEMBER_STRAIGHT || kind == SHADOW_WANTS_SPARE;
    if (s->root != s && kind != SHADOW_BROKEN && !of_members)
        return; /* helpers come and go in silence */
    struct queued *fresh = NULL;
    if (s->root->untold < MOST_UNTOLD || kind == SHADOW_ENDED)
        fresh = calloc(1, sizeof *fresh);
    else
        s->over = true;
    if (!fresh && kind == SHADOW_MEMBER)
        close((int)value); /* no one will take it */
    if (!fresh)
        return;
    s->root->untold++;
    fresh->root = s->root;
    fresh->event.session = s->root->id;
    fresh->event.kind = kind;
    fresh->event.value = value;
    fresh->event.detail = detail;
    snprintf(fresh->event.text, sizeof fresh->event.text, "%s", text ? text : "");
    int fd = shadow_event_descriptor();
    pthread_mutex_lock(&queue_lock);
    *queue_last = fresh;
    queue_last = &fresh->next;
    pthread_mutex_unlock(&queue_lock);
    uint64_t one = 1;
    if (write(fd, &one, sizeof one) < 0) /* full means that it is readable already */
        return;
}

int shadow_next_event(struct shadow_event *event)
{
    uint64_t count;
    pthread_mutex_lock(&queue_lock);
    struct queued *first = queue_first;
    if (first) {
        queue_first = first->next;
        if (!queue_first)
            queue_last = &queue_first;
    }
    if (!queue_first && queue_fd >= 0 && read(queue_fd, &count, sizeof count) < 0)
        count = 0;
    pthread_mutex_unlock(&queue_lock);
    if (!first)
        return 0;
    *event = first->event;
    first->root->untold--;
    free(first);
    if (event->kind == SHADOW_ENDED)
        bury_session(event->session);
    return 1;
}
