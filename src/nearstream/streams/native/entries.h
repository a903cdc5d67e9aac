/* Entries of buckets as one command carries them to the store.
 *
 * A key has 9 bytes: the letter of its kind and a hash of 8 bytes. Its hash without the last 16 bits, which decide the
 * slot, is divided by the number of fields of a chunk: the remainder is the field, and the quotient modulo the chunks
 * of its kind is the chunk. An item is number and hint of an entry, the counts of its buckets and of those that other
 * entries share, the field of each bucket, and place and index of each shared one. */

#pragma once

#include "answers.h"
#include "found_buckets.h"
#include "platform.h"

enum { BUCKET_KINDS = 4, CHUNK_SIZE = 4, FIELD_SIZE = 7, SHARED_SIZE = 4, ENTRY_HEAD = 2 * NUMBER_SIZE + 4 };
enum { SLOT_BITS = 16, FIELD_BITS = 23, KIND_AT = 55, ENTRIES_KEYS = 65535 };

/* The numbers that `pack_entries` is given, in this order: chunks of each kind of buckets, fields, buckets of a call. */
typedef struct {
    u32 chunks[BUCKET_KINDS], first_field, fields, most;
    const char *kinds;
} Spread;

typedef struct {
    u64 number, hint;
    const u8 *keys;
    size_t count;
} StoreEntry;

typedef struct {
    u64 bucket;
    u32 visits;
} Visited;

/* The buckets of one command. A place in `indexes` is 0, or one more than the index of a bucket. */
typedef struct {
    Visited *buckets;
    u32 *indexes, *places; /* `places` has the index of the bucket of each key */
    size_t slots, count, keys; /* `slots` is a power of two */
} Distinct;

static int take_entry(PyObject *one, StoreEntry *entry)
{
    char *keys;
    Py_ssize_t size;
    if (!PyTuple_Check(one) || PyTuple_Size(one) != 3) {
        PyErr_SetString(PyExc_TypeError, "entries: number, hint and keys expected");
        return 0;
    }
    entry->number = PyLong_AsUnsignedLongLong(PyTuple_GetItem(one, 0));
    entry->hint = PyErr_Occurred() ? 0 : PyLong_AsUnsignedLongLong(PyTuple_GetItem(one, 1));
    if (PyErr_Occurred() || PyBytes_AsStringAndSize(PyTuple_GetItem(one, 2), &keys, &size) < 0)
        return 0;
    entry->keys = (const u8 *)keys, entry->count = (size_t)size / KEY_SIZE;
    if (size % KEY_SIZE || entry->count > ENTRIES_KEYS || entry->number >> 40 || entry->hint >> 40) {
        PyErr_SetString(PyExc_ValueError, "entries: numbers of 5 bytes and whole keys expected");
        return 0;
    }
    return 1;
}

/* Returns the bucket of a key: kind in 2 bits, chunk in 32, field in 23. Sets `*valid` to 0 if the kind is unknown. */
static u64 bucket_at(const Spread *spread, const u8 *key, int *valid)
{
    const char *kind = key[0] ? strchr(spread->kinds, key[0]) : NULL;
    u64 value = 0, place = kind ? (u64)(kind - spread->kinds) : 0;
    *valid &= kind != NULL;
    for (int i = 1; i < KEY_SIZE; i++)
        value = value << 8 | key[i];
    value >>= SLOT_BITS;
    return place << KIND_AT | value / spread->fields % spread->chunks[place] << FIELD_BITS | value % spread->fields;
}

static void visit_bucket(Distinct *distinct, u64 bucket)
{
    size_t at = (size_t)((bucket * 0x9E3779B97F4A7C15u) >> 32) & (distinct->slots - 1);
    while (distinct->indexes[at] && distinct->buckets[distinct->indexes[at] - 1].bucket != bucket)
        at = (at + 1) & (distinct->slots - 1);
    if (!distinct->indexes[at]) {
        distinct->buckets[distinct->count++] = (Visited){bucket, 0};
        distinct->indexes[at] = (u32)distinct->count;
    }
    distinct->places[distinct->keys++] = distinct->indexes[at] - 1;
    distinct->buckets[distinct->indexes[at] - 1].visits++;
}

static u8 *put_bytes(u8 *to, u64 number, int size)
{
    for (int i = size - 1; i >= 0; i--, number >>= 8)
        to[i] = (u8)number;
    return to + size;
}

static void put_digits(u8 *to, u32 number)
{
    for (int i = FIELD_SIZE - 1; i >= 0; i--, number /= 10)
        to[i] = (u8)('0' + number % 10);
}

/* Visits the buckets of the entries of one command and counts these entries. Returns 0 after an error. */
static int visit_entries(const Spread *spread, Distinct *distinct, PyObject *entries, Py_ssize_t *taken)
{
    int valid = 1;
    for (*taken = 0; *taken < PyList_Size(entries); ++*taken) {
        StoreEntry entry;
        if (!take_entry(PyList_GetItem(entries, *taken), &entry))
            return 0;
        if (*taken && distinct->count + entry.count > spread->most)
            break;
        for (size_t i = 0; i < entry.count; i++)
            visit_bucket(distinct, bucket_at(spread, entry.keys + i * KEY_SIZE, &valid));
    }
    if (!valid)
        PyErr_SetString(PyExc_ValueError, "entries: keys of buckets expected");
    return valid;
}

/* Returns an entry in bytes, or NULL after an error. `memory` has room for it. */
static PyObject *packed_entry(const Spread *spread, const Distinct *distinct, const StoreEntry *entry, const u32 *places,
                              u8 *memory)
{
    size_t shared = 0;
    u8 *at = put_bytes(put_bytes(memory, entry->number, NUMBER_SIZE), entry->hint, NUMBER_SIZE) + 4;
    u8 *pairs = at + FIELD_SIZE * entry->count;
    for (size_t i = 0; i < entry->count; i++, at += FIELD_SIZE) {
        Visited one = distinct->buckets[places[i]];
        put_digits(at, spread->first_field + (u32)(one.bucket & ((1u << FIELD_BITS) - 1)));
        if (one.visits > 1)
            put_bytes(put_bytes(pairs + SHARED_SIZE * shared++, i, 2), places[i], 2);
    }
    put_bytes(put_bytes(memory + 2 * NUMBER_SIZE, entry->count, 2), shared, 2);
    return bytes_of(memory, (size_t)(pairs - memory) + SHARED_SIZE * shared);
}

/* Returns the packed entries of one command, or NULL after an error. */
static PyObject *items_of(const Spread *spread, const Distinct *distinct, PyObject *entries, Py_ssize_t taken, u8 *memory)
{
    PyObject *items = PyList_New(taken);
    const u32 *places = distinct->places;
    for (Py_ssize_t place = 0; items && place < taken; place++) {
        StoreEntry entry;
        PyObject *item = NULL;
        if (take_entry(PyList_GetItem(entries, place), &entry))
            item = packed_entry(spread, distinct, &entry, places, memory);
        if (!item || PyList_SetItem(items, place, item) < 0)
            Py_CLEAR(items);
        else
            places += entry.count;
    }
    return items;
}

/* Returns the key of the hash that has the bucket of each key, or NULL after an error. */
static PyObject *names_of(const Spread *spread, const Distinct *distinct, const u8 *tag, size_t tag_size)
{
    PyObject *names = PyList_New((Py_ssize_t)distinct->keys);
    u8 *memory = malloc(tag_size + 1 + CHUNK_SIZE);
    if (!names || !memory) {
        Py_XDECREF(names);
        free(memory);
        return PyErr_NoMemory();
    }
    memcpy(memory, tag, tag_size);
    for (size_t i = 0; names && i < distinct->keys; i++) {
        u64 bucket = distinct->buckets[distinct->places[i]].bucket;
        memory[tag_size] = (u8)spread->kinds[bucket >> KIND_AT];
        put_bytes(memory + tag_size + 1, bucket >> FIELD_BITS & 0xFFFFFFFF, CHUNK_SIZE);
        PyObject *name = bytes_of(memory, tag_size + 1 + CHUNK_SIZE);
        if (!name || PyList_SetItem(names, (Py_ssize_t)i, name) < 0)
            Py_CLEAR(names);
    }
    free(memory);
    return names;
}

/* Gives the count of all keys, and of those of the entry that has most. Returns 0 after an error. */
static int count_keys(PyObject *entries, size_t *all, size_t *largest)
{
    for (Py_ssize_t place = 0; place < PyList_Size(entries); place++) {
        StoreEntry entry;
        if (!take_entry(PyList_GetItem(entries, place), &entry))
            return 0;
        *all += entry.count;
        *largest = entry.count > *largest ? entry.count : *largest;
    }
    return 1;
}

static int is_spread(const Spread *spread)
{
    int is_valid = strlen(spread->kinds) == BUCKET_KINDS && spread->fields && spread->fields <= 1u << 23 &&
                   spread->first_field <= 1u << 23 && spread->most <= ENTRIES_KEYS;
    for (int i = 0; i < BUCKET_KINDS; i++)
        is_valid &= spread->chunks[i] > 0;
    if (!is_valid)
        PyErr_SetString(PyExc_ValueError, "spread: counts of chunks and fields expected");
    return is_valid;
}

static PyObject *pack_entries(PyObject *module, PyObject *arguments)
{
    PyObject *entries, *result = NULL;
    const u8 *tag;
    Py_ssize_t tag_size;
    Spread s;
    size_t all = 0, largest = 0;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "O!y#y(IIIIIII):pack_entries", &PyList_Type, &entries, &tag, &tag_size, &s.kinds,
                          &s.chunks[0], &s.chunks[1], &s.chunks[2], &s.chunks[3], &s.first_field, &s.fields, &s.most) ||
        !is_spread(&s) || !count_keys(entries, &all, &largest))
        return NULL;
    Distinct distinct = {NULL, NULL, NULL, 16, 0, 0};
    while (distinct.slots < 2 * all)
        distinct.slots *= 2;
    distinct.buckets = malloc((all + 1) * sizeof(Visited));
    distinct.indexes = calloc(distinct.slots, sizeof(u32));
    distinct.places = malloc((all + 1) * sizeof(u32));
    u8 *memory = malloc(ENTRY_HEAD + largest * (FIELD_SIZE + SHARED_SIZE));
    Py_ssize_t taken;
    if (!distinct.buckets || !distinct.indexes || !distinct.places || !memory)
        PyErr_NoMemory();
    else if (visit_entries(&s, &distinct, entries, &taken)) {
        PyObject *items = items_of(&s, &distinct, entries, taken, memory);
        PyObject *names = items ? names_of(&s, &distinct, tag, (size_t)tag_size) : NULL;
        result = names ? Py_BuildValue("NO", names, items) : NULL;
        Py_XDECREF(items);
    }
    free(distinct.buckets);
    free(distinct.indexes);
    free(distinct.places);
    free(memory);
    return result;
}
