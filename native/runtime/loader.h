/* Loads a program: see loader.c. */
#ifndef RUNTIME_LOADER_H
#define RUNTIME_LOADER_H

#include "runtime/process/thread.h"

enum { AUXILIARY_WORDS = 32 };

long load_program(struct thread *self, const char *path, char **arguments, char **environment,
                  unsigned long *entry, unsigned long *stack) REQUIRES(one_thread);
extern unsigned long kernel_auxiliary[AUXILIARY_WORDS][2] GUARDED_BY(one_thread);

#endif
