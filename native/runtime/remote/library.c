/* Contents of files that this machine keeps between runs.
 *
 * The starter gives a process one file with contents that runs of the same owner have had before, and a table of their
 * digests.  Home tells of a file by its digest, if the table has it, and the content is read here.  What was told with its
 * digest and is not in the table goes into a file of the starter's, who compares it with that digest before it keeps it.
 * The program has no part in this, and an image neither: what it has of a content is in its memory.
 */
#include "library.h"

#include "control.h"
#include "runtime/layout.h"
#include "runtime/process/process.h"
#include "runtime/system.h"
#include "runtime/text.h"
#include "runtime/trap.h"

enum { TOLD_AT_ONCE = 64 };

static struct {
    const struct kept *table; /* NULL: nothing is kept here */
    uint32_t count;
    uint8_t used[MOST_CONTENTS]; /* by the answers that came before the questions, which are one thread's */
} library UNGUARDED("set while there is one thread, and only read afterwards, but for what is that thread's");
static int64_t new_at GUARDED_BY(passed_fd_lock); /* how far the file for new ones is filled; -1: it cannot be */

/* CONTENTS becomes LIBRARY_FD afterwards. Negative: there is none. */
void library_take(long contents, long table)
{
    memset(&library, 0, sizeof library);
    long place = contents < 0 || table < 0 || !process.direct
                     ? -1 : SYSTEM(__NR_mmap, 0, MOST_CONTENTS * sizeof *library.table, PROT_READ | PROT_WRITE, MAP_FRESH, -1, 0);
    if (contents < 0 || is_error(place))
        return;
    long got = SYSTEM(__NR_pread64, table, place, MOST_CONTENTS * sizeof *library.table, 0);
    library.table = (const struct kept *)place;
    library.count = got < 0 ? 0 : (uint32_t)((unsigned long)got / sizeof *library.table);
}

/* After a restart: it was the other process's. */
void library_forget(void)
{
    memset(&library, 0, sizeof library);
}

bool library_is_kept(void)
{
    return library.table && process.direct; /* a member whose channel is relayed has no starter to ask */
}

/* What home is told of the table: the first bytes of each digest. Returns how many there are. */
uint32_t library_firsts(uint32_t to[MOST_CONTENTS])
{
    for (uint32_t i = 0; i < library.count; i++)
        memcpy(&to[i], library.table[i].digest, sizeof *to);
    return library.count;
}

/* NULL: it is not kept here. */
const struct kept *library_find(const uint8_t *digest)
{
    for (uint32_t i = 0; i < library.count; i++)
        if (!memcmp(library.table[i].digest, digest, LIBRARY_DIGEST))
            return &library.table[i];
    return NULL;
}

/* Returns SIZE, or -errno: what cannot be read here is asked for at home. */
long library_read(const struct kept *which, void *to, size_t size, int64_t offset)
{
    size_t done = 0;
    while (done < size) {
        long got = SYSTEM(__NR_pread64, LIBRARY_FD, (uint8_t *)to + done, size - done,
                          (int64_t)which->offset + offset + (int64_t)done);
        if (got == -EINTR)
            continue;
        if (got <= 0)
            return got ? got : -EIO;
        done += (size_t)got;
    }
    return (long)done;
}

/* All of what has DIGEST; -ENOENT: it is not kept here. */
long library_read_whole(const uint8_t *digest, void *to, size_t size)
{
    const struct kept *which = library_find(digest);
    if (!which || which->size != size)
        return -ENOENT;
    tell_starter(CONTROL_USED, which - library.table);
    return library_read(which, to, size, 0);
}

void library_note_used(const struct kept *which)
{
    library.used[which - library.table] = true;
}

/* The starter hears what was of use, so that it stays. */
void library_tell_used(void)
{
    struct control said[TOLD_AT_ONCE];
    size_t count = 0;
    for (uint32_t i = 0; i < library.count; i++) {
        if (library.used[i])
            said[count++] = (struct control){.what = CONTROL_USED, .value = i};
        library.used[i] = false;
        if (count && (count == COUNT(said) || i + 1 == library.count)) {
            tell_starter_all(said, count);
            count = 0;
        }
    }
}

/* Whether the starter has given a file for new contents. */
bool library_begin_new(void)
{
    new_at = ask_starter(CONTROL_ROOM, 0) ? -1 : 0;
    return new_at >= 0;
}

static void put_new(const void *from, size_t size) REQUIRES(passed_fd_lock);
static void put_new(const void *from, size_t size)
{
    for (size_t done = 0; done < size && new_at >= 0;) {
        long put = SYSTEM(__NR_pwrite64, PASSED_FD, (const uint8_t *)from + done, size - done, new_at);
        if (put == -EINTR)
            continue;
        new_at = put <= 0 ? -1 : new_at + put;
        done += put <= 0 ? 0 : (size_t)put;
    }
}

void library_add_new(const uint8_t *digest, const void *content, size_t size)
{
    struct kept_head head = {.magic = KEPT_MAGIC, .size = size};
    memcpy(head.digest, digest, LIBRARY_DIGEST);
    put_new(&head, sizeof head);
    put_new(content, size);
}

void library_end_new(void)
{
    SYSTEM(__NR_close, PASSED_FD);
    tell_starter(CONTROL_NEW, new_at);
}

/* A content that has come with its digest, by itself. */
void library_add(const uint8_t *digest, const void *content, size_t size)
{
    if (library_find(digest) || !try_lock(&passed_fd_lock))
        return;
    if (library_begin_new()) {
        library_add_new(digest, content, size);
        library_end_new();
    }
    unlock(&passed_fd_lock);
}
