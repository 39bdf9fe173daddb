/* Questions and answers over the one socket: see channel.c. */
#ifndef RUNTIME_CHANNEL_H
#define RUNTIME_CHANNEL_H

#include "protocol.h"
#include "runtime/lock.h"

struct thread;
struct trap;

struct vector {
    void *base;
    size_t size;
};

/* As the kernel wants it for recvmsg. */
struct message {
    void *name;
    uint64_t name_size;
    struct vector *parts;
    size_t part_count;
    void *control;
    size_t control_size;
    long flags;
};

enum { MOST_PARTS = 6 /* of a request's or an answer's payload */ };
enum { WAITER_IDLE, WAITER_ASKED, WAITER_DONE };

struct waiter {
    volatile uint32_t state; /* WAITER_... */
    struct answer answer;
    struct vector out[MOST_PARTS];
    int out_count;
    bool digest_first; /* the first place is for a digest, if one comes */
    long result;
};

long ask(struct thread *self, const struct request *request, const struct vector in[], int in_count,
         const struct vector out[], int out_count, uint64_t *hints);
long ask_waiting(struct trap *t, struct request *request, const struct vector in[], int in_count,
                 const struct vector out[], int out_count, uint64_t *hints);
void channel_reset(void) REQUIRES(one_thread);
long tell_home(const struct request *request, const struct vector in[], int in_count);
void defer(const struct request *request);
void defer_position(int fd, int64_t position);
void forget_deferred_position(int fd);
void flush_deferred(void);
bool take_back_deferred(unsigned call, int fd);
bool take_news_of_signals(void);
void wait_for_arrival(volatile uint32_t *state);

#endif
