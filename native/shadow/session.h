/* Inside of the shadow. */
#ifndef CONDOR_SESSION_H
#define CONDOR_SESSION_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "calls_format.h"
#include "guards.h"
#include "protocol.h"
#include "shadow.h"

enum { MOST_SPARES = 16, MAX_FILES = 4096, MAX_HANDLES = 1024, PARKED = -100000, MAX_PARKED = 2048, MOST_LOCKED = 1024,
       MOST_SLOTS = 1024 /* threads of a process */ };

/* An open file, as several descriptors may share it. */
struct file {
    atomic_int references;
    int real;
    bool regular;     /* reads and writes never wait, and are done in full */
    bool steady;      /* a file of an ordinary file system, whose size is true */
    uint32_t question; /* of the plan: which opened it, plus one */
    int late_error;   /* of a write without an answer; told with the next answer */
    int late_writer;  /* which process's write that was */
    bool nonblocking; /* the real descriptor never waits */
    bool wants_nonblocking; /* the program asked for that */
    bool inherited;   /* standard input, output, error: not saved, given again */
    uint8_t kind;     /* FILE_... */
    bool has_records; /* record locks by it are its own: so it was in the older image that it is of */
    uint8_t end;      /* of a pipe: which pair, see pairs.c */
    uint64_t id;      /* no other file of this process has it */
    int flags;        /* as opened */
    uint32_t number;  /* of a pair */
    struct socket *socket; /* NULL: it is none */
    struct inotify *inotify; /* as is this */
    struct terminal *terminal; /* and this */
    struct process_file *process; /* and this */
    struct posix_queue *queue;    /* and this */
    atomic_ullong signals;     /* of a descriptor of signals: which, a bit each */
    bool memory_known;       /* atomic: whether it is a file in memory; see memory_files.c */
    struct memory_account *memory; /* NULL: it is none */
    uint64_t memory_bytes;   /* what it is counted for; the account's lock guards it */
    uint64_t memory_mapped;  /* how far it was ever mapped for writing, as is this */
    int owner;               /* who gets its signals: a process, or a group, negative; the terminals' lock guards it, as the
                              * next two; see ready_signals.c */
    struct session *ready_root; /* of the family that watches it; NULL: nobody does */
    struct file *next_ready;
    struct file *next_dying; /* of those that are just being closed */
};

enum { FILE_PLAIN, FILE_STANDARD, FILE_PIPE, FILE_PAIR, FILE_EVENT, FILE_EPOLL, FILE_TIMER, FILE_TEXT, FILE_SOCKET,
       FILE_RECORDS, /* no descriptor's: the session locks records by it, see records.c */
       FILE_INOTIFY,
       FILE_IPC, /* no descriptor's: semaphores, message queues and shared memory, in a checkpoint */
       FILE_TERMINAL, FILE_SIGNALS, FILE_PROCESS, FILE_QUEUE,
       FILE_OWNERS /* no descriptor's: who gets whose signals, in a checkpoint */ };

struct entry {
    struct file *file;
    bool closes_on_exec;
};

/* A file that a session has record locks in. */
struct locked {
    struct file *file; /* NULL: none */
    dev_t device;
    ino_t inode;
};

/* A request on its way through the shadow. */
struct work {
    struct session *session;
    struct request head;
    uint8_t *payload; /* HEAD.size bytes */
    uint8_t *out;     /* room for the answer's payload */
    size_t out_room, out_used;
    uint16_t hints;
    struct { /* the end of the answer, straight from a file */
        int real;
        int64_t offset;
        size_t size;
    } bulk;
    int passed_fd; /* descriptor to send beside the answer, -1 none; closed afterwards */
    /* When it must wait: what for. Its function is called again when that has come. */
    struct pollfd wait_one;
    struct pollfd *wait; /* &wait_one or a list of its own */
    size_t wait_count;
    int64_t until_ns;    /* -1: no limit */
    int64_t retry_ns;    /* -1: no, else try again at this time */
    bool again;          /* this is not the first attempt */
    bool cancelled;
    bool made_now; /* openat: the file was not there before */
    size_t progress;
    struct ipc_wait *ipc; /* its place in a line, see ipc.h; NULL: it has none */
    int held; /* openat: one more than the descriptor of a pipe's end while the other is waited for; 0 none */
    struct work *next;
};

/* Where a process of a family belongs. All numbers are the program's, but for those that are called real. */
struct membership {
    int pid, parent, group, session;
    int real_pid, real_group; /* where it runs */
    bool executed;            /* its parent may not change its group any more */
};

enum { MOST_ENDED = 1024, MOST_DUE = 64 };

/* A signal of a terminal's, that nobody has sent yet: to a group, or else to a process. */
struct due_signal {
    int group, pid, number;
};

struct session {
    int id;
    int channel;
    int state;
    pthread_t thread;
    struct shadow_task task;
    char *strings; /* of the task: program, arguments, environment */
    size_t string_bytes;
    uint32_t argument_count, environment_count;
    char *image, *directory;
    char *job_root; /* of the root: what the family may use of home; NULL: what its owner may */
    struct entry entries[MAX_FILES];
    struct locked locked[MOST_LOCKED]; /* changed by the session alone, and guarded by the table's lock for others */
    uint32_t locked_count;
    int most_files; /* the program's own limit; at most MAX_FILES */
    int lost_write; /* why one of its writes failed, of which no answer can tell it any more; 0: none did */
    struct file *handles[MAX_HANDLES];
    struct span *handle_spans[MAX_HANDLES]; /* guarded by the table's lock, as is the next; see mapped.c */
    struct span *spans; /* of the root */
    ino_t refused_inode; /* of the root: of which file the host was told last that others have it */
    struct memory_account *memory;  /* of the root; guarded by the table's lock */
    pthread_mutex_t entering_lock;  /* of the root: whether a file is mapped that was not; taken before the table's */
    pthread_mutex_t positions_lock; /* of the root: a read or write of what is mapped, and where it was */
    int64_t moved_at[MOST_SLOTS];   /* where in its file each thread's last one of these began */
    uint8_t *in;
    size_t in_used, in_room;
    uint8_t *out;
    size_t out_room;
    bool asleep; /* nothing was heard for a while, and memory was given back */
    struct work *parked;
    int image_fd;
    char *image_temporary, *image_final;
    uint64_t base_generation; /* of the last whole image at its place */
    int64_t base_bytes, increment_bytes;
    bool image_is_increment;
    int64_t image_began_ns;
    bool greeted, over;
    bool heard_all; /* the channel's end was seen: what was said before it is still done */
    bool mute;      /* answers are not read any more */
    atomic_bool vacates; /* the next image ends the program here */
    int real_pid;
    struct journal *journal; /* of the root */
    uint64_t generation;     /* of the image that is being written */
    struct session *root; /* of the family; itself if it is the first */
    struct secret *secret; /* NULL: the channel is plain */
    atomic_ullong helpers_asked; /* of the root */
    struct {
        int channel;
        int64_t label;
    } spares[MOST_SPARES]; /* of the root, guarded by the table's lock, as are the next three */
    size_t spare_count;
    bool no_spares; /* none will come */
    bool closing;
    struct plan *plan; /* that this session adds to, while its program begins */
    int64_t plan_until_ns;
    char *libraries;       /* of the root, as in the task; NULL: there are none */
    bool keeps_library;    /* of the root: the other side keeps contents of files, */
    uint32_t *library;     /* these: the first bytes of their digests, in order */
    size_t library_count;
    struct file **tickets; /* files opened before they were asked for */
    size_t ticket_count;
    struct session *next_member; /* guarded by the table's lock; of the root: the first helper */
    int virtual_pid;             /* as are all from here to the statistics, but the bell, which is its thread's to make */
    int bell;                    /* rings when something happens in the family; -1: it was never listened to */
    char name[PROGRAM_NAME_BYTES];
    char *program;               /* path and arguments of what it runs; NULL: not told */
    uint32_t program_bytes, path_bytes;
    int64_t began;               /* in ticks since home was booted */
    int thread_id;               /* of this session's thread, whose directory is the process's */
    bool ending;                 /* its process has said that it ends */
    bool sibling;                /* another than its parent has started it */
    struct membership member;
    struct membership ended[MOST_ENDED]; /* of the root: members that have ended, the last ones */
    uint32_t ended_count;                /* how many ever did */
    int stage;                   /* MEMBER_... of a checkpoint, see family.c */
    bool begun;                  /* after a restart: it is ready to go on */
    uint32_t gathered;           /* of the root: how many checkpoints are over; of others: when its part was written */
    struct gathering *gathering; /* of the root, as are the next four */
    long gather_result;
    uint32_t awaited;            /* members that are to come back */
    uint32_t processes;          /* in the last image */
    struct adopted *adopted;     /* files that members share, until all are back */
    struct network *network;     /* NULL: there was no socket yet */
    struct ipc *ipc;             /* NULL: nothing of System V's */
    struct terminal *terminals;  /* of the root, as are the next two; guarded by their lock */
    struct due_signal due[MOST_DUE];
    atomic_uint due_count;
    int ready_set;               /* tells of files that are to send signals; -1: there were none */
    struct file *ready_files;    /* these */
    atomic_uint ready_count;
    atomic_uint inotifies, watches; /* of the root: what the family has of them */
    atomic_int untold;    /* of the root: events that the host has not taken yet */
    atomic_int members;   /* of the root: sessions of the family that are alive, itself included */
    int64_t noted_ns;
    struct shadow_statistics statistics;
};

/* events.c */
void tell(struct session *s, int kind, int64_t value, int64_t detail, const char *text);

/* host.c */
void bury_session(int id);
void block_signals(void);
void end_family(struct session *root);
extern pthread_mutex_t table_lock; /* of the table of sessions and of what their statistics add up to */
enum { STACK_BYTES = 128 << 10 };  /* of a session's thread */

/* session.c */
int64_t now_ns(void);
void broken(struct session *s, const char *how);
uint8_t *out_room(struct work *w, size_t size);
void wait_on(struct work *w, int fd, short events);
void serve_channel(struct session *s);
bool take_in(struct session *s, size_t room);
void note_processor_time(struct session *s);

/* answer.c */
void answer(struct work *w, long result);

bool send_foreseen(struct work *w, long result, const struct foreseen *head, const char *path);

/* buffer.c */
struct session *session_new(void);
void session_free(struct session *s);
bool buffer_size(uint8_t **at, size_t *room, size_t size);
void idle_expect(struct session *s);
void idle_sleep(struct session *s);

/* secret.c */
bool secret_begin(struct session *s, const uint8_t *key);
bool secret_begin_member(struct session *s, const struct session *from, uint64_t number);
void secret_end(struct session *s);
uint8_t *secret_record(struct session *s, const uint8_t *from, size_t *size);
ssize_t secret_receive(struct session *s);

/* plan.c */
void plan_begin(struct session *s);
void plan_learn(struct work *w, long result);
void plan_forget(struct session *s);

/* library.c */
struct stat;
void library_learn(struct session *s, const uint8_t *from, size_t size);
void library_put(struct work *w, const struct stat *st);

/* family.c */
void family_release(struct session *root, long result);
void family_joined(struct session *root);
void family_left(struct session *root, struct session *s);
bool family_may_grow(struct session *root);
long family_wait(struct work *w, int64_t until_ns);

/* groups.c */
struct membership *membership_of(struct session *root, int pid) REQUIRES(table_lock);
void membership_ended(struct session *root, const struct membership *who) REQUIRES(table_lock);
void membership_again(struct work *w);

/* member_facts.c */
int64_t ticks_since_boot(void);
void program_copy(struct session *member, const struct session *s);
bool is_listing(const struct file *file);
long listing_read(struct work *w, const struct file *file);
void listing_status(struct work *w);
enum { IS_LISTING = 1 /* the end of a FILE_TEXT */ };

/* process_files.c */
struct process_file;
void process_ends(struct session *s);
void processes_ended(struct session *root, int pid);
int process_timer(void);
bool process_file_begin(struct session *s, struct file *file, int pid, bool ended);
void process_file_end(struct process_file *p);
int process_of(const struct file *file, bool *ended);
int64_t process_described(const struct file *file);

/* members.c */
void drop_spares(struct session *root);
bool member_is_gone(struct session *root, int real_pid);

/* memory_files.c */
long memory_before(struct work *w);
void memory_after(struct work *w);
bool memory_may_be_mapped(struct session *s, struct file *file, int64_t end);
void memory_end(struct file *file);
void memory_leave(struct session *root);

/* mapped.c */
long span_release(struct session *s, int64_t handle);
void spans_copy(struct session *member, const struct session *s);
void spans_leave(struct session *s);
bool is_shared_file(struct session *s, int real);
bool mapped_begin(struct work *w);
bool mapped_refuses(struct work *w);
void mapped_emptied(struct work *w, int64_t fd);
void mapped_end(struct work *w, long result);

/* files.c */
void file_begin(struct file *file, int real, int flags);
struct file *file_new(int real, int flags);
void file_keep(struct file *file);
bool file_kept(struct file *file);
void file_drop(struct file *file);
struct file *file_of(struct session *s, int64_t descriptor);
struct file **handle_of(struct session *s, int64_t handle);
int real_of(struct session *s, int64_t descriptor);
long enter_file(struct session *s, struct file *file, int from, bool closes_on_exec);
long close_entry(struct session *s, int64_t descriptor);
/* Why a write of this process's failed that it was not told of, once; 0: none did. The host hears of each. */
int take_lost_write(struct session *s);
void close_all(struct session *s);
void open_standard(struct session *s);

/* records.c */
bool records_enter(struct session *s, struct locked *place, struct file *file);
void records_closed(struct session *s, const struct file *file);
void records_forget(struct session *s);

/* ready_signals.c */
void ready_look(const struct work *w);
void ready_closing(struct file *file);

/* ipc.c */
void ipc_leave(struct work *w);
void ipc_process_ended(struct session *s);
void ipc_end(struct session *root);

/* posix_queues.c */
void posix_queue_dropped(struct posix_queue *queue);
void posix_queue_closed(struct session *s, const struct file *file);

/* segments.c */
void segments_left(struct session *s);
void segment_left(struct session *s, const struct file *file);

/* open_calls.c */
long check_proc(int real, int flags);
int open_at(const struct session *s, int directory, const char *path, int flags, mode_t mode);

/* serve.c */
long serve(struct work *w);
extern const struct call shadow_calls[CALL_COUNT];

/* confine.c */
struct confined { /* a request as it came */
    struct request head;
    uint8_t *payload, *fresh;
    int pins[2];
};
const char *confine_begin(struct session *s);
long confine(struct work *w, struct confined *before);
void confine_end(struct work *w, struct confined *before);
bool confined_name(const struct work *w, const char *name, char *to);
bool may_have(const struct session *s, int real, bool writes);
int pin_to_read(const struct session *s, const char *path, int flags);
enum { PINNED_NAME = 32 };
bool may_bring_back(const struct session *s, const char **name, char to[PINNED_NAME + PATH_LIMIT], int *pin);

/* journal.c */
void journal_close(struct session *s, bool finished);
long journal_before(struct work *w);
void journal_after(struct work *w, long result);
long journal_reset(struct session *s, uint64_t generation);
long journal_apply(struct session *s, uint64_t generation);
enum { JOURNAL_FROM_START = 2, GENERATION_OF_START = 1 }; /* generations of images are random */
uint64_t journal_new_generation(void);

/* describe.c */
long serve_describe(struct work *w);

/* adopt.c */
long serve_adopt(struct work *w);
void adopted_forget(struct session *root);

#endif
