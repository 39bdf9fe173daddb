/* Values of the language, from Python's and back. */

#include "core.h"

Value value_of(PyObject *object)
{
    if (PyLong_CheckExact(object)) {
        int overflow;
        int64_t number = PyLong_AsLongLongAndOverflow(object, &overflow);
        return integer(overflow ? (int64_t)PyLong_AsUnsignedLongLongMask(object) : number);
    }
    if (PyFloat_CheckExact(object))
        return real(PyFloat_AS_DOUBLE(object));
    if (object == Py_True || object == Py_False)
        return truth_value(object == Py_True);
    if (object == python.undefined)
        return nothing(UNDEFINED);
    if (object == python.error)
        return nothing(ERROR);
    Py_INCREF(object);
    return (Value){.kind = PyUnicode_CheckExact(object) ? TEXT : OBJECT, .object = object};
}

Value value_from(PyObject *taken)
{
    if (taken == NULL)
        return nothing(FAILED);
    Value value = value_of(taken);
    Py_DECREF(taken);
    return value;
}

PyObject *object_of(Value value)
{
    PyObject *object = NULL;
    switch (value.kind) {
    case FAILED: return NULL;
    case INTEGER: return PyLong_FromLongLong(value.number);
    case REAL: return PyFloat_FromDouble(value.real);
    case TEXT:
    case OBJECT: return value.object;
    case TRUTH: object = value.number ? Py_True : Py_False; break;
    case UNDEFINED: object = python.undefined; break;
    case ERROR: object = python.error; break;
    }
    Py_INCREF(object);
    return object;
}
