/* Whether two texts share only what is below them, such as the notice of an office below two mails. */

#pragma once

#include "estimates/compare.h"
#include "platform.h"

enum { ABOVE_BYTES = 48, ABOVE_SYMBOLS = 2 }; /* least text above the common end, about 9 words */
enum { END_BYTES = 1536 }; /* most of an end, about 250 words: a longer one is a text below two headings */
enum { SEEN_BITS = 13 };

/* Returns whether a text has enough above its first symbol that the other text has too, and not too much below. */
static int has_text_above(const Content *text, const View *own, const View *other)
{
    u8 seen[1 << SEEN_BITS] = {0};
    size_t above = 0;
    for (size_t i = 0; i < other->size; i++)
        seen[other->symbols[i] & ((1 << SEEN_BITS) - 1)] = 1;
    size_t run = own->rate == 1 ? 2 : 1; /* where all windows are symbols, a common one alone may be chance */
    for (; above + run <= own->size; above++) {
        size_t i = seen[own->symbols[above] & ((1 << SEEN_BITS) - 1)] ? 0 : other->size;
        while (i + run <= other->size && memcmp(other->symbols + i, own->symbols + above, run * sizeof(i64)))
            i++;
        i = i + run <= other->size ? i : other->size;
        if (i < other->size)
            break;
    }
    if (above + run > own->size || above < ABOVE_SYMBOLS)
        return 0;
    return own->starts[above] >= ABOVE_BYTES && text->n_bytes - own->starts[above] <= END_BYTES;
}

static PyObject *share_only_an_end(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *one, *other, *result = NULL;
    Comparison c = {.rate = -1};
    if (!PyArg_ParseTuple(arguments, "OO", &one, &other))
        return NULL;
    if (read_text(one, &c.arriving, &c.unpacked[0]) && read_text(other, &c.other, &c.unpacked[1]) && read_views(&c))
        result = PyBool_FromLong(has_text_above(&c.arriving, &c.views[0], &c.views[1]) &&
                                 has_text_above(&c.other, &c.views[1], &c.views[0]));
    free_comparison(&c);
    return result;
}
