/* Tokens to nodes: a Pratt parser that takes them as it goes.
 *
 * It takes what the parser in Python takes, except for the rare: comments, octal escapes, strings side by side, names
 * in quotes, numbers of more than 18 digits, times written out. For those, and for whatever is wrong, `parse` gives
 * None, and the parser in Python reads the text, or says what is wrong with it and where.
 */

#include "tokens.h"

const uint8_t operator_binding[BINARY_OPERATORS] = {
    [OR] = 20, [AND] = 30, [BIT_OR] = 40, [BIT_XOR] = 50, [BIT_AND] = 60, [EQUAL] = 70, [UNEQUAL] = 70, [IS] = 70,
    [ISNT] = 70, [LESS] = 80, [LESS_EQUAL] = 80, [GREATER] = 80, [GREATER_EQUAL] = 80, [SHIFT_LEFT] = 90,
    [SHIFT_RIGHT] = 90, [SHIFT_LOGICAL] = 90, [ADD] = 100, [SUBTRACT] = 100, [MULTIPLY] = 110, [DIVIDE] = 110,
    [MODULUS] = 110,
};

static Node *expression(Parser *p), *binary(Parser *p, int limit), *operand(Parser *p);

static Node *constants[WORD_ERROR + 1];

/* -- literals */

static Node *number(Parser *p, bool negative)
{
    Py_ssize_t start = p->start, end = p->at;
    bool is_real = p->sign == 1;
    if (!is_real) {
        int64_t value = 0;
        for (Py_ssize_t at = start; at < end; at++)
            value = value * 10 + (int64_t)(PyUnicode_READ(p->unit, p->data, at) - '0');
        next_token(p);
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
    next_token(p);
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
            at++;
            c = PyUnicode_READ(p->unit, p->data, at);
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
    next_token(p);
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
        next_token(p);
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
        next_token(p);
        return constant;
    }
    PyObject *name = known->name, *key = known->key; /* the entry may be another's when arguments have been read */
    bool times = known->word == WORD_TIME;
    Py_INCREF(name);
    Py_INCREF(key);
    next_token(p);
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
    next_token(p);
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
        next_token(p);
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
    next_token(p);
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
            next_token(&ahead);
            if (!is_mark(&ahead, ':'))
                return node;
            next_token(&ahead);
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
        next_token(p);
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
        next_token(&p);
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
