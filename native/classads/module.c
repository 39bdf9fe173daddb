/* The doors of the core: evaluating for Python, matching two ads, and what Python hands in at the start. */

#include "core.h"

#include <structmember.h>
#include <time.h>

Python python;

/* -- an evaluation in progress */

PyTypeObject *state_type;
static State *spare; /* one that has ended, for the next */

State *new_state(PyObject *my, PyObject *target, PyObject *now_s)
{
    State *state = spare;
    spare = NULL;
    if (state == NULL && (state = PyObject_New(State, state_type)) == NULL)
        return NULL;
    Py_INCREF(my);
    Py_XINCREF(target);
    Py_XINCREF(now_s);
    state->my = my;
    state->target = target;
    state->now_s = now_s;
    state->now_known = state->exhausted = false;
    state->depth = state->frames = state->contexts = 0;
    state->steps = state->bytes = 0;
    state->busy = NULL;
    return state;
}

static void clear_state(State *state)
{
    budget.spent += state->steps;
    state->steps = 0;
    Py_CLEAR(state->my);
    Py_CLEAR(state->target);
    Py_CLEAR(state->now_s);
}

void end_state(State *state)
{
    if (spare == NULL && Py_REFCNT(state) == 1) {
        clear_state(state);
        if (spare == NULL) { /* clearing may have run an evaluation */
            spare = state;
            return;
        }
    }
    Py_DECREF(state);
}

static void state_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    clear_state((State *)self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *time_name;

Value state_now(State *state)
{
    if (!state->now_known) {
        PyObject *given = state->now_s;
        PyObject *clock = given != NULL ? NULL : PyDict_GetItemWithError(python.time_module, time_name);
        if (clock == python.clock) {
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            return state->now_known = true, integer(state->now = now.tv_sec);
        }
        if (given == NULL) /* a test has put another clock there */
            given = clock == NULL ? NULL : PyObject_CallNoArgs(clock);
        else
            Py_INCREF(given);
        PyObject *whole = given == NULL ? NULL : PyNumber_Long(given);
        Py_XDECREF(given);
        Value now = value_from(whole);
        if (now.kind != INTEGER)
            return now;
        state->now = now.number;
        state->now_known = true;
    }
    return integer(state->now);
}

static PyObject *none_or(PyObject *object) { return object == Py_None ? NULL : object; }

static bool is_ad_or_complain(PyObject *object)
{
    if (python.ad == NULL)
        PyErr_SetString(PyExc_RuntimeError, "the core is not set up");
    else if (is_ad(object))
        return true;
    else
        PyErr_Format(PyExc_TypeError, "expected a ClassAd, not %.100s", Py_TYPE(object)->tp_name);
    return false;
}

static PyObject *state_new(PyTypeObject *type, PyObject *args, PyObject *kwds)
{
    (void)type;
    static char *names[] = {"my", "target", "now_s", NULL};
    PyObject *my, *target, *now_s;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "OOO:State", names, &my, &target, &now_s) || !is_ad_or_complain(my)
        || (target != Py_None && !is_ad_or_complain(target)))
        return NULL;
    return (PyObject *)new_state(my, none_or(target), none_or(now_s));
}

static PyObject *state_now_method(PyObject *self, PyObject *unused)
{
    (void)unused;
    return object_of(state_now((State *)self));
}

static PyObject *state_other(PyObject *self, PyObject *ad)
{
    State *state = (State *)self;
    PyObject *other = ad == state->my ? state->target : ad == state->target ? state->my : NULL;
    other = other == NULL ? Py_None : other;
    Py_INCREF(other);
    return other;
}

static PyObject *state_charge(PyObject *self, PyObject *steps)
{
    long long cost = PyLong_AsLongLong(steps);
    if (cost == -1 && PyErr_Occurred())
        return NULL;
    if (charge((State *)self, cost))
        Py_RETURN_NONE;
    PyErr_SetString(python.exhausted, "the evaluation has taken too many steps");
    return NULL;
}

static PyMemberDef state_members[] = {
    {"my", T_OBJECT, offsetof(State, my), READONLY, NULL},
    {"target", T_OBJECT, offsetof(State, target), READONLY, NULL},
    {"now_s", T_OBJECT, offsetof(State, now_s), READONLY, NULL},
    {"contexts", T_INT, offsetof(State, contexts), 0, NULL},
    {0}};
static PyMethodDef state_methods[] = {
    {"now", state_now_method, METH_NOARGS, NULL}, {"other", state_other, METH_O, NULL},
    {"charge", state_charge, METH_O, NULL}, {0}};

/* -- evaluating for Python */

/* Where Python functions called each other too deep, the evaluation is made again with more room. */
static PyObject *again_with_room(Node *node, PyObject *my, PyObject *target, PyObject *now_s)
{
    if (!PyErr_ExceptionMatches(PyExc_RecursionError))
        return NULL;
    PyErr_Clear();
    return PyObject_CallFunctionObjArgs(python.deep, node, my, target == NULL ? Py_None : target,
                                        now_s == NULL ? Py_None : now_s, NULL);
}

/* A list for callers is a Python list of evaluated elements. */
static PyObject *shown(Value value, PyObject *my, PyObject *target, PyObject *now_s)
{
    PyObject *object = object_of(value);
    if (object == NULL || Py_TYPE(object) != python.list)
        return object;
    PyObject *plain = PyObject_CallFunctionObjArgs(python.plain, object, my, target == NULL ? Py_None : target,
                                                   now_s == NULL ? Py_None : now_s, NULL);
    Py_DECREF(object);
    return plain;
}

/* Sort out (my, target, now_s) given by position or by name; what is absent or None becomes NULL. */
static bool take_ads(PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **taken)
{
    static const char *const known[] = {"my", "target", "now_s"};
    Py_ssize_t named = names == NULL ? 0 : PyTuple_GET_SIZE(names);
    taken[0] = taken[1] = taken[2] = NULL;
    if (count + named > 3) {
        PyErr_SetString(PyExc_TypeError, "at most an ad, another ad and a time");
        return false;
    }
    for (Py_ssize_t at = 0; at < count; at++)
        taken[at] = none_or(args[at]);
    for (Py_ssize_t at = 0; at < named; at++) {
        int place = 0;
        while (place < 3 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, at), known[place]) != 0)
            place++;
        if (place < count || place == 3) {
            PyErr_Format(PyExc_TypeError, "unexpected argument %R", PyTuple_GET_ITEM(names, at));
            return false;
        }
        taken[place] = none_or(args[count + at]);
    }
    return (taken[0] == NULL || is_ad_or_complain(taken[0])) && (taken[1] == NULL || is_ad_or_complain(taken[1]));
}

static PyObject *expr_evaluate(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *taken[3], *fresh = NULL;
    if (!take_ads(args, count, names, taken))
        return NULL;
    if (taken[0] == NULL) {
        if (python.ad == NULL)
            return PyErr_Format(PyExc_RuntimeError, "the core is not set up");
        if ((fresh = PyObject_CallNoArgs((PyObject *)python.ad)) == NULL)
            return NULL;
        taken[0] = fresh;
    }
    State *state = new_state(taken[0], taken[1], taken[2]);
    PyObject *result = NULL;
    if (state != NULL) {
        charge(state, ((Node *)self)->size);
        Value value = run((Node *)self, taken[0], state);
        end_state(state);
        result = value.kind == FAILED ? again_with_room((Node *)self, taken[0], taken[1], taken[2])
                                      : shown(value, taken[0], taken[1], taken[2]);
    }
    Py_XDECREF(fresh);
    return result;
}

static bool take_state(PyObject *const *args, Py_ssize_t count)
{
    if (count == 2 && Py_TYPE(args[1]) == state_type)
        return is_ad_or_complain(args[0]);
    PyErr_SetString(PyExc_TypeError, "expected an ad and an evaluation");
    return false;
}

static PyObject *expr_run(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    return take_state(args, count) ? object_of(run((Node *)self, args[0], (State *)args[1])) : NULL;
}

PyMethodDef expr_methods[] = {
    {"evaluate", (PyCFunction)(void (*)(void))expr_evaluate, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"run", (PyCFunction)(void (*)(void))expr_run, METH_FASTCALL, NULL},
    {0}};

static PyObject *core_enter(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || !take_state(args + 1, count - 1))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected a value, an ad and an evaluation");
    return object_of(enter(args[0], args[1], (State *)args[2]));
}

static PyObject *core_element(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 3 || Py_TYPE(args[2]) != state_type || (args[1] != Py_None && !is_ad_or_complain(args[1])))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "expected an item, an ad and an evaluation");
    return object_of(element(args[0], none_or(args[1]), (State *)args[2]));
}

/* Evaluate what an ad keeps under a name, so that a reference to itself is a cycle. */
Value run_attribute(Node *node, PyObject *my, PyObject *target, PyObject *now_s)
{
    State *state = new_state(my, target, now_s);
    if (state == NULL)
        return nothing(FAILED);
    Busy frame = {.ad = my, .node = node, .below = NULL};
    state->busy = &frame;
    state->depth = node->height;
    charge(state, node->size);
    Py_INCREF(node);
    Value value = run(node, my, state);
    state->busy = NULL;
    end_state(state);
    if (value.kind == FAILED)
        value = value_from(again_with_room(node, my, target, now_s));
    Py_DECREF(node);
    return value;
}

static PyObject *core_run_attribute(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 4 || !IS_NODE(args[0]))
        return PyErr_Format(PyExc_TypeError, "expected an expression, two ads and a time");
    if (!is_ad_or_complain(args[1]) || (args[2] != Py_None && !is_ad_or_complain(args[2])))
        return NULL;
    return object_of(run_attribute((Node *)args[0], args[1], none_or(args[2]), none_or(args[3])));
}

/* -- matching */

static PyObject *requirements, *rank_name;

static Value attribute(PyObject *key, PyObject *ad, PyObject *target, PyObject *now_s)
{
    PyObject *found = find(ad, key);
    if (found == NULL)
        return nothing(PyErr_Occurred() ? FAILED : UNDEFINED);
    return IS_NODE(found) ? run_attribute((Node *)found, ad, target, now_s) : value_of(found);
}

/* Whether one accepts the other: 1, 0, or -1 with an exception. */
static int accepts(PyObject *ad, PyObject *target, PyObject *now_s)
{
    Value value = attribute(requirements, ad, target, now_s);
    drop(value);
    if (value.kind == FAILED)
        return -1;
    return value.kind == REAL ? value.real != 0 : (value.kind == TRUTH || value.kind == INTEGER) && value.number != 0;
}

static bool take_pair(PyObject *const *args, Py_ssize_t count)
{
    if (count != 2 && count != 3)
        return PyErr_SetString(PyExc_TypeError, "expected two ads, and a time or none"), false;
    return is_ad_or_complain(args[0]) && is_ad_or_complain(args[1]);
}

static PyObject *core_requirements_hold(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    int yes = take_pair(args, count) ? accepts(args[0], args[1], count == 3 ? none_or(args[2]) : NULL) : -1;
    return yes < 0 ? NULL : PyBool_FromLong(yes);
}

static PyObject *core_match_ads(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    PyObject *now_s = count == 3 ? none_or(args[2]) : NULL;
    int yes = take_pair(args, count) ? accepts(args[0], args[1], now_s) : -1;
    if (yes > 0)
        yes = accepts(args[1], args[0], now_s);
    return yes < 0 ? NULL : PyBool_FromLong(yes);
}

static PyObject *core_rank(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (!take_pair(args, count))
        return NULL;
    Value value = attribute(rank_name, args[0], args[1], count == 3 ? none_or(args[2]) : NULL);
    drop(value);
    if (value.kind == FAILED)
        return NULL;
    return PyFloat_FromDouble(value.kind == REAL ? value.real
                              : value.kind == INTEGER || value.kind == TRUTH ? (double)value.number : 0.0);
}

/* -- what Python hands in */

static int slot_of(PyTypeObject *type, const char *name, Py_ssize_t *offset)
{
    PyObject *descriptor = PyObject_GetAttrString((PyObject *)type, name);
    if (descriptor == NULL)
        return -1;
    int found = -1;
    if (Py_TYPE(descriptor) == &PyMemberDescr_Type) {
        *offset = ((PyMemberDescrObject *)descriptor)->d_member->offset;
        found = 0;
    } else {
        PyErr_Format(PyExc_TypeError, "%s.%s is no slot", type->tp_name, name);
    }
    Py_DECREF(descriptor);
    return found;
}

static int take_operators(PyObject *binary, PyObject *unary)
{
    for (int at = 0; at < PARENTHESES; at++) {
        PyObject *function = PyDict_GetItemString(at < BINARY_OPERATORS ? binary : unary, operator_text[at]);
        if (function == NULL && at > AND)
            return PyErr_Format(PyExc_KeyError, "no operator %s", operator_text[at]), -1;
        Py_XINCREF(function);
        Py_XSETREF(python.operators[at], function);
    }
    return 0;
}

static PyObject *core_setup(PyObject *module, PyObject *args, PyObject *kwds)
{
    (void)module;
    static char *names[] = {"ad", "list_value", "absolute_time", "relative_time", "deleted",
                            "binary", "unary", "resolve", "deep", "plain", "match_scope", "exhausted", "clock", "time_module", NULL};
    PyObject *binary, *unary;
    Python given = python;
    if (!PyArg_ParseTupleAndKeywords(args, kwds, "$O!O!O!O!OO!O!OOOOOOO!:setup", names, &PyType_Type, &given.ad,
                                     &PyType_Type, &given.list, &PyType_Type, &given.absolute_time, &PyType_Type,
                                     &given.relative_time, &given.deleted, &PyDict_Type,
                                     &binary, &PyDict_Type, &unary, &given.resolve, &given.deep, &given.plain, &given.match_scope, &given.exhausted,
                                     &given.clock, &PyDict_Type, &given.time_module)
        || take_operators(binary, unary) < 0 || slot_of(given.ad, "own", &given.own) < 0
        || slot_of(given.ad, "parent", &given.parent) < 0 || slot_of(given.ad, "scope", &given.scope) < 0
        || slot_of(given.ad, "spellings", &given.spellings) < 0
        || slot_of(given.list, "elements", &given.list_elements) < 0 || slot_of(given.list, "ad", &given.list_ad) < 0)
        return NULL;
    PyObject *kept[] = {(PyObject *)given.ad, (PyObject *)given.list, (PyObject *)given.absolute_time,
                        (PyObject *)given.relative_time, given.deleted, given.resolve,
                        given.deep, given.plain, given.match_scope, given.exhausted, given.clock, given.time_module};
    for (size_t at = 0; at < sizeof kept / sizeof *kept; at++)
        Py_INCREF(kept[at]); /* for as long as the process lives */
    memcpy(given.operators, python.operators, sizeof given.operators);
    python = given;
    Py_RETURN_NONE;
}

/* Before the first literal is made: what stands for undefined, and for error. */
static PyObject *core_set_constants(PyObject *module, PyObject *args)
{
    (void)module;
    if (!PyArg_ParseTuple(args, "OO:set_constants", &python.undefined, &python.error))
        return NULL;
    Py_INCREF(python.undefined); /* for as long as the process lives */
    Py_INCREF(python.error);
    if (prepare_parser() < 0)
        return NULL;
    Py_RETURN_NONE;
}

/* set_budget(steps, bytes): what one evaluation may spend from now on. */
static PyObject *core_set_budget(PyObject *module, PyObject *args)
{
    (void)module;
    long long steps, bytes;
    if (!PyArg_ParseTuple(args, "LL:set_budget", &steps, &bytes))
        return NULL;
    budget.steps = steps;
    budget.bytes = bytes;
    Py_RETURN_NONE;
}

/* spent(): the steps of all evaluations so far, and how often one took too many. */
static PyObject *core_spent(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return Py_BuildValue("LL", (long long)budget.spent, (long long)budget.exceeded);
}

static PyMethodDef methods[] = {
    {"set_budget", core_set_budget, METH_VARARGS, NULL},
    {"spent", core_spent, METH_NOARGS, NULL},
    {"setup", (PyCFunction)(void (*)(void))core_setup, METH_VARARGS | METH_KEYWORDS, NULL},
    {"set_constants", core_set_constants, METH_VARARGS, NULL},
    {"parse", parse, METH_O, NULL},
    {"enter", (PyCFunction)(void (*)(void))core_enter, METH_FASTCALL, NULL},
    {"element", (PyCFunction)(void (*)(void))core_element, METH_FASTCALL, NULL},
    {"run_attribute", (PyCFunction)(void (*)(void))core_run_attribute, METH_FASTCALL, NULL},
    {"requirements_hold", (PyCFunction)(void (*)(void))core_requirements_hold, METH_FASTCALL, NULL},
    {"match_ads", (PyCFunction)(void (*)(void))core_match_ads, METH_FASTCALL, NULL},
    {"read_lines", (PyCFunction)(void (*)(void))read_lines, METH_FASTCALL, NULL},
    {"write_lines", (PyCFunction)(void (*)(void))write_lines, METH_FASTCALL, NULL},
    {"rank", (PyCFunction)(void (*)(void))core_rank, METH_FASTCALL, NULL},
    {0}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_core", "The core of the ClassAd language; see native/classads.", -1, methods,
    NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__core(void)
{
    PyObject *module = PyModule_Create(&definition);
    PyType_Slot slots[] = {{Py_tp_dealloc, (void *)state_dealloc}, {Py_tp_new, (void *)state_new},
                           {Py_tp_members, state_members}, {Py_tp_methods, state_methods}, {0, NULL}};
    PyType_Spec spec = {.name = "condor_actors.classads._core.State", .basicsize = sizeof(State),
                        .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
    if (module == NULL || add_node_types(module) < 0)
        goto failed;
    state_type = (PyTypeObject *)PyType_FromSpec(&spec);
    requirements = PyUnicode_InternFromString("requirements");
    rank_name = PyUnicode_InternFromString("rank");
    time_name = PyUnicode_InternFromString("time");
    if (state_type == NULL || requirements == NULL || rank_name == NULL || time_name == NULL
        || PyModule_AddObjectRef(module, "State", (PyObject *)state_type) < 0)
        goto failed;
    return module;
failed:
    Py_XDECREF(module);
    return NULL;
}
