/* The text part of an index record, whose format store/record.py describes. */

#pragma once

#include "estimates/content.h"
#include "platform.h"

enum { PACKED_PAIRS = 1, SPACELESS_TEXT = 2, SPLIT_GAPS = 4 };
enum { TEXT_VERSION = 8, TEXT_DIGEST = 8, TEXT_NUMBERS = 7, STEP_LOW_BITS = 2, NUMBER_BITS = 56 };

static const char TOO_FEW_PAIRS[] = "packed: more bytes expected for this number of pairs";

/* What is left to be read. */
typedef struct {
    const u8 *at, *end;
} Reader;

/* Returns the next bytes, or NULL if there are not that many. */
static const u8 *take(Reader *r, u64 size)
{
    const u8 *start = r->at;
    if (size > (u64)(r->end - start))
        return NULL;
    r->at += size;
    return start;
}

/* Reads a number in LEB128. Returns 0 if it does not end or is too large. */
static int take_number(Reader *r, u64 *number)
{
    *number = 0;
    for (unsigned bits = 0; r->at < r->end && bits < NUMBER_BITS; bits += 7) {
        u8 byte = *r->at++;
        *number |= (u64)(byte & 0x7F) << bits;
        if (byte < 0x80)
            return 1;
    }
    return 0;
}

static i64 signed_of(u64 zigzag)
{
    return zigzag & 1 ? -(i64)(zigzag / 2) - 1 : (i64)(zigzag / 2);
}

/* Returns the bits with which the pairs of a text at this rate are packed. */
static PairBits bits_of_pairs(int flags, u64 rate)
{
    unsigned low = (unsigned)(rate ? log2_of(rate) : 0);
    if (flags & SPLIT_GAPS)
        return (PairBits){SPLIT_SYMBOL_BITS, SPLIT_KEPT_BITS, STEP_LOW_BITS};
    low = low < 1 ? 0 : low - 1;
    return (PairBits){WORD_SYMBOL_BITS, WORD_KEPT_BITS, low < MAX_LOW_BITS ? low : MAX_LOW_BITS};
}

/* A text part, whose symbols and gaps may still be packed. */
typedef struct {
    const u8 *digest, *sketch, *gaps, *ld;
    int flags;
    i64 n_bytes, characters, words, shingles;
    u64 rate;
    size_t sketch_size, gaps_size, ld_size;
} TextPart;

/* Returns 0 if the bytes are no whole text part. */
static int read_text_part(Reader r, TextPart *part)
{
    u64 n[TEXT_NUMBERS];
    const u8 *digest = take(&r, TEXT_DIGEST), *flags = digest ? take(&r, 1) : NULL;
    int is_whole = flags != NULL;
    for (int i = 0; i < TEXT_NUMBERS && is_whole; i++)
        is_whole = take_number(&r, &n[i]);
    const u8 *sketch = is_whole ? take(&r, n[3]) : NULL, *gaps = sketch ? take(&r, n[4]) : NULL;
    if (!gaps)
        return 0;
    i64 n_bytes = (i64)n[0], words = (i64)n[1];
    *part = (TextPart){digest, sketch, gaps, r.at, *flags, n_bytes, n_bytes - signed_of(n[6]), words,
                       words - signed_of(n[5]), n[2], n[3], n[4], (size_t)(r.end - r.at)};
    return 1;
}

/* Returns the packed pairs of a text part. Their count is 0 if there are too few bytes for any. */
static Pairs pairs_of_part(const TextPart *part)
{
    PairBits bits = bits_of_pairs(part->flags, part->rate);
    size_t count = part->ld_size < PAIR_COUNT_BYTES ? 0 : (size_t)part->ld[0] << 8 | part->ld[1];
    Pairs p = pairs_of(count, bits);
    p.count = part->ld_size > pairs_before_unary(&p) ? count : 0;
    return p;
}

/* Writes new references to the symbols and the gaps. Returns 0 with an exception if there are too few bytes. */
static int unpack_into(const TextPart *part, PyObject **ld, PyObject **gaps)
{
    Pairs p = pairs_of_part(part);
    *ld = bytes_of(NULL, p.count * symbol_size(&p));
    *gaps = bytes_of(NULL, is_split(&p) ? p.count : 0);
    if (!*ld || !*gaps)
        return 0;
    if (p.count &&
        read_pairs(&p, part->ld, part->ld_size, (u8 *)PyBytes_AsString(*ld), (u8 *)PyBytes_AsString(*gaps)))
        return 1;
    PyErr_SetString(PyExc_ValueError, TOO_FEW_PAIRS);
    return 0;
}

/* Returns the fields of a text part. */
static PyObject *fields_of_part(const TextPart *part)
{
    PyObject *ld = NULL, *gaps = NULL;
    if (!(part->flags & PACKED_PAIRS)) {
        ld = bytes_of(part->ld, part->ld_size);
        gaps = bytes_of(part->gaps, part->gaps_size);
    } else if (!unpack_into(part, &ld, &gaps)) {
        Py_XDECREF(ld);
        Py_XDECREF(gaps);
        return NULL;
    }
    PyObject *items[] = {
        bytes_of(part->digest, TEXT_DIGEST), PyLong_FromLongLong(part->n_bytes),
        PyLong_FromLongLong(part->characters), PyLong_FromLongLong(part->words), PyLong_FromLongLong(part->shingles),
        PyBool_FromLong(part->flags & SPACELESS_TEXT), bytes_of(part->sketch, part->sketch_size),
        PyLong_FromUnsignedLongLong(part->rate), ld, gaps,
    };
    return tuple_of(items, sizeof items / sizeof *items);
}

/* Reads the text part of a record, which begins at `start`. Returns 0 with an exception if there is none. */
static int read_record(PyObject *record, PyObject *start, TextPart *part)
{
    char *packed;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(record, &packed, &size) < 0)
        return 0;
    Py_ssize_t at = PyLong_AsSsize_t(start);
    if (at == -1 && PyErr_Occurred())
        return 0;
    const u8 *bytes = (const u8 *)packed;
    if (at >= 0 && at <= size && read_text_part((Reader){bytes + at, bytes + size}, part))
        return 1;
    PyErr_SetString(PyExc_ValueError, "packed: a whole text part expected");
    return 0;
}

static PyObject *unpack_text(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    TextPart part;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "unpack_text: packed and start expected");
    return read_record(arguments[0], arguments[1], &part) ? fields_of_part(&part) : NULL;
}
