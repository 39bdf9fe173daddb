/* The types of nodes as Python sees them: how each is made by hand, and what it shows. */

#include "core.h"

#include <structmember.h>

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
    Py_INCREF(span);
    return (PyObject *)make_span(span, number);
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
