/* Anchors: minima of the windows of a text, and sampled windows.
 *
 * An anchor is the smallest hash in a run of consecutive windows (winnowing, Schleimer, Wilkerson, Aiken, SIGMOD 2003).
 * Two texts that share a run of windows share an anchor. The length of the run is doubled as long as there are more
 * anchors than allowed. The anchors of a doubled run are some of those before. */

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
    if (job->spaceless)
        count = byte_runs(job, c->n.anchor_bytes, c->n.anchor_salt, windows);
    else
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

/* Adds a hash to those that become keys, which are distinct and in ascending order. Returns how many there are. */
static size_t insert_key(u64 *keys, size_t count, u64 hash)
{
    size_t at = count;
    while (at && keys[at - 1] > hash)
        at--;
    if (at && keys[at - 1] == hash)
        return count;
    memmove(keys + at + 1, keys + at, (count - at) * sizeof *keys);
    keys[at] = hash;
    return count + 1;
}

/* Keeps the hashes of windows of bytes that become keys: one in `noise_rate`, and half as many as long as there are
 * more than `max_noise`. A window is sampled in another text too, however many windows around it differ there, which
 * does not hold for the least hash of a run. */
static void keep_noise(Job *job)
{
    const Context *c = job->context;
    u64 *keys = job->keys + job->n_keys, hash = 0, limit = ~(u64)0 / c->n.noise_rate + 1;
    size_t width = c->n.noise_bytes, count = 0;
    u64 leaving = c->powers[width];
    for (size_t i = 0; i < job->size; i++) {
        hash = hash * c->powers[1] + c->n.table[job->data[i]];
        if (i >= width)
            hash -= c->n.table[job->data[i - width]] * leaving;
        u64 mixed = mix(hash + c->n.anchor_salt);
        if (i + 1 >= width && mixed < limit)
            count = insert_key(keys, count, mixed);
        for (; count > c->n.max_noise; limit /= 2)
            while (count && keys[count - 1] >= limit / 2)
                count--;
    }
    job->n_keys += count;
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
