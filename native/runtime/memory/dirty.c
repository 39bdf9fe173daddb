/* Which pages changed since the last whole image.
 *
 * After a whole image the program's pages are write-protected by userfaultfd in its asynchronous mode: the kernel
 * itself lifts the protection at the first write and keeps the mark in the page table, where a scan of
 * /proc/self/pagemap finds it.  Nothing of it is visible to the program.  Where the kernel has it not, every image
 * is whole.
 */
#include "dirty.h"

#include <linux/userfaultfd.h>

#include "protocol.h"

#define FAULT_API 0xc018aa3f /* UFFDIO_API, whose own definition needs a C library */

enum { USER_FAULTS_ONLY = 1, WRITE_PROTECT_ASYNC = 1 << 15 };

/* As <linux/fs.h> of newer kernels has it. */
struct scan {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_any, return_mask;
};
enum { PROTECT_MATCHING = 1, CHECK_ASYNC = 2, IS_WRITTEN = 1 << 1, IS_PRESENT = 1 << 3, IS_SWAPPED = 1 << 4 };

enum { MOST_PLACES = 6000 };

static struct placed {
    unsigned long from, to;
    uint64_t offset;
} base[MOST_PLACES] GUARDED_BY(one_thread);
static size_t base_count GUARDED_BY(one_thread);
uint64_t base_generation GUARDED_BY(one_thread); /* 0: there is no whole image that pages could be compared with */

/* Before the filter closes. Without the descriptor, there are no increments. */
void dirty_prepare(void)
{
    long fd = SYSTEM(__NR_userfaultfd, O_CLOEXEC | O_NONBLOCK | USER_FAULTS_ONLY);
    struct uffdio_api api = {.api = UFFD_API, .features = WRITE_PROTECT_ASYNC};
    base_generation = 0;
    base_count = 0;
    if (fd < 0)
        return;
    if (SYSTEM(__NR_ioctl, fd, FAULT_API, &api) == 0)
        SYSTEM(__NR_dup3, fd, FAULT_FD, O_CLOEXEC);
    if (fd != FAULT_FD)
        SYSTEM(__NR_close, fd);
}

void dirty_forget(void)
{
    base_generation = 0;
    base_count = 0;
}

/* FROM..TO is at OFFSET of the image that is being written. Places come mostly in ascending order. */
void dirty_note_place(unsigned long from, unsigned long to, uint64_t offset)
{
    size_t at = base_count;
    if (base_count++ >= COUNT(base))
        return;
    for (; at && base[at - 1].from > from; at--)
        base[at] = base[at - 1];
    base[at] = (struct placed){from, to, offset};
}

bool dirty_protect(unsigned long from, unsigned long to)
{
    struct uffdio_register range = {.range = {from, to - from}, .mode = UFFDIO_REGISTER_MODE_WP};
    struct scan scan = {.size = sizeof scan, .flags = PROTECT_MATCHING | CHECK_ASYNC, .start = from, .end = to,
                        .category_any = IS_PRESENT | IS_SWAPPED};
    if (SYSTEM(__NR_ioctl, FAULT_FD, FAULT_REGISTER, &range) < 0)
        return false;
    return SYSTEM(__NR_ioctl, PAGEMAP_FD, DIRTY_SCAN, &scan) >= 0;
}

/* The whole image of that GENERATION is written, and everything that could be protected is. */
void dirty_begin(uint64_t generation)
{
    base_generation = base_count <= COUNT(base) ? generation : 0;
}

/* Finds the pages of FROM..TO that are there, as many runs as LIST holds; *NEXT: how far it looked.  Returns their
 * number or -errno.  WRITTEN tells changed pages from the others.  A kernel that comes to the end after it had to
 * empty its own buffer says it had stopped there: what it found beyond is found all the same. */
long dirty_scan(unsigned long from, unsigned long to, bool written, struct page_run *list, size_t room,
                unsigned long *next)
{
    struct scan scan = {.size = sizeof scan, .start = from, .end = to, .vec = (uint64_t)list, .vec_len = room,
                        .category_any = IS_PRESENT | IS_SWAPPED,
                        .return_mask = IS_PRESENT | IS_SWAPPED | (written ? IS_WRITTEN : 0)};
    long found = SYSTEM(__NR_ioctl, PAGEMAP_FD, DIRTY_SCAN, &scan);
    *next = found > 0 && list[found - 1].to > scan.walk_end ? list[found - 1].to : scan.walk_end;
    return found;
}

bool dirty_is_written(const struct page_run *run)
{
    return run->categories & IS_WRITTEN;
}

/* Where AT lies in the base. False: there it was zero. *TO: as far as that goes. */
bool dirty_base_place(unsigned long at, unsigned long *to, uint64_t *offset)
{
    size_t low = 0, high = base_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (base[middle].to <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == base_count || at < base[low].from) {
        *to = low == base_count ? ~0ul : base[low].from;
        return false;
    }
    *to = base[low].to;
    *offset = base[low].offset + (at - base[low].from);
    return true;
}
