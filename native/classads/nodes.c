/* Nodes: made, and freed. They are never changed once made; a tree has no cycles, so the collector does not see them. */

#include "core.h"

PyTypeObject *node_types[NODE_KINDS];

const char *const operator_text[OPERATORS] = {
    "||", "&&", "|", "^", "&", "==", "!=", "=?=", "=!=", "<", "<=", ">", ">=", "<<", ">>", ">>>",
    "+", "-", "*", "/", "%", "-", "+", "~", "!", "(",
};

/* -- how long a node lives */

static void clear_node(Node *node)
{
    Py_CLEAR(node->memory);
    switch ((NodeKind)node->kind) {
    case LITERAL: Py_CLEAR(((Literal *)node)->value); break;
    case SPAN: Py_CLEAR(((Span *)node)->span); break;
    case REFERENCE:
        Py_CLEAR(((Reference *)node)->name);
        Py_CLEAR(((Reference *)node)->key);
        Py_CLEAR(((Reference *)node)->scope);
        break;
    case UNARY: Py_CLEAR(((Unary *)node)->operand); break;
    case BINARY:
        Py_CLEAR(((Binary *)node)->right);
        Py_CLEAR(((Binary *)node)->left);
        break;
    case CONDITIONAL:
        Py_CLEAR(((Conditional *)node)->test);
        Py_CLEAR(((Conditional *)node)->then);
        Py_CLEAR(((Conditional *)node)->otherwise);
        break;
    case SUBSCRIPT:
        Py_CLEAR(((Subscript *)node)->container);
        Py_CLEAR(((Subscript *)node)->index);
        break;
    case CALL:
        Py_CLEAR(((Call *)node)->name);
        Py_CLEAR(((Call *)node)->arguments);
        Py_CLEAR(((Call *)node)->apply);
        break;
    case LIST:
        Py_CLEAR(((List *)node)->elements);
        Py_CLEAR(((List *)node)->stored);
        break;
    case RECORD: Py_CLEAR(((Record *)node)->pairs); break;
    case NODE_KINDS: break;
    }
}

/* A chain of a hundred thousand operators must not take a hundred thousand C frames to go away: beyond some depth
 * nodes are strung together by their memory field and freed from the outermost call. */
void node_dealloc(PyObject *self)
{
    static int depth;
    static Node *later;
    Node *node = (Node *)self;
    if (depth > 60) {
        Py_CLEAR(node->memory);
        node->memory = (PyObject *)later;
        later = node;
        return;
    }
    depth++;
    while (node != NULL) {
        PyTypeObject *type = Py_TYPE(node);
        clear_node(node);
        PyObject_Free(node);
        Py_DECREF(type);
        node = NULL;
        if (depth == 1 && later != NULL) {
            node = later;
            later = (Node *)node->memory;
            node->memory = NULL;
        }
    }
    depth--;
}

static Node *new_node(NodeKind kind, size_t size, int height)
{
    Node *node = PyObject_New(Node, node_types[kind]);
    if (node != NULL) {
        memset((char *)node + sizeof(PyObject), 0, size - sizeof(PyObject));
        node->kind = (uint8_t)kind;
        node->height = height;
        node->size = 1;
    }
    return node;
}

#define NEW(Type, kind, height) ((Type *)new_node(kind, sizeof(Type), height))

static int taller(int a, int b) { return a > b ? a : b; }

/* A part more below a node. */
static void grow(void *node, const void *part)
{
    if (part != NULL) {
        int size = ((Node *)node)->size + ((const Node *)part)->size;
        ((Node *)node)->size = size < MAX_SIZE ? size : MAX_SIZE;
    }
}

/* -- makers */

Node *make_literal(PyObject *value)
{
    Literal *node = value == NULL ? NULL : NEW(Literal, LITERAL, 1);
    if (node == NULL) {
        Py_XDECREF(value);
        return NULL;
    }
    node->value = value;
    node->known = value_of(value);
    drop(node->known); /* it borrows from `value` */
    return (Node *)node;
}

Node *make_span(PyObject *span, double seconds)
{
    Span *node = NEW(Span, SPAN, 1);
    if (node == NULL) {
        Py_DECREF(span);
        return NULL;
    }
    node->span = span;
    node->seconds = seconds;
    return (Node *)node;
}

static uint8_t special_of(PyObject *key)
{
    static const struct { const char *name; uint8_t special; } names[] = {
        {"my", SPECIAL_SELF}, {"self", SPECIAL_SELF}, {"target", SPECIAL_TARGET}, {"toplevel", SPECIAL_ROOT},
        {"root", SPECIAL_ROOT}, {"parent", SPECIAL_PARENT}, {"currenttime", SPECIAL_TIME},
        {"ad", SPECIAL_MATCH}, {"other", SPECIAL_MATCH}, {"left", SPECIAL_MATCH}, {"right", SPECIAL_MATCH},
        {"lctx", SPECIAL_MATCH}, {"rctx", SPECIAL_MATCH}, {"symmetricmatch", SPECIAL_MATCH},
        {"leftmatchesright", SPECIAL_MATCH}, {"rightmatchesleft", SPECIAL_MATCH}, {"leftrankvalue", SPECIAL_MATCH},
        {"rightrankvalue", SPECIAL_MATCH},
    };
    Py_ssize_t size = PyUnicode_GET_LENGTH(key);
    Py_UCS4 first = size > 0 ? PyUnicode_READ_CHAR(key, 0) : 0;
    if (size >= 2 && size <= 16 && first < 128)
        for (size_t at = 0; at < sizeof names / sizeof *names; at++)
            if (names[at].name[0] == (char)first && PyUnicode_CompareWithASCIIString(key, names[at].name) == 0)
                return names[at].special;
    return ORDINARY;
}

Node *make_reference(PyObject *name, PyObject *key, Node *scope, bool absolute)
{
    Reference *node = name == NULL || key == NULL ? NULL
                      : NEW(Reference, REFERENCE, scope == NULL ? 1 : 1 + scope->height);
    if (node == NULL) {
        Py_XDECREF(name);
        Py_XDECREF(key);
        Py_XDECREF(scope);
        return NULL;
    }
    node->name = name;
    node->key = key;
    node->scope = scope;
    grow(node, scope);
    node->absolute = absolute;
    node->special = special_of(key);
    node->detail = scope != NULL ? SELECTED : absolute ? ABSOLUTE : BARE;
    if (scope != NULL && scope->kind == REFERENCE && scope->detail == BARE) {
        if (PyUnicode_CompareWithASCIIString(((Reference *)scope)->key, "my") == 0)
            node->detail = MINE;
        else if (((Reference *)scope)->special == SPECIAL_TARGET)
            node->detail = THEIRS;
    }
    return (Node *)node;
}

Node *make_unary(Operator operator, Node *operand)
{
    Unary *node = operand == NULL ? NULL : NEW(Unary, UNARY, 1 + operand->height);
    if (node == NULL) {
        Py_XDECREF(operand);
        return NULL;
    }
    node->operator = (uint8_t)operator;
    node->operand = operand;
    grow(node, operand);
    return (Node *)node;
}

/* Operators in a row do not count as nesting: evaluation walks along them. */
Node *make_binary(Operator operator, Node *left, Node *right)
{
    Binary *node = left == NULL || right == NULL ? NULL : NEW(Binary, BINARY, 0);
    if (node == NULL) {
        Py_XDECREF(left);
        Py_XDECREF(right);
        return NULL;
    }
    node->height = taller(left->kind == BINARY ? left->height : left->height + 1, right->height + 1);
    node->operator = (uint8_t)operator;
    node->left = left;
    node->right = right;
    grow(node, left);
    grow(node, right);
    node->chain = 1;
    if (left->kind == BINARY) {
        Operator before = (Operator)left->operator;
        bool logical = operator <= AND, was_logical = before <= AND;
        if (logical ? before == operator : !was_logical)
            node->chain = ((Binary *)left)->chain + 1;
    }
    return (Node *)node;
}

Node *make_conditional(Node *test, Node *then, Node *otherwise)
{
    Conditional *node = test == NULL || otherwise == NULL ? NULL : NEW(Conditional, CONDITIONAL, 0);
    if (node == NULL) {
        Py_XDECREF(test);
        Py_XDECREF(then);
        Py_XDECREF(otherwise);
        return NULL;
    }
    node->height = 1 + taller(taller(test->height, otherwise->height), then == NULL ? 0 : then->height);
    node->test = test;
    node->then = then;
    node->otherwise = otherwise;
    grow(node, test);
    grow(node, then);
    grow(node, otherwise);
    return (Node *)node;
}

Node *make_subscript(Node *container, Node *index)
{
    Subscript *node = container == NULL || index == NULL ? NULL
                      : NEW(Subscript, SUBSCRIPT, 1 + taller(container->height, index->height));
    if (node == NULL) {
        Py_XDECREF(container);
        Py_XDECREF(index);
        return NULL;
    }
    node->container = container;
    node->index = index;
    grow(node, container);
    grow(node, index);
    return (Node *)node;
}

/* The height of the nodes in a tuple; -1 with an exception where it holds anything else. */
static int height_of(PyObject *nodes)
{
    int height = 0;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(nodes); at++) {
        PyObject *item = PyTuple_GET_ITEM(nodes, at);
        if (!IS_NODE(item)) {
            PyErr_SetString(PyExc_TypeError, "expected a tuple of expressions");
            return -1;
        }
        height = taller(height, ((Node *)item)->height);
    }
    return height;
}

Node *make_call(PyObject *name, PyObject *arguments)
{
    int height = name == NULL || arguments == NULL ? -1 : height_of(arguments);
    Call *node = height < 0 ? NULL : NEW(Call, CALL, 1 + height);
    if (node == NULL) {
        Py_XDECREF(name);
        Py_XDECREF(arguments);
        return NULL;
    }
    node->name = name;
    node->arguments = arguments;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(arguments); at++)
        grow(node, PyTuple_GET_ITEM(arguments, at));
    return (Node *)node;
}

Node *make_list(PyObject *elements)
{
    int height = elements == NULL ? -1 : height_of(elements);
    List *node = height < 0 ? NULL : NEW(List, LIST, 1 + height);
    if (node == NULL) {
        Py_XDECREF(elements);
        return NULL;
    }
    node->elements = elements;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(elements); at++)
        grow(node, PyTuple_GET_ITEM(elements, at));
    return (Node *)node;
}

Node *make_record(PyObject *pairs)
{
    int height = 0;
    for (Py_ssize_t at = 0; pairs != NULL && at < PyTuple_GET_SIZE(pairs); at++) {
        PyObject *pair = PyTuple_GET_ITEM(pairs, at);
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2 || !PyUnicode_Check(PyTuple_GET_ITEM(pair, 0))
            || !IS_NODE(PyTuple_GET_ITEM(pair, 1))) {
            PyErr_SetString(PyExc_TypeError, "expected a tuple of pairs of name and expression");
            Py_CLEAR(pairs);
            break;
        }
        height = taller(height, ((Node *)PyTuple_GET_ITEM(pair, 1))->height);
    }
    Record *node = pairs == NULL ? NULL : NEW(Record, RECORD, 1 + height);
    if (node == NULL) {
        Py_XDECREF(pairs);
        return NULL;
    }
    node->pairs = pairs;
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(pairs); at++)
        grow(node, PyTuple_GET_ITEM(PyTuple_GET_ITEM(pairs, at), 1));
    return (Node *)node;
}
