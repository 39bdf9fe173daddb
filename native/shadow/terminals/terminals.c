/* Pseudo-terminals: their beginning and end, and their names. */
#include "terminals.h"

#include "shadow/serve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SLAVES "/dev/pts/"

pthread_mutex_t terminals_lock = PTHREAD_MUTEX_INITIALIZER;

/* One that is there still: a closed one's number may be another's. */
struct terminal *terminal_numbered(const struct session *root, int number)
{
    struct terminal *found = NULL;
    for (struct terminal *t = root->terminals; t; t = t->next)
        if (t->number == number && (!found || t->master >= 0))
            found = t;
    return found;
}

static int free_number(const struct session *root, int wanted) REQUIRES(terminals_lock);
static int free_number(const struct session *root, int wanted)
{
    while (terminal_numbered(root, wanted))
        wanted++;
    return wanted;
}

static size_t count_of(const struct session *root) REQUIRES(terminals_lock);
static size_t count_of(const struct session *root)
{
    size_t count = 0;
    for (const struct terminal *t = root->terminals; t; t = t->next)
        count++;
    return count;
}

/* NULL: errno. Its master is open. */
struct terminal *terminal_new(struct session *root, int number)
{
    int real_number;
    if (count_of(root) >= MOST_TERMINALS) {
        errno = ENOSPC;
        return NULL;
    }
    struct terminal *t = calloc(1, sizeof *t);
    int master = t ? posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (master < 0 || ioctl(master, TIOCGPTN, &real_number) < 0) {
        int error = errno;
        if (master >= 0)
            close(master);
        free(t);
        errno = error;
        return NULL;
    }
    *t = (struct terminal){.next = root->terminals, .root = root, .real_number = real_number, .master = master, .kept = -1,
                           .number = free_number(root, number < 0 ? real_number : number)};
    root->terminals = t;
    return t;
}

/* If it is nobody's any more. */
void terminal_drop(struct terminal *t)
{
    if (t->files || t->session || t->kept >= 0)
        return;
    for (struct terminal **place = &t->root->terminals; *place; place = &(*place)->next)
        if (*place == t) {
            *place = t->next;
            free(t);
            return;
        }
}

/* An open file of it. The master has one, which is the terminal's own descriptor; the slave as many as it is opened for.
 * NULL: errno. */
struct file *terminal_file(struct terminal *t, int end, int flags)
{
    int real = t->master;
    if (end == SLAVE_END)
        real = ioctl(t->kept >= 0 ? t->kept : t->master, TIOCGPTPEER,
                     (flags & O_ACCMODE) | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    struct file *file = real < 0 ? NULL : file_new(real, flags);
    if (!file && end == MASTER_END) {
        t->master = -1;
        terminal_drop(t);
    }
    if (!file)
        return NULL;
    file->kind = FILE_TERMINAL;
    file->end = (uint8_t)end;
    file->terminal = t;
    t->files++;
    t->opened |= end == SLAVE_END;
    return file;
}

static long open_master(struct work *w)
{
    pthread_mutex_lock(&terminals_lock);
    struct terminal *t = terminal_new(w->session->root, -1);
    int error = errno;
    struct file *file = t ? terminal_file(t, MASTER_END, (int)ARGUMENT(2) & (O_ACCMODE | O_NONBLOCK)) : NULL;
    pthread_mutex_unlock(&terminals_lock);
    return file ? enter_file(w->session, file, 0, ARGUMENT(2) & O_CLOEXEC) : -error;
}

static long open_slave(struct work *w, int number)
{
    struct session *s = w->session;
    const int flags = (int)ARGUMENT(2);
    const struct membership who = terminal_caller(s);
    long error = ENXIO;
    struct file *file = NULL;
    pthread_mutex_lock(&terminals_lock);
    struct terminal *t = number < 0 ? terminal_controlling(s->root, who.session) : terminal_numbered(s->root, number);
    if (t) {
        file = t->master < 0 ? (errno = EIO, NULL) : terminal_file(t, SLAVE_END, flags & (O_ACCMODE | O_NONBLOCK));
        error = errno;
        if (file && !(flags & O_NOCTTY) && (flags & O_ACCMODE) != O_WRONLY)
            terminal_become_controlling(t, &who);
    }
    pthread_mutex_unlock(&terminals_lock);
    return file ? enter_file(s, file, 0, flags & O_CLOEXEC) : -error;
}

/* The number behind FRONT in PATH, and nothing else; -1: there is none. */
static int number_behind(const char *path, const char *front)
{
    enum { MOST_DIGITS = 7 };
    const size_t length = strlen(front);
    if (strncmp(path, front, length) != 0)
        return -1;
    const size_t digits = strspn(path + length, "0123456789");
    return digits && digits <= MOST_DIGITS && !path[length + digits] ? atoi(path + length) : -1;
}

static bool is_known_number(const struct session *s, int number)
{
    pthread_mutex_lock(&terminals_lock);
    bool found = number >= 0 && terminal_numbered(s->root, number);
    pthread_mutex_unlock(&terminals_lock);
    return found;
}

bool terminal_opens(struct work *w, long *result)
{
    size_t at = 0;
    const char *path = take_path(w, &at);
    if (!path || (ARGUMENT(2) & (O_PATH | O_DIRECTORY)))
        return false;
    const int number = number_behind(path, SLAVES);
    if (strcmp(path, "/dev/ptmx") == 0 || strcmp(path, SLAVES "ptmx") == 0)
        *result = open_master(w);
    else if (strcmp(path, "/dev/tty") == 0)
        *result = open_slave(w, -1);
    else if (is_known_number(w->session, number))
        *result = open_slave(w, number);
    else
        return false;
    return true;
}

const char *terminal_path(const struct session *s, const char *path, char *to)
{
    const int number = number_behind(path, SLAVES);
    if (number < 0)
        return path;
    pthread_mutex_lock(&terminals_lock);
    const struct terminal *t = terminal_numbered(s->root, number);
    if (t)
        snprintf(to, PATH_LIMIT, SLAVES "%d", t->real_number);
    pthread_mutex_unlock(&terminals_lock);
    return t ? to : path;
}

/* Whether what lies here at home under that name is a terminal of the family's, or what makes one. */
bool terminal_is_ours(const struct session *s, const char *real_path)
{
    const int number = number_behind(real_path, SLAVES);
    bool found = strcmp(real_path, "/dev/ptmx") == 0 || strcmp(real_path, SLAVES "ptmx") == 0;
    pthread_mutex_lock(&terminals_lock);
    for (const struct terminal *t = number < 0 ? NULL : s->root->terminals; t; t = t->next)
        found |= t->real_number == number && t->master >= 0;
    pthread_mutex_unlock(&terminals_lock);
    return found;
}

/* What /proc/self/fd says of it. */
size_t terminal_shown(const struct file *file, char *to, size_t room)
{
    const int length = file->end == MASTER_END ? snprintf(to, room, "/dev/ptmx")
                                               : snprintf(to, room, SLAVES "%d", file->terminal->number);
    return length < 0 ? 0 : (size_t)length;
}

void terminal_hang_up(struct terminal *t)
{
    if (t->hung_up)
        return;
    t->hung_up = true;
    if (!t->session)
        return;
    terminal_signal(t->root, 0, t->session, SIGHUP);
    terminal_signal(t->root, 0, t->session, SIGCONT);
}

/* The last descriptor of FILE is gone; its real one is closed after this. */
void terminal_closing(struct file *file)
{
    struct terminal *t = file->terminal;
    pthread_mutex_lock(&terminals_lock);
    t->files--;
    if (file->end == MASTER_END) {
        t->master = -1;
        terminal_hang_up(t);
    }
    terminal_drop(t);
    pthread_mutex_unlock(&terminals_lock);
}

/* All members are back: what none of them has is closed. */
void terminals_settled(struct session *root)
{
    pthread_mutex_lock(&terminals_lock);
    for (struct terminal *t = root->terminals, *next; t; t = next) {
        next = t->next;
        if (t->kept >= 0)
            close(t->kept);
        t->kept = -1;
        terminal_drop(t);
    }
    pthread_mutex_unlock(&terminals_lock);
}

void terminals_end(struct session *root)
{
    pthread_mutex_lock(&terminals_lock);
    while (root->terminals) {
        struct terminal *t = root->terminals;
        root->terminals = t->next;
        if (t->kept >= 0)
            close(t->kept);
        free(t);
    }
    pthread_mutex_unlock(&terminals_lock);
}
