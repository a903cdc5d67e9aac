/* The text part of an index record. Twin of `unpack_text` in workers/redis_index/text_part.py. */

enum { PACKED_PAIRS = 1, SPACELESS_TEXT = 2, SPLIT_GAPS = 4 };
enum { TEXT_DIGEST = 8, TEXT_NUMBERS = 7, STEP_LOW_BITS = 2, NUMBER_BITS = 56 };

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

/* Writes new references to the symbols and the gaps. Returns 0 with an exception if the bytes are too few. */
static int unpack_into(const u8 *packed, size_t size, PairBits bits, PyObject **ld, PyObject **gaps)
{
    Pairs p = pairs_of(size < PAIR_COUNT_BYTES ? 0 : (size_t)packed[0] << 8 | packed[1], bits);
    *ld = bytes_of(NULL, p.count * symbol_size(&p));
    *gaps = bytes_of(NULL, is_split(&p) ? p.count : 0);
    if (*ld && *gaps && p.count && size > pairs_before_unary(&p) &&
        read_pairs(&p, packed, size, (u8 *)PyBytes_AsString(*ld), (u8 *)PyBytes_AsString(*gaps)))
        return 1;
    if (*ld && *gaps)
        PyErr_SetString(PyExc_ValueError, "packed: more bytes expected for this number of pairs");
    return 0;
}

/* Returns `TextPart` as a plain tuple. */
static PyObject *text_of_record(Reader r)
{
    u64 n[TEXT_NUMBERS];
    const u8 *digest = take(&r, TEXT_DIGEST), *flags = digest ? take(&r, 1) : NULL;
    int is_whole = flags != NULL;
    for (int i = 0; i < TEXT_NUMBERS && is_whole; i++)
        is_whole = take_number(&r, &n[i]);
    const u8 *sketch = is_whole ? take(&r, n[3]) : NULL, *gaps = sketch ? take(&r, n[4]) : NULL;
    if (!gaps)
        return PyErr_Format(PyExc_ValueError, "packed: a whole text part expected");
    size_t rest = (size_t)(r.end - r.at);
    PyObject *ld_bytes = NULL, *gaps_bytes = NULL;
    if (!(*flags & PACKED_PAIRS)) {
        ld_bytes = bytes_of(r.at, rest);
        gaps_bytes = bytes_of(gaps, n[4]);
    } else if (!unpack_into(r.at, rest, bits_of_pairs(*flags, n[2]), &ld_bytes, &gaps_bytes)) {
        Py_XDECREF(ld_bytes);
        Py_XDECREF(gaps_bytes);
        return NULL;
    }
    PyObject *items[] = {
        bytes_of(digest, TEXT_DIGEST),
        PyLong_FromUnsignedLongLong(n[0]),
        PyLong_FromLongLong((i64)n[0] - signed_of(n[6])),
        PyLong_FromUnsignedLongLong(n[1]),
        PyLong_FromLongLong((i64)n[1] - signed_of(n[5])),
        PyBool_FromLong(*flags & SPACELESS_TEXT),
        bytes_of(sketch, n[3]),
        PyLong_FromUnsignedLongLong(n[2]),
        ld_bytes,
        gaps_bytes,
    };
    return tuple_of(items, sizeof items / sizeof *items);
}

static PyObject *unpack_text(PyObject *Py_UNUSED(module), PyObject *const *arguments, Py_ssize_t count)
{
    char *packed;
    Py_ssize_t size, start;
    if (count != 2)
        return PyErr_Format(PyExc_TypeError, "unpack_text: packed and start expected");
    if (PyBytes_AsStringAndSize(arguments[0], &packed, &size) < 0)
        return NULL;
    start = PyLong_AsSsize_t(arguments[1]);
    if (start == -1 && PyErr_Occurred())
        return NULL;
    if (start < 0 || start > size)
        return PyErr_Format(PyExc_ValueError, "packed: a whole text part expected");
    return text_of_record((Reader){(const u8 *)packed + start, (const u8 *)packed + size});
}
