/* The keys that earlier states share with a document, and which of these states to look at.
 *
 * An anchor that n earlier documents have weighs `unit` / sqrt(n), rounded down, because a rare one says more than a
 * frequent one. A band weighs as much as `band_anchors` anchors. All states with an equal digest or lineage are looked
 * at, and up to `looks` others by weight, of which `common_reads` share only what many documents have.
 *
 * A reply of a store is a succession of buckets. Each has the index of its key (2 bytes), the count of its numbers (2
 * bytes), and these numbers (5 bytes each). */

#pragma once

#include "platform.h"

enum { KEY_SIZE = 9, NUMBER_SIZE = 5, BUCKET_SIZE = 4 };

static u64 number_at(const u8 *at)
{
    u64 number = 0;
    for (int i = 0; i < NUMBER_SIZE; i++)
        number = number << 8 | at[i];
    return number;
}

static size_t two_bytes_at(const u8 *at)
{
    return (size_t)at[0] << 8 | at[1];
}

/* One bucket of a reply. */
typedef struct {
    const u8 *key, *numbers;
    size_t count;
} Bucket;

/* Reads the bucket at `*at` and moves on. Returns 0 if no whole bucket follows. */
static int next_bucket(const u8 **at, const u8 *end, const u8 *keys, size_t key_bytes, Bucket *bucket)
{
    if (end - *at < BUCKET_SIZE)
        return 0;
    size_t index = two_bytes_at(*at);
    bucket->count = two_bytes_at(*at + 2);
    bucket->numbers = *at + BUCKET_SIZE;
    if ((size_t)(end - bucket->numbers) < bucket->count * NUMBER_SIZE || (index + 1) * KEY_SIZE > key_bytes)
        return 0;
    bucket->key = keys + index * KEY_SIZE;
    *at = bucket->numbers + bucket->count * NUMBER_SIZE;
    return 1;
}

static int holds(const Bucket *bucket, u64 number)
{
    for (size_t i = 0; i < bucket->count; i++)
        if (number_at(bucket->numbers + i * NUMBER_SIZE) == number)
            return 1;
    return 0;
}

/* Gives the keys and the reply at one place of a list of pairs. Returns 0 after an error. */
static int found_at(PyObject *found, Py_ssize_t place, const u8 **keys, size_t *key_bytes, const u8 **reply, size_t *size)
{
    PyObject *pair = PyList_GetItem(found, place);
    char *first, *second;
    Py_ssize_t first_size, second_size;
    if (!pair || !PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
        PyErr_SetString(PyExc_TypeError, "found: pairs of keys and a reply expected");
        return 0;
    }
    if (PyBytes_AsStringAndSize(PyTuple_GetItem(pair, 0), &first, &first_size) < 0 ||
        PyBytes_AsStringAndSize(PyTuple_GetItem(pair, 1), &second, &second_size) < 0)
        return 0;
    *keys = (const u8 *)first, *key_bytes = (size_t)first_size;
    *reply = (const u8 *)second, *size = (size_t)second_size;
    return 1;
}

static int is_list(PyObject *found)
{
    if (!PyList_Check(found))
        PyErr_SetString(PyExc_TypeError, "found: a list expected");
    return PyList_Check(found);
}

enum { WEIGHT_MAX = 65535, ROW_SIZE = 16 };
enum { BY_DIGEST = 1, BY_LINEAGE = 2, IN_FULL_BUCKET = 4, DIRECT = BY_DIGEST | BY_LINEAGE };

/* What one earlier state shares, as a row of the result has it. */
typedef struct {
    u64 number;
    u16 weight, anchors, rare;
    u8 bands, flags;
} Row;

/* The numbers that `shortlist` is given, in this order. `anchors` is that of the arriving document. */
typedef struct {
    u64 own;
    long anchors, band_cap, lineage_cap, anchor_cap, unit, band_anchors, rare_below, rare_keys, rare_part, copy_percent,
        looks, common_reads;
} Tallying;

typedef struct {
    Row *rows;
    size_t slots, count; /* `slots` is a power of two */
    long full_buckets;
} Table;

static Row *row_of(Table *table, u64 number)
{
    size_t at = (size_t)((number * 0x9E3779B97F4A7C15u) >> 32) & (table->slots - 1);
    while (table->rows[at].number && table->rows[at].number != number)
        at = (at + 1) & (table->slots - 1);
    Row *row = &table->rows[at];
    table->count += !row->number;
    row->number = number;
    return row;
}

static long cap_of(const Tallying *t, u8 kind)
{
    return kind == 'a' ? t->anchor_cap : kind == 'l' ? t->lineage_cap : t->band_cap;
}

static void count_bucket(Table *table, const Tallying *t, const Bucket *bucket)
{
    u8 kind = bucket->key[0];
    long others = (long)bucket->count - holds(bucket, t->own);
    int is_full = kind != 'x' && others >= cap_of(t, kind); /* equal texts are one family */
    int is_rare = others < t->rare_below;
    long weight = others ? (long)((double)t->unit / sqrt((double)others)) * (kind == 'b' ? t->band_anchors : 1) : 0;
    u8 flags = (u8)((is_full ? IN_FULL_BUCKET : 0) | (kind == 'x' ? BY_DIGEST : kind == 'l' ? BY_LINEAGE : 0));
    table->full_buckets += is_full;
    for (size_t i = 0; i < bucket->count; i++) {
        u64 number = number_at(bucket->numbers + i * NUMBER_SIZE);
        if (number == t->own || !number)
            continue;
        Row *row = row_of(table, number);
        row->flags |= flags;
        if (flags & DIRECT)
            continue;
        row->rare = (u16)(row->rare + is_rare);
        row->bands = (u8)(row->bands + (kind == 'b' && row->bands < 0xFF));
        row->anchors = (u16)(row->anchors + (kind == 'a'));
        row->weight = (u16)(row->weight + weight < WEIGHT_MAX ? row->weight + weight : WEIGHT_MAX);
    }
}

static int by_rank(const void *one, const void *other)
{
    const Row *a = one, *b = other;
    int direct = !(a->flags & DIRECT) - !(b->flags & DIRECT);
    if (direct || a->weight != b->weight)
        return direct ? direct : a->weight < b->weight ? 1 : -1;
    return a->number < b->number ? -1 : a->number > b->number;
}

static int is_telling(const Tallying *t, const Row *row)
{
    long keys = row->bands + row->anchors;
    int is_rare = row->rare >= t->rare_keys && row->rare * t->rare_part >= keys;
    return is_rare || 100L * row->anchors >= t->copy_percent * t->anchors;
}

/* Sorts the rows, moves those that are worth a look to the front and counts them. Returns whether there are more. */
static int choose_rows(Table *table, const Tallying *t, size_t *chosen)
{
    size_t count = 0;
    for (size_t at = 0; at < table->slots; at++)
        if (table->rows[at].number)
            table->rows[count++] = table->rows[at];
    qsort(table->rows, count, sizeof(Row), by_rank);
    long others = 0, common = 0;
    *chosen = 0;
    for (size_t at = 0; at < count; at++) {
        Row row = table->rows[at];
        if (!(row.flags & DIRECT)) {
            int is_common = !is_telling(t, &row);
            if (is_common && common == t->common_reads)
                continue;
            if (others == t->looks)
                return 1;
            common += is_common;
            others++;
        }
        table->rows[(*chosen)++] = row;
    }
    return 0;
}

/* Counts all buckets. Returns 0 after an error. */
static int count_all(Table *table, const Tallying *t, PyObject *found)
{
    const u8 *keys, *reply;
    size_t key_bytes, size;
    for (Py_ssize_t place = 0; place < PyList_Size(found); place++) {
        if (!found_at(found, place, &keys, &key_bytes, &reply, &size))
            return 0;
        const u8 *end = reply + size;
        Bucket bucket;
        while (next_bucket(&reply, end, keys, key_bytes, &bucket))
            count_bucket(table, t, &bucket);
        if (reply != end) {
            PyErr_SetString(PyExc_ValueError, "found: whole buckets of known keys expected");
            return 0;
        }
    }
    return 1;
}

/* Makes an empty table for all numbers that are found. Returns 0 after an error. */
static int make_table(Table *table, PyObject *found)
{
    const u8 *keys, *reply;
    size_t key_bytes, size, numbers = 0;
    for (Py_ssize_t place = 0; place < PyList_Size(found); place++) {
        if (!found_at(found, place, &keys, &key_bytes, &reply, &size))
            return 0;
        numbers += size / NUMBER_SIZE;
    }
    for (table->slots = 16; table->slots < 2 * numbers;)
        table->slots *= 2;
    table->rows = calloc(table->slots, sizeof(Row));
    if (!table->rows)
        PyErr_NoMemory();
    return table->rows != NULL;
}

static int take_tallying(PyObject *numbers, Tallying *t)
{
    if (!PyArg_ParseTuple(numbers, "Kllllllllllll:shortlist", &t->own, &t->anchors, &t->band_cap, &t->lineage_cap,
                          &t->anchor_cap, &t->unit, &t->band_anchors, &t->rare_below, &t->rare_keys, &t->rare_part,
                          &t->copy_percent, &t->looks, &t->common_reads))
        return 0;
    const long given[] = {t->anchors, t->band_cap, t->lineage_cap, t->anchor_cap, t->unit, t->band_anchors,
                          t->rare_below, t->rare_keys, t->rare_part, t->copy_percent, t->looks, t->common_reads};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i] < 0 || given[i] > INT32_MAX) /* so that no product of two overflows */
            return PyErr_Format(PyExc_ValueError, "shortlist: numbers of 0 to 2147483647 expected") != NULL;
    return 1;
}

static PyObject *shortlist(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    Tallying t;
    Table table = {NULL, 0, 0, 0};
    PyObject *result = NULL;
    size_t chosen;
    (void)module;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "shortlist: found and numbers expected");
    if (!is_list(arguments[0]) || !take_tallying(arguments[1], &t) || !make_table(&table, arguments[0]))
        return NULL;
    if (count_all(&table, &t, arguments[0])) {
        int is_cut = choose_rows(&table, &t, &chosen);
        result = Py_BuildValue("y#li", (const char *)table.rows, (Py_ssize_t)(chosen * ROW_SIZE), table.full_buckets, is_cut);
    }
    free(table.rows);
    return result;
}
