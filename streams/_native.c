/* The C twin of signing and comparing: the same bytes as the numpy modules, faster.
 *
 * Here texts and signatures cross to Python and back; _folding.h makes normal forms, _signing.h signatures. Other
 * threads run beside long texts; nothing of the process is touched but memory that a context keeps for its next text.
 * Any bytes are worked on, or refused with ValueError. All arithmetic is modulo 2**64.
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

/* By hand for x86-64; elsewhere, or with this macro, plain C gives the same bytes. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(NEARSTREAM_PLAIN)
#define VECTORS
#include <immintrin.h>
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
enum { SPACE = 0x20, PADDING = 8, MOST_BYTES = 1 << 28, LONG_TEXT = 4096 };

#include "_blake2b.h"
#include "_job.h"
#include "_unicode.h"
#include "_folding.h"
#include "_words.h"
#include "_ld.h"
#include "_sketch.h"
#include "_anchors.h"
#include "_signing.h"
#include "_pairs.h"
#include "_prepared.h"
#include "_ways.h"

typedef struct {
    Folding folding;
    Job job;
    Result result;
    Block scratch;
    size_t most;
    enum Outcome outcome;
} Call;

static enum Outcome work(Call *call)
{
    Folding *f = &call->folding;
    Job *job = &call->job;
    enum Outcome outcome = fold(f);
    if (outcome != FOLDED)
        return outcome;
    job->data = form_of(f);
    job->size = (size_t)(f->out - job->data);
    if (job->size > call->most)
        return TOO_LARGE;
    job->firsts = job->size - f->following;
    size_t spaces = count_of(job->data, job->size, SPACE), letters = job->firsts - spaces;
    job->spaceless = letters && job->context->n.spaceless_share * f->spaceless >= letters;
    measure(job, spaces);
    if (!grow(&call->scratch, lay_out(job, &call->result, NULL) * sizeof(u64)))
        return NO_MEMORY;
    lay_out(job, &call->result, (u64 *)call->scratch.start);
    run_job(job, &call->result);
    if (job->context->n.digest_bytes)
        digests(job, f->data, (size_t)(f->end - f->data), &call->result);
    return FOLDED;
}

/* A tuple of new references, which it takes over; NULL if one of them could not be made. */
static PyObject *tuple_of(PyObject **items, Py_ssize_t count)
{
    PyObject *tuple = PyTuple_New(count);
    int whole = tuple != NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        whole &= items[i] != NULL;
        if (tuple)
            PyTuple_SetItem(tuple, i, items[i]);
        else
            Py_XDECREF(items[i]);
    }
    if (!whole)
        Py_CLEAR(tuple);
    return tuple;
}

static PyObject *bytes_of(const void *data, size_t size)
{
    return PyBytes_FromStringAndSize(data, (Py_ssize_t)size);
}

/* By hand: for a short text Py_BuildValue would take as long as hashing its words. */
static PyObject *packed(const Job *job, const Result *result)
{
    const Numbers *n = &job->context->n;
    PyObject *content[] = {
        PyLong_FromSize_t(job->size), PyLong_FromSize_t(job->firsts), PyLong_FromSize_t(job->words),
        PyLong_FromSize_t(result->shingles), PyBool_FromLong(job->spaceless),
        bytes_of(result->sketch, SLOTS * n->sketch_bits / 8), PyLong_FromUnsignedLongLong(result->rate),
        bytes_of(result->ld, result->ld_size), bytes_of(result->gaps, result->gaps_size),
        bytes_of(result->anchor, 8 * result->anchors),
    };
    PyObject *signature[] = {
        bytes_of(result->digest, n->digest_bytes), bytes_of(result->raw_digest, n->digest_bytes),
        tuple_of(content, sizeof content / sizeof *content),
    };
    return tuple_of(signature, sizeof signature / sizeof *signature);
}

static PyObject *packed_beside_form(const Job *job, const Result *result)
{
    PyObject *both[] = {packed(job, result), bytes_of(job->data, job->size)};
    return tuple_of(both, sizeof both / sizeof *both);
}

static PyObject *answer(const Call *call, int with_form)
{
    switch (call->outcome) {
    case FOLDED:
        return (with_form ? packed_beside_form : packed)(&call->job, &call->result);
    case TOO_LARGE:
        return Py_NewRef(Py_None);
    case NO_MEMORY:
        return PyErr_NoMemory();
    case NOT_ASCII:
        return PyErr_Format(PyExc_ValueError, "text: ASCII expected where no tables are given");
    default:
        return PyErr_Format(PyExc_ValueError, "text: UTF-8 expected, in which surrogates may stand");
    }
}

static PyObject *signed_text(PyObject *const *arguments, Py_ssize_t count, int with_form)
{
    char *text;
    Py_ssize_t size;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "sign: context, unicode, text, most bytes expected");
    Context *known = PyCapsule_GetPointer(arguments[0], CONTEXT);
    if (!known || PyBytes_AsStringAndSize(arguments[2], &text, &size) < 0)
        return NULL;
    size_t most = PyLong_AsSize_t(arguments[3]);
    if (most == (size_t)-1 && PyErr_Occurred())
        return NULL;
    if (size > MOST_BYTES)
        return PyErr_Format(PyExc_ValueError, "text: at most %d bytes expected", (int)MOST_BYTES);
    const Unicode *tables = NULL;
    if (arguments[1] != Py_None && !(tables = PyCapsule_GetPointer(arguments[1], UNICODE)))
        return NULL;
    Call call = {.most = most, .scratch = take_idle(&known->scratch), .job.context = known};
    call.folding = (Folding){.unicode = tables, .mark_run = known->n.mark_run, .form = take_idle(&known->form)};
    call.folding.data = call.folding.at = (const u8 *)text;
    call.folding.end = call.folding.data + size;
    PyThreadState *state = size >= LONG_TEXT ? PyEval_SaveThread() : NULL;
    call.outcome = work(&call);
    if (state)
        PyEval_RestoreThread(state);
    PyObject *signature = answer(&call, with_form);
    leave_idle(&known->form, call.folding.form);
    leave_idle(&known->scratch, call.scratch);
    return signature;
}

static PyObject *sign(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    return signed_text(arguments, count, 0);
}

static PyObject *sign_with_form(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    return signed_text(arguments, count, 1);
}

#include "_meeting.h"

/* ---- pairs ---- */

/* So many pairs, as the bytes hold them; no pairs at all if the bytes do not fit each other. */
static size_t pairs_in(const Pairs *p, const Py_buffer *ld, const Py_buffer *gaps)
{
    size_t count = (size_t)ld->len / symbol_size(p);
    int fits = ld->len % (Py_ssize_t)symbol_size(p) == 0 && (size_t)gaps->len == (is_split(p) ? count : 0);
    return fits && count <= MOST_PAIRS ? count : 0;
}

static PyObject *pack_pairs(PyObject *module, PyObject *arguments)
{
    Py_buffer ld, gaps;
    PairBits bits;
    PyObject *packed = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*III", &ld, &gaps, &bits.symbol, &bits.kept, &bits.low))
        return NULL;
    if (are_pair_bits(bits)) {
        Pairs p = pairs_of(0, bits);
        p.count = pairs_in(&p, &ld, &gaps);
        size_t unary = unary_bits(&p, ld.buf, gaps.buf), size = pairs_before_unary(&p) + (unary + 7) / 8;
        u8 *out = calloc(size, 1);
        if (!out)
            PyErr_NoMemory();
        else if (!unary)
            packed = Py_NewRef(Py_None);
        else {
            write_pairs(&p, ld.buf, gaps.buf, out);
            packed = bytes_of(out, size);
        }
        free(out);
    }
    PyBuffer_Release(&ld);
    PyBuffer_Release(&gaps);
    return packed;
}

static PyObject *unpack_pairs(PyObject *module, PyObject *arguments)
{
    Py_buffer data;
    PairBits bits;
    PyObject *pairs = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*III", &data, &bits.symbol, &bits.kept, &bits.low))
        return NULL;
    if (are_pair_bits(bits)) {
        const u8 *packed = data.buf;
        size_t size = (size_t)data.len;
        Pairs p = pairs_of(size < PAIR_COUNT_BYTES ? 0 : (size_t)packed[0] << 8 | packed[1], bits);
        size_t symbols = p.count * symbol_size(&p), steps = is_split(&p) ? p.count : 0;
        u8 *out = malloc(symbols + steps + 1);
        if (!out)
            PyErr_NoMemory();
        else if (size <= pairs_before_unary(&p) || !read_pairs(&p, packed, size, out, out + symbols))
            PyErr_SetString(PyExc_ValueError, "more packed pairs expected");
        else
            pairs = tuple_of((PyObject *[]){bytes_of(out, symbols), bytes_of(out + symbols, steps)}, 2);
        free(out);
    }
    PyBuffer_Release(&data);
    return pairs;
}

static PyMethodDef functions[] = {
    {"context", context, METH_O, "What signing needs to know of a scheme and its key."},
    {"unicode", unicode, METH_O, "What signing needs to know of Unicode."},
    {"pack_pairs", pack_pairs, METH_VARARGS, "LD symbols and gaps in few bits; None if they are no pairs."},
    {"unpack_pairs", unpack_pairs, METH_VARARGS, "What pack_pairs was given."},
    {"meet", meet, METH_VARARGS, "What two LD signatures have in common."},
    {"cheapest_way", cheapest_way, METH_VARARGS, "Cost of the cheapest way through two texts."},
    {"sign", (PyCFunction)(void (*)(void))sign, METH_FASTCALL,
     "Both digests, beside what a signature says about a normal form; None if that has too many bytes."},
    {"sign_with_form", (PyCFunction)(void (*)(void))sign_with_form, METH_FASTCALL,
     "What sign gives, beside the normal form; None if that has too many bytes."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {{0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "streams._native", "The C twin of signing and comparing.", 0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
