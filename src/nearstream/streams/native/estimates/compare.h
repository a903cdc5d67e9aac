/* Comparing one text with others: from the objects of Python to estimates. */

#pragma once

#include "estimates/estimate.h"
#include "platform.h"
#include "text_part.h"

enum { PACKED_FIELDS = 3 };
enum { ONE_LINEAGE = 1, ONE_SITE = 2 }; /* what `tie` of estimates/comparing.py returns */

/* Memory for a text that was packed. */
typedef struct {
    u8 digest[DIGEST];
    Buffer pairs;
} Unpacked;

/* Takes over the fields of a text part. Returns 0 with an exception if its pairs are not whole. */
static int take_part(const TextPart *part, Content *c, Unpacked *to)
{
    memcpy(to->digest + TEXT_VERSION, part->digest, TEXT_DIGEST);
    *c = (Content){
        to->digest, part->sketch, part->ld, part->gaps, DIGEST, (Py_ssize_t)part->sketch_size,
        (Py_ssize_t)part->ld_size, (Py_ssize_t)part->gaps_size, part->n_bytes, part->characters, part->words,
        part->shingles, (i64)part->rate, (part->flags & SPACELESS_TEXT) != 0,
    };
    if (!(part->flags & PACKED_PAIRS))
        return 1;
    Pairs p = pairs_of_part(part);
    c->ld_size = (Py_ssize_t)(p.count * symbol_size(&p));
    c->gaps_size = is_split(&p) ? (Py_ssize_t)p.count : 0;
    if (!grow(&to->pairs, (size_t)(c->ld_size + c->gaps_size) + 1))
        return PyErr_NoMemory() != NULL;
    c->ld = to->pairs.start;
    c->gaps = c->ld + c->ld_size;
    if (p.count && read_pairs(&p, part->ld, part->ld_size, to->pairs.start, to->pairs.start + c->ld_size))
        return 1;
    PyErr_SetString(PyExc_ValueError, TOO_FEW_PAIRS);
    return 0;
}

/* Reads a text from a record of the index. Returns 0 with an exception if there is none. */
static int read_packed(PyObject *packed, Content *c, Unpacked *to)
{
    TextPart part;
    char *version;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(packed, 0), &version, &size) < 0 ||
        !read_record(PyTuple_GetItem(packed, 1), PyTuple_GetItem(packed, 2), &part))
        return 0;
    if (size != TEXT_VERSION) {
        PyErr_Format(PyExc_ValueError, "version: %d bytes expected", TEXT_VERSION);
        return 0;
    }
    memcpy(to->digest, version, TEXT_VERSION);
    return take_part(&part, c, to);
}

/* Reads a text: its fields, or a record with its text part. Returns 0 with an exception if it is neither. */
static int read_text(PyObject *text, Content *c, Unpacked *to)
{
    if (!PyTuple_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a text expected in a tuple");
        return 0;
    }
    if (PyTuple_Size(text) == PACKED_FIELDS) {
        if (!read_packed(text, c, to))
            return 0;
    } else if (!PyArg_ParseTuple(text, "y#LLLLpy#Ly#y#", &c->digest, &c->digest_size, &c->n_bytes, &c->characters,
                          &c->words, &c->shingles, &c->spaceless, &c->sketch, &c->sketch_size, &c->rate, &c->ld,
                          &c->ld_size, &c->gaps, &c->gaps_size))
        return 0;
    if (is_content(c))
        return 1;
    PyErr_SetString(PyExc_ValueError, "the fields of a signature with a text of at least one byte expected");
    return 0;
}

/* What one call works on. */
typedef struct {
    Comparing with;
    Content arriving, other;
    Unpacked unpacked[2];
    View views[2];
    PyObject *reach_of; /* returns the table of a rate */
    PyObject *reach;    /* the table of the rate below, as bytes */
    i64 rate;
} Comparison;

/* Takes the reach at a rate. Returns 0 with an exception if there is none. */
static int take_reach(Comparison *c, i64 rate)
{
    char *table;
    Py_ssize_t size;
    if (c->reach && c->rate == rate)
        return 1;
    Py_XDECREF(c->reach);
    c->rate = rate;
    c->reach = PyObject_CallFunction(c->reach_of, "L", (long long)rate);
    if (!c->reach || PyBytes_AsStringAndSize(c->reach, &table, &size) < 0)
        return 0;
    c->with.reach = (Reach){(const double *)table, size / (i64)sizeof(double) - 1};
    if (c->with.reach.farthest < 0)
        PyErr_SetString(PyExc_ValueError, "a table of the growth of blocks expected");
    return c->with.reach.farthest >= 0;
}

/* Reads both texts at the coarser of their rates. Returns 0 with an exception if that is impossible. */
static int read_views(Comparison *c)
{
    i64 finer = least_of(c->arriving.rate, c->other.rate), coarser = most_of(c->arriving.rate, c->other.rate);
    unsigned doublings = bit_length(coarser) - bit_length(finer);
    c->views[1].rate = -1; /* of the text before */
    enum Reading reading = read_view(&c->arriving, coarser, doublings, &c->views[0]);
    if (reading == READ)
        reading = read_view(&c->other, coarser, doublings, &c->views[1]);
    if (reading == INVALID)
        PyErr_SetString(PyExc_ValueError, "ld, gaps: symbols with their gaps expected");
    if (reading == NO_ROOM)
        PyErr_NoMemory();
    return reading == READ;
}

/* Puts the shorter text first, and returns the least number of common symbols that is worth an alignment. Returns 0 with
 * an exception if both texts cannot be compared. */
static int order_both(Comparison *c, int same_lineage, Side both[2], i64 *least)
{
    if (!read_views(c) || !take_reach(c, most_of(c->arriving.rate, c->other.rate)))
        return 0;
    Side one = {&c->arriving, &c->views[0]}, other = {&c->other, &c->views[1]};
    int is_shorter = is_in_order(&one, &other);
    both[0] = is_shorter ? one : other;
    both[1] = is_shorter ? other : one;
    *least = same_lineage || is_equal(&c->arriving, &c->other) ? 0 : least_common(&both[0], &both[1]);
    return 1;
}

/* Compares the arriving text with the other one. Returns 0 with an exception if that is impossible. */
static int compare_both(Comparison *c, int tie, Estimate *out)
{
    Side both[2];
    i64 least;
    if (!order_both(c, tie == ONE_LINEAGE, both, &least))
        return 0;
    if (!write_estimate(both, least, &c->with, out))
        return PyErr_NoMemory() != NULL;
    out->same_lineage = tie == ONE_LINEAGE;
    out->same_site = tie == ONE_SITE;
    return 1;
}

static void free_comparison(Comparison *c)
{
    free_comparing(&c->with);
    free(c->views[0].memory.start);
    free(c->views[1].memory.start);
    free(c->unpacked[0].pairs.start);
    free(c->unpacked[1].pairs.start);
    Py_XDECREF(c->reach);
}

/* Writes the estimates of a text and each of the others. Returns 0 with an exception if one is impossible. */
static int compare_each(Comparison *c, PyObject *arriving, PyObject *others, const char *ties, char *out)
{
    Py_ssize_t count = PyTuple_Size(others);
    if (!read_text(arriving, &c->arriving, &c->unpacked[0]))
        return 0;
    for (Py_ssize_t i = 0; i < count; i++, out += sizeof(Estimate)) {
        Estimate made;
        if (!read_text(PyTuple_GetItem(others, i), &c->other, &c->unpacked[1]) || !compare_both(c, ties[i], &made))
            return 0;
        memcpy(out, &made, sizeof made);
    }
    return 1;
}

static PyObject *compare(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *arriving, *others;
    const char *ties, *costs;
    Py_ssize_t flags, costs_size;
    Comparison c = {.rate = -1};
    if (!PyArg_ParseTuple(arguments, "OO!y#Oy#", &arriving, &PyTuple_Type, &others, &ties, &flags, &c.reach_of,
                          &costs, &costs_size))
        return NULL;
    if (flags != PyTuple_Size(others) || costs_size != SHARES_BYTES)
        return PyErr_Format(PyExc_ValueError, "a byte for each other text and %d costs expected", RATIO_STEPS + 1);
    c.with.costs = (const double *)costs;
    PyObject *estimates = bytes_of(NULL, (size_t)flags * sizeof(Estimate));
    if (estimates && !compare_each(&c, arriving, others, ties, PyBytes_AsString(estimates)))
        Py_CLEAR(estimates);
    free_comparison(&c);
    return estimates;
}
