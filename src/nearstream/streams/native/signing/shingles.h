/* Words of a normal form, and hashes of runs of words or bytes.
 *
 * Shingles are runs of words (Broder 1997). In spaceless texts they are runs of bytes that start with a code point. The
 * hash of values v[s:e] is the sum of v[j] * base**(e - 1 - j) modulo 2**64 (Karp and Rabin 1987), salted and mixed.
 * One prefix sum over a sequence gives the hash of every run in it. */

#pragma once

#include "job.h"
#include "platform.h"

enum { POSITIONS_MARGIN = 72 }; /* elements that `find_positions` may write after the last position */

#ifdef VECTORS
/* Returns one bit for each of 16 bytes: whether it is a space, or if `starts` whether a code point starts there. */
static inline u64 mask16(const u8 *data, int starts)
{
    __m128i bytes = _mm_loadu_si128((const __m128i *)data);
    __m128i found = starts ? _mm_cmpgt_epi8(bytes, _mm_set1_epi8(-65)) : _mm_cmpeq_epi8(bytes, _mm_set1_epi8(SPACE));
    return (u64)(u32)_mm_movemask_epi8(found);
}

static inline u64 mask64(const u8 *data, int starts)
{
    return mask16(data, starts) | mask16(data + 16, starts) << 16 | mask16(data + 32, starts) << 32 |
           mask16(data + 48, starts) << 48;
}
#endif

static size_t count_of(const u8 *data, size_t size, u8 wanted)
{
    size_t count = 0, i = 0;
    for (; i + 128 <= size; i += 128) { /* so few that a count fits a byte, and 16 counts a vector */
        u8 found = 0;
        for (int k = 0; k < 128; k++)
            found = (u8)(found + (data[i + (size_t)k] == wanted));
        count += found;
    }
    for (; i < size; i++)
        count += data[i] == wanted;
    return count;
}

/* Finds the positions of spaces, or if `starts` of the first bytes of code points. Returns how many there are. The list
 * must have POSITIONS_MARGIN more elements. */
static inline size_t find_positions(const u8 *data, size_t size, int starts, u32 *out)
{
    size_t count = 0, i = 0;
#ifdef VECTORS
    for (; i + 64 <= size; i += 64) {
        u32 *end = out + count;
        for (u64 mask = mask64(data + i, starts); mask;) {
            /* Eight at a time, so that the branch at the end of the loop is mispredicted once in 64 bytes rather than
             * at every position. */
            for (int k = 0; k < 8; k++, mask &= mask - 1) {
                *end = (u32)i + (u32)__builtin_ctzll(mask | (u64)1 << 63);
                end += mask != 0;
            }
        }
        count = (size_t)(end - out);
    }
#endif
    for (; i < size; i++) {
        out[count] = (u32)i;
        count += starts ? (data[i] & 0xC0) != 0x80 : data[i] == SPACE;
    }
    return count;
}

/* Returns the polynomial of the 1 to 8 bytes before `end`. No branch depends on `count`. */
static inline u64 hash_chunk(const Context *c, const u8 *end, size_t count)
{
    u64 bytes, sum = 0;
    memcpy(&bytes, end - CHUNK, CHUNK);
    bytes &= ~(u64)0 << 8 * (CHUNK - count);
    for (int power = CHUNK; power-- > 0; bytes >>= 8)
        sum += c->scaled[power][bytes & 0xFF];
    return sum;
}

static inline void add_word(Job *job, const u8 *start, size_t size)
{
    const Context *c = job->context;
    u64 *prefix = job->words_prefix + job->words++;
    size_t at = (size - 1) % CHUNK + 1;
    u64 hash = hash_chunk(c, start + at, at);
    for (; at < size; at += CHUNK)
        hash = hash * c->powers[CHUNK] + hash_chunk(c, start + at + CHUNK, CHUNK);
    prefix[1] = prefix[0] * c->word_powers[1] + fmix64(hash);
}

/* Adds a word, cut every `word_bytes` bytes. Long polynomials modulo 2**64 collide on Thue-Morse strings, whatever the
 * base. */
static inline void add_words(Job *job, size_t start, size_t end)
{
    size_t cut = job->context->n.word_bytes;
    for (; end - start > cut; start += cut)
        add_word(job, job->data + start, cut);
    if (end > start)
        add_word(job, job->data + start, end - start);
}

/* Computes the prefix sums over the hashes of all words. */
static void hash_words(Job *job, size_t spaces)
{
    size_t start = 0;
    job->words = 0;
    job->words_prefix[0] = 0;
    for (size_t i = 0; i < spaces; i++) {
        add_words(job, start, job->spaces[i]);
        start = job->spaces[i] + 1;
    }
    add_words(job, start, job->size);
}

/* Computes the prefix sums over bytes. Two bytes at a time halve the chain of dependent multiplications. */
static void sum_prefixes(const Context *c, const u8 *restrict data, size_t size, u64 *restrict prefix)
{
    const u64 *table = c->scaled[0], *shifted = c->scaled[1];
    u64 base = c->powers[1], base2 = c->powers[2], last = 0;
    size_t i = 0;
    prefix[0] = 0;
    for (; i + 1 < size; i += 2) {
        prefix[i + 1] = last * base + table[data[i]];
        prefix[i + 2] = last = last * base2 + (shifted[data[i]] + table[data[i + 1]]);
    }
    if (i < size)
        prefix[i + 1] = last * base + table[data[i]];
}

/* Hashes the runs of `run` words and returns how many there are. */
static size_t word_runs(const Job *job, u64 run, u64 salt, u64 *out)
{
    const u64 *prefix = job->words_prefix;
    u64 power = job->context->word_powers[run];
    if (job->words < run)
        return 0;
    size_t count = job->words - run + 1;
    for (size_t i = 0; i < count; i++)
        out[i] = fmix64(salt + prefix[i + run] - prefix[i] * power);
    return count;
}

/* Hashes the runs of `run` bytes that start with a code point, and returns how many there are. */
static size_t byte_runs(const Job *job, u64 run, u64 salt, u64 *out)
{
    u64 power = job->context->powers[run];
    size_t count = 0;
    for (; count < job->characters && job->character_starts[count] + run <= job->size; count++) {
        const u64 *prefix = job->prefix + job->character_starts[count];
        out[count] = fmix64(salt + prefix[run] - prefix[0] * power);
    }
    return count;
}
