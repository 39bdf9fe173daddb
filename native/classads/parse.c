/* Text to nodes: a Pratt parser that reads characters as it goes.
 *
 * It takes what the parser in Python takes, except for the rare: comments, octal escapes, strings side by side, names
 * in quotes, numbers of more than 18 digits, times written out. For those, and for whatever is wrong, `parse` gives
 * None, and the parser in Python reads the text, or says what is wrong with it and where.
 */

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

const uint8_t operator_binding[BINARY_OPERATORS] = {
    [OR] = 20, [AND] = 30, [BIT_OR] = 40, [BIT_XOR] = 50, [BIT_AND] = 60, [EQUAL] = 70, [UNEQUAL] = 70, [IS] = 70,
    [ISNT] = 70, [LESS] = 80, [LESS_EQUAL] = 80, [GREATER] = 80, [GREATER_EQUAL] = 80, [SHIFT_LEFT] = 90,
    [SHIFT_RIGHT] = 90, [SHIFT_LOGICAL] = 90, [ADD] = 100, [SUBTRACT] = 100, [MULTIPLY] = 110, [DIVIDE] = 110,
    [MODULUS] = 110,
};

static Node *expression(Parser *p), *binary(Parser *p, int limit), *operand(Parser *p);

/* -- names: a small table of those seen, so that a name costs no new string */

typedef struct {
    char text[40];
    uint8_t size;
    Word word;
    PyObject *name, *key;
} Known;

enum { KNOWN = 2048 };
static Known known_names[KNOWN];
static Node *constants[WORD_ERROR + 1];

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

/* The entry of the name token; NULL where it is too long (no exception) or memory is short. */
static const Known *known_name(Parser *p)
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
static bool is_digit(Py_UCS4 c) { return c >= '0' && c <= '9'; }
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
            if (CHARACTER(p, ++at) == 0)
                break;
        }
    }
    mark(p, T_OTHER, 0, 1);
}

static void next(Parser *p)
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

static bool is_mark(const Parser *p, int sign) { return p->kind == T_MARK && p->sign == sign; }

static bool take(Parser *p, int sign)
{
    if (!is_mark(p, sign))
        return false;
    next(p);
    return true;
}

/* -- literals */

static Node *number(Parser *p, bool negative)
{
    Py_ssize_t start = p->start, end = p->at;
    bool is_real = p->sign == 1;
    if (!is_real) {
        int64_t value = 0;
        for (Py_ssize_t at = start; at < end; at++)
            value = value * 10 + (int64_t)(PyUnicode_READ(p->unit, p->data, at) - '0');
        next(p);
        return make_literal(PyLong_FromLongLong(negative ? -value : value));
    }
    char digits[64];
    if (end - start >= (Py_ssize_t)sizeof digits)
        return NULL;
    for (Py_ssize_t at = start; at < end; at++)
        digits[at - start] = (char)PyUnicode_READ(p->unit, p->data, at);
    digits[end - start] = 0;
    double value = PyOS_string_to_double(digits, NULL, NULL);
    if (value == -1.0 && PyErr_Occurred())
        return NULL;
    next(p);
    return make_literal(PyFloat_FromDouble(negative ? -value : value));
}

/* The string with its escapes resolved; NULL without exception where one of them is octal. */
static PyObject *unescaped(Parser *p)
{
    Py_ssize_t end = p->at - 1, size = 0;
    Py_UCS4 *out = PyMem_Malloc((size_t)(end - p->start) * sizeof *out);
    if (out == NULL)
        return PyErr_NoMemory();
    for (Py_ssize_t at = p->start + 1; at < end; at++) {
        Py_UCS4 c = PyUnicode_READ(p->unit, p->data, at);
        if (c == '\\') {
            c = PyUnicode_READ(p->unit, p->data, ++at);
            if (c >= '0' && c <= '7') {
                PyMem_Free(out);
                return NULL;
            }
            switch (c) {
            case 'n': c = '\n'; break;
            case 't': c = '\t'; break;
            case 'r': c = '\r'; break;
            case 'a': c = '\a'; break;
            case 'b': c = '\b'; break;
            case 'f': c = '\f'; break;
            case 'v': c = '\v'; break;
            }
        }
        out[size++] = c;
    }
    PyObject *text = PyUnicode_FromKindAndData(PyUnicode_4BYTE_KIND, out, size);
    PyMem_Free(out);
    return text;
}

static Node *string(Parser *p)
{
    PyObject *text = p->escapes ? unescaped(p) : PyUnicode_Substring(p->text, p->start + 1, p->at - 1);
    if (text == NULL)
        return NULL;
    next(p);
    if (p->kind == T_STRING) { /* side by side, they are one */
        Py_DECREF(text);
        return NULL;
    }
    return make_literal(text);
}

/* -- expressions; NULL: not read here, or failed */

/* A tuple of what stands up to the closing bracket. */
static PyObject *sequence(Parser *p, int closing)
{
    Node *few[8], **items = few;
    Py_ssize_t count = 0, room = 8;
    PyObject *tuple = NULL;
    bool good = take(p, closing);
    if (!good)
        do {
            if (count == room) {
                Node **more = PyMem_Malloc((size_t)room * 4 * sizeof *more);
                if (more == NULL)
                    break;
                memcpy(more, items, (size_t)room * sizeof *more);
                if (items != few)
                    PyMem_Free(items);
                items = more;
                room *= 4;
            }
            Node *item = expression(p);
            if (item == NULL)
                break;
            items[count++] = item;
            if (take(p, closing))
                good = true;
        } while (!good && (take(p, ',') || (closing == ')' && take(p, ';'))));
    if (good)
        tuple = PyTuple_New(count);
    for (Py_ssize_t at = 0; at < count; at++) {
        if (tuple != NULL)
            PyTuple_SET_ITEM(tuple, at, (PyObject *)items[at]);
        else
            Py_DECREF(items[at]);
    }
    if (items != few)
        PyMem_Free(items);
    return tuple;
}

static Node *record(Parser *p)
{
    PyObject *pairs = PyList_New(0);
    while (pairs != NULL && !take(p, ']')) {
        const Known *known = p->kind == T_NAME ? known_name(p) : NULL;
        if (known == NULL || (known->word != WORD_NONE && known->word != WORD_TIME))
            goto other;
        PyObject *name = known->name;
        Py_INCREF(name);
        next(p);
        Node *node = take(p, '=') ? expression(p) : NULL;
        PyObject *pair = node == NULL ? NULL : PyTuple_Pack(2, name, node);
        Py_DECREF(name);
        Py_XDECREF(node);
        int added = pair == NULL ? -1 : PyList_Append(pairs, pair);
        Py_XDECREF(pair);
        if (added < 0 || (!is_mark(p, ']') && !take(p, ';')))
            goto other;
        while (take(p, ';'))
            ;
    }
    if (pairs != NULL) {
        PyObject *tuple = PyList_AsTuple(pairs);
        Py_DECREF(pairs);
        return make_record(tuple);
    }
other:
    Py_XDECREF(pairs);
    return NULL;
}

static Node *named(Parser *p)
{
    const Known *known = known_name(p);
    if (known == NULL || known->word == WORD_IS || known->word == WORD_ISNT)
        return NULL;
    if (known->word >= WORD_TRUE && known->word <= WORD_ERROR) {
        Node *constant = constants[known->word];
        Py_INCREF(constant);
        next(p);
        return constant;
    }
    PyObject *name = known->name, *key = known->key; /* the entry may be another's when arguments have been read */
    bool times = known->word == WORD_TIME;
    Py_INCREF(name);
    Py_INCREF(key);
    next(p);
    if (!take(p, '('))
        return make_reference(name, key, NULL, false);
    Py_DECREF(key);
    PyObject *arguments = sequence(p, ')');
    if (arguments == NULL || (times && PyTuple_GET_SIZE(arguments) == 1
                              && ((Node *)PyTuple_GET_ITEM(arguments, 0))->kind == LITERAL)) {
        Py_XDECREF(arguments);
        Py_DECREF(name);
        return NULL;
    }
    return make_call(name, arguments);
}

/* A name behind a dot. */
static Node *selected(Parser *p, Node *scope)
{
    const Known *known = p->kind == T_NAME ? known_name(p) : NULL;
    if (known == NULL || (known->word != WORD_NONE && known->word != WORD_TIME)) {
        Py_XDECREF(scope);
        return NULL;
    }
    Py_INCREF(known->name);
    Py_INCREF(known->key);
    Node *node = make_reference(known->name, known->key, scope, scope == NULL);
    next(p);
    return node;
}

static Node *primary(Parser *p)
{
    switch (p->kind) {
    case T_NUMBER: return number(p, false);
    case T_STRING: return string(p);
    case T_NAME: return named(p);
    case T_OPERATOR: { /* a minus directly before a number belongs to it */
        Py_ssize_t start = p->start;
        bool minus = p->sign == SUBTRACT;
        next(p);
        return minus && p->kind == T_NUMBER && p->start == start + 1 ? number(p, true) : NULL;
    }
    case T_MARK: break;
    case T_OTHER: case T_END: return NULL;
    }
    if (take(p, '(')) {
        Node *inner = expression(p);
        if (inner != NULL && !take(p, ')'))
            Py_CLEAR(inner);
        return make_unary(PARENTHESES, inner);
    }
    if (take(p, '.'))
        return selected(p, NULL);
    if (take(p, '{'))
        return make_list(sequence(p, '}'));
    if (take(p, '['))
        return record(p);
    return NULL;
}

static Node *unary(Parser *p)
{
    Operator operator;
    if (p->kind == T_OPERATOR && p->sign == SUBTRACT) {
        Py_UCS4 c = CHARACTER(p, p->at);
        if (is_digit(c) || (c == '.' && is_digit(CHARACTER(p, p->at + 1))))
            return operand(p);
        operator = NEGATE;
    } else if (p->kind == T_OPERATOR && p->sign == ADD) {
        operator = AFFIRM;
    } else if (is_mark(p, '!') || is_mark(p, '~')) {
        operator = p->sign == '!' ? INVERT : COMPLEMENT;
    } else {
        return p->kind == T_OPERATOR ? NULL : operand(p);
    }
    next(p);
    if (++p->depth > MAX_NESTING)
        return NULL;
    Node *node = unary(p);
    p->depth--;
    return make_unary(operator, node);
}

/* An operand with its postfixes; ?: is one of them, and takes another operand behind it. */
static Node *operand(Parser *p)
{
    Node *node = primary(p);
    while (node != NULL && p->kind == T_MARK) {
        bool postfix = p->sign == '.' || p->sign == '[' || p->sign == '?';
        if (!postfix)
            return node;
        if (node->height > 2 * MAX_NESTING) {
            Py_CLEAR(node);
        } else if (take(p, '.')) {
            node = selected(p, node);
        } else if (take(p, '[')) {
            Node *index = expression(p);
            if (index != NULL && !take(p, ']'))
                Py_CLEAR(index);
            node = make_subscript(node, index);
        } else {
            Parser ahead = *p;
            next(&ahead);
            if (!is_mark(&ahead, ':'))
                return node;
            next(&ahead);
            *p = ahead;
            Node *otherwise = ++p->depth > MAX_NESTING ? NULL : operand(p);
            p->depth--;
            node = make_conditional(node, NULL, otherwise);
        }
    }
    return node;
}

static Node *binary(Parser *p, int limit)
{
    Node *left = unary(p);
    while (left != NULL) {
        int operator;
        if (p->kind == T_OPERATOR) {
            operator = p->sign;
        } else if (p->kind == T_NAME) {
            const Known *known = known_name(p);
            if (known == NULL || (known->word != WORD_IS && known->word != WORD_ISNT))
                return left;
            operator = known->word == WORD_IS ? IS : ISNT;
        } else {
            return left;
        }
        int binding = operator_binding[operator];
        if (binding <= limit)
            return left;
        next(p);
        Node *right = ++p->depth > MAX_NESTING ? NULL : binary(p, binding);
        p->depth--;
        left = make_binary((Operator)operator, left, right);
    }
    return NULL;
}

static Node *expression(Parser *p)
{
    if (++p->depth > MAX_NESTING)
        return NULL;
    Node *node = binary(p, 0);
    if (node != NULL && take(p, '?')) {
        Node *then = expression(p);
        Node *otherwise = then != NULL && take(p, ':') ? expression(p) : NULL;
        node = make_conditional(node, then, otherwise);
    }
    p->depth--;
    return node;
}

PyObject *parse(PyObject *module, PyObject *text)
{
    (void)module;
    if (!PyUnicode_CheckExact(text) || PyUnicode_READY(text) < 0) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "expected a text");
        return NULL;
    }
    Parser p = {.text = text, .data = PyUnicode_DATA(text), .unit = PyUnicode_KIND(text),
                .size = PyUnicode_GET_LENGTH(text)};
    Node *node = NULL;
    if (p.size <= 1024 * 1024) {
        next(&p);
        node = expression(&p);
    }
    if (node != NULL && p.kind != T_END)
        Py_CLEAR(node);
    if (node == NULL && !PyErr_Occurred())
        Py_RETURN_NONE;
    return (PyObject *)node;
}

int prepare_parser(void)
{
    PyObject *values[] = {[WORD_TRUE] = Py_True, [WORD_FALSE] = Py_False, [WORD_UNDEFINED] = python.undefined,
                          [WORD_ERROR] = python.error};
    for (int word = WORD_TRUE; word <= WORD_ERROR; word++) {
        Py_INCREF(values[word]);
        Py_XSETREF(constants[word], make_literal(values[word]));
        if (constants[word] == NULL)
            return -1;
    }
    return 0;
}
