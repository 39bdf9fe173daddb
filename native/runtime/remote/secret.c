/* The channel's encryption, if the starter gave a key: everything is sent and received in records (seal.h).
 *
 * Keys and buffers lie where images do not reach: each run has a key of its own, and none is ever saved. */
#include "secret.h"

#include "seal.h"
#include "runtime/layout.h"
#include "runtime/text.h"
#include "runtime/user.h"


enum { RECORD_BYTES = SEAL_HEAD_BYTES + SEAL_MOST + SEAL_TAG_BYTES, RAW_BYTES = 2 * RECORD_BYTES };

enum { KEY_WORDS = 8 };

static struct secret {
    uint32_t key[KEY_WORDS];
    struct seal out, in;
    size_t raw_at, raw_end, text_at, text_end;
    uint8_t raw[RAW_BYTES], text[SEAL_MOST], record[RECORD_BYTES];
} *secret UNGUARDED("set before there is a second thread; what sends is guarded by sending, what receives by reading");

static void begin(void)
{
    secret->out = seal_make(secret->key, SEAL_TO_HOME);
    secret->in = seal_make(secret->key, SEAL_FROM_HOME);
    secret->raw_at = secret->raw_end = secret->text_at = secret->text_end = 0;
}

/* Before the filter closes: FD has the key, and nothing else. -1: there is none. */
bool secret_take(long fd)
{
    secret = NULL;
    if (fd < 0)
        return true;
    long at = SYSTEM(__NR_mmap, 0, page_up(sizeof *secret), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (is_error(at))
        return false;
    secret = (struct secret *)at;
    bool whole = SYSTEM(__NR_read, fd, secret->key, sizeof secret->key) == (long)sizeof secret->key;
    begin();
    SYSTEM(__NR_close, fd);
    return whole;
}

bool secret_is_kept(void)
{
    return secret;
}

/* This process is the NUMBERth helper of another one, with a copy of its memory. */
void secret_become_member(long number)
{
    if (!secret)
        return;
    seal_member_key(secret->key, (uint64_t)number);
    begin();
}

/* This process is a helper whose channel the starter's relay encrypts. */
void secret_forget(void)
{
    if (secret)
        memset(secret, 0, offsetof(struct secret, raw));
    secret = NULL;
}

/* The same process with other data of the runtime's. */
void *secret_keep(void)
{
    return secret;
}

void secret_again(void *kept)
{
    secret = kept;
}

/* Gathers PARTS into records and hands each to SEND. The caller holds the lock. */
void secret_send(const struct vector *parts, int count, void (*send)(const struct vector *parts, int count))
{
    size_t used = 0;
    for (int i = 0; i < count; i++)
        for (size_t done = 0; done < parts[i].size;) {
            size_t piece = parts[i].size - done < SEAL_MOST - used ? parts[i].size - done : SEAL_MOST - used;
            uint8_t *to = secret->record + SEAL_HEAD_BYTES + used;
            if (copy_user(to, (uint8_t *)parts[i].base + done, piece))
                memset(to, 0, piece); /* another thread has just given it up */
            done += piece;
            used += piece;
            bool last = i == count - 1 && done == parts[i].size;
            if (used == SEAL_MOST || last) {
                struct vector record = {secret->record, 0};
                record.size = seal_record(&secret->out, secret->record + SEAL_HEAD_BYTES, used, secret->record);
                send(&record, 1);
                used = 0;
            }
        }
    if (used) { /* the last parts were empty */
        struct vector record = {secret->record, 0};
        record.size = seal_record(&secret->out, secret->record + SEAL_HEAD_BYTES, used, secret->record);
        send(&record, 1);
    }
}

/* What a record needs that begins at raw_at, as far as that is known. */
static size_t wanted(void)
{
    uint32_t size;
    if (secret->raw_end - secret->raw_at < SEAL_HEAD_BYTES)
        return SEAL_HEAD_BYTES;
    memcpy(&size, secret->raw + secret->raw_at, sizeof size);
    return size > SEAL_MOST ? 0 : SEAL_HEAD_BYTES + size + SEAL_TAG_BYTES;
}

/* Fills TO, which may not be there, with up to ROOM bytes. RECEIVE fetches what the socket has. Returns their
 * number, -EINTR when nothing came, -EFAULT; 0: the channel is lost, or another process wrote into it. */
long secret_receive(uint8_t *to, size_t room, long (*receive)(void *to, size_t room, bool may_end), bool may_end)
{
    if (secret->text_at == secret->text_end) {
        size_t need;
        while (!(need = wanted()) || secret->raw_end - secret->raw_at < need) {
            if (!need)
                return 0;
            if (secret->raw_at) {
                memmove(secret->raw, secret->raw + secret->raw_at, secret->raw_end - secret->raw_at);
                secret->raw_end -= secret->raw_at;
                secret->raw_at = 0;
            }
            long got = receive(secret->raw + secret->raw_end, RAW_BYTES - secret->raw_end,
                               may_end && secret->raw_end == 0);
            if (got <= 0)
                return got;
            secret->raw_end += (size_t)got;
        }
        size_t size = need - SEAL_HEAD_BYTES - SEAL_TAG_BYTES;
        if (!seal_open(&secret->in, secret->raw + secret->raw_at, size, secret->text))
            return 0;
        secret->raw_at += need;
        secret->text_at = 0;
        secret->text_end = size;
    }
    size_t have = secret->text_end - secret->text_at;
    if (have > room)
        have = room;
    if (copy_user(to, secret->text + secret->text_at, have))
        return -EFAULT;
    secret->text_at += have;
    return (long)have;
}
