/* Nodes to values. The names of evaluation.py and the operators of operators.py, for the values that are common. */

#include "core.h"

#include <math.h>

static inline Value copy(Value value)
{
    if (value.kind >= TEXT)
        Py_INCREF(value.object);
    return value;
}

/* What an ad keeps without an expression: numbers, strings, times and so on. */
static inline bool is_plain(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    return type == &PyLong_Type || type == &PyUnicode_Type || type == &PyBool_Type || type == &PyFloat_Type
           || object == python.undefined || object == python.error || type == python.absolute_time
           || type == python.relative_time;
}

/* One level of evaluation more. Where there are too many, the whole evaluation is an error, and what is left of it is
 * passed over. */
static bool deeper(State *state)
{
    if (state->frames >= MAX_FRAMES)
        state->exhausted = true;
    if (state->exhausted)
        return false;
    state->frames++;
    return true;
}

/* Back from one. */
static Value shallower(State *state, Value value)
{
    state->frames--;
    if (state->exhausted && state->frames == 0) {
        state->exhausted = false;
        if (value.kind != FAILED) {
            drop(value);
            return nothing(ERROR);
        }
    }
    return value;
}

/* -- names */

static inline PyObject *own(PyObject *ad, PyObject *key)
{
    PyObject *attributes = slot(ad, python.own);
    return attributes != NULL && PyDict_Check(attributes) ? PyDict_GetItemWithError(attributes, key) : NULL;
}

PyObject *find(PyObject *ad, PyObject *key)
{
    do {
        PyObject *found = own(ad, key);
        if (found != NULL)
            return found == python.deleted || found == Py_None ? NULL : found;
        ad = slot(ad, python.parent);
    } while (ad != NULL && is_ad(ad));
    return NULL;
}

static Value enter_node(Node *node, PyObject *ad, State *state)
{
    for (Busy *busy = state->busy; busy != NULL; busy = busy->below)
        if (busy->node == node && busy->ad == ad)
            return nothing(UNDEFINED);
    state->depth += node->height;
    state->steps++;
    if (state->depth > MAX_DEPTH || state->steps > MAX_STEPS) {
        state->depth -= node->height;
        return nothing(ERROR);
    }
    Busy frame = {.ad = ad, .node = node, .below = state->busy};
    state->busy = &frame;
    Py_INCREF(node);
    Py_INCREF(ad);
    Value value = run(node, ad, state);
    state->busy = frame.below;
    state->depth -= node->height;
    Py_DECREF(ad);
    Py_DECREF(node);
    return value;
}

/* A record found in another sees the names of that one too. */
static Value within(PyObject *record, PyObject *ad)
{
    if (is_ad(record) && slot(record, python.scope) == ad) {
        Py_INCREF(record);
        return (Value){.kind = OBJECT, .object = record};
    }
    Py_INCREF(record);
    PyObject *view = PyObject_CallMethod(record, "within", "O", ad);
    Py_DECREF(record);
    return value_from(view);
}

Value enter(PyObject *stored, PyObject *ad, State *state)
{
    if (is_plain(stored))
        return value_of(stored);
    return IS_NODE(stored) ? enter_node((Node *)stored, ad, state) : within(stored, ad);
}

static PyObject *other_of(State *state, PyObject *ad)
{
    return ad == state->my ? state->target : ad == state->target ? state->my : NULL;
}

static Value an_ad(PyObject *ad)
{
    if (ad == NULL)
        return nothing(UNDEFINED);
    Py_INCREF(ad);
    return (Value){.kind = OBJECT, .object = ad};
}

static Value special(int name, PyObject *ad, PyObject *root, State *state)
{
    switch (name) {
    case SPECIAL_SELF: return an_ad(ad);
    case SPECIAL_TARGET: return an_ad(other_of(state, root));
    case SPECIAL_ROOT: return an_ad(root);
    default: return an_ad(slot(ad, python.scope));
    }
}

/* From a record outwards, then in the other ad of the match. */
static Value look_up(PyObject *ad, const Reference *name, State *state, bool selected)
{
    PyObject *root = ad;
    for (PyObject *scope = ad; scope != NULL && is_ad(scope); scope = slot(scope, python.scope)) {
        PyObject *found = find(scope, name->key);
        if (found != NULL)
            return enter(found, scope, state);
        root = scope;
    }
    if (name->special != ORDINARY && name->special != SPECIAL_TIME)
        return special(name->special, ad, root, state);
    if (root == ad && !selected) {
        PyObject *other = other_of(state, ad);
        PyObject *found = other == NULL ? NULL : find(other, name->key);
        if (found != NULL)
            return enter(found, other, state);
    }
    return name->special == SPECIAL_TIME ? state_now(state) : nothing(UNDEFINED);
}

/* An element counts as no attribute: a list that asks itself for its parts has no end, and the whole is an error. */
Value element(PyObject *item, PyObject *ad, State *state)
{
    if (is_plain(item) || !IS_NODE(item))
        return value_of(item);
    if (++state->steps > MAX_STEPS || !deeper(state))
        return nothing(ERROR);
    Py_INCREF(item);
    Value value = run((Node *)item, ad == NULL ? state->my : ad, state);
    Py_DECREF(item);
    return shallower(state, value);
}

static Value list_value(PyObject *taken, PyObject *ad)
{
    if (taken == NULL)
        return nothing(FAILED);
    PyObject *arguments[] = {taken, ad == NULL ? Py_None : ad};
    PyObject *list = PyObject_Vectorcall((PyObject *)python.list, arguments, 2, NULL);
    Py_DECREF(taken);
    return value_from(list);
}

static Value select_from(Value value, const Reference *name, State *state);

static Value select_from_each(PyObject *list, const Reference *name, State *state)
{
    PyObject *elements = slot(list, python.list_elements), *ad = slot(list, python.list_ad);
    if (elements == NULL || !PyTuple_Check(elements) || !deeper(state))
        return nothing(ERROR);
    Py_INCREF(elements);
    PyObject *parts = PyTuple_New(PyTuple_GET_SIZE(elements));
    for (Py_ssize_t at = 0; parts != NULL && at < PyTuple_GET_SIZE(elements); at++) {
        PyObject *part = object_of(select_from(element(PyTuple_GET_ITEM(elements, at), ad, state), name, state));
        if (part == NULL)
            Py_CLEAR(parts);
        else
            PyTuple_SET_ITEM(parts, at, part);
    }
    Py_DECREF(elements);
    state->frames--;
    return list_value(parts, ad);
}

/* value.name; takes the value. */
static Value select_from(Value value, const Reference *name, State *state)
{
    if (value.kind != OBJECT) {
        drop(value);
        return value.kind == UNDEFINED || value.kind == FAILED ? value : nothing(ERROR);
    }
    Value found = nothing(ERROR);
    if (is_ad(value.object))
        found = look_up(value.object, name, state, true);
    else if (Py_TYPE(value.object) == python.list)
        found = select_from_each(value.object, name, state);
    Py_DECREF(value.object);
    return found;
}

static Value bare(const Reference *name, PyObject *ad, State *state)
{
    PyObject *found = own(ad, name->key);
    if (found != NULL) {
        if (IS_NODE(found))
            return enter_node((Node *)found, ad, state);
        if (is_plain(found))
            return value_of(found);
    }
    return look_up(ad, name, state, false);
}

/* MY.name (from `ad` itself) and TARGET.name (from the other one): at once where the ad has it and the scope's name
 * means nothing else there. */
static Value scoped(const Reference *name, PyObject *ad, State *state)
{
    const Reference *scope = (const Reference *)name->scope;
    PyObject *asked = name->detail == MINE ? ad : other_of(state, ad);
    if (asked != NULL && own(ad, scope->key) == NULL) {
        PyObject *found = own(asked, name->key);
        if (found != NULL) {
            if (IS_NODE(found))
                return enter_node((Node *)found, asked, state);
            if (is_plain(found))
                return value_of(found);
        }
    }
    return select_from(look_up(ad, scope, state, false), name, state);
}

static Value refer(const Reference *name, PyObject *ad, State *state)
{
    switch (name->detail) {
    case BARE: return bare(name, ad, state);
    case MINE:
    case THEIRS: return scoped(name, ad, state);
    case SELECTED: return select_from(run(name->scope, ad, state), name, state);
    default: /* ABSOLUTE: in a match the outermost record is the match itself, and has no attributes */
        if (state->target != NULL)
            return nothing(UNDEFINED);
        for (PyObject *scope = slot(ad, python.scope); scope != NULL && is_ad(scope); scope = slot(ad, python.scope))
            ad = scope;
        return look_up(ad, name, state, false);
    }
}

/* container[index]; takes both. */
static Value subscript(Value container, Value index, State *state)
{
    Value found = nothing(ERROR);
    if (index.kind == FAILED)
        found = nothing(FAILED);
    else if (container.kind == ERROR || index.kind == ERROR)
        ;
    else if (container.kind == UNDEFINED || index.kind == UNDEFINED)
        found = nothing(UNDEFINED);
    else if (container.kind == OBJECT && index.kind == INTEGER && Py_TYPE(container.object) == python.list) {
        PyObject *elements = slot(container.object, python.list_elements);
        int32_t at = (int32_t)(uint32_t)(uint64_t)index.number;
        if (elements != NULL && PyTuple_Check(elements) && at >= 0 && at < PyTuple_GET_SIZE(elements))
            found = element(PyTuple_GET_ITEM(elements, at), slot(container.object, python.list_ad), state);
    } else if (container.kind == OBJECT && index.kind == TEXT && is_ad(container.object)) {
        PyObject *key = PyObject_CallMethod(index.object, "lower", NULL);
        PyObject *stored = key == NULL ? NULL : find(container.object, key);
        found = key == NULL ? nothing(FAILED)
                : stored == NULL ? nothing(UNDEFINED) : enter(stored, container.object, state);
        Py_XDECREF(key);
    }
    drop(container);
    drop(index);
    return found;
}

/* -- operators */

Value truth(Value value)
{
    switch (value.kind) {
    case INTEGER: return truth_value(value.number != 0);
    case REAL: return truth_value(value.real != 0);
    case TEXT:
    case OBJECT: drop(value); return nothing(ERROR);
    default: return value;
    }
}

static Value ask_python(Operator operator, Value left, Value right)
{
    PyObject *arguments[] = {object_of(left), object_of(right)};
    PyObject *result = arguments[0] == NULL || arguments[1] == NULL ? NULL
                       : PyObject_Vectorcall(python.operators[operator], arguments, 2, NULL);
    Py_XDECREF(arguments[0]);
    Py_XDECREF(arguments[1]);
    return value_from(result);
}

static inline bool numeric(Value value) { return value.kind == INTEGER || value.kind == REAL || value.kind == TRUTH; }
static inline double as_real(Value value) { return value.kind == REAL ? value.real : (double)value.number; }

/* A result beyond the greatest real is an error; one below the least stays infinite. */
static Value checked_real(double number) { return isinf(number) && number > 0 ? nothing(ERROR) : real(number); }

static Value divide_reals(double left, double right)
{
    if (right != 0)
        return checked_real(left / right);
    if (left == 0 || isnan(left))
        return real(NAN);
    return checked_real(copysign(INFINITY, left) * copysign(1, right));
}

static Value arithmetic(Operator operator, Value left, Value right)
{
    uint64_t a = (uint64_t)left.number, b = (uint64_t)right.number;
    bool whole = left.kind != REAL && right.kind != REAL;
    switch (operator) {
    case ADD: return whole ? integer((int64_t)(a + b)) : checked_real(as_real(left) + as_real(right));
    case SUBTRACT: return whole ? integer((int64_t)(a - b)) : checked_real(as_real(left) - as_real(right));
    case MULTIPLY: return whole ? integer((int64_t)(a * b)) : checked_real(as_real(left) * as_real(right));
    case DIVIDE:
        if (!whole)
            return divide_reals(as_real(left), as_real(right));
        if (right.number == 0)
            return nothing(ERROR);
        if (right.number == -1)
            return integer(left.number == INT64_MIN ? INT64_MAX : -left.number);
        return integer(left.number / right.number);
    default: /* MODULUS */
        if (!whole || right.number == 0)
            return nothing(ERROR);
        return integer(right.number == -1 ? 0 : left.number % right.number);
    }
}

static Value bits(Operator operator, int64_t left, int64_t right)
{
    uint64_t a = (uint64_t)left, b = (uint64_t)right;
    switch (operator) {
    case BIT_OR: return integer(left | right);
    case BIT_XOR: return integer(left ^ right);
    case BIT_AND: return integer(left & right);
    case SHIFT_LEFT: return integer((int64_t)(a << (b & 63)));
    case SHIFT_RIGHT:
        if (left >= 0)
            return integer((int64_t)(a >> (b & 63)));
        return integer((int64_t)~(~a >> (right < 0 ? 0 : right > 63 ? 63 : right)));
    default: /* SHIFT_LOGICAL: of negative numbers one bit to lose the sign, then the rest */
        return integer((int64_t)(left >= 0 ? a >> (b & 63) : (a >> 1) >> ((b - 1) & 63)));
    }
}

#define ORDERED(operator, a, b) \
    ((operator) == EQUAL ? (a) == (b) : (operator) == UNEQUAL ? (a) != (b) : (operator) == LESS ? (a) < (b) \
     : (operator) == LESS_EQUAL ? (a) <= (b) : (operator) == GREATER ? (a) > (b) : (a) >= (b))

/* Two strings of ASCII, letters of either case alike: below 0, 0, or above. */
static int compare_texts(PyObject *left, PyObject *right)
{
    Py_ssize_t a = PyUnicode_GET_LENGTH(left), b = PyUnicode_GET_LENGTH(right), both = a < b ? a : b;
    const unsigned char *first = PyUnicode_1BYTE_DATA(left), *second = PyUnicode_1BYTE_DATA(right);
    for (Py_ssize_t at = 0; at < both; at++)
        if (first[at] != second[at]) {
            int difference = Py_TOLOWER(first[at]) - Py_TOLOWER(second[at]);
            if (difference != 0)
                return difference;
        }
    return (a > b) - (a < b);
}

static Value compare(Operator operator, Value left, Value right)
{
    if (left.kind == TEXT && right.kind == TEXT) {
        if (!PyUnicode_IS_ASCII(left.object) || !PyUnicode_IS_ASCII(right.object))
            return ask_python(operator, left, right);
        int order = left.object == right.object ? 0 : compare_texts(left.object, right.object);
        drop(left);
        drop(right);
        return truth_value(ORDERED(operator, order, 0));
    }
    if (numeric(left) && numeric(right)) {
        if (left.kind == REAL || right.kind == REAL)
            return truth_value(ORDERED(operator, as_real(left), as_real(right)));
        return truth_value(ORDERED(operator, left.number, right.number));
    }
    drop(left);
    drop(right);
    return nothing(ERROR);
}

/* Same type and same value. */
static Value identical(Operator operator, Value left, Value right)
{
    bool same = left.kind == right.kind;
    if (same && left.kind == OBJECT)
        return ask_python(operator, left, right);
    if (same && left.kind == REAL)
        same = left.real == right.real;
    else if (same && left.kind == TEXT)
        same = left.object == right.object || PyUnicode_Compare(left.object, right.object) == 0;
    else if (same && (left.kind == INTEGER || left.kind == TRUTH))
        same = left.number == right.number;
    drop(left);
    drop(right);
    return truth_value(same == (operator == IS));
}

Value operate(Operator operator, Value left, Value right)
{
    if (left.kind == FAILED || right.kind == FAILED) {
        drop(left);
        drop(right);
        return nothing(FAILED);
    }
    if (operator == IS || operator == ISNT)
        return identical(operator, left, right);
    bool ordering = operator >= EQUAL && operator <= GREATER_EQUAL;
    if (numeric(left) && numeric(right)) {
        if (ordering)
            return compare(operator, left, right);
        if (operator >= ADD)
            return arithmetic(operator, left, right);
        return left.kind == INTEGER && right.kind == INTEGER ? bits(operator, left.number, right.number)
                                                             : nothing(ERROR);
    }
    if (left.kind == ERROR || right.kind == ERROR || left.kind == UNDEFINED || right.kind == UNDEFINED) {
        bool error = left.kind == ERROR || right.kind == ERROR;
        drop(left);
        drop(right);
        return nothing(error ? ERROR : UNDEFINED);
    }
    if (left.kind == OBJECT || right.kind == OBJECT)
        return ask_python(operator, left, right);
    if (ordering)
        return compare(operator, left, right);
    drop(left);
    drop(right);
    return nothing(ERROR);
}

static Value operate_on_one(Operator operator, Value value)
{
    switch (value.kind) {
    case FAILED:
    case ERROR:
    case UNDEFINED: return value;
    case INTEGER:
        switch (operator) {
        case NEGATE: return integer((int64_t)-(uint64_t)value.number);
        case AFFIRM: return value;
        case COMPLEMENT: return integer(~value.number);
        default: return truth_value(value.number == 0);
        }
    case REAL:
        switch (operator) {
        case NEGATE: return real(-value.real);
        case AFFIRM: return value;
        case COMPLEMENT: return nothing(ERROR);
        default: return truth_value(value.real == 0);
        }
    case TRUTH: return operator == INVERT ? truth_value(value.number == 0) : nothing(ERROR);
    case TEXT: break;
    case OBJECT: {
        PyObject *result = PyObject_CallOneArg(python.operators[operator], value.object);
        Py_DECREF(value.object);
        return value_from(result);
    }
    }
    drop(value);
    return nothing(ERROR);
}

/* One step of a && or || chain: whether it ends it, with *result what it makes of the chain so far. */
static bool decided(Operator operator, Value value, Value *result)
{
    value = truth(value);
    if (value.kind == UNDEFINED)
        *result = value;
    else if (value.kind != TRUTH || (value.number != 0) == (operator == OR))
        return *result = value, true;
    return false;
}

/* Operators in a row lean to the left; they are walked along from the innermost. */
static Value run_chain(const Binary *node, PyObject *ad, State *state)
{
    const Binary *few[16], **steps = few;
    int count = node->chain;
    Operator operator = (Operator)node->operator;
    if (count > 16) {
        steps = PyMem_Malloc((size_t)count * sizeof *steps);
        if (steps == NULL) {
            PyErr_NoMemory();
            return nothing(FAILED);
        }
    }
    for (int at = count - 1; at >= 0; at--, node = (const Binary *)node->left)
        steps[at] = node;
    Value value = run(steps[0]->left, ad, state);
    if (operator <= AND) {
        Value result = truth_value(operator == AND);
        bool done = decided(operator, value, &result);
        for (int at = 0; !done && at < count; at++)
            done = decided(operator, run(steps[at]->right, ad, state), &result);
        value = result;
    } else {
        for (int at = 0; value.kind != FAILED && at < count; at++)
            value = operate((Operator)steps[at]->operator, value, run(steps[at]->right, ad, state));
    }
    if (steps != few)
        PyMem_Free(steps);
    return value;
}

static Value run_list(List *node, PyObject *ad)
{
    if (node->stored == NULL) { /* literals lie bare in a list's value */
        Py_ssize_t size = PyTuple_GET_SIZE(node->elements);
        PyObject *stored = PyTuple_New(size);
        for (Py_ssize_t at = 0; stored != NULL && at < size; at++) {
            PyObject *item = PyTuple_GET_ITEM(node->elements, at);
            if (((Node *)item)->kind == LITERAL)
                item = ((Literal *)item)->value;
            Py_INCREF(item);
            PyTuple_SET_ITEM(stored, at, item);
        }
        node->stored = stored;
    }
    Py_XINCREF(node->stored);
    return list_value(node->stored, ad);
}

static Value run_conditional(const Conditional *node, PyObject *ad, State *state)
{
    Value test = run(node->test, ad, state);
    if (node->then == NULL)
        return test.kind == UNDEFINED ? run(node->otherwise, ad, state) : test;
    test = truth(test);
    if (test.kind != TRUTH)
        return test;
    return run(test.number ? node->then : node->otherwise, ad, state);
}

static Value run_inner(Node *node, PyObject *ad, State *state)
{
    switch ((NodeKind)node->kind) {
    case UNARY: {
        Value value = run(((Unary *)node)->operand, ad, state);
        return node->operator == PARENTHESES ? value : operate_on_one((Operator)node->operator, value);
    }
    case BINARY: return run_chain((Binary *)node, ad, state);
    case CONDITIONAL: return run_conditional((Conditional *)node, ad, state);
    case SUBSCRIPT: {
        Value container = run(((Subscript *)node)->container, ad, state);
        if (container.kind == FAILED)
            return container;
        return subscript(container, run(((Subscript *)node)->index, ad, state), state);
    }
    case CALL: return call((Call *)node, ad, state);
    case LIST: return run_list((List *)node, ad);
    case RECORD:
        return value_from(PyObject_CallMethod((PyObject *)python.ad, "from_pairs", "OO", ((Record *)node)->pairs, ad));
    default: return refer((Reference *)node, ad, state);
    }
}

Value run(Node *node, PyObject *ad, State *state)
{
    switch ((NodeKind)node->kind) {
    case LITERAL: return copy(((Literal *)node)->known);
    case SPAN: return real(((Span *)node)->seconds);
    case REFERENCE:
        if (node->detail != SELECTED)
            return refer((Reference *)node, ad, state);
        break;
    default: break;
    }
    if (!deeper(state))
        return nothing(ERROR);
    return shallower(state, run_inner(node, ad, state));
}
