/* Pseudo-terminals in a checkpoint.  What lies in one is taken out and put in again, since the kernel shows it in no other
 * way: what was typed line by line, as a reader would get it, then the line that is being typed; and what was written and not
 * read.  All members are parked meanwhile.
 *
 * It is put in with a setting in which the line discipline changes nothing, and answers nothing.  The kernel works on what is
 * typed when it pleases; so a last character follows, which stops the output, of which the master is told.
 */
#include "shadow/terminals/terminals.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WINDOW_BYTES = 8, LINE_ROOM = 4096, MOST_RECORDS = 1 << 16, SETTLE_MS = 1000, BYTES = 256 };

enum record_kind { RECORD_PLAIN /* a line with its end, or what is no line */, RECORD_MARKED /* ended by the end of file */ };

struct moved_terminal {
    int32_t number, session, foreground;
    uint8_t has_master, hung_up, opened, locked, packets, stopped, suspended, reserved;
    uint8_t state[TERMINAL_STATE_BYTES], window[WINDOW_BYTES];
    uint32_t output, records; /* bytes, and how many struct moved_record with what belongs to them */
};

struct moved_record {
    uint32_t kind, size;
};

struct text {
    uint8_t *at;
    size_t used, room;
};

static bool add(struct text *text, const void *from, size_t size)
{
    if (text->room - text->used < size)
        return false;
    memcpy(text->at + text->used, from, size);
    text->used += size;
    return true;
}

static int get_state(int real, struct termios *to)
{
    memset(to, 0, sizeof *to);
    return ioctl(real, TCGETS, to); /* as the kernel has it, which is the beginning of what the C library has */
}

static bool ends_line(const struct termios *now, uint8_t byte)
{
    return byte == '\n' || (byte && (byte == now->c_cc[VEOL] || byte == now->c_cc[VEOL2]));
}

/* All that can be read. Returns 0 or -errno. */
static long take_input(int slave, const struct termios *now, struct text *to, uint32_t *records)
{
    const bool lines = now->c_lflag & ICANON;
    uint8_t line[LINE_ROOM];
    while (*records < MOST_RECORDS) {
        ssize_t got = read(slave, line, sizeof line);
        if (got < 0)
            return errno == EAGAIN ? 0 : -errno;
        if (!got && !lines)
            return 0;
        const bool marked = lines && (!got || !ends_line(now, line[got - 1]));
        const struct moved_record head = {marked ? RECORD_MARKED : RECORD_PLAIN, (uint32_t)got};
        if (!add(to, &head, sizeof head) || !add(to, line, (size_t)got))
            return -EFBIG;
        ++*records;
    }
    return -EFBIG;
}

/* The line that is being typed, too: it can be read where there are no lines. */
static long take_all_input(int slave, const struct termios *now, struct text *to, uint32_t *records)
{
    long failed = take_input(slave, now, to, records);
    if (failed || !(now->c_lflag & ICANON))
        return failed;
    struct termios plain = *now;
    plain.c_lflag = 0;
    plain.c_iflag = 0;
    plain.c_cc[VMIN] = 1;
    plain.c_cc[VTIME] = 0;
    if (ioctl(slave, TCSETS, &plain) < 0)
        return -errno;
    return take_input(slave, &plain, to, records);
}

static long take_output(int master, struct text *to)
{
    for (;;) {
        ssize_t got = read(master, to->at + to->used, to->room - to->used);
        if (got < 0)
            return errno == EAGAIN || errno == EIO ? 0 : -errno;
        if (!got)
            return to->used == to->room ? -EFBIG : 0;
        to->used += (size_t)got;
    }
}

/* A byte that no record has, nor any of TAKEN; 0: there is none. */
static uint8_t absent_byte(const bool present[BYTES], uint8_t taken, uint8_t other)
{
    for (int byte = 1; byte < BYTES; byte++)
        if (!present[byte] && byte != taken && byte != other)
            return (uint8_t)byte;
    return 0;
}

static bool note_bytes(const uint8_t *at, const uint8_t *end, uint32_t records, bool present[BYTES])
{
    for (uint32_t i = 0; i < records; i++) {
        struct moved_record one;
        if ((size_t)(end - at) < sizeof one)
            return false;
        memcpy(&one, at, sizeof one);
        at += sizeof one;
        if (one.kind > RECORD_MARKED || one.size > LINE_ROOM || one.size > (size_t)(end - at))
            return false;
        for (uint32_t k = 0; k < one.size; k++)
            present[*at++] = true;
    }
    return true;
}

static long put_all(int real, const uint8_t *at, size_t size)
{
    while (size) {
        ssize_t put = write(real, at, size);
        if (put <= 0)
            return put < 0 ? -errno : -ENOSPC;
        at += put;
        size -= (size_t)put;
    }
    return 0;
}

static long put_records(int master, const uint8_t *at, uint32_t records, uint8_t marker)
{
    long failed = 0;
    for (uint32_t i = 0; i < records && !failed; i++) {
        struct moved_record one;
        memcpy(&one, at, sizeof one);
        at += sizeof one;
        failed = put_all(master, at, one.size);
        at += one.size;
        if (!failed && one.kind == RECORD_MARKED)
            failed = put_all(master, &marker, 1);
    }
    return failed;
}

/* Waits until the kernel has worked on all that was typed. */
static long settle(int master, uint8_t stop)
{
    const int on = 1, off = 0;
    struct pollfd one = {.fd = master, .events = POLLPRI};
    if (!stop)
        return 0;
    if (ioctl(master, TIOCPKT, &on) < 0)
        return -errno;
    long failed = put_all(master, &stop, 1);
    if (!failed)
        poll(&one, 1, SETTLE_MS); /* it may not come: where the reader has more than fits, the kernel waits for it */
    ioctl(master, TIOCPKT, &off);
    return failed;
}

/* A setting that changes nothing of what passes. */
static struct termios neutral(const struct termios *state)
{
    struct termios plain = *state;
    plain.c_iflag = 0;
    plain.c_oflag &= ~(tcflag_t)OPOST;
    plain.c_lflag = state->c_lflag & ICANON;
    memset(plain.c_cc, _POSIX_VDISABLE, sizeof plain.c_cc);
    if (state->c_lflag & ICANON) {
        plain.c_cc[VEOL] = state->c_cc[VEOL];
        plain.c_cc[VEOL2] = state->c_cc[VEOL2];
    } else {
        plain.c_cc[VMIN] = 1;
    }
    return plain;
}

/* Puts in what AT has: output, and what was typed. Returns 0 or -errno. */
static long fill(int master, int slave, const struct moved_terminal *m, const uint8_t *at, size_t size)
{
    struct termios state = {0};
    memcpy(&state, m->state, sizeof m->state);
    struct termios plain = neutral(&state);
    bool present[BYTES] = {false};
    if (m->output > size || !note_bytes(at + m->output, at + size, m->records, present))
        return -EPROTO;
    if (ioctl(master, TCSETS, &plain) < 0)
        return -errno;
    if (m->suspended)
        ioctl(slave, TCXONC, TCOON);
    long failed = put_all(slave, at, m->output);
    if (m->records && !failed) {
        const uint8_t marker = absent_byte(present, plain.c_cc[VEOL], plain.c_cc[VEOL2]);
        const uint8_t stop = marker ? absent_byte(present, marker, plain.c_cc[VEOL]) : 0;
        plain.c_iflag = stop ? IXON : 0;
        plain.c_cc[VSTOP] = stop;
        if (state.c_lflag & ICANON)
            plain.c_cc[VEOF] = marker;
        failed = ioctl(master, TCSETS, &plain) < 0 ? -errno : put_records(master, at + m->output, m->records, marker);
        if (!failed)
            failed = settle(master, stop);
        plain.c_iflag = 0; /* which lets output go on */
        ioctl(master, TCSETS, &plain);
    }
    return failed;
}

/* The setting, and what may be done after all is in it. */
static long finish(int master, int slave, const struct moved_terminal *m)
{
    struct termios state = {0};
    memcpy(&state, m->state, sizeof m->state);
    const int locked = m->locked, packets = m->packets;
    if (ioctl(master, TCSETS, &state) < 0 || ioctl(master, TIOCSWINSZ, m->window) < 0)
        return -errno;
    if (m->stopped && (state.c_iflag & IXON) && put_all(master, &state.c_cc[VSTOP], 1) < 0)
        return -errno;
    if (m->suspended && slave >= 0)
        ioctl(slave, TCXONC, TCOOFF);
    return ioctl(master, TIOCSPTLCK, &locked) < 0 || ioctl(master, TIOCPKT, &packets) < 0 ? -errno : 0;
}

static long put_back(int master, int slave, const struct moved_terminal *m, const uint8_t *at, size_t size)
{
    long failed = slave >= 0 ? fill(master, slave, m, at, size) : 0;
    long unfinished = finish(master, slave, m);
    return failed ? failed : unfinished;
}

static int open_peer(int master)
{
    const int off = 0;
    if (ioctl(master, TIOCSPTLCK, &off) < 0)
        return -1;
    return ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
}

/* What lies in a terminal whose two ends can be used: TO has it, and so has the terminal again. */
static long take_content(int master, struct moved_terminal *m, struct text *output, struct text *input)
{
    struct termios state = {0};
    const int off = 0;
    int slave = open_peer(master);
    if (slave < 0)
        return -errno;
    memcpy(&state, m->state, sizeof m->state);
    ioctl(master, TIOCPKT, &off);
    long failed = take_all_input(slave, &state, input, &m->records);
    if (!failed)
        failed = take_output(master, output);
    m->output = (uint32_t)output->used;
    if (!failed && !add(output, input->at, input->used))
        failed = -EFBIG;
    long lost = put_back(master, slave, m, output->at, output->used);
    close(slave);
    return failed ? failed : lost;
}

static ssize_t describe(struct terminal *t, uint8_t *to, size_t room, const char **why) REQUIRES(terminals_lock);
static ssize_t describe(struct terminal *t, uint8_t *to, size_t room, const char **why)
{
    struct moved_terminal m = {.number = t->number, .session = t->session, .foreground = t->foreground,
                               .has_master = t->master >= 0, .hung_up = t->hung_up, .opened = t->opened,
                               .stopped = t->stopped, .suspended = t->suspended};
    struct text output = {to + sizeof m, 0, room - sizeof m};
    long failed = 0;
    int locked = 0, packets = 0;
    t->literal = false;
    if (t->master >= 0) {
        struct termios state;
        if (get_state(t->master, &state) < 0 || ioctl(t->master, TIOCGWINSZ, m.window) < 0 ||
            ioctl(t->master, TIOCGPTLCK, &locked) < 0 || ioctl(t->master, TIOCGPKT, &packets) < 0)
            return -errno;
        memcpy(m.state, &state, sizeof m.state);
        m.locked = locked != 0;
        m.packets = packets != 0;
        if (t->early && !t->opened) {
            *why = "a pseudo-terminal: something was typed before it was opened";
            return -EBUSY;
        }
        struct text input = {malloc(room), 0, room};
        failed = !input.at ? -ENOMEM : t->opened ? take_content(t->master, &m, &output, &input) : 0;
        free(input.at);
        if (failed)
            *why = "a pseudo-terminal: what is in it cannot be saved";
    }
    memcpy(to, &m, sizeof m);
    return failed ? failed : (ssize_t)(sizeof m + output.used);
}

/* Of either end: what the terminal is, and what is in it. */
ssize_t terminal_described(struct file *file, uint8_t *to, size_t room, const char **why)
{
    pthread_mutex_lock(&terminals_lock);
    ssize_t size = describe(file->terminal, to, room, why);
    pthread_mutex_unlock(&terminals_lock);
    return size;
}

/* The terminal of an image, made when its first end is met. NULL: errno. */
static struct terminal *revived(struct session *root, const struct moved_terminal *m, const uint8_t *at, size_t size)
    REQUIRES(terminals_lock);
static struct terminal *revived(struct session *root, const struct moved_terminal *m, const uint8_t *at, size_t size)
{
    struct terminal *t = terminal_numbered(root, m->number);
    if (t && t->kept >= 0)
        return t;
    if (t || !(t = terminal_new(root, m->number)))
        return NULL;
    t->kept = t->master;
    t->master = -1;
    t->session = m->session;
    t->foreground = m->foreground;
    t->hung_up = m->hung_up;
    t->stopped = m->stopped;
    t->suspended = m->suspended;
    t->opened = m->opened;
    int slave = m->opened ? open_peer(t->kept) : -1;
    long failed = m->opened && slave < 0 ? -errno : 0;
    if (!failed && m->has_master)
        failed = put_back(t->kept, slave, m, at, size);
    if (slave >= 0)
        close(slave);
    if (!failed)
        return t;
    errno = (int)-failed;
    return NULL;
}

/* One end of a terminal, as its description has it, which is hostile. */
struct file *terminal_again(struct session *s, const struct described_file *d, const uint8_t *content)
{
    struct moved_terminal m;
    struct file *file = NULL;
    errno = EPROTO;
    if (d->content_size < sizeof m || d->end > SLAVE_END)
        return NULL;
    memcpy(&m, content, sizeof m);
    if (m.number < 0 || m.session < 0 || m.foreground < 0 || (d->end == MASTER_END && !m.has_master))
        return NULL;
    pthread_mutex_lock(&terminals_lock);
    struct terminal *t = revived(s->root, &m, content + sizeof m, d->content_size - sizeof m);
    if (t && d->end == MASTER_END)
        t->master = t->master < 0 ? fcntl(t->kept, F_DUPFD_CLOEXEC, 0) : -1; /* there is one file of it */
    if (t && (d->end == SLAVE_END || t->master >= 0))
        file = terminal_file(t, d->end, d->flags);
    pthread_mutex_unlock(&terminals_lock);
    return file;
}
