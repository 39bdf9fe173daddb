/* The few words of a C library that the runtime needs. */
#include "text.h"

#include "trap.h"

void *memcpy(void *to, const void *from, size_t size)
{
    void *start = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return start;
}

void *memset(void *to, int byte, size_t size)
{
    void *start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
    return start;
}

void *memmove(void *to, const void *from, size_t size)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    if (t <= f || t >= f + size)
        return memcpy(to, from, size);
    while (size--)
        t[size] = f[size];
    return to;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const unsigned char *l = left, *r = right;
    for (size_t i = 0; i < size; i++)
        if (l[i] != r[i])
            return l[i] - r[i];
    return 0;
}

size_t strlen(const char *text)
{
    size_t length = 0;
    while (text[length])
        length++;
    return length;
}

int strcmp(const char *left, const char *right)
{
    while (*left && *left == *right)
        left++, right++;
    return (unsigned char)*left - (unsigned char)*right;
}

bool starts_with(const char *text, const char *prefix)
{
    while (*prefix)
        if (*text++ != *prefix++)
            return false;
    return true;
}

void put(struct text *text, const char *words)
{
    while (*words && text->used + 1 < text->room)
        text->at[text->used++] = *words++;
    text->at[text->used] = 0;
}

void put_number(struct text *text, unsigned long value, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    do
        digits[--at] = "0123456789abcdef"[value % base];
    while (value /= base);
    put(text, digits + at);
}

void put_signed(struct text *text, long value)
{
    if (value < 0)
        put(text, "-");
    put_number(text, value < 0 ? -(unsigned long)value : (unsigned long)value, 10);
}

uint64_t read_number(const char **at, unsigned base)
{
    uint64_t value = 0;
    for (;; ++*at) {
        unsigned char c = (unsigned char)**at;
        unsigned digit = c >= '0' && c <= '9' ? c - '0' + 0u : c >= 'a' && c <= 'f' ? c - 'a' + 10u : 99u;
        if (digit >= base)
            return value;
        value = value * base + digit;
    }
}

#ifdef RUNTIME_TRACE
void trace(const char *what, long number, long value)
{
    char line[200];
    struct text text = {line, 0, sizeof line};
    put(&text, what);
    put(&text, " ");
    if (number >= 0 && number < CALL_COUNT && calls[number].name)
        put(&text, calls[number].name);
    else
        put_signed(&text, number);
    put(&text, " ");
    if (value < 0)
        put_signed(&text, value);
    else
        put(&text, "0x"), put_number(&text, (unsigned long)value, 16);
    put(&text, "\n");
    SYSTEM(__NR_write, 2, line, text.used);
}
#endif
