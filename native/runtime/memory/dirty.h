/* What changed since the last whole image: see dirty.c. */
#ifndef RUNTIME_DIRTY_H
#define RUNTIME_DIRTY_H

#include "runtime/lock.h"

#define DIRTY_SCAN 0xc0606610     /* PAGEMAP_SCAN */
#define FAULT_REGISTER 0xc020aa00 /* UFFDIO_REGISTER */

struct page_run { /* as PAGEMAP_SCAN tells it */
    uint64_t from, to, categories;
};

extern uint64_t base_generation GUARDED_BY(one_thread);
void dirty_prepare(void) REQUIRES(one_thread);
void dirty_forget(void) REQUIRES(one_thread);
void dirty_note_place(unsigned long from, unsigned long to, uint64_t offset) REQUIRES(one_thread);
bool dirty_protect(unsigned long from, unsigned long to);
void dirty_begin(uint64_t generation) REQUIRES(one_thread);
long dirty_scan(unsigned long from, unsigned long to, bool written, struct page_run *list, size_t room,
                unsigned long *next);
bool dirty_is_written(const struct page_run *run);
bool dirty_base_place(unsigned long at, unsigned long *to, uint64_t *offset) REQUIRES(one_thread);

#endif
