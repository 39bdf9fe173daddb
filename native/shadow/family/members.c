/* Helpers: sessions with a copy of another one's descriptors. */
#include "shadow/serve.h"
#include "shadow/terminals/terminals.h"

#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SPARE_LOOK_NS = 500000 };
#define SPARE_WAIT_NS 2000000000ll

struct birth {
    struct session *member;
    sem_t ready;
};

static void *run_member(void *argument)
{
    struct birth *birth = argument;
    struct session *s = birth->member;
    block_signals();
    bool alone = unshare(CLONE_FS) == 0; /* the copy of directory and umask is taken here */
    sem_post(&birth->ready);
    if (alone)
        serve_channel(s);
    note_processor_time(s);
    struct session *root = s->root;
    terminal_process_ended(s);
    pthread_mutex_lock(&table_lock);
    for (struct session **place = &root->next_member; *place; place = &(*place)->next_member)
        if (*place == s) {
            *place = s->next_member;
            break;
        }
    if (s->greeted)
        membership_ended(root, &s->member);
    root->statistics.calls += s->statistics.calls;
    root->statistics.bytes_in += s->statistics.bytes_in;
    root->statistics.bytes_out += s->statistics.bytes_out;
    root->statistics.files_opened += s->statistics.files_opened;
    root->statistics.files_kept_there += s->statistics.files_kept_there;
    root->statistics.bytes_kept_there += s->statistics.bytes_kept_there;
    root->statistics.served_ns += s->statistics.served_ns;
    for (int i = 0; i < 512; i++)
        root->statistics.by_call[i] += s->statistics.by_call[i];
    pthread_mutex_unlock(&table_lock);
    processes_ended(root, s->virtual_pid);
    family_left(root, s);
    session_free(s);
    end_family(root);
    return NULL;
}

/* A descriptor of the process that is being born: its parent's alone. */
static bool is_made_for_child(const struct file *file)
{
    bool ended;
    return file->kind == FILE_PROCESS && !process_of(file, &ended);
}

static struct session *copy_session(struct session *s, int channel)
{
    struct session *member = session_new();
    if (!member)
        return NULL;
    member->root = s->root;
    member->channel = channel;
    member->image_fd = -1;
    member->most_files = s->most_files;
    for (int i = 0; i < 3; i++)
        member->task.standard[i] = -1;
    for (int i = 0; i < MAX_FILES; i++)
        if (s->entries[i].file && !is_made_for_child(s->entries[i].file)) {
            member->entries[i] = s->entries[i];
            file_keep(s->entries[i].file);
        }
    for (int i = 0; i < MAX_HANDLES; i++) /* mappings that the two share */
        if ((member->handles[i] = s->handles[i]))
            file_keep(s->handles[i]);
    spans_copy(member, s);
    program_copy(member, s);
    return member;
}

/* Whether the member that calls itself REAL_PID has been served to its end. */
bool member_is_gone(struct session *root, int real_pid)
{
    bool gone = true;
    pthread_mutex_lock(&table_lock);
    for (struct session *s = root->next_member; s && gone; s = s->next_member)
        gone = s->real_pid != real_pid;
    pthread_mutex_unlock(&table_lock);
    return gone;
}

/* What the host gave for the next helper; *NEVER: there will be nothing. False: nothing now. */
static bool take_spare(struct session *root, int *channel, int64_t *label, bool *never)
{
    pthread_mutex_lock(&table_lock);
    *never = root->no_spares || root->closing;
    bool found = root->spare_count && !root->closing;
    if (found) {
        *channel = root->spares[0].channel;
        *label = root->spares[0].label;
        memmove(root->spares, root->spares + 1, --root->spare_count * sizeof root->spares[0]);
    }
    pthread_mutex_unlock(&table_lock);
    return found;
}

/* The family is over. */
void drop_spares(struct session *root)
{
    pthread_mutex_lock(&table_lock);
    while (root->spare_count)
        close(root->spares[--root->spare_count].channel);
    root->closing = true;
    pthread_mutex_unlock(&table_lock);
}

static void forget_member(struct session *member)
{
    secret_end(member);
    close_all(member);
    session_free(member);
}

static bool begin_thread(struct birth *birth)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sem_init(&birth->ready, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    bool begun = !pthread_create(&thread, &attributes, run_member, birth);
    pthread_attr_destroy(&attributes);
    while (begun && sem_wait(&birth->ready) < 0)
        ;
    sem_destroy(&birth->ready);
    return begun;
}

/* A new session that serves CHANNEL. STRAIGHT: its other end is the helper's own, and the two encrypt. Returns its
 * number in the family, or -errno, and the channel is the caller's. */
static long start_member(struct session *s, int channel, bool straight, bool sibling)
{
    struct session *root = s->root;
    uint64_t number = ++root->helpers_asked;
    struct birth birth = {.member = copy_session(s, channel)};
    if (!birth.member)
        return -ENOMEM;
    birth.member->task.direct = straight;
    if ((straight || !s->task.direct) && !secret_begin_member(birth.member, s, number)) {
        forget_member(birth.member);
        return -ENOMEM;
    }
    root->members++;
    pthread_mutex_lock(&table_lock);
    birth.member->member = s->member;
    birth.member->member.parent = sibling ? s->member.parent : s->member.pid;
    birth.member->member.executed = false;
    birth.member->sibling = sibling;
    birth.member->next_member = root->next_member;
    root->next_member = birth.member;
    if (root->closing)
        shutdown(channel, SHUT_RDWR);
    pthread_mutex_unlock(&table_lock);
    if (begin_thread(&birth))
        return (long)number;
    root->members--;
    pthread_mutex_lock(&table_lock);
    struct session **place = &root->next_member;
    while (*place != birth.member)
        place = &(*place)->next_member;
    *place = birth.member->next_member;
    pthread_mutex_unlock(&table_lock);
    forget_member(birth.member);
    return -EAGAIN;
}

/* A channel whose other end goes beside the answer, or to who relays it. */
static long start_near(struct session *s, bool sibling, int *passed_fd)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    long number = start_member(s, pair[0], false, sibling);
    if (number < 0) {
        close(pair[0]);
        close(pair[1]);
        return number;
    }
    *passed_fd = pair[1];
    return number;
}

/* A helper of a program whose channel goes straight home gets a connection of the same kind, if the host has one or
 * gets one in time. */
long serve_fork(struct work *w)
{
    struct session *s = w->session;
    const bool sibling = ARGUMENT(2) == 1;
    int channel;
    int64_t label;
    bool never;
    if (s->root->members > 500)
        return -EAGAIN;
    if (!ARGUMENT(1) && !w->again && !family_may_grow(s->root))
        return -EINPROGRESS;
    if (!s->task.direct || !ARGUMENT(0))
        return start_near(s, sibling, &w->passed_fd);
    if (take_spare(s->root, &channel, &label, &never)) {
        long number = start_member(s, channel, true, sibling);
        if (number < 0)
            close(channel);
        else
            tell(s, SHADOW_MEMBER_STRAIGHT, label, number, NULL);
        return number;
    }
    if (never)
        return start_near(s, sibling, &w->passed_fd);
    if (!w->again) {
        tell(s, SHADOW_WANTS_SPARE, 0, 0, NULL);
        w->until_ns = now_ns() + SPARE_WAIT_NS;
    }
    if (now_ns() >= w->until_ns)
        return start_near(s, sibling, &w->passed_fd);
    w->retry_ns = now_ns() + SPARE_LOOK_NS;
    return PARKED;
}
