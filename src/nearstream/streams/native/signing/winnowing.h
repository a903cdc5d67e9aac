/* Anchors: minima of the windows of a text. Twin of fingerprints/winnowing.py. */

#pragma once

#include "platform.h"
#include "signing/minhash.h"
#include "signing/shingles.h"

/* Computes the minima of all runs in place and returns how many there are.
 *
 * A run spans two blocks: its minimum is that of a suffix of the first and of a prefix of the second (van Herk 1992).
 */
static size_t run_minima(u64 *restrict values, size_t count, size_t run)
{
    u64 suffix[MAX_RUN];
    if (run > count)
        run = count;
    size_t minima = count - run + 1;
    for (size_t start = 0; start < minima; start += run) {
        size_t stop = smaller(run, minima - start);
        const u64 *restrict next = values + start + run - 1;
        u64 after = ~(u64)0, prefix = ~(u64)0;
        for (size_t i = run; i-- > 0;)
            suffix[i] = after = smaller(after, values[start + i]);
        values[start] = suffix[0];
        for (size_t i = 1; i < stop; i++) {
            prefix = smaller(prefix, next[i]);
            values[start + i] = smaller(suffix[i], prefix);
        }
    }
    return minima;
}

/* Copies each value that differs from the one before it, and returns how many there are. */
static size_t changes(const u64 *values, size_t count, u64 *out)
{
    size_t found = 1;
    out[0] = values[0];
    for (size_t i = 1; i < count; i++) {
        out[found] = values[i];
        found += values[i] != values[i - 1];
    }
    return found;
}

/* Sorts hashes: first by their top bits, which leaves about one for each value of these, then by insertion. */
static void sort(u64 *values, size_t count, u64 *spare)
{
    u32 starts[257] = {0};
    for (size_t i = 0; i < count; i++)
        starts[(values[i] >> 56) + 1]++;
    for (int i = 0; i < 256; i++)
        starts[i + 1] += starts[i];
    for (size_t i = 0; i < count; i++)
        spare[starts[values[i] >> 56]++] = values[i];
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        for (; at && values[at - 1] > spare[i]; at--)
            values[at] = values[at - 1];
        values[at] = spare[i];
    }
}

/* Writes the anchors, distinct and in any order. Returns how many there are. */
static size_t winnowed(Job *job, u64 *out)
{
    const Context *c = job->context;
    u64 *windows = job->windows;
    size_t run = c->n.run * (job->spaceless ? c->n.spaceless_factor : 1), count = 0;
    if (c->n.max_anchors && job->spaceless)
        count = byte_runs(job, c->n.anchor_bytes, c->n.anchor_salt, windows);
    else if (c->n.max_anchors)
        count = word_runs(job, c->n.anchor_words, c->n.anchor_salt, windows);
    if (!count)
        return 0;
    if (count < c->n.dense_below)
        run = (run + 1) / 2;
    size_t minima = run_minima(windows, count, run);
    for (;;) {
        size_t found = distinct(job, out, changes(windows, minima, out));
        if (found <= c->n.max_anchors)
            return found;
        size_t shift = smaller(run, count - run);
        minima -= shift;
        for (size_t i = 0; i < minima; i++)
            windows[i] = smaller(windows[i], windows[i + shift]);
        run += shift;
    }
}

/* Writes the anchors and the sampled windows that become keys, distinct and in ascending order. */
static void anchors(Job *job, Result *result)
{
    result->anchor = job->shingles; /* the sketch is complete, so this list is free */
    result->anchors = winnowed(job, result->anchor);
    memcpy(result->anchor + result->anchors, job->keys, job->n_keys * sizeof(u64));
    result->anchors += job->n_keys;
    if (!result->anchors)
        return;
    sort(result->anchor, result->anchors, job->spare);
    result->anchors = changes(result->anchor, result->anchors, job->spare);
    result->anchor = job->spare;
}
