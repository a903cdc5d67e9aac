/* Where the common text of two documents lies, in characters.
 *
 * A passage is a maximal run of at least two matches, between which few symbols are lost and no text has moved far.
 * What the alignment leaves over is aligned again, up to four times, which finds the passages in another order. */

#pragma once

#include "estimates/compare.h"
#include "platform.h"

enum { LOST_MAX = 2, DRIFT_MAX = 32, MATCHES_MIN = 2, MOVES = 4, NUMBERS_PER_PASSAGE = 4 };

/* Numbers of passages: start and end in the shorter text, then in the longer one. */
typedef struct {
    i64 *changes, *in_order, *moved, *end;
    i64 segment[NUMBERS_PER_PASSAGE];
    int has_segment;
    Buffer memory;
} Passages;

/* Returns the character at a byte, if all characters of a text had the same width. */
static i64 character_at(i64 byte, const Content *text)
{
    return (i64)rint((double)(i64)((u64)byte * (u64)text->characters) / (double)text->n_bytes);
}

/* Returns whether a match begins another passage than the one before it. */
static int begins_passage(const Text text[2], size_t match)
{
    Step step = step_before(text, match, matches_of(text));
    return step.lost > LOST_MAX || llabs(step.gap[0] - step.gap[1]) > DRIFT_MAX;
}

/* Writes the passages that the matches form. Returns where they end. */
static i64 *write_passages(const Text text[2], const Side both[2], i64 *out)
{
    size_t matches = matches_of(text);
    for (size_t first = 0, end; first < matches; first = end) {
        for (end = first + 1; end < matches && !begins_passage(text, end);)
            end++;
        for (int side = 0; side < 2 && end - first >= MATCHES_MIN; side++) {
            const i64 *starts = text[side].starts;
            const u32 *match = text[side].match;
            *out++ = character_at(starts[match[first]], both[side].content);
            *out++ = character_at(starts[match[end - 1]] + LD_WINDOW_BYTES, both[side].content);
        }
    }
    return out;
}

/* Writes the places where symbols are lost or one text has grown by more than the grain, or all places without a common
 * window. Returns where they end. */
static i64 *write_places(const Text text[2], const Side both[2], int all, i64 *out)
{
    i64 grain = most_of(both[0].view->grain, both[1].view->grain);
    size_t matches = matches_of(text);
    for (size_t k = 0; k <= matches; k++) {
        Step step = step_before(text, k, matches);
        int is_bare = step.gap[0] > LD_WINDOW_BYTES || step.gap[1] > LD_WINDOW_BYTES;
        if (!is_bare || (!all && !step.lost && llabs(step.gap[0] - step.gap[1]) <= grain))
            continue;
        for (int side = 0; side < 2; side++) {
            i64 stop = text[side].starts[k < matches ? text[side].match[k] : text[side].size];
            *out++ = character_at(stop - step.gap[side] + LD_WINDOW_BYTES, both[side].content);
            *out++ = character_at(stop, both[side].content);
        }
    }
    return out;
}

/* Writes where the best segment is expected to lie. */
static void write_segment(const Text text[2], const Side both[2], Comparing *with, Passages *passages)
{
    i64 grain = most_of(both[0].view->grain, both[1].view->grain);
    size_t numbers = write_blocks(text, &with->reach, grain, with->room.in_order);
    Blocks blocks = {with->room.in_order, numbers / NUMBERS_PER_BLOCK};
    Segment best = layout(blocks, lead_of(both[0].content, both[1].content), &with->room).segment;
    passages->has_segment = best.first != NULL;
    for (int side = 0; side < 2 && passages->has_segment; side++) {
        const Content *content = both[side].content;
        double bytes = (double)content->n_bytes, width = (double)content->characters / bytes;
        double start = best.first[side], end = best.last[2 + side];
        passages->segment[2 * side] = (i64)rint((start > 0 ? start : 0) * width);
        passages->segment[2 * side + 1] = (i64)rint((end < bytes ? end : bytes) * width);
    }
}

/* Finds all passages. Returns 0 if there is no memory. */
static int write_all_passages(const Side both[2], i64 least, Comparing *with, Passages *passages)
{
    Text text[2] = {text_of(&both[0]), text_of(&both[1])};
    size_t common, fewer = text[0].size < text[1].size ? text[0].size : text[1].size;
    /* No symbol matches twice, so all passages have at most as many matches as the text with fewer symbols. There is one
     * more place for changes than matches. */
    size_t most = fewer / MATCHES_MIN + 1 + fewer + 1;
    if (!grow(&passages->memory, most * NUMBERS_PER_PASSAGE * sizeof(i64)) ||
        !align(text, least, &with->space, &common) || !make_block_room(&with->room, common))
        return 0;
    write_segment(text, both, with, passages);
    passages->changes = (i64 *)(void *)passages->memory.start;
    passages->in_order = write_places(text, both, 0, passages->changes);
    if (passages->in_order == passages->changes)
        passages->in_order = write_places(text, both, 1, passages->changes);
    passages->moved = passages->end = write_passages(text, both, passages->in_order);
    for (int move = 0; move < MOVES && common - matches_of(text) >= MATCHES_MIN; move++) {
        if (!take_matches(text, &with->left) || !align(text, 0, &with->space, &common))
            return 0;
        i64 *end = write_passages(text, both, passages->end);
        if (end == passages->end)
            break;
        passages->end = end;
    }
    return 1;
}

static PyObject *tuple_of_passages(const Passages *passages)
{
    PyObject *items[] = {
        bytes_of(passages->in_order, (size_t)(passages->moved - passages->in_order) * sizeof(i64)),
        bytes_of(passages->moved, (size_t)(passages->end - passages->moved) * sizeof(i64)),
        bytes_of(passages->segment, passages->has_segment ? sizeof passages->segment : 0),
        bytes_of(passages->changes, (size_t)(passages->in_order - passages->changes) * sizeof(i64)),
    };
    return tuple_of(items, sizeof items / sizeof *items);
}

static PyObject *common_text(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *one, *other, *found = NULL;
    int same_lineage;
    i64 least;
    Comparison c = {.rate = -1};
    Passages passages = {0};
    Side both[2];
    if (!PyArg_ParseTuple(arguments, "OOpO", &one, &other, &same_lineage, &c.reach_of))
        return NULL;
    if (read_text(one, &c.arriving, &c.unpacked[0]) && read_text(other, &c.other, &c.unpacked[1]) &&
        order_both(&c, same_lineage, both, &least)) {
        if (write_all_passages(both, least, &c.with, &passages))
            found = tuple_of_passages(&passages);
        else
            PyErr_NoMemory();
    }
    free(passages.memory.start);
    free_comparison(&c);
    return found;
}
