/* A process beside the program that opens /proc/<pid>/maps and /proc/<pid>/pagemap for its members, and reads /proc/<pid>/stat.
 *
 * The lists that the first process opens before its filter closes are its own; a child gets copies of the descriptors
 * and could neither read its own memory's lists by them nor open others.  The broker was there before the filter.  It
 * opens them for whom the kernel names as the sender, and for nobody else; what it reads of others anybody may.  It does
 * nothing besides, has nothing of the program's in its memory, and ends with the last member.  It is nobody's child in the
 * family.
 *
 * All members ask by copies of one socket, one at a time: a word that they share says who does.  Of one that was killed
 * meanwhile, and that nobody has waited for yet, only the broker can tell that it asks no more: it frees the word.
 */
#include "broker.h"

#include "runtime/remote/control.h"
#include "runtime/layout.h"
#include "process.h"
#include "runtime/text.h"
#include "runtime/trap.h"

#define SOL_SOCKET_LEVEL 1
#define CLOSE_RECEIVED 0x40000000 /* MSG_CMSG_CLOEXEC */
#define NO_SIGNAL 0x4000
enum { AF_LOCAL = 1, SEQPACKET = 5, CLOSE_ON_EXEC = 02000000, PASS_CREDENTIALS = 16, CREDENTIALS = 2, RIGHTS = 1,
       CREDENTIAL_BYTES = 28, RIGHTS_BYTES = 20, WANTS_MAPS = 'm', WANTS_PAGES = 'p', WANTS_STATUS = 's', WANTS_WORD = 'w',
       STATUS_BYTES_MOST = 1024,
       BROKER_HOME = 3 };

static volatile uint32_t *asking UNGUARDED("set before there is a second thread; the word is changed by atomic instructions");

/* As in a control message: length, level and kind, then what it is about. */
struct with_credentials {
    uint64_t length;
    int level, kind;
    int pid;
    unsigned uid, gid, padding;
};

struct with_rights {
    uint64_t length;
    int level, kind;
    int fd, padding;
};

struct asked {
    int what, pid;
};

static long open_list(int pid, int what)
{
    char path[64];
    struct text text = {path, 0, sizeof path - 1};
    put(&text, "/proc/");
    put_number(&text, (unsigned long)pid, 10);
    put(&text, what == WANTS_MAPS ? "/maps" : what == WANTS_PAGES ? "/pagemap" : "/stat");
    path[text.used] = 0;
    return SYSTEM(__NR_openat, AT_FDCWD, path, CLOSE_ON_EXEC);
}

/* Returns how much there is, 0: nothing. */
static size_t read_status(int pid, char *to, size_t room)
{
    const long fd = pid > 0 ? open_list(pid, WANTS_STATUS) : -ESRCH;
    const long got = fd < 0 ? 0 : SYSTEM(__NR_read, fd, to, room);
    if (fd >= 0)
        SYSTEM(__NR_close, fd);
    return got > 0 ? (size_t)got : 0;
}

static bool has_ended(int pid)
{
    char status[STATUS_BYTES_MOST];
    size_t size = read_status(pid, status, sizeof status);
    while (size && status[size - 1] != ')') /* of the program's name, which may have others */
        size--;
    return size && (status[size + 1] == 'Z' || status[size + 1] == 'X');
}

static void free_word(volatile uint32_t *word, int pid)
{
    uint32_t holder = (uint32_t)pid;
    if (has_ended(pid) && __atomic_compare_exchange_n(word, &holder, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        SYSTEM(__NR_futex, word, FUTEX_WAKE, 1);
}

/* What it does until nobody is left to ask. */
static void serve(volatile uint32_t *word) __attribute__((noreturn));
static void serve(volatile uint32_t *word)
{
    for (;;) {
        struct asked asked = {0};
        struct with_credentials who = {0};
        char status[STATUS_BYTES_MOST];
        struct vector part[2] = {{&asked, sizeof asked}, {status, 0}};
        struct message message = {.parts = part, .part_count = 1, .control = &who, .control_size = sizeof who};
        long got = SYSTEM(__NR_recvmsg, BROKER_HOME, &message, CLOSE_RECEIVED);
        if (got == -EINTR)
            continue;
        if (got <= 0)
            die(0);
        bool known = message.control_size && who.length == CREDENTIAL_BYTES && who.level == SOL_SOCKET_LEVEL &&
                     who.kind == CREDENTIALS;
        if (known && asked.what == WANTS_WORD) {
            free_word(word, asked.pid);
            continue;
        }
        const bool lists = known && (asked.what == WANTS_MAPS || asked.what == WANTS_PAGES);
        long fd = lists ? open_list(who.pid, asked.what) : -EPERM;
        if (known && asked.what == WANTS_STATUS)
            part[1].size = read_status(asked.pid, status, sizeof status);
        struct with_rights rights = {RIGHTS_BYTES, SOL_SOCKET_LEVEL, RIGHTS, (int)fd, 0};
        asked.pid = who.pid;
        asked.what = fd < 0 && !part[1].size ? (int)fd : asked.what;
        struct message answer = {.parts = part, .part_count = 2, .control = fd < 0 ? NULL : &rights,
                                 .control_size = fd < 0 ? 0 : sizeof rights};
        while (SYSTEM(__NR_sendmsg, BROKER_HOME, &answer, NO_SIGNAL) == -EINTR)
            ;
        if (fd >= 0)
            SYSTEM(__NR_close, fd);
    }
}

static void become_broker(int end, volatile uint32_t *word) __attribute__((noreturn));
static void become_broker(int end, volatile uint32_t *word)
{
    SYSTEM(__NR_dup3, end, BROKER_HOME, CLOSE_ON_EXEC);
    SYSTEM(__NR_close_range, 0, BROKER_HOME - 1, 0);
    SYSTEM(__NR_close_range, BROKER_HOME + 1, ~0u, 0);
    SYSTEM(__NR_munmap, LOWEST_PLACE, THREAD_PLACE - LOWEST_PLACE);
    serve(word);
}

/* Before the filter closes. Without it, only the first process can be saved. */
void broker_start(void)
{
    int pair[2];
    const int yes = 1;
    asking = NULL;
    if (!process.family)
        return;
    long word = SYSTEM(__NR_mmap, 0, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (is_error(word) || SYSTEM(__NR_socketpair, AF_LOCAL, SEQPACKET | CLOSE_ON_EXEC, 0, pair) < 0)
        return;
    if (SYSTEM(__NR_setsockopt, pair[1], SOL_SOCKET_LEVEL, PASS_CREDENTIALS, &yes, sizeof yes) == 0) {
        long child = SYSTEM(__NR_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            if (SYSTEM(__NR_clone, SIGCHLD, 0, 0, 0, 0) == 0)
                become_broker(pair[1], (volatile uint32_t *)word);
            die(0);
        }
        if (child > 0) {
            while (SYSTEM(__NR_wait4, child, 0, 0, 0) == -EINTR)
                ;
            if (SYSTEM(__NR_dup3, pair[0], BROKER_FD, CLOSE_ON_EXEC) == BROKER_FD)
                asking = (volatile uint32_t *)word;
        }
    }
    if (pair[0] != BROKER_FD)
        SYSTEM(__NR_close, pair[0]);
    SYSTEM(__NR_close, pair[1]);
}

/* For a process that takes the place of this one: what it needs to go on asking. */
volatile uint32_t *broker_keep(void)
{
    return asking;
}

void broker_again(volatile uint32_t *kept)
{
    asking = kept;
}

/* The word has the number of the process that asks. One that has died meanwhile asks no more. */
static void begin_asking(void)
{
    const struct __kernel_timespec moment = {0, MILLISECOND_NS};
    for (uint32_t before = 0;;) {
        uint32_t other = 0;
        if (__atomic_compare_exchange_n(asking, &other, (uint32_t)process.real_id, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return;
        if (SYSTEM(__NR_kill, other, 0) == -ESRCH &&
            __atomic_compare_exchange_n(asking, &other, (uint32_t)process.real_id, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return;
        if (other == before) {
            struct asked asked = {WANTS_WORD, (int)other};
            struct vector part = {&asked, sizeof asked};
            SYSTEM(__NR_writev, BROKER_FD, &part, 1);
        }
        before = other;
        SYSTEM(__NR_futex, asking, FUTEX_WAIT, other, &moment);
    }
}

static void end_asking(void)
{
    __atomic_store_n(asking, 0, __ATOMIC_SEQ_CST);
    SYSTEM(__NR_futex, asking, FUTEX_WAKE, 1);
}

/* What /proc/<REAL>/stat says here. Returns how much that is, 0: nothing. */
long broker_status(int real, char *to, size_t room)
{
    struct asked asked = {WANTS_STATUS, real};
    struct vector part[2] = {{&asked, sizeof asked}, {to, room}};
    long got;
    if (!asking)
        return 0;
    begin_asking();
    while (SYSTEM(__NR_writev, BROKER_FD, part, 1) == -EINTR)
        ;
    do {
        struct message message = {.parts = part, .part_count = 2};
        got = SYSTEM(__NR_recvmsg, BROKER_FD, &message, 0);
    } while (got == -EINTR || (got >= (long)sizeof asked && asked.pid != process.real_id)); /* else of one that has died since */
    end_asking();
    return asked.what == WANTS_STATUS && got > (long)sizeof asked ? got - (long)sizeof asked : 0;
}

/* The list becomes the descriptor AT. */
static bool fetch(int what, int at)
{
    struct asked asked = {what, 0};
    struct vector part = {&asked, sizeof asked};
    while (SYSTEM(__NR_writev, BROKER_FD, &part, 1) == -EINTR)
        ;
    for (;;) {
        uint64_t room[4] = {0};
        struct message message = {.parts = &part, .part_count = 1, .control = room, .control_size = sizeof room};
        long got = SYSTEM(__NR_recvmsg, BROKER_FD, &message, 0);
        if (got == -EINTR)
            continue;
        if (got != (long)sizeof asked)
            return false;
        bool mine = asked.pid == process.real_id; /* else of one that has died since */
        bool good = asked.what == what && message.control_size;
        if (mine && good)
            SYSTEM(__NR_dup3, PASSED_FD, at, 0);
        if (message.control_size)
            SYSTEM(__NR_close, PASSED_FD);
        if (mine && (good || asked.what < 0))
            return good;
    }
}

/* From now on the process's lists are its own. */
bool broker_lists(void)
{
    if (process.own_lists)
        return true;
    if (!asking)
        return false;
    begin_asking();
    process.own_lists = fetch(WANTS_MAPS, MAPS_FD) && fetch(WANTS_PAGES, PAGEMAP_FD);
    end_asking();
    return process.own_lists;
}
