/* The C twin of signing: the same bytes as the numpy modules, faster.
 *
 * Here texts and signatures cross to Python and back; _folding.h makes normal forms, _signing.h signatures. A call takes
 * one block of scratch, touches no state of the process and lets other threads run, which must not write to its buffers
 * meanwhile; any bytes are worked on or refused with ValueError. All arithmetic is modulo 2**64.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "little-endian expected: numpy serves elsewhere"
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

enum { SPACE = 0x20, MOST_BYTES = 1 << 30 };

static size_t count_of(const u8 *data, size_t size, u8 mask, u8 wanted)
{
    size_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += (data[i] & mask) == wanted;
    return count;
}

#include "_folding.h"
#include "_signing.h"
#include "_pairs.h"

/* ---- signing ---- */

static int power_between(u64 value, u64 low, u64 high)
{
    return value >= low && value <= high && (value & (value - 1)) == 0;
}

static int between(u64 value, u64 low, u64 high)
{
    return value >= low && value <= high;
}

/* Whether the numbers of a context lead to no place outside the scratch, and to an end. */
static int sound(const Context *c)
{
    int good = between(c->word_bytes, 2, MOST_POWER) && power_between(c->sketch_bits, 8, 32);
    good &= between(c->shingle_words, 1, MOST_POWER) && between(c->shingle_bytes, 1, MOST_POWER);
    good &= c->rates <= MOST_RATES && c->max_symbols <= MOST_KEPT;
    if (c->rates) {
        good &= between(c->symbol_bits, 1, 32) && between(c->max_symbols, 1, MOST_KEPT);
        good &= c->gap_bits == 0 || c->gap_bits == GAP_BITS;
        good &= c->gap_bits || between(c->gap_steps, 1, (u64)1 << 32);
    }
    for (size_t i = 0; i < c->rates && good; i++)
        good &= power_between(c->rate[i], 2, (u64)1 << 32) && (c->gap_bits || c->rate[i] >= c->gap_steps);
    if (c->max_anchors) {
        good &= between(c->anchor_words, 1, MOST_POWER) && between(c->anchor_bytes, 1, MOST_POWER);
        good &= between(c->run, 1, MOST_RUN) && between(c->spaceless_factor, 1, MOST_RUN / c->run);
        good &= c->max_anchors <= MOST_KEPT;
    }
    return good;
}

static PyObject *packed(const Job *job, const Result *result, const Context *c)
{
    return Py_BuildValue(
        "nny#Ky#y#y#", (Py_ssize_t)job->words, (Py_ssize_t)result->shingles, (const char *)result->sketch,
        (Py_ssize_t)(SLOTS * c->sketch_bits / 8), (unsigned long long)result->rate, (const char *)result->ld,
        (Py_ssize_t)result->ld_size, (const char *)result->gaps, (Py_ssize_t)result->gaps_size,
        result->anchors ? (const char *)result->anchor : "", (Py_ssize_t)(8 * result->anchors));
}

static PyObject *sign(PyObject *module, PyObject *arguments)
{
    Py_buffer context, data;
    int spaceless;
    PyObject *signature = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*p:sign", &context, &data, &spaceless))
        return NULL;
    Context c;
    Job job = {.context = &c, .data = data.buf, .size = (size_t)data.len, .spaceless = spaceless};
    Result result = {0};
    u64 *block = NULL;
    if (context.len != (Py_ssize_t)sizeof c || data.len > MOST_BYTES) {
        PyErr_Format(PyExc_ValueError, "context: %zu bytes expected, data: at most %d", sizeof c, (int)MOST_BYTES);
        goto end;
    }
    memcpy(&c, context.buf, sizeof c);
    if (!sound(&c)) {
        PyErr_SetString(PyExc_ValueError, "context: numbers out of their range");
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    measure(&job);
    block = malloc(lay_out(&job, &result, NULL) * sizeof(u64));
    if (block) {
        lay_out(&job, &result, block);
        run_job(&job, &result);
    }
    Py_END_ALLOW_THREADS
    signature = block ? packed(&job, &result, &c) : PyErr_NoMemory();
    free(block);
end:
    PyBuffer_Release(&context);
    PyBuffer_Release(&data);
    return signature;
}

/* ---- normal form ---- */

static PyObject *list_of(const Holed *h)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < h->count; i++) {
        const Hole *hole = h->holes + i;
        PyObject *item = Py_BuildValue("nnn", (Py_ssize_t)hole->start, (Py_ssize_t)hole->end, (Py_ssize_t)hole->place);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

static PyObject *folded(const Holed *h)
{
    PyObject *holes = list_of(h);
    if (!holes)
        return NULL;
    size_t size = end_folding(&h->folding, h->out);
    size_t characters = size - count_of(h->out, size, 0xC0, 0x80);
    size_t letters = characters - count_of(h->out, size, 0xFF, SPACE);
    return Py_BuildValue("y#nnnN", (const char *)h->out, (Py_ssize_t)size, (Py_ssize_t)characters, (Py_ssize_t)letters,
                         (Py_ssize_t)h->folding.spaceless, holes);
}

static PyObject *normalize_bmp(PyObject *module, PyObject *arguments)
{
    Py_buffer data, table;
    PyObject *form = NULL;
    enum Outcome outcome = NOT_UTF8;
    Holed h = {.count = 0};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*:normalize_bmp", &data, &table))
        return NULL;
    if (table.len != BMP_TABLE) {
        PyErr_Format(PyExc_ValueError, "table: %d bytes expected", (int)BMP_TABLE);
        goto end;
    }
    Py_BEGIN_ALLOW_THREADS
    h.data = data.buf;
    h.out = malloc(3 * (size_t)data.len + 8); /* two bytes may become three; a stretch is folded twice to be left */
    if (h.out) {
        begin_folding(&h.folding, h.data, (size_t)data.len, h.out);
        outcome = fold_all(&h, table.buf);
    }
    Py_END_ALLOW_THREADS
    if (!h.out)
        PyErr_NoMemory();
    else if (outcome == NOT_UTF8)
        PyErr_SetString(PyExc_ValueError, "UTF-8 expected, in which surrogates may stand");
    else
        form = outcome == FOLDED ? folded(&h) : Py_NewRef(Py_None);
    free(h.out);
end:
    PyBuffer_Release(&data);
    PyBuffer_Release(&table);
    return form;
}

static PyObject *normalize_ascii(PyObject *module, PyObject *arguments)
{
    Py_buffer data;
    PyObject *form = NULL;
    size_t size = 0;
    u8 *out;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*:normalize_ascii", &data))
        return NULL;
    Py_BEGIN_ALLOW_THREADS
    out = malloc((size_t)data.len + 1);
    if (out) {
        Folding f;
        begin_folding(&f, data.buf, (size_t)data.len, out);
        fold_run(&f, (size_t)data.len);
        size = end_folding(&f, out);
    }
    Py_END_ALLOW_THREADS
    form = out ? PyBytes_FromStringAndSize((const char *)out, (Py_ssize_t)size) : PyErr_NoMemory();
    free(out);
    PyBuffer_Release(&data);
    return form;
}

/* ---- pairs ---- */

static int pair_arguments(PyObject *arguments, Py_buffer *data, unsigned *symbol_bits, unsigned *low_bits)
{
    if (!PyArg_ParseTuple(arguments, "y*II", data, symbol_bits, low_bits))
        return 0;
    unsigned least = *symbol_bits ? 0 : 1;
    if ((*symbol_bits == 0 || *symbol_bits == 32 - PAIR_GAP_BITS) && *low_bits >= least && *low_bits <= MOST_LOW_BITS)
        return 1;
    PyErr_SetString(PyExc_ValueError, "symbols of 19 bits and 0 to 5 low bits, or none and 1 to 5 expected");
    PyBuffer_Release(data);
    return 0;
}

static PyObject *pack_pairs(PyObject *module, PyObject *arguments)
{
    Py_buffer data;
    unsigned symbol_bits, low_bits;
    (void)module;
    if (!pair_arguments(arguments, &data, &symbol_bits, &low_bits))
        return NULL;
    Pairs p = pairs_of(0, symbol_bits, low_bits);
    p.count = (size_t)data.len / pair_size(&p);
    PyObject *packed = NULL;
    size_t bits = data.len % (Py_ssize_t)pair_size(&p) || p.count > MOST_PAIRS ? 0 : unary_bits(&p, data.buf);
    if (bits) {
        size_t size = pairs_before_unary(&p) + (bits + 7) / 8;
        u8 *out = calloc(size, 1);
        if (out) {
            write_pairs(&p, data.buf, out);
            packed = PyBytes_FromStringAndSize((const char *)out, (Py_ssize_t)size);
            free(out);
        } else {
            PyErr_NoMemory();
        }
    }
    PyBuffer_Release(&data);
    return bits ? packed : Py_NewRef(Py_None);
}

static PyObject *unpack_pairs(PyObject *module, PyObject *arguments)
{
    Py_buffer data;
    unsigned symbol_bits, low_bits;
    PyObject *words = NULL;
    (void)module;
    if (!pair_arguments(arguments, &data, &symbol_bits, &low_bits))
        return NULL;
    const u8 *packed = data.buf;
    size_t size = (size_t)data.len;
    Pairs p = pairs_of(size < 2 ? 0 : (size_t)packed[0] << 8 | packed[1], symbol_bits, low_bits);
    u8 *out = calloc(p.count * pair_size(&p) + 1, 1);
    if (!out)
        PyErr_NoMemory();
    else if (size <= pairs_before_unary(&p) || !read_pairs(&p, packed, size, out))
        PyErr_SetString(PyExc_ValueError, "more packed pairs expected");
    else
        words = PyBytes_FromStringAndSize((const char *)out, (Py_ssize_t)(p.count * pair_size(&p)));
    free(out);
    PyBuffer_Release(&data);
    return words;
}

static PyMethodDef functions[] = {
    {"normalize_ascii", normalize_ascii, METH_VARARGS, "The normal form of ASCII bytes."},
    {"normalize_bmp", normalize_bmp, METH_VARARGS,
     "Normal form, characters, letters, those of scripts without spaces, stretches left out; None if too many."},
    {"pack_pairs", pack_pairs, METH_VARARGS, "LD symbols and gaps in Rice's code; None if they are no pairs."},
    {"unpack_pairs", unpack_pairs, METH_VARARGS, "What pack_pairs was given."},
    {"sign", sign, METH_VARARGS, "Words, shingles, sketch, rate, LD symbols, gaps, anchors of a normal form."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "streams._native", "The C twin of signing.", 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
