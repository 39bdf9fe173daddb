/* The operators of operators.py, for the operands that are common; Python is asked about others. */

#include "core.h"

#include <math.h>

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

Value operate_on_one(Operator operator, Value value)
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
