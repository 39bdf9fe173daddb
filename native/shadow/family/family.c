/* One checkpoint of all processes of a program.
 *
 * The first process asks for it: it is told whom to signal, until every member's threads are parked (gather).  Nobody
 * is born meanwhile: a fork is put off.  Each member then tells what memory it shares, how long its part of the image
 * is and who its children are, is told where its part begins, and writes it.  The first process writes last: the
 * table of members, and the header that makes the file an image.  All wait here for the end of it.
 *
 *     RUNS ─ told whom to signal ▶ SIGNALLED ─ OP_PARKED ▶ PARKED ─ OP_PART ▶ SIZED ─ OP_PART_WRITTEN ▶ WRITTEN
 *
 * One that ends on the way from PARKED on, or says that it has failed, makes it a failure for all; the image of before
 * stays.  At a restart the members come back one after the other, each from its own part, and go on together.
 */
#include "shadow/serve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define GATHER_NS 5000000000ll
#define LOOK_NS 20000000ll

enum { MEMBER_RUNS, MEMBER_SIGNALLED, MEMBER_PARKED, MEMBER_SIZED, MEMBER_WRITTEN };

/* A checkpoint that is being taken. */
struct gathering {
    int64_t until_ns;
    bool parked; /* all are */
    bool sized;  /* the first process has its file */
    long failed;
    uint64_t next_base, digest;
    struct object_image objects[MOST_SHARED_PIECES];
    struct shared_piece written[MOST_SHARED_PIECES];
    uint32_t object_count, written_count;
    struct member_image members[MOST_MEMBERS];
    struct group_image groups[MOST_MEMBERS]; /* of those */
    uint32_t member_count, living;
    struct lineage_child claimed[MOST_MEMBERS]; /* children that are said to live */
    uint32_t claimed_count;
};

/* The family's sessions, the first process's first. */
#define EACH_MEMBER(s, root) (struct session *s = (root); s; s = s->next_member)

static void ring(struct session *s)
{
    uint64_t one = 1;
    if (s->bell >= 0 && write(s->bell, &one, sizeof one) < 0)
        return; /* it rings already */
}

static void ring_all(struct session *root) REQUIRES(table_lock);
static void ring_all(struct session *root)
{
    for EACH_MEMBER (s, root)
        ring(s);
}

/* The request waits until something happens in the family. */
long family_wait(struct work *w, int64_t until_ns)
{
    struct session *s = w->session;
    uint64_t count;
    if (s->bell < 0 && (s->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
        return -errno;
    if (w->again && read(s->bell, &count, sizeof count) < 0)
        count = 0;
    wait_on(w, s->bell, POLLIN);
    w->until_ns = until_ns;
    w->retry_ns = now_ns() + LOOK_NS; /* a bell that rang before we listened */
    return PARKED;
}

/* The checkpoint, if one is being taken, is over: everybody goes on, or ends, with RESULT. */
void family_release(struct session *root, long result)
{
    pthread_mutex_lock(&table_lock);
    struct gathering *g = root->gathering;
    root->gathering = NULL;
    if (g) {
        root->gathered++;
        root->gather_result = result; /* others read it a little later */
        ring_all(root);
    }
    pthread_mutex_unlock(&table_lock);
    free(g);
}

/* S is there now: who waits for it hears of it. */
void family_joined(struct session *root)
{
    pthread_mutex_lock(&table_lock);
    ring_all(root);
    pthread_mutex_unlock(&table_lock);
}

/* S is served no more. Called when it is not in the list of members any more. */
void family_left(struct session *root, struct session *s)
{
    bool lost = false;
    pthread_mutex_lock(&table_lock);
    struct gathering *g = root->gathering;
    if (g && s->stage >= MEMBER_PARKED && !g->failed)
        g->failed = EAGAIN;
    if (root->awaited && s != root && !root->closing)
        lost = true;
    if (lost) {
        root->closing = true;
        for EACH_MEMBER (other, root)
            shutdown(other->channel, SHUT_RDWR);
    }
    ring_all(root);
    pthread_mutex_unlock(&table_lock);
    if (lost)
        tell(root, SHADOW_BROKEN, 0, 0, "one of the program's processes could not be brought back");
}

/* Whether a process may be born now. */
bool family_may_grow(struct session *root)
{
    pthread_mutex_lock(&table_lock);
    bool may = !root->gathering;
    pthread_mutex_unlock(&table_lock);
    return may;
}

static long begin_gathering(struct session *root, bool has_children)
{
    if (!root->image || root->image_fd >= 0)
        return -EBUSY;
    if (root->members == 1 && !has_children)
        return GATHER_ALONE;
    struct gathering *g = calloc(1, sizeof *g);
    if (!g)
        return -ENOMEM;
    g->until_ns = now_ns() + GATHER_NS;
    pthread_mutex_lock(&table_lock);
    struct gathering *old = root->gathering;
    root->gathering = g;
    for EACH_MEMBER (s, root)
        s->stage = MEMBER_RUNS;
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
            pids[count++] = s->real_pid;
        }
    }
    return count;
}

static long gather_more(struct work *w)
{
    struct session *root = w->session, *late = NULL;
    int32_t pids[MOST_GATHERED];
    char why[128] = "";
    pthread_mutex_lock(&table_lock);
    struct gathering *g = root->gathering;
    uint32_t count = g ? unparked(root, pids, &late) : 0;
    bool over = g && now_ns() >= g->until_ns;
    int64_t until_ns = g ? g->until_ns : 0;
    if (g && !count && late && over)
        snprintf(why, sizeof why, "process %d of the program does not stop: it is suspended, or in a long call",
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
    long begun = ARGUMENT(0) == GATHER_FIRST && !w->again ? begin_gathering(s, ARGUMENT(1)) : 0;
    return begun ? begun : gather_more(w);
}

long serve_parked(struct work *w)
{
    struct session *s = w->session, *root = s->root;
    pthread_mutex_lock(&table_lock);
    struct gathering *g = root->gathering;
    bool welcome = g && s != root && (w->again || s->stage <= MEMBER_SIGNALLED);
    if (welcome && !w->again) {
        s->stage = MEMBER_PARKED;
        ring(root);
    }
    bool all = welcome && g->parked;
    int64_t until_ns = welcome ? g->until_ns : 0;
    pthread_mutex_unlock(&table_lock);
    if (!welcome)
        return -EAGAIN;
    return all ? 0 : family_wait(w, until_ns);
}

static bool note_shared_piece(struct gathering *g, const struct shared_piece *c, uint8_t *writes)
{
    uint32_t at = 0;
    while (at < g->object_count && g->objects[at].object != c->object)
        at++;
    *writes = 1;
    for (uint32_t i = 0; i < g->written_count; i++) {
        const struct shared_piece *w = &g->written[i];
        if (w->object == c->object && w->offset <= c->offset && c->offset + c->size <= w->offset + w->size)
            *writes = 0;
    }
    if (at == MOST_SHARED_PIECES || (*writes && g->written_count == MOST_SHARED_PIECES))
        return false;
    if (*writes)
        g->written[g->written_count++] = *c;
    if (at == g->object_count)
        g->objects[g->object_count++] = (struct object_image){c->object, 0};
    if (g->objects[at].size < c->offset + c->size)
        g->objects[at].size = c->offset + c->size;
    return true;
}

/* What several members share is written by one of them. */
long serve_shared_memory(struct work *w)
{
    struct session *root = w->session->root;
    size_t count = w->head.size / sizeof(struct shared_piece);
    const struct shared_piece *list = (const void *)w->payload;
    if (w->head.size % sizeof(struct shared_piece) || count > MOST_SHARED_PIECES)
        return -EINVAL;
    uint8_t *writes = out_room(w, count);
    if (!writes)
        return -ENOMEM;
    long result = 0;
    pthread_mutex_lock(&table_lock);
    struct gathering *g = root->gathering;
    for (size_t i = 0; i < count && g && !result; i++) {
        struct shared_piece one;
        memcpy(&one, &list[i], sizeof one);
        if (one.size > INT64_MAX / 4 || one.offset > INT64_MAX / 4 || !note_shared_piece(g, &one, &writes[i]))
            result = -E2BIG;
    }
    pthread_mutex_unlock(&table_lock);
    return g ? result : -EAGAIN;
}

/* One more line of the table of members. */
static void note_member(struct gathering *g, struct session *root, struct member_image member) REQUIRES(table_lock);
static void note_member(struct gathering *g, struct session *root, struct member_image member)
{
    const struct membership *who = membership_of(root, member.virtual_pid);
    struct group_image *group = &g->groups[g->member_count];
    *group = (struct group_image){root->member.group, root->member.session};
    if (who)
        *group = (struct group_image){who->group, who->session};
    g->members[g->member_count++] = member;
}

static bool note_lineage(struct gathering *g, struct session *s, uint64_t base, const struct lineage *lineage,
                     const struct lineage_child *children) REQUIRES(table_lock);
static bool note_lineage(struct gathering *g, struct session *s, uint64_t base, const struct lineage *lineage,
                     const struct lineage_child *children)
{
    if (g->member_count + lineage->children + 1 > MOST_MEMBERS || g->claimed_count + lineage->children > MOST_MEMBERS)
        return false;
    note_member(g, s->root, (struct member_image){.base = base, .virtual_pid = s->virtual_pid, .parent_pid = lineage->parent_pid});
    g->living++;
    for (uint32_t i = 0; i < lineage->children; i++)
        if (children[i].has_ended)
            note_member(g, s->root, (struct member_image){.virtual_pid = children[i].virtual_pid,
                                                          .parent_pid = s->virtual_pid,
                                                          .has_ended = 1, .status = children[i].status});
        else
            g->claimed[g->claimed_count++] = children[i];
    return true;
}

/* Where the part of this member goes. */
long serve_part(struct work *w)
{
    struct session *s = w->session, *root = s->root;
    struct lineage lineage = {0};
    long result = 0;
    if (w->head.size < sizeof lineage)
        return -EINVAL;
    memcpy(&lineage, w->payload, sizeof lineage);
    if (lineage.children > MOST_MEMBERS || w->head.size != sizeof lineage + lineage.children * sizeof(struct lineage_child))
        return -EINVAL;
    pthread_mutex_lock(&table_lock);
    struct gathering *g = root->gathering;
    bool waits = g && s != root && !g->sized && !g->failed;
    int64_t size = ARGUMENT(0);
    if (g && (size <= 0 || size > (1ll << 44)) && !g->failed)
        g->failed = size < 0 && size > -4096 ? (long)-size : EIO;
    if (g && !waits && !g->failed) {
        result = (long)g->next_base;
        if (note_lineage(g, s, g->next_base, &lineage, (const void *)(w->payload + sizeof lineage)))
            g->next_base += (uint64_t)size;
        else
            g->failed = E2BIG;
        g->sized |= s == root;
        s->stage = MEMBER_SIZED;
    }
    if (g && (s == root || g->failed))
        ring_all(root);
    if (g && g->failed)
        result = -g->failed;
    pthread_mutex_unlock(&table_lock);
    if (!g)
        return -EAGAIN;
    if (waits)
        return family_wait(w, -1);
    if (result >= 0 && s != root && (w->passed_fd = fcntl(root->image_fd, F_DUPFD_CLOEXEC, 3)) < 0)
        return -errno;
    return result;
}

/* Whether every child that its parent says lives has told where its part is. */
static bool all_are_there(const struct gathering *g)
{
    for (uint32_t i = 0; i < g->claimed_count; i++) {
        bool found = false;
        for (uint32_t k = 0; k < g->member_count && !found; k++) {
            const struct member_image *member = &g->members[k];
            found = !member->has_ended && member->virtual_pid == g->claimed[i].virtual_pid;
        }
        if (!found)
            return false;
    }
    return true;
}

static long put_table(struct work *w, const struct gathering *g)
{
    const struct family_image head = {.magic = FAMILY_MAGIC, .members = g->member_count, .living = g->living,
                                      .objects = g->object_count, .groups = g->member_count};
    size_t groups = g->member_count * sizeof g->groups[0];
    size_t members = g->member_count * sizeof g->members[0], objects = g->object_count * sizeof g->objects[0];
    uint8_t *to = out_room(w, sizeof(uint64_t) * 2 + sizeof head + members + objects + groups);
    if (!to)
        return -ENOMEM;
    memcpy(to, &g->next_base, sizeof g->next_base);
    memcpy(to + 8, &g->digest, sizeof g->digest);
    memcpy(to + 16, &head, sizeof head);
    memcpy(to + 16 + sizeof head, g->members, members);
    memcpy(to + 16 + sizeof head + members, g->objects, objects);
    memcpy(to + 16 + sizeof head + members + objects, g->groups, groups);
    return (long)(sizeof head + members + objects + groups);
}

long serve_part_written(struct work *w)
{
    struct session *s = w->session, *root = s->root;
    long result = PARKED;
    pthread_mutex_lock(&table_lock);
    struct gathering *g = root->gathering;
    if (!w->again && g) {
        s->gathered = root->gathered;
        s->stage = MEMBER_WRITTEN;
        g->digest += (uint64_t)ARGUMENT(1);
        if (ARGUMENT(0) && !g->failed)
            g->failed = ARGUMENT(0) > 0 && ARGUMENT(0) < 4096 ? (long)ARGUMENT(0) : EIO;
        ring(root);
    }
    if (!g || root->gathered != s->gathered) { /* it is over */
        result = s == root ? -EPROTO : root->gather_result;
    } else if (s == root) {
        bool all = true;
        for EACH_MEMBER (other, root)
            all = all && other->stage == MEMBER_WRITTEN;
        if (all && !g->failed && !all_are_there(g))
            g->failed = EAGAIN;
        if (g->failed)
            result = -g->failed;
        else if (all)
            result = put_table(w, g);
        root->processes = g->living;
    }
    pthread_mutex_unlock(&table_lock);
    return result == PARKED ? family_wait(w, -1) : result;
}

/* The number where it runs of the member that calls itself so, or the other way. */
long serve_real_pid(struct work *w)
{
    struct session *root = w->session->root;
    long found = -ESRCH;
    pthread_mutex_lock(&table_lock);
    for EACH_MEMBER (s, root)
        if (s->greeted && (ARGUMENT(1) ? s->real_pid : s->virtual_pid) == ARGUMENT(0))
            found = ARGUMENT(1) ? s->virtual_pid : s->real_pid;
    uint32_t known = root->ended_count < MOST_ENDED ? root->ended_count : MOST_ENDED;
    for (uint32_t i = 1; i <= known && ARGUMENT(1) == REAL_PID_BACK && found < 0; i++) { /* its signal may be taken after its end */
        const struct membership *gone = &root->ended[(root->ended_count - i) % MOST_ENDED];
        if (gone->real_pid == ARGUMENT(0))
            found = gone->pid;
    }
    pthread_mutex_unlock(&table_lock);
    return found;
}

/* All that were in the image are here and go on together. */
long serve_begin(struct work *w)
{
    struct session *s = w->session, *root = s->root;
    uint32_t here = 0;
    pthread_mutex_lock(&table_lock);
    if (!w->again) {
        s->begun = true;
        for EACH_MEMBER (other, root)
            here += other->begun;
        if (root->awaited && here == root->awaited) {
            root->awaited = 0;
            ring_all(root);
        }
    }
    bool all = !root->awaited && root->begun;
    pthread_mutex_unlock(&table_lock);
    if (!all)
        return family_wait(w, -1);
    if (s == root) {
        adopted_forget(root);
        tell(root, SHADOW_STARTED, root->real_pid, 1, NULL);
    }
    return 0;
}
