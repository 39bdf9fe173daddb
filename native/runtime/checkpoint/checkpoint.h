/* What an image says of itself in the runtime's data: see checkpoint.c and restart.c. */
#ifndef RUNTIME_CHECKPOINT_H
#define RUNTIME_CHECKPOINT_H

#include "runtime/process/thread.h"

struct region {
    unsigned long from, to;
    uint64_t offset; /* in the image */
    int protection;
    bool in_image;
};

/* A piece of memory that members may share, of the kernel's object with that number. */
struct shared_region {
    unsigned long from, to;
    uint64_t object, offset;
    int protection;
    bool in_image; /* of this member; else of another's */
};

enum { MOST_LATE = 60000, MOST_SHARED = 1024 };

void take_checkpoint(struct thread *self, struct ucontext *frame, const struct siginfo *info);
void take_stop(struct thread *self, struct ucontext *frame);
void stand_again(struct thread *self);
void wish_checkpoint(void);
bool checkpoint_is_wished(void);
bool is_own_request(const struct siginfo *info);
__attribute__((noreturn)) void restart(unsigned long *stack);
extern volatile bool is_image GUARDED_BY(one_thread); /* true in the data of an image, and only there */
/* What the kernel does not map when it executes the image: mapped first thing after that. */
extern struct region late[MOST_LATE] GUARDED_BY(one_thread);
extern size_t late_count GUARDED_BY(one_thread);
/* What the family shares; at a restart it is made sharable again. */
extern struct shared_region shared_memory[MOST_SHARED] GUARDED_BY(one_thread);
extern size_t shared_count GUARDED_BY(one_thread);
extern uint8_t files[MAX_BLOB] GUARDED_BY(one_thread); /* the open files, as the shadow describes them */
extern size_t files_size GUARDED_BY(one_thread);

#endif
