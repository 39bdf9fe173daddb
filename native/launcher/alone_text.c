/* The functions of a C library on text and lists that the launcher needs where it runs without one: see alone.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../guards.h"

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    char *target = to;
    const char *source = from;
    while (size--)
        *target++ = *source++;
    return to;
}

void *memset(void *to, int value, size_t size)
{
    char *target = to;
    while (size--)
        *target++ = (char)value;
    return to;
}

size_t strlen(const char *text)
{
    size_t size = 0;
    while (text[size])
        size++;
    return size;
}

int strncmp(const char *left, const char *right, size_t most)
{
    for (; most; most--, left++, right++)
        if (*left != *right || !*left)
            return (unsigned char)*left - (unsigned char)*right;
    return 0;
}

int strcmp(const char *left, const char *right)
{
    return strncmp(left, right, PTRDIFF_MAX);
}

char *strchr(const char *text, int letter)
{
    for (; *text != (char)letter; text++)
        if (!*text)
            return NULL;
    return (char *)text;
}

char *strstr(const char *text, const char *part)
{
    size_t size = strlen(part);
    for (; strncmp(text, part, size) != 0; text++)
        if (!*text)
            return NULL;
    return (char *)text;
}

char *strtok(char *restrict text, const char *restrict ends)
{
    static char *next UNGUARDED("the launcher has one thread");
    char *word = text ? text : next;
    while (word && *word && strchr(ends, *word))
        word++;
    if (!word || !*word) {
        next = NULL;
        return NULL;
    }
    for (next = word; *next && !strchr(ends, *next);)
        next++;
    if (*next)
        *next++ = 0;
    return word;
}

/* In the two bases that the command line has, 8 and 10. */
long long strtoll(const char *restrict text, char **restrict end, int base)
{
    const char *at = text;
    bool negative = *at == '-', any = false, over = false;
    unsigned long long value = 0, most = negative ? (unsigned long long)LLONG_MAX + 1 : LLONG_MAX;
    if (*at == '-' || *at == '+')
        at++;
    for (; *at >= '0' && *at < '0' + base; at++, any = true) {
        unsigned digit = (unsigned)(*at - '0');
        over = over || value > (most - digit) / (unsigned)base;
        if (!over)
            value = value * (unsigned)base + digit;
    }
    if (end)
        *end = (char *)(any ? at : text);
    if (over) {
        errno = ERANGE;
        return negative ? LLONG_MIN : LLONG_MAX;
    }
    return negative ? (long long)(0 - value) : (long long)value;
}

static void put(char *to, size_t size, size_t *at, char letter)
{
    if (*at + 1 < size)
        to[*at] = letter;
    ++*at;
}

static void put_number(char *to, size_t size, size_t *at, unsigned long value)
{
    char digits[24];
    int count = 0;
    do
        digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count)
        put(to, size, at, digits[--count]);
}

/* %s, %d and %u. */
int snprintf(char *restrict to, size_t size, const char *restrict format, ...)
{
    va_list rest;
    size_t at = 0;
    va_start(rest, format);
    for (; *format; format++) {
        if (*format != '%') {
            put(to, size, &at, *format);
        } else if (*++format == 's') {
            for (const char *word = va_arg(rest, const char *); *word; word++)
                put(to, size, &at, *word);
        } else if (*format == 'u') {
            put_number(to, size, &at, va_arg(rest, unsigned));
        } else {
            int value = va_arg(rest, int);
            if (value < 0)
                put(to, size, &at, '-');
            put_number(to, size, &at, value < 0 ? 0ul - (unsigned long)value : (unsigned long)value);
        }
    }
    va_end(rest);
    if (size)
        to[at < size ? at : size - 1] = 0;
    return (int)at;
}

/* Short lists only. */
void qsort(void *list, size_t count, size_t size, int (*compare)(const void *, const void *))
{
    char *all = list;
    for (size_t i = 1; i < count; i++)
        for (size_t j = i; j && compare(all + (j - 1) * size, all + j * size) > 0; j--)
            for (size_t byte = 0; byte < size; byte++) {
                char kept = all[j * size + byte];
                all[j * size + byte] = all[(j - 1) * size + byte];
                all[(j - 1) * size + byte] = kept;
            }
}
