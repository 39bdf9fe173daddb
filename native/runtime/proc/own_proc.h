/* The family's processes under /proc: see own_proc.c. */
#ifndef RUNTIME_OWN_PROC_H
#define RUNTIME_OWN_PROC_H

#include "runtime/trap.h"
#include "texts.h"

enum { PROC_OWN = 0, PROC_ROOT = -1 /* /proc itself */ };

/* What a path under /proc stands for, if that is made here. */
struct proc_path {
    int pid;    /* of another process, or PROC_... */
    int thread; /* whose directory it is in, 0: the process's */
    const char *name; /* below that; "": the directory itself */
    bool is_link;     /* "self" or "thread-self" with nothing behind it */
};

bool find_proc_path(struct thread *self, const char *path, struct proc_path *to);
long proc_open(struct trap *t, const struct proc_path *which, int flags);
long proc_link(struct trap *t, const struct proc_path *which, char *to, size_t size);
long own_file_named(struct thread *self, const char *path);
long own_file_again(struct thread *self, const char *path);
bool is_proc_directory(const struct proc_path *which);
bool is_proc_link(const struct proc_path *which);

#endif
