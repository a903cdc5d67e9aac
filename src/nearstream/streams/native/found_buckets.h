/* What the keys of a document found: replies of buckets, and which of the keys hold a number.
 *
 * A reply is a succession of buckets. Each has the index of its key (2 bytes), the count of its numbers (2 bytes), and
 * these numbers (5 bytes each). */

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

/* Appends the key of each bucket that held a number to one of two buffers. Returns 0 if `found` is no such list. */
static int split_keys(PyObject *found, u64 number, u64 own, const char *kinds, u8 *both[2])
{
    const u8 *keys, *reply;
    size_t key_bytes, size;
    for (Py_ssize_t place = 0; place < PyList_Size(found); place++) {
        if (!found_at(found, place, &keys, &key_bytes, &reply, &size))
            return 0;
        const u8 *end = reply + size;
        Bucket bucket;
        while (next_bucket(&reply, end, keys, key_bytes, &bucket)) {
            if (!strchr(kinds, bucket.key[0]) || !holds(&bucket, number))
                continue;
            u8 **to = &both[!holds(&bucket, own)];
            memcpy(*to, bucket.key, KEY_SIZE);
            *to += KEY_SIZE;
        }
    }
    return 1;
}

static PyObject *keys_that_hold(PyObject *module, PyObject *arguments)
{
    PyObject *found, *result = NULL;
    u64 number, own;
    const char *kinds;
    size_t most = 0;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OKKy:keys_that_hold", &found, &number, &own, &kinds) || !is_list(found))
        return NULL;
    for (Py_ssize_t place = 0; place < PyList_Size(found); place++) {
        const u8 *keys, *reply;
        size_t key_bytes, size;
        if (!found_at(found, place, &keys, &key_bytes, &reply, &size))
            return NULL;
        most += size / BUCKET_SIZE * KEY_SIZE;
    }
    u8 *memory = malloc(2 * most + 1);
    if (!memory)
        return PyErr_NoMemory();
    u8 *ends[2] = {memory, memory + most};
    if (split_keys(found, number, own, kinds, ends))
        result = Py_BuildValue("y#y#", (const char *)memory, (Py_ssize_t)(ends[0] - memory),
                               (const char *)(memory + most), (Py_ssize_t)(ends[1] - memory - most));
    free(memory);
    return result;
}

/* Notes which bucket each of some keys found. Returns the bytes of their numbers, or -1 after an error. */
static Py_ssize_t find_buckets(PyObject *found, const u8 *some, size_t count, Bucket *held)
{
    const u8 *keys, *reply;
    size_t key_bytes, size, next = 0;
    Py_ssize_t bytes = 0;
    for (Py_ssize_t place = 0; place < PyList_Size(found); place++) {
        if (!found_at(found, place, &keys, &key_bytes, &reply, &size))
            return -1;
        const u8 *end = reply + size;
        Bucket bucket;
        while (next_bucket(&reply, end, keys, key_bytes, &bucket))
            for (size_t step = 0; step < count; step++) { /* both sides mostly have the same order */
                size_t at = next + step < count ? next + step : next + step - count;
                if (memcmp(some + at * KEY_SIZE, bucket.key, KEY_SIZE))
                    continue;
                bytes += held[at].key ? 0 : (Py_ssize_t)(bucket.count * NUMBER_SIZE);
                held[at] = held[at].key ? held[at] : bucket;
                next = at + 1 < count ? at + 1 : 0;
                break;
            }
    }
    return bytes;
}

/* Writes what a bucket held, and a number more unless that is 0. Returns the end. */
static u8 *write_bucket(u8 *to, size_t index, const Bucket *held, u64 number)
{
    size_t count = held->count + (number != 0), bytes = held->count * NUMBER_SIZE;
    *to++ = (u8)(index >> 8), *to++ = (u8)index, *to++ = (u8)(count >> 8), *to++ = (u8)count;
    if (bytes)
        memcpy(to, held->numbers, bytes);
    to += bytes;
    for (int i = NUMBER_SIZE - 1; number && i >= 0; i--)
        *to++ = (u8)(number >> (8 * i));
    return to;
}

static PyObject *held_for(PyObject *module, PyObject *arguments)
{
    PyObject *found, *result = NULL;
    const u8 *keys;
    Py_ssize_t key_bytes, bytes;
    u64 number;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Oy#K:held_for", &found, &keys, &key_bytes, &number) || !is_list(found))
        return NULL;
    size_t count = (size_t)key_bytes / KEY_SIZE;
    if (count > 0x10000)
        return PyErr_Format(PyExc_ValueError, "held_for: at most 65536 keys expected");
    Bucket *held = calloc(count + 1, sizeof(Bucket));
    if (!held)
        return PyErr_NoMemory();
    bytes = find_buckets(found, keys, count, held);
    if (bytes >= 0)
        result = PyBytes_FromStringAndSize(NULL, bytes + (Py_ssize_t)count * (BUCKET_SIZE + (number ? NUMBER_SIZE : 0)));
    if (result) {
        u8 *to = (u8 *)PyBytes_AsString(result);
        for (size_t index = 0; index < count; index++)
            to = write_bucket(to, index, &held[index], number);
    }
    free(held);
    return result;
}
