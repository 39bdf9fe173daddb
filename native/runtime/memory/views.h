/* What stands for pieces of files that are at home, inside of shared.c, shared_write.c and views.c. */
#ifndef RUNTIME_VIEWS_H
#define RUNTIME_VIEWS_H

#include "shared.h"

enum { VIEWS = 1024 };

struct view {
    unsigned long from, to; /* whole pages; 0, 0: unused */
    int handle;             /* the shadow's, of the file; several views may have it */
    int64_t offset;         /* of FROM in the file */
    struct arena_place arena;   /* of FROM, if all members have it */
    int holder;             /* one more than the slot of the thread that has taken it; 0: none */
    bool leaves;            /* the memory is being unmapped or moved: it stands for nothing just now */
    uint64_t born;          /* when it was made, counted in views */
    bool unsaved;           /* writing it has failed */
    bool segment;           /* of System V shared memory */
    bool reads;             /* its file is open for reading only: nothing is written from here */
    uint64_t *marks;        /* of each page as the file has it; NULL: not known */
    uint64_t *marks_memory; /* where their memory begins, beyond what an image covers; perhaps other views' as well */
    size_t marks_bytes;
};

extern struct view views[VIEWS] GUARDED_BY(views_lock);
extern size_t views_used GUARDED_BY(views_lock);   /* those from here on were never used */
extern uint64_t views_born GUARDED_BY(views_lock); /* how many there have been */
extern volatile uint32_t views_let_go ATOMIC;      /* how often a thread did */

static inline size_t pages_of(const struct view *v)
{
    return (v->to - v->from) / PAGE;
}

static inline bool overlaps(const struct view *v, unsigned long from, unsigned long to)
{
    return !v->leaves && v->to > from && v->from < to;
}

static inline bool is_taken_by(const struct view *v, const struct thread *self)
{
    return v->to && v->holder == self->slot + 1;
}

/* views.c */
void *views_memory(size_t size, int flags);
void drop_marks(struct view *v);
bool make_marks(struct view *v, const uint64_t *old, size_t old_pages, size_t pages);
void mark_pages(struct view *v, unsigned long from, unsigned long to);
size_t take_views(struct thread *self, unsigned long from, unsigned long to);
void await_all_views(void);
struct view *next_taken(struct thread *self, size_t *at);
struct view *new_view(struct thread *self);
void end_view(struct thread *self, struct view *v);

/* shared_write.c */
long write_taken(struct thread *self, unsigned long from, unsigned long to);

#endif
