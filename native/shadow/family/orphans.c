/* Members that may have become the children of others: their parent has ended, or has told the kernel that they are another's
 * child.  Which process that is, the kernel knows where the family runs; here is who is to be asked for. */
#include "shadow/serve.h"

#include <string.h>

enum { MOST_AT_ONCE = 64, BIRTH_NS = 1000000000 };

static bool lives(struct session *root, int pid) REQUIRES(table_lock);
static bool lives(struct session *root, int pid)
{
    for (struct session *s = root; s; s = s->next_member)
        if (s->greeted && s->member.pid == pid)
            return true;
    return false;
}

/* WHO, if it is one of those that S may have got, goes into LIST unless it is one of the first *SKIP of them. */
static void note_orphan(struct session *s, const struct membership *who, struct orphan *list, long *count, int64_t *skip)
    REQUIRES(table_lock);
static void note_orphan(struct session *s, const struct membership *who, struct orphan *list, long *count, int64_t *skip)
{
    const bool meant = who->real_pid && who->pid != s->member.pid && (!lives(s->root, who->parent) || who->parent == s->member.pid);
    if (!meant || *count == MOST_AT_ONCE || (*skip)-- > 0)
        return;
    list[(*count)++] = (struct orphan){who->pid, who->real_pid};
}

/* Whether a child of S that another has started for it has not said where it runs: it is about to. */
static bool one_is_born(struct session *asks) REQUIRES(table_lock);
static bool one_is_born(struct session *asks)
{
    for (struct session *s = asks->root; s; s = s->next_member)
        if (!s->greeted && s->sibling && s->member.parent == asks->member.pid)
            return true;
    return false;
}

long serve_orphans(struct work *w)
{
    struct session *asks = w->session, *root = asks->root;
    struct orphan list[MOST_AT_ONCE];
    int64_t skip = ARGUMENT(0);
    long count = 0;
    if (skip < 0 || ARGUMENT(1) != MOST_AT_ONCE)
        return -EINVAL;
    if (!w->again)
        w->until_ns = now_ns() + BIRTH_NS;
    pthread_mutex_lock(&table_lock);
    if (one_is_born(asks) && now_ns() < w->until_ns) {
        pthread_mutex_unlock(&table_lock);
        return family_wait(w, w->until_ns);
    }
    for (struct session *s = root; s; s = s->next_member)
        if (s->greeted)
            note_orphan(asks, &s->member, list, &count, &skip);
    const uint32_t kept = root->ended_count < MOST_ENDED ? root->ended_count : MOST_ENDED;
    for (uint32_t i = 1; i <= kept; i++)
        note_orphan(asks, &root->ended[(root->ended_count - i) % MOST_ENDED], list, &count, &skip);
    pthread_mutex_unlock(&table_lock);
    uint8_t *to = count ? out_room(w, (size_t)count * sizeof *list) : NULL;
    if (!to)
        return count ? -ENOMEM : 0;
    memcpy(to, list, (size_t)count * sizeof *list);
    return count;
}
