/* Nodes to values: names as in evaluation.py, for the values that are common. */

#include "core.h"

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

/* -- what it costs */

Budget budget = {.steps = INT64_MAX, .bytes = INT64_MAX};

bool overdrawn(State *state)
{
    if (!state->exhausted)
        budget.exceeded++;
    state->exhausted = true;
    return false;
}

int64_t weight(Value value)
{
    if (value.kind == TEXT)
        return PyUnicode_GET_LENGTH(value.object) >> STEP_SHIFT;
    if (value.kind != OBJECT || Py_TYPE(value.object) != python.list)
        return 0;
    PyObject *elements = slot(value.object, python.list_elements);
    return elements != NULL && PyTuple_Check(elements) ? PyTuple_GET_SIZE(elements) : 0;
}

Value weighed(State *state, Value value)
{
    if (value.kind != TEXT || charge(state, weight(value)))
        return value;
    drop(value);
    return nothing(ERROR);
}

Value made(State *state, Value value)
{
    if (value.kind < TEXT)
        return value;
    int64_t cost = weight(value);
    state->bytes += value.kind == TEXT ? PyUnicode_GET_LENGTH(value.object) * (int64_t)PyUnicode_KIND(value.object)
                                       : cost * ITEM_BYTES;
    if (charge(state, cost) && (state->bytes <= budget.bytes || overdrawn(state)))
        return value;
    drop(value);
    return nothing(ERROR);
}

bool charge_comparison(State *state, Value left, Value right)
{
    if (left.kind != TEXT || right.kind != TEXT)
        return true;
    Py_ssize_t length = PyUnicode_GET_LENGTH(left.object), other = PyUnicode_GET_LENGTH(right.object);
    return (length < LONG_TEXT && other < LONG_TEXT) || charge(state, (length + other) >> STEP_SHIFT);
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
    if (state->depth > MAX_DEPTH || !charge(state, node->size)) {
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

static Value an_ad(PyObject *ad)
{
    if (ad == NULL)
        return nothing(UNDEFINED);
    Py_INCREF(ad);
    return (Value){.kind = OBJECT, .object = ad};
}

Value enter(PyObject *stored, PyObject *ad, State *state)
{
    if (is_plain(stored))
        return value_of(stored);
    if (IS_NODE(stored))
        return enter_node((Node *)stored, ad, state);
    return stored == state->my || stored == state->target ? an_ad(stored) : within(stored, ad);
}

static PyObject *other_of(State *state, PyObject *ad)
{
    return ad == state->my ? state->target : ad == state->target ? state->my : NULL;
}

static bool takes_part(const State *state, const PyObject *ad)
{
    return state->target != NULL && (ad == state->my || ad == state->target);
}

/* The record around an ad of a match, or the one around that; made anew, for few ever ask. */
static Value match_scope(PyObject *ad, State *state, bool outermost)
{
    PyObject *scope = PyObject_CallFunctionObjArgs(python.match_scope, ad, state, NULL);
    if (scope == NULL || !outermost)
        return value_from(scope);
    PyObject *match = slot(scope, python.scope);
    Py_XINCREF(match);
    Py_DECREF(scope);
    return value_from(match);
}

static Value select_from(Value value, const Reference *name, State *state);

static Value special(int name, PyObject *ad, PyObject *root, State *state)
{
    switch (name) {
    case SPECIAL_SELF: return an_ad(ad);
    case SPECIAL_TARGET: return an_ad(other_of(state, root));
    case SPECIAL_ROOT: return takes_part(state, root) ? match_scope(root, state, true) : an_ad(root);
    default: {
        PyObject *scope = slot(ad, python.scope);
        return scope == NULL && takes_part(state, ad) ? match_scope(ad, state, false) : an_ad(scope);
    }
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
    if (name->special != ORDINARY && name->special < SPECIAL_TIME)
        return special(name->special, ad, root, state);
    if ((root == ad || state->contexts > 0) && !selected) {
        PyObject *other = other_of(state, root);
        PyObject *found = other == NULL ? NULL : find(other, name->key);
        if (found != NULL)
            return enter(found, other, state);
    }
    if (name->special == SPECIAL_MATCH && takes_part(state, root))
        return select_from(match_scope(root, state, false), name, state);
    return name->special == SPECIAL_TIME ? state_now(state) : nothing(UNDEFINED);
}

/* An element counts as no attribute: a list that asks itself for its parts has no end, and the whole is an error. */
Value element(PyObject *item, PyObject *ad, State *state)
{
    if (is_plain(item) || !IS_NODE(item))
        return weighed(state, value_of(item));
    if (!charge(state, ((Node *)item)->size) || !deeper(state))
        return nothing(ERROR);
    Py_INCREF(item);
    Value value = run((Node *)item, ad == NULL ? state->my : ad, state);
    Py_DECREF(item);
    return shallower(state, weighed(state, value));
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

static Value select_from_each(PyObject *list, const Reference *name, State *state)
{
    PyObject *elements = slot(list, python.list_elements), *ad = slot(list, python.list_ad);
    if (elements == NULL || !PyTuple_Check(elements) || !charge(state, PyTuple_GET_SIZE(elements)) || !deeper(state))
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
    default: /* ABSOLUTE: in a match the outermost record is the match itself */
        for (PyObject *scope = slot(ad, python.scope); scope != NULL && is_ad(scope); scope = slot(ad, python.scope))
            ad = scope;
        return takes_part(state, ad) ? select_from(match_scope(ad, state, true), name, state)
                                     : look_up(ad, name, state, false);
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
        for (int at = 0; value.kind != FAILED && at < count; at++) {
            Value right = run(steps[at]->right, ad, state);
            charge_comparison(state, value, right);
            value = operate((Operator)steps[at]->operator, value, right);
        }
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
