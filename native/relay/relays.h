/* What the sources of the relays share. */
#ifndef CONDOR_RELAYS_H
#define CONDOR_RELAYS_H

#include "relay.h"

#include "guards.h"

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

enum { READ_BYTES = 256 << 10 };

/* A queue of bytes. */
struct bytes {
    uint8_t *data;
    size_t start, used, room;
};

/* One of the two descriptors of a relay; -1: closed. */
struct end {
    struct relay *relay;
    int fd;
    uint32_t watched; /* EPOLLIN, EPOLLOUT */
    struct bytes waiting; /* is to be written */
};

enum { FIRST, SECOND, LOCAL = FIRST, REMOTE = SECOND };

/* Of a splice. */
struct spliced {
    bool said_all[2], told_so[2]; /* an end will say no more; it was told that the other will not */
    bool finishing;               /* nothing is read any more */
    uint64_t carried[2];
};

enum { HEAD_BYTES = 12 };

/* Of a numbered channel.  Bytes are counted from the channel's beginning; its end counts as one more. */
struct numbered {
    struct bytes kept;        /* what was read here and has not arrived: from ACKNOWLEDGED on */
    uint64_t acknowledged;    /* so much has arrived at the other end */
    uint64_t sent;            /* so much was sent, the last part over this connection */
    uint64_t received, told;  /* so much has come, and so much of it the other end knows of */
    bool listens;             /* the other end speaks first */
    bool local_over;          /* nothing more is read here */
    bool end_sent, end_came;  /* over this connection; ever */
    uint8_t head[HEAD_BYTES]; /* of the frame that comes */
    size_t head_used;
    uint32_t left; /* of its bytes */
};

struct relay {
    bool is_channel, over;
    struct end ends[2];
    union {
        struct spliced splice;
        struct numbered channel;
    };
    const char *why;
    int news;
    bool has_news;
    struct relay *next_news;
    struct relay *next_dead;
};

extern pthread_mutex_t relay_lock; /* of every relay */

/* bytes.c */
bool bytes_add(struct bytes *b, const uint8_t *from, size_t size);
void bytes_drop(struct bytes *b, size_t size);
void bytes_free(struct bytes *b);

/* relay.c */
void relay_watch(struct end *end, uint32_t events) REQUIRES(relay_lock);
void relay_close(struct end *end) REQUIRES(relay_lock);
void relay_tell(struct relay *relay, int what) REQUIRES(relay_lock);
void relay_end(struct relay *relay, const char *why) REQUIRES(relay_lock);
bool relay_write_waiting(struct end *end) REQUIRES(relay_lock);
bool relay_write(struct end *end, const uint8_t *from, size_t size) REQUIRES(relay_lock);

/* splice.c */
void splice_begin(struct relay *relay) REQUIRES(relay_lock);
void splice_ready(struct relay *relay, int number, uint32_t events, uint8_t *room) REQUIRES(relay_lock);

/* numbered.c */
void numbered_begin(struct relay *relay) REQUIRES(relay_lock);
void numbered_ready(struct relay *relay, int number, uint32_t events, uint8_t *room) REQUIRES(relay_lock);
int numbered_attach(struct relay *relay, int remote, uint64_t arrived, bool listens) REQUIRES(relay_lock);
void numbered_detach(struct relay *relay) REQUIRES(relay_lock);

#endif
