/* Which parts of the arena are taken: sorted disjoint intervals.
 *
 * The kernel would say so too, but its own choice of places is random, and a place must be free again on
 * another machine.  Neighbours are merged, so there are few intervals. */
#include "runtime.h"

static struct interval {
    unsigned long from, to;
} taken[32768];
static size_t count;
static unsigned long next = ARENA_START; /* where the last search ended */

/* Index of the first interval that ends after AT. */
static size_t first_after(unsigned long at)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (taken[middle].to <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void replace(size_t at, size_t old, const struct interval *fresh, size_t new)
{
    if (count - old + new > COUNT(taken))
        die(EXIT_RUNTIME_FAULT);
    memmove(taken + at + new, taken + at + old, (count - at - old) * sizeof *taken);
    memcpy(taken + at, fresh, new * sizeof *taken);
    count = count - old + new;
}

void space_take(unsigned long from, unsigned long to)
{
    if (from >= ARENA_END || to <= ARENA_START || from >= to)
        return;
    struct interval all = {from, to};
    size_t at = first_after(from);
    if (at > 0 && taken[at - 1].to == from)
        at--;
    size_t end = at;
    while (end < count && taken[end].from <= to) {
        if (taken[end].from < all.from)
            all.from = taken[end].from;
        if (taken[end].to > all.to)
            all.to = taken[end].to;
        end++;
    }
    replace(at, end - at, &all, 1);
}

void space_give(unsigned long from, unsigned long to)
{
    if (from >= to)
        return;
    size_t at = first_after(from), end = at, pieces = 0;
    struct interval rest[2];
    while (end < count && taken[end].from < to)
        end++;
    if (at == end)
        return;
    if (taken[at].from < from)
        rest[pieces++] = (struct interval){taken[at].from, from};
    if (taken[end - 1].to > to)
        rest[pieces++] = (struct interval){to, taken[end - 1].to};
    replace(at, end - at, rest, pieces);
    if (from < next && from >= ARENA_START)
        next = from;
}

static unsigned long search(unsigned long from, unsigned long size)
{
    for (size_t i = first_after(from); i < count; i++) {
        if (taken[i].from >= from && taken[i].from - from >= size)
            return from;
        from = taken[i].to;
    }
    return from + size <= ARENA_END ? from : 0;
}

/* First fit from where the last search ended. 0: there is no such place. */
unsigned long space_find(unsigned long size)
{
    unsigned long at = search(next, size);
    if (!at)
        at = search(ARENA_START, size);
    if (at)
        next = at;
    return at;
}
