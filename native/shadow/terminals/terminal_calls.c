/* Calls on a pseudo-terminal: what the kernel does, and what it would do if the processes were here. */
#include "terminals.h"

#include "shadow/serve.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WINDOW_BYTES = 8, DECISECOND_NS = 100000000 };

struct membership terminal_caller(struct session *s)
{
    pthread_mutex_lock(&table_lock);
    const struct membership who = s->member;
    pthread_mutex_unlock(&table_lock);
    return who;
}

struct terminal *terminal_controlling(const struct session *root, int session)
{
    for (struct terminal *t = root->terminals; t; t = t->next)
        if (session && t->session == session && !t->hung_up)
            return t;
    return NULL;
}

/* If WHO leads a session that has none, and it is no other's. */
void terminal_become_controlling(struct terminal *t, const struct membership *who)
{
    if (who->session != who->pid || t->session || terminal_controlling(t->root, who->session))
        return;
    t->session = who->session;
    t->foreground = who->group;
}

/* Whether the caller's group is not the one in the foreground of its terminal. */
static bool is_in_background(struct session *s, const struct terminal *t)
{
    const struct membership who = terminal_caller(s);
    pthread_mutex_lock(&terminals_lock);
    bool behind = !t->hung_up && t->session == who.session && t->foreground && t->foreground != who.group;
    pthread_mutex_unlock(&terminals_lock);
    return behind;
}

/* A read that may end with nothing, at once or after some time, asks before there is something. */
static bool ends_without_input(const struct file *file, int64_t *within_ns)
{
    struct termios now;
    if (file->end == MASTER_END || tcgetattr(file->real, &now) < 0 || (now.c_lflag & ICANON) || now.c_cc[VMIN])
        return false;
    *within_ns = (int64_t)now.c_cc[VTIME] * DECISECOND_NS;
    return true;
}

long terminal_read(struct work *w, struct file *file, size_t size)
{
    int64_t within_ns = 0;
    struct pollfd one = {.fd = file->real, .events = POLLIN};
    if (file->end == SLAVE_END && is_in_background(w->session, file->terminal))
        return -IN_BACKGROUND;
    const bool ends = ends_without_input(file, &within_ns);
    uint8_t *to = out_room(w, size);
    if (!to)
        return -ENOMEM;
    long got = ends || poll(&one, 1, 0) > 0 ? result_of(read(file->real, to, size)) : -EAGAIN;
    w->out_used = got > 0 ? (size_t)got : 0;
    if (got != -EAGAIN)
        return got;
    if (ends && !file->wants_nonblocking) {
        if (!w->again)
            w->until_ns = now_ns() + within_ns;
        if (now_ns() >= w->until_ns)
            return 0;
    }
    return would_wait(w, file, POLLIN);
}

/* Whether a write has to wait until the caller is in the foreground; argument 3: it does not. */
bool terminal_holds_back(struct work *w, const struct file *file)
{
    struct termios now;
    return file->end == SLAVE_END && !ARGUMENT(3) && tcgetattr(file->real, &now) == 0 && (now.c_lflag & TOSTOP) &&
           is_in_background(w->session, file->terminal);
}

static bool is_special(const struct termios *now, int which, uint8_t byte)
{
    return now->c_cc[which] != _POSIX_VDISABLE && now->c_cc[which] == byte;
}

/* What becomes of a character that is typed: the signal that it stands for, or 0. */
static int type_one(struct terminal *t, const struct termios *now, uint8_t byte) REQUIRES(terminals_lock);
static int type_one(struct terminal *t, const struct termios *now, uint8_t byte)
{
    static const struct { int which, number; } signals[] = {{VINTR, SIGINT}, {VQUIT, SIGQUIT}, {VSUSP, SIGTSTP}};
    if (t->literal) {
        t->literal = false;
        return 0;
    }
    if (now->c_iflag & ISTRIP)
        byte &= 0x7f;
    if ((now->c_iflag & IXON) && (is_special(now, VSTOP, byte) || is_special(now, VSTART, byte))) {
        t->stopped = is_special(now, VSTOP, byte) && !is_special(now, VSTART, byte);
        return 0;
    }
    for (size_t i = 0; (now->c_lflag & ISIG) && i < sizeof signals / sizeof *signals; i++)
        if (is_special(now, signals[i].which, byte))
            return signals[i].number;
    if (now->c_iflag & IXANY)
        t->stopped = false;
    if ((now->c_lflag & (ICANON | IEXTEN)) == (ICANON | IEXTEN) && is_special(now, VLNEXT, byte))
        t->literal = true;
    return 0;
}

/* How many of BYTES are typed before one that is a signal; *NUMBER: that one, 0: there is none. */
static size_t before_signal(const struct terminal *t, const struct termios *now, const uint8_t *bytes, size_t size, int *number)
    REQUIRES(terminals_lock);
static size_t before_signal(const struct terminal *t, const struct termios *now, const uint8_t *bytes, size_t size, int *number)
{
    struct terminal probe = *t;
    *number = 0;
    for (size_t i = 0; i < size && t->opened; i++)
        if ((*number = type_one(&probe, now, bytes[i])))
            return i;
    return size;
}

/* The line discipline would work on the character some time later, when those that it signals may have written already, and
 * would then throw that away. So what it does is done here: it empties the terminal, shows the character, signals. */
static void type_signal(struct terminal *t, const struct termios *now, uint8_t byte, int number) REQUIRES(terminals_lock);
static void type_signal(struct terminal *t, const struct termios *now, uint8_t byte, int number)
{
    enum { CONTROL_BIT = 0100, CONTROLS_END = 0x20, DELETE = 0x7f };
    const bool control = (now->c_lflag & ECHOCTL) && byte != '\t' && (byte < CONTROLS_END || byte == DELETE);
    const uint8_t shown[] = {'^', byte ^ CONTROL_BIT};
    const int slave = ioctl(t->master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (slave >= 0 && !(now->c_lflag & NOFLSH))
        ioctl(slave, TCFLSH, TCIOFLUSH);
    if ((now->c_iflag & IXON) && t->stopped && write(t->master, &now->c_cc[VSTART], 1) == 1)
        t->stopped = false;
    if (slave >= 0 && (now->c_lflag & ECHO) && write(slave, control ? shown : &byte, control ? sizeof shown : 1) < 0)
        errno = 0; /* there is no room for it */
    if (slave >= 0)
        close(slave);
    terminal_signal(t->root, t->foreground, 0, number);
}

/* A piece of what is typed. Returns how much of it the terminal has taken, or -errno. */
static long type_piece(struct file *file, const uint8_t *bytes, size_t size)
{
    struct termios now;
    struct terminal *t = file->terminal;
    int number;
    if (tcgetattr(file->real, &now) < 0)
        return -errno;
    pthread_mutex_lock(&terminals_lock);
    const size_t plain = before_signal(t, &now, bytes, size, &number);
    long put = plain ? result_of(write(file->real, bytes, plain)) : 0;
    for (long i = 0; i < put; i++)
        type_one(t, &now, bytes[i]);
    t->early |= !t->opened && put > 0;
    if (put == (long)plain && number) {
        type_signal(t, &now, bytes[plain], number);
        put++;
    }
    pthread_mutex_unlock(&terminals_lock);
    return put;
}

/* A write to the master: what is typed. One that may wait goes on until everything is taken. */
long terminal_type(struct work *w, struct file *file, size_t size)
{
    while (w->progress < size) {
        long put = type_piece(file, w->payload + w->progress, size - w->progress);
        if (put == -EAGAIN || put == 0) {
            if (w->progress && file->wants_nonblocking)
                break;
            return would_wait(w, file, POLLOUT);
        }
        if (put < 0)
            return w->progress ? (long)w->progress : put;
        w->progress += (size_t)put;
    }
    return (long)w->progress;
}

static const struct {
    uint32_t code;
    uint8_t in, out;
} known[] = {
    {TIOCGPTN, 0, 4}, {TIOCSPTLCK, 4, 0}, {TIOCGPTLCK, 0, 4}, {TIOCGPTPEER, 0, 0}, {TIOCSWINSZ, WINDOW_BYTES, 0},
    {TIOCGPGRP, 0, 4}, {TIOCSPGRP, 4, 0}, {TIOCGSID, 0, 4}, {TIOCSCTTY, 0, 0}, {TIOCNOTTY, 0, 0}, {TCSBRK, 0, 0},
    {TCSBRKP, 0, 0}, {TCXONC, 0, 0}, {TCFLSH, 0, 0}, {TIOCOUTQ, 0, 4}, {TIOCPKT, 4, 0}, {TIOCGPKT, 0, 4},
    {TCSETS, TERMINAL_STATE_BYTES, 0}, {TCSETSW, TERMINAL_STATE_BYTES, 0}, {TCSETSF, TERMINAL_STATE_BYTES, 0},
};

/* What only terminals of the family's are asked, or what they do differently from others; with the bytes read and written. */
bool terminal_knows(unsigned long code, size_t *in, size_t *out)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code) {
            *in = known[i].in;
            *out = known[i].out;
            return true;
        }
    return false;
}

static long put_bytes(struct work *w, const void *from, size_t size)
{
    uint8_t *to = out_room(w, size);
    if (!to)
        return -ENOMEM;
    memcpy(to, from, size);
    return 0;
}

/* Whether the caller may ask FILE about its session: by the master, or as one of that session. */
static bool may_ask(const struct file *file, const struct membership *who)
{
    const struct terminal *t = file->terminal;
    return file->end == MASTER_END || (t->session && t->session == who->session && !t->hung_up);
}

/* 0: GROUP is one of that session. */
static long find_group(struct session *root, int group, int session)
{
    long result = -ESRCH;
    pthread_mutex_lock(&table_lock);
    for (struct session *s = root; s && result; s = s->next_member)
        if (s->member.group == group)
            result = s->member.session == session ? 0 : -EPERM;
    pthread_mutex_unlock(&table_lock);
    return result;
}

static long set_foreground(struct work *w, struct file *file, int group)
{
    struct terminal *t = file->terminal;
    const struct membership who = terminal_caller(w->session);
    long result = group < 0 ? -EINVAL : find_group(w->session->root, group, who.session);
    pthread_mutex_lock(&terminals_lock);
    if (!t->session || t->session != who.session || t->hung_up)
        result = -ENOTTY;
    else if (!result)
        t->foreground = group;
    pthread_mutex_unlock(&terminals_lock);
    return result;
}

static long take_terminal(struct work *w, struct terminal *t)
{
    const struct membership who = terminal_caller(w->session);
    pthread_mutex_lock(&terminals_lock);
    terminal_become_controlling(t, &who);
    bool has = who.session == who.pid && t->session == who.session && !t->hung_up;
    pthread_mutex_unlock(&terminals_lock);
    return has ? 0 : -EPERM;
}

/* Only for who leads the session, and so for all in it: one alone cannot leave its terminal here. */
static long leave_terminal(struct work *w, struct terminal *t)
{
    const struct membership who = terminal_caller(w->session);
    pthread_mutex_lock(&terminals_lock);
    bool has = who.session == who.pid && t->session == who.session && !t->hung_up;
    if (has) {
        terminal_signal(t->root, t->foreground, 0, SIGHUP);
        terminal_signal(t->root, t->foreground, 0, SIGCONT);
        t->session = t->foreground = 0;
    }
    pthread_mutex_unlock(&terminals_lock);
    return has ? 0 : -ENOTTY;
}

static long open_peer(struct work *w, struct file *file)
{
    const int flags = (int)ARGUMENT(2);
    const struct membership who = terminal_caller(w->session);
    struct terminal *t = file->terminal;
    if (file->end != MASTER_END)
        return -ENOTTY;
    pthread_mutex_lock(&terminals_lock);
    struct file *slave = terminal_file(t, SLAVE_END, flags & (O_ACCMODE | O_NONBLOCK));
    long error = -errno;
    if (slave && !(flags & O_NOCTTY))
        terminal_become_controlling(t, &who);
    pthread_mutex_unlock(&terminals_lock);
    return slave ? enter_file(w->session, slave, 0, flags & O_CLOEXEC) : error;
}

/* Both ends have one size; who is in the foreground hears of a new one. */
static long resize(struct file *file, const uint8_t *in)
{
    uint8_t before[WINDOW_BYTES];
    struct terminal *t = file->terminal;
    if (ioctl(file->real, TIOCGWINSZ, before) < 0 || ioctl(file->real, TIOCSWINSZ, in) < 0)
        return -errno;
    if (memcmp(before, in, sizeof before) == 0)
        return 0;
    pthread_mutex_lock(&terminals_lock);
    terminal_signal(t->root, t->foreground, 0, SIGWINCH);
    pthread_mutex_unlock(&terminals_lock);
    return 0;
}

/* Output is stopped, or goes on, by a call or (TCIOFF, TCION) by a character for the other side. */
static long control_flow(struct file *file, int what)
{
    struct terminal *t = file->terminal;
    long result = result_of(ioctl(file->real, TCXONC, what));
    pthread_mutex_lock(&terminals_lock);
    if (!result && (what == TCOOFF || what == TCOON))
        t->suspended = what == TCOOFF;
    pthread_mutex_unlock(&terminals_lock);
    return result;
}

/* Who changes a terminal from the background is stopped, unless it has turned that signal away (argument 3). */
static bool changes(unsigned long code)
{
    return code == TIOCSPGRP || code == TCSETS || code == TCSETSW || code == TCSETSF || code == TCXONC || code == TCFLSH ||
           code == TCSBRK || code == TCSBRKP;
}

static long ask_session(struct work *w, const struct file *file, unsigned long code)
{
    const struct membership who = terminal_caller(w->session);
    pthread_mutex_lock(&terminals_lock);
    const bool may = may_ask(file, &who);
    const int session = file->terminal->session, foreground = file->terminal->foreground;
    pthread_mutex_unlock(&terminals_lock);
    if (!may || (code == TIOCGSID && !session))
        return -ENOTTY;
    return put_bytes(w, code == TIOCGSID ? &session : &foreground, sizeof session);
}

/* IN: as many bytes as terminal_knows said. */
long terminal_ioctl(struct work *w, struct file *file, unsigned long code, const uint8_t *in)
{
    struct terminal *t = file->terminal;
    int value = 0;
    memcpy(&value, in, sizeof value);
    if (changes(code) && file->end == SLAVE_END && !ARGUMENT(3) && is_in_background(w->session, t))
        return -IN_BACKGROUND;
    switch (code) {
    case TIOCGPTN: return file->end == MASTER_END ? put_bytes(w, &t->number, sizeof t->number) : -ENOTTY;
    case TIOCGPTPEER: return open_peer(w, file);
    case TIOCSWINSZ: return resize(file, in);
    case TIOCGPGRP: case TIOCGSID: return ask_session(w, file, code);
    case TIOCSPGRP: return set_foreground(w, file, value);
    case TIOCSCTTY: return take_terminal(w, t);
    case TIOCNOTTY: return leave_terminal(w, t);
    case TCXONC: return control_flow(file, (int)ARGUMENT(2));
    case TCFLSH: case TCSBRK: case TCSBRKP: return result_of(ioctl(file->real, code, (long)ARGUMENT(2)));
    case TCSETS: case TCSETSW: case TCSETSF: case TIOCSPTLCK: case TIOCPKT: return result_of(ioctl(file->real, code, in));
    case TIOCGPTLCK: case TIOCOUTQ: case TIOCGPKT: {
        long result = result_of(ioctl(file->real, code, &value));
        return result < 0 ? result : put_bytes(w, &value, sizeof value);
    }
    default: return -ENOTTY;
    }
}
