/* Contents of files that this machine keeps between runs: see library.c. */
#ifndef RUNTIME_LIBRARY_H
#define RUNTIME_LIBRARY_H

#include "protocol.h"
#include "control.h"

void library_take(long contents, long table);
void library_forget(void) REQUIRES(one_thread);
bool library_is_kept(void);
uint32_t library_firsts(uint32_t to[MOST_CONTENTS]);
const struct kept *library_find(const uint8_t *digest);
long library_read(const struct kept *which, void *to, size_t size, int64_t offset);
long library_read_whole(const uint8_t *digest, void *to, size_t size);
void library_note_used(const struct kept *which);
void library_tell_used(void);
void library_add(const uint8_t *digest, const void *content, size_t size);
bool library_begin_new(void) REQUIRES(passed_fd_lock);
void library_add_new(const uint8_t *digest, const void *content, size_t size) REQUIRES(passed_fd_lock);
void library_end_new(void) REQUIRES(passed_fd_lock);

#endif
