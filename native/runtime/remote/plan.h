/* Answers that came before the questions: see plan.c. */
#ifndef RUNTIME_PLAN_H
#define RUNTIME_PLAN_H

#include "channel.h"

bool plan_prepare(void);
void plan_begin(uint32_t taken);
void plan_end(void);
void plan_reset(void) REQUIRES(one_thread);
uint8_t *plan_place(size_t size);
void plan_arrived(const struct answer *answer, bool stored);
bool plan_answer(const struct request *request, const char *path, const struct vector out[], int out_count,
                 long *result);
long plan_open(const struct request *request, const char *path, void *status, uint64_t *hints);
long plan_read(int fd, uint8_t *to, size_t size, int64_t offset);
bool plan_status(int fd, void *to, long *result);
void plan_note_opened(int fd);
bool plan_note_closed(int fd, bool *quick);
void plan_note_moved(int fd);

#endif
