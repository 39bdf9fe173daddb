/* Everything about the process that outlives a checkpoint. */
#ifndef RUNTIME_PROCESS_H
#define RUNTIME_PROCESS_H

#include "protocol.h"
#include "runtime/lock.h"

extern struct lock identity_lock, memory_lock;

struct process {
    struct start start; /* group and session change under identity_lock */
    int real_id;
    uint64_t break_low GUARDED_BY(memory_lock), break_now GUARDED_BY(memory_lock); /* where it began and where it is */
    uint32_t personality;        /* as the program set it */
    int64_t monotonic_offset_ns; /* the program's clock minus this machine's */
    bool restarted;
    uint32_t moves; /* how often, as far as thread ids tell */
    bool family; /* other processes may be started and signalled: they are in a place of their own */
    bool helper; /* this one was started by the program */
    bool arena; /* there is memory for files that members map shared; see shared_arena.c */
    bool shares; /* it has made memory that members may share */
    bool direct; /* the channel goes straight home; see control.c */
    int control; /* then: the socket to the starter */
    bool own_lists; /* MAPS_FD and PAGEMAP_FD are this process's, not its parent's */
    bool executed; /* it has replaced its program since it was born */
    bool forked; /* there are, or were, others that got a copy of it */
    int parent_real_id; /* changes, with the parent's number, under identity_lock */
    int64_t began_at; /* in an image: when it began, in ticks since 1970; else 0 */
    bool reaps; /* orphans among its descendants become its children */
    char program[PATH_LIMIT]; /* absolute, for /proc/self/exe */
    uint64_t stack_low, stack_high;
    int cpu_level;     /* of the best machine so far */
    uint64_t auxiliary_at, auxiliary_size;
    uint64_t arguments_at, arguments_end, environment_at, environment_end;
};

extern struct process process
    UNGUARDED("set while there is one thread; what changes later has a lock of its own or is one word that only grows");

#endif
