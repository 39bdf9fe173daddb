/* Processes as descriptors: see process_files.c. */
#ifndef RUNTIME_PROCESS_FILES_H
#define RUNTIME_PROCESS_FILES_H

#include "runtime/trap.h"

enum { WAIT_BY_FILE = 3 /* P_PIDFD */ };

long process_of_file(struct thread *self, int fd, struct process_told *told);
long start_member(struct trap *t, unsigned long flags);
bool is_about_to_end(struct thread *self, int virtual_id);
long new_process_file(struct thread *self, int flags);
long name_process_file(struct thread *self, long fd, int virtual_id, bool child);

#endif
