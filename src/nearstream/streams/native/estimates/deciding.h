/* Which rule decides what two texts are to each other.
 *
 * relations/rules.py has the rules, and packs all but the last one as steps. One step of each clause has to hold, and
 * each clause of a rule. The first rule that holds decides, else the last one. */

#pragma once

#include "estimates/estimate.h"
#include "platform.h"

enum { WHOLE_NUMBERS = 9, NUMBERS = 28 };   /* of an estimate: those in i64, which come first, and all */
enum { FOR_EQUAL, FOR_SHORT, FOR_NUMBERS }; /* the places of `RULES_OF_TEXTS` */
enum { BELOW = 1, EQUAL = 2, ABOVE = 4 };   /* where a number may lie beside its bound */
enum { ENDS_CLAUSE = 1, ENDS_RULE = 2, OF_TWO_SITES = 4 };

/* `_STEP` of relations/rules.py. */
typedef struct {
    u8 number, sides, ends, padding[5];
    double bound;
} RuleStep;

static int is_met(const Estimate *e, const RuleStep *step)
{
    const u8 *at = (const u8 *)e + DIGEST + sizeof(double) * step->number;
    double number;
    i64 whole;
    memcpy(&number, at, sizeof number);
    memcpy(&whole, at, sizeof whole);
    number = step->number < WHOLE_NUMBERS ? (double)whole : number;
    return (step->sides & (number < step->bound ? BELOW : number > step->bound ? ABOVE : EQUAL)) != 0;
}

/* Returns the place of the rule that decides, or -1 if no rules are packed like that. */
static int deciding_rule(const Estimate *e, const char *packed, size_t size)
{
    int place = FOR_NUMBERS, clause = 0, holds = 1;
    RuleStep step;
    if (size % sizeof step)
        return -1;
    if (e->is_equal || e->is_short)
        return e->is_equal ? FOR_EQUAL : FOR_SHORT;
    for (; size; packed += sizeof step, size -= sizeof step) {
        memcpy(&step, packed, sizeof step);
        if (step.number >= NUMBERS)
            return -1;
        clause |= is_met(e, &step);
        if (step.ends & ENDS_CLAUSE) {
            holds &= clause && !(step.ends & OF_TWO_SITES && e->same_site);
            clause = 0;
        }
        if (step.ends & ENDS_RULE) {
            if (holds)
                return place;
            place++;
            holds = 1;
        }
    }
    return place > UINT8_MAX ? -1 : place;
}

static PyObject *decide(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    const char *estimates;
    char *table;
    Py_ssize_t size, table_size;
    PyObject *tables;
    if (!PyArg_ParseTuple(arguments, "y#O!", &estimates, &size, &PyTuple_Type, &tables))
        return NULL;
    Py_ssize_t count = PyTuple_Size(tables), total = size / (Py_ssize_t)sizeof(Estimate) * count;
    PyObject *places = bytes_of(NULL, (size_t)total);
    for (Py_ssize_t i = 0; places && i < total; i++) {
        Estimate e;
        memcpy(&e, estimates + i / count * (Py_ssize_t)sizeof e, sizeof e);
        int place = -1;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(tables, i % count), &table, &table_size) == 0)
            place = deciding_rule(&e, table, (size_t)table_size);
        if (place < 0) {
            Py_CLEAR(places);
            PyErr_SetString(PyExc_ValueError, "rules expected, as relations/rules.py packs them");
        } else
            PyBytes_AsString(places)[i] = (char)place;
    }
    return places;
}
