/* Pseudo-terminals of the family's: they are at home (shadow/terminals), and their signals are sent from here.
 *
 * Who has typed what makes a signal, has changed a terminal's size or closed it learns with the answer that there is
 * something to send; is that one not alive any more, the next member that asks home for anything does it.
 */
#include "terminals.h"

#include "runtime/process/groups.h"
#include "runtime/process/process.h"
#include "runtime/signals/signals.h"
#include "runtime/signals/stops.h"
#include "runtime/text.h"

void send_terminal_signals(struct thread *self)
{
    struct sent_signal sent[MOST_SENT];
    while (take_news_of_signals()) {
        struct request request = {.call = OP_TERMINAL_SIGNALS};
        struct vector out = {sent, sizeof sent};
        long count = ask(self, &request, NULL, 0, &out, 1, NULL);
        for (long i = 0; i < count && i < MOST_SENT; i++)
            if (sent[i].real_pid > 1 && sent[i].number > 0 && sent[i].number <= SIGNAL_COUNT)
                send_signal(sent[i].real_pid, sent[i].number, NULL);
    }
}

/* This process is not in the foreground of its terminal, and home has not done the call that NUMBER is for. Returns 0: it is
 * to be done all the same, or -errno. */
long settle_background(struct thread *self, int number)
{
    if (turns_away(self, number))
        return number == SIGTTOU ? 0 : -EIO;
    if (!has_job_control(self))
        return -EIO;
    signal_group(self, 0, number);
    return -RESTART_ALWAYS;
}

/* Requests that are for pseudo-terminals alone, with the bytes they read and write; those without pass a number. */
long terminal_control(struct trap *t, bool *known)
{
    enum { TERMINAL_BYTES = 36, WINDOW_BYTES = 8 };
    static const struct {
        uint32_t code;
        uint8_t in, out;
    } requests[] = {
        {TIOCGPTN, 0, sizeof(int)}, {TIOCSPTLCK, sizeof(int), 0}, {TIOCGPTLCK, 0, sizeof(int)}, {TIOCGPTPEER, 0, 0},
        {TIOCSWINSZ, WINDOW_BYTES, 0}, {TIOCGPGRP, 0, sizeof(int)}, {TIOCSPGRP, sizeof(int), 0},
        {TIOCGSID, 0, sizeof(int)}, {TIOCSCTTY, 0, 0}, {TIOCNOTTY, 0, 0}, {TCSBRK, 0, 0}, {TCSBRKP, 0, 0}, {TCXONC, 0, 0},
        {TCFLSH, 0, 0}, {TIOCOUTQ, 0, sizeof(int)}, {TIOCPKT, sizeof(int), 0}, {TIOCGPKT, 0, sizeof(int)},
        {TCSETS, TERMINAL_BYTES, 0}, {TCSETSW, TERMINAL_BYTES, 0}, {TCSETSF, TERMINAL_BYTES, 0},
    };
    for (size_t i = 0; i < COUNT(requests); i++) {
        if (requests[i].code != (uint32_t)t->a[1])
            continue;
        struct request request = {.call = __NR_ioctl, .arguments = {(int)t->a[0], requests[i].code, (int64_t)t->a[2]}};
        struct vector in = {(void *)t->a[2], requests[i].in}, out = {(void *)t->a[2], requests[i].out};
        long result = ask(t->self, &request, &in, requests[i].in != 0, &out, requests[i].out != 0, NULL);
        if (result == -IN_BACKGROUND && !(result = settle_background(t->self, SIGTTOU))) {
            request.arguments[3] = 1;
            result = ask(t->self, &request, &in, requests[i].in != 0, &out, requests[i].out != 0, NULL);
        }
        *known = true;
        return result;
    }
    *known = false;
    return -ENOTTY;
}
