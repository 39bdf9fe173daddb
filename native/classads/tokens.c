/* Text to tokens; see tokens.h.
 *
 * What is rare is no token here (T_OTHER): comments, digits missing behind a point, whole numbers of more than 18
 * digits or with a zero in front. The parser in Python reads such a text.
 */

#include "tokens.h"

/* -- names: a small table of those seen, so that a name costs no new string */

enum { KNOWN = 2048 };
static Known known_names[KNOWN];

static Word word_of(const char *text, int size)
{
    static const struct { const char *text; Word word; } words[] = {
        {"true", WORD_TRUE}, {"false", WORD_FALSE}, {"undefined", WORD_UNDEFINED}, {"error", WORD_ERROR},
        {"is", WORD_IS}, {"isnt", WORD_ISNT}, {"abstime", WORD_TIME}, {"reltime", WORD_TIME},
    };
    for (size_t at = 0; at < sizeof words / sizeof *words; at++)
        if ((int)strlen(words[at].text) == size && PyOS_mystrnicmp(words[at].text, text, size) == 0)
            return words[at].word;
    return WORD_NONE;
}

const Known *known_name(Parser *p)
{
    char text[sizeof known_names->text] = "";
    Py_ssize_t size = p->at - p->start;
    if (size >= (Py_ssize_t)sizeof text)
        return NULL;
    uint32_t hash = 2166136261u;
    for (Py_ssize_t at = 0; at < size; at++) {
        text[at] = (char)PyUnicode_READ(p->unit, p->data, p->start + at);
        hash = (hash ^ (uint8_t)text[at]) * 16777619u;
    }
    Known *entry = &known_names[(hash ^ hash >> 15) % KNOWN];
    if (entry->name != NULL && entry->size == size && memcmp(entry->text, text, (size_t)size) == 0)
        return entry;
    PyObject *name = PyUnicode_FromStringAndSize(text, size);
    char lower[sizeof text];
    for (Py_ssize_t at = 0; at < size; at++)
        lower[at] = Py_TOLOWER(text[at]);
    PyObject *key = name == NULL ? NULL : PyUnicode_FromStringAndSize(lower, size);
    if (key == NULL) {
        Py_XDECREF(name);
        return NULL;
    }
    PyUnicode_InternInPlace(&name);
    PyUnicode_InternInPlace(&key);
    Py_XSETREF(entry->name, name);
    Py_XSETREF(entry->key, key);
    memcpy(entry->text, text, (size_t)size);
    entry->size = (uint8_t)size;
    entry->word = word_of(text, (int)size);
    return entry;
}

/* -- tokens */

static bool is_blank(Py_UCS4 c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool is_letter(Py_UCS4 c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static void mark(Parser *p, TokenKind kind, int sign, int length)
{
    p->kind = kind;
    p->sign = sign;
    p->at = p->start + length;
}

static void operator_token(Parser *p, Py_UCS4 c)
{
    Py_UCS4 second = CHARACTER(p, p->start + 1), third = CHARACTER(p, p->start + 2);
    switch (c) {
    case '|': second == '|' ? mark(p, T_OPERATOR, OR, 2) : mark(p, T_OPERATOR, BIT_OR, 1); return;
    case '&': second == '&' ? mark(p, T_OPERATOR, AND, 2) : mark(p, T_OPERATOR, BIT_AND, 1); return;
    case '^': mark(p, T_OPERATOR, BIT_XOR, 1); return;
    case '=':
        if (second == '=')
            mark(p, T_OPERATOR, EQUAL, 2);
        else if ((second == '?' || second == '!') && third == '=')
            mark(p, T_OPERATOR, second == '?' ? IS : ISNT, 3);
        else
            mark(p, T_MARK, '=', 1);
        return;
    case '!': second == '=' ? mark(p, T_OPERATOR, UNEQUAL, 2) : mark(p, T_MARK, '!', 1); return;
    case '<':
        if (second == '<')
            mark(p, T_OPERATOR, SHIFT_LEFT, 2);
        else
            second == '=' ? mark(p, T_OPERATOR, LESS_EQUAL, 2) : mark(p, T_OPERATOR, LESS, 1);
        return;
    case '>':
        if (second == '>')
            third == '>' ? mark(p, T_OPERATOR, SHIFT_LOGICAL, 3) : mark(p, T_OPERATOR, SHIFT_RIGHT, 2);
        else
            second == '=' ? mark(p, T_OPERATOR, GREATER_EQUAL, 2) : mark(p, T_OPERATOR, GREATER, 1);
        return;
    case '+': mark(p, T_OPERATOR, ADD, 1); return;
    case '-': mark(p, T_OPERATOR, SUBTRACT, 1); return;
    case '*': mark(p, T_OPERATOR, MULTIPLY, 1); return;
    case '%': mark(p, T_OPERATOR, MODULUS, 1); return;
    case '/':
        if (second == '/' || second == '*') /* a comment: not read here */
            mark(p, T_OTHER, 0, 1);
        else
            mark(p, T_OPERATOR, DIVIDE, 1);
        return;
    case '~': case '(': case ')': case '{': case '}': case '[': case ']': case '?': case ':': case '.': case ',': case ';':
        mark(p, T_MARK, (int)c, 1);
        return;
    default: mark(p, T_OTHER, 0, 1);
    }
}

/* Behind the digits of an exponent, or `at` itself where none is. */
static Py_ssize_t behind_exponent(Parser *p, Py_ssize_t at)
{
    Py_UCS4 c = CHARACTER(p, at);
    if (c != 'e' && c != 'E')
        return at;
    Py_ssize_t digits = at + 1;
    c = CHARACTER(p, digits);
    if (c == '+' || c == '-')
        digits++;
    if (!is_digit(CHARACTER(p, digits)))
        return at;
    while (is_digit(CHARACTER(p, digits)))
        digits++;
    return digits;
}

static void number_token(Parser *p)
{
    Py_ssize_t at = p->start;
    p->kind = T_NUMBER;
    p->sign = 0; /* 1 for a real */
    while (is_digit(CHARACTER(p, at)))
        at++;
    Py_ssize_t whole = at - p->start;
    if (CHARACTER(p, at) == '.') {
        if (!is_digit(CHARACTER(p, at + 1))) { /* digits are missing */
            mark(p, T_OTHER, 0, 1);
            return;
        }
        p->sign = 1;
        for (at++; is_digit(CHARACTER(p, at)); at++)
            ;
    }
    Py_ssize_t end = behind_exponent(p, at);
    if (end > at)
        p->sign = 1;
    if (p->sign == 0 && (whole > 18 || (whole > 1 && CHARACTER(p, p->start) == '0'))) {
        mark(p, T_OTHER, 0, 1);
        return;
    }
    p->at = end;
}

static void string_token(Parser *p)
{
    p->escapes = false;
    for (Py_ssize_t at = p->start + 1; at < p->size; at++) {
        Py_UCS4 c = CHARACTER(p, at);
        if (c == '"') {
            p->kind = T_STRING;
            p->at = at + 1;
            return;
        }
        if (c == 0)
            break;
        if (c == '\\') {
            p->escapes = true;
            at++; /* CHARACTER looks at its argument twice */
            if (CHARACTER(p, at) == 0)
                break;
        }
    }
    mark(p, T_OTHER, 0, 1);
}

void next_token(Parser *p)
{
    Py_ssize_t at = p->at;
    while (is_blank(CHARACTER(p, at)))
        at++;
    p->start = at;
    if (at >= p->size) {
        p->kind = T_END;
        p->at = at;
        return;
    }
    Py_UCS4 c = CHARACTER(p, at);
    if (is_letter(c)) {
        for (at++; is_letter(CHARACTER(p, at)) || is_digit(CHARACTER(p, at)); at++)
            ;
        p->kind = T_NAME;
        p->at = at;
    } else if (is_digit(c) || (c == '.' && is_digit(CHARACTER(p, at + 1)))) {
        number_token(p);
    } else if (c == '"') {
        string_token(p);
    } else {
        operator_token(p, c);
    }
}
