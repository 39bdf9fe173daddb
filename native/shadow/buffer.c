/* A session's two buffers, and giving memory back while its program computes.
 *
 * A host serves many programs, most of which say nothing most of the time.  A session that has heard nothing for
 * a while keeps neither buffers nor the stack it used. */
#include "session.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { IDLE_S = 2, PAGE = 4096, STACK_KEPT = 2 * PAGE };

/* Makes *AT hold SIZE bytes at least; what it has stays. 0: gives it back. */
bool buffer_size(uint8_t **at, size_t *room, size_t size)
{
    size_t pages = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (pages == *room)
        return true;
    if (pages == 0) {
        munmap(*at, *room);
        *at = NULL;
    } else {
        void *fresh = *room ? mremap(*at, *room, pages, MREMAP_MAYMOVE)
                            : mmap(NULL, pages, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED)
            return false;
        *at = fresh;
    }
    *room = pages;
    return true;
}

/* A session is large and mostly empty: pages that are never touched cost nothing. */
struct session *session_new(void)
{
    struct session *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    s->most_files = MAX_FILES;
    s->bell = s->ready_set = -1;
    s->began = ticks_since_boot();
    pthread_mutex_init(&s->positions_lock, NULL);
    pthread_mutex_init(&s->entering_lock, NULL);
    return s;
}

void session_free(struct session *s)
{
    if (s->bell >= 0)
        close(s->bell);
    if (s->ready_set >= 0)
        close(s->ready_set);
    memory_leave(s);
    free(s->program);
    munmap(s, sizeof *s);
}

/* How long the channel may be silent before receiving says EAGAIN. 0: without limit. */
static void set_patience(struct session *s, int seconds)
{
    struct timeval limit = {seconds, 0};
    setsockopt(s->channel, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

void idle_expect(struct session *s)
{
    s->asleep = false;
    set_patience(s, IDLE_S);
}

/* Nothing has come for a while. The buffers must be empty. */
void idle_sleep(struct session *s)
{
    pthread_attr_t attributes;
    void *stack;
    size_t size;
    if (s->in_used == 0)
        buffer_size(&s->in, &s->in_room, 0);
    buffer_size(&s->out, &s->out_room, 0);
    if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
        uintptr_t here = (uintptr_t)&attributes & ~(uintptr_t)(PAGE - 1);
        if (pthread_attr_getstack(&attributes, &stack, &size) == 0 && here - STACK_KEPT > (uintptr_t)stack)
            madvise(stack, here - STACK_KEPT - (uintptr_t)stack, MADV_DONTNEED);
        pthread_attr_destroy(&attributes);
    }
    s->asleep = true;
    set_patience(s, 0);
}
