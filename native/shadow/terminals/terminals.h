/* A family's pseudo-terminals: the kernel's here at home, whose line discipline does what a terminal does.
 *
 * What the kernel cannot do, as the processes are elsewhere, is done here: who leads the session of a terminal, which group is
 * in its foreground, and what signals come of what is typed, of a new size and of its end.  A terminal has a number of the
 * family's, by which the program names it (/dev/pts/N); it is the kernel's, but after a move.
 */
#ifndef CONDOR_TERMINALS_H
#define CONDOR_TERMINALS_H

#include "shadow/checkpoint/described.h"

#include <termios.h>

enum { MASTER_END, SLAVE_END, MOST_TERMINALS = 256 /* of a family */, TERMINAL_STATE_BYTES = 36 /* as the kernel has termios */ };

struct terminal {
    struct terminal *next;
    struct session *root;
    int files;               /* open ones, of either end */
    int number, real_number; /* as the program and as the kernel here knows it */
    int master;              /* real; -1: it was closed */
    int kept;                /* the same, until all members are back; -1: they are */
    int session, foreground; /* the program's numbers; 0: none */
    bool hung_up;            /* its master was closed, and its session has been told */
    bool opened;             /* its slave was */
    bool early;              /* its master was written to before that */
    bool literal;            /* the next character typed is no special one */
    bool stopped;            /* by a character that was typed */
    bool suspended;          /* by a call */
};

extern pthread_mutex_t terminals_lock; /* of all of these, and of signals that are due; none other is taken under it */

/* terminals.c */
bool terminal_opens(struct work *w, long *result); /* whether the call opens one, which is done then */
const char *terminal_path(const struct session *s, const char *path, char *to); /* where it is here; others stay what they are */
bool terminal_is_ours(const struct session *s, const char *real_path);
size_t terminal_shown(const struct file *file, char *to, size_t room);
struct terminal *terminal_new(struct session *root, int number) REQUIRES(terminals_lock); /* -1: any number */
struct terminal *terminal_numbered(const struct session *root, int number) REQUIRES(terminals_lock);
struct file *terminal_file(struct terminal *t, int end, int flags) REQUIRES(terminals_lock);
void terminal_hang_up(struct terminal *t) REQUIRES(terminals_lock);
void terminal_drop(struct terminal *t) REQUIRES(terminals_lock);
void terminal_closing(struct file *file);
void terminals_settled(struct session *root);
void terminals_end(struct session *root);

/* terminal_calls.c */
struct membership terminal_caller(struct session *s);
void terminal_become_controlling(struct terminal *t, const struct membership *who) REQUIRES(terminals_lock);
struct terminal *terminal_controlling(const struct session *root, int session) REQUIRES(terminals_lock);
long terminal_read(struct work *w, struct file *file, size_t size);
bool terminal_holds_back(struct work *w, const struct file *file);
long terminal_type(struct work *w, struct file *file, size_t size);
bool terminal_knows(unsigned long code, size_t *in, size_t *out);
long terminal_ioctl(struct work *w, struct file *file, unsigned long code, const uint8_t *in);

/* terminal_signals.c */
void terminal_signal(struct session *root, int group, int pid, int number) REQUIRES(terminals_lock);
void terminal_process_ended(struct session *s);

/* moved_terminals.c */
ssize_t terminal_described(struct file *file, uint8_t *to, size_t room, const char **why);
struct file *terminal_again(struct session *s, const struct described_file *d, const uint8_t *content);

#endif
