/* Sets of addresses: sorted disjoint intervals, neighbours merged, so there are few. */
#ifndef RUNTIME_INTERVALS_H
#define RUNTIME_INTERVALS_H

#include "runtime/abi.h"

struct interval {
    unsigned long from, to;
};

enum { MOST_INTERVALS = 1 << 17 }; /* twice what a kernel usually allows; pages that are not needed are not there */

struct intervals {
    struct interval *list;
    size_t count, room;
};

bool intervals_full(const struct intervals *s);
void intervals_add(struct intervals *s, unsigned long from, unsigned long to);
void intervals_remove(struct intervals *s, unsigned long from, unsigned long to);
bool intervals_next(const struct intervals *s, unsigned long from, unsigned long to, struct interval *found);
unsigned long intervals_gap(const struct intervals *s, unsigned long from, unsigned long to,
                            unsigned long size);

#endif
