/* Comparing one text with others. Twin of `compare_numpy` in estimates/comparing.py. */

/* Reads the fields of a text from a tuple. Returns 0 with an exception if they do not fit. */
static int read_fields(PyObject *fields, Content *c)
{
    if (!PyTuple_Check(fields)) {
        PyErr_SetString(PyExc_TypeError, "the fields of a signature expected in a tuple");
        return 0;
    }
    if (!PyArg_ParseTuple(fields, "y#LLLLpy#Ly#y#", &c->digest, &c->digest_size, &c->n_bytes, &c->characters,
                          &c->words, &c->shingles, &c->spaceless, &c->sketch, &c->sketch_size, &c->rate, &c->ld,
                          &c->ld_size, &c->gaps, &c->gaps_size))
        return 0;
    if (is_content(c))
        return 1;
    PyErr_SetString(PyExc_ValueError, "the fields of a signature with a text of at least one byte expected");
    return 0;
}

/* What one call works on. */
typedef struct {
    Comparing with;
    Content arriving, other;
    View views[2];
    PyObject *reach_of; /* returns the table of a rate */
    PyObject *reach;    /* the table of the rate below, as bytes */
    i64 rate;
} Comparison;

/* Takes the reach at a rate. Returns 0 with an exception if there is none. */
static int take_reach(Comparison *c, i64 rate)
{
    char *table;
    Py_ssize_t size;
    if (c->reach && c->rate == rate)
        return 1;
    Py_XDECREF(c->reach);
    c->rate = rate;
    c->reach = PyObject_CallFunction(c->reach_of, "L", (long long)rate);
    if (!c->reach || PyBytes_AsStringAndSize(c->reach, &table, &size) < 0)
        return 0;
    c->with.reach = (Reach){(const double *)table, size / (i64)sizeof(double) - 1};
    if (c->with.reach.farthest < 0)
        PyErr_SetString(PyExc_ValueError, "a table of the growth of blocks expected");
    return c->with.reach.farthest >= 0;
}

/* Compares the arriving text with the other one. Returns 0 with an exception if that is impossible. */
static int compare_both(Comparison *c, int is_aligned, Estimate *out)
{
    i64 finer = least_of(c->arriving.rate, c->other.rate), coarser = most_of(c->arriving.rate, c->other.rate);
    unsigned doublings = bit_length(coarser) - bit_length(finer);
    c->views[1].rate = -1; /* of the text before */
    enum Reading reading = read_view(&c->arriving, coarser, doublings, &c->views[0]);
    if (reading == READ)
        reading = read_view(&c->other, coarser, doublings, &c->views[1]);
    if (reading == INVALID)
        PyErr_SetString(PyExc_ValueError, "ld, gaps: symbols with their gaps expected");
    if (reading == INVALID || (reading == READ && !take_reach(c, coarser)))
        return 0;
    Side one = {&c->arriving, &c->views[0]}, other = {&c->other, &c->views[1]};
    int is_shorter = is_in_order(&one, &other), is_equal = !memcmp(c->arriving.digest, c->other.digest, DIGEST);
    Side both[2] = {is_shorter ? one : other, is_shorter ? other : one};
    i64 least = is_equal || is_aligned ? 0 : least_common(&both[0], &both[1]);
    return (reading == READ && write_estimate(both, least, &c->with, out)) || !PyErr_NoMemory();
}

static void free_comparison(Comparison *c)
{
    free_comparing(&c->with);
    free(c->views[0].memory.start);
    free(c->views[1].memory.start);
    Py_XDECREF(c->reach);
}

static PyObject *compare(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *arriving, *others;
    const char *is_aligned, *costs;
    Py_ssize_t flags, costs_size;
    Comparison c = {.rate = -1};
    if (!PyArg_ParseTuple(arguments, "O!O!y#Oy#", &PyTuple_Type, &arriving, &PyTuple_Type, &others, &is_aligned, &flags,
                          &c.reach_of, &costs, &costs_size) ||
        !read_fields(arriving, &c.arriving))
        return NULL;
    Py_ssize_t count = PyTuple_Size(others);
    if (flags != count || costs_size != SHARES_BYTES)
        return PyErr_Format(PyExc_ValueError, "a byte for each other text and %d costs expected", RATIO_STEPS + 1);
    c.with.costs = (const double *)costs;
    PyObject *estimates = bytes_of(NULL, (size_t)count * sizeof(Estimate));
    char *out = estimates ? PyBytes_AsString(estimates) : NULL;
    for (Py_ssize_t i = 0; i < count && estimates; i++, out += sizeof(Estimate)) {
        Estimate made;
        if (read_fields(PyTuple_GetItem(others, i), &c.other) && compare_both(&c, is_aligned[i], &made))
            memcpy(out, &made, sizeof made);
        else
            Py_CLEAR(estimates);
    }
    free_comparison(&c);
    return estimates;
}
