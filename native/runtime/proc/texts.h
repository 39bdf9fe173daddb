/* The texts of files under /proc that tell of a process: see texts.c. */
#ifndef RUNTIME_PROC_TEXTS_H
#define RUNTIME_PROC_TEXTS_H

#include "facts.h"
#include "runtime/text.h"

#define PTRACE_SCOPE "sys/kernel/yama/ptrace_scope" /* no process may be looked into here; Open MPI goes by that */

extern struct lock proc_lock; /* of the kernel's list of mappings: who reads it in pieces is alone */
bool make_text(const char *name, const struct facts *of, const struct thread *thread, struct text *text);
bool is_made_text(const char *name);
bool is_own_alone(const char *name);
void put_text_names(struct text *text);

#endif
