/* The starter, on a socket of its own, when the channel goes straight home (protocol.h, struct control).
 *
 * Where the shadow would hand over a descriptor beside its answer, the starter is asked for one of its machine's. */
#include "control.h"

#include "channel.h"
#include "runtime/process/process.h"
#include "runtime/trap.h"

struct lock passed_fd_lock;
int passed_control GUARDED_BY(passed_fd_lock); /* came as the second descriptor beside the last answer; 0: none did */

void tell_starter_all(struct control said[], size_t count)
{
    struct vector part = {said, count * sizeof *said};
    if (!process.direct)
        return;
    while (part.size) {
        long sent = SYSTEM(__NR_writev, process.control, &part, 1);
        if (sent < 0 && sent != -EINTR)
            return;
        part.base = (uint8_t *)part.base + (sent > 0 ? sent : 0);
        part.size -= sent > 0 ? (size_t)sent : 0;
    }
}

void tell_starter(int what, int64_t value)
{
    struct control said = {.what = (uint32_t)what, .value = value};
    tell_starter_all(&said, 1);
}

enum { TWO_DESCRIPTORS = 24 /* bytes of a control message */ };

/* Says WHAT and waits for the answer: 0 or -errno. A descriptor that comes beside it takes the lowest free number,
 * which is PASSED_FD. */
long ask_starter(int what, int64_t value)
{
    struct control answer = {0};
    size_t have = 0;
    passed_control = 0;
    if (!process.direct)
        return 0;
    tell_starter(what, value);
    while (have < sizeof answer) {
        uint64_t room[4] = {0}; /* length, kind, up to two descriptors */
        struct vector part = {(uint8_t *)&answer + have, sizeof answer - have};
        struct message message = {.parts = &part, .part_count = 1, .control = room, .control_size = sizeof room};
        long got = SYSTEM(__NR_recvmsg, process.control, &message, 0);
        if (got == -EINTR)
            continue;
        if (got <= 0)
            die(EXIT_CHANNEL_LOST); /* without its starter it cannot go on */
        if (message.control_size && room[0] == TWO_DESCRIPTORS)
            passed_control = (int)(room[2] >> 32);
        have += (size_t)got;
    }
    return answer.value;
}
