/* The shadow: does a program's system calls at home, as its owner, while the program runs elsewhere.
 *
 * One session serves one channel, in one thread.  The thread has its own working directory and umask
 * (unshare(CLONE_FS)), so the program's are the kernel's business.  What the program calls a descriptor is
 * an index of the session's table; several entries, also of several sessions, may share one open file.
 * Every request is hostile until checked: lengths against the frame, descriptors against the table, paths
 * by the kernel with the owner's rights.
 *
 * What a session has to tell goes as events to one queue per host; a descriptor becomes readable.
 */
#ifndef CONDOR_SHADOW_H
#define CONDOR_SHADOW_H

#include <stddef.h>
#include <stdint.h>

struct shadow_task {
    const char *program;              /* path at home */
    const char *const *arguments;     /* ends with a null */
    const char *const *environment;
    const char *directory;            /* working directory, or null */
    const char *image;                /* where checkpoints go; null: none can be taken */
    int standard[3];                  /* stdin, stdout, stderr; duplicated */
    uint64_t stack_bytes;
    int journal;                      /* keep an undo journal beside the image; 2: from the first call on, so that a
                                         program which begins anew finds its files as it found them then */
    int journal_outlives;             /* the program's end: its image may be started again, and finds its files */
    const uint8_t *key;               /* 32 bytes for this run only: the channel is encrypted; null: it is plain */
    int64_t increments;               /* checkpoints after a whole one of at least so many bytes may be what changed
                                         since: <image>.delta; 0: never */
    int direct;                       /* the channel cannot carry descriptors: a helper's is told as an event, and who
                                         serves the other end knows where a checkpoint is to be written */
    int spares;                       /* direct: a helper waits for a connection of its own, see shadow_spare */
    int has_identity;                 /* the session's threads become this user, the host stays who it is */
    uint32_t uid, gid;
    const char *libraries;            /* folders, with colons between them: of what lies below and every user may read, a
                                         digest may be told in place of the content; null: never */
    const char *job_root;             /* the program gets at what lies below, and to read at what every program needs;
                                         null: at what its owner may */
};

enum shadow_event_kind {
    SHADOW_STARTED = 1,  /* value: pid of the runtime where it runs */
    SHADOW_EXITED = 2,   /* value: exit status; detail: errno of a failed start */
    SHADOW_LOST = 3,     /* the channel ended without an exit */
    SHADOW_IMAGE = 4,    /* a checkpoint is complete; value: bytes; detail: ns it took */
    SHADOW_NO_IMAGE = 5, /* a checkpoint failed; value: errno (EAGAIN: helpers run; ask again); text: why */
    SHADOW_BROKEN = 6,   /* the runtime broke the protocol; text: how */
    SHADOW_MEMBER = 10,  /* of a direct channel: value: descriptor of a helper's channel, the taker's from then on;
                            detail: the helper's number */
    SHADOW_MEMBER_STRAIGHT = 11, /* a helper has a channel of its own straight home; value: label of the connection;
                                    detail: the helper's number */
    SHADOW_WANTS_SPARE = 12, /* a helper waits, for a while: see shadow_spare. The host gives another when a
                                    helper has taken it, since it need not be the one that waited */
    SHADOW_ENDED = 7,    /* the session is over; its id is free */
    SHADOW_INCREMENT = 9, /* as SHADOW_IMAGE, of a file that needs the whole image before it; text: its name */
    SHADOW_REFUSED = 13,   /* a call was refused for a reason that its errno does not tell; text: which */
    SHADOW_WRITE_LOST = 8, /* a late write failed, and nothing asked for it; value: errno, detail: pid in the family; text: where */
};

struct shadow_event {
    int session;
    int kind;
    int64_t value, detail;
    char text[240];
};

struct shadow_statistics {
    uint64_t calls, bytes_in, bytes_out, files_opened, checkpoints;
    uint64_t files_kept_there, bytes_kept_there; /* told by their digests, because the other side had them */
    uint64_t by_call[512];
    int64_t served_ns; /* processor time of the session's thread */
};

/* Returns the session's id, or -errno. CHANNEL is the session's from then on. */
int shadow_open(int channel, const struct shadow_task *task);

/* The descriptor that is readable while there are events. */
int shadow_event_descriptor(void);

/* Takes one event. Returns 1, or 0 when there is none. */
int shadow_next_event(struct shadow_event *event);

/* Statistics of a session until its SHADOW_ENDED has been taken. Returns 0 or -errno. */
int shadow_read_statistics(int session, struct shadow_statistics *to);

/* From now on a complete checkpoint ends the program: it is to go on elsewhere. Returns 0 or -errno. */
int shadow_vacate(int session);

/* A piece of an image that is to lie elsewhere, in whole pages. */
struct shadow_moved {
    int64_t to, from, size;
};

struct shadow_digest {
    uint64_t computed, stored; /* of all pages, and as the header has it */
    uint64_t moved;            /* what the moved pieces add to another image's digest */
};

/* The digest of an image. MOVED: COUNT pieces in the order of FROM. Returns 0, or -errno; -ENODATA: it has none. */
int shadow_digest_image(int file, const struct shadow_moved *moved, size_t count, struct shadow_digest *found);

/* Gives a direct session a connection, called LABEL, that becomes the channel of its next helper; CHANNEL -1: none will
 * come. Returns 0, and the connection is the session's; or -errno. */
int shadow_spare(int session, int channel, int64_t label);

/* Ends a session: its channel is shut, and its helpers', which ends the program. */
int shadow_close(int session);

#endif
