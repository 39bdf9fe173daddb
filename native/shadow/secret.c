/* The channel's encryption, if the session was given a key (seal.h). */
#include "session.h"

#include <sys/types.h>

#include "seal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { RECORD_BYTES = SEAL_HEAD_BYTES + SEAL_MOST + SEAL_TAG_BYTES };

struct secret {
    uint32_t key[8];
    struct seal in, out;
    uint8_t *raw; /* while part of a record is here */
    size_t raw_used;
};

static struct secret *make(const uint32_t key[8])
{
    struct secret *secret = calloc(1, sizeof *secret);
    if (!secret)
        return NULL;
    memcpy(secret->key, key, SEAL_KEY_BYTES);
    secret->in = seal_make(secret->key, SEAL_TO_HOME);
    secret->out = seal_make(secret->key, SEAL_FROM_HOME);
    return secret;
}

/* Returns whether the session has what it needs; without a key that is nothing. */
bool secret_begin(struct session *s, const uint8_t *key)
{
    uint32_t words[8];
    if (!key)
        return true;
    memcpy(words, key, sizeof words);
    s->secret = make(words);
    return s->secret;
}

/* The key of the NUMBERth helper of FROM. */
bool secret_begin_member(struct session *s, const struct session *from, uint64_t number)
{
    uint32_t words[8];
    if (!from->secret)
        return true;
    memcpy(words, from->secret->key, sizeof words);
    seal_member_key(words, number);
    s->secret = make(words);
    return s->secret;
}

void secret_end(struct session *s)
{
    if (!s->secret)
        return;
    free(s->secret->raw);
    explicit_bzero(s->secret, sizeof *s->secret);
    free(s->secret);
    s->secret = NULL;
}

/* Makes a record of SIZE bytes at FROM, at most SEAL_MOST. The caller frees it. */
uint8_t *secret_record(struct session *s, const uint8_t *from, size_t *size)
{
    uint8_t *record = malloc(*size + SEAL_HEAD_BYTES + SEAL_TAG_BYTES);
    if (record)
        *size = seal_record(&s->secret->out, from, *size, record);
    return record;
}

/* Opens the whole records that are here and appends them to the session's input. */
static bool open_records(struct session *s)
{
    struct secret *secret = s->secret;
    size_t at = 0;
    while (secret->raw_used - at >= SEAL_HEAD_BYTES) {
        uint32_t size;
        memcpy(&size, secret->raw + at, sizeof size);
        if (size > SEAL_MOST)
            return false;
        size_t whole = SEAL_HEAD_BYTES + size + SEAL_TAG_BYTES;
        if (secret->raw_used - at < whole)
            break;
        if (s->in_room - s->in_used < size && !buffer_size(&s->in, &s->in_room, s->in_used + size))
            return false;
        if (!seal_open(&secret->in, secret->raw + at, size, s->in + s->in_used))
            return false;
        s->in_used += size;
        at += whole;
    }
    secret->raw_used -= at;
    memmove(secret->raw, secret->raw + at, secret->raw_used);
    return true;
}

/* Receives what there is. As recv: 0 is the end, also when another process wrote into the channel. */
ssize_t secret_receive(struct session *s)
{
    struct secret *secret = s->secret;
    if (!secret->raw && !(secret->raw = malloc(RECORD_BYTES)))
        return 0;
    ssize_t got = recv(s->channel, secret->raw + secret->raw_used, RECORD_BYTES - secret->raw_used, 0);
    if (got <= 0)
        return got;
    secret->raw_used += (size_t)got;
    if (!open_records(s)) {
        broken(s, "a record that the runtime did not write, or that was changed on its way");
        return 0;
    }
    if (!secret->raw_used) { /* between two records nothing is kept */
        free(secret->raw);
        secret->raw = NULL;
    }
    return got;
}
