/* Short keys of many payloads.
 *
 * The bytes of a payload are replaced through a secret permutation before they are hashed, because the seed of
 * MurmurHash3 does not enter its blocks, so payloads that collide do so under every seed. The hash is MurmurHash3 x64
 * 128 by Austin Appleby (2011, public domain) with the seed 0, of which only the first half is returned. */

#pragma once

#include "answers.h"
#include "platform.h"
#include "signing/blake2b.h"

enum { SMALL_KEY_BYTES = 8, MURMUR_BLOCK = 16, MAX_HASHED = 1 << 16 };

static const u64 MURMUR_FIRST = 0x87C37B91114253D5u, MURMUR_SECOND = 0x4CF5AD432745937Fu;

static u64 murmur_word(const u8 *at, size_t size)
{
    u64 word = 0;
    memcpy(&word, at, size);
    return word;
}

static u64 murmur_mixed_first(u64 word)
{
    return rotated(word * MURMUR_FIRST, 33) * MURMUR_SECOND;
}

static u64 murmur_mixed_second(u64 word)
{
    return rotated(word * MURMUR_SECOND, 31) * MURMUR_FIRST;
}

static u64 murmur_final(u64 hash)
{
    hash = (hash ^ hash >> 33) * 0xFF51AFD7ED558CCDu;
    hash = (hash ^ hash >> 33) * 0xC4CEB9FE1A85EC53u;
    return hash ^ hash >> 33;
}

/* Returns the first 8 bytes of the hash, as a number. */
static u64 murmur(const u8 *data, size_t size)
{
    u64 first = 0, second = 0;
    size_t at = 0;
    for (; at + MURMUR_BLOCK <= size; at += MURMUR_BLOCK) {
        first = rotated(first ^ murmur_mixed_first(murmur_word(data + at, 8)), 37) + second;
        first = first * 5 + 0x52DCE729;
        second = rotated(second ^ murmur_mixed_second(murmur_word(data + at + 8, 8)), 33) + first;
        second = second * 5 + 0x38495AB5;
    }
    size_t rest = size - at;
    if (rest > 8)
        second ^= murmur_mixed_second(murmur_word(data + at + 8, rest - 8));
    if (rest)
        first ^= murmur_mixed_first(murmur_word(data + at, rest < 8 ? rest : 8));
    first ^= size;
    second ^= size;
    first += second;
    second += first;
    return murmur_final(first) + murmur_final(second);
}

/* Fills a tuple of one key for each payload. Returns 0 after an error. */
static int add_small_keys(PyObject *keys, const u8 *permutation, u8 *hashed, size_t before, const u8 *payloads,
                          size_t width, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++, payloads += width) {
        for (size_t at = 0; at < width; at++)
            hashed[before + at] = permutation[payloads[at]];
        u64 hash = murmur(hashed, before + width);
        PyObject *key = bytes_of(&hash, SMALL_KEY_BYTES);
        if (!key || PyTuple_SetItem(keys, i, key) < 0)
            return 0;
    }
    return 1;
}

static PyObject *small_keys(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    char *permutation, *prefix, *payloads;
    Py_ssize_t bytes, before, size;
    (void)module;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "small_keys: permutation, prefix, payloads and width expected");
    if (PyBytes_AsStringAndSize(arguments[0], &permutation, &bytes) < 0 ||
        PyBytes_AsStringAndSize(arguments[1], &prefix, &before) < 0 ||
        PyBytes_AsStringAndSize(arguments[2], &payloads, &size) < 0)
        return NULL;
    Py_ssize_t width = PyLong_AsSsize_t(arguments[3]);
    if (width == -1 && PyErr_Occurred())
        return NULL;
    if (bytes != 256 || width < 1 || width > MAX_HASHED || before > MAX_HASHED || size % width)
        return PyErr_Format(PyExc_ValueError, "permutation of 256 bytes, prefix and payloads of this width expected");
    u8 *hashed = malloc((size_t)(before + width));
    if (!hashed)
        return PyErr_NoMemory();
    for (Py_ssize_t at = 0; at < before; at++)
        hashed[at] = (u8)permutation[(u8)prefix[at]];
    PyObject *keys = PyTuple_New(size / width);
    if (keys && !add_small_keys(keys, (const u8 *)permutation, hashed, (size_t)before, (const u8 *)payloads,
                                (size_t)width, size / width))
        Py_CLEAR(keys);
    free(hashed);
    return keys;
}
