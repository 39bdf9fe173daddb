/* The core of the ClassAd language in C: trees, their parser, and their evaluation.
 *
 * What is common is done here; what is rare is left to the Python implementation, which is also the oracle that tests
 * hold this core against: a text that the parser here does not take is read by Python's (and refused by it, with line
 * and column), operands of unusual types go to Python's operators, most functions are Python's.
 *
 *   nodes.c      the types of nodes, equal in face to those of condor_actors/classads/language/python_nodes.py
 *   tokens.c     text to tokens
 *   parse.c      tokens to nodes
 *   evaluate.c   nodes to values: names, chains of operators
 *   operators.c  what an operator makes of its operands
 *   functions.c  calls, and the functions that are common enough to be here
 *   lines.c      the wire form of ads, line by line
 *   module.c     the doors: evaluate, match_ads; what Python hands in at the start
 */

#ifndef CLASSAD_CORE_H
#define CLASSAD_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- values: what an evaluation passes around; TEXT and OBJECT own a reference */

typedef enum { FAILED, UNDEFINED, ERROR, TRUTH, INTEGER, REAL, TEXT, OBJECT } ValueKind;

typedef struct {
    ValueKind kind; /* FAILED: a Python exception is set */
    union {
        int64_t number; /* INTEGER, and TRUTH as 0 or 1 */
        double real;
        PyObject *object;
    };
} Value;

static inline Value nothing(ValueKind kind) { return (Value){.kind = kind, .number = 0}; }
static inline Value truth_value(bool yes) { return (Value){.kind = TRUTH, .number = yes}; }
static inline Value integer(int64_t number) { return (Value){.kind = INTEGER, .number = number}; }
static inline Value real(double number) { return (Value){.kind = REAL, .real = number}; }

static inline void drop(Value value)
{
    if (value.kind >= TEXT)
        Py_DECREF(value.object);
}

Value value_of(PyObject *object);  /* a new value of a borrowed object */
Value value_from(PyObject *taken); /* the same, taking the reference; FAILED of NULL */
PyObject *object_of(Value value);  /* takes the value; NULL of FAILED */

/* -- operators */

typedef enum {
    OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUAL, UNEQUAL, IS, ISNT, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL,
    SHIFT_LEFT, SHIFT_RIGHT, SHIFT_LOGICAL, ADD, SUBTRACT, MULTIPLY, DIVIDE, MODULUS, BINARY_OPERATORS,
    NEGATE = BINARY_OPERATORS, AFFIRM, COMPLEMENT, INVERT, PARENTHESES, OPERATORS
} Operator;

extern const char *const operator_text[OPERATORS];
extern const uint8_t operator_binding[BINARY_OPERATORS];

/* -- nodes */

typedef enum { LITERAL, SPAN, REFERENCE, UNARY, BINARY, CONDITIONAL, SUBSCRIPT, CALL, LIST, RECORD, NODE_KINDS } NodeKind;

#define NODE_HEAD \
    PyObject_HEAD PyObject *memory; \
    int height, size; \
    uint8_t kind; \
    uint8_t operator; \
    uint8_t detail

typedef struct { NODE_HEAD; } Node; /* size: nodes of the tree, this one too; detail: below, for references */
typedef struct { NODE_HEAD; PyObject *value; Value known; } Literal;
typedef struct { NODE_HEAD; PyObject *span; double seconds; } Span;
typedef struct { NODE_HEAD; PyObject *name, *key; Node *scope; char absolute; uint8_t special; } Reference;
typedef struct { NODE_HEAD; Node *operand; } Unary;
typedef struct { NODE_HEAD; Node *left, *right; int chain; } Binary; /* chain: operators in a row, on the left */
typedef struct { NODE_HEAD; Node *test, *then, *otherwise; } Conditional; /* then: NULL for ?: */
typedef struct { NODE_HEAD; Node *container, *index; } Subscript;
typedef struct { NODE_HEAD; PyObject *name, *arguments, *apply; uint8_t style, native; } Call;
typedef struct { NODE_HEAD; PyObject *elements, *stored; } List;
typedef struct { NODE_HEAD; PyObject *pairs; } Record;

/* How a reference is looked up (detail), and the names that mean something by themselves (special). */
enum { BARE, ABSOLUTE, MINE, THEIRS, SELECTED };
enum { ORDINARY, SPECIAL_SELF, SPECIAL_TARGET, SPECIAL_ROOT, SPECIAL_PARENT, SPECIAL_TIME, SPECIAL_MATCH };
/* How a function is called (style); UNRESOLVED until its first call. */
enum { UNRESOLVED, UNKNOWN, EAGER, INSIDE, LAZY };

extern PyTypeObject *node_types[NODE_KINDS];
void node_dealloc(PyObject *self);
#define IS_NODE(object) (Py_TYPE((PyObject *)(object))->tp_dealloc == node_dealloc)

/* Makers of nodes: they take the references handed to them, even when they fail (NULL, exception set). */
Node *make_literal(PyObject *value);
Node *make_span(PyObject *span, double seconds);
Node *make_reference(PyObject *name, PyObject *key, Node *scope, bool absolute);
Node *make_unary(Operator operator, Node *operand);
Node *make_binary(Operator operator, Node *left, Node *right);
Node *make_conditional(Node *test, Node *then, Node *otherwise);
Node *make_subscript(Node *container, Node *index);
Node *make_call(PyObject *name, PyObject *arguments);
Node *make_list(PyObject *elements);
Node *make_record(PyObject *pairs);
int add_node_types(PyObject *module);

/* -- an evaluation in progress */

typedef struct Busy {
    PyObject *ad;
    Node *node;
    struct Busy *below;
} Busy;

typedef struct {
    PyObject_HEAD
    PyObject *my, *target, *now_s; /* target NULL: none; now_s NULL: the clock's */
    int64_t now;
    bool now_known, exhausted; /* exhausted: more levels than there may be */
    int depth, frames;
    int64_t steps, bytes; /* spent so far */
    int contexts; /* calls of evalInEachContext and similar calls in progress: inside, records see the other ad too */
    Busy *busy;
} State;

extern PyTypeObject *state_type;
State *new_state(PyObject *my, PyObject *target, PyObject *now_s);
void end_state(State *state);
Value state_now(State *state);

enum { MAX_DEPTH = 400, MAX_FRAMES = 4000, MAX_NESTING = 200, MAX_SIZE = 1 << 30, MAX_STRING = 4 * 1024 * 1024 };
enum { CALL_STEPS = 10, STEP_SHIFT = 6, LONG_TEXT = 4096, ITEM_BYTES = 64 }; /* as in evaluation/budget.py */

/* What one evaluation may spend, and what all of them have spent; the interpreter's lock guards it. */
typedef struct { int64_t steps, bytes, spent, exceeded; } Budget;
extern Budget budget;

bool overdrawn(State *state); /* false; the evaluation has spent too much, and all of it is an error */

static inline bool charge(State *state, int64_t steps)
{
    state->steps += steps;
    return state->steps <= budget.steps || overdrawn(state);
}

int64_t weight(Value value);
Value weighed(State *state, Value value); /* a text that was looked at: charged by its length; takes the value */
Value made(State *state, Value value);    /* a text or list that a function made; takes the value */
bool charge_comparison(State *state, Value left, Value right);

Value run(Node *node, PyObject *ad, State *state);
Value enter(PyObject *stored, PyObject *ad, State *state);
Value element(PyObject *item, PyObject *ad, State *state);
Value truth(Value value); /* takes it; TRUTH, UNDEFINED, ERROR or FAILED */
Value operate(Operator operator, Value left, Value right); /* takes both */
Value operate_on_one(Operator operator, Value value); /* takes it */
Value call(Call *node, PyObject *ad, State *state);
Value run_attribute(Node *node, PyObject *my, PyObject *target, PyObject *now_s);
PyObject *find(PyObject *ad, PyObject *key);            /* borrowed, NULL without exception when there is none */
int native_of(PyObject *lower_name);

/* -- what Python hands in */

typedef struct {
    PyTypeObject *ad, *list, *absolute_time, *relative_time;
    PyObject *undefined, *error, *deleted;
    PyObject *operators[OPERATORS];
    PyObject *resolve, *deep, *plain, *match_scope;
    PyObject *exhausted; /* the exception that ends an evaluation which has spent too much */
    PyObject *clock, *time_module; /* time.time as it was at first, and the dictionary it lies in */
    Py_ssize_t own, parent, scope, spellings, list_elements, list_ad; /* where the slots are */
} Python;

extern Python python;

static inline PyObject *slot(PyObject *object, Py_ssize_t offset)
{
    PyObject *found = *(PyObject **)((char *)object + offset);
    return found == Py_None ? NULL : found;
}

static inline bool is_ad(PyObject *object) { return PyObject_TypeCheck(object, python.ad); }

/* -- the parser */

PyObject *parse(PyObject *module, PyObject *text);
int prepare_parser(void);

/* -- the wire form */

PyObject *read_lines(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *write_lines(PyObject *module, PyObject *const *args, Py_ssize_t count);

#endif
