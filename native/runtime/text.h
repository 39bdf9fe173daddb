/* The few words of a C library that the runtime needs, and writing of text. */
#ifndef RUNTIME_TEXT_H
#define RUNTIME_TEXT_H

#include "abi.h"

void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int memcmp(const void *left, const void *right, size_t size);
size_t strlen(const char *text);
int strcmp(const char *left, const char *right);
bool starts_with(const char *text, const char *prefix);

struct text {
    char *at;
    size_t used, room;
};

void put(struct text *text, const char *words);
void put_number(struct text *text, unsigned long value, unsigned base);
void put_signed(struct text *text, long value);
uint64_t read_number(const char **at, unsigned base);

#ifdef RUNTIME_TRACE
void trace(const char *what, long number, long value);
#else
#define trace(what, number, value) ((void)0)
#endif

#endif
