/* The beginning of a family's checkpoint: until all are parked.
 *
 * The first process asks; it is told whom to signal, and each member says when it is parked.
 *
 * Who is stopped cannot park.  When nobody else is awaited, the first process is told to look at those, parents before
 * their children, and to let the stopped ones go on, parked; it looks at all once more when all are parked, since one may
 * have been stopped after that.  Before the family goes on, here or elsewhere, they stop again.
 */
#include "gathering.h"

#include <stdlib.h>
#include <string.h>

#define GATHER_NS 5000000000ll
#define LATE_NS 40000000ll /* who has not parked by then may be stopped */

/* Whether some have not been told yet what became of the last checkpoint. */
static bool some_wait(struct session *root)
{
    bool found = false;
    pthread_mutex_lock(&table_lock);
    for EACH_MEMBER (s, root)
        found |= s->waits_parked;
    pthread_mutex_unlock(&table_lock);
    return found;
}

static long begin_gathering(struct work *w)
{
    struct session *root = w->session;
    const bool has_children = ARGUMENT(1);
    if (!root->image || root->image_fd >= 0)
        return -EBUSY;
    if (root->members == 1 && !has_children)
        return GATHER_ALONE;
    struct gathering *g = calloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    g->until_ns = now_ns() + GATHER_NS;
    g->looks = ARGUMENT(2) == 1;
    pthread_mutex_lock(&table_lock);
    struct gathering *old = root->gathering;
    root->gathering = g;
    for EACH_MEMBER (s, root)
        s->stage = MEMBER_RUNS, s->stopped &= !s->told_stopped;
    root->stage = MEMBER_PARKED;
    pthread_mutex_unlock(&table_lock);
    free(old);
    return 0;
}

/* Those that are to be signalled, and whether any other is not parked yet. */
static uint32_t unparked(struct session *root, int32_t *pids, struct session **late) REQUIRES(table_lock);
static uint32_t unparked(struct session *root, int32_t *pids, struct session **late)
{
    uint32_t count = 0;
    *late = NULL;
    for EACH_MEMBER (s, root) {
        if (s->stage >= MEMBER_PARKED)
            continue;
        *late = s;
        if (s->stage == MEMBER_RUNS && s->greeted && count < MOST_GATHERED) {
            s->stage = MEMBER_SIGNALLED;
            s->looked_ns = now_ns();
            pids[count++] = s->real_pid;
        }
    }
    return count;
}

/* Its parent would take the news of it as its own, were it not parked. */
static bool parent_is_late(struct session *root, const struct session *s) REQUIRES(table_lock);
static bool parent_is_late(struct session *root, const struct session *s)
{
    for EACH_MEMBER (other, root)
        if (other->member.pid == s->member.parent && other->stage < MEMBER_PARKED)
            return true;
    return false;
}

/* Those that are to be looked at: who has not parked for a while; once, when all have, everybody. */
static uint32_t perhaps_stopped(struct gathering *g, struct session *root, int32_t *pids, bool all) REQUIRES(table_lock);
static uint32_t perhaps_stopped(struct gathering *g, struct session *root, int32_t *pids, bool all)
{
    uint32_t count = 0;
    if (!g->looks || (all && g->looked))
        return 0;
    g->looked = all;
    for EACH_MEMBER (s, root) {
        const bool late = s->stage == MEMBER_SIGNALLED && now_ns() - s->looked_ns >= LATE_NS && !parent_is_late(root, s);
        if (s == root || !(all || late) || count == MOST_GATHERED)
            continue;
        s->looked_ns = now_ns();
        pids[count++] = -s->real_pid;
    }
    return count;
}

/* The first process has found these stopped. */
static void note_stopped(struct work *w) REQUIRES(table_lock);
static void note_stopped(struct work *w)
{
    for (size_t at = 0; at + sizeof(int32_t) <= w->head.size; at += sizeof(int32_t)) {
        int32_t pid;
        memcpy(&pid, w->payload + at, sizeof pid);
        for EACH_MEMBER (s, w->session)
            if (s != w->session && s->real_pid == pid)
                s->stopped = true, s->told_stopped = false;
    }
}

static long gather_more(struct work *w)
{
    struct session *root = w->session, *late = NULL;
    int32_t pids[MOST_GATHERED];
    char why[128] = "";
    pthread_mutex_lock(&table_lock);
    struct gathering *g = root->gathering;
    if (g && !w->again)
        note_stopped(w);
    uint32_t count = g ? unparked(root, pids, &late) : 0;
    bool over = g && now_ns() >= g->until_ns;
    if (g && !count && !(late && over))
        count = perhaps_stopped(g, root, pids, !late);
    int64_t until_ns = g ? g->until_ns : 0;
    if (g && !count && late && over)
        snprintf(why, sizeof why, "process %d of the program does not stop: it is in a long call, or stopped",
                 late->virtual_pid);
    if (g && !count && !late) {
        g->parked = true;
        ring_all(root);
    }
    pthread_mutex_unlock(&table_lock);
    if (!g)
        return -EPROTO;
    if (why[0]) {
        tell(root, SHADOW_NO_IMAGE, EAGAIN, root->members - 1, why);
        family_release(root, -EAGAIN);
        return -EAGAIN;
    }
    if (!count)
        return late ? family_wait(w, until_ns) : 0;
    uint8_t *to = out_room(w, count * sizeof *pids);
    if (!to)
        return -ENOMEM;
    memcpy(to, pids, count * sizeof *pids);
    return count;
}

long serve_gather(struct work *w)
{
    struct session *s = w->session;
    if (s->root != s)
        return -EPROTO;
    if (ARGUMENT(0) == GATHER_OVER) {
        family_release(s, ARGUMENT(1) <= 0 && ARGUMENT(1) > -4096 ? (long)ARGUMENT(1) : -EIO);
        return 0;
    }
    if (ARGUMENT(0) == GATHER_FIRST && !w->progress) {
        if (some_wait(s))
            return family_wait(w, -1);
        long begun = begin_gathering(w);
        if (begun)
            return begun;
        w->progress = 1;
    }
    return gather_more(w);
}

/* Tells who was stopped. The result is their number, and OVER. */
static long tell_stopped(struct work *w, long over) REQUIRES(table_lock);
static long tell_stopped(struct work *w, long over)
{
    int32_t pids[MOST_GATHERED];
    long count = 0;
    for EACH_MEMBER (s, w->session->root)
        if (s->stopped && count < MOST_GATHERED)
            pids[count++] = s->real_pid;
    uint8_t *to = count ? out_room(w, (size_t)count * sizeof *pids) : NULL;
    if (to)
        memcpy(to, pids, (size_t)count * sizeof *pids);
    return count && !to ? -ENOMEM : count | over;
}

long serve_parked(struct work *w)
{
    struct session *s = w->session, *root = s->root;
    pthread_mutex_lock(&table_lock);
    struct gathering *g = root->gathering;
    bool welcome = g && s != root && (w->again || s->stage <= MEMBER_SIGNALLED), was_welcome = s->waits_parked;
    if (welcome && !w->again) {
        s->stage = MEMBER_PARKED;
        ring(root);
    }
    bool all = welcome && g->parked;
    int64_t until_ns = welcome ? g->until_ns : 0;
    const bool late = !welcome && !was_welcome && !(s->stopped && !s->told_stopped);
    long result = late ? -EAGAIN : tell_stopped(w, welcome ? 0 : PARKED_OVER);
    s->waits_parked = welcome && !all;
    s->told_stopped |= !s->waits_parked;
    if (was_welcome && !s->waits_parked)
        ring(root);
    pthread_mutex_unlock(&table_lock);
    if (!all && welcome) {
        w->out_used = 0;
        return family_wait(w, until_ns);
    }
    if (ARGUMENT(0) == 1)
        return result;
    w->out_used = 0;
    return all ? 0 : -EAGAIN;
}
