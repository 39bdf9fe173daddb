/* A queue of bytes, which gives its memory back when it is empty. */
#include "relays.h"

#include <stdlib.h>
#include <string.h>

enum { SMALL_ROOM = 16 << 10 }; /* is kept between two uses */

/* Returns false when there is no memory. */
bool bytes_add(struct bytes *b, const uint8_t *from, size_t size)
{
    if (b->start && b->start + b->used + size > b->room) {
        memmove(b->data, b->data + b->start, b->used);
        b->start = 0;
    }
    if (b->used + size > b->room) {
        size_t room = b->room ? b->room : SMALL_ROOM;
        while (room < b->used + size)
            room *= 2;
        uint8_t *data = realloc(b->data, room);
        if (!data)
            return false;
        b->data = data;
        b->room = room;
    }
    memcpy(b->data + b->start + b->used, from, size);
    b->used += size;
    return true;
}

void bytes_drop(struct bytes *b, size_t size)
{
    b->start += size;
    b->used -= size;
    if (b->used)
        return;
    b->start = 0;
    if (b->room > SMALL_ROOM)
        bytes_free(b);
}

void bytes_free(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){0};
}
