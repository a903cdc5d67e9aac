/* The part of a signature that depends on the text alone. */

#pragma once

#include "platform.h"
#include "signing/ld.h"
#include "signing/winnowing.h"

/* Computes how long the lists of a job may become. */
static void measure(Job *job, size_t spaces)
{
    const Numbers *n = &job->context->n;
    job->most_words = spaces + 1 + job->size / n->word_bytes;
    job->most_windows = job->most_words > job->characters || !job->spaceless ? job->most_words : job->characters;
    job->table_size = 64;
    while (2 * job->table_size < 3 * job->most_windows)
        job->table_size *= 2;
}

/* Returns the next part of the scratch memory, or NULL if only its size is computed. */
static void *allocate(u64 *scratch, size_t *at, size_t size)
{
    size_t start = *at;
    *at += size;
    return scratch ? scratch + start : NULL;
}

/* Divides the scratch memory between the lists. Returns the number of u64 that they need, which is all that it does if
 * `scratch` is NULL. */
static size_t lay_out(Job *job, Result *result, u64 *scratch)
{
    size_t at = 0, most = job->context->n.max_symbols + 1;
    size_t keys = job->context->n.max_sampled + job->context->n.max_noise + 1, list = job->most_windows + 1 + keys;
    result->ld = allocate(scratch, &at, most);
    result->gaps = allocate(scratch, &at, most);
    job->keys = allocate(scratch, &at, keys);
    job->prefix = allocate(scratch, &at, job->spaceless ? job->size + 1 : 0);
    job->character_starts = allocate(scratch, &at, job->spaceless ? (job->characters + POSITIONS_MARGIN) / 2 + 1 : 0);
    job->spaces = allocate(scratch, &at, (job->most_words + POSITIONS_MARGIN) / 2 + 1);
    job->words_prefix = allocate(scratch, &at, job->most_words + 1);
    size_t shared = at; /* the lists below overlap, since the LD signature is complete before the sketch begins */
    job->sampled.hashes = allocate(scratch, &at, job->size + 1);
    job->sampled.positions = allocate(scratch, &at, job->size / 2 + 1);
    size_t end = at;
    job->shingles = allocate(scratch, &shared, list);
    job->windows = allocate(scratch, &shared, list);
    job->spare = allocate(scratch, &shared, list);
    job->table = allocate(scratch, &shared, job->table_size);
    return end > shared ? end : shared;
}

/* Hashes the words, then the distinct shingles, and returns how many of these there are. A shorter text has one shingle
 * of all words. */
static size_t shingles(Job *job)
{
    const Numbers *n = &job->context->n;
    size_t count = 0;
    if (job->spaceless) {
        sum_prefixes(job->context, job->data, job->size, job->prefix);
        find_positions(job->data, job->size, 1, job->character_starts);
    }
    hash_words(job, find_positions(job->data, job->size, 0, job->spaces));
    if (job->spaceless)
        count = byte_runs(job, n->shingle_bytes, n->sketch_salt, job->shingles);
    if (!count && job->words)
        count = word_runs(job, smaller(n->shingle_words, job->words), n->sketch_salt, job->shingles);
    return distinct(job, job->shingles, count);
}

/* Computes all fields but the digests. */
static void sign_form(Job *job, Result *result)
{
    const Numbers *n = &job->context->n;
    ld_signature(job, result);
    keep_keys(job, result->rate);
    if (n->max_noise)
        keep_noise(job);
    result->shingles = shingles(job);
    sketch(job->shingles, result->shingles, job->spare, n->sketch_bits, result->sketch);
    anchors(job, result);
}

/* ---- digests ---- */

static DigestState start_digest(const Context *c, const u8 *data, size_t size)
{
    DigestState d = {.data = data, .left = size, .hashed = BLAKE2B_BLOCK};
    if (!size) { /* then the block of the key is the last block */
        d.data = c->key_block;
        d.left = BLAKE2B_BLOCK;
        d.hashed = 0;
    }
    memcpy(d.state, size ? c->keyed : c->unkeyed, sizeof d.state);
    return d;
}

/* Copies a text with one space between its words, and returns its new size. */
static size_t without_layout(const u8 *text, size_t size, u8 *out)
{
    size_t end = 0, was_space = 1;
    for (size_t i = 0; i < size; i++) {
        size_t is_space = text[i] <= ' ';
        out[end] = is_space ? ' ' : text[i];
        end += !(is_space & was_space);
        was_space = is_space;
    }
    return end - (end && was_space);
}

static void write_digests(const Job *job, const u8 *text, size_t size, Result *result)
{
    DigestState normal = start_digest(job->context, job->data, job->size), raw = start_digest(job->context, text, size);
    hash_text(&normal);
    hash_text(&raw);
    memcpy(result->digest, normal.state, DIGEST);
    memcpy(result->raw_digest, raw.state, DIGEST);
}
