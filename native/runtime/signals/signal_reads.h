/* Descriptors of signals (signalfd): see signal_reads.c. */
#ifndef RUNTIME_SIGNAL_FILES_H
#define RUNTIME_SIGNAL_FILES_H

#include "runtime/trap.h"

bool is_watched(int number);
uint64_t waiting_signals(void);
uint64_t let_through(struct thread *self, uint64_t mask);
long read_signals(struct thread *self, struct trap *waiting, int fd, uint8_t *to, size_t size);

#endif
