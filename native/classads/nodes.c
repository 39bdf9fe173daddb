/* The types of nodes. They are never changed once made; a tree has no cycles, so the collector does not see them. */

#include "core.h"

#include <structmember.h>

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

/* -- as Python calls them */

static bool is_node_or_complain(PyObject *object)
{
    if (IS_NODE(object))
        return true;
    PyErr_Format(PyExc_TypeError, "expected an expression, not %.100s", Py_TYPE(object)->tp_name);
    return false;
}

static int operator_of(PyObject *text, int first, int end)
{
    for (int operator = first; operator < end; operator++)
        if (PyUnicode_CompareWithASCIIString(text, operator_text[operator]) == 0)
            return operator;
    PyErr_Format(PyExc_ValueError, "there is no operator %R", text);
    return -1;
}

static Node *owned(PyObject *node)
{
    Py_INCREF(node);
    return (Node *)node;
}

static PyObject *literal_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"value", NULL};
    PyObject *value;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "O:Literal", names, &value))
        return NULL;
    Py_INCREF(value);
    return (PyObject *)make_literal(value);
}

static PyObject *span_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"span", NULL};
    PyObject *span;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "O:SpanLiteral", names, &span))
        return NULL;
    PyObject *seconds = PyObject_GetAttrString(span, "span_s");
    double number = seconds == NULL ? 0 : PyFloat_AsDouble(seconds);
    Py_XDECREF(seconds);
    if (PyErr_Occurred())
        return NULL;
    Span *node = NEW(Span, SPAN, 1);
    if (node != NULL) {
        Py_INCREF(span);
        node->span = span;
        node->seconds = number;
    }
    return (PyObject *)node;
}

static PyObject *reference_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"name", "scope", "absolute", NULL};
    PyObject *name, *scope = Py_None;
    int absolute = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "U|Op:Reference", names, &name, &scope, &absolute)
        || (scope != Py_None && !is_node_or_complain(scope)))
        return NULL;
    PyObject *key = PyObject_CallMethod(name, "lower", NULL);
    if (key == NULL)
        return NULL;
    PyUnicode_InternInPlace(&key);
    Py_INCREF(name);
    return (PyObject *)make_reference(name, key, scope == Py_None ? NULL : owned(scope), absolute != 0);
}

static PyObject *unary_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"operator", "operand", NULL};
    PyObject *text, *operand;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "UO:Unary", names, &text, &operand) || !is_node_or_complain(operand))
        return NULL;
    int operator = operator_of(text, NEGATE, OPERATORS);
    return operator < 0 ? NULL : (PyObject *)make_unary((Operator)operator, owned(operand));
}

static PyObject *binary_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"operator", "left", "right", NULL};
    PyObject *text, *left, *right;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "UOO:Binary", names, &text, &left, &right)
        || !is_node_or_complain(left) || !is_node_or_complain(right))
        return NULL;
    int operator = operator_of(text, 0, BINARY_OPERATORS);
    return operator < 0 ? NULL : (PyObject *)make_binary((Operator)operator, owned(left), owned(right));
}

static PyObject *conditional_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"test", "then", "otherwise", NULL};
    PyObject *test, *then, *otherwise;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "OOO:Conditional", names, &test, &then, &otherwise)
        || !is_node_or_complain(test) || (then != Py_None && !is_node_or_complain(then))
        || !is_node_or_complain(otherwise))
        return NULL;
    return (PyObject *)make_conditional(owned(test), then == Py_None ? NULL : owned(then), owned(otherwise));
}

static PyObject *subscript_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"container", "index", NULL};
    PyObject *container, *index;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "OO:Subscript", names, &container, &index)
        || !is_node_or_complain(container) || !is_node_or_complain(index))
        return NULL;
    return (PyObject *)make_subscript(owned(container), owned(index));
}

static PyObject *call_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"name", "arguments", NULL};
    PyObject *name, *arguments;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "UO!:Call", names, &name, &PyTuple_Type, &arguments))
        return NULL;
    Py_INCREF(name);
    Py_INCREF(arguments);
    return (PyObject *)make_call(name, arguments);
}

static PyObject *list_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"elements", NULL};
    PyObject *elements;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "O!:ListExpr", names, &PyTuple_Type, &elements))
        return NULL;
    Py_INCREF(elements);
    return (PyObject *)make_list(elements);
}

static PyObject *record_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"pairs", NULL};
    PyObject *pairs;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "O!:RecordExpr", names, &PyTuple_Type, &pairs))
        return NULL;
    Py_INCREF(pairs);
    return (PyObject *)make_record(pairs);
}

/* -- what Python sees of them */

static PyObject *get_operator(PyObject *self, void *closure)
{
    (void)closure;
    return PyUnicode_InternFromString(operator_text[((Node *)self)->operator]);
}

#define FIELD(name, Type, field) {name, T_OBJECT, offsetof(Type, field), READONLY, NULL}
static PyMemberDef literal_members[] = {FIELD("value", Literal, value), {0}};
static PyMemberDef span_members[] = {FIELD("span", Span, span), {0}};
static PyMemberDef reference_members[] = {
    FIELD("name", Reference, name), FIELD("key", Reference, key), FIELD("scope", Reference, scope),
    {"absolute", T_BOOL, offsetof(Reference, absolute), READONLY, NULL}, {0}};
static PyMemberDef unary_members[] = {FIELD("operand", Unary, operand), {0}};
static PyMemberDef binary_members[] = {FIELD("left", Binary, left), FIELD("right", Binary, right), {0}};
static PyMemberDef conditional_members[] = {
    FIELD("test", Conditional, test), FIELD("then", Conditional, then), FIELD("otherwise", Conditional, otherwise), {0}};
static PyMemberDef subscript_members[] = {
    FIELD("container", Subscript, container), FIELD("index", Subscript, index), {0}};
static PyMemberDef call_members[] = {FIELD("name", Call, name), FIELD("arguments", Call, arguments), {0}};
static PyMemberDef list_members[] = {FIELD("elements", List, elements), {0}};
static PyMemberDef record_members[] = {FIELD("pairs", Record, pairs), {0}};
static PyGetSetDef operator_getset[] = {{"operator", get_operator, NULL, NULL, NULL}, {0}};

static PyMemberDef expr_members[] = {
    {"memory", T_OBJECT, offsetof(Node, memory), 0, NULL}, {"height", T_INT, offsetof(Node, height), READONLY, NULL}, {0}};

extern PyMethodDef expr_methods[]; /* module.c: evaluate, run */

static PyObject *no_expr(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)args;
    (void)kwds;
    return PyErr_Format(PyExc_TypeError, "%s is made by its kinds only", type->tp_name);
}

static const struct {
    const char *name;
    newfunc make;
    PyMemberDef *members;
    PyGetSetDef *getset;
    int size;
} kinds[NODE_KINDS] = {
    [LITERAL] = {"condor_actors.classads._core.Literal", literal_new, literal_members, NULL, sizeof(Literal)},
    [SPAN] = {"condor_actors.classads._core.SpanLiteral", span_new, span_members, NULL, sizeof(Span)},
    [REFERENCE] = {"condor_actors.classads._core.Reference", reference_new, reference_members, NULL, sizeof(Reference)},
    [UNARY] = {"condor_actors.classads._core.Unary", unary_new, unary_members, operator_getset, sizeof(Unary)},
    [BINARY] = {"condor_actors.classads._core.Binary", binary_new, binary_members, operator_getset, sizeof(Binary)},
    [CONDITIONAL] = {"condor_actors.classads._core.Conditional", conditional_new, conditional_members, NULL, sizeof(Conditional)},
    [SUBSCRIPT] = {"condor_actors.classads._core.Subscript", subscript_new, subscript_members, NULL, sizeof(Subscript)},
    [CALL] = {"condor_actors.classads._core.Call", call_new, call_members, NULL, sizeof(Call)},
    [LIST] = {"condor_actors.classads._core.ListExpr", list_new, list_members, NULL, sizeof(List)},
    [RECORD] = {"condor_actors.classads._core.RecordExpr", record_new, record_members, NULL, sizeof(Record)},
};

static PyObject *add_type(PyObject *module, const char *name, int size, unsigned int flags, PyType_Slot *slots,
                          PyObject *base)
{
    PyType_Spec spec = {.name = name, .basicsize = size, .flags = Py_TPFLAGS_DEFAULT | flags, .slots = slots};
    PyObject *type = PyType_FromSpecWithBases(&spec, base);
    if (type != NULL && PyModule_AddObjectRef(module, strrchr(name, '.') + 1, type) < 0)
        Py_CLEAR(type);
    return type;
}

int add_node_types(PyObject *module)
{
    PyType_Slot slots[] = {{Py_tp_dealloc, (void *)node_dealloc}, {Py_tp_members, expr_members},
                           {Py_tp_methods, expr_methods}, {Py_tp_new, (void *)no_expr}, {0, NULL}};
    PyObject *expr = add_type(module, "condor_actors.classads._core.Expr", sizeof(Node), Py_TPFLAGS_BASETYPE, slots, NULL);
    for (int kind = 0; expr != NULL && kind < NODE_KINDS; kind++) {
        PyType_Slot own[] = {{Py_tp_dealloc, (void *)node_dealloc}, {Py_tp_new, (void *)kinds[kind].make},
                             {Py_tp_members, kinds[kind].members},
                             {kinds[kind].getset == NULL ? 0 : Py_tp_getset, kinds[kind].getset}, {0, NULL}};
        node_types[kind] = (PyTypeObject *)add_type(module, kinds[kind].name, kinds[kind].size, 0, own, expr);
        if (node_types[kind] == NULL)
            Py_CLEAR(expr);
    }
    Py_XDECREF(expr);
    return expr == NULL ? -1 : 0;
}
