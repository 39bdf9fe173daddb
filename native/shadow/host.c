/* The host's sessions: the table of them, their threads' beginning and end, and requests to them from outside. */
#include "shadow/sockets/sockets.h"
#include "shadow/terminals/terminals.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_SESSIONS = 16384 };

pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static struct session *sessions[MAX_SESSIONS] GUARDED_BY(table_lock);

static void free_session(struct session *s)
{
    pthread_mutex_lock(&table_lock);
    sessions[s->id] = NULL;
    pthread_mutex_unlock(&table_lock);
    free(s->strings);
    free(s->image);
    free(s->directory);
    free(s->job_root);
    free(s->libraries);
    free(s->library);
    session_free(s);
}

/* The session's thread has said its last word. */
void bury_session(int id)
{
    pthread_mutex_lock(&table_lock);
    struct session *s = sessions[id];
    pthread_mutex_unlock(&table_lock);
    pthread_join(s->thread, NULL);
    free_session(s);
}

/* A member is over; with the last one the family is. */
void end_family(struct session *root)
{
    if (--root->members)
        return;
    drop_spares(root);
    adopted_forget(root); /* what members brought after the first one's end */
    network_end(root);
    ipc_end(root);
    terminals_end(root);
    journal_close(root, root->state == SHADOW_EXITED && !root->task.journal_outlives);
    tell(root, SHADOW_ENDED, 0, 0, NULL);
}

/* No signal is ours to take: they are the host's. A write to a closed pipe is an error, not a death. */
void block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

/* The kernel's identities are a thread's; only the C library makes them the whole process's. */
static bool become(const struct shadow_task *task)
{
    return !task->has_identity ||
           (syscall(SYS_setgroups, 0, NULL) == 0 && syscall(SYS_setresgid, task->gid, task->gid, task->gid) == 0 &&
            syscall(SYS_setresuid, task->uid, task->uid, task->uid) == 0);
}

static void *run(void *argument)
{
    struct session *s = argument;
    block_signals();
    const char *problem = NULL;
    if (!become(&s->task))
        problem = "the session cannot become its user";
    else if (unshare(CLONE_FS) < 0 || (s->directory && chdir(s->directory) < 0))
        problem = "the working directory cannot be entered";
    else
        problem = confine_begin(s);
    if (problem) {
        tell(s, SHADOW_BROKEN, errno, 0, problem);
        s->over = true;
    }
    open_standard(s);
    serve_channel(s);
    if (s->state != SHADOW_EXITED)
        tell(s, SHADOW_LOST, 0, 0, "the channel ended");
    note_processor_time(s);
    family_release(s, -EAGAIN); /* of whatever checkpoint was being taken */
    adopted_forget(s);
    end_family(s);
    return NULL;
}

static bool gather_strings(struct session *s, const struct shadow_task *task)
{
    size_t total = strlen(task->program) + 1;
    for (const char *const *a = task->arguments; a && *a; a++, s->argument_count++)
        total += strlen(*a) + 1;
    for (const char *const *e = task->environment; e && *e; e++, s->environment_count++)
        total += strlen(*e) + 1;
    char *at = total > MAX_START ? NULL : malloc(total);
    if (!at)
        return false;
    s->strings = at;
    at = stpcpy(at, task->program) + 1;
    for (const char *const *a = task->arguments; a && *a; a++)
        at = stpcpy(at, *a) + 1;
    for (const char *const *e = task->environment; e && *e; e++)
        at = stpcpy(at, *e) + 1;
    s->string_bytes = total;
    s->image = task->image ? strdup(task->image) : NULL;
    s->directory = task->directory ? strdup(task->directory) : NULL;
    s->job_root = task->job_root ? strdup(task->job_root) : NULL;
    s->libraries = task->libraries ? strdup(task->libraries) : NULL;
    return (s->job_root || !task->job_root) && (s->libraries || !task->libraries);
}

/* The session of that number. NULL: there is none. */
static struct session *session_of(int id) REQUIRES(table_lock);
static struct session *session_of(int id)
{
    return id >= 0 && id < MAX_SESSIONS ? sessions[id] : NULL;
}

static int enter_session(struct session *s)
{
    int id = -EMFILE;
    pthread_mutex_lock(&table_lock);
    for (int i = 0; i < MAX_SESSIONS && id < 0; i++)
        if (!sessions[i])
            id = i;
    if (id >= 0) {
        sessions[id] = s;
        s->id = id;
    }
    pthread_mutex_unlock(&table_lock);
    return id;
}

int shadow_open(int channel, const struct shadow_task *task)
{
    struct session *s = session_new();
    if (!s)
        return -ENOMEM;
    s->task = *task;
    s->root = s;
    s->members = 1;
    s->no_spares = !task->spares;
    s->channel = channel;
    s->image_fd = -1;
    if (!gather_strings(s, task) || !secret_begin(s, task->key)) {
        free(s->strings);
        session_free(s);
        return -E2BIG;
    }
    s->task.key = NULL;
    int id = enter_session(s);
    if (id < 0) {
        secret_end(s);
        free(s->strings);
        session_free(s);
        return id;
    }
    for (int i = 0; i < 3; i++)
        s->task.standard[i] = task->standard[i] >= 0 ? fcntl(task->standard[i], F_DUPFD_CLOEXEC, 3) : -1;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int failed = pthread_create(&s->thread, &attributes, run, s);
    pthread_attr_destroy(&attributes);
    if (failed) {
        free_session(s);
        return -failed;
    }
    return id;
}

int shadow_read_statistics(int session, struct shadow_statistics *to)
{
    int result = -ESRCH;
    pthread_mutex_lock(&table_lock);
    const struct session *s = session_of(session);
    if (s) {
        *to = s->statistics;
        result = 0;
    }
    pthread_mutex_unlock(&table_lock);
    return result;
}

int shadow_vacate(int session)
{
    int result = -ESRCH;
    pthread_mutex_lock(&table_lock);
    struct session *s = session_of(session);
    if (s) {
        s->vacates = true;
        result = 0;
    }
    pthread_mutex_unlock(&table_lock);
    return result;
}

int shadow_spare(int session, int channel, int64_t label)
{
    int result = -ESRCH;
    pthread_mutex_lock(&table_lock);
    struct session *root = session_of(session);
    if (root) {
        result = root->closing || root->spare_count == MOST_SPARES ? -EBUSY : 0;
        root->no_spares = channel < 0;
        if (!result && channel >= 0) {
            root->spares[root->spare_count].channel = channel;
            root->spares[root->spare_count++].label = label;
        }
    }
    pthread_mutex_unlock(&table_lock);
    return result;
}

int shadow_close(int session)
{
    int result = -ESRCH;
    pthread_mutex_lock(&table_lock);
    struct session *root = session_of(session);
    if (root) {
        root->closing = true;
        shutdown(root->channel, SHUT_RDWR);
        for (struct session *s = root->next_member; s; s = s->next_member)
            shutdown(s->channel, SHUT_RDWR);
        result = 0;
    }
    pthread_mutex_unlock(&table_lock);
    return result;
}
