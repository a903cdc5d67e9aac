/* The differences between two records, whose format store/record.py describes.
 *
 * The search is greedy: from left to right, each copy begins as early as possible and is as long as possible. Of
 * several places to copy from, the one that continues the last copy is taken, or else the first one. Copies have at
 * least 5 bytes, because shorter ones hardly save any. */

#pragma once

#include "answers.h"
#include "platform.h"

enum { PATCH_WINDOW = 5, MAX_PATCHED = 1 << 24, STEP_BYTES = 16 };

/* The first place of each window of a text part, plus 1, in a hash table with open addressing. 0: an empty slot. */
typedef struct {
    const u8 *start;
    size_t size;
    u32 *slots;
    unsigned bits;
} Places;

static u64 window_at(const u8 *at)
{
    u64 window = 0;
    memcpy(&window, at, PATCH_WINDOW);
    return window;
}

/* Returns the slot of a window: that of an equal one, or the empty one where it belongs. */
static u32 *slot_of(const Places *p, u64 window)
{
    size_t mask = ((size_t)1 << p->bits) - 1, slot = (size_t)(window * 0x9E3779B97F4A7C15u >> (64 - p->bits));
    while (p->slots[slot] && window_at(p->start + p->slots[slot] - 1) != window)
        slot = (slot + 1) & mask;
    return &p->slots[slot];
}

/* Returns 0 if there is no memory. */
static int find_places(Places *p)
{
    for (p->bits = 4; (size_t)1 << p->bits < 2 * p->size; p->bits++)
        ;
    p->slots = calloc((size_t)1 << p->bits, sizeof *p->slots);
    if (!p->slots)
        return 0;
    for (size_t at = 0; at + PATCH_WINDOW <= p->size; at++) {
        u32 *slot = slot_of(p, window_at(p->start + at));
        if (!*slot)
            *slot = (u32)at + 1;
    }
    return 1;
}

static u8 *put_number(u8 *out, u64 number)
{
    for (; number > 0x7F; number >>= 7)
        *out++ = (u8)(number | 0x80);
    *out++ = (u8)number;
    return out;
}

static u8 *put_literal(u8 *out, const u8 *literal, size_t size)
{
    out = put_number(out, size);
    memcpy(out, literal, size);
    return out + size;
}

/* Writes the patch and returns its end. */
static u8 *write_patch(const Places *p, const u8 *text, size_t size, u8 *out)
{
    size_t at = 0, done = 0, behind = 0;
    while (at + PATCH_WINDOW <= size) {
        u64 window = window_at(text + at);
        size_t expected = behind + at - done, start = expected, same = PATCH_WINDOW;
        if (expected + PATCH_WINDOW > p->size || window_at(p->start + expected) != window) {
            u32 place = *slot_of(p, window);
            if (!place) {
                at++;
                continue;
            }
            start = place - 1;
        }
        while (at + same < size && start + same < p->size && text[at + same] == p->start[start + same])
            same++;
        out = put_number(put_literal(out, text + done, at - done), same);
        out = put_number(out, start < expected ? 2 * (u64)(expected - start) - 1 : 2 * (u64)(start - expected));
        done = at = at + same;
        behind = start + same;
    }
    return done < size ? put_literal(out, text + done, size - done) : out;
}

static PyObject *patch(PyObject *module, PyObject *arguments)
{
    Py_buffer other, text;
    PyObject *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "y*y*", &other, &text))
        return NULL;
    Places p = {.start = other.buf, .size = (size_t)other.len};
    if (other.len > MAX_PATCHED || text.len > MAX_PATCHED)
        PyErr_Format(PyExc_ValueError, "text: at most %d bytes expected", (int)MAX_PATCHED);
    else {
        size_t size = (size_t)text.len;
        u8 *out = malloc(size + STEP_BYTES * (size / PATCH_WINDOW + 1));
        if (!out || !find_places(&p))
            PyErr_NoMemory();
        else
            result = bytes_of(out, (size_t)(write_patch(&p, text.buf, size, out) - out));
        free(p.slots);
        free(out);
    }
    PyBuffer_Release(&other);
    PyBuffer_Release(&text);
    return result;
}
