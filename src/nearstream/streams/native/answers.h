/* Objects that Python is answered with. */

#pragma once

#include "platform.h"

static PyObject *tuple_of(PyObject **items, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    int is_complete = tuple != NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        is_complete &= items[i] != NULL;
        if (tuple)
            PyTuple_SetItem(tuple, i, items[i]);
        else
            Py_XDECREF(items[i]);
    }
    if (!is_complete)
        Py_CLEAR(tuple);
    return tuple;
}

static PyObject *bytes_of(const void *data, size_t size)
{
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
}
