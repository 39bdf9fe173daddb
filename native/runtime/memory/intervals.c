/* Sets of addresses: sorted disjoint intervals, neighbours merged, so there are few. */
#include "intervals.h"

#include "protocol.h"
#include "runtime/text.h"
#include "runtime/trap.h"

/* Index of the first interval that ends after AT. */
static size_t first_after(const struct intervals *s, unsigned long at)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->list[middle].to <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void replace(struct intervals *s, size_t at, size_t old, const struct interval *fresh, size_t new)
{
    if (s->count - old + new > s->room)
        die(EXIT_RUNTIME_FAULT);
    memmove(s->list + at + new, s->list + at + old, (s->count - at - old) * sizeof *s->list);
    memcpy(s->list + at, fresh, new * sizeof *s->list);
    s->count = s->count - old + new;
}

/* Hardly any room is left: what would make more pieces must not be begun. */
bool intervals_full(const struct intervals *s)
{
    enum { KEPT_BACK = 16 };
    return s->count + KEPT_BACK > s->room;
}

void intervals_add(struct intervals *s, unsigned long from, unsigned long to)
{
    struct interval all = {from, to};
    size_t at = first_after(s, from);
    if (at > 0 && s->list[at - 1].to == from)
        at--;
    size_t end = at;
    while (end < s->count && s->list[end].from <= to) {
        if (s->list[end].from < all.from)
            all.from = s->list[end].from;
        if (s->list[end].to > all.to)
            all.to = s->list[end].to;
        end++;
    }
    replace(s, at, end - at, &all, 1);
}

void intervals_remove(struct intervals *s, unsigned long from, unsigned long to)
{
    size_t at = first_after(s, from), end = at, pieces = 0;
    struct interval rest[2];
    while (end < s->count && s->list[end].from < to)
        end++;
    if (at == end)
        return;
    if (s->list[at].from < from)
        rest[pieces++] = (struct interval){s->list[at].from, from};
    if (s->list[end - 1].to > to)
        rest[pieces++] = (struct interval){to, s->list[end - 1].to};
    replace(s, at, end - at, rest, pieces);
}

/* The first part of the set inside FROM..TO. False: there is none. */
bool intervals_next(const struct intervals *s, unsigned long from, unsigned long to, struct interval *found)
{
    size_t at = first_after(s, from);
    if (at == s->count || s->list[at].from >= to)
        return false;
    found->from = s->list[at].from > from ? s->list[at].from : from;
    found->to = s->list[at].to < to ? s->list[at].to : to;
    return true;
}

/* The first gap of SIZE between FROM and TO, or 0. */
unsigned long intervals_gap(const struct intervals *s, unsigned long from, unsigned long to, unsigned long size)
{
    for (size_t i = first_after(s, from); i < s->count; i++) {
        if (s->list[i].from >= from && s->list[i].from - from >= size)
            return from;
        from = s->list[i].to;
    }
    return from + size <= to ? from : 0;
}
