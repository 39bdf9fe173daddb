/* Encryption of the channel: see secret.c. */
#ifndef RUNTIME_SECRET_H
#define RUNTIME_SECRET_H

#include "channel.h"

bool secret_take(long fd) REQUIRES(one_thread);
bool secret_is_kept(void);
void secret_become_member(long number) REQUIRES(one_thread);
void *secret_keep(void);
void secret_again(void *kept) REQUIRES(one_thread);
void secret_forget(void) REQUIRES(one_thread);
void secret_send(const struct vector *parts, int count, void (*send)(const struct vector *parts, int count));
long secret_receive(uint8_t *to, size_t room, long (*receive)(void *to, size_t room, bool may_end), bool may_end);

#endif
