/* What a comparison reads of one text: its numbers, and its symbols at the coarser rate of both.
 *
 * A view is exact: all signatures of a text, whatever their rates, have equal views at a coarser rate. A symbol is
 * sampled at a coarser rate if its first bits are zeros, and the bits after these are its symbol there. */

#pragma once

#include "estimates/alignment.h"
#include "ld_compact.h"
#include "platform.h"
#include "signing/ld.h"

enum { VARINT_BYTES = 6, GAP_STEPS = 8, WORD_KEPT_BITS = 16, SPLIT_KEPT_BITS = 13 };
enum { KEPT_SKETCH = SLOTS / 2 }; /* bytes of a sketch with 4 bits of each slot */
#define LARGEST ((i64)1 << 48)    /* of the numbers of a text, so that no sum and no product overflows */

typedef struct {
    const u8 *digest, *sketch, *ld, *gaps;
    Py_ssize_t digest_size, sketch_size, ld_size, gaps_size;
    long long n_bytes, characters, words, shingles, rate;
    int spaceless;
} Content;

/* The symbols of a text at one rate. */
typedef struct {
    i64 rate, grain;
    unsigned bits;
    size_t size;
    i64 *symbols, *starts; /* `starts` has one number more, where the text ends */
    Buffer memory;
} View;

enum Reading { READ, NO_ROOM, INVALID };

static unsigned bit_length(i64 number)
{
    unsigned bits = 0;
    for (; number; number >>= 1)
        bits++;
    return bits;
}

static i64 least_of(i64 a, i64 b)
{
    return a < b ? a : b;
}

static i64 most_of(i64 a, i64 b)
{
    return a > b ? a : b;
}

/* Returns whether all numbers are in range and all sizes fit each other. */
static int is_content(const Content *c)
{
    const long long counts[] = {c->n_bytes, c->characters, c->words, c->shingles, c->rate};
    int valid = c->n_bytes > 0 && c->characters > 0 && c->digest_size == DIGEST && ((u64)c->rate & ((u64)c->rate - 1)) == 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        valid &= counts[i] >= 0 && counts[i] <= LARGEST;
    valid &= c->sketch_size == KEPT_SKETCH || power_between((u64)c->sketch_size, SLOTS, SLOTS * 4);
    return valid && c->ld_size % (c->gaps_size ? 2 : 4) == 0 && c->ld_size <= 8 * MAX_KEPT;
}

/* The symbols of one rate that were found so far: those that are sampled at this rate, and of equal neighbours only the
 * first. */
typedef struct {
    i64 *symbols, *starts, last;
    size_t size;
    u32 end;        /* sampled symbols are smaller */
    unsigned shift; /* past the bits that are not compared */
} Sampling;

static inline void keep_if_sampled(Sampling *s, u32 symbol, i64 start)
{
    i64 seen = symbol >> s->shift;
    int is_kept = (symbol < s->end) & (seen != s->last);
    s->symbols[s->size] = seen; /* without a branch, which could not be predicted */
    s->starts[s->size] = start;
    s->size += (size_t)is_kept;
    s->last = is_kept ? seen : s->last;
}

/* Returns the number of symbols, SIZE_MAX if the last gap is missing. */
static size_t read_words(const Content *c, Sampling s)
{
    i64 position = 0;
    for (const u8 *at = c->ld, *end = at + c->ld_size; at < end; at += 4) {
        u32 word, gap;
        memcpy(&word, at, 4);
        gap = word & ESCAPE;
        if (gap == ESCAPE) {
            if ((at += 4) == end)
                return SIZE_MAX;
            memcpy(&gap, at, 4);
        }
        keep_if_sampled(&s, word >> GAP_BITS, position += gap);
    }
    return s.size;
}

/* Reads symbols whose gaps are stored apart, in units of bytes at the coarser rate. Returns their number, SIZE_MAX if the
 * gaps do not fit. */
static size_t read_split(const Content *c, Sampling s, unsigned drop, u64 unit)
{
    const u8 *gap = c->gaps, *end = gap + c->gaps_size;
    u64 steps = 0;
    for (const u8 *at = c->ld, *last = at + c->ld_size; at < last; at += 2) {
        unsigned bits = 0;
        do {
            if (gap == end || bits == 7 * VARINT_BYTES)
                return SIZE_MAX;
            steps += (u64)(*gap & 0x7F) << bits;
            bits += 7;
        } while (*gap++ & 0x80);
        if (unit && (steps >> drop) > (u64)LARGEST / unit)
            return SIZE_MAX;
        keep_if_sampled(&s, (u32)at[1] << 8 | at[0], (i64)((steps >> drop) * unit));
    }
    return gap == end ? s.size : SIZE_MAX;
}

/* Reads the symbols at a coarser rate. `doublings` is the number of times the finer one of both rates is doubled. */
static enum Reading read_view(const Content *c, i64 rate, unsigned doublings, View *v)
{
    int is_split = c->gaps_size > 0;
    unsigned stored = is_split ? SPLIT_SYMBOL_BITS : WORD_SYMBOL_BITS, kept = is_split ? SPLIT_KEPT_BITS : WORD_KEPT_BITS;
    unsigned bits = doublings >= stored ? 0 : stored - doublings < kept ? stored - doublings : kept;
    if (v->memory.start && v->rate == rate && v->bits == bits)
        return READ;
    size_t most = (size_t)c->ld_size / (is_split ? 2 : 4) + 1;
    if (!grow(&v->memory, 2 * most * sizeof(i64)))
        return NO_ROOM;
    *v = (View){.rate = rate, .bits = bits, .memory = v->memory, .symbols = (i64 *)(void *)v->memory.start};
    v->starts = v->symbols + most;
    if (c->ld_size && bits) {
        unsigned drop = bit_length(rate) - bit_length(c->rate);
        Sampling s = {v->symbols, v->starts, -1, 0, (u32)1 << (stored - drop), stored - drop - bits};
        v->grain = is_split ? rate / GAP_STEPS : 0;
        v->size = is_split ? read_split(c, s, drop, (u64)v->grain) : read_words(c, s);
        if (v->size >= MAX_KEPT)
            return INVALID;
    }
    v->starts[v->size] = c->n_bytes;
    return READ;
}

/* Returns the low 4 bits of each slot, two slots in a byte. */
static const u8 *kept_sketch(const u8 *sketch, size_t size, u8 kept[KEPT_SKETCH])
{
    size_t step = size / SLOTS;
    if (!step)
        return sketch;
    for (size_t i = 0; i < KEPT_SKETCH; i++)
        kept[i] = (u8)((sketch[2 * i * step] & 15) | (sketch[(2 * i + 1) * step] & 15) << 4);
    return kept;
}

/* Returns the resemblance of two sketches: |A and B| / |A or B| of their sets of shingles. Only 4 bits of each slot are
 * compared, corrected for slots that agree by chance (b-bit minwise hashing, Li and Koenig, WWW 2010). The standard
 * deviation at .8 is .037. Texts with and without spaces have no common shingles. */
static double resemblance(const Content *a, const Content *b)
{
    static const double chance = 1.0 / 16;
    u8 kept[2][KEPT_SKETCH];
    const u8 *one = kept_sketch(a->sketch, (size_t)a->sketch_size, kept[0]);
    const u8 *other = kept_sketch(b->sketch, (size_t)b->sketch_size, kept[1]);
    int differing = 0;
    if (a->spaceless != b->spaceless)
        return 0;
    for (size_t i = 0; i < KEPT_SKETCH; i += sizeof(u64)) {
        u64 words[2];
        memcpy(&words[0], one + i, sizeof(u64));
        memcpy(&words[1], other + i, sizeof(u64));
        u64 bits = words[0] ^ words[1];
        bits |= bits >> 1;
        bits |= bits >> 2;
        differing += __builtin_popcountll(bits & 0x1111111111111111u);
    }
    double equal = 1 - (double)differing / SLOTS, share = (equal - chance) / (1 - chance);
    return share > 0 ? share : 0;
}
