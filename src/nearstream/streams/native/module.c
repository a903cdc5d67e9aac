/* Signing, and comparing signatures.
 *
 * This file is the only translation unit, and each header includes what it needs. Each header begins with what it
 * computes, the formulas and their sources. tests/reference computes the same in Python, and the tests compare both.
 *
 * Only this file, the headers beside it and the functions for Python in estimates/ use the Python API.
 * Other threads can run while a long text is signed. The only state is memory that a context keeps for its next text.
 * Any bytes may be passed in: invalid ones raise ValueError. All arithmetic is modulo 2**64.
 */

#include "estimates/common_end.h"
#include "estimates/covering.h"
#include "estimates/passages.h"
#include "platform.h"
#include "prepared.h"
#include "signing/normal_form.h"
#include "signing/signature.h"
#include "signing/signs.h"
#include "tally.h"
#include "text_patch.h"

enum { INTERFACE = 16 }; /* raised together with INTERFACE of __init__.py whenever a function changes */

/* All that one call from Python works on. */
typedef struct {
    Folding folding;
    Job job;
    Result result;
    Buffer scratch;
    size_t max_bytes; /* of the normal form */
    enum Outcome outcome;
} Call;

/* Makes the normal form and describes it in `job`. */
static enum Outcome fold_text(Folding *f, u64 spaceless_share, Job *job)
{
    enum Outcome outcome = fold(f);
    if (outcome != FOLDED)
        return outcome;
    job->data = form_of(f);
    job->size = (size_t)(f->out - job->data);
    job->characters = job->size - f->following;
    size_t letters = job->characters - count_of(job->data, job->size, SPACE);
    job->spaceless = letters && spaceless_share * f->spaceless >= letters;
    return FOLDED;
}

/* Signs the text without touching any Python object. */
static enum Outcome run(Call *call)
{
    Folding *f = &call->folding;
    Job *job = &call->job;
    enum Outcome outcome = fold_text(f, job->context->n.spaceless_share, job);
    if (outcome != FOLDED)
        return outcome;
    if (job->size > call->max_bytes)
        return TOO_LARGE;
    measure(job, count_of(job->data, job->size, SPACE));
    size_t room = lay_out(job, &call->result, NULL) * sizeof(u64), raw_size = (size_t)(f->end - f->data);
    if (!grow(&call->scratch, room + raw_size))
        return NO_MEMORY;
    lay_out(job, &call->result, (u64 *)call->scratch.start);
    sign_form(job, &call->result);
    u8 *raw = call->scratch.start + room;
    write_digests(job, raw, without_layout(f->data, raw_size, raw), &call->result);
    return FOLDED;
}

/* Returns `Signed` of __init__.py. Py_BuildValue would take as long as hashing the words of a short text. */
static PyObject *signed_tuple(const Job *job, const Result *result)
{
    const Numbers *n = &job->context->n;
    PyObject *content[] = {
        PyLong_FromSize_t(job->size), PyLong_FromSize_t(job->characters), PyLong_FromSize_t(job->words),
        PyLong_FromSize_t(result->shingles), PyBool_FromLong(job->spaceless),
        bytes_of(result->sketch, SLOTS * n->sketch_bits / 8), PyLong_FromUnsignedLongLong(result->rate),
        bytes_of(result->ld, result->ld_size), bytes_of(result->gaps, result->gaps_size),
        bytes_of(result->anchor, 8 * result->anchors),
    };
    PyObject *signature[] = {
        bytes_of(result->digest, DIGEST), bytes_of(result->raw_digest, DIGEST),
        tuple_of(content, sizeof content / sizeof *content),
    };
    return tuple_of(signature, sizeof signature / sizeof *signature);
}

static PyObject *refuse(enum Outcome outcome)
{
    switch (outcome) {
    case NO_MEMORY:
        return PyErr_NoMemory();
    case NOT_ASCII:
        return PyErr_Format(PyExc_ValueError, "text: ASCII expected, as no Unicode tables are given");
    default:
        return PyErr_Format(PyExc_ValueError, "text: UTF-8 expected, which may contain surrogates");
    }
}

static PyObject *result_of(const Call *call)
{
    if (call->outcome == TOO_LARGE)
        return Py_NewRef(Py_None);
    if (call->outcome != FOLDED)
        return refuse(call->outcome);
    return signed_tuple(&call->job, &call->result);
}

static PyObject *sign(PyObject *module, PyObject *const *arguments, Py_ssize_t count)
{
    (void)module;
    char *text;
    Py_ssize_t size;
    if (count != 4)
        return PyErr_Format(PyExc_TypeError, "sign: context, unicode, text and max_bytes expected");
    Context *known = PyCapsule_GetPointer(arguments[0], CONTEXT);
    if (!known || PyBytes_AsStringAndSize(arguments[2], &text, &size) < 0)
        return NULL;
    size_t max_bytes = PyLong_AsSize_t(arguments[3]);
    if (max_bytes == (size_t)-1 && PyErr_Occurred())
        return NULL;
    if (size > MAX_BYTES)
        return PyErr_Format(PyExc_ValueError, "text: at most %d bytes expected", (int)MAX_BYTES);
    const Unicode *tables = NULL;
    if (arguments[1] != Py_None && !(tables = PyCapsule_GetPointer(arguments[1], UNICODE)))
        return NULL;
    Call call = {.max_bytes = max_bytes, .scratch = take_idle(&known->scratch), .job.context = known};
    call.folding = (Folding){.unicode = tables, .mark_run = known->n.mark_run, .form = take_idle(&known->form)};
    call.folding.data = call.folding.at = (const u8 *)text;
    call.folding.end = call.folding.data + size;
    PyThreadState *state = size >= LONG_TEXT ? PyEval_SaveThread() : NULL;
    call.outcome = run(&call);
    if (state)
        PyEval_RestoreThread(state);
    PyObject *signature = result_of(&call);
    leave_idle(&known->form, call.folding.form);
    leave_idle(&known->scratch, call.scratch);
    return signature;
}

/* Returns the normal form of a text, its code points, and whether it is spaceless. */
static PyObject *normal_form(PyObject *module, PyObject *arguments)
{
    PyObject *tables;
    const char *text;
    Py_ssize_t size;
    unsigned long long mark_run, spaceless_share;
    Job job = {.context = NULL};
    (void)module;
    if (!PyArg_ParseTuple(arguments, "Oy#KK", &tables, &text, &size, &mark_run, &spaceless_share))
        return NULL;
    if (size > MAX_BYTES || !between(mark_run, 1, MAX_POWER) || spaceless_share > MAX_RUN)
        return PyErr_Format(PyExc_ValueError, "normal_form: a shorter text, or smaller numbers expected");
    Folding f = {.mark_run = mark_run};
    if (tables != Py_None && !(f.unicode = PyCapsule_GetPointer(tables, UNICODE)))
        return NULL;
    f.data = f.at = (const u8 *)text;
    f.end = f.data + size;
    PyThreadState *others = size >= LONG_TEXT ? PyEval_SaveThread() : NULL;
    enum Outcome outcome = fold_text(&f, spaceless_share, &job);
    if (others)
        PyEval_RestoreThread(others);
    PyObject *fields[] = {NULL, NULL, NULL}, *found = outcome == FOLDED ? NULL : refuse(outcome);
    if (outcome == FOLDED) {
        fields[0] = bytes_of(job.data, job.size);
        fields[1] = PyLong_FromSize_t(job.characters);
        fields[2] = PyBool_FromLong(job.spaceless);
        found = tuple_of(fields, sizeof fields / sizeof *fields);
    }
    free(f.form.start);
    return found;
}

static PyObject *signs(PyObject *module, PyObject *text)
{
    char *raw;
    Py_ssize_t size;
    PyThreadState *others = NULL;
    (void)module;
    if (PyBytes_AsStringAndSize(text, &raw, &size))
        return NULL;
    u8 *out = malloc((size_t)size + 1);
    if (!out)
        return PyErr_NoMemory();
    if (size >= LONG_TEXT)
        others = PyEval_SaveThread();
    size_t written = write_signs((const u8 *)raw, (size_t)size, out);
    if (others)
        PyEval_RestoreThread(others);
    PyObject *found = bytes_of(out, written);
    free(out);
    return found;
}


/* ---- pairs of LD symbols and gaps ---- */

/* Returns the number of pairs, 0 if the lengths of symbols and gaps do not fit each other. */
static size_t count_pairs(const Pairs *p, const Py_buffer *ld, const Py_buffer *gaps)
{
    size_t count = (size_t)ld->len / symbol_size(p);
    int fits = ld->len % (Py_ssize_t)symbol_size(p) == 0 && (size_t)gaps->len == (is_split(p) ? count : 0);
    return fits && count <= MAX_PAIRS ? count : 0;
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
        p.count = count_pairs(&p, &ld, &gaps);
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

static PyMethodDef functions[] = {
    {"context", context, METH_O, "Prepare a scheme and its key."},
    {"unicode", unicode, METH_O, "Prepare the tables of Unicode."},
    {"pack_pairs", pack_pairs, METH_VARARGS, "Pack LD symbols and gaps into few bits, or return None if impossible."},
    {"unpack_text", (PyCFunction)(void (*)(void))unpack_text, METH_FASTCALL, "Return the text part of a record."},
    {"patch", patch, METH_VARARGS, "Return what turns one text part into another."},
    {"compare", compare, METH_VARARGS, "Compare a text with others and return packed estimates."},
    {"common_text", common_text, METH_VARARGS, "Return where the common text of two texts lies."},
    {"cover", cover, METH_VARARGS, "Return which parts of a text each of others has."},
    {"shortlist", (PyCFunction)(void (*)(void))shortlist, METH_FASTCALL, "Return who shares most keys with a document."},
    {"signs", signs, METH_O, "Return the signs of a text that mean something."},
    {"sign", (PyCFunction)(void (*)(void))sign, METH_FASTCALL,
     "Sign a text, or return None if its normal form has too many bytes."},
    {"normal_form", normal_form, METH_VARARGS,
     "Return the normal form of a text, its code points, and whether it is spaceless."},
    {"share_only_an_end", share_only_an_end, METH_VARARGS,
     "Return whether two texts share nothing above a common end."},
    {NULL, NULL, 0, NULL},
};

static int add_constants(PyObject *module)
{
    return PyModule_AddIntConstant(module, "INTERFACE", INTERFACE);
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, add_constants}, {0, NULL}};
static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "nearstream.streams.native._native", "Signing, and comparing signatures.",
    0, functions, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void)
{
    return PyModuleDef_Init(&definition);
}
