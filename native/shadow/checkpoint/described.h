/* The open files of a program as bytes: what its checkpoint says of them, and a restarted one brings along.
 *
 * A description is its head, the working directory, each file once (with its path and content) and the descriptors and
 * handles that it has.
 */
#ifndef CONDOR_DESCRIBED_H
#define CONDOR_DESCRIBED_H

#include "shadow/session.h"

#include <sys/stat.h>
#include <sys/types.h>

enum { DESCRIBED_MAGIC = 0x47534443, OLDER_DESCRIBED_MAGIC = 0x46534443 /* all record locks are those of open files */,
       FIRST_LOCKED = MAX_FILES + MAX_HANDLES,
       MOST_DESCRIBED = FIRST_LOCKED + MOST_LOCKED };

enum { NUMBER_OF_DIRECTORY = '#' /* a directory without a name: the number of its file follows */ };

struct described {
    uint32_t magic, files, entries, handles; /* handles: files that have record locks are among them */
    uint32_t umask, directory_size;
    uint64_t generation; /* of the image, and of the journal that leads back to it */
};

struct described_file {
    uint8_t kind, end, wants_nonblocking;
    uint8_t sparse; /* it has no name. The content of a file is its size, and what it has besides zeros; of 2: before
                     * that, which file it is */
    uint32_t number; /* of a pair; of a nameless file one more than its seals; of record locks an earlier file,
                      * theirs; of another file 1: its record locks belong to it, see records.c */
    int32_t flags;
    uint32_t mode;
    int64_t offset; /* or the event counter, or the timer's clock, or what a pair is */
    uint32_t path_size, content_size;
};

struct described_entry {
    uint32_t descriptor, file, closes_on_exec; /* a handle is one from MAX_FILES on, record locks from FIRST_LOCKED */
};

/* One member of an epoll set, and the setting of a timer: content of their files. */
struct described_interest {
    uint32_t file, events;
    uint64_t data;
};

/* Who gets the signals of a file. */
struct described_owner {
    uint32_t file;
    int32_t owner;
};

/* ready_signals.c */
size_t owners_described(struct file *const *files, uint32_t count, uint8_t *to, size_t room);
long owners_again(struct session *s, const struct described_file *d, const uint8_t *content, struct file **files, uint32_t count);

/* pairs.c */
struct pairs;
struct pairs *pairs_new(void);
void pairs_drop(struct pairs *pairs);
ssize_t end_content(int real, struct described_file *d, uint8_t *to, size_t room); /* all of it, or -errno */
uint32_t pair_number(struct pairs *pairs, uint32_t old);
int reopen_end(struct pairs *pairs, const struct described_file *d, const uint8_t *content);
long fill_pipe(int to, const struct described_file *d, const uint8_t *content); /* 0 or -errno */
struct link;
const int *pair_ends(struct pairs *pairs, const struct described_file *d);
struct link **pair_link(struct pairs *pairs, const struct described_file *d);

/* What a pair is stands where a file has its offset: the kind of its sockets, SOCK_SEQPACKET for a pipe of packets; 0 is
 * a stream too. */
enum { PAIR_KIND = 0xff, HEARS_NO_MORE = 0x100, SAYS_NO_MORE = 0x200, ROOM_SHIFT = 32 /* of a pipe, in bytes, above that; 0: the usual one */ };

/* moved_sockets.c */
bool gather_hidden(struct file *file, bool (*note)(void *list, struct file *hidden), void *list);
size_t socket_path(const struct socket *socket, char *room, size_t size);
ssize_t socket_described(struct file *file, struct described_file *d, uint8_t *room, size_t size,
                         int (*number)(void *list, struct file *file), void *list);
struct socket *socket_again(struct work *w, struct pairs *pairs, const struct described_file *d, const char *path,
                            const uint8_t *content);
long socket_filled(struct file *file, struct pairs *pairs, const struct described_file *d, const uint8_t *content,
                   struct file **files, uint32_t count);

/* A lock that an open file has; content of ordinary files and of record locks. */
struct described_lock {
    int64_t begin, end; /* its last byte; -1: whatever the file's end is */
    uint32_t is_flock, is_exclusive;
};

/* locks.c */
ssize_t locks_content(int real, uint8_t *to, size_t room); /* all that the file has */
bool retake_locks(int real, const struct described_file *d, const uint8_t *content); /* false: errno */

bool has_lock(int real, const struct described_lock *lock);
bool has_records(const struct described_file *d, const uint8_t *content);
bool excludes(const struct described_file *d, const uint8_t *content); /* one of them does */

/* records.c */
int records_again(const struct file *of, const struct described_file *d, const uint8_t *content);

/* unlinked.c */
struct unlinked;
struct unlinked *unlinked_new(void);
void unlinked_drop(struct unlinked *all);
int unlinked_find(const struct unlinked *all, uint64_t device, uint64_t inode); /* -1: nobody has it yet */
bool unlinked_hold(struct unlinked *all, uint64_t device, uint64_t inode, int held); /* takes HELD over; false: errno */
bool is_gone(const struct stat *st); /* a pipe or directory without a name */
ssize_t unlinked_content(int real, struct described_file *d, const struct stat *st, uint8_t *to, size_t room);
bool pipe_held_again(const struct session *s, struct unlinked *all, const struct described_file *d, int pin,
                     const uint8_t *content);
int reopen_gone(const struct session *s, struct unlinked *all, const struct described_file *d, const char *was,
                const uint8_t *content);

/* nameless.c */
int open_anyhow(const char *link, const struct stat *st, int flags); /* -1: errno */
ssize_t nameless_content(const char *link, const struct stat *st, uint8_t *to, size_t room);
int reopen_nameless(const struct session *s, struct unlinked *all, const struct described_file *d, const char *path,
                    const uint8_t *content);

#endif
