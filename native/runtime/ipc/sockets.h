/* What calls of sockets have in common. */
#ifndef SOCKETS_H
#define SOCKETS_H

#include <stdint.h>

/* What the program is told of a name of SIZE bytes, where it has ROOM for so many: 0 or -EFAULT. */
long give_name(void *to, uint32_t *size_at, uint32_t room, const uint8_t *name, uint32_t size);

#endif
