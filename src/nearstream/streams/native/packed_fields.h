/* Byte fields of a signature: their check, and what an index keeps of them.
 *
 * Of each slot of a sketch an index keeps 4 bits, which is b-bit minwise hashing (Li and Koenig, WWW 2010). Of each LD
 * symbol it keeps, as in a float, some bits from the first one bit on, so a kept symbol has all these bits at any rate.
 */

#pragma once

#include "estimates/content.h"
#include "platform.h"

enum { ANCHOR_BYTES = 8, LD_WORD_BYTES = 4 };

static u32 ld_word_at(const u8 *words, size_t i)
{
    u32 word;
    memcpy(&word, words + LD_WORD_BYTES * i, LD_WORD_BYTES);
    return word;
}

static PyObject *words_end(PyObject *module, PyObject *ld)
{
    char *packed;
    Py_ssize_t bytes;
    (void)module;
    if (PyBytes_AsStringAndSize(ld, &packed, &bytes) < 0)
        return NULL;
    if (bytes % LD_WORD_BYTES)
        return PyErr_Format(PyExc_ValueError, "expected a multiple of 4 bytes");
    size_t count = (size_t)bytes / LD_WORD_BYTES, symbols = 0;
    u64 end = 0;
    for (size_t i = 0; i < count; i++, symbols++) {
        u32 gap = ld_word_at((const u8 *)packed, i) & ESCAPE;
        if (gap == ESCAPE) {
            if (++i == count)
                return PyErr_Format(PyExc_ValueError, "expected a gap after the last escape");
            gap = ld_word_at((const u8 *)packed, i);
        }
        end += gap;
    }
    PyObject *both[] = {PyLong_FromSize_t(symbols), PyLong_FromUnsignedLongLong(end)};
    return tuple_of(both, sizeof both / sizeof *both);
}

static PyObject *ascends(PyObject *module, PyObject *anchors)
{
    char *packed;
    Py_ssize_t bytes;
    (void)module;
    if (PyBytes_AsStringAndSize(anchors, &packed, &bytes) < 0)
        return NULL;
    if (bytes % ANCHOR_BYTES)
        return PyErr_Format(PyExc_ValueError, "expected a multiple of 8 bytes");
    int does = 1;
    u64 last = 0, next;
    for (Py_ssize_t at = 0; at < bytes; at += ANCHOR_BYTES, last = next) {
        memcpy(&next, packed + at, ANCHOR_BYTES);
        does &= at == 0 || next > last;
    }
    return PyBool_FromLong(does);
}

static PyObject *kept_sketch_of(PyObject *sketch)
{
    char *packed;
    Py_ssize_t bytes;
    u8 kept[KEPT_SKETCH];
    if (PyBytes_AsStringAndSize(sketch, &packed, &bytes) < 0)
        return NULL;
    if (bytes != KEPT_SKETCH && (!bytes || bytes % SLOTS))
        return PyErr_Format(PyExc_ValueError, "expected a sketch of %d slots", (int)SLOTS);
    return bytes_of(kept_sketch((const u8 *)packed, (size_t)bytes, kept), sizeof kept);
}

/* Returns a word whose symbol keeps only some bits, from its first one bit on. `lost`: how many bits a symbol loses if
 * its first bit is one. A long gap has a word of its own, which loses nothing: it starts with zeros, because no text is
 * that long. */
static u32 kept_word(u32 word, unsigned width, unsigned lost, unsigned gap_bits)
{
    u32 top = (u32)((u64)word >> (width - lost));
    unsigned cleared = 31 - (unsigned)__builtin_clz(top << 1 | 1); /* bits of `top` without its leading zeros */
    return word & ~(((1u << cleared) - 1) << gap_bits);
}

static void keep_words(const u8 *words, size_t size, unsigned lost, u8 *kept)
{
    for (size_t at = 0; at < size; at += sizeof(u32)) {
        u32 word;
        memcpy(&word, words + at, sizeof word);
        word = kept_word(word, 32, lost, GAP_BITS);
        memcpy(kept + at, &word, sizeof word);
    }
}

static void keep_split(const u8 *symbols, size_t size, unsigned lost, u8 *kept)
{
    for (size_t at = 0; at < size; at += sizeof(u16)) {
        u16 symbol;
        memcpy(&symbol, symbols + at, sizeof symbol);
        symbol = (u16)kept_word(symbol, 16, lost, 0);
        memcpy(kept + at, &symbol, sizeof symbol);
    }
}

static PyObject *kept_symbols_of(PyObject *ld, PairBits bits)
{
    char *packed;
    Py_ssize_t bytes;
    if (PyBytes_AsStringAndSize(ld, &packed, &bytes) < 0)
        return NULL;
    int is_split = bits.symbol == SPLIT_SYMBOL_BITS;
    if (bytes % (is_split ? 2 : LD_WORD_BYTES))
        return PyErr_Format(PyExc_ValueError, "expected a multiple of %d bytes", is_split ? 2 : LD_WORD_BYTES);
    u8 *kept = malloc((size_t)bytes + 1);
    if (!kept)
        return PyErr_NoMemory();
    (is_split ? keep_split : keep_words)((const u8 *)packed, (size_t)bytes, bits.symbol - bits.kept, kept);
    PyObject *result = bytes_of(kept, (size_t)bytes);
    free(kept);
    return result;
}

static PyObject *kept_parts(PyObject *module, PyObject *arguments)
{
    PyObject *sketch, *ld;
    PairBits bits = {.low = 0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "SSII", &sketch, &ld, &bits.symbol, &bits.kept) || !are_pair_bits(bits))
        return NULL;
    PyObject *both[] = {kept_sketch_of(sketch), NULL};
    if (both[0])
        both[1] = kept_symbols_of(ld, bits);
    return tuple_of(both, sizeof both / sizeof *both);
}
