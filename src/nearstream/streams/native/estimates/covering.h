/* Which parts of an arriving text other texts have.
 *
 * Text counts as had from a run of eight words on, because shorter ones come by chance. Text that comes in another
 * order or several times is found by aligning what is left, up to 8 times. */

#pragma once

#include "estimates/compare.h"
#include "platform.h"

enum { COVER_LEADS = 2, COVER_ROUNDS = 8 };

/* What one other text has: common text as start and end in the arriving text, in bytes. */
typedef struct {
    Buffer spans;
    size_t count;
} Cover;

/* Adds the blocks that are long enough, and returns how many these are, SIZE_MAX if there is no memory. */
static size_t add_spans(Blocks blocks, int own, double least, double end, Cover *cover)
{
    size_t before = cover->count;
    if (!grow(&cover->spans, (before + blocks.count) * 2 * sizeof(double) + 1))
        return SIZE_MAX;
    double *out = (double *)(void *)cover->spans.start + 2 * before;
    for (size_t i = 0; i < blocks.count; i++) {
        const double *block = block_at(blocks, i);
        if (length_of(block) < least)
            continue;
        *out++ = block[own] > 0 ? block[own] : 0;
        *out++ = block[2 + own] < end ? block[2 + own] : end;
        cover->count++;
    }
    return cover->count - before;
}

/* Marks the matches of one text as taken in a copy of its symbols. Returns 0 if there is no memory. */
static int take_own_matches(Text *text, Buffer *left)
{
    const i64 *former = (const i64 *)(void *)left->start;
    int is_copy = text->symbols == former;
    if (!is_copy && !grow(left, text->size * sizeof(i64) + 1))
        return 0;
    i64 *copy = (i64 *)(void *)left->start;
    if (!is_copy)
        memcpy(copy, text->symbols, text->size * sizeof(i64));
    for (const u32 *match = text->match; match < text->end; match++)
        copy[*match] += TAKEN;
    text->symbols = copy;
    return 1;
}

/* Finds what the other text has. Returns 0 with an exception if that is impossible. */
static int find_cover(Comparison *c, Cover *cover)
{
    Side both[2];
    i64 least;
    size_t common;
    if (!order_both(c, 1, both, &least))
        return 0;
    int own = both[0].content != &c->arriving;
    double end = (double)c->arriving.n_bytes, needed = COVER_LEADS * lead_of(both[0].content, both[1].content);
    cover->count = 0;
    if (is_equal(&c->arriving, &c->other)) {
        const double whole[NUMBERS_PER_BLOCK] = {0, 0, end, end, end};
        return add_spans((Blocks){whole, 1}, own, 0, end, cover) == 1 || PyErr_NoMemory() != NULL;
    }
    Text text[2] = {text_of(&both[0]), text_of(&both[1])};
    i64 grain = most_of(both[0].view->grain, both[1].view->grain);
    for (int round = 0; round < COVER_ROUNDS; round++) {
        if (!align(text, 0, &c->with.space, &common) || !make_block_room(&c->with.room, common))
            return PyErr_NoMemory() != NULL;
        size_t numbers = write_blocks(text, &c->with.reach, grain, c->with.room.in_order);
        Blocks blocks = {c->with.room.in_order, numbers / NUMBERS_PER_BLOCK};
        size_t found = add_spans(blocks, own, needed, end, cover);
        if (found == SIZE_MAX || !take_own_matches(&text[own], &c->with.left))
            return PyErr_NoMemory() != NULL;
        if (!found)
            break;
    }
    return 1;
}

/* Returns the rate and the spans. */
static PyObject *packed_cover(const Cover *cover, i64 rate)
{
    size_t size = 2 * cover->count * sizeof(double);
    PyObject *packed = bytes_of(NULL, sizeof rate + size);
    if (packed) {
        char *out = PyBytes_AsString(packed);
        memcpy(out, &rate, sizeof rate);
        memcpy(out + sizeof rate, cover->spans.start, size);
    }
    return packed;
}

static PyObject *cover(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *arriving, *others, *found = NULL;
    Comparison c = {.rate = -1};
    Cover made = {{0}, 0};
    if (!PyArg_ParseTuple(arguments, "OO!O", &arriving, &PyTuple_Type, &others, &c.reach_of))
        return NULL;
    Py_ssize_t count = PyTuple_Size(others);
    if (read_text(arriving, &c.arriving, &c.unpacked[0]))
        found = PyTuple_New(count);
    for (Py_ssize_t i = 0; found && i < count; i++) {
        PyObject *packed = NULL;
        if (read_text(PyTuple_GetItem(others, i), &c.other, &c.unpacked[1]) && find_cover(&c, &made))
            packed = packed_cover(&made, c.rate);
        if (!packed || PyTuple_SetItem(found, i, packed) < 0)
            Py_CLEAR(found);
    }
    free(made.spans.start);
    free_comparison(&c);
    return found;
}
