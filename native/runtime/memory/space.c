/* Which parts of the arena are taken.  The kernel would say so too, but its own choice of places is random,
 * and a place must be free again on another machine. */
#include "memory.h"

static struct interval list[MOST_INTERVALS] GUARDED_BY(memory_lock);
static struct intervals taken GUARDED_BY(memory_lock) = {list, 0, COUNT(list)};
static unsigned long next GUARDED_BY(memory_lock) = ARENA_START; /* where the last search ended */

void space_take(unsigned long from, unsigned long to)
{
    if (from < ARENA_END && to > ARENA_START && from < to)
        intervals_add(&taken, from, to);
}

void space_give(unsigned long from, unsigned long to)
{
    if (from >= to)
        return;
    intervals_remove(&taken, from, to);
    if (from < next && from >= ARENA_START)
        next = from;
}

/* First fit from where the last search ended. 0: there is no such place. */
unsigned long space_find(unsigned long size)
{
    unsigned long at = intervals_gap(&taken, next, ARENA_END, size);
    if (!at)
        at = intervals_gap(&taken, ARENA_START, ARENA_END, size);
    if (at)
        next = at;
    return at;
}

bool space_is_full(void)
{
    return intervals_full(&taken);
}

void space_forget(void)
{
    taken.count = 0;
    next = ARENA_START;
}
