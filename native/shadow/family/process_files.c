/* Processes as descriptors (pidfd).  The process is one of the family, which the file knows by the number that the program
 * knows, and when it ends the file is told: then it is of one that has ended, whatever gets that number later.  To poll
 * there is a timer, which goes off when the process ends: nothing else is readable then, and never writable.
 *
 *     nobody yet ─ PROCESS_NAME ▶ of a living one ─ its OP_EXIT, or the end of its session ▶ of one that has ended
 *
 * A process that says that it ends is about to: who then asks the kernel for it waits a moment (runtime/process_files.c).
 */
#include "shadow/serve.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define BIRTH_NS 2000000000ll

struct process_file {
    struct session *root;
    int real; /* the timer */
    int pid;  /* 0: nobody yet */
    bool ended;
    struct process_file *next;
};

static pthread_mutex_t processes_lock = PTHREAD_MUTEX_INITIALIZER; /* taken after the table's */
static struct process_file *all GUARDED_BY(processes_lock);

static void note_end(struct process_file *p) REQUIRES(processes_lock);
static void note_end(struct process_file *p)
{
    const struct itimerspec at_once = {.it_value = {0, 1}};
    struct pollfd told = {.fd = p->real, .events = POLLIN};
    p->ended = true;
    timerfd_settime(p->real, 0, &at_once, NULL);
    poll(&told, 1, 1); /* it is seen from now on */
}

/* The one that calls itself PID ends, or has ended. */
void processes_ended(struct session *root, int pid)
{
    pthread_mutex_lock(&processes_lock);
    for (struct process_file *p = all; p; p = p->next)
        if (p->root == root && p->pid == pid && !p->ended)
            note_end(p);
    pthread_mutex_unlock(&processes_lock);
}

/* S's process says that it ends. */
void process_ends(struct session *s)
{
    pthread_mutex_lock(&table_lock);
    s->ending = true;
    const int pid = s->virtual_pid;
    pthread_mutex_unlock(&table_lock);
    processes_ended(s->root, pid);
}

int process_timer(void)
{
    return timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
}

/* FILE has such a timer, and is to be of PID. False: there is no memory. */
bool process_file_begin(struct session *s, struct file *file, int pid, bool ended)
{
    struct process_file *p = calloc(1, sizeof *p);
    if (!p)
        return false;
    *p = (struct process_file){.root = s->root, .real = file->real, .pid = pid};
    file->kind = FILE_PROCESS;
    file->process = p;
    pthread_mutex_lock(&processes_lock);
    p->next = all;
    all = p;
    if (ended)
        note_end(p);
    pthread_mutex_unlock(&processes_lock);
    return true;
}

void process_file_end(struct process_file *p)
{
    pthread_mutex_lock(&processes_lock);
    struct process_file **place = &all;
    while (*place != p)
        place = &(*place)->next;
    *place = p->next;
    pthread_mutex_unlock(&processes_lock);
    free(p);
}

/* Of whom FILE is; *ENDED: it is there no more, or is about to end. 0: nobody yet. */
int process_of(const struct file *file, bool *ended)
{
    pthread_mutex_lock(&processes_lock);
    const int pid = file->process->pid;
    *ended = file->process->ended;
    pthread_mutex_unlock(&processes_lock);
    return pid;
}

/* As it is in a checkpoint: who, and above that whether it has ended. */
int64_t process_described(const struct file *file)
{
    bool ended;
    const int pid = process_of(file, &ended);
    return pid | (int64_t)ended << 32;
}

enum found { IS_NOT_THERE, IS_EXPECTED, IS_ENDING, LIVES };

static enum found find(struct session *root, int pid) REQUIRES(table_lock);
static enum found find(struct session *root, int pid)
{
    bool expected = false;
    for (struct session *s = root; s; s = s->next_member) {
        if (s->greeted && s->virtual_pid == pid)
            return s->ending ? IS_ENDING : LIVES;
        expected |= !s->greeted;
    }
    return expected ? IS_EXPECTED : IS_NOT_THERE;
}

/* FILE becomes that of PID, unless that one cannot be there yet. CHILD: it is there, though it may have ended. Returns 0,
 * -ESRCH or PARKED. The table's lock is held over both steps, so that no end is missed in between. */
static long name_process(struct work *w, struct file *file, int pid, bool child)
{
    if (!w->again)
        w->until_ns = now_ns() + BIRTH_NS;
    pthread_mutex_lock(&table_lock);
    const enum found found = find(w->session->root, pid);
    const bool waits = found == IS_EXPECTED && now_ns() < w->until_ns;
    const bool there = found == LIVES || child;
    if (!waits && there) {
        pthread_mutex_lock(&processes_lock);
        file->process->pid = pid;
        if (found == IS_ENDING || found == IS_NOT_THERE)
            note_end(file->process);
        pthread_mutex_unlock(&processes_lock);
    }
    pthread_mutex_unlock(&table_lock);
    return waits ? family_wait(w, w->until_ns) : there ? 0 : -ESRCH;
}

static long new_file(struct session *s, int flags)
{
    struct file *file = file_new(process_timer(), O_RDWR | flags);
    if (!file)
        return -ENFILE;
    if (!process_file_begin(s, file, 0, false)) {
        file_drop(file);
        return -ENOMEM;
    }
    return enter_file(s, file, 0, true);
}

static struct file *process_file_of(struct session *s, int64_t descriptor)
{
    struct file *file = file_of(s, descriptor);
    return file && file->kind == FILE_PROCESS ? file : NULL;
}

/* Whom it is of. */
static long tell_process(struct work *w)
{
    const struct file *file = process_file_of(w->session, ARGUMENT(1));
    struct process_told told = {0};
    bool ended;
    if (!file)
        return -EBADF;
    told.virtual_pid = process_of(file, &ended);
    told.has_ended = ended;
    told.wants_nonblocking = file->wants_nonblocking;
    uint8_t *to = out_room(w, sizeof told);
    if (!to)
        return -ENOMEM;
    memcpy(to, &told, sizeof told);
    return 0;
}

static long ends(struct session *root, int pid)
{
    pthread_mutex_lock(&table_lock);
    const enum found found = find(root, pid);
    pthread_mutex_unlock(&table_lock);
    return found == IS_ENDING || found == IS_NOT_THERE;
}

long serve_process(struct work *w)
{
    const bool plain = ARGUMENT(2) > 0 && ARGUMENT(2) <= INT32_MAX;
    struct file *file;
    switch (ARGUMENT(0)) {
    case PROCESS_FILE: return ARGUMENT(1) & ~(int64_t)O_NONBLOCK ? -EINVAL : new_file(w->session, (int)ARGUMENT(1));
    case PROCESS_NAME:
        file = process_file_of(w->session, ARGUMENT(1));
        bool ended;
        if (!file || !plain || process_of(file, &ended))
            return -EINVAL;
        return name_process(w, file, (int)ARGUMENT(2), ARGUMENT(3));
    case PROCESS_OF: return tell_process(w);
    case PROCESS_ENDS: return plain ? ends(w->session->root, (int)ARGUMENT(2)) : -EINVAL;
    default: return -EINVAL;
    }
}
