/* Streams: pieces of files that were asked for before the program did.  See read_ahead.c for what they mean. */
#ifndef RUNTIME_STREAMS_H
#define RUNTIME_STREAMS_H

#include <asm/stat.h>

#include "channel.h"

enum { STREAMS = 8, PIECES = 128, PIECE = 64 << 10, FIRST_AHEAD = 128 << 10 };
#define FRESH_NS SECOND_NS
#define MOST_AHEAD ((int64_t)(PIECES - 2) * PIECE)

/* PIECE bytes of a file at most, up to the next multiple of PIECE. */
struct piece {
    volatile uint32_t state; /* WAITER_... */
    volatile uint32_t place; /* PLACE_...: where it goes when it arrives */
    uint32_t generation, world;
    int64_t offset, asked, length; /* length < asked: the file ended there */
    int64_t when_ns;
    bool end_told;
};

enum { PLACE_OPEN, PLACE_BUFFER, PLACE_PROGRAM };

/* Guarded by its lock, but for generation, the states of its pieces, and what the reader of the channel changes. */
struct stream {
    struct lock lock;
    volatile int fd; /* one more than the descriptor; 0: none */
    uint64_t identity;
    volatile uint32_t generation; /* of what is still good */
    uint32_t used;                /* guarded by streams_lock */
    bool has_status;
    struct stat status;
    uint32_t status_world;
    int64_t status_ns;
    int64_t next;  /* where a sequential reader would go on */
    int64_t ahead; /* bytes wanted beyond it */
    bool waited;
    uint8_t *buffer;
    struct piece pieces[PIECES];
    uint16_t order[PIECES]; /* asked for, in this order */
    uint8_t *wanted_at; /* the program's memory, of the piece with PLACE_PROGRAM */
    volatile uint32_t asked, arrived;
};

struct stream *stream_of(int fd, uint64_t identity);
void drop_stream(int fd);
void spoil_streams(uint64_t identity);
bool has_buffer(struct stream *s);
void begin_piece(struct stream *s, struct piece *p, int64_t offset, int64_t size);
void ask_ahead(struct stream *s, int fd, int64_t from, int64_t size);
long take(struct stream *s, uint8_t *to, size_t size, int64_t offset, bool *ended);
void streams_reset(bool mapped) REQUIRES(one_thread);
uint8_t *read_ahead_place(unsigned stream, size_t *room);
void read_ahead_arrived(unsigned stream, int64_t length);

#endif
