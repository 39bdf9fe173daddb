/* What the runtime and the shadow say to each other over the channel.
 *
 * The runtime asks, the shadow answers; both are little-endian, frames follow each other without padding.
 * A request is a header and a payload: the payload is the input of the arguments in their order, as
 * calls.h describes them.  An answer is a header and the output of the arguments in their order, present
 * only when the result is not an error.  The shadow treats each request as hostile.
 */
#ifndef CONDOR_PROTOCOL_H
#define CONDOR_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

enum {
    PROTOCOL_VERSION = 2,
    MAX_PAYLOAD = 1 << 20, /* one transfer of read or write; longer ones are several requests */
    MAX_READ = 16 << 20,   /* the same for a read of an ordinary file, which needs no buffer at home */
    MAX_UNANSWERED = 8 << 20, /* of one file's writes before one of them waits for its answer */
    MAX_BACKLOG = 32 << 20,   /* requests that the shadow takes in while its answers are not read */
    MAX_BLOB = 64 << 20,   /* the description of all open files in a checkpoint */
    MAX_START = 8 << 20,   /* arguments and environment */
    PATH_LIMIT = 4096,
};

struct request {
    uint32_t size; /* bytes of payload */
    uint16_t id;   /* comes back in the answer; the thread's slot */
    uint16_t call; /* a system call's number or an operation */
    int64_t arguments[6];
};

struct answer {
    uint32_t size;
    uint16_t id;
    uint16_t hints;
    int64_t result; /* negative: -errno */
};

enum {
    HINT_MORE = 1,   /* a short transfer would mean end of file: go on with the next piece */
    HINT_STEADY = 2, /* an ordinary file of an ordinary file system: its size is true, it never waits */
    HINT_SIGNALS = 0x100, /* a terminal of the family's sends signals: see OP_TERMINAL_SIGNALS */
    HINT_MAPPED = 0x80, /* what was read, written or cut is mapped by the family, too: see SHARE_WHERE */
};

/* Ids beside the threads' slots. */
enum {
    ID_NONE = 0xffff,  /* write, pwrite64, close, lseek: no answer; an error is told with the next answer */
    ID_PLAN = 0x3fff,  /* answers to questions that the program will probably ask; see struct foreseen */
    ID_AHEAD = 0x4000, /* and the number of a stream: read ahead, answered in the order of asking */
};

/* openat with WANT_FACTS and a number of bytes as its argument 4, and OP_FACTS, answer with the file's
 * struct stat and, of files opened for reading only, as many of the first bytes.  Hints say the rest. */
enum { WANT_FACTS = 1 << 30, FIRST_BYTES = 16384, STATUS_BYTES = 144 };
enum {
    FACT_READS = 0x10,  /* steady, open for reading only */
    FACT_WRITES = 0x20, /* steady, open for writing, no wish for synchronous writing */
    FACT_ALONE = 0x40,  /* no other descriptor shares its position */
};

/* Operations beside the system calls.  Numbers stay: checkpoints outlive versions. */
enum {
    OP_HELLO = 1000,       /* in: struct hello; out: struct start, strings */
    OP_CANCEL = 1001,      /* argument 0: id of a waiting request; no answer of its own */
    OP_EXIT = 1002,        /* argument 0: status */
    OP_POLL = 1003,        /* pollfds in and out; argument 1: timeout in ns, -1 none; 2: signals that wait, a bit each */
    OP_EPOLL_WAIT = 1004,  /* descriptor, most events, timeout in ns, signals that wait; out: events */
    OP_TEXT = 1005,        /* in: the content of a synthetic file; argument 1: TEXT_..., what stands behind it; result: a new descriptor */
    OP_DESCRIBE = 1006,    /* out: the blob that describes all open files; argument 0: capacity */
    OP_ADOPT = 1007,       /* in: such a blob, after a restart; argument 0: how many processes come back, 0: one; of this
                            * one, 1: group, 2: session, 3: the group's number where it runs, 4: has executed, 5: parent */
    OP_IMAGE_BEGIN = 1008, /* a new image is to be written: its descriptor comes beside the answer; argument 0:
                            * generation of a whole image before it; result 1: only what changed since then */
    OP_IMAGE_END = 1009,   /* argument 0: 1 good, 0 given up; argument 1: bytes; result 1: end here */
    OP_NOTE = 1010,        /* argument 0: call number refused; for the event log */
    OP_HOLD = 1011,        /* fd: keep its file under a handle of the runtime's, for mappings; argument 1: HOLD_...;
                            * 2: how far in it, if that is to be written */
    OP_RELEASE = 1012,     /* handle: forget it; result 0, or one more than what OP_SHARE says: the last of it, see there */
    OP_FORK = 1013,        /* a channel for a new member of the family comes beside the answer; argument 0: it may be
                            * one that goes straight home (CONTROL_MEMBER); argument 1: how many processes come back;
                            * 2: 1: its parent is this one's.
                            * -EINPROGRESS: a checkpoint of the family begins; after it */
    OP_REAL_PID = 1015,    /* pid of another member; result: its number where it runs; argument 1: REAL_PID_... */
    OP_EXEC = 1016,        /* close the descriptors marked close-on-exec */
    OP_PATH_OF = 1017,     /* fd; out: its path at home */
    OP_BEGIN = 1018,       /* a restarted program is about to go on; argument 0: how many processes come back: answered
                            * when all are here */
    OP_FACTS = 1019,       /* fd; result: its position; out: struct stat; hints FACT_... */
    OP_TAKE = 1021,        /* ticket, descriptor: a foreseen file is open under that number; no answer */
    OP_PLAN_END = 1022,    /* the other foreseen files are not needed; argument 0: answers used; no answer */
    OP_LIMIT_FILES = 1023, /* argument 0: descriptors are below it from now on (RLIMIT_NOFILE) */
    OP_MEMBER_GONE = 1020, /* pid of a member that a signal ended; answered when its last call is done */
    /* A checkpoint of a family, in this order; see shadow/family.c. */
    OP_GATHER = 1024,       /* of the first process, GATHER_...; out: real pids that are to be signalled, before it asks
                             * again; result: their number, GATHER_ALONE, or 0: all are parked */
    OP_PARKED = 1025,       /* answered when all are parked; -EAGAIN: no checkpoint is being taken */
    OP_SHARED_MEMORY = 1026,      /* in: struct shared_piece of each piece of shared memory; out: a byte for each: 1: write it */
    OP_PART = 1027,         /* bytes of this process's part, or -errno; in: struct lineage, struct lineage_child ...; result: where
                             * it begins in the image, whose file comes beside the answer */
    OP_SHARE = 1029,        /* handle, place in its file, bytes, SHARE_...; see struct shared_place */
    OP_REOPEN = 1040,       /* fd, flags of open: its file, opened again under /proc/self/fd; result: a new descriptor */
    OP_FILE_INFO = 1041,    /* fd, O_CLOEXEC or 0: what is said of it under /proc/self/fdinfo; result: a new descriptor */
    OP_PROGRAM = 1042,      /* when this process began, in ticks since 1970, or 0: home knows, and bytes of the path, or 0: its name
                             * alone; in: name, program's path, arguments, each with a zero behind it; no answer */
    OP_MEMBERS = 1043,      /* MEMBER_..., pid; out: struct member_told and words, or a path */
    OP_LISTING = 1044,      /* LISTING_..., O_CLOEXEC or 0; in: names for LISTING_GIVEN; result: a new descriptor */
    OP_GROUP = 1030,        /* GROUP_..., pid or 0: this process, group or 0: the process's, or this process's; 1: the
                             * pid is a child, not waited for; see shadow/groups.c */
    OP_PROCESS = 1034,          /* PROCESS_...; see shadow/family/process_files.c */
    OP_ORPHANS = 1033,          /* of members that have no living parent, or this process, from number argument 0 on as many as
                                 * argument 1, some of which have ended; out: struct orphan ...; result: how many */
    OP_SIGNALS = 1032,          /* fd, of signals; result: 1: it does not wait; out: which, a bit each */
    OP_TERMINAL_SIGNALS = 1031, /* out: struct sent_signal ...; result: how many are to be sent now */
    OP_PART_WRITTEN = 1028, /* errno or 0, digest; of the first process: answered when all are written, out: struct
                             * family_image ...; of others: when all is over: 0: go on, 1: end here, -errno: go on */
};

/* Which way OP_REAL_PID is asked. Back, it is told of who has ended, too. */
enum { REAL_PID_OF = 0, REAL_PID_BACK = 1, REAL_PID_OF_LIVING = 2 /* back, and of nobody else */ };

/* Process groups and sessions: what OP_GROUP is asked. A group has a number where it runs, too: the kernel's. */
enum {
    GROUP_OF = 1,      /* result: the process's group */
    GROUP_SESSION = 2, /* result: its session */
    GROUP_FIND = 3,    /* may it be put there? result: the group's number where it runs; 0: it is there already */
    GROUP_SET = 4,     /* it was put there */
    GROUP_LEAD = 5,    /* as setsid; result: the session */
    GROUP_REAL = 6,    /* result: the group's number where it runs */
    GROUP_MEMBERS = 7, /* out: real pids, at most MOST_GATHERED; result: their number; group -1: all others */
    GROUP_CONTROLLED = 9, /* result: 1: a member of it has a parent in its session and in another group */
    GROUP_ENDED = 8,   /* after a restart: a child that has ended; arguments 3: session, 4: the group's number */
};

/* Arguments of OP_GATHER, and an answer. */
enum { GATHER_FIRST = 1 /* argument 1: it has children */, GATHER_MORE = 2, GATHER_OVER = 3 /* argument 1: result */,
       GATHER_ALONE = 1 << 20, MOST_GATHERED = 512, MOST_SHARED_PIECES = 1024 };

enum {
    HOLD_TO_WRITE = 0,
    HOLD_SIZE = 1,    /* of a handle: result: the size of its file */
    HOLD_TO_READ = 2, /* a file that is open for reading only, if other mappings of it are changed; else -EACCES */
};

/* Where a piece of a file is in the memory that all members have. The result of OP_SHARE is the place of a part of it,
 * and in its lowest bits the power of two that it is long. */
enum {
    SHARE_ASK = 0,
    SHARE_FILLED = 1, /* the gap that was told last is filled; and the next one? */
    SHARE_CLAIM = 2,  /* after a restart: arguments 4: what the result was; 5: FROM; nothing comes back */
    SHARE_LEFT = 3,   /* argument 4: of this place, of which a release was the last, the memory is given back */
    SHARE_WHERE = 4,  /* fd, number of the piece, bytes: where that of what this thread's last call has read, written or
                       * cut away is; a place in the file counts from the first of these bytes; -ENOENT: no more */
};
#define ARENA_BYTES (8ull << 40)

struct shared_place {
    int64_t from;             /* of the file, what is at the beginning of that part */
    int64_t gap_from, gap_to; /* of the file: to be filled, before asking again; the same: there is no gap */
};

/* A piece of memory that members may share: of the kernel's object with that number. */
struct shared_piece {
    uint64_t object, offset, size;
};

/* A signal to a process, by its number where it runs. */
struct sent_signal {
    int32_t real_pid, number;
};

enum {
    MOST_SENT = 512,    /* signals in one answer */
    READS_SIGNALS = 515, /* as an errno: of a descriptor of signals: the runtime reads them itself */
    IN_BACKGROUND = 514 /* as an errno: the call is one by which a terminal stops who is not in its foreground; with
                         * argument 3 it is done all the same */
};

/* Processes as descriptors: what OP_PROCESS is asked. */
enum {
    PROCESS_FILE = 1, /* O_NONBLOCK or 0; result: a new descriptor, of nobody yet, closed by an exec and not had by a child */
    PROCESS_NAME = 2, /* fd, pid, 1: a child that was not waited for, or this process: that is who it is of */
    PROCESS_OF = 3,   /* fd; out: struct process_told */
    PROCESS_ENDS = 4, /* -, pid; result: 1: it has ended, or has said that it ends */
};

struct process_told {
    int32_t virtual_pid, has_ended, wants_nonblocking, reserved;
};

enum { TEXT_MOUNTS = 1, TEXT_MOUNT_INFO = 2 /* what is mounted at home */ };

/* What OP_MEMBERS is asked. */
enum { MEMBER_TOLD = 1, MEMBER_DIRECTORY = 2 };

enum { PROGRAM_NAME_BYTES = 16, MOST_PROGRAM_BYTES = 128 << 10 };

struct member_told {
    int32_t virtual_pid, parent, group, session, real_pid; /* 0: it does not run where the family does */
    int32_t terminal, foreground; /* as the kernel numbers devices, 0: none; the group in it, -1: none */
    uint32_t uid, gid, reserved;
    int64_t began, began_at; /* in ticks since home was booted, and since 1970 */
    char name[PROGRAM_NAME_BYTES];
    uint32_t path_bytes, argument_bytes; /* of the words that follow */
};

/* Which names a directory under /proc has. Given ones have a letter in front, d, l or f, and a zero behind them. */
enum { LISTING_GIVEN = 0, LISTING_MEMBERS = 1, LISTING_FILES = 2, LISTING_FILE_INFO = 3 };

/* One that may have become another's child. */
struct orphan {
    int32_t virtual_pid, real_pid;
};

/* Who a member is, and the children that it has not waited for. */
struct lineage {
    int32_t virtual_pid, parent_pid;
    uint32_t children, reserved;
};

struct lineage_child {
    int32_t virtual_pid, has_ended, status, reserved; /* as wait4 tells it; 0 of one that lives */
};

/* At the end of a family's image: its members, children that have ended and were not waited for among them, and the
 * memory that they share.  The image's header says where (FAMILY_AT: magic, offset). */
struct family_image {
    uint64_t magic;
    uint32_t members, living, objects;
    uint32_t groups; /* how many struct group_image follow the objects: as many as members, or none in older images */
};

struct member_image {
    uint64_t base; /* of its part in the file */
    int32_t virtual_pid, parent_pid;
    int32_t has_ended, status; /* as in struct lineage_child; 0xffff, in older images, of one that had gone on after a stop */
};

struct object_image {
    uint64_t object, size;
};

struct group_image { /* of the member with the same place in the table */
    int32_t group, session;
};

/* In front of what recvmsg answers: the name, if there is room for it, so many descriptors as there is room for, data. */
struct message_head {
    uint32_t name_size, rights, flags, reserved;
};

enum { NAME_ROOM = 128 /* for a socket's name */, MOST_RIGHTS = 253 /* descriptors beside one message */ };

enum { FAMILY_AT = 0x10f80, MOST_MEMBERS = 1024 /* also of those that have ended */ };
#define FAMILY_MAGIC 0x31796c696d614643ull /* "CFamily1" */

/* After the answer to a fresh program's greeting: what such a program asked the last time it began, answered now.
 * Each is a frame with ID_PLAN: this, the path, the answer's payload.  One with no payload at all is the last.
 * A file that was opened so has no descriptor yet; OP_TAKE gives it one. */
struct foreseen {
    uint32_t call, path_size;
    int64_t arguments[6];
    int64_t ticket; /* of an opened file, else -1 */
};

enum {
    MOST_FORESEEN = 1500,
    MOST_FORESEEN_BYTES = 48 << 20,
    HINT_LISTING = 4, /* the content is a directory's */
    HINT_DIGEST = 8,  /* behind the status is the content's SHA-256; none follows, if the other side has it: struct kept */
};

/* pread64 with it as argument 4: the content's SHA-256 may come first, and HINT_DIGEST says so; then none follows, if the
 * other side has it. The result is the content's size all the same. */
enum { WANT_DIGEST = 1, LEAST_WANTED = 64 << 10 };

/* What the execute machine keeps between runs: contents of files, each behind a header, in one file that the runtime may
 * read, and a table of them in another.  A greeting tells home the first four bytes of each digest. */
enum { LIBRARY_DIGEST = 32, MOST_CONTENTS = 2048, LEAST_KEPT = 1024 /* bytes of a content */ };
#define KEPT_MAGIC 0x3162694c726f4443ull /* "CDorLib1" */

struct kept {
    uint8_t digest[LIBRARY_DIGEST];
    uint64_t offset, size; /* of the content in the file */
};

/* In front of a content, where contents are kept and where the runtime puts new ones. */
struct kept_head {
    uint64_t magic, size;
    uint8_t digest[LIBRARY_DIGEST];
    uint64_t reserved[2];
};

struct hello {
    uint32_t version;
    uint32_t kind; /* HELLO_... */
    uint32_t real_pid;
    uint32_t virtual_pid; /* of a restarted program */
};

enum { HELLO_FRESH = 0, HELLO_RESTARTED = 1, HELLO_MEMBER = 2 };

enum { START_GROUPS = 32 };

struct start {
    int32_t virtual_pid, parent_pid, group, session;
    uint32_t uid, euid, gid, egid;
    uint32_t group_count;
    uint32_t groups[START_GROUPS];
    uint64_t stack_bytes; /* limit of the program's stack */
    uint64_t max_files;
    uint32_t argument_count, environment_count;
    uint32_t string_bytes; /* program path, arguments, environment: each ends with a zero */
    uint32_t taken; /* bits of the descriptors that are open */
};

/* Descriptors of the runtime's process: the program's own ones exist at home only. */
enum { CHANNEL_FD = 3, MAPS_FD = 4, PAGEMAP_FD = 5, OLD_IMAGE_FD = 6, PASSED_FD = 7, FAULT_FD = 8, CONTROL_FD = 9,
       OTHER_CONTROL_FD = 10 /* of a helper whose parent has the one before, and so on in turns */,
       BROKER_FD = 11 /* see runtime/broker.c */, LIBRARY_FD = 12 /* contents that are kept here */ };

/* A channel that goes straight home cannot carry descriptors.  The runtime's first process then has a second
 * socket, to its starter ("control=FD"), for what would come beside answers and what a relay would see. */
struct control {
    uint32_t what, reserved;
    int64_t value; /* of an answer: 0 or -errno */
};

enum {
    CONTROL_BEGAN = 1,   /* signals are safe from now on; no answer */
    CONTROL_FILE = 2,    /* a checkpoint is to be written (value 1: an increment): its file comes beside the answer; of a
                          * helper: the file of the checkpoint that the first process writes */
    CONTROL_WRITTEN = 3, /* it is complete: answered when it is at home, before home is told of its end */
    CONTROL_DROPPED = 4, /* it is given up; no answer */
    CONTROL_REFUSED = 5, /* value: errno; home takes no checkpoint now; no answer */
    CONTROL_MEMBER = 6,  /* value: number of a helper: its channel comes beside the answer; of that, value 0: plain,
                            * and relayed; 1: it goes straight home, and a control socket of its own comes as well */
    CONTROL_EXITED = 7,  /* value: status; home knows that the program has ended; no answer */
    CONTROL_ROOM = 8,    /* a file for contents that are new here comes beside the answer */
    CONTROL_NEW = 9,     /* they are in it: struct kept_head and content, one behind the other; no answer */
    CONTROL_USED = 10,   /* value: place in the table; that content was used; no answer */
};

/* One thread signal asks for a checkpoint; the C libraries use it for themselves, so no program can see
 * that it is taken. */
enum { CHECKPOINT_SIGNAL = 33 };

/* Exit statuses of the runtime itself. */
enum { EXIT_MOVED = 112, EXIT_CHANNEL_LOST = 113, EXIT_RUNTIME_FAULT = 114, EXIT_CANNOT_START = 115 };

#endif
