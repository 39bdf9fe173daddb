/* Helpers: sessions with a copy of another one's descriptors. */
#include "session.h"

#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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
    pthread_mutex_lock(&table_lock);
    for (struct session **place = &root->next_member; *place; place = &(*place)->next_member)
        if (*place == s) {
            *place = s->next_member;
            break;
        }
    root->statistics.calls += s->statistics.calls;
    root->statistics.bytes_in += s->statistics.bytes_in;
    root->statistics.bytes_out += s->statistics.bytes_out;
    root->statistics.files_opened += s->statistics.files_opened;
    root->statistics.served_ns += s->statistics.served_ns;
    for (int i = 0; i < 512; i++)
        root->statistics.by_call[i] += s->statistics.by_call[i];
    pthread_mutex_unlock(&table_lock);
    session_free(s);
    end_family(root);
    return NULL;
}

static struct session *copy_session(struct session *s, int channel)
{
    struct session *member = session_new();
    if (!member)
        return NULL;
    member->root = s->root;
    member->channel = channel;
    member->image_fd = -1;
    for (int i = 0; i < 3; i++)
        member->task.standard[i] = -1;
    for (int i = 0; i < MAX_FILES; i++)
        if (s->entries[i].file) {
            member->entries[i] = s->entries[i];
            file_keep(s->entries[i].file);
        }
    for (int i = 0; i < MAX_HANDLES; i++) /* mappings that the two share */
        if ((member->handles[i] = s->handles[i]))
            file_keep(s->handles[i]);
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

/* A new session whose channel's other end becomes *CHANNEL. Returns its number among those this one asked for. */
long start_member(struct session *s, int *channel)
{
    uint64_t number = ++s->helpers_asked;
    int pair[2];
    pthread_t thread;
    struct birth birth;
    if (s->root->members > 500)
        return -EAGAIN;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return -errno;
    birth.member = copy_session(s, pair[0]);
    if (birth.member && !s->task.direct && !secret_begin_member(birth.member, s, number)) {
        close_all(birth.member);
        session_free(birth.member);
        birth.member = NULL;
    }
    if (!birth.member) {
        close(pair[0]);
        close(pair[1]);
        return -ENOMEM;
    }
    sem_init(&birth.ready, 0, 0);
    s->root->members++;
    pthread_mutex_lock(&table_lock);
    birth.member->next_member = s->root->next_member;
    s->root->next_member = birth.member;
    pthread_mutex_unlock(&table_lock);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, run_member, &birth);
    pthread_attr_destroy(&attributes);
    if (failed) {
        s->root->members--;
        pthread_mutex_lock(&table_lock);
        s->root->next_member = birth.member->next_member;
        pthread_mutex_unlock(&table_lock);
        close(pair[0]);
        close(pair[1]);
        secret_end(birth.member);
        close_all(birth.member);
        session_free(birth.member);
        sem_destroy(&birth.ready);
        return -failed;
    }
    while (sem_wait(&birth.ready) < 0)
        ;
    sem_destroy(&birth.ready);
    *channel = pair[1];
    return (long)number;
}
