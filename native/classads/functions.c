/* Calls. A function is looked up once; the common ones are here for the common types of arguments, and whatever a
 * function here does not take (0 from it) is handed to Python's, with the arguments already evaluated. */

#include "core.h"

#include <math.h>

typedef int (*Native)(State *state, const Value *arguments, int count, Value *result);

enum { FEW = 8 };

/* -- conditions on types */

static int is_undefined(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return *result = truth_value(a[0].kind == UNDEFINED), 1;
}

static int is_error(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return *result = truth_value(a[0].kind == ERROR), 1;
}

static int is_string(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return *result = truth_value(a[0].kind == TEXT), 1;
}

static int is_integer(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return *result = truth_value(a[0].kind == INTEGER), 1;
}

static int is_real(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return *result = truth_value(a[0].kind == REAL), 1;
}

static int is_boolean(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return *result = truth_value(a[0].kind == TRUTH), 1;
}

/* -- numbers */

static int64_t truncated(double number)
{
    return number >= -9223372036854775808.0 && number < 9223372036854775808.0 ? (int64_t)number : INT64_MIN;
}

static int to_integer(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    if (a[0].kind != INTEGER && a[0].kind != REAL && a[0].kind != TRUTH)
        return 0;
    return *result = integer(a[0].kind == REAL ? truncated(a[0].real) : a[0].number), 1;
}

static int to_real(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    if (a[0].kind != INTEGER && a[0].kind != REAL && a[0].kind != TRUTH)
        return 0;
    return *result = real(a[0].kind == REAL ? a[0].real : (double)a[0].number), 1;
}

static int rounded(const Value *a, Value *result, double (*how)(double))
{
    if (a[0].kind == INTEGER)
        return *result = a[0], 1;
    if (a[0].kind != REAL)
        return 0;
    return *result = integer(isfinite(a[0].real) ? truncated(how(a[0].real)) : INT64_MIN), 1;
}

static int round_down(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return rounded(a, result, floor);
}

static int round_up(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return rounded(a, result, ceil);
}

static int round_near(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return rounded(a, result, rint);
}

static int time_now(State *state, const Value *a, int count, Value *result)
{
    (void)a, (void)count;
    return *result = state_now(state), 1;
}

/* -- strings */

static bool is_ascii(Value value) { return value.kind == TEXT && PyUnicode_IS_ASCII(value.object); }

/* An integer in decimal, written backwards from `end`; where it starts. */
static char *decimal(int64_t number, char *end)
{
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do
        *--end = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--end = '-';
    return end;
}

static int join_all(State *state, const Value *a, int count, Value *result)
{
    (void)state;
    Py_ssize_t total = 0;
    char digits[24];
    for (int at = 0; at < count; at++) {
        if (a[at].kind == UNDEFINED || a[at].kind == ERROR)
            return *result = nothing(a[at].kind), 1;
        if (!is_ascii(a[at]) && a[at].kind != INTEGER)
            return 0;
        total += a[at].kind == TEXT ? PyUnicode_GET_LENGTH(a[at].object)
                                    : digits + sizeof digits - decimal(a[at].number, digits + sizeof digits);
    }
    if (total > MAX_STRING)
        return *result = nothing(ERROR), 1;
    PyObject *text = PyUnicode_New(total, 127);
    if (text == NULL)
        return *result = nothing(FAILED), 1;
    Py_UCS1 *out = PyUnicode_1BYTE_DATA(text);
    for (int at = 0; at < count; at++) {
        const void *from;
        Py_ssize_t size;
        if (a[at].kind == TEXT) {
            from = PyUnicode_1BYTE_DATA(a[at].object);
            size = PyUnicode_GET_LENGTH(a[at].object);
        } else {
            char *start = decimal(a[at].number, digits + sizeof digits);
            from = start;
            size = digits + sizeof digits - start;
        }
        memcpy(out, from, (size_t)size);
        out += size;
    }
    return *result = (Value){.kind = TEXT, .object = text}, 1;
}

static int recased(const Value *a, Value *result, Py_UCS1 first, int shift)
{
    if (!is_ascii(a[0]))
        return 0;
    Py_ssize_t size = PyUnicode_GET_LENGTH(a[0].object);
    PyObject *text = PyUnicode_New(size, 127);
    if (text == NULL)
        return *result = nothing(FAILED), 1;
    const Py_UCS1 *from = PyUnicode_1BYTE_DATA(a[0].object);
    Py_UCS1 *to = PyUnicode_1BYTE_DATA(text);
    for (Py_ssize_t at = 0; at < size; at++)
        to[at] = (Py_UCS1)(from[at] >= first && from[at] < first + 26 ? from[at] + shift : from[at]);
    return *result = (Value){.kind = TEXT, .object = text}, 1;
}

static int to_lower(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return recased(a, result, 'A', 32);
}

static int to_upper(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return recased(a, result, 'a', -32);
}

static int size_of(State *state, const Value *a, int count, Value *result)
{
    (void)state, (void)count;
    return is_ascii(a[0]) ? *result = integer(PyUnicode_GET_LENGTH(a[0].object)), 1 : 0;
}

/* -- members */

static bool is_space(Py_UCS1 c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool separates(Py_UCS1 c) { return c == ' ' || c == ',' || c == '\t' || c == '\r' || c == '\n'; }

static int string_list_member(const Value *a, int count, Value *result, bool fold)
{
    if (count != 2 || !is_ascii(a[0]) || !is_ascii(a[1]))
        return 0;
    const Py_UCS1 *sought = PyUnicode_1BYTE_DATA(a[0].object), *list = PyUnicode_1BYTE_DATA(a[1].object);
    Py_ssize_t length = PyUnicode_GET_LENGTH(a[0].object), size = PyUnicode_GET_LENGTH(a[1].object);
    *result = truth_value(false);
    for (Py_ssize_t start = 0, end; start <= size && length > 0; start = end + 1) {
        for (end = start; end < size && !separates(list[end]); end++)
            ;
        Py_ssize_t first = start, last = end;
        while (first < last && is_space(list[first]))
            first++;
        while (last > first && is_space(list[last - 1]))
            last--;
        if (last - first != length)
            continue;
        Py_ssize_t at = 0;
        while (at < length && (fold ? Py_TOLOWER(list[first + at]) == Py_TOLOWER(sought[at])
                                    : list[first + at] == sought[at]))
            at++;
        if (at == length)
            return *result = truth_value(true), 1;
    }
    return 1;
}

static int member_of_text(State *state, const Value *a, int count, Value *result)
{
    (void)state;
    return string_list_member(a, count, result, false);
}

static int imember_of_text(State *state, const Value *a, int count, Value *result)
{
    (void)state;
    return string_list_member(a, count, result, true);
}

/* -- the table */

enum { NO_NATIVE, IF_THEN_ELSE, MEMBER, FIRST_PLAIN };

static const struct {
    const char *name;
    Native function;
} natives[] = {
    {"", NULL}, {"ifthenelse", NULL}, {"member", NULL}, {"isundefined", is_undefined}, {"iserror", is_error},
    {"isstring", is_string}, {"isinteger", is_integer}, {"isreal", is_real}, {"isboolean", is_boolean},
    {"int", to_integer}, {"real", to_real}, {"floor", round_down}, {"ceiling", round_up}, {"ceil", round_up},
    {"round", round_near}, {"time", time_now}, {"strcat", join_all}, {"tolower", to_lower}, {"toupper", to_upper},
    {"size", size_of}, {"stringlistmember", member_of_text}, {"stringlistimember", imember_of_text},
};

int native_of(PyObject *lower_name)
{
    for (size_t at = 1; at < sizeof natives / sizeof *natives; at++)
        if (PyUnicode_CompareWithASCIIString(lower_name, natives[at].name) == 0)
            return (int)at;
    return NO_NATIVE;
}

/* Ask Python what a name and a number of arguments stand for: None, or (kind, function). */
static int resolve(Call *node)
{
    PyObject *lower = PyObject_CallMethod(node->name, "lower", NULL);
    if (lower == NULL)
        return -1;
    PyObject *found = PyObject_CallFunction(python.resolve, "On", lower, PyTuple_GET_SIZE(node->arguments));
    if (found == Py_None) {
        node->style = UNKNOWN;
    } else if (found != NULL && PyTuple_Check(found) && PyTuple_GET_SIZE(found) == 2) {
        const char *kind = PyUnicode_AsUTF8(PyTuple_GET_ITEM(found, 0));
        node->apply = PyTuple_GET_ITEM(found, 1);
        Py_INCREF(node->apply);
        node->native = (uint8_t)native_of(lower);
        node->style = kind == NULL ? UNKNOWN : kind[0] == 'e' ? EAGER : kind[0] == 'i' ? INSIDE : LAZY;
    }
    Py_DECREF(lower);
    Py_XDECREF(found);
    return PyErr_Occurred() ? -1 : 0;
}

/* -- calling */

static Value if_then_else(Call *node, PyObject *ad, State *state)
{
    Value test = truth(run((Node *)PyTuple_GET_ITEM(node->arguments, 0), ad, state));
    if (test.kind != TRUTH)
        return test;
    return run((Node *)PyTuple_GET_ITEM(node->arguments, test.number ? 1 : 2), ad, state);
}

/* member(x, { ... }) of a list written out, without making the list. */
static Value member_of_list(Value sought, PyObject *elements, PyObject *ad, State *state)
{
    Value result = truth_value(false);
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(elements); at++) {
        Node *node = (Node *)PyTuple_GET_ITEM(elements, at);
        Value item = node->kind == LITERAL ? value_of(((Literal *)node)->value) : element((PyObject *)node, ad, state);
        if (item.kind == FAILED) {
            result = item;
            break;
        }
        if (sought.kind >= TEXT)
            Py_INCREF(sought.object);
        charge_comparison(state, item, sought);
        item = operate(EQUAL, item, sought);
        if (item.kind == FAILED || (item.kind == TRUTH && item.number)) {
            result = item;
            break;
        }
        drop(item);
    }
    drop(sought);
    return result;
}

/* What a Python function gave; where it found that too much was spent, the evaluation is an error. */
static Value answered(State *state, PyObject *result)
{
    if (result == NULL && PyErr_ExceptionMatches(python.exhausted)) {
        PyErr_Clear();
        overdrawn(state);
        return nothing(ERROR);
    }
    return value_from(result);
}

static Value ask_python_lazily(Call *node, PyObject *ad, State *state)
{
    PyObject *arguments[5] = {ad, (PyObject *)state};
    Py_ssize_t count = PyTuple_GET_SIZE(node->arguments);
    if (count > 3)
        return nothing(ERROR);
    for (Py_ssize_t at = 0; at < count; at++)
        arguments[2 + at] = PyTuple_GET_ITEM(node->arguments, at);
    return answered(state, PyObject_Vectorcall(node->apply, arguments, (size_t)count + 2, NULL));
}

/* Takes the values. */
static Value ask_python(Call *node, PyObject *ad, State *state, Value *values, int count)
{
    PyObject *few[FEW + 2], **arguments = count > FEW ? PyMem_Malloc(((size_t)count + 2) * sizeof *arguments) : few;
    PyObject *result = NULL;
    int made = 0;
    if (arguments == NULL) {
        PyErr_NoMemory();
        for (int at = 0; at < count; at++)
            drop(values[at]);
        return nothing(FAILED);
    }
    arguments[0] = ad;
    arguments[1] = (PyObject *)state;
    for (; made < count; made++)
        if ((arguments[2 + made] = object_of(values[made])) == NULL)
            break;
    if (made == count)
        result = node->style == INSIDE ? PyObject_Vectorcall(node->apply, arguments, (size_t)count + 2, NULL)
                                       : PyObject_Vectorcall(node->apply, arguments + 2, (size_t)count, NULL);
    else
        for (int at = made + 1; at < count; at++)
            drop(values[at]);
    for (int at = 0; at < made; at++)
        Py_DECREF(arguments[2 + at]);
    if (arguments != few)
        PyMem_Free(arguments);
    return answered(state, result);
}

static Value call_with_values(Call *node, PyObject *ad, State *state)
{
    int count = (int)PyTuple_GET_SIZE(node->arguments), got = 0;
    Value few[FEW], *values = count > FEW ? PyMem_Malloc((size_t)count * sizeof *values) : few;
    Value result = nothing(FAILED);
    if (values == NULL) {
        PyErr_NoMemory();
        return result;
    }
    int64_t cost = 0;
    for (; got < count; got++) {
        values[got] = run((Node *)PyTuple_GET_ITEM(node->arguments, got), ad, state);
        if (values[got].kind == FAILED)
            break;
        cost += weight(values[got]);
    }
    if (got == count && !charge(state, cost)) {
        result = nothing(ERROR);
    } else if (got == count) {
        if (node->native < FIRST_PLAIN || !natives[node->native].function(state, values, count, &result)) {
            result = ask_python(node, ad, state, values, count);
            got = 0;
        }
        result = made(state, result);
    }
    for (int at = 0; at < got; at++)
        drop(values[at]);
    if (values != few)
        PyMem_Free(values);
    return result;
}

Value call(Call *node, PyObject *ad, State *state)
{
    if (node->style == UNRESOLVED && resolve(node) < 0)
        return nothing(FAILED);
    if (node->style == UNKNOWN || !charge(state, CALL_STEPS))
        return nothing(ERROR);
    if (node->native == IF_THEN_ELSE)
        return if_then_else(node, ad, state);
    if (node->style == LAZY)
        return made(state, ask_python_lazily(node, ad, state));
    if (node->native == MEMBER && ((Node *)PyTuple_GET_ITEM(node->arguments, 1))->kind == LIST) {
        Value sought = run((Node *)PyTuple_GET_ITEM(node->arguments, 0), ad, state);
        if (sought.kind == FAILED || sought.kind == UNDEFINED || sought.kind == ERROR)
            return sought;
        if (sought.kind == OBJECT && (is_ad(sought.object) || Py_TYPE(sought.object) == python.list)) {
            drop(sought);
            return nothing(ERROR);
        }
        return member_of_list(sought, ((List *)PyTuple_GET_ITEM(node->arguments, 1))->elements, ad, state);
    }
    return call_with_values(node, ad, state);
}
