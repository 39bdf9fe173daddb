/* Signals that a terminal sends.  The processes are elsewhere: who of them is answered next hears that there are some
 * (HINT_SIGNALS), asks for them, and sends them. */
#include "terminals.h"

#include "shadow/serve.h"

#include <signal.h>
#include <string.h>

/* To a group, or else to one process. */
void terminal_signal(struct session *root, int group, int pid, int number)
{
    const struct due_signal one = {group, pid, number};
    const unsigned count = root->due_count;
    for (unsigned i = 0; i < count; i++)
        if (memcmp(&root->due[i], &one, sizeof one) == 0)
            return;
    if ((!group && !pid) || count == MOST_DUE)
        return;
    root->due[count] = one;
    root->due_count = count + 1;
}

static bool is_meant(const struct session *s, const struct due_signal *due)
{
    return s->greeted && (due->group ? s->member.group == due->group : s->member.pid == due->pid);
}

/* What is due, with the numbers of where it is sent. */
long serve_terminal_signals(struct work *w)
{
    struct session *root = w->session->root;
    struct due_signal due[MOST_DUE];
    pthread_mutex_lock(&terminals_lock);
    const unsigned count = root->due_count;
    memcpy(due, root->due, count * sizeof *due);
    root->due_count = 0;
    pthread_mutex_unlock(&terminals_lock);
    struct sent_signal *to = (void *)out_room(w, MOST_SENT * sizeof *to);
    long found = 0;
    if (!to)
        return -ENOMEM;
    pthread_mutex_lock(&table_lock);
    for (unsigned i = 0; i < count; i++)
        for (struct session *s = root; s && found < MOST_SENT; s = s->next_member)
            if (is_meant(s, &due[i]))
                to[found++] = (struct sent_signal){s->member.real_pid, due[i].number};
    pthread_mutex_unlock(&table_lock);
    w->out_used = (size_t)found * sizeof *to;
    return found;
}

/* How many descriptors of S stand for FILE. */
static int own_entries(const struct session *s, const struct file *file)
{
    int count = 0;
    for (int i = 0; i < MAX_FILES; i++)
        count += s->entries[i].file == file;
    return count;
}

/* Masters that nobody else has are about to be closed, and who leads a session leaves its terminal: who was in the foreground
 * hears of either before this process is gone. */
void terminal_process_ended(struct session *s)
{
    struct session *root = s->root;
    const struct membership who = terminal_caller(s);
    pthread_mutex_lock(&terminals_lock);
    for (int i = 0; root->terminals && i < MAX_FILES; i++) {
        const struct file *file = s->entries[i].file;
        if (file && file->terminal && file->end == MASTER_END && file->references == own_entries(s, file))
            terminal_hang_up(file->terminal);
    }
    for (struct terminal *t = root->terminals, *next; t; t = next) {
        next = t->next;
        if (who.session != who.pid || t->session != who.pid)
            continue;
        terminal_signal(root, t->foreground, 0, SIGHUP);
        if (t->hung_up)
            terminal_signal(root, t->foreground, 0, SIGCONT);
        t->session = t->foreground = 0;
        terminal_drop(t);
    }
    pthread_mutex_unlock(&terminals_lock);
}
