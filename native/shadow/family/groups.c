/* Process groups and sessions of a family.
 *
 * Ids are the program's.  The kernel where the family runs has a group for each group, so that waiting for one is the
 * kernel's; its number is kept here, as are the rules of who may be put where.  To the kernel there, all are of one
 * session.  A process that is put into a group asks first (GROUP_FIND), is put there, and says so (GROUP_SET).
 *
 * A signal to a group goes to those that are in it now.  Who is being born is waited for: it would not get it otherwise.
 */
#include "shadow/serve.h"

#include <limits.h>
#include <string.h>

#define BIRTH_NS 2000000000ll

enum { EVERYBODY = -1 };

static struct membership *living(struct session *root, int pid) REQUIRES(table_lock);
static struct membership *living(struct session *root, int pid)
{
    for (struct session *s = root; s; s = s->next_member)
        if (s->greeted && s->member.pid == pid)
            return &s->member;
    return NULL;
}

/* What is known of the member that calls itself PID, or of the last one that did. NULL: nothing. */
struct membership *membership_of(struct session *root, int pid)
{
    struct membership *found = living(root, pid);
    if (found)
        return found;
    uint32_t kept = root->ended_count < MOST_ENDED ? root->ended_count : MOST_ENDED;
    for (uint32_t i = 1; i <= kept; i++) {
        struct membership *who = &root->ended[(root->ended_count - i) % MOST_ENDED];
        if (who->pid == pid)
            return who;
    }
    return NULL;
}

/* Its parent may not have waited for it: it is in its group still. */
void membership_ended(struct session *root, const struct membership *who)
{
    root->ended[root->ended_count++ % MOST_ENDED] = *who;
}

static const struct membership *living_one_of(struct session *root, int group) REQUIRES(table_lock);
static const struct membership *living_one_of(struct session *root, int group)
{
    for (struct session *s = root; s; s = s->next_member)
        if (s->greeted && s->member.group == group)
            return &s->member;
    return NULL;
}

/* A member of GROUP, a living one if there is one; else the kernel knows whether that group is there still. */
static const struct membership *one_of(struct session *root, int group) REQUIRES(table_lock);
static const struct membership *one_of(struct session *root, int group)
{
    const struct membership *found = living_one_of(root, group);
    if (found || !root)
        return found;
    uint32_t kept = root->ended_count < MOST_ENDED ? root->ended_count : MOST_ENDED;
    for (uint32_t i = 1; i <= kept; i++) {
        const struct membership *who = &root->ended[(root->ended_count - i) % MOST_ENDED];
        if (who->group == group)
            return who;
    }
    return NULL;
}

static bool is_plain_id(int64_t number)
{
    return number > 0 && number <= INT_MAX;
}

/* After a restart: as the image has it, which is hostile. */
void membership_again(struct work *w)
{
    struct session *s = w->session;
    pthread_mutex_lock(&table_lock);
    struct membership *who = &s->member;
    if (is_plain_id(ARGUMENT(1)) && is_plain_id(ARGUMENT(2)) && is_plain_id(ARGUMENT(3))) {
        who->group = (int)ARGUMENT(1);
        who->session = (int)ARGUMENT(2);
        who->real_group = (int)ARGUMENT(3);
        who->executed = ARGUMENT(4) == 1;
    }
    if (is_plain_id(ARGUMENT(5)))
        who->parent = (int)ARGUMENT(5);
    pthread_mutex_unlock(&table_lock);
}

/* Whether a member is being created: in GROUP, if that is one. */
static bool is_expected(struct session *root, int group) REQUIRES(table_lock);
static bool is_expected(struct session *root, int group)
{
    for (struct session *s = root; s; s = s->next_member)
        if (!s->greeted && (group <= 0 || s->member.group == group))
            return true;
    return false;
}

/* Whether WHO may be put into GROUP by S. Returns the group's number where it runs, 0: it is there, or -errno. */
static long find_group(struct session *s, const struct membership *who, int group) REQUIRES(table_lock);
static long find_group(struct session *s, const struct membership *who, int group)
{
    bool own = who->pid == s->member.pid;
    if (!own && who->parent != s->member.pid)
        return -ESRCH;
    if (!own && who->session != s->member.session)
        return -EPERM;
    if (!own && who->executed)
        return -EACCES;
    if (who->session == who->pid) /* the first process may ask for what it has: outside it would not lead a session */
        return own && s == s->root && group == who->group ? 0 : -EPERM;
    const struct membership *other = one_of(s->root, group);
    if (group != who->pid && (!other || other->session != who->session))
        return -EPERM;
    if (group == who->group)
        return 0;
    return group == who->pid ? who->real_pid : other->real_group;
}

static long set_group(struct session *s, struct membership *who, int group) REQUIRES(table_lock);
static long set_group(struct session *s, struct membership *who, int group)
{
    long real = find_group(s, who, group);
    if (real <= 0)
        return real;
    who->group = group;
    who->real_group = (int)real;
    return 0;
}

static long lead_session(struct session *s) REQUIRES(table_lock);
static long lead_session(struct session *s)
{
    struct membership *who = &s->member;
    if (living_one_of(s->root, who->pid))
        return -EPERM;
    who->group = who->session = who->pid;
    who->real_group = who->real_pid;
    return who->session;
}

/* The real numbers of those in GROUP. */
static long list_members(struct work *w, int group) REQUIRES(table_lock);
static long list_members(struct work *w, int group)
{
    struct session *asks = w->session;
    int32_t pids[MOST_GATHERED];
    long count = 0;
    for (struct session *s = asks->root; s && count < MOST_GATHERED; s = s->next_member)
        if (s->greeted && (group == EVERYBODY ? s != asks : s->member.group == group))
            pids[count++] = s->member.real_pid;
    uint8_t *to = count ? out_room(w, (size_t)count * sizeof *pids) : NULL;
    if (!to)
        return count ? -ENOMEM : -ESRCH;
    memcpy(to, pids, (size_t)count * sizeof *pids);
    return count;
}

/* A child that ended before the program moved. */
static long note_ended(struct work *w, int pid, int group) REQUIRES(table_lock);
static long note_ended(struct work *w, int pid, int group)
{
    if (!pid || !group || !is_plain_id(ARGUMENT(3)) || !is_plain_id(ARGUMENT(4)))
        return -EINVAL;
    const struct membership who = {.pid = pid, .parent = w->session->member.pid, .group = group,
                                   .session = (int)ARGUMENT(3), .real_group = (int)ARGUMENT(4)};
    membership_ended(w->session->root, &who);
    return 0;
}

static bool is_controlled(struct session *root, int group) REQUIRES(table_lock);
static bool is_controlled(struct session *root, int group)
{
    for (struct session *s = root; s; s = s->next_member) {
        const struct membership *parent = s->greeted && s->member.group == group ? living(root, s->member.parent) : NULL;
        if (parent && parent->session == s->member.session && parent->group != group)
            return true;
    }
    return false;
}

/* PID and GROUP are numbers of a plain kind, or 0. */
static long answer_group(struct work *w, int pid, int group) REQUIRES(table_lock);
static long answer_group(struct work *w, int pid, int group)
{
    struct session *s = w->session;
    struct membership *who = !pid ? &s->member : ARGUMENT(3) ? membership_of(s->root, pid) : living(s->root, pid);
    const struct membership *other;
    switch (ARGUMENT(0)) {
    case GROUP_OF: return who ? who->group : -ESRCH;
    case GROUP_SESSION: return who ? who->session : -ESRCH;
    case GROUP_FIND: return who ? find_group(s, who, group ? group : who->pid) : -ESRCH;
    case GROUP_SET: return who ? set_group(s, who, group ? group : who->pid) : -ESRCH;
    case GROUP_LEAD: return lead_session(s);
    case GROUP_REAL:
        other = one_of(s->root, group ? group : s->member.group);
        return other ? other->real_group : -ECHILD;
    case GROUP_MEMBERS: return list_members(w, ARGUMENT(2) == EVERYBODY ? EVERYBODY : group ? group : s->member.group);
    case GROUP_CONTROLLED: return is_controlled(s->root, s->member.group);
    case GROUP_ENDED: return note_ended(w, pid, group);
    default: return -EINVAL;
    }
}

/* Whether the answer would be another one once those who are being born are there. */
static bool must_wait(struct work *w, int pid, int group) REQUIRES(table_lock);
static bool must_wait(struct work *w, int pid, int group)
{
    struct session *s = w->session;
    if (ARGUMENT(0) == GROUP_MEMBERS)
        return is_expected(s->root, ARGUMENT(2) == EVERYBODY ? EVERYBODY : group ? group : s->member.group);
    return ARGUMENT(0) <= GROUP_SET && pid && !living(s->root, pid) && is_expected(s->root, EVERYBODY);
}

long serve_group(struct work *w)
{
    const bool plain = is_plain_id(ARGUMENT(1)) || !ARGUMENT(1);
    if (!plain || !(is_plain_id(ARGUMENT(2)) || !ARGUMENT(2) || (ARGUMENT(0) == GROUP_MEMBERS && ARGUMENT(2) == EVERYBODY)))
        return -ESRCH;
    int pid = (int)ARGUMENT(1), group = ARGUMENT(2) > 0 ? (int)ARGUMENT(2) : 0;
    if (!w->again)
        w->until_ns = now_ns() + BIRTH_NS;
    pthread_mutex_lock(&table_lock);
    bool waits = now_ns() < w->until_ns && must_wait(w, pid, group);
    long result = waits ? 0 : answer_group(w, pid, group);
    pthread_mutex_unlock(&table_lock);
    return waits ? family_wait(w, w->until_ns) : result;
}
