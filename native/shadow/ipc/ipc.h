/* System V semaphores, message queues and shared memory of a family, and POSIX message queues.
 *
 * They are the family's own: its keys and numbers mean nothing to any kernel and to no other program, as do the addresses
 * of its sockets.  One lock guards all of a family's.
 *
 * Who has to wait stands in line at the object.  A process that changes the object does what those in line asked for, as
 * far as that is possible now, and tells them, as the kernel does it; so nobody comes between a change and who waited for it.
 */
#ifndef CONDOR_IPC_H
#define CONDOR_IPC_H

#include "shadow/serve.h"

#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

enum ipc_kind { IPC_SETS, IPC_QUEUES, IPC_SEGMENTS, IPC_KINDS };

enum {
    MOST_OBJECTS = 1024,      /* of a kind in a family */
    ID_STEP = 1 << 15,        /* an id is a place and how often it was used, as in the kernel */
    MOST_SEQUENCE = 1 << 15,
    ALL_MODES = 0777,
    MOST_IN_SET = 32000,      /* semaphores; these six as the kernel has them */
    MOST_OPERATIONS = 500,
    HIGHEST_VALUE = 32767,
    LONGEST_MESSAGE = 8192,
    QUEUE_BYTES = 16384,
    SOME_BYTES = 8,           /* of a message's type, in front of it */
    MOST_SEMAPHORES = 65536,  /* of a family */
    MOST_MESSAGE_BYTES = 32 << 20, /* of a family, what each costs by itself included */
    SETS_COUNT = 1 << 20,     /* of semctl, for the runtime: how many semaphores there are */
};

#define MOST_SEGMENT_BYTES (4ull << 30) /* of a family; what is not touched costs nothing */

struct ipc_object {
    enum ipc_kind kind;
    int id, key;
    uid_t uid, cuid;
    gid_t gid, cgid;
    unsigned mode;
    int64_t changed; /* in seconds */
    struct ipc_wait *waits, **last;
};

struct semaphore {
    int value, pid;
};

/* What a process's operations are to be followed by at its end. */
struct undo {
    struct undo *next;
    int pid;
    int16_t by[];
};

struct semaphore_set {
    struct ipc_object base;
    int64_t used;
    uint32_t count;
    struct undo *undos;
    struct semaphore list[];
};

struct message {
    struct message *next;
    int64_t type;
    uint32_t size;
    uint8_t text[];
};

struct message_queue {
    struct ipc_object base;
    int64_t sent, received;
    uint64_t bytes, count, most_bytes;
    int sender, receiver;
    struct message *first, **end;
};

struct segment {
    struct ipc_object base;
    struct file *file;
    uint64_t size;
    int64_t attached, detached;
    int creator, last;
};

/* POSIX: whom to tell once, by which signal (0: by none), that a message has come to the empty queue. PID 0: nobody. */
struct queue_notice {
    int32_t pid, number;
    int64_t value;
};

struct posix_queue {
    struct ipc_object base; /* its number is the checkpoint's alone */
    struct posix_queue *next;
    struct ipc *ipc;
    char *name;             /* "": it has none any more */
    unsigned files;         /* open ones */
    int event;
    uint64_t shown;         /* what its event counter has */
    uint64_t most, largest, count;
    struct message *first;  /* the highest priority, which is the message's type, first */
    struct queue_notice notice;
};

/* A request that stands in line. */
struct ipc_wait {
    struct ipc_wait *next;
    struct ipc_object *object; /* NULL: it is over */
    struct session *session;
    int pid, bell;
    long result;
    struct sembuf *operations; /* of a set */
    unsigned count, blocking;
    bool alters;
    struct message *message;   /* to be sent, or received */
    bool sends;
    int64_t type;              /* which message is wanted */
    int flags;
    size_t room;
};

/* A family's. */
struct ipc {
    pthread_mutex_t lock;
    struct ipc_object *objects[IPC_KINDS][MOST_OBJECTS];
    uint16_t sequences[IPC_KINDS][MOST_OBJECTS];
    size_t semaphores, message_bytes, segment_bytes;
    struct posix_queue *posix;
    int next_posix;
};

/* ipc.c */
struct ipc *ipc_of(struct session *s); /* NULL: no memory */
long ipc_alone(struct work *w, long (*call)(struct work *w, struct ipc *ipc)); /* with the family's lock */
bool ipc_may(const struct ipc_object *o, unsigned mode);
bool ipc_enter(struct ipc *ipc, enum ipc_kind kind, struct ipc_object *o, int place); /* -1: any; false: there is no place */
void ipc_take_out(struct ipc *ipc, struct ipc_object *o);
struct ipc_object *ipc_find(struct ipc *ipc, enum ipc_kind kind, int64_t id);
struct ipc_object *ipc_at(struct ipc *ipc, enum ipc_kind kind, int64_t place);
int ipc_highest(const struct ipc *ipc, enum ipc_kind kind);
int ipc_used(const struct ipc *ipc, enum ipc_kind kind);
long ipc_get(struct work *w, enum ipc_kind kind, int key, int flags, size_t size);
void ipc_permissions(const struct ipc_object *o, struct ipc_perm *to);
bool ipc_is_owner(const struct ipc_object *o);
void ipc_set_permissions(struct ipc_object *o, const struct ipc_perm *from);
struct ipc_wait *ipc_wait(struct work *w, struct ipc_object *o);
void ipc_over(struct ipc_wait *wait, long result);
long ipc_waited(struct work *w); /* PARKED: it still stands in line */
int64_t ipc_now(void);

/* semaphores.c */
struct semaphore_set *set_new(struct ipc *ipc, size_t count);
void set_end(struct ipc *ipc, struct semaphore_set *set);
struct undo *set_undo(struct semaphore_set *set, int pid, bool make);
void set_process_ended(struct semaphore_set *set, int pid);

/* message_queues.c */
struct message_queue *queue_new(void);
void queue_end(struct ipc *ipc, struct message_queue *queue);
struct message *message_new(struct ipc *ipc, size_t size); /* NULL: there is no room */
void message_end(struct ipc *ipc, struct message *message);
void queue_add(struct message_queue *queue, struct message *message);

/* posix_queues.c */
struct posix_queue *posix_queue_new(struct ipc *ipc, const char *name, int id);
struct posix_queue *posix_queue_numbered(const struct ipc *ipc, int id);
void posix_queue_add(struct posix_queue *queue, struct message *message);
struct file *posix_queue_file(struct posix_queue *queue, int flags);
void posix_queue_end(struct ipc *ipc, struct posix_queue *queue);

/* segments.c */
struct segment *segment_new(struct ipc *ipc, uint64_t size, struct file *file);
struct segment *segment_fresh(struct ipc *ipc, uint64_t size, int creator);
void segment_drop(struct ipc *ipc, struct segment *segment);
void segment_end(struct ipc *ipc, struct segment *segment);

/* moved_ipc.c */
bool ipc_files(struct ipc *ipc, bool (*note)(void *list, struct file *file), void *list);
ssize_t ipc_described(struct ipc *ipc, uint8_t *to, size_t room, int (*number)(void *list, struct file *file), void *list);
struct file *posix_queue_file_again(struct session *s, int id, int flags);
long ipc_filled(struct session *s, const uint8_t *content, size_t size, struct file **files, uint32_t count);

#endif
