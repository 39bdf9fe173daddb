/* The wire form of ads, one "Name = expression" a line: lines that were read or written lately are looked up here, in
 * tables that Python keeps; for all others Python is called. */

#include "core.h"

/* -- reading */

/* read_lines(own, data, known, numbers, miss): put the lines of data into the dictionary own; returns the spellings that
 * differ from those on record, None without one.  known and numbers: line to (key, spelling, value); miss(line, data)
 * gives the same for a line that neither has. */
PyObject *read_lines(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 5 || !PyDict_CheckExact(args[0]) || !PyBytes_CheckExact(args[1]) || !PyDict_CheckExact(args[2])
        || !PyDict_CheckExact(args[3]))
        return PyErr_Format(PyExc_TypeError, "expected a dictionary, bytes, two dictionaries and a function");
    PyObject *own = args[0], *spellings = NULL;
    const char *at = PyBytes_AS_STRING(args[1]), *end = at + PyBytes_GET_SIZE(args[1]);
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        Py_ssize_t length = (stop == NULL ? end : stop) - at;
        const char *start = at;
        at += length + 1;
        if (length == 0)
            continue;
        PyObject *line = PyBytes_FromStringAndSize(start, length);
        if (line == NULL)
            goto failed;
        PyObject *entry = PyDict_GetItemWithError(args[2], line);
        if (entry == NULL && !PyErr_Occurred())
            entry = PyDict_GetItemWithError(args[3], line);
        if (entry != NULL)
            Py_INCREF(entry);
        else if (!PyErr_Occurred())
            entry = PyObject_CallFunctionObjArgs(args[4], line, args[1], NULL);
        Py_DECREF(line);
        if (entry == NULL)
            goto failed;
        bool fit = PyTuple_CheckExact(entry) && PyTuple_GET_SIZE(entry) == 3;
        if (!fit)
            PyErr_SetString(PyExc_TypeError, "expected key, spelling and value of a line");
        bool kept = fit && PyDict_SetItem(own, PyTuple_GET_ITEM(entry, 0), PyTuple_GET_ITEM(entry, 2)) == 0;
        if (kept && PyUnicode_Check(PyTuple_GET_ITEM(entry, 1)) && PyUnicode_GET_LENGTH(PyTuple_GET_ITEM(entry, 1)) > 0) {
            if (spellings == NULL)
                spellings = PyDict_New();
            kept = spellings != NULL
                && PyDict_SetItem(spellings, PyTuple_GET_ITEM(entry, 0), PyTuple_GET_ITEM(entry, 1)) == 0;
        }
        Py_DECREF(entry);
        if (!kept)
            goto failed;
    }
    if (spellings == NULL)
        Py_RETURN_NONE;
    return spellings;
failed:
    Py_XDECREF(spellings);
    return NULL;
}

/* -- writing */

typedef struct {
    char *text;
    size_t size, room;
    PyObject *names, *strings;               /* how a key spelled as at first is written; how a string is */
    PyObject *name_of, *text_of, *spelled_of; /* Python's: for what is not there; for another spelling */
} Writer;

static bool put(Writer *writer, const char *text, size_t size)
{
    if (writer->size + size > writer->room) {
        size_t room = 2 * (writer->size + size) + 1024;
        char *larger = PyMem_Realloc(writer->text, room);
        if (larger == NULL)
            return PyErr_NoMemory(), false;
        writer->text = larger;
        writer->room = room;
    }
    memcpy(writer->text + writer->size, text, size);
    writer->size += size;
    return true;
}

static bool put_number(Writer *writer, long long number)
{
    char digits[24], *first = digits + sizeof digits;
    unsigned long long left = number < 0 ? 0ULL - (unsigned long long)number : (unsigned long long)number;
    do
        *--first = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        *--first = '-';
    return put(writer, first, (size_t)(digits + sizeof digits - first));
}

/* Append a text, taking the reference. */
static bool put_taken(Writer *writer, PyObject *text)
{
    bool done = false;
    if (text == NULL)
        return false;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "expected a text");
    } else if (PyUnicode_IS_COMPACT_ASCII(text)) {
        done = put(writer, PyUnicode_DATA(text), (size_t)PyUnicode_GET_LENGTH(text));
    } else {
        PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
        done = bytes != NULL && put(writer, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
        Py_XDECREF(bytes);
    }
    Py_DECREF(text);
    return done;
}

/* What a table has, or else what a function makes of it; a new reference. */
static PyObject *looked_up(PyObject *table, PyObject *key, PyObject *function)
{
    PyObject *found = PyDict_GetItemWithError(table, key);
    if (found != NULL)
        return Py_INCREF(found), found;
    return PyErr_Occurred() ? NULL : PyObject_CallOneArg(function, key);
}

/* Whether a string is its own text between quotes: ASCII without what is written as an escape. */
static bool is_plain(PyObject *value)
{
    if (!PyUnicode_IS_COMPACT_ASCII(value))
        return false;
    const unsigned char *text = PyUnicode_DATA(value), *end = text + PyUnicode_GET_LENGTH(value);
    while (text < end && *text >= ' ' && *text < 0x7f && *text != '"' && *text != '\\')
        text++;
    return text == end;
}

static PyObject *wire_name; /* under which an expression remembers its text */

static bool put_value(Writer *writer, PyObject *value)
{
    if (PyLong_CheckExact(value)) {
        int overflow;
        long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (!overflow)
            return put_number(writer, number);
    } else if (PyUnicode_CheckExact(value)) {
        if (is_plain(value))
            return put(writer, "\"", 1) && put(writer, PyUnicode_DATA(value), (size_t)PyUnicode_GET_LENGTH(value))
                && put(writer, "\"", 1);
        return put_taken(writer, looked_up(writer->strings, value, writer->text_of));
    } else if (value == Py_True || value == Py_False) {
        return value == Py_True ? put(writer, "true", 4) : put(writer, "false", 5);
    } else if (IS_NODE(value)) {
        PyObject *memory = ((Node *)value)->memory;
        PyObject *text = memory != NULL && PyDict_CheckExact(memory) ? PyDict_GetItemWithError(memory, wire_name) : NULL;
        if (text != NULL)
            return Py_INCREF(text), put_taken(writer, text);
        if (PyErr_Occurred())
            return false;
    }
    return put_taken(writer, PyObject_CallOneArg(writer->text_of, value));
}

/* The name of a line as it is written: spelled as the ad says or, for what its parent has, as that one does; a new
 * reference. */
static PyObject *written_name(Writer *writer, PyObject *ad, PyObject *parent, PyObject *key)
{
    PyObject *places[] = {slot(ad, python.spellings), parent == NULL ? NULL : slot(parent, python.spellings)};
    for (int at = 0; at < 2; at++) {
        PyObject *found = places[at] == NULL ? NULL : PyDict_GetItemWithError(places[at], key);
        if (found != NULL)
            return PyObject_CallOneArg(writer->spelled_of, found);
        if (PyErr_Occurred())
            return NULL;
    }
    return looked_up(writer->names, key, writer->name_of);
}

static bool put_line(Writer *writer, PyObject *ad, PyObject *parent, PyObject *key, PyObject *value)
{
    Py_INCREF(value);
    bool done = put_taken(writer, written_name(writer, ad, parent, key)) && put(writer, " = ", 3)
        && put_value(writer, value) && put(writer, "\n", 1);
    Py_DECREF(value);
    return done;
}

/* The lines of an ad that is chained to no ad that is chained itself. */
static bool put_ad(Writer *writer, PyObject *ad, PyObject *parent)
{
    PyObject *own = slot(ad, python.own), *below = parent == NULL ? NULL : slot(parent, python.own), *key, *value;
    for (Py_ssize_t at = 0; below != NULL && PyDict_Next(below, &at, &key, &value);) {
        PyObject *nearer = PyDict_GetItemWithError(own, key);
        if (nearer == NULL && PyErr_Occurred())
            return false;
        if (nearer != python.deleted
            && !put_line(writer, ad, nearer == NULL ? parent : NULL, key, nearer == NULL ? value : nearer))
            return false;
    }
    for (Py_ssize_t at = 0; PyDict_Next(own, &at, &key, &value);) {
        int known = below == NULL ? 0 : PyDict_Contains(below, key);
        if (known < 0 || (known == 0 && value != python.deleted && !put_line(writer, ad, NULL, key, value)))
            return false;
    }
    return true;
}

/* write_lines(ad, names, strings, name_of, spelled_of, text_of): the wire form, None where an ad is chained further. */
PyObject *write_lines(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (count != 6 || python.ad == NULL || !is_ad(args[0]) || !PyDict_CheckExact(args[1]) || !PyDict_CheckExact(args[2]))
        return PyErr_Format(PyExc_TypeError, "expected an ad, two dictionaries and three functions");
    if (wire_name == NULL && (wire_name = PyUnicode_InternFromString("wire")) == NULL)
        return NULL;
    PyObject *parent = slot(args[0], python.parent);
    if (parent != NULL && slot(parent, python.parent) != NULL)
        Py_RETURN_NONE;
    Writer writer = {.names = args[1], .strings = args[2], .name_of = args[3], .spelled_of = args[4], .text_of = args[5]};
    PyObject *bytes = NULL;
    if (put_ad(&writer, args[0], parent))
        bytes = PyBytes_FromStringAndSize(writer.text, (Py_ssize_t)writer.size);
    PyMem_Free(writer.text);
    return bytes;
}
