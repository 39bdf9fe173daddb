/* Tokens of the language, as the parser sees them: one at a time, with the names that were seen before. */

#ifndef CLASSADS_TOKENS_H
#define CLASSADS_TOKENS_H

#include "core.h"

typedef enum { T_OTHER, T_END, T_NAME, T_NUMBER, T_STRING, T_OPERATOR, T_MARK } TokenKind;
typedef enum { WORD_NONE, WORD_TRUE, WORD_FALSE, WORD_UNDEFINED, WORD_ERROR, WORD_IS, WORD_ISNT, WORD_TIME } Word;

typedef struct {
    PyObject *text;
    const void *data;
    int unit; /* as PyUnicode_KIND has it */
    Py_ssize_t size, at; /* at: behind the token */
    /* the token */
    TokenKind kind;
    Py_ssize_t start;
    int sign;       /* T_OPERATOR: an Operator; T_MARK: a character; '=' alone is a mark */
    bool escapes;   /* T_STRING: whether there are backslashes in it */
    int depth;
} Parser;

#define CHARACTER(p, index) ((index) < (p)->size ? PyUnicode_READ((p)->unit, (p)->data, (index)) : 0)

/* A name as it was first spelled, and in lower case. */
typedef struct {
    char text[40];
    uint8_t size;
    Word word;
    PyObject *name, *key;
} Known;

/* Read the token behind `at`. */
void next_token(Parser *p);

/* The entry of the name token; NULL where it is too long (no exception) or memory is short. */
const Known *known_name(Parser *p);

static inline bool is_digit(Py_UCS4 c) { return c >= '0' && c <= '9'; }

static inline bool is_mark(const Parser *p, int sign) { return p->kind == T_MARK && p->sign == sign; }

static inline bool take(Parser *p, int sign)
{
    if (!is_mark(p, sign))
        return false;
    next_token(p);
    return true;
}

#endif
