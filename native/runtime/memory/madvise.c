/* Memory that came from an image, and giving memory up: see do_madvise. */
#include "memory.h"
#include "runtime/proc/own_proc.h"
#include "runtime/text.h"
#include "runtime/trap.h"
#include "runtime/user.h"
#include "protocol.h"

/* What came from an image is a private mapping of a file: to give its pages up must make zeros, not the
 * file's content again.  It is replaced by fresh memory of the same kind as far as that shows. */
static struct interval from_image_list[MOST_INTERVALS] GUARDED_BY(memory_lock);
struct intervals from_image GUARDED_BY(memory_lock) = {from_image_list, 0, COUNT(from_image_list)};

/* What of it was code. Set at a restart. */
static struct interval code_list[MOST_INTERVALS] GUARDED_BY(memory_lock);
struct intervals image_code GUARDED_BY(memory_lock) = {code_list, 0, COUNT(code_list)};

static const char *find_end(const char *line)
{
    while (*line && *line != '\n')
        line++;
    return *line ? line : NULL;
}

enum { MAPS_BYTES = 1 << 14 };
static char maps_room[MAPS_BYTES] GUARDED_BY(memory_lock);

static int look_up(unsigned long at, unsigned long *to) REQUIRES(memory_lock, proc_lock);
static int look_up(unsigned long at, unsigned long *to)
{
    enum { LONGEST_LINE = 256 };
    char *room = maps_room;
    size_t used = 0, offset = 0;
    long got;
    while ((got = SYSTEM(__NR_pread64, MAPS_FD, room + used, MAPS_BYTES - 1 - used, offset)) > 0) {
        const char *line = room;
        offset += (size_t)got;
        used += (size_t)got;
        room[used] = 0;
        for (const char *end; (end = find_end(line)); line = end + 1) {
            const char *word = line;
            unsigned long from = read_number(&word, 16), until = (word++, read_number(&word, 16));
            if (at >= until)
                continue;
            if (until < *to)
                *to = until;
            return at < from ? 0 : (word[1] == 'r' ? PROT_READ : 0) | (word[2] == 'w' ? PROT_WRITE : 0) |
                                       (word[3] == 'x' ? PROT_EXEC : 0);
        }
        used -= (size_t)(line - room);
        if (used >= MAPS_BYTES - LONGEST_LINE)
            break;
        memmove(room, line, used);
    }
    return 0;
}

/* The kernel's word for the protection AT; *TO becomes less when another mapping begins before. */
static int protection_there(unsigned long at, unsigned long *to) REQUIRES(memory_lock);
static int protection_there(unsigned long at, unsigned long *to)
{
    lock(&proc_lock);
    int protection = look_up(at, to);
    unlock(&proc_lock);
    return protection;
}

/* A look at a byte says whether it can be read and written, which is quick. The kernel is asked about the rest: what
 * was code, and what cannot be written. */
int protection_of(unsigned long from, unsigned long *to)
{
    char byte;
    struct interval code;
    bool reads = !copy_user(&byte, (void *)from, 1);
    if (reads && !copy_user((void *)from, &byte, 1) && !intervals_next(&image_code, from, *to, &code))
        return PROT_READ | PROT_WRITE;
    return protection_there(from, to);
}

int memory_protection(unsigned long at, unsigned long *to)
{
    lock(&memory_lock);
    int protection = protection_of(at, to);
    unlock(&memory_lock);
    return protection;
}

static bool renew(const struct interval *piece) REQUIRES(memory_lock);
static bool renew(const struct interval *piece)
{
    for (unsigned long from = piece->from, to; from < piece->to; from = to) {
        to = piece->to;
        int protection = protection_of(from, &to);
        if (intervals_full(&from_image) || map(from, to - from, protection, MAP_FIXED) < 0)
            return false;
        intervals_remove(&from_image, from, to);
    }
    return true;
}

/* There are as many mappings as the kernel allows: the pages stay and become zero. */
static bool make_zero(const struct interval *piece)
{
    static const uint8_t zeros[PAGE];
    for (unsigned long at = piece->from; at < piece->to; at += PAGE)
        if (copy_user((void *)at, zeros, PAGE))
            return false;
    return true;
}

/* What moved away, and stays mapped, leaves zeros. */
void leave_zeros(unsigned long from, unsigned long to)
{
    struct interval piece;
    for (; intervals_next(&from_image, from, to, &piece); from = piece.to)
        if (!renew(&piece))
            make_zero(&piece);
}

/* What did not come from an image. */
static void advise_others(unsigned long from, unsigned long to, unsigned long advice) REQUIRES(memory_lock);
static void advise_others(unsigned long from, unsigned long to, unsigned long advice)
{
    struct interval piece = {from, from};
    for (; from < to; from = piece.to) {
        if (!intervals_next(&from_image, from, to, &piece))
            piece = (struct interval){to, to};
        if (piece.from > from)
            SYSTEM(__NR_madvise, from, piece.from - from, advice);
    }
}

long do_madvise(struct trap *t)
{
    unsigned long from = t->a[0], to = from + page_up(t->a[1]), advice = t->a[2];
    struct interval piece = {0};
    bool stays = false, zero = true;
    if (advice == MADV_WIPEONFORK || advice == GUARD_INSTALL) /* an image would not know of it */
        return -EINVAL;
    if (advice == MADV_DONTNEED || advice == MADV_FREE || advice == MADV_REMOVE || advice == MADV_DONTNEED_LOCKED) {
        lock(&memory_lock);
        for (unsigned long at = from; at < to && intervals_next(&from_image, at, to, &piece); at = piece.to)
            if (!renew(&piece)) {
                stays = true;
                zero &= make_zero(&piece);
            }
        if (stays)
            advise_others(from, to, advice);
        unlock(&memory_lock);
    }
    if (stays)
        return zero ? 0 : -ENOMEM;
    return SYSTEM(__NR_madvise, from, t->a[1], advice);
}
