/* Objects that Python holds for many texts: contexts and the tables of Unicode.
 *
 * signing/signer.py and fingerprints/unicode_tables.py pack them. */

#pragma once

#include "platform.h"
#include "signing/unicode.h"

static const char CONTEXT[] = "nearstream.streams.native._native.context";
static const char UNICODE[] = "nearstream.streams.native._native.unicode";

static void free_context(PyObject *capsule)
{
    Context *made = PyCapsule_GetPointer(capsule, CONTEXT);
    free(made->form.start);
    free(made->scratch.start);
    free(made);
}

static void free_unicode(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, UNICODE));
}

/* Returns a capsule that owns memory from malloc. */
static PyObject *capsule_of(void *made, const char *name, PyCapsule_Destructor destructor)
{
    PyObject *capsule = PyCapsule_New(made, name, destructor);
    if (!capsule)
        free(made);
    return capsule;
}

static PyObject *context(PyObject *module, PyObject *packed)
{
    char *bytes;
    Py_ssize_t size;
    Numbers numbers;
    (void)module;
    if (PyBytes_AsStringAndSize(packed, &bytes, &size) < 0)
        return NULL;
    if (size != (Py_ssize_t)sizeof numbers)
        return PyErr_Format(PyExc_ValueError, "context: %zu bytes expected", sizeof numbers);
    memcpy(&numbers, bytes, sizeof numbers);
    if (!are_valid_numbers(&numbers))
        return PyErr_Format(PyExc_ValueError, "context: a number of the scheme is out of range");
    Context *made = malloc(sizeof *made);
    if (!made)
        return PyErr_NoMemory();
    made->n = numbers;
    complete(made);
    return capsule_of(made, CONTEXT, free_context);
}

static PyObject *unicode(PyObject *module, PyObject *packed)
{
    char *bytes;
    Py_ssize_t size;
    (void)module;
    if (PyBytes_AsStringAndSize(packed, &bytes, &size) < 0)
        return NULL;
    Unicode *made = malloc(sizeof *made + (size_t)size);
    if (!made)
        return PyErr_NoMemory();
    memcpy(made + 1, bytes, (size_t)size);
    if (!find_tables(made, (size_t)size)) {
        free(made);
        return PyErr_Format(PyExc_ValueError, "unicode: tables expected as unicode_tables.py packs them");
    }
    return capsule_of(made, UNICODE, free_unicode);
}
