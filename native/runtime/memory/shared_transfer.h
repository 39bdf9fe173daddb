/* Files that are mapped shared and read or written as well: see shared_transfer.c. */
#ifndef RUNTIME_SHARED_TRANSFER_H
#define RUNTIME_SHARED_TRANSFER_H

#include "runtime/trap.h"

enum moved { WAS_READ, WAS_WRITTEN, WAS_CUT };

bool any_is_shared(void);
bool is_shared(uint64_t identity);
void list_shared(struct thread *self, long handle);
void write_back_begins(void);
void write_back_ends(void);
uint64_t write_backs(void);
void shared_cut(struct thread *self, int fd, uint64_t hints, uint64_t before);
void shared_transfer(struct thread *self, int fd, uint8_t *buffer, long size, enum moved moved, uint64_t hints, uint64_t before);

#endif
