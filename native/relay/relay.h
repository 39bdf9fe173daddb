/* Passes bytes on between connections, in one thread of the process: no turn of a reactor is in their way.
 *
 * A relay is one of two kinds.  A splice makes two bare connections one.  A numbered channel lies between a socket of
 * this process and a connection to another machine that may break: both ends of it count the bytes, keep what has not
 * arrived, and go on over another connection where they were.
 *
 * What relays have to tell is fetched by the host; a descriptor becomes readable.  What comes over a connection is
 * hostile until checked.
 */
#ifndef CONDOR_RELAY_H
#define CONDOR_RELAY_H

#include <stddef.h>
#include <stdint.h>

struct relay;

enum relay_news_kind {
    RELAY_ENDED = 1,   /* all is closed; the relay is to be freed */
    RELAY_LOST = 2,    /* of a channel: its connection has ended, and it has not */
    RELAY_LINGERS = 4, /* of a splice: one end is gone, and the other still has to get something */
};

struct relay_news {
    uintptr_t relay;
    int what;        /* RELAY_..., several at once */
    const char *why; /* of RELAY_ENDED: what the other end has done that none of ours does; else null */
};

/* The descriptor that is readable while there are news; -errno. */
int relay_news_descriptor(void);

/* Takes the news of one relay. Returns 1, or 0 when there are none. */
int relay_next_news(struct relay_news *news);

/* Makes a splice of two connected sockets, which are the relay's from then on. NULL: errno says why. */
struct relay *relay_splice(int first, int second);

/* Makes a numbered channel whose end here is the socket LOCAL, the relay's from then on; it has no connection yet. NULL:
 * errno says why. */
struct relay *relay_channel(int local);

/* Gives a channel a connection, the relay's from then on, whose other end says that ARRIVED bytes have come there.
 * LISTENS: nothing is said before the other end has. Returns 0; or -EBADMSG: they cannot have come; -ESRCH: it is over. */
int relay_attach(struct relay *relay, int remote, uint64_t arrived, int listens);

/* Takes a channel's connection away, if it has one: nothing comes any more. Returns how much has come, or -ESRCH. */
int64_t relay_detach(struct relay *relay);

/* Bytes of a splice from the first to the second, and back. */
void relay_carried(struct relay *relay, uint64_t carried[2]);

/* Closes all at once; RELAY_ENDED follows. */
void relay_cut(struct relay *relay);

/* Forgets a relay whose RELAY_ENDED was taken. */
void relay_free(struct relay *relay);

#endif
