/* What is known of open files; reading ahead and writing behind: see read_ahead.c. */
#ifndef RUNTIME_READ_AHEAD_H
#define RUNTIME_READ_AHEAD_H

#include "runtime/trap.h"

enum {
    NOT_HERE = -600,    /* to be asked at home */
    KNOWN_FILES = 4096, /* descriptors of which something may be known */
};

long open_home(struct thread *self, struct trap *waiting, int directory, const char *path, int flags, int mode);
long read_ahead(struct thread *self, int fd, uint8_t *to, size_t size, int64_t offset);
long write_behind(struct thread *self, int fd, const uint8_t *from, size_t size, int64_t offset);
long close_home(struct thread *self, int fd);
bool is_ordinary(int fd);
bool is_for_reading(int fd);
bool status_ahead(int fd, void *to, long *result);
void note_transfer(struct thread *self, int fd, bool writing, uint64_t hints);
void settle_writes(struct thread *self);
void share_positions(void);
void begin_sharing(void);
void share_position(int fd);
void forget_files(void);
void unlearn_file(int fd);
void begin_change(int fd);
void begin_move(int fd);
void end_change(int fd);
void read_ahead_reset(bool mapped) REQUIRES(one_thread);

#endif
